"""What the lift may know of the rows of public tables: all rows of a small one, and how many agree in some columns.

Tables are read by a worker of their own, as outer queries get them (engines/public_table.py). What was found is kept:
it belongs to one snapshot, which never changes.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from engines.public_table import public_table
from engines.shell import ShellTable
from engines.snapshot_findings import SnapshotRefused
from privacy.values import Cell

__all__ = ["SnapshotRows"]

_CELLS_MAX: Final = 1_000_000
"""Most cells of a table of which anything is known."""

_KEPT_CELLS: Final = 20_000
"""Most cells of a table that stays in memory once it was read."""

_KNOWN_MAX: Final = 200
"""Most different lists of columns of one table of which it is kept how many rows agree in them."""


class SnapshotRows:
    """The rows of the public tables of a snapshot. Safe to use from many threads."""

    def __init__(self, snapshot: Path) -> None:
        self._snapshot = snapshot
        self._small: dict[str, ShellTable] = {}
        self._sizes: dict[str, int | None] = {}
        self._agreeing: dict[tuple[str, tuple[str, ...]], int] = {}
        self._lock = threading.Lock()

    def rows(self, table: str, columns: Sequence[str], most: int) -> tuple[tuple[Cell, ...], ...] | None:
        """These columns of all rows of a table; None where there are more than that, or none can be read."""
        with self._lock:
            known = self._sizes.get(table, 0)
            if known is None or known > most:
                return None
            found = self._read(table)
            if found is None or len(found.columns[0].values) > most:
                return None
            values = {column.name: column.values for column in found.columns}
            return tuple(zip(*(values[name] for name in columns), strict=True))

    def agreeing(self, table: str, columns: Sequence[str]) -> int | None:
        """The most rows of a table that agree in all these columns, NULL apart; None where they cannot be read."""
        named = tuple(sorted(set(columns)))
        with self._lock:
            if (table, named) in self._agreeing:
                return self._agreeing[table, named]
            found = None if self._sizes.get(table, 0) is None else self._read(table)
            if found is None:
                return None
            values = {column.name: column.values for column in found.columns}
            groups = Counter(zip(*(values[name] for name in named), strict=True))
            most = max((number for group, number in groups.items() if None not in group), default=0)
            while sum(name == table for name, _ in self._agreeing) >= _KNOWN_MAX:
                del self._agreeing[next(key for key in self._agreeing if key[0] == table)]
            self._agreeing[table, named] = most
            return most

    def _read(self, table: str) -> ShellTable | None:
        """The table, which is kept where it is small; None where it is too large or cannot be read."""
        if table in self._small:
            return self._small[table]
        try:
            found = public_table(self._snapshot, table, cells_max=_CELLS_MAX)
        except LookupError:
            return None
        except SnapshotRefused as refused:
            if all(finding.code == "too_many_rows" for finding in refused.findings):
                self._sizes[table] = None
            return None
        rows = len(found.columns[0].values)
        self._sizes[table] = rows
        if rows * len(found.columns) <= _KEPT_CELLS:
            self._small[table] = found
        return found
