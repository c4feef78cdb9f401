"""What takes two administrators: one proposes, another one confirms, and nothing is done before."""

from __future__ import annotations

import datetime
import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from accountant.account import Limit
from accountant.entry import EntryKind
from accountant.ledger import Ledger, utc_now
from server.administration.budgets import Budgets, ChangeBudget
from server.administration.proposals import Adjust, Caps, Proposals
from server.administration.refusal import ActRefused
from server.roles import Role
from server.store.errors import ProposalDecided
from server.store.proposals import ProposalState
from server.store.registry import Registry
from tests.accountant.exported import Program
from tests.accountant.making import core, laplace, root, spend
from tests.accountant.making import request as asked
from tests.accountant.test_ledger_audit import tamper
from tests.server.conftest import SECRET, World

CAPS = Caps(Fraction(1), Fraction(1, 10**6))


@pytest.fixture
def two(world: World) -> World:
    """A world with a second administrator."""
    world.registry.create_principal("boss", "admin", actor="test")
    made = world.registry.create_key("boss", label="", days=30, actor="test")
    world.api.keys["boss"] = made.text  # type: ignore[index]
    return world


def proposed(world: World, who: str = "admin", **body: Any) -> dict[str, Any]:
    """An adjustment of the analyst's budget."""
    wanted = {"direction": "raise", "epsilon": "0.5", "delta": "0", "reason": "a node failed", **body}
    response = world.api.post(f"/v1/budgets/{world.account.id}:adjust", json=wanted, who=who)
    assert response.status_code == 201, response.text
    made: dict[str, Any] = response.json()
    return made


def decide(world: World, made: dict[str, Any], state: str = "confirmed", who: str = "boss") -> Any:
    """PATCH."""
    return world.api.call("PATCH", made["links"]["self"], json={"state": state}, who=who)


def test_another_one_confirms(two: World) -> None:
    """The limit changes with the confirmation and not before; the entry names both; the audit and the auditor's program
    agree, and nobody may do it twice."""
    made = proposed(two)
    assert two.ledger.account(two.account.id).limit.epsilon == 10
    assert decide(two, made, who="admin").status_code == 403, "who proposed does not confirm"
    done = decide(two, made)
    assert (done.status_code, done.json()["decided_by"]) == (200, "boss")
    assert two.ledger.account(two.account.id).limit.epsilon == Fraction(21, 2)
    told = json.loads(two.ledger.entries(two.account.id)[-1].details)
    assert told["agreed"] == {"proposal": made["id"], "proposed_by": "admin", "sole": False}
    assert (told["actor"], told["reason"]) == ("boss", "a node failed")
    assert decide(two, made).status_code == 409
    assert two.ledger.account(two.account.id).revision == 2
    assert two.ledger.audit().findings == ()
    verifier = Program.Verifier()
    verifier.read(two.ledger.export(now=1), {})
    assert verifier.findings == []
    assert any("boss (proposed by admin) changed the limit" in line for line in verifier.words())


def test_what_was_spent_is_never_lowered(two: World) -> None:
    """Lowering and raising are about the limit: the sums of an account stay, to the unit."""
    with two.ledger._engine.connect() as connection:
        before = connection.execute(text("SELECT spent_pure, spent_mu_squared FROM accounts")).all()
    for direction in ("lower", "raise", "raise"):
        assert decide(two, proposed(two, direction=direction)).status_code == 200
    with two.ledger._engine.connect() as connection:
        assert connection.execute(text("SELECT spent_pure, spent_mu_squared FROM accounts")).all() == before
    kinds = {entry.kind for entry in two.ledger.entries(two.account.id)}
    assert EntryKind.VOID not in kinds


def test_caps(two: World) -> None:
    """One adjustment changes no more than the settings say, in either direction."""
    above = {"direction": "raise", "epsilon": "0", "delta": "0.00001"}
    for body in ({"epsilon": "1.1"}, {"epsilon": "0", "delta": "0.00001"}, above, {"epsilon": "0"}):
        wanted = {"direction": "lower", "epsilon": "0.5", "delta": "0", "reason": "x", **body}
        response = two.api.post(f"/v1/budgets/{two.account.id}:adjust", json=wanted, who="admin")
        assert response.status_code in (409, 422), response.text
    assert two.registry.proposals(state=None, after=None, count=9) == ()


def test_the_limit_that_was_proposed_for(two: World) -> None:
    """A limit that was changed in between makes the confirmation 412, and changes nothing."""
    made = proposed(two)
    two.ledger.change_limit(two.account.id, Limit(Fraction(3), Fraction(1, 10**6)), actor="x", reason="y")
    assert decide(two, made).status_code == 412
    assert two.ledger.account(two.account.id).limit.epsilon == 3
    assert decide(two, made, "withdrawn").status_code == 403
    assert decide(two, made, "withdrawn", who="admin").json()["state"] == "withdrawn"


def test_its_time_is_over_after_a_week(two: World) -> None:
    """A proposal that nobody confirmed in time is none any more."""
    made = proposed(two)
    two.clock.now += datetime.timedelta(days=8)
    assert decide(two, made).status_code == 409
    assert two.ledger.account(two.account.id).revision == 1


def test_a_decision_is_stored_once(two: World) -> None:
    """Whoever read the proposal while it was open, and comes second, changes nothing."""
    row = two.registry.proposal(proposed(two)["id"])
    assert row is not None
    two.registry.decide_proposal(replace(row, state=ProposalState.REJECTED, decider="boss"))
    with pytest.raises(ProposalDecided):
        two.registry.decide_proposal(replace(row, state=ProposalState.WITHDRAWN, decider="admin"))
    late = two.registry.proposal(row.id)
    assert late is not None
    assert (late.state, late.decider) == (ProposalState.REJECTED, "boss")


