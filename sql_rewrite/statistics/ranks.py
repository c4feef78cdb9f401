"""Counts of rows by their value, on the nodes of a tree: lower_ranks.py reads the rows once more, by place."""

from __future__ import annotations

from collections.abc import Sequence

from sql_rewrite.bounded import BoundedStatistic
from sql_rewrite.dialects.costs import EngineCosts
from sql_rewrite.layer_values import Count
from sql_rewrite.norm_worth import NormWorth
from sql_rewrite.relations import Output
from sql_rewrite.scalars import Case, Cast, Comparison, Named, Scalar
from sql_rewrite.statistics.kind_sums import KindSums
from sql_rewrite.unit_worth import INTEGER, ZERO, UnitWorth, open_, under

__all__ = ["Ranks"]

_BY_PLACE = "rows of ranks are counted by place"


class Ranks(KindSums):
    """The rows at each place of a tree, each with its weight."""

    def holder(self, alone: str | None, shared: str | None) -> str | None:
        """None: quantiles are a family of their own."""
        return None

    def row(self, item: BoundedStatistic) -> Sequence[Scalar]:
        """Never asked for."""
        raise AssertionError(_BY_PLACE)

    def plain_count(self, item: BoundedStatistic, *, one_row: bool) -> bool:
        """Never: rows are counted by place."""
        return False

    def needs_rows(self, item: BoundedStatistic) -> bool:
        """Where the bound over all groups may bind."""
        return item.scaled or item.statistic.counts_nulls

    def partial(self, item: BoundedStatistic) -> Sequence[Output]:
        """The number of rows with a value."""
        name = item.statistic.name
        return [Output(Count(under(item, Named(f"{name}t"))), f"{name}n")]

    def masses(self, unit: UnitWorth, item: BoundedStatistic) -> tuple[Sequence[Output], Sequence[Output]]:
        """What the rows with a value are worth, then what each of them weighs."""
        assert item.statistic.tree is not None
        worth, rows = Named(f"{item.statistic.name}v"), Named(f"{item.statistic.name}n")
        weight = Cast(open_("//", worth, rows), INTEGER)
        some = Comparison(">", rows, ZERO, closed=False)
        return (
            [Output(unit.worth(item, item.statistic.tree.worth), worth.name)],
            [Output(Case(((some, weight),), ZERO), f"{item.statistic.name}w")],
        )

    def held(self, unit: UnitWorth, item: BoundedStatistic) -> Sequence[Scalar]:
        """Never asked for."""
        raise AssertionError(_BY_PLACE)

    def of_cell(self, unit: NormWorth, item: BoundedStatistic) -> Sequence[Output]:
        """Nothing: its rows are read again."""
        return ()

    def cell(self, unit: NormWorth, item: BoundedStatistic) -> Sequence[Output]:
        """Never asked for: cores with quantiles share no tables."""
        raise AssertionError(_BY_PLACE)

    def scaled(self, unit: NormWorth, item: BoundedStatistic) -> Sequence[Scalar]:
        """Never asked for."""
        raise AssertionError(_BY_PLACE)

    def numbers(self, item: BoundedStatistic) -> int:
        """The number of rows with a value."""
        return 1

    def held_nanoseconds(self, item: BoundedStatistic, costs: EngineCosts) -> float:
        """The weight of a row, and what holds it."""
        return 2 * costs.scattered
