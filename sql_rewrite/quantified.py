"""Comparisons with any row, or with all rows, of a nested query: `x > ANY (SELECT ...)`, `x <= ALL (SELECT ...)`.

    cost > ALL (SELECT beds FROM hospitals)                                  cost > 800
    cost < ANY (SELECT AVG(cost) FROM visits GROUP BY ward)                  cost < a0@0 or cost < a0@1 or ...
    v.cost >= ALL (SELECT w.cost FROM visits AS w WHERE w.unit = v.unit)     not exists (... and w.cost > v.cost)

Claim. Each is true, false or NULL exactly where the comparison is. Proof: in SQL, and in DuckDB, ANY is the OR over the
rows of the comparison with each, ALL the AND, in logic of three values; without rows they are false and true. Of values
that everybody knows, x > some of them that is not NULL if and only if x > the least, and x > all of them if and only if
x > the greatest, the others likewise; x = all of them if it equals the least and the greatest; a NULL among them adds a
term that is NULL. A released group is a row where its flag says that it is there. Rows of the unit are compared by
EXISTS where no side can be NULL, or where NULL counts as false; and ALL of them as not any that compares otherwise.

Rows of other people are never compared one by one: their extreme is released instead, as a number of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from privacy.policy import ColumnType
from privacy.refusal import Refused
from sql_rewrite.aggregate_calls import aggregate_calls
from sql_rewrite.expressions import Expression, Literal, Value
from sql_rewrite.functions import build
from sql_rewrite.lift_expression import ExpressionLift
from sql_rewrite.refuse import refuse
from sql_rewrite.syntax import consume, populated, rendered
from sql_rewrite.text import Text

__all__ = [
    "COMPARED",
    "among_cells",
    "among_values",
    "as_exists",
    "named_keys",
    "quantified_query",
    "refused",
    "unknown",
]

COMPARED: Mapping[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}  # fmt: skip
"""The comparisons, and their operators."""

_OTHERWISE: Mapping[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.NEQ, exp.NEQ: exp.EQ, exp.LT: exp.GTE, exp.LTE: exp.GT, exp.GT: exp.LTE, exp.GTE: exp.LT,
}  # fmt: skip
"""What is true of two values where the comparison is false."""

_TRUE = Literal(value=True, type=ColumnType.BOOLEAN)
_FALSE = Literal(value=False, type=ColumnType.BOOLEAN)
_UNKNOWN = Literal(None, ColumnType.BOOLEAN)


def quantified_query(node: exp.Expr, text: Text) -> exp.Expr | None:
    """The nested query that a comparison is with any or all rows of; None for other comparisons. Errors: Refused."""
    quantifier = node.expression
    if type(node) not in COMPARED or not isinstance(quantifier, exp.Any | exp.All):
        return None
    query = quantifier.this.unnest()
    if not isinstance(query, exp.Query):
        return None
    consume(node, "this", "expression", text=text, what="a comparison")
    consume(quantifier, "this", text=text, what="ANY or ALL")
    return query


def among_values(lifter: ExpressionLift, node: exp.Expr, values: Sequence[Value], kind: ColumnType) -> Expression:
    """The comparison with values that everybody knows. Errors: Refused."""
    every = isinstance(node.expression, exp.All)
    if not values:
        return _TRUE if every else _FALSE
    sought = lifter.lift(node.this)
    known = list(dict.fromkeys(value for value in values if value is not None))
    parts = [lifter.make(node, COMPARED[type(node)], sought, Literal(end, kind)) for end in _ends(node, known)]
    if len(known) < len(set(values)):
        parts.append(_UNKNOWN)
    return _joined(parts, every=every)


def _ends(node: exp.Expr, known: Sequence[Value]) -> list[Value]:
    """The values that decide."""
    if not known:
        return []
    every = isinstance(node.expression, exp.All)
    if isinstance(node, exp.NEQ if every else exp.EQ):
        return list(known)
    ends: tuple[Value, Value] = min(known), max(known)  # type: ignore[type-var]
    if isinstance(node, exp.EQ | exp.NEQ):
        return list(dict.fromkeys(ends))
    return [ends[isinstance(node, exp.GT | exp.GTE) is every]]


def among_cells(lifter: ExpressionLift, node: exp.Expr, cells: Sequence[tuple[Expression, Expression]]) -> Expression:
    """The comparison with released rows: of each whether it is there, and its value. Errors: Refused."""
    every = isinstance(node.expression, exp.All)
    sought, absent = lifter.lift(node.this), _TRUE if every else _FALSE
    parts = []
    for there, value in cells:
        compared = lifter.make(node, COMPARED[type(node)], sought, value)
        parts.append(compared if there == _TRUE else build("case", (there, compared, absent)))
    return _joined(parts, every=every) if parts else absent


def _joined(parts: Sequence[Expression], *, every: bool) -> Expression:
    return parts[0] if len(parts) == 1 else build("and" if every else "or", tuple(parts))


def named_keys(query: exp.Select, name: str) -> exp.Select:
    """A GROUP BY of which one column is selected, under that name, with its keys as further columns."""
    copy = query.copy()
    group = copy.args.get("group")
    first = copy.expressions[0]
    shown = [first if isinstance(first, exp.Alias) else exp.alias_(first.copy(), name)]
    keys = [key for key in group.expressions if not isinstance(key, exp.Literal)] if group is not None else []
    shown += [exp.alias_(key.copy(), f"key_of_row_{place}") for place, key in enumerate(keys)]
    copy.set("expressions", shown)
    return copy


def as_exists(node: exp.Expr, query: exp.Select) -> exp.Expr | None:
    """The comparison as EXISTS or NOT EXISTS, of which no side is NULL; None where names could mean something else."""
    if populated(query) - {"expressions", "from_", "joins", "where"} or query.args.get("where") is None:
        return None
    inside = {item.alias_or_name.lower() for item in query.find_all(exp.Table, exp.Subquery)}
    columns = list(node.this.find_all(exp.Column))
    if not columns or any(column.table.lower() in ("", *inside) for column in columns):
        return None
    every = isinstance(node.expression, exp.All)
    kind = _OTHERWISE[type(node)] if every else type(node)
    selected = query.expressions[0].unalias()
    if aggregate_calls([selected]):
        return None
    inner = query.copy()
    compared = kind(this=node.this.copy(), expression=selected.copy())
    inner.set("where", exp.Where(this=exp.And(this=inner.args["where"].this, expression=compared)))
    inner.set("expressions", [exp.Literal.number(1)])
    found: exp.Expr = exp.Exists(this=inner)
    return exp.Not(this=found) if every else found


def refused(node: exp.Expr, query: exp.Expr, text: Text) -> Refused:
    """The refusal of a comparison with rows of people one by one."""
    return refuse(
        "unsupported_sql",
        f"{'ALL' if isinstance(node.expression, exp.All) else 'ANY'} of rows of people is refused",
        "For each row it would follow from single rows of other people.",
        *_released(node, query, text),
        "compare it with rows of the same person: write EXISTS, with an equality of the unit's key in its WHERE",
        position=text.position(node),
    )


def _released(node: exp.Expr, query: exp.Expr, text: Text) -> tuple[str, ...]:
    """The comparison with the released extreme that decides."""
    if not isinstance(query, exp.Select) or populated(query) - {"expressions", "from_", "joins", "where"}:
        return ()
    if isinstance(node, exp.EQ | exp.NEQ) or len(query.expressions) != 1 or aggregate_calls(query.expressions):
        return ()
    greatest = isinstance(node, exp.GT | exp.GTE) is isinstance(node.expression, exp.All)
    inner = query.copy()
    selected = inner.expressions[0].unalias()
    inner.set("expressions", [(exp.Max if greatest else exp.Min)(this=selected.copy())])
    place = text.position(node.this)
    written = rendered(node.this) if place is None else " ".join(place.text.split())
    return (f"{written} {COMPARED[type(node)]} ({rendered(inner)})",)


def unknown(node: exp.Expr, text: Text) -> Refused:
    """The refusal of a comparison with rows that are neither known beforehand, nor released, nor of people."""
    return refuse(
        "unsupported_sql",
        f"{'ALL' if isinstance(node.expression, exp.All) else 'ANY'} of the rows of a nested query is refused",
        "Rows that it is answered with are known beforehand, those of public tables of at most 1,000 rows, or are "
        "released groups, at most 100.",
        "ask for the least or the greatest of them in a query of its own, and write it (or $name, a parameter) here",
        position=text.position(node),
    )
