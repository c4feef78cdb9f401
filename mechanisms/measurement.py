"""Measurements: the noise of one statistic and its price, in one object.

A measurement computes its event from the same fields it draws with. Sums wider than the noise are rounded once to
a coarse grid of a power of two, and the event's sensitivity contains that rounding: rounding.md.
"""

from __future__ import annotations

import enum
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from mechanisms.gaussian_threshold import gaussian_threshold
from mechanisms.interval import (
    Floats,
    gaussian_two_sided,
    laplace_sum_quantiles,
    laplace_sum_tail,
    rounded_gaussian_variance,
    rounded_laplace_variance,
)
from mechanisms.randomness import BitSource
from mechanisms.samplers import rounded_gaussian, rounded_laplace
from mechanisms.samplers.exact import require_scale
from mechanisms.shown import gaussian_shown_ends, geometric_shown_ends
from mechanisms.truncated_geometric import EPSILON_CAP, SelectionTable, selection_table
from privacy.events import (
    Event,
    GaussianEvent,
    GaussianThresholdEvent,
    LaplaceEvent,
    TruncatedGeometricEvent,
)
from privacy.numbers import dyadic_up
from privacy.refusal import ExecutionFailed
from privacy.statistic import Statistic

__all__ = [
    "GaussianMeasurement",
    "GaussianThresholdMeasurement",
    "Integers",
    "LaplaceMeasurement",
    "Law",
    "Measurement",
    "Perturbed",
    "TruncatedGeometricMeasurement",
    "coarsen",
    "plain_text",
    "root_up",
]

Integers = npt.NDArray[Any]
"""Exact integers: int64, or Python integers in an array of objects where 64 bits are too few."""

SCALE_BITS = 96
"""Significant bits of a scale. Rounding it up loses less than a pico of any price that can be asked."""

_SAFE = 2**59
"""Integers within this stay in 64 bits: small multiples and sums of a few of them must fit as well."""


@dataclass(frozen=True, slots=True, repr=False)
class Perturbed:
    """Noisy sums in units of the measurement's grid (cells x coordinates), and for a selection which cells to keep.

    `values` is None for a selection that tells which cells and no numbers. No readable repr: under a selection it
    holds groups that are not shown.
    """

    values: Integers | None
    kept: npt.NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        assert self.values is not None or self.kept is not None

    @property
    def sums(self) -> Integers:
        """The noisy sums of a measurement that tells them. Errors: ExecutionFailed when it tells none."""
        if self.values is None:
            raise ExecutionFailed
        return self.values


