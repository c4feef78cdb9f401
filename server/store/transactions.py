"""One transaction on the registry's database, with its act in the ledger's chain (accountant/acts.py)."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from sqlalchemy import Connection, Row, Select, Table, or_, select

from accountant.acts import append_act, lock_head, raise_mark, row_hashes
from accountant.connection import open_engine
from accountant.entry import to_micros
from accountant.request import ACTING
from privacy.values import Json

__all__ = ["Transactions", "iso"]


_ACT = "noisegate.act"
"""Under this name a connection remembers that its transaction has an act."""


class Transactions:
    """The database of the registry and its clock. `high_water` is the ledger's mark, which learns of each act."""

    def __init__(self, url: str, *, clock: Callable[[], datetime.datetime], high_water: Path | None = None) -> None:
        self._engine = open_engine(url, pool_size=4)
        self._clock = clock
        self._high_water = high_water

    def close(self) -> None:
        """Closes every connection."""
        self._engine.dispose()

    def _writing(self) -> Connection:
        connection = self._engine.connect().execution_options(immediate=True)
        connection.info.pop(_ACT, None)
        return connection

    def _acting(self) -> Connection:
        """As `_writing`, for what ends with an act: the ledger's head is locked before any other row, as there."""
        connection = self._writing()
        lock_head(connection)
        return connection

    def _log(
        self,
        connection: Connection,
        *,
        actor: str,
        action: str,
        subject: str,
        details: Mapping[str, Json] | None = None,
        rows: Mapping[str, Sequence[str | int]] | None = None,
    ) -> None:
        """Writes an act, after what it tells of; `rows` are the rows of watched tables that it changed, by their keys.

        An act of a service on the actor's behalf names the service. From here to the end of the transaction nobody else
        writes to the ledger.
        """
        told = dict(details or {})
        if (service := ACTING.get()) is not None:
            told["service"] = service
        if rows:
            told["rows"] = {table: self._hashed(connection, table, keys) for table, keys in rows.items()}
        clock = to_micros(self._clock())
        append_act(connection, actor=actor, action=action, subject=subject, details=told, clock=clock)
        connection.info[_ACT] = True

    def _hashed(self, connection: Connection, table: str, keys: Sequence[str | int]) -> dict[str, Json]:
        there = dict(row_hashes(connection, table, keys))
        return {str(key): there.get(str(key)) for key in keys}

    def _commit(self, connection: Connection) -> None:
        """Commits; after an act the high-water mark learns the ledger's new head."""
        connection.commit()
        if connection.info.pop(_ACT, False) and self._high_water is not None:
            raise_mark(connection, self._high_water)

    def _page(
        self, query: Select[tuple[object, ...]], table: Table, *, after: str | None, count: int
    ) -> list[Row[tuple[object, ...]]]:
        """Rows of a query by when they were created in `table`, the newest first; `after` is the last one before."""
        made = table.c.created
        query = query.order_by(made.desc(), table.c.id.desc()).limit(count)
        with self._engine.connect() as connection:
            if after is not None:
                last = connection.execute(select(made).where(table.c.id == after)).scalar_one_or_none() or ""
                query = query.where(or_(made < last, (made == last) & (table.c.id < after)))
            return list(connection.execute(query).all())

    def _now(self) -> str:
        return iso(self._clock())


def iso(moment: datetime.datetime) -> str:
    """A moment as it is stored and shown."""
    assert moment.tzinfo is not None
    return moment.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
