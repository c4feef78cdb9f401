"""Aggregates to statistics and estimates: what every way of bounding a unit has in common.

Aggregates of one argument under one filter are a family and may share sums; a count of all rows may ride on them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import assert_never

from privacy.aggregate import AggregateFunction
from privacy.policy import ColumnType, Dataset
from privacy.refusal import Collector
from privacy.statistic import Encoding, Estimate, StatisticKind
from privacy.statistic_kind import Counts
from sql_rewrite.bounded import BoundedNorm, BoundedStatistic
from sql_rewrite.encodings import product_encodings
from sql_rewrite.expressions import Canonical, Expression, describe, form_of, number_text
from sql_rewrite.functions import clip_columns
from sql_rewrite.plan import Aggregate, Core
from sql_rewrite.value_bounds import proved_range

__all__ = ["Builder", "Carriers", "Family", "Pair"]

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
    second: Expression | None = None
    """The second value of aggregates of pairs."""

    def needs(self, kind: StatisticKind) -> bool:
        """Whether an aggregate of the family is computed from this kind of sums."""
        return any(aggregate.function.statistic is kind for aggregate in self.aggregates)

    def split(self) -> tuple[Family, Family]:
        """The quantiles of the family, and its other aggregates: two families, which share no sums."""
        ranked = [one for one in self.aggregates if one.function.statistic is StatisticKind.RANKS]
        others = [one for one in self.aggregates if one.function.statistic is not StatisticKind.RANKS]
        return replace(self, aggregates=ranked), replace(self, aggregates=others)

    @property
    def degree(self) -> int:
        """The least degree of moments that holds all of the family's averages and variances; zero without one."""
        return max(aggregate.function.degree for aggregate in self.aggregates)

    @property
    def second_degree(self) -> int:
        """The least degree of the second value that holds all of its aggregates of pairs; zero without one."""
        return max(aggregate.function.second_degree for aggregate in self.aggregates)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two clipped arguments, how they become integers, and both as text for people."""

    arguments: tuple[Expression, Expression]
    encodings: tuple[Encoding, Encoding]
    text: str

    @property
    def nullable(self) -> bool:
        """Whether a row may lack one of them."""
        return any(argument.nullable for argument in self.arguments)


class Builder(ABC):
    """Turns the aggregates of one core into statistics and estimates."""

    def __init__(self, core: Core, dataset: Dataset) -> None:
        self.core = core
        self.dataset = dataset
        self.statistics: list[BoundedStatistic] = []
        self.norms: list[BoundedNorm] = []
        self.selected_by: str | None = None
        """The moments by whose rows hidden groups are selected; None where it is by units, or by nothing."""

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

    @abstractmethod
    def products(self, family: Family, pair: Pair, *, carries: bool) -> str:
        """Adds the statistic of a pair of values. Returns its name."""

    @property
    @abstractmethod
    def product_bits(self) -> int:
        """Most binary places of the worth of a row of products."""

    def pairs(self, family: Family, estimates: dict[str, Estimate], *, carries: bool) -> str:
        """The statistic of two values, which all aggregates of them share."""
        assert family.argument is not None
        assert family.second is not None
        aggregate = family.aggregates[0]
        clipped = clip_columns(family.argument), clip_columns(family.second)
        ranges = [
            proved_range(aggregate, argument, second=second)
            for argument, second in zip(clipped, (False, True), strict=True)
        ]
        whole = [argument.type is ColumnType.INTEGER for argument in clipped]
        degrees = family.degree, family.second_degree
        first, second = product_encodings(ranges, whole, degrees, bits=self.product_bits)
        texts = [
            f"{describe(written)} clipped to [{number_text(low)}, {number_text(high)}]"
            for written, (low, high) in zip((family.argument, family.second), ranges, strict=True)
        ]
        name = self.products(family, Pair(clipped, (first, second), " and ".join(texts)), carries=carries)
        for one in family.aggregates:
            estimates[one.name] = Estimate(one.name, one.function, name, integer=one.function.whole(None))
        return name

    @abstractmethod
    def ranks(self, family: Family, estimates: dict[str, Estimate]) -> None:
        """The statistic of the quantiles of one argument. Errors: Refused."""

    @property
    def trees(self) -> int:
        """How many statistics are counts on a tree."""
        return sum(1 for item in self.statistics if item.statistic.tree is not None)

    def ranked(self, family: Family, argument: Expression, statistic: str, estimates: dict[str, Estimate]) -> None:
        """The quantiles of a family, which share one statistic."""
        for one in family.aggregates:
            whole = one.function.whole(argument.type)
            estimates[one.name] = Estimate(one.name, one.function, statistic, integer=whole, fraction=one.fraction)

    def aggregates(self) -> tuple[Aggregate, ...]:
        """The aggregates as they are measured."""
        return self.core.aggregates

    def selects_by_rows(self) -> bool:
        """Whether hidden groups are to be selected by the rows of moments that are measured anyway."""
        return False

    def counted(self, family: Family, selection: str | None) -> bool:
        """Whether COUNT(*) of these rows is the number of units that a selection counts anyway."""
        return False

    def estimates(self, selection: str | None) -> tuple[Estimate, ...]:
        """All aggregates as estimates; adds the statistics that they need."""
        families: dict[tuple[Canonical | None, Canonical | None, Canonical | None, bool], Family] = {}
        for aggregate in sorted(self.aggregates(), key=lambda aggregate: aggregate.function.described.symmetric):
            argument, second = aggregate.argument, aggregate.second
            one, other, rows = form_of(argument), form_of(second), form_of(aggregate.filter)
            forms, turned = (one, other, rows, aggregate.distinct), (other, one, rows, aggregate.distinct)
            if aggregate.function.described.symmetric and turned in families:
                # The same pairs, in the order of an aggregate for which it matters.
                forms, argument, second = turned, second, argument
            family = families.setdefault(forms, Family(argument, aggregate.filter, [], aggregate.distinct, second))
            family.aggregates.append(aggregate)
        estimates: dict[str, Estimate] = {}
        findings = Collector()
        carriers: Carriers = {}
        wants_rows = {
            rows
            for (_, _, rows, _), family in families.items()
            if family.argument is None
            and any(one.function is not AggregateFunction.PRESENT for one in family.aggregates)
            and family.needs(StatisticKind.COUNT)
        }
        if selection is None and self.selects_by_rows():
            wants_rows.add(None)
        for (_, _, filter_form, _), family in families.items():
            if family.argument is None:
                continue
            if family.distinct:
                with findings:
                    self.different(family, estimates)
                continue
            ranked, family = family.split()
            if ranked.aggregates:
                with findings:
                    self.ranks(ranked, estimates)
            if not family.aggregates:
                continue
            # A count of all rows rides on the first sums that see the same rows, unless counting units is free.
            carries = filter_form in wants_rows and filter_form not in carriers and not self.counted(family, selection)
            with findings:
                if family.second is not None:
                    name: str | None = self.pairs(family, estimates, carries=carries)
                else:
                    name = self.argument(family, estimates, carries=carries)
                if carries and name is not None:
                    carriers[filter_form] = name
        findings.refuse()
        self.selected_by = carriers.get(None)
        for family in families.values():
            if family.argument is not None:
                continue
            for aggregate in family.aggregates:
                estimates[aggregate.name] = self._without_argument(family, aggregate, carriers)
        return tuple(estimates[aggregate.name] for aggregate in self.core.aggregates)

    def _without_argument(self, family: Family, aggregate: Aggregate, carriers: Carriers) -> Estimate:
        """The estimate of a count of rows or units."""
        function = aggregate.function
        counts = function.statistic.described.counts
        match counts:
            case Counts.UNITS:
                statistic = self.units(family.filter)
                # Units under a filter, and those that are scaled, are counted as rows, at most one of each unit.
                kind = next(item.statistic.kind for item in self.statistics if item.statistic.name == statistic)
                shown = function if kind is StatisticKind.UNITS else AggregateFunction.ROWS
            case Counts.ROWS:
                # Whether rows are there is read from counts alone.
                apart = function is AggregateFunction.PRESENT
                carrier = None if apart else carriers.get(form_of(family.filter))
                shown, statistic = function, self.rows(family.filter) if carrier is None else carrier
            case None:
                raise AssertionError("sums, moments, products and ranks have an argument; weights have no aggregate")
            case _:
                assert_never(counts)
        return Estimate(aggregate.name, shown, statistic, integer=function.whole(None))
