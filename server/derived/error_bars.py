"""Which way each column of an answer gets its errors, and the errors of all its cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import assert_never

from engines.shell import ShellEngine, ShellTable
from mechanisms.interval import two_sided_alpha
from mechanisms.released_table import ReleasedTable
from privacy.release import ColumnKind
from server.derived import draws, ends, sums
from server.derived.at_once import why_none
from server.derived.cells import CellError, Errors, Identity, IntervalMethod, NoInterval, Way, finite_number, none
from server.derived.released_numbers import Numbers, branch_of, row_of
from server.derived.scenarios import Scenarios
from sql_rewrite.plan import Shell, ShellOutput
from sql_rewrite.trace import Shape

__all__ = ["shell_errors"]

_CORNERS_MAX = 3
"""The most numbers whose intervals make a box of which every corner is computed."""


def shell_errors(
    plan: Shell,
    released: Sequence[ReleasedTable],
    rows: Sequence[Sequence[object]],
    *,
    shell: ShellEngine,
    confidence: Fraction,
    timeout_seconds: float,
    owner: str,
    public: Sequence[ShellTable] = (),
) -> Errors:
    """The errors of an answer's rows, each given with its hidden identity behind its values.

    Never fails: where the shell does not run on other numbers, the cells that need it have no interval.
    """
    scenarios = Scenarios(plan, released, shell=shell, timeout_seconds=timeout_seconds, owner=owner, public=public)
    numbers = Numbers(plan, released, rows, two_sided_alpha(confidence), scenarios)
    width = len(plan.outputs)
    identities = [tuple(row[width:]) for row in rows]
    # By column and branch of a UNION ALL: how its cells get their errors.
    ways: dict[tuple[int, tuple[int, ...]], Way] = {}
    later: list[tuple[int, int, ShellOutput, Way]] = []
    for place, output in enumerate(plan.outputs):
        for number, identity in enumerate(identities):
            branch, path = branch_of(output, identity)
            if branch is None or branch.kind == ColumnKind.KEY:
                continue
            if (place, path) not in ways:
                ways[place, path] = _way(numbers, branch)
            later.append((number, place, branch, ways[place, path]))
    scenarios.run()
    if numbers.simulates:
        scenarios.simulate(numbers.alpha)
    result = [[CellError()] * width for _ in rows]
    for number, place, branch, way in later:
        result[number][place] = _checked(numbers, branch, rows[number][place], way, place, identities[number])
    return result


def _checked(
    numbers: Numbers, output: ShellOutput, value: object, way: Way, place: int, identity: Identity
) -> CellError:
    """The error of one cell, with its value inside the interval."""
    if output.kind == ColumnKind.RELEASED and (output.identity is None or identity[output.identity] is None):
        return way(place, identity) if output.identity is None else CellError()
    if output.kind == ColumnKind.DERIVED:
        # A row that an outer join filled up: the group may be there and not shown.
        missing = {core for core, _, at in output.trace.reads if at is not None and identity and identity[at] is None}
        if missing & numbers.selected:
            return CellError(reason=NoInterval.GROUPS_NOT_SHOWN)
        if isinstance(value, float) and not math.isfinite(value):
            return CellError(reason=NoInterval.UNDEFINED)
        if value is not None and finite_number(value) is None and output.trace.shape is not Shape.CONSTANT:
            return CellError(reason=NoInterval.NOT_A_NUMBER)
    found = way(place, identity)
    known = finite_number(value)
    if found.low is None or found.high is None or known is None:
        return found
    return CellError(found.error, min(found.low, known), max(found.high, known), found.method)


def _way(numbers: Numbers, output: ShellOutput) -> Way:
    """What gives the errors of an output, after asking for the scenarios that it needs."""
    trace, plan = output.trace, numbers.plan
    reason = why_none(plan, trace, numbers.selected)
    if reason is not None:
        return none(reason)
    if output.kind == ColumnKind.RELEASED:
        return _released(numbers, output)
    if trace.shape is Shape.CONSTANT:
        return partial(_exact, numbers)
    if plan.simulation is None:
        return none(NoInterval.NOT_FOLLOWED)
    reads = sorted(trace.reads, key=str)
    if trace.rises and len(reads) == 1 and reads[0][2] is not None:
        return ends.mapped(numbers, reads[0], trace)
    linear = all(sums.is_linear(numbers, read) for read in reads)
    if trace.shape is Shape.AFFINE and linear:
        found = None if output.total is None else sums.added(numbers, output.total, reads)
        found = found or sums.linear(numbers, reads)
        if found is not None:
            return found
    if trace.shape is Shape.RANK:
        return ends.rank(numbers, trace, reads)
    if trace.shape is Shape.FOLDED:
        return ends.bounds(numbers, trace, reads) if trace.rises else none(NoInterval.NOT_LINEAR)
    counts = [read for read in reads if numbers.sources[read[0], read[1]].conditional]
    if counts:
        # Noise given that the group was shown is not simulated.
        safe = trace.shape is Shape.RATIO and trace.divisors <= set(counts) and len(trace.divisors) == 1
        return ends.corners(numbers, reads) if safe and len(reads) <= _CORNERS_MAX else none(NoInterval.GIVEN_SHOWN)
    if plan.chosen:
        return none(NoInterval.CHOSEN_BY_NOISE)
    numbers.simulates = True
    match trace.shape:
        case Shape.AFFINE if linear:
            return partial(draws.simulated_sum, numbers)
        case Shape.AFFINE | Shape.RATIO | Shape.SMOOTH | Shape.ROUGH:
            return partial(draws.simulated, numbers)
        case Shape.CONSTANT | Shape.RANK | Shape.FOLDED:
            raise AssertionError("has had its way above")
        case _:
            assert_never(trace.shape)


def _exact(numbers: Numbers, place: int, identity: Identity) -> CellError:
    """A value that no noise moves: how many public groups there are."""
    value = numbers.shown(place)[identity]
    return CellError() if value is None else CellError(0.0, value, value, IntervalMethod.EXACT)


def _released(numbers: Numbers, output: ShellOutput) -> Way:
    """A released column as it is; where noisy numbers chose the rows, with intervals that hold for all of them."""
    assert output.core is not None
    assert output.column is not None
    if output.identity is None:
        return none(NoInterval.NO_ROW_IDENTITY)
    source = numbers.sources[output.core, output.column]
    at = output.identity
    both = numbers.ends_of(output.core, output.column, numbers.shared(numbers.alpha))
    errors = source.column.standard_errors
    method = IntervalMethod.SIMULTANEOUS if numbers.plan.chosen else IntervalMethod.NOISE
    unknown = NoInterval.STORED_WITHOUT_SUMS if source.sums is None else NoInterval.UNDEFINED

    def way(_place: int, identity: Identity) -> CellError:
        row = row_of(identity, at)
        assert row is not None, "a cell without a row has no error"
        error = _finite(errors[row]) if errors else None
        if both is None:
            return CellError(error, reason=NoInterval.STORED_WITHOUT_SUMS)
        low, high = _finite(both[0][row]), _finite(both[1][row])
        if low is None or high is None:
            return CellError(error, reason=unknown)
        return CellError(error, low, high, method)

    return way


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value
