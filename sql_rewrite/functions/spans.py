"""Dates moved by constant intervals and by days, dates from their parts, and buckets of time.

An interval is three whole constants: months, days and microseconds, added in this order, as the engine does. A month
later is the same day of the month, or the last one of a shorter month. Constants are so small that no engine leaves
the range of its timestamps; a result outside the years 1 to 9999 is NULL.
"""

from __future__ import annotations

import calendar
import datetime
from collections.abc import Sequence

from privacy.policy import ColumnType
from sql_rewrite.date_scalars import AgePart, DateFromParts, DaysLater, Later, TimeBucket, WholeUnits
from sql_rewrite.dialects.costs import Cost
from sql_rewrite.expressions import Call, Expression, Interval, Literal, Value, interval_of, needs_wide
from sql_rewrite.functions import ranges
from sql_rewrite.functions.dates import units_between
from sql_rewrite.functions.harmony import harmonise
from sql_rewrite.functions.moments import moments_of, shifted_by, time_bucket_of, unit_of, whole_days
from sql_rewrite.functions.operator import (
    Lowerer,
    Operator,
    Resolve,
    Resolved,
    TypeRefused,
    any_nullable,
    arity,
    constant_integer,
    constant_text,
    expect,
    narrow,
    one_argument,
    plain_call,
    refuse_types,
)
from sql_rewrite.functions.values import day, midnight, of_day, whole
from sql_rewrite.scalars import EngineType, Scalar

__all__ = ["DAYS_MAX", "MICROSECONDS_MAX", "MONTHS_MAX", "OPERATORS"]

DATE, TIMESTAMP, INTEGER = ColumnType.DATE, ColumnType.TIMESTAMP, ColumnType.INTEGER

MONTHS_MAX = 120_000
DAYS_MAX = 3_660_000
MICROSECONDS_MAX = DAYS_MAX * 86_400_000_000
"""Largest parts of an interval: ten thousand years each, so that every result is a timestamp of an engine."""

_MOMENT = Literal(datetime.datetime(1970, 1, 1), TIMESTAMP)
"""A timestamp, beside which a date becomes one."""


def _span(forms: str, arguments: Sequence[Expression]) -> tuple[int, int, int]:
    limits = {"months": MONTHS_MAX, "days": DAYS_MAX, "microseconds": MICROSECONDS_MAX}
    months, days, microseconds = (
        constant_integer(forms, argument, f"number of {parts}", least=-most, most=most)
        for argument, (parts, most) in zip(arguments, limits.items(), strict=True)
    )
    return months, days, microseconds


# --- a moment plus an interval ---------------------------------------------------------------------------------------


def _resolve_later(arguments: tuple[Expression, ...]) -> Resolved:
    forms = "d + INTERVAL"
    arity(forms, arguments, 4)
    _span(forms, arguments[1:])
    (value, _), _ = harmonise(forms, (expect(forms, arguments[0], TIMESTAMP, DATE), _MOMENT))
    return Resolved((value, *arguments[1:]), TIMESTAMP)


def _stays(arguments: Sequence[Expression]) -> bool:
    """Whether every moment that the value can be is moved to one of the years 1 to 9999."""
    ends = moments_of(arguments[0])
    if ends is None:
        return False
    months, days, microseconds = _span("d + INTERVAL", arguments[1:])
    return all(shifted_by(end, months, days, microseconds) is not None for end in whole_days(*ends))


def _later_nullable(arguments: Sequence[Expression]) -> bool:
    return arguments[0].nullable or not _stays(arguments)


def _later_lower(call: Call, lowerer: Lowerer) -> Scalar:
    months, days, microseconds = _span("d + INTERVAL", call.arguments[1:])
    return Later(lowerer.value(call.arguments[0]), months, days, microseconds, guarded=not _stays(call.arguments))


def _later(call: Call, values: Sequence[Value]) -> Value:
    months, days, microseconds = map(whole, values[1:])
    return shifted_by(midnight(day(values[0])), months, days, microseconds)


# --- a date plus days ------------------------------------------------------------------------------------------------


