"""Nested queries in conditions and expressions that look at other rows of the same unit.

    SELECT s_name, COUNT(*) FROM lineitem AS a ... WHERE EXISTS (SELECT 1 FROM lineitem AS b
        WHERE b.l_orderkey = a.l_orderkey AND b.l_suppkey <> a.l_suppkey)
    source:  lineitem, grouped by unit and l_orderkey, with MIN and MAX of l_suppkey; joined to the left on both
    where:   that group is there, and its least or its greatest l_suppkey is another one

    SELECT COUNT(*) FROM visits AS v
        WHERE cost > (SELECT AVG(w.cost) FROM visits AS w WHERE w.patient_id = v.patient_id)
    source:  visits, grouped by unit, with AVG(cost); joined to the left on the unit

Claim. Such an expression is unit-local, and the join multiplies nothing. Proof: the nested rows are grouped by their
unit and by every column that is compared, so each group is a function of the unit's own rows (unit_groups.py), and a
row meets those of its own unit alone: the join compares the unit whatever else it compares. With all keys of the groups
compared it meets one at most.

Claim. It has the meaning of the nested query. Proof: one equality is of the units, or of columns of one key space,
which implies that (unit_keys.py); so the nested query finds rows of the same unit alone, those of the group. EXISTS
with one more comparison e < o, where e is of the inner row and o of the outer one, holds for some row exactly where the
least e is less than o; the other comparisons likewise. Without a row there is no group: an aggregate is then what it is
of no rows, which follows from its text.

With two comparisons that are no equalities one of them orders the rows (correlated_order.py). More of them, and other
conditions of both rows, take every pair of rows of a unit (correlated_pairs.py). EXISTS of an OR of comparisons is
EXISTS of one of them, or of another one (membership.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from sqlglot import exp

from privacy.policy import Column, ColumnType, Dataset
from privacy.refusal import Refused
from sql_rewrite.aggregate_calls import aggregate_calls
from sql_rewrite.correlated_order import ordered_groups
from sql_rewrite.correlated_pairs import Pairs
from sql_rewrite.evaluate import evaluate, is_quick
from sql_rewrite.expressions import ColumnRef, Expression, Literal, columns_of
from sql_rewrite.functions import build
from sql_rewrite.join_links import conjunction, conjuncts
from sql_rewrite.lift_expression import ExpressionLift
from sql_rewrite.plan import GROUPS, Join, Source, UnitFunction
from sql_rewrite.references import reference
from sql_rewrite.refuse import refuse
from sql_rewrite.rows import Rows
from sql_rewrite.sources import SourceNames
from sql_rewrite.syntax import consume, populated
from sql_rewrite.text import Text
from sql_rewrite.unit_keys import key_space

__all__ = ["Correlated", "Parts", "is_outer"]

_FLIPPED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.EQ, exp.NEQ: exp.NEQ, exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE,
}  # fmt: skip
"""Comparisons, and what they are with their sides exchanged."""

_OPERATORS: dict[type[exp.Expr], str] = {exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}

_ENDS: dict[type[exp.Expr], tuple[type[exp.Expr], ...]] = {
    exp.NEQ: (exp.Min, exp.Max), exp.LT: (exp.Min,), exp.LTE: (exp.Min,), exp.GT: (exp.Max,), exp.GTE: (exp.Max,),
}  # fmt: skip
"""Which of the values inside say whether one of them compares so."""

_SLOTS = {"expressions", "from_", "joins", "where"}

_SORTED = (ColumnType.INTEGER, ColumnType.NUMBER, ColumnType.DATE, ColumnType.TIMESTAMP)
"""Types whose values are ordered, and whose extremes are found, within a unit."""

_COUNTS = (UnitFunction.ROWS, UnitFunction.VALUES, UnitFunction.DISTINCT)

_FALSE = Literal(value=False, type=ColumnType.BOOLEAN)


@dataclass(frozen=True, slots=True)
class _Comparison:
    """A condition of the nested query between a value of its own row and one of the row outside."""

    node: exp.Expr
    kind: type[exp.Expr]
    inner: exp.Expr
    outer: exp.Expr


@dataclass(frozen=True, slots=True)
class Parts:
    """The WHERE of a nested query: what is of its own rows, what is of the row outside, and what compares them."""

    own: list[exp.Expr]
    outside: list[exp.Expr]
    equal: list[_Comparison]
    ordered: list[_Comparison]
    mixed: list[exp.Expr]
    """Conditions of both rows that are no comparison of one with the other."""

    @property
    def by_columns(self) -> bool:
        """Whether beside conditions on one side there are equalities alone, with columns of the row outside."""
        plain = all(isinstance(one.outer.unnest(), exp.Column) for one in self.equal)
        return plain and not self.ordered and not self.mixed

    @property
    def compared(self) -> list[exp.Expr]:
        """The conditions of both rows, the equality of the units first."""
        return [*(one.node for one in (*self.equal, *self.ordered)), *self.mixed]


class Correlated:
    """Reads such queries of one block.

    `rows` gives the rows of a nested query, None where it selects none of people; `inner` the names of its FROM.
    """

    def __init__(
        self,
        block: exp.Select,
        names: SourceNames,
        dataset: Dataset,
        text: Text,
        *,
        rows: Callable[[exp.Expr], Rows | None],
        inner: Callable[[exp.Select], SourceNames | None],
    ) -> None:
        self._block = block
        self._names = names
        self._dataset = dataset
        self._text = text
        self._rows = rows
        self._inner = inner
        self._kept: list[exp.Expr] = []

    def exists(
        self,
        lifter: ExpressionLift,
        query: exp.Expr,
        node: exp.Expr,
        member: tuple[exp.Expr, exp.Expr] | None = None,
    ) -> Expression | None:
        """Whether the nested query has rows; None where it compares no units. Errors: Refused.

        `member` is what IN compares besides: the column inside with what is in front of it.
        """
        found = self._read(query, member)
        if found is None:
            return None
        select, parts = found
        in_order = self._in_order(lifter, select, parts, node)
        if in_order is not None:
            return in_order
        if len(parts.ordered) > 1 or not (parts.ordered or parts.by_columns) or parts.mixed:
            source, columns = self._paired(lifter, select, parts, None, node)
            held = [self._there(source, columns[0]), *self._outside(lifter, parts)]
            return held[0] if len(held) == 1 else build("and", tuple(held))
        values: list[exp.Expr] = []
        for one in parts.ordered:
            values += [end(this=one.inner.copy()) for end in _ENDS[one.kind]]
        source, columns = self._joined(lifter, select, parts, values, node)
        held = [self._there(source, columns[0]), *self._outside(lifter, parts)]
        held += [self._extreme(lifter, one, source, columns[-len(values) :]) for one in parts.ordered]
        return held[0] if len(held) == 1 else build("and", tuple(held))

    def scalar(self, lifter: ExpressionLift, node: exp.Subquery) -> Expression | None:
        """The one aggregate value of the nested query; None where it compares no units. Errors: Refused."""
        if populated(node) - {"this"} or not isinstance(node.this, exp.Select):
            return None
        selected = node.this.expressions
        if len(selected) != 1 or not aggregate_calls(selected):
            return None
        found = self._read(node.this)
        if found is None:
            return None
        select, parts = found
        if parts.by_columns:
            source, columns = self._joined(lifter, select, parts, [selected[0].unalias()], node)
        else:
            source, columns = self._paired(lifter, select, parts, selected[0].unalias(), node)
        value = self._column(source, columns[-1])
        empty = self._of_no_rows(source, columns[-1], node)
        outside = self._outside(lifter, parts)
        if empty.value is None and not outside:
            return value
        there = [self._there(source, columns[0]), *outside]
        held = there[0] if len(there) == 1 else build("and", tuple(there))
        return lifter.make(node, "case", held, value, empty)

    def parts_of(self, query: exp.Select) -> Parts | None:
        """The WHERE of a nested query of rows about people; None where its FROM is read in another way."""
        names = self.names_of(query)
        return None if names is None else self._parts(query, names)

    def check_others(self, node: exp.Subquery) -> None:
        """Refuses a value that follows from rows of other people, by what it compares. Errors: Refused."""
        query = node.this
        if not isinstance(query, exp.Select) or query.args.get("where") is None:
            return
        names = self.names_of(query)
        parts = None if names is None else self._parts(query, names)
        compared = [] if parts is None else parts.compared
        if compared:
            raise refuse(
                "correlated_subquery",
                "a value of a nested query is refused",
                "For each row it would follow from rows of other people: it compares neither the key of the unit nor "
                "one of rows that belong to one unit.",
                "compare columns with public keys, whose groups are released first: declared keys, or columns of a "
                "public table that is joined on both sides",
                "leave the comparison with the row outside out: the value of all rows is then released first",
                "compare the key of the unit besides, if the person's own rows are meant",
                position=self._text.position(compared[0]),
            )

    # Reading

    def _read(
        self, query: exp.Expr, member: tuple[exp.Expr, exp.Expr] | None = None
    ) -> tuple[exp.Select, Parts] | None:
        """The block and its WHERE, if one equality there is of the unit or of a key space."""
        if not isinstance(query, exp.Select) or populated(query) - _SLOTS or query.args.get("where") is None:
            return None
        names = self.names_of(query)
        if names is None:
            return None
        parts = self._parts(query, names)
        if member is not None:
            equal = exp.EQ(this=member[0].copy(), expression=exp.Paren(this=member[1].copy()))
            parts.equal.append(_Comparison(equal, exp.EQ, *member))
        anchor = next((one for one in parts.equal if self._is_anchor(one, names)), None)
        if anchor is None:
            return None
        consume(query, *_SLOTS, text=self._text, what="a nested query")
        consume(query.args["where"], "this", text=self._text, what="WHERE")
        parts.equal.remove(anchor)
        parts.equal.insert(0, anchor)
        return query, parts

    def names_of(self, query: exp.Select) -> SourceNames | None:
        """The names of the query's FROM; None where it reads no rows of people, or cannot be read as it is."""
        try:
            return self._inner(query)
        except Refused:
            return None

    def _parts(self, query: exp.Select, names: SourceNames) -> Parts:
        parts = Parts([], [], [], [], [])
        for part in conjuncts(query.args["where"].this):
            columns = list(part.find_all(exp.Column))
            of_outer = [column for column in columns if self._is_outer(column, names)]
            if not of_outer:
                parts.own.append(part)
            elif part.find(exp.Query) is not None:
                raise self._mixed(part)
            elif len(of_outer) == len(columns):
                parts.outside.append(part)
            else:
                one = self._comparison(part, names)
                if one is None:
                    parts.mixed.append(part)
                else:
                    (parts.equal if one.kind is exp.EQ else parts.ordered).append(one)
        return parts

    def _comparison(self, part: exp.Expr, names: SourceNames) -> _Comparison | None:
        """A condition that compares a value inside with one outside; None for any other one."""
        flipped = _FLIPPED.get(type(part))
        if flipped is None:
            return None
        left, right = (self._sides(side, names) for side in (part.this, part.expression))
        if left == {False} and True in right and False not in right:
            return _Comparison(part, type(part), part.this, part.expression)
        if right == {False} and True in left and False not in left:
            return _Comparison(part, flipped, part.expression, part.this)
        return None

    def _sides(self, node: exp.Expr, names: SourceNames) -> set[bool]:
        """Whether the columns of a part are of the row outside."""
        return {self._is_outer(column, names) for column in node.find_all(exp.Column)}

    def _is_outer(self, column: exp.Column, names: SourceNames) -> bool:
        return is_outer(column, names, self._names)

    def _is_anchor(self, one: _Comparison, names: SourceNames) -> bool:
        """Whether an equality is of the units, or of columns of one key space."""
        inner, outer = one.inner.unnest(), one.outer.unnest()
        if not isinstance(inner, exp.Column) or not isinstance(outer, exp.Column):
            return False
        space = key_space(names.resolve(inner), names.sources)
        return space is not None and space == key_space(self._names.resolve(outer), self._names.sources)

    # What it becomes

    def _joined(
        self, lifter: ExpressionLift, query: exp.Select, parts: Parts, values: Sequence[exp.Expr], node: exp.Expr
    ) -> tuple[Source, list[Column]]:
        """The groups beside the block's rows; their columns: the keys, then the values."""
        keys = [one.inner.unnest() for one in parts.equal]
        select = query.copy()
        named = [exp.alias_(part.copy(), f"correlated{i}") for i, part in enumerate([*keys, *values])]
        select.set("expressions", named)
        select.set("where", exp.Where(this=conjunction([part.copy() for part in parts.own])) if parts.own else None)
        select.set("group", exp.Group(expressions=[key.copy() for key in keys]))
        return self._beside(lifter, select, [(one.outer, one.node) for one in parts.equal], node)

    def _in_order(self, lifter: ExpressionLift, query: exp.Select, parts: Parts, node: exp.Expr) -> Expression | None:
        """EXISTS with two comparisons by the order of one of them (correlated_order.py); None for any other one."""
        names = self.names_of(query)
        if names is None or len(parts.ordered) != 2 or parts.mixed:
            return None
        anchor = parts.equal[0].outer.unnest()
        inside = ExpressionLift(self._text, names.resolve, lifter.parameters)
        if not isinstance(anchor, exp.Column) or key_space(lifter.lift(anchor), self._names.sources) != ("", ""):
            return None
        for first, second in (parts.ordered, parts.ordered[::-1]):
            keys = [*parts.equal, first]
            if not all(_by_column(one, lifter, inside) for one in keys):
                continue
            if inside.lift(second.inner).type not in _SORTED or lifter.lift(first.outer).type not in _SORTED:
                continue
            pairs = Pairs(self._block, self._names, names, partial(self._is_outer, names=names))
            columns = [one.outer.unnest() for one in keys]
            inner = exp.Select(expressions=[one.inner.copy() for one in (*keys, second)])
            inner.set("from_", query.args["from_"].copy())
            inner.set("joins", [join.copy() for join in query.args.get("joins") or ()])
            for part in parts.own:
                inside.lift(part)  # an unknown name is refused at its place, before a nested query has it
            own = [part.copy() for part in parts.own]
            inner.set("where", exp.Where(this=conjunction(own)) if own else None)
            outer = pairs.half([column for column in columns if isinstance(column, exp.Column)])
            ends = _ENDS[second.kind]
            select = ordered_groups(inner, outer, keys=len(parts.equal), kind=first.kind, ends=ends)
            source, found = self._beside(lifter, select, [(one.outer, one.node) for one in keys], node)
            held = [*self._outside(lifter, parts), self._extreme(lifter, second, source, found[-len(ends) :])]
            return held[0] if len(held) == 1 else build("and", tuple(held))
        return None

    def _extreme(
        self, lifter: ExpressionLift, one: _Comparison, source: Source, columns: Sequence[Column]
    ) -> Expression:
        """Whether one of the extremes compares as it should with the value outside."""
        outer, operator = lifter.lift(one.outer), _OPERATORS[one.kind]
        compared = [lifter.make(one.node, operator, self._column(source, end), outer) for end in columns]
        whole = compared[0] if len(compared) == 1 else build("or", tuple(compared))
        return build("coalesce", (whole, _FALSE))

    def _paired(
        self, lifter: ExpressionLift, query: exp.Select, parts: Parts, value: exp.Expr | None, node: exp.Expr
    ) -> tuple[Source, list[Column]]:
        """The groups of pairs beside the block's rows; their columns: the keys, then the value. Errors: Refused."""
        names = self.names_of(query)
        assert names is not None
        pairs = Pairs(self._block, self._names, names, partial(self._is_outer, names=names))
        compared = parts.compared
        keys = pairs.keys(compared)
        if keys is None:
            raise self._computed(compared[0])
        if pairs.may_miss([*compared, *parts.outside], self._text, lifter.parameters):
            raise self._missing(compared[-1])
        select = pairs.select(query, compared, parts.own, value=value)
        return self._beside(lifter, select, [(key, key) for key in keys], node)

    def _beside(
        self, lifter: ExpressionLift, select: exp.Select, outer: Sequence[tuple[exp.Expr, exp.Expr]], node: exp.Expr
    ) -> tuple[Source, list[Column]]:
        """Groups beside the block's rows, by keys that equal what the rows have, each with its place in the text."""
        self._kept.append(select)
        rows = self._rows(select)
        if rows is None:
            raise refuse(
                "correlated_subquery",
                "a nested query is refused",
                "What it reads cannot be taken apart by the rows outside.",
                "compare columns of one table inside with columns of one table outside",
                position=self._text.position(node),
            )
        (source,) = rows.sources
        found = [self._outer_column(lifter, *one) for one in outer]
        columns = []
        for _, expression in rows.columns:
            assert isinstance(expression, ColumnRef)
            column = source.table.column(expression.name)
            assert column is not None
            columns.append(column)
        for (_, place), child, column in zip(outer, found, columns, strict=False):
            if child.type is not column.type:
                raise refuse(
                    "correlated_subquery",
                    "an equality of a nested query is refused",
                    f"It compares {column.type.value} with {child.type.value}.",
                    "compare columns of one type, with CAST inside the nested query where they differ",
                    position=self._text.position(place),
                )
        on_unit = key_space(found[0], self._names.sources) == ("", "")

        def made(relation: str) -> Source:
            alone = Source(relation, source.table, None, source.groups)
            parents = [reference(alone, column, self._dataset) for column in columns[: len(found)]]
            also = tuple(dict.fromkeys(zip(found, parents, strict=True)))[1 if on_unit else 0 :]
            return replace(alone, join=Join(found[0], parents[0], outer=True, on_unit=True, also=also))

        return self._names.add(made, node), columns

    def _outer_column(self, lifter: ExpressionLift, outer: exp.Expr, place: exp.Expr) -> ColumnRef:
        found = lifter.lift(outer)
        if not isinstance(found, ColumnRef):
            raise self._computed(place)
        return found

    def _column(self, source: Source, column: Column) -> ColumnRef:
        return reference(source, column, self._dataset)

    def _there(self, source: Source, key: Column) -> Expression:
        return build("is_not_null", (self._column(source, key),))

    def _outside(self, lifter: ExpressionLift, parts: Parts) -> list[Expression]:
        found = []
        for part in parts.outside:
            condition = lifter.lift(part)
            if condition.type is not ColumnType.BOOLEAN:
                raise self._mixed(part)
            found.append(build("coalesce", (condition, _FALSE)) if condition.nullable else condition)
        return found

    def _of_no_rows(self, source: Source, column: Column, node: exp.Expr) -> Literal:
        """What the aggregates of no rows make: counts are 0 there, and all others NULL. Errors: Refused."""
        assert source.groups is not None
        expression = dict(source.groups.columns)[column.name]
        if not is_quick(expression):
            raise refuse(
                "correlated_subquery",
                "a pattern inside a nested query is refused",
                "What it is without rows is computed beforehand, and a pattern may take too long for that.",
                "write the pattern outside, over the value of the nested query",
                position=self._text.position(node),
            )
        functions = {value.name: value.function for value in source.groups.values}
        row = {(GROUPS, ref.name): 0 if functions.get(ref.name) in _COUNTS else None for ref in columns_of(expression)}
        return Literal(evaluate(expression, row), expression.type)

    # Refusals

    def _mixed(self, part: exp.Expr) -> Refused:
        return refuse(
            "correlated_subquery",
            "a condition inside a nested query is refused",
            "It compares rows inside with rows outside, and has a nested query in it.",
            "join the two tables on the unit instead, and compare their columns in WHERE",
            position=self._text.position(part),
        )

    def _computed(self, part: exp.Expr) -> Refused:
        return refuse(
            "correlated_subquery",
            "an equality of a nested query is refused",
            "Of the row outside it compares more than a column of a table, or of rows that are computed within units.",
            "compare a column outside with the expression inside",
            position=self._text.position(part),
        )

    def _missing(self, part: exp.Expr) -> Refused:
        return refuse(
            "correlated_subquery",
            "a condition inside a nested query is refused",
            "It may hold although a column of the row outside is NULL, and rows with NULL there are found by no key.",
            "add a condition that such a row does not meet, as v.x IS NOT NULL, beside it inside the nested query",
            "write EXISTS for each of the conditions that OR connects",
            position=self._text.position(part),
        )


def is_outer(column: exp.Column, inner: SourceNames, outer: SourceNames) -> bool:
    """Whether a column of a nested query is of the row outside: no name inside is it, not even an ambiguous one."""
    inside = inner.relation_of(column.table) is not None if column.table else inner.knows(column.name)
    return not inside and outer.is_source(column)


def _by_column(one: _Comparison, outside: ExpressionLift, inside: ExpressionLift) -> bool:
    """Whether a column of a table outside is compared, with a value of its type."""
    if not isinstance(one.outer.unnest(), exp.Column):
        return False
    found = outside.lift(one.outer)
    return isinstance(found, ColumnRef) and inside.lift(one.inner).type is found.type
