"""The audit finds what was edited by hand, with the triggers out of the way."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from accountant.connection import open_engine
from accountant.ledger import Ledger
from tests.accountant.making import analyst, core, gaussian, laplace, limit, request, root, spend


def tamper(url: str, *statements: str) -> None:
    """Runs statements as somebody would who has the database's password."""
    engine = open_engine(url, foreign_keys=False)
    with engine.connect() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SET session_replication_role = replica"))
        else:
            names = connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'trigger'")).scalars().all()
            for name in names:
                connection.execute(text(f"DROP TRIGGER {name}"))
            connection.execute(text("PRAGMA ignore_check_constraints = ON"))
        for statement in statements:
            connection.execute(text(statement))
        connection.commit()
    engine.dispose()


@pytest.fixture
def used(ledger: Ledger) -> Ledger:
    """A ledger with two levels, approximate accounts, and queries in every final state."""
    top = root(ledger, epsilon=10, delta="1e-6", pure=False)
    leaf = analyst(ledger, top, delta="1e-6", pure=False)
    spend(ledger, request(leaf, core("a", laplace("0.01"))))
    spend(ledger, request(leaf, core("b", gaussian("0.001"))))
    ledger.fail(ledger.reserve(request(leaf, core("c", laplace("0.02")))).query_id)
    ledger.void(ledger.reserve(request(leaf, core("d", gaussian("0.002")))).query_id)
    ledger.change_limit(leaf.id, limit(2, "1e-6"), actor="admin", reason="more")
    ledger.reserve(request(leaf, core("a", laplace("0.01")), reuse="own"))
    return ledger


def test_a_sound_ledger(used: Ledger) -> None:
    """Nothing is found, everything is counted, and the head is the last entry."""
    report = used.audit()
    assert report.ok
    assert (report.entries, report.accounts, report.queries, report.releases) == (19, 2, 5, 2)
    assert report.sequence == 19
    assert report == used.audit()


@pytest.mark.parametrize(
    ("statement", "codes"),
    [
        ("UPDATE entries SET pure = pure - 1 WHERE sequence = 3", {"wrong_hash", "wrong_amounts", "wrong_balance"}),
        ('UPDATE entries SET details = \'{"charged":[],"reused":{}}\' WHERE sequence = 3', {"wrong_hash"}),
        ("UPDATE entries SET created = created + 1 WHERE sequence = 5", {"wrong_hash"}),
        ("UPDATE entries SET query_id = NULL, kind = 'adjust' WHERE sequence = 5", {"wrong_hash", "wrong_state"}),
        ("UPDATE entries SET hash = previous WHERE sequence = 5", {"wrong_hash", "broken_chain"}),
        ("DELETE FROM entries WHERE sequence = 5", {"sequence_gap", "broken_chain", "wrong_state"}),
        ("DELETE FROM entries WHERE sequence = 19", {"wrong_head", "wrong_limit"}),
        ("DELETE FROM entries", {"wrong_head", "wrong_balance", "wrong_limit", "wrong_state"}),
        ("UPDATE accounts SET spent_pure = 0", {"wrong_balance"}),
        ("UPDATE accounts SET unbounded_pure = 0", {"wrong_balance"}),
        ("UPDATE accounts SET spent_mu_squared = 0 WHERE parent IS NULL", {"wrong_balance", "wrong_tree"}),
        ("UPDATE accounts SET limit_epsilon = limit_epsilon * 2", {"wrong_limit"}),
        ("UPDATE accounts SET budget_rho = budget_rho * 2", {"wrong_limit"}),
        ("UPDATE accounts SET share_gaussian = 75, share_concentrated = 5", {"wrong_limit"}),
        ("UPDATE accounts SET hash = 'x' WHERE parent IS NULL", {"wrong_head"}),
        ("UPDATE accounts SET space = 'visits' WHERE parent IS NULL", {"wrong_tree"}),
        ("UPDATE ledger_meta SET sequence = 18", {"wrong_head"}),
        ("UPDATE ledger_meta SET hash = 'x'", {"wrong_head"}),
        (
            "UPDATE queries SET state = 'failed_void', answer = NULL WHERE state = 'settled'",
            {"wrong_state", "uncharged_release"},
        ),
        ("UPDATE queries SET state = 'reserved', finished = NULL WHERE state = 'failed_void'", {"wrong_state"}),
        ("UPDATE releases SET core_key = 'x'", {"uncharged_release"}),
    ],
)
@pytest.mark.sparse(4)
def test_finds(used: Ledger, url: str, statement: str, codes: set[str]) -> None:
    """An edit by hand is found, under the codes that say what it touched."""
    tamper(url, statement)
    found = {finding.code for finding in used.audit().findings}
    assert codes <= found


def test_finds_two_edits_that_balance(used: Ledger, url: str) -> None:
    """Taking from the entry and from the cache alike does not help: the hash and the events remain."""
    tamper(
        url,
        "UPDATE entries SET pure = pure - 1000 WHERE sequence IN (3, 4)",
        "UPDATE accounts SET spent_pure = spent_pure - 1000",
    )
    codes = {finding.code for finding in used.audit().findings}
    assert {"wrong_hash", "wrong_amounts"} <= codes
    assert "wrong_balance" not in codes
