"""Trees of any depth: every charge reaches every account above, in one order, or none of them."""

from __future__ import annotations

import datetime
import secrets
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy.exc import DBAPIError

from accountant.account import Account, FilterKind, common_accounts, tree_order
from accountant.batch import Batch
from accountant.errors import AccountFrozen, BudgetExhausted, UnknownAccount
from accountant.ledger import Ledger
from accountant.rows import AccountState
from tests.accountant.exported import exported
from tests.accountant.making import core, limit, request, root
from tests.accountant.test_spaces import take, verified


def under(ledger: Ledger, parent: Account, principal: str | None = None, *, epsilon: object = 1) -> Account:
    """A group below an account, or somebody's."""
    return ledger.create_account(
        dataset=parent.dataset,
        parent=parent.id,
        principal=principal,
        name=principal or f"group of {parent.name}",
        limit=limit(epsilon),
        filter=FilterKind.PURE,
        actor="admin",
    )


@pytest.fixture
def chain(ledger: Ledger) -> list[Account]:
    """Eight accounts on one path: the root, six groups, and the analyst's."""
    found = [root(ledger)]
    while len(found) < 7:
        found.append(under(ledger, found[-1]))
    return [*found, under(ledger, found[-1], "analyst")]


def test_a_charge_reaches_all_eight(ledger: Ledger, chain: list[Account]) -> None:
    """From the leaf to the root each account counts the same; a ninth is refused."""
    take(ledger, chain[-1], "0.25")
    assert {account.spent.pure for account in ledger.path(chain[-1].id)} == {25 * 10**10}
    assert len(ledger.path(chain[-1].id)) == 8
    with pytest.raises(ValueError, match="nested at most 8 deep"):
        under(ledger, chain[-1], "deeper")
    with pytest.raises(ValueError, match=r"epsilon"):
        under(ledger, chain[0], "nothing", epsilon=0)
    with pytest.raises(ValueError, match="never ends"):
        ledger.create_account(
            dataset="others", parent=None, principal=None, name="for a day", limit=limit(1), filter=FilterKind.PURE,
            actor="admin", expires=datetime.datetime(2999, 1, 1, tzinfo=datetime.UTC),
        )  # fmt: skip
    with pytest.raises(ValueError, match="the dataset of its parent"):
        ledger.create_account(
            dataset="others", parent=chain[0].id, principal=None, name="elsewhere", limit=limit(1),
            filter=FilterKind.PURE, actor="admin",
        )  # fmt: skip
    with pytest.raises(UnknownAccount):
        ledger.create_account(
            dataset="people", parent="b_absent", principal=None, name="cycle", limit=limit(1),
            filter=FilterKind.PURE, actor="admin",
        )  # fmt: skip
    assert ledger.audit().ok
    assert verified(exported(ledger)) == set()


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_one_account_in_the_middle_refuses_for_all(ledger: Ledger, chain: list[Account]) -> None:
    """A group that has no more refuses, is the one that is named, and nothing is charged anywhere."""
    ledger.change_limit(chain[3].id, limit("0.3"), actor="admin", reason="less for this group")
    beside = under(ledger, chain[3], "beside")
    take(ledger, beside, "0.2", principal="beside")
    with pytest.raises(BudgetExhausted) as refused:
        take(ledger, chain[-1], "0.2")
    assert (refused.value.account, refused.value.root) == (chain[3].id, False)
    spent = [account.spent.pure for account in reversed(ledger.path(chain[-1].id))]
    assert spent == [2 * 10**11] * 4 + [0] * 4


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_what_hangs_below_a_frozen_account_pays_for_nothing(ledger: Ledger) -> None:
    """Also of others; it pays again when the account above does."""
    mine = under(ledger, root(ledger), "lead")
    theirs = under(ledger, mine, "student")
    ledger.freeze("lead", actor="admin", reason="stop", beside=lambda *_: None)
    with pytest.raises(AccountFrozen):
        take(ledger, theirs, "0.1", principal="student")
    with pytest.raises(AccountFrozen):
        under(ledger, mine, "another")
    ledger.unfreeze("lead", [mine.id], actor="admin", reason="go on", beside=lambda *_: None)
    take(ledger, theirs, "0.1", principal="student")
    assert ledger.audit().ok


