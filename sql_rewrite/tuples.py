"""Different combinations of values: those of one text that keeps them apart.

    COUNT(DISTINCT (ward, cost // 100))   different values of '4:East' || '12;'

Claim. Two combinations have one text exactly where they are equal, NULL being a value like others. Proof: a text t is
written as its length, ':' and t; a value of another type as its own text and ';'; NULL as '-', with ';' behind it
where the type is not text. Numbers, truth values and dates have no ';' in their text and none is '-', and no length
begins with '-': so in each place no written value begins another, and from the left each is read in one way only.
"""

from __future__ import annotations

from sqlglot import exp

from privacy.policy import ColumnType
from sql_rewrite.lifter import Lifter
from sql_rewrite.refuse import refuse
from sql_rewrite.syntax import consume, placed_like

__all__ = ["as_one"]


def as_one(node: exp.Expr, lifter: Lifter) -> exp.Expr:
    """The text of the combinations that a list in brackets means; any other node itself. Errors: Refused."""
    if not isinstance(node, exp.Tuple) or not node.expressions:
        return node
    consume(node, "expressions", text=lifter.text, what="a list in brackets")
    parts = [_written(part, lifter) for part in node.expressions]
    whole = parts[0]
    for part in parts[1:]:
        whole = exp.DPipe(this=whole, expression=part, safe=True)
    return placed_like(whole, node)


def _written(part: exp.Expr, lifter: Lifter) -> exp.Expr:
    kind = lifter.lift(part).type
    if kind is ColumnType.NUMBER:
        raise refuse(
            "unsupported_type",
            "a number with a fraction among several values is refused",
            "Combinations are counted by their text, and such a number has no text of its own here.",
            "write it rounded: CAST(ROUND(x * 100) AS BIGINT) for two digits",
            position=lifter.text.position(part),
        )
    text = exp.Cast(this=part.copy(), to=exp.DataType.build("text"))
    null = exp.Literal.string("-")
    if kind is not ColumnType.TEXT:
        return _joined(exp.Coalesce(this=text, expressions=[null]), exp.Literal.string(";"))
    length = exp.Cast(this=exp.Length(this=part.copy()), to=exp.DataType.build("text"))
    there = _joined(_joined(length, exp.Literal.string(":")), part.copy())
    return exp.Coalesce(this=there, expressions=[null])


def _joined(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return exp.Paren(this=exp.DPipe(this=left, expression=right, safe=True))
