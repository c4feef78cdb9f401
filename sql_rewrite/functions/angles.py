"""Angles: sine, cosine, tangent and back, degrees and radians."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from privacy.policy import ColumnType
from sql_rewrite.dialects.costs import Cost
from sql_rewrite.expressions import Call, Expression, Interval, Value, interval_of
from sql_rewrite.functions import ranges
from sql_rewrite.functions.numbers import resolve_to_number
from sql_rewrite.functions.operator import Lowerer, Operator, any_nullable, plain_call
from sql_rewrite.functions.values import number, of_number
from sql_rewrite.scalars import Guarded, GuardedName, Scalar

__all__ = ["OPERATORS"]

NUMBER = ColumnType.NUMBER

_UNIT = ranges.between(-1, 1)
_PI = Fraction(3_141_593, 1_000_000)
"""More than pi, and than what any library makes of it."""


def _within(
    lower: Fraction | int, upper: Fraction | int
) -> Callable[[Sequence[Expression], Sequence[Interval]], Interval]:
    known = ranges.between(lower, upper)
    return lambda arguments, intervals: known


def _plain(
    name: str,
    forms: str,
    meaning: str,
    function: Callable[[float], float],
    interval: Callable[[Sequence[Expression], Sequence[Interval]], Interval],
    *,
    finite: bool = True,
) -> Operator:
    return Operator(
        name=name,
        forms=forms,
        signature="number -> NUMBER",
        meaning=meaning,
        totality="It is defined for every finite double; what is beyond the largest double becomes NULL.",
        names=(name,),
        resolve=resolve_to_number(name.upper(), 1),
        lower=plain_call(name),
        reference=of_number(function),
        range=interval,
        nullable=any_nullable,
        strict=True,
        finite=finite,
        cost=Cost(row=120, vector=6000),
        section="Angles",
    )


def _inverse(
    name: GuardedName, meaning: str, function: Callable[[float], float], lower: Fraction, upper: Fraction
) -> Operator:
    """The angle of a sine or cosine."""

    def inside(arguments: Sequence[Expression]) -> bool:
        return interval_of(arguments[0]).inside(_UNIT)

    def lowered(call: Call, lowerer: Lowerer) -> Scalar:
        return Guarded(name, lowerer.value(call.arguments[0]), not inside(call.arguments))

    def reference(call: Call, values: Sequence[Value]) -> Value:
        value = number(values[0])
        return function(value) if -1 <= value <= 1 else None

    return Operator(
        name=name,
        forms=f"{name.upper()}(a)",
        signature="number -> NUMBER",
        meaning=meaning,
        totality="It is taken of numbers from -1 to 1 only, where it is defined.",
        names=(name,),
        resolve=resolve_to_number(name.upper(), 1),
        lower=lowered,
        reference=reference,
        range=_within(lower, upper),
        nullable=lambda arguments: any_nullable(arguments) or not inside(arguments),
        strict=True,
        finite=True,
        section="Angles",
    )


def _scaled(factor: float) -> Callable[[Sequence[Expression], Sequence[Interval]], Interval]:
    """A product with a constant, with room for its rounding and that of the engine."""

    def interval(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
        scale = Fraction(factor)
        return ranges.multiply(
            intervals[0], ranges.between(scale * Fraction(999_999_999, 10**9), scale * Fraction(1_000_000_001, 10**9))
        )

    return interval


OPERATORS: tuple[Operator, ...] = (
    _plain("sin", "SIN(a)", "The sine of an angle in radians.", math.sin, _within(-1, 1)),
    _plain("cos", "COS(a)", "The cosine of an angle in radians.", math.cos, _within(-1, 1)),
    _plain(
        "tan",
        "TAN(a)",
        "The tangent of an angle in radians.",
        math.tan,
        lambda arguments, intervals: Interval(None, None),
    ),
    _plain("atan", "ATAN(a)", "The angle in radians whose tangent it is.", math.atan, _within(-_PI / 2, _PI / 2)),
    _inverse("asin", "The angle in radians whose sine it is; NULL outside -1 to 1.", math.asin, -_PI / 2, _PI / 2),
    _inverse("acos", "The angle in radians whose cosine it is; NULL outside -1 to 1.", math.acos, Fraction(0), _PI),
    Operator(
        name="atan2",
        forms="ATAN2(y, x)",
        signature="number, number -> NUMBER",
        meaning="The angle in radians of the point (x, y), from -pi to pi.",
        totality="It is defined for every two finite doubles, also for two zeros.",
        names=("atan2",),
        takes=2,
        resolve=resolve_to_number("ATAN2", 2),
        lower=plain_call("atan2"),
        reference=lambda call, values: math.atan2(number(values[0]), number(values[1])),
        range=_within(-_PI, _PI),
        nullable=any_nullable,
        strict=True,
        finite=True,
        cost=Cost(row=200, vector=6000),
        section="Angles",
    ),
    _plain(
        "degrees",
        "DEGREES(a)",
        "Radians as degrees; NULL beyond the largest double.",
        lambda a: a * (180 / math.pi),
        _scaled(180 / math.pi),
        finite=False,
    ),
    _plain("radians", "RADIANS(a)", "Degrees as radians.", math.radians, _scaled(math.pi / 180)),
)
"""Entries of the allow-list."""
