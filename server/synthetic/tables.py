"""How questions find synthetic tables: public tables beside those of the data, for those who may read them.

A table belongs to the version of the data that it was made of and stays as it is when there is another one. Its owner
reads it, and where the dataset shares releases for free everybody who may ask; otherwise nobody else learns of it, not
even by its name.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from accountant.ledger import Ledger
from accountant.states import QueryStatus
from engines.shell import ShellTable
from privacy.policy import Column, ColumnType, Dataset, Sharing, Table
from privacy.refusal import ExecutionFailed
from server.store.registry import Registry
from server.store.resources import SyntheticRow
from server.synthetic.content import unpacked

__all__ = ["DrawnTables"]

_LOOK_SECONDS: Final = 1.0
"""How old what is known of the tables may be: another process may make or archive one."""

_BESIDE_KEPT: Final = 256


class DrawnTables:
    """The synthetic tables that are there. Safe to use from many threads."""

    def __init__(self, registry: Registry, ledger: Ledger, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._registry = registry
        self._ledger = ledger
        self._clock = clock
        self._lock = threading.Lock()
        self._looked: float | None = None
        self._rows: tuple[SyntheticRow, ...] = ()
        self._settled: set[str] = set()
        self._beside: dict[tuple[int, tuple[str, ...]], tuple[Dataset, Dataset]] = {}

    def forget(self) -> None:
        """Looks again at the next question: a table was made or archived here."""
        with self._lock:
            self._looked = None

    def made(self, row: SyntheticRow) -> bool:
        """Whether a table is there: it has rows, and the ledger has its charge as settled."""
        if row.report is None or row.closed is not None:
            return False
        if row.id not in self._settled:
            record = self._ledger.query(row.id)
            if record is None or record.state is not QueryStatus.SETTLED:
                return False
            self._settled.add(row.id)
        return True

    def _there(self) -> tuple[SyntheticRow, ...]:
        now = self._clock()
        with self._lock:
            if self._looked is not None and now - self._looked < _LOOK_SECONDS:
                return self._rows
        found = tuple(row for row in self._registry.synthetic_filled() if self.made(row))
        with self._lock:
            self._rows, self._looked = found, now
        return found

    def readable(self, row: SyntheticRow, dataset: Dataset, principal: str) -> bool:
        """Whether a principal who may ask the dataset may read a table of it."""
        if row.dataset != dataset.name:
            return False
        return row.principal == principal or dataset.limits.releases_shared is Sharing.FREE

    def beside(self, dataset: Dataset, principal: str) -> Dataset:
        """The dataset with the synthetic tables that the principal may read; a name that the data have is theirs.

        Of two tables of one name it is the principal's own, or the older one.
        """
        rows = [row for row in self._there() if self.readable(row, dataset, principal)]
        if not rows:
            return dataset
        rows.sort(key=lambda row: row.principal != principal)
        taken = {table.name.lower() for table in dataset.tables}
        chosen = []
        for row in rows:
            if row.name.lower() not in taken:
                taken.add(row.name.lower())
                chosen.append(row)
        key = (id(dataset), tuple(row.id for row in chosen))
        with self._lock:
            known = self._beside.get(key)
        if known is None:
            # The dataset is kept beside the result, so that its identity cannot become another one's.
            known = dataset, replace(dataset, tables=(*dataset.tables, *map(_declared, chosen)))
            with self._lock:
                self._beside[key] = known
                while len(self._beside) > _BESIDE_KEPT:
                    del self._beside[next(iter(self._beside))]
        return known[1]

    def rows_of(self, table: Table) -> ShellTable:
        """Every row of a synthetic table. Errors: ExecutionFailed(started=False) when it is not there any more."""
        assert table.drawn is not None
        content = self._registry.synthetic_content(table.drawn)
        if content is None:
            raise ExecutionFailed(started=False)
        return unpacked(table.name, content)


def _declared(row: SyntheticRow) -> Table:
    """A table as queries see it."""
    columns = json.loads(row.report or "{}")["columns"]
    return Table(
        name=row.name,
        columns=tuple(
            Column(column["name"], ColumnType(column["type"]), nullable=bool(column["nullable"])) for column in columns
        ),
        protected=False,
        description=f"Synthetic rows in place of those of {json.loads(row.terms)['table']}: {row.id}.",
        drawn=row.id,
    )
