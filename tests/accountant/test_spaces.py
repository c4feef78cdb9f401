"""Unit spaces: datasets about the same people share one root, and joining two spaces never raises a limit."""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy.exc import DBAPIError

from accountant.account import Account, DeltaShares, FilterKind
from accountant.batch import Batch
from accountant.calendar import ACKNOWLEDGEMENT, WindowKind, WindowMode
from accountant.entry import ZERO
from accountant.errors import BudgetExhausted, SpacesNotJoined
from accountant.ledger import Ledger
from accountant.rows import AccountState
from accountant.spaces import JoinSpace
from accountant.states import EntryKind
from accountant.window import WindowWish
from tests.accountant.exported import Lines, Program, exported, rechained, sealed
from tests.accountant.making import analyst, core, limit, request, root, spend


def below(
    ledger: Ledger, parent: Account, dataset: str, *, principal: str | None = "bob", epsilon: object = 1
) -> Account:
    """An account of another dataset of the space below a parent."""
    return ledger.create_account(
        dataset=dataset,
        parent=parent.id,
        principal=principal,
        name=principal or dataset,
        limit=limit(epsilon),
        filter=FilterKind.PURE,
        actor="admin",
        space=parent.space,
    )


def take(ledger: Ledger, account: Account, epsilon: str, *, principal: str = "analyst") -> None:
    """Charges and settles a query with Laplace noise of that epsilon."""
    spend(ledger, request(account, core(secrets.token_hex(4), quality=epsilon), principal=principal))


def joined(ledger: Ledger) -> tuple[Account, Account]:
    """Two roots, each spent from, the second of which was put below the first; before, a query of it was settled."""
    one, other = root(ledger, dataset="people", epsilon=2), root(ledger, dataset="copy", epsilon=1)
    take(ledger, analyst(ledger, one), "0.4")
    theirs = analyst(ledger, other)
    take(ledger, theirs, "0.3")
    assert ledger.join_space("copy", "people", actor="admin", reason="the same people")
    return ledger.account(one.id), ledger.account(other.id)


def verified(lines: Lines) -> set[str]:
    """The codes of what the auditors' program finds in a file of these lines."""
    verifier = Program.Verifier()
    verifier.read(iter(sealed(lines).splitlines(keepends=True)), {})
    return {code for code, *_ in verifier.findings}


def test_datasets_of_a_space_share_one_root(ledger: Ledger) -> None:
    """An account of the second dataset debits the root of the first; a second root is refused."""
    top = root(ledger)
    mine, theirs = analyst(ledger, top), below(ledger, top, "visits")
    assert (top.space, theirs.space, theirs.dataset) == ("people", "people", "visits")
    take(ledger, mine, "0.6")
    with pytest.raises(BudgetExhausted) as refused:
        take(ledger, theirs, "0.6", principal="bob")
    assert refused.value.account == top.id
    take(ledger, theirs, "0.4", principal="bob")
    assert ledger.account(top.id).used_share() == 1
    for space in ("people", None):
        with pytest.raises(ValueError, match=r"second one would double|another unit space"):
            ledger.create_account(
                dataset="visits",
                parent=None,
                principal=None,
                name="again",
                limit=limit(1),
                filter=FilterKind.PURE,
                actor="admin",
                space=space,
            )
    assert ledger.audit().ok
    assert verified(exported(ledger)) == set()


def test_joined_roots_count_what_both_have_spent(ledger: Ledger) -> None:
    """The upper root is debited with the other's sum, has the stricter limit, and pays for both from then on."""
    upper, lower = joined(ledger)
    assert (upper.spent.pure, upper.limit, upper.guarantee) == (7 * 10**11, limit(1), limit(2))
    assert (lower.parent, lower.space, lower.limit) == (upper.id, "people", limit(1))
    (theirs,) = ledger.accounts(dataset="copy", principal="analyst")
    (mine,) = ledger.accounts(dataset="people", principal="analyst")
    with pytest.raises(BudgetExhausted) as refused:
        take(ledger, theirs, "0.4")
    assert refused.value.account == upper.id
    take(ledger, theirs, "0.2")
    take(ledger, mine, "0.1")
    assert ledger.account(upper.id).used_share() == 1
    assert ledger.account(lower.id).spent.pure == 5 * 10**11
    assert [account.id for account in ledger.path(theirs.id)] == [theirs.id, lower.id, upper.id]
    assert not ledger.join_space("copy", "people", actor="admin", reason="again")
    assert ledger.audit().ok
    assert verified(exported(ledger)) == set()


