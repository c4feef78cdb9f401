"""Groups selected by the number of rows in their own moments: gaussian_moments_threshold.md and its Laplace twin."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from mechanisms.interval import Floats
from mechanisms.measurement import Integers, Law, Measurement, Perturbed
from mechanisms.measurements.gaussian_moments import GaussianMoments
from mechanisms.measurements.gaussian_pairs import GaussianPairs
from mechanisms.measurements.laplace import LaplaceMeasurement
from mechanisms.own_threshold import gaussian_reach, laplace_reach, laplace_tail, normal_tail, shown_alphas
from mechanisms.randomness import BitSource
from privacy.events import Event, GaussianThresholdEvent
from privacy.events.laplace import LaplaceThresholdEvent
from privacy.statistic import Statistic

__all__ = ["GaussianMomentsThreshold", "GaussianPairsThreshold", "LaplaceMomentsThreshold"]


class _OwnCount(Measurement):
    """What both have in common: all coordinates of a cell add up to its rows, and those are compared."""

    __slots__ = ()

    @property
    def reach(self) -> Fraction:
        """What the noise of all coordinates of a cell together exceeds with the chance of one group, at most."""
        raise NotImplementedError

    @property
    def count_tail(self) -> Callable[[Floats], Floats]:
        """P(that noise > x), before it is rounded."""
        raise NotImplementedError

    @property
    def fuzz(self) -> Fraction:
        """By how much rounding moves the number of rows of a cell at most."""
        return self.statistic.coordinates * Fraction(self.rounding)

    @property
    def threshold(self) -> int:
        """The least noisy number of rows that is released, in units of the grid.

        It starts from the most that one unit has in one cell, which bounds all coordinates of the cell together.
        """
        return math.ceil(self.statistic.sensitivity.linf / self.grid + self.fuzz + self.reach)

    def half_shown(self, groups: int) -> int:
        """The threshold, in units of one row each: what a unit adds to a group does not depend on its other groups."""
        return math.ceil(Fraction(self.threshold * self.grid) / self.statistic.row_units)

    def shown_alphas(self, noisy: Integers, alpha: float) -> Floats:
        """By how near each cell is to the threshold."""
        return shown_alphas(
            noisy.sum(axis=1).astype(np.float64),
            least=float(Fraction(self.statistic.row_units, self.grid)),
            threshold=float(self.threshold),
            fuzz=float(self.fuzz),
            tail=self.count_tail,
            alpha=alpha,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianMomentsThreshold(_OwnCount, GaussianMoments):
    """Gaussian noise on the moments of each group that occurs, and a threshold on its rows."""

    name: ClassVar[str] = "gaussian_moments_threshold"
    law: ClassVar[Law] = Law.OTHER
    loss: ClassVar[str] = "approximate"
    use: ClassVar[str] = "keys, by the rows of moments that are measured anyway"
    selects: ClassVar[bool] = True

    delta: Fraction
    groups_per_unit: int

    @classmethod
    def selecting(
        cls,
        *,
        core: str,
        statistic: Statistic,
        share: Fraction,
        mu_squared: Fraction,
        delta: Fraction,
        groups_per_unit: int,
    ) -> Self:
        """The measurement with the least noise whose Gaussian is at most `mu_squared`. ValueError when out of range."""
        made = GaussianMoments.for_mu_squared(core=core, statistic=statistic, share=share, mu_squared=mu_squared)
        return cls(
            core=core,
            statistic=statistic,
            share=share,
            grid=made.grid,
            sigma=made.sigma,
            squares=made.squares,
            delta=delta,
            groups_per_unit=groups_per_unit,
        )

    @property
    def count_variance(self) -> Fraction:
        """Of the noise of all coordinates together."""
        return sum((sigma**2 for sigma in self.sigmas), Fraction(0))

    @property
    def reach(self) -> Fraction:
        """Of a normal number."""
        return gaussian_reach(variance=self.count_variance, groups_per_unit=self.groups_per_unit, delta=self.delta)

    @property
    def count_tail(self) -> Callable[[Floats], Floats]:
        """Of a normal number."""
        return normal_tail(math.sqrt(self.count_variance))

    def prepare(self) -> None:
        """The threshold."""
        assert self.threshold >= 1

    def event(self) -> Event:
        """The Gaussian, and the delta of the threshold."""
        return GaussianThresholdEvent(l2_squared=self.l2_squared, variance=self.scale_of_sums**2, delta=self.delta)

    def perturb(self, exact: Integers, bits: BitSource) -> Perturbed:
        """Noisy moments, and which groups have rows enough."""
        # Named in full: with slots, the zero-argument form does not find the class that was rebuilt.
        return _kept(GaussianMoments.perturb(self, exact, bits).sums, self.threshold)


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianPairsThreshold(_OwnCount, GaussianPairs):
    """Gaussian noise on averages of two columns in each group that occurs, and a threshold on the count they share."""

    name: ClassVar[str] = "gaussian_pairs_threshold"
    law: ClassVar[Law] = Law.OTHER
    loss: ClassVar[str] = "approximate"
    use: ClassVar[str] = "keys, by the count that averages of two columns share"
    selects: ClassVar[bool] = True

    delta: Fraction
    groups_per_unit: int

    @classmethod
    def selecting(
        cls,
        *,
        core: str,
        statistic: Statistic,
        share: Fraction,
        mu_squared: Fraction,
        delta: Fraction,
        groups_per_unit: int,
    ) -> Self:
        """The measurement with the least noise whose Gaussian is at most `mu_squared`. ValueError when out of range."""
        made = GaussianPairs.for_mu_squared(core=core, statistic=statistic, share=share, mu_squared=mu_squared)
        return cls(
            core=core,
            statistic=statistic,
            share=share,
            grid=made.grid,
            sigma=made.sigma,
            squares=made.squares,
            delta=delta,
            groups_per_unit=groups_per_unit,
        )

    @property
    def count_variance(self) -> Fraction:
        """All sums of a cell add up to four times the first form, in which no other draw is."""
        return (4 * self.sigmas[0]) ** 2

    @property
    def fuzz(self) -> Fraction:
        """Four times that of the form: its own rounding, and its noise's."""
        return Fraction(4)

    @property
    def reach(self) -> Fraction:
        """Of a normal number."""
        return gaussian_reach(variance=self.count_variance, groups_per_unit=self.groups_per_unit, delta=self.delta)

    @property
    def count_tail(self) -> Callable[[Floats], Floats]:
        """Of a normal number."""
        return normal_tail(math.sqrt(self.count_variance))

    def prepare(self) -> None:
        """The threshold."""
        assert self.threshold >= 1

    def event(self) -> Event:
        """The Gaussian, and the delta of the threshold."""
        return GaussianThresholdEvent(l2_squared=self.l2_squared, variance=self.scale_of_sums**2, delta=self.delta)

    def perturb(self, exact: Integers, bits: BitSource) -> Perturbed:
        """Noisy sums, and which groups have rows enough."""
        return _kept(GaussianPairs.perturb(self, exact, bits).sums, self.threshold)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceMomentsThreshold(_OwnCount, LaplaceMeasurement):
    """Laplace noise on the moments of each group that occurs, one for each unit, and a threshold on its rows."""

    name: ClassVar[str] = "laplace_moments_threshold"
    law: ClassVar[Law] = Law.OTHER
    loss: ClassVar[str] = "approximate"
    use: ClassVar[str] = "keys, one group per unit, by the rows of moments that are measured anyway"
    selects: ClassVar[bool] = True

    delta: Fraction

    @classmethod
    def selecting(cls, *, core: str, statistic: Statistic, share: Fraction, epsilon: Fraction, delta: Fraction) -> Self:
        """The measurement with the least noise whose Laplace part is at most `epsilon`. ValueError out of range."""
        made = LaplaceMeasurement.for_epsilon(core=core, statistic=statistic, share=share, epsilon=epsilon)
        return cls(core=core, statistic=statistic, share=share, grid=made.grid, scale=made.scale, delta=delta)

    @property
    def reach(self) -> Fraction:
        """Of a sum of as many Laplace variables as there are coordinates; a unit has one group."""
        several = self.statistic.coordinates
        return self.scale * laplace_reach(several=several, groups_per_unit=1, delta=self.delta)

    @property
    def count_tail(self) -> Callable[[Floats], Floats]:
        """Of such a sum."""
        return laplace_tail(self.statistic.coordinates, float(self.scale))

    def prepare(self) -> None:
        """The threshold."""
        assert self.threshold >= 1

    def event(self) -> Event:
        """The Laplace noise, and the delta of the threshold."""
        return LaplaceThresholdEvent(l1_sensitivity=self.l1_sensitivity, scale=self.scale_of_sums, delta=self.delta)

    def perturb(self, exact: Integers, bits: BitSource) -> Perturbed:
        """Noisy moments, and which groups have rows enough."""
        return _kept(LaplaceMeasurement.perturb(self, exact, bits).sums, self.threshold)


def _kept(noisy: Integers, threshold: int) -> Perturbed:
    return Perturbed(noisy, (noisy.sum(axis=1) >= threshold).astype(np.bool_))
