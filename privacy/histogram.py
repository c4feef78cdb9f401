"""Histograms of a profile: the bin in which a privacy unit is counted, as the statement and its readers agree on it.

Each unit that has a row in the table is counted in exactly one bin of each histogram (mechanisms/profile.md).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from fractions import Fraction

from privacy.policy import ColumnType, KeyValue

__all__ = ["BINS_MAX", "Grid", "GridScale", "Histogram", "HistogramOf"]

BINS_MAX = 4096
"""Most bins of one histogram: the statement keeps their numbers in 12 bits."""


class HistogramOf(enum.StrEnum):
    """What the bins of a histogram are. The values are stored."""

    UNITS = "units"
    """One bin: the units that have a row in the table."""

    ROWS = "rows"
    """Rows of the unit in the table."""

    VALUES = "values"
    """A value of the unit in a column, on a grid, and NULL."""

    KEYS = "keys"
    """A value of the unit in a column with declared keys: a bin for each, one for all others, and NULL."""

    NULLS = "nulls"
    """Whether a value of the unit in a column is NULL: a bin for values, and one for NULL."""

    GROUPS = "groups"
    """Different values of the unit in a column with declared keys, NULL apart."""

    MONTHS = "months"
    """Different calendar months of the unit in a column of dates with bounds."""


class GridScale(enum.StrEnum):
    """How values become places on a grid. The values are stored."""

    LINEAR = "linear"
    """Steps of one width from a first value."""

    LOGARITHMIC = "logarithmic"
    """Half octaves of the size, for each sign, and zero between them."""

    MONTHS = "months"
    """Calendar months, counted from the year 0."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The places of values: the first begins at `first`, each is `width` wide, in numbers or in calendar months.

    Of a logarithmic grid `first` is the exponent of two of the least size that differs from zero, `count` the places of
    one sign. Values outside are counted in the first or the last place.
    """

    scale: GridScale
    first: Fraction
    width: Fraction
    count: int

    def __post_init__(self) -> None:
        assert self.width > 0
        assert self.count >= 1

    @property
    def places(self) -> int:
        """How many there are."""
        return 2 * self.count + 1 if self.scale is GridScale.LOGARITHMIC else self.count

    def edges(self) -> tuple[Fraction, ...]:
        """The ends of the places in order, one more than there are: place i lies between the ends i and i + 1."""
        if self.scale is not GridScale.LOGARITHMIC:
            return tuple(self.first + i * self.width for i in range(self.count + 1))
        sizes = [_power(self.first + i * self.width) for i in range(self.count + 1)]
        return (*(-size for size in reversed(sizes)), *sizes)


def _power(exponent: Fraction) -> Fraction:
    """About two to that power: a label, not a bound."""
    return Fraction(2.0 ** float(exponent)).limit_denominator(10**9)


@dataclass(frozen=True, slots=True)
class Histogram:
    """One histogram: what it counts, of which column, and its bins.

    VALUES have a `grid`, KEYS have `keys`, numbers of rows and groups have `least`: bin i holds the numbers from
    `least[i]` up to the next one. With `other`, values that are not keys have a bin of their own; with `null`, NULL has
    the last one.
    """

    of: HistogramOf
    column: str | None = None
    type: ColumnType | None = None
    grid: Grid | None = None
    keys: tuple[KeyValue, ...] = ()
    other: bool = False
    null: bool = False
    least: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        assert (self.of is HistogramOf.VALUES) == (self.grid is not None)
        assert (self.of in (HistogramOf.UNITS, HistogramOf.ROWS)) == (self.column is None)
        assert 1 <= self.bins <= BINS_MAX
        assert self.least == tuple(sorted(set(self.least)))

    @property
    def bins(self) -> int:
        """How many bins there are; NULL is the last one."""
        if self.of is HistogramOf.UNITS:
            return 1
        if self.of is HistogramOf.NULLS:
            return 2
        if self.grid is not None:
            return self.grid.places + self.null
        return (len(self.keys) + self.other + self.null) if self.of is HistogramOf.KEYS else len(self.least)
