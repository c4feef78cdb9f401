"""One transaction on the registry's database, with its line in the log of acts."""

from __future__ import annotations

import datetime
from collections.abc import Callable

from sqlalchemy import Connection, Row, Select, Table, insert, or_, select

from accountant.connection import open_engine
from server.store.tables import registry_events

__all__ = ["Transactions", "iso"]


class Transactions:
    """The database of the registry and its clock."""

    def __init__(self, url: str, *, clock: Callable[[], datetime.datetime]) -> None:
        self._engine = open_engine(url, pool_size=4)
        self._clock = clock

    def close(self) -> None:
        """Closes every connection."""
        self._engine.dispose()

    def _writing(self) -> Connection:
        return self._engine.connect().execution_options(immediate=True)

    def _log(self, connection: Connection, *, actor: str, action: str, subject: str) -> None:
        values = {"at": self._now(), "actor": actor, "action": action, "subject": subject}
        connection.execute(insert(registry_events).values(**values))

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
