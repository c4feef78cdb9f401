"""Nested queries that compare pairs of one unit's rows by more than equalities and one comparison.

    SELECT COUNT(*) FROM visits AS v WHERE EXISTS (SELECT 1 FROM visits AS w
        WHERE w.patient_id = v.patient_id AND w.day > v.day AND w.cost > v.cost)
    source:  visits joined to visits on the unit, where both comparisons hold, grouped by the unit, v.day and v.cost;
             joined to the left on all three
    where:   that group is there

Claim. The source is unit-local, and a row meets one of its groups at most. Proof: it is a join of two tables of people
on the unit (joins.py), whose pairs of unit u are those of u's own rows, and its groups are made within each unit
(unit_groups.py); the row outside compares the unit and every other key of the groups.

Claim. It has the meaning of the nested query. Proof: the keys are the unit and all columns of the row outside that the
nested query reads. So a pair is in the group of a row outside exactly where its outer half agrees with that row in all
that the conditions read, and the conditions, which are functions of both halves, then hold for the row outside with
that inner row. A row outside with NULL in such a column meets no group: that is right where no condition holds with
NULL there, and it is checked that none does (`needed`). For an aggregate the outer half is each combination of values
once, so that no inner row is in a group twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from sql_rewrite.apart_sides import clauses
from sql_rewrite.expressions import ColumnRef, Expression
from sql_rewrite.join_links import conjunction, conjuncts
from sql_rewrite.lift_expression import ExpressionLift
from sql_rewrite.lifter import ParameterValue
from sql_rewrite.reachable import needed
from sql_rewrite.sources import SourceNames
from sql_rewrite.syntax import rebuilt
from sql_rewrite.text import Text

__all__ = ["Pairs"]

_OUTSIDE = "outside$"
_INNER = "inner$"


class Pairs:
    """The pairs that one nested query compares. `outer` are the names of the block around it, which is given.

    `is_outer` says of a column inside whether it is of the row outside.
    """

    def __init__(
        self, block: exp.Select, outer: SourceNames, inner: SourceNames, is_outer: Callable[[exp.Column], bool]
    ) -> None:
        self._block = block
        self._outer = outer
        self._inner = inner
        self._is_outer = is_outer
        self._read: dict[tuple[str, str], tuple[str, exp.Column]] = {}

    def keys(self, conditions: Sequence[exp.Expr]) -> list[exp.Column] | None:
        """The columns of the row outside that conditions read, each once; None where one is no column of a table.

        The first of them is that of the first condition, which is the equality of the units.
        """
        for part in conditions:
            for column in part.find_all(exp.Column):
                if not self._is_outer(column):
                    continue
                found = self._outer.resolve(column)
                if not isinstance(found, ColumnRef):
                    return None
                self._read.setdefault((found.relation, found.name), (f"outside{len(self._read)}", column))
        return [column for _, column in self._read.values()]

    def may_miss(self, conditions: Sequence[exp.Expr], text: Text, parameters: Mapping[str, ParameterValue]) -> bool:
        """Whether the conditions can hold although a column of the row outside is NULL. Errors: Refused."""

        def resolve(column: exp.Column) -> Expression:
            inside = not self._is_outer(column)
            found = (self._inner if inside else self._outer).resolve(column)
            return replace(found, relation=_INNER) if inside and isinstance(found, ColumnRef) else found

        lifter = ExpressionLift(text, resolve, parameters)
        held: set[tuple[str, str]] = set()
        for condition in map(lifter.lift, conditions):
            for clause in clauses(condition) or [(condition,)]:
                found = [{(ref.relation, ref.name) for ref in needed(part)} for part in clause]
                held |= set.intersection(*found)
        nullable = [self._outer.resolve(column) for _, column in self._read.values()]
        return any(
            isinstance(ref, ColumnRef) and ref.nullable and (ref.relation, ref.name) not in held for ref in nullable
        )

    def select(
        self,
        query: exp.Select,
        conditions: Sequence[exp.Expr],
        own: Sequence[exp.Expr],
        *,
        value: exp.Expr | None,
    ) -> exp.Select:
        """The groups of pairs: the keys, and the value where one is asked for. Requires: `keys` was called."""
        names = [name for name, _ in self._read.values()]
        link, *others = [self._changed(part.copy()) for part in conditions]
        half = exp.Subquery(this=self.half(each_once=value is not None), alias=exp.TableAlias(this=_name(_OUTSIDE)))
        keys = [_column(name) for name in names]
        shown = [*keys, *([] if value is None else [value.copy()])]
        select = exp.Select(
            expressions=[exp.alias_(one.copy(), f"correlated{place}") for place, one in enumerate(shown)],
            from_=query.args["from_"].copy(),
            joins=[*(join.copy() for join in query.args.get("joins") or ()), exp.Join(this=half, on=link)],
            group=exp.Group(expressions=keys),
        )
        held = [*(part.copy() for part in own), *others]
        select.set("where", exp.Where(this=conjunction(held)) if held else None)
        return select

    def half(self, given: Sequence[exp.Column] | None = None, *, each_once: bool = False) -> exp.Select:
        """The rows outside, as far as conditions read them: all of what the block's FROM joins, or one item of it."""
        columns = list(self._read.values())
        if given is not None:
            columns = [(f"outside{place}", column) for place, column in enumerate(given)]
        found = [self._outer.find(column)[0].relation for _, column in columns]
        items = [self._block.args["from_"].this, *(join.this for join in self._block.args.get("joins") or ())]
        named = [item for item in items if self._outer.relation_of(item.alias_or_name) == found[0]]
        shown = [exp.alias_(column.copy(), name) for name, column in columns]
        half = exp.Select(expressions=shown)
        if set(found) == {found[0]} and named:
            half.set("from_", exp.From(this=named[0].copy()))
        else:
            half.set("from_", self._block.args["from_"].copy())
            half.set("joins", [join.copy() for join in self._block.args.get("joins") or ()])
            where = self._block.args.get("where")
            kept = [part.copy() for part in conjuncts(where.this) if self._of_rows(part)] if where is not None else []
            half.set("where", exp.Where(this=conjunction(kept)) if kept else None)
        if each_once:
            half.set("distinct", exp.Distinct())
        return half

    def _of_rows(self, part: exp.Expr) -> bool:
        """Whether a condition of the block reads its own rows alone."""
        return part.find(exp.Query) is None and all(map(self._outer.is_source, part.find_all(exp.Column)))

    def _changed(self, node: exp.Expr) -> exp.Expr:
        """A condition in which columns of the row outside are those of the outer half."""
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            if not self._is_outer(node):
                return node
            found = self._outer.resolve(node)
            assert isinstance(found, ColumnRef)
            made = _column(self._read[found.relation, found.name][0])
            made.meta.update(node.meta)
            return made
        result = rebuilt(node, self._changed)
        result.meta.update(node.meta)
        return result


def _name(name: str) -> exp.Identifier:
    return exp.Identifier(this=name, quoted=True)


def _column(name: str) -> exp.Column:
    return exp.Column(this=_name(name), table=_name(_OUTSIDE))