def test_a_sole_administrator_confirms_on_the_machine(world: World) -> None:
    """There, and nowhere else; the ledger says so; with a second administrator the machine does not confirm."""
    proposals = Proposals(world.ledger, world.registry, CAPS)
    wanted = Adjust(account=world.account.id, epsilon=Fraction(1), delta=Fraction(0), reason="alone")
    row = proposals.adjust(wanted, actor="admin")
    with pytest.raises(ActRefused, match="OwnProposal"):
        proposals.confirm(row.id, actor="admin")
    assert proposals.confirm(row.id, actor="os:root", local=True).state is ProposalState.CONFIRMED
    assert json.loads(world.ledger.entries(world.account.id)[-1].details)["agreed"]["sole"] is True
    again = proposals.adjust(wanted, actor="admin")
    world.registry.create_principal("boss", "admin", actor="test")
    with pytest.raises(ActRefused, match="OthersConfirm"):
        proposals.confirm(again.id, actor="os:root", local=True)
    assert world.ledger.account(world.account.id).revision == 2


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def test_both_databases(request: pytest.FixtureRequest, kind: str) -> None:
    """Proposal, limit, entry and acts are one transaction on either; a second confirmation changes nothing."""
    url = request.getfixturevalue(f"{kind}_url")
    registry = Registry(url, secret=SECRET, clock=utc_now)
    registry.create_principal("admin", Role.ADMIN, actor="test")
    registry.create_principal("boss", Role.ADMIN, actor="test")
    with Ledger(url, instance="test") as ledger:
        top, proposals = root(ledger), Proposals(ledger, registry, CAPS)
        change = Adjust(account=top.id, epsilon=Fraction(-1, 2), delta=Fraction(0), reason="x")
        row = proposals.adjust(change, actor="admin")
        assert proposals.confirm(row.id, actor="boss").decider == "boss"
        with pytest.raises(ActRefused, match="ProposalOver"):
            proposals.confirm(row.id, actor="boss")
        assert ledger.account(top.id).limit.epsilon == top.limit.epsilon - Fraction(1, 2)
        assert ledger.audit().findings == ()
    registry.close()


def test_a_proposer_who_is_no_administrator_any_more(two: World) -> None:
    """It takes two who are administrators when it is confirmed."""
    made = proposed(two)
    two.registry.create_principal("third", "admin", actor="test")
    two.registry.change_principal("admin", disabled=True, actor="third")
    assert decide(two, made).status_code == 409
    assert two.ledger.account(two.account.id).revision == 1


def test_a_proposal_that_was_edited_by_hand(two: World) -> None:
    """The audit names a proposal whose row is not as the last act about it left it."""
    made = proposed(two)
    tamper(str(two.ledger._engine.url), f"UPDATE proposals SET proposer = 'owner' WHERE id = '{made['id']}'")
    assert [one.subject for one in two.ledger.audit().findings] == [f"proposals {made['id']}"]


def test_strict_raises(world: World) -> None:
    """With `raises_need_two` one administrator alone stays below every limit that the account had."""
    budgets = Budgets(world.ledger, world.registry, lambda: ["clinic"], raises_need_two=True)

    def change(epsilon: int, micros: int = 1) -> None:
        wanted = {"account": world.account.id, "epsilon": Fraction(epsilon), "delta": Fraction(micros, 10**6)}
        budgets.change(ChangeBudget(**wanted, reason="x"), actor="admin")  # type: ignore[arg-type]

    change(4)
    change(10)
    with pytest.raises(ActRefused, match="NeedsTwo"):
        change(11)
    with pytest.raises(ActRefused, match="NeedsTwo"):
        change(4, 2)


@pytest.mark.parametrize("sole", [False, True])
def test_a_restored_ledger(sqlite_url: str, tmp_path: Path, sole: bool) -> None:
    """It spends nothing until a second administrator confirms, or the machine where there is no second one; each root
    says who, and a mark that was ahead does not hide behind the acts written meanwhile."""
    mark, file = tmp_path / "mark", Path(sqlite_url.removeprefix("sqlite:///"))
    registry = Registry(sqlite_url, secret=SECRET, clock=utc_now, high_water=mark)
    for name in ("admin",) if sole else ("admin", "boss"):
        registry.create_principal(name, "admin", actor="test")
    with Ledger(sqlite_url, instance="test", high_water=mark) as ledger:
        top = root(ledger)
    registry.close()
    before = file.read_bytes()
    with Ledger(sqlite_url, instance="test", high_water=mark) as ledger:
        spend(ledger, asked(top, core("a", laplace("0.01"))))
    for beside in ("-wal", "-shm"):
        file.with_name(file.name + beside).unlink(missing_ok=True)
    file.write_bytes(before)
    registry = Registry(sqlite_url, secret=SECRET, clock=utc_now, high_water=mark)
    with Ledger(sqlite_url, instance="test", high_water=mark) as ledger:
        proposals = Proposals(ledger, registry, CAPS)
        row = proposals.acknowledge("the disk failed", actor="admin")
        assert ledger.behind
        proposals.confirm(row.id, actor="os:root" if sole else "boss", local=sole)
        assert not ledger.behind
        told = json.loads(ledger.entries(top.id)[-1].details)
        assert (told["agreed"]["sole"], told["agreed"]["proposed_by"]) == (sole, "admin")
        with pytest.raises(ActRefused, match="NotBehind"):
            proposals.acknowledge("again", actor="admin")
        assert ledger.audit().findings == ()
    registry.close()
    with Ledger(sqlite_url, instance="test", high_water=mark) as ledger:
        assert not ledger.behind
