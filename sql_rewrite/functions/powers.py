"""Roots, logarithms, exponentials and powers: functions of doubles that are not defined everywhere.

Ranges are those of Python's own functions, widened by a few units in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from sql_rewrite.dialects.costs import Cost
from sql_rewrite.expressions import ANY, Call, Expression, Interval, Literal, Value, interval_of
from sql_rewrite.functions import ranges
from sql_rewrite.functions.numbers import resolve_to_number
from sql_rewrite.functions.operator import Lower, Lowerer, Operator, any_nullable, plain_call
from sql_rewrite.functions.values import number, of_number
from sql_rewrite.scalars import Guarded, GuardedName, Power, PowerDomain, Scalar

__all__ = ["OPERATORS"]


def _ulps(value: float, count: int, direction: float) -> float:
    for _ in range(count):
        value = math.nextafter(value, direction)
    return value


_SLACK = 8
"""Units in the last place granted to the mathematical library; the usual ones err by less than two."""


def _widened(lower: float | None, upper: float | None) -> Interval:
    low = -math.inf if lower is None else _ulps(lower, _SLACK, -math.inf)
    high = math.inf if upper is None else _ulps(upper, _SLACK, math.inf)
    return Interval(Fraction(low) if math.isfinite(low) else None, Fraction(high) if math.isfinite(high) else None)


def _float(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _safe(function: Callable[[float], float], value: float) -> float:
    try:
        return function(value)
    except OverflowError:
        return math.inf


def _logarithm(name: GuardedName, forms: str, function: Callable[[float], float], *names: str) -> Operator:
    def interval(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
        low, high = intervals[0].lower, intervals[0].upper
        if high is not None and high <= 0:
            return ranges.ZERO
        lower = function(max(_float(low), 5e-324)) if low is not None and low > 0 else None
        return _widened(
            lower, None if high is None or math.isinf(_float(high)) else function(max(_float(high), 5e-324))
        )

    return Operator(
        name=name,
        forms=forms,
        signature="number -> NUMBER",
        meaning="NULL for zero and below.",
        totality="The logarithm is taken of positive finite doubles only, where it is defined and finite.",
        names=names,
        resolve=resolve_to_number(forms, 1),
        lower=_guarded(name, _positive),
        reference=of_number(lambda value: function(value) if value > 0 else None),
        range=interval,
        ceiling=ranges.between(-1100, 1100),
        nullable=lambda arguments: any_nullable(arguments) or not _positive(arguments[0]),
        strict=True,
        finite=True,
        section="Roots and powers",
    )


def _positive(argument: Expression) -> bool:
    low = interval_of(argument).lower
    return low is not None and low > 0


def _not_negative(argument: Expression) -> bool:
    low = interval_of(argument).lower
    return low is not None and low >= 0


def _guarded(name: GuardedName, defined: Callable[[Expression], bool]) -> Lower:
    def lower(call: Call, lowerer: Lowerer) -> Scalar:
        argument = call.arguments[0]
        return Guarded(name, lowerer.value(argument), guarded=not defined(argument))

    return lower


def _sqrt_range(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
    low, high = intervals[0].lower, intervals[0].upper
    lower = math.sqrt(_float(low)) if low is not None and low > 0 and _float(low) < math.inf else 0.0
    upper = None if high is None or math.isinf(_float(high)) else math.sqrt(max(_float(high), 0.0))
    widened = _widened(lower, upper)
    return ranges.intersect(widened, Interval(Fraction(0), None))


def _exp_range(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
    low, high = intervals[0].lower, intervals[0].upper
    lower = 0.0 if low is None else _safe(math.exp, _float(low))
    upper = None if high is None else _safe(math.exp, _float(high))
    return ranges.intersect(_widened(min(lower, 1.7e308), upper), Interval(Fraction(0), None))


def _power(call: Call, values: Sequence[Value]) -> Value:
    try:
        return math.pow(number(values[0]), number(values[1]))
    except (ValueError, OverflowError):
        return None


def _power_defined(arguments: Sequence[Expression]) -> bool:
    """Whether a power is a real number for every value of its arguments; overflow apart, which is judged by range."""
    base, exponent = arguments
    if _positive(base):
        return True
    if not isinstance(exponent, Literal) or not isinstance(exponent.value, float):
        return False
    return exponent.value >= 0 and (exponent.value.is_integer() or _not_negative(base))


def _power_domain(arguments: Sequence[Expression]) -> PowerDomain:
    exponent = arguments[1]
    if _power_defined(arguments):
        return PowerDomain.EVERYWHERE
    if not isinstance(exponent, Literal) or not isinstance(exponent.value, float):
        return PowerDomain.BY_EXPONENT
    if exponent.value >= 0:
        return PowerDomain.NOT_NEGATIVE
    return PowerDomain.NOT_ZERO if exponent.value.is_integer() else PowerDomain.POSITIVE


def _power_lower(call: Call, lowerer: Lowerer) -> Scalar:
    base, exponent = (lowerer.value(argument) for argument in call.arguments)
    return Power(base, exponent, _power_domain(call.arguments))


def _power_at(base: Fraction, exponent: float) -> float:
    value = _float(base)
    if math.isinf(value):
        return math.nan
    try:
        return math.pow(value, exponent)
    except (ValueError, OverflowError):
        return math.nan


def _power_range(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
    exponent = arguments[1]
    base = intervals[0]
    if not isinstance(exponent, Literal) or not isinstance(exponent.value, float):
        return Interval(Fraction(0), None) if base.lower is not None and base.lower >= 0 else ANY
    power = exponent.value
    if power < 0:
        positive = base.lower is not None and base.lower > 0
        if not positive:
            return Interval(Fraction(0), None) if power.is_integer() and power % 2 == 0 else ANY
        assert base.lower is not None
        upper = _power_at(base.lower, power)
        lower = 0.0 if base.upper is None else _power_at(base.upper, power)
        return ranges.intersect(
            _widened(0.0 if math.isnan(lower) else lower, None if math.isnan(upper) else upper),
            Interval(Fraction(0), None),
        )
    if power.is_integer() and power % 2 == 0:
        base = ranges.absolute(base)
    elif not power.is_integer():
        base = ranges.intersect(base, Interval(Fraction(0), None))
    ends = [None if end is None else _power_at(end, power) for end in (base.lower, base.upper)]
    lower_end, upper_end = (None if end is None or math.isnan(end) else end for end in ends)
    widened = _widened(lower_end, upper_end)
    if base.lower is not None and base.lower >= 0:
        widened = ranges.intersect(widened, Interval(Fraction(0), None))
    return widened


OPERATORS: tuple[Operator, ...] = (
    Operator(
        name="sqrt",
        forms="SQRT(a)",
        signature="number -> NUMBER",
        meaning="The square root; NULL below zero.",
        totality="The root is taken of non-negative finite doubles only.",
        names=("sqrt",),
        resolve=resolve_to_number("SQRT", 1),
        lower=_guarded("sqrt", _not_negative),
        reference=of_number(lambda value: math.sqrt(value) if value >= 0 else None),
        range=_sqrt_range,
        nullable=lambda arguments: any_nullable(arguments) or not _not_negative(arguments[0]),
        strict=True,
        finite=True,
        exact=True,
        section="Roots and powers",
    ),
    _logarithm("ln", "LN(a)", math.log, "ln"),
    _logarithm("log10", "LOG10(a), LOG(a)", math.log10),
    _logarithm("log2", "LOG2(a)", math.log2),
    Operator(
        name="exp",
        forms="EXP(a)",
        signature="number -> NUMBER",
        meaning="e to the power a; NULL when that is beyond the largest double.",
        totality="Defined for every finite double; overflow gives infinity, which becomes NULL.",
        resolve=resolve_to_number("EXP", 1),
        names=("exp",),
        lower=plain_call("exp"),
        reference=of_number(lambda value: _safe(math.exp, value)),
        cost=Cost(row=19),
        range=_exp_range,
        nullable=any_nullable,
        strict=True,
        section="Roots and powers",
    ),
    Operator(
        name="power",
        forms="POWER(a, b), POW(a, b)",
        signature="number, number -> NUMBER",
        meaning="a to the power b; NULL where that is not a finite real number.",
        totality="It is computed only where it is defined; overflow gives infinity, which becomes NULL.",
        resolve=resolve_to_number("POWER", 2),
        lower=_power_lower,
        reference=_power,
        range=_power_range,
        nullable=lambda arguments: any_nullable(arguments) or not _power_defined(arguments),
        strict=True,
        section="Roots and powers",
    ),
)
"""Entries of the allow-list."""
