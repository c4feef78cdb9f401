"""Dates and timestamps without zone, of the years 1 to 9999."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any

from privacy.policy import ColumnType
from sql_rewrite.expressions import Call, Expression, Interval, Literal
from sql_rewrite.functions import ranges
from sql_rewrite.functions.harmony import harmonise
from sql_rewrite.functions.operator import (
    Lowerer,
    Operator,
    Resolved,
    TypeRefused,
    arity,
    constant_text,
    expect,
    refuse_types,
)
from sql_rewrite.scalars import (
    DatePart,
    DatePartName,
    DateTrunc,
    EngineType,
    EpochSeconds,
    Function,
    FunctionName,
    Scalar,
    UnitsBetween,
)

__all__ = ["DAY_NAMES", "MONTH_NAMES", "OPERATORS", "has_calendar_range", "moments_of"]

DATE, TIMESTAMP, INTEGER = ColumnType.DATE, ColumnType.TIMESTAMP, ColumnType.INTEGER
TEXT, NUMBER = ColumnType.TEXT, ColumnType.NUMBER

DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTH_NAMES = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)

_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)


def _part(
    name: DatePartName,
    forms: str,
    meaning: str,
    lower: int,
    upper: int,
    reference: Callable[[Any], int],
    *,
    timestamp: bool = False,
) -> Operator:
    def resolve(arguments: tuple[Expression, ...]) -> Resolved:
        arity(forms, arguments, 1)
        kinds = (TIMESTAMP,) if timestamp else (DATE, TIMESTAMP)
        return Resolved((expect(forms, arguments[0], *kinds),), INTEGER)

    def interval(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
        ends = moments_of(arguments[0]) if name == "year" else None
        return ranges.between(lower, upper) if ends is None else ranges.between(ends[0].year, ends[1].year)

    return Operator(
        name=name,
        forms=forms,
        signature="TIMESTAMP -> INTEGER" if timestamp else "DATE or TIMESTAMP -> INTEGER",
        meaning=f"{meaning}, from {lower} to {upper}.",
        totality="Every date of the years 1 to 9999 has this part; infinite dates are not stored.",
        resolve=resolve,
        lower=lambda call, lowerer: DatePart(name, lowerer.value(call.arguments[0])),
        reference=lambda call, values: reference(values[0]),
        range=interval,
        section="Dates",
    )


def _name(name: FunctionName, forms: str, meaning: str, reference: Callable[[Any], str]) -> Operator:
    def resolve(arguments: tuple[Expression, ...]) -> Resolved:
        arity(forms, arguments, 1)
        return Resolved((expect(forms, arguments[0], DATE, TIMESTAMP),), TEXT)

    return Operator(
        name=name,
        forms=forms,
        signature="DATE or TIMESTAMP -> TEXT",
        meaning=meaning,
        totality="Every date of the years 1 to 9999 has one of the names.",
        resolve=resolve,
        lower=lambda call, lowerer: Function(name, (lowerer.value(call.arguments[0]),)),
        reference=lambda call, values: reference(values[0]),
        section="Dates",
    )


# --- date_trunc --------------------------------------------------------------------------------------------------

_DAY_UNITS = ("year", "quarter", "month", "week", "day")
_CLOCK_UNITS = ("hour", "minute", "second")


def _unit(forms: str, argument: Expression, kind: ColumnType) -> str:
    unit = constant_text(forms, argument, "unit", most=20).lower()
    allowed = _DAY_UNITS if kind is DATE else _DAY_UNITS + _CLOCK_UNITS
    if unit not in allowed:
        raise TypeRefused(
            "unsupported_function",
            f'"{forms}" with this unit is refused for a {kind.value}',
            f"The units are {', '.join(allowed)}.",
        )
    return unit


def _call_unit(call: Call) -> str:
    return constant_text("date function", call.arguments[0], "unit", most=20).lower()


def _resolve_trunc(arguments: tuple[Expression, ...]) -> Resolved:
    forms = "date_trunc"
    arity(forms, arguments, 2)
    value = expect(forms, arguments[1], DATE, TIMESTAMP)
    _unit(forms, arguments[0], value.type)
    return Resolved((arguments[0], value), value.type)


def _trunc(call: Call, values: Sequence[Any]) -> Any:
    unit, value = _call_unit(call), values[1]
    if unit in _CLOCK_UNITS:
        cleared: dict[str, int] = {"microsecond": 0}
        if unit != "second":
            cleared["second"] = 0
        if unit == "hour":
            cleared["minute"] = 0
        return value.replace(**cleared)
    day = datetime.date(value.year, value.month, value.day)
    if unit == "year":
        day = day.replace(month=1, day=1)
    elif unit == "quarter":
        day = day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
    elif unit == "month":
        day = day.replace(day=1)
    elif unit == "week":
        day = datetime.date.fromordinal(day.toordinal() - day.weekday())
    return day if call.type is DATE else datetime.datetime(day.year, day.month, day.day)


def _trunc_lower(call: Call, lowerer: Lowerer) -> Scalar:
    kind = EngineType.DATE if call.type is DATE else EngineType.TIMESTAMP
    return DateTrunc(_call_unit(call), lowerer.value(call.arguments[1]), kind)


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


def moments_of(expression: Expression) -> tuple[Any, Any] | None:
    """The first and last moment that a DATE or TIMESTAMP expression can be, as declared; None for the calendar's.

    Columns are known by the clip to their declared bounds. The functions below never swap the order of two moments.
    """
    if isinstance(expression, Literal):
        return None if expression.value is None else (expression.value, expression.value)
    if not isinstance(expression, Call):
        return None
    match expression.operator:
        case "clip":
            low, high = expression.arguments[1:]
            assert isinstance(low, Literal)
            assert isinstance(high, Literal)
            return low.value, high.value
        case "as_timestamp":
            ends = moments_of(expression.arguments[0])
            return None if ends is None else (_as_timestamp(ends[0]), _as_timestamp(ends[1]))
        case "date_trunc":
            ends = moments_of(expression.arguments[1])
            return None if ends is None else (_trunc(expression, (None, ends[0])), _trunc(expression, (None, ends[1])))
        case "coalesce" | "least" | "greatest":
            known = [ends for ends in map(moments_of, expression.arguments) if ends is not None]
            if len(known) < len(expression.arguments):
                return None
            return min(low for low, _ in known), max(high for _, high in known)
    return None


def _as_timestamp(value: Any) -> Any:
    return value if isinstance(value, datetime.datetime) else datetime.datetime(value.year, value.month, value.day)


def has_calendar_range(call: Call) -> bool:
    """Whether a difference of dates, or the seconds of one, has no narrower range than the calendar's 9,999 years."""
    if call.operator not in ("date_diff", "epoch"):
        return False
    moments = call.arguments[1:] if call.operator == "date_diff" else call.arguments
    return any(moments_of(argument) is None for argument in moments)