def test_another_process_notices_a_join(open_ledger: Callable[..., Ledger]) -> None:
    """A process that has charged the lower root alone charges the upper one too as soon as they are joined."""
    first, second = open_ledger("first"), open_ledger("second")
    one, other = root(first, dataset="people"), root(first, dataset="copy")
    theirs = analyst(first, other)
    take(second, theirs, "0.1")
    first.join_space("copy", "people", actor="admin", reason="the same people")
    take(second, theirs, "0.1")
    assert first.account(one.id).spent.pure == 2 * 10**11
    assert first.audit().ok


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_joins_that_are_refused_change_nothing(ledger: Ledger) -> None:
    """Sums above the stricter limit, open queries, other filters, shared spaces: refused, with the reason."""
    one, other = root(ledger, dataset="people", epsilon=2), root(ledger, dataset="copy")
    take(ledger, analyst(ledger, one), "0.9")
    theirs = analyst(ledger, other)
    take(ledger, theirs, "0.2")
    root(ledger, dataset="approximate", pure=False, delta="1e-6")
    shared = root(ledger, dataset="shared")
    below(ledger, shared, "beside")
    opened = analyst(ledger, root(ledger, dataset="open"))
    ledger.reserve(request(opened))
    deep = root(ledger, dataset="deep")
    for _ in range(7):
        deep = below(ledger, deep, "deep", principal=None)
    day = WindowWish(kind=WindowKind.DAILY, mode=WindowMode.RESET, limit=limit("1.5"), acknowledge=ACKNOWLEDGEMENT)
    ledger.change_window(root(ledger, dataset="days", epsilon=2).id, day, actor="admin", reason="daily")
    root(ledger, dataset="narrow")
    for dataset, space, why in (
        ("copy", "people", "above the stricter"),
        ("approximate", "people", "root is approximate"),
        ("shared", "people", '"beside", which would stay'),
        ("open", "people", "under way"),
        ("deep", "people", "nested at most"),
        ("narrow", "days", "window of its root"),
    ):
        with pytest.raises(SpacesNotJoined, match=why):
            ledger.join_space(dataset, space, actor="admin", reason="try")
    assert all(account.space == account.dataset or account.dataset == "beside" for account in ledger.accounts())
    with pytest.raises(ValueError, match="unit space of its parent"):
        below(ledger, replace(one, space="shared"), "visits")
    ledger.change_limit(other.id, limit("1.1"), actor="admin", reason="these people bear 1.1 in both")
    assert ledger.join_space("copy", "people", actor="admin", reason="try")
    assert ledger.audit().ok


def test_a_space_without_a_root_gives_its_name_alone(ledger: Ledger) -> None:
    """A dataset keeps its root under the space's name, and the next one hangs below it."""
    top = root(ledger)
    assert not ledger.join_space("unknown", "patients", actor="admin", reason="not charged yet")
    assert ledger.join_space("people", "patients", actor="admin", reason="named")
    moved = ledger.account(top.id)
    assert (moved.space, moved.parent, moved.spent) == ("patients", None, ZERO.sums())
    assert below(ledger, moved, "visits").space == "patients"
    assert ledger.audit().ok
    assert verified(exported(ledger)) == set()


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_charges_that_no_mixed_branch_counted_end_it_above(ledger: Ledger) -> None:
    """Where the lower root has no mixed branch, that of the upper one covers nothing from the join on."""
    upper = root(ledger, dataset="people", epsilon=2, delta="1e-6", pure=False)
    lower = ledger.create_account(
        dataset="copy",
        parent=None,
        principal=None,
        name="without",
        limit=limit(2, "1e-6"),
        filter=FilterKind.APPROXIMATE,
        actor="admin",
        shares=DeltaShares(gaussian=40, concentrated=10, mixed=0, groups=50),
    )
    take(ledger, analyst(ledger, lower, epsilon=2, delta="1e-6", pure=False), "0.1")
    ledger.join_space("copy", "people", actor="admin", reason="the same people")
    assert ledger.account(upper.id).spent.mixed_pure is None
    assert ledger.account(upper.id).spent.pure == 10**11
    assert ledger.audit().ok
    assert verified(exported(ledger)) == set()


@pytest.mark.parametrize("windowed", ["upper", "lower"])
def test_windows_go_on_after_a_join(open_ledger: Callable[..., Ledger], windowed: str) -> None:
    """A root with a day's amount: what is carried counts as of that day, and both programs find the same."""
    noon = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
    ledger = open_ledger(clock=lambda: noon)
    one, other = root(ledger, dataset="people", epsilon=2), root(ledger, dataset="copy", epsilon=2)
    theirs = analyst(ledger, other)
    wish = WindowWish(kind=WindowKind.DAILY, mode=WindowMode.RESET, limit=limit("0.5"), acknowledge=ACKNOWLEDGEMENT)
    which = one if windowed == "upper" else other
    ledger.change_window(which.id, wish, actor="admin", reason="by the day")
    take(ledger, theirs, "0.3")
    ledger.join_space("copy", "people", actor="admin", reason="the same people")
    take(ledger, theirs, "0.1")
    with pytest.raises(BudgetExhausted) as refused:
        take(ledger, theirs, "0.2")
    assert refused.value.account == which.id
    assert ledger.audit().ok
    assert verified(exported(ledger)) == set()


