"""Noise on a tree of counts, and quantiles that are drawn beside it: laplace_ranks.md, gaussian_ranks.md, quantiles.md.

A draw is the exponential mechanism over places: the score of a place is how far its ranks are from the one that is
asked for. The tree takes an eighth of the price, for intervals and for how densely values lie.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from mechanisms.interval import Floats
from mechanisms.measurement import SCALE_BITS, Integers, Measurement, Perturbed, coarsen, narrow, root_up
from mechanisms.measurements.gaussian import GaussianMeasurement
from mechanisms.measurements.laplace import LaplaceMeasurement
from mechanisms.randomness import BitSource
from mechanisms.ranks import rank_deviation, slopes
from mechanisms.samplers import rounded_laplace
from mechanisms.samplers.selection import Race, best
from mechanisms.samplers.undecided import require_scale
from privacy.events import Event
from privacy.events.laplace import HALF_PI_UP
from privacy.events.ranges import GaussianRangesEvent, LaplaceRangesEvent
from privacy.numbers import dyadic_up
from privacy.statistic import Statistic

__all__ = ["DRAWN_SHARE", "Beside", "Draw", "DrawnRanks", "GaussianRanks", "LaplaceRanks", "draws_of", "rank_error"]

DRAWN_SHARE = Fraction(7, 8)
"""The part of its price with which a statistic's quantiles are drawn; the counts on its tree have the others."""

_FINE = 2**12
_FINE_PARTS = 2**20
"""Steps of a score that one unit may change it by, at least: scores are rounded to no more than that part of it. Where
a unit may change parts of it in many groups, rounding adds a step in each, so there it is finer."""

_SAFE = 2**62


