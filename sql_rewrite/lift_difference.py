"""Differences of moments, which are intervals: compared with constant intervals, and read as numbers.

    seen - born > INTERVAL 30 DAY             seen > born + INTERVAL 30 DAY
    AGE(seen, born) >= INTERVAL 18 YEAR       360 * its years + 30 * its months + its days >= 6480
    epoch(seen - born)                        epoch(seen) - epoch(born)
    EXTRACT(hour FROM seen - born)            date_sub('hour', born, seen) % 24

An interval is no value of the language (a column of them is two columns, interval_columns.py): it has months, days and
a clock, of which the engine makes days of 24 hours and months of 30 days when it compares two. A difference of
timestamps has no months, so it is longer than a constant exactly where the later moment is after the earlier one moved
by it, a month being 30 days. AGE of dates has no clock, and its parts have one sign, so that it is compared by all of
its days.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from privacy.policy import ColumnType
from privacy.refusal import Refused
from sql_rewrite.expressions import Expression, Literal
from sql_rewrite.interval_columns import moments_of_interval
from sql_rewrite.lifter import Lifter, bare
from sql_rewrite.refuse import refuse
from sql_rewrite.spans import DAY, Span, constant_span, folded
from sql_rewrite.syntax import consume

__all__ = ["age_of", "compared", "difference", "microseconds_of", "number_of", "part_of"]

_MOMENTS = (ColumnType.DATE, ColumnType.TIMESTAMP)
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_CYCLES: Mapping[str, int] = {"hour": 24, "minute": 60, "second": 60}
_MONTH, _YEAR = 30, 360
"""Days that the engine takes a month and a year for, when it compares intervals."""


def difference(lifter: Lifter, node: exp.Expr) -> tuple[Expression, Expression] | None:
    """The later and the earlier moment of `a - b`, one of which is a timestamp; None for any other node.

    A column of a nested query that holds such an interval is one.
    """
    node = bare(node)
    if isinstance(node, exp.Column):
        return _held(lifter, node)
    if not isinstance(node, exp.Sub):
        return None
    if constant_span(lifter, node.expression) is not None or constant_span(lifter, node.this) is not None:
        return None
    later, earlier = lifter.siblings([node.this, node.expression])
    moments = later.type in _MOMENTS and earlier.type in _MOMENTS
    return (later, earlier) if moments and ColumnType.TIMESTAMP in (later.type, earlier.type) else None


def _held(lifter: Lifter, node: exp.Column) -> tuple[Expression, Expression] | None:
    if node.name.lower() not in lifter.text.intervals:
        return None
    try:
        later, earlier = (lifter.column(moment) for moment in moments_of_interval(node))
    except Refused:
        return None
    return later, earlier


def age_of(lifter: Lifter, node: exp.Expr) -> tuple[exp.Anonymous, Expression, Expression] | None:
    """The call and the moments of AGE(later, earlier), or of AGE(earlier) until today; None for any other node."""
    call = bare(node)
    if not isinstance(call, exp.Anonymous) or str(call.this).lower() != "age" or len(call.expressions) not in (1, 2):
        return None
    consume(call, "this", "expressions", text=lifter.text, what="AGE")
    today = [exp.CurrentDate()] if len(call.expressions) == 1 else []
    later, earlier = lifter.siblings([*today, *call.expressions])
    return call, later, earlier


def compared(lifter: Lifter, node: exp.Expr, operator: str, left: exp.Expr, right: exp.Expr) -> Expression | None:
    """A difference compared with a constant interval; None for any other comparison. Errors: Refused."""
    if operator not in _MIRRORED:
        return None
    for one, other, meant in ((left, right, operator), (right, left, _MIRRORED[operator])):
        if type(bare(one)) not in (exp.Sub, exp.Anonymous, exp.Column):
            continue
        span = constant_span(lifter, other)
        if span is None or constant_span(lifter, one) is not None:
            continue
        moments = difference(lifter, one)
        if moments is not None:
            later, earlier = moments
            plain = Span(0, span.days + _MONTH * span.months, span.microseconds)
            moved = folded(lifter, one, lifter.make(node, "add_interval", earlier, *plain.constants()))
            return lifter.make(node, meant, later, moved)
        aged = age_of(lifter, one)
        if aged is not None:
            return _compared_age(lifter, node, meant, aged, span)
    return None


def _compared_age(
    lifter: Lifter, node: exp.Expr, operator: str, aged: tuple[exp.Anonymous, Expression, Expression], span: Span
) -> Expression:
    call, later, earlier = aged
    days, clock = divmod(span.microseconds, DAY)
    if clock or ColumnType.TIMESTAMP in (later.type, earlier.type):
        raise refuse(
            "unsupported_type",
            "a comparison of AGE is refused",
            "It is compared in whole days: of two dates, and with an interval of years, months and days.",
            "compare AGE(CAST(a AS DATE), CAST(b AS DATE)) > INTERVAL 30 DAY",
            "compare timestamps themselves: a - b > INTERVAL 30 DAY",
            position=lifter.text.position(call),
        )
    total: Expression | None = None
    for word, size in (("year", _YEAR), ("month", _MONTH), ("day", 1)):
        part = lifter.make(call, "age_part", Literal(word, ColumnType.TEXT), later, earlier)
        part = folded(lifter, call, part)
        many = part if size == 1 else lifter.make(call, "multiply", part, Literal(size, ColumnType.INTEGER))
        total = many if total is None else lifter.make(call, "add", total, many)
    assert total is not None
    wanted = span.months * _MONTH + span.days + days
    return lifter.make(node, operator, total, Literal(wanted, ColumnType.INTEGER))


def microseconds_of(lifter: Lifter, node: exp.Expr, moments: tuple[Expression, Expression]) -> Expression:
    """The whole microseconds of a difference: two are equal where these are."""
    later, earlier = moments
    return lifter.make(node, "date_sub", Literal("microsecond", ColumnType.TEXT), earlier, later)


def number_of(lifter: Lifter, node: exp.Expr, moments: tuple[Expression, Expression]) -> Expression:
    """The seconds of a difference."""
    later, earlier = (lifter.make(node, "epoch", one) for one in moments)
    return lifter.make(node, "subtract", later, earlier)


def part_of(lifter: Lifter, node: exp.Expr, unit: str, moments: tuple[Expression, Expression]) -> Expression:
    """A part of a difference: its days, or what is left of them in hours, minutes and seconds. Errors: Refused."""
    later, earlier = moments
    word = unit.lower().removesuffix("s")
    if word == "epoch":
        return number_of(lifter, node, moments)
    if word != "day" and word not in _CYCLES:
        raise refuse(
            "unsupported_function",
            f"{lifter.text.spelled(node) or 'a part of a difference'} is refused",
            "A difference of timestamps has days, hours, minutes and seconds, and an epoch, which are all its seconds.",
            "use EXTRACT(year FROM AGE(a, b)) for calendar years, and month for months",
            position=lifter.text.position(node),
        )
    units = lifter.make(node, "date_sub", Literal(word, ColumnType.TEXT), earlier, later)
    if word == "day":
        return units
    return lifter.make(node, "modulo", units, Literal(_CYCLES[word], ColumnType.INTEGER))
