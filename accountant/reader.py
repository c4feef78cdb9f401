"""A ledger opened for reading alone: nothing is announced, recovered, marked or changed, also beside a server.

The database refuses to write on these connections (SQLite `query_only`, PostgreSQL `default_transaction_read_only`), so
an audit or an export cannot end the open queries of a process, as opening the ledger to write may.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.exc import DBAPIError

from accountant.acts import hash_at
from accountant.connection import open_engine, parse_url, sqlite_path
from accountant.errors import NotMigrated
from accountant.highwater import HighWater, Mark
from accountant.ledger import checked_identity
from accountant.reads import Reads
from accountant.tables import ledger_meta

__all__ = ["LedgerReader"]

_PAUSES = (0.05, 0.1, 0.15)


class LedgerReader(Reads):
    """One ledger, to be read. `high_water` is the file of its mark, which is only read.

    Errors: NotMigrated, SchemaTooNew; ValueError for an address that is none; LedgerUnavailable.
    """

    def __init__(self, url: str, *, high_water: Path | None = None) -> None:
        path = sqlite_path(parse_url(url))
        if path is not None and not path.exists():
            raise NotMigrated("there is no ledger at this address; run the migrations first")
        super().__init__(open_engine(url, read_only=True, pool_size=1))
        self._mark_path = high_water
        try:
            with self._read() as connection:
                self.identity, _ = checked_identity(connection)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Closes the database."""
        with contextlib.suppress(DBAPIError):
            self._engine.dispose()

    @property
    def behind(self) -> bool:
        """Whether the ledger is older than its high-water mark, or another one. Errors: LedgerUnavailable."""
        # A commit of another process between reading the ledger and reading its mark looks like a ledger that is
        # behind. A real one stays behind.
        for pause in (*_PAUSES, None):
            if not self._is_behind():
                return False
            if pause is not None:
                time.sleep(pause)
        return True

    def _is_behind(self) -> bool:
        if self._mark_path is None:
            return False
        try:
            mark = HighWater(self._mark_path).read()
        except ValueError:
            return True
        return mark is not None and (mark.ledger != self.identity or not self._has(mark))

    def _has(self, mark: Mark) -> bool:
        """Whether the entry of the mark is there; the mark was read first, so the ledger may be further."""
        with self._read() as connection:
            if mark.sequence == 0:
                return connection.execute(select(ledger_meta.c.id)).one_or_none() is not None
            return hash_at(connection, mark.sequence) == mark.hash
