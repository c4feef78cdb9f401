"""What the lift may know of the rows of public tables: all rows of a small one, and how many agree in some columns.

Tables are read by a worker of their own, as outer queries get them (engines/public_table.py). What was found is kept:
it belongs to one snapshot, which never changes. Estimates are free, so what they can cause is bounded: a table that is
kept is never waited for, one that is read holds up only those who ask for the same one, and few are read at a time.
"""

from __future__ import annotations

import threading
import time
from array import array
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engines.public_table import public_table
from engines.shell import ShellTable
from engines.snapshot_findings import SnapshotRefused
from privacy.values import Cell

__all__ = ["SnapshotRows"]

_CELLS_MAX: Final = 1_000_000
"""Most cells of a table of which anything is known."""

_ROWS_WITH_VALUES: Final = 1_000
_CELLS_WITH_VALUES: Final = 100_000
"""A table of so many rows at most, or so many cells, stays with its values. Of larger ones it is kept which rows are
equal in each column: nobody asks for all of their rows."""

_CELLS_KEPT: Final = 4_000_000
"""Most cells of all tables of one snapshot that stay in memory, at four bytes each; what was used last stays."""

_VALUE_CELLS: Final = 16
"""Cells that one value counts as."""

_KNOWN_MAX: Final = 200
"""Most different lists of columns of one table of which it is kept how many rows agree in them."""

_READ_SECONDS: Final = 20.0
"""How long a table may take to be read."""

_AGAIN_SECONDS: Final = 60.0
"""How long a table that could not be read is not tried again."""

_READERS: Final = threading.BoundedSemaphore(2)
"""How many tables are read at a time in this process."""


class SnapshotRows:
    """The rows of the public tables of a snapshot. Safe to use from many threads."""

    def __init__(self, snapshot: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._snapshot = snapshot
        self._clock = clock
        self._kept: OrderedDict[str, _Table] = OrderedDict()
        self._sizes: dict[str, int | None] = {}
        self._failed: dict[str, float] = {}
        self._agreeing: dict[tuple[str, tuple[str, ...]], int] = {}
        self._reading: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()  # never held while a table is read, or its rows are counted

    def rows(self, table: str, columns: Sequence[str], most: int) -> tuple[tuple[Cell, ...], ...] | None:
        """These columns of all rows of a table; None where there are more than that, or none can be read."""
        with self._lock:
            known = self._sizes.get(table, 0)
        if known is None or known > most:
            return None
        found = self._table(table)
        if found is None or found.rows > most or not found.values:
            return None
        return tuple(zip(*(found.values[name] for name in columns), strict=True))

    def agreeing(self, table: str, columns: Sequence[str]) -> int | None:
        """The most rows of a table that agree in all these columns, NULL apart; None where they cannot be read."""
        named = tuple(sorted(set(columns)))
        with self._lock:
            if (table, named) in self._agreeing:
                return self._agreeing[table, named]
        found = self._table(table)
        if found is None:
            return None
        most = found.agreeing(named)
        with self._lock:
            while sum(name == table for name, _ in self._agreeing) >= _KNOWN_MAX:
                del self._agreeing[next(key for key in self._agreeing if key[0] == table)]
            self._agreeing[table, named] = most
        return most

    def _table(self, table: str) -> _Table | None:
        """The table; None where it is too large or cannot be read. Threads that want the same one wait for it."""
        with self._lock:
            reading = self._reading.setdefault(table, threading.Lock())
            if (kept := self._known(table)) is not None:
                return kept
        with reading:
            with self._lock:
                kept = self._known(table)
                if kept is not None or not self._may_read(table):
                    return kept
            found, failed = self._read(table)
            with self._lock:
                if found is not None:
                    self._keep(table, found)
                elif failed:
                    self._failed[table] = self._clock()
                else:
                    self._sizes[table] = None
        return found

    def _known(self, table: str) -> _Table | None:
        """The table as it is kept, which was used now."""
        if table in self._kept:
            self._kept.move_to_end(table)
        return self._kept.get(table)

    def _may_read(self, table: str) -> bool:
        """Whether the table is worth reading: neither known to be too large, nor tried in vain a moment ago."""
        failed = self._failed.get(table)
        return self._sizes.get(table, 0) is not None and (failed is None or self._clock() - failed >= _AGAIN_SECONDS)

    def _read(self, table: str) -> tuple[_Table | None, bool]:
        """The table, or None and whether it may be read another time: else it is too large, or not public."""
        with _READERS:
            try:
                found = public_table(self._snapshot, table, cells_max=_CELLS_MAX, timeout_seconds=_READ_SECONDS)
            except LookupError:
                return None, False
            except SnapshotRefused as refused:
                return None, any(finding.code != "too_many_rows" for finding in refused.findings)
            return _Table.of(found), False

    def _keep(self, table: str, found: _Table) -> None:
        """Keeps a table that was read, and forgets those that were used longest ago, down to the limit."""
        self._failed.pop(table, None)
        self._sizes[table] = found.rows
        self._kept[table] = found
        while len(self._kept) > 1 and sum(kept.cells for kept in self._kept.values()) > _CELLS_KEPT:
            self._kept.popitem(last=False)


@dataclass(frozen=True, slots=True)
class _Table:
    """A table as it is kept: of each column numbers that are equal where values are, 0 for NULL; or its values too."""

    rows: int
    numbers: dict[str, array[int]]
    values: dict[str, Sequence[Cell]]

    @staticmethod
    def of(found: ShellTable) -> _Table:
        """A table that was read, smaller."""
        rows = len(found.columns[0].values)
        numbers = {column.name: _numbered(column.values) for column in found.columns}
        small = rows <= _ROWS_WITH_VALUES or rows * len(numbers) <= _CELLS_WITH_VALUES
        return _Table(rows, numbers, {column.name: column.values for column in found.columns if small})

    @property
    def cells(self) -> int:
        """How much room it takes."""
        return self.rows * (len(self.numbers) + _VALUE_CELLS * len(self.values))

    def agreeing(self, columns: Sequence[str]) -> int:
        """The most rows that agree in all these columns, NULL apart."""
        groups = Counter(zip(*(self.numbers[name] for name in columns), strict=True))
        return max((number for group, number in groups.items() if 0 not in group), default=0)


def _numbered(values: Iterable[Cell]) -> array[int]:
    """A number for each value, equal where the engine's `=` says so: NaN equals itself there, not here."""
    places: dict[object, int] = {}
    numbers = array("I")
    for value in values:
        key: object = "NaN" if isinstance(value, float) and value != value else value
        numbers.append(0 if key is None else places.setdefault(key, len(places) + 1))
    return numbers