def _resolve_days_later(arguments: tuple[Expression, ...]) -> Resolved:
    forms = "d + days"
    arity(forms, arguments, 2)
    if arguments[0].type is TIMESTAMP:
        raise refuse_types(forms, arguments, "a DATE and an INTEGER", "t + INTERVAL 3 DAY", "CAST(t AS DATE) + 3")
    return Resolved((expect(forms, arguments[0], DATE), expect(forms, arguments[1], INTEGER)), DATE)


def _days_stay(arguments: Sequence[Expression]) -> bool:
    ends, days = moments_of(arguments[0]), interval_of(arguments[1])
    if ends is None or days.lower is None or days.upper is None:
        return False
    return ends[0].toordinal() + days.lower >= 1 and ends[1].toordinal() + days.upper <= datetime.date.max.toordinal()


def _days_later_lower(call: Call, lowerer: Lowerer) -> Scalar:
    date, days = call.arguments
    held = not interval_of(days).inside(ranges.between(-DAYS_MAX, DAYS_MAX))
    number = lowerer.integer(days, wide=needs_wide(days))
    return DaysLater(lowerer.value(date), number, DAYS_MAX if held else None, guarded=not _days_stay(call.arguments))


def _days_later(call: Call, values: Sequence[Value]) -> Value:
    ordinal = day(values[0]).toordinal() + whole(values[1])
    return datetime.date.fromordinal(ordinal) if 1 <= ordinal <= datetime.date.max.toordinal() else None


# --- whole units between two moments ---------------------------------------------------------------------------------

_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_CLOCKED = {
    f"{word.removesuffix('s')}": datetime.timedelta(**{word: 1})
    for word in ("weeks", "days", "hours", "minutes", "seconds", "microseconds")
}
"""How long a unit is that has one length always."""

_AGE_PARTS = ("year", "month", "day")


def _resolve_units(forms: str, units: Sequence[str]) -> Resolve:
    def resolve(arguments: tuple[Expression, ...]) -> Resolved:
        arity(forms, arguments, 3)
        unit = constant_text(forms, arguments[0], "unit", most=20).lower()
        if unit not in units:
            raise TypeRefused(
                "unsupported_function", f'"{forms}" with this unit is refused', f"The units are {', '.join(units)}."
            )
        moments, kind = harmonise(forms, arguments[1:])
        if kind not in (DATE, TIMESTAMP):
            raise refuse_types(forms, arguments[1:], "two dates or two timestamps")
        return Resolved((Literal(unit, ColumnType.TEXT), *moments), INTEGER)

    return resolve


def _clock(moment: datetime.datetime) -> datetime.timedelta:
    return moment - moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _quotient(number: int, size: int) -> int:
    """Rounded towards zero."""
    return number // size if number >= 0 else -(-number // size)


def _whole_months(first: datetime.datetime, second: datetime.datetime) -> int:
    """Months that are over; the last day of a short month stands for the days that it does not have."""
    if first > second:
        return -_whole_months(second, first)
    start, last = first.day, calendar.monthrange(second.year, second.month)[1]
    if second.day == last and start > last:
        start = last
    months = (second.year - first.year) * 12 + second.month - first.month
    return months - ((start, _clock(first)) > (second.day, _clock(second)))


def _whole_units(call: Call, values: Sequence[Value]) -> int:
    unit = unit_of(call)
    first, second = (midnight(day(value)) for value in values[1:])
    if unit in _MONTHS:
        return _quotient(_whole_months(first, second), _MONTHS[unit])
    whole = abs(second - first) // _CLOCKED[unit]
    return whole if second >= first else -whole


def _age(later: datetime.datetime, earlier: datetime.datetime) -> tuple[int, int]:
    """Months and days from the earlier to the later moment; days are borrowed from the month of the earlier one."""
    if later < earlier:
        months, days = _age(earlier, later)
        return -months, -days
    months = (later.year - earlier.year) * 12 + later.month - earlier.month
    days = later.day - earlier.day - (_clock(later) < _clock(earlier))
    if days < 0:
        days += calendar.monthrange(earlier.year, earlier.month)[1]
        months -= 1
    return months, days


def _age_part(call: Call, values: Sequence[Value]) -> int:
    later, earlier = (midnight(day(value)) for value in values[1:])
    months, days = _age(later, earlier)
    match unit_of(call):
        case "year":
            return _quotient(months, 12)
        case "month":
            return months - 12 * _quotient(months, 12)
    return days


