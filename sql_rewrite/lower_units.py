"""What one unit adds to one group: its rows allotted, its sums held to the worth of the allotted rows.

Four layers, each over the one before. The second exists only where the bound over all groups may bind; the third and
fourth name what the integers of a vector are made of:

    1  per unit and group: n rows under each filter, and per statistic its rows n, sums x of T and y of T^2, or of the
       tails of its vectors (lower_vector.py)
    2  per unit: m, the rows of all its groups, each clipped to r; NULL where they are not too many
    3  v, what the unit's rows are worth; k and l (k0, k1, ...), running sums of the scaled vector; a, what all rows
       are worth (NULLs too); s, the clipped sum; of ranks w, what each of the rows weighs (lower_ranks.py)
    4  per group: the sums over units

Names are those of the statistics (s0n, s0x, ...) and of the filters (n0, m0, ...). Every quotient is of non-negative
integers and rounds down. mechanisms/bounding.md says why the bounds hold, and that nothing leaves 128 bits.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import assert_never

from privacy.statistic import Encoding, StatisticKind
from sql_rewrite.bounded import BoundedCore, BoundedStatistic
from sql_rewrite.contribution import Bounding, Contribution
from sql_rewrite.expressions import Canonical, form_of
from sql_rewrite.lower_vector import by_tails, tail_names, tails
from sql_rewrite.relations import Count, Output, Relation, Sum, WithTotals
from sql_rewrite.scalars import (
    Arithmetic,
    ArithmeticSymbol,
    Case,
    Cast,
    Coalesce,
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

__all__ = ["ONE", "UnitSums", "count_under", "difference", "under", "when"]

WIDE, INTEGER = EngineType.WIDE, EngineType.INTEGER

ZERO, ONE = Whole(0), Whole(1)

_BY_PLACE = "rows of ranks are counted by place"


class UnitSums:
    """The layers of one core."""

    def __init__(self, bounded: BoundedCore, contribution: Contribution) -> None:
        self.contribution = contribution
        self.statistics = bounded.statistics
        filters: dict[Canonical | None, int] = {}
        self.filters = {
            item.statistic.name: filters.setdefault(form_of(item.filter), len(filters))
            for item in bounded.statistics
            if _needs_rows(item)
        }

    def partial(self) -> tuple[Output, ...]:
        """Layer 1: columns beside the unit and the keys."""
        counted: dict[int, Output] = {}
        for item in self.statistics:
            if _needs_rows(item):
                i = self._filter(item)
                counted.setdefault(i, Output(count_under(item, ONE), f"n{i}"))
        columns = list(counted.values())
        for item in self.statistics:
            columns += self._partial(item)
        return tuple(columns)

    def _partial(self, item: BoundedStatistic) -> list[Output]:
        name, kind = item.statistic.name, item.statistic.kind
        t = Named(f"{name}t")
        match kind:
            case StatisticKind.UNITS | StatisticKind.WEIGHTS:
                return []
            case StatisticKind.COUNT:
                return [] if item.present is None else [Output(count_under(item, when(f"{name}h", ONE)), f"{name}n")]
            case StatisticKind.SUM:
                return [Output(Sum(under(item, t)), f"{name}x")]
            case StatisticKind.PRODUCTS:
                return _tails(item)
            case StatisticKind.MOMENTS if by_tails(item):
                return _tails(item)
            case StatisticKind.MOMENTS:
                total, rows = Output(Sum(under(item, t)), f"{name}x"), Output(Count(under(item, t)), f"{name}n")
                if item.statistic.degree == 1:
                    return [total, rows]
                return [total, rows, Output(Sum(under(item, _open("*", t, t, INTEGER))), f"{name}y")]
            case StatisticKind.RANKS:
                return [Output(Count(under(item, t)), f"{name}n")]
            case _:
                assert_never(kind)

    def totals(self) -> dict[str, Scalar]:
        """The unit's rows over all its groups, by name, for each filter under which they may be too many."""
        numbers = sorted({self._filter(item) for item in self.statistics if item.scaled})
        rows = self.contribution.rows
        return {f"m{i}": Cast(Sum(_at_most(Named(f"n{i}"), rows)), INTEGER) for i in numbers}

    def with_totals(self, partial: Relation) -> Relation:
        """Layer 2 over layer 1: `partial` with the totals of units that are beyond the bound, NULL for all others."""
        totals = tuple([Output(value, name) for name, value in self.totals().items()])
        return WithTotals(partial, totals, self.contribution.total) if totals else partial

    def masses(self) -> tuple[tuple[Output, ...], tuple[Output, ...]]:
        """Layer 3, in two steps: what values and rows are worth and the scaled vector; then the clipped sum."""
        first: list[Output] = []
        second: list[Output] = []
        for item in self.statistics:
            match item.statistic.kind:
                case StatisticKind.UNITS | StatisticKind.WEIGHTS | StatisticKind.COUNT | StatisticKind.SUM:
                    continue
                case StatisticKind.MOMENTS | StatisticKind.PRODUCTS:
                    pass
                case StatisticKind.RANKS:
                    assert item.statistic.tree is not None
                    worth, rows = Named(f"{item.statistic.name}v"), Named(f"{item.statistic.name}n")
                    first.append(Output(self._worth(item, item.statistic.tree.worth), worth.name))
                    weight = Cast(_open("//", worth, rows), INTEGER)
                    some = Comparison(">", rows, ZERO, closed=False)
                    second.append(Output(Case(((some, weight),), ZERO), f"{item.statistic.name}w"))
                    continue
                case _:
                    assert_never(item.statistic.kind)
            name, encoding = item.statistic.name, _encoding(item)
            size = item.statistic.row_units
            first.append(Output(self._worth(item, size), f"{name}v"))
            if item.statistic.counts_nulls:
                first.append(Output(self._allotted(item, size), f"{name}a"))
            if by_tails(item):
                for place, part in enumerate(tail_names(item)):
                    first.append(Output(self._scaled(item, Coalesce((Named(part), ZERO))), f"{name}k{place}"))
                continue
            if item.bounding is not Bounding.CLIPPED:
                x, y = (Coalesce((Named(f"{name}{part}"), ZERO)) for part in "xy")
                first.append(Output(self._scaled(item, x if item.statistic.degree == 1 else y), f"{name}k"))
                if item.statistic.degree == 2:
                    doubled = _open("*", Whole(2 * encoding.highest), x)
                    first.append(Output(self._scaled(item, difference(doubled, y)), f"{name}l"))
            if item.bounding is not Bounding.SCALED:
                second.append(Output(self._clipped_moment(item), f"{name}s"))
        return tuple(first), tuple(second)

    def sums(self) -> tuple[Output, ...]:
        """Layer 4: every coordinate of every statistic."""
        columns = []
        for item in self.statistics:
            name = item.statistic.name
            if item.statistic.kind is StatisticKind.UNITS:
                columns.append(Output(Count(), f"{name}_0"))
                continue
            bound = int(item.statistic.sensitivity.linf)
            for i, value in enumerate(self._coordinates(item)):
                columns.append(Output(Sum(_narrow(value, bound)), f"{name}_{i}"))
        return tuple(columns)

    def _coordinates(self, item: BoundedStatistic) -> Sequence[Scalar]:
        name, kind = item.statistic.name, item.statistic.kind
        match kind:
            case StatisticKind.COUNT:
                return [self._counted(item)]
            case StatisticKind.SUM:
                x, encoding = Named(f"{name}x"), _encoding(item)
                return [self._clipped(item, x, min(encoding.lowest, 0), max(encoding.highest, 0))]
            case StatisticKind.MOMENTS | StatisticKind.PRODUCTS:
                return self._moments(item)
            case StatisticKind.UNITS | StatisticKind.WEIGHTS:
                raise AssertionError("units are counted, and weighed only where they are scaled to norms")
            case StatisticKind.RANKS:
                raise AssertionError(_BY_PLACE)
            case _:
                assert_never(kind)

    def _moments(self, item: BoundedStatistic) -> list[Scalar]:
        v, k, l, s, a = (Named(f"{item.statistic.name}{part}") for part in "vklsa")  # noqa: E741
        parts: list[Scalar]
        match item.bounding:
            case Bounding.SCALED if by_tails(item):
                held = [v, *(Named(f"{item.statistic.name}k{place}") for place, _ in enumerate(tail_names(item)))]
                parts = [*(difference(more, less) for more, less in itertools.pairwise(held)), held[-1]]
            case Bounding.SCALED if item.statistic.degree == 2:
                parts = [difference(v, l), difference(l, k), k]
            case Bounding.SCALED:
                parts = [difference(v, k), k]
            case Bounding.CLIPPED:
                assert item.statistic.degree == 1
                parts = [difference(v, s), s]
            case Bounding.BOTH:
                assert item.statistic.degree == 1
                parts = [difference(v, _extreme("greatest", k, s)), _extreme("least", k, s)]
                if item.statistic.raised:
                    parts.append(_extreme("greatest", _open("-", s, k), ZERO))
                if item.statistic.lowered:
                    parts.append(_extreme("greatest", _open("-", k, s), ZERO))
            case _:
                assert_never(item.bounding)
        if item.statistic.counts_nulls:
            parts.append(difference(a, v))
        return parts

    # What rows are worth

    def _filter(self, item: BoundedStatistic) -> int:
        return self.filters[item.statistic.name]

    def _rows(self, item: BoundedStatistic) -> Scalar:
        """c: the unit's rows in the group, clipped to r."""
        return _at_most(Named(f"n{self._filter(item)}"), item.rows)

    def _values(self, item: BoundedStatistic) -> Scalar:
        """c': those with a value, clipped to r."""
        return _at_most(Named(f"{item.statistic.name}n"), item.rows)

    def _total(self, item: BoundedStatistic) -> Scalar:
        """m: the unit's rows over all its groups, where they are too many."""
        return Named(f"m{self._filter(item)}")

    def _over(self, item: BoundedStatistic) -> Scalar:
        """Whether the unit has more rows than the bound over all groups: m > R."""
        return Comparison(">", self._total(item), Whole(self.contribution.total), closed=False)

    def _fewer(self, item: BoundedStatistic) -> Scalar:
        """Whether the allotted part c R / m is less than the unit's rows with a value."""
        allotted = _open("*", self._rows(item), Whole(self.contribution.total))
        there = _open("*", self._total(item), self._values(item))
        return Junction("AND", (self._over(item), Comparison("<", allotted, there, closed=False)), closed=False)

    def _part(self, item: BoundedStatistic, size: int) -> Scalar:
        """floor(size c R / m)."""
        worth = Arithmetic("*", Cast(self._rows(item), WIDE), Cast(Whole(self.contribution.total * size), WIDE), WIDE)
        return _open("//", worth, self._total(item))

    def _allotted(self, item: BoundedStatistic, size: int) -> Scalar:
        """What the unit's allotted rows are worth, at `size` each."""
        whole = _open("*", self._rows(item), _factor(size))
        return _either(self._over(item), self._part(item, size), whole) if item.scaled else whole

    def _worth(self, item: BoundedStatistic, size: int) -> Scalar:
        """What the unit's rows with a value are worth: at most the allotted ones."""
        whole = _open("*", self._values(item), _factor(size))
        return _either(self._fewer(item), self._part(item, size), whole) if item.scaled else whole

    def _counted(self, item: BoundedStatistic) -> Scalar:
        size = 1 if item.statistic.encoding is None else item.statistic.encoding.highest
        if item.present is not None:
            return self._worth(item, size)
        return self._allotted(item, size)

    # Values

    def _scaled(self, item: BoundedStatistic, running: Scalar) -> Scalar:
        """A running sum of the vector, scaled to r rows and then to the allotted part of them."""
        n, rows = Named(f"{item.statistic.name}n"), Whole(item.rows)
        more = Comparison(">", n, rows, closed=False)
        value = _either(more, _open("//", Arithmetic("*", running, Cast(rows, WIDE), WIDE), n), running)
        if not item.scaled:
            return value
        allotted = Arithmetic("*", self._rows(item), Whole(self.contribution.total), INTEGER)
        there = Arithmetic("*", self._total(item), self._values(item), INTEGER)
        return _either(self._fewer(item), _open("//", _open("*", value, allotted), there), value)

    def _clipped(self, item: BoundedStatistic, x: Scalar, lowest: int, highest: int, *, closed: bool = False) -> Scalar:
        """x held to the worth of the allotted rows, each between `lowest` <= 0 and `highest` >= 0."""

        def most(limit: int) -> Scalar:
            whole = Whole(item.rows * limit)
            if not item.scaled or not limit:
                return whole
            return Case(((self._over(item), self._part(item, limit)),), whole)

        return Held(x, most(-lowest), most(highest), closed=closed)

    def _clipped_moment(self, item: BoundedStatistic) -> Scalar:
        """The clipped sum in steps above the lower bound, held to [0, v] whatever happened before."""
        name, encoding = item.statistic.name, _encoding(item)
        v, k = Named(f"{name}v"), Named(f"{name}k")
        low = int(encoding.offset / encoding.step)
        high = low + encoding.highest
        x: Scalar = Coalesce((Named(f"{name}x"), ZERO))
        if low:
            x = Arithmetic("+", x, _open("*", Whole(low), Cast(Named(f"{name}n"), WIDE)), WIDE)
        value = self._clipped(item, x, min(low, 0), max(high, 0), closed=True)
        if low:
            worth = Arithmetic("*", Cast(v, WIDE), Whole(abs(low)), WIDE)
            shift = _open("//", worth, Whole(encoding.highest))
            value = Arithmetic("-" if low > 0 else "+", value, shift, WIDE)
        if item.bounding is Bounding.BOTH and not item.statistic.lowered:
            value = _extreme("greatest", value, k)
        if item.bounding is Bounding.BOTH and not item.statistic.raised:
            value = _extreme("least", value, k)
        return _extreme("greatest", ZERO, _extreme("least", value, v))


