"""The shell block that replaces a private block: the same block over the core's released table.

Keys and aggregates become columns of that table, and HAVING becomes WHERE.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from privacy.aggregate import AggregateFunction
from privacy.policy import ColumnType
from privacy.refusal import Refused
from sql_rewrite.aggregate_calls import NESTED, aggregate_calls
from sql_rewrite.expressions import Expression, canonical
from sql_rewrite.fraction_keys import divided
from sql_rewrite.identifying import identifying_column
from sql_rewrite.levels import GROUPINGS, Levels
from sql_rewrite.lift_expression import ExpressionLift
from sql_rewrite.plan import Aggregate
from sql_rewrite.quantile_moments import Shown, as_interval, as_moment
from sql_rewrite.refuse import refuse
from sql_rewrite.released import aliased, column
from sql_rewrite.select_list import SelectList
from sql_rewrite.shell import ShellNodes, output_name
from sql_rewrite.sources import SourceNames
from sql_rewrite.spelling import named
from sql_rewrite.syntax import NODES_MAX, consume, copied, rebuilt

__all__ = ["CoreShell", "KeyNames"]

_NO_KEYS = (exp.Column, exp.Literal, exp.Identifier)
"""What is a key by its own tree only."""


@dataclass(frozen=True, slots=True)
class KeyNames:
    """The columns that keys have in the shell: by the tree of a key, and by its canonical form."""

    trees: list[tuple[exp.Expr, str]] = field(default_factory=list)
    forms: dict[str, str] = field(default_factory=dict)
    divisors: list[tuple[exp.Expr, int]] = field(default_factory=list)
    """The trees that stand for a key divided by a constant (`fraction_keys`)."""
    intervals: list[exp.Expr] = field(default_factory=list)
    """The trees that stand for the interval of a key's microseconds."""

    def is_part(self, node: exp.Expr) -> bool:
        """Whether a tree stands for what is made of a key, and not for the key itself."""
        return any(known == node for known in (*self.intervals, *(tree for tree, _ in self.divisors)))


