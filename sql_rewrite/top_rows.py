"""Other spellings of a block that sorts groups by an aggregate and takes the first ones (choices.py).

    SELECT ARG_MAX(ward, n) FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward)
    SELECT ward FROM visits WHERE ward IS NOT NULL GROUP BY ward ORDER BY COUNT(*) DESC LIMIT 1

    SELECT UNNEST(APPROX_TOP_K(ward, 3)) FROM visits
    SELECT ward FROM visits WHERE ward IS NOT NULL GROUP BY ward ORDER BY COUNT(*) DESC LIMIT 3

What is not exactly of one of these forms is read as it stands, and mostly refused.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from sql_rewrite.aggregate_calls import aggregate_calls
from sql_rewrite.levels import LEVELS
from sql_rewrite.select_list import grouped_by
from sql_rewrite.syntax import populated, select_place

__all__ = ["best_of_groups", "first_values", "may_be_top_rows"]

_ONE = exp.ArgMax | exp.ArgMin


def may_be_top_rows(node: exp.Select) -> bool:
    """Whether a block shows one column that calls one of these functions: only then is it worth a closer look."""
    return len(node.expressions) == 1 and isinstance(node.expressions[0].unalias(), _ONE | exp.Explode)


def best_of_groups(node: exp.Select, inner: Callable[[], exp.Expr | None]) -> exp.Select | None:
    """The block that ARG_MAX or ARG_MIN over a block of groups stands for; None for any other block.

    `inner` gives the only relation of FROM where it is a query.
    """
    if populated(node) - {"expressions", "from_", "with_"}:
        return None
    call = node.expressions[0].unalias()
    if not isinstance(call, _ONE) or populated(call) - {"this", "expression"}:
        return None
    key, score = call.this, call.expression
    if not isinstance(key, exp.Column) or not isinstance(score, exp.Column):
        return None
    block = inner()
    if not isinstance(block, exp.Select) or populated(block) - {"expressions", "from_", "joins", "where", "group"}:
        return None
    group = block.args.get("group")
    if group is None or populated(group) - {"expressions", "all"} or group.find(*LEVELS) is not None:
        return None
    shown = {one.alias_or_name.lower(): one for one in block.expressions}
    wanted, by = shown.get(key.name.lower()), shown.get(score.name.lower())
    if len(shown) != len(block.expressions) or wanted is None or by is None:
        return None
    if aggregate_calls([wanted]) or aggregate_calls([by]) != [by.unalias()]:
        return None
    if [one for one in block.expressions if one is not by and aggregate_calls([one])]:
        return None
    keys = _keys(block, group)
    others = {one.alias.lower() for one in block.expressions if isinstance(one, exp.Alias) and one is not wanted}
    if keys is None or any(isinstance(one, exp.Column) and one.name.lower() in others for one in keys):
        return None
    return _sorted(block, wanted.copy(), keys, by.unalias(), least=isinstance(call, exp.ArgMin), count=1)


def first_values(node: exp.Select) -> exp.Select | None:
    """The block that UNNEST(APPROX_TOP_K(x, k)) stands for; None for any other block."""
    if populated(node) - {"expressions", "from_", "joins", "where", "with_"}:
        return None
    unnested = node.expressions[0].unalias()
    call = unnested.this if isinstance(unnested, exp.Explode) else None
    if not isinstance(call, exp.ApproxTopK) or populated(call) - {"this", "expression"} or call.this is None:
        return None
    asked = call.args.get("expression")
    count = select_place(asked) if asked is not None else None
    if count is None or count < 0:
        return None
    return _sorted(node, call.this.copy(), [call.this], exp.Count(this=exp.Star()), least=False, count=count + 1)


def _keys(block: exp.Select, group: exp.Expr) -> list[exp.Expr] | None:
    """The keys that a block groups by, written out; None where a place names no column."""
    values = [one.unalias() for one in block.expressions]
    found = [meant for _, meant in grouped_by(group, values, lambda _: None, lambda item: item)]
    return None if None in found else [key for key in found if key is not None]


def _sorted(
    block: exp.Select, shown: exp.Expr, keys: list[exp.Expr], score: exp.Expr, *, least: bool, count: int
) -> exp.Select:
    """The block that shows one column of its first groups by a score, those of NULL left out."""
    tree = exp.Select(expressions=[shown])
    for slot in ("from_", "joins", "where"):
        found = block.args.get(slot)
        if found is not None:
            tree.set(slot, [one.copy() for one in found] if isinstance(found, list) else found.copy())
    present = exp.Not(this=exp.Is(this=exp.Paren(this=shown.unalias().copy()), expression=exp.Null()))
    where = tree.args.get("where")
    both = present if where is None else exp.And(this=exp.Paren(this=where.this.copy()), expression=present)
    tree.set("where", exp.Where(this=both))
    tree.set("group", exp.Group(expressions=[key.copy() for key in keys]))
    tree.set("order", exp.Order(expressions=[exp.Ordered(this=score.copy(), desc=not least, nulls_first=False)]))
    tree.set("limit", exp.Limit(expression=exp.Literal.number(count)))
    return tree
