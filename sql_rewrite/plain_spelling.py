"""Spellings that mean what the language says in other words: written out in the tree before anything is lifted.

    FETCH FIRST 5 ROWS ONLY                   LIMIT 5
    (a, b) IN ((1, 2), (3, 4))                a IS NOT DISTINCT FROM 1 AND b IS NOT DISTINCT FROM 2 OR ...
    a IN (VALUES (1), (2))                    a IN (SELECT * FROM (VALUES (1), (2)) AS listed)
    FROM (SELECT g, k, SUM(x) AS n ...)       FROM (SELECT g, SUM(n) FILTER (WHERE k = 'a') AS a FROM (SELECT ...)
      PIVOT (SUM(n) FOR k IN ('a'))             GROUP BY g)
    FROM (SELECT SUM(x) AS a, ...)            FROM (SELECT k, CASE k WHEN 'a' THEN a ... END AS n FROM (SELECT ...),
      UNPIVOT (n FOR k IN (a, b))               (VALUES ('a'), ('b')) v(k) WHERE ... IS NOT NULL)
    SELECT a, b ... UNION ALL BY NAME         SELECT a, b ... UNION ALL
      SELECT b, a ...                           SELECT a, b FROM (SELECT b, a ...)
    SELECT DISTINCT ON (k) k, n               SELECT k, n FROM (SELECT ...)
      FROM (SELECT ...) ORDER BY n              QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY n) = 1 ORDER BY n

What is written out is lifted, judged and bounded like any other text, so nothing here decides what may be answered.
What does not have exactly this meaning is left as it stands, and refused where it is met.
"""

from __future__ import annotations

import re

from sqlglot import exp

from sql_rewrite.syntax import placed_like, populated, whole_number
from sql_rewrite.text import Text

__all__ = ["spell_plainly"]


_SPELLED = [re.compile(form) for form in ("fetch", "pivot", r"by\s+name", r"distinct\s+on", r"in\s*\(\s*(?:\(|values)")]
"""What a text in lower case holds that has such a spelling: to look for each by itself is faster.

One that hides it, in comments between two words, is refused later."""


def spell_plainly(tree: exp.Expr, text: Text) -> None:
    """Writes such spellings of a text out in its tree, in place."""
    if not [form for form in _SPELLED if form.search(text.folded)]:
        return
    for node in list(tree.find_all(exp.Fetch, exp.In, exp.Subquery, exp.SetOperation, exp.Select)):
        match node:
            case exp.Fetch():
                _fetch(node)
            case exp.In():
                _tuples(node)
            case exp.Subquery():
                _pivot(node)
            case exp.SetOperation():
                _by_name(node)
            case exp.Select():
                _distinct_on(node)
            case _:
                raise AssertionError("another kind was looked for")


def _fetch(node: exp.Fetch) -> None:
    options = node.args.get("limit_options")
    count = node.args.get("count")
    plain = options is None or not (options.args.get("percent") or options.args.get("with_ties"))
    if plain and whole_number(count) is not None and node.parent is not None:
        assert isinstance(count, exp.Literal)
        node.replace(placed_like(exp.Limit(expression=count.copy()), node))


def _tuples(node: exp.In) -> None:
    """DuckDB compares rows as structs: NULL is a value like others in them, and the comparison never is NULL."""
    row = node.this
    values = node.expressions[0] if len(node.expressions) == 1 else None
    if isinstance(values, exp.Values) and populated(node) == {"this", "expressions"}:
        values.set("alias", exp.TableAlias(this=exp.to_identifier("listed")))
        query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=values.copy()))
        node.set("query", exp.Subquery(this=placed_like(query, values)))
        node.set("expressions", None)
        return
    if not isinstance(row, exp.Tuple) or populated(node) != {"this", "expressions"}:
        return
    rows = node.expressions
    width = len(row.expressions)
    if not rows or not all(isinstance(one, exp.Tuple) and len(one.expressions) == width for one in rows):
        return
    if not all(_is_constant(value) for one in rows for value in one.expressions):
        return
    met: list[exp.Expr] = []
    for one in rows:
        pairs = zip(row.expressions, one.expressions, strict=True)
        same = [exp.NullSafeEQ(this=value.copy(), expression=wanted.copy()) for value, wanted in pairs]
        met.append(exp.Paren(this=exp.and_(*same, copy=False)))
    node.replace(placed_like(exp.Paren(this=exp.or_(*met, copy=False)), node))


def _is_constant(value: exp.Expr) -> bool:
    """Whether a value is written out: a text, a truth value, or a number of either sign."""
    return isinstance(value.this if isinstance(value, exp.Neg) else value, exp.Literal | exp.Boolean)


def _pivot(node: exp.Subquery) -> None:
    """PIVOT and UNPIVOT of an aggregation, whose columns all have names and are not written as a star."""
    pivots, query = node.args.get("pivots") or [], node.this
    if len(pivots) != 1 or not isinstance(query, exp.Select) or not _aggregates(query):
        return
    pivot, names = pivots[0], [_named(projection) for projection in query.expressions]
    fields = pivot.args.get("fields") or []
    known = {name.lower() for name in names}
    if populated(pivot) - {"expressions", "fields", "alias", "columns", "pivot_column_naming", "unpivot"}:
        return
    if len(known) != len(names) or "" in known:
        return
    if len(fields) != 1 or not isinstance(fields[0], exp.In) or len(pivot.expressions) != 1:
        return
    spelled = _unpivoted if pivot.args.get("unpivot") else _pivoted
    written = spelled(pivot.expressions[0], fields[0], names, query)
    if written is not None:
        alias = pivot.args.get("alias") or node.args.get("alias")
        node.set("pivots", None)
        node.set("this", placed_like(written, node))
        if alias is not None:
            node.set("alias", alias)


