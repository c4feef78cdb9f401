"""Nested blocks that select rows about people: SELECT without an aggregate, in FROM or as a CTE."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from privacy.policy import Dataset
from privacy.refusal import Finding, Refused
from sql_rewrite.aggregate_calls import AggregateReader, aggregate_calls
from sql_rewrite.constant_lists import constants_in
from sql_rewrite.declared_groups import distinct_keys
from sql_rewrite.expressions import Expression
from sql_rewrite.interval_columns import logical, named_moments
from sql_rewrite.known_queries import KnownQueries
from sql_rewrite.lift_difference import difference
from sql_rewrite.lift_expression import ExpressionLift
from sql_rewrite.nested_block import Around, NestedBlock
from sql_rewrite.preserved import check_nested
from sql_rewrite.public_values import is_known
from sql_rewrite.refuse import refuse
from sql_rewrite.released import check_name
from sql_rewrite.row_condition import RowCondition
from sql_rewrite.rows import Rows
from sql_rewrite.scope import Scope
from sql_rewrite.shell import output_name
from sql_rewrite.sources import SourceNames
from sql_rewrite.syntax import consume, populated
from sql_rewrite.text import Text

__all__ = [
    "RowsBlock",
    "RowsSeeker",
    "listed",
    "named_rows",
    "star_relation",
    "too_many_names",
]

_NO_ROWS = ("group", "having")
"""Clauses of a block that aggregates."""


def listed(node: exp.Select) -> list[exp.Expr]:
    """What FROM and its joins list, in order. A table in brackets, as `(people) AS a`, is the table by that name."""
    items = [node.args["from_"].this] if node.args.get("from_") else []
    items += [join.this for join in node.args.get("joins") or []]
    return [_without_brackets(item) for item in items]


def _without_brackets(item: exp.Expr) -> exp.Expr:
    inner = item.this if isinstance(item, exp.Subquery) else None
    if not isinstance(inner, exp.Table) or populated(item) - {"this", "alias"} or populated(inner) - {"this", "db"}:
        return item
    table = inner.copy()
    if item.args.get("alias") is not None:
        table.set("alias", item.args["alias"].copy())
    return table


class RowsSeeker:
    """Tells nested queries that select rows from those that are answered by themselves, before either is lifted.

    `with_` gives what a query with a WITH of its own can see; `by_unit` says of a block over such rows whether it
    groups them by their unit; `known` are queries of public tables that are computed beforehand.
    """

    def __init__(
        self,
        dataset: Dataset,
        with_: Callable[[exp.Expr, Scope], Scope],
        by_unit: Callable[[exp.Select, Scope], bool],
        known: KnownQueries,
    ) -> None:
        self._dataset = dataset
        self._with = with_
        self._ctes: dict[int, bool] = {}
        self._unions: dict[int, bool] = {}
        self._by_unit = by_unit
        self._known = known

    def of_rows(self, node: exp.Expr, scope: Scope) -> bool:
        """Whether a nested query selects rows of tables of the dataset, or computes rows within each unit.

        A set operation does where some of its rows are of people, and nothing in it is answered by itself.
        """
        if isinstance(node, exp.Subquery):
            return self.of_rows(node.this, self._with(node, scope))
        if isinstance(node, exp.SetOperation):
            if id(node) not in self._unions:
                inner, sides = self._with(node, scope), (node.this, node.expression)
                people = any(self._of_people(side, inner) for side in sides)
                self._unions[id(node)] = people and all(self.of_rows(side, inner) for side in sides)
            return self._unions[id(node)]
        if not isinstance(node, exp.Select):
            return False
        inner = self._with(node, scope)
        if not any(self.reads_rows(item, inner) for item in listed(node)):
            return False
        return _selects_rows(node) or self._by_unit(node, inner)

    def constants(self, item: exp.Expr, scope: Scope) -> exp.Expr | None:
        """The query of constants that an item of FROM is, also by the name of a CTE; None for anything else.

        So is a query of public tables that groups or chooses their rows (known_queries.py).
        """
        cte = None
        if isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier):
            cte = None if item.args.get("db") else scope.ctes.get(item.name.lower())
            if cte is None:
                return None  # a table, whose rows are joined as they are
        seen = scope if cte is None else cte.scope

        def public(table: exp.Table) -> bool:
            stored = not table.args.get("db") and table.name.lower() not in seen.ctes
            return stored and is_known(table.name, self._dataset)

        written = item if cte is None else cte.node.this
        found = constants_in(written, public)
        return written if found is None and self._known.makes(written, seen) else found

    def reads_rows(self, item: exp.Expr, scope: Scope) -> bool:
        """Whether an item of FROM is a table of the dataset, or selects rows of one or computes them within units."""
        if isinstance(item, exp.Subquery):
            return self.of_rows(item.this, self._with(item, Scope(scope.ctes)))
        if not isinstance(item, exp.Table):
            return False
        cte = scope.ctes.get(item.name.lower()) if not item.args.get("db") else None
        return self._dataset.table(item.name) is not None if cte is None else cte.of_rows

    def reads_people(self, item: exp.Expr, scope: Scope) -> bool:
        """Whether an item of FROM is a table of people, or selects rows of one; not what aggregates them."""
        if isinstance(item, exp.Subquery):
            return self._of_people(item.this, self._with(item, Scope(scope.ctes)))
        if not isinstance(item, exp.Table):
            return False
        cte = scope.ctes.get(item.name.lower()) if not item.args.get("db") else None
        if cte is not None:
            # Once each: in a chain of CTEs that read the last one twice it would be asked of the first without end.
            if id(cte) not in self._ctes:
                self._ctes[id(cte)] = cte.of_rows and self._of_people(cte.node.this, cte.scope)
            return self._ctes[id(cte)]
        table = self._dataset.table(item.name)
        return table is not None and table.protected

    def _of_people(self, node: exp.Expr, scope: Scope) -> bool:
        if isinstance(node, exp.Subquery):
            return self._of_people(node.this, self._with(node, scope))
        if isinstance(node, exp.SetOperation):
            return self.of_rows(node, scope)
        if not isinstance(node, exp.Select):
            return False
        inner = self._with(node, scope)
        if not any(self.reads_people(item, inner) for item in listed(node)):
            return False
        return _selects_rows(node) or self._by_unit(node, inner)


def _selects_rows(node: exp.Select) -> bool:
    """Whether a block selects rows of what it reads, and aggregates nothing."""
    return (
        node.args.get("from_") is not None
        and not any(node.args.get(clause) for clause in _NO_ROWS)
        and not aggregate_calls(node.expressions)
        and not distinct_keys(node)
    )


def named_rows(rows: Rows, names: Sequence[str], text: Text, node: exp.Expr) -> Rows:
    """The rows with other names of their first columns. Errors: Refused."""
    listed = logical(rows.columns)
    if len(names) > len(listed):
        raise too_many_names(names, len(listed), text, node)
    for name in names:
        check_name(name, text, node)
    columns: list[tuple[str, Expression]] = []
    for place, held in enumerate(listed):
        if place >= len(names):
            columns += held
        elif len(held) == 1:
            columns.append((names[place], held[0][1]))
        else:
            columns += named_moments(names[place], (held[0][1], held[1][1]), text)
    return replace(rows, columns=tuple(columns))


def too_many_names(names: Sequence[str], columns: int, text: Text, node: exp.Expr) -> Refused:
    """The refusal of an alias with more names than there are columns."""
    return refuse(
        "unknown_column",
        "a list of column names is refused",
        f"It names {len(names)} columns, the query has {columns}.",
        position=text.position(node),
    )


def star_relation(names: SourceNames, written: exp.Expr, text: Text) -> str | None:
    """The relation before a star, None where it stands for the columns of all. Errors: Refused."""
    if not isinstance(written, exp.Column):
        return None
    consume(written, "this", "table", text=text, what="a column reference")
    relation = names.relation_of(written.table)
    if relation is None:
        raise refuse(
            "unknown_table",
            f'relation "{written.table[:63]}" is refused',
            "No table of that name is read here.",
            position=text.position(written),
        )
    return relation


class RowsBlock(NestedBlock):
    """One that selects rows."""

    def __init__(self, node: exp.Select, names: SourceNames, around: Around) -> None:
        super().__init__(node, names, around)
        self._aliases: dict[str, Expression] = {}
        self.lifter = ExpressionLift(
            around.text, self._resolve, around.parameters, self._tables, names.joins_to, around.member
        )
        self._reader = AggregateReader(around.text, self._plain)

    def rows(self) -> Rows:
        """What the block stands for. Errors: Refused."""
        self._refuse_clauses()
        condition = RowCondition(self._text, self._names, self._select, self._reader)
        where = condition.read(self._node.args.get("where"))
        check_nested(self._names.preserved, condition.own, self._text.position(self._node))
        columns: list[tuple[str, Expression]] = []
        for written in self._node.expressions:
            columns += self._columns(written)
            self._check_columns(len(columns))
        return Rows(self._names.sources, where, tuple(columns))

    @property
    def warnings(self) -> list[Finding]:
        """What the conditions and columns warn of."""
        return [*self._plain.warnings, *self.lifter.warnings]

    def _columns(self, written: exp.Expr) -> list[tuple[str, Expression]]:
        star = written.this if isinstance(written, exp.Column) else written
        if isinstance(star, exp.Star):
            consume(star, text=self._text, what="*")
            return self._names.star(star_relation(self._names, written, self._text))
        name = written.alias if isinstance(written, exp.Alias) else output_name(self._text, written)
        if isinstance(written, exp.Alias):
            consume(written, "this", "alias", text=self._text, what="an alias")
        moments = difference(self.lifter, written.unalias())
        made = (
            [(name, self.lifter.lift(written.unalias()))]
            if moments is None
            else named_moments(name, moments, self._text)
        )
        if isinstance(written, exp.Alias):
            for column, found in made:
                self._aliases.setdefault(column.lower(), found)
        return made

    def _resolve(self, node: exp.Column) -> Expression:
        """A column of what is read, or of the select list before this one."""
        if not node.table and not self._names.knows(node.name):
            alias = self._aliases.get(node.name.lower())
            if alias is not None:
                return alias
        return self._names.resolve(node)
