"""Gaussian releases of the same sums, combined by the means that have the least variance: gaussian_combined.md."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from mechanisms.confidence_sequence import factor
from mechanisms.interval import Floats, gaussian_two_sided
from mechanisms.measurement import SCALE_BITS, Integers, Perturbed, root_up
from mechanisms.measurements.gaussian import GaussianMeasurement
from mechanisms.measurements.gaussian_moments import GaussianMoments
from mechanisms.measurements.gaussian_pairs import GaussianPairs
from mechanisms.pair_forms import FORMS, forms_of, own_sigmas
from mechanisms.randomness import BitSource
from mechanisms.samplers import rounded_gaussian
from mechanisms.samplers.undecided import require_scale
from privacy.events import Event, GaussianEvent
from privacy.numbers import dyadic_up
from privacy.refusal import ExecutionFailed

__all__ = ["GUARD_BITS", "CombinedGaussian", "as_kept", "carried", "factors", "means"]

GUARD_BITS = 16
"""Binary digits that a mean is kept with beyond the grid, so that combining it again adds no rounding worth a name."""

_WEIGHT_BITS = 40
"""Binary digits of a weight. A weight that is off by a part changes the variance by its square only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CombinedGaussian(GaussianMeasurement):
    """The mean of a release and a later one of the same sums: gaussian_combined.md. `sigma` is that of the mean.

    `mu_squared` is the loss of all that is in it; `grown` its precision over that of the first release of the chain, at
    most a hair too large; `looks` how many releases were shown, this one included; `carried` the greatest error that
    the rounding of its parts makes, in units of the grid; `squares` are the squared factors of the coordinates, as
    those of `GaussianMoments`, and empty where all have the same noise. Nothing is ever drawn with it.
    """

    name: ClassVar[str] = "gaussian_combined"
    use: ClassVar[str] = "a stored release made more precise"

    mu_squared: Fraction
    grown: Fraction
    looks: int
    carried: Fraction
    squares: tuple[Fraction, ...] = ()
    paired: bool = False
    """Whether `squares` are those of the forms of pairs, as of `GaussianPairs`."""

    @property
    def mixed(self) -> bool:
        """Of pairs."""
        return self.paired

    @classmethod
    def of(cls, first: GaussianMeasurement, second: GaussianMeasurement) -> tuple[Self, int]:
        """The mean of a kept release and a fresh one, and the weight of the fresh one in parts of 2^40.

        Errors: ValueError for noise out of range.
        """
        assert first.statistic == second.statistic
        assert factors(first) == factors(second)
        assert first.mixed == second.mixed
        before, added = first.scale_of_sums**2, second.scale_of_sums**2
        weight = _weight(before, added)
        part, rest = Fraction(weight, 1 << _WEIGHT_BITS), 1 - Fraction(weight, 1 << _WEIGHT_BITS)
        variance = rest**2 * before + part**2 * added
        grid = min(first.grid, second.grid)
        sigma = root_up(variance / grid**2)
        require_scale(sigma)
        worst = rest * carried(first) * first.grid / grid + part * carried(second) * second.grid / grid
        earlier = first.grown if isinstance(first, CombinedGaussian) else Fraction(1)
        mean = cls(
            core=second.core,
            statistic=second.statistic,
            share=second.share,
            grid=grid,
            sigma=sigma,
            mu_squared=dyadic_up(_mu_squared(first) + _mu_squared(second), bits=SCALE_BITS),
            grown=dyadic_up(earlier * before / variance, bits=32),
            looks=(first.looks if isinstance(first, CombinedGaussian) else 1) + 1,
            carried=dyadic_up(worst + Fraction(1, 1 << GUARD_BITS + 1), bits=32),
            squares=factors(second),
            paired=second.mixed,
        )
        return mean, weight

    def event(self) -> Event:
        """All Gaussian events in it together: mu squared adds up."""
        return GaussianEvent(l2_squared=self.mu_squared, variance=Fraction(1))

    def perturb(self, exact: Integers, bits: BitSource) -> Perturbed:
        """A mean of releases is never drawn by itself. Errors: ExecutionFailed."""
        raise ExecutionFailed

    def widening(self, alpha: float) -> float:
        """Its precision was chosen after seeing values: its interval is one of those that all hold at once."""
        return factor(alpha, max(1.0, float(self.grown)))

    def against_first(self, alpha: float) -> float:
        """The reach of its interval over that of the first release of the chain, which one look had."""
        return self.widening(alpha) / math.sqrt(max(1.0, float(self.grown)))

    def quantile(self, weights: Floats, alpha: float) -> Floats:
        """A weighted sum of normals is normal, at every look."""
        spread = np.sqrt((self.scaled(weights) ** 2).sum(axis=-1))
        reach = gaussian_two_sided(alpha) * self.widening(alpha)
        result: Floats = reach * spread + self.rounding * np.abs(weights).sum(axis=-1)
        return result

    def signed_quantile(self, weights: Floats, alpha: float) -> Floats:
        """The same: signs matter of pairs alone."""
        return self.quantile(weights, alpha)

    def tail(self, weights: Floats, reach: float) -> Floats:
        """A weighted sum of normals is normal."""
        spread = np.sqrt((self.scaled(weights) ** 2).sum(axis=-1))
        return np.array([math.erfc(reach / (math.sqrt(2) * one)) for one in spread])

    @property
    def sigmas(self) -> tuple[Fraction, ...]:
        """The standard deviation of each coordinate, in units of the grid, rounded up; empty where all have `sigma`."""
        if self.paired:
            return own_sigmas(self.sigma, self.squares)
        return tuple(self.sigma if square == 1 else root_up(self.sigma**2 / square) for square in self.squares)

    def noise(self, count: int, bits: BitSource) -> npt.NDArray[np.int64]:
        """Noise of the mean's law, cell after cell: for simulations of its error, and nothing that is released."""
        if not self.squares:
            return rounded_gaussian(sigma=self.sigma, count=count, bits=bits)
        if self.paired:
            cells = -(-count // len(FORMS))
            draws = [rounded_gaussian(sigma=sigma, count=cells, bits=bits) for sigma in self.sigmas]
            mixed: npt.NDArray[np.int64] = (np.stack(draws, axis=-1) @ FORMS).reshape(-1)[:count]
            return mixed
        sigmas, found = self.sigmas, np.empty(count, dtype=np.int64)
        for place, sigma in enumerate(sigmas):
            own = found[place :: len(sigmas)]
            own[:] = rounded_gaussian(sigma=sigma, count=len(own), bits=bits)
        return found

    def scaled(self, weights: Floats) -> Floats:
        """Each coordinate's weight times its own sigma."""
        if not self.squares:
            return weights * float(self.sigma)
        assert weights.shape[-1] == len(self.squares)
        own: Floats = (forms_of(weights) if self.paired else weights) * np.array(
            [float(sigma) for sigma in self.sigmas]
        )
        return own

    def variances(self, weights: Floats) -> Floats:
        """Of the noise of each coordinate, and of rounding."""
        result: Floats = (self.scaled(weights) ** 2).sum(axis=-1) + self.rounded_variance * (weights**2).sum(axis=-1)
        return result

    @property
    def rounded_variance(self) -> float:
        """Of the last rounding, and at most of those of its parts, which are spread evenly."""
        return 1 / 12 + float(self.carried) ** 2 / 3

    def quantile_single(self, alpha: float) -> int:
        """Of noise and all rounding. On the finest grid errors are whole: within the whole part of a reach."""
        reach = math.sqrt(self._spread) * gaussian_two_sided(alpha) * self.widening(alpha)
        return math.floor(reach * (1 + 1e-12) + self.rounding) + (self.grid > 1)

    def variance(self) -> float:
        """Of the mean, of the last rounding, and at most of those of its parts, which are spread evenly."""
        return self._spread + self.rounded_variance

    @property
    def _spread(self) -> float:
        """The variance of one sum without rounding: of pairs all forms are in it."""
        return sum(float(sigma) ** 2 for sigma in self.sigmas) if self.paired else float(self.sigma) ** 2

    @property
    def rounding(self) -> float:
        """Of the parts, and of the mean itself."""
        return 0.5 + float(self.carried)


def as_kept(measurement: GaussianMeasurement, values: Integers, fine: Integers | None) -> Integers:
    """Released sums in units of 2^-16 of their grid, as they are combined: Python integers."""
    if fine is not None:
        return fine.astype(object)
    assert not isinstance(measurement, CombinedGaussian)
    kept: Integers = values.astype(object) * (1 << GUARD_BITS)
    return kept


def means(
    first: GaussianMeasurement, kept: Integers, second: GaussianMeasurement, fresh: Integers
) -> tuple[CombinedGaussian, Integers, Integers]:
    """The mean of two releases of the same sums: its law, its sums in units of its grid, and as they are kept.

    Shape: `kept` is as `as_kept` has it, `fresh` in units of the grid of `second`; cells x coordinates. All arithmetic
    is of integers, halves are rounded up.
    """
    mean, weight = CombinedGaussian.of(first, second)
    whole = 1 << _WEIGHT_BITS
    earlier = kept.astype(object) * (first.grid // mean.grid)
    later = fresh.astype(object) * ((second.grid // mean.grid) << GUARD_BITS)
    fine: Integers = ((whole - weight) * earlier + weight * later + whole // 2) // whole
    values: Integers = (fine + (1 << GUARD_BITS - 1)) // (1 << GUARD_BITS)
    return mean, values, fine


def factors(measurement: GaussianMeasurement) -> tuple[Fraction, ...]:
    """The squared factors of the coordinates of a measurement; empty where all have the same noise."""
    return measurement.squares if isinstance(measurement, CombinedGaussian | GaussianMoments | GaussianPairs) else ()


def _weight(before: Fraction, added: Fraction) -> int:
    """The weight of the fresh release: its precision over that of both, in parts of 2^40, rounded to nearest."""
    return math.floor(before / (before + added) * (1 << _WEIGHT_BITS) + Fraction(1, 2))


def carried(measurement: GaussianMeasurement) -> Fraction:
    """The greatest rounding error that a release brings into a mean, in units of its grid."""
    if isinstance(measurement, CombinedGaussian):
        return measurement.carried
    return Fraction(measurement.rounding)


def _mu_squared(measurement: GaussianMeasurement) -> Fraction:
    if isinstance(measurement, CombinedGaussian):
        return measurement.mu_squared
    return measurement.l2_squared / measurement.scale_of_sums**2
