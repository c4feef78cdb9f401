"""The public grids of values on which value bounds are chosen: into which bin a value falls, and where bins end.

Numbers have signed bins on a logarithmic scale: bin 0 holds what is nearest to zero, bin k the magnitudes from
2^((k - 1) / 4) to 2^(k / 4) times the least one, bin -k the same with the other sign. Dates and timestamps have a bin
for each quarter of a year. The last bin on either side holds everything beyond. A grid depends on a column's type
alone.
"""

from __future__ import annotations

import datetime
import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

from privacy.bounds import number_of_date, number_of_timestamp
from privacy.policy import ColumnType

__all__ = ["BINS_PER_OCTAVE", "GRIDDED", "OCTAVES", "YEARS", "ValueGrid", "grid_of", "is_values_name", "values_name"]

BINS_PER_OCTAVE = 4

OCTAVES = {ColumnType.INTEGER: (0, 45), ColumnType.NUMBER: (-30, 45)}
"""Binary logarithms of the least magnitude that is distinguished from zero, and of the greatest that bounds reach."""

YEARS = (1800, 2200)
"""The first year whose quarters have bins of their own, and the first one after them."""

GRIDDED = (ColumnType.INTEGER, ColumnType.NUMBER, ColumnType.DATE, ColumnType.TIMESTAMP)
"""The types of columns whose bounds can be chosen."""

_DIGITS = 3


@dataclass(frozen=True, slots=True)
class ValueGrid:
    """The bins `first`, `first` + 1 ... of one type of columns, with the least and greatest value of each.

    Ends are in the unit of value bounds, rounded outwards to few digits. What lies in an outermost bin is clipped to
    where the bin begins, so its two ends are one.
    """

    first: int
    lows: tuple[Fraction, ...]
    highs: tuple[Fraction, ...]

    @property
    def last(self) -> int:
        """The number of the last bin."""
        return self.first + len(self.lows) - 1

    @property
    def bins(self) -> range:
        """The numbers of all bins, in the order of their values."""
        return range(self.first, self.last + 1)


def values_name(place: int) -> str:
    """The name of the core that is a question's histogram of a column's values; cores of its text are c0, c1 ..."""
    return f"b{place}"


def is_values_name(core: str) -> bool:
    """Whether a core of this name is a histogram of values."""
    return core[:1] == "b" and core[1:].isdigit()


@functools.cache
def grid_of(kind: ColumnType) -> ValueGrid:
    """The grid of a type of columns, one of `GRIDDED`."""
    number: Callable[[datetime.datetime], Fraction]
    match kind:
        case ColumnType.INTEGER | ColumnType.NUMBER:
            return _logarithmic(kind)
        case ColumnType.DATE:
            number = number_of_date
        case ColumnType.TIMESTAMP:
            number = number_of_timestamp
        case ColumnType.BOOLEAN | ColumnType.TEXT:
            raise AssertionError(f"values of a {kind.value} have no grid")
        case _:
            assert_never(kind)
    starts = [number(datetime.datetime(year, month, 1)) for year in range(*YEARS) for month in (1, 4, 7, 10)] + [
        number(datetime.datetime(YEARS[1], 1, 1))
    ]
    lows = (starts[0], *starts)
    highs = (starts[0], *(start - 1 for start in starts[1:]), starts[-1])
    return ValueGrid(0, lows, highs)


def _logarithmic(kind: ColumnType) -> ValueGrid:
    least, greatest = OCTAVES[kind]
    whole = kind is ColumnType.INTEGER
    edges = [2.0 ** (least + place / BINS_PER_OCTAVE) for place in range(BINS_PER_OCTAVE * (greatest - least) + 1)]
    lows, highs = [], []
    for low, high in itertools.pairwise(edges):
        last = Fraction(math.ceil(high) - 1) if whole else _rounded(high, up=True)
        first = Fraction(math.ceil(low)) if whole else _rounded(low, up=False)
        if whole:
            first, last = (_rounded(float(first), up=False), _rounded(float(last), up=True))
        highs.append(last)
        lows.append(min(first, last))
    beyond = highs[-1]
    zero = Fraction(0) if whole else lows[0]
    lows, highs = [*lows, beyond], [*highs, beyond]
    return ValueGrid(
        -len(lows),
        (*(-high for high in reversed(highs)), -zero, *lows),
        (*(-low for low in reversed(lows)), zero, *highs),
    )


def _rounded(value: float, *, up: bool) -> Fraction:
    """The positive number rounded to a few significant digits."""
    unit = Fraction(10) ** (math.floor(math.log10(value)) + 1 - _DIGITS)
    if unit < 1 and value == int(value):
        return Fraction(value)
    parts = Fraction(value) / unit
    return (math.ceil(parts) if up else math.floor(parts)) * unit
