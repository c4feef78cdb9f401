"""Dates and timestamps without zone, of the years 1 to 9999: beginnings of units, differences, seconds."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from privacy.policy import ColumnType
from sql_rewrite.date_scalars import DateTrunc, EpochSeconds, UnitsBetween
from sql_rewrite.expressions import Call, Expression, Interval, Value
from sql_rewrite.functions import ranges
from sql_rewrite.functions.harmony import harmonise
from sql_rewrite.functions.moments import moments_of, start_of, unit_of
from sql_rewrite.functions.operator import (
    Lowerer,
    Operator,
    Resolved,
    TypeRefused,
    any_nullable,
    arity,
    constant_text,
    expect,
    one_argument,
    refuse_types,
)
from sql_rewrite.functions.values import day, midnight, of_day
from sql_rewrite.scalars import EngineType, Scalar

__all__ = ["OPERATORS", "units_between"]

DATE, TIMESTAMP, INTEGER, NUMBER = ColumnType.DATE, ColumnType.TIMESTAMP, ColumnType.INTEGER, ColumnType.NUMBER

_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)


# --- date_trunc --------------------------------------------------------------------------------------------------

_DAY_UNITS = ("year", "quarter", "month", "week", "day")
_CLOCK_UNITS = ("hour", "minute", "second")
_LONG_UNITS = ("century", "decade")


def _unit(forms: str, argument: Expression, kind: ColumnType, also: tuple[str, ...] = ()) -> str:
    unit = constant_text(forms, argument, "unit", most=20).lower()
    allowed = _DAY_UNITS if kind is DATE else _DAY_UNITS + _CLOCK_UNITS
    if unit not in allowed:
        raise TypeRefused(
            "unsupported_function",
            f'"{forms}" with this unit is refused for a {kind.value}',
            f"The units are {', '.join(also + allowed)}.",
        )
    return unit


def _resolve_trunc(arguments: tuple[Expression, ...]) -> Resolved:
    forms = "date_trunc"
    arity(forms, arguments, 2)
    value = expect(forms, arguments[1], DATE, TIMESTAMP)
    if constant_text(forms, arguments[0], "unit", most=20).lower() not in _LONG_UNITS:
        _unit(forms, arguments[0], value.type, _LONG_UNITS)
    return Resolved((arguments[0], value), value.type)


def _trunc_lower(call: Call, lowerer: Lowerer) -> Scalar:
    kind = EngineType.DATE if call.type is DATE else EngineType.TIMESTAMP
    return DateTrunc(unit_of(call), lowerer.value(call.arguments[1]), kind)


# --- date_diff ---------------------------------------------------------------------------------------------------

_SPANS = {
    "year": 9_998,
    "quarter": 39_995,
    "month": 119_987,
    "week": 521_722,
    "day": 3_652_058,
    "hour": 87_649_415,
    "minute": 5_258_964_959,
    "second": 315_537_897_599,
    "microsecond": 315_537_897_599_999_999,
}
"""The largest difference between two timestamps of the years 1 to 9999, per unit."""


def _resolve_diff(arguments: tuple[Expression, ...]) -> Resolved:
    forms = "date_diff"
    arity(forms, arguments, 3)
    (first, second), kind = harmonise(forms, arguments[1:])
    if kind not in (DATE, TIMESTAMP):
        raise refuse_types(forms, arguments[1:], "two dates or two timestamps")
    _unit(forms, arguments[0], kind)
    return Resolved((arguments[0], first, second), INTEGER)


def units_between(arguments: Sequence[Expression]) -> Interval:
    """All differences of the two moments behind a unit, as `date_diff` counts them."""
    unit = constant_text("date_diff", arguments[0], "unit", most=20).lower()
    first, second = (moments_of(argument) for argument in arguments[1:])
    if first is None or second is None:
        return ranges.between(-_SPANS[unit], _SPANS[unit])
    return ranges.between(_difference(unit, first[1], second[0]), _difference(unit, first[0], second[1]))


def _epoch_range(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
    ends = moments_of(arguments[0])
    if ends is None:
        return ranges.between(-62_135_596_800, 253_402_300_800)
    low, high = ((midnight(end) - _EPOCH) // _MICROSECOND for end in ends)
    return ranges.between(low // 1_000_000 - 1, high // 1_000_000 + 1)


def _diff(call: Call, values: Sequence[Value]) -> int:
    return _difference(unit_of(call), day(values[1]), day(values[2]))


def _difference(unit: str, first: datetime.date, second: datetime.date) -> int:
    days = second.toordinal() - first.toordinal()
    match unit:
        case "year":
            return second.year - first.year
        case "quarter":
            return (second.year - first.year) * 4 + (second.month - 1) // 3 - (first.month - 1) // 3
        case "month":
            return (second.year - first.year) * 12 + second.month - first.month
        case "week":
            return days // 7 if days >= 0 else -(-days // 7)
        case "day":
            return days
    size = {"hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000, "microsecond": 1}[unit]
    start, end = ((midnight(value) - _EPOCH) // _MICROSECOND // size for value in (first, second))
    return end - start


def _diff_lower(call: Call, lowerer: Lowerer) -> Scalar:
    first, second = (lowerer.value(argument) for argument in call.arguments[1:])
    return UnitsBetween(unit_of(call), first, second)


# --- epoch -------------------------------------------------------------------------------------------------------


def _epoch(value: datetime.date) -> float:
    return float((midnight(value) - _EPOCH) // _MICROSECOND) / 1e6


OPERATORS: tuple[Operator, ...] = (
    Operator(
        name="date_trunc",
        forms="date_trunc('unit', d)",
        signature="constant unit, DATE -> DATE; constant unit, TIMESTAMP -> TIMESTAMP",
        meaning="The start of the century (a year that ends in 00), decade, year, quarter, month, week (Monday), day, "
        "hour, minute or second.",
        totality="The year 1 begins on a Monday, and stands for the year 0 as the start of a century or decade.",
        resolve=_resolve_trunc,
        lower=_trunc_lower,
        reference=lambda call, values: start_of(unit_of(call), day(values[1])),
        nullable=any_nullable,
        strict=True,
        exact=True,
        section="Dates",
    ),
    Operator(
        name="date_diff",
        forms="date_diff('unit', a, b)",
        signature="constant unit, two DATE or two TIMESTAMP -> INTEGER",
        meaning="How many unit boundaries lie between a and b, negative when b is earlier; weeks are days by 7.",
        totality="Differences within the years 1 to 9999 fit 64 bits in every unit.",
        resolve=_resolve_diff,
        lower=_diff_lower,
        reference=_diff,
        range=lambda arguments, intervals: units_between(arguments),
        nullable=any_nullable,
        strict=True,
        exact=True,
        section="Dates",
    ),
    Operator(
        name="epoch",
        forms="EPOCH(d)",
        signature="DATE or TIMESTAMP -> NUMBER",
        meaning="Seconds since 1970-01-01 00:00:00, with the fraction.",
        totality="Microseconds within the years 1 to 9999 fit 64 bits; dividing by a million is finite.",
        names=("epoch",),
        parts=("epoch",),
        resolve=one_argument("EPOCH", DATE, TIMESTAMP, to=NUMBER),
        lower=lambda call, lowerer: EpochSeconds(lowerer.value(call.arguments[0])),
        reference=of_day(_epoch),
        range=_epoch_range,
        nullable=any_nullable,
        strict=True,
        finite=True,
        exact=True,
        section="Dates",
    ),
)
"""Entries of the allow-list."""
