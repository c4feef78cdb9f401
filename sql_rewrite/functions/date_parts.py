"""Parts of dates and timestamps, and the names of days and months."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from fractions import Fraction

from privacy.policy import ColumnType
from sql_rewrite.date_scalars import DatePart, DatePartName
from sql_rewrite.dialects.costs import Cost
from sql_rewrite.expressions import Expression, Interval
from sql_rewrite.functions import ranges
from sql_rewrite.functions.moments import moments_of
from sql_rewrite.functions.operator import Operator, Range, any_nullable, one_argument, plain_call
from sql_rewrite.functions.values import midnight, of_day

__all__ = ["DAY_NAMES", "MONTH_NAMES", "OPERATORS"]

DATE, TIMESTAMP, INTEGER, TEXT = ColumnType.DATE, ColumnType.TIMESTAMP, ColumnType.INTEGER, ColumnType.TEXT

DAY_NAMES = tuple("Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split())
MONTH_NAMES = tuple("January February March April May June July August September October November December".split())


def _part(
    name: DatePartName,
    forms: str,
    meaning: str,
    lower: int,
    upper: int,
    reference: Callable[[datetime.date], int],
    *,
    names: tuple[str, ...] = (),
    parts: tuple[str, ...] | None = None,
    interval: Range | None = None,
    kinds: tuple[ColumnType, ...] = (DATE, TIMESTAMP),
) -> Operator:
    """A part as an integer. `names` are its functions and `parts` its words, its own name if none are said."""
    within = ranges.between(lower, upper)
    return Operator(
        name=name,
        forms=forms,
        signature=f"{' or '.join(kind.value.upper() for kind in kinds)} -> INTEGER",
        meaning=f"{meaning}, from {lower} to {upper}.",
        totality="Every date of the years 1 to 9999 has this part; infinite dates are not stored.",
        names=names or (name,),
        parts=(name,) if parts is None else parts,
        resolve=one_argument(forms, *kinds, to=INTEGER),
        lower=lambda call, lowerer: DatePart(name, lowerer.value(call.arguments[0])),
        reference=of_day(reference),
        range=interval or (lambda arguments, intervals: within),
        nullable=any_nullable,
        strict=True,
        exact=True,
        section="Dates",
    )


def _clock(
    name: DatePartName, forms: str, meaning: str, upper: int, reference: Callable[[datetime.datetime], int]
) -> Operator:
    """A part that a date without a clock does not have."""
    return _part(name, forms, meaning, 0, upper, lambda value: reference(midnight(value)), kinds=(TIMESTAMP,))


def _name(
    name: str, forms: str, meaning: str, values: tuple[str, ...], index: Callable[[datetime.date], int], cost: Cost
) -> Operator:
    """One of the names, by its index."""
    return Operator(
        name=name,
        forms=forms,
        signature="DATE or TIMESTAMP -> TEXT",
        meaning=meaning,
        totality="Every date of the years 1 to 9999 has one of the names.",
        names=(name,),
        resolve=one_argument(forms, DATE, TIMESTAMP, to=TEXT),
        lower=plain_call(name),
        reference=of_day(lambda value: values[index(value)]),
        characters=lambda arguments, lengths: max(map(len, values)),
        values=values,
        cost=cost,
        nullable=any_nullable,
        strict=True,
        exact=True,
        section="Dates",
    )


def _year_range(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
    ends = moments_of(arguments[0])
    return ranges.between(1, 9999) if ends is None else ranges.between(ends[0].year, ends[1].year)


def _by_years(size: int, offset: int) -> Range:
    def interval(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
        years = _year_range(arguments, intervals)
        assert years.lower is not None
        assert years.upper is not None
        return ranges.between((int(years.lower) + offset) // size, (int(years.upper) + offset) // size)

    return interval


def _iso_year_range(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
    """The year, or a neighbour of it; the first and the last day of the calendar are in their own years."""
    years = _year_range(arguments, intervals)
    assert years.lower is not None
    assert years.upper is not None
    return ranges.between(max(years.lower - 1, Fraction(1)), min(years.upper + 1, Fraction(9999)))


def _year_week_range(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
    """The ISO year is the year, or a neighbour of it."""
    years = _year_range(arguments, intervals)
    assert years.lower is not None
    assert years.upper is not None
    return ranges.between(max(int(years.lower) - 1, 1) * 100 + 1, min(int(years.upper) + 1, 9999) * 100 + 53)


OPERATORS: tuple[Operator, ...] = (
    _part("year", "YEAR(d)", "The year", 1, 9999, lambda d: d.year, parts=("year", "years"), interval=_year_range),
    _part("quarter", "QUARTER(d)", "The quarter", 1, 4, lambda d: (d.month - 1) // 3 + 1),
    _part("month", "MONTH(d)", "The month", 1, 12, lambda d: d.month, parts=("month", "months")),
    _part(
        "day",
        "DAY(d), DAYOFMONTH",
        "The day of the month",
        1,
        31,
        lambda d: d.day,
        names=("day", "dayofmonth"),
        parts=("day", "days", "dayofmonth"),
    ),
    _part(
        "day_of_week",
        "DAYOFWEEK(d), DOW",
        "The weekday, Sunday is 0",
        0,
        6,
        lambda d: d.isoweekday() % 7,
        names=("dayofweek", "dow", "weekday"),
        parts=("dow", "dayofweek", "weekday"),
    ),
    _part(
        "day_of_week_iso",
        "ISODOW(d)",
        "The weekday, Monday is 1",
        1,
        7,
        lambda d: d.isoweekday(),
        names=("isodow",),
        parts=("isodow",),
    ),
    _part(
        "day_of_year",
        "DAYOFYEAR(d), DOY",
        "The day of the year",
        1,
        366,
        lambda d: d.timetuple().tm_yday,
        names=("dayofyear", "doy"),
        parts=("doy", "dayofyear"),
    ),
    _part(
        "week", "WEEK(d), WEEKOFYEAR", "The ISO week", 1, 53, lambda d: d.isocalendar()[1], names=("week", "weekofyear")
    ),
    _part(
        "iso_year",
        "ISOYEAR(d)",
        "The ISO year",
        1,
        9999,
        lambda d: d.isocalendar()[0],
        names=("isoyear",),
        parts=("isoyear",),
        interval=_iso_year_range,
    ),
    _part(
        "year_week",
        "YEARWEEK(d)",
        "The ISO year times 100, plus the ISO week",
        101,
        999_953,
        lambda d: d.isocalendar()[0] * 100 + d.isocalendar()[1],
        names=("yearweek",),
        parts=("yearweek",),
        interval=_year_week_range,
    ),
    _part("decade", "DECADE(d)", "The year divided by 10", 0, 999, lambda d: d.year // 10, interval=_by_years(10, 0)),
    _part("century", "CENTURY(d)", "The century", 1, 100, lambda d: (d.year + 99) // 100, interval=_by_years(100, 99)),
    _clock("hour", "HOUR(t)", "The hour", 23, lambda t: t.hour),
    _clock("minute", "MINUTE(t)", "The minute", 59, lambda t: t.minute),
    _clock("second", "SECOND(t)", "The whole second", 59, lambda t: t.second),
    _clock(
        "millisecond",
        "MILLISECOND(t)",
        "The milliseconds of the minute",
        59_999,
        lambda t: t.second * 1_000 + t.microsecond // 1_000,
    ),
    _clock(
        "microsecond",
        "MICROSECOND(t)",
        "The microseconds of the minute",
        59_999_999,
        lambda t: t.second * 1_000_000 + t.microsecond,
    ),
    _name(
        "dayname",
        "DAYNAME(d)",
        "The weekday in English.",
        DAY_NAMES,
        lambda d: d.weekday(),
        Cost(row=25, vector=2100),
    ),
    _name("monthname", "MONTHNAME(d)", "The month in English.", MONTH_NAMES, lambda d: d.month - 1, Cost(row=11)),
)
"""Entries of the allow-list."""
