"""Measurements: the noise of one statistic and its price, in one object.

A measurement computes its event from the same fields it draws with. Sums wider than the noise are rounded once to
a coarse grid of a power of two, and the event's sensitivity contains that rounding: rounding.md.
"""

from __future__ import annotations

import enum
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from mechanisms.interval import Floats
from mechanisms.randomness import BitSource
from privacy.events import Event
from privacy.refusal import ExecutionFailed
from privacy.statistic import Statistic

__all__ = [
    "SCALE_BITS",
    "Integers",
    "Law",
    "Measurement",
    "Perturbed",
    "coarsen",
    "grid_step",
    "integers",
    "narrow",
    "plain_text",
    "root_up",
]

Integers = npt.NDArray[np.int64] | npt.NDArray[np.object_]
"""Exact integers: int64, or Python integers in an array of objects where 64 bits are too few."""

SCALE_BITS = 96
"""Significant bits of a scale. Rounding it up loses less than a pico of any price that can be asked."""

_SAFE = 2**59
"""Integers within this stay in 64 bits: small multiples and sums of a few of them must fit as well."""


@dataclass(frozen=True, slots=True, repr=False)
class Perturbed:
    """Noisy sums in units of the measurement's grid (cells x coordinates), and for a selection which cells to keep.

    `values` is None for a selection that returns cells but no numbers: `chosen` then are their places, in the order in
    which they are released. No readable repr: under a selection it holds groups that are not shown.
    """

    values: Integers | None
    kept: npt.NDArray[np.bool_] | None = None
    chosen: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        assert self.values is not None or self.kept is not None or self.chosen is not None

    @property
    def sums(self) -> Integers:
        """The noisy sums of a measurement that releases them. Errors: ExecutionFailed when it releases none."""
        if self.values is None:
            raise ExecutionFailed
        return self.values


class Law(enum.Enum):
    """The law of the noise of one coordinate, of scale `scale_of_sums`. The error of weighted sums follows from it."""

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

    def half_shown(self, groups: int) -> int | None:
        """How many units, each of so many groups, a group needs to be shown with a chance of a half at least.

        None where nothing is selected by this.
        """
        return None

    @abstractmethod
    def noise(self, count: int, bits: BitSource) -> npt.NDArray[np.int64]:
        """`count` independent draws in units of the grid."""

    @abstractmethod
    def quantile(self, weights: Floats, alpha: float) -> Floats:
        """The t that |sum of weights * error| exceeds with probability at most alpha, one per row of weights.

        The error of a coordinate is its noise and all rounding, in units of the grid.
        """

    @property
    def mixed(self) -> bool:
        """Whether sums of one cell share draws, so that the sign of a weight matters."""
        return False

    def signed_quantile(self, weights: Floats, alpha: float) -> Floats:
        """`quantile` of weights of any sign; the noise of each coordinate is symmetric, and mostly its own."""
        return self.quantile(np.abs(weights), alpha)

    def widening(self, alpha: float) -> float:
        """How many times wider than by the law of its noise an interval has to be that misses with at most alpha.

        More than 1 where the noise was chosen after seeing values: its quantiles have this factor already.
        """
        return 1.0

    @abstractmethod
    def tail(self, weights: Floats, reach: float) -> Floats:
        """About P(|sum of weights * noise| > reach), one per row of weights; noise before its own rounding."""

    @abstractmethod
    def quantile_single(self, alpha: float) -> int:
        """The least integer t that the absolute noise of one coordinate exceeds with probability at most alpha."""

    @abstractmethod
    def variance(self) -> float:
        """The variance of the noise of one coordinate, in squared units of the grid."""

    def noise_variance(self) -> float:
        """The variance of one draw of noise, in squared units of the grid: that of a coordinate has others mixed in."""
        return self.variance()

    def scaled(self, weights: Floats) -> Floats:
        """The weights of the noise of one cell (of levels: of draws), each times its scale in units of the grid.

        Shape: rows x coordinates.
        """
        return weights * float(self.scale_of_sums / self.grid)

    def variances(self, weights: Floats) -> Floats:
        """The variance of weighted sums of one cell's coordinates, in squared units of the grid; one per row."""
        result: Floats = self.variance() * (weights**2).sum(axis=-1)
        return result

    def noise_variances(self, weights: Floats) -> Floats:
        """The same of weighted draws of noise, which mostly are those of a cell's coordinates."""
        return self.variances(weights)

    @property
    def noise_rounding(self) -> float:
        """Greatest rounding error of one draw of noise and of the sum that it is added to, in units of the grid."""
        return self.rounding

    def spread(self, weights: Floats) -> Floats | None:
        """The weights of each draw of noise in weighted sums of cells (rows x cells x coordinates to rows x draws).

        None where each coordinate of each cell has a draw of its own.
        """
        return None

    def noise_of_cells(self, draws: int, cells: int, coordinates: int, bits: BitSource) -> Floats:
        """Further noise of all cells, so many times (draws x cells x coordinates)."""
        return self.noise(draws * cells * coordinates, bits).reshape(draws, cells, coordinates).astype(np.float64)

    def shown_alphas(self, noisy: Integers, alpha: float) -> Floats | None:
        """For each cell an alpha at which intervals hold with 1 - alpha given that it is shown; None for alpha itself.

        There are few different ones, none above `alpha`.
        """
        return None

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

    def replicated(self, values: Integers, draws: int, bits: BitSource) -> Floats:
        """Released sums with fresh noise on top (draws x cells x coordinates), in floats: what else they might be."""
        cells, coordinates = values.shape
        return self.noise_of_cells(draws, cells, coordinates, bits) + values.astype(np.float64)

    def prepare(self) -> None:
        """Builds and checks what drawing needs, before anything is spent. ValueError when that cannot be done."""
        assert self.grid & (self.grid - 1) == 0

    @property
    def rounding(self) -> float:
        """Greatest rounding error of one coordinate in units of the grid: of the noise, and of the sum."""
        return 0.5 if self.grid == 1 else 1.0

    @property
    def unit(self) -> Fraction:
        """What one integer unit of the sums is worth: steps for sums, rows for moments and ranks, one for counts."""
        encoding = self.statistic.encoding
        if encoding is None:
            return Fraction(1)
        if self.statistic.tree is not None:
            return Fraction(1, self.statistic.tree.worth)
        if self.statistic.degree:
            return Fraction(1, self.statistic.row_units)
        return encoding.step


def grid_step(*, change: Fraction, entries: Fraction, scale: Fraction) -> int:
    """The power of two to which sums are rounded: at most 2^-12 of the scale, and small against the sensitivity.

    Rounding moves each of the entries by less than one grid step, so `entries` times the step is kept below 2^-12 of
    the sensitivity, except where the noise would leave the range of the samplers.
    """
    fine = min(scale, change / entries) / 2**12
    coarse = scale / 2**40
    return max(1, _power_of_two_below(fine), _power_of_two_below(coarse))


def _power_of_two_below(value: Fraction) -> int:
    return 1 << (math.floor(value).bit_length() - 1) if value >= 1 else 1


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


def integers(values: Sequence[int] | Sequence[Sequence[int]]) -> Integers:
    """The integers as an array: of 64 bits where they fit."""
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        return np.array(values, dtype=object)


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