class Law(enum.Enum):
    """The law of the noise of one coordinate, whose scale is `scale_of_sums`: what sums of several are told by."""

    LAPLACE = "laplace"
    NORMAL = "normal"
    OTHER = "other"
    """Known by its own quantiles alone: sums with other noise are simulated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement(ABC):
    """The randomised step of one statistic of one core.

    `share` is the part of the whole price that it takes. `grid` is the power of two to which sums are rounded, in
    integer units of the statistic; noise is drawn in units of the grid.
    """

    name: ClassVar[str]
    """Its name in answers, releases and the list of mechanisms, and of its page."""

    loss: ClassVar[str]
    """The measure of its privacy loss, for people."""

    use: ClassVar[str]
    """What it is drawn for, for people."""

    law: ClassVar[Law]
    """The law of its noise as it is shown: noise by which groups were selected is of another one."""

    selects: ClassVar[bool] = False
    """Whether its noisy sums decide which groups are shown."""

    core: str
    statistic: Statistic
    share: Fraction
    grid: int = 1

    @abstractmethod
    def event(self) -> Event:
        """The price."""

    @abstractmethod
    def noise(self, count: int, bits: BitSource) -> npt.NDArray[np.int64]:
        """`count` independent draws in units of the grid."""

    @abstractmethod
    def quantile(self, weights: Floats, alpha: float) -> Floats:
        """The t that |sum of weights * error| exceeds with probability at most alpha, one per row of weights.

        The error of a coordinate is its noise and all rounding, in units of the grid.
        """

    @abstractmethod
    def tail(self, weights: Floats, reach: float) -> Floats:
        """About P(|sum of weights * noise| > reach), one per row of weights; noise before its own rounding."""

    @abstractmethod
    def quantile_single(self, alpha: float) -> int:
        """The least integer t that the absolute noise of one coordinate exceeds with probability at most alpha."""

    @abstractmethod
    def variance(self) -> float:
        """The variance of the noise of one coordinate, in squared units of the grid."""

    def shown_ends(self, noisy: Integers, alpha: float) -> tuple[Integers, Integers] | None:
        """Ends of the intervals of noisy counts given that they were selected; None without a selection."""
        return None

    @property
    @abstractmethod
    def scale_of_sums(self) -> Fraction:
        """The noise scale in integer units of the statistic."""

    @property
    @abstractmethod
    def sensitivity_text(self) -> str:
        """The sensitivity that was used, with its norm."""

    def perturb(self, exact: Integers, bits: BitSource) -> Perturbed:
        """Exact sums (cells x coordinates) with their noise. Called by the gateway only."""
        cells, coordinates = exact.shape
        noise = self.noise(cells * coordinates, bits).reshape(cells, coordinates)
        return Perturbed(narrow(coarsen(narrow(exact), self.grid) + noise))

    def prepare(self) -> None:
        """Builds and checks what drawing needs, before anything is spent. ValueError when that cannot be done."""
        assert self.grid & (self.grid - 1) == 0

    @property
    def rounding(self) -> float:
        """Greatest rounding error of one coordinate in units of the grid: of the noise, and of the sum."""
        return 0.5 if self.grid == 1 else 1.0

    @property
    def unit(self) -> Fraction:
        """What one integer unit of the sums is worth: steps for sums, rows for moments, whole numbers for counts."""
        encoding = self.statistic.encoding
        if encoding is None:
            return Fraction(1)
        if self.statistic.degree:
            return Fraction(1, encoding.highest**self.statistic.degree)
        return encoding.step


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceMeasurement(Measurement):
    """Exactly rounded Laplace noise on every sum: laplace.md. `scale` is in units of the grid."""

    name: ClassVar[str] = "laplace"
    law: ClassVar[Law] = Law.LAPLACE
    loss: ClassVar[str] = "pure"
    use: ClassVar[str] = "counts, sums and moments"

    scale: Fraction

    @classmethod
    def for_epsilon(cls, *, core: str, statistic: Statistic, share: Fraction, epsilon: Fraction) -> LaplaceMeasurement:
        """The measurement with the least noise whose event is at most `epsilon`. ValueError when out of range."""
        bound = statistic.sensitivity
        grid = _grid(change=bound.l1, entries=Fraction(bound.l0), scale=bound.l1 / epsilon)
        l1 = _l1_with_rounding(statistic, grid)
        scale = dyadic_up(l1 / epsilon / grid, bits=SCALE_BITS)
        require_scale(scale)
        return cls(core=core, statistic=statistic, share=share, grid=grid, scale=scale)

    @property
    def l1_sensitivity(self) -> Fraction:
        """Greatest L1 change of the rounded sums, in integer units."""
        return _l1_with_rounding(self.statistic, self.grid)

    def event(self) -> LaplaceEvent:
        """Laplace noise of the scale that is drawn."""
        return LaplaceEvent(l1_sensitivity=self.l1_sensitivity, scale=self.scale_of_sums)

    def noise(self, count: int, bits: BitSource) -> npt.NDArray[np.int64]:
        """Exactly rounded Laplace noise."""
        return rounded_laplace(scale=self.scale, count=count, bits=bits)

    def quantile(self, weights: Floats, alpha: float) -> Floats:
        """Closed form of a weighted sum of independent Laplace variables."""
        spread = laplace_sum_quantiles(weights, alpha)
        result: Floats = float(self.scale) * spread + self.rounding * weights.sum(axis=-1)
        return result

    def tail(self, weights: Floats, reach: float) -> Floats:
        """Closed form of a weighted sum of independent Laplace variables."""
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
        change = root_up(bound.l2_squared)
        grid = _grid(change=change, entries=root_up(Fraction(bound.l0)), scale=root_up(bound.l2_squared / mu_squared))
        sigma = root_up(_l2_squared_with_rounding(statistic, grid) / mu_squared / grid**2)
        require_scale(sigma)
        return cls(core=core, statistic=statistic, share=share, grid=grid, sigma=sigma)

    @property
    def l2_squared(self) -> Fraction:
        """Square of the greatest L2 change of the rounded sums, in squared integer units."""
        return _l2_squared_with_rounding(self.statistic, self.grid)

    def event(self) -> GaussianEvent | GaussianThresholdEvent:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianThresholdMeasurement(GaussianMeasurement):
    """Gaussian noise on the number of units of each group that occurs, and a threshold: gaussian_threshold.md."""

    name: ClassVar[str] = "gaussian_threshold"
    law: ClassVar[Law] = Law.OTHER
    loss: ClassVar[str] = "approximate"
    use: ClassVar[str] = "keys, several groups per unit"
    selects: ClassVar[bool] = True

    delta: Fraction
    groups_per_unit: int

    @property
    def threshold(self) -> int:
        """The least noisy count that is released."""
        return gaussian_threshold(sigma=self.sigma, groups_per_unit=self.groups_per_unit, delta=self.delta)

    def prepare(self) -> None:
        """The threshold."""
        assert self.threshold >= 2

    def event(self) -> GaussianThresholdEvent:
        """The Gaussian, and the delta of the threshold."""
        return GaussianThresholdEvent(l2_squared=self.l2_squared, variance=self.scale_of_sums**2, delta=self.delta)

    def perturb(self, exact: Integers, bits: BitSource) -> Perturbed:
        """Noisy unit counts, and which groups reach the threshold."""
        # Named in full: with slots, the zero-argument form does not find the class that was rebuilt.
        noisy = GaussianMeasurement.perturb(self, exact, bits).sums
        return Perturbed(noisy, (noisy[:, 0] >= self.threshold).astype(np.bool_))

    def shown_ends(self, noisy: Integers, alpha: float) -> tuple[Integers, Integers]:
        """By the law of the noise given that the count reached the threshold."""
        ends = gaussian_shown_ends(
            sigma=float(self.sigma), threshold=self.threshold, alpha=alpha, reach=self.quantile_single(alpha)
        )
        return ends.ends(noisy[:, 0])


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncatedGeometricMeasurement(Measurement):
    """Truncated geometric noise on the number of units of each group, and its threshold: truncated_geometric.md."""

    name: ClassVar[str] = "truncated_geometric"
    law: ClassVar[Law] = Law.OTHER
    loss: ClassVar[str] = "approximate"
    use: ClassVar[str] = "keys, one group per unit"
    selects: ClassVar[bool] = True

    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        assert self.statistic.sensitivity.l1 == 1, "each unit must own one group"
        assert self.grid == 1

    @property
    def table(self) -> SelectionTable:
        """The checked table of noise and thresholds."""
        return selection_table(epsilon=self.epsilon, delta=self.delta)

    def prepare(self) -> None:
        """The table, with its exact check."""
        assert self.table.threshold >= 1

    def event(self) -> TruncatedGeometricEvent:
        """An (epsilon, delta) selection; its noisy counts are covered."""
        return TruncatedGeometricEvent(epsilon=self.epsilon, delta=self.delta)

    def noise(self, count: int, bits: BitSource) -> npt.NDArray[np.int64]:
        """Noise alone."""
        return self.table.draw(count, bits)[0]

    def perturb(self, exact: Integers, bits: BitSource) -> Perturbed:
        """Noisy unit counts, and which groups pass their drawn threshold."""
        noise, threshold = self.table.draw(len(exact), bits)
        noisy = narrow(exact)[:, 0] + noise
        return Perturbed(narrow(noisy.reshape(-1, 1)), (noisy > threshold).astype(np.bool_))

    def shown_ends(self, noisy: Integers, alpha: float) -> tuple[Integers, Integers]:
        """By the law of the noise given that the count passed its threshold."""
        ends = geometric_shown_ends(
            epsilon=self.epsilon, delta=self.delta, alpha=alpha, reach=self.quantile_single(alpha)
        )
        return ends.ends(noisy[:, 0])

    def quantile(self, weights: Floats, alpha: float) -> Floats:
        """There is one coordinate only."""
        return weights[..., 0] * self.quantile_single(alpha)

    def tail(self, weights: Floats, reach: float) -> Floats:
        """There is one coordinate only."""
        rate = float(min(self.epsilon, EPSILON_CAP))
        whole = np.floor(reach / weights[..., 0])
        result: Floats = 2 * np.exp(-rate * (whole + 1)) / (1 + math.exp(-rate))
        return result

    def quantile_single(self, alpha: float) -> int:
        """P(|X| > t) = 2 q^(t+1) / (1 + q) without truncation, q = exp(-epsilon); truncation only lowers it."""
        rate = float(min(self.epsilon, EPSILON_CAP)) * (1 - 1e-12)
        return max(0, math.ceil(math.log(2 / (alpha * (1 + math.exp(-rate)))) / rate - 1))

    def variance(self) -> float:
        """2 q / (1 - q)^2 without truncation, q = exp(-epsilon); truncation only lowers it."""
        rate = float(min(self.epsilon, EPSILON_CAP))
        return 2 * math.exp(-rate) / math.expm1(-rate) ** 2

    @property
    def scale_of_sums(self) -> Fraction:
        """The scale 1/epsilon of the geometric."""
        return 1 / self.epsilon

    @property
    def sensitivity_text(self) -> str:
        """One unit, one group."""
        return "l1 1"


def _grid(*, change: Fraction, entries: Fraction, scale: Fraction) -> int:
    """The power of two to which sums are rounded: at most 2^-12 of the scale, and small against the sensitivity.

    Rounding moves each of the entries by less than one grid step, so `entries` times the step is kept below 2^-12 of
    the sensitivity, except where the noise would leave the range of the samplers.
    """
    fine = min(scale, change / entries) / 2**12
    coarse = scale / 2**40
    return max(1, _power_of_two_below(fine), _power_of_two_below(coarse))


def _power_of_two_below(value: Fraction) -> int:
    return 1 << (math.floor(value).bit_length() - 1) if value >= 1 else 1


def _l1_with_rounding(statistic: Statistic, grid: int) -> Fraction:
    bound = statistic.sensitivity
    return bound.l1 if grid == 1 else bound.l1 + bound.l0 * grid


def _l2_squared_with_rounding(statistic: Statistic, grid: int) -> Fraction:
    """(L2 + sqrt(l0) grid)^2, rounded up; exact on the finest grid."""
    bound = statistic.sensitivity
    if grid == 1:
        return bound.l2_squared
    return bound.l2_squared + 2 * grid * root_up(bound.l2_squared * bound.l0) + bound.l0 * grid**2


def root_up(value: Fraction, *, bits: int = SCALE_BITS) -> Fraction:
    """The square root rounded up to about `bits` significant binary digits; exact for squares of short dyadics."""
    if value <= 0:
        raise ValueError("only positive values have a root here")
    shift = max(0, bits - (value.numerator.bit_length() - value.denominator.bit_length()) // 2)
    scaled = math.ceil(value * (1 << 2 * shift))
    root = math.isqrt(scaled)
    return Fraction(root if root * root == scaled else root + 1, 1 << shift)


def coarsen(exact: Integers, grid: int) -> Integers:
    """Each sum divided by the grid, rounded to nearest (halves up). Takes what `narrow` gives."""
    if grid == 1:
        return exact
    if grid > _SAFE:
        exact = exact.astype(object)
    result: Integers = (exact + grid // 2) // grid
    return narrow(result)


def narrow(values: Integers) -> Integers:
    """The same integers in 64 bits where all of them, and small multiples of them, fit."""
    if values.dtype == np.int64:
        return values if not values.size or _greatest(values) <= _SAFE else values.astype(object)
    return values.astype(np.int64) if not values.size or _greatest(values) <= _SAFE else values


def _greatest(values: Integers) -> int:
    return max(abs(int(values.max())), abs(int(values.min())))


def plain_text(value: Fraction) -> str:
    """An amount for people: nine significant digits, no exponent."""
    digits = Decimal(value.numerator) / Decimal(value.denominator)
    rounded = Decimal(f"{digits:.8e}")
    text = format(rounded, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
