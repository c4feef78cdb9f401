"""Nested queries that release groups, as the tables and lists that a later private part reads.

    SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward FROM visits GROUP BY ward HAVING COUNT(*) > 100)
    core c1:  visits where CASE ward WHEN 'a' THEN CASE WHEN a0@0 > 100 THEN there@0 ELSE FALSE END WHEN ... END

A condition on released groups (HAVING, and WHERE over a CTE of them) is computed for each public group, by the total
operators of the later core's rows; what is true of a group is there. ORDER BY and LIMIT are done when the groups are
released, before the later statement is bound (`server/arranging.py`), so they stand alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from sqlglot import exp

from privacy.policy import ColumnType, Dataset, KeyValue
from privacy.refusal import Refused
from sql_rewrite.aggregate_calls import aggregate_calls
from sql_rewrite.core_block import CoreBlock
from sql_rewrite.expressions import Expression, Literal
from sql_rewrite.keys import key_domain
from sql_rewrite.levels import levels_of
from sql_rewrite.lift_expression import ExpressionLift
from sql_rewrite.plan import Arrangement, Core
from sql_rewrite.public_membership import decides
from sql_rewrite.refuse import refuse
from sql_rewrite.rows_block import RowsSeeker, listed
from sql_rewrite.scope import Scope
from sql_rewrite.shell import output_name
from sql_rewrite.stage_hidden import HiddenList, hidden_list
from sql_rewrite.stage_tables import CELLS_MAX, EVERY, Cells, StageTable, flags_of, list_name
from sql_rewrite.syntax import consume, populated
from sql_rewrite.text import Text

__all__ = ["CellReader", "StageGroups"]

_ITEM = frozenset({"this", "alias", "db", "catalog", "with_"})
"""Parts of an item of FROM that is read as it is."""

_OVER = frozenset({"expressions", "from_", "where", "with_"})
"""Clauses of a block over a released table that selects some of its rows and columns."""

_CUT = frozenset({"order", "limit", "offset"})

_GROUPS = frozenset({"expressions", "from_", "joins", "where", "with_", "group", "having"}) | _CUT
"""Those of a block that has a row for each of its groups."""


CellReader = Callable[[int, Mapping[exp.Expr, Expression]], ExpressionLift]
"""By the place of a group, and what other trees stand for, what reads the values of that group."""


class _Values(Protocol):
    """What is computed of released values: `sql_rewrite.stages.Stages`."""

    def of_cells(self, core: Core, block: CoreBlock, scope: Scope, *, of: str = "") -> CellReader:
        """What reads what a block computes of one group."""
        ...

    def over(self, columns: Mapping[str, Expression], alias: str, scope: Scope) -> ExpressionLift:
        """Reads what a block computes of the columns of one row."""
        ...

    def warn(self, node: exp.Expr) -> None:
        """Notes that a released value is read."""
        ...

    def warn_hidden(self, node: exp.Expr) -> None:
        """Notes that the list of groups that is read is no public one."""
        ...


class StageGroups:
    """Reads nested queries that release groups. The arguments are those of `Stages`."""

    def __init__(
        self,
        text: Text,
        seeker: RowsSeeker,
        values: _Values,
        *,
        core: Callable[[exp.Select, Scope], tuple[Core, CoreBlock]],
        arranged: Callable[[exp.Select, Scope], tuple[Core | None, Arrangement | None]],
        dataset: Dataset,
        with_: Callable[[exp.Expr, Scope], Scope],
    ) -> None:
        self._text = text
        self._seeker = seeker
        self._values = values
        self._core = core
        self._list = arranged
        self._dataset = dataset
        self._with = with_
        self.lists: dict[tuple[str, str], Arrangement] = {}
        """Of the lists that are read, what is done to the table of a core."""

    def table(self, item: exp.Expr, scope: Scope) -> StageTable | None:
        """An item of FROM as the rows that it releases by keys, None for any other one. Errors: Refused.

        Its columns have their own names, and all of it is read: with other names, or as a sample, it is another one.
        """
        alias = item.args.get("alias")
        if populated(item) - _ITEM or (alias is not None and alias.args.get("columns")):
            return None
        if isinstance(item, exp.Table):
            cte = scope.ctes.get(item.name.lower()) if not item.args.get("db") else None
            if cte is None or cte.of_rows or cte.node.args["alias"].args.get("columns"):
                return None
            found = self._released(cte.node.this, cte.scope)
            if found is not None:
                cte.read()
            return found
        if not isinstance(item, exp.Subquery):
            return None
        return self._released(item.this, self._with(item, Scope(scope.ctes)))

    def _released(self, node: exp.Expr, scope: Scope) -> StageTable | None:
        """The rows that a query releases by keys, None for any other one. Errors: Refused."""
        if not isinstance(node, exp.Select) or populated(node) - _GROUPS:
            return None
        scope = self._with(node, scope)
        if not node.args.get("group"):
            return None if populated(node) - _OVER else self._selected(node, scope)
        if not any(self._seeker.reads_people(item, scope) for item in listed(node)) or levels_of(node, self._text):
            return None
        return self._grouped(node, scope)

    def _grouped(self, node: exp.Select, scope: Scope) -> StageTable | None:
        core, block = self._core(node, scope)
        public = key_domain(core, self._dataset)[1]
        hidden = self._hidden(core, node, scope) if public is None else None
        cells = self._cells(core, public or (), node) if hidden is None else hidden.cells
        of = "" if hidden is None else hidden.name
        places = {name: place for place, (name, _) in enumerate(core.keys)}
        kinds = tuple(expression.type for _, expression in core.keys)
        keys: list[tuple[str, int]] = []
        values: list[tuple[str, tuple[Expression, ...]]] = []
        of_cell = self._values.of_cells(core, block, scope, of=of)
        lifters = [of_cell(place, {}) for place in range(len(cells))]
        for written, value in zip(node.expressions, block.select.values, strict=True):
            name = written.alias if isinstance(written, exp.Alias) else output_name(self._text, written)
            key = _key_of(block, value)
            if key in places:
                keys.append((name, places[key]))
            elif key is None and aggregate_calls([value]):
                values.append((name, tuple(lifter.lift(value) for lifter in lifters)))
            else:
                return None
        if {place for _, place in keys} != set(places.values()):
            return None
        every = flags_of(core.name, of or EVERY, len(cells))
        table = StageTable(core.name, cells, kinds, tuple(keys), tuple(values), every, hidden=hidden is not None)
        having = node.args.get("having")
        if hidden is not None and hidden.whole:
            return replace(table, chosen=True)
        if _is_cut(node):
            return self._cut(node, scope, core, table)
        if having is None:
            return table
        tree = _aliases_written(block.names.qualified(having.this), block)
        # HAVING of one group, in which keys are constants.
        trees = [(one, places[name]) for one, name in block.keys.trees if _key_of(block, one) in places]
        known = [{one: cell[at] for one, at in trees} for cell in cells]
        return table.where([self._condition(of_cell(at, known[at]), tree) for at in range(len(cells))])

    def _condition(self, lifter: ExpressionLift, tree: exp.Expr) -> Expression:
        found = lifter.lift(tree)
        if found.type is not ColumnType.BOOLEAN:
            raise refuse(
                "unsupported_type",
                "a condition on released groups is refused",
                "It is no truth value.",
                "compare it: COUNT(*) > 100",
                position=self._text.position(tree),
            )
        return found

    def _cut(self, node: exp.Select, scope: Scope, core: Core, table: StageTable) -> StageTable:
        """The groups that ORDER BY and LIMIT leave, which are chosen when they are released. Errors: Refused."""
        asked, arrangement = self._list(node, scope)
        if asked is None or arrangement is None or asked.name != core.name:
            raise self._no_cut(node)
        shown = replace(arrangement, columns=tuple(name for name, _ in core.keys))
        name = list_name(shown)
        self.lists[core.name, name] = shown
        return replace(table, there=flags_of(core.name, name, len(table.cells)), chosen=True)

    def _no_cut(self, node: exp.Select) -> Refused:
        return refuse(
            "unsupported_sql",
            "LIMIT of a released table inside the private part is refused",
            "It is read with ORDER BY of columns and aggregates of the table, and HAVING that compares these with "
            "numbers.",
            "HAVING COUNT(*) > 100 ORDER BY COUNT(*) DESC LIMIT 10",
            "ask for the groups in a query of their own, and write them as a list",
            position=self._text.position(node.args.get("limit") or node),
        )

    def _hidden(self, core: Core, node: exp.Select, scope: Scope) -> HiddenList:
        """The list of a core with hidden groups that a block reads. Errors: Refused.

        What ORDER BY, LIMIT and comparisons with numbers leave is listed alone; other conditions are left to the rows.
        """
        arrangement: Arrangement | None = None
        if _is_cut(node) or node.args.get("having") is not None:
            try:
                asked, arrangement = self._list(node, scope)
            except Refused:
                asked = None
            arrangement = arrangement if asked is not None and asked.name == core.name else None
            if arrangement is None and _is_cut(node):
                raise self._no_cut(node)
        return self._hidden_list(core, arrangement, node)

    def _hidden_list(self, core: Core, arrangement: Arrangement | None, node: exp.Expr) -> HiddenList:
        """The list that an arrangement makes of hidden groups, all of them without one. Errors: Refused."""
        found = hidden_list(core, arrangement)
        if found is None:
            raise refuse(
                "unsupported_type",
                "a released table in the private part is refused",
                "One of its keys is a number with a fraction, which is not compared safely.",
                "group by a whole number: ROUND(10 * x)",
                position=self._text.position(node),
            )
        self.lists[core.name, found.name] = found.arrangement
        self._values.warn_hidden(node)
        return found

    def _selected(self, node: exp.Select, scope: Scope) -> StageTable | None:
        """Columns and rows of a released table, by a block over it alone."""
        items = listed(node)
        if len(items) != 1 or aggregate_calls(node.expressions) or any(one.is_star for one in node.expressions):
            return None
        below = self.table(items[0], scope)
        if below is None:
            return None
        alias, keys = items[0].alias_or_name, {name.lower(): place for name, place in below.keys}
        lifters = [self._values.over(below.columns(place), alias, scope) for place in range(len(below.cells))]
        own: list[tuple[str, int]] = []
        values: list[tuple[str, tuple[Expression, ...]]] = []
        for written in node.expressions:
            value = written.unalias()
            name = written.alias if isinstance(written, exp.Alias) else output_name(self._text, written)
            named = isinstance(value, exp.Column) and value.table.lower() in ("", alias.lower())
            if named and value.name.lower() in keys:
                own.append((name, keys[value.name.lower()]))
            else:
                values.append((name, tuple(lifter.lift(value) for lifter in lifters)))
        where = node.args.get("where")
        if where is not None:
            below = below.where([self._condition(lifter, where.this) for lifter in lifters])
        return replace(below, keys=tuple(own), values=tuple(values), chosen=True)

    def _cells(self, core: Core, cells: Sequence[Sequence[KeyValue]], node: exp.Expr) -> Cells:
        """The public groups of a core that a later stage reads. Errors: Refused."""
        if len(cells) <= CELLS_MAX:
            kinds = [expression.type for _, expression in core.keys]
            return tuple(tuple(map(Literal, cell, kinds)) for cell in cells)
        raise refuse(
            "too_large",
            "a released table in the private part is refused",
            f"It has {len(cells):,} public groups, and a later stage reads at most {CELLS_MAX}.",
            "group by fewer or coarser keys",
            position=self._text.position(node),
        )

    def member(self, lifter: ExpressionLift, node: exp.In, scope: Scope) -> Expression | None:
        """Whether a value is among released keys, None for IN of any other kind. Errors: Refused."""
        query = node.args["query"].unnest()
        if not isinstance(query, exp.Select) or len(query.expressions) != 1:
            return None
        query = _grouped(query)
        people = any(self._seeker.reads_people(item, self._with(query, scope)) for item in listed(query))
        if people and query.args.get("group") and (_is_cut(query) or not query.args.get("having")):
            consume(node, "this", "query", text=self._text, what="IN")
            return self._listed(lifter, node, query, scope)
        if people and not query.args.get("group"):
            return None
        found = self._released(query, scope)
        if found is None and not people:
            return None
        consume(node, "this", "query", text=self._text, what="IN")
        if found is None or len(found.keys) != 1 or len(found.kinds) != 1:
            raise self._no_list(node)
        value = self._compared(lifter, node, found.kinds[0])
        self._values.warn(node)
        return found.has(value, loose=decides(node))

    def _listed(self, lifter: ExpressionLift, node: exp.In, query: exp.Select, scope: Scope) -> Expression:
        core, arrangement = self._list(query, scope)
        if core is None or len(core.keys) != 1 or arrangement is None or arrangement.columns[0] != core.keys[0][0]:
            raise self._no_list(node)
        value = self._compared(lifter, node, core.keys[0][1].type)
        public = key_domain(core, self._dataset)[1]
        if public is None:
            found = self._hidden_list(core, arrangement, query)
            name, cells = found.name, found.cells
        else:
            name, cells = list_name(arrangement), self._cells(core, public, query)
            self.lists[core.name, name] = arrangement
        self._values.warn(node)
        flags = flags_of(core.name, name, len(cells))
        return StageTable(core.name, cells, (value.type,), (("", 0),), (), flags, hidden=public is None).has(
            value, loose=decides(node)
        )

    def _compared(self, lifter: ExpressionLift, node: exp.In, kind: ColumnType) -> Expression:
        """The value before IN. Errors: Refused where its type is not that of the keys."""
        value = lifter.lift(node.this)
        if value.type is kind:
            return value
        raise refuse(
            "unsupported_type",
            "IN over a released list is refused",
            f"It compares a value of type {value.type.value} with keys of type {kind.value}.",
            "cast the value to the type of the keys",
            position=self._text.position(node),
        )

    def _no_list(self, node: exp.In) -> Refused:
        return refuse(
            "correlated_subquery",
            "IN over a released list is refused",
            "Its nested query has to be one key of a GROUP BY, with HAVING, or with ORDER BY and LIMIT: others "
            "are not answered yet.",
            "ask for the values in a query of their own, and write them as a list",
            position=self._text.position(node),
        )


def _grouped(query: exp.Select) -> exp.Select:
    """SELECT DISTINCT of a column as the GROUP BY that it means; any other query as it is."""
    distinct = query.args.get("distinct")
    if distinct is None or populated(distinct) or query.args.get("group") or aggregate_calls(query.expressions):
        return query
    copy = query.copy()
    copy.set("distinct", None)
    copy.set("group", exp.Group(expressions=[exp.Literal.number(1)]))
    return copy


def _is_cut(node: exp.Select) -> bool:
    return node.args.get("limit") is not None or node.args.get("offset") is not None


def _key_of(block: CoreBlock, tree: exp.Expr) -> str | None:
    """The key of a block that a tree is, as it is and not as a part of one; "" for a part."""
    key = next((key for known, key in block.keys.trees if known == tree), None)
    return "" if key is not None and block.keys.is_part(tree) else key


def _aliases_written(tree: exp.Expr, block: CoreBlock) -> exp.Expr:
    """A condition with what the select list calls so in place of its aliases; columns of the tables come first."""

    def written(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column) or node.table or block.names.knows(node.name):
            return node
        found = block.select.alias(node.name)
        return node if found is None else exp.Paren(this=found.copy())

    return tree.transform(written)
