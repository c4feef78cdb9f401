"""FULL JOIN of two tables of people, or of rows about them: written out as a union, before it is lifted.

    SELECT COALESCE(a.person_id, b.person_id), a.x, b.y FROM a FULL JOIN b ON a.person_id = b.person_id
    SELECT unit, l0, r0 FROM (SELECT a.person_id AS unit, a.x AS l0, b.y AS r0 FROM a LEFT JOIN b ON ...
                              UNION ALL SELECT b.person_id, NULL, b.y FROM b WHERE NOT EXISTS (SELECT 1 FROM a ...))

Claim. Both have the same rows, and each row has one unit. Proof: the rows of a full join are those that meet a row of
the other side, those of the left that meet none, and those of the right that meet none; a row of the right meets none
exactly where no row of the left has its key. All of it is unit-local as its parts are: a join on the unit, an
anti-join on the unit, a union. A row that meets none belongs to its own unit, so COALESCE of both keys is the unit.

Where the keys are the unit's, a unit has rows in one branch alone: the first holds units with rows on the left, the
second units without. So it has at most as many as in the larger of the two, and one where each side has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from privacy.refusal import Refused
from sql_rewrite.entries import ambiguous_column
from sql_rewrite.refuse import refuse
from sql_rewrite.shell import output_name
from sql_rewrite.syntax import consume, rebuilt
from sql_rewrite.text import Text

__all__ = ["APART", "Side", "full_join", "write_out"]

APART = "apart"
"""Marks a union of which a unit has rows in one branch alone."""

_WHOLE = "full$"
_UNIT = "unit"
_NESTED = (exp.Query, exp.Subquery)
_CLAUSES = ("where", "group", "having", "qualify", "order", "distinct")


@dataclass(frozen=True, slots=True)
class Side:
    """One side: what FROM lists, the names of its columns, and those that are the unit's key in every row."""

    item: exp.Expr
    columns: tuple[str, ...]
    units: tuple[str, ...]

    @property
    def name(self) -> str:
        """What the text calls it."""
        return str(self.item.alias_or_name)

    def own(self, name: str) -> str | None:
        """The declared name of a column (ASCII case does not matter)."""
        return next((column for column in self.columns if column.lower() == name.lower()), None)

    def column(self, name: str) -> exp.Column:
        """A column of it, as SQL."""
        return exp.column(_quoted(name), table=_quoted(self.name))


def full_join(node: exp.Select) -> exp.Join | None:
    """The FULL JOIN of a block whose FROM lists two relations joined so; None for any other block."""
    joins = node.args.get("joins") or []
    full = len(joins) == 1 and str(joins[0].args.get("side") or "").upper() == "FULL"
    return joins[0] if full and not joins[0].args.get("method") else None


def write_out(node: exp.Select, sides: tuple[Side, Side], text: Text) -> None:
    """Changes a block with a FULL JOIN into one over the union. Errors: Refused (join_not_on_key, ...)."""
    _Full(node, sides, text).write()


