"""Noise on several levels of groups, made consistent: laplace_levels.md, gaussian_levels.md, consistency.md.

What is measured are the nodes of a lattice; what is released are the cells of its finest level, as whole numbers, of
which every coarser number is a sum. So sums are cells x coordinates before and after, as without levels. The noise of
different cells is not independent: `spread` gives the weights with which independent noise takes part in their sums.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Self

import numpy as np

from mechanisms.consistency import Lattice, of_one_cell
from mechanisms.interval import Floats, gaussian_two_sided, rounded_gaussian_variance, rounded_laplace_variance
from mechanisms.linear import weighted_quantiles
from mechanisms.measurement import SCALE_BITS, Integers, Measurement, Perturbed, coarsen, grid_step, narrow, root_up
from mechanisms.measurements.gaussian import GaussianMeasurement
from mechanisms.measurements.laplace import LaplaceMeasurement
from mechanisms.randomness import BitSource
from mechanisms.samplers.undecided import require_scale
from privacy.numbers import dyadic_up
from privacy.statistic import Statistic

__all__ = ["GaussianLevels", "LaplaceLevels"]

_ESTIMATE = 1.0
"""Greatest distance of a whole number that is released from its estimate, in units of the grid."""

_POINTS, _STEP = 8_192, 2.0**-7


class _Levels(Measurement):
    """What noise of either law has in common where several levels are measured."""

    __slots__ = ()

    levels: str

    @property
    def lattice(self) -> Lattice:
        """The measured levels."""
        return _lattice(self.levels)

    @property
    def rounding(self) -> float:
        """Nothing beyond a half: all rounding is in the quantiles."""
        return 0.5

    @property
    def noise_rounding(self) -> float:
        """Of the noise of a node, and of its sum."""
        return 0.5 if self.grid == 1 else 1.0

    def perturb(self, exact: Integers, bits: BitSource) -> Perturbed:
        """Exact sums of the cells, added up to nodes there, with their noise, made consistent."""
        nodes = coarsen(self.lattice.stacked(narrow(exact)), self.grid)
        noise = self.noise(nodes.size, bits).reshape(nodes.shape)
        return Perturbed(self.lattice.consistent(narrow(nodes + noise)))

    def spread(self, weights: Floats) -> Floats:
        """The weights of the noise of each node."""
        found = self.lattice.spread(weights)
        *rows, nodes, coordinates = found.shape
        return found.reshape(*rows, nodes * coordinates)

    def noise_of_cells(self, draws: int, cells: int, coordinates: int, bits: BitSource) -> Floats:
        """Noise of nodes, gathered as the estimates do it."""
        lattice = self.lattice
        assert cells == lattice.cells
        noise = self.noise(draws * lattice.nodes * coordinates, bits).reshape(draws, lattice.nodes, coordinates)
        return lattice.gathered(noise.astype(np.float64))

    def variance(self) -> float:
        """Of the estimate of one cell, and of making it whole."""
        own = self.noise_variance()
        scales, times = of_one_cell(self.lattice)
        return own * float((times * scales**2).sum()) + min(own, 1 / 6)

    def noise_variances(self, weights: Floats) -> Floats:
        """Of weighted noise of nodes."""
        result: Floats = self.noise_variance() * (weights**2).sum(axis=-1)
        return result

    def quantile_single(self, alpha: float) -> int:
        """The quantile of one coordinate."""
        reach = float(self.quantile(np.ones((1, 1)), alpha)[0])
        return math.floor(reach) if self.grid == 1 else math.ceil(reach)

    def still(self, coordinates: int, alpha: float) -> bool:
        """Whether all nodes have no noise at all but with probability alpha, so that estimates are the true sums."""
        if self.grid != 1:
            return False
        # P(|R| >= 1) is at most the variance of a rounded R: Markov's inequality.
        return self.noise_variance() * self.lattice.nodes * coordinates <= alpha


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceLevels(_Levels, LaplaceMeasurement):
    """Exactly rounded Laplace noise on the sums of every measured level: laplace_levels.md. `levels` is a lattice."""

    name: ClassVar[str] = "laplace_levels"
    use: ClassVar[str] = "counts, sums and moments of several levels of groups"

    levels: str

    @classmethod
    def of_levels(
        cls, *, core: str, statistic: Statistic, share: Fraction, epsilon: Fraction, lattice: Lattice
    ) -> Self:
        """The measurement with the least noise whose event is at most `epsilon`. ValueError when out of range."""
        change = statistic.sensitivity.l1 * lattice.change(1, 1)
        entries = statistic.sensitivity.l0 * len(lattice.weights)
        grid = grid_step(change=change, entries=Fraction(entries), scale=change / epsilon)
        l1 = _l1(statistic, lattice, grid)
        scale = dyadic_up(l1 / epsilon / grid, bits=SCALE_BITS)
        require_scale(scale)
        return cls(core=core, statistic=statistic, share=share, grid=grid, scale=scale, levels=lattice.text)

    @property
    def l1_sensitivity(self) -> Fraction:
        """Greatest L1 change of the rounded sums of all nodes, in integer units."""
        return _l1(self.statistic, self.lattice, self.grid)

    def quantile(self, weights: Floats, alpha: float) -> Floats:
        """A weighted sum of the noise of all nodes, from above, and all rounding."""
        if self.still(weights.shape[-1], alpha):
            return np.zeros(len(weights))
        scales, times = of_one_cell(self.lattice)
        parts = (weights[:, :, None] * scales).reshape(len(weights), -1)
        reach = weighted_quantiles(
            parts * float(self.scale),
            np.zeros(len(weights)),
            parts * self.noise_rounding,
            alpha,
            times=np.tile(times, weights.shape[1]),
        )
        result: Floats = reach + _ESTIMATE * weights.sum(axis=-1)
        return result

    def tail(self, weights: Floats, reach: float) -> Floats:
        """By inversion of the characteristic function, the product of those of all nodes (Gil-Pelaez 1951)."""
        scales, times = of_one_cell(self.lattice)
        parts = (weights[:, :, None] * scales).reshape(len(weights), -1) * float(self.scale)
        greatest = parts.max(axis=-1, keepdims=True)
        points = (np.arange(_POINTS) + 0.5) * _STEP
        squared = ((parts / greatest)[..., None, :] * points[:, None]) ** 2
        law = np.exp(-(np.log1p(squared) * np.tile(times, weights.shape[1])).sum(axis=-1))
        within = 2 / math.pi * (np.sin(reach / greatest * points) / points * law).sum(axis=-1) * _STEP
        result: Floats = np.clip(1 - within, 0.0, 1.0)
        return result

    def noise_variance(self) -> float:
        """Of the rounded noise of a node."""
        return rounded_laplace_variance(float(self.scale))


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianLevels(_Levels, GaussianMeasurement):
    """Exactly rounded Gaussian noise on the sums of every measured level: gaussian_levels.md.

    `groups` is the most cells in which one unit changes a sum.
    """

    name: ClassVar[str] = "gaussian_levels"
    use: ClassVar[str] = "counts, sums and moments of several levels of groups"

    levels: str
    groups: int

    @classmethod
    def of_levels(
        cls,
        *,
        core: str,
        statistic: Statistic,
        share: Fraction,
        mu_squared: Fraction,
        lattice: Lattice,
        groups: int,
    ) -> Self:
        """The measurement with the least noise whose event is at most `mu_squared`. ValueError when out of range."""
        change = statistic.sensitivity.l2_squared * lattice.change(2, groups)
        entries = statistic.sensitivity.l0 * len(lattice.weights)
        scale = root_up(change / mu_squared)
        grid = grid_step(change=root_up(change), entries=root_up(Fraction(entries)), scale=scale)
        sigma = root_up(_l2_squared(statistic, lattice, groups, grid) / mu_squared / grid**2)
        require_scale(sigma)
        return cls(
            core=core,
            statistic=statistic,
            share=share,
            grid=grid,
            sigma=sigma,
            levels=lattice.text,
            groups=groups,
        )

    @property
    def l2_squared(self) -> Fraction:
        """Square of the greatest L2 change of the rounded sums of all nodes, in squared integer units."""
        return _l2_squared(self.statistic, self.lattice, self.groups, self.grid)

    def quantile(self, weights: Floats, alpha: float) -> Floats:
        """A weighted sum of normals is normal; and all rounding."""
        if self.still(weights.shape[-1], alpha):
            return np.zeros(len(weights))
        scales, times = of_one_cell(self.lattice)
        size, total = math.sqrt(float((times * scales**2).sum())), float((times * scales).sum())
        spread = np.sqrt((weights**2).sum(axis=-1)) * size
        sigma, rounding = float(self.sigma), self.noise_rounding
        z = gaussian_two_sided(alpha)
        # Rounding at its greatest, or as if normal: no heavier tails (Hoeffding 1963).
        reach = np.minimum(
            z * sigma * spread + rounding * total * weights.sum(axis=-1), z * math.hypot(sigma, rounding) * spread
        )
        result: Floats = reach + _ESTIMATE * weights.sum(axis=-1)
        return result

    def tail(self, weights: Floats, reach: float) -> Floats:
        """A weighted sum of normals is normal."""
        scales, times = of_one_cell(self.lattice)
        size = math.sqrt(float((times * scales**2).sum()))
        spread = float(self.sigma) * size * np.sqrt((weights**2).sum(axis=-1))
        return np.array([math.erfc(reach / (math.sqrt(2) * one)) for one in spread])

    def noise_variance(self) -> float:
        """Of the rounded noise of a node."""
        return rounded_gaussian_variance(float(self.sigma))


@lru_cache(maxsize=256)
def _lattice(text: str) -> Lattice:
    return Lattice.of(text)


def _l1(statistic: Statistic, lattice: Lattice, grid: int) -> Fraction:
    """consistency.md, Proposition 3; rounding moves each of the entries by less than one grid step."""
    bound = statistic.sensitivity
    change = bound.l1 * lattice.change(1, 1)
    return change if grid == 1 else change + bound.l0 * len(lattice.weights) * grid


def _l2_squared(statistic: Statistic, lattice: Lattice, groups: int, grid: int) -> Fraction:
    """consistency.md, Proposition 3, and (L2 + sqrt(l0) grid)^2, rounded up; exact on the finest grid."""
    bound = statistic.sensitivity
    change = bound.l2_squared * lattice.change(2, groups)
    if grid == 1:
        return change
    entries = bound.l0 * len(lattice.weights)
    return change + 2 * grid * root_up(change * entries) + entries * grid**2
