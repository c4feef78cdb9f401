"""Gathering: a column as a group key, where values outside of its declared keys count as one declared `other` value.

The server adds these operators around columns of keys; no SQL is mapped to them. NULL stays NULL.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from privacy.policy import ColumnType, KeyValue
from sql_rewrite.expressions import Call, ColumnRef, Expression, Interval, Literal
from sql_rewrite.functions import ranges
from sql_rewrite.functions.operator import Lowerer, Operator, Resolved, arity

__all__ = ["OPERATORS", "gather_arguments"]

_ONE = {ColumnType.INTEGER: 1, ColumnType.DATE: datetime.timedelta(days=1)}


def gather_arguments(
    column: ColumnRef, other: KeyValue, keys: Sequence[KeyValue]
) -> tuple[str, tuple[Expression, ...]]:
    """The operator that gathers a column, and its arguments. Requires: keys that are not NULL."""
    one: Any = _ONE.get(column.type)
    values: list[Any] = list(keys)
    if values and one is not None:
        low, high = min(values), max(values)
        if high - low == one * (len(values) - 1):
            return "gather_range", (column, *(Literal(value, column.type) for value in (other, low, high)))
    return "gather", (column, *(Literal(value, column.type) for value in (other, *values)))


def _resolve(least: int, most: int) -> Any:
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


def _lower(test: str) -> Any:
    def lower(call: Call, lowerer: Lowerer) -> str:
        column, other, *keys = (lowerer.sql(argument) for argument in call.arguments)
        if not keys:
            return f"(CASE WHEN ({column} IS NULL) THEN {column} ELSE {other} END)"
        inside = f"{column} BETWEEN {keys[0]} AND {keys[1]}" if test == "range" else f"{column} IN ({', '.join(keys)})"
        missing = f"({column} IS NULL) OR " if call.arguments[0].nullable else ""
        return f"(CASE WHEN {missing}({inside}) THEN {column} ELSE {other} END)"

    return lower


def _gathered(call: Call, values: Sequence[Any]) -> Any:
    value, other, *keys = values
    return value if value is None or value in keys else other


def _gathered_range(call: Call, values: Sequence[Any]) -> Any:
    value, other, low, high = values
    return value if value is None or low <= value <= high else other


OPERATORS: tuple[Operator, ...] = (
    Operator(
        name="gather",
        forms="(made by the server from declared keys with another group)",
        signature="a column and constants of its type -> that type",
        meaning="The value when it is one of the keys or NULL, else the other value.",
        totality="It is a CASE over comparisons of one SQL type.",
        resolve=_resolve(2, 100_000),
        lower=_lower("list"),
        reference=_gathered,
        range=_range,
        nullable=_nullable,
        strict=False,
        copies=(3, 1),
        section="Group keys",
    ),
    Operator(
        name="gather_range",
        forms="(the same, for keys that are a range)",
        signature="a column and constants of its type -> that type",
        meaning="The value when it lies within the keys or is NULL, else the other value.",
        totality="It is a CASE over comparisons of one SQL type.",
        resolve=_resolve(4, 4),
        lower=_lower("range"),
        reference=_gathered_range,
        range=_range,
        nullable=_nullable,
        strict=False,
        copies=(3, 1),
        section="Group keys",
    ),
)
"""Entries of the allow-list that only the server uses."""
