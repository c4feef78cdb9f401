"""Laplace noise on sums: laplace.md."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from mechanisms.interval import (
    MOST_FRACTIONS,
    Floats,
    laplace_sum_quantiles,
    laplace_sum_tail,
    laplace_sum_tail_inverted,
    rounded_laplace_variance,
)
from mechanisms.linear import weighted_quantiles
from mechanisms.measurement import SCALE_BITS, Law, Measurement, grid_step, plain_text
from mechanisms.randomness import BitSource
from mechanisms.samplers import rounded_laplace
from mechanisms.samplers.undecided import require_scale
from privacy.events import Event, LaplaceEvent
from privacy.numbers import dyadic_up
from privacy.statistic import Statistic

__all__ = ["LaplaceMeasurement"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceMeasurement(Measurement):
    """Exactly rounded Laplace noise on every sum: laplace.md. `scale` is in units of the grid."""

    name: ClassVar[str] = "laplace"
    law: ClassVar[Law] = Law.LAPLACE
    loss: ClassVar[str] = "pure"
    use: ClassVar[str] = "counts, sums and moments"

    scale: Fraction

    @classmethod
    def for_epsilon(cls, *, core: str, statistic: Statistic, share: Fraction, epsilon: Fraction) -> Self:
        """The measurement with the least noise whose event is at most `epsilon`. ValueError when out of range."""
        bound = statistic.sensitivity
        grid = grid_step(change=bound.l1, entries=Fraction(bound.l0), scale=bound.l1 / epsilon)
        l1 = _l1_with_rounding(statistic, grid)
        scale = dyadic_up(l1 / epsilon / grid, bits=SCALE_BITS)
        require_scale(scale)
        return cls(core=core, statistic=statistic, share=share, grid=grid, scale=scale)

    @property
    def l1_sensitivity(self) -> Fraction:
        """Greatest L1 change of the rounded sums, in integer units."""
        return _l1_with_rounding(self.statistic, self.grid)

    def event(self) -> Event:
        """Laplace noise of the scale that is drawn."""
        return LaplaceEvent(l1_sensitivity=self.l1_sensitivity, scale=self.scale_of_sums)

    def noise(self, count: int, bits: BitSource) -> npt.NDArray[np.int64]:
        """Exactly rounded Laplace noise."""
        return rounded_laplace(scale=self.scale, count=count, bits=bits)

    def quantile(self, weights: Floats, alpha: float) -> Floats:
        """Closed form of a weighted sum of independent Laplace variables; of more than five, from above."""
        if weights.shape[-1] > MOST_FRACTIONS:
            nothing = np.zeros(len(weights))
            spread = weighted_quantiles(weights, nothing, nothing[:, None], alpha)
        else:
            spread = laplace_sum_quantiles(weights, alpha)
        result: Floats = float(self.scale) * spread + self.rounding * weights.sum(axis=-1)
        return result

    def tail(self, weights: Floats, reach: float) -> Floats:
        """Closed form of a weighted sum of independent Laplace variables; of more than five, by inversion."""
        if weights.shape[-1] > MOST_FRACTIONS:
            return laplace_sum_tail_inverted(weights * float(self.scale), reach)
        return laplace_sum_tail(weights * float(self.scale), reach)

    def quantile_single(self, alpha: float) -> int:
        """P(|round(b Z)| > t) = exp(-(t + 1/2) / b)."""
        return max(0, math.ceil(float(self.scale) * math.log(1 / alpha) * (1 + 1e-12) - 0.5))

    def variance(self) -> float:
        """Of the rounded noise."""
        return rounded_laplace_variance(float(self.scale))

    @property
    def scale_of_sums(self) -> Fraction:
        """The scale b in integer units."""
        return self.scale * self.grid

    @property
    def sensitivity_text(self) -> str:
        """L1, in the unit of the statistic."""
        return f"l1 {plain_text(self.l1_sensitivity * self.unit)}"


def _l1_with_rounding(statistic: Statistic, grid: int) -> Fraction:
    bound = statistic.sensitivity
    return bound.l1 if grid == 1 else bound.l1 + bound.l0 * grid
