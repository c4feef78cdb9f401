"""Lending over HTTP: envelopes below one's own budget, their end, and what they never do."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from accountant.account import Account
from accountant.errors import AccountExpired, BudgetExhausted, HasHistory
from accountant.ledger import Ledger
from server.administration import lending
from server.administration.refusal import ActRefused
from tests.accountant.exported import exported, rechained
from tests.accountant.making import analyst, core, gaussian, limit, request, root
from tests.accountant.test_spaces import verified
from tests.server.conftest import World

LIMIT = {"epsilon": "2", "delta": "0.0000001"}
DAY = (datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=30)).date().isoformat()


def lend(world: World, *, who: str = "analyst", of: str | None = None, **more: Any) -> Any:
    """POST :lend, of the analyst's own budget to the other one."""
    body = {"principal": "other", "limit": LIMIT, "expires": DAY, **more}
    return world.api.post(f"/v1/budgets/{of or world.account.id}:lend", json=body, who=who)


def spend(world: World, account: str, name: str, *, principal: str = "other") -> str:
    """Charges Gaussian noise to an account."""
    asked = request(account, core(name, gaussian("0.001")), principal=principal)
    return world.ledger.reserve(asked).query_id


def test_an_owner_lends_without_an_administrator(world: World) -> None:
    """The envelope hangs below the lender's budget, both see it, and each charge reaches all above."""
    made = lend(world)
    assert made.status_code == 201, made.text
    body = made.json()
    assert (body["parent"], body["principal"], body["limit"]) == (world.account.id, "other", LIMIT)
    assert body["expires"] == f"{DAY}T00:00:00+00:00"
    assert (body["queries_left"], body["membership_guess"]) == (20, "0.8808")
    address = made.headers["location"]
    assert world.api.get(address, who="other").status_code == 200
    assert world.api.get(address, who="admin").status_code == 200
    listed = world.api.get("/v1/budgets", who="analyst").json()["budgets"]
    assert [one["id"] for one in listed] == [world.account.id, body["id"]]
    assert [one["id"] for one in world.api.get("/v1/budgets", who="other").json()["budgets"]] == [body["id"]]
    spend(world, body["id"], "counted")
    assert all(account.spent.mu_squared == 10**9 for account in world.ledger.path(body["id"]))
    assert world.ledger.account(world.root.id).spent.mu_squared == 10**9


def test_what_is_lent_lets_nobody_in(world: World) -> None:
    """Without a budget of the dataset the borrower neither sees it nor pays; with one, where the envelope is named."""
    envelope = lend(world).json()["id"]
    assert world.api.get("/v1/datasets/clinic", who="other").status_code == 404
    assert world.api.get("/v1/datasets", who="other").json()["datasets"] == []
    assert world.ledger.spendable("clinic", "other", named=envelope) == []
    own = analyst(world.ledger, world.root, principal="other", epsilon=1, delta="1e-7", pure=False)
    assert [path[0].id for path in world.ledger.spendable("clinic", "other")] == [own.id]
    paths = world.ledger.spendable("clinic", "other", named=envelope)
    assert [path[0].id for path in paths] == [own.id, envelope]
    assert [account.id for account in paths[1]] == [envelope, world.account.id, world.root.id]


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"limit": {"epsilon": "999", "delta": "0.0000001"}}, 409),
        ({"limit": {"epsilon": "1", "delta": "0.001"}}, 409),
        ({"limit": {"epsilon": "0", "delta": "0.0000001"}}, 422),
        ({"limit": {"epsilon": "1"}}, 409),
        ({"expires": "2020-01-01"}, 422),
        ({"expires": "2999-01-01"}, 422),
        ({"expires": "2027-02-30"}, 422),
        ({"expires": "tomorrow"}, 422),
        ({"of": "b_absent"}, 404),
        ({"who": "other"}, 404),
        ({"who": "auditor"}, 403),
    ],
)
def test_what_cannot_be_lent_is_refused(world: World, change: dict[str, Any], status: int) -> None:
    """More than there is, nothing, an end that is none, of others: refused, and no account appears."""
    before = len(world.ledger.accounts())
    assert lend(world, **change).status_code == status
    assert len(world.ledger.accounts()) == before


def test_the_answer_says_nothing_about_the_borrower(world: World) -> None:
    """A name that nobody has is answered like one that somebody has."""
    known, unknown = lend(world).json(), lend(world, principal="nobody").json()
    same = {"principal", "name", "id", "links", "created"}
    assert {name: known[name] for name in known.keys() - same} == {name: unknown[name] for name in known.keys() - same}


def test_a_lender_takes_back_at_any_time(world: World) -> None:
    """Recalled, it pays for nothing more; a query under way is settled; again changes nothing; others' stay."""
    envelope = lend(world).json()["id"]
    open_query = spend(world, envelope, "counted")
    address = f"/v1/budgets/{envelope}:recall"
    assert world.api.post(address, json={"reason": "over"}, who="analyst").status_code == 200
    with pytest.raises(AccountExpired):
        spend(world, envelope, "again")
    world.ledger.fail(open_query)
    again = world.api.post(address, json={"reason": "over"}, who="analyst").json()
    assert (again["queries_left"], again["used_share"] != "0") == (0, True)
    for own in (world.account.id, world.root.id):
        refused = world.api.post(f"/v1/budgets/{own}:recall", json={"reason": "mine"}, who="analyst")
        assert refused.status_code == (409 if own == world.account.id else 404)
    assert world.api.post(f"/v1/budgets/{world.root.id}:recall", json={"reason": "x"}, who="admin").status_code == 409
    assert world.ledger.audit().ok
    assert verified(exported(world.ledger)) == set()


