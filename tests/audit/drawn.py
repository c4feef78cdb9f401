"""Drawn quantiles in the audit's own words: scores of places, the ranges that a unit moves them by, and their draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from mechanisms.measurements.drawn_ranks import GaussianRanks, LaplaceRanks
from mechanisms.samplers.selection import Race, best
from privacy.events import GaussianRangesEvent, LaplaceRangesEvent
from privacy.statistic import Statistic
from tests.audit.recorder import Call, FixedBits
from tests.audit.violation import require

__all__ = ["check_draws", "check_scores", "on_nodes_alone"]


def on_nodes_alone(statistic: Statistic) -> int:
    """How many of a cell's sums have noise of their own: all but the places among which quantiles are drawn."""
    return statistic.summed if statistic.drawn is None or statistic.tree is None else statistic.tree.nodes


def _asked(statistic: Statistic) -> list[tuple[Fraction, Fraction]]:
    """Of each draw the fraction p, and by how much of a row the rank that is asked for lies beside p times the rows."""
    assert statistic.drawn is not None
    between = [(p, Fraction(1, 2) - p) for p in statistic.drawn.between]
    return between + [(p, -Fraction(1, 2 * p.denominator)) for p in statistic.drawn.rows]


def _scores(places: Sequence[int], fraction: Fraction, beside: Fraction, worth: int) -> list[Fraction]:
    """How far the ranks of each place are from the one that is asked for, in integer units, below zero."""
    goal = fraction * sum(places) + beside * worth
    found, below = [], 0
    for count in places:
        found.append(-max(Fraction(0), below - goal, goal - below - count))
        below += count
    return found


def check_scores(call: Call, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> None:
    """One unit moves the law of each draw within the range that is charged: sums over groups, and of squares."""
    measurement, event = call.measurement, call.event
    statistic = measurement.statistic
    assert isinstance(measurement, LaplaceRanks | GaussianRanks)
    assert isinstance(event, LaplaceRangesEvent | GaussianRangesEvent)
    assert statistic.tree is not None
    total, squares = Fraction(0), Fraction(0)
    for one, two in pairs:
        if one == two:
            continue
        for fraction, beside in _asked(statistic):
            scale = measurement.scale_of_draw(fraction)
            sides = (_rounded(statistic, side, fraction, beside) for side in (one, two))
            moved = [a - b for a, b in zip(*sides, strict=True)]
            reached = (max(moved) - min(moved)) / scale
            require(reached <= measurement.greatest, "a draw changes by more than its range")
            total, squares = total + reached, squares + reached**2
    require(total <= event.ranges_l1, "the ranges of the draws add up to more than is charged")
    require(squares <= event.ranges_l2_squared, "the squares of the ranges add up to more than is charged")


def _rounded(statistic: Statistic, places: Sequence[int], fraction: Fraction, beside: Fraction) -> list[int]:
    """The scores as whole numbers, divided by a power of two."""
    assert statistic.tree is not None
    unit = 2 * fraction.denominator
    grid = _grid(statistic, fraction)
    return [-(int(-one * unit) // grid) for one in _scores(places, fraction, beside, statistic.tree.worth)]


def _change(statistic: Statistic, fraction: Fraction) -> int:
    """The most that one unit moves a score by, as a whole number."""
    return math.ceil(_widest(statistic, fraction) / 2 * 2 * fraction.denominator)


def _grid(statistic: Statistic, fraction: Fraction) -> int:
    """The greatest power of two of which a change has at least as many as rounding may not be seen in."""
    steps = 2**20 if statistic.fractional else 2**12
    grid = 1
    while _change(statistic, fraction) >= 2 * grid * steps:
        grid *= 2
    return grid


def _widest(statistic: Statistic, fraction: Fraction) -> Fraction:
    """By how much one unit may move two scores of a cell against each other, in integer units."""
    return 2 * max(fraction, 1 - fraction) * statistic.sensitivity.linf


def check_draws(call: Call, event: LaplaceRangesEvent | GaussianRangesEvent, bits: FixedBits) -> None:
    """Each place is the one that the exponential mechanism draws with the range that is charged."""
    measurement = call.measurement
    statistic = measurement.statistic
    assert isinstance(measurement, LaplaceRanks | GaussianRanks)
    assert statistic.tree is not None
    wide = statistic.tree.nodes
    for exact, noisy in zip(call.exact, call.noisy, strict=True):
        for (fraction, beside), found in zip(_asked(statistic), noisy[wide:], strict=True):
            change, scores = _change(statistic, fraction), _rounded(statistic, exact[wide:], fraction, beside)
            scale = measurement.scale_of_draw(fraction)
            least = 2 * -(-change // _grid(statistic, fraction)) / scale
            require(least <= measurement.greatest, "the noise of a draw is too little")
            (drawn,) = best(np.array(scores), count=1, scale=scale, race=Race.GUMBEL, bits=bits)
            require(drawn == found, "another place was drawn")
    require((event.ranges_l1, event.ranges_l2_squared) == measurement.ranges(), "the draws are not those charged")
