"""Choices among values: CASE, COALESCE, NULLIF, LEAST, GREATEST, and the clip to declared bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cmp_to_key

from privacy.policy import ColumnType
from sql_rewrite.expressions import Call, Expression, Interval, Literal, Value
from sql_rewrite.functions import ranges
from sql_rewrite.functions.harmony import harmonise, harmonised_sides, of_one_kind
from sql_rewrite.functions.operator import (
    Lowerer,
    Operator,
    Resolved,
    always,
    any_nullable,
    arity,
    as_long,
    expect,
    integer_operands,
    narrow,
)
from sql_rewrite.functions.truth import booleans
from sql_rewrite.functions.values import order
from sql_rewrite.scalars import Case, Clip, Coalesce, Comparison, Extreme, ExtremeName, Null, Scalar

__all__ = ["OPERATORS"]

INTEGER, NUMBER = ColumnType.INTEGER, ColumnType.NUMBER
DATE, TIMESTAMP = ColumnType.DATE, ColumnType.TIMESTAMP


# --- CASE, COALESCE, NULLIF --------------------------------------------------------------------------------------


def _resolve_case(arguments: tuple[Expression, ...]) -> Resolved:
    forms = "CASE WHEN c THEN x ELSE y END"
    arity(forms, arguments, 2, 2_000)
    if len(arguments) % 2 == 0:
        arguments = (*arguments, Literal(None, arguments[1].type))
    conditions = booleans(forms, arguments[:-1:2])
    branches, kind = harmonise(forms, (*arguments[1::2], arguments[-1]))
    mixed = [part for pair in zip(conditions, branches[:-1], strict=True) for part in pair]
    return Resolved((*mixed, branches[-1]), kind)


def _branches(arguments: Sequence[Expression]) -> list[Expression]:
    return [*arguments[1::2], arguments[-1]]


def _hull_of(pairs: Sequence[tuple[Expression, Interval]]) -> Interval:
    # A NULL constant adds no value, so it must not widen the range to zero.
    live = [interval for argument, interval in pairs if not (isinstance(argument, Literal) and argument.value is None)]
    return ranges.hull(live) if live else ranges.ZERO


def _case_range(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
    return _hull_of(list(zip(_branches(arguments), [*intervals[1::2], intervals[-1]], strict=True)))


def _case_nullable(arguments: Sequence[Expression]) -> bool:
    return any_nullable(_branches(arguments))


def _case(call: Call, values: Sequence[Value]) -> Value:
    for condition, value in zip(values[:-1:2], values[1::2], strict=True):
        if condition is True:
            return value
    return values[-1]


def _case_lower(call: Call, lowerer: Lowerer) -> Scalar:
    branches, wide = harmonised_sides(call, _branches(call.arguments), lowerer)
    conditions = [lowerer.value(condition) for condition in call.arguments[:-1:2]]
    pairs = tuple(zip(conditions, branches[:-1], strict=True))
    return narrow(Case(pairs, branches[-1]), call, wide=wide)


def _coalesce_range(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
    reached = []
    for argument, interval in zip(arguments, intervals, strict=True):
        reached.append((argument, interval))
        if not argument.nullable:
            break
    return _hull_of(reached)


def _coalesce_lower(call: Call, lowerer: Lowerer) -> Scalar:
    sides, wide = harmonised_sides(call, call.arguments, lowerer)
    return narrow(Coalesce(tuple(sides)), call, wide=wide)


def _resolve_nullif(arguments: tuple[Expression, ...]) -> Resolved:
    """NULLIF(a, b) keeps three arguments: compared value, b, and the value that is returned.

    They are the same until `clip_columns` clips the returned one only: a marker such as 99999 beyond the bounds
    must still be recognised.
    """
    arity("NULLIF", arguments, 2, 3)
    returned = arguments[2] if len(arguments) == 3 else arguments[0]
    (compared, marker), _ = harmonise("NULLIF", arguments[:2])
    if len(arguments) == 2 and isinstance(returned, Literal):
        returned = compared
    return Resolved((compared, marker, returned), returned.type)


def _nullif_lower(call: Call, lowerer: Lowerer) -> Scalar:
    compared, marker, returned = call.arguments
    # Two engine types may take part: the comparison's and the result's.
    if compared.type is INTEGER:
        (left, right), _ = integer_operands(lowerer, (compared, marker), wide=False)
    else:
        left, right = lowerer.value(compared), lowerer.value(marker)
    (value,), wide = harmonised_sides(call, (returned,), lowerer)
    return narrow(Case(((Comparison("=", left, right), Null()),), value), call, wide=wide)


# --- LEAST, GREATEST, clipping -----------------------------------------------------------------------------------


def _extreme(
    name: ExtremeName,
    meaning: str,
    interval: Callable[[Sequence[Interval]], Interval],
    sign: int,
) -> Operator:
    word = name.upper()

    def lower(call: Call, lowerer: Lowerer) -> Scalar:
        sides, wide = harmonised_sides(call, call.arguments, lowerer)
        nullable = tuple([argument.nullable for argument in call.arguments])
        return narrow(Extreme(name, tuple(sides), nullable), call, wide=wide)

    def ordered(first: Value, second: Value) -> int:
        return sign * order(first, second)

    rank = cmp_to_key(ordered)
    return Operator(
        name=name,
        forms=f"{word}(a, b, ...)",
        signature="values of one kind -> that kind",
        meaning=f"{meaning}; NULL when any argument is NULL (DuckDB skips NULL, see above).",
        totality="Comparing values of one SQL type is defined for every pair.",
        names=(name,),
        takes=None,
        alike=True,
        resolve=of_one_kind(word, 1, 100),
        lower=lower,
        reference=lambda call, values: min(values, key=rank),
        range=lambda arguments, intervals: interval(intervals),
        characters=as_long,
        chained=True,
        nullable=any_nullable,
        strict=True,
        finite=True,
        exact=True,
        section="Arithmetic",
    )


def _resolve_clip(arguments: tuple[Expression, ...]) -> Resolved:
    arity("clip", arguments, 3)
    value, lower, upper = arguments
    expect("clip", value, INTEGER, NUMBER, DATE, TIMESTAMP)
    for bound in (lower, upper):
        assert isinstance(bound, Literal)
        assert bound.value is not None
        assert bound.type is value.type
    return Resolved(arguments, value.type)


def _clip_range(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
    value, lower, upper = intervals
    return ranges.largest((lower, ranges.smallest((value, upper))))


def _clip_lower(call: Call, lowerer: Lowerer) -> Scalar:
    (value, low, high), wide = harmonised_sides(call, call.arguments, lowerer)
    return narrow(Clip(value, low, high), call, wide=wide)


def _clip(call: Call, values: Sequence[Value]) -> Value:
    value, lower, upper = values
    inside = value if order(value, lower) >= 0 else lower
    return inside if order(inside, upper) <= 0 else upper


OPERATORS: tuple[Operator, ...] = (
    Operator(
        name="case",
        forms="CASE WHEN c THEN x ELSE y END",
        signature="BOOLEAN, value, ..., value -> the values' kind",
        meaning="The value of the first true condition, else the ELSE value, NULL without ELSE.",
        totality="All branches are total, so it does not matter which of them the engine evaluates.",
        resolve=_resolve_case,
        lower=_case_lower,
        reference=_case,
        range=_case_range,
        characters=as_long,
        nullable=_case_nullable,
        strict=False,
        finite=True,
        exact=True,
        section="NULL",
    ),
    Operator(
        name="coalesce",
        forms="COALESCE(a, b, ...)",
        signature="values of one kind -> that kind",
        meaning="The first value that is not NULL.",
        totality="All arguments are total and of one SQL type.",
        names=("coalesce",),
        takes=None,
        alike=True,
        resolve=of_one_kind("COALESCE", 1, 100),
        lower=_coalesce_lower,
        reference=lambda call, values: next((value for value in values if value is not None), None),
        range=_coalesce_range,
        characters=as_long,
        chained=True,
        nullable=lambda arguments: all(argument.nullable for argument in arguments),
        strict=False,
        finite=True,
        exact=True,
        section="NULL",
    ),
    Operator(
        name="nullif",
        forms="NULLIF(a, b)",
        signature="two values of one kind -> the kind of a",
        meaning="NULL when both are equal, else a. The comparison sees the stored value of a, not the clipped one.",
        totality="It is a CASE over a comparison of one SQL type.",
        names=("nullif",),
        takes=2,
        alike=True,
        resolve=_resolve_nullif,
        lower=_nullif_lower,
        reference=lambda call, values: (
            None if values[0] is not None and values[1] is not None and values[0] == values[1] else values[2]
        ),
        range=lambda arguments, intervals: intervals[2],
        characters=as_long,
        nullable=always,
        strict=False,
        finite=True,
        exact=True,
        section="NULL",
    ),
    _extreme("least", "The smallest argument", ranges.smallest, 1),
    _extreme("greatest", "The largest argument", ranges.largest, -1),
    Operator(
        name="clip",
        forms="(made by the server from declared value bounds)",
        signature="number, date or timestamp, constant, constant -> that type",
        meaning="The value moved to the nearest bound when it lies outside; NULL stays NULL.",
        totality="It is a CASE over comparisons of one SQL type; NULL fails both tests and stays NULL.",
        resolve=_resolve_clip,
        lower=_clip_lower,
        reference=_clip,
        range=_clip_range,
        nullable=any_nullable,
        strict=True,
        finite=True,
        exact=True,
        section="Arithmetic",
    ),
)
"""Entries of the allow-list."""
