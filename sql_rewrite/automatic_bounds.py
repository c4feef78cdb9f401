"""Value bounds that a question chooses for itself: of which columns, and the core that has them.

A core whose sums have no proved range because columns have no declared bounds is bound as if they had some. Before
anything is spent those are nominal ones, narrow and around zero, which decide what is measured and that it can be
bounded at all; once a histogram of each column is released (`value_histogram.py`) they are the chosen ones. No other
bounds are made up: not of ids, of columns of public tables, or of columns that the query clips itself.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import assert_never

from privacy.bounds import ValueBounds, number_of_date, number_of_timestamp
from privacy.norms import NormPower
from privacy.policy import ColumnType, Dataset
from privacy.refusal import Refused
from privacy.value_grid import GRIDDED, OCTAVES
from sql_rewrite.bound import BoundedCore, bound_core
from sql_rewrite.expressions import Call, ColumnRef, Expression, Interval, Literal
from sql_rewrite.functions import ranges
from sql_rewrite.hull_values import range_within, value_within
from sql_rewrite.narrowed_values import narrowed_core
from sql_rewrite.plan import Core, Source, UnitBranch

__all__ = ["Place", "bound_with", "nominal_bounds", "places_of", "unbounded_columns", "with_bounds"]

Place = tuple[str, str]
"""A table and one of its columns, by their declared names."""


def unbounded_columns(core: Core, dataset: Dataset, *, power: NormPower = NormPower.L2) -> tuple[Place, ...]:
    """The columns for which bounds must be chosen before the core can be bound; none where it can be as it is.

    Errors: Refused, as `bound_core`, where no bounds of columns would help or the policy allows none to be chosen.
    """
    try:
        bound_core(core, dataset, power=power)
    except Refused as refused:
        if not dataset.limits.automatic_bounds:
            raise
        wanted = dict(_candidates(core))
        try:
            bound_core(with_bounds(core, wanted), dataset, power=power)
        except Refused:
            raise refused from None
    else:
        return ()
    # A column that the query clips itself needs no histogram.
    for place in tuple(wanted):
        without = {other: bounds for other, bounds in wanted.items() if other != place}
        try:
            bound_core(with_bounds(core, without), dataset, power=power)
        except Refused:
            continue
        wanted = without
    return tuple(sorted(wanted))


def with_bounds(core: Core, bounds: Mapping[Place, ValueBounds]) -> Core:
    """The core as if these bounds were declared of columns that have none, where sums read them.

    Filters, conditions and keys read values as they are stored, whatever is declared.
    """
    sources = {source.relation: source for source in core.sources}

    def put(expression: Expression) -> Expression:
        return _put(expression, sources, bounds)

    aggregates = [
        replace(
            aggregate,
            argument=None if aggregate.argument is None else put(aggregate.argument),
            second=None if aggregate.second is None else put(aggregate.second),
        )
        for aggregate in core.aggregates
    ]
    return replace(core, aggregates=tuple(aggregates))


def _put(expression: Expression, sources: Mapping[str, Source], bounds: Mapping[Place, ValueBounds]) -> Expression:
    """The expression with these bounds of columns of the sources that have none."""
    if isinstance(expression, ColumnRef):
        source = sources.get(expression.relation)
        if source is None or expression.declared is not None:
            return expression
        declared = _bounds_of(expression, source, bounds)
        return expression if declared is None else replace(expression, declared=declared)
    if not isinstance(expression, Call):
        return expression
    arguments = tuple([_put(argument, sources, bounds) for argument in expression.arguments])
    if all(new is old for new, old in zip(arguments, expression.arguments, strict=True)):
        return expression
    return replace(expression, arguments=arguments)


def places_of(column: ColumnRef, core: Core) -> frozenset[Place]:
    """The stored columns that a column of a core holds values of."""
    source = next((one for one in core.sources if one.relation == column.relation), None)
    if source is None:
        return frozenset()
    if source.stored:
        return frozenset({(source.table.name, column.name)})
    if source.union is None:
        return frozenset(place for place, _ in _stored(column, source))
    return frozenset(
        (below.table.name, value.name)
        for branch, value in _branches(column, source)
        if isinstance(value, ColumnRef)
        for below in branch.sources
        if _is_of(value, below)
    )


def nominal_bounds(kind: ColumnType) -> ValueBounds:
    """The bounds of a column for which none are chosen yet."""
    match kind:
        case ColumnType.INTEGER | ColumnType.NUMBER:
            return ValueBounds(Fraction(-1), Fraction(1))
        case ColumnType.DATE:
            day = number_of_date(datetime.date(2000, 1, 1))
            return ValueBounds(day, day + 90)
        case ColumnType.TIMESTAMP:
            moment = number_of_timestamp(datetime.datetime(2000, 1, 1))
            return ValueBounds(moment, moment + 90 * 86_400 * 10**6)
        case ColumnType.BOOLEAN | ColumnType.TEXT:
            raise AssertionError(f"bounds of a {kind.value} are never chosen")
        case _:
            assert_never(kind)


def bound_with(
    core: Core,
    dataset: Dataset,
    chosen: Mapping[Place, ValueBounds],
    *,
    power: NormPower = NormPower.L2,
    narrowed: bool = True,
) -> tuple[BoundedCore, Mapping[Place, ValueBounds]]:
    """The core bound with chosen bounds, and the bounds that it has; `narrowed` by what its conditions say.

    Requires: `chosen` has the `unbounded_columns` of the core.
    Where a range cannot be proved with them (a product of two wide columns), the bounds of numbers are narrowed around
    zero until one can be; within the nominal ones it always can, because ranges only shrink with what they are made of.
    """
    kinds = _types(core)
    widest = max(most for _, most in OCTAVES.values())
    narrower = (
        {place: _narrowed(chosen[place], kinds[place], exponent) for place in chosen} for exponent in range(widest)
    )
    for tried in (chosen, *reversed(list(narrower))):
        try:
            made = with_bounds(core, tried)
            return bound_core(narrowed_core(made, guessed=True) if narrowed else made, dataset, power=power), tried
        except Refused as error:
            refused = error
    raise refused


def _narrowed(bounds: ValueBounds, kind: ColumnType, exponent: int) -> ValueBounds:
    """The bounds held to the magnitudes up to a power of two; those of moments as they are, or nominal for the last."""
    if kind not in OCTAVES:
        return bounds if exponent else nominal_bounds(kind)
    limit = Fraction(2**exponent)
    return ValueBounds(min(max(bounds.lower, -limit), limit), min(max(bounds.upper, -limit), limit))


def _types(core: Core) -> dict[Place, ColumnType]:
    """The types of the columns for which bounds can be chosen."""
    return {place: column.type for place, column in _columns(core)}


def _candidates(core: Core) -> Iterator[tuple[Place, ValueBounds]]:
    """Nominal bounds of every column for which bounds can be chosen."""
    for place, kind in _types(core).items():
        yield place, nominal_bounds(kind)


def _bounds_of(column: ColumnRef, source: Source, bounds: Mapping[Place, ValueBounds]) -> Interval | None:
    """The bounds of a column that has none, where they are chosen: of a union those of all its branches together."""
    if source.stored:
        found = bounds.get((source.table.name, column.name))
        return None if found is None else Interval(found.lower, found.upper)
    computed = source.groups or source.windows
    if computed is not None:
        read = {one.relation: one for one in computed.sources}
        return range_within(column.name, computed, lambda value: _put(value, read, bounds))
    parts = []
    for branch, value in _branches(column, source):
        if isinstance(value, Literal):
            if value.value is not None:
                parts.append(value.interval)
        elif isinstance(value, ColumnRef):
            below = next((one for one in branch.sources if _is_of(value, one)), None)
            parts.append(value.declared or (None if below is None else _bounds_of(value, below, bounds)))
        else:
            parts.append(None)
    known = [part for part in parts if part is not None]
    return ranges.hull(known) if known and len(known) == len(parts) else None


def _is_of(column: ColumnRef, source: Source) -> bool:
    return column.relation == source.relation and source.stored


def _branches(column: ColumnRef, source: Source) -> Iterator[tuple[UnitBranch, Expression]]:
    """What a column of a union is in each branch, before a conversion that keeps its numbers."""
    if source.union is None:
        return
    place = [name for name, _ in source.union.columns].index(column.name)
    for branch in source.union.branches:
        value = branch.columns[place]
        converted = isinstance(value, Call) and value.operator == "as_number"
        yield branch, value.arguments[0] if converted and isinstance(value, Call) else value


def _columns(core: Core) -> Iterator[tuple[Place, ColumnRef]]:
    """The columns that sums are computed from, of the protected tables, that have no declared bounds."""
    sources = {source.relation: source for source in core.sources}
    for aggregate in core.aggregates:
        for column in (column for value in aggregate.values for column in _read(value)):
            source = sources.get(column.relation)
            if source is None or column.declared is not None:
                continue
            yield from _stored(column, source)


def _stored(column: ColumnRef, source: Source) -> Iterator[tuple[Place, ColumnRef]]:
    """The stored columns that a column holds values of: itself, or those of the branches of a union.

    Of what is computed within units, those whose range is its own (sql_rewrite/hull_values.py).
    """
    if source.stored:
        table = source.table
        if table.protected and column.declared is None and column.type in GRIDDED and not column.identifies:
            yield (table.name, column.name), column
        return
    computed = source.groups or source.windows
    if computed is not None:
        value = value_within(column.name, computed)
        for read in () if value is None else _read(value):
            for one in computed.sources:
                if one.relation == read.relation and read.declared is None:
                    yield from _stored(read, one)
        return
    for branch, value in _branches(column, source):
        if isinstance(value, ColumnRef):
            yield from (found for one in branch.sources if _is_of(value, one) for found in _stored(value, one))


def _read(expression: Expression) -> Iterator[ColumnRef]:
    """The columns that the value is computed from: those that `clip_columns` clips."""
    if isinstance(expression, ColumnRef):
        yield expression
    elif isinstance(expression, Call) and expression.type in GRIDDED:
        arguments = expression.arguments[2:] if expression.operator == "nullif" else expression.arguments
        for argument in arguments:
            yield from _read(argument)
