"""Operators that are signs and words: connectors, comparisons, arithmetic, IS, BETWEEN, IN, LIKE and CASE."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from privacy.policy import ColumnType
from sql_rewrite.expressions import Expression, Literal
from sql_rewrite.lift_constant import literal_value, typed
from sql_rewrite.lift_difference import compared, difference
from sql_rewrite.lift_refusal import unread, worded
from sql_rewrite.lifter import Lifter, Reader
from sql_rewrite.operands import operands_of
from sql_rewrite.refuse import refuse
from sql_rewrite.syntax import IN_LIST_MAX, consume

__all__ = ["READERS"]

_CONNECTORS: dict[type[exp.Expr], str] = {exp.And: "and", exp.Or: "or"}

_BINARY: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "is_not_distinct_from",
    exp.NullSafeNEQ: "is_distinct_from",
    exp.Mul: "multiply",
    exp.Mod: "modulo",
    exp.IntDiv: "integer_divide",
}


_QUANTIFIERS = frozenset({exp.Any, exp.All})
"""What a comparison with several rows has on its right side."""

_MAYBE_INTERVALS = frozenset({exp.Sub, exp.Anonymous, exp.Paren})
"""What a difference of moments may be."""


def _flatten(node: exp.Expr) -> list[exp.Expr]:
    """The operands of a chain of the same connector, left to right, without recursion."""
    kind = type(node)
    parts: list[exp.Expr] = []
    stack = [node]
    while stack:
        current = stack.pop()
        if type(current) is kind:
            stack.append(current.expression)
            stack.append(current.this)
        else:
            parts.append(current)
    return parts


def _connector(lifter: Lifter, node: exp.Expr) -> Expression:
    consume(node, "this", "expression", text=lifter.text, what=worded(node))
    return lifter.make(node, _CONNECTORS[type(node)], *[lifter.lift(part) for part in _flatten(node)])


def _binary(lifter: Lifter, node: exp.Expr) -> Expression:
    consume(node, "this", "expression", text=lifter.text, what=worded(node))
    if type(node.expression) in _QUANTIFIERS:
        quantified = lifter.nested(node)
        if quantified is not None:
            return quantified
    if _maybe_interval(lifter, node.this) or _maybe_interval(lifter, node.expression):
        found = compared(lifter, node, _BINARY[type(node)], node.this, node.expression)
        if found is not None:
            return found
    return lifter.make(node, _BINARY[type(node)], *lifter.siblings([node.this, node.expression]))


def _maybe_interval(lifter: Lifter, node: exp.Expr) -> bool:
    """Whether a side of a comparison may be an interval: a difference, AGE, or a column that holds one."""
    return type(node) in _MAYBE_INTERVALS or (isinstance(node, exp.Column) and bool(lifter.text.intervals))


def _not(lifter: Lifter, node: exp.Expr) -> Expression:
    consume(node, "this", text=lifter.text, what="NOT")
    return lifter.make(node, "not", lifter.lift(node.this))


def _negate(lifter: Lifter, node: exp.Expr) -> Expression:
    consume(node, "this", text=lifter.text, what="a minus sign")
    if isinstance(node.this, exp.Literal) and not node.this.is_string:
        value = literal_value(node.this, lifter.text)
        assert isinstance(value, int | float)
        return typed(lifter, node, -value)
    return lifter.make(node, "negate", lifter.lift(node.this))


def _divide(lifter: Lifter, node: exp.Expr) -> Expression:
    consume(node, "this", "expression", "typed", "safe", text=lifter.text, what="a division")
    left, right = lifter.siblings([node.this, node.expression])
    return lifter.make(node, "divide", left, right)


def _is(lifter: Lifter, node: exp.Expr) -> Expression:
    consume(node, "this", "expression", "negate", text=lifter.text, what="IS")
    right = node.expression
    moments = difference(lifter, node.this) if isinstance(right, exp.Null) else None
    if moments is not None:
        operator, junction = ("is_not_null", "and") if node.args.get("negate") else ("is_null", "or")
        return lifter.make(node, junction, *[lifter.make(node, operator, moment) for moment in moments])
    value = lifter.lift(node.this)
    if isinstance(right, exp.Null):
        return lifter.make(node, "is_not_null" if node.args.get("negate") else "is_null", value)
    if isinstance(right, exp.Boolean):
        operator = "is_distinct_from" if node.args.get("negate") else "is_not_distinct_from"
        return lifter.make(node, operator, value, Literal(bool(right.this), ColumnType.BOOLEAN))
    raise refuse(
        "unsupported_sql",
        "IS is refused",
        "It stands before NULL, TRUE and FALSE only.",
        *_compared(lifter, node),
        position=lifter.text.position(node),
    )


def _compared(lifter: Lifter, node: exp.Expr) -> tuple[str, ...]:
    """What IS between two values may have meant, where both can be read and compared."""
    given = operands_of(lifter, node)
    if len(given) != 2 or given[0].type is not given[1].type:
        return ("compare two values with =, or with IS NOT DISTINCT FROM where NULL equals NULL",)
    left, right = (one.sql for one in given)
    return (f"{left} = {right}", f"{left} IS NOT DISTINCT FROM {right} where NULL equals NULL")


def _between(lifter: Lifter, node: exp.Expr) -> Expression:
    consume(node, "this", "low", "high", text=lifter.text, what="BETWEEN")
    if _maybe_interval(lifter, node.this):
        ends = ((">=", node.args["low"]), ("<=", node.args["high"]))
        found = [compared(lifter, node, operator, node.this, end) for operator, end in ends]
        if None not in found:
            return lifter.make(node, "and", *[one for one in found if one is not None])
    value, low, high = lifter.siblings([node.this, node.args["low"], node.args["high"]])
    return lifter.make(node, "and", lifter.make(node, ">=", value, low), lifter.make(node, "<=", value, high))


def _in(lifter: Lifter, node: exp.Expr) -> Expression:
    if node.args.get("query") is not None:
        raise unread(lifter, node.args["query"])
    consume(node, "this", "expressions", text=lifter.text, what="IN")
    if not node.expressions:
        raise refuse("parse_error", "IN is refused", "Its list is empty.", position=lifter.text.position(node.this))
    if len(node.expressions) > IN_LIST_MAX:
        raise refuse(
            "too_large",
            "an IN list is refused",
            f"It has more than {IN_LIST_MAX} values.",
            position=lifter.text.position(node.this),
        )
    value, *members = lifter.siblings([node.this, *node.expressions])
    return lifter.make(node, "in", value, *members)


def _like(lifter: Lifter, node: exp.Expr, escape: exp.Expr | None = None) -> Expression:
    consume(node, "this", "expression", "negate", text=lifter.text, what="LIKE")
    arguments = [lifter.lift(node.this), lifter.lift(node.expression)]
    if escape is not None:
        arguments.append(lifter.lift(escape))
    matched = lifter.make(node, "ilike" if isinstance(node, exp.ILike) else "like", *arguments)
    return lifter.make(node, "not", matched) if node.args.get("negate") else matched


def _escape(lifter: Lifter, node: exp.Expr) -> Expression:
    consume(node, "this", "expression", text=lifter.text, what="ESCAPE")
    if isinstance(node.this, exp.Not) and isinstance(node.this.this, exp.Like | exp.ILike):
        return lifter.make(node, "not", _like(lifter, node.this.this, node.expression))
    if not isinstance(node.this, exp.Like | exp.ILike):
        raise unread(lifter, node)
    return _like(lifter, node.this, node.expression)


def _case(lifter: Lifter, node: exp.Expr) -> Expression:
    consume(node, "this", "ifs", "default", text=lifter.text, what="CASE")
    branches = node.args["ifs"]
    for branch in branches:
        consume(branch, "this", "true", text=lifter.text, what="WHEN")
    conditions = []
    if node.this is not None:
        for branch in branches:
            left, right = lifter.siblings([node.this, branch.this])
            conditions.append(lifter.make(branch, "=", left, right))
    else:
        conditions = [lifter.lift(branch.this) for branch in branches]
    default = node.args.get("default") or exp.Null()
    results = lifter.siblings([branch.args["true"] for branch in branches] + [default])
    arguments: list[Expression] = []
    for condition, result in zip(conditions, results, strict=False):
        arguments += [condition, result]
    return lifter.make(node, "case", *arguments, results[-1])


def _if(lifter: Lifter, node: exp.Expr) -> Expression:
    consume(node, "this", "true", "false", text=lifter.text, what="IF")
    yes, no = lifter.siblings([node.args["true"], node.args.get("false") or exp.Null()])
    return lifter.make(node, "case", lifter.lift(node.this), yes, no)


READERS: Mapping[type[exp.Expr], Reader] = {
    **dict.fromkeys(_CONNECTORS, _connector),
    **dict.fromkeys(_BINARY, _binary),
    exp.Not: _not,
    exp.Neg: _negate,
    exp.Div: _divide,
    exp.Is: _is,
    exp.Between: _between,
    exp.In: _in,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Escape: _escape,
    exp.Case: _case,
    exp.If: _if,
}
