"""One account of a principal below one parent, changes that are not lost, and the greatest limit."""

from __future__ import annotations

import threading
from collections.abc import Callable
from fractions import Fraction

import pytest
from sqlalchemy import text

from accountant.connection import open_engine
from accountant.errors import AccountChanged, AccountExists, AccountFrozen
from accountant.filter import DeltaShares, FilterKind, split_limit
from accountant.ledger import Ledger
from tests.accountant.making import analyst, limit, request, root, spend


def execute(url: str, statement: str) -> None:
    """Runs one statement and commits."""
    engine = open_engine(url)
    try:
        with engine.connect() as opened:
            opened.execute(text(statement))
            opened.commit()
    finally:
        engine.dispose()


def test_a_repeated_request_opens_no_second_account(ledger: Ledger) -> None:
    """The same principal below the same parent has one account; another parent and another principal are others."""
    top = root(ledger)
    one = analyst(ledger, top)
    for _ in range(4):
        with pytest.raises(AccountExists) as refused:
            analyst(ledger, top)
        assert one.id == refused.value.account
    other = analyst(ledger, top, principal="other")
    analyst(ledger, other, principal="analyst")
    assert len(ledger.accounts(principal="analyst")) == 2
    assert ledger.audit().ok


def test_two_servers_at_once_open_one_account(open_ledger: Callable[..., Ledger]) -> None:
    """Of many processes that open the same account together one succeeds."""
    ledgers = [open_ledger(f"server {number}") for number in range(2)]
    top = root(ledgers[0])
    outcomes: list[str] = []

    def work(ledger: Ledger) -> None:
        try:
            analyst(ledger, top)
            outcomes.append("opened")
        except AccountExists:
            outcomes.append("exists")

    threads = [threading.Thread(target=work, args=(ledgers[number % 2],)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["exists"] * 7 + ["opened"]


def test_the_database_refuses_a_second_account_too(ledger: Ledger, url: str) -> None:
    """Also a program with a bug cannot store two spendable accounts of one principal below one parent."""
    top = root(ledger)
    one = analyst(ledger, top)
    columns = "dataset, parent, depth, principal, name, filter, limit_epsilon, limit_delta, budget_pure, budget_delta, "
    columns += "budget_rho, budget_mu_squared, budget_gaussian_delta, budget_concentrated_delta, spent_pure, "
    columns += (
        "spent_delta, spent_rho, spent_mu_squared, unbounded_pure, unbounded_rho, unbounded_mu_squared, entries, "
    )
    columns += "hash, created"
    statement = f"INSERT INTO accounts (id, frozen, {columns}) SELECT 'b_copy', %s, {columns} FROM accounts "
    statement += f"WHERE id = '{one.id}'"
    with pytest.raises(Exception, match=r"(?i)unique"):
        execute(url, statement % 0)
    execute(url, statement % 1)


def test_a_frozen_account_pays_for_nothing_more(ledger: Ledger, url: str) -> None:
    """What it spent stays above it; asking, and changing its limit, are refused; audit finds a silent freeze."""
    top = root(ledger)
    one = analyst(ledger, top)
    running = ledger.reserve(request(one))
    spend(ledger, request(one))
    execute(url, f"UPDATE accounts SET frozen = 1 WHERE id = '{one.id}'")
    with pytest.raises(AccountFrozen):
        ledger.reserve(request(one))
    with pytest.raises(AccountFrozen):
        ledger.change_limit(one.id, limit(2), actor="admin", reason="more")
    assert ledger.spendable("people", "analyst") == []
    ledger.fail(running.query_id)
    assert ledger.account(top.id).spent.pure == 2 * 10**11
    assert ledger.account(one.id).frozen
    assert [finding.code for finding in ledger.audit().findings] == ["wrong_state"]
    assert not analyst(ledger, top).frozen


def test_two_administrators_do_not_lose_a_change(ledger: Ledger) -> None:
    """A change that was made for a limit that somebody changed since is refused, and changes nothing."""
    top = root(ledger)
    seen = ledger.account(top.id).revision
    ledger.change_limit(top.id, limit(2), actor="one", reason="first", expected=seen)
    with pytest.raises(AccountChanged) as refused:
        ledger.change_limit(top.id, limit(3), actor="two", reason="second", expected=seen)
    assert refused.value.revision == seen + 1
    assert ledger.account(top.id).limit == limit(2)
    spend(ledger, request(analyst(ledger, top)))
    assert ledger.account(top.id).revision == seen + 1, "spending is no change of the limit"
    ledger.change_limit(top.id, limit(3), actor="two", reason="second", expected=seen + 1)


def test_the_division_of_delta_is_for_good(ledger: Ledger, url: str) -> None:
    """A grant says how delta is divided, a new limit is divided the same way, and the audit knows both from entries.

    Budgets of another division, however well they fit the row that names it, are not those of the grant.
    """
    shares = DeltaShares(gaussian=60, concentrated=15, groups=25)
    top = ledger.create_account(
        dataset="people", parent=None, principal=None, name="root", limit=limit(1, "0.000001"),
        filter=FilterKind.APPROXIMATE, shares=shares, actor="admin",
    )  # fmt: skip
    assert '"delta_shares":{"concentrated":15,"gaussian":60,"groups":25}' in ledger.entries(top.id)[0].details
    ledger.change_limit(top.id, limit(2, "0.000002"), actor="admin", reason="more")
    account = ledger.account(top.id)
    assert account.shares == shares
    assert account.branches == split_limit(account.limit, FilterKind.APPROXIMATE, shares)
    assert account.remaining_delta() == Fraction(1, 2 * 10**6)
    assert ledger.audit().ok
    other = split_limit(account.limit, FilterKind.APPROXIMATE, DeltaShares(gaussian=70, concentrated=10, groups=20))
    execute(
        url,
        f"UPDATE accounts SET share_gaussian = 70, share_concentrated = 10, budget_mu_squared = {other.mu_squared}, "
        f"budget_rho = {other.rho}, budget_delta = {other.delta}, budget_gaussian_delta = {other.gaussian_delta}, "
        f"budget_concentrated_delta = {other.concentrated_delta} WHERE id = '{top.id}'",
    )
    assert [finding.text for finding in ledger.audit().findings] == ["the shares of delta are not those of the grant"]


def test_the_guarantee_is_the_greatest_limit(ledger: Ledger) -> None:
    """After a limit is lowered the greatest epsilon and the greatest delta of before still count, each by itself."""
    top = root(ledger, epsilon=1, delta="0.00001", pure=False)
    ledger.change_limit(top.id, limit("0.5", "0.0001"), actor="admin", reason="less")
    ledger.change_limit(top.id, limit("0.25", "0.000001"), actor="admin", reason="less")
    account = ledger.account(top.id)
    assert (account.guarantee.epsilon, account.guarantee.delta) == (Fraction(1), Fraction(1, 10**4))
    assert account.limit == limit("0.25", "0.000001")
    assert ledger.audit().ok


@pytest.mark.parametrize("change", ["greatest_epsilon = 1", "greatest_delta = 1", "revision = 7"])
def test_the_audit_finds_a_changed_guarantee(ledger: Ledger, url: str, change: str) -> None:
    """The greatest limit and the number of limits are those of the entries."""
    top = root(ledger)
    execute(url, f"UPDATE accounts SET {change} WHERE id = '{top.id}'")
    assert [finding.code for finding in ledger.audit().findings] == ["wrong_limit"]
