"""Numbers: arithmetic, rounding and the few transcendental functions.

Integers are exact: range analysis chooses BIGINT or HUGEINT before the query runs, so that overflow cannot happen.
Doubles are IEEE; an infinity or NaN is turned into NULL (see `Operator.loose`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from privacy.policy import ColumnType
from sql_rewrite.expressions import (
    ANY,
    Call,
    Expression,
    Interval,
    Literal,
    interval_of,
    needs_wide,
)
from sql_rewrite.functions import ranges
from sql_rewrite.functions.logic import harmonise
from sql_rewrite.functions.operator import (
    Lowerer,
    Operator,
    Resolved,
    TypeRefused,
    any_nullable,
    arity,
    constant_integer,
    integer_operands,
    narrow,
    refuse_types,
)

__all__ = ["OPERATORS"]

INTEGER, NUMBER, DATE = ColumnType.INTEGER, ColumnType.NUMBER, ColumnType.DATE

NUMBERS = "numbers"


def _numbers(forms: str, arguments: tuple[Expression, ...], count: int) -> tuple[tuple[Expression, ...], ColumnType]:
    """Arguments of type INTEGER, or all as NUMBER."""
    arity(forms, arguments, count)
    arguments = tuple(Literal(None, INTEGER) if isinstance(a, Literal) and a.value is None else a for a in arguments)
    if not all(argument.type in (INTEGER, NUMBER) for argument in arguments):
        raise refuse_types(forms, arguments, NUMBERS)
    return harmonise(forms, arguments)


def _resolve_numbers(forms: str, count: int) -> Callable[[tuple[Expression, ...]], Resolved]:
    def resolve(arguments: tuple[Expression, ...]) -> Resolved:
        converted, kind = _numbers(forms, arguments, count)
        return Resolved(converted, kind)

    return resolve


def _as_numbers(forms: str, arguments: tuple[Expression, ...], count: int) -> tuple[Expression, ...]:
    """Arguments of any number type, all converted to NUMBER."""
    converted, _ = _numbers(forms, arguments, count)
    return harmonise(forms, (*converted, Literal(0.0, NUMBER)))[0][:-1]


def _resolve_to_number(forms: str, count: int) -> Callable[[tuple[Expression, ...]], Resolved]:
    def resolve(arguments: tuple[Expression, ...]) -> Resolved:
        return Resolved(_as_numbers(forms, arguments, count), NUMBER)

    return resolve


# --- + - * and sign ----------------------------------------------------------------------------------------------


def _infix(symbol: str) -> Callable[[Call, Lowerer], str]:
    def lower(call: Call, lowerer: Lowerer) -> str:
        if call.type is NUMBER:
            return f"({lowerer.loose(call.arguments[0])} {symbol} {lowerer.loose(call.arguments[1])})"
        sides, wide = integer_operands(lowerer, call.arguments, wide=needs_wide(call))
        return narrow(f"({sides[0]} {symbol} {sides[1]})", call, wide=wide)

    return lower


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


def _subtract_lower(call: Call, lowerer: Lowerer) -> str:
    if call.arguments[0].type is DATE:
        return f"({lowerer.sql(call.arguments[0])} - {lowerer.sql(call.arguments[1])})"
    return _infix("-")(call, lowerer)


def _subtract(call: Call, values: Sequence[Any]) -> Any:
    if call.arguments[0].type is DATE:
        return (values[0] - values[1]).days
    return values[0] - values[1]


def _prefix(template: str, *, wide_too: bool = True) -> Callable[[Call, Lowerer], str]:
    def lower(call: Call, lowerer: Lowerer) -> str:
        if call.type is NUMBER:
            return template.format(lowerer.loose(call.arguments[0]))
        sides, wide = integer_operands(lowerer, call.arguments, wide=wide_too and needs_wide(call))
        return narrow(template.format(sides[0]), call, wide=wide)

    return lower


# --- division ----------------------------------------------------------------------------------------------------


def _may_be_zero(argument: Expression) -> bool:
    return interval_of(argument).contains(0)


def _divisor(sql: str, argument: Expression) -> str:
    """The divisor with zero turned into NULL. Written as CASE: the engine's NULLIF is the same CASE."""
    if not _may_be_zero(argument):
        return sql
    zero = "0" if argument.type is INTEGER else "0::DOUBLE"
    return f"(CASE WHEN ({sql} <> {zero}) THEN {sql} END)"


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


def _divide_lower(call: Call, lowerer: Lowerer) -> str:
    first, second = call.arguments
    return f"({lowerer.loose(first)} / {_divisor(lowerer.sql(second), second)})"


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


def _integer_divide_lower(call: Call, lowerer: Lowerer) -> str:
    sides, wide = integer_operands(lowerer, call.arguments, wide=needs_wide(call))
    return narrow(f"({sides[0]} // {_divisor(sides[1], call.arguments[1])})", call, wide=wide)


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


