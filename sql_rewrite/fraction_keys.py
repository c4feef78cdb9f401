"""Keys that are numbers with a fraction: FLOOR(x / 0.5) * 0.5, ROUND(x, 1).

Claim. The core groups by whole numbers, and the answer shows what the text says. Argument: such a key is a whole number
times or divided by a constant. The whole number is the core's key; the constant is applied to the released key, by the
same operation on the same double. ROUND(x, d) is ROUND(x * 10^d) / 10^d, as the engine computes it. Two whole numbers
below 2^50 in size give two keys, because the constant is neither zero nor so small or large that a product leaves the
doubles of full precision; so no two groups are shown under one key.
"""

from __future__ import annotations

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

_SMALLEST, _LARGEST = 1e-100, 1e100


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
    while True:
        inner = _scaled(lifter, node)
        if inner is None:
            return None
        node = bare(inner)
        written = lifter.lift(node)
        if isinstance(written, Call) and written.operator in _CUT and whole(written):
            return WholePart(node, written)
        if written.type is not ColumnType.NUMBER:
            return None


def _scaled(lifter: Lifter, node: exp.Expr) -> exp.Expr | None:
    """What a product or a quotient scales by a constant, or a minus sign by -1."""
    inner: exp.Expr | None = None
    if isinstance(node, exp.Mul) and _is_scale(lifter, node.this):
        inner = node.expression
    elif isinstance(node, exp.Neg) or (isinstance(node, exp.Mul | exp.Div) and _is_scale(lifter, node.expression)):
        inner = node.this
    return inner


def _is_scale(lifter: Lifter, node: exp.Expr) -> bool:
    node = bare(node)
    if isinstance(node, exp.Neg):
        node = bare(node.this)
    if not isinstance(node, exp.Literal | exp.Placeholder):
        return False
    constant = lifter.lift(node)
    value = constant.value if isinstance(constant, Literal) else None
    return isinstance(value, int | float) and not isinstance(value, bool) and _SMALLEST <= abs(value) <= _LARGEST


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
