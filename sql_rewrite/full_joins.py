"""Outer joins of two tables of people, or of rows about them, written out as a union before they are lifted.

    SELECT COALESCE(a.person_id, b.person_id), a.x, b.y FROM a FULL JOIN b ON a.person_id = b.person_id
    SELECT unit, l0, r0 FROM (SELECT a.person_id AS unit, a.x AS l0, b.y AS r0 FROM a LEFT JOIN b ON ...
                              UNION ALL SELECT b.person_id, NULL, b.y FROM b WHERE NOT EXISTS (SELECT 1 FROM a ...))

Claim. Both have the same rows, and each row has one unit. Proof: the rows of a full join are those that meet a row of
the other side, those of the left that meet none, and those of the right that meet none; a row of the right meets none
exactly where no row of the left has its key. All of it is unit-local as its parts are: a join on the unit, an
anti-join on the unit, a union. A row that meets none belongs to its own unit, so COALESCE of both keys is the unit.

Where the keys are the unit's, and nothing else is compared, a unit has rows in one branch alone: the first holds units
with rows on the left, the second units without. So it has at most as many as in the larger of the two, and one where
each side has one. With more conditions in ON a row meets those of its unit that fulfil them, so that a unit may have
rows in both branches: their numbers add up.

    SELECT a.x, b.y FROM a LEFT JOIN b ON a.person_id = b.person_id AND a.x + b.y > 3
    the same with JOIN, UNION ALL SELECT a.person_id, a.x, NULL FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE ...)

A LEFT JOIN is written out where its conditions do not divide into the two sides (outer_conditions.py): an engine could
only try them on all pairs of rows. The rows that meet are those of the inner join, and the rows of the left that meet
none are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from privacy.refusal import Refused
from sql_rewrite.entries import ambiguous_column
from sql_rewrite.join_links import conjunction, conjuncts
from sql_rewrite.refuse import refuse
from sql_rewrite.shell import output_name
from sql_rewrite.syntax import consume, rebuilt
from sql_rewrite.text import Text

__all__ = ["APART", "Side", "full_join", "left_join", "write_out"]

APART = "apart"
"""Marks a union of which a unit has rows in one branch alone."""

_WHOLE = "full$"
_UNIT = "unit"
_NESTED = (exp.Query, exp.Subquery)
_COMPARED = frozenset({exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE})
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


def left_join(node: exp.Select) -> exp.Join | None:
    """The LEFT JOIN of such a block with conditions in ON that may be of both sides; None for any other block."""
    joins = node.args.get("joins") or []
    if len(joins) != 1 or str(joins[0].args.get("side") or "").upper() != "LEFT" or joins[0].args.get("method"):
        return None
    on = joins[0].args.get("on")
    return joins[0] if on is not None and any(_may_be_mixed(part) for part in conjuncts(on)) else None


def _may_be_mixed(part: exp.Expr) -> bool:
    """Whether a condition names several relations, and is no equality of two columns."""
    plain = isinstance(part, exp.EQ) and all(isinstance(side, exp.Column) for side in part.iter_expressions())
    columns = list(part.find_all(exp.Column))
    return not plain and (len({column.table.lower() for column in columns}) > 1 or not all(c.table for c in columns))


def write_out(node: exp.Select, sides: tuple[Side, Side], text: Text) -> None:
    """Changes a block with a FULL JOIN into one over the union. Errors: Refused (join_not_on_key, ...).

    One with a LEFT JOIN stays as it is where each condition is on one side, or compares the two.
    """
    outer = _Outer(node, sides, text)
    if outer.full or outer.mixed:
        outer.write()


class _Outer:
    def __init__(self, node: exp.Select, sides: tuple[Side, Side], text: Text) -> None:
        self._node = node
        self._sides = sides
        self._text = text
        join = node.args["joins"][0]
        self.full = full_join(node) is not None
        consume(join, "this", "on", "using", "side", "kind", text=text, what="a join")
        self._using = {one.name.lower() for one in join.args.get("using") or []}
        equal = self._equalities(join)
        found = self._read_keys(join, equal)
        more = None if found is None else self._conditions(join, equal, found)
        if self.full and (found is None or more is None):
            raise self._refused(join)
        self._keys = found or ("", "")
        self._more = more or []
        self._places: dict[tuple[int, str], str] = {}
        self._aliases = {one.alias.lower() for one in node.expressions if isinstance(one, exp.Alias)}

    @property
    def mixed(self) -> bool:
        """Whether some condition is of both sides, and no comparison or OR divides it into them."""
        return any(self._is_mixed(part) for part in self._more)

    def _equalities(self, join: exp.Join) -> list[tuple[str, str]]:
        """The columns of both sides that ON or USING compares for equality, in order."""
        using, on = join.args.get("using") or [], join.args.get("on")
        if on is None:
            found = [[side.own(one.name) for side in self._sides] for one in using]
            return [(left, right) for left, right in found if left is not None and right is not None]
        pairs = [self._pair(part) for part in conjuncts(on)]
        return [pair for pair in pairs if pair is not None]

    def _pair(self, part: exp.Expr) -> tuple[str, str] | None:
        """The columns of the left and of the right that a condition compares for equality; None for any other one."""
        ends = [part.this, part.expression] if isinstance(part, exp.EQ) else []
        by_side = dict(place for end in ends if isinstance(end, exp.Column) and (place := self._find(end)) is not None)
        return (by_side[0], by_side[1]) if len(by_side) == 2 else None

    def _read_keys(self, join: exp.Join, equal: list[tuple[str, str]]) -> tuple[str, str] | None:
        """The columns that join: those of the unit's key, else the first ones; None where no two do."""
        left, right = self._sides
        listed = len(join.args.get("using") or []) if join.args.get("on") is None else len(equal)
        if not equal or listed != len(equal):
            return None
        return next((pair for pair in equal if pair[0] in left.units and pair[1] in right.units), equal[0])

    def _conditions(self, join: exp.Join, equal: list[tuple[str, str]], keys: tuple[str, str]) -> list[exp.Expr] | None:
        """What is compared beside the keys, each column with its side; None where a nested query is among it."""
        left, right = self._sides
        on = join.args.get("on")
        if on is None:
            return [exp.EQ(this=left.column(a), expression=right.column(b)) for a, b in equal if (a, b) != keys]
        rest = list(conjuncts(on))
        del rest[next(place for place, part in enumerate(rest) if self._pair(part) == keys)]
        if any(part.find(exp.Query) is not None for part in rest):
            return None
        return [self._sided(part) for part in rest]

    def _sided(self, node: exp.Expr) -> exp.Expr:
        """A condition whose columns are written with their sides."""
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            found = self._find(node)
            made = node.copy() if found is None else self._sides[found[0]].column(found[1])
            made.meta.update(node.meta)
            return made
        result = rebuilt(node, self._sided)
        result.meta.update(node.meta)
        return result

    def _read_by(self, node: exp.Expr) -> set[int]:
        """The sides that a part reads."""
        return {found[0] for column in node.find_all(exp.Column) if (found := self._find(column)) is not None}

    def _is_mixed(self, part: exp.Expr, *, alone: bool = True) -> bool:
        """Whether a condition is of both sides; `alone` where it may compare one with the other."""
        part = part.unnest()
        if len(self._read_by(part)) < 2:
            return False
        if isinstance(part, exp.Between):
            low, high = (exp.LTE(this=part.this.copy(), expression=part.args[end].copy()) for end in ("low", "high"))
            return any(self._is_mixed(one, alone=alone) for one in (low, high))
        if isinstance(part, exp.And) and alone:
            return any(self._is_mixed(one) for one in part.iter_expressions())
        if isinstance(part, exp.And | exp.Or | exp.Not):
            # Of an OR each part is on one side: apart_sides.py divides it.
            return any(self._is_mixed(one, alone=False) for one in part.iter_expressions())
        compared = type(part) in _COMPARED
        divided = compared and all(len(self._read_by(side)) == 1 for side in (part.this, part.expression))
        return not (alone and divided)

    def _refused(self, join: exp.Join) -> Refused:
        return refuse(
            "join_not_on_key",
            "a FULL JOIN is refused" if self.full else "a LEFT JOIN is refused",
            "It is answered on an equality of both sides' columns, that of the privacy unit's key, beside which there "
            "may be conditions without nested queries.",
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
        sought, kept = (left, right) if self.full else (right, left)
        missing = exp.Select(
            expressions=[exp.Literal.number(1)],
            from_=exp.From(this=sought.item.copy()),
            where=exp.Where(this=self._met()),
        )
        join = exp.Join(this=right.item.copy(), on=self._met())
        if self.full:
            join.set("side", "LEFT")
        both = exp.Select(
            expressions=[exp.alias_(keys[0], _UNIT, quoted=True), *self._read(None)],
            from_=exp.From(this=left.item.copy()),
            joins=[join],
        )
        alone = exp.Select(
            expressions=[
                exp.alias_(keys[1 if self.full else 0].copy(), _UNIT, quoted=True),
                *self._read(0 if self.full else 1),
            ],
            from_=exp.From(this=kept.item.copy()),
            where=exp.Where(this=exp.Not(this=exp.Exists(this=missing))),
        )
        union = exp.Union(this=both, expression=alone, distinct=False)
        of_units = self._keys[0] in left.units and self._keys[1] in right.units
        union.meta[APART] = self.full and of_units and not self._more
        whole = exp.Subquery(this=union, alias=exp.TableAlias(this=_quoted(_WHOLE)))
        node.set("from_", exp.From(this=whole))
        node.set("joins", None)

    def _met(self) -> exp.Expr:
        """That a row of the left meets a row of the right."""
        left, right = (side.column(key) for side, key in zip(self._sides, self._keys, strict=True))
        return conjunction([exp.EQ(this=left, expression=right), *(part.copy() for part in self._more)])

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
                "* of a FULL JOIN is refused"
                if self.full
                else "* of a LEFT JOIN on conditions of both sides is refused",
                "Columns of both sides may be NULL, and the key is one of either.",
                "name the columns that are needed, and COALESCE(a.key, b.key)",
                position=self._text.position(node),
            )
        if self.full and isinstance(node, exp.Coalesce) and self._names_unit([node.this, *node.expressions]):
            return self._made(_UNIT, node)
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            if not node.table and shown and node.name.lower() in self._aliases:
                return node
            if not node.table and node.name.lower() in self._using:
                return self._merged(node)
            found = self._find(node)
            if found is None:
                return node
            return self._made(self._place(found), node)
        result = rebuilt(node, lambda part: self._changed(part, shown=shown))
        result.meta.update(node.meta)
        return result

    def _merged(self, node: exp.Column) -> exp.Expr:
        """A column that USING compares: the unit's key, or that of either side."""
        if node.name.lower() == self._keys[0].lower():
            return self._made(_UNIT, node)
        found = [(number, own) for number, side in enumerate(self._sides) if (own := side.own(node.name)) is not None]
        made = [self._made(self._place(one), node) for one in found]
        return exp.Coalesce(this=made[0], expressions=made[1:])

    def _place(self, found: tuple[int, str]) -> str:
        """The name in the union of a column of a side."""
        return self._places.setdefault(found, f"{'lr'[found[0]]}{len(self._places)}")

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
