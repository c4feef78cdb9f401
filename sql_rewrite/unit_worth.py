"""What the rows of one unit in one group are worth where counts bound them: what all kinds of statistics share.

lower_units.py has the layers and their names. Every quotient is of non-negative integers and rounds down;
mechanisms/bounding.md says why the bounds hold, and that nothing leaves 128 bits.
"""

from __future__ import annotations

from collections.abc import Mapping

from privacy.statistic import Encoding
from sql_rewrite.bounded import BoundedStatistic
from sql_rewrite.contribution import Contribution
from sql_rewrite.layer_values import Count
from sql_rewrite.scalars import (
    Arithmetic,
    ArithmeticSymbol,
    Case,
    Cast,
    Comparison,
    EngineType,
    Extreme,
    ExtremeName,
    Held,
    Junction,
    Named,
    Scalar,
    Whole,
)

__all__ = [
    "INTEGER",
    "ONE",
    "WIDE",
    "ZERO",
    "UnitWorth",
    "at_most",
    "count_under",
    "difference",
    "encoding_of",
    "extreme",
    "open_",
    "under",
    "when",
]

WIDE, INTEGER = EngineType.WIDE, EngineType.INTEGER

ZERO, ONE = Whole(0), Whole(1)


class UnitWorth:
    """What the rows of a unit are worth, from the columns of layers 1 and 2."""

    def __init__(self, contribution: Contribution, filters: Mapping[str, int]) -> None:
        self.contribution = contribution
        self.filters = filters
        """For each statistic that needs rows counted, the number of its filter."""

    # What rows are worth

    def filter_of(self, item: BoundedStatistic) -> int:
        """The number of the statistic's filter."""
        return self.filters[item.statistic.name]

    def rows(self, item: BoundedStatistic) -> Scalar:
        """c: the unit's rows in the group, clipped to r."""
        return at_most(Named(f"n{self.filter_of(item)}"), item.rows)

    def values(self, item: BoundedStatistic) -> Scalar:
        """c': those with a value, clipped to r."""
        return at_most(Named(f"{item.statistic.name}n"), item.rows)

    def _total(self, item: BoundedStatistic) -> Scalar:
        """m: the unit's rows over all its groups, where they are too many."""
        return Named(f"m{self.filter_of(item)}")

    def _over(self, item: BoundedStatistic) -> Scalar:
        """Whether the unit has more rows than the bound over all groups: m > R."""
        return Comparison(">", self._total(item), Whole(self.contribution.total), closed=False)

    def _fewer(self, item: BoundedStatistic) -> Scalar:
        """Whether the allotted part c R / m is less than the unit's rows with a value."""
        allotted = open_("*", self.rows(item), Whole(self.contribution.total))
        there = open_("*", self._total(item), self.values(item))
        return Junction("AND", (self._over(item), Comparison("<", allotted, there, closed=False)), closed=False)

    def _part(self, item: BoundedStatistic, size: int) -> Scalar:
        """floor(size c R / m)."""
        worth = Arithmetic("*", Cast(self.rows(item), WIDE), Cast(Whole(self.contribution.total * size), WIDE), WIDE)
        return open_("//", worth, self._total(item))

    def allotted(self, item: BoundedStatistic, size: int) -> Scalar:
        """What the unit's allotted rows are worth, at `size` each."""
        whole = open_("*", self.rows(item), _factor(size))
        return _either(self._over(item), self._part(item, size), whole) if item.scaled else whole

    def worth(self, item: BoundedStatistic, size: int) -> Scalar:
        """What the unit's rows with a value are worth: at most the allotted ones."""
        whole = open_("*", self.values(item), _factor(size))
        return _either(self._fewer(item), self._part(item, size), whole) if item.scaled else whole

    # Values

    def scaled(self, item: BoundedStatistic, running: Scalar) -> Scalar:
        """A running sum of the vector, scaled to r rows and then to the allotted part of them."""
        n, rows = Named(f"{item.statistic.name}n"), Whole(item.rows)
        more = Comparison(">", n, rows, closed=False)
        value = _either(more, open_("//", Arithmetic("*", running, Cast(rows, WIDE), WIDE), n), running)
        if not item.scaled:
            return value
        allotted = Arithmetic("*", self.rows(item), Whole(self.contribution.total), INTEGER)
        there = Arithmetic("*", self._total(item), self.values(item), INTEGER)
        return _either(self._fewer(item), open_("//", open_("*", value, allotted), there), value)

    def clipped(self, item: BoundedStatistic, x: Scalar, lowest: int, highest: int, *, closed: bool = False) -> Scalar:
        """x held to the worth of the allotted rows, each between `lowest` <= 0 and `highest` >= 0."""

        def most(limit: int) -> Scalar:
            whole = Whole(item.rows * limit)
            if not item.scaled or not limit:
                return whole
            return Case(((self._over(item), self._part(item, limit)),), whole)

        return Held(x, most(-lowest), most(highest), closed=closed)


def when(name: str, value: Scalar) -> Scalar:
    """The value where the named condition holds, else NULL."""
    return Case(((Named(name), value),), closed=False)


def under(item: BoundedStatistic, value: Scalar) -> Scalar:
    """The value on rows under the statistic's filter, else NULL."""
    return value if item.filter is None else when(f"{item.statistic.name}f", value)


def count_under(item: BoundedStatistic, condition: Scalar) -> Scalar:
    """The number of rows under the filter for which a value is not NULL."""
    value = under(item, condition)
    return Count() if value is ONE else Count(value)


def difference(left: Scalar, right: Scalar) -> Scalar:
    """A difference of integers that may be of 128 bits."""
    return Arithmetic("-", left, right, WIDE)


def open_(symbol: ArithmeticSymbol, left: Scalar, right: Scalar, kind: EngineType = WIDE) -> Scalar:
    """A sum, product or quotient that no operator stands beside."""
    return Arithmetic(symbol, left, right, kind, closed=False)


def _either(condition: Scalar, value: Scalar, otherwise: Scalar) -> Scalar:
    return Case(((condition, value),), otherwise, closed=False)


def at_most(value: Scalar, most: int) -> Scalar:
    """The lesser of a number and a constant."""
    return _either(Comparison(">", value, Whole(most), closed=False), Whole(most), value)


def extreme(which: ExtremeName, left: Scalar, right: Scalar) -> Scalar:
    """The greater or lesser of two integers, neither of which is NULL."""
    return Extreme(which, (left, right), (False, False))


def encoding_of(item: BoundedStatistic) -> Encoding:
    """How its values become integers. Requires: they do."""
    assert item.statistic.encoding is not None
    return item.statistic.encoding


def _factor(size: int) -> Scalar:
    """A factor of a number of rows; wide where the product of both may leave 64 bits."""
    return Whole(size) if size < 2**40 else Cast(Whole(size), WIDE)
