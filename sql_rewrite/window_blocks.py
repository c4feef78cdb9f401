"""Blocks with windows beside GROUP BY or DISTINCT, which are two: windows are over groups, DISTINCT over windows.

    SELECT person_id, ward, COUNT(*) AS n FROM visits GROUP BY ALL
    QUALIFY ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY n DESC) = 1
    inner:  SELECT person_id AS k0, ward AS k1, COUNT(*) AS a0 FROM visits GROUP BY person_id, ward
    outer:  SELECT k0 AS person_id, k1 AS ward, a0 AS n FROM inner
            QUALIFY ROW_NUMBER() OVER (PARTITION BY k0 ORDER BY n DESC) = 1

Claim. Both are what the text means: SQL computes windows after groups and HAVING, and DISTINCT after windows and
QUALIFY. So the result is unit-local as each of the two blocks is (unit_groups.py, unit_windows.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from privacy.refusal import Finding
from sql_rewrite.aggregate_calls import NESTED, aggregate_calls
from sql_rewrite.entries import View
from sql_rewrite.nested_block import Around
from sql_rewrite.refuse import refuse
from sql_rewrite.rows import Rows
from sql_rewrite.select_list import SelectList
from sql_rewrite.shell import output_name
from sql_rewrite.sources import SourceNames
from sql_rewrite.syntax import rebuilt
from sql_rewrite.unit_groups import UnitBlock
from sql_rewrite.unit_windows import WindowBlock

__all__ = ["DistinctWindows", "GroupedWindows", "window_block"]

_INNER = "q$"
"""The relation of the inner block's rows, whose columns are named by us."""


def window_block(
    node: exp.Select, names: SourceNames, around: Around
) -> WindowBlock | GroupedWindows | DistinctWindows:
    """What reads a block with windows. Errors: Refused (raw_rows, unsupported_sql)."""
    if node.args.get("group") is not None:
        return GroupedWindows(node, names, around)
    distinct = node.args.get("distinct")
    if distinct is not None and distinct.args.get("on") is None:
        return DistinctWindows(node, names, around)
    return WindowBlock(node, names, around)


def _over(rows: Rows, around: Around) -> tuple[SourceNames, Around]:
    """The names of a block that reads these rows alone, and what it has around it."""
    names = SourceNames((View(_INNER, rows),), {_INNER: _INNER}, around.text, around.dataset)
    return names, replace(around, member=None)


class GroupedWindows:
    """A block that groups by the unit, with windows over its groups."""

    def __init__(self, node: exp.Select, names: SourceNames, around: Around) -> None:
        self._node = node
        self._names = names
        self._around = around
        self._select = SelectList(node, names, around.text)
        self._written = UnitBlock(node, names, around)
        self._inner: list[tuple[exp.Expr, str]] = []
        self.warnings: list[Finding] = []

    def rows(self, relation: str) -> Rows:
        """What the block stands for, under that name of its source. Errors: Refused."""
        node, text = self._node, self._around.text
        keys = self._written.key_nodes()
        self._inner = [(key, f"k{i}") for i, key in enumerate(keys)]
        listed: list[exp.Expr] = []
        for written, value in zip(self._select.written, self._select.values, strict=True):
            shown = written.alias if isinstance(written, exp.Alias) else output_name(text, written)
            listed.append(exp.alias_(self._above(value), shown, quoted=True))
        outer = exp.Select(expressions=listed, from_=node.args["from_"])
        for clause in ("qualify", "order", "limit", "offset", "distinct"):
            if node.args.get(clause) is not None:
                outer.set(clause, self._above(self._names.qualified(node.args[clause])))
        outer.set("windows", [self._above(self._names.qualified(one)) for one in node.args.get("windows") or []])
        having = node.args.get("having")
        inner = exp.Select(
            expressions=[exp.alias_(tree.copy(), name, quoted=True) for tree, name in self._inner],
            group=exp.Group(expressions=[tree.copy() for tree in keys]),
            having=None if having is None else self._written.with_aliases(self._names.qualified(having)),
            **{clause: node.args.get(clause) for clause in ("from_", "joins", "where")},
        )
        below = UnitBlock(inner, self._names, self._around)
        rows = below.rows("r0")
        above = WindowBlock(outer, *_over(rows, self._around))
        found = above.rows(relation)
        self.warnings += [*below.warnings, *above.warnings]
        return found

    def _above(self, node: exp.Expr) -> exp.Expr:
        """The node with keys and aggregates as columns of the inner block. Errors: Refused, for any other column."""
        for tree, name in self._inner:
            if node == tree:
                return self._column(name, node)
        if isinstance(node, NESTED):
            return node
        if isinstance(node, exp.Window):
            call = node.this
            kept = call if isinstance(call, exp.Identifier) else self._parts(call)
            result = self._parts(node, without=("this",))
            result.set("this", kept)
            return result
        if aggregate_calls([node]) == [node]:
            name = f"a{len(self._inner)}"
            self._inner.append((node, name))
            return self._column(name, node)
        if isinstance(node, exp.Column) and (node.table or self._names.knows(node.name)):
            self._written.column(node)
        return self._parts(node)

    def _parts(self, node: exp.Expr, without: Sequence[str] = ()) -> exp.Expr:
        """The node with its parts changed; of a call in a window the FILTER's call is the call itself."""
        if isinstance(node, exp.Filter | exp.IgnoreNulls) and "this" not in without:
            result = self._parts(node, without=("this",))
            result.set("this", self._parts(node.this))
            return result
        kept = {name: node.args[name] for name in without}
        result = rebuilt(type(node)(**{**node.args, **dict.fromkeys(without)}), self._above)
        for name, value in kept.items():
            result.set(name, value)
        result.meta.update(node.meta)
        return result

    def _column(self, name: str, node: exp.Expr) -> exp.Expr:
        found = exp.column(exp.to_identifier(name, quoted=True))
        found.meta.update(node.meta)
        return found


class DistinctWindows:
    """A block with windows of whose rows only different ones are kept."""

    def __init__(self, node: exp.Select, names: SourceNames, around: Around) -> None:
        self._node = node
        self._around = around
        self._names = names
        self.warnings: list[Finding] = []

    def rows(self, relation: str) -> Rows:
        """What the block stands for, under that name of its source. Errors: Refused."""
        plain = self._node.copy()
        plain.set("distinct", None)
        below = WindowBlock(plain, self._names, self._around)
        rows = below.rows("r0")
        named = [(f"c{i}", shown, found) for i, (shown, found) in enumerate(rows.columns)]
        over = Rows(rows.sources, rows.where, tuple((name, found) for name, _, found in named))
        different = exp.Select(
            expressions=[
                exp.alias_(exp.column(exp.to_identifier(name, quoted=True)), shown, quoted=True)
                for name, shown, _ in named
            ],
            distinct=self._node.args["distinct"],
            from_=self._node.args["from_"],
        )
        above = UnitBlock(different, *_over(over, self._around))
        if not above.by_unit():
            raise refuse(
                "private_row_limit",
                "DISTINCT on private rows is refused",
                "It would list which values exist: the key of the privacy unit is not among its columns.",
                "add the key of the privacy unit to the select list",
                position=self._around.text.position(self._node),
            )
        found = above.rows(relation)
        self.warnings += [*below.warnings, *above.warnings]
        return found
