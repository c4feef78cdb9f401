"""Gathering: a column as a group key, where values outside its declared keys count as one declared `other` value.

The server adds these operators around columns of keys; no SQL is mapped to them. NULL stays NULL.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cmp_to_key

from privacy.policy import ColumnType, KeyValue
from sql_rewrite.expressions import Call, ColumnRef, Expression, Interval, Literal, Value
from sql_rewrite.functions import ranges
from sql_rewrite.functions.operator import Lower, Lowerer, Operator, Resolve, Resolved, arity
from sql_rewrite.functions.values import order, whole
from sql_rewrite.scalars import Gather, Scalar

__all__ = ["OPERATORS", "gather_arguments"]


def gather_arguments(
    column: ColumnRef, other: KeyValue, keys: Sequence[KeyValue]
) -> tuple[str, tuple[Expression, ...]]:
    """The operator that gathers a column, and its arguments. Requires: keys that are not NULL."""
    ends = _ends(column.type, keys)
    if ends is not None:
        return "gather_range", (column, *(Literal(value, column.type) for value in (other, *ends)))
    return "gather", (column, *(Literal(value, column.type) for value in (other, *keys)))


def _ends(kind: ColumnType, keys: Sequence[KeyValue]) -> tuple[KeyValue, KeyValue] | None:
    """The least and greatest key when they are all integers, or all days, between them."""
    if kind not in (ColumnType.INTEGER, ColumnType.DATE) or not keys:
        return None
    ordered = sorted(keys, key=cmp_to_key(order))
    low, high = (end.toordinal() if isinstance(end, datetime.date) else whole(end) for end in (ordered[0], ordered[-1]))
    return (ordered[0], ordered[-1]) if high - low == len(keys) - 1 else None


def _resolve(least: int, most: int) -> Resolve:
    def resolve(arguments: tuple[Expression, ...]) -> Resolved:
        arity("gather", arguments, least, most)
        assert all(isinstance(argument, Literal) for argument in arguments[1:])
        assert all(argument.type is arguments[0].type for argument in arguments)
        return Resolved(arguments, arguments[0].type)

    return resolve


def _nullable(arguments: Sequence[Expression]) -> bool:
    return arguments[0].nullable or arguments[1].nullable


def _range(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
    """The hull of the keys and of `other`; what the column holds beside them is never a value of this."""
    if arguments[0].type is not ColumnType.INTEGER:
        return Interval(None, None)
    values = [Fraction(a.value) for a in arguments[1:] if isinstance(a, Literal) and isinstance(a.value, int)]
    return Interval(min(values), max(values)) if values else ranges.ZERO


def _lower(*, between: bool) -> Lower:
    def lower(call: Call, lowerer: Lowerer) -> Scalar:
        value, other, *keys = (lowerer.value(argument) for argument in call.arguments)
        return Gather(value, other, tuple(keys), between=between, nullable=call.arguments[0].nullable)

    return lower


def _gathering(
    name: str,
    forms: str,
    meaning: str,
    *,
    arguments: tuple[int, int],
    between: bool,
    is_key: Callable[[Value, Sequence[Value]], bool],
) -> Operator:
    """The operator that keeps the values for which `is_key(value, keys)` holds; `arguments` is the least and most."""

    def reference(call: Call, values: Sequence[Value]) -> Value:
        value, other, *keys = values
        return value if value is None or is_key(value, keys) else other

    return Operator(
        name=name,
        forms=forms,
        signature="a column and constants of its type -> that type",
        meaning=meaning,
        totality="It is a CASE over comparisons of one SQL type.",
        resolve=_resolve(*arguments),
        lower=_lower(between=between),
        reference=reference,
        range=_range,
        nullable=_nullable,
        characters=lambda arguments, lengths: max(lengths[1:]),  # other values are not shown
        chained=not between,
        strict=False,
        exact=True,
        section="Group keys",
    )


OPERATORS: tuple[Operator, ...] = (
    _gathering(
        "gather",
        "(made by the server from declared keys with another group)",
        "The value when it is one of the keys or NULL, else the other value.",
        arguments=(2, 100_000),
        between=False,
        is_key=lambda value, keys: value in keys,
    ),
    _gathering(
        "gather_range",
        "(the same, for keys that are a range)",
        "The value when it lies within the keys or is NULL, else the other value.",
        arguments=(4, 4),
        between=True,
        is_key=lambda value, ends: order(ends[0], value) <= 0 <= order(ends[1], value),
    ),
)
"""Entries of the allow-list that only the server uses."""
