"""Ranges that are those of the calendar, which are as good as none: differences of dates, and their years."""

from __future__ import annotations

from fractions import Fraction

from privacy.policy import ColumnType
from sql_rewrite.expressions import Call, ColumnRef, Expression, Interval, interval_of
from sql_rewrite.functions import build, clip_columns
from sql_rewrite.functions.moments import has_calendar_range
from sql_rewrite.functions.operator import TypeRefused

__all__ = ["reads_calendar", "without_calendar"]

_WIDE = Interval(Fraction(-(2**62)), Fraction(2**62))


def without_calendar(argument: Expression) -> Expression:
    """The argument with differences of dates without declared bounds replaced by columns of unknown range.

    9,999 years are a range, but an average within it would be noise alone. Where the query clips it, it has another.
    So are columns replaced that hold such differences of rows of a unit.
    """
    if isinstance(argument, ColumnRef) and argument.calendar and argument.declared is None:
        return ColumnRef("", "", argument.type, interval=_WIDE if argument.type is ColumnType.INTEGER else None)
    if isinstance(argument, Call) and (has_calendar_range(argument) or _clipped_at_the_calendar(argument)):
        return ColumnRef("", "", argument.type, interval=_WIDE if argument.type is ColumnType.INTEGER else None)
    if not isinstance(argument, Call) or argument.type not in (ColumnType.INTEGER, ColumnType.NUMBER):
        return argument
    arguments = tuple(without_calendar(part) for part in argument.arguments)
    if all(new is old for new, old in zip(arguments, argument.arguments, strict=True)):
        return argument
    try:
        return build(argument.operator, arguments)
    except TypeRefused:  # beyond 128 bits with an argument of unknown range
        return ColumnRef("", "", ColumnType.NUMBER)


def _clipped_at_the_calendar(argument: Call) -> bool:
    """Whether a condition narrows a difference of dates at one end alone: the other one is the calendar's."""
    inner = argument.arguments[0]
    if argument.operator != "clip" or not isinstance(inner, Call) or not has_calendar_range(inner):
        return False
    whole, kept = interval_of(inner), interval_of(argument)
    ends = ((whole.lower, kept.lower), (whole.upper, kept.upper))
    return any(calendar is not None and calendar == end for calendar, end in ends)


def reads_calendar(argument: Expression) -> bool:
    """Whether the range of an argument follows from the calendar."""
    clipped = clip_columns(argument)
    return without_calendar(clipped) is not clipped