def _modulo_lower(call: Call, lowerer: Lowerer) -> str:
    first, second = call.arguments
    if call.type is NUMBER:
        return f"({lowerer.sql(first)} % {_divisor(lowerer.sql(second), second)})"
    # The smallest BIGINT modulo -1 raises although the remainder is 0: computed in HUGEINT.
    edge = interval_of(first).contains(-(2**63)) and interval_of(second).contains(-1)
    sides, wide = integer_operands(lowerer, call.arguments, wide=edge)
    return narrow(f"({sides[0]} % {_divisor(sides[1], second)})", call, wide=wide)


# --- rounding ----------------------------------------------------------------------------------------------------


def _rounding(name: str, forms: str, meaning: str, function: Callable[[Fraction], int]) -> Operator:
    def lower(call: Call, lowerer: Lowerer) -> str:
        if call.type is INTEGER:
            return lowerer.sql(call.arguments[0])
        return f"{name}({lowerer.loose(call.arguments[0])})"

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


def _round_lower(call: Call, lowerer: Lowerer) -> str:
    value, digits = call.arguments[0], _digits(call.arguments)
    if call.type is INTEGER:
        if digits >= 0:
            return lowerer.sql(value)
        unit, half = 10**-digits, 10**-digits // 2
        (sql,), wide = integer_operands(lowerer, (value,), wide=True)
        moved = f"(CASE WHEN ({sql} < 0) THEN ({sql} - {half}) ELSE ({sql} + {half}) END)"
        return narrow(f"(({moved} // {unit}) * {unit})", call, wide=wide)
    if digits == 0:
        return f"round({lowerer.loose(value)})"
    return f"round({lowerer.loose(value)}, {digits})"


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


# --- functions with a domain -------------------------------------------------------------------------------------


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


