"""The shell over other numbers than the released ones: chosen by what needs an interval, or drawn anew.

A scenario gives every released column other values. All scenarios of an answer run in one call of the shell, as
replicates of the released tables; so do the draws of a simulation. Limits are in rows of all replicates together.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from engines.shell import ShellColumn, ShellEngine, ShellTable
from mechanisms.interval import Floats
from mechanisms.released_table import ReleasedTable
from mechanisms.replicates import approximate_replicates, simulate
from privacy.policy import ColumnType
from privacy.refusal import ExecutionFailed
from privacy.release import ColumnKind
from server.derived.cells import Identity, finite_number
from sql_rewrite.plan import Shell
from sql_rewrite.released import REPLICATE, ROW

__all__ = ["Scenario", "Scenarios", "result_of"]

_ROWS_MAX = 40_000
"""Rows of all replicates together, for bounds and for simulations: some hundredths of a second each."""

_ANSWER_ROWS_MAX = 200_000
_DRAWS_MIN = 40
_DRAWS_USUAL = 400


@dataclass(slots=True)
class Scenario:
    """Other numbers for the released columns: by (core, column), for every row. `results` are the answer's rows."""

    numbers: dict[tuple[str, str], Floats]
    results: dict[Identity, Sequence[object]] = field(default_factory=dict)


class Scenarios:
    """The scenarios of one answer. Asked for first, run together once, then read."""

    def __init__(
        self,
        plan: Shell,
        released: Sequence[ReleasedTable],
        *,
        shell: ShellEngine,
        timeout_seconds: float,
        owner: str,
        public: Sequence[ShellTable] = (),
    ) -> None:
        """`public` are the public tables that the shell reads: the same in every scenario."""
        self._plan = plan
        self._public = public
        self._released = released
        self._shell = shell
        self._timeout = timeout_seconds
        self._owner = owner
        self._scenarios: dict[Hashable, Scenario] = {}
        self._columns = {
            (table.name, column.name): (table.rows, column)
            for table in released
            for column in table.columns
            if column.role == ColumnKind.RELEASED
        }
        self.total = sum(table.rows for table in released)
        """Rows of the released tables together: what one scenario takes of the limit."""
        self.drawn = 0
        """How many draws the simulation has; 0 before it, and where it had no room or failed."""
        self.draws: Mapping[tuple[Identity, int], list[float]] = {}
        """Simulated values by row and column of the answer."""

    def released(self) -> dict[tuple[str, str], Floats]:
        """The released numbers themselves."""
        return {
            key: np.array([math.nan if v is None else float(v) for v in column.numbers])
            for key, (_, column) in self._columns.items()
        }

    def make(self, key: Hashable, numbers: Callable[[], dict[tuple[str, str], Floats]]) -> Scenario:
        """The scenario of that key; its numbers are made when it is asked for first."""
        if key not in self._scenarios:
            self._scenarios[key] = Scenario(numbers())
        return self._scenarios[key]

    def room_for(self, scenarios: int) -> bool:
        """Whether that many more scenarios stay within the limit of rows."""
        return self.fits(len(self._scenarios) + scenarios)

    def fits(self, scenarios: int) -> bool:
        """Whether that many scenarios in all stay within the limit of rows."""
        return scenarios * self.total <= _ROWS_MAX

    def zero(self) -> Scenario:
        """All numbers zero."""
        return self.make(("zero",), self._zeros)

    def unit(self, column: tuple[str, str], row: int | None) -> Scenario:
        """All numbers zero, and one of them (in one row, or in all) one."""

        def numbers() -> dict[tuple[str, str], Floats]:
            result = self._zeros()
            result[column][slice(None) if row is None else row] = 1.0
            return result

        return self.make(("unit", column, row), numbers)

    def _zeros(self) -> dict[tuple[str, str], Floats]:
        return {key: np.zeros(rows) for key, (rows, _) in self._columns.items()}

    def run(self) -> None:
        """The shell over all scenarios at once. Where it fails they stay without results."""
        scenarios = list(self._scenarios.values())
        if not scenarios or not self.total:
            return
        matrices = {key: np.stack([scenario.numbers[key] for scenario in scenarios]) for key in self._columns}
        width = len(self._plan.outputs)
        for row in self._replicated(matrices, len(scenarios)):
            number = row[width]
            assert isinstance(number, int)
            scenarios[number].results[tuple(row[width + 1 :])] = row

    def simulate(self, alpha: float) -> None:
        """The shell over released sums with fresh noise, as often as intervals that miss with `alpha` need."""
        if not self.total:
            return
        wanted = max(_DRAWS_USUAL, math.ceil(4 / alpha))
        draws = min(wanted, _ROWS_MAX // self.total)
        matrices: dict[tuple[str, str], Floats] = {}
        for table in self._released:
            if table.sums:
                matrices |= {(table.name, name): matrix for name, matrix in simulate(table.sums, draws).items()}
            else:
                matrices |= {
                    (table.name, column.name): approximate_replicates(column, draws)
                    for column in table.columns
                    if column.role == ColumnKind.RELEASED
                }
        draws = min((len(matrices[key]) if key in matrices else 0 for key in self._columns), default=0)
        if draws < _DRAWS_MIN:
            return
        rows = self._replicated({key: matrix[:draws] for key, matrix in matrices.items()}, draws)
        self.drawn = draws
        width = len(self._plan.outputs)
        found: dict[tuple[Identity, int], list[float]] = defaultdict(list)
        derived = [place for place, output in enumerate(self._plan.outputs) if output.kind != ColumnKind.KEY]
        for row in rows:
            identity = tuple(row[width + 1 :])
            for place in derived:
                value = finite_number(row[place])
                if value is not None:
                    found[identity, place].append(value)
        self.draws = found

    def _replicated(self, matrices: Mapping[tuple[str, str], Floats], count: int) -> Sequence[Sequence[object]]:
        """Rows of the simulated form over `count` versions of the released numbers; none when it fails."""
        assert self._plan.simulation is not None
        tables = []
        for table in self._released:
            columns = [
                ShellColumn(column.name, column.type, column.values * count)
                if column.role == ColumnKind.KEY
                else ShellColumn(
                    column.name, ColumnType.NUMBER, _finite_list(matrices[table.name, column.name].reshape(-1))
                )
                for column in table.columns
            ]
            columns.append(ShellColumn(ROW, ColumnType.INTEGER, tuple(range(table.rows)) * count))
            replicate = np.repeat(np.arange(count), table.rows)
            columns.append(ShellColumn(REPLICATE, ColumnType.INTEGER, replicate.tolist()))
            tables.append(ShellTable(table.name, tuple(columns)))
        try:
            return self._shell.run(
                [*tables, *self._public],
                self._plan.simulation.sql,
                timeout_seconds=self._timeout,
                owner=self._owner,
                rows_max=_ANSWER_ROWS_MAX,
            ).rows
        except ExecutionFailed:
            return ()


def result_of(scenario: Scenario | None, identity: Identity, place: int) -> float | None:
    """A number of the answer under a scenario; None where it has no such row, or no finite number in it."""
    row = None if scenario is None else scenario.results.get(identity)
    return None if row is None else finite_number(row[place])


def _finite_list(values: Floats) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values.tolist()]
