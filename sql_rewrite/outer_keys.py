"""Aggregates of people's rows that a query of public or released rows asks for by a column of its own.

    SELECT s_name FROM supplier WHERE s_acctbal < (SELECT SUM(l_tax) FROM lineitem WHERE l_suppkey = s_suppkey)
    nested:  SELECT value FROM (SELECT l_suppkey AS key, SUM(l_tax) AS value FROM lineitem GROUP BY l_suppkey)
             WHERE key = s_suppkey

Claim. The answer is a function of one release. Proof: the block inside reads no column of the row outside, so it is
released once, by all its keys; which of its groups a row outside finds is computed from released numbers.

It means what the text says: for each row outside, the rows that its equalities select are those of one group, and an
aggregate that is NULL of no rows is NULL where there is no group. A hidden group that is not shown is NULL too. A count
would be 0 there, which says that nobody is in it, and is refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from sqlglot import exp

from sql_rewrite.aggregate_calls import aggregate_calls
from sql_rewrite.join_links import conjuncts
from sql_rewrite.refuse import refuse
from sql_rewrite.sources import SourceNames
from sql_rewrite.syntax import populated
from sql_rewrite.text import Text

__all__ = ["by_outer_keys", "null_of_none"]

_ROWS, _VALUE, _KEY = "rows_of_keys", "value_of_keys", "key_of_rows_"
_SLOTS = {"expressions", "from_", "joins", "where"}
_ABOVE = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Paren, exp.Literal)
"""What is NULL where one of its operands is."""
_CALLS = (
    exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Median, exp.Variance, exp.VariancePop, exp.Stddev, exp.StddevPop,
    exp.PercentileCont, exp.PercentileDisc, exp.Quantile, exp.ApproxQuantile,
)  # fmt: skip
"""Aggregates that are NULL of no rows."""


_MADE = re.compile(r"(?:.*\.)?(?:[ka][0-9]+(?:_number)?|.*\$)")
"""Names that released tables give their columns, which no text means."""


def by_outer_keys(node: exp.Select, names: SourceNames, outer: Collection[str], text: Text) -> exp.Select | None:
    """The block as a choice among its groups; None where it compares no column of `outer`, the names around it.

    Errors: Refused (correlated_subquery).
    """
    outer = frozenset(name for name in outer if not _MADE.fullmatch(name))
    where = node.args.get("where")
    if where is None or populated(node) - _SLOTS or len(node.expressions) != 1:
        return None
    own: list[exp.Expr] = []
    keys: list[tuple[exp.Expr, exp.Column]] = []
    for part in conjuncts(where.this):
        if not any(_is_outer(column, names, outer) for column in part.find_all(exp.Column)):
            own.append(part)
            continue
        pair = _compared(part, names, outer)
        if pair is None:
            return None
        keys.append(pair)
    value = node.expressions[0].unalias()
    if not keys or any(_is_outer(column, names, outer) for column in value.find_all(exp.Column)):
        return None
    if not aggregate_calls([value]) or any(name.lower() in (_VALUE, f"{_KEY}0") for name in outer):
        return None
    if not null_of_none(value):
        raise refuse(
            "correlated_subquery",
            "an aggregate by a column outside is refused",
            "Of no rows it would not be NULL, and a group that is not shown would look like one in which nobody is.",
            "aggregate by that column in a nested query in FROM, and join its groups with LEFT JOIN",
            position=text.position(node),
        )
    inner = node.copy()
    listed = [exp.alias_(key.copy(), f"{_KEY}{i}") for i, (key, _) in enumerate(keys)]
    inner.set("expressions", [*listed, exp.alias_(value.copy(), _VALUE)])
    inner.set("where", exp.Where(this=exp.and_(*own, copy=True)) if own else None)
    inner.set("group", exp.Group(expressions=[key.copy() for key, _ in keys]))
    found = exp.Select(expressions=[exp.column(_VALUE, table=_ROWS)])
    found.set("from_", exp.From(this=exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier(_ROWS)))))
    same = [
        exp.EQ(this=exp.column(f"{_KEY}{i}", table=_ROWS), expression=other.copy()) for i, (_, other) in enumerate(keys)
    ]
    found.set("where", exp.Where(this=exp.and_(*same)))
    return found


def _is_outer(column: exp.Column, names: SourceNames, outer: Collection[str]) -> bool:
    """Whether a column is of the row outside, and no name inside is it."""
    name = column.name.lower()
    if column.table:
        return names.relation_of(column.table) is None and f"{column.table.lower()}.{name}" in outer
    return not names.knows(column.name) and name in outer


def _compared(part: exp.Expr, names: SourceNames, outer: Collection[str]) -> tuple[exp.Expr, exp.Column] | None:
    """What an equality compares, the expression inside and the column outside; None for any other condition."""
    if not isinstance(part, exp.EQ) or part.find(exp.Query) is not None:
        return None
    for inner, other in ((part.this, part.expression), (part.expression, part.this)):
        inside = list(inner.find_all(exp.Column))
        if not isinstance(other, exp.Column) or not _is_outer(other, names, outer) or not inside:
            continue
        if not any(_is_outer(column, names, outer) for column in inside):
            return inner, other
    return None


def null_of_none(value: exp.Expr) -> bool:
    """Whether what is made of aggregates is NULL where they have no rows."""
    if isinstance(value, _CALLS):
        return not isinstance(value.this, exp.Distinct)
    parts = list(value.iter_expressions())
    return (
        isinstance(value, _ABOVE) and all(isinstance(p, exp.Literal) or null_of_none(p) for p in parts) and bool(parts)
    )