def _diff_range(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
    unit = constant_text("date_diff", arguments[0], "unit", most=20).lower()
    first, second = (moments_of(argument) for argument in arguments[1:])
    if first is None or second is None:
        return ranges.between(-_SPANS[unit], _SPANS[unit])
    return ranges.between(_difference(unit, first[1], second[0]), _difference(unit, first[0], second[1]))


def _epoch_range(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
    ends = moments_of(arguments[0])
    if ends is None:
        return ranges.between(-62_135_596_800, 253_402_300_800)
    low, high = ((_as_timestamp(end) - _EPOCH) // _MICROSECOND for end in ends)
    return ranges.between(low // 1_000_000 - 1, high // 1_000_000 + 1)


def _day_number(value: Any) -> int:
    return datetime.date(value.year, value.month, value.day).toordinal()


def _diff(call: Call, values: Sequence[Any]) -> int:
    return _difference(_call_unit(call), values[1], values[2])


def _difference(unit: str, first: Any, second: Any) -> int:
    days = _day_number(second) - _day_number(first)
    match unit:
        case "year":
            return int(second.year - first.year)
        case "quarter":
            return int((second.year - first.year) * 4 + (second.month - 1) // 3 - (first.month - 1) // 3)
        case "month":
            return int((second.year - first.year) * 12 + second.month - first.month)
        case "week":
            return days // 7 if days >= 0 else -(-days // 7)
        case "day":
            return days
    size = {"hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}[unit]
    start, end = ((value - _EPOCH) // _MICROSECOND // size for value in (first, second))
    return int(end - start)


def _diff_lower(call: Call, lowerer: Lowerer) -> Scalar:
    first, second = (lowerer.value(argument) for argument in call.arguments[1:])
    return UnitsBetween(_call_unit(call), first, second)


# --- epoch -------------------------------------------------------------------------------------------------------


def _resolve_epoch(arguments: tuple[Expression, ...]) -> Resolved:
    arity("EPOCH", arguments, 1)
    return Resolved((expect("EPOCH", arguments[0], DATE, TIMESTAMP),), NUMBER)


def _epoch(call: Call, values: Sequence[Any]) -> float:
    value = values[0]
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    return float((value - _EPOCH) // _MICROSECOND) / 1e6


OPERATORS: tuple[Operator, ...] = (
    _part("year", "YEAR(d)", "The year", 1, 9999, lambda d: int(d.year)),
    _part("quarter", "QUARTER(d)", "The quarter", 1, 4, lambda d: int((d.month - 1) // 3 + 1)),
    _part("month", "MONTH(d)", "The month", 1, 12, lambda d: int(d.month)),
    _part("day", "DAY(d)", "The day of the month", 1, 31, lambda d: int(d.day)),
    _part("day_of_week", "DAYOFWEEK(d), DOW", "The weekday, Sunday is 0", 0, 6, lambda d: d.isoweekday() % 7),
    _part("day_of_week_iso", "ISODOW(d)", "The weekday, Monday is 1", 1, 7, lambda d: int(d.isoweekday())),
    _part("day_of_year", "DAYOFYEAR(d), DOY", "The day of the year", 1, 366, lambda d: d.timetuple().tm_yday),
    _part("week", "WEEK(d), WEEKOFYEAR", "The ISO week", 1, 53, lambda d: int(d.isocalendar()[1])),
    _part("iso_year", "ISOYEAR(d)", "The ISO year", 1, 9999, lambda d: int(d.isocalendar()[0])),
    _part("hour", "HOUR(t)", "The hour", 0, 23, lambda d: int(d.hour), timestamp=True),
    _part("minute", "MINUTE(t)", "The minute", 0, 59, lambda d: int(d.minute), timestamp=True),
    _part("second", "SECOND(t)", "The whole second", 0, 59, lambda d: int(d.second), timestamp=True),
    _name("dayname", "DAYNAME(d)", "The weekday in English.", lambda d: DAY_NAMES[d.weekday()]),
    _name("monthname", "MONTHNAME(d)", "The month in English.", lambda d: MONTH_NAMES[d.month - 1]),
    Operator(
        name="date_trunc",
        forms="date_trunc('unit', d)",
        signature="constant unit, DATE -> DATE; constant unit, TIMESTAMP -> TIMESTAMP",
        meaning="The start of the year, quarter, month, week (Monday), day, hour, minute or second.",
        totality="The year 1 begins on a Monday, so no truncation leaves the years 1 to 9999.",
        resolve=_resolve_trunc,
        lower=_trunc_lower,
        reference=_trunc,
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
        range=_diff_range,
        section="Dates",
    ),
    Operator(
        name="epoch",
        forms="EPOCH(d)",
        signature="DATE or TIMESTAMP -> NUMBER",
        meaning="Seconds since 1970-01-01 00:00:00, with the fraction.",
        totality="Microseconds within the years 1 to 9999 fit 64 bits; dividing by a million is finite.",
        resolve=_resolve_epoch,
        lower=lambda call, lowerer: EpochSeconds(lowerer.value(call.arguments[0])),
        reference=_epoch,
        range=_epoch_range,
        section="Dates",
    ),
)
"""Entries of the allow-list."""
