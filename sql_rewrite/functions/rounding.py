"""Numbers: rounding. Integers are returned as they are, or rounded to tens and hundreds by whole arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from privacy.policy import ColumnType
from sql_rewrite.dialects.costs import Cost
from sql_rewrite.expressions import ANY, Call, Expression, Interval, Literal, Value
from sql_rewrite.functions import ranges
from sql_rewrite.functions.numbers import numbers, resolve_numbers
from sql_rewrite.functions.operator import Lowerer, Operator, Resolved, any_nullable, arity, constant_integer, narrow
from sql_rewrite.functions.values import number, whole
from sql_rewrite.scalars import Function, RoundDigits, RoundUnits, Scalar

__all__ = ["OPERATORS"]

INTEGER, NUMBER = ColumnType.INTEGER, ColumnType.NUMBER


def _rounding(
    name: str, forms: str, meaning: str, function: Callable[[Fraction], int], cost: Cost, *others: str
) -> Operator:
    """A rounding to a whole number. A number of digits is read as well, to be refused by the count of arguments."""

    def lower(call: Call, lowerer: Lowerer) -> Scalar:
        if call.type is INTEGER:
            return lowerer.value(call.arguments[0])
        return Function(name, (lowerer.loose(call.arguments[0]),))

    def reference(call: Call, values: Sequence[Value]) -> Value:
        value = number(values[0])
        if call.type is INTEGER:
            return value
        return math.copysign(float(function(Fraction(value))), value)

    def interval(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
        return ranges.monotone(intervals[0], lambda value: Fraction(function(value)))

    return Operator(
        name=name,
        forms=forms,
        signature="INTEGER -> INTEGER, NUMBER -> NUMBER",
        meaning=meaning,
        totality="Every finite double has a whole double beside it; integers are returned as they are.",
        names=(name, *others),
        takes=2,
        resolve=resolve_numbers(forms, 1),
        lower=lower,
        reference=reference,
        range=interval,
        loose=True,
        cost=cost,
        nullable=any_nullable,
        strict=True,
        finite=True,
        exact=True,
        section="Rounding",
    )


def _round_half_away(value: Fraction) -> int:
    size = math.floor(abs(value) + Fraction(1, 2))
    return -size if value < 0 else size


def _resolve_round(arguments: tuple[Expression, ...]) -> Resolved:
    arity("ROUND(x, digits)", arguments, 1, 2)
    converted, kind = numbers("ROUND(x, digits)", arguments[:1], 1)
    digits = 0
    if len(arguments) == 2:
        digits = constant_integer("ROUND(x, digits)", arguments[1], "number of digits", least=-15, most=15)
    return Resolved((*converted, Literal(digits, INTEGER)), kind)


def _digits(arguments: Sequence[Expression]) -> int:
    digits = arguments[1]
    assert isinstance(digits, Literal)
    assert isinstance(digits.value, int)
    return digits.value


def _round_exact(value: Fraction, digits: int) -> Fraction:
    return Fraction(_round_half_away(value * Fraction(10) ** digits)) / Fraction(10) ** digits


def _round_range(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
    digits = _digits(arguments)
    if arguments[0].type is INTEGER and digits >= 0:
        return intervals[0]
    if digits == 0 or arguments[0].type is INTEGER:
        return ranges.monotone(intervals[0], lambda value: _round_exact(value, digits))
    # Doubles are scaled, rounded and scaled back with one rounding each: one unit of the last digit covers it all.
    unit = Fraction(10) ** -digits
    slack = ranges.multiply(ranges.absolute(intervals[0]), ranges.point(Fraction(1, 2**50)))
    if slack.upper is None:
        return ANY if intervals[0].lower is None or intervals[0].upper is None else intervals[0]
    margin = Interval(-unit - slack.upper, unit + slack.upper)
    return ranges.add(intervals[0], margin)


def _round_lower(call: Call, lowerer: Lowerer) -> Scalar:
    value, digits = call.arguments[0], _digits(call.arguments)
    if call.type is NUMBER:
        return RoundDigits(lowerer.loose(value), digits)
    if digits >= 0:
        return lowerer.value(value)
    return narrow(RoundUnits(lowerer.integer(value, wide=True), 10**-digits), call, wide=True)


def _round(call: Call, values: Sequence[Value]) -> Value:
    digits = _digits(call.arguments)
    if call.type is INTEGER:
        return values[0] if digits >= 0 else int(_round_exact(Fraction(whole(values[0])), digits))
    value = number(values[0])
    if digits == 0:
        return math.copysign(float(_round_half_away(Fraction(value))), value)
    scale = float(10 ** abs(digits))
    scaled = value * scale if digits > 0 else value / scale
    if not math.isfinite(scaled):
        return value
    rounded = math.copysign(float(_round_half_away(Fraction(scaled))), scaled)
    result = rounded / scale if digits > 0 else rounded * scale
    return result if math.isfinite(result) else (value if digits > 0 else 0.0)


OPERATORS: tuple[Operator, ...] = (
    _rounding("floor", "FLOOR(a)", "The largest whole number not above a.", math.floor, Cost(row=5)),
    _rounding(
        "ceil",
        "CEIL(a), CEILING(a)",
        "The smallest whole number not below a.",
        math.ceil,
        Cost(row=10, vector=1400),
        "ceiling",
    ),
    _rounding("trunc", "TRUNC(a)", "The value with the fraction cut off towards zero.", math.trunc, Cost(row=5)),
    Operator(
        name="round",
        forms="ROUND(a), ROUND(a, digits)",
        signature="INTEGER -> INTEGER, NUMBER -> NUMBER; constant digits from -15 to 15",
        meaning="Rounded to that many decimals (to tens, hundreds, ... when negative), halves away from zero.",
        totality="Finite doubles round to finite doubles; integers are rounded in HUGEINT by whole arithmetic.",
        names=("round",),
        takes=2,
        resolve=_resolve_round,
        lower=_round_lower,
        reference=_round,
        range=_round_range,
        # An infinity and NaN stay what they are: without that, each level of nested calls doubled what is below it.
        loose=True,
        nullable=any_nullable,
        strict=True,
        exact=True,
        section="Rounding",
    ),
)
"""Entries of the allow-list."""
