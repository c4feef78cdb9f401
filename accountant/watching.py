"""What an operator watches of a ledger: how long it is, and whether queries are open that nobody works on."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import func, select

from accountant.reads import Reads
from accountant.states import QueryStatus
from accountant.tables import ledger_meta, queries

__all__ = ["OpenQueries", "Watching"]


@dataclass(frozen=True, slots=True)
class OpenQueries:
    """Queries of all processes that are reserved; `lost` are those whose process is dead, which are failed soon."""

    open: int
    lost: int


class Watching(Reads):
    """What is watched. Errors: LedgerUnavailable."""

    @abstractmethod
    def gone(self, names: Collection[str]) -> frozenset[str]:
        """Which of these instances are not alive."""

    def length(self) -> int:
        """The number of the ledger's last entry or act."""
        with self._read() as connection:
            return int(connection.execute(select(ledger_meta.c.sequence)).scalar_one())

    def open_queries(self) -> OpenQueries:
        """Queries that are open now, whoever works on them."""
        chosen = (
            select(queries.c.instance, func.count())
            .where(queries.c.state == QueryStatus.RESERVED.value)
            .group_by(queries.c.instance)
        )
        with self._read() as connection:
            found = {str(instance): int(count) for instance, count in connection.execute(chosen)}
        gone = self.gone(found.keys()) if found else frozenset()
        return OpenQueries(sum(found.values()), sum(count for name, count in found.items() if name in gone))
