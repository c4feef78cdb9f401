"""One type for several arguments: the conversions that SQL makes by itself, and no other."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from privacy.policy import ColumnType
from sql_rewrite.expressions import Call, Expression, Literal, interval_of, needs_wide
from sql_rewrite.functions import ranges
from sql_rewrite.functions.operator import (
    Lowerer,
    Resolve,
    Resolved,
    TypeRefused,
    arity,
    integer_operands,
    refuse_types,
)
from sql_rewrite.functions.reading import read_text
from sql_rewrite.scalars import Scalar

__all__ = ["as_literal", "depth_of", "harmonise", "harmonised_sides", "of_one_kind", "weight_of"]

INTEGER, NUMBER, TEXT = ColumnType.INTEGER, ColumnType.NUMBER, ColumnType.TEXT
DATE, TIMESTAMP = ColumnType.DATE, ColumnType.TIMESTAMP


def as_literal(literal: Literal, kind: ColumnType) -> Literal | None:
    """The constant as one of another type of its family, or a text constant as a date; None when it is not one."""
    value = literal.value
    if value is None or literal.type is kind:
        return Literal(value, kind)
    if kind is NUMBER and isinstance(value, int) and literal.type is INTEGER:
        return Literal(float(value), NUMBER)
    if kind is TIMESTAMP and literal.type is DATE and isinstance(value, datetime.date):
        return Literal(datetime.datetime(value.year, value.month, value.day), TIMESTAMP)
    if literal.type is TEXT and isinstance(value, str) and kind in (DATE, TIMESTAMP):
        moment = read_text(value, kind)
        return None if moment is None else Literal(moment, kind)
    return None


def _convert(argument: Expression, kind: ColumnType) -> Expression | None:
    """The argument as `kind` by an implicit conversion that SQL makes too, or None."""
    if argument.type is kind:
        return argument
    if isinstance(argument, Literal):
        return as_literal(argument, kind)
    if kind is NUMBER and argument.type is INTEGER:
        name, interval = "as_number", ranges.converted(interval_of(argument), wide=needs_wide(argument))
    elif kind is TIMESTAMP and argument.type is DATE:
        name, interval = "as_timestamp", None
    else:
        return None
    weight, depth = weight_of(argument) + 1, depth_of(argument) + 1
    return Call(name, (argument,), kind, argument.nullable, interval, weight=weight, depth=depth)


def weight_of(expression: Expression) -> int:
    """How many operators the expression is in SQL."""
    return expression.weight if isinstance(expression, Call) else 1


def depth_of(expression: Expression) -> int:
    """How deep the expression is nested."""
    return expression.depth if isinstance(expression, Call) else 1


_DATED = ("YEAR({d}) is the number of a date's year", "DATE '2008-12-31' is a date")
"""What to write instead of a date beside a number: no cast makes one of the other."""


def harmonise(forms: str, arguments: Sequence[Expression]) -> tuple[tuple[Expression, ...], ColumnType]:
    """The arguments in one common type.

    INTEGER beside NUMBER becomes NUMBER, DATE beside TIMESTAMP becomes TIMESTAMP, a text constant beside dates
    becomes a date, a NULL constant becomes anything. Errors: TypeRefused for every other mixture.
    """
    first = arguments[0].type
    if not [argument for argument in arguments if argument.type is not first]:
        return tuple(arguments), first
    kinds = {a.type for a in arguments if not (isinstance(a, Literal) and a.value is None)}
    if (
        len(kinds) > 1
        and kinds & {DATE, TIMESTAMP}
        and all(isinstance(a, Literal) for a in arguments if a.type is TEXT)
    ):
        kinds.discard(TEXT)
    if not kinds:
        kind = arguments[0].type
    elif len(kinds) == 1:
        kind = kinds.pop()
    elif kinds == {INTEGER, NUMBER}:
        kind = NUMBER
    elif kinds == {DATE, TIMESTAMP}:
        kind = TIMESTAMP
    else:
        dated = kinds & {DATE, TIMESTAMP} and kinds & {INTEGER, NUMBER}
        instead = _DATED if dated else ("CAST one side to the type of the other",)
        raise refuse_types(forms, arguments, "values of one kind", *instead)
    converted = [_convert(argument, kind) for argument in arguments]
    if any(argument is None for argument in converted):
        raise TypeRefused(
            "unsupported_type",
            f'"{forms}" is refused for a text constant that is not a {kind.value}',
            "Dates and timestamps are written as '2024-02-29' and '2024-02-29 12:00:00'.",
        )
    return tuple(argument for argument in converted if argument is not None), kind


def of_one_kind(forms: str, least: int, most: int | None = None, *, to: ColumnType | None = None) -> Resolve:
    """Accepts that many values of one kind, and returns `to`, or a value of that kind."""

    def resolve(arguments: tuple[Expression, ...]) -> Resolved:
        arity(forms, arguments, least, most)
        converted, kind = harmonise(forms, arguments)
        return Resolved(converted, to or kind)

    return resolve


def harmonised_sides(call: Call, arguments: Sequence[Expression], lowerer: Lowerer) -> tuple[list[Scalar], bool]:
    """Arguments of one language type in one engine type (INTEGER may be WIDE), and whether that is WIDE."""
    if arguments and arguments[0].type is INTEGER:
        return integer_operands(lowerer, arguments, wide=needs_wide(call))
    return [lowerer.value(argument) for argument in arguments], False
