"""Which moments an expression can be, units of time, and the beginnings of units."""

from __future__ import annotations

import datetime

from sql_rewrite.expressions import Call, Expression, Literal
from sql_rewrite.functions.operator import constant_text
from sql_rewrite.functions.values import day, midnight

__all__ = ["has_calendar_range", "moments_of", "start_of", "unit_of"]


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
        case "year":
            first = first.replace(month=1, day=1)
        case "quarter":
            first = first.replace(month=(first.month - 1) // 3 * 3 + 1, day=1)
        case "month":
            first = first.replace(day=1)
        case "week":
            first = datetime.date.fromordinal(first.toordinal() - first.weekday())
    return midnight(first) if isinstance(value, datetime.datetime) else first


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
        case "coalesce" | "least" | "greatest":
            known = [ends for ends in map(moments_of, expression.arguments) if ends is not None]
            if len(known) < len(expression.arguments):
                return None
            return min(low for low, _ in known), max(high for _, high in known)
    return None


def has_calendar_range(call: Call) -> bool:
    """Whether a difference of dates, or the seconds of one, has no narrower range than the calendar's 9,999 years."""
    if call.operator not in ("date_diff", "epoch"):
        return False
    moments = call.arguments[1:] if call.operator == "date_diff" else call.arguments
    return any(moments_of(argument) is None for argument in moments)
