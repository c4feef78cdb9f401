"""Which moments an expression can be, units of time, and the beginnings of units."""

from __future__ import annotations

import calendar
import datetime
import math
from collections.abc import Sequence

from privacy.policy import ColumnType
from sql_rewrite.expressions import Call, Expression, Literal, interval_of
from sql_rewrite.functions.operator import constant_text
from sql_rewrite.functions.values import day, midnight, whole

__all__ = ["has_calendar_range", "moments_of", "shifted_by", "start_of", "time_bucket_of", "unit_of", "whole_days"]

_LAST_ORDINAL = datetime.date.max.toordinal()
_DAY = 86_400_000_000
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097
"""The calendar repeats itself."""


def unit_of(call: Call) -> str:
    """The unit of a date function, its first argument."""
    return constant_text("date function", call.arguments[0], "unit", most=20).lower()


def start_of(unit: str, value: datetime.date) -> datetime.date:
    """The first moment of the unit that the value lies in, of the value's own type."""
    match unit:
        case "hour":
            return midnight(value).replace(minute=0, second=0, microsecond=0)
        case "minute":
            return midnight(value).replace(second=0, microsecond=0)
        case "second":
            return midnight(value).replace(microsecond=0)
    first = datetime.date(value.year, value.month, value.day)
    match unit:
        case "century" | "decade":
            years = 100 if unit == "century" else 10
            first = datetime.date(max(first.year // years * years, 1), 1, 1)
        case "year":
            first = first.replace(month=1, day=1)
        case "quarter":
            first = first.replace(month=(first.month - 1) // 3 * 3 + 1, day=1)
        case "month":
            first = first.replace(day=1)
        case "week":
            first = datetime.date.fromordinal(first.toordinal() - first.weekday())
    return midnight(first) if isinstance(value, datetime.datetime) else first


def _clock(value: datetime.datetime) -> int:
    """Microseconds since midnight."""
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond


def shifted_by(value: datetime.datetime, months: int, days: int, microseconds: int) -> datetime.datetime | None:
    """The moment so many months, then days, then microseconds later; None outside the years 1 to 9999.

    Only the result has to be one of these years. A month later is the same day, or the last one of a shorter month.
    """
    year, month = divmod(value.year * 12 + value.month - 1 + months, 12)
    cycles, place = divmod(year, _CYCLE_YEARS)
    year, month = place + _CYCLE_YEARS, month + 1
    last = calendar.monthrange(year, month)[1]
    ordinal = datetime.date(year, month, min(value.day, last)).toordinal() + (cycles - 1) * _CYCLE_DAYS + days
    later, clock = divmod(_clock(value) + microseconds, _DAY)
    if not 1 <= ordinal + later <= _LAST_ORDINAL:
        return None
    moment = datetime.datetime.fromordinal(ordinal + later)
    return moment + datetime.timedelta(microseconds=clock)


def time_bucket_of(months: int, days: int, microseconds: int, value: datetime.date) -> datetime.date | None:
    """The start of the value's bucket, of its own type; None before the year 1.

    Buckets of months are counted from 2000-01-01, all others from Monday 2000-01-03.
    """
    if months:
        place = (value.year - 2000) * 12 + value.month - 1
        year, month = divmod(place - place % months + 2000 * 12, 12)
        if year < 1:
            return None
        first = datetime.date(year, month + 1, 1)
        return midnight(first) if isinstance(value, datetime.datetime) else first
    width = days * _DAY + microseconds
    moment = midnight(value)
    since = (moment.toordinal() - datetime.date(2000, 1, 3).toordinal()) * _DAY + _clock(moment)
    start = shifted_by(moment, 0, 0, -(since % width))
    return start if start is None or isinstance(value, datetime.datetime) else start.date()


def whole_days(first: datetime.date, last: datetime.date) -> tuple[datetime.datetime, datetime.datetime]:
    """The first moment of the one day, and the last moment of the other."""
    start = datetime.datetime(first.year, first.month, first.day)
    return start, datetime.datetime(last.year, last.month, last.day, 23, 59, 59, 999_999)


def _numbers(arguments: Sequence[Expression]) -> list[int]:
    return [whole(argument.value) for argument in arguments if isinstance(argument, Literal)]


def _later_moments(call: Call) -> tuple[datetime.date, datetime.date] | None:
    """Clocks keep their place in a day that becomes another: what holds is said of whole days."""
    ends = moments_of(call.arguments[0])
    if ends is None:
        return None
    months, days, microseconds = _numbers(call.arguments[1:])
    first, last = (shifted_by(end, months, days, microseconds) for end in whole_days(*ends))
    return first or datetime.datetime.min, last or datetime.datetime.max


def _days_later_moments(call: Call) -> tuple[datetime.date, datetime.date] | None:
    ends, days = moments_of(call.arguments[0]), interval_of(call.arguments[1])
    if ends is None or days.lower is None or days.upper is None:
        return None
    first, last = ends[0].toordinal() + math.floor(days.lower), ends[1].toordinal() + math.ceil(days.upper)
    held = (min(max(end, 1), _LAST_ORDINAL) for end in (first, last))
    low, high = (datetime.date.fromordinal(end) for end in held)
    return low, high


def moments_of(expression: Expression) -> tuple[datetime.date, datetime.date] | None:
    """The first and last moment that a DATE or TIMESTAMP expression can be, as declared; None for the calendar's.

    Columns are known by the clip to their declared bounds. The functions below never swap the order of two moments.
    """
    if isinstance(expression, Literal):
        return None if expression.value is None else (day(expression.value), day(expression.value))
    if not isinstance(expression, Call):
        return None
    match expression.operator:
        case "clip":
            low, high = expression.arguments[1:]
            assert isinstance(low, Literal)
            assert isinstance(high, Literal)
            return day(low.value), day(high.value)
        case "as_timestamp":
            ends = moments_of(expression.arguments[0])
            return None if ends is None else (midnight(ends[0]), midnight(ends[1]))
        case "date_trunc":
            ends = moments_of(expression.arguments[1])
            unit = unit_of(expression)
            return None if ends is None else (start_of(unit, ends[0]), start_of(unit, ends[1]))
        case "add_interval":
            return _later_moments(expression)
        case "add_days":
            return _days_later_moments(expression)
        case "last_day":
            ends = moments_of(expression.arguments[0])
            if ends is None:
                return None
            first, last = (datetime.date(end.year, end.month, 1) for end in ends)
            return first, last.replace(day=calendar.monthrange(last.year, last.month)[1])
        case "time_bucket":
            ends = moments_of(expression.arguments[3])
            if ends is None:
                return None
            months, days, microseconds = _numbers(expression.arguments[:3])
            bucket = time_bucket_of(months, days, microseconds, ends[0])
            return ends[0].min if bucket is None else bucket, ends[1]
        case "cast_date" | "cast_timestamp":
            inner = expression.arguments[0]
            ends = moments_of(inner) if inner.type in (ColumnType.DATE, ColumnType.TIMESTAMP) else None
            if ends is None:
                return None
            if expression.operator == "cast_timestamp":
                return midnight(ends[0]), midnight(ends[1])
            first, last = (datetime.date(end.year, end.month, end.day) for end in ends)
            return first, last
        case "coalesce" | "least" | "greatest":
            return _hull(expression.arguments)
        case "case":
            return _hull((*expression.arguments[1::2], expression.arguments[-1]))
        case "nullif":
            return moments_of(expression.arguments[2])
    return None


def _hull(parts: Sequence[Expression]) -> tuple[datetime.date, datetime.date] | None:
    """The first and last moment of any of these; a constant NULL is none."""
    live = [part for part in parts if not (isinstance(part, Literal) and part.value is None)]
    known = [ends for ends in map(moments_of, live) if ends is not None]
    if not live or len(known) < len(live):
        return None
    return min(low for low, _ in known), max(high for _, high in known)


_YEARS = ("year", "iso_year", "year_week", "decade", "century")
"""Parts of a date that count years."""


def has_calendar_range(call: Call) -> bool:
    """Whether a difference of dates, a year or the seconds of a date have no narrower range than the calendar's."""
    if call.operator in _YEARS:
        return moments_of(call.arguments[0]) is None
    if call.operator == "subtract":
        kinds = {argument.type for argument in call.arguments}
        return kinds <= {ColumnType.DATE, ColumnType.TIMESTAMP} and any(
            moments_of(one) is None for one in call.arguments
        )
    if call.operator not in ("date_diff", "epoch", "date_sub", "age_part"):
        return False
    if call.operator == "age_part" and unit_of(call) != "year":
        return False
    moments = call.arguments if call.operator == "epoch" else call.arguments[1:]
    return any(moments_of(argument) is None for argument in moments)
