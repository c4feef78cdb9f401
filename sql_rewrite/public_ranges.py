"""Ranges of columns of public tables that nobody declared: everybody knows their values.

    SELECT AVG(b.pages) FROM loans AS l JOIN books AS b ON b.isbn = l.isbn        within the pages of the books

Claim. Bounding a sum by these ranges reveals nothing: they follow from a public table alone. That a value lies within
them is enforced in the statement like declared bounds, so the sensitivity holds whatever the rows are.

Only what has no range otherwise gets one: what was answered before is the same question, and keeps its releases. A sum
of whole numbers needs none where units are scaled to norms, so it keeps its own.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from privacy.policy import ColumnType, Dataset
from privacy.statistic_kind import StatisticKind
from sql_rewrite.expressions import Call, ColumnRef, Expression, Interval, columns_of, interval_of
from sql_rewrite.functions import clip_columns
from sql_rewrite.plan import Aggregate, Core, Source
from sql_rewrite.public_joins import KNOWN_CELLS_MAX
from sql_rewrite.value_bounds import MAGNITUDE_MAX

__all__ = ["with_public_ranges"]

_SUMMED = (ColumnType.INTEGER, ColumnType.NUMBER)


def with_public_ranges(core: Core, dataset: Dataset) -> Core:
    """The core with the ranges of public columns in aggregates that have none."""
    sources = {one.relation: one for one in core.sources if one.stored and not one.table.protected}
    if not sources or dataset.public is None:
        return core
    found = tuple(_ranged(aggregate, sources, dataset) for aggregate in core.aggregates)
    same = all(new is old for new, old in zip(found, core.aggregates, strict=True))
    return core if same else replace(core, aggregates=found)


def _ranged(aggregate: Aggregate, sources: dict[str, Source], dataset: Dataset) -> Aggregate:
    kind = aggregate.function.statistic
    whole = all(value.type is ColumnType.INTEGER for value in aggregate.values)
    if not kind.described.of_values or (kind is StatisticKind.SUM and whole):
        return aggregate
    values = [_value(value, sources, dataset) for value in (aggregate.argument, aggregate.second)]
    if values[0] is aggregate.argument and values[1] is aggregate.second:
        return aggregate
    return replace(aggregate, argument=values[0], second=values[1])


def _value(expression: Expression | None, sources: dict[str, Source], dataset: Dataset) -> Expression | None:
    """The expression with those ranges, where it has none without them."""
    if expression is None or not any(column.relation in sources for column in columns_of(expression)):
        return expression
    known = interval_of(clip_columns(expression))
    ends = (known.lower, known.upper)
    if all(end is not None and abs(end) <= MAGNITUDE_MAX for end in ends):
        return expression
    return _put(expression, sources, dataset)


def _put(expression: Expression, sources: dict[str, Source], dataset: Dataset) -> Expression:
    if isinstance(expression, ColumnRef):
        source = sources.get(expression.relation)
        if source is None or expression.declared is not None or expression.type not in _SUMMED:
            return expression
        found = _range(source, expression.name, dataset)
        return expression if found is None else replace(expression, declared=found)
    if not isinstance(expression, Call):
        return expression
    arguments = tuple(_put(argument, sources, dataset) for argument in expression.arguments)
    if all(new is old for new, old in zip(arguments, expression.arguments, strict=True)):
        return expression
    return replace(expression, arguments=arguments)


def _range(source: Source, column: str, dataset: Dataset) -> Interval | None:
    """From the least to the greatest value; None where there are no two of them, or too many rows."""
    assert dataset.public is not None
    most = KNOWN_CELLS_MAX // len(source.table.columns)
    rows = dataset.public.rows(source.table.name, (column,), most) or ()
    values = [value for (value,) in rows if isinstance(value, int | float) and math.isfinite(value)]
    if not values or min(values) == max(values):
        return None
    return Interval(Fraction(min(values)), Fraction(max(values)))
