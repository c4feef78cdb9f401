"""What goes with a step into other tables, and accounts that are frozen and pay again."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import pytest
from sqlalchemy import Connection, insert, select

from accountant.errors import AccountChanged, AccountFrozen
from accountant.ledger import Ledger
from server.store.tables import told as told_table
from tests.accountant.making import analyst, limit, request, root, spend


def note(connection: Connection, subject: str = "test") -> None:
    """Writes a row of the registry."""
    row = {"subject": subject, "occasion": secrets.token_hex(8), "at": "now"}
    connection.execute(insert(told_table).values(**row))


def noted(ledger: Ledger) -> list[str]:
    """The rows that were written."""
    with ledger._read() as connection:
        return list(connection.execute(select(told_table.c.subject)).scalars())


def test_a_step_and_what_goes_with_it_are_there_together_or_not_at_all(ledger: Ledger) -> None:
    """Written with the limit; not where the step is refused, and no step where it refuses, half done."""
    top = root(ledger)

    def refused(connection: Connection) -> None:
        note(connection, "half")
        raise ValueError("no")

    seen = top.revision
    with pytest.raises(ValueError, match="no"):
        ledger.change_limit(top.id, limit(7), actor="admin", reason="more", beside=refused)
    with pytest.raises(AccountChanged):
        ledger.change_limit(top.id, limit(7), actor="admin", reason="more", expected=seen + 1, beside=note)
    assert (ledger.account(top.id).limit, noted(ledger)) == (top.limit, [])
    ledger.change_limit(top.id, limit(7), actor="admin", reason="more", request="br_1", beside=note)
    assert (ledger.account(top.id).limit, noted(ledger)) == (limit(7), ["test"])
    assert '"request":"br_1"' in ledger.entries(top.id)[-1].details
    assert ledger.audit().ok


def test_somebody_is_stopped_and_goes_on(ledger: Ledger) -> None:
    """Every account is frozen by an entry with actor and reason, in one step; those of others are not; and back."""
    top = root(ledger)
    one, other = analyst(ledger, top), analyst(ledger, top, principal="other")
    below = analyst(ledger, other, principal="analyst")
    running = ledger.reserve(request(one))
    told: list[Sequence[str]] = []

    def beside(accounts: Sequence[str], connection: Connection) -> None:
        told.append(accounts)
        note(connection)

    frozen = ledger.freeze("analyst", actor="admin", reason="a leaked key", beside=beside)
    assert set(frozen) == {one.id, below.id} == set(told[-1])
    with pytest.raises(AccountFrozen):
        ledger.reserve(request(one))
    spend(ledger, request(other, principal="other"))
    assert '"actor":"admin","reason":"a leaked key"' in ledger.entries(one.id)[-1].details
    ledger.fail(running.query_id)
    assert ledger.freeze("analyst", actor="admin", reason="again", beside=beside) == ()
    assert ledger.audit().ok
    again = analyst(ledger, top)
    back = ledger.unfreeze("analyst", frozen, actor="admin", reason="a new key", beside=beside)
    assert back == (below.id,), "another account took the place of the first one"
    assert (ledger.account(one.id).frozen, ledger.account(again.id).frozen) == (True, False)
    spend(ledger, request(below))
    assert len(noted(ledger)) == 3
    assert ledger.audit().ok


def test_only_what_a_stop_froze_pays_again(ledger: Ledger) -> None:
    """An account that was frozen before is not named, and stays frozen; nor is one of somebody else's thawed."""
    top = root(ledger)
    one, other = analyst(ledger, top), analyst(ledger, top, principal="other")
    below = analyst(ledger, other, principal="analyst")
    act = {"actor": "admin", "reason": "a stop", "beside": lambda *_: None}
    ledger.freeze("other", **act)
    with pytest.raises(AccountFrozen):
        analyst(ledger, below, principal="third")
    assert set(ledger.freeze("analyst", **act)) == {one.id, below.id}
    assert ledger.unfreeze("analyst", [one.id, other.id], **act) == (one.id,)
    assert [ledger.account(account.id).frozen for account in (one, below, other)] == [False, True, True]
    assert ledger.audit().ok
