"""A nested query that asks for a value of the group of the row outside: that of released groups.

    SELECT COUNT(*) FROM visits AS v WHERE cost > (SELECT AVG(w.cost) FROM visits AS w WHERE w.ward = v.ward)
    stage:   SELECT w.ward, AVG(w.cost) FROM visits AS w GROUP BY w.ward
    where:   cost > the released number of the row's ward

Claim. It is the LEFT JOIN with that nested query's groups (stage_tables.py), so a function of the row and of released
values. Proof: the block inside reads no column of the row outside beside the equalities, so the rows that it aggregates
for a row outside are those of the one group whose keys are equal; without one, because a key is NULL or ruled out, an
aggregate is NULL, and a count is 0. Of hidden groups those that are shown are meant: of another one a count is 0
(stage_hidden.py). What compares units, or keys of one unit's rows, is exact (correlated.py), and never comes here.

    SELECT COUNT(*) FROM visits AS v WHERE EXISTS (SELECT 1 FROM r WHERE r.ward = v.ward AND r.n > 100)

EXISTS over released groups, with an equality of each key, is whether the inner join with those of them that fulfil
the other conditions has a row: a group has one row at most.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from privacy.policy import ColumnType
from sql_rewrite.aggregate_calls import aggregate_calls
from sql_rewrite.correlated import Correlated
from sql_rewrite.expressions import Expression, Literal
from sql_rewrite.functions import build
from sql_rewrite.group_keys import FROM_EQUALITY
from sql_rewrite.join_links import conjunction, conjuncts
from sql_rewrite.lift_expression import ExpressionLift
from sql_rewrite.outer_keys import null_of_none
from sql_rewrite.stage_tables import StageTable
from sql_rewrite.syntax import populated

__all__ = ["Groups", "by_public_keys", "exists_released"]

Groups = Callable[[exp.Expr], StageTable | None]
"""Reads an item of FROM as the groups that an earlier stage releases; None for any other one."""

_SLOTS = {"expressions", "from_", "joins", "where"}


def by_public_keys(
    correlated: Correlated, groups: Groups, lifter: ExpressionLift, node: exp.Subquery
) -> Expression | None:
    """The value of the row's own group; None where the nested query is no such one. Errors: Refused."""
    query = node.this
    if populated(node) - {"this"} or not isinstance(query, exp.Select) or populated(query) - _SLOTS:
        return None
    if query.args.get("where") is None or len(query.expressions) != 1 or not aggregate_calls(query.expressions):
        return None
    value = query.expressions[0].unalias()
    parts = correlated.parts_of(query)
    if parts is None or not parts.equal or not parts.by_columns or parts.outside:
        return None
    count = isinstance(value, exp.Count | exp.CountIf)
    if not count and not null_of_none(value):
        return None
    inner = query.copy()
    keys = [one.inner.copy() for one in parts.equal]
    named = [exp.alias_(key, f"key_of_group_{place}") for place, key in enumerate(keys)]
    inner.set("expressions", [*named, exp.alias_(value.copy(), "value_of_group")])
    inner.set("where", exp.Where(this=conjunction([part.copy() for part in parts.own])) if parts.own else None)
    group = exp.Group(expressions=[key.copy() for key in keys])
    group.meta[FROM_EQUALITY] = True
    inner.set("group", group)
    table = groups(exp.Subquery(this=inner))
    if table is None:
        return None
    outside: dict[int, Expression] = {}
    for (_, place), one in zip(table.keys, parts.equal, strict=True):
        outside[place] = lifter.lift(one.outer)
    if len(outside) < len(parts.equal) or any(
        outside[place].type is not kind for place, kind in enumerate(table.kinds)
    ):
        return None
    _, columns = table.joined([outside[place] for place in range(len(outside))], outer=True)
    found = columns[-1][1]
    if not count:
        return found
    zero = Literal(0, ColumnType.INTEGER) if found.type is ColumnType.INTEGER else Literal(0.0, found.type)
    return build("coalesce", (found, zero))


def exists_released(query: exp.Select, groups: Groups, lifter: ExpressionLift) -> Expression | None:
    """Whether there is a released group with the keys of a row; None for any other nested query. Errors: Refused."""
    where, item = query.args.get("where"), query.args["from_"].this if query.args.get("from_") is not None else None
    if where is None or not isinstance(item, exp.Table | exp.Subquery) or query.args.get("joins"):
        return None
    shown = [one.unalias() for one in query.expressions]
    if any(not isinstance(one, exp.Literal | exp.Star) for one in shown):
        return None
    table = groups(item)
    if table is None:
        return None
    alias, keys = item.alias_or_name.lower(), {name.lower(): name for name, _ in table.keys}
    inside = {*keys, *(name.lower() for name, _ in table.values)}

    def is_inner(column: exp.Column) -> bool:
        return column.table.lower() == alias if column.table else column.name.lower() in inside

    outside: dict[str, exp.Expr] = {}
    rest: list[exp.Expr] = []
    for part in conjuncts(where.this):
        own, other = _sides(part, is_inner)
        if own is not None and other is not None and own in keys and own not in outside:
            outside[own] = other
        elif all(map(is_inner, part.find_all(exp.Column))) and part.find(exp.Query) is None:
            rest.append(part)
        else:
            return None
    if set(outside) != set(keys):
        return None
    if rest:
        chosen = exp.Select(
            expressions=[exp.column(name, table=item.alias_or_name) for name in keys.values()],
            from_=exp.From(this=item.copy()),
            where=exp.Where(this=conjunction([part.copy() for part in rest])),
        )
        table = groups(exp.Subquery(this=chosen))
        if table is None:
            return None
    by_place = {place: lifter.lift(outside[name.lower()]) for name, place in table.keys}
    if len(by_place) != len(table.kinds) or any(
        by_place[place].type is not kind for place, kind in enumerate(table.kinds)
    ):
        return None
    there, _ = table.joined([by_place[place] for place in range(len(by_place))], outer=False)
    return there


def _sides(part: exp.Expr, is_inner: Callable[[exp.Column], bool]) -> tuple[str | None, exp.Expr | None]:
    """The column inside, and what it equals outside, of an equality of the two."""
    if isinstance(part, exp.EQ):
        for own, other in ((part.this, part.expression), (part.expression, part.this)):
            columns = list(other.find_all(exp.Column))
            if isinstance(own, exp.Column) and is_inner(own) and columns and not any(map(is_inner, columns)):
                return own.name.lower(), other
    return None, None