def _pivoted(aggregate: exp.Expr, field: exp.In, names: list[str], query: exp.Select) -> exp.Select | None:
    """With one aggregate and one column whose values are listed. Its groups are what the nested query shows beside that
    column and what the aggregate reads, in that order."""
    key, values = field.this, field.expressions
    if not isinstance(aggregate, exp.AggFunc) or not isinstance(key, exp.Column | exp.Identifier):
        return None
    read = {key.name.lower(), *(column.name.lower() for column in aggregate.find_all(exp.Column))}
    if not values or not all(isinstance(value, exp.Literal | exp.Boolean) for value in values):
        return None
    if not read <= _folded(names):
        return None
    left = [name for name in names if name.lower() not in read]
    shown: list[exp.Expr] = [exp.column(name) for name in left]
    for value in values:
        same = exp.EQ(this=exp.column(key.name), expression=value.copy())
        found = exp.Filter(this=aggregate.copy(), expression=exp.Where(this=same))
        name = str(value.this).lower() if isinstance(value, exp.Boolean) else value.name
        shown.append(exp.Alias(this=found, alias=exp.to_identifier(name, quoted=True)))
    written = exp.Select(expressions=shown, from_=exp.From(this=_nested(query, "pivoted")))
    if left:
        written.set("group", exp.Group(expressions=[exp.column(name) for name in left]))
    return written


def _unpivoted(value: exp.Expr, field: exp.In, names: list[str], query: exp.Select) -> exp.Select | None:
    """With one column of values, which are plain columns of the nested query. Rows whose value is NULL are left out."""
    key, columns = field.this, field.expressions
    plain = all(isinstance(column, exp.Column) and not column.table for column in columns)
    if not plain or not isinstance(value, exp.Identifier) or not isinstance(key, exp.Identifier):
        return None
    taken = _folded([column.name for column in columns])
    left = [name for name in names if name.lower() not in taken]
    if not taken <= _folded(names) or {value.name.lower(), key.name.lower()} & _folded(names):
        return None
    held = {name.lower(): name for name in names}
    of = [held[column.name.lower()] for column in columns]
    branches = [exp.If(this=exp.Literal.string(name), true=exp.column(name)) for name in of]
    case = exp.Case(this=exp.column(key.name), ifs=branches)
    rows = [exp.Tuple(expressions=[exp.Literal.string(name)]) for name in of]
    labels = exp.Values(expressions=rows, alias=exp.TableAlias(this=exp.to_identifier("labels"), columns=[key.copy()]))
    shown = [*(exp.column(name) for name in left), exp.column(key.name), exp.Alias(this=case, alias=value.copy())]
    there = exp.Not(this=exp.Is(this=exp.Paren(this=case.copy()), expression=exp.Null()))
    written = exp.Select(expressions=shown, from_=exp.From(this=_nested(query, "unpivoted")))
    written.set("joins", [exp.Join(this=labels)])
    written.set("where", exp.Where(this=there))
    return written


def _nested(query: exp.Expr, name: str) -> exp.Subquery:
    return exp.Subquery(this=query.copy(), alias=exp.TableAlias(this=exp.to_identifier(name)))


def _named(projection: exp.Expr) -> str:
    """The name that a column is given, or has; empty for any other expression, and for a star."""
    named = isinstance(projection, exp.Alias | exp.Column) and not projection.is_star
    return projection.alias_or_name if named else ""


def _folded(names: list[str]) -> set[str]:
    return {name.lower() for name in names}


def _by_name(node: exp.SetOperation) -> None:
    """Two queries with the same names of columns; those of the first say the order."""
    left, right = node.this, node.expression
    if not node.args.get("by_name") or not (isinstance(left, exp.Select) and isinstance(right, exp.Select)):
        return
    first, second = ([_named(one) for one in side.expressions] for side in (left, right))
    if _folded(first) == _folded(second) and len(_folded(first)) == len(first) == len(second) and all(first):
        ordered = exp.Select(
            expressions=[exp.column(name) for name in first], from_=exp.From(this=_nested(right, "named"))
        )
        node.set("by_name", None)
        node.set("expression", placed_like(ordered, right))


def _distinct_on(node: exp.Select) -> None:
    """Of nested queries alone, in an order of their own columns: the first row of each group stays."""
    distinct, order, from_ = (node.args.get(slot) for slot in ("distinct", "order", "from_"))
    if distinct is None or distinct.args.get("on") is None or order is None or from_ is None:
        return
    if populated(node) - {"expressions", "from_", "where", "distinct", "order", "limit", "with_"}:
        return
    computed = {one.alias.lower() for one in node.expressions if isinstance(one, exp.Alias)}
    keys = distinct.args["on"].expressions
    by = [one.this for one in order.expressions]
    nested = from_.this.this if isinstance(from_.this, exp.Subquery) else None
    if not isinstance(nested, exp.Select) or not _aggregates(nested):
        return
    if not all(isinstance(one, exp.Column) for one in (*keys, *by)):
        return
    if any(one.name.lower() in computed for one in (*keys, *by)):
        return
    window = exp.Window(
        this=exp.RowNumber(), partition_by=[key.copy() for key in keys], order=order.copy(), over="OVER"
    )
    first = exp.EQ(this=window, expression=exp.Literal.number(1))
    node.set("distinct", None)
    node.set("qualify", placed_like(exp.Qualify(this=first), node))


def _aggregates(query: exp.Select) -> bool:
    """Whether a query selects aggregates, so that what is pivoted are released numbers and not rows."""
    return any(projection.find(exp.AggFunc) for projection in query.expressions)
