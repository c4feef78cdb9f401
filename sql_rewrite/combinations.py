"""IN over combinations of values that everybody knows: rows of a public table, VALUES, and CTEs of these.

    SELECT COUNT(*) FROM lineitem WHERE (l_partkey, l_suppkey) IN (SELECT ps_partkey, ps_suppkey FROM partsupp)
    where:  l_suppkey = 1 and l_partkey in (1, 2, 7), or l_suppkey = 2 and l_partkey in (3, 7), or ...

Claim. The condition is unit-local, and true, false or NULL exactly where IN is. Proof: it is an expression over columns
of the row and constants that everybody knows. In SQL, and in DuckDB for nested queries, (a, b) IN of rows is the OR
over the rows (c, d) of `a = c AND b = d`, in logic of three values; equal terms of an OR are one, and terms that share
a comparison are put together, which is distributivity.

Combinations with a NULL are never true, so where NULL counts as false they are left out. Elsewhere a comparison with
NULL is a constant that is NULL: `x NOT IN` of values with a NULL is true of no row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from privacy.policy import ColumnType
from privacy.refusal import Refused
from sql_rewrite.aggregate_calls import AggregateReader
from sql_rewrite.evaluate import evaluate, is_exact
from sql_rewrite.expressions import Expression, Literal, Value
from sql_rewrite.functions import build
from sql_rewrite.lift_expression import ExpressionLift
from sql_rewrite.refuse import refuse
from sql_rewrite.rows import Rows
from sql_rewrite.sources import SourceNames
from sql_rewrite.syntax import consume, populated
from sql_rewrite.text import Text

__all__ = ["Known", "among", "among_rows"]

TERMS_MAX = 100
"""Most comparisons that a row is tried with; values beside one of them are a list."""

VALUES_MAX = 1_000

_UNKNOWN = Literal(None, ColumnType.BOOLEAN)

Known = Callable[[exp.Select], Rows | None]
"""Gives the rows of constants that are all that a nested query reads; None for any other query."""


def among(
    lifter: ExpressionLift, node: exp.In, query: exp.Select, inner: SourceNames, rows: Sequence[Sequence[Value]],
    columns: Sequence[tuple[str, str]], text: Text, *, null_is_false: bool,
) -> Expression | None:  # fmt: skip
    """Whether the values in front of IN are among those that a query selects of known rows.

    `columns` are the relation and name of each value of a row. None where it reads something else.
    Errors: Refused (too_large, unsupported_sql, unsupported_type).
    """
    if populated(query) - {"expressions", "from_", "where"} or not _reads_inside(query, inner):
        return None
    consume(node, "this", "query", text=text, what="IN")
    written = node.this.unnest()
    sought = [lifter.lift(one) for one in (written.expressions if isinstance(written, exp.Tuple) else [written])]
    reader = ExpressionLift(text, inner.resolve, lifter.parameters)
    selected: list[Expression] = []
    for one in query.expressions:
        selected += (
            [column for _, column in inner.star()] if isinstance(one, exp.Star) else [reader.lift(one.unalias())]
        )
    where = query.args.get("where")
    condition = None if where is None else AggregateReader(text, reader).condition(where.this, "WHERE")
    if not all(map(is_exact, [*selected, *([] if condition is None else [condition])])):
        return None
    found: dict[tuple[Value, ...], None] = {}
    for row in rows:
        values = dict(zip(columns, row, strict=True))
        if condition is None or evaluate(condition, values) is True:
            found.setdefault(tuple(evaluate(one, values) for one in selected))
    kinds = [one.type for one in selected]
    return among_rows(lifter, node, sought, kinds, list(found), text, null_is_false=null_is_false)


def among_rows(
    lifter: ExpressionLift, node: exp.In, sought: Sequence[Expression], types: Sequence[ColumnType],
    rows: Sequence[tuple[Value, ...]], text: Text, *, null_is_false: bool,
) -> Expression:  # fmt: skip
    """Whether these values are among known rows. Errors: Refused (too_large, unsupported_sql, unsupported_type)."""
    found = list(dict.fromkeys(rows))
    if len(sought) != len(types):
        raise refuse(
            "unsupported_sql",
            "IN over a nested query is refused",
            f"It compares {len(sought)} values with {len(types)} columns.",
            "select as many columns as there are values in front of IN",
            position=text.position(node),
        )
    kept = [row for row in found if None not in row] if null_is_false else found
    if not kept:
        return Literal(value=False, type=ColumnType.BOOLEAN)
    return _Written(lifter, node, text).any_of(sought, types, kept)


def _reads_inside(query: exp.Select, inner: SourceNames) -> bool:
    """Whether everything that a query reads is a column of what it lists."""
    parts = [*query.expressions, *([query.args["where"]] if query.args.get("where") is not None else [])]
    if any(part.find(exp.Query, exp.AggFunc, exp.Window) is not None for part in parts):
        return False
    return all(inner.is_source(c) for part in parts for c in part.find_all(exp.Column) if not c.is_star)


class _Written:
    def __init__(self, lifter: ExpressionLift, node: exp.In, text: Text) -> None:
        self._lifter = lifter
        self._node = node
        self._text = text

    def any_of(
        self, sought: Sequence[Expression], types: Sequence[ColumnType], rows: list[tuple[Value, ...]]
    ) -> Expression:
        """The condition that all values equal those of one of the rows."""
        if len(rows) * len(sought) > VALUES_MAX * 2:
            raise self._too_large()
        terms = self._terms(list(sought), rows, list(types))
        if len(terms) > TERMS_MAX:
            raise self._too_large()
        return terms[0] if len(terms) == 1 else build("or", tuple(terms))

    def _terms(
        self, sought: list[Expression], rows: list[tuple[Value, ...]], types: list[ColumnType]
    ) -> list[Expression]:
        """Terms of an OR, by the column with the fewest values first; the last column is a list of values."""
        if len(sought) == 1:
            values = [Literal(value, types[0]) for (value,) in dict.fromkeys(rows) if value is not None]
            listed = [self._lifter.make(self._node, "in", sought[0], *values)] if values else []
            return listed if len(values) == len(rows) else [*listed, _UNKNOWN]
        place = min(range(len(sought)), key=lambda at: len({row[at] for row in rows}))
        parts: dict[Value, list[tuple[Value, ...]]] = {}
        for row in rows:
            parts.setdefault(row[place], []).append((*row[:place], *row[place + 1 :]))
        left, kinds = [*sought[:place], *sought[place + 1 :]], [*types[:place], *types[place + 1 :]]
        found = []
        for value, rest in parts.items():
            known = None if value is None else Literal(value, types[place])
            same = _UNKNOWN if known is None else self._lifter.make(self._node, "=", sought[place], known)
            found += [build("and", (same, term)) for term in self._terms(left, rest, kinds)]
        return found

    def _too_large(self) -> Refused:
        return refuse(
            "too_large",
            "IN over a nested query is refused",
            f"Its combinations take more than {TERMS_MAX} comparisons with each row.",
            "join the table by these columns, or narrow the nested query",
            position=self._text.position(self._node),
        )
