"""Counts of units, of weights of units, and of rows."""

from __future__ import annotations

from collections.abc import Sequence

from privacy.norms import NormOf
from sql_rewrite.bounded import BoundedStatistic
from sql_rewrite.dialects.costs import EngineCosts
from sql_rewrite.layer_values import Count, Sum
from sql_rewrite.norm_worth import WEIGHT, NormWorth
from sql_rewrite.relations import Output
from sql_rewrite.scalars import Case, Comparison, Named, Scalar
from sql_rewrite.statistics.kind_sums import KindSums
from sql_rewrite.unit_worth import ONE, ZERO, UnitWorth, count_under, when

__all__ = ["Rows", "Units", "Weights"]


class Units(KindSums):
    """The units that are there."""

    def holder(self, alone: str | None, shared: str | None) -> str | None:
        """None: units have no argument."""
        return None

    def row(self, item: BoundedStatistic) -> Sequence[Scalar]:
        """One for each unit, which has one row."""
        return [ONE]

    def plain_count(self, item: BoundedStatistic, *, one_row: bool) -> bool:
        """Under a filter only where several rows of a unit are grouped before."""
        return item.filter is None or not one_row

    def needs_rows(self, item: BoundedStatistic) -> bool:
        """Never: a unit counts once, whatever its rows."""
        return False

    def partial(self, item: BoundedStatistic) -> Sequence[Output]:
        """Nothing beside the unit itself."""
        return ()

    def masses(self, unit: UnitWorth, item: BoundedStatistic) -> tuple[Sequence[Output], Sequence[Output]]:
        """Nothing: a unit is worth one."""
        return (), ()

    def held(self, unit: UnitWorth, item: BoundedStatistic) -> Sequence[Scalar]:
        """Never asked for: layer 4 counts the units themselves."""
        raise AssertionError("units are counted, and weighed only where they are scaled to norms")

    def of_cell(self, unit: NormWorth, item: BoundedStatistic) -> Sequence[Output]:
        """Nothing beside the unit itself."""
        return ()

    def cell(self, unit: NormWorth, item: BoundedStatistic) -> Sequence[Output]:
        """Nothing beside the unit itself."""
        return ()

    def scaled(self, unit: NormWorth, item: BoundedStatistic) -> Sequence[Scalar]:
        """The units, unscaled: each is in one cell."""
        return [Count()]

    def numbers(self, item: BoundedStatistic) -> int:
        """None."""
        return 0

    def held_nanoseconds(self, item: BoundedStatistic, costs: EngineCosts) -> float:
        """None, but for what other statistics scale."""
        return costs.scattered if item.scaled else 0.0


class Weights(Units):
    """The weights of the units that are there."""

    def plain_count(self, item: BoundedStatistic, *, one_row: bool) -> bool:
        """Never: they are scaled."""
        return False

    def scaled(self, unit: NormWorth, item: BoundedStatistic) -> Sequence[Scalar]:
        """The weights of the units that are there, by their number of groups."""
        return [Sum(Named(WEIGHT))]

    def held_nanoseconds(self, item: BoundedStatistic, costs: EngineCosts) -> float:
        """The weight of each unit."""
        return costs.clipped


class Rows(KindSums):
    """Rows, or those that have a value."""

    def holder(self, alone: str | None, shared: str | None) -> str | None:
        """What is shared: moments count their rows too."""
        return shared

    def row(self, item: BoundedStatistic) -> Sequence[Scalar]:
        """One for each row."""
        return [ONE]

    def plain_count(self, item: BoundedStatistic, *, one_row: bool) -> bool:
        """Without a filter, where no unit is held to a bound."""
        return item.filter is None and one_row

    def needs_rows(self, item: BoundedStatistic) -> bool:
        """Always: they are what is allotted."""
        return True

    def partial(self, item: BoundedStatistic) -> Sequence[Output]:
        """The rows with a value, where only these count."""
        name = item.statistic.name
        return () if item.present is None else [Output(count_under(item, when(f"{name}h", ONE)), f"{name}n")]

    def masses(self, unit: UnitWorth, item: BoundedStatistic) -> tuple[Sequence[Output], Sequence[Output]]:
        """Nothing: a row is worth one."""
        return (), ()

    def held(self, unit: UnitWorth, item: BoundedStatistic) -> Sequence[Scalar]:
        """The allotted rows, or those with a value, at most as many."""
        size = 1 if item.statistic.encoding is None else item.statistic.encoding.highest
        return [unit.allotted(item, size) if item.present is None else unit.worth(item, size)]

    def of_cell(self, unit: NormWorth, item: BoundedStatistic) -> Sequence[Output]:
        """The rows with a value, where only these count."""
        return self.partial(item)

    def cell(self, unit: NormWorth, item: BoundedStatistic) -> Sequence[Output]:
        """The column that is counted."""
        read = unit.counted(item) if item.present is None else f"{item.statistic.name}n"
        return [Output(Named(read), read)]

    def scaled(self, unit: NormWorth, item: BoundedStatistic) -> Sequence[Scalar]:
        """Rows times the factor; in the norm of groups a unit counts once in each cell."""
        rows = Named(unit.counted(item))
        if item.statistic.norm is None:
            # Units under a filter, each in one cell.
            return [Count(Case(((Comparison(">", rows, ZERO, closed=False), ONE),)))]
        if unit.norm_of(item) is NormOf.UNITS:
            return [unit.times(item, Named(f"{item.statistic.norm}v"))]
        return [unit.times(item, rows if item.present is None else Named(f"{item.statistic.name}n"))]

    def numbers(self, item: BoundedStatistic) -> int:
        """One where only rows with a value count."""
        return 0 if item.present is None else 1

    def held_nanoseconds(self, item: BoundedStatistic, costs: EngineCosts) -> float:
        """What clips or scales a number of rows."""
        return costs.scattered if item.scaled else costs.clipped
