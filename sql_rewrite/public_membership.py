"""EXISTS and IN over a small public table by any condition: the rows that everybody knows, written out.

    SELECT COUNT(*) FROM people AS p WHERE EXISTS (SELECT 1 FROM wards AS w WHERE w.region = p.region AND w.beds > 500)
    where:  p.region is one of the regions of those wards

    ... WHERE EXISTS (SELECT 1 FROM bands AS b WHERE p.age >= b.low AND p.age < b.high)
    where:  p.age >= 0 and p.age < 30, or p.age >= 60 and p.age < 90

Claim. The condition is unit-local. Proof: it is an expression over columns of the row and constants that everybody
knows, as if the analyst had written them.

Of the nested query's rows only those that can differ are written out: each once by the columns that the condition
compares with the row outside, and those alone whose own condition is true. A condition that is not true counts as
false in EXISTS, as in SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from privacy.policy import ColumnType, Dataset, Table
from sql_rewrite.aggregate_calls import AggregateReader, aggregate_calls
from sql_rewrite.combinations import Known, among, among_rows
from sql_rewrite.entries import View
from sql_rewrite.evaluate import evaluate, is_exact
from sql_rewrite.expressions import Call, ColumnRef, Expression, Literal, Value, columns_of
from sql_rewrite.functions import build
from sql_rewrite.join_links import conjuncts
from sql_rewrite.known_rows import KnownTable
from sql_rewrite.lift_expression import ExpressionLift
from sql_rewrite.plan import Constants, Source
from sql_rewrite.public_joins import as_constants
from sql_rewrite.reachable import conjuncts as parts_of
from sql_rewrite.refuse import refuse
from sql_rewrite.rows import Rows
from sql_rewrite.sources import SourceNames
from sql_rewrite.syntax import consume, populated
from sql_rewrite.text import Text

__all__ = ["KnownTables", "PublicMembership", "decides", "leaves_out", "written_out"]

KnownTables = Callable[[exp.Expr, bool], KnownTable | None]
"""Gives the rows of a nested query that reads nothing but what everybody knows, None for any other one; or of such
queries alone that group, sort or count their rows."""


WRITTEN_MAX = 100
"""Most different rows of a public table that are written out as conditions; equality with a value is a list."""

_FALSE = Literal(value=False, type=ColumnType.BOOLEAN)
_INSIDE = "x$"
"""The relation of the public table inside: it is no source of the query around it."""


class PublicMembership:
    """Reads such conditions of one block.

    `public` is the public table that an item of FROM is, `constants` the rows that a query of constants reads, `known`
    those of a query that reads nothing else, whatever it does with them (known_queries.py).
    """

    def __init__(
        self,
        names: SourceNames,
        dataset: Dataset,
        text: Text,
        public: Callable[[exp.Table], Table | None],
        constants: Known,
        known: KnownTables,
    ) -> None:
        self._names = names
        self._dataset = dataset
        self._text = text
        self._public = public
        self._constants = constants
        self._tables = known

    def read(self, lifter: ExpressionLift, node: exp.Expr) -> Expression | None:
        """The condition, None where it is not EXISTS or IN over small public tables. Errors: Refused."""
        nested = node.args.get("query") if isinstance(node, exp.In) else node.this
        if nested is None:
            return None
        found = self._over_rows(lifter, node, nested.unnest())
        return self.over_query(lifter, node) if found is None else found

    def over_query(self, lifter: ExpressionLift, node: exp.Expr, *, made: bool = False) -> Expression | None:
        """The condition over the rows of a query of what everybody knows, None for others. Errors: Refused.

        With `made` it groups, sorts or counts them.
        """
        nested = node.args.get("query") if isinstance(node, exp.In) else node.this
        table = None if nested is None else self._tables(nested, made)
        if table is None:
            return None
        if not isinstance(node, exp.In):
            return Literal(value=bool(table.rows), type=ColumnType.BOOLEAN)
        consume(node, "this", "query", text=self._text, what="IN")
        written = node.this.unnest()
        sought = [lifter.lift(one) for one in (written.expressions if isinstance(written, exp.Tuple) else [written])]
        loose = leaves_out(node)
        return among_rows(lifter, node, sought, table.kinds, table.rows, self._text, null_is_false=loose)

    def _over_rows(self, lifter: ExpressionLift, node: exp.Expr, query: exp.Expr) -> Expression | None:
        """The condition over the rows of one table; None for other queries."""
        if not isinstance(query, exp.Select) or populated(query) - {"expressions", "from_", "where"}:
            return None
        if aggregate_calls(query.expressions):
            return None
        item = query.args["from_"].this if query.args.get("from_") is not None else None
        listed = self._constants(query) if item is not None else None
        table = self._public(item) if isinstance(item, exp.Table) and listed is None else None
        if item is None or (table is None and listed is None):
            return None
        view = View(_INSIDE, _inside(listed)) if listed is not None else None
        if table is not None:
            view = as_constants(Source(_INSIDE, table), self._dataset)
        if view is None:
            return None
        source = view.rows.sources[0]
        constants = source.constants
        assert constants is not None
        inner = SourceNames((view,), {item.alias_or_name.lower(): view.relation}, self._text, self._dataset)
        if isinstance(node, exp.In) and (listed is not None or isinstance(node.this.unnest(), exp.Tuple)):
            columns = [(source.relation, ref.name) for ref in constants.columns]
            null_is_false = leaves_out(node)
            return among(lifter, node, query, inner, constants.rows, columns, self._text, null_is_false=null_is_false)
        reader = ExpressionLift(self._text, self._resolver(inner), lifter.parameters)
        where = query.args.get("where")
        parts: list[Expression] = []
        if where is not None:
            consume(where, "this", text=self._text, what="WHERE")
            aggregates = AggregateReader(self._text, reader)
            parts = [part for one in conjuncts(where.this) for part in parts_of(aggregates.condition(one, "WHERE"))]
        if isinstance(node, exp.In):
            if len(query.expressions) != 1 or query.expressions[0].find(exp.AggFunc, exp.Star) is not None:
                return None
            selected, sought = reader.lift(query.expressions[0].unalias()), lifter.lift(node.this)
            if (sought.nullable or selected.nullable) and not leaves_out(node):
                columns = [(source.relation, ref.name) for ref in constants.columns]
                return among(lifter, node, query, inner, constants.rows, columns, self._text, null_is_false=False)
            consume(node, "this", "query", text=self._text, what="IN")
            parts += parts_of(lifter.make(node, "=", sought, selected))
        else:
            consume(node, "this", text=self._text, what="EXISTS")
        found = written_out(parts, constants, _INSIDE)
        if found is None:
            raise refuse(
                "too_large",
                "a nested query of a public table is refused",
                f"More than {WRITTEN_MAX} of its rows would have to be compared one by one.",
                "compare columns for equality, or join the table",
                position=self._text.position(node),
            )
        return found

    def _resolver(self, inner: SourceNames) -> Callable[[exp.Column], Expression]:
        """What columns mean inside: those of the public table first, then those of the query around it."""

        def resolve(column: exp.Column) -> Expression:
            outside = not inner.is_source(column) and self._names.is_source(column)
            return self._names.resolve(column) if outside else inner.resolve(column)

        return resolve


def _inside(rows: Rows) -> Rows:
    """Rows of constants whose relation is no source of the query around them."""
    (source,) = rows.sources
    columns = [(name, replace(c, relation=_INSIDE) if isinstance(c, ColumnRef) else c) for name, c in rows.columns]
    return replace(rows, sources=(replace(source, relation=_INSIDE),), columns=tuple(columns))


def written_out(parts: Sequence[Expression], constants: Constants, relation: str) -> Expression | None:
    """Whether the conditions are true for some of the rows of that relation; None where these are too many."""
    own = [part for part in parts if {c.relation for c in columns_of(part)} <= {relation} and is_exact(part)]
    compared = [part for part in parts if not any(part is one for one in own)]
    names = [ref.name for ref in constants.columns]
    read = dict.fromkeys(c.name for part in compared for c in columns_of(part) if c.relation == relation)
    rows: dict[tuple[Value, ...], Mapping[tuple[str, str], Value]] = {}
    for row in constants.rows:
        values = {(relation, name): value for name, value in zip(names, row, strict=True)}
        if all(evaluate(part, values) is True for part in own):
            rows.setdefault(tuple(values[relation, name] for name in read), values)
    if not rows:
        return _FALSE
    if not compared:
        return Literal(value=True, type=ColumnType.BOOLEAN)
    listed = _listed(compared, list(rows.values()), relation)
    if listed is not None:
        return build("coalesce", (listed, _FALSE))
    if len(rows) > WRITTEN_MAX:
        return None
    whole = compared[0] if len(compared) == 1 else build("and", tuple(compared))
    each = [build("coalesce", (_for(whole, values), _FALSE)) for values in rows.values()]
    return each[0] if len(each) == 1 else build("or", tuple(each))


def _listed(
    compared: Sequence[Expression], rows: Sequence[Mapping[tuple[str, str], Value]], relation: str
) -> Expression | None:
    """One equality of a column of these rows as a list of values; None for anything else."""
    if len(compared) != 1 or not isinstance(compared[0], Call) or compared[0].operator != "=":
        return None
    for own, other in (compared[0].arguments, compared[0].arguments[::-1]):
        if isinstance(own, ColumnRef) and own.relation == relation:
            if any(column.relation == relation for column in columns_of(other)):
                return None
            values = [row[relation, own.name] for row in rows if row[relation, own.name] is not None]
            found = tuple(Literal(value, own.type) for value in values)
            return build("in", (other, *found)) if found else _FALSE
    return None


def _for(node: Expression, values: Mapping[tuple[str, str], Value]) -> Expression:
    """A condition with the constants of one row."""
    if isinstance(node, ColumnRef):
        place = (node.relation, node.name)
        return Literal(values[place], node.type) if place in values else node
    if isinstance(node, Call):
        return build(node.operator, tuple(_for(argument, values) for argument in node.arguments))
    return node


def leaves_out(node: exp.Expr) -> bool:
    """Whether a condition stands in WHERE below AND and OR alone, where NULL is as good as false."""
    above = node.parent
    while isinstance(above, exp.And | exp.Or | exp.Paren):
        above = above.parent
    return isinstance(above, exp.Where)


def decides(node: exp.Expr) -> bool:
    """The same, or whether it stands so as the condition of a branch of CASE or of IF, which NULL does not take."""
    inner, above = node, node.parent
    while isinstance(above, exp.And | exp.Or | exp.Paren):
        inner, above = above, above.parent
    if not isinstance(above, exp.If) or above.this is not inner:
        return isinstance(above, exp.Where)
    return not isinstance(above.parent, exp.Case) or above.parent.this is None
