"""Quantiles by a mechanism that was named, beside noise on a tree: smooth_sensitivity.md, sample_and_aggregate.md.

The tree takes an eighth of the price, as where quantiles are drawn from ranks: it says the interval, whether there are
rows, and how densely values lie.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from mechanisms.interval import Floats
from mechanisms.measurement import SCALE_BITS, Integers, root_up
from mechanisms.measurements.drawn_ranks import (
    DRAWN_SHARE,
    Beside,
    Draw,
    DrawnRanks,
    GaussianRanks,
    LaplaceRanks,
    draws_of,
)
from mechanisms.measurements.gaussian import GaussianMeasurement
from mechanisms.measurements.laplace import LaplaceMeasurement
from mechanisms.randomness import BitSource
from mechanisms.samplers.student import QUANTILE_68, student_floats
from mechanisms.smooth_sensitivity import BETA_MIN, SmoothStudent
from privacy.events import Event, GaussianFollowedEvent, LaplaceFollowedEvent
from privacy.events.laplace import HALF_PI_UP
from privacy.numbers import dyadic_up
from privacy.statistic import Statistic

__all__ = ["GaussianBlocks", "GaussianSmooth", "LaplaceBlocks", "LaplaceSmooth"]


class _Smooth(Beside):
    """What both smooth ones have in common: Student's noise on each quantile, of which each unit has one row."""

    __slots__ = ()

    epsilon: Fraction
    """What one quantile costs of a pure price."""

    @property
    def noise_of_quantile(self) -> SmoothStudent:
        """The noise of one quantile, and its price."""
        return SmoothStudent(epsilon=self.epsilon)

    def prepare(self) -> None:
        """Besides, the rate of the sensitivity is checked."""
        super().prepare()
        if self.noise_of_quantile.beta < BETA_MIN:
            raise ValueError("the price is too small for noise that follows a smooth sensitivity")

    def drawn(self, places: Integers, bits: BitSource) -> npt.NDArray[np.int64]:
        """The places of all quantiles (cells x quantiles), held to those that values can be in."""
        statistic, draws = self.statistic, draws_of(self.statistic)
        found = np.zeros((len(places), len(draws)), dtype=np.int64)
        used, tree = _used(statistic), statistic.tree
        assert tree is not None
        assert not statistic.fractional
        for cell, counts in enumerate(places):
            rows = counts[:used] // tree.worth  # whole: a row is worth as much, wherever it is
            for column, draw in enumerate(draws):
                answer = self.noise_of_quantile.answer(rows, draw.fraction, bits)
                found[cell, column] = min(max(answer, 0), used - 1)
        return found

    def rank_deviation(self, draw: Draw, rows: Floats) -> Floats:
        """What 68 % of draws stay within, where rows lie evenly: the greatest e^(-beta k) (2 k + 1) q, over alpha."""
        noise, part = self.noise_of_quantile, float(max(draw.fraction, 1 - draw.fraction))
        beta = float(noise.beta)
        most = np.maximum((np.asarray(rows, dtype=np.float64) / part - 1) / 2, 0)
        distance = np.minimum(max(1 / beta - 0.5, 0), most)
        result: Floats = QUANTILE_68 / float(noise.alpha) * part * (2 * distance + 1) * np.exp(-beta * distance)
        return result

    def rank_moves(self, draw: Draw, draws: int, rows: Floats, bits: BitSource) -> Floats:
        """Student's noise of the same spread."""
        noise = student_floats(draws * len(rows), bits).reshape(draws, len(rows))
        return noise * self.rank_deviation(draw, rows) / QUANTILE_68


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceSmooth(_Smooth, LaplaceMeasurement):
    """Exactly rounded Laplace noise on the counts, and quantiles by smooth sensitivity: smooth_sensitivity.md."""

    name: ClassVar[str] = "laplace_smooth"
    use: ClassVar[str] = "quantiles by smooth sensitivity, where they are asked for by name"

    epsilon: Fraction

    @classmethod
    def for_epsilon(cls, *, core: str, statistic: Statistic, share: Fraction, epsilon: Fraction) -> Self:
        """The measurement with the least noise whose event is at most `epsilon`. ValueError when out of range."""
        counts = LaplaceMeasurement.for_epsilon(
            core=core, statistic=statistic, share=share, epsilon=(1 - DRAWN_SHARE) * epsilon
        )
        each = 1 / dyadic_up(_count(statistic) / (DRAWN_SHARE * epsilon), bits=SCALE_BITS)
        return cls(core=core, statistic=statistic, share=share, grid=counts.grid, scale=counts.scale, epsilon=each)

    def event(self) -> Event:
        """Laplace noise of the scale that is drawn, and pure values after it."""
        return LaplaceFollowedEvent(
            l1_sensitivity=self.l1_sensitivity,
            scale=self.scale_of_sums,
            epsilon=self.epsilon,
            count=_count(self.statistic),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianSmooth(_Smooth, GaussianMeasurement):
    """Exactly rounded Gaussian noise on the counts, and quantiles by smooth sensitivity: smooth_sensitivity.md."""

    name: ClassVar[str] = "gaussian_smooth"
    use: ClassVar[str] = "quantiles by smooth sensitivity, where they are asked for by name"

    epsilon: Fraction

    @classmethod
    def for_mu_squared(cls, *, core: str, statistic: Statistic, share: Fraction, mu_squared: Fraction) -> Self:
        """The measurement with the least noise whose event is at most `mu_squared`. ValueError when out of range."""
        counts = GaussianMeasurement.for_mu_squared(
            core=core, statistic=statistic, share=share, mu_squared=(1 - DRAWN_SHARE) * mu_squared
        )
        # What is epsilon-DP has mu squared of at most pi / 2 times epsilon squared.
        each = 1 / root_up(HALF_PI_UP * _count(statistic) / (DRAWN_SHARE * mu_squared))
        return cls(core=core, statistic=statistic, share=share, grid=counts.grid, sigma=counts.sigma, epsilon=each)

    def event(self) -> Event:
        """Gaussian noise of the variance that is drawn, and pure values after it."""
        return GaussianFollowedEvent(
            l2_squared=self.l2_squared,
            variance=self.scale_of_sums**2,
            epsilon=self.epsilon,
            count=_count(self.statistic),
        )


class _Blocks(DrawnRanks):
    """What both block ones have in common: the median of the answers of blocks, drawn by its rank among them."""

    __slots__ = ()

    def drawn(self, places: Integers, bits: BitSource) -> npt.NDArray[np.int64]:
        """The places of all quantiles (cells x quantiles). Blocks without rows answer the middle of the range."""
        statistic = self.statistic
        assert statistic.drawn is not None
        blocks, used, counted = statistic.drawn.blocks, _used(statistic), statistic.places
        draws = draws_of(statistic)
        found = np.zeros((len(places), len(draws)), dtype=np.int64)
        for cell, counts in enumerate(places):
            for column, draw in enumerate(draws):
                start = counted * (1 + column)
                answers = counts[start : start + used].copy()
                answers[used // 2] += blocks - answers.sum()
                found[cell, column] = self.place_of(draw, answers, bits)
        return found

    def rank_deviation(self, draw: Draw, rows: Floats) -> Floats:
        """Of noise among the answers of blocks, and of these around the quantile of all rows, in rows.

        A block of m rows has its quantile p (1 - p) m rows squared off, so one of n rows and B blocks p (1 - p) n B
        rows of all. Answers near the median of B normal ones lie the root of 2 pi over B of their spread apart, and
        that median is pi / 2 - 1 of a B-th of their variance off the mean of them.
        """
        part = float(draw.fraction * (1 - draw.fraction))
        total = np.maximum(np.asarray(rows, dtype=np.float64), 1.0)
        spread = part * total * draw.blocks
        noise = 2 * self.rank_scale(draw) ** 2 * (2 * math.pi / draw.blocks**2)
        result: Floats = np.sqrt(spread * (noise + (math.pi / 2 - 1) / draw.blocks))
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceBlocks(_Blocks, LaplaceRanks):
    """Exactly rounded Laplace noise on the counts, and a private median of block answers: sample_and_aggregate.md."""

    name: ClassVar[str] = "laplace_blocks"
    use: ClassVar[str] = "quantiles by sample-and-aggregate, where they are asked for by name"


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianBlocks(_Blocks, GaussianRanks):
    """Exactly rounded Gaussian noise on the counts, and a private median of block answers: sample_and_aggregate.md."""

    name: ClassVar[str] = "gaussian_blocks"
    use: ClassVar[str] = "quantiles by sample-and-aggregate, where they are asked for by name"


def _count(statistic: Statistic) -> Fraction:
    assert statistic.drawn is not None
    return Fraction(statistic.drawn.count)


def _used(statistic: Statistic) -> int:
    """The finer places that values can be in."""
    assert statistic.drawn is not None
    assert statistic.encoding is not None
    return (statistic.encoding.highest + 1) * statistic.drawn.finer
