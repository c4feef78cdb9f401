"""Numbers: arithmetic and rounding.

Integers are exact: range analysis chooses BIGINT or HUGEINT before the query runs, so that overflow cannot happen.
Doubles are IEEE; an infinity or NaN is turned into NULL (see `Operator.loose`).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from privacy.policy import ColumnType
from sql_rewrite.expressions import ANY, Call, Expression, Interval, Literal, interval_of, needs_wide
from sql_rewrite.functions import ranges
from sql_rewrite.functions.harmony import harmonise
from sql_rewrite.functions.operator import (
    Lower,
    Lowerer,
    Operator,
    Resolve,
    Resolved,
    TypeRefused,
    any_nullable,
    arity,
    constant_integer,
    integer_operands,
    narrow,
    refuse_types,
)
from sql_rewrite.scalars import (
    Arithmetic,
    ArithmeticSymbol,
    DaysBetween,
    EngineType,
    Function,
    FunctionName,
    Negate,
    RoundDigits,
    RoundUnits,
    Scalar,
    TotalDivision,
)

__all__ = ["OPERATORS", "resolve_to_number"]

INTEGER, NUMBER, DATE = ColumnType.INTEGER, ColumnType.NUMBER, ColumnType.DATE

NUMBERS = "numbers"


def _numbers(forms: str, arguments: tuple[Expression, ...], count: int) -> tuple[tuple[Expression, ...], ColumnType]:
    """Arguments of type INTEGER, or all as NUMBER."""
    arity(forms, arguments, count)
    arguments = tuple(Literal(None, INTEGER) if isinstance(a, Literal) and a.value is None else a for a in arguments)
    if not all(argument.type in (INTEGER, NUMBER) for argument in arguments):
        raise refuse_types(forms, arguments, NUMBERS)
    return harmonise(forms, arguments)


def _resolve_numbers(forms: str, count: int) -> Resolve:
    def resolve(arguments: tuple[Expression, ...]) -> Resolved:
        converted, kind = _numbers(forms, arguments, count)
        return Resolved(converted, kind)

    return resolve


def _as_numbers(forms: str, arguments: tuple[Expression, ...], count: int) -> tuple[Expression, ...]:
    """Arguments of any number type, all converted to NUMBER."""
    converted, _ = _numbers(forms, arguments, count)
    return harmonise(forms, (*converted, Literal(0.0, NUMBER)))[0][:-1]


def resolve_to_number(forms: str, count: int) -> Resolve:
    """Accepts so many numbers of any type, as NUMBER, and gives one."""

    def resolve(arguments: tuple[Expression, ...]) -> Resolved:
        return Resolved(_as_numbers(forms, arguments, count), NUMBER)

    return resolve


# --- + - * and sign ----------------------------------------------------------------------------------------------


def _arithmetic(symbol: ArithmeticSymbol) -> Lower:
    def lower(call: Call, lowerer: Lowerer) -> Scalar:
        if call.type is NUMBER:
            first, second = call.arguments
            return Arithmetic(symbol, lowerer.loose(first), lowerer.loose(second), EngineType.NUMBER)
        (left, right), wide = integer_operands(lowerer, call.arguments, wide=needs_wide(call))
        return narrow(Arithmetic(symbol, left, right, _integer(wide=wide)), call, wide=wide)

    return lower


def _integer(*, wide: bool) -> EngineType:
    return EngineType.WIDE if wide else EngineType.INTEGER


def _resolve_subtract(arguments: tuple[Expression, ...]) -> Resolved:
    arity("a - b", arguments, 2)
    if any(argument.type is DATE for argument in arguments):
        converted, kind = harmonise("a - b", arguments)
        if kind is DATE:
            return Resolved(converted, INTEGER)
        raise refuse_types("a - b", arguments, "two numbers or two dates", "date_diff('second', b, a)")
    return _resolve_numbers("a - b", 2)(arguments)


_DAYS = ranges.between(-3_652_058, 3_652_058)


def _subtract_range(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
    if arguments[0].type is DATE:
        return _DAYS
    return ranges.add(intervals[0], ranges.negate(intervals[1]))


def _subtract_lower(call: Call, lowerer: Lowerer) -> Scalar:
    if call.arguments[0].type is DATE:
        return DaysBetween(lowerer.value(call.arguments[0]), lowerer.value(call.arguments[1]))
    return _arithmetic("-")(call, lowerer)


def _subtract(call: Call, values: Sequence[Any]) -> Any:
    if call.arguments[0].type is DATE:
        return (values[0] - values[1]).days
    return values[0] - values[1]


def _exact(
    name: str,
    symbol: ArithmeticSymbol,
    meaning: str,
    reference: Callable[[Any, Any], Any],
    interval: Callable[[Interval, Interval], Interval],
) -> Operator:
    """A sum or a product."""
    forms = f"a {symbol} b"
    return Operator(
        name=name,
        forms=forms,
        signature="INTEGER, INTEGER -> INTEGER; numbers -> NUMBER",
        meaning=meaning,
        totality="Integers run in a type that holds the proved range; infinities of overflowing doubles become NULL.",
        resolve=_resolve_numbers(forms, 2),
        lower=_arithmetic(symbol),
        reference=lambda call, values: reference(*values),
        range=lambda arguments, intervals: interval(*intervals),
        loose=True,
        finite=False,
        section="Arithmetic",
    )


def _signed(
    name: str,
    forms: str,
    meaning: str,
    make: Callable[[Scalar], Scalar],
    reference: Callable[[Any], Any],
    interval: Callable[[Interval], Interval],
) -> Operator:
    """The number with another sign."""

    def lower(call: Call, lowerer: Lowerer) -> Scalar:
        if call.type is NUMBER:
            return make(lowerer.loose(call.arguments[0]))
        (value,), wide = integer_operands(lowerer, call.arguments, wide=needs_wide(call))
        return narrow(make(value), call, wide=wide)

    return Operator(
        name=name,
        forms=forms,
        signature="INTEGER -> INTEGER, NUMBER -> NUMBER",
        meaning=f"{meaning}.",
        totality=f"{meaning} of the smallest BIGINT is computed in HUGEINT; doubles are symmetric.",
        resolve=_resolve_numbers(forms.removesuffix("(a)"), 1),
        lower=lower,
        reference=lambda call, values: reference(values[0]),
        range=lambda arguments, intervals: interval(intervals[0]),
        loose=True,
        section="Arithmetic",
    )


# --- division ----------------------------------------------------------------------------------------------------


def _may_be_zero(argument: Expression) -> bool:
    return interval_of(argument).contains(0)


def _division_nullable(arguments: Sequence[Expression]) -> bool:
    return any_nullable(arguments) or _may_be_zero(arguments[1])


def _whole(argument: Expression) -> bool:
    """Whether a NUMBER is an integer that was only converted: then a divisor that is not zero is at least one."""
    if isinstance(argument, Call) and argument.operator == "as_number":
        return True
    return isinstance(argument, Literal) and isinstance(argument.value, float) and argument.value.is_integer()


def _divide_range(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
    least = Fraction(1) if _whole(arguments[1]) else None
    return ranges.divide(intervals[0], intervals[1], least_divisor=least)


def _divide_lower(call: Call, lowerer: Lowerer) -> Scalar:
    first, second = call.arguments
    left, right = lowerer.loose(first), lowerer.value(second)
    return TotalDivision("/", left, right, EngineType.NUMBER, _may_be_zero(second))


def _divide(call: Call, values: Sequence[Any]) -> Any:
    return None if values[1] == 0 else values[0] / values[1]


def _resolve_integer_divide(arguments: tuple[Expression, ...]) -> Resolved:
    converted, kind = _numbers("a // b", arguments, 2)
    if kind is not INTEGER:
        raise TypeRefused(
            "unsupported_type",
            '"a // b" is refused for arguments of type number',
            "Engines disagree about its meaning for numbers with a fraction.",
            ("FLOOR(a / b)", "TRUNC(a / b)"),
        )
    return Resolved(converted, INTEGER)


def _integer_divide_range(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
    return ranges.truncated(ranges.divide(intervals[0], intervals[1], least_divisor=Fraction(1)))


def _integer_divide(call: Call, values: Sequence[Any]) -> Any:
    first, second = values
    if second == 0:
        return None
    quotient = abs(first) // abs(second)
    return quotient if (first < 0) == (second < 0) else -quotient


def _integer_divide_lower(call: Call, lowerer: Lowerer) -> Scalar:
    (left, right), wide = integer_operands(lowerer, call.arguments, wide=needs_wide(call))
    divided = TotalDivision("//", left, right, _integer(wide=wide), _may_be_zero(call.arguments[1]))
    return narrow(divided, call, wide=wide)


def _modulo_range(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
    # The result has the sign of the dividend, is not larger than it, and is smaller than the divisor.
    first, divisor = intervals[0], ranges.absolute(intervals[1])
    size = divisor.upper
    if size is not None and arguments[0].type is INTEGER:
        size = max(size - 1, Fraction(0))
    limit = ANY if size is None else Interval(-size, size)
    own = ranges.hull((first, ranges.ZERO))
    return ranges.intersect(own, limit)


def _modulo(call: Call, values: Sequence[Any]) -> Any:
    first, second = values
    if second == 0:
        return None
    if call.type is NUMBER:
        return math.fmod(first, second)
    rest = abs(first) % abs(second)
    return -rest if first < 0 else rest


def _modulo_lower(call: Call, lowerer: Lowerer) -> Scalar:
    first, second = call.arguments
    if call.type is NUMBER:
        left, right = lowerer.value(first), lowerer.value(second)
        return TotalDivision("%", left, right, EngineType.NUMBER, _may_be_zero(second))
    # The smallest BIGINT modulo -1 raises although the remainder is 0: computed in HUGEINT.
    edge = interval_of(first).contains(-(2**63)) and interval_of(second).contains(-1)
    (left, right), wide = integer_operands(lowerer, call.arguments, wide=edge)
    return narrow(TotalDivision("%", left, right, _integer(wide=wide), _may_be_zero(second)), call, wide=wide)


# --- rounding ----------------------------------------------------------------------------------------------------


def _rounding(name: FunctionName, forms: str, meaning: str, function: Callable[[Fraction], int]) -> Operator:
    def lower(call: Call, lowerer: Lowerer) -> Scalar:
        if call.type is INTEGER:
            return lowerer.value(call.arguments[0])
        return Function(name, (lowerer.loose(call.arguments[0]),))

    def reference(call: Call, values: Sequence[Any]) -> Any:
        value = values[0]
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
        resolve=_resolve_numbers(forms, 1),
        lower=lower,
        reference=reference,
        range=interval,
        loose=True,
        finite=True,
        section="Rounding",
    )


def _round_half_away(value: Fraction) -> int:
    whole = math.floor(abs(value) + Fraction(1, 2))
    return -whole if value < 0 else whole


def _resolve_round(arguments: tuple[Expression, ...]) -> Resolved:
    arity("ROUND(x, digits)", arguments, 1, 2)
    converted, kind = _numbers("ROUND(x, digits)", arguments[:1], 1)
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


def _round(call: Call, values: Sequence[Any]) -> Any:
    value, digits = values[0], _digits(call.arguments)
    if call.type is INTEGER:
        return value if digits >= 0 else int(_round_exact(Fraction(value), digits))
    if digits == 0:
        return math.copysign(float(_round_half_away(Fraction(value))), value)
    scale = float(10 ** abs(digits))
    scaled = value * scale if digits > 0 else value / scale
    if not math.isfinite(scaled):
        return value
    whole = math.copysign(float(_round_half_away(Fraction(scaled))), scaled)
    result = whole / scale if digits > 0 else whole * scale
    return result if math.isfinite(result) else (value if digits > 0 else 0.0)


_SIGN = ranges.between(-1, 1)


def _sign_range(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
    def side(value: Fraction) -> Fraction:
        return Fraction((value > 0) - (value < 0))

    mapped = ranges.monotone(intervals[0], side)
    return ranges.intersect(mapped, _SIGN)


OPERATORS: tuple[Operator, ...] = (
    _exact(
        "add",
        "+",
        "The sum: exact for integers, rounded to double for numbers, NULL beyond the largest double.",
        operator.add,
        ranges.add,
    ),
    Operator(
        name="subtract",
        forms="a - b",
        signature="INTEGER, INTEGER -> INTEGER; numbers -> NUMBER; DATE, DATE -> INTEGER (days)",
        meaning="The difference, with the rules of addition; for dates the number of days from b to a.",
        totality="As for addition; two dates of the years 1 to 9999 are less than 2^22 days apart.",
        resolve=_resolve_subtract,
        lower=_subtract_lower,
        reference=_subtract,
        range=_subtract_range,
        loose=True,
        finite=False,
        section="Arithmetic",
    ),
    _exact("multiply", "*", "The product, with the rules of addition.", operator.mul, ranges.multiply),
    _signed("negate", "-a", "The negative", Negate, operator.neg, ranges.negate),
    Operator(
        name="divide",
        forms="a / b",
        signature="numbers -> NUMBER",
        meaning="The quotient as a double, also for integers; NULL when b is zero.",
        totality="A divisor of zero is replaced by NULL before dividing; overflow to infinity becomes NULL.",
        resolve=resolve_to_number("a / b", 2),
        lower=_divide_lower,
        reference=_divide,
        range=_divide_range,
        nullable=_division_nullable,
        loose=True,
        finite=False,
        copies=(1, 2),
        section="Arithmetic",
    ),
    Operator(
        name="integer_divide",
        forms="a // b",
        signature="INTEGER, INTEGER -> INTEGER",
        meaning="The quotient with the fraction cut off towards zero; NULL when b is zero.",
        totality="A divisor of zero is replaced by NULL; the one overflow, smallest BIGINT by -1, runs in HUGEINT.",
        resolve=_resolve_integer_divide,
        lower=_integer_divide_lower,
        reference=_integer_divide,
        range=_integer_divide_range,
        nullable=_division_nullable,
        copies=(1, 2),
        section="Arithmetic",
    ),
    Operator(
        name="modulo",
        forms="a % b, MOD(a, b)",
        signature="INTEGER, INTEGER -> INTEGER; numbers -> NUMBER",
        meaning="The rest of dividing towards zero, with the sign of a; NULL when b is zero.",
        totality="A divisor of zero is replaced by NULL; the smallest BIGINT modulo -1 runs in HUGEINT.",
        resolve=_resolve_numbers("a % b", 2),
        lower=_modulo_lower,
        reference=_modulo,
        range=_modulo_range,
        nullable=_division_nullable,
        copies=(1, 2),
        section="Arithmetic",
    ),
    _signed("abs", "ABS(a)", "The absolute value", lambda value: Function("abs", (value,)), abs, ranges.absolute),
    Operator(
        name="sign",
        forms="SIGN(a)",
        signature="number -> INTEGER",
        meaning="-1, 0 or 1.",
        totality="Every finite number is below, at or above zero.",
        resolve=lambda arguments: Resolved(_numbers("SIGN", arguments, 1)[0], INTEGER),
        lower=lambda call, lowerer: Function("sign", (lowerer.value(call.arguments[0]),)),
        reference=lambda call, values: (values[0] > 0) - (values[0] < 0),
        range=_sign_range,
        ceiling=_SIGN,
        section="Arithmetic",
    ),
    _rounding("floor", "FLOOR(a)", "The largest whole number not above a.", math.floor),
    _rounding("ceil", "CEIL(a), CEILING(a)", "The smallest whole number not below a.", math.ceil),
    _rounding("trunc", "TRUNC(a)", "The value with the fraction cut off towards zero.", math.trunc),
    Operator(
        name="round",
        forms="ROUND(a), ROUND(a, digits)",
        signature="INTEGER -> INTEGER, NUMBER -> NUMBER; constant digits from -15 to 15",
        meaning="Rounded to that many decimals (to tens, hundreds, ... when negative), halves away from zero.",
        totality="Finite doubles round to finite doubles; integers are rounded in HUGEINT by whole arithmetic.",
        resolve=_resolve_round,
        lower=_round_lower,
        reference=_round,
        range=_round_range,
        # An infinity and NaN stay what they are: without that, each level of nested calls doubled what is below it.
        loose=True,
        finite=False,
        copies=lambda arguments: (3 if arguments[0].type is INTEGER else 1, 1),
        section="Rounding",
    ),
)
"""Entries of the allow-list."""
