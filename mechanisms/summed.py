"""The noise of sums over cells of one release, each with a noise of its own: what coarser groups have.

Let y_1, ..., y_m be the noisy sums of m cells of one statistic, with independent noise of one law. Their sum is the sum
of the m true sums with the sum of the m noises, whose variance is m times that of one. **Claim.** The intervals of an
estimator hold for such sums at the stated confidence. **Proof.** An estimator asks a measurement for the t that a
weighted sum of coordinates' errors exceeds with probability at most alpha (`quantile`). Here that error is a weighted
sum of m independent draws for each coordinate, and of their roundings. `weighted_quantiles` bounds it: normal draws add
up to a normal one, and the saddlepoint approximation of repeated Laplace variables is asked for a smaller tail
(linear.py). Where sums were rounded to a grid before the noise, each of the m moved by at most half a step, which is
added. QED.

Of means of Gaussian releases (gaussian_combined.md) each is a normal variable of the same precisions, so a sum of m
cells is what the mean of the releases' own sums would be: a mean of the same chain, with m times the variance and at
most m times the rounding that it carried. They are added up as they are kept, before the last rounding.

No event: nothing is measured. Sums of noise that is not independent from cell to cell (levels) are not made here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from mechanisms.interval import Floats
from mechanisms.linear import weighted_quantiles
from mechanisms.measurement import Integers, Law, Measurement, narrow, root_up
from mechanisms.measurements.gaussian import GaussianMeasurement
from mechanisms.measurements.gaussian_combined import GUARD_BITS, CombinedGaussian
from mechanisms.measurements.gaussian_moments import GaussianMoments
from mechanisms.measurements.gaussian_pairs import GaussianPairs
from mechanisms.measurements.laplace import LaplaceMeasurement
from mechanisms.noisy_sums import NoisySums
from mechanisms.randomness import BitSource
from mechanisms.samplers import rounded_gaussian
from privacy.events import Event

__all__ = ["Summed", "added_up", "adds_up", "summed"]

_ADDED = frozenset({LaplaceMeasurement, GaussianMeasurement, GaussianMoments, GaussianPairs, CombinedGaussian})
"""Noise that each coordinate of each cell has a draw of, and means of such."""

_FEW = 64
"""Up to so many draws are simulated one by one: the sum of more is normal but for an excess kurtosis of 3 / 64."""

_NORMAL = Fraction(2**16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summed(Measurement):
    """The noise of the sums of `cells` cells that `one` measured."""

    name: ClassVar[str] = "summed"
    loss: ClassVar[str] = "none"
    use: ClassVar[str] = "coarser groups of a stored release"
    law: ClassVar[Law] = Law.OTHER

    one: Measurement
    cells: int

    @property
    def mixed(self) -> bool:
        """As of one cell."""
        return self.one.mixed

    def signed_quantile(self, weights: Floats, alpha: float) -> Floats:
        """Signs matter where one cell's sums share draws."""
        return self.quantile(weights if self.mixed else np.abs(weights), alpha)

    def event(self) -> Event:
        """None: the release that it is made of was paid for."""
        raise AssertionError("nothing is measured")

    def noise(self, count: int, bits: BitSource) -> npt.NDArray[np.int64]:
        """None, for the same reason."""
        raise AssertionError("nothing is measured")

    def _reach(self, weights: Floats, alpha: float) -> Floats:
        """How far the noise goes, with its own rounding."""
        scaled = np.abs(self.one.scaled(weights))
        times = np.full(weights.shape[-1], float(self.cells))
        laplace, variance = np.zeros((len(weights), 0)), np.zeros(len(weights))
        if self.one.law is Law.LAPLACE:
            laplace = scaled
        else:
            variance = self.cells * (scaled**2).sum(axis=-1)
        return weighted_quantiles(laplace, variance, np.abs(weights) / 2, alpha, times=times)

    def quantile(self, weights: Floats, alpha: float) -> Floats:
        """The reach of the noise, and the most that all sums were moved by before it."""
        result: Floats = self._reach(weights, alpha) + (self.rounding - 0.5) * np.abs(weights).sum(axis=-1)
        return result

    def tail(self, weights: Floats, reach: float) -> Floats:
        """As of one normal variable of the same variance, for the share of whole numbers in an error that is small."""
        spread = np.sqrt(self.variances(weights))
        return np.array([math.erfc(reach / (math.sqrt(2) * one)) if one else 0.0 for one in spread])

    def quantile_single(self, alpha: float) -> int:
        """Of a whole number: what it may be within a reach is within its whole part."""
        first = np.zeros((1, self.statistic.coordinates))
        first[0, 0] = 1.0
        return math.floor(float(self._reach(first, alpha)[0]) * (1 + 1e-12))

    def variance(self) -> float:
        """That of as many draws."""
        return self.cells * self.one.variance()

    def variances(self, weights: Floats) -> Floats:
        """Those of as many draws."""
        result: Floats = self.cells * self.one.variances(weights)
        return result

    def scaled(self, weights: Floats) -> Floats:
        """Each draw's scale times the root of their number: that of a normal sum."""
        return self.one.scaled(weights) * math.sqrt(self.cells)

    def noise_of_cells(self, draws: int, cells: int, coordinates: int, bits: BitSource) -> Floats:
        """Sums of further noise; of many draws a normal number of their variance."""
        if self.cells <= _FEW:
            found = np.zeros((draws, cells, coordinates))
            for _ in range(self.cells):
                found += self.one.noise_of_cells(draws, cells, coordinates, bits)
            return found
        normal = rounded_gaussian(sigma=_NORMAL, count=draws * cells * coordinates, bits=bits).astype(np.float64)
        deviations = np.sqrt(self.variances(np.eye(coordinates)))
        result: Floats = normal.reshape(draws, cells, coordinates) / float(_NORMAL) * deviations
        return result

    @property
    def rounding(self) -> float:
        """A half, and what all sums were moved by before their noise."""
        return 0.5 + self.cells * (self.one.rounding - 0.5)

    @property
    def scale_of_sums(self) -> Fraction:
        """That of one draw times the root of their number."""
        return root_up(self.one.scale_of_sums**2 * self.cells)

    @property
    def sensitivity_text(self) -> str:
        """That of the release."""
        return self.one.sensitivity_text


