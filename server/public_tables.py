"""Public tables in memory, as outer queries read them: each version's once, within a limit on all of them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Protocol

from engines.public_table import public_table
from engines.shell import ShellColumn, ShellTable
from engines.snapshot_findings import SnapshotRefused
from privacy.policy import ColumnType, Dataset, Table
from privacy.refusal import ExecutionFailed, Finding, Refused
from sql_rewrite.plan import Plan, PublicRelation
from sql_rewrite.released import ROW

__all__ = ["CELLS_MAX", "Drawn", "NothingDrawn", "PublicTables", "public_shapes"]

CELLS_MAX: Final = 1_000_000
"""Most cells, rows times columns, of the public tables that one query reads."""

_KEPT_CELLS_MAX: Final = 2 * CELLS_MAX


class Drawn(Protocol):
    """Where synthetic tables are found."""

    def beside(self, dataset: Dataset, principal: str) -> Dataset:
        """The dataset with the synthetic tables that the principal may read."""

    def rows_of(self, table: Table) -> ShellTable:
        """Every row of one. Errors: ExecutionFailed(started=False) when it is not there any more."""


class NothingDrawn:
    """No synthetic tables."""

    def beside(self, dataset: Dataset, principal: str) -> Dataset:
        """The dataset as it is."""
        return dataset

    def rows_of(self, table: Table) -> ShellTable:
        """Errors: ExecutionFailed, always."""
        raise ExecutionFailed(started=False)


class PublicTables:
    """Reads public tables of snapshots, and keeps those read last. Safe to use from many threads."""

    def __init__(self, snapshot: Callable[[Dataset], Path], drawn: Callable[[Table], ShellTable]) -> None:
        """`snapshot` finds the file of a dataset's rows, `drawn` the rows of a synthetic table, which is in none."""
        self._snapshot = snapshot
        self._drawn = drawn
        self._kept: OrderedDict[tuple[Path, str], ShellTable] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, plan: Plan) -> tuple[ShellTable, ...]:
        """The public tables that a plan reads, under the names that its shell uses.

        Errors: Refused (too_large); ExecutionFailed(started=False) when they cannot be read.
        """
        found = tuple(self._named(plan.dataset, relation) for relation in plan.public)
        if sum(map(_cells, found)) > CELLS_MAX:
            raise Refused([_too_large("the public tables of the query are refused")])
        return found

    def _named(self, dataset: Dataset, relation: PublicRelation) -> ShellTable:
        path, name = self._snapshot(dataset), relation.table.drawn or relation.table.name
        with self._lock:
            known = self._kept.get((path, name))
            if known is None:
                try:
                    if relation.table.drawn is None:
                        known = public_table(path, name, cells_max=CELLS_MAX)
                    else:
                        known = self._drawn(relation.table)
                except SnapshotRefused as refused:
                    if all(finding.code == "too_many_rows" for finding in refused.findings):
                        raise Refused([_too_large(f'table "{name}" is refused')]) from None
                    raise ExecutionFailed(started=False) from None
                except LookupError:
                    raise ExecutionFailed(started=False) from None
                self._kept[path, name] = known
            self._kept.move_to_end((path, name))
            while len(self._kept) > 1 and sum(map(_cells, self._kept.values())) > _KEPT_CELLS_MAX:
                self._kept.popitem(last=False)
        rows = ShellColumn(ROW, ColumnType.INTEGER, range(len(known.columns[0].values)))
        return ShellTable(relation.name, (*known.columns, rows))


def public_shapes(tables: Sequence[ShellTable]) -> list[ShellTable]:
    """The same tables without rows, for what is checked before it runs."""
    return [ShellTable(table.name, tuple(replace(column, values=()) for column in table.columns)) for table in tables]


def _cells(table: ShellTable) -> int:
    return len(table.columns) * len(table.columns[0].values)


def _too_large(what: str) -> Finding:
    return Finding(
        code="too_large",
        what=what,
        why=f"Public tables are read whole, and have more than {CELLS_MAX:,} values, or 64 MiB of text.",
        instead=("ask for statistics of people, joined to the table: its rows are then read where they are",),
    )
