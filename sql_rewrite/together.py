"""Averages of two columns, as means of the pairs of their values: one statistic, and one part of the price, for two.

Which averages: those whose argument no row lacks, of the same rows (one FILTER), that stand beside no other aggregate
of their column; a pair whose covariance is asked for comes first. The statistic gets the parts of the price of all that
it stands in place of. mechanisms/products.md, "Averages of two columns", has the claim: the same numbers of the same
rows, and none with more error, in either noise.

Not where levels of groups are read, whose sums add up over cells (sql_rewrite/levels.py), and not where norms hold
units, as that may be chosen for one column alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from privacy.aggregate import AggregateFunction
from privacy.statistic_kind import StatisticKind
from sql_rewrite.expressions import Canonical, Expression, form_of
from sql_rewrite.plan import Aggregate, Core

__all__ = ["MEANS", "parts_of", "with_joined_averages"]

MEANS = (AggregateFunction.REGRESSION_MEAN_Y, AggregateFunction.REGRESSION_MEAN_X)
"""What the average of the first and of the second value of a pair is called."""


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of which averages alone are asked, under one filter."""

    argument: Expression
    names: tuple[str, ...]


_Key = tuple[Canonical | None, Canonical | None]


def with_joined_averages(core: Core) -> tuple[Aggregate, ...]:
    """The aggregates of a core, in their order, with averages of two columns as means of pairs."""
    if core.levels:
        return core.aggregates
    columns = _columns(core.aggregates)
    if len(columns) < 2:
        return core.aggregates
    places: dict[str, tuple[AggregateFunction, Expression, Expression]] = {}
    for one, other in _pairs(core.aggregates, columns):
        for function, column in zip(MEANS, (one, other), strict=True):
            places |= dict.fromkeys(column.names, (function, one.argument, other.argument))
    return tuple(
        aggregate
        if aggregate.name not in places
        else replace(
            aggregate,
            function=places[aggregate.name][0],
            argument=places[aggregate.name][1],
            second=places[aggregate.name][2],
        )
        for aggregate in core.aggregates
    )


def parts_of(aggregates: Sequence[Aggregate], core: Core) -> int:
    """The parts of a price for a statistic of these aggregates of pairs: one for each that it stands in place of."""
    averages = {one.name for one in core.aggregates if one.function is AggregateFunction.AVERAGE}
    joined = {one.function for one in aggregates if one.name in averages}
    return len(joined) + any(one.name not in averages for one in aggregates)


def _columns(aggregates: Sequence[Aggregate]) -> dict[_Key, _Column]:
    """The columns that may be joined, by filter and argument, in the order in which they are asked for."""
    found: dict[_Key, list[Aggregate]] = {}
    for one in aggregates:
        if one.argument is not None and one.second is None and not one.distinct and not _is_ranked(one):
            found.setdefault((form_of(one.filter), form_of(one.argument)), []).append(one)
    return {
        key: _Column(argument, tuple(one.name for one in asked))
        for key, asked in found.items()
        if (argument := asked[0].argument) is not None
        and not argument.nullable
        and all(one.function is AggregateFunction.AVERAGE for one in asked)
    }


def _is_ranked(aggregate: Aggregate) -> bool:
    """Whether it is a quantile, which shares no sums with other aggregates of its column."""
    return aggregate.function.statistic is StatisticKind.RANKS


def _pairs(aggregates: Sequence[Aggregate], columns: dict[_Key, _Column]) -> Iterator[tuple[_Column, _Column]]:
    """Which columns are joined: those that are asked for as a pair, then one after the other under each filter."""
    left = dict(columns)
    for one in aggregates:
        rows = form_of(one.filter)
        first, second = (rows, form_of(one.argument)), (rows, form_of(one.second))
        straight = one.function.degree == one.function.second_degree == 1
        if straight and first != second and first in left and second in left:
            yield left.pop(first), left.pop(second)
    for rows in dict.fromkeys(rows for rows, _ in columns):
        waiting = [column for (filtered, _), column in left.items() if filtered == rows]
        yield from zip(waiting[::2], waiting[1::2], strict=False)
