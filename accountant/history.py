"""What an account had spent at an earlier moment: a search in its entries, whose moments never fall.

Entries of an account are numbered from 1 without gaps and are of the ledger's time, so the first one of a moment is
found by halving: some twenty reads of one row each, of a million entries. Then only what came after it is added up.
"""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from accountant.entry import Amounts
from accountant.errors import UnknownAccount
from accountant.reads import Reads
from accountant.statements import SPENT_COLUMNS
from accountant.tables import accounts, entries

__all__ = ["History"]


class History(Reads):
    """What can be read of an account's past. Errors: LedgerUnavailable, UnknownAccount."""

    def spent_before(self, account: str, moment: int) -> Amounts:
        """What the account had spent before a moment, in microseconds of the ledger's time, reservations included."""
        with self._read() as connection:
            count, spent = self._standing_of(connection, account)
            return spent.plus(self._added(connection, account, moment, count).reversed_sign())

    def moved(self, account: str, begin: int, end: int) -> Amounts:
        """What the entries from `begin` to before `end` changed."""
        with self._read() as connection:
            count, _ = self._standing_of(connection, account)
            later = self._added(connection, account, end, count)
            return self._added(connection, account, begin, count).plus(later.reversed_sign())

    @staticmethod
    def _standing_of(connection: Connection, account: str) -> tuple[int, Amounts]:
        chosen = select(accounts.c.entries, *(accounts.c[name] for name in SPENT_COLUMNS))
        row = connection.execute(chosen.where(accounts.c.id == account)).one_or_none()
        if row is None:
            raise UnknownAccount(account)
        return row[0], Amounts._make(row[1:])

    @staticmethod
    def _added(connection: Connection, account: str, moment: int, count: int) -> Amounts:
        """What those of the first `count` entries changed that are not before a moment."""
        mine = entries.c.account == account
        low, high = 1, count + 1
        while low < high:
            middle = (low + high) // 2
            at = select(entries.c.created).where(mine, entries.c.account_sequence == middle)
            if connection.execute(at).scalar_one() < moment:
                low = middle + 1
            else:
                high = middle
        if low > count:
            return Amounts()
        chosen = select(*(func.sum(entries.c[name]) for name in Amounts._fields)).where(
            mine, entries.c.account_sequence >= low, entries.c.account_sequence <= count
        )
        return Amounts(*(int(amount) for amount in connection.execute(chosen).one()))