@dataclass(frozen=True, slots=True, kw_only=True)
class SummedMeans(CombinedGaussian):
    """The noise of the sums of `cells` cells of a mean of releases. `carried` is that of all of them at worst."""

    use: ClassVar[str] = "coarser groups of a stored release made more precise"

    cells: int

    @property
    def rounded_variance(self) -> float:
        """Of the last rounding, and of those of the parts of each cell, which are independent."""
        return 1 / 12 + float(self.carried) ** 2 / (3 * self.cells)


def adds_up(measurement: Measurement, cells: int) -> bool:
    """Whether sums of so many of its cells are made here: each has a noise of its own, and what is summed adds up.

    Different values of two cells may be equal, and no ranks are looked for in sums; of one cell both are what they are.
    """
    alone = measurement.statistic.tree is not None or measurement.statistic.distinct
    # Of many cells draws are not simulated one by one, and those of pairs go together.
    many = measurement.mixed and cells > _FEW
    return type(measurement) in _ADDED and (cells == 1 or not (alone or many))


def summed(measurement: Measurement, cells: int) -> Measurement:
    """The noise of sums of so many cells; of one cell its own. Requires: `adds_up`."""
    assert adds_up(measurement, cells)
    if cells == 1:
        return measurement
    if isinstance(measurement, CombinedGaussian):
        own = {field.name: getattr(measurement, field.name) for field in fields(measurement)}
        own.update(sigma=root_up(measurement.sigma**2 * cells), carried=measurement.carried * cells)
        return SummedMeans(**own, cells=cells)
    return Summed(
        core=measurement.core,
        statistic=measurement.statistic,
        share=measurement.share,
        grid=measurement.grid,
        one=measurement,
        cells=cells,
    )


def added_up(sums: NoisySums, groups: Sequence[Sequence[int]]) -> NoisySums:
    """Noisy sums of groups of cells, of which each has as many. Errors: ValueError where they do not."""
    (many,) = {len(group) for group in groups} or {1}
    if not many:
        raise ValueError("a group without a cell has no sum")
    places = np.array(groups, dtype=np.intp).reshape(len(groups), many)
    measurement = summed(sums.measurement, many)
    if sums.fine is not None:
        fine: Integers = sums.fine.astype(object)[places].sum(axis=1)
        rounded: Integers = (fine + (1 << GUARD_BITS - 1)) // (1 << GUARD_BITS)
        return replace(sums, measurement=measurement, values=narrow(rounded), fine=fine)
    wide: Integers = sums.values.astype(object) if _large(sums.values, many) else sums.values
    values: Integers = wide[places].sum(axis=1)
    return replace(sums, measurement=measurement, values=narrow(values))


def _large(values: Integers, many: int) -> bool:
    """Whether sums of so many of the values may leave 64 bits."""
    return bool(values.size) and max(abs(int(values.max())), abs(int(values.min()))) * many >= 2**62