def _between(arguments: Sequence[Expression], *, reversed_: bool) -> Interval:
    """Whole units are at most as many as boundaries of the unit, and of the same sign."""
    unit, first, second = arguments
    listed = [unit, second, first] if reversed_ else [unit, first, second]
    return ranges.hull((units_between(listed), ranges.ZERO))


def _age_range(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
    unit = constant_text("AGE", arguments[0], "unit", most=20)
    if unit == "year":
        return _between(arguments, reversed_=True)
    most = {"month": 11, "day": 30}[unit]
    return ranges.between(-most, most)


# --- dates of parts, ends of months, buckets -------------------------------------------------------------------------


def _resolve_parts(arguments: tuple[Expression, ...]) -> Resolved:
    arity("MAKE_DATE", arguments, 3)
    return Resolved(tuple(expect("MAKE_DATE", argument, INTEGER) for argument in arguments), DATE)


def _parts_lower(call: Call, lowerer: Lowerer) -> Scalar:
    year, month, days = (
        narrow(lowerer.integer(part, wide=needs_wide(part)), call, wide=needs_wide(part)) for part in call.arguments
    )
    return DateFromParts(year, month, days)


_PARTS = (ranges.between(1, 9999), ranges.between(1, 12), ranges.between(1, 28))
"""Parts that are a date in every month."""


def _always_a_date(arguments: Sequence[Expression]) -> bool:
    return all(interval_of(part).inside(within) for part, within in zip(arguments, _PARTS, strict=True))


def _date_of_parts(call: Call, values: Sequence[Value]) -> Value:
    year, month, days = map(whole, values)
    if not (1 <= year <= 9999 and 1 <= month <= 12 and 1 <= days <= calendar.monthrange(year, month)[1]):
        return None
    return datetime.date(year, month, days)


def _last_day(value: datetime.date) -> datetime.date:
    return datetime.date(value.year, value.month, calendar.monthrange(value.year, value.month)[1])


def _resolve_bucket(arguments: tuple[Expression, ...]) -> Resolved:
    forms = "time_bucket"
    arity(forms, arguments, 4)
    value = expect(forms, arguments[3], DATE, TIMESTAMP)
    months, days, microseconds = _span(forms, arguments[:3])
    width = months or days or microseconds
    if min(months, days, microseconds) < 0 or width == 0 or (months and (days or microseconds)):
        raise TypeRefused(
            "unsupported_function",
            '"time_bucket" is refused with this interval',
            "A bucket is some whole months, or some days and a time, and longer than nothing.",
            ("time_bucket(INTERVAL 3 MONTH, d)", "time_bucket(INTERVAL 15 MINUTE, t)"),
        )
    if value.type is DATE and microseconds:
        raise TypeRefused(
            "unsupported_function",
            '"time_bucket" of a DATE is refused with this interval',
            "A day has no hours: its buckets are whole days or months.",
            ("time_bucket(INTERVAL 1 DAY, d)",),
        )
    return Resolved((*arguments[:3], value), value.type)


def _bucket(call: Call, values: Sequence[Value]) -> Value:
    months, days, microseconds = map(whole, values[:3])
    return time_bucket_of(months, days, microseconds, day(values[3]))


def _bucket_stays(arguments: Sequence[Expression]) -> bool:
    ends = moments_of(arguments[3])
    return ends is not None and time_bucket_of(*_span("time_bucket", arguments[:3]), ends[0]) is not None


def _bucket_lower(call: Call, lowerer: Lowerer) -> Scalar:
    months, days, microseconds = _span("time_bucket", call.arguments[:3])
    value = lowerer.value(call.arguments[3])
    kind = EngineType.DATE if call.type is DATE else EngineType.TIMESTAMP
    return TimeBucket(months, days, microseconds, value, kind, guarded=not _bucket_stays(call.arguments))


OPERATORS: tuple[Operator, ...] = (
    Operator(
        name="add_interval",
        forms="d + INTERVAL 3 MONTH, d - INTERVAL '1 year 2 days', date_add(d, INTERVAL 3 MONTH)",
        signature="DATE or TIMESTAMP, constant interval -> TIMESTAMP",
        meaning="The moment so much later: months first (the last day of a shorter month), then days, then the clock; "
        "NULL outside the years 1 to 9999.",
        totality="An interval is at most ten thousand years, and engines hold timestamps ten times as far; a result "
        "outside the years 1 to 9999 is replaced by NULL.",
        resolve=_resolve_later,
        lower=_later_lower,
        reference=_later,
        nullable=_later_nullable,
        strict=True,
        exact=True,
        section="Dates",
    ),
    Operator(
        name="add_days",
        forms="d + n, d - n",
        signature="DATE, INTEGER (days) -> DATE",
        meaning="The date so many days later or earlier; NULL outside the years 1 to 9999.",
        totality="More days than all the calendar has are NULL before they are added; a result outside the years "
        "1 to 9999 is replaced by NULL.",
        resolve=_resolve_days_later,
        lower=_days_later_lower,
        reference=_days_later,
        nullable=lambda arguments: any_nullable(arguments) or not _days_stay(arguments),
        strict=True,
        exact=True,
        section="Dates",
    ),
    Operator(
        name="date_sub",
        forms="date_sub('unit', a, b)",
        signature="constant unit, two DATE or two TIMESTAMP -> INTEGER",
        meaning="How many whole units lie between a and b, negative when b is earlier.",
        totality="Differences within the years 1 to 9999 fit 64 bits in every unit.",
        names=("date_sub", "datesub"),
        takes=3,
        resolve=_resolve_units("date_sub", (*_MONTHS, *_CLOCKED)),
        lower=lambda call, lowerer: WholeUnits(unit_of(call), *map(lowerer.value, call.arguments[1:])),
        reference=_whole_units,
        range=lambda arguments, intervals: _between(arguments, reversed_=False),
        nullable=any_nullable,
        strict=True,
        exact=True,
        section="Dates",
    ),
    Operator(
        name="age_part",
        forms="EXTRACT(year FROM AGE(a, b)), date_part('month', AGE(a, b))",
        signature="two DATE or two TIMESTAMP -> INTEGER",
        meaning="The years, months or days of the time from b to a as a calendar counts it, each truncated.",
        totality="Differences within the years 1 to 9999 fit 64 bits in every unit.",
        resolve=_resolve_units("AGE", _AGE_PARTS),
        lower=lambda call, lowerer: AgePart(unit_of(call), *map(lowerer.value, call.arguments[1:])),
        reference=_age_part,
        range=_age_range,
        nullable=any_nullable,
        strict=True,
        exact=True,
        section="Dates",
    ),
    Operator(
        name="make_date",
        forms="MAKE_DATE(year, month, day)",
        signature="INTEGER, INTEGER, INTEGER -> DATE",
        meaning="The date of these parts; NULL where there is none in the years 1 to 9999.",
        totality="The parts are compared with the calendar before the date is made.",
        names=("make_date",),
        takes=3,
        resolve=_resolve_parts,
        lower=_parts_lower,
        reference=_date_of_parts,
        nullable=lambda arguments: any_nullable(arguments) or not _always_a_date(arguments),
        strict=True,
        exact=True,
        section="Dates",
    ),
    Operator(
        name="last_day",
        forms="LAST_DAY(d)",
        signature="DATE or TIMESTAMP -> DATE",
        meaning="The last day of the month.",
        totality="Every month of the years 1 to 9999 has a last day in them.",
        names=("last_day",),
        resolve=one_argument("LAST_DAY", DATE, TIMESTAMP, to=DATE),
        lower=plain_call("last_day"),
        reference=of_day(_last_day),
        cost=Cost(row=60, vector=3000),
        nullable=any_nullable,
        strict=True,
        exact=True,
        section="Dates",
    ),
    Operator(
        name="time_bucket",
        forms="time_bucket(INTERVAL 15 MINUTE, t)",
        signature="constant interval, DATE -> DATE; constant interval, TIMESTAMP -> TIMESTAMP",
        meaning="The start of the bucket of that width: months are counted from 2000-01-01, days and times from Monday "
        "2000-01-03; NULL before the year 1.",
        totality="A width is at most ten thousand years, and engines hold timestamps ten times as far; a start before "
        "the year 1 is replaced by NULL.",
        resolve=_resolve_bucket,
        lower=_bucket_lower,
        reference=_bucket,
        nullable=lambda arguments: arguments[3].nullable or not _bucket_stays(arguments),
        strict=True,
        exact=True,
        section="Dates",
    ),
)
"""Entries of the allow-list."""