def _logarithm(name: str, forms: str, function: Callable[[float], float]) -> Operator:
    def interval(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
        low, high = intervals[0].lower, intervals[0].upper
        if high is not None and high <= 0:
            return ranges.ZERO
        lower = function(max(_float(low), 5e-324)) if low is not None and low > 0 else None
        return _widened(
            lower, None if high is None or math.isinf(_float(high)) else function(max(_float(high), 5e-324))
        )

    def lower(call: Call, lowerer: Lowerer) -> str:
        return _guarded(call, lowerer, f"{name}({{0}})", "> 0", positive=True)

    return Operator(
        name=name,
        forms=forms,
        signature="number -> NUMBER",
        meaning="NULL for zero and below.",
        totality="The logarithm is taken of positive finite doubles only, where it is defined and finite.",
        resolve=_resolve_to_number(forms, 1),
        lower=lower,
        reference=lambda call, values: function(values[0]) if values[0] > 0 else None,
        range=interval,
        ceiling=ranges.between(-1100, 1100),
        nullable=lambda arguments: any_nullable(arguments) or not _positive(arguments[0]),
        exact=False,
        copies=(2,),
        section="Roots and powers",
    )


def _positive(argument: Expression) -> bool:
    low = interval_of(argument).lower
    return low is not None and low > 0


def _not_negative(argument: Expression) -> bool:
    low = interval_of(argument).lower
    return low is not None and low >= 0


def _guarded(call: Call, lowerer: Lowerer, template: str, test: str, *, positive: bool) -> str:
    argument = call.arguments[0]
    sql = lowerer.sql(argument)
    value = template.format(sql)
    safe = _positive(argument) if positive else _not_negative(argument)
    return value if safe else f"(CASE WHEN ({sql} {test}::DOUBLE) THEN {value} END)"


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


def _exp(call: Call, values: Sequence[Any]) -> Any:
    return _safe(math.exp, values[0])


def _power(call: Call, values: Sequence[Any]) -> Any:
    try:
        return math.pow(values[0], values[1])
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


def _power_lower(call: Call, lowerer: Lowerer) -> str:
    """POW where it is defined: one setting of the engine raises for zero and negative bases instead of giving NaN."""
    base, exponent = call.arguments
    left, right = lowerer.sql(base), lowerer.sql(exponent)
    value = f"pow({left}, {right})"
    zero = "0::DOUBLE"
    if _power_defined(call.arguments):
        return value
    if isinstance(exponent, Literal) and isinstance(exponent.value, float):
        power = exponent.value
        test = ("<>" if power.is_integer() else ">") if power < 0 else ">="
        return f"(CASE WHEN ({left} {test} {zero}) THEN {value} END)"
    defined = (
        f"({left} > {zero}) OR (({left} = {zero}) AND ({right} >= {zero})) "
        f"OR (({left} < {zero}) AND ({right} = trunc({right})))"
    )
    return f"(CASE WHEN ({defined}) THEN {value} END)"


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


_SIGN = ranges.between(-1, 1)


def _sign_range(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
    def side(value: Fraction) -> Fraction:
        return Fraction((value > 0) - (value < 0))

    mapped = ranges.monotone(intervals[0], side)
    return ranges.intersect(mapped, _SIGN)


OPERATORS: tuple[Operator, ...] = (
    Operator(
        name="add",
        forms="a + b",
        signature="INTEGER, INTEGER -> INTEGER; numbers -> NUMBER",
        meaning="The sum: exact for integers, rounded to double for numbers, NULL beyond the largest double.",
        totality="Integers run in a type that holds the proved range; infinities of overflowing doubles become NULL.",
        resolve=_resolve_numbers("a + b", 2),
        lower=_infix("+"),
        reference=lambda call, values: values[0] + values[1],
        range=lambda arguments, intervals: ranges.add(intervals[0], intervals[1]),
        loose=True,
        finite=False,
        section="Arithmetic",
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
    Operator(
        name="multiply",
        forms="a * b",
        signature="INTEGER, INTEGER -> INTEGER; numbers -> NUMBER",
        meaning="The product, with the rules of addition.",
        totality="Integers run in a type that holds the proved range; infinities of overflowing doubles become NULL.",
        resolve=_resolve_numbers("a * b", 2),
        lower=_infix("*"),
        reference=lambda call, values: values[0] * values[1],
        range=lambda arguments, intervals: ranges.multiply(intervals[0], intervals[1]),
        loose=True,
        finite=False,
        section="Arithmetic",
    ),
    Operator(
        name="negate",
        forms="-a",
        signature="INTEGER -> INTEGER, NUMBER -> NUMBER",
        meaning="The negative.",
        totality="The negative of the smallest BIGINT is computed in HUGEINT; doubles are symmetric.",
        resolve=_resolve_numbers("-a", 1),
        lower=_prefix("(- {0})"),
        reference=lambda call, values: -values[0],
        range=lambda arguments, intervals: ranges.negate(intervals[0]),
        loose=True,
        section="Arithmetic",
    ),
    Operator(
        name="divide",
        forms="a / b",
        signature="numbers -> NUMBER",
        meaning="The quotient as a double, also for integers; NULL when b is zero.",
        totality="A divisor of zero is replaced by NULL before dividing; overflow to infinity becomes NULL.",
        resolve=_resolve_to_number("a / b", 2),
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
    Operator(
        name="abs",
        forms="ABS(a)",
        signature="INTEGER -> INTEGER, NUMBER -> NUMBER",
        meaning="The absolute value.",
        totality="The absolute value of the smallest BIGINT is computed in HUGEINT; doubles are symmetric.",
        resolve=_resolve_numbers("ABS", 1),
        lower=_prefix("abs({0})"),
        reference=lambda call, values: abs(values[0]),
        range=lambda arguments, intervals: ranges.absolute(intervals[0]),
        loose=True,
        section="Arithmetic",
    ),
    Operator(
        name="sign",
        forms="SIGN(a)",
        signature="number -> INTEGER",
        meaning="-1, 0 or 1.",
        totality="Every finite number is below, at or above zero.",
        resolve=lambda arguments: Resolved(_numbers("SIGN", arguments, 1)[0], INTEGER),
        lower=lambda call, lowerer: f"CAST(sign({lowerer.sql(call.arguments[0])}) AS BIGINT)",
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
    Operator(
        name="sqrt",
        forms="SQRT(a)",
        signature="number -> NUMBER",
        meaning="The square root; NULL below zero.",
        totality="The root is taken of non-negative finite doubles only.",
        resolve=_resolve_to_number("SQRT", 1),
        lower=lambda call, lowerer: _guarded(call, lowerer, "sqrt({0})", ">= 0", positive=False),
        reference=lambda call, values: math.sqrt(values[0]) if values[0] >= 0 else None,
        range=_sqrt_range,
        nullable=lambda arguments: any_nullable(arguments) or not _not_negative(arguments[0]),
        copies=(2,),
        section="Roots and powers",
    ),
    _logarithm("ln", "LN(a)", math.log),
    _logarithm("log10", "LOG10(a), LOG(a)", math.log10),
    _logarithm("log2", "LOG2(a)", math.log2),
    Operator(
        name="exp",
        forms="EXP(a)",
        signature="number -> NUMBER",
        meaning="e to the power a; NULL when that is beyond the largest double.",
        totality="Defined for every finite double; overflow gives infinity, which becomes NULL.",
        resolve=_resolve_to_number("EXP", 1),
        lower=lambda call, lowerer: f"exp({lowerer.sql(call.arguments[0])})",
        reference=_exp,
        range=_exp_range,
        finite=False,
        exact=False,
        nullable=any_nullable,
        section="Roots and powers",
    ),
    Operator(
        name="power",
        forms="POWER(a, b), POW(a, b)",
        signature="number, number -> NUMBER",
        meaning="a to the power b; NULL where that is no finite real number.",
        totality="It is computed only where it is defined; overflow gives infinity, which becomes NULL.",
        resolve=_resolve_to_number("POWER", 2),
        lower=_power_lower,
        reference=_power,
        range=_power_range,
        finite=False,
        nullable=lambda arguments: any_nullable(arguments) or not _power_defined(arguments),
        exact=False,
        copies=(4,),
        section="Roots and powers",
    ),
)
"""Entries of the allow-list."""