@pytest.fixture
def lent(database: str) -> tuple[Callable[[], Ledger], list[datetime.datetime]]:
    """How a ledger is opened whose clock stands at the last of these moments."""
    moments = [datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)]
    return lambda: Ledger(database, instance="test", clock=lambda: moments[-1]), moments


def _envelope(ledger: Ledger, parent: Account, end: datetime.datetime) -> Account:
    return ledger.create_account(
        dataset=parent.dataset,
        parent=parent.id,
        principal="bob",
        name="lent",
        limit=limit("0.3"),
        filter=parent.filter,
        shares=parent.shares,
        expires=end,
        actor="analyst",
    )


def test_an_end_is_the_ledgers_time(lent: tuple[Callable[[], Ledger], list[datetime.datetime]]) -> None:
    """Charged until its end, never after it, also where a clock goes back; what it spent stays in all accounts."""
    opened, moments = lent
    with opened() as ledger:
        own = analyst(ledger, root(ledger))
        envelope = _envelope(ledger, own, moments[-1] + datetime.timedelta(days=1))
        ledger.fail(ledger.reserve(request(envelope, core("a", quality="0.1"), principal="bob")).query_id)
        with pytest.raises(BudgetExhausted):
            ledger.reserve(request(envelope, core("b", quality="0.3"), principal="bob"))
        moments.append(moments[0] + datetime.timedelta(days=1))
        ledger.reserve(request(own, core("c", quality="0.1")))
        moments.append(moments[0])
        with pytest.raises(AccountExpired):
            ledger.reserve(request(envelope, core("d", quality="0.1"), principal="bob"))
        assert [account.spent.pure for account in ledger.path(envelope.id)] == [10**11, 2 * 10**11, 2 * 10**11]
        with pytest.raises(ValueError, match="before it begins"):
            _envelope(ledger, own, moments[0])
        with pytest.raises(HasHistory):
            ledger.end(own.id, actor="analyst", reason="anew")
        assert ledger.audit().ok


def test_what_hangs_below_an_envelope_ends_with_it(lent: tuple[Callable[[], Ledger], list[datetime.datetime]]) -> None:
    """Taken back, it takes along what was lent of it, whenever that was to end; and nothing more is opened below."""
    opened, moments = lent
    later = moments[-1] + datetime.timedelta(days=1)
    with opened() as ledger:
        upper = _envelope(ledger, analyst(ledger, root(ledger)), later)
        lower = _envelope(ledger, upper, later)
        ledger.fail(ledger.reserve(request(lower, core("a", quality="0.1"), principal="bob")).query_id)
        ledger.end(upper.id, actor="analyst", reason="over")
        with pytest.raises(AccountExpired):
            ledger.reserve(request(lower, core("b", quality="0.1"), principal="bob"))
        with pytest.raises(AccountExpired):
            _envelope(ledger, lower, later)
        assert ledger.audit().ok


def test_nothing_outlives_what_it_is_lent_of(world: World) -> None:
    """Of an envelope until its end at most; and of nobody's own budget nothing, whoever asks."""
    envelope = lend(world).json()["id"]
    last = datetime.date.fromisoformat(DAY) + datetime.timedelta(days=1)
    assert lend(world, who="other", of=envelope, expires=last.isoformat()).status_code == 422
    assert lend(world, who="other", of=envelope).status_code == 201
    assert lend(world, of=envelope).status_code == 409, "what was lent is its holder's to lend"
    assert lend(world, who="admin", of=world.root.id).status_code == 409
    endless = lending.LendBudget(
        account=world.account.id, principal="other", epsilon=Fraction(1), delta=Fraction(1, 10**7), expires=None
    )
    with pytest.raises(ActRefused, match="EndsTooLate"):
        lending.Lending(world.ledger).lend(endless, actor="analyst")


def test_charges_after_an_end_are_named(lent: tuple[Callable[[], Ledger], list[datetime.datetime]]) -> None:
    """A forged export that charges an envelope after it was taken back, and one that moves its end."""
    opened, moments = lent
    with opened() as ledger:
        envelope = _envelope(ledger, analyst(ledger, root(ledger)), moments[-1] + datetime.timedelta(days=1))
        ledger.fail(ledger.reserve(request(envelope, core("a", quality="0.1"), principal="bob")).query_id)
        ledger.end(envelope.id, actor="analyst", reason="over")
        lines = exported(ledger)
    assert verified(lines) == set()
    end = next(one for one in lines if one["line"] == "entry" and '"action":"end"' in one["details"])
    granted = next(i for i, one in enumerate(lines) if one["line"] == "entry" and one["account"] == envelope.id)
    earlier = [one for one in lines if one is not end]
    assert "over_limit" in verified(rechained([*earlier[: granted + 1], end, *earlier[granted + 1 :]]))
    end["details"] = end["details"].replace(f'"expires":{end["created"]}', f'"expires":{end["created"] + 1}')
    assert "wrong_state" in verified(rechained(lines))


def test_envelopes_do_not_pile_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as may be open, and as many as may ever be, those that were taken back among them."""
    monkeypatch.setattr(lending, "LOANS_MAX", 2)
    monkeypatch.setattr(lending, "LOANS_EVER", 3)
    one, _ = lend(world).json()["id"], lend(world).json()["id"]
    assert lend(world).status_code == 409
    world.api.post(f"/v1/budgets/{one}:recall", json={"reason": "over"}, who="analyst")
    assert [lend(world).status_code, lend(world).status_code] == [201, 409]
    world.api.post(
        f"/v1/budgets/{world.ledger.below(world.account.id)[1].id}:recall", json={"reason": "x"}, who="analyst"
    )
    assert lend(world).status_code == 409
