"""Numbers: arithmetic.

Integers are exact: range analysis chooses BIGINT or HUGEINT before the query runs, so that overflow cannot happen.
Doubles are IEEE; an infinity or NaN is turned into NULL (see `Operator.loose`).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from fractions import Fraction

from privacy.policy import ColumnType
from sql_rewrite.date_scalars import DaysBetween
from sql_rewrite.dialects.costs import Cost
from sql_rewrite.expressions import ANY, Call, Expression, Interval, Literal, Value, interval_of, needs_wide
from sql_rewrite.functions import ranges
from sql_rewrite.functions.harmony import harmonise
from sql_rewrite.functions.moments import moments_of
from sql_rewrite.functions.numbers import numbers, resolve_numbers, resolve_to_number
from sql_rewrite.functions.operator import (
    Lower,
    Lowerer,
    Operator,
    Resolved,
    TypeRefused,
    any_nullable,
    arity,
    integer_operands,
    narrow,
    plain_call,
    refuse_types,
)
from sql_rewrite.functions.values import day, number, of_number, whole
from sql_rewrite.scalars import Arithmetic, ArithmeticSymbol, EngineType, Function, Negate, Scalar, TotalDivision

__all__ = ["OPERATORS"]

INTEGER, NUMBER, DATE = ColumnType.INTEGER, ColumnType.NUMBER, ColumnType.DATE


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
    return resolve_numbers("a - b", 2)(arguments)


_DAYS = ranges.between(-3_652_058, 3_652_058)


def _subtract_range(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
    if arguments[0].type is DATE:
        ends, others = moments_of(arguments[0]), moments_of(arguments[1])
        if ends is None or others is None:
            return _DAYS
        low, high = (end.toordinal() - other.toordinal() for end, other in zip(ends, reversed(others), strict=True))
        return ranges.between(low, high)
    return ranges.add(intervals[0], ranges.negate(intervals[1]))


def _subtract_lower(call: Call, lowerer: Lowerer) -> Scalar:
    if call.arguments[0].type is DATE:
        return DaysBetween(lowerer.value(call.arguments[0]), lowerer.value(call.arguments[1]))
    return _arithmetic("-")(call, lowerer)


def _subtract(call: Call, values: Sequence[Value]) -> Value:
    if call.arguments[0].type is DATE:
        return (day(values[0]) - day(values[1])).days
    return number(values[0]) - number(values[1])


def _exact(
    name: str,
    symbol: ArithmeticSymbol,
    meaning: str,
    reference: Callable[[float, float], float],
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
        resolve=resolve_numbers(forms, 2),
        lower=_arithmetic(symbol),
        reference=lambda call, values: reference(number(values[0]), number(values[1])),
        range=lambda arguments, intervals: interval(*intervals),
        loose=True,
        nullable=any_nullable,
        strict=True,
        exact=True,
        section="Arithmetic",
    )


def _signed(
    name: str,
    forms: str,
    meaning: str,
    make: Callable[[Scalar], Scalar],
    reference: Callable[[float], float],
    interval: Callable[[Interval], Interval],
    *,
    names: tuple[str, ...] = (),
    cost: Cost | None = None,
) -> Operator:
    """The number, perhaps with another sign."""

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
        resolve=resolve_numbers(forms.removesuffix("(a)"), 1),
        lower=lower,
        names=names,
        reference=of_number(reference),
        range=lambda arguments, intervals: interval(intervals[0]),
        loose=True,
        cost=cost,
        nullable=any_nullable,
        strict=True,
        finite=True,
        exact=True,
        section="Arithmetic",
    )


# --- division ----------------------------------------------------------------------------------------------------


def _may_be_zero(argument: Expression) -> bool:
    return interval_of(argument).contains(0)


def _division_nullable(arguments: Sequence[Expression]) -> bool:
    return any_nullable(arguments) or _may_be_zero(arguments[1])


def _whole_number(argument: Expression) -> bool:
    """Whether a NUMBER is an integer that was only converted: then a divisor that is not zero is at least one."""
    if isinstance(argument, Call) and argument.operator == "as_number":
        return True
    return isinstance(argument, Literal) and isinstance(argument.value, float) and argument.value.is_integer()


def _divide_range(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
    least = Fraction(1) if _whole_number(arguments[1]) else None
    return ranges.divide(intervals[0], intervals[1], least_divisor=least)


def _divide_lower(call: Call, lowerer: Lowerer) -> Scalar:
    first, second = call.arguments
    left, right = lowerer.loose(first), lowerer.value(second)
    return TotalDivision("/", left, right, EngineType.NUMBER, _may_be_zero(second))


def _divide(call: Call, values: Sequence[Value]) -> Value:
    return None if values[1] == 0 else number(values[0]) / number(values[1])


def _resolve_integer_divide(arguments: tuple[Expression, ...]) -> Resolved:
    converted, kind = numbers("a // b", arguments, 2)
    if kind is not INTEGER:
        raise TypeRefused(
            "unsupported_type",
            '"a // b" is refused for arguments of type number',
            "Engines disagree about its meaning for numbers with a fraction.",
            ("FLOOR({x} / {y})", "TRUNC({x} / {y})"),
        )
    return Resolved(converted, INTEGER)


def _integer_divide_range(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
    return ranges.truncated(ranges.divide(intervals[0], intervals[1], least_divisor=Fraction(1)))


def _integer_divide(call: Call, values: Sequence[Value]) -> Value:
    first, second = map(whole, values)
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


def _modulo(call: Call, values: Sequence[Value]) -> Value:
    if values[1] == 0:
        return None
    if call.type is NUMBER:
        return math.fmod(number(values[0]), number(values[1]))
    first, second = map(whole, values)
    remainder = abs(first) % abs(second)
    return -remainder if first < 0 else remainder


def _modulo_lower(call: Call, lowerer: Lowerer) -> Scalar:
    first, second = call.arguments
    if call.type is NUMBER:
        left, right = lowerer.value(first), lowerer.value(second)
        return TotalDivision("%", left, right, EngineType.NUMBER, _may_be_zero(second))
    # The smallest BIGINT modulo -1 raises although the remainder is 0: computed in HUGEINT.
    edge = interval_of(first).contains(-(2**63)) and interval_of(second).contains(-1)
    (left, right), wide = integer_operands(lowerer, call.arguments, wide=edge)
    return narrow(TotalDivision("%", left, right, _integer(wide=wide), _may_be_zero(second)), call, wide=wide)


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
        nullable=any_nullable,
        strict=True,
        exact=True,
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
        strict=True,
        exact=True,
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
        strict=True,
        exact=True,
        section="Arithmetic",
    ),
    Operator(
        name="modulo",
        forms="a % b, MOD(a, b)",
        signature="INTEGER, INTEGER -> INTEGER; numbers -> NUMBER",
        meaning="The remainder of dividing towards zero, with the sign of a; NULL when b is zero.",
        totality="A divisor of zero is replaced by NULL; the smallest BIGINT modulo -1 runs in HUGEINT.",
        resolve=resolve_numbers("a % b", 2),
        lower=_modulo_lower,
        reference=_modulo,
        range=_modulo_range,
        nullable=_division_nullable,
        strict=True,
        finite=True,
        exact=True,
        section="Arithmetic",
    ),
    _signed(
        "abs",
        "ABS(a)",
        "The absolute value",
        lambda value: Function("abs", (value,)),
        abs,
        ranges.absolute,
        names=("abs",),
        cost=Cost(row=4, wide=8),
    ),
    Operator(
        name="sign",
        forms="SIGN(a)",
        signature="number -> INTEGER",
        meaning="-1, 0 or 1.",
        totality="Every finite number is below, at or above zero.",
        names=("sign",),
        resolve=lambda arguments: Resolved(numbers("SIGN", arguments, 1)[0], INTEGER),
        lower=plain_call("sign", cast=EngineType.INTEGER),
        reference=of_number(lambda value: (value > 0) - (value < 0)),
        range=_sign_range,
        ceiling=_SIGN,
        cost=Cost(row=10),
        nullable=any_nullable,
        strict=True,
        exact=True,
        section="Arithmetic",
    ),
)
"""Entries of the allow-list."""
