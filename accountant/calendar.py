"""The calendar of windows, in UTC: days, weeks from Monday, months and years, and the names of what a window may be.

Moments are whole microseconds since 1970. Windows of a kind are numbered: days since 1970, weeks since Monday,
29 December 1969, months since year 0, years.
"""

from __future__ import annotations

import datetime
from enum import StrEnum
from typing import assert_never

__all__ = [
    "ACKNOWLEDGEMENT",
    "SLICES_MAX",
    "WindowKind",
    "WindowMode",
    "begin_of",
    "begin_of_day",
    "date_of",
    "number_at",
]

SLICES_MAX = 10_000
"""Most slices of a limit."""

ACKNOWLEDGEMENT = "the losses of windows add up"
"""What a request for mode `reset` must say."""

_DAY = 86_400_000_000
_EPOCH = datetime.date(1970, 1, 1)
_MONDAY = 3
"""1 January 1970 was a Thursday, three days after the Monday of its week."""


class WindowKind(StrEnum):
    """How long a window is."""

    DAILY = "daily"
    WEEKLY = "weekly"
    MONTHLY = "monthly"
    YEARLY = "yearly"


class WindowMode(StrEnum):
    """What a new window brings."""

    SLICES = "slices"
    """One more part of the limit. What was not spent stays there."""

    RESET = "reset"
    """Its own amount. What was not spent is gone, and the losses of windows add up to the limit."""


def number_at(kind: WindowKind, moment: int) -> int:
    """The number of the window that a moment belongs to; the first moment of a window belongs to it."""
    days = moment // _DAY
    match kind:
        case WindowKind.DAILY:
            return days
        case WindowKind.WEEKLY:
            return (days + _MONDAY) // 7
        case WindowKind.MONTHLY:
            date = date_of(moment)
            return 12 * date.year + date.month - 1
        case WindowKind.YEARLY:
            return date_of(moment).year
        case _:
            assert_never(kind)


def begin_of(kind: WindowKind, number: int) -> int:
    """The first moment of a window. Errors: ValueError, OverflowError for one after the year 9999."""
    match kind:
        case WindowKind.DAILY:
            days = number
        case WindowKind.WEEKLY:
            days = 7 * number - _MONDAY
        case WindowKind.MONTHLY:
            days = (datetime.date(number // 12, number % 12 + 1, 1) - _EPOCH).days
        case WindowKind.YEARLY:
            days = (datetime.date(number, 1, 1) - _EPOCH).days
        case _:
            assert_never(kind)
    return days * _DAY


def date_of(moment: int) -> datetime.date:
    """The day of a moment."""
    return _EPOCH + datetime.timedelta(days=moment // _DAY)


def begin_of_day(date: datetime.date) -> int:
    """The first moment of a day."""
    return (date - _EPOCH).days * _DAY
