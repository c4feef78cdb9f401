"""Conversions: those that are written, and those that SQL makes by itself.

A value that cannot be converted becomes NULL, whichever of CAST and TRY_CAST was written.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import assert_never

from privacy.policy import ColumnType
from sql_rewrite.expressions import BIGINT, Call, Expression, Interval, Literal, Value, interval_of, needs_wide
from sql_rewrite.functions import ranges
from sql_rewrite.functions.harmony import as_literal
from sql_rewrite.functions.operator import (
    Lower,
    Lowerer,
    Operator,
    Range,
    Reference,
    Resolve,
    Resolved,
    any_nullable,
    arity,
    one_argument,
    refuse_types,
)
from sql_rewrite.functions.reading import CHARACTERS_MAX, PATTERNS, read_text, to_integer, to_number
from sql_rewrite.functions.values import day, midnight, number, of_day, whole
from sql_rewrite.scalars import Cast, EngineType, ReadText, Scalar

__all__ = ["OPERATORS"]

INTEGER, NUMBER, TEXT = ColumnType.INTEGER, ColumnType.NUMBER, ColumnType.TEXT
BOOLEAN, DATE, TIMESTAMP = ColumnType.BOOLEAN, ColumnType.DATE, ColumnType.TIMESTAMP

_SOURCES: dict[ColumnType, tuple[ColumnType, ...]] = {
    INTEGER: (INTEGER, NUMBER, TEXT, BOOLEAN),
    NUMBER: (NUMBER, INTEGER, TEXT, BOOLEAN),
    TEXT: (TEXT, INTEGER, BOOLEAN, DATE, TIMESTAMP),
    BOOLEAN: (BOOLEAN, INTEGER, NUMBER, TEXT),
    DATE: (DATE, TIMESTAMP, TEXT),
    TIMESTAMP: (TIMESTAMP, DATE, TEXT),
}

_NEVER_FAILS: dict[ColumnType, tuple[ColumnType, ...]] = {
    INTEGER: (BOOLEAN,),
    NUMBER: (NUMBER, INTEGER, BOOLEAN),
    TEXT: (TEXT, INTEGER, BOOLEAN, DATE, TIMESTAMP),
    BOOLEAN: (BOOLEAN, INTEGER, NUMBER),
    DATE: (DATE, TIMESTAMP),
    TIMESTAMP: (TIMESTAMP, DATE),
}


def _resolve(target: ColumnType) -> Resolve:
    forms = f"CAST(x AS {target.sql})"

    def resolve(arguments: tuple[Expression, ...]) -> Resolved:
        arity(forms, arguments, 1)
        argument = arguments[0]
        if isinstance(argument, Literal) and argument.value is None:
            return Resolved((as_literal(argument, target) or argument,), target)
        if argument.type not in _SOURCES[target]:
            raise refuse_types(forms, arguments, " or ".join(kind.value for kind in _SOURCES[target]))
        return Resolved(arguments, target)

    return resolve


def _nullable(target: ColumnType) -> Callable[[Sequence[Expression]], bool]:
    def nullable(arguments: Sequence[Expression]) -> bool:
        source = arguments[0].type
        if source is INTEGER and target is INTEGER:
            return arguments[0].nullable or needs_wide(arguments[0])
        if source is NUMBER and target is INTEGER:
            interval = ranges.monotone(interval_of(arguments[0]), lambda value: Fraction(round(value)))
            return arguments[0].nullable or not interval.inside(BIGINT)
        return any_nullable(arguments) or source not in _NEVER_FAILS[target]

    return nullable


def _interval(target: ColumnType) -> Range:
    def interval(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
        source = arguments[0].type
        if target not in (INTEGER, NUMBER):
            return Interval(None, None)
        if source is BOOLEAN:
            return ranges.between(0, 1)
        if source is TEXT:
            return Interval(None, None)
        if target is INTEGER and source is NUMBER:
            return ranges.monotone(intervals[0], lambda value: Fraction(round(value)))
        if target is NUMBER and source is INTEGER:
            return ranges.converted(intervals[0], wide=needs_wide(arguments[0]))
        return intervals[0]

    return interval


def _lower(target: ColumnType) -> Lower:
    kind = EngineType(target.value)

    def lower(call: Call, lowerer: Lowerer) -> Scalar:
        argument = call.arguments[0]
        value = lowerer.value(argument)
        if argument.type is target and not needs_wide(argument):
            return value
        if argument.type is TEXT:
            return ReadText(value, kind, PATTERNS[target], CHARACTERS_MAX.get(target))
        if argument.type is BOOLEAN and target is NUMBER:
            return Cast(Cast(value, EngineType.INTEGER), kind)
        return Cast(value, kind, safe=True)

    return lower


def _timestamp_text(value: datetime.datetime) -> str:
    text = value.isoformat(sep=" ", timespec="seconds")
    return text if value.microsecond == 0 else f"{text}.{value.microsecond:06d}".rstrip("0")


def _reference(target: ColumnType) -> Reference:
    def reference(call: Call, values: Sequence[Value]) -> Value:
        value = values[0]
        if isinstance(value, str):
            return value if target is TEXT else read_text(value, target)
        match target:
            case ColumnType.INTEGER:
                return to_integer(number(value))
            case ColumnType.NUMBER:
                return to_number(value, call.arguments[0]) if isinstance(value, int) else value
            case ColumnType.BOOLEAN:
                return value != 0
            case ColumnType.DATE:
                return value.date() if isinstance(value, datetime.datetime) else day(value)
            case ColumnType.TIMESTAMP:
                return midnight(day(value))
            case ColumnType.TEXT:
                if isinstance(value, bool):
                    return "true" if value else "false"
                return _timestamp_text(value) if isinstance(value, datetime.datetime) else str(value)
            case _:
                assert_never(target)

    return reference


_MEANINGS = {
    INTEGER: "The integer: numbers rounded with halves to even, truth values as 0 and 1, text of digits with a sign.",
    NUMBER: "The double nearest to it; text of up to 800 characters as a decimal number with optional exponent.",
    TEXT: "As written: digits, true or false, 2024-02-29, 2024-02-29 12:00:00.5. Numbers with fractions are refused.",
    BOOLEAN: "False for zero, true for other numbers; the texts true, false, t, f, 1 and 0 in any case.",
    DATE: "The day of a timestamp; text written as 2024-02-29.",
    TIMESTAMP: "Midnight of a date; text written as 2024-02-29 12:00:00.5, the clock may be left out.",
}


_WRITTEN_MAX = 40
"""Most characters of a number, a truth value or a moment as text: 128 bits have 39 digits and a sign."""


def _cast_characters(arguments: Sequence[Expression], lengths: Sequence[int]) -> int:
    return lengths[0] if arguments[0].type is TEXT else _WRITTEN_MAX


def _operator(target: ColumnType) -> Operator:
    sources = ", ".join(kind.value.upper() for kind in _SOURCES[target])
    return Operator(
        name=f"cast_{target.value}",
        forms=f"CAST(x AS {target.sql}), TRY_CAST, x::{target.sql}",
        signature=f"{sources} -> {target.value.upper()}",
        meaning=_MEANINGS[target],
        totality="TRY_CAST gives NULL where CAST would raise; text is checked against a fixed pattern first.",
        resolve=_resolve(target),
        lower=_lower(target),
        reference=_reference(target),
        range=_interval(target),
        ceiling=BIGINT if target is INTEGER else None,
        nullable=_nullable(target),
        characters=_cast_characters,
        finite=target is not NUMBER,
        strict=True,
        exact=True,
        section="Conversion",
    )


# --- conversions that SQL makes by itself ------------------------------------------------------------------------


def _as_number_range(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
    return ranges.converted(intervals[0], wide=needs_wide(arguments[0]))


OPERATORS: tuple[Operator, ...] = (
    *(_operator(target) for target in ColumnType),
    Operator(
        name="as_number",
        forms="(an INTEGER beside a NUMBER)",
        signature="INTEGER -> NUMBER",
        meaning="The nearest double; made by the server where SQL converts by itself.",
        totality="Every integer within 2^126 has finite doubles beside it.",
        resolve=one_argument("conversion", INTEGER, to=NUMBER),
        lower=lambda call, lowerer: Cast(lowerer.value(call.arguments[0]), EngineType.NUMBER),
        reference=lambda call, values: to_number(whole(values[0]), call.arguments[0]),
        range=_as_number_range,
        nullable=any_nullable,
        strict=True,
        finite=True,
        exact=True,
        section="Conversion",
    ),
    Operator(
        name="as_timestamp",
        forms="(a DATE beside a TIMESTAMP)",
        signature="DATE -> TIMESTAMP",
        meaning="Midnight of the day; made by the server where SQL converts by itself.",
        totality="Every date of the years 1 to 9999 has a midnight within the range of timestamps.",
        resolve=one_argument("conversion", DATE, to=TIMESTAMP),
        lower=lambda call, lowerer: Cast(lowerer.value(call.arguments[0]), EngineType.TIMESTAMP),
        reference=of_day(midnight),
        nullable=any_nullable,
        strict=True,
        exact=True,
        section="Conversion",
    ),
)
"""Entries of the allow-list."""
