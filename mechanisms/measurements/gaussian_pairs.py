"""Gaussian noise on averages of two columns, which share one count: gaussian_pairs.md."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from mechanisms.interval import Floats, gaussian_two_sided, rounded_gaussian_variance
from mechanisms.measurement import Integers, Perturbed, coarsen, grid_step, narrow, root_up
from mechanisms.measurements.gaussian import GaussianMeasurement
from mechanisms.moment_weights import PAIR_SQUARES
from mechanisms.pair_forms import FORMS, forms_of, own_sigmas
from mechanisms.randomness import BitSource
from mechanisms.samplers import rounded_gaussian
from mechanisms.samplers.undecided import require_scale
from privacy.statistic import Statistic

__all__ = ["GaussianPairs"]

_STEPS = 4
"""Steps of the released sums' grid to one of the forms': sums are quarters of whole combinations of forms."""

_MOVED = 8
"""By how many integer units a form moves at most where the four sums of a scaled unit are each off by less than two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianPairs(GaussianMeasurement):
    """Exactly rounded Gaussian noise on the four forms of pairs, from which their sums follow: gaussian_pairs.md.

    `sigma` is the deviation of a form whose factor is 1, in units of the grid of the sums; `squares` are the squared
    factors of the forms.
    """

    name: ClassVar[str] = "gaussian_pairs"
    use: ClassVar[str] = "averages of two columns, which share one count"

    squares: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        assert len(self.squares) == self.statistic.coordinates == len(FORMS)
        assert sum(self.squares) <= 1

    @classmethod
    def for_mu_squared(cls, *, core: str, statistic: Statistic, share: Fraction, mu_squared: Fraction) -> Self:
        """The measurement with the least noise whose event is at most `mu_squared`. ValueError when out of range."""
        change = root_up(statistic.sensitivity.l2_squared)
        entries = root_up(_cells(statistic))
        grid = max(1, grid_step(change=change, entries=entries, scale=root_up(change**2 / mu_squared)) // _STEPS)
        sigma = root_up(_l2_squared(statistic, grid) / mu_squared / grid**2)
        made = cls(core=core, statistic=statistic, share=share, grid=grid, sigma=sigma, squares=PAIR_SQUARES)
        for own in (sigma, *made.sigmas):
            require_scale(own)
        return made

    @property
    def l2_squared(self) -> Fraction:
        """Square of the greatest L2 change of the rounded forms, each times its factor, in squared integer units."""
        return _l2_squared(self.statistic, self.grid)

    @property
    def sigmas(self) -> tuple[Fraction, ...]:
        """The standard deviation of the noise of each form, in steps of the forms' grid, rounded up."""
        return own_sigmas(self.sigma, self.squares)

    @property
    def mixed(self) -> bool:
        """Sums of one cell are combinations of the same four draws."""
        return True

    def _draws(self, cells: int, bits: BitSource) -> npt.NDArray[np.int64]:
        """Noise of the forms (cells x forms)."""
        columns = [rounded_gaussian(sigma=sigma, count=cells, bits=bits) for sigma in self.sigmas]
        return np.stack(columns, axis=-1)

    def noise(self, count: int, bits: BitSource) -> npt.NDArray[np.int64]:
        """Noise of the sums of cell after cell."""
        cells = -(-count // len(FORMS))
        found: npt.NDArray[np.int64] = (self._draws(cells, bits) @ FORMS).reshape(-1)[:count]
        return found

    def perturb(self, exact: Integers, bits: BitSource) -> Perturbed:
        """Exact sums (cells x coordinates) as forms, with their noise, as sums again."""
        forms = coarsen(narrow(narrow(exact) @ FORMS.T), _STEPS * self.grid)
        noisy = narrow(forms + self._draws(len(exact), bits))
        return Perturbed(narrow(noisy @ FORMS))

    def scaled(self, weights: Floats) -> Floats:
        """The weights of the forms, each times its own sigma."""
        own: Floats = forms_of(weights) * np.array([float(sigma) for sigma in self.sigmas])
        return own

    def signed_quantile(self, weights: Floats, alpha: float) -> Floats:
        """A weighted sum of normals is normal; a form is rounded once, and its noise once."""
        spread = np.sqrt((self.scaled(weights) ** 2).sum(axis=-1))
        result: Floats = gaussian_two_sided(alpha) * spread + np.abs(forms_of(weights)).sum(axis=-1)
        return result

    def quantile(self, weights: Floats, alpha: float) -> Floats:
        """The same of weights that are not negative."""
        return self.signed_quantile(weights, alpha)

    def tail(self, weights: Floats, reach: float) -> Floats:
        """A weighted sum of normals is normal."""
        spread = np.sqrt((self.scaled(weights) ** 2).sum(axis=-1))
        return np.array([math.erfc(reach / (math.sqrt(2) * one)) for one in spread])

    def variance(self) -> float:
        """Of one sum: all four forms are in it."""
        return sum(rounded_gaussian_variance(float(sigma)) for sigma in self.sigmas)

    def variances(self, weights: Floats) -> Floats:
        """Of the rounded noise of each form."""
        own = np.array([rounded_gaussian_variance(float(sigma)) for sigma in self.sigmas])
        result: Floats = (forms_of(weights) ** 2 * own).sum(axis=-1)
        return result

    def quantile_single(self, alpha: float) -> int:
        """Of one sum."""
        first = np.zeros((1, len(FORMS)))
        first[0, 0] = 1.0
        return math.ceil(float(self.signed_quantile(first, alpha)[0]))

    @property
    def rounding(self) -> float:
        """Of four forms, each of which is rounded, and its noise."""
        return float(len(FORMS))


def _cells(statistic: Statistic) -> Fraction:
    """How many cells one unit may change."""
    return Fraction(-(-statistic.sensitivity.l0 // statistic.coordinates))


def _l2_squared(statistic: Statistic, grid: int) -> Fraction:
    """(L2 + moved * root of the cells)^2, rounded up: each form moves by less than `moved`, and squares add up to 1."""
    change, cells, moved = statistic.sensitivity.l2_squared, _cells(statistic), _MOVED + _STEPS * grid
    return change + 2 * moved * root_up(change * cells) + cells * moved**2
