"""Intervals from the shell at the ends of other intervals: of one number, of several at once, of ranks."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mechanisms.interval import Floats
from server.derived.cells import CellError, Identity, IntervalMethod, NoInterval, Way, none
from server.derived.released_numbers import Numbers, row_of
from server.derived.scenarios import Scenario, result_of
from sql_rewrite.trace import Read, Shape, Trace

__all__ = ["bounds", "corners", "mapped", "rank"]


def mapped(numbers: Numbers, read: Read, trace: Trace) -> Way:
    """A function that goes up or down with one number: its values at the ends of that number's interval."""
    core, name, at = read
    assert at is not None
    alpha = numbers.shared(numbers.alpha)
    ends = numbers.ends_of(core, name, alpha)
    if ends is None:
        return none(NoInterval.STORED_WITHOUT_SUMS)
    sides = [numbers.at_ends(alpha, side) for side in (0, 1)]
    if any(side is None for side in sides):
        return none(NoInterval.TOO_MANY_CELLS)
    errors = numbers.sources[core, name].column.standard_errors

    def way(place: int, identity: Identity) -> CellError:
        span = _span(sides, place, identity, IntervalMethod.MAPPED)
        row = row_of(identity, at)
        own = None if row is None or not errors or trace.shape is not Shape.AFFINE else errors[row]
        if own is None or span.low is None or span.high is None or not ends[1][row] > ends[0][row]:
            return span
        return replace(span, error=own * (span.high - span.low) / float(ends[1][row] - ends[0][row]))

    return way


def bounds(numbers: Numbers, trace: Trace, reads: Sequence[Read]) -> Way:
    """A function that goes up or down with all numbers that it reads: its values at the ends of a box.

    All intervals of the box hold at once with the asked confidence (Bonferroni). The greatest of several numbers
    is below the greatest of upper ends as soon as the interval of the truly greatest holds, so that upper ends
    need no room for the others; so with the least.
    """
    cells = sum(1 if at is not None else numbers.sources[core, name].table.rows for core, name, at in reads)
    all_at_once = numbers.shared(numbers.alpha / max(1, cells))
    alphas = [all_at_once, all_at_once]
    if trace.extreme is not None and not numbers.plan.chosen:
        alphas[1 if trace.extreme == "max" else 0] = numbers.alpha
    if any(numbers.ends_of(core, name, alpha) is None for core, name, _ in reads for alpha in alphas):
        return none(NoInterval.STORED_WITHOUT_SUMS)
    sides = [numbers.at_ends(alpha, side) for side, alpha in enumerate(alphas)]
    if any(side is None for side in sides):
        return none(NoInterval.TOO_MANY_CELLS)

    return lambda place, identity: _span(sides, place, identity, IntervalMethod.BOUNDS)


def corners(numbers: Numbers, reads: Sequence[Read]) -> Way:
    """A quotient of affine parts over the count of a selected group, which is one at least.

    In each number by itself it goes one way, since the divisor keeps its sign: it is least and greatest at corners
    of the box in which all intervals hold at once.
    """
    alpha = numbers.shared(numbers.alpha / len(reads))
    ends = [numbers.ends_of(core, name, alpha) for core, name, _ in reads]
    if not numbers.scenarios.room_for(2 ** len(reads)):
        return none(NoInterval.TOO_MANY_CELLS)
    scenarios = []
    for sides in itertools.product((0, 1), repeat=len(reads)):

        def at_corner(sides: tuple[int, ...] = sides) -> dict[tuple[str, str], Floats]:
            result = numbers.scenarios.released()
            for (core, name, _), both, side in zip(reads, ends, sides, strict=True):
                assert both is not None
                result[core, name] = both[side].astype(np.float64)
            return result

        scenarios.append(numbers.scenarios.make(("corner", alpha, tuple(reads), sides), at_corner))

    return lambda place, identity: _span(scenarios, place, identity, IntervalMethod.BOUNDS)


def rank(numbers: Numbers, trace: Trace, reads: Sequence[Read]) -> Way:
    """A rank: least with the row's number at one end and all others at the other, greatest the other way."""
    if len(reads) != 1 or reads[0][2] is None or len(trace.across) != 1 or reads[0][0] not in trace.across:
        return none(NoInterval.NOT_LINEAR)
    core, name, at = reads[0]
    assert at is not None
    source = numbers.sources[core, name]
    rows = source.table.rows
    alpha = numbers.alpha / max(1, rows)
    ends = numbers.ends_of(core, name, alpha)
    if ends is None:
        return none(NoInterval.STORED_WITHOUT_SUMS)
    if not numbers.scenarios.room_for(2 * rows):
        return none(NoInterval.TOO_MANY_CELLS)
    sides: list[list[Scenario]] = [[], []]
    for own in (0, 1):
        for row in range(rows):

            def against_others(own: int = own, row: int = row) -> dict[tuple[str, str], Floats]:
                others = np.array(ends[1 - own], dtype=np.float64)
                others[row] = float(ends[own][row])
                return {**numbers.scenarios.released(), (core, name): others}

            sides[own].append(numbers.scenarios.make(("rank", core, name, own, row), against_others))

    def way(place: int, identity: Identity) -> CellError:
        row = row_of(identity, at)
        if row is None:
            return CellError()
        return _span([side[row] for side in sides], place, identity, IntervalMethod.BOUNDS)

    return way


def _span(scenarios: Sequence[Scenario | None], place: int, identity: Identity, method: IntervalMethod) -> CellError:
    """From the least to the greatest value that a cell has under some scenarios."""
    values = [result_of(scenario, identity, place) for scenario in scenarios]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return CellError(reason=NoInterval.UNDEFINED)
    return CellError(None, min(known), max(known), method)
