"""Constant intervals: three whole numbers, of months, days and microseconds, in each of their spellings."""

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
from sql_rewrite.lift_refusal import worded
from sql_rewrite.lifter import Lifter, bare
from sql_rewrite.refuse import refuse
from sql_rewrite.syntax import consume, whole_number

__all__ = ["DAY", "Span", "constant_span", "folded"]

DAY = 86_400_000_000
"""Microseconds."""


@dataclass(frozen=True, slots=True)
class Span:
    """A constant interval."""

    months: int = 0
    days: int = 0
    microseconds: int = 0

    def times(self, factor: int) -> Span:
        """So many of them."""
        return Span(self.months * factor, self.days * factor, self.microseconds * factor)

    def plus(self, other: Span) -> Span:
        """Both, part by part."""
        return Span(self.months + other.months, self.days + other.days, self.microseconds + other.microseconds)

    def constants(self) -> list[Expression]:
        """Its parts, as operators take them."""
        return [Literal(number, ColumnType.INTEGER) for number in (self.months, self.days, self.microseconds)]


_UNITS: Mapping[str, Span] = {
    name: span
    for names, span in {
        "year yr y": Span(months=12),
        "quarter": Span(months=3),
        "month mon": Span(months=1),
        "decade dec": Span(months=120),
        "week w": Span(days=7),
        "day d": Span(days=1),
        "hour hr h": Span(microseconds=3_600_000_000),
        "minute min m": Span(microseconds=60_000_000),
        "second sec s": Span(microseconds=1_000_000),
        "millisecond msec ms": Span(microseconds=1_000),
        "microsecond usec us": Span(microseconds=1),
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


def constant_span(lifter: Lifter, node: exp.Expr) -> Span | None:
    """The constant interval that a node is; None when it is none. Errors: Refused, when it is not a constant."""
    node = bare(node)
    if isinstance(node, exp.Interval):
        return _interval(lifter, node)
    if isinstance(node, exp.Neg):
        span = constant_span(lifter, node.this)
        return None if span is None else span.times(-1)
    if isinstance(node, exp.Add | exp.Sub):
        first, second = constant_span(lifter, node.this), constant_span(lifter, node.expression)
        if first is None or second is None:
            return None
        return first.plus(second.times(1 if isinstance(node, exp.Add) else -1))
    if isinstance(node, exp.Mul):
        for part, factor in ((node.this, node.expression), (node.expression, node.this)):
            span = constant_span(lifter, part)
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


def _interval(lifter: Lifter, node: exp.Interval) -> Span:
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


def _spelled(lifter: Lifter, node: exp.Expr, text: str) -> Span:
    """An interval written as a string: whole numbers, each with its unit."""
    total, place = Span(), 0
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


def folded(lifter: Lifter, node: exp.Expr, made: Expression) -> Expression:
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
