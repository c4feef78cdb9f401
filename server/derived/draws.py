"""Errors from simulation: the shell over released sums with fresh noise, many times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

import numpy as np

from mechanisms.interval import gaussian_two_sided
from mechanisms.measurement import Law
from server.derived.cells import CellError, Identity, IntervalMethod, NoInterval
from server.derived.released_numbers import Numbers, branch_of

__all__ = ["simulated", "simulated_sum", "spread"]


def simulated_sum(numbers: Numbers, place: int, identity: Identity) -> CellError:
    """The simulated spread of a weighted sum times the quantile of its law.

    For normal noise the ratio of error and simulated spread has Student's law. Weighted sums of Laplace noise lie
    between the normal and one Laplace variable, whose squares vary more: they count for two fifths as many draws.
    """
    if not numbers.scenarios.drawn:
        return CellError(reason=NoInterval.TOO_MANY_CELLS)
    values, value = numbers.scenarios.draws.get((identity, place), []), numbers.shown(place).get(identity)
    if value is None or len(values) < 0.9 * numbers.scenarios.drawn:
        return CellError(reason=NoInterval.UNDEFINED)
    error = math.sqrt(float(np.mean((np.asarray(values) - value) ** 2)))
    output, _ = branch_of(numbers.plan.outputs[place], identity)
    read = set() if output is None else {(core, name) for core, name, _ in output.trace.reads}
    known = [source.sums for source in (numbers.sources[key] for key in read) if source.sums is not None]
    heavy = any(_is_heavy(sums.measurement.law) for sums in known)
    z = gaussian_two_sided(numbers.alpha) * _wider(numbers, place, identity)
    draws = len(values) * 0.4 if heavy else len(values)
    if heavy:
        z = max(z, math.log(1 / numbers.alpha) / math.sqrt(2))
    # The expansion of Student's quantile (Abramowitz and Stegun 1964, 26.7.5).
    z += (z**3 + z) / (4 * draws) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * draws**2)
    return CellError(error, value - z * error, value + z * error, IntervalMethod.SIMULATED)


def _is_heavy(law: Law) -> bool:
    """Whether noise of this law may have heavier tails than a normal variable."""
    match law:
        case Law.NORMAL:
            return False
        case Law.LAPLACE | Law.OTHER:
            return True
        case _:
            assert_never(law)


def simulated(numbers: Numbers, place: int, identity: Identity) -> CellError:
    """Quantiles of simulated values."""
    if not numbers.scenarios.drawn:
        return CellError(reason=NoInterval.TOO_MANY_CELLS)
    values = numbers.scenarios.draws.get((identity, place), [])
    if len(values) < 0.9 * numbers.scenarios.drawn:
        return CellError(reason=NoInterval.UNDEFINED)
    found, wider = spread(values, numbers.alpha), _wider(numbers, place, identity)
    value = numbers.shown(place).get(identity)
    if wider == 1 or found.low is None or found.high is None or value is None:
        return found
    # At every look: the ends are moved away from the value as they would be for a normal error.
    low, high = value - wider * (value - found.low), value + wider * (found.high - value)
    return replace(found, low=min(low, found.low), high=max(high, found.high))


def _wider(numbers: Numbers, place: int, identity: Identity) -> float:
    """By how much intervals of a cell have to be wider because the precision of what it reads was raised."""
    output, _ = branch_of(numbers.plan.outputs[place], identity)
    read = set() if output is None else {(core, name) for core, name, _ in output.trace.reads}
    known = [source.sums for source in (numbers.sources[key] for key in read) if source.sums is not None]
    return max((sums.measurement.widening(numbers.alpha) for sums in known), default=1.0)


def spread(values: Sequence[float], alpha: float) -> CellError:
    """Standard error and interval of one simulated cell.

    Of n simulated values and one more of the same law, the new one lies outside the k-th from either side with
    probability 2k / (n + 1): k is the greatest for which that is at most alpha, without one the interval is unknown.
    Values that are all equal (a flag that the noise does not move) show that another one is rare, not that there is
    none: with 95 % confidence its probability is below 3/n (Hanley and Lippman-Hand 1983). So their standard error is
    unknown, and the one value is the interval only where that is less than the interval may miss.
    """
    array = np.sort(np.asarray(values))
    kept = math.floor(alpha / 2 * (len(array) + 1) * (1 + 1e-9))
    if array[0] == array[-1]:
        only = float(array[0])
        if alpha * len(array) >= 3:
            return CellError(None, only, only, IntervalMethod.SIMULATED)
        return CellError(reason=NoInterval.TOO_FEW_DRAWS)
    error = float(array.std())
    if kept < 1:
        return CellError(error, reason=NoInterval.TOO_FEW_DRAWS)
    return CellError(error, float(array[kept - 1]), float(array[-kept]), IntervalMethod.SIMULATED)
