"""Constants that a column is declared never to have: `age = 200` where age is declared within [0, 110].

The comparison is answered as it is written, and a condition that no declared value meets gives noise alone, or all
rows. Declared keys are verified when data is attached; declared bounds are not, so stored values may lie outside.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from privacy.bounds import date_at, number_of_date, number_of_timestamp, timestamp_at
from privacy.policy import ColumnType
from privacy.refusal import Finding, Position
from sql_rewrite.expressions import Call, ColumnRef, Expression, Literal, Value, describe, number_text

__all__ = ["COMPARED", "outside_declaration"]

COMPARED = frozenset(
    {"=", "<>", "<", "<=", ">", ">=", "in", "is_distinct_from", "is_not_distinct_from"}
)  # BETWEEN is two comparisons
_EQUALITIES = frozenset({"=", "<>", "in", "is_distinct_from", "is_not_distinct_from"})
_CONVERSIONS = frozenset({"as_number", "as_timestamp"})
_SHOWN_MAX = 10


def outside_declaration(
    operator: str, arguments: Sequence[Expression], position: Callable[[], Position | None]
) -> Iterator[Finding]:
    """A warning for each constant of one comparison that the compared column is declared never to have.

    Of keys only equalities count: the order of texts says nothing about which of them exist.
    """
    if operator not in COMPARED:
        return
    columns = [column for column in map(_column, arguments) if column is not None]
    if len(columns) != 1:
        return
    column = columns[0]
    for literal in arguments:
        if isinstance(literal, Literal) and literal.value is not None:
            found = _outside(column, literal, equality=operator in _EQUALITIES)
            if found is not None:
                declared, instead = found
                yield Finding(
                    code="literal_outside_declaration",
                    what=f'{describe(literal)} is compared with "{column.name}", which never has it by its declaration',
                    why=f'The dataset declares "{column.name}" {declared}.',
                    instead=instead,
                    position=position(),
                )


def _column(expression: Expression) -> ColumnRef | None:
    while isinstance(expression, Call) and expression.operator in _CONVERSIONS:
        expression = expression.arguments[0]
    return expression if isinstance(expression, ColumnRef) else None


def _outside(column: ColumnRef, literal: Literal, *, equality: bool) -> tuple[str, tuple[str, ...]] | None:
    """How the column is declared, and what to write instead, when the literal lies outside that."""
    value, bounds = literal.value, column.declared
    if equality and column.other is not None and column.domain is not None and value == column.other.value:
        others = [describe(Literal(key, column.type)) for key in column.domain if key is not None and key != value]
        gathered = f"{column.name} NOT IN ({', '.join(others)}) is true of the rows that are gathered"
        return (
            f"with {describe(literal)} as the group of all rows outside its keys, and conditions see stored values",
            (*((gathered,) if 0 < len(others) <= _SHOWN_MAX else ()), "group by the column: only a group gathers rows"),
        )
    if equality and column.domain is not None and column.other is None and not _listed(value, column.domain):
        listed = [describe(Literal(key, column.type)) for key in column.domain if key is not None]
        keys = ", ".join(listed[:_SHOWN_MAX]) + (", ..." if len(listed) > _SHOWN_MAX else "")
        return f"with the keys {keys}", (f"compare it with one of: {keys}",)
    number = Fraction(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    if bounds is not None and number is not None and not bounds.contains(number):
        low, high = _bound(bounds.lower), _bound(bounds.upper)
        return f"within [{low}, {high}]", (f"compare it with a number from {low} to {high}",)
    moment = _moment_number(value, column.type)
    if bounds is not None and moment is not None and not bounds.contains(moment):
        assert bounds.lower is not None
        assert bounds.upper is not None
        at = date_at if column.type is ColumnType.DATE else timestamp_at
        low, high = str(at(bounds.lower)), str(at(bounds.upper))
        return f"within [{low}, {high}]", (f"compare it with a moment from {low} to {high}",)
    return None


def _moment_number(value: Value, kind: ColumnType) -> Fraction | None:
    """A date or timestamp as the bounds of a column of that type count them."""
    if kind is ColumnType.TIMESTAMP and isinstance(value, datetime.date):
        whole = value if isinstance(value, datetime.datetime) else datetime.datetime(value.year, value.month, value.day)
        return number_of_timestamp(whole)
    if kind is ColumnType.DATE and isinstance(value, datetime.date):
        return number_of_date(value)
    return None


def _listed(value: Value, domain: Sequence[object]) -> bool:
    # 2 = 2.0 is a fair comparison; True is not a number.
    if isinstance(value, bool):
        return any(key is value for key in domain)
    return any(key == value for key in domain if not isinstance(key, bool))


def _bound(bound: Fraction | None) -> str:
    return "?" if bound is None else number_text(bound)