class CoreShell:
    """Writes the block over the released table of a core. `aggregates` are those of its calls."""

    def __init__(
        self,
        node: exp.Select,
        *,
        core: str,
        select: SelectList,
        keys: KeyNames,
        aggregates: Mapping[exp.Expr, Aggregate],
        moments: Mapping[exp.Expr, Shown],
        names: SourceNames,
        lifter: ExpressionLift,
        nodes: ShellNodes,
        levels: Levels | None = None,
    ) -> None:
        self._levels = levels
        self._node = node
        self._core = core
        self._select = select
        self._keys = keys
        self._aggregates = aggregates
        self._moments = moments
        self._names = names
        self._lifter = lifter
        self._nodes = nodes
        self._text = nodes.text
        self._written = 0

    def block(self) -> exp.Select:
        """The block. Errors: Refused."""
        args, tree = self._node.args, exp.Select()
        projections: list[exp.Expr] = []
        for written, value in zip(self._select.written, self._select.values, strict=True):
            # The output's name comes from the analyst's text, so it is taken before the rewrite.
            name = written.alias if isinstance(written, exp.Alias) else output_name(self._text, written)
            projections.append(aliased(self._rewrite(value), name))
        tree.set("expressions", projections)
        for slot, kind in (("having", exp.Where), ("qualify", exp.Qualify)):
            clause = args.get(slot)
            if clause is not None:
                consume(clause, "this", text=self._text, what=slot.upper())
                tree.set(kind.key, kind(this=self._rewrite(self._names.qualified(clause.this))))
        order = args.get("order")
        if order is not None:
            consume(order, "expressions", text=self._text, what="ORDER BY")
            tree.set("order", exp.Order(expressions=[self._ordered(item) for item in order.expressions]))
        if args.get("windows"):
            tree.set("windows", [self._rewrite(self._names.qualified(window)) for window in args["windows"]])
        for slot in ("limit", "offset", "distinct"):
            if args.get(slot) is not None:
                tree.set(slot, args[slot].copy())
        return tree

    def _ordered(self, item: exp.Expr) -> exp.Expr:
        if not isinstance(item, exp.Ordered):
            raise self._nodes.refusal(item)
        inner = item.this.unnest()
        copy = copied(item)
        alias = isinstance(inner, exp.Column) and not inner.table and self._select.alias(inner.name) is not None
        position = isinstance(inner, exp.Literal) and not inner.is_string
        if not alias and not position and not isinstance(inner, exp.Var):
            copy.set("this", self._rewrite(self._select.shown(inner) or self._names.qualified(inner)))
        return copy

    def _rewrite(self, node: exp.Expr, inlined: tuple[str, ...] = ()) -> exp.Expr:
        """A copy of a node in which keys and aggregates are columns of the core's released table."""
        # Each alias that is written out may hold others twice: without a limit their number doubles each time.
        self._written += 1
        if self._written > NODES_MAX:
            raise refuse(
                "too_large",
                "the query is refused",
                "Its aliases stand for each other so often that it is too large once they are written out.",
                "compute such columns in a query around this one",
                position=self._text.position(self._node),
            )
        if isinstance(node, NESTED):
            named_key = next((name for tree, name in self._keys.trees if tree == node), None)
            return node if named_key is None else column(named_key, self._core)
        if isinstance(node, GROUPINGS):
            if self._levels is None:
                raise self._nodes.refusal(node)
            return column(self._grouping(node, self._levels), self._core)
        aggregate = self._aggregates.get(node)
        if aggregate is not None:
            kind = self._moments.get(node)
            value = column(aggregate.name, self._core)
            if aggregate.function is AggregateFunction.PRESENT:
                called = node.this if isinstance(node, exp.Filter) else node
                # Of BOOL_AND the rows are counted that contradict it.
                here = exp.EQ if isinstance(called, exp.LogicalAnd) else exp.GT
                return exp.Paren(this=here(this=value, expression=exp.Literal.number(0)))
            return value if kind is None else as_moment(value, aggregate, kind)
        key = self._key(node)
        if key is not None:
            if any(tree == node for tree in self._keys.intervals):
                return as_interval(column(key, self._core))
            divisor = next((number for tree, number in self._keys.divisors if tree == node), 1)
            return column(key, self._core) if divisor == 1 else divided(column(key, self._core), divisor)
        if isinstance(node, exp.Column):
            if not node.table and self._names.knows(node.name):
                self._names.resolve(node)  # an ambiguous one says so: an alias of that name does not hide the columns
            alias = self._select.alias(node.name) if not node.table else None
            if alias is not None and node.name.lower() not in inlined:
                return exp.Paren(this=self._rewrite(alias, (*inlined, node.name.lower())))
            found = self._names.resolve(node)  # an unknown column says so first
            self._check_functions(node)  # and then an unknown function
            raise refuse(
                "raw_rows",
                f'column "{node.name[:63]}" outside an aggregate is refused',
                "It is not a key of GROUP BY, so it would show values of people.",
                *self._grouped_or_not(node, found),
                position=self._text.position(node),
            )
        result = rebuilt(node, lambda part: self._rewrite(part, inlined))
        result.meta.update(node.meta)
        return result

    def _grouping(self, node: exp.Expr, levels: Levels) -> str:
        """The column of GROUPING of some keys. Errors: Refused."""
        consume(node, "expressions", text=self._text, what="GROUPING")
        keys = [self._key(self._key_written(part)) for part in node.expressions]
        known = [key for key in keys if key is not None]
        if not known or len(known) < len(keys):
            raise refuse(
                "unsupported_sql",
                "GROUPING is refused",
                "It takes keys of GROUP BY, and nothing else.",
                position=self._text.position(node),
            )
        return levels.grouping(known)

    def _key_written(self, node: exp.Expr) -> exp.Expr:
        """What a key stands for that GROUPING names: an alias of the select list, or an expression."""
        alias = isinstance(node, exp.Column) and not node.table and not self._names.knows(node.name)
        return (self._select.alias(node.name) if alias else None) or self._names.qualified(node)

    def _grouped_or_not(self, node: exp.Column, found: Expression) -> tuple[str, ...]:
        """How a column can be asked for: as a key, where it can be one."""
        key = found.type is not ColumnType.NUMBER and identifying_column(found) is None
        if not key or self._levels is not None or node.find_ancestor(exp.WithinGroup) is not None:
            return ("aggregate it: COUNT, SUM, AVG, MEDIAN",)
        place = self._text.position(node)
        return (f"add {named(node.name) if place is None else place.text[:80]} to GROUP BY, or aggregate it",)

    def _check_functions(self, node: exp.Expr) -> None:
        """Refuses the function around a column that is answered nowhere: GROUP BY would not help it."""
        around = node.parent
        while around is not None and not isinstance(around, NESTED):
            if isinstance(around, exp.Func) and not self._lifter.knows(around) and not self._nodes.allows(around):
                raise self._lifter.refusal(around)
            around = around.parent

    def _key(self, node: exp.Expr) -> str | None:
        for tree, name in self._keys.trees:
            if tree == node:
                return name
        if not self._keys.forms or isinstance(node, _NO_KEYS):
            return None
        if not isinstance(node, exp.Condition) or aggregate_calls([node]) or node.find(exp.Query, exp.Window):
            return None
        if not any(self._names.is_source(c) for c in node.find_all(exp.Column)):
            return None
        try:
            return self._keys.forms.get(repr(canonical(self._lifter.lift(node))))
        except Refused:
            return None