def test_many_at_once_never_admit_more_than_the_top(ledger: Ledger) -> None:
    """Clients of several branches of one tree at the same time: no deadlock, no overspend, and the sums agree."""
    top = root(ledger)
    groups = [under(ledger, top, epsilon="0.7") for _ in range(2)]
    leaves = [under(ledger, group, f"p{place}") for place, group in enumerate(groups * 3)]

    def ask(leaf: Account) -> bool:
        try:
            take(ledger, leaf, "0.05", principal=leaf.principal or "")
        except BudgetExhausted:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        admitted = sum(pool.map(ask, leaves * 6))
    assert admitted == 20
    found = {account.id: account.spent.pure or 0 for account in ledger.accounts()}
    assert found[top.id] == 10**12 == sum(found[group.id] for group in groups)
    assert max(found[group.id] for group in groups) <= 7 * 10**11
    assert ledger.audit().ok


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_planted_path_that_leaves_one_out_is_caught(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A debit that skips the group in the middle is named by the audit and by the auditors' program."""
    leaf = under(ledger, under(ledger, root(ledger)), "analyst")
    whole = Batch.path
    monkeypatch.setattr(Batch, "path", lambda batch, name: [one for one in whole(batch, name) if one.depth != 1])
    ledger.fail(ledger.reserve(request(leaf, core(secrets.token_hex(4)))).query_id)
    assert "wrong_state" in {finding.code for finding in ledger.audit().findings}
    assert "wrong_path" in verified(exported(ledger))


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("way", ["frozen", "ended"])
def test_a_planted_charge_through_an_account_that_pays_no_more_is_caught(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """A reservation that looks at the account that pays alone is named by the audit and by the auditors' program."""
    lead = under(ledger, root(ledger), "lead")
    theirs = under(ledger, lead, "student")
    if way == "frozen":
        ledger.freeze("lead", actor="admin", reason="stop", beside=lambda *_: None)
    else:
        ledger.end(lead.id, actor="admin", reason="stop")
    whole = Batch.path

    def thawed(batch: Batch, name: str) -> list[AccountState]:
        for account in (path := whole(batch, name)):
            account.frozen, account.expires = False, None
        return path

    with monkeypatch.context() as planted:
        planted.setattr(Batch, "path", thawed)
        ledger.fail(ledger.reserve(request(theirs, core("a"), principal="student")).query_id)
    assert "wrong_state" in {finding.code for finding in ledger.audit().findings}
    assert "over_limit" in verified(exported(ledger))


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_the_order_of_a_tree_and_who_pays_for_all(ledger: Ledger) -> None:
    """Each account is followed by those below it; a group below somebody's own account is not for everybody."""
    top = root(ledger)
    group, own = under(ledger, top), under(ledger, top, "lead")
    inner, envelope = under(ledger, group), under(ledger, own)
    ordered = [account.id for account in tree_order(reversed(ledger.accounts()))]
    assert ordered.index(inner.id) == ordered.index(group.id) + 1
    assert ordered.index(envelope.id) == ordered.index(own.id) + 1
    assert ordered[0] == top.id
    common = common_accounts(ledger.accounts(space="people"), "people")
    assert [account.id for account in common] == [top.id, group.id, inner.id]
    assert {account.id for account in ledger.seen_by("lead")} == {own.id, envelope.id}


def test_an_end_comes_nearer_and_never_goes(ledger: Ledger) -> None:
    """An envelope ends when it is ended, once; no end is put off, by whatever statement."""
    lender = under(ledger, root(ledger), "lender")
    later = ledger.time() + datetime.timedelta(days=1)
    values: dict[str, Any] = {
        "dataset": "people",
        "parent": lender.id,
        "principal": "lender",
        "limit": limit("0.1"),
        "actor": "lender",
    }
    one, two = (
        ledger.create_account(**values, name=name, filter=FilterKind.PURE, expires=later) for name in ("one", "two")
    )
    take(ledger, one, "0.1", principal="lender")
    ended = ledger.end(one.id, actor="lender", reason="enough")
    assert ended.expires is not None
    assert ended.expires < later
    assert ledger.end(one.id, actor="lender", reason="again") == ended
    for account in (one, two):
        with ledger._engine.begin() as connection, pytest.raises(DBAPIError, match="keeps its place"):
            connection.exec_driver_sql(f"UPDATE accounts SET expires = NULL WHERE id = '{account.id}'")
    assert ledger.audit().ok
    assert verified(exported(ledger)) == set()
