"""Sums of the values of rows, of either sign."""

from __future__ import annotations

from collections.abc import Sequence

from sql_rewrite.bounded import BoundedStatistic
from sql_rewrite.dialects.costs import EngineCosts
from sql_rewrite.layer_values import Sum
from sql_rewrite.norm_worth import NormWorth
from sql_rewrite.relations import Output
from sql_rewrite.scalars import Named, Scalar
from sql_rewrite.statistics.kind_sums import KindSums
from sql_rewrite.unit_worth import UnitWorth, encoding_of, under

__all__ = ["Totals"]


class Totals(KindSums):
    """Sums of T."""

    def holder(self, alone: str | None, shared: str | None) -> str | None:
        """The sum by itself, or what counts share."""
        return shared if alone is None else alone

    def row(self, item: BoundedStatistic) -> Sequence[Scalar]:
        """T."""
        return [Named(f"{item.statistic.name}t")]

    def plain_count(self, item: BoundedStatistic, *, one_row: bool) -> bool:
        """Never: T has either sign."""
        return False

    def needs_rows(self, item: BoundedStatistic) -> bool:
        """Where the bound over all groups may bind."""
        return item.scaled or item.statistic.counts_nulls

    def partial(self, item: BoundedStatistic) -> Sequence[Output]:
        """The sum of T."""
        name = item.statistic.name
        return [Output(Sum(under(item, Named(f"{name}t"))), f"{name}x")]

    def masses(self, unit: UnitWorth, item: BoundedStatistic) -> tuple[Sequence[Output], Sequence[Output]]:
        """Nothing: a sum is clipped where it is read."""
        return (), ()

    def held(self, unit: UnitWorth, item: BoundedStatistic) -> Sequence[Scalar]:
        """The sum, held to what the allotted rows could be worth at either end."""
        x, encoding = Named(f"{item.statistic.name}x"), encoding_of(item)
        return [unit.clipped(item, x, min(encoding.lowest, 0), max(encoding.highest, 0))]

    def of_cell(self, unit: NormWorth, item: BoundedStatistic) -> Sequence[Output]:
        """The sum of T."""
        return self.partial(item)

    def cell(self, unit: NormWorth, item: BoundedStatistic) -> Sequence[Output]:
        """Nothing beside the number of its norm, which is the sum."""
        return ()

    def scaled(self, unit: NormWorth, item: BoundedStatistic) -> Sequence[Scalar]:
        """The number of its norm times the factor."""
        return [unit.times(item, Named(f"{item.statistic.norm}v"))]

    def numbers(self, item: BoundedStatistic) -> int:
        """One of 128 bits."""
        return 3

    def held_nanoseconds(self, item: BoundedStatistic, costs: EngineCosts) -> float:
        """What clips or scales a sum."""
        return costs.scattered if item.scaled or item.statistic.norm is not None else costs.clipped
