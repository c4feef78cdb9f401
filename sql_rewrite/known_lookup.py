"""A value of the public rows that agree with the row outside: a nested query that compares them for equality.

    cost > (SELECT AVG(h.beds) FROM hospitals AS h WHERE h.region = p.region)
    cost > CASE WHEN p.region IN ('North') THEN 412.5 WHEN p.region IN ('South', 'West') THEN 300.0 END

Claim. It is unit-local and has the meaning of the nested query. Proof: it is an expression over columns of the row and
constants that everybody knows. The rows inside that the nested query reads for a row outside are those whose keys equal
it, one group of them by these keys; without a group, because no key is equal or one is NULL, the query has no rows, and
its value is what its text gives of none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from sql_rewrite.aggregate_calls import aggregate_calls
from sql_rewrite.expressions import Expression, Literal, Value
from sql_rewrite.functions import build
from sql_rewrite.join_links import conjunction, conjuncts
from sql_rewrite.known_queries import KnownQueries
from sql_rewrite.known_rows import KnownTable
from sql_rewrite.lift_expression import ExpressionLift
from sql_rewrite.refuse import refuse
from sql_rewrite.scope import Scope
from sql_rewrite.syntax import populated
from sql_rewrite.text import Text

__all__ = ["looked_up"]

BRANCHES_MAX = 100
"""Most different values that a row may find: each is a branch."""

KEYS_MAX = 1_000
"""Most keys in all of them."""

Inside = Callable[[exp.Column], bool]
"""Whether a column is one of the rows inside."""


def looked_up(
    known: KnownQueries, scope: Scope, lifter: ExpressionLift, node: exp.Subquery, text: Text
) -> Expression | None:
    """The value for the row outside; None where the nested query is no such one. Errors: Refused."""
    query = node.this
    if populated(node) - {"this"} or not isinstance(query, exp.Select) or len(query.expressions) != 1:
        return None
    if populated(query) - {"expressions", "from_", "joins", "where"} or query.args.get("where") is None:
        return None
    if not known.knows(query, scope):
        return None
    inside = known.inside(query, scope)
    equal: list[tuple[exp.Expr, exp.Expr]] = []
    own: list[exp.Expr] = []
    for part in conjuncts(query.args["where"].this):
        if all(map(inside, part.find_all(exp.Column))):
            own.append(part)
            continue
        sides = [(part.this, part.expression), (part.expression, part.this)] if isinstance(part, exp.EQ) else []
        found = [(mine, other) for mine, other in sides if _all(mine, inside) and _none(other, inside)]
        if len(found) != 1:
            return None
        equal += found
    if not equal:
        return None
    value = query.expressions[0].unalias()
    grouped = bool(aggregate_calls([value]))
    inner = _selected(query, [mine for mine, _ in equal], own, grouped=grouped)
    sought = [lifter.lift(other) for _, other in equal]
    nothing = Literal(None, known.table(inner, scope).kinds[-1])
    if grouped:
        empty = query.copy()
        empty.set("where", exp.Where(this=exp.Boolean(this=False)))
        found_empty = known.scalar(exp.Subquery(this=empty), scope)
        nothing = nothing if found_empty is None else found_empty
    return _Branches(lifter, node, text).made(sought, known.table(inner, scope), nothing)


def _all(side: exp.Expr, inside: Inside) -> bool:
    columns = list(side.find_all(exp.Column))
    return bool(columns) and all(map(inside, columns))


def _none(side: exp.Expr, inside: Inside) -> bool:
    columns = list(side.find_all(exp.Column))
    return bool(columns) and side.find(exp.Query) is None and not any(map(inside, columns))


def _selected(query: exp.Select, keys: Sequence[exp.Expr], own: Sequence[exp.Expr], *, grouped: bool) -> exp.Select:
    """The keys and the value of each group, or of each row."""
    inner = query.copy()
    named = [exp.alias_(key.copy(), f"key_of_row_{place}") for place, key in enumerate(keys)]
    inner.set("expressions", [*named, exp.alias_(query.expressions[0].unalias().copy(), "value_of_row")])
    inner.set("where", exp.Where(this=conjunction([part.copy() for part in own])) if own else None)
    if grouped:
        inner.set("group", exp.Group(expressions=[key.copy() for key in keys]))
    return inner


class _Branches:
    def __init__(self, lifter: ExpressionLift, node: exp.Subquery, text: Text) -> None:
        self._lifter = lifter
        self._node = node
        self._text = text

    def made(self, sought: Sequence[Expression], table: KnownTable, nothing: Literal) -> Expression:
        """A branch for each value, by the keys of the rows that have it."""
        values: dict[tuple[Value, ...], Value] = {}
        for row in table.rows:
            if None in row[:-1]:
                continue
            if row[:-1] in values:
                raise refuse(
                    "unsupported_sql",
                    "a nested query is refused",
                    "It has several rows for one row outside, where one value is needed.",
                    "select one aggregate, as MAX(x)",
                    position=self._text.position(self._node),
                )
            values[row[:-1]] = row[-1]
        keys: dict[Value, list[tuple[Value, ...]]] = {}
        for key, value in values.items():
            keys.setdefault(value, []).append(key)
        terms = len(keys) if len(sought) == 1 else len(values)
        if terms > BRANCHES_MAX or len(values) > KEYS_MAX:
            raise refuse(
                "too_large",
                "a nested query of a public table is refused",
                f"It gives {terms:,} different values, and each is compared with every row; {BRANCHES_MAX} may be.",
                "join the table by these columns",
                position=self._text.position(self._node),
            )
        parts: list[Expression] = []
        for value, some in keys.items():
            parts += [self._among(sought, some, table), Literal(value, table.kinds[-1])]
        return build("case", (*parts, nothing)) if parts else nothing

    def _among(self, sought: Sequence[Expression], keys: Sequence[tuple[Value, ...]], table: KnownTable) -> Expression:
        if len(sought) == 1:
            listed = [Literal(value, table.kinds[0]) for (value,) in keys]
            return self._lifter.make(self._node, "in", sought[0], *listed)
        terms = []
        for key in keys:
            same = [
                self._lifter.make(self._node, "=", one, Literal(value, kind))
                for one, value, kind in zip(sought, key, table.kinds, strict=False)
            ]
            terms.append(build("and", tuple(same)))
        return terms[0] if len(terms) == 1 else build("or", tuple(terms))
