"""INTERVAL in expressions: dates and timestamps moved by constant intervals, and buckets of time.

An interval is no value of the language. It is read where it is added to a moment, or is the width of a bucket, as three
whole constants: months, days and microseconds. What is computed from constants alone is a constant of the plan.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from privacy.policy import ColumnType
from privacy.refusal import Refused
from sql_rewrite.expressions import Expression, Literal
from sql_rewrite.lift_difference import age_of, difference, part_of
from sql_rewrite.lift_refusal import unread, worded
from sql_rewrite.lifter import Lifter, Reader
from sql_rewrite.refuse import refuse
from sql_rewrite.spans import Span, constant_span, folded
from sql_rewrite.syntax import consume

__all__ = ["READERS", "age"]


def _moved(lifter: Lifter, node: exp.Expr, moment: exp.Expr, span: Span) -> Expression:
    value = lifter.lift(moment)
    if isinstance(value, Literal) and isinstance(value.value, str):
        value = lifter.siblings([moment, exp.cast(exp.Null(), exp.DType.TIMESTAMP)])[0]
    return folded(lifter, node, lifter.make(node, "add_interval", value, *span.constants()))


def _sum(lifter: Lifter, node: exp.Expr) -> Expression:
    """a + b and a - b: of numbers, of dates, of a date and days, of a moment and an interval."""
    consume(node, "this", "expression", text=lifter.text, what=worded(node))
    adds = isinstance(node, exp.Add)
    span = constant_span(lifter, node.expression)
    if span is not None and constant_span(lifter, node.this) is None:
        return _moved(lifter, node, node.this, span if adds else span.times(-1))
    if adds and span is None:
        span = constant_span(lifter, node.this)
        if span is not None:
            return _moved(lifter, node, node.expression, span)
    left, right = lifter.siblings([node.this, node.expression])
    moments = (ColumnType.DATE, ColumnType.TIMESTAMP)
    if not adds and {left.type, right.type} <= set(moments) and ColumnType.TIMESTAMP in (left.type, right.type):
        raise _interval(lifter, node)
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
    return folded(lifter, node, lifter.make(node, "add_days", date, number))


def _interval(lifter: Lifter, node: exp.Expr) -> Refused:
    places = [lifter.text.position(side) for side in (node.this, node.expression) if isinstance(side, exp.Column)]
    a, b = [place.text for place in places if place is not None] if len(places) == 2 else ("a", "b")
    return refuse(
        "unsupported_type",
        f"{lifter.text.spelled(node) or 'a - b'} of timestamps is refused",
        "It is an interval: its mean, its median and its extremes are answered, it is compared with INTERVAL, and "
        "anything else takes a number of it.",
        f"write epoch({a} - {b}) / 86400, which are days, or date_diff('day', {b}, {a})",
        f"compare it with a constant: {a} - {b} > INTERVAL 30 DAY",
        position=lifter.text.position(node),
    )


def _days(date: Expression, number: Expression) -> tuple[Expression, Expression] | None:
    moment = date.type in (ColumnType.DATE, ColumnType.TIMESTAMP)
    return (date, number) if moment and number.type is ColumnType.INTEGER and not _is_null(number) else None


def _is_null(expression: Expression) -> bool:
    return isinstance(expression, Literal) and expression.value is None


def _date_add(lifter: Lifter, node: exp.Expr) -> Expression:
    """date_add(d, INTERVAL ...) and date_add(d, days)."""
    consume(node, "this", "expression", text=lifter.text, what="DATE_ADD")
    span = constant_span(lifter, node.expression)
    if span is not None:
        return _moved(lifter, node, node.this, span)
    return folded(lifter, node, lifter.make(node, "add_days", lifter.lift(node.this), lifter.lift(node.expression)))


def _time_bucket(lifter: Lifter, node: exp.Expr) -> Expression:
    consume(node, "this", "expression", text=lifter.text, what="TIME_BUCKET")
    span = constant_span(lifter, node.this)
    if span is None:
        raise unread(lifter, node)
    return folded(lifter, node, lifter.make(node, "time_bucket", *span.constants(), lifter.lift(node.expression)))


def age(lifter: Lifter, node: exp.Expr, unit: str) -> Expression | None:
    """A part of AGE(a, b) or of a difference, which are intervals; None where the node is neither."""
    moments = difference(lifter, node)
    if moments is not None:
        return part_of(lifter, node, unit, moments)
    found = age_of(lifter, node)
    if found is None:
        return None
    call, later, earlier = found
    word = unit.lower().removesuffix("s")
    return folded(lifter, call, lifter.make(call, "age_part", Literal(word, ColumnType.TEXT), later, earlier))


READERS: Mapping[type[exp.Expr], Reader] = {
    exp.Add: _sum,
    exp.Sub: _sum,
    exp.DateAdd: _date_add,
    exp.DateBin: _time_bucket,
}