def _entry(lines: Lines, action: str) -> dict[str, object]:
    return next(one for one in lines if one["line"] == "entry" and f'"action":"{action}"' in one["details"])


@pytest.mark.parametrize(
    ("forgery", "code"),
    [
        ("join_for_nothing", "wrong_amounts"),
        ("join_without_debit", "wrong_tree"),
        ("join_keeps_the_limit", "wrong_limit"),
        ("charge_beside_the_upper_root", "wrong_path"),
        ("second_root", "wrong_tree"),
        ("charge_after_the_end", "over_limit"),
    ],
)
@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_forged_trees_are_named(ledger: Ledger, forgery: str, code: str) -> None:
    """Exports whose tree says less than was charged, sealed and chained anew: the auditors' program names each."""
    upper, _ = joined(ledger)
    (theirs,) = ledger.accounts(dataset="copy", principal="analyst")
    take(ledger, theirs, "0.1")
    lines = exported(ledger)
    assert verified(lines) == set()
    join = _entry(lines, "join")
    if forgery == "join_for_nothing":
        join["amounts"] = [0] * 10
    elif forgery == "join_without_debit":
        lines.remove(join)
    elif forgery == "join_keeps_the_limit":
        join["details"] = str(join["details"]).replace(
            '"to":{"delta":"0","epsilon":"1"}', '"to":{"delta":"0","epsilon":"2"}'
        )
    elif forgery == "charge_beside_the_upper_root":
        last = max(one["sequence"] for one in lines if one["line"] == "entry" and one["kind"] == "reserve")
        dropped = [
            one
            for one in lines
            if one["line"] == "entry" and one["account"] == upper.id and one["sequence"] >= last - 3 and one["query"]
        ]
        assert dropped
        lines = [one for one in lines if one not in dropped]
    elif forgery == "second_root":
        joining = _entry(lines, "joined")
        lines = [one for one in lines if one is not join]
        joining["details"] = '{"action":"space","actor":"admin","reason":"the same people","space":"people"}'
    else:
        grant = next(one for one in lines if one["line"] == "entry" and one["account"] == theirs.id)
        grant["details"] = grant["details"].replace('"filter"', f'"expires":{grant["created"] + 1},"filter"')
    assert code in verified(rechained(lines))


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_planted_join_without_its_debit_is_caught(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """The audit names a join that forgot what the lower root had spent."""
    judge = JoinSpace._judge
    monkeypatch.setattr(JoinSpace, "_judge", lambda *one: (ZERO, *judge(*one)[1:]))
    joined(ledger)
    assert {finding.code for finding in ledger.audit().findings} >= {"wrong_amounts"}


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_planted_join_under_the_greater_limit_is_caught(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """The audit names a join whose root keeps the greater of the two limits."""
    judge = JoinSpace._judge
    monkeypatch.setattr(JoinSpace, "_judge", lambda *one: (judge(*one)[0], one[-1].limit, one[-1].branches))
    joined(ledger)
    assert {finding.code for finding in ledger.audit().findings} == {"wrong_limit"}


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_planted_join_that_leaves_the_debit_out_is_caught(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """The audit names a join after which the upper root has no entry: at the end of the ledger, and before others."""
    write = Batch.add_entry

    def forgetful(batch: Batch, account: AccountState, kind: EntryKind, **told: Any) -> None:
        if '"action":"join"' not in told["details"]:
            write(batch, account, kind, **told)

    with monkeypatch.context() as planted:
        planted.setattr(Batch, "add_entry", forgetful)
        upper, _ = joined(ledger)
    assert "wrong_tree" in {finding.code for finding in ledger.audit().findings}
    take(ledger, upper, "0.1", principal="owner")
    assert "wrong_tree" in {finding.code for finding in ledger.audit().findings}


def test_a_place_changes_once_and_only_for_a_root(ledger: Ledger) -> None:
    """The database refuses to move an account that is below another one, or upwards."""
    upper, lower = joined(ledger)
    with ledger._engine.begin() as connection, pytest.raises(DBAPIError, match="keeps its place"):
        connection.exec_driver_sql(f"UPDATE accounts SET parent = NULL, depth = 0 WHERE id = '{lower.id}'")
    assert ledger.account(upper.id).parent is None
