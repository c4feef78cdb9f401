"""Intervals of counts that are shown only because they passed a selection: shown_counts.md.

A group of n units gets the noisy count n + R and is shown when that reaches a threshold T. Among the groups that are
shown, R is therefore not the noise that was drawn but the noise given R >= T - n: a group far below the threshold is
seen only when its noise was high. The interval is the set of n, one or more, for which neither tail of that law, from
the observed count on, is at most alpha / 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from mechanisms.interval import Floats
from mechanisms.measurement import Integers
from mechanisms.truncated_geometric import selection_table

__all__ = ["ShownEnds", "gaussian_shown_ends", "geometric_shown_ends"]

_Numbers = npt.NDArray[np.int64]

_SLACK = 1e-9
"""Relative room for the rounding of floats; it only widens."""

_STEPS = 128
"""Wide noise is tabled at every (sigma / _STEPS)-th count and rounded outwards between them."""


@dataclass(frozen=True, slots=True)
class ShownEnds:
    """Ends of the interval for each count from the threshold `first` on, at every `step`-th one.

    Counts from `first + step * (len(lows) - 1)` on are so far above the threshold that every group near them is
    shown: their interval is `reach` to either side.
    """

    first: int
    step: int
    lows: _Numbers
    highs: _Numbers
    reach: int

    def ends(self, counts: Integers) -> tuple[Integers, Integers]:
        """Lows and highs of noisy counts, all of them at the threshold or above; each interval holds its count."""
        last = self.first + self.step * (len(self.lows) - 1)
        lows, highs = np.maximum(counts - self.reach, 1), counts + self.reach
        near = (counts < last).astype(np.bool_)
        if near.any():
            # The count between two of the table takes the low end of the one below and the high end of the one above.
            above = (counts[near] - self.first).astype(np.int64)
            lows[near] = np.minimum(self.lows[above // self.step], counts[near])
            highs[near] = np.maximum(self.highs[-(-above // self.step)], counts[near])
        return lows, highs


@lru_cache(maxsize=64)
def gaussian_shown_ends(*, sigma: float, threshold: int, alpha: float, reach: int) -> ShownEnds:
    """For counts n + round(sigma Z) that are shown from `threshold` on. `reach` bounds the noise with 1 - alpha."""
    step = max(1, math.floor(sigma / _STEPS))
    counts = math.ceil((reach + 10 * sigma) / step) + 2
    units = math.ceil((threshold + reach) / step) + counts + 2
    factor = 1 / (sigma * math.sqrt(2))

    def tails(first: int) -> Floats:
        """P(R >= first + step d) for d = -units..counts."""
        return np.array([0.5 * math.erfc((first + step * d - 0.5) * factor) for d in range(-units, counts + 1)])

    lows, highs = _inverted(tails(threshold - 1), tails(threshold), counts, units, step, alpha)
    return ShownEnds(threshold, step, lows, highs, reach)


@lru_cache(maxsize=32)
def geometric_shown_ends(*, epsilon: Fraction, delta: Fraction, alpha: float, reach: int) -> ShownEnds:
    """For counts under a mixture of truncated geometrics: the union of the intervals of its parts.

    Which part was drawn is not seen. Given the part its interval covers, so the union does whichever it was.
    """
    table = selection_table(epsilon=epsilon, delta=delta)
    first = min(part.k for part in table.parts) + 1
    length = 2 * table.threshold + 3
    lows = np.full(length, np.iinfo(np.int64).max)
    highs = np.ones(length, dtype=np.int64)
    for part in table.parts:
        threshold, counts = part.k + 1, length
        units = threshold + counts + reach + 2
        # Tails from the outside in, exact integers until the division.
        above = [0]
        for x in range(part.k, -part.k - 1, -1):
            above.append(above[-1] + part.weights[abs(x)])
        tail = np.array([float(weight / above[-1]) for weight in above])  # tail[i] = P(X >= k + 1 - i)

        def tails(start: int, tail: Floats = tail, k: int = part.k, low: int = -units) -> Floats:
            """P(X >= start + d) for d = -units..counts."""
            return tail[np.clip(k + 1 - start - np.arange(low, length + 1), 0, len(tail) - 1)]

        low, high = _inverted(tails(threshold - 1), tails(threshold), counts, units, 1, alpha)
        skipped = threshold - first
        lows[skipped:] = np.minimum(lows[skipped:], low[: length - skipped])
        highs[skipped:] = np.maximum(highs[skipped:], high[: length - skipped])
    return ShownEnds(first, 1, lows, highs, reach)


def _inverted(
    tails: Floats,
    tails_above: Floats,
    counts: int,
    units: int,
    step: int,
    alpha: float,
) -> tuple[_Numbers, _Numbers]:
    """Both ends for the counts v = T + step i, i = 0..counts - 1, over the numbers of units n = 1 + step j.

    Requires: `tails[units + d]` = P(R >= T - 1 + step d) and `tails_above[units + d]` = P(R >= T + step d).
    Ensures: every n outside [low, high] fails a test; between two n of the table the outer one counts.

    P(N >= v | shown) = P(R >= v - n) / P(R >= T - n) grows with n and P(N <= v | shown) falls, so that each end is
    found by bisection.
    """
    i = np.arange(counts)
    half = alpha / 2

    def last_true(holds: Callable[[_Numbers], npt.NDArray[np.bool_]]) -> _Numbers:
        """The greatest j for which the condition holds; it holds up to there and not beyond. -1 for none."""
        low, high = np.full(counts, -1), np.full(counts, units)
        for _ in range(units.bit_length() + 1):
            middle = (low + high) // 2
            inside = middle > low
            true = holds(np.maximum(middle, 0)) & inside
            low, high = np.where(true, middle, low), np.where(true | ~inside, high, middle)
        return low

    shown = tails[units - np.arange(units + 1)]  # P(R >= T - n) by j
    too_few = last_true(lambda j: tails[units + i - j] <= half * (1 - _SLACK) * shown[j])
    few_enough = last_true(lambda j: tails_above[units + i - j] < (1 - half * (1 - _SLACK)) * shown[j])
    # The n after the last one that is refused; the n before the first one that is refused again.
    lows = np.where(too_few < 0, 1, 1 + step * too_few + 1)
    highs = np.maximum(1 + step * (few_enough + 1) - 1, 1)
    return lows, highs
