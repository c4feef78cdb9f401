"""INTERVAL in expressions: dates and timestamps moved by constant intervals, and buckets of time.

An interval is no value of the language. It is read where it is added to a moment, or is the width of a bucket, as three
whole constants: months, days and microseconds. What is computed from constants alone is a constant of the plan.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from privacy.policy import ColumnType
from privacy.refusal import Refused
from sql_rewrite.evaluate import evaluate
from sql_rewrite.expressions import Call, Expression, Literal
from sql_rewrite.kinds import Kind
from sql_rewrite.lift_constant import check_parameter, missing_parameter
from sql_rewrite.lift_refusal import unread, worded
from sql_rewrite.lifter import Lifter, Reader, bare
from sql_rewrite.refuse import refuse
from sql_rewrite.syntax import consume, whole_number

__all__ = ["READERS", "age"]

_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class _Span:
    """A constant interval."""

    months: int = 0
    days: int = 0
    microseconds: int = 0

    def times(self, factor: int) -> _Span:
        return _Span(self.months * factor, self.days * factor, self.microseconds * factor)

    def plus(self, other: _Span) -> _Span:
        return _Span(self.months + other.months, self.days + other.days, self.microseconds + other.microseconds)

    def constants(self) -> list[Expression]:
        return [Literal(number, ColumnType.INTEGER) for number in (self.months, self.days, self.microseconds)]


_UNITS: Mapping[str, _Span] = {
    name: span
    for names, span in {
        "year yr y": _Span(months=12),
        "quarter": _Span(months=3),
        "month mon": _Span(months=1),
        "decade dec": _Span(months=120),
        "week w": _Span(days=7),
        "day d": _Span(days=1),
        "hour hr h": _Span(microseconds=3_600_000_000),
        "minute min m": _Span(microseconds=60_000_000),
        "second sec s": _Span(microseconds=1_000_000),
        "millisecond msec ms": _Span(microseconds=1_000),
        "microsecond usec us": _Span(microseconds=1),
    }.items()
    for word in names.split()
    for name in (word, f"{word}s")
}
_PARTS = re.compile(r"\s*([+-]?)\s*([0-9]{1,18})\s*([a-z]+)\s*")
_STRING = re.compile(r"\s*[+-]?[0-9]{1,18}\s*|(?:\s*[+-]?\s*[0-9]{1,18}\s*[A-Za-z]+\s*)+")
_MAKERS = {
    f"to_{word}s": _UNITS[word]
    for word in ("year", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond")
}
_LARGE = 10**18
"""More microseconds than engines hold."""


def _span(lifter: Lifter, node: exp.Expr) -> _Span | None:
    """The constant interval that a node is; None when it is none. Errors: Refused, when it is not a constant."""
    node = bare(node)
    if isinstance(node, exp.Interval):
        return _interval(lifter, node)
    if isinstance(node, exp.Neg):
        span = _span(lifter, node.this)
        return None if span is None else span.times(-1)
    if isinstance(node, exp.Add | exp.Sub):
        first, second = _span(lifter, node.this), _span(lifter, node.expression)
        if first is None or second is None:
            return None
        return first.plus(second.times(1 if isinstance(node, exp.Add) else -1))
    if isinstance(node, exp.Mul):
        for part, factor in ((node.this, node.expression), (node.expression, node.this)):
            span = _span(lifter, part)
            if span is not None:
                return span.times(_whole(lifter, node, factor))
        return None
    if isinstance(node, exp.Anonymous) and str(node.this).lower() in _MAKERS and len(node.expressions) == 1:
        return _MAKERS[str(node.this).lower()].times(_whole(lifter, node, node.expressions[0]))
    if isinstance(node, exp.ToDays):
        consume(node, "this", text=lifter.text, what="to_days")
        return _UNITS["day"].times(_whole(lifter, node, node.this))
    if isinstance(node, exp.Cast) and node.to.is_type(exp.DType.INTERVAL) and isinstance(node.this, exp.Literal):
        return _spelled(lifter, node, node.this.name)
    return None


def _interval(lifter: Lifter, node: exp.Interval) -> _Span:
    consume(node, "this", "unit", text=lifter.text, what="INTERVAL")
    if not _read_whole(lifter):
        raise _unknown(lifter, node)
    value, unit = node.this, node.args.get("unit")
    if unit is None and isinstance(value, exp.Literal) and value.is_string:
        return _spelled(lifter, node, value.name)
    span = _UNITS.get(unit.name.lower()) if isinstance(unit, exp.Var) else None
    if span is None or value is None:
        raise _unknown(lifter, node)
    return span.times(_whole(lifter, node, value))


def _read_whole(lifter: Lifter) -> bool:
    """Whether every string behind INTERVAL is numbers with their units: of others the parser forgets a part."""
    tokens = lifter.text.tokens
    strings = (
        b.text for a, b in itertools.pairwise(tokens) if a.token_type is Kind.INTERVAL and b.token_type is Kind.STRING
    )
    return all(_STRING.fullmatch(string) for string in strings)


def _spelled(lifter: Lifter, node: exp.Expr, text: str) -> _Span:
    """An interval written as a string: whole numbers, each with its unit."""
    total, place = _Span(), 0
    lowered = text.lower()
    while place < len(lowered):
        part = _PARTS.match(lowered, place)
        unit = None if part is None else _UNITS.get(part[3])
        if part is None or unit is None:
            raise _unknown(lifter, node)
        total = total.plus(unit.times(-int(part[2]) if part[1] == "-" else int(part[2])))
        place = part.end()
    if not lowered.strip():
        raise _unknown(lifter, node)
    return total


def _whole(lifter: Lifter, node: exp.Expr, number: exp.Expr) -> int:
    """How many units: a whole constant, written as a number, as a string, or as a parameter."""
    number, sign = bare(number), 1
    if isinstance(number, exp.Neg):
        number, sign = bare(number.this), -1
    found: object = whole_number(number)
    if isinstance(number, exp.Literal) and number.is_string and re.fullmatch("[+-]?[0-9]{1,18}", number.name):
        found = int(number.name)
    if isinstance(number, exp.Placeholder):
        if number.name not in lifter.parameters:
            raise missing_parameter(number.name, lifter.text)
        found = lifter.parameters[number.name]
        check_parameter(lifter.parameters[number.name], lifter.text.position(number))
    if isinstance(found, bool) or not isinstance(found, int) or abs(found) > _LARGE:
        raise _unknown(lifter, node)
    return sign * found


def _unknown(lifter: Lifter, node: exp.Expr) -> Refused:
    around = node if isinstance(node, exp.Interval) else node.find(exp.Interval)
    place = lifter.text.interval(around) if around is not None else None
    return refuse(
        "unsupported_function",
        "this INTERVAL is refused",
        "An interval is made of whole constants and their units: years, quarters, months, weeks, days, hours, minutes, "
        "seconds. Only constants, because a value from a row could leave the calendar.",
        "d + INTERVAL 3 MONTH",
        "t - INTERVAL '1 year 2 days'",
        "d + n, where d is a DATE and n a number of days",
        position=place or lifter.text.position(node) or lifter.text.position(node.parent),
    )


def _moved(lifter: Lifter, node: exp.Expr, moment: exp.Expr, span: _Span) -> Expression:
    value = lifter.lift(moment)
    if isinstance(value, Literal) and isinstance(value.value, str):
        value = lifter.siblings([moment, exp.cast(exp.Null(), exp.DType.TIMESTAMP)])[0]
    return _folded(lifter, node, lifter.make(node, "add_interval", value, *span.constants()))


def _folded(lifter: Lifter, node: exp.Expr, made: Expression) -> Expression:
    """The constant that an operator of constants is; a moment outside the calendar is refused."""
    if not isinstance(made, Call) or not all(isinstance(argument, Literal) for argument in made.arguments):
        return made
    value = evaluate(made, {})
    if value is None and all(
        argument.value is not None for argument in made.arguments if isinstance(argument, Literal)
    ):
        raise refuse(
            "too_large",
            f"{lifter.text.spelled(node) or worded(node)} is refused",
            "The result lies outside the years 1 to 9999.",
            position=lifter.text.position(node),
        )
    return Literal(value, made.type)


def _sum(lifter: Lifter, node: exp.Expr) -> Expression:
    """a + b and a - b: of numbers, of dates, of a date and days, of a moment and an interval."""
    consume(node, "this", "expression", text=lifter.text, what=worded(node))
    adds = isinstance(node, exp.Add)
    span = _span(lifter, node.expression)
    if span is not None and _span(lifter, node.this) is None:
        return _moved(lifter, node, node.this, span if adds else span.times(-1))
    if adds and span is None:
        span = _span(lifter, node.this)
        if span is not None:
            return _moved(lifter, node, node.expression, span)
    left, right = lifter.siblings([node.this, node.expression])
    days = _days(left, right) or (_days(right, left) if adds else None)
    if days is None:
        return lifter.make(node, "add" if adds else "subtract", left, right)
    date, number = days
    if not adds:
        constant = isinstance(number, Literal) and isinstance(number.value, int)
        number = (
            Literal(-number.value, ColumnType.INTEGER)
            if constant and isinstance(number, Literal) and isinstance(number.value, int)
            else lifter.make(node, "negate", number)
        )
    return _folded(lifter, node, lifter.make(node, "add_days", date, number))


def _days(date: Expression, number: Expression) -> tuple[Expression, Expression] | None:
    moment = date.type in (ColumnType.DATE, ColumnType.TIMESTAMP)
    return (date, number) if moment and number.type is ColumnType.INTEGER and not _is_null(number) else None


def _is_null(expression: Expression) -> bool:
    return isinstance(expression, Literal) and expression.value is None


def _date_add(lifter: Lifter, node: exp.Expr) -> Expression:
    """date_add(d, INTERVAL ...) and date_add(d, days)."""
    consume(node, "this", "expression", text=lifter.text, what="DATE_ADD")
    span = _span(lifter, node.expression)
    if span is not None:
        return _moved(lifter, node, node.this, span)
    return _folded(lifter, node, lifter.make(node, "add_days", lifter.lift(node.this), lifter.lift(node.expression)))


def _time_bucket(lifter: Lifter, node: exp.Expr) -> Expression:
    consume(node, "this", "expression", text=lifter.text, what="TIME_BUCKET")
    span = _span(lifter, node.this)
    if span is None:
        raise unread(lifter, node)
    return _folded(lifter, node, lifter.make(node, "time_bucket", *span.constants(), lifter.lift(node.expression)))


def age(lifter: Lifter, node: exp.Expr, unit: str) -> Expression | None:
    """A part of AGE(a, b), which is an interval; None where the node is no such call."""
    call = bare(node)
    if not isinstance(call, exp.Anonymous) or str(call.this).lower() != "age" or len(call.expressions) != 2:
        return None
    consume(call, "this", "expressions", text=lifter.text, what="AGE")
    later, earlier = lifter.siblings(call.expressions)
    word = unit.lower().removesuffix("s")
    return _folded(lifter, call, lifter.make(call, "age_part", Literal(word, ColumnType.TEXT), later, earlier))


READERS: Mapping[type[exp.Expr], Reader] = {
    exp.Add: _sum,
    exp.Sub: _sum,
    exp.DateAdd: _date_add,
    exp.DateBin: _time_bucket,
}
