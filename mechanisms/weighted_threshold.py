"""The threshold for groups whose units weigh less the more groups they have: weighted_threshold.md."""

from __future__ import annotations

import heapq
import math
from fractions import Fraction
from functools import lru_cache

from mechanisms.gaussian_threshold import chance_per_group
from privacy.conversions import gaussian_quantile

__all__ = ["weight", "weighted_threshold"]

_CLOSE = 1024
"""The threshold is found to this part of sigma."""


def weight(*, groups: int, whole: int) -> int:
    """The most that a unit with so many groups adds to each of them: floor(whole / sqrt(groups))."""
    return math.isqrt(whole**2 // groups)


@lru_cache(maxsize=1024)
def weighted_threshold(*, sigma: Fraction, groups_per_unit: int, delta: Fraction, whole: int) -> int:
    """A noisy weight that the groups of a single unit reach with a chance of at most delta, any of them.

    Ensures: so it is for every number of its groups up to `groups_per_unit`.
    Errors: ValueError for a delta outside (0, 1) or below 10^-300.
    """

    def least(fewest: int, most: int) -> Fraction:
        """An upper bound on what any number of groups in the interval needs."""
        return weight(groups=fewest, whole=whole) + Fraction(1, 2) + sigma * _quantile(groups=most, delta=delta)

    best = max(least(1, 1), least(groups_per_unit, groups_per_unit))
    intervals = [(-least(1, groups_per_unit), 1, groups_per_unit)]
    while True:
        bound, fewest, most = heapq.heappop(intervals)
        if fewest == most or -bound <= best + sigma / _CLOSE:
            return math.ceil(-bound)
        middle = min(math.isqrt(fewest * most), most - 1)
        best = max(best, least(middle, middle))
        heapq.heappush(intervals, (-least(fewest, middle), fewest, middle))
        heapq.heappush(intervals, (-least(middle + 1, most), middle + 1, most))


@lru_cache(maxsize=4096)
def _quantile(*, groups: int, delta: Fraction) -> Fraction:
    """The z that none of so many independent standard normals exceeds, except with delta. Rounded up, not negative."""
    chance = chance_per_group(groups_per_unit=groups, delta=delta)
    return gaussian_quantile(max(1 - chance, Fraction(1, 2)))
