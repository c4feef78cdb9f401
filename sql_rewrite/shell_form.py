"""The forms of a SELECT block over released relations (`released.py`), written from checked copies of its nodes.

In the simulated form the block is split by the replicate in every window, join and grouping; row filters, orders and
limits are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from privacy.by_slots import by_slots
from sql_rewrite.levels import GROUPINGS, LEVELS
from sql_rewrite.plan import Core
from sql_rewrite.refuse import refuse
from sql_rewrite.released import REPLICATE, Form, Released, aliased, column, quoted
from sql_rewrite.scope import Names, Scope, unknown_column
from sql_rewrite.shell import AS_THEY_ARE, ShellNodes, has_window, partition_windows
from sql_rewrite.syntax import consume, copied, kinds_of, rebuilt

__all__ = ["Block", "NestedQueries", "NodeWriter", "NotSimulated", "write_block"]

_OPERATORS = kinds_of(
    exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ,
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.Is, exp.Between, exp.In, exp.Like, exp.ILike,
    exp.Escape, exp.DPipe,
)  # fmt: skip
_CHAINS = (exp.And, exp.Or, exp.Add, exp.Mul, exp.DPipe)
"""Operators that may stand side by side without brackets when the left one comes first."""

_QUERIES = (exp.Subquery, exp.Query)
_FILTERS = (exp.Where, exp.Having, exp.Qualify)
_CUTS = (exp.Limit, exp.Offset)

_AS_THEY_ARE = AS_THEY_ARE - kinds_of(
    exp.Column, *_QUERIES, exp.Exists, exp.In, *_CUTS, *_FILTERS, exp.Group, exp.Tuple, *LEVELS, *GROUPINGS, exp.Alias
)
"""Nodes that are copied with nothing to look at but their parts."""

_CLAUSES = ("where", "group", "having", "qualify", "order", "limit", "offset")
_NOT_SIMULATED = ("having", "qualify", "order", "limit", "offset")
_DRIVER = "driver$"


class NotSimulated(Exception):
    """A part of a block has no simulated form, so the block has none."""


class NestedQueries:
    """The queries inside expressions of one text, each lifted once, by `lift_query`."""

    def __init__(self, nodes: ShellNodes, lift_query: Callable[[exp.Expr, Scope], Released]) -> None:
        self._nodes = nodes
        self._lift_query = lift_query
        self._known: dict[int, Released] = {}
        self._read = 0

    def released(self, node: exp.Expr, names: Names, scope: Scope) -> Released:
        """The relation of a query inside a block that sees these names."""
        found = self._known.get(id(node))
        if found is None:
            found = self._lift_query(node, Scope(scope.ctes, (*scope.outer, *names.all())))
            self._known[id(node)] = found
            self._read += found.instances
            self._nodes.instances(self._read, node)
        return found

    def alias(self, node: exp.Expr) -> str:
        """The name of a query that was lifted, as a relation."""
        return f"nested{list(self._known).index(id(node))}$"


@dataclass(frozen=True, slots=True)
class NodeWriter:
    """Writes checked copies of nodes, with parameters bound, names quoted and nested queries replaced.

    In the simulated form nested queries follow the replicate of the relation `driver`.
    """

    nodes: ShellNodes
    nested: NestedQueries
    names: Names
    scope: Scope
    form: Form = Form.PLAIN
    driver: str | None = None

    def copy(self, node: exp.Expr) -> exp.Expr:
        """A checked copy. Errors: Refused; NotSimulated when a nested query has no simulated form.

        Operands that are operators themselves get brackets: the generator leaves them out, and the engine would
        read the text with its own precedence.
        """
        if type(node) is exp.Column:
            return self._column(node)
        result = rebuilt(node, self.copy) if type(node) in _AS_THEY_ARE else self._copy(node)
        if type(node) not in _OPERATORS or type(node.parent) not in _OPERATORS:
            return result
        chain = type(node) is type(node.parent) and isinstance(node, _CHAINS) and node.arg_key == "this"
        pattern = isinstance(node.parent, exp.Escape)
        return result if chain or pattern else exp.Paren(this=result)

    def _copy(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column):
            return self._column(node)
        if isinstance(node, exp.Placeholder):
            return self.nodes.literal(node)
        if isinstance(node, _QUERIES):
            return self._value(node)
        if isinstance(node, exp.Exists) or (isinstance(node, exp.In) and node.args.get("query") is not None):
            return self._membership(node)
        if isinstance(node, exp.Any | exp.All):
            return self._quantifier(node)
        if isinstance(node, _CUTS):
            return self._limit(node)
        if isinstance(node, exp.Group):
            consume(node, "expressions", "all", text=self.nodes.text, what="GROUP BY")
        elif isinstance(node, (*LEVELS, *GROUPINGS)) or (
            isinstance(node, exp.Tuple) and isinstance(node.parent, LEVELS)
        ):
            # The rows of several levels have no identity: only the plain form of such a block is built.
            consume(node, "expressions", text=self.nodes.text, what="GROUP BY")
        elif not isinstance(node, _FILTERS):
            self.nodes.check_node(node)
        result = rebuilt(node, self.copy)
        if isinstance(result, exp.Alias) and isinstance(result.args.get("alias"), exp.Identifier):
            result.args["alias"].set("quoted", True)
        return result

    def _column(self, node: exp.Column) -> exp.Expr:
        self.names.check(node, self.nodes.text)
        # Simulated joins have ON in place of USING (`_join`), and two columns of that name.
        simulated = self.form is Form.SIMULATED and not node.table
        return column(node.name, (self.names.owner_of_using(node.name) if simulated else None) or node.table)

    def _released(self, node: exp.Expr) -> Released:
        return self.nested.released(node, self.names, self.scope)

    def _value(self, node: exp.Expr) -> exp.Expr:
        """A query used as a value."""
        inner = self._released(node)
        if self.form is not Form.SIMULATED:
            return exp.Subquery(this=inner.plain())
        simulated = inner.form(Form.SIMULATED)
        if simulated is None or len(inner.outputs) != 1 or self.driver is None:
            raise NotSimulated
        alias = self.nested.alias(node)
        body = exp.Subquery(this=simulated.copy(), alias=exp.TableAlias(this=quoted(alias)))
        select = exp.Select(expressions=[column(inner.outputs[0].name, alias)]).from_(body)
        same = exp.EQ(this=column(REPLICATE, alias), expression=column(REPLICATE, self.driver))
        return exp.Subquery(this=select.where(same, copy=False))

    def _membership(self, node: exp.Exists | exp.In) -> exp.Expr:
        """EXISTS, or IN with a query."""
        if self.form is Form.SIMULATED:
            raise NotSimulated
        if isinstance(node, exp.Exists):
            return exp.Exists(this=self._released(node.this).plain())
        consume(node, "this", "query", text=self.nodes.text, what="IN")
        left = self.copy(node.this)
        return exp.In(this=left, query=exp.Subquery(this=self._released(node.args["query"]).plain()))

    def _quantifier(self, node: exp.Any | exp.All) -> exp.Expr:
        """ANY or ALL rows of a query, beside a comparison."""
        if not isinstance(node.this, _QUERIES):
            raise self.nodes.refusal(node)
        if self.form is Form.SIMULATED:
            raise NotSimulated
        consume(node, "this", text=self.nodes.text, what="ANY or ALL")
        return type(node)(this=exp.Subquery(this=self._released(node.this).plain()))

    def _limit(self, node: exp.Expr) -> exp.Expr:
        consume(node, "expression", text=self.nodes.text, what="LIMIT")
        value = self.copy(node.expression)
        number = value.this if isinstance(value, exp.Paren) else value
        if not isinstance(number, exp.Literal) or number.is_string or not str(number.this).isdigit():
            raise refuse(
                "unsupported_sql",
                f"{'OFFSET' if isinstance(node, exp.Offset) else 'LIMIT'} is refused",
                "Its value must be a whole number, 0 or more.",
                position=self.nodes.text.position(node),
            )
        return type(node)(expression=value)


@by_slots
@dataclass(frozen=True, slots=True)
class Block:
    """What all forms of a SELECT block are written from.

    `aliases` are those of the select list; `keys` the grouping columns that name the rows of a grouped block, None
    where nothing is grouped or its rows have no name.
    """

    node: exp.Select
    projections: Sequence[exp.Expr]
    sources: Sequence[tuple[str, Released]]
    names: Names
    aliases: Sequence[str]
    scope: Scope
    keys: Sequence[exp.Expr] | None


def write_block(
    block: Block, form: Form, nodes: ShellNodes, nested: NestedQueries, cores: Sequence[Core]
) -> exp.Query | None:
    """The tree of a block in a form; None when it has no simulated form. `cores` are those of the query so far."""
    try:
        return _BlockWriter(block, form, nodes, nested, cores).tree()
    except NotSimulated:
        return None


class _BlockWriter:
    def __init__(
        self, block: Block, form: Form, nodes: ShellNodes, nested: NestedQueries, cores: Sequence[Core]
    ) -> None:
        self.block = block
        self.form = form
        self.simulated = form is Form.SIMULATED
        self.text = nodes.text
        self.cores = cores
        self.driver = block.sources[0][0] if block.sources else _DRIVER
        # Keys and conditions of joins read the relations; everything else may also use aliases of the select list.
        self.read = NodeWriter(nodes, nested, block.names, block.scope, form, self.driver)
        self.shown = replace(self.read, names=block.names.with_aliases(block.aliases))

    def tree(self) -> exp.Query:
        """The block. Errors: Refused, NotSimulated."""
        block, node = self.block, self.block.node
        if self.simulated and any(released.form(self.form) is None for _, released in block.sources):
            raise NotSimulated
        copies = [self.shown.copy(projection) for projection in block.projections]
        clauses = {slot: self.shown.copy(node.args[slot]) for slot in _CLAUSES if node.args.get(slot) is not None}
        windows = [self.shown.copy(window) for window in node.args.get("windows") or []]
        if self.simulated:
            self._split(copies, clauses, windows)
        tree = exp.Select()
        # Hidden columns come last: positions in ORDER BY and GROUP BY count the analyst's columns.
        tree.set("expressions", [*copies, *self._hidden()])
        if block.sources:
            self._read_sources(tree)
        elif self.simulated:
            self._read_replicates(tree)
        for slot, clause in clauses.items():
            tree.set(slot, clause)
        if windows:
            tree.set("windows", windows)
        distinct = node.args.get("distinct")
        if distinct is not None:
            consume(distinct, text=self.text, what="DISTINCT")
            tree.set("distinct", exp.Distinct())
        return tree

    def _hidden(self) -> list[exp.Expr]:
        """The hidden columns, after those of the answer."""
        if self.form is Form.PLAIN:
            return []
        values: list[exp.Expr]
        if self.block.keys is not None:
            values = [self.read.copy(key) for key in self.block.keys]
        else:
            values = [
                column(f"id${i}", alias)
                for alias, released in self.block.sources
                for i in range(released.identities or 0)
            ]
        hidden: list[exp.Expr] = [aliased(value, f"id${i}") for i, value in enumerate(values)]
        if self.simulated:
            hidden.insert(0, aliased(column(REPLICATE, self.driver), REPLICATE))
        return hidden

    def _split(self, copies: list[exp.Expr], clauses: dict[str, exp.Expr], windows: list[exp.Expr]) -> None:
        """Splits windows and groups by the replicate, and leaves out what filters, sorts or cuts rows."""
        windowed = has_window([*copies, *windows])
        partition_windows([*copies, *windows], self.driver)
        for window in windows:
            if isinstance(window, exp.Window):
                window.set("partition_by", [column(REPLICATE, self.driver), *(window.args.get("partition_by") or [])])
        for slot in _NOT_SIMULATED:
            clauses.pop(slot, None)
        keys = self.block.keys
        if keys is not None:
            replicate = column(REPLICATE, self.driver)
            clauses["group"] = exp.Group(expressions=[replicate, *(self.read.copy(key) for key in keys)])
        elif not windowed:
            clauses.pop("where", None)

    def _read_replicates(self, tree: exp.Select) -> None:
        """Reads the replicates themselves, for a block without FROM."""
        if not self.cores:
            raise NotSimulated
        first = exp.Select(expressions=[column(REPLICATE)], distinct=exp.Distinct()).from_(
            exp.Table(this=quoted(self.cores[0].name))
        )
        alias = exp.TableAlias(this=quoted(_DRIVER))
        tree.set("from_", exp.From(this=exp.Subquery(this=first, alias=alias)))

    def _relation(self, place: int) -> exp.Expr:
        alias, released = self.block.sources[place]
        # A grouped block names its rows by keys, so its sources need no identity of their own.
        chosen = released.form(self.form if released.identities is not None or self.simulated else Form.PLAIN)
        assert chosen is not None
        return exp.Subquery(this=copied(chosen), alias=exp.TableAlias(this=quoted(alias)))

    def _read_sources(self, tree: exp.Select) -> None:
        """Sets FROM and the joins."""
        tree.set("from_", exp.From(this=self._relation(0)))
        for place, join in enumerate(self.block.node.args.get("joins") or [], start=1):
            tree.append("joins", self._join(place, join))

    def _join(self, place: int, join: exp.Join) -> exp.Join:
        names, alias = self.block.names, self.block.sources[place][0]
        consume(join, "this", "on", "using", "side", "kind", text=self.text, what="a join")
        side, kind = str(join.args.get("side") or "").upper(), str(join.args.get("kind") or "").upper()
        if side not in ("", "LEFT", "RIGHT", "FULL") or kind not in ("", "INNER", "CROSS", "OUTER"):
            raise refuse(
                "unsupported_sql",
                f"a {side or kind} join is refused".lower(),
                "Only inner, left, right, full and cross joins of released numbers are answered.",
                position=self.text.position(join.this),
            )
        if self.simulated and side in ("RIGHT", "FULL"):
            raise NotSimulated
        using = [identifier.copy() for identifier in join.args.get("using") or []]
        for identifier in using:
            if identifier.name.lower() not in names.unqualified():
                raise unknown_column(exp.column(identifier.name), names.all(), self.text)
            identifier.set("quoted", True)
        on = join.args.get("on")
        condition = None if on is None else self.read.copy(on)
        new = exp.Join(this=self._relation(place), side=join.args.get("side"), kind=join.args.get("kind"))
        if self.simulated:
            same: exp.Expr = self._equal(REPLICATE, alias, self.driver)
            for identifier in using:
                before = names.owner_of_using(identifier.name, place - 1)
                if before is None:
                    raise unknown_column(exp.column(identifier.name), names.all(), self.text)
                same = exp.and_(same, self._equal(identifier.name, alias, before))
            condition = same if condition is None else exp.and_(same, exp.paren(condition))
            using = []
            new.set("kind", None)
        if condition is not None:
            new.set("on", condition)
        if using:
            new.set("using", using)
        return new

    def _equal(self, name: str, alias: str, before: str) -> exp.EQ:
        return exp.EQ(this=column(name, alias), expression=column(name, before))