class _Full:
    def __init__(self, node: exp.Select, sides: tuple[Side, Side], text: Text) -> None:
        self._node = node
        self._sides = sides
        self._text = text
        join = node.args["joins"][0]
        consume(join, "this", "on", "using", "side", "kind", text=text, what="a join")
        self._using = bool(join.args.get("using"))
        self._keys = self._read_keys(join)
        self._places: dict[tuple[int, str], str] = {}
        self._aliases = {one.alias.lower() for one in node.expressions if isinstance(one, exp.Alias)}

    def _read_keys(self, join: exp.Join) -> tuple[str, str]:
        """The columns of both sides that ON or USING compares."""
        using, on = join.args.get("using") or [], join.args.get("on")
        if len(using) == 1 and on is None:
            found = [side.own(using[0].name) for side in self._sides]
        else:
            while isinstance(on, exp.Paren):
                on = on.this
            ends = [on.this, on.expression] if isinstance(on, exp.EQ) else []
            named = [self._find(end) for end in ends if isinstance(end, exp.Column)]
            by_side = {place[0]: place[1] for place in named if place is not None}
            found = [by_side.get(0), by_side.get(1)]
        if found[0] is None or found[1] is None:
            raise self._refused(join)
        return found[0], found[1]

    def _refused(self, join: exp.Join) -> Refused:
        return refuse(
            "join_not_on_key",
            "a FULL JOIN is refused",
            "It is answered on one equality of both sides' columns, that of the privacy unit's key.",
            "write other conditions in nested queries on either side",
            position=self._text.position(join.this),
        )

    def _find(self, node: exp.Column) -> tuple[int, str] | None:
        """The side and column that a node names; None for another name. Errors: Refused (ambiguous_column)."""
        found = []
        for number, side in enumerate(self._sides):
            own = side.own(node.name) if not node.table or node.table.lower() == side.name.lower() else None
            if own is not None:
                found.append((number, own))
        if len(found) > 1:
            raise ambiguous_column(node, [side.name for side in self._sides], self._text)
        return found[0] if found else None

    def write(self) -> None:
        """Replaces the join and every column of the block."""
        node, (left, right) = self._node, self._sides
        listed = []
        for written in node.expressions:
            name = written.alias if isinstance(written, exp.Alias) else output_name(self._text, written)
            listed.append(exp.alias_(self._changed(written.unalias()), name, quoted=True))
        for clause in _CLAUSES:
            if node.args.get(clause) is not None:
                node.set(clause, self._changed(node.args[clause], shown=clause == "order"))
        node.set("windows", [self._changed(window) for window in node.args.get("windows") or []])
        node.set("expressions", listed)
        keys = [side.column(key) for side, key in zip(self._sides, self._keys, strict=True)]
        missing = exp.Select(
            expressions=[exp.Literal.number(1)],
            from_=exp.From(this=left.item.copy()),
            where=exp.Where(this=self._keyed()),
        )
        equal = exp.EQ(this=keys[0].copy(), expression=keys[1].copy())
        both = exp.Select(
            expressions=[exp.alias_(keys[0], _UNIT, quoted=True), *self._read(None)],
            from_=exp.From(this=left.item.copy()),
            joins=[exp.Join(this=right.item.copy(), side="LEFT", on=equal)],
        )
        alone = exp.Select(
            expressions=[exp.alias_(keys[1], _UNIT, quoted=True), *self._read(0)],
            from_=exp.From(this=right.item.copy()),
            where=exp.Where(this=exp.Not(this=exp.Exists(this=missing))),
        )
        union = exp.Union(this=both, expression=alone, distinct=False)
        union.meta[APART] = self._keys[0] in left.units and self._keys[1] in right.units
        whole = exp.Subquery(this=union, alias=exp.TableAlias(this=_quoted(_WHOLE)))
        node.set("from_", exp.From(this=whole))
        node.set("joins", None)

    def _keyed(self) -> exp.Expr:
        """That a row of the left has the key of a row of the right."""
        left, right = (side.column(key) for side, key in zip(self._sides, self._keys, strict=True))
        return exp.EQ(this=left, expression=right)

    def _read(self, missing: int | None) -> list[exp.Expr]:
        """The columns that are read, those of a side that is missing as NULL."""
        return [
            exp.alias_(exp.Null() if side == missing else self._sides[side].column(name), place, quoted=True)
            for (side, name), place in self._places.items()
        ]

    def _changed(self, node: exp.Expr, *, shown: bool = False) -> exp.Expr:
        """The node over the union. With `shown` a name that the select list gives is left as it is."""
        if isinstance(node, _NESTED):
            return node
        if isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count):
            raise refuse(
                "unsupported_sql",
                "* of a FULL JOIN is refused",
                "Columns of both sides may be NULL, and the key is one of either.",
                "name the columns that are needed, and COALESCE(a.key, b.key)",
                position=self._text.position(node),
            )
        if isinstance(node, exp.Coalesce) and self._names_unit([node.this, *node.expressions]):
            return self._made(_UNIT, node)
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            if not node.table and shown and node.name.lower() in self._aliases:
                return node
            if not node.table and self._using and node.name.lower() == self._keys[0].lower():
                return self._made(_UNIT, node)
            found = self._find(node)
            if found is None:
                return node
            return self._made(self._places.setdefault(found, f"{'lr'[found[0]]}{len(self._places)}"), node)
        result = rebuilt(node, lambda part: self._changed(part, shown=shown))
        result.meta.update(node.meta)
        return result

    def _names_unit(self, arguments: Sequence[exp.Expr]) -> bool:
        """Whether the first two of some arguments are the keys of both sides: one of them is never NULL."""
        found = [self._find(one) for one in arguments[:2] if isinstance(one, exp.Column) and one.table]
        return sorted(one for one in found if one is not None) == [(0, self._keys[0]), (1, self._keys[1])]

    def _made(self, name: str, node: exp.Expr) -> exp.Expr:
        made = exp.column(_quoted(name), table=_quoted(_WHOLE))
        spans = [part.meta for part in node.walk() if "start" in part.meta]
        if spans:
            made.meta.update(start=min(m["start"] for m in spans), end=max(m["end"] for m in spans))
        return made


def _quoted(name: str) -> exp.Identifier:
    return exp.Identifier(this=name, quoted=True)
