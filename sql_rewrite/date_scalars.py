"""Values of dates and times that an engine is asked to compute for one row: nodes as those of `scalars`.

No node raises or leaves the years 1 to 9999; NULL in any part gives NULL.
"""

from __future__ import annotations

from typing import Literal

from sql_rewrite.scalars import EngineType, Scalar, node

__all__ = [
    "AgePart",
    "DateFromParts",
    "DatePart",
    "DatePartName",
    "DateTrunc",
    "DaysBetween",
    "DaysLater",
    "EpochSeconds",
    "Later",
    "TimeBucket",
    "UnitsBetween",
    "WholeUnits",
]

DatePartName = Literal[
    "year", "quarter", "month", "day", "day_of_week", "day_of_week_iso", "day_of_year", "week", "iso_year",
    "hour", "minute", "second", "year_week", "decade", "century", "millisecond", "microsecond",
]  # fmt: skip


@node
class DaysBetween(Scalar):
    """The number of days from the second date to the first."""

    left: Scalar
    right: Scalar


@node
class DateTrunc(Scalar):
    """The start of the year, quarter, month, week (Monday), day, hour, minute or second, of the value's own type.

    Or of the century or decade, whose first one starts with the year 1.
    """

    unit: str
    value: Scalar
    type: EngineType


@node
class DatePart(Scalar):
    """A part of a date or timestamp as an INTEGER. Sunday is 0, or 7 of the ISO week."""

    part: DatePartName
    value: Scalar


@node
class UnitsBetween(Scalar):
    """How many boundaries of the unit lie between two dates or timestamps, weeks as days by 7 towards zero."""

    unit: str
    first: Scalar
    second: Scalar


@node
class EpochSeconds(Scalar):
    """Seconds since 1970, as the number of microseconds divided once."""

    value: Scalar


@node
class Later(Scalar):
    """A timestamp so many months, then days, then microseconds later, NULL outside the years 1 to 9999.

    A month later is the same day of the month, or the last one of a shorter month. No part is more than ten thousand
    years; `guarded` says that a result can lie outside.
    """

    value: Scalar
    months: int
    days: int
    microseconds: int
    guarded: bool


@node
class DaysLater(Scalar):
    """A date so many days later, NULL outside the years 1 to 9999 (`guarded` says that a result can lie there).

    The number of days is an INTEGER or WIDE. With `limit`, it is NULL where it is further from zero; without, it fits
    32 bits.
    """

    value: Scalar
    days: Scalar
    limit: int | None
    guarded: bool


@node
class WholeUnits(Scalar):
    """How many whole units lie between two dates or timestamps, negative where the second one is earlier.

    A month is over on the same day, or on the last day of a month that does not have it.
    """

    unit: str
    first: Scalar
    second: Scalar


@node
class AgePart(Scalar):
    """The years, months or days of the calendar's time from the second to the first moment, each truncated.

    Days are borrowed from the month of the earlier moment.
    """

    unit: str
    later: Scalar
    earlier: Scalar


@node
class TimeBucket(Scalar):
    """The start of the bucket of that width, of the value's own type, NULL before the year 1 (`guarded`: it can be).

    Months are counted from 2000-01-01, days and microseconds from 2000-01-03.
    """

    months: int
    days: int
    microseconds: int
    value: Scalar
    type: EngineType
    guarded: bool


@node
class DateFromParts(Scalar):
    """The date of a year, a month and a day, NULL where there is none in the years 1 to 9999."""

    year: Scalar
    month: Scalar
    day: Scalar
