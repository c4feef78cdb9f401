"""Declared bounds in expressions: columns clipped to them, and the range of a number as far as they bound it."""

from __future__ import annotations

import math

from privacy.bounds import date_at, timestamp_at
from privacy.numbers import float_down, float_up
from privacy.policy import ColumnType
from sql_rewrite.expressions import (
    ANY,
    BIGINT,
    Call,
    ColumnRef,
    Expression,
    Interval,
    Literal,
    interval_of,
)
from sql_rewrite.functions import ranges
from sql_rewrite.functions.building import REGISTRY, build

__all__ = ["bounds_of", "clip_columns"]

INTEGER, NUMBER = ColumnType.INTEGER, ColumnType.NUMBER
DATE, TIMESTAMP = ColumnType.DATE, ColumnType.TIMESTAMP


def clip_columns(expression: Expression) -> Expression:
    """The expression with every column that reaches its value clipped to the column's declared bounds.

    Only reads that the result is computed from are clipped: a condition inside CASE, a marker of NULLIF and
    everything else that is not a number still sees the stored value, as the analyst wrote it. Ranges are
    recomputed. Doing it twice changes nothing.
    """
    if expression.type not in (INTEGER, NUMBER, DATE, TIMESTAMP) or isinstance(expression, Literal):
        return expression
    if isinstance(expression, ColumnRef):
        return _clip(expression)
    arguments = expression.arguments
    if expression.operator == "clip":
        # What conditions prove of a computed value is clipped too (sql_rewrite/narrowed_values.py).
        inner = arguments[0]
        return build("clip", (clip_columns(inner), *arguments[1:])) if isinstance(inner, Call) else expression
    if expression.operator == "nullif":
        return build("nullif", (*arguments[:2], clip_columns(arguments[2])))
    return build(expression.operator, tuple(clip_columns(argument) for argument in arguments))


def _clip(column: ColumnRef) -> Expression:
    declared = column.declared
    if declared is None or declared.lower is None or declared.upper is None:
        return column
    if column.type in (DATE, TIMESTAMP):
        at = date_at if column.type is DATE else timestamp_at
        ends = (Literal(at(declared.lower), column.type), Literal(at(declared.upper), column.type))
        return build("clip", (column, *ends))
    if column.type is INTEGER:
        lower, upper = math.ceil(declared.lower), math.floor(declared.upper)
        if lower > upper:  # no whole number within: the nearest ones outside
            lower, upper = upper, lower
        reached = interval_of(column)
        assert reached.lower is not None
        assert reached.upper is not None
        lower, upper = (min(max(bound, int(reached.lower)), int(reached.upper)) for bound in (lower, upper))
        if reached.inside(ranges.between(lower, upper)):
            return column
        return build("clip", (column, Literal(lower, INTEGER), Literal(upper, INTEGER)))
    limit = ranges.NUMBER_MAX
    low, high = (min(max(bound, -limit), limit) for bound in (declared.lower, declared.upper))
    first, last = float_up(low), float_down(high)
    if first > last:  # no double within
        first, last = last, first
    return build("clip", (column, Literal(first, NUMBER), Literal(last, NUMBER)))


def bounds_of(expression: Expression) -> Interval:
    """The range of a number as far as the query or the policy bounds it; `ANY` for an unbounded column.

    Differs from the node's own interval in one way: that a column is stored in 64 bits does not count as a
    bound. Use it on the clipped form to decide whether a sum is bounded; a side that is None is not.
    """
    if expression.type not in (INTEGER, NUMBER):
        return ANY
    if isinstance(expression, ColumnRef):
        interval = interval_of(expression)
        if expression.type is NUMBER:
            return interval
        return Interval(
            None if interval.lower == BIGINT.lower else interval.lower,
            None if interval.upper == BIGINT.upper else interval.upper,
        )
    if isinstance(expression, Literal):
        return interval_of(expression)
    entry = REGISTRY[expression.operator]
    result = entry.range(expression.arguments, [bounds_of(argument) for argument in expression.arguments])
    if entry.ceiling is not None and entry.name not in _STORAGE_CEILING:
        result = ranges.intersect(result, entry.ceiling)
    return ranges.outward(result) if expression.type is NUMBER else result


_STORAGE_CEILING = frozenset({"length", "cast_integer"})
"""Operators whose ceiling is only what the engine can store: no bound in the sense of the policy."""
