"""The allow-list of row functions: what may be computed from one row, with types, ranges and proof of totality.

`build` is the only way to make a `Call`. Everything that is not in `REGISTRY` is refused by name. The analyst's
documentation is `docs/functions.md`; its tables are written by `python -m sql_rewrite.functions`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from privacy.bounds import date_at, timestamp_at
from privacy.numbers import float_down, float_up
from privacy.policy import ColumnType
from sql_rewrite.expressions import (
    ANY,
    BIGINT,
    DEPTH_MAX,
    WEIGHT_MAX,
    WIDE,
    Call,
    ColumnRef,
    Expression,
    Interval,
    Literal,
    interval_of,
)
from sql_rewrite.functions import arithmetic, casts, dates, gathering, logic, powers, ranges, texts
from sql_rewrite.functions.operator import Operator, TypeRefused

__all__ = ["REGISTRY", "Operator", "TypeRefused", "bounds_of", "build", "cast", "clip_columns"]

INTEGER, NUMBER = ColumnType.INTEGER, ColumnType.NUMBER
DATE, TIMESTAMP = ColumnType.DATE, ColumnType.TIMESTAMP

REGISTRY: Mapping[str, Operator] = MappingProxyType(
    {
        operator.name: operator
        for operator in (
            *logic.OPERATORS,
            *arithmetic.OPERATORS,
            *powers.OPERATORS,
            *texts.OPERATORS,
            *dates.OPERATORS,
            *casts.OPERATORS,
            *gathering.OPERATORS,
        )
    }
)
"""Every operator by its name."""

INTERNAL = frozenset({"clip", "as_number", "as_timestamp", "gather", "gather_range"})
"""Operators that the server adds; no SQL is mapped to them."""


def build(operator: str, arguments: Sequence[Expression]) -> Expression:
    """The operator applied to the arguments, typed, with NULL behaviour and range.

    Besides the names of `REGISTRY` accepts "between" and "not_between" (value, low, high) and "if"
    (condition, then [, else]), which become other operators. Constants such as patterns, units and digits are
    `Literal` arguments.
    Errors: TypeRefused with unsupported_function, unsupported_type or too_large. Never depends on rows.
    """
    match operator:
        case "between":
            value, low, high = _exactly(operator, arguments, 3)
            return build("and", (build(">=", (value, low)), build("<=", (value, high))))
        case "not_between":
            return build("not", (build("between", arguments),))
        case "if":
            return build("case", arguments)
    entry = REGISTRY.get(operator)
    if entry is None:
        raise TypeRefused(
            "unsupported_function",
            f'the function "{operator}" is refused',
            "It is not in the list of functions whose behaviour is proved for every stored value.",
        )
    resolved = entry.resolve(tuple(arguments))
    interval = _type_interval(entry, resolved.arguments, resolved.type)
    call = Call(
        operator,
        resolved.arguments,
        resolved.type,
        entry.nullable(resolved.arguments),
        interval,
        finite=_is_finite(entry, resolved.arguments, resolved.type),
        weight=1
        + texts.work(resolved.arguments)
        + sum(
            entry.copies_of(resolved.arguments, index) * _weight(entry, a) for index, a in enumerate(resolved.arguments)
        ),
        depth=1 + max((_depth(a) for a in resolved.arguments), default=0),
    )
    if not call.finite:
        # A number that overflows becomes NULL.
        call = dataclasses.replace(call, nullable=True)
    if call.weight > WEIGHT_MAX or call.depth > DEPTH_MAX:
        raise TypeRefused(
            "too_large",
            "the expression is refused",
            "It is nested too deeply, or repeats itself too often when its guards are added.",
            ("compute parts of it in a derived table",),
        )
    return call


def _exactly(operator: str, arguments: Sequence[Expression], count: int) -> Sequence[Expression]:
    if len(arguments) != count:
        raise TypeRefused(
            "unsupported_function", f'"{operator}" is refused', f"It takes {count} arguments, not {len(arguments)}."
        )
    return arguments


def _weight(entry: Operator, argument: Expression) -> int:
    if not isinstance(argument, Call):
        return 1
    return argument.weight if argument.finite or entry.loose else 2 * argument.weight + 1


def _depth(argument: Expression) -> int:
    return argument.depth if isinstance(argument, Call) else 1


def _ranged(entry: Operator, arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
    result = entry.range(arguments, intervals)
    return result if entry.ceiling is None else ranges.intersect(result, entry.ceiling)


def _type_interval(entry: Operator, arguments: Sequence[Expression], kind: ColumnType) -> Interval | None:
    """The result's range when columns hold anything that their type can."""
    if kind not in (INTEGER, NUMBER):
        return None
    result = _ranged(entry, arguments, [interval_of(argument) for argument in arguments])
    if kind is NUMBER:
        return ranges.outward(result)
    assert result.bounded, f"the range of an INTEGER is always known ({entry.name})"
    if not result.inside(WIDE):
        raise TypeRefused(
            "too_large",
            f'the result of "{entry.forms}" may leave the range of exact integers (126 bits)',
            "A value that large would overflow in the engine, and an overflow would tell about rows.",
            (
                "clip the columns first, for example GREATEST(0, LEAST(x, 1000000))",
                "CAST one side to DOUBLE",
                "ask an administrator to declare value bounds",
            ),
        )
    return result


def _is_finite(entry: Operator, arguments: Sequence[Expression], kind: ColumnType) -> bool:
    """Whether the engine's plain result is a finite double or NULL for every stored value."""
    if kind is not NUMBER:
        return True
    if entry.loose and any(isinstance(a, Call) and not a.finite for a in arguments):
        return False
    if entry.finite:
        return True
    filled = [ranges.filled(interval_of(a)) if a.type is NUMBER else interval_of(a) for a in arguments]
    return _ranged(entry, arguments, filled).inside(Interval(-ranges.NUMBER_MAX, ranges.NUMBER_MAX))


def cast(expression: Expression, target: ColumnType) -> Expression:
    """CAST and TRY_CAST to one of the six types; NULL where a value cannot be converted."""
    return build(f"cast_{target.value}", (expression,))


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
    if expression.operator == "clip":
        return expression
    arguments = expression.arguments
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
