"""Vectors whose entries add up to the worth of a row, summed and scaled as tails (lower_vector.py)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from sql_rewrite.bounded import BoundedStatistic
from sql_rewrite.dialects.costs import EngineCosts
from sql_rewrite.layer_values import Count, Sum
from sql_rewrite.lower_vector import tail_names, tails
from sql_rewrite.norm_worth import NormWorth, nullable, size_of
from sql_rewrite.relations import Output
from sql_rewrite.scalars import Arithmetic, Cast, Coalesce, EngineType, Named, Scalar, Whole
from sql_rewrite.statistics.kind_sums import KindSums
from sql_rewrite.unit_worth import INTEGER, ZERO, UnitWorth, difference, under

__all__ = ["Vectors", "total", "worth"]


class Vectors(KindSums):
    """What all such vectors have in common; these methods are those of vectors that are summed as tails."""

    def plain_count(self, item: BoundedStatistic, *, one_row: bool) -> bool:
        """Never: a vector has several coordinates."""
        return False

    def needs_rows(self, item: BoundedStatistic) -> bool:
        """Where the bound over all groups may bind, and for the rows without a value."""
        return item.scaled or item.statistic.counts_nulls

    def partial(self, item: BoundedStatistic) -> Sequence[Output]:
        """Sums of the tails of the rows' vectors, and the number of the rows."""
        parts = tails(item)
        summed = [Output(Sum(under(item, part)), name) for part, name in zip(parts, tail_names(item), strict=True)]
        return [*summed, Output(Count(under(item, parts[0])), f"{item.statistic.name}n")]

    def masses(self, unit: UnitWorth, item: BoundedStatistic) -> tuple[Sequence[Output], Sequence[Output]]:
        """What rows with a value, and all rows, are worth; then the running sums of the vector, and what is clipped."""
        name, size = item.statistic.name, item.statistic.row_units
        first = [Output(unit.worth(item, size), f"{name}v")]
        if item.statistic.counts_nulls:
            first.append(Output(unit.allotted(item, size), f"{name}a"))
        return [*first, *self.running(unit, item)], self.clipped(unit, item)

    def running(self, unit: UnitWorth, item: BoundedStatistic) -> Sequence[Output]:
        """Running sums of the scaled vector."""
        scaled = [unit.scaled(item, Coalesce((Named(part), ZERO))) for part in tail_names(item)]
        return [Output(value, f"{item.statistic.name}k{place}") for place, value in enumerate(scaled)]

    def clipped(self, unit: UnitWorth, item: BoundedStatistic) -> Sequence[Output]:
        """What is clipped beside that."""
        return ()

    def held(self, unit: UnitWorth, item: BoundedStatistic) -> Sequence[Scalar]:
        """Differences of the running sums, and what rows without a value are worth."""
        parts = self.entries(item)
        if item.statistic.counts_nulls:
            parts.append(difference(Named(f"{item.statistic.name}a"), Named(f"{item.statistic.name}v")))
        return parts

    def entries(self, item: BoundedStatistic) -> list[Scalar]:
        """The coordinates of values."""
        name = item.statistic.name
        held = [Named(f"{name}v"), *(Named(f"{name}k{place}") for place, _ in enumerate(tail_names(item)))]
        return [*(difference(more, less) for more, less in itertools.pairwise(held)), held[-1]]

    def of_cell(self, unit: NormWorth, item: BoundedStatistic) -> Sequence[Output]:
        """As where counts bound units; rows are all of a cell's where none lacks a value."""
        *summed, rows = self.partial(item)
        return [*summed, rows] if nullable(item) else summed

    def columns(self, item: BoundedStatistic) -> Sequence[str]:
        """The columns of the sums of values."""
        return tail_names(item)

    def cell(self, unit: NormWorth, item: BoundedStatistic) -> Sequence[Output]:
        """The numbers of rows, and the sums of values."""
        counted, name = unit.counted(item), item.statistic.name
        numbers = [Output(Named(read), read) for read in ((counted, f"{name}n") if nullable(item) else (counted,))]
        narrow = size_of(item)[1] is INTEGER
        parts = [Output(Cast(Named(part), INTEGER) if narrow else Named(part), part) for part in self.columns(item)]
        return [*numbers, *parts]

    def scaled(self, unit: NormWorth, item: BoundedStatistic) -> Sequence[Scalar]:
        """The unscaled sums of the unit's rows in the cell, times its factor."""
        size, kind = size_of(item)
        rows = unit.counted(item)
        values = f"{item.statistic.name}n" if nullable(item) else rows
        parts = self.unscaled(item, worth(values, size, kind), kind)
        if item.statistic.counts_nulls:
            missing = Arithmetic("-", Named(rows), Named(values), INTEGER)
            parts.append(Arithmetic("*", Cast(missing, kind), Cast(Whole(size), kind), kind))
        return [unit.times(item, part) for part in parts]

    def unscaled(self, item: BoundedStatistic, whole: Scalar, kind: EngineType) -> list[Scalar]:
        """The coordinates of values, from the worth of the rows that have one."""
        held = [whole, *(total(name, kind) for name in tail_names(item))]
        return [*(Arithmetic("-", more, less, kind) for more, less in itertools.pairwise(held)), held[-1]]

    def held_nanoseconds(self, item: BoundedStatistic, costs: EngineCosts) -> float:
        """Each coordinate; factors of norms find those of a unit together."""
        normed = item.statistic.norm is not None
        return (item.statistic.coordinates + 1) * (costs.clipped if normed else costs.scattered)


def total(column: str, kind: EngineType) -> Scalar:
    """A sum of values, none where there are none."""
    return Cast(Coalesce((Named(column), ZERO)), kind)


def worth(number: str, factor: int, kind: EngineType) -> Scalar:
    """What so many rows are worth."""
    return Arithmetic("*", Cast(Named(number), kind), Cast(Whole(factor), kind), kind)
