"""Gaussian noise on sums: gaussian.md."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from mechanisms.interval import Floats, gaussian_two_sided, rounded_gaussian_variance
from mechanisms.measurement import Law, Measurement, grid_step, plain_text, root_up
from mechanisms.randomness import BitSource
from mechanisms.samplers import rounded_gaussian
from mechanisms.samplers.undecided import require_scale
from privacy.events import Event, GaussianEvent
from privacy.statistic import Statistic

__all__ = ["GaussianMeasurement"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianMeasurement(Measurement):
    """Exactly rounded Gaussian noise on every sum: gaussian.md. `sigma` is in units of the grid."""

    name: ClassVar[str] = "gaussian"
    law: ClassVar[Law] = Law.NORMAL
    loss: ClassVar[str] = "Gaussian and zero-concentrated"
    use: ClassVar[str] = "counts, sums and moments"

    sigma: Fraction

    @classmethod
    def for_mu_squared(
        cls, *, core: str, statistic: Statistic, share: Fraction, mu_squared: Fraction
    ) -> GaussianMeasurement:
        """The measurement with the least noise whose event is at most `mu_squared`. ValueError when out of range."""
        bound = statistic.sensitivity
        scale = root_up(bound.l2_squared / mu_squared)
        grid = grid_step(change=root_up(bound.l2_squared), entries=root_up(Fraction(bound.l0)), scale=scale)
        sigma = root_up(_l2_squared_with_rounding(statistic, grid) / mu_squared / grid**2)
        require_scale(sigma)
        return cls(core=core, statistic=statistic, share=share, grid=grid, sigma=sigma)

    @property
    def l2_squared(self) -> Fraction:
        """Square of the greatest L2 change of the rounded sums, in squared integer units."""
        return _l2_squared_with_rounding(self.statistic, self.grid)

    def event(self) -> Event:
        """Gaussian noise of the variance that is drawn."""
        return GaussianEvent(l2_squared=self.l2_squared, variance=self.scale_of_sums**2)

    def noise(self, count: int, bits: BitSource) -> npt.NDArray[np.int64]:
        """Exactly rounded Gaussian noise."""
        return rounded_gaussian(sigma=self.sigma, count=count, bits=bits)

    def quantile(self, weights: Floats, alpha: float) -> Floats:
        """A weighted sum of normals is normal."""
        spread = np.sqrt((weights**2).sum(axis=-1))
        result: Floats = gaussian_two_sided(alpha) * float(self.sigma) * spread + self.rounding * weights.sum(axis=-1)
        return result

    def tail(self, weights: Floats, reach: float) -> Floats:
        """A weighted sum of normals is normal."""
        spread = float(self.sigma) * np.sqrt((weights**2).sum(axis=-1))
        return np.array([math.erfc(reach / (math.sqrt(2) * one)) for one in spread])

    def quantile_single(self, alpha: float) -> int:
        """P(|round(sigma Z)| > t) = P(|Z| > (t + 1/2) / sigma)."""
        return max(0, math.ceil(float(self.sigma) * gaussian_two_sided(alpha) * (1 + 1e-12) - 0.5))

    def variance(self) -> float:
        """Of the rounded noise."""
        return rounded_gaussian_variance(float(self.sigma))

    @property
    def scale_of_sums(self) -> Fraction:
        """The standard deviation sigma in integer units."""
        return self.sigma * self.grid

    @property
    def sensitivity_text(self) -> str:
        """L2, in the unit of the statistic."""
        return f"l2 {plain_text(root_up(self.l2_squared) * self.unit)}"


def _l2_squared_with_rounding(statistic: Statistic, grid: int) -> Fraction:
    """(L2 + sqrt(l0) grid)^2, rounded up; exact on the finest grid."""
    bound = statistic.sensitivity
    if grid == 1:
        return bound.l2_squared
    return bound.l2_squared + 2 * grid * root_up(bound.l2_squared * bound.l0) + bound.l0 * grid**2
