"""Aggregates to statistics and estimates: what every way of bounding a unit has in common.

Aggregates of one argument under one filter are a family and may share sums; a count of all rows may ride on them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import assert_never

from privacy.aggregate import AggregateFunction
from privacy.policy import Dataset
from privacy.refusal import Collector
from privacy.statistic import Estimate, StatisticKind
from sql_rewrite.bounded import BoundedNorm, BoundedStatistic
from sql_rewrite.expressions import Canonical, Expression, form_of
from sql_rewrite.plan import Aggregate, Core

__all__ = ["Builder", "Carriers", "Family"]

Carriers = dict[Canonical | None, str]
"""By the form of a filter, the moments that count every row under it."""


@dataclass(slots=True)
class Family:
    """Aggregates of one argument under one filter."""

    argument: Expression | None
    filter: Expression | None
    aggregates: list[Aggregate]
    distinct: bool = False
    """Whether each different value of the argument counts once."""

    def needs(self, kind: StatisticKind) -> bool:
        """Whether an aggregate of the family is computed from this kind of sums."""
        return any(aggregate.function.statistic is kind for aggregate in self.aggregates)

    @property
    def degree(self) -> int:
        """The least degree of moments that holds all of the family's averages and variances; zero without one."""
        return max(aggregate.function.degree for aggregate in self.aggregates)


class Builder(ABC):
    """Turns the aggregates of one core into statistics and estimates."""

    def __init__(self, core: Core, dataset: Dataset) -> None:
        self.core = core
        self.dataset = dataset
        self.statistics: list[BoundedStatistic] = []
        self.norms: list[BoundedNorm] = []

    @abstractmethod
    def units(self, condition: Expression | None) -> str:
        """The statistic that counts privacy units (with a row under `condition`) per cell."""

    def selection(self) -> str:
        """The statistic by which hidden groups are selected."""
        return self.units(None)

    @abstractmethod
    def rows(self, condition: Expression | None) -> str:
        """The statistic that counts rows under a condition."""

    @abstractmethod
    def argument(self, family: Family, estimates: dict[str, Estimate], *, carries: bool) -> str | None:
        """Statistics of one argument. Returns the name of the moments that also count all rows, if there are any."""

    @abstractmethod
    def different(self, family: Family, estimates: dict[str, Estimate]) -> None:
        """Statistics of the different values of one argument."""

    def counted(self, family: Family, selection: str | None) -> bool:
        """Whether COUNT(*) of these rows is the number of units that a selection counts anyway."""
        return False

    def estimates(self, selection: str | None) -> tuple[Estimate, ...]:
        """All aggregates as estimates; adds the statistics that they need."""
        families: dict[tuple[Canonical | None, Canonical | None, bool], Family] = {}
        for aggregate in self.core.aggregates:
            distinct = aggregate.distinct
            forms = form_of(aggregate.argument), form_of(aggregate.filter), distinct
            family = families.setdefault(forms, Family(aggregate.argument, aggregate.filter, [], distinct))
            family.aggregates.append(aggregate)
        estimates: dict[str, Estimate] = {}
        findings = Collector()
        carriers: Carriers = {}
        wants_rows = {
            form_of(family.filter)
            for family in families.values()
            if family.argument is None and family.needs(StatisticKind.COUNT)
        }
        for family in families.values():
            if family.argument is None:
                continue
            if family.distinct:
                with findings:
                    self.different(family, estimates)
                continue
            filter_form = form_of(family.filter)
            # A count of all rows rides on the first sums that see the same rows, unless counting units is free.
            carries = filter_form in wants_rows and filter_form not in carriers and not self.counted(family, selection)
            with findings:
                name = self.argument(family, estimates, carries=carries)
                if carries and name is not None:
                    carriers[filter_form] = name
        findings.refuse()
        for family in families.values():
            if family.argument is not None:
                continue
            for aggregate in family.aggregates:
                estimates[aggregate.name] = self._without_argument(family, aggregate, carriers)
        return tuple(estimates[aggregate.name] for aggregate in self.core.aggregates)

    def _without_argument(self, family: Family, aggregate: Aggregate, carriers: Carriers) -> Estimate:
        """The estimate of a count of rows or units."""
        function = aggregate.function
        match function.statistic:
            case StatisticKind.UNITS:
                statistic = self.units(family.filter)
                # Units under a filter, and those that are scaled, are counted as rows, at most one of each unit.
                kind = next(item.statistic.kind for item in self.statistics if item.statistic.name == statistic)
                shown = function if kind is StatisticKind.UNITS else AggregateFunction.ROWS
            case StatisticKind.COUNT:
                carrier = carriers.get(form_of(family.filter))
                shown, statistic = function, self.rows(family.filter) if carrier is None else carrier
            case StatisticKind.SUM | StatisticKind.MOMENTS:
                raise AssertionError("sums and moments have an argument")
            case StatisticKind.WEIGHTS:
                raise AssertionError("no aggregate is computed from weights")
            case _:
                assert_never(function.statistic)
        return Estimate(aggregate.name, shown, statistic, integer=function.whole(None))
