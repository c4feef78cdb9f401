"""Estimates from the noisy histograms of a profile: totals, shares, quantiles, each with an interval (profile.md).

Post-processing of released numbers. Arrays are the noisy counts of one histogram, one entry for each bin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

import numpy as np

from mechanisms.interval import Floats
from mechanisms.linear import weighted_quantiles
from mechanisms.measurement import Law
from mechanisms.noisy_sums import NoisySums

__all__ = [
    "NoisyCounts",
    "Place",
    "Range",
    "count_range",
    "difference_range",
    "nonnegative",
    "quantile_place",
    "rows_range",
    "share_range",
]


@dataclass(frozen=True, slots=True)
class Range:
    """An estimate with the ends of its interval."""

    value: float
    low: float
    high: float

    def __post_init__(self) -> None:
        assert self.low <= self.value <= self.high


@dataclass(frozen=True, slots=True)
class Place:
    """Where a quantile lies: in a place, at a part of its width, between the first and the last place of its set."""

    place: int
    part: float
    first: int
    last: int

    def __post_init__(self) -> None:
        assert self.first <= self.place <= self.last
        assert 0 <= self.part <= 1


@dataclass(frozen=True, slots=True, eq=False)
class NoisyCounts:
    """Noisy counts of the bins of one histogram, with the law of their noise, which is independent.

    `scale` is the noise scale in counts, `rounding` the greatest rounding error of one of them.
    """

    counts: Floats
    law: Law
    scale: float
    rounding: float

    @staticmethod
    def of(sums: NoisySums, start: int, count: int) -> NoisyCounts:
        """Those of the cells from `start` on."""
        measurement = sums.measurement
        values = np.array([float(value) for value in sums.values[start : start + count, 0].tolist()])
        return NoisyCounts(
            values * measurement.grid,
            measurement.law,
            float(measurement.scale_of_sums),
            measurement.rounding * measurement.grid,
        )

    def part(self, start: int, stop: int) -> NoisyCounts:
        """Some of the bins."""
        return NoisyCounts(self.counts[start:stop], self.law, self.scale, self.rounding)

    def reach(self, weights: Floats, alpha: float) -> Floats:
        """What the weighted sums of the noise exceed with probability at most alpha in size, one for each row."""
        sizes = np.abs(weights)
        none = np.zeros_like(sizes)
        match self.law:
            case Law.NORMAL:
                laplace, variance = none, self.scale**2 * (sizes**2).sum(axis=-1)
            case Law.LAPLACE:
                laplace, variance = self.scale * sizes, np.zeros(len(sizes))
            case Law.OTHER:
                raise ValueError("a profile has noise whose sums have a known law")
            case _:
                assert_never(self.law)
        return weighted_quantiles(laplace, variance, self.rounding * sizes, alpha)


def count_range(counts: NoisyCounts, alpha: float) -> Range:
    """All units of a histogram's bins. Never below zero."""
    ones = np.ones((1, len(counts.counts)))
    total, reach = float(counts.counts.sum()), float(counts.reach(ones, alpha)[0])
    low = max(0.0, total - reach)
    high = max(low, total + reach)
    return Range(min(max(total, low), high), low, high)


def share_range(part: Range, whole: Range) -> Range | None:
    """A part of a whole, from ranges that each miss with half of the probability; None where the whole may be zero."""
    if whole.low <= 0:
        return None
    low, high = min(1.0, part.low / whole.high), min(1.0, part.high / whole.low)
    return Range(min(max(part.value / max(whole.value, whole.low), low), high), low, high)


def difference_range(whole: NoisyCounts, part: NoisyCounts, alpha: float) -> Range:
    """What the first bin of one histogram has more than that of another. Never below zero."""
    both = NoisyCounts(np.array([whole.counts[0], part.counts[0]]), whole.law, whole.scale, whole.rounding)
    reach = float(both.reach(np.ones((1, 2)), alpha)[0])
    left = float(both.counts[0] - both.counts[1])
    low = max(0.0, left - reach)
    high = max(low, left + reach)
    return Range(min(max(left, low), high), low, high)


def nonnegative(counts: Floats, total: float) -> Floats:
    """The nearest counts that are not negative and have that sum."""
    assert total > 0
    ordered = np.sort(counts)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(counts) + 1)
    last = int(np.nonzero(ordered > excess)[0][-1])
    result: Floats = np.maximum(counts - excess[last], 0.0)
    return result


def quantile_place(counts: NoisyCounts, level: float, alpha: float, *, units: Range) -> Place | None:
    """Where the quantile of that level lies among the places; None where there may be no unit at all.

    `units` is how many there are in all places, by bins with less noise than these have together.
    """
    assert 0 < level < 1
    if units.low <= 0:
        return None
    places = len(counts.counts)
    # Row j has 1 - level up to place j, and -level behind it.
    weights = np.where(np.tri(places, dtype=bool), 1 - level, -level)
    sums, reach = weights @ counts.counts, counts.reach(weights, alpha)
    not_before = np.concatenate([[True], sums[:-1] <= reach[:-1]])
    inside = np.nonzero(not_before & (sums >= -reach))[0]
    smooth = np.cumsum(nonnegative(counts.counts, units.value))
    wanted = level * smooth[-1]
    place = int(min(np.searchsorted(smooth, wanted), places - 1))
    before = float(smooth[place - 1]) if place else 0.0
    held = float(smooth[place]) - before
    part = min(max((wanted - before) / held, 0.0), 1.0) if held > 0 else 0.5
    first, last = (int(inside[0]), int(inside[-1])) if len(inside) else (place, place)
    if place < first:
        return Place(first, 0.0, first, last)
    if place > last:
        return Place(last, 1.0, first, last)
    return Place(place, part, first, last)


def rows_range(counts: NoisyCounts, least: Floats, greatest: Floats, alpha: float, *, units: Range) -> Range | None:
    """All rows of units whose numbers of rows lie between `least` and `greatest` of their bins; None without units."""
    if units.low <= 0:
        return None
    places = len(counts.counts)
    first = np.tri(places) * least
    low = max(0.0, float((first @ counts.counts - counts.reach(first, alpha / places)).max()))
    # Both are two-sided reaches at their level; each end needs one side only.
    high = float(greatest @ counts.counts + counts.reach(greatest[None, :], alpha)[0])
    value = float(nonnegative(counts.counts, units.value) @ ((least + greatest) / 2))
    high = max(low, high)
    return Range(min(max(value, low), high), low, high)