def _needs_rows(item: BoundedStatistic) -> bool:
    """Whether the number of rows under the filter decides what the statistic gets."""
    match item.statistic.kind:
        case StatisticKind.UNITS | StatisticKind.WEIGHTS:
            return False
        case StatisticKind.COUNT:
            return True
        case StatisticKind.SUM | StatisticKind.MOMENTS | StatisticKind.PRODUCTS | StatisticKind.RANKS:
            return item.scaled or item.statistic.counts_nulls
        case _:
            assert_never(item.statistic.kind)


def _tails(item: BoundedStatistic) -> list[Output]:
    """Sums of the tails of the rows' vectors, and the number of the rows."""
    parts = tails(item)
    summed = [Output(Sum(under(item, part)), name) for part, name in zip(parts, tail_names(item), strict=True)]
    return [*summed, Output(Count(under(item, parts[0])), f"{item.statistic.name}n")]


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


def _open(symbol: ArithmeticSymbol, left: Scalar, right: Scalar, kind: EngineType = WIDE) -> Scalar:
    return Arithmetic(symbol, left, right, kind, closed=False)


def _either(condition: Scalar, value: Scalar, otherwise: Scalar) -> Scalar:
    return Case(((condition, value),), otherwise, closed=False)


def _at_most(value: Scalar, most: int) -> Scalar:
    return _either(Comparison(">", value, Whole(most), closed=False), Whole(most), value)


def _extreme(which: ExtremeName, left: Scalar, right: Scalar) -> Scalar:
    """The greater or lesser of two integers, neither of which is NULL."""
    return Extreme(which, (left, right), (False, False))


def _encoding(item: BoundedStatistic) -> Encoding:
    assert item.statistic.encoding is not None
    return item.statistic.encoding


def _factor(size: int) -> Scalar:
    """A factor of a number of rows; wide where the product of both may leave 64 bits."""
    return Whole(size) if size < 2**40 else Cast(Whole(size), WIDE)


def _narrow(value: Scalar, bound: int) -> Scalar:
    """Casts a bounded partial sum to 64 bits where it fits: the outer sum is then much faster."""
    return Cast(value, INTEGER) if bound < 2**63 else value
