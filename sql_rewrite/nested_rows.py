"""Nested blocks that select rows about people: what a block around them, or a private expression, reads of them.

    SELECT AVG(n) FROM (SELECT person_id, COUNT(*) AS n FROM visits GROUP BY person_id) AS t
    rows:  those of a source that groups by the unit (unit_groups.py)

Filters, unions, windows and groups within the unit have a reader each; this one chooses among them.
"""

from __future__ import annotations

from functools import partial

from sqlglot import exp

from privacy.policy import Table
from privacy.refusal import Refused
from sql_rewrite.base_tables import base_table
from sql_rewrite.expressions import Expression
from sql_rewrite.from_items import mixed
from sql_rewrite.joins import resolve_sources
from sql_rewrite.known_lookup import looked_up
from sql_rewrite.known_rows import KnownTable
from sql_rewrite.lift_expression import ExpressionLift, Member
from sql_rewrite.lifting import SELECT_SLOTS, Lifting
from sql_rewrite.membership import Membership
from sql_rewrite.nested_block import Around
from sql_rewrite.refuse import refuse
from sql_rewrite.repeated_rows import Side, by_numbers, repeats
from sql_rewrite.row_unions import united
from sql_rewrite.rows import Rows
from sql_rewrite.rows_block import RowsBlock, listed
from sql_rewrite.scope import Scope
from sql_rewrite.sources import SourceNames
from sql_rewrite.stage_tables import StageTable
from sql_rewrite.stages import reads_outside
from sql_rewrite.syntax import consume
from sql_rewrite.unit_facts import names_unit
from sql_rewrite.unit_groups import UnitBlock
from sql_rewrite.unit_modes import with_modes
from sql_rewrite.unit_windows import windowed
from sql_rewrite.window_blocks import window_block

__all__ = ["NestedRows"]

NESTED_MAX = 200
"""Most nested blocks of rows that are read, each as often as it is used."""


