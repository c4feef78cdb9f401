"""What is computed of the rows of one group of one unit: values that are exact, total and free of the rows' order.

Counts, least and greatest values and truth values are functions of the set of values and of how often each is there.
So is the value at the least or greatest other one: of pairs of both, the least or greatest by the other one first and
by the value itself where that is equal.
Quantiles and the median of distances from the median are functions of the values in their order, in which equal values
are one, and of the number of values: p is a decimal constant, and of two values between which p lies the weights follow
from the number alone. A number beyond all doubles, as a distance may be, is NULL. A mode is the least of the values
that are there most often.
Sums are of integers in 128 bits: of numbers with a fraction whole steps are summed, and the sum becomes a number once.
Two zeros of a number are one. So each value is a function of the multiset of the group's rows, which is the unit's own.

What is known of a value follows from what is known of a row, and from the most rows that a snapshot keeps of a unit:

    COUNT(*)   0 or 1 to S         SUM(x)   from min(l, S l) to max(u, S u)        AVG, MIN, MAX   as x, from l to u

with x in [l, u] and at most S rows. As elsewhere a sum clips x to its declared bounds. A released sum of such values
needs bounds too: they are those of a unit within the declared contribution bound, R rows in place of S, and values
beyond them are clipped where they are summed, whatever a group holds.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from fractions import Fraction
from math import ceil, log2
from typing import assert_never

from privacy.policy import ColumnType
from privacy.statistic import Encoding
from sql_rewrite.calendar_ranges import reads_calendar, without_calendar
from sql_rewrite.evaluate import map_domain
from sql_rewrite.expression_cost import characters
from sql_rewrite.expressions import WIDE, ColumnRef, Expression, Interval, form_of, interval_of
from sql_rewrite.functions import build, clip_columns
from sql_rewrite.functions.clipping import bounds_of
from sql_rewrite.identifying import identifying_column
from sql_rewrite.plan import GROUPS, Placement, UnitFunction, UnitPlace, UnitValue

__all__ = [
    "VALUE_BITS",
    "content_name",
    "facts_of",
    "facts_of_place",
    "facts_of_window",
    "made",
    "renamed",
    "summed_range",
    "too_wide",
]

VALUE_BITS = 92
"""Steps up to the greatest number, as a power of two: numbers down to 2^-40 of it are summed without any rounding."""

_FARTHEST = 2**50
"""Numbers without bounds are held to this; larger bounds are refused everywhere."""

_STEP_LEAST = -900

INTEGER, NUMBER, BOOLEAN = ColumnType.INTEGER, ColumnType.NUMBER, ColumnType.BOOLEAN


def content_name(prefix: str, *what: object) -> str:
    """A name that is equal for equal contents: two texts of one question then have one plan."""
    return f"{prefix}_{hashlib.sha256(repr(what).encode()).hexdigest()[:16]}"


def made(
    function: UnitFunction,
    argument: Expression | None,
    condition: Expression | None,
    by: Expression | None = None,
    fraction: Fraction | None = None,
) -> UnitValue:
    """The value, with its argument clipped where it is summed, and the steps of numbers."""
    encoding = None
    if function in (UnitFunction.SUM, UnitFunction.AVERAGE):
        assert argument is not None
        argument = clip_columns(argument)
        if argument.type is NUMBER:
            encoding = _steps(argument)
    form: tuple[object, ...] = (function.value, form_of(argument), form_of(condition))
    if by is not None:
        form = (*form, form_of(by))
    if fraction is not None:
        form = (*form, str(fraction))
    return UnitValue(content_name("a", form), function, argument, condition, encoding, by, fraction)


def _steps(argument: Expression) -> Encoding:
    interval = interval_of(argument)
    largest = Fraction(_FARTHEST)
    if interval.lower is not None and interval.upper is not None:
        largest = min(largest, max(abs(interval.lower), abs(interval.upper)))
    exponent = _STEP_LEAST if largest == 0 else max(ceil(log2(float(largest))) - VALUE_BITS, _STEP_LEAST)
    step = Fraction(2) ** exponent
    most = ceil(largest / step)
    assert most <= 2 ** (VALUE_BITS + 1)
    return Encoding(Fraction(0), step, -most, most)


def too_wide(value: UnitValue, rows: int) -> bool:
    """Whether a sum of whole numbers of so many rows may leave 128 bits."""
    if value.function not in (UnitFunction.SUM, UnitFunction.AVERAGE) or value.argument is None:
        return False
    if value.argument.type is NUMBER:
        return False
    return not _summed(interval_of(value.argument), rows).inside(WIDE)


def _summed(interval: Interval, rows: int) -> Interval:
    """The sum of at least one and at most so many values of the interval."""
    low, high = interval.lower, interval.upper
    return Interval(
        None if low is None else min(low, low * rows),
        None if high is None else max(high, high * rows),
    )


def facts_of(value: UnitValue, *, rows: int, bound: int, shown: str) -> ColumnRef:
    """The value as a column of the relation of groups, with everything that is known about it."""
    argument, filtered = value.argument, value.filter is not None
    nullable = filtered or any(part.nullable for part in (argument, value.by) if part is not None)
    match value.function:
        case UnitFunction.ROWS | UnitFunction.VALUES:
            return _count(value.name, shown, least=0 if nullable else 1, most=rows, bound=bound)
        case UnitFunction.DISTINCT:
            assert argument is not None
            domain = map_domain(argument, rows)
            known = rows if domain is None else min(rows, sum(1 for one in domain if one is not None))
            return _count(value.name, shown, least=0 if nullable else 1, most=known, bound=min(known, bound))
        case UnitFunction.SUM:
            assert argument is not None
            known_range = summed_range(argument)
            declared = None if known_range is None else _summed(known_range, bound)
            interval = _summed(interval_of(argument), rows) if argument.type is INTEGER else None
            made = _column(value.name, argument.type, shown, nullable=nullable, interval=interval, declared=declared)
            return replace(made, calendar=known_range is None and argument.type is INTEGER)
        case UnitFunction.AVERAGE:
            assert argument is not None
            return _column(value.name, NUMBER, shown, nullable=nullable, declared=summed_range(argument))
        case UnitFunction.LEAST | UnitFunction.GREATEST | UnitFunction.AT_LEAST | UnitFunction.AT_GREATEST:
            assert argument is not None
            return renamed(argument, value.name, shown, nullable=nullable)
        case UnitFunction.QUANTILE:
            assert argument is not None
            return _column(value.name, NUMBER, shown, nullable=nullable, declared=summed_range(argument))
        case UnitFunction.QUANTILE_DISCRETE | UnitFunction.MODE:
            assert argument is not None
            return renamed(argument, value.name, shown, nullable=nullable)
        case UnitFunction.DEVIATION:
            assert argument is not None
            held = summed_range(argument)
            width = None if held is None or held.lower is None or held.upper is None else held.upper - held.lower
            declared = None if width is None else Interval(Fraction(0), width)
            return _column(value.name, NUMBER, shown, nullable=True, declared=declared)
        case UnitFunction.ANY_TRUE | UnitFunction.ALL_TRUE:
            return _column(value.name, BOOLEAN, shown, nullable=nullable)
        case _:
            assert_never(value.function)


def facts_of_place(place: UnitPlace, name: str, *, rows: int, bound: int, shown: str, framed: bool) -> ColumnRef:
    """The same of a place among the rows of a unit, or of the value at one; `framed`: the row itself is always read."""
    argument = place.argument
    match place.function:
        case Placement.ROW_NUMBER | Placement.RANK | Placement.DENSE_RANK:
            return _count(name, shown, least=1, most=rows, bound=bound)
        case Placement.NTILE:
            parts = min(place.number, rows)
            return _count(name, shown, least=1, most=parts, bound=parts)
        case Placement.PERCENT_RANK | Placement.CUME_DIST:
            share = Interval(Fraction(0), Fraction(1))
            return _column(name, NUMBER, shown, nullable=False, declared=share)
        case Placement.LAG | Placement.LEAD:
            assert argument is not None
            if place.otherwise is None:
                return renamed(argument, name, shown, nullable=True)
            either = build("case", (build("is_not_null", (argument,)), argument, place.otherwise))
            return renamed(either, name, shown, nullable=argument.nullable)
        case Placement.FIRST_VALUE | Placement.LAST_VALUE | Placement.NTH_VALUE:
            assert argument is not None
            there = framed and place.function is not Placement.NTH_VALUE
            return renamed(argument, name, shown, nullable=argument.nullable or not there)
        case _:
            assert_never(place.function)


def facts_of_window(value: UnitValue, name: str, *, rows: int, bound: int, shown: str, framed: bool) -> ColumnRef:
    """The same of a value over the rows around each row; `framed` says that the row itself is always one of them."""
    found = replace(facts_of(value, rows=rows, bound=bound, shown=shown), name=name)
    if framed:
        return found
    if value.function in (UnitFunction.ROWS, UnitFunction.VALUES):
        return _count(name, shown, least=0, most=rows, bound=bound)
    return renamed(found, name, shown, nullable=True)


def _count(name: str, shown: str, *, least: int, most: int, bound: int) -> ColumnRef:
    interval = Interval(Fraction(least), Fraction(max(most, least)))
    declared = Interval(Fraction(least), Fraction(max(min(bound, most), least)))
    return _column(name, INTEGER, shown, nullable=False, interval=interval, declared=declared)


def _column(
    name: str,
    kind: ColumnType,
    shown: str,
    *,
    nullable: bool,
    interval: Interval | None = None,
    declared: Interval | None = None,
) -> ColumnRef:
    return ColumnRef(GROUPS, name, kind, nullable=nullable, interval=interval, declared=declared, shown=shown)


def summed_range(argument: Expression) -> Interval | None:
    """What clipping proves of a number, None where a side is open or too far away to sum within."""
    found = bounds_of(without_calendar(clip_columns(argument)))
    if found.lower is None or found.upper is None or max(abs(found.lower), abs(found.upper)) > 10**15:
        return None
    return found


def renamed(expression: Expression, name: str, shown: str, *, nullable: bool, limit: int = 10_000) -> ColumnRef:
    """A column of groups that holds values of an expression, with what is known of these."""
    if isinstance(expression, ColumnRef):
        domain = expression.domain
        if domain is not None and nullable and None not in domain:
            domain = (*domain, None)
        # A column that may be NULL where the unit is not does not count units.
        unit = expression.is_unit and not nullable
        return replace(
            expression, relation=GROUPS, name=name, shown=shown, nullable=nullable, domain=domain, is_unit=unit
        )
    kind, domain = expression.type, map_domain(expression, limit)
    if domain is not None and nullable and None not in domain:
        domain = (*domain, None)
    return ColumnRef(
        GROUPS,
        name,
        kind,
        nullable=nullable,
        interval=expression.interval if kind in (INTEGER, NUMBER) else None,
        declared=summed_range(expression) if kind in (INTEGER, NUMBER) else None,
        domain=None if kind in (NUMBER, BOOLEAN) else domain,
        length_max=max(1, characters(expression)) if kind is ColumnType.TEXT else None,
        identifies=identifying_column(expression) is not None,
        shown=shown,
        calendar=kind is INTEGER and reads_calendar(expression),
    )
