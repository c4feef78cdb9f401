"""Keys that are numbers with a fraction: FLOOR(x / 0.5) * 0.5, ROUND(x, 1).

Claim. The core groups by whole numbers, and the answer shows what the text says. Argument: such a key is a whole number
times or divided by a constant. The whole number is the core's key; the constant is applied to the released key, by the
same operation on the same double. ROUND(x, d) is ROUND(x * 10^d) / 10^d, as the engine computes it. Two whole numbers
below 2^50 in size give two keys, because all constants of a key together are neither zero nor so small or large that a
product leaves the doubles of full precision. Greater ones may be shown under one key, as equal doubles are everywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sqlglot import exp

from privacy.policy import ColumnType
from sql_rewrite.expressions import Call, Expression, Literal
from sql_rewrite.keys import whole
from sql_rewrite.lifter import Lifter, bare
from sql_rewrite.syntax import populated

__all__ = ["DIGITS_MAX", "WholePart", "divided", "whole_part"]

DIGITS_MAX = 9
_CUT = frozenset(("floor", "ceil", "round", "trunc", "integer_divide", "cast_integer"))
"""What makes whole numbers on purpose: of x / 7 more likely x // 7 is meant, and the refusal says so."""

_POWER_MAX = 100.0
"""Most that all constants of one key may be together, as a power of ten, upwards and downwards."""


@dataclass(frozen=True, slots=True)
class WholePart:
    """The whole number in a key: where its tree stands, what it is, and by what the released one is divided there."""

    node: exp.Expr
    written: Expression
    divisor: int = 1


def whole_part(lifter: Lifter, node: exp.Expr) -> WholePart | None:
    """The whole number that a key with a fraction is made of; None where it is made otherwise. Errors: Refused."""
    node = bare(node)
    if isinstance(node, exp.Round):
        return _rounded(lifter, node)
    size = 0.0  # of all constants together, as a power of ten
    while True:
        scaled = _scaled(lifter, node)
        if scaled is None:
            return None
        inner, power = scaled
        size += power
        if abs(size) > _POWER_MAX:
            return None
        node = bare(inner)
        written = lifter.lift(node)
        if isinstance(written, Call) and written.operator in _CUT and whole(written):
            return WholePart(node, written)
        if written.type is not ColumnType.NUMBER:
            return None


def _scaled(lifter: Lifter, node: exp.Expr) -> tuple[exp.Expr, float] | None:
    """What a product or a quotient scales by a constant, or a minus sign by -1, and by which power of ten."""
    if isinstance(node, exp.Neg):
        return node.this, 0.0
    if isinstance(node, exp.Mul):
        for scale, inner in ((node.this, node.expression), (node.expression, node.this)):
            power = _power(lifter, scale)
            if power is not None:
                return inner, power
    if isinstance(node, exp.Div):
        power = _power(lifter, node.expression)
        return None if power is None else (node.this, -power)
    return None


def _power(lifter: Lifter, node: exp.Expr) -> float | None:
    """The size of a constant, as a power of ten; None for anything else, and for zero."""
    node = bare(node)
    if isinstance(node, exp.Neg):
        node = bare(node.this)
    if not isinstance(node, exp.Literal | exp.Placeholder):
        return None
    constant = lifter.lift(node)
    value = constant.value if isinstance(constant, Literal) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value:
        return None
    return math.log10(abs(value))


def _rounded(lifter: Lifter, node: exp.Round) -> WholePart | None:
    if populated(node) - {"this", "decimals"}:
        return None
    digits = node.args.get("decimals")
    constant = lifter.lift(digits) if digits is not None else None
    if not isinstance(constant, Literal) or not isinstance(constant.value, int):
        return None
    if not 0 < constant.value <= DIGITS_MAX:
        return None
    scale = 10**constant.value
    scaled = lifter.make(node, "multiply", lifter.lift(node.this), Literal(float(scale), ColumnType.NUMBER))
    return WholePart(node, lifter.make(node, "round", scaled, Literal(0, ColumnType.INTEGER)), scale)


def divided(key: exp.Expr, divisor: int) -> exp.Expr:
    """The released key divided, as a double."""
    return exp.Paren(this=exp.Div(this=key, expression=exp.Literal.number(f"{divisor}.0"), typed=False, safe=False))
