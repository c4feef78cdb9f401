"""Error bars of what the shell computes from released numbers, or the reason why there is none.

Which one a cell gets follows from its trace (`sql_rewrite/trace.py`), in this order:

    reads rows of hidden groups beside its own     none: the groups that were not shown are part of the true value
    reads rows that noisy numbers chose            none
    moved by no noisy number                       its value
    goes up or down with one number of its row     mapped: the shell at the ends of that number's interval
    linear in linear numbers                       linear: the exact law of the weighted sum of their noise
    goes up or down with several, or a rank        bounds: the shell at the ends of intervals that hold all at once
    nonlinear over rows                            none: noise pushes such values to one side
    quotients, products, functions of a row        simulated: the shell over released sums with fresh noise

Everything here is post-processing of released numbers. Where noisy numbers also decide which rows are shown, intervals
are widened to hold for all rows that might have been.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, assert_never

import numpy as np

from engines.shell import ShellEngine
from mechanisms.estimates import linear_form
from mechanisms.families import MEASUREMENTS
from mechanisms.interval import Floats, gaussian_two_sided, two_sided_alpha
from mechanisms.linear import weighted_quantiles
from mechanisms.measurement import Law
from mechanisms.noisy_sums import NoisySums
from mechanisms.released_table import ReleasedTable
from privacy.release import ColumnKind, ReleasedColumn
from server.scenarios import Identity, Scenario, Scenarios, finite_number, result_of
from sql_rewrite.plan import Shell, ShellOutput
from sql_rewrite.trace import Read, Shape, Trace

__all__ = ["REASONS", "CellError", "Errors", "shell_errors", "spread"]

REASONS: Mapping[str, str] = {
    "groups_not_shown": "It is computed over groups of which only those above a threshold are shown; how many others "
    "there are, and their numbers, are not known.",
    "chosen_by_noise": "It is computed over rows that noisy numbers chose (a condition on them, LIMIT, or a rank), and "
    "others might have been the right ones.",
    "not_linear": "Noise moves it to one side (an absolute value, a square, a spread of noisy numbers), by how much is "
    "not known.",
    "no_row_identity": "Rows that are merged (DISTINCT, UNION, INTERSECT, EXCEPT, groups made of noisy numbers) cannot "
    "be followed through the noise.",
    "not_followed": "The query has a part through which noise is not followed (EXISTS, IN with a query, a RIGHT or "
    "FULL JOIN).",
    "not_a_number": "Only numbers have an interval.",
    "too_few_draws": "A simulation as long as an answer may take does not reach this confidence.",
    "too_many_cells": "There are more cells than a simulation may have.",
    "undefined": "Its value is undefined for some of the numbers that the noise leaves possible.",
    "given_shown": "It is computed from the count by which its group was selected, in a way through which that choice "
    "is not followed.",
    "stored_without_sums": "The stored release is of a version that did not keep what the interval needs.",
}
"""Why a cell has no interval: codes of `interval_reasons`."""


_CORNERS_MAX = 3
"""Most numbers whose intervals make a box with every corner asked for."""


@dataclass(frozen=True, slots=True)
class CellError:
    """Standard error and interval of a cell; `method` says where they come from, `reason` why there is no interval."""

    error: float | None = None
    low: float | int | None = None
    high: float | int | None = None
    method: str | None = None
    reason: str | None = None


Errors = list[list[CellError]]
"""Errors of an answer, row by row."""


def shell_errors(
    plan: Shell,
    released: Sequence[ReleasedTable],
    rows: Sequence[Sequence[Any]],
    *,
    shell: ShellEngine,
    confidence: Fraction,
    timeout_seconds: float,
    owner: str,
) -> Errors:
    """The errors of an answer's rows, each given with its hidden identity behind its values.

    Never fails: where the shell does not run on other numbers, the cells that need it have no interval.
    """
    return _Errors(plan, released, rows, two_sided_alpha(confidence), shell, timeout_seconds, owner).all()


@dataclass(slots=True)
class _Source:
    """A released column with what is known of its noise."""

    table: ReleasedTable
    column: ReleasedColumn
    sums: NoisySums | None

    @property
    def conditional(self) -> bool:
        """Whether the column is the very count that its groups were selected by."""
        return self.sums is not None and self.sums.selects


class _Errors:
    def __init__(
        self,
        plan: Shell,
        released: Sequence[ReleasedTable],
        rows: Sequence[Sequence[Any]],
        alpha: float,
        shell: ShellEngine,
        timeout_seconds: float,
        owner: str,
    ) -> None:
        self._plan = plan
        self._rows = rows
        self._alpha = alpha
        self._scenarios = Scenarios(plan, released, shell=shell, timeout_seconds=timeout_seconds, owner=owner)
        self._total = self._scenarios.total
        self._sources: dict[tuple[str, str], _Source] = {}
        self._selected: set[str] = set()
        for table in released:
            if table.chosen or any(MEASUREMENTS[note.mechanism].selects for note in table.notes):
                self._selected.add(table.name)
            for column in table.columns:
                if column.role == ColumnKind.RELEASED:
                    sums = next((one for one in table.sums or () if one.estimate(column.name)), None)
                    self._sources[table.name, column.name] = _Source(table, column, sums)
        self._ends: dict[tuple[str, str, float], tuple[Floats, Floats] | None] = {}
        self._columns: dict[int, dict[Identity, Any]] = {}

    def all(self) -> Errors:
        """The errors of all rows."""
        width = len(self._plan.outputs)
        identities = [tuple(row[width:]) for row in self._rows]
        # By column and branch of a UNION ALL: how its cells get their errors.
        ways: dict[tuple[int, tuple[Any, ...]], Callable[[int, Identity], CellError]] = {}
        later: list[tuple[int, int, Callable[[int, Identity], CellError]]] = []
        result = [[CellError()] * width for _ in self._rows]
        simulated = False
        for place, output in enumerate(self._plan.outputs):
            for number, identity in enumerate(identities):
                branch, path = _branch(output, identity)
                if branch.kind == ColumnKind.KEY:
                    continue
                if (place, path) not in ways:
                    ways[place, path] = self._way(branch, place)
                    simulated = simulated or ways[place, path] in (self._simulated, self._simulated_sum)
                later.append((number, place, ways[place, path]))
        self._scenarios.run()
        if simulated:
            self._scenarios.simulate(self._alpha)
        for number, place, way in later:
            value = self._rows[number][place]
            branch, _ = _branch(self._plan.outputs[place], identities[number])
            result[number][place] = self._checked(branch, value, way, place, identities[number])
        return result

    def _checked(
        self,
        output: ShellOutput,
        value: Any,
        way: Callable[[int, Identity], CellError],
        place: int,
        identity: Identity,
    ) -> CellError:
        """The error of one cell, with its value inside the interval."""
        if output.kind == ColumnKind.RELEASED and (output.identity is None or identity[output.identity] is None):
            return way(place, identity) if output.identity is None else CellError()
        if output.kind == ColumnKind.DERIVED:
            # A row that an outer join filled up: the group may be there and not shown.
            missing = {
                core for core, _, at in output.trace.reads if at is not None and identity and identity[at] is None
            }
            if missing & self._selected:
                return CellError(reason="groups_not_shown")
            if isinstance(value, float) and not math.isfinite(value):
                return CellError(reason="undefined")
            if value is not None and finite_number(value) is None and output.trace.shape is not Shape.CONSTANT:
                return CellError(reason="not_a_number")
        found = way(place, identity)
        known = finite_number(value)
        if found.low is None or found.high is None or known is None:
            return found
        low, high = min(found.low, known), max(found.high, known)
        return CellError(found.error, low, high, found.method)

    # How a column gets its errors

    def _way(self, output: ShellOutput, place: int) -> Callable[[int, Identity], CellError]:
        """What gives the errors of an output, after asking for the scenarios that it needs."""
        trace = output.trace
        if not self._plan.identified:
            return _none("no_row_identity")
        if trace.across & self._selected:
            return _none("groups_not_shown")
        if trace.chosen:
            return _none("chosen_by_noise")
        if output.kind == ColumnKind.RELEASED:
            return self._cell(output)
        if trace.shape is Shape.CONSTANT:
            return self._exact
        if self._plan.simulation is None:
            return _none("not_followed")
        reads = sorted(trace.reads, key=str)
        if trace.rises and len(reads) == 1 and reads[0][2] is not None:
            return self._mapped(reads[0], trace)
        linear = all(self._is_linear(read) for read in reads)
        if trace.shape is Shape.AFFINE and linear:
            found = self._linear(trace, reads)
            if found is not None:
                return found
        if trace.shape is Shape.RANK:
            return self._rank(trace, reads)
        if trace.shape is Shape.FOLDED:
            return self._bounds(trace, reads) if trace.rises else _none("not_linear")
        counts = [read for read in reads if self._sources[read[0], read[1]].conditional]
        if counts:
            # Noise given that the group was shown is not simulated.
            safe = trace.shape is Shape.RATIO and trace.divisors <= set(counts) and len(trace.divisors) == 1
            return self._corners(reads) if safe and len(reads) <= _CORNERS_MAX else _none("given_shown")
        if self._plan.chosen:
            return _none("chosen_by_noise")
        match trace.shape:
            case Shape.AFFINE if linear:
                return self._simulated_sum
            case Shape.AFFINE | Shape.RATIO | Shape.SMOOTH | Shape.ROUGH:
                return self._simulated
            case Shape.CONSTANT | Shape.RANK | Shape.FOLDED:
                raise AssertionError("has had its way above")
            case _:
                assert_never(trace.shape)

    def _is_linear(self, read: Read) -> bool:
        """Whether a number is linear in sums whose noise has a law that adds up, or selected the number's group."""
        source = self._sources[read[0], read[1]]
        if source.sums is None or not source.sums.linear(read[1]):
            return False
        return source.conditional or source.sums.measurement.law is not Law.OTHER

    def _exact(self, place: int, identity: Identity) -> CellError:
        """A value that no noise moves: how many public groups there are."""
        value = self._shown(place)[identity]
        return CellError() if value is None else CellError(0.0, value, value, "exact")

    def _cell(self, output: ShellOutput) -> Callable[[int, Identity], CellError]:
        """A released column as it is; where noisy numbers chose the rows, with intervals that hold for all of them."""
        assert output.core is not None
        assert output.column is not None
        if output.identity is None:
            return _none("no_row_identity")
        source = self._sources[output.core, output.column]
        at = output.identity
        alpha = self._alpha / max(1, self._total) if self._plan.chosen else self._alpha
        ends = self._ends_of(output.core, output.column, alpha)
        errors = source.column.standard_errors

        def way(_place: int, identity: Identity) -> CellError:
            row = identity[at]
            error = _finite(errors[row]) if errors else None
            if ends is None:
                return CellError(error, reason="stored_without_sums")
            low, high = _finite(ends[0][row]), _finite(ends[1][row])
            if low is None or high is None:
                known = source.sums is not None
                return CellError(error, reason="undefined" if known else "stored_without_sums")
            return CellError(error, low, high, "simultaneous" if self._plan.chosen else "noise")

        return way

    def _ends_of(self, core: str, name: str, alpha: float) -> tuple[Any, Any] | None:
        """Both ends of every cell of a released column, each interval missing with at most alpha; None if unknown."""
        if (core, name, alpha) not in self._ends:
            source = self._sources[core, name]
            if alpha == self._alpha:
                self._ends[core, name, alpha] = (_object(source.column.lows), _object(source.column.highs))
            elif source.sums is None:
                self._ends[core, name, alpha] = None
            else:
                estimate = source.sums.estimate(name)
                assert estimate is not None
                column = source.sums.column(estimate, alpha)
                self._ends[core, name, alpha] = (_object(column.lows), _object(column.highs))
        return self._ends[core, name, alpha]

    def _mapped(self, read: Read, trace: Trace) -> Callable[[int, Identity], CellError]:
        """A function that goes up or down with one number: its values at the ends of that number's interval."""
        core, name, at = read
        assert at is not None
        alpha = self._alpha / max(1, self._total) if self._plan.chosen else self._alpha
        ends = self._ends_of(core, name, alpha)
        if ends is None:
            return _none("stored_without_sums")
        sides = [self._at_ends(alpha, side) for side in (0, 1)]
        if any(side is None for side in sides):
            return _none("too_many_cells")
        errors = self._sources[core, name].column.standard_errors

        def way(place: int, identity: Identity) -> CellError:
            first, second = (result_of(side, identity, place) for side in sides)
            if first is None or second is None:
                return CellError(reason="undefined")
            row = identity[at]
            own = None if row is None or not errors else errors[row]
            error = None
            if own is not None and trace.shape is Shape.AFFINE and ends[1][row] > ends[0][row]:
                error = own * abs(second - first) / float(ends[1][row] - ends[0][row])
            return CellError(error, min(first, second), max(first, second), "mapped")

        return way

    def _bounds(self, trace: Trace, reads: Sequence[Read]) -> Callable[[int, Identity], CellError]:
        """A function that goes up or down with all numbers that it reads: its values at the ends of a box.

        All intervals of the box hold at once with the asked confidence (Bonferroni). The greatest of several numbers
        is below the greatest of upper ends as soon as the interval of the truly greatest holds, so that upper ends
        need no room for the others; so with the least.
        """
        cells = sum(1 if at is not None else self._sources[core, name].table.rows for core, name, at in reads)
        all_at_once = self._alpha / max(1, cells) / (max(1, self._total) if self._plan.chosen else 1)
        alphas = [all_at_once, all_at_once]
        if trace.extreme is not None and not self._plan.chosen:
            alphas[1 if trace.extreme == "max" else 0] = self._alpha
        if any(self._ends_of(core, name, alpha) is None for core, name, _ in reads for alpha in alphas):
            return _none("stored_without_sums")
        sides = [self._at_ends(alpha, side) for side, alpha in enumerate(alphas)]
        if any(side is None for side in sides):
            return _none("too_many_cells")

        def way(place: int, identity: Identity) -> CellError:
            first, second = (result_of(side, identity, place) for side in sides)
            if first is None or second is None:
                return CellError(reason="undefined")
            return CellError(None, min(first, second), max(first, second), "bounds")

        return way

    def _corners(self, reads: Sequence[Read]) -> Callable[[int, Identity], CellError]:
        """A quotient of affine parts over the count of a selected group, which is one at least.

        In each number by itself it goes one way, since the divisor keeps its sign: it is least and greatest at corners
        of the box in which all intervals hold at once.
        """
        alpha = self._alpha / len(reads) / (max(1, self._total) if self._plan.chosen else 1)
        ends = [self._ends_of(core, name, alpha) for core, name, _ in reads]
        if not self._scenarios.room_for(2 ** len(reads)):
            return _none("too_many_cells")
        corners = []
        for sides in itertools.product((0, 1), repeat=len(reads)):

            def numbers(sides: tuple[int, ...] = sides) -> dict[tuple[str, str], Floats]:
                result = self._scenarios.released()
                for (core, name, _), both, side in zip(reads, ends, sides, strict=True):
                    assert both is not None
                    result[core, name] = both[side].astype(np.float64)
                return result

            corners.append(self._scenarios.make(("corner", alpha, tuple(reads), sides), numbers))

        def way(place: int, identity: Identity) -> CellError:
            found = [result_of(corner, identity, place) for corner in corners]
            known = [value for value in found if value is not None]
            if len(known) < len(found):
                return CellError(reason="undefined")
            return CellError(None, min(known), max(known), "bounds")

        return way

    def _rank(self, trace: Trace, reads: Sequence[Read]) -> Callable[[int, Identity], CellError]:
        """A rank: least with the row's number at one end and all others at the other, greatest the other way."""
        if len(reads) != 1 or reads[0][2] is None or len(trace.across) != 1 or reads[0][0] not in trace.across:
            return _none("not_linear")
        core, name, at = reads[0]
        assert at is not None
        source = self._sources[core, name]
        rows = source.table.rows
        alpha = self._alpha / max(1, rows)
        ends = self._ends_of(core, name, alpha)
        if ends is None:
            return _none("stored_without_sums")
        if not self._scenarios.room_for(2 * rows):
            return _none("too_many_cells")
        sides: list[list[Scenario]] = [[], []]
        for own in (0, 1):
            for row in range(rows):

                def numbers(own: int = own, row: int = row) -> dict[tuple[str, str], Floats]:
                    others = np.array(ends[1 - own], dtype=np.float64)
                    others[row] = float(ends[own][row])
                    return {**self._scenarios.released(), (core, name): others}

                sides[own].append(self._scenarios.make(("rank", core, name, own, row), numbers))

        def way(place: int, identity: Identity) -> CellError:
            row = identity[at]
            if row is None:
                return CellError()
            first, second = (result_of(side[row], identity, place) for side in sides)
            if first is None or second is None:
                return CellError(reason="undefined")
            return CellError(None, min(first, second), max(first, second), "bounds")

        return way

    def _linear(self, trace: Trace, reads: Sequence[Read]) -> Callable[[int, Identity], CellError] | None:
        """A weighted sum of linear numbers: the weights come from the shell itself, at zero and at one.

        None where there are too many weights to ask for.
        """
        columns = list(dict.fromkeys((core, name) for core, name, _ in reads))
        cells: list[tuple[tuple[str, str], int | None]] = [(column, None) for column in columns]
        conditional = any(self._sources[column].conditional for column in columns)
        if any(at is None for _, _, at in reads) or len(columns) < len(reads):
            # Several rows of one column: each cell by itself.
            cells = [(column, row) for column in columns for row in range(self._sources[column].table.rows)]
            if conditional:
                return _none("given_shown")
        if not self._scenarios.room_for(len(cells) + 1):
            return None
        zero = self._scenarios.zero()
        units = [self._scenarios.unit(column, row) for column, row in cells]
        known: dict[int, dict[Identity, CellError]] = {}

        def weights(place: int) -> tuple[list[Identity], Floats]:
            identities = [i for i in zero.results if finite_number(zero.results[i][place]) is not None]
            matrix = np.zeros((len(identities), len(cells)))
            for i, identity in enumerate(identities):
                base = result_of(zero, identity, place) or 0.0
                for j, unit in enumerate(units):
                    at_one = result_of(unit, identity, place)
                    matrix[i, j] = math.nan if at_one is None else at_one - base
            return identities, matrix

        def way(place: int, identity: Identity) -> CellError:
            if place not in known:
                identities, matrix = weights(place)
                # Where noisy numbers chose rows, the intervals hold for all that there are.
                alpha = self._alpha / (max(1, len(identities)) if self._plan.chosen else 1)
                if conditional:
                    known[place] = self._boxed(place, identities, matrix, reads, alpha)
                else:
                    known[place] = self._weighted(place, identities, matrix, cells, alpha)
            return known[place].get(identity, CellError(reason="undefined"))

        return way

    def _weighted(
        self,
        place: int,
        identities: Sequence[Identity],
        matrix: Floats,
        cells: Sequence[tuple[tuple[str, str], int | None]],
        alpha: float,
    ) -> dict[Identity, CellError]:
        """Errors of weighted sums: cells of one statistic and row share its noise, all others are independent."""
        parts: dict[tuple[int, int | None], Floats] = {}
        sums: dict[int, NoisySums] = {}
        roundings: list[Floats] = []
        variance, spread = np.zeros(len(identities)), np.zeros(len(identities))
        for j, (key, row) in enumerate(cells):
            one = self._sources[key].sums
            assert one is not None
            estimate = one.estimate(key[1])
            assert estimate is not None
            form = linear_form(one.measurement.statistic, estimate.kind)
            assert form is not None
            exact = [part * one.measurement.grid for part in form]
            vector = matrix[:, j, None] * np.array([float(part) for part in exact])
            sums[id(one)] = one
            parts[id(one), row] = parts.get((id(one), row), 0) + vector
            if estimate.integer and any(part.denominator != 1 for part in exact):
                roundings.append(np.abs(matrix[:, j, None]) / 2)
                spread = spread + matrix[:, j] ** 2 / 12
        laplace: list[Floats] = []
        for (whose, _), vector in parts.items():
            measurement = sums[whose].measurement
            squares = (vector**2).sum(axis=-1)
            spread = spread + measurement.variance() * squares
            scale = float(measurement.scale_of_sums / measurement.grid)
            match measurement.law:
                case Law.LAPLACE:
                    laplace.append(np.abs(vector) * scale)
                case Law.NORMAL:
                    variance = variance + scale**2 * squares
                case Law.OTHER:
                    raise AssertionError("simulated, or in a box")
                case _:
                    assert_never(measurement.law)
            roundings.append(np.abs(vector) * measurement.rounding)
        reach = weighted_quantiles(
            np.concatenate(laplace, axis=-1) if laplace else np.zeros((len(identities), 0)),
            variance,
            np.concatenate(roundings, axis=-1),
            alpha,
        )
        values = self._shown(place)
        found = {}
        for identity, half, error in zip(identities, reach.tolist(), np.sqrt(spread).tolist(), strict=True):
            value = values.get(identity)
            if value is None or not math.isfinite(half):
                found[identity] = CellError(reason="undefined")
            else:
                found[identity] = CellError(error, value - half, value + half, "linear")
        return found

    def _boxed(
        self, place: int, identities: Sequence[Identity], matrix: Floats, reads: Sequence[Read], alpha: float
    ) -> dict[Identity, CellError]:
        """Errors of weighted sums of numbers of one row of which one selected it: each at its end, all at once."""
        found = {}
        values = self._shown(place)
        ends = [self._ends_of(core, name, alpha / len(reads)) for core, name, _ in reads]
        for i, identity in enumerate(identities):
            value, low, high = values.get(identity), 0.0, 0.0
            for j, (core, name, at) in enumerate(reads):
                weight, both = float(matrix[i, j]), ends[j]
                row = None if at is None else identity[at]
                if both is None or row is None or value is None or not math.isfinite(weight):
                    value = None
                    break
                middle = self._sources[core, name].column.values[row]
                if not isinstance(middle, int | float):
                    value = None
                    break
                moves = [weight * (float(side[row]) - float(middle)) for side in both]
                low, high = low + min(moves), high + max(moves)
            if value is None:
                found[identity] = CellError(reason="undefined")
            else:
                found[identity] = CellError(None, value + low, value + high, "bounds")
        return found

    def _shown(self, place: int) -> dict[Identity, Any]:
        """The values of a column by row."""
        if place not in self._columns:
            width = len(self._plan.outputs)
            self._columns[place] = {tuple(row[width:]): finite_number(row[place]) for row in self._rows}
        return self._columns[place]

    def _at_ends(self, alpha: float, side: int) -> Scenario | None:
        """Every number at one end of its interval; None when there are too many."""
        if not self._scenarios.fits(2):
            return None

        def numbers() -> dict[tuple[str, str], Floats]:
            result = self._scenarios.released()
            for core, name in result:
                ends = self._ends_of(core, name, alpha)
                if ends is not None:
                    result[core, name] = np.array(
                        [math.nan if end is None else float(end) for end in ends[side]], dtype=np.float64
                    )
            return result

        return self._scenarios.make(("ends", alpha, side), numbers)

    def _simulated_sum(self, place: int, identity: Identity) -> CellError:
        """The simulated spread of a weighted sum times the quantile of its law.

        For normal noise the ratio of error and simulated spread has Student's law. Weighted sums of Laplace noise lie
        between the normal and one Laplace variable, whose squares vary more: they count for two fifths as many draws.
        """
        if not self._scenarios.drawn:
            return CellError(reason="too_many_cells")
        values, value = self._scenarios.draws.get((identity, place), []), self._shown(place).get(identity)
        if value is None or len(values) < 0.9 * self._scenarios.drawn:
            return CellError(reason="undefined")
        error = math.sqrt(float(np.mean((np.asarray(values) - value) ** 2)))
        read = {(core, name) for core, name, _ in _branch(self._plan.outputs[place], identity)[0].trace.reads}
        known = [source.sums for source in (self._sources[key] for key in read) if source.sums is not None]
        heavy = any(sums.measurement.law is not Law.NORMAL for sums in known)
        z = gaussian_two_sided(self._alpha)
        draws = len(values) * 0.4 if heavy else len(values)
        if heavy:
            z = max(z, math.log(1 / self._alpha) / math.sqrt(2))
        # The expansion of Student's quantile (Abramowitz and Stegun 1964, 26.7.5).
        z += (z**3 + z) / (4 * draws) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * draws**2)
        return CellError(error, value - z * error, value + z * error, "simulated")

    def _simulated(self, place: int, identity: Identity) -> CellError:
        """Quantiles of simulated values."""
        if not self._scenarios.drawn:
            return CellError(reason="too_many_cells")
        values = self._scenarios.draws.get((identity, place), [])
        if len(values) < 0.9 * self._scenarios.drawn:
            return CellError(reason="undefined")
        return spread(values, self._alpha)


