"""Bernstein sums of one value; those of degree 1 and 2 have fewer sums of their own than tails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from sql_rewrite.bounded import BoundedStatistic
from sql_rewrite.contribution import Bounding
from sql_rewrite.layer_values import Count, Sum
from sql_rewrite.lower_vector import by_tails, entries, tail_names
from sql_rewrite.norm_worth import NormWorth, nullable
from sql_rewrite.relations import Output
from sql_rewrite.scalars import Arithmetic, Case, Cast, Coalesce, EngineType, IsNull, Named, Scalar, Whole
from sql_rewrite.statistics.vectors import Vectors, total
from sql_rewrite.unit_worth import INTEGER, WIDE, ZERO, UnitWorth, difference, encoding_of, extreme, open_, under

__all__ = ["Moments"]


class Moments(Vectors):
    """The moments of T, which counts, sums, averages and variances share."""

    def holder(self, alone: str | None, shared: str | None) -> str | None:
        """What averages and counts share."""
        return shared

    def row(self, item: BoundedStatistic) -> Sequence[Scalar]:
        """The Bernstein vector of a row's T, and the coordinate of its NULL."""
        statistic, encoding = item.statistic, item.row_encoding
        assert encoding is not None
        t, width = Named(f"{statistic.name}t"), encoding.highest
        if by_tails(item):
            parts = entries(item)
        else:
            left = Arithmetic("-", Whole(width), t, INTEGER)
            parts = [left, t] if statistic.degree == 1 else _bernstein(left, t)
        if statistic.counts_nulls:
            worth = Cast(Whole(width**statistic.degree), INTEGER)
            parts.append(Case(((IsNull(t, closed=False), worth),), closed=False))
        return parts

    def partial(self, item: BoundedStatistic) -> Sequence[Output]:
        """The sums of T and of T^2, and the number of the rows with a value."""
        if by_tails(item):
            return super().partial(item)
        name, t = item.statistic.name, Named(f"{item.statistic.name}t")
        sums, rows = Output(Sum(under(item, t)), f"{name}x"), Output(Count(under(item, t)), f"{name}n")
        if item.statistic.degree == 1:
            return [sums, rows]
        return [sums, rows, Output(Sum(under(item, open_("*", t, t, INTEGER))), f"{name}y")]

    def running(self, unit: UnitWorth, item: BoundedStatistic) -> Sequence[Output]:
        """k, and l of degree 2: what lies in the last coordinate, and in the last two."""
        if by_tails(item):
            return super().running(unit, item)
        if item.bounding is Bounding.CLIPPED:
            return ()
        name = item.statistic.name
        x, y = (Coalesce((Named(f"{name}{part}"), ZERO)) for part in "xy")
        found = [Output(unit.scaled(item, x if item.statistic.degree == 1 else y), f"{name}k")]
        if item.statistic.degree == 2:
            doubled = open_("*", Whole(2 * encoding_of(item).highest), x)
            found.append(Output(unit.scaled(item, difference(doubled, y)), f"{name}l"))
        return found

    def clipped(self, unit: UnitWorth, item: BoundedStatistic) -> Sequence[Output]:
        """s, the clipped sum, where a SUM is asked for."""
        if by_tails(item) or item.bounding is Bounding.SCALED:
            return ()
        return [Output(self.clipped_moment(unit, item), f"{item.statistic.name}s")]

    def clipped_moment(self, unit: UnitWorth, item: BoundedStatistic) -> Scalar:
        """The clipped sum in steps above the lower bound, held to [0, v] whatever happened before."""
        name, encoding = item.statistic.name, encoding_of(item)
        v, k = Named(f"{name}v"), Named(f"{name}k")
        low = int(encoding.offset / encoding.step)
        high = low + encoding.highest
        x: Scalar = Coalesce((Named(f"{name}x"), ZERO))
        if low:
            x = Arithmetic("+", x, open_("*", Whole(low), Cast(Named(f"{name}n"), WIDE)), WIDE)
        value = unit.clipped(item, x, min(low, 0), max(high, 0), closed=True)
        if low:
            worth = Arithmetic("*", Cast(v, WIDE), Whole(abs(low)), WIDE)
            shift = open_("//", worth, Whole(encoding.highest))
            value = Arithmetic("-" if low > 0 else "+", value, shift, WIDE)
        if item.bounding is Bounding.BOTH and not item.statistic.lowered:
            value = extreme("greatest", value, k)
        if item.bounding is Bounding.BOTH and not item.statistic.raised:
            value = extreme("least", value, k)
        return extreme("greatest", ZERO, extreme("least", value, v))

    def entries(self, item: BoundedStatistic) -> list[Scalar]:
        """The scaled vector, the clipped sum, or both and how far they lie apart."""
        v, k, l, s = (Named(f"{item.statistic.name}{part}") for part in "vkls")  # noqa: E741
        match item.bounding:
            case Bounding.SCALED if by_tails(item):
                return super().entries(item)
            case Bounding.SCALED if item.statistic.degree == 2:
                return [difference(v, l), difference(l, k), k]
            case Bounding.SCALED:
                return [difference(v, k), k]
            case Bounding.CLIPPED:
                assert item.statistic.degree == 1
                return [difference(v, s), s]
            case Bounding.BOTH:
                assert item.statistic.degree == 1
                parts = [difference(v, extreme("greatest", k, s)), extreme("least", k, s)]
                if item.statistic.raised:
                    parts.append(extreme("greatest", open_("-", s, k), ZERO))
                if item.statistic.lowered:
                    parts.append(extreme("greatest", open_("-", k, s), ZERO))
                return parts
            case _:
                assert_never(item.bounding)

    def of_cell(self, unit: NormWorth, item: BoundedStatistic) -> Sequence[Output]:
        """As where counts bound units; rows are all of a cell's where none lacks a value."""
        if by_tails(item):
            return super().of_cell(unit, item)
        rows = f"{item.statistic.name}n"
        return [output for output in self.partial(item) if nullable(item) or output.name != rows]

    def columns(self, item: BoundedStatistic) -> Sequence[str]:
        """The sums of T and of T^2."""
        if by_tails(item):
            return tail_names(item)
        return [f"{item.statistic.name}{part}" for part in "xy"[: item.statistic.degree]]

    def unscaled(self, item: BoundedStatistic, whole: Scalar, kind: EngineType) -> list[Scalar]:
        """The Bernstein sums, from those of T and T^2."""
        if by_tails(item):
            return super().unscaled(item, whole, kind)
        encoding, name = item.row_encoding, item.statistic.name
        assert encoding is not None
        x = total(f"{name}x", kind)
        if item.statistic.degree == 1:
            return [Arithmetic("-", whole, x, kind), x]
        y = total(f"{name}y", kind)
        middle = Arithmetic("-", Arithmetic("*", Cast(Whole(2 * encoding.highest), kind), x, kind), y, kind)
        return [Arithmetic("-", whole, middle, kind), Arithmetic("-", middle, y, kind), y]

    def numbers(self, item: BoundedStatistic) -> int:
        """Of degree 1 a sum of 64 bits and a count."""
        return 2 if item.statistic.degree == 1 else 12


def _bernstein(left: Scalar, t: Scalar) -> list[Scalar]:
    """What a row adds to the three sums of degree 2, from T and the remainder of the width."""

    def product(one: Scalar, two: Scalar) -> Scalar:
        return Arithmetic("*", one, two, INTEGER, closed=False)

    return [product(left, left), product(product(Whole(2), t), left), product(t, t)]
