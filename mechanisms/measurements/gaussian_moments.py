"""Gaussian noise on Bernstein sums, less of it on their middle coordinates: gaussian_moments.md."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from mechanisms.interval import Floats, gaussian_two_sided, rounded_gaussian_variance
from mechanisms.measurement import grid_step, root_up
from mechanisms.measurements.gaussian import GaussianMeasurement
from mechanisms.moment_weights import ROUNDED_FROM, squares_of
from mechanisms.randomness import BitSource
from mechanisms.samplers import rounded_gaussian
from mechanisms.samplers.undecided import require_scale
from privacy.statistic import Statistic

__all__ = ["GaussianMoments"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianMoments(GaussianMeasurement):
    """Exactly rounded Gaussian noise on Bernstein sums: gaussian_moments.md.

    `sigma` is that of the outer coordinates; a coordinate whose factor has the square s has the noise of sigma over the
    root of s. `squares` has one for each coordinate.
    """

    name: ClassVar[str] = "gaussian_moments"
    use: ClassVar[str] = "moments of degree two and more, and products of values"

    squares: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        assert len(self.squares) == self.statistic.coordinates

    @classmethod
    def for_mu_squared(cls, *, core: str, statistic: Statistic, share: Fraction, mu_squared: Fraction) -> Self:
        """The measurement with the least noise whose event is at most `mu_squared`. ValueError when out of range."""
        squares = squares_of(statistic) or (Fraction(1),) * statistic.coordinates
        change = root_up(statistic.sensitivity.l2_squared)
        entries = root_up(_entries(statistic, squares))
        grid = grid_step(change=change, entries=entries, scale=root_up(change**2 / mu_squared))
        sigma = root_up(_l2_squared(statistic, squares, grid) / mu_squared / grid**2)
        require_scale(sigma)
        return cls(core=core, statistic=statistic, share=share, grid=grid, sigma=sigma, squares=squares)

    @property
    def l2_squared(self) -> Fraction:
        """Square of the greatest L2 change of the rounded sums, each times its factor, in squared integer units."""
        return _l2_squared(self.statistic, self.squares, self.grid)

    @property
    def sigmas(self) -> tuple[Fraction, ...]:
        """The standard deviation of the noise of each coordinate, in units of the grid, rounded up."""
        of = {square: self.sigma if square == 1 else root_up(self.sigma**2 / square) for square in set(self.squares)}
        return tuple(of[square] for square in self.squares)

    def noise(self, count: int, bits: BitSource) -> npt.NDArray[np.int64]:
        """Noise of cell after cell, in the order of the coordinates; equal scales are drawn together."""
        sigmas = self.sigmas
        places = np.arange(count) % len(sigmas)
        found = np.empty(count, dtype=np.int64)
        for sigma in dict.fromkeys(sigmas):
            own = np.array([one == sigma for one in sigmas])[places]
            found[own] = rounded_gaussian(sigma=sigma, count=int(own.sum()), bits=bits)
        return found

    def scaled(self, weights: Floats) -> Floats:
        """Each coordinate's weight times its own sigma."""
        assert weights.shape[-1] == len(self.squares)
        own: Floats = weights * np.array([float(sigma) for sigma in self.sigmas])
        return own

    def quantile(self, weights: Floats, alpha: float) -> Floats:
        """A weighted sum of normals is normal."""
        spread = np.sqrt((self.scaled(weights) ** 2).sum(axis=-1))
        result: Floats = gaussian_two_sided(alpha) * spread + self.rounding * weights.sum(axis=-1)
        return result

    def tail(self, weights: Floats, reach: float) -> Floats:
        """A weighted sum of normals is normal."""
        spread = np.sqrt((self.scaled(weights) ** 2).sum(axis=-1))
        return np.array([math.erfc(reach / (math.sqrt(2) * one)) for one in spread])

    def variances(self, weights: Floats) -> Floats:
        """Of the rounded noise of each coordinate."""
        assert weights.shape[-1] == len(self.squares)
        own = np.array([rounded_gaussian_variance(float(sigma)) for sigma in self.sigmas])
        result: Floats = (weights**2 * own).sum(axis=-1)
        return result


def _entries(statistic: Statistic, squares: tuple[Fraction, ...]) -> Fraction:
    """The squared factors of all entries that one unit may change."""
    cells = -(-statistic.sensitivity.l0 // statistic.coordinates)
    return cells * sum(squares, Fraction(0))


def _l2_squared(statistic: Statistic, squares: tuple[Fraction, ...], grid: int) -> Fraction:
    """(L2 + moved * root of the squared factors of all entries)^2, rounded up; exact where nothing is rounded.

    An entry is moved by less than two integer units where its unit is scaled, and by less than one step of the grid.
    """
    bound = statistic.sensitivity
    moved = (2 if statistic.row_units >= ROUNDED_FROM else 0) + (0 if grid == 1 else grid)
    if not moved:
        return bound.l2_squared
    entries = _entries(statistic, squares)
    return bound.l2_squared + 2 * moved * root_up(bound.l2_squared * entries) + entries * moved**2