def spread(values: Sequence[float], alpha: float) -> CellError:
    """Standard error and interval of one simulated cell.

    Of n simulated values and one more of the same law, the new one lies outside the k-th from either side with
    probability 2k / (n + 1): k is the greatest for which that is at most alpha, without one the interval is unknown.
    Values that are all equal (a flag that the noise does not move) tell that another one is rare, not that there is
    none: with 95 % confidence its probability is below 3/n (Hanley and Lippman-Hand 1983). So their standard error is
    unknown, and the one value is the interval only where that is less than the interval may miss.
    """
    array = np.sort(np.asarray(values))
    kept = math.floor(alpha / 2 * (len(array) + 1) * (1 + 1e-9))
    if array[0] == array[-1]:
        only = float(array[0])
        if alpha * len(array) >= 3:
            return CellError(None, only, only, "simulated")
        return CellError(reason="too_few_draws")
    error = float(array.std())
    if kept < 1:
        return CellError(error, reason="too_few_draws")
    return CellError(error, float(array[kept - 1]), float(array[-kept]), "simulated")


def _none(reason: str) -> Callable[[int, Identity], CellError]:
    """No interval in any cell."""
    return lambda _place, _identity: CellError(reason=reason)


def _branch(output: ShellOutput, identity: Identity) -> tuple[ShellOutput, tuple[Any, ...]]:
    """The output of the branch of UNION ALL that a row comes from, and the numbers of the branches."""
    path: list[Any] = []
    while output.branches and output.branch is not None:
        number = identity[output.branch]
        path.append(number)
        output = output.branches[number]
    return output, tuple(path)


def _finite(value: Any) -> Any:
    return None if value is None or not math.isfinite(value) else value


def _object(values: Sequence[Any]) -> Any:
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result
