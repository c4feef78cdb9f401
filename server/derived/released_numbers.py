"""The released numbers of an answer, with what is known of their noise: ends of intervals, and the rows shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechanisms.families import MEASUREMENTS
from mechanisms.interval import Floats
from mechanisms.noisy_sums import NoisySums
from mechanisms.released_table import ReleasedTable
from privacy.release import ColumnKind, ReleasedColumn
from server.derived.at_once import cells_at_once
from server.derived.cells import Identity, finite_number
from server.derived.scenarios import Scenario, Scenarios
from sql_rewrite.plan import Shell, ShellOutput

__all__ = ["Ends", "Numbers", "Source", "branch_of", "row_of"]

Ends = tuple[npt.NDArray[np.object_], npt.NDArray[np.object_]]
"""Lower and upper ends, one for each row; None where an end is not known."""


@dataclass(slots=True)
class Source:
    """A released column with what is known of its noise."""

    table: ReleasedTable
    column: ReleasedColumn
    sums: NoisySums | None

    @property
    def conditional(self) -> bool:
        """Whether the column is the very count that its groups were selected by."""
        return self.sums is not None and self.sums.selects


class Numbers:
    """The released numbers of one answer. Its intervals are each to miss with at most `alpha`."""

    def __init__(
        self,
        plan: Shell,
        released: Sequence[ReleasedTable],
        rows: Sequence[Sequence[object]],
        alpha: float,
        scenarios: Scenarios,
    ) -> None:
        self.plan = plan
        self.alpha = alpha
        self.scenarios = scenarios
        self.sources: dict[tuple[str, str], Source] = {}
        """By core and column."""
        self.selected: set[str] = set()
        """The cores of which some groups are not shown."""
        for table in released:
            if table.cells is not None or any(MEASUREMENTS[note.mechanism].selects for note in table.notes):
                self.selected.add(table.name)
            for column in table.columns:
                if column.role == ColumnKind.RELEASED:
                    self.sources[table.name, column.name] = Source(table, column, table.sums_of(column.name))
        self.at_once = cells_at_once(plan, (table.rows if table.cells is None else table.cells for table in released))
        """How many intervals hold at once."""
        self.simulates = False
        """Whether some column gets its errors from a simulation."""
        self._rows = rows
        self._ends: dict[tuple[str, str, float], Ends | None] = {}
        self._columns: dict[int, dict[Identity, int | float | None]] = {}

    def shared(self, alpha: float) -> float:
        """The alpha of one row: where noisy numbers chose the rows, intervals hold for all that might have been."""
        return alpha / self.at_once

    def ends_of(self, core: str, name: str, alpha: float) -> Ends | None:
        """Both ends of every cell of a released column, each interval missing with at most alpha; None if unknown."""
        if (core, name, alpha) not in self._ends:
            source = self.sources[core, name]
            if alpha == self.alpha:
                self._ends[core, name, alpha] = (_object(source.column.lows), _object(source.column.highs))
            else:
                ends = source.table.ends(name, alpha)
                self._ends[core, name, alpha] = None if ends is None else (_object(ends[0]), _object(ends[1]))
        return self._ends[core, name, alpha]

    def at_ends(self, alpha: float, side: int) -> Scenario | None:
        """Every number at one end of its interval; None when there are too many."""
        if not self.scenarios.fits(2):
            return None

        def numbers() -> dict[tuple[str, str], Floats]:
            result = self.scenarios.released()
            for core, name in result:
                ends = self.ends_of(core, name, alpha)
                if ends is not None:
                    result[core, name] = np.array(
                        [math.nan if end is None else float(end) for end in ends[side]], dtype=np.float64
                    )
            return result

        return self.scenarios.make(("ends", alpha, side), numbers)

    def shown(self, place: int) -> dict[Identity, int | float | None]:
        """The values of a column by row."""
        if place not in self._columns:
            width = len(self.plan.outputs)
            self._columns[place] = {tuple(row[width:]): finite_number(row[place]) for row in self._rows}
        return self._columns[place]


def row_of(identity: Identity, at: int) -> int | None:
    """The row of a released table that a cell is from; None where an outer join found none."""
    row = identity[at]
    assert row is None or isinstance(row, int)
    return row


def branch_of(output: ShellOutput, identity: Identity) -> tuple[ShellOutput | None, tuple[int, ...]]:
    """The output of the branch of UNION ALL that a row comes from, and the numbers of the branches.

    None for the output of a row that an outer join found in no branch.
    """
    path: list[int] = []
    while output.branches and output.branch is not None:
        number = row_of(identity, output.branch)
        if number is None:
            return None, tuple(path)
        path.append(number)
        output = output.branches[number]
    return output, tuple(path)


def _object(values: Sequence[float | int | None]) -> npt.NDArray[np.object_]:
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result