@dataclass(frozen=True, slots=True)
class Draw:
    """One quantile that is drawn. Scores are in the 2q-th part of an integer unit, for a fraction p/q, over `grid`."""

    fraction: Fraction
    discrete: bool
    change: int
    """The greatest change of one score, after rounding."""
    grid: int
    """The power of two by which scores are divided."""
    blocks: int = 0
    """Of a sample-and-aggregate, how many answers of blocks the places hold: the median of these is asked for."""

    def scores(self, places: Integers, worth: int) -> Integers:
        """The scores of the places of one cell from its counts, zero for those that hold the rank, else below zero.

        Of n rows the rank of a value between rows is (n - 1) p + 1/2 rows from below, that of a row n p less a part of
        one that is too small to be a rank.
        """
        top, bottom = (1, 2) if self.blocks else (self.fraction.numerator, self.fraction.denominator)
        below = np.concatenate([np.zeros(1, dtype=places.dtype), np.cumsum(places)])
        if int(below[-1]) + worth >= _SAFE // (2 * bottom):
            below = below.astype(object)
        shift = -worth if self.discrete else (bottom - 2 * top) * worth
        ranks = 2 * bottom * below - 2 * top * below[-1] - shift
        away = np.maximum(np.maximum(ranks[:-1], -ranks[1:]), 0)
        result: Integers = -(away // self.grid)
        return result


def draws_of(statistic: Statistic) -> tuple[Draw, ...]:
    """The quantiles that a statistic draws, in the order of its coordinates."""
    drawn = statistic.drawn
    assert drawn is not None
    asked = [*((one, False) for one in drawn.between), *((one, True) for one in drawn.rows)]
    return tuple(_draw(statistic, fraction, discrete=discrete) for fraction, discrete in asked)


def _draw(statistic: Statistic, fraction: Fraction, *, discrete: bool) -> Draw:
    drawn = statistic.drawn
    assert drawn is not None
    if drawn.blocks:
        # A unit changes the answer of one block: of all places' ranks none by more than one, counted in quarters.
        return Draw(fraction, False, 4, 1, drawn.blocks)
    # A rank moves by at most the greater part, of the rows below it or above, of what a unit adds to a group.
    greater = 2 * max(fraction.numerator, fraction.denominator - fraction.numerator)
    change = math.ceil(greater * statistic.sensitivity.linf)
    fine = _FINE if _in_one_group(statistic) else _FINE_PARTS
    grid = 1 << max(0, (change // fine).bit_length() - 1)
    return Draw(fraction, discrete, -(-change // grid), grid)


class Beside(Measurement):
    """Noise on the counts of a tree, and quantiles that are released beside it, each as a place."""

    __slots__ = ()

    @abstractmethod
    def drawn(self, places: Integers, bits: BitSource) -> npt.NDArray[np.int64]:
        """The places of all quantiles (cells x quantiles), from all that is counted by finer place."""

    @abstractmethod
    def rank_deviation(self, draw: Draw, rows: Floats) -> Floats:
        """About how far the rank of a quantile is off, in rows, where a group has so many."""

    def rank_moves(self, draw: Draw, draws: int, rows: Floats, bits: BitSource) -> Floats:
        """Simulated errors of a rank in rows (draws x cells), for groups of so many rows."""
        laplace = rounded_laplace(scale=Fraction(2**20), count=draws * len(rows), bits=bits)
        return laplace.reshape(draws, len(rows)) * 2.0**-20 * self.rank_deviation(draw, rows) / math.sqrt(2)

    def perturb(self, exact: Integers, bits: BitSource) -> Perturbed:
        """Noisy counts on the nodes, and the place of each quantile. Called by the gateway only."""
        tree = self.statistic.tree
        assert tree is not None
        nodes, places = exact[:, : tree.nodes], exact[:, tree.nodes :]
        noise = self.noise(nodes.size, bits).reshape(nodes.shape)
        noisy = coarsen(narrow(nodes), self.grid) + noise
        return Perturbed(narrow(np.concatenate([noisy, self.drawn(places, bits)], axis=1)))

    def replicated(self, values: Integers, draws: int, bits: BitSource) -> Floats:
        """Fresh noise on the counts, and on the rank of each place that was drawn, as densely as values lie there."""
        statistic = self.statistic
        tree, drawn, encoding = statistic.tree, statistic.drawn, statistic.encoding
        assert tree is not None
        assert drawn is not None
        assert encoding is not None
        nodes = values[:, : tree.nodes]
        found = np.empty((draws, *values.shape))
        found[..., : tree.nodes] = self.noise(draws * nodes.size, bits).reshape(draws, *nodes.shape) + nodes.astype(
            float
        )
        rows = nodes.astype(np.float64) * float(self.grid * self.unit)
        whole = np.maximum(rows[:, : tree.branching].sum(axis=1), 1)
        for column, draw in enumerate(draws_of(statistic)):
            place = values[:, tree.nodes + column].astype(np.float64)
            used = encoding.highest + 1
            down, up = slopes(self, rows, draw.fraction, (place + 0.5) / drawn.finer, used)
            moved = self.rank_moves(draw, draws, whole, bits)
            places = place + drawn.finer * np.where(moved < 0, moved * down, moved * up)
            found[..., tree.nodes + column] = np.clip(places, 0, used * drawn.finer - 1)
        return found


class DrawnRanks(Beside):
    """What draws of the exponential mechanism have in common: how places are drawn, and what a unit changes in that."""

    __slots__ = ()

    greatest: Fraction
    """The greatest range within which one unit changes the law of one draw."""

    def ranges(self) -> tuple[Fraction, Fraction]:
        """The sum of the ranges of all draws in all groups, and that of their squares, at most."""
        return _ranges(self.statistic, self.greatest)

    def scale_of(self, draw: Draw) -> Fraction:
        """The scale of the Gumbel noise on the scores of one draw."""
        return dyadic_up(2 * draw.change / self.greatest, bits=SCALE_BITS)

    def scale_of_draw(self, fraction: Fraction) -> Fraction:
        """The same by the fraction alone, on which it depends."""
        return self.scale_of(next(draw for draw in draws_of(self.statistic) if draw.fraction == fraction))

    def prepare(self) -> None:
        """Besides, the scales of draws are checked."""
        super().prepare()
        for draw in draws_of(self.statistic):
            require_scale(self.scale_of(draw))

    def rank_scale(self, draw: Draw) -> float:
        """The scale of the Laplace law of a drawn quantile's rank, in rows, or in blocks.

        It is that of ranks that follow closely on one another; where they do not, most of the error is the distance
        between values.
        """
        tree = self.statistic.tree
        assert tree is not None
        fraction, worth = (Fraction(1, 2), 1) if draw.blocks else (draw.fraction, tree.worth)
        return float(self.scale_of(draw) * draw.grid / (2 * fraction.denominator * worth))

    def rank_deviation(self, draw: Draw, rows: Floats) -> Floats:
        """The same for every number of rows."""
        return np.full(np.shape(rows), math.sqrt(2) * self.rank_scale(draw))

    def drawn(self, places: Integers, bits: BitSource) -> npt.NDArray[np.int64]:
        """The places of all quantiles (cells x quantiles)."""
        draws = draws_of(self.statistic)
        found = np.zeros((len(places), len(draws)), dtype=np.int64)
        for cell, counts in enumerate(places):
            for column, draw in enumerate(draws):
                found[cell, column] = self.place_of(draw, counts, bits)
        return found

    def place_of(self, draw: Draw, counts: Integers, bits: BitSource) -> int:
        """The place of one quantile of one cell."""
        tree = self.statistic.tree
        assert tree is not None
        scores = draw.scores(counts, 1 if draw.blocks else tree.worth)
        (found,) = best(scores, count=1, scale=self.scale_of(draw), race=Race.GUMBEL, bits=bits)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceRanks(DrawnRanks, LaplaceMeasurement):
    """Exactly rounded Laplace noise on the counts, and drawn quantiles: laplace_ranks.md."""

    name: ClassVar[str] = "laplace_ranks"
    use: ClassVar[str] = "a few quantiles of many values"

    greatest: Fraction

    @classmethod
    def for_epsilon(cls, *, core: str, statistic: Statistic, share: Fraction, epsilon: Fraction) -> Self:
        """The measurement with the least noise whose event is at most `epsilon`. ValueError when out of range."""
        counts = LaplaceMeasurement.for_epsilon(
            core=core, statistic=statistic, share=share, epsilon=(1 - DRAWN_SHARE) * epsilon
        )
        whole, _ = _ranges(statistic, Fraction(1))
        greatest = 1 / dyadic_up(whole / (DRAWN_SHARE * epsilon), bits=SCALE_BITS)
        return cls(core=core, statistic=statistic, share=share, grid=counts.grid, scale=counts.scale, greatest=greatest)

    def event(self) -> Event:
        """Laplace noise of the scale that is drawn, and the ranges of the draws."""
        l1, l2_squared = self.ranges()
        return LaplaceRangesEvent(
            l1_sensitivity=self.l1_sensitivity, scale=self.scale_of_sums, ranges_l1=l1, ranges_l2_squared=l2_squared
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianRanks(DrawnRanks, GaussianMeasurement):
    """Exactly rounded Gaussian noise on the counts, and drawn quantiles: gaussian_ranks.md."""

    name: ClassVar[str] = "gaussian_ranks"
    use: ClassVar[str] = "a few quantiles of many values"

    greatest: Fraction

    @classmethod
    def for_mu_squared(cls, *, core: str, statistic: Statistic, share: Fraction, mu_squared: Fraction) -> Self:
        """The measurement with the least noise whose event is at most `mu_squared`. ValueError when out of range."""
        counts = GaussianMeasurement.for_mu_squared(
            core=core, statistic=statistic, share=share, mu_squared=(1 - DRAWN_SHARE) * mu_squared
        )
        _, squares = _ranges(statistic, Fraction(1))
        greatest = 1 / root_up(HALF_PI_UP / 4 * squares / (DRAWN_SHARE * mu_squared))
        return cls(core=core, statistic=statistic, share=share, grid=counts.grid, sigma=counts.sigma, greatest=greatest)

    def event(self) -> Event:
        """Gaussian noise of the variance that is drawn, and the ranges of the draws."""
        l1, l2_squared = self.ranges()
        return GaussianRangesEvent(
            l2_squared=self.l2_squared,
            variance=self.scale_of_sums**2,
            ranges_l1=l1,
            ranges_l2_squared=l2_squared,
        )


def rank_error(measurement: Measurement) -> float:
    """The greatest standard deviation of the rank that a quantile is answered from, in rows: drawn, or of a tree."""
    if not isinstance(measurement, DrawnRanks) or any(draw.blocks for draw in draws_of(measurement.statistic)):
        return rank_deviation(measurement)
    return math.sqrt(2) * max(measurement.rank_scale(draw) for draw in draws_of(measurement.statistic))


def _ranges(statistic: Statistic, greatest: Fraction) -> tuple[Fraction, Fraction]:
    """Sums of ranges, and of their squares, over all draws in all groups, where none is above the greatest.

    One level of the tree has a part of the whole change, in L1 and in squares; in a group a unit adds at most `linf`,
    of which a part t is a part t of the range, and a step more where scores are rounded.
    """
    bound, tree, drawn = statistic.sensitivity, statistic.tree, statistic.drawn
    assert tree is not None
    assert drawn is not None
    if drawn.blocks:
        # A unit is in one block of one group.
        return drawn.count * greatest, drawn.count * greatest**2
    l1 = bound.l1 / (tree.levels * bound.linf)
    l2_squared = bound.l2_squared / (tree.levels * bound.linf**2)
    if not _in_one_group(statistic):
        step, groups = Fraction(1, _FINE_PARTS), Fraction(bound.l0, statistic.coordinates)
        l1 += groups * step
        l2_squared = (root_up(l2_squared) + root_up(groups) * step) ** 2
    return drawn.count * greatest * l1, drawn.count * greatest**2 * l2_squared


def _in_one_group(statistic: Statistic) -> bool:
    """Whether all that a unit changes is one row: one node of each level, in one group."""
    assert statistic.tree is not None
    return statistic.sensitivity.l0 == statistic.tree.levels and not statistic.fractional
