"""IN and EXISTS over rows about people: whether the unit of a row has some row in a nested query.

    SELECT COUNT(*) FROM people AS p WHERE EXISTS (SELECT 1 FROM visits AS v WHERE v.person_id = p.person_id)
    source:  visits, one row for each unit that has any, joined to the left on the unit
    where:   that row is there

Claim. The condition is unit-local, and the join multiplies nothing. Proof: the nested rows are grouped by their unit,
so a unit has one row or none there, a function of its own rows (unit_groups.py); a row meets that of its own unit
alone. A unit's key is never NULL, neither in the nested query (its column is checked to be the unit's, of every row)
nor in front of IN, so IN and NOT IN are true or false as in SQL.

What compares anything but the unit would couple rows of different people, and is refused.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from privacy.policy import Dataset
from privacy.refusal import Refused
from sql_rewrite.expressions import ColumnRef, Expression, form_of
from sql_rewrite.functions import build
from sql_rewrite.joins import conjuncts
from sql_rewrite.lift_expression import ExpressionLift
from sql_rewrite.plan import Join, Source, UnitGroups, leaves
from sql_rewrite.refuse import refuse
from sql_rewrite.rows import Rows
from sql_rewrite.sources import SourceNames, reference
from sql_rewrite.syntax import consume, populated
from sql_rewrite.text import Text
from sql_rewrite.unit_groups import LEAVES_MAX, described
from sql_rewrite.unit_values import content_name, renamed

__all__ = ["Membership"]


class Membership:
    """Reads such conditions of one block.

    `rows` gives the rows of a nested query, None where it selects none of people; `inner` the names of its FROM.
    """

    def __init__(
        self,
        names: SourceNames,
        dataset: Dataset,
        text: Text,
        *,
        rows: Callable[[exp.Expr], Rows | None],
        inner: Callable[[exp.Select], SourceNames | None],
    ) -> None:
        self._names = names
        self._dataset = dataset
        self._text = text
        self._rows = rows
        self._inner = inner
        self._read: dict[int, Expression | None] = {}
        self._kept: list[exp.Expr] = []

    def read(self, _: ExpressionLift, node: exp.Expr) -> Expression | None:
        """The condition, None where it is none of these. Errors: Refused."""
        if id(node) not in self._read:
            self._kept.append(node)
            self._read[id(node)] = self._in(node) if isinstance(node, exp.In) else self._exists(node)
        return self._read[id(node)]

    def _in(self, node: exp.In) -> Expression | None:
        query, column = node.args["query"], node.this.unnest()
        if not isinstance(column, exp.Column) or not self._names.is_source(column):
            return None
        child = self._names.resolve(column)
        if not _is_unit(child):
            return None
        assert isinstance(child, ColumnRef)
        consume(node, "this", "query", text=self._text, what="IN")
        rows = self._rows(query)
        return None if rows is None else self._present(child, rows, node)

    def _exists(self, node: exp.Expr) -> Expression | None:
        consume(node, "this", text=self._text, what="EXISTS")
        query = node.this.this if isinstance(node.this, exp.Subquery) else node.this
        if not isinstance(query, exp.Select) or populated(query) - {"expressions", "from_", "joins", "where"}:
            return None
        names = self._inner(query)
        if names is None or query.args.get("where") is None:
            return None
        parts = list(conjuncts(query.args["where"].this))
        found = [(place, self._link(part, names)) for place, part in enumerate(parts)]
        links = [(place, *sides) for place, sides in found if sides is not None]
        if not links:
            return None
        at, own, other = links[0]
        for place, part in enumerate(parts):
            if place != at and any(self._is_outer(column, names) for column in part.find_all(exp.Column)):
                raise refuse(
                    "correlated_subquery",
                    "a condition inside EXISTS is refused",
                    "Beside the equality of the unit it compares rows inside with rows outside.",
                    "join the two tables on the unit instead, and compare their columns in WHERE",
                    position=self._text.position(part),
                )
        selected = query.copy()
        selected.set("expressions", [own.copy()])
        rest = [part for place, part in enumerate(conjuncts(selected.args["where"].this)) if place != at]
        selected.set("where", exp.Where(this=_together(rest)) if rest else None)
        self._kept.append(selected)
        rows = self._rows(selected)
        child = self._names.resolve(other)
        assert isinstance(child, ColumnRef)
        return None if rows is None else self._present(child, rows, node)

    def _link(self, part: exp.Expr, names: SourceNames) -> tuple[exp.Column, exp.Column] | None:
        """The column inside and that outside, of an equality of units."""
        if not (isinstance(part, exp.EQ) and isinstance(part.this, exp.Column)):
            return None
        if not isinstance(part.expression, exp.Column):
            return None
        for own, other in ((part.this, part.expression), (part.expression, part.this)):
            if names.is_source(own) and self._is_outer(other, names):
                units = _is_unit(names.resolve(own)) and _is_unit(self._names.resolve(other))
                return (own, other) if units else None
        return None

    def _is_outer(self, column: exp.Column, names: SourceNames) -> bool:
        return not names.is_source(column) and self._names.is_source(column)

    def _present(self, child: ColumnRef, rows: Rows, node: exp.Expr) -> Expression:
        """Whether the unit of a column has one of the rows, whose only column is the unit's."""
        if len(rows.columns) != 1 or not _is_unit(rows.columns[0][1]):
            raise self._of_others(node)
        (shown, key) = rows.columns[0]
        if leaves(rows.sources) > LEAVES_MAX:
            raise refuse("too_large", "a nested query is refused", f"It reads more than {LEAVES_MAX} tables.")
        name = content_name("k", form_of(key))
        found = renamed(key, name, shown, nullable=False)
        column = content_name("c", form_of(found))
        groups = UnitGroups(rows.sources, rows.where, ((name, key),), (), None, ((column, found),))
        table = described(groups, {column: shown}, self._dataset)
        assert table.one_row

        def source(relation: str) -> Source:
            parent = reference(Source(relation, table, None, groups), table.columns[0], self._dataset)
            return Source(relation, table, Join(child, parent, outer=True, on_unit=True), groups)

        added = self._names.add(source, node)
        return build("is_not_null", (reference(added, table.columns[0], self._dataset),))

    def _of_others(self, node: exp.Expr) -> Refused:
        return refuse(
            "correlated_subquery",
            "IN over rows of people is refused",
            "Its nested query must have one column, the key of the privacy unit: anything else compares a row with "
            "rows of other people.",
            "ask for the values in a query of their own, and write them as a list",
            position=self._text.position(node),
        )


def _is_unit(expression: Expression) -> bool:
    return isinstance(expression, ColumnRef) and expression.is_unit and not expression.nullable


def _together(parts: list[exp.Expr]) -> exp.Expr:
    whole = parts[0]
    for part in parts[1:]:
        whole = exp.And(this=whole, expression=part)
    return whole