class NestedRows:
    """Reads the nested blocks of one text that select rows about people."""

    def __init__(self, lift: Lifting) -> None:
        self._lift = lift
        self._unit_blocks: dict[int, UnitBlock | None] = {}
        self._nested = 0
        self._kept: list[exp.Expr] = []
        """Trees that were made here: what is known of a tree is found by its identity."""

    def by_unit(self, node: exp.Select, scope: Scope) -> UnitBlock | None:
        """The block as one that groups rows within each unit, None for any other block. Each block is read once."""
        distinct = node.args.get("distinct")
        if node.args.get("group") is None and (distinct is None or distinct.args.get("on") is not None):
            return None
        if id(node) not in self._unit_blocks:
            self._unit_blocks[id(node)] = self._read_by_unit(node, scope)
        return self._unit_blocks[id(node)]

    def _read_by_unit(self, node: exp.Select, scope: Scope) -> UnitBlock | None:
        if not all(
            self._lift.seeker.reads_rows(item, scope) or self._lift.seeker.constants(item, scope) is not None
            for item in listed(node)
        ):
            return None
        try:
            tables, _ = self._lift.listed(node, scope, 0, people=True)
            names = resolve_sources(node, tables, self._lift.dataset, self._lift.text)
        except Refused:
            return None  # read as any other block it is refused for the same reason
        block = UnitBlock(node, names, self._around(node, names, scope))
        return block if block.by_unit() else None

    def rows(self, node: exp.Expr, scope: Scope, first: int) -> Rows:
        """The rows of a nested query; its tables are called r and a number, from `first` on. Errors: Refused."""
        if isinstance(node, exp.Subquery):
            consume(node, "this", "alias", "with_", text=self._lift.text, what="a bracketed query")
            return self.rows(node.this, self._lift.with_(node, scope), first)
        if isinstance(node, exp.SetOperation):
            scope = self._lift.with_(node, scope)
            left, right = self.rows(node.this, scope, 0), self.rows(node.expression, scope, 0)
            written = by_numbers(node, *map(_side, (left, right))) if repeats(node) else None
            if written is not None:
                self._kept.append(written)
                return self.rows(written, scope, first)
            return united(node, left, right, f"r{first}", self._lift.dataset, self._lift.text)
        assert isinstance(node, exp.Select)
        # A CTE is read at every use, and what it reads as well: without a limit their number doubles with each of them.
        self._nested += 1
        if self._nested > NESTED_MAX:
            raise refuse(
                "too_large",
                "the query is refused",
                f"Written out it has more than {NESTED_MAX} nested queries.",
                "use fewer CTEs, or each of them once",
                position=self._lift.text.position(node),
            )
        consume(node, *SELECT_SLOTS, text=self._lift.text, what="SELECT")
        scope = self._lift.with_(node, scope)
        # What windows compute is a source of its own, in which tables have names of their own.
        own = windowed(node)
        grouped = None if own else self.by_unit(node, scope)
        written = None if grouped is None else with_modes(node, self._lift.text, grouped.knows)
        if written is not None:
            self._kept.append(written)
            return self.rows(written, scope, first)
        if grouped is not None:
            rows = grouped.rows(f"r{first}")
            self._lift.warnings.extend(grouped.warnings)
            return rows
        tables, released = self._lift.listed(node, scope, 0 if own else first, people=True)
        if released:
            raise mixed(node, self._lift.text)
        public = not own and not any(self._lift.seeker.reads_people(item, scope) for item in listed(node))
        start = 0 if own else first
        names = resolve_sources(node, tables, self._lift.dataset, self._lift.text, first=start, public=public)
        block = (window_block if own else RowsBlock)(node, names, self._around(node, names, scope))
        rows = block.rows() if isinstance(block, RowsBlock) else block.rows(f"r{first}")
        self._lift.warnings.extend(block.warnings)
        return rows

    def _around(self, node: exp.Select, names: SourceNames, scope: Scope) -> Around:
        """What a block with these names has around it."""
        scalar = partial(self._lift.stages.scalar, scope=Scope(scope.ctes), outside=names)
        return Around(
            self._lift.dataset, self._lift.text, self._lift.parameters, self.member(node, names, scope), scalar
        )

    def member(self, block: exp.Select, names: SourceNames, scope: Scope) -> Member:
        """What reads nested queries in the private expressions of a block with these names."""
        inside = Scope(scope.ctes)

        def rows(node: exp.Expr) -> Rows | None:
            return self.rows(node, inside, 0) if self._lift.seeker.of_rows(node, inside) else None

        def public(item: exp.Table) -> Table | None:
            if not item.args.get("db") and item.name.lower() in inside.ctes:
                return None
            table = base_table(item, self._lift.dataset, self._lift.text)
            return None if table.protected else table

        def constants(node: exp.Select) -> Rows | None:
            items = listed(node)
            if len(items) != 1 or self._lift.seeker.constants(items[0], inside) is None:
                return None
            tables, _ = self._lift.listed(node, inside, 0, people=True)
            ((_, found),) = tables
            return found if isinstance(found, Rows) else None

        def known(node: exp.Expr, made: bool) -> KnownTable | None:  # noqa: FBT001 - a Callable has no names
            if not (self._lift.known.makes if made else self._lift.known.knows)(node, inside):
                return None
            try:
                return self._lift.known.table(node, inside)
            except Refused as refused:
                if reads_outside(node, refused, names):
                    return None  # that is refused by its own name
                raise

        def inner(node: exp.Select) -> SourceNames | None:
            items = listed(node)
            if not all(self._lift.seeker.reads_rows(item, inside) for item in items):
                return None
            if not any(self._lift.seeker.reads_people(item, inside) for item in items):
                return None
            tables, _ = self._lift.listed(node, inside, 0, people=True)
            return resolve_sources(node, tables, self._lift.dataset, self._lift.text)

        def lookup(lifter: ExpressionLift, node: exp.Subquery) -> Expression | None:
            return looked_up(self._lift.known, inside, lifter, node, self._lift.text)

        def keys(lifter: ExpressionLift, node: exp.In) -> Expression | None:
            return None if self._lift.nonempty else self._lift.stages.groups.member(lifter, node, inside)

        def groups(node: exp.Expr) -> StageTable | None:
            if self._lift.nonempty or node.find(exp.Order, exp.Limit) is not None:
                return None
            table = self._lift.stages.groups.table(node, inside)
            if table is not None:
                self._lift.stages.warn(node)
            return table

        return Membership(
            block,
            names,
            self._lift.dataset,
            self._lift.text,
            rows=rows,
            inner=inner,
            public=public,
            constants=constants,
            known=known,
            scalar=lambda node: self._lift.stages.scalar(node, inside, names),
            looked_up=lookup,
            listed=keys,
            groups=groups,
        ).read


def _side(rows: Rows) -> Side:
    """The columns of a side of a set operation, and which of them is the unit's key."""
    units = [name for name, column in rows.columns if names_unit(column, rows.sources)]
    return Side(tuple(name for name, _ in rows.columns), units[0] if units else None)
