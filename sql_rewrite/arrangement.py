"""Outer queries that only select columns of one core's table, sort its rows and limit them: they need no engine.

    SELECT region, COUNT(*) AS n FROM patients GROUP BY region ORDER BY n DESC LIMIT 5

is the most common outer query. What is recognised here is the shell's own tree, after everything in it has been
checked; a tree with anything else in it is left to the engine.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlglot import exp

from sql_rewrite.join_links import conjuncts
from sql_rewrite.plan import Arrangement, Core, FilteredArrangement, Kept, SortTerm
from sql_rewrite.syntax import select_place, whole_number

__all__ = ["arrangement_of"]

_OUTER = frozenset({"kind", "expressions", "from_", "order", "limit", "offset"})
_INNER = frozenset({"kind", "expressions", "from_"})


_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}


def arrangement_of(tree: exp.Expr, core: Core, *, filtered: bool = False) -> Arrangement | None:
    """What the tree does to the core's table; None when it does anything but select, sort and limit.

    With `filtered` it may also keep the rows whose columns are beyond given numbers (HAVING COUNT(*) > 100).
    """
    where = tree.args.get("where") if filtered and isinstance(tree, exp.Select) else None
    inner = _inner(tree, core.name, _OUTER if where is None else _OUTER | {"where"})
    if inner is None:
        return None
    columns = _columns(inner)
    if columns is None:
        return None
    selected: list[str] = []
    names: dict[str, int] = {}
    for projection in tree.expressions:
        found = _column(projection.this, columns) if isinstance(projection, exp.Alias) else None
        if found is None or projection.alias.lower() in names:
            return None
        names[projection.alias.lower()] = len(selected)
        selected.append(found)
    terms = _terms(tree.args.get("order"), selected, names, columns)
    limit, offset = _number(tree.args.get("limit")), _number(tree.args.get("offset"))
    if terms is None or limit is False or offset is False:
        return None
    if where is None:
        return Arrangement(tuple(selected), terms, limit, offset or 0)
    # Keys may be texts, which no number is compared with; released columns are numbers.
    numbers = {aggregate.name for aggregate in core.aggregates}
    kept = [_kept(part, columns, numbers) for part in conjuncts(where.this)]
    if any(one is None for one in kept):
        return None
    return FilteredArrangement(
        tuple(selected), terms, limit, offset or 0, tuple(one for one in kept if one is not None)
    )


def _kept(node: exp.Expr, columns: Mapping[str, str], numbers: Collection[str]) -> Kept | None:
    """The comparison of one of the numbers with a constant that a condition is."""
    operator = _COMPARISONS.get(type(node))
    if operator is None:
        return None
    left, right = node.this.unnest(), node.expression.unnest()
    number = _signed(right)
    if number is None:
        left, number, operator = right, _signed(left), _TURNED.get(operator, operator)
    found = _column(left, columns)
    return Kept(found, operator, number) if found in numbers and found is not None and number is not None else None


_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _signed(node: exp.Expr) -> int | float | None:
    """The number that a constant is."""
    if isinstance(node, exp.Neg):
        number = _signed(node.this.unnest())
        return None if number is None else -number
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    whole = whole_number(node)
    return float(node.name) if whole is None else whole


def _inner(tree: exp.Expr, core: str, slots: frozenset[str]) -> exp.Select | None:
    """The query that names the core's columns, inside a query without slots but those that are followed here."""
    if not isinstance(tree, exp.Select) or not _filled(tree) <= slots:
        return None
    from_ = tree.args.get("from_")
    source = None if from_ is None else from_.this
    if not isinstance(source, exp.Subquery) or not _filled(source) <= {"this", "alias"}:
        return None
    inner = source.this
    if not isinstance(inner, exp.Select) or not _filled(inner) <= _INNER:
        return None
    from_ = inner.args.get("from_")
    table = None if from_ is None else from_.this
    return inner if isinstance(table, exp.Table) and _filled(table) == {"this"} and table.name == core else None


def _filled(node: exp.Expr) -> set[str]:
    """The slots of a node that hold something."""
    return {name for name, value in node.args.items() if value}


def _columns(inner: exp.Select) -> dict[str, str] | None:
    """The columns of the core's table by their names in the outer query."""
    columns: dict[str, str] = {}
    for projection in inner.expressions:
        node = projection.this if isinstance(projection, exp.Alias) else projection
        if not isinstance(node, exp.Column):
            return None
        columns[projection.alias_or_name] = node.name
    return columns


def _column(node: exp.Expr, columns: Mapping[str, str]) -> str | None:
    return columns.get(node.name) if isinstance(node, exp.Column) and node.args.get("table") else None


def _terms(
    order: exp.Expr | None, selected: list[str], names: Mapping[str, int], columns: Mapping[str, str]
) -> tuple[SortTerm, ...] | None:
    terms: list[SortTerm] = []
    for term in order.expressions if order is not None else ():
        if not isinstance(term, exp.Ordered) or not _filled(term) <= {"this", "desc", "nulls_first"}:
            return None
        found = _sorted_by(term.this, selected, names, columns)
        if found is None:
            return None
        terms.append(
            SortTerm(found, descending=bool(term.args.get("desc")), nulls_first=bool(term.args["nulls_first"]))
        )
    return tuple(terms)


def _sorted_by(node: exp.Expr, selected: list[str], names: Mapping[str, int], columns: Mapping[str, str]) -> str | None:
    """The core's column that an ORDER BY names: by an output's position, by its name, or directly."""
    place = select_place(node)
    if place is not None:
        return selected[place] if 0 <= place < len(selected) else None
    if isinstance(node, exp.Column) and not node.args.get("table"):
        named = names.get(node.name.lower())
        return None if named is None else selected[named]
    return _column(node, columns)


def _number(node: exp.Expr | None) -> int | bool | None:
    """The number of a LIMIT or OFFSET, None without one; False when it is not a plain number."""
    if node is None:
        return None
    number = whole_number(node.expression) if _filled(node) <= {"expression"} else None
    return False if number is None else number
