"""IN and EXISTS over rows about people: whether the unit of a row has some row in a nested query.

    SELECT COUNT(*) FROM people AS p WHERE EXISTS (SELECT 1 FROM visits AS v WHERE v.person_id = p.person_id)
    source:  visits, one row for each unit that has any, joined to the left on the unit
    where:   that row is there

Claim. The condition is unit-local, and the join multiplies nothing. Proof: the nested rows are grouped by their unit,
so a unit has one row or none there, a function of its own rows (unit_groups.py); a row meets that of its own unit
alone. A unit's key is never NULL, neither in the nested query (its column is checked to be the unit's, of every row)
nor in front of IN, so IN and NOT IN are true or false as in SQL.

IN over a public table, from a column that refers to its key, is a LEFT JOIN along that reference: it repeats no row,
and whether the row is there and satisfies the nested query's WHERE is a function of the row and of what everybody
knows. A NULL in front of IN gives false here and NULL or false in SQL; so where it can be NULL the condition may only
stand where both leave the row out.

What compares anything but the unit would couple rows of different people, and is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from privacy.policy import ColumnType, Dataset, Table
from privacy.refusal import Refused
from sql_rewrite.aggregate_calls import AggregateReader
from sql_rewrite.combinations import Known
from sql_rewrite.correlated import Correlated, is_outer
from sql_rewrite.correlated_groups import Groups, by_public_keys, exists_released
from sql_rewrite.expressions import ColumnRef, Expression, Literal, form_of
from sql_rewrite.functions import build
from sql_rewrite.join_links import conjunction, conjuncts
from sql_rewrite.lift_expression import ExpressionLift
from sql_rewrite.nested_block import LEAVES_MAX
from sql_rewrite.plan import Join, Source, UnitGroups
from sql_rewrite.public_membership import KnownTables, PublicMembership, leaves_out
from sql_rewrite.quantified import among_cells, among_values, as_exists, named_keys, quantified_query, refused, unknown
from sql_rewrite.references import reference
from sql_rewrite.refuse import refuse
from sql_rewrite.rows import Rows
from sql_rewrite.sources import SourceNames
from sql_rewrite.syntax import consume, populated
from sql_rewrite.text import Text
from sql_rewrite.unit_facts import leaves, names_unit
from sql_rewrite.unit_groups import described
from sql_rewrite.unit_keys import key_space
from sql_rewrite.unit_values import content_name, renamed

__all__ = ["Membership"]

EITHER_MAX = 4
"""Most conditions of an OR inside EXISTS that compare rows of both sides: each is a join of its own."""


class Membership:
    """Reads such conditions of one block.

    `rows` gives the rows of a nested query, None where it selects none of people; `inner` the names of its FROM,
    `public` the public table that an item of one is, `constants` those that one reads, `known` those of a query of
    public tables, `scalar` the number that an earlier stage releases, `looked_up` that of public rows with the keys of
    a row, `listed` IN over keys that one releases, and `groups` the groups that one releases.
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
        public: Callable[[exp.Table], Table | None],
        constants: Known,
        known: KnownTables,
        scalar: Callable[[exp.Subquery], Expression | None],
        looked_up: Callable[[ExpressionLift, exp.Subquery], Expression | None],
        listed: Callable[[ExpressionLift, exp.In], Expression | None],
        groups: Groups,
    ) -> None:
        self._names = names
        self._dataset = dataset
        self._text = text
        self._rows = rows
        self._inner = inner
        self._public = public
        self._scalar = scalar
        self._looked_up = looked_up
        self._listed = listed
        self._groups = groups
        self._read: dict[int, Expression | None] = {}
        self._kept: list[exp.Expr] = []
        self._tables = known
        self._known = PublicMembership(names, dataset, text, public, constants, known)
        self._correlated = Correlated(block, names, dataset, text, rows=rows, inner=inner)

    def read(self, lifter: ExpressionLift, node: exp.Expr) -> Expression | None:
        """The condition or number, None where it is none of these. Errors: Refused."""
        if id(node) not in self._read:
            self._kept.append(node)
            self._read[id(node)] = self._found(lifter, node)
        return self._read[id(node)]

    def _found(self, lifter: ExpressionLift, node: exp.Expr) -> Expression | None:
        if isinstance(node, exp.Subquery):
            found = self._correlated.scalar(lifter, node) or self._scalar(node)
            found = self._looked_up(lifter, node) if found is None else found
            if found is None:
                found = by_public_keys(self._correlated, self._groups, lifter, node)
            if found is None:
                self._correlated.check_others(node)
            return found
        query = quantified_query(node, self._text)
        if query is not None:
            return self._quantified(lifter, node, query)
        found = self._known.over_query(lifter, node, made=True)
        if found is not None:
            return found
        if not isinstance(node, exp.In):
            found = self._exists(lifter, node)
            return self._known.read(lifter, node) if found is None else found
        found = self._in(lifter, node)
        found = self._listed(lifter, node) if found is None else found
        return self._known.read(lifter, node) if found is None else found

    def _quantified(self, lifter: ExpressionLift, node: exp.Expr, query: exp.Expr) -> Expression | None:
        """A comparison with any or all rows of a nested query (quantified.py). Errors: Refused."""
        if not isinstance(query, exp.Select) or len(query.expressions) == 1:
            table = self._tables(query, False)
            if table is not None and len(table.names) == 1:
                return among_values(lifter, node, [value for (value,) in table.rows], table.kinds[0])
        if not isinstance(query, exp.Select) or len(query.expressions) != 1:
            return None
        one = exp.Subquery(this=query.copy())
        value = self._scalar(one)
        if value is not None:
            return among_cells(lifter, node, [(Literal(value=True, type=ColumnType.BOOLEAN), value)])
        inner = named_keys(query, "value_of_row")
        self._kept += [one, inner]
        released = self._groups(exp.Subquery(this=inner))
        if released is not None:
            name = inner.expressions[0].alias.lower()
            found = [released.columns(place)[name] for place in range(len(released.cells))]
            return among_cells(lifter, node, list(zip(released.there, found, strict=True)))
        if self._correlated.names_of(query) is None:
            raise unknown(node, self._text)
        exists = as_exists(node, query)
        if exists is not None and self._may_be_null(lifter, node, query):
            exists = None
        if exists is None:
            raise refused(node, query, self._text)
        self._kept.append(exists)
        try:
            return lifter.lift(exists)
        except Refused as other:
            if any(finding.code != "correlated_subquery" for finding in other.findings):
                raise
            raise refused(node, query, self._text) from None

    def _may_be_null(self, lifter: ExpressionLift, node: exp.Expr, query: exp.Select) -> bool:
        """Whether a side of such a comparison can be NULL where that is not as good as false."""
        if isinstance(node.expression, exp.Any) and leaves_out(node):
            return False
        names = self._correlated.names_of(query)
        if names is None:
            return True
        inner = ExpressionLift(self._text, names.resolve, lifter.parameters)
        return lifter.lift(node.this).nullable or inner.lift(query.expressions[0].unalias()).nullable

    def _in(self, lifter: ExpressionLift, node: exp.In) -> Expression | None:
        query, column = node.args["query"], node.this.unnest()
        found = self._correlated_in(lifter, node)
        if found is not None:
            return found
        if not isinstance(column, exp.Column) or not self._names.is_source(column):
            return None
        child = self._names.resolve(column)
        if not isinstance(child, ColumnRef):
            return None
        if key_space(child, self._names.sources) is None:
            return self._of_public(lifter, child, query.unnest(), node)
        consume(node, "this", "query", text=self._text, what="IN")
        rows = self._rows(query)
        return None if rows is None else self._present(child, rows, node)

    def _correlated_in(self, lifter: ExpressionLift, node: exp.In) -> Expression | None:
        """IN over a nested query whose WHERE reads the row outside: it is EXISTS with one equality more."""
        query = node.args["query"].unnest()
        if not isinstance(query, exp.Select) or query.args.get("where") is None or len(query.expressions) != 1:
            return None
        names = self._correlated.names_of(query)
        columns = query.args["where"].find_all(exp.Column)
        if names is None or not any(self._is_outer(column, names) for column in columns):
            return None
        selected = query.expressions[0].unalias()
        if not isinstance(selected, exp.Column) or selected.is_star or not names.is_source(selected):
            return None
        consume(node, "this", "query", text=self._text, what="IN")
        nullable = lifter.lift(node.this).nullable or names.resolve(selected).nullable
        if nullable and not leaves_out(node):
            raise refuse(
                "correlated_subquery",
                "IN over a nested query is refused here",
                "One of its sides can be NULL, and what IN means then depends on whether the nested query has rows.",
                "use it in WHERE, beside AND and OR alone, or write EXISTS",
                position=self._text.position(node),
            )
        return self._correlated.exists(lifter, query, node, member=(selected, node.this))

    def _of_public(
        self, lifter: ExpressionLift, child: ColumnRef, query: exp.Expr, node: exp.Expr
    ) -> Expression | None:
        """Whether a column that refers to a public table's key is among those of some of its rows."""
        if not isinstance(query, exp.Select) or populated(query) - {"expressions", "from_", "where"}:
            return None
        item = query.args["from_"].this if query.args.get("from_") is not None else None
        table = self._public(item) if isinstance(item, exp.Table) else None
        selected = query.expressions[0].unalias() if len(query.expressions) == 1 else None
        if table is None or item is None or not isinstance(selected, exp.Column) or selected.is_star:
            return None
        number = self._names.number_of(lambda known: known.table == table and _child_of(known) == child)
        source = Source(f"r{number}", table)
        alias = (item.alias or item.name).lower()
        names = SourceNames((source,), {alias: source.relation}, self._text, self._dataset)
        inner = ExpressionLift(self._text, names.resolve, lifter.parameters)
        found = inner.lift(selected)
        holder = next(one for one in self._names.sources if one.relation == child.relation)
        if not isinstance(found, ColumnRef) or not _refers(holder, child, source, found):
            return None
        if isinstance(node, exp.In) and child.nullable and not leaves_out(node):
            listed = self._known.read(lifter, node)  # its values, where they are few: NULL is as in any other list
            if listed is not None:
                return listed
            raise refuse(
                "correlated_subquery",
                "IN over a public table is refused here",
                f'"{child.name}" can be NULL, and what its IN means then depends on whether the nested query has rows.',
                "use it in WHERE, beside AND and OR alone, or write EXISTS",
                position=self._text.position(node),
            )
        if isinstance(node, exp.In):
            consume(node, "this", "query", text=self._text, what="IN")
        added = self._names.add(
            lambda relation: replace(source, join=Join(child, replace(found, relation=relation), outer=True)), node
        )
        assert added.relation == source.relation
        column = table.column(found.name)
        assert column is not None
        there = build("is_not_null", (reference(added, column, self._dataset),))
        where = query.args.get("where")
        if where is None:
            return there
        consume(where, "this", text=self._text, what="WHERE")
        condition = AggregateReader(self._text, inner).condition(where.this, "WHERE")
        return build("and", (there, build("coalesce", (condition, Literal(value=False, type=ColumnType.BOOLEAN)))))

    def _exists(self, lifter: ExpressionLift, node: exp.Expr) -> Expression | None:
        consume(node, "this", text=self._text, what="EXISTS")
        query = node.this.this if isinstance(node.this, exp.Subquery) else node.this
        if not isinstance(query, exp.Select) or populated(query) - {"expressions", "from_", "joins", "where"}:
            return None
        if query.args.get("where") is None:
            return None
        found_there = self._exists_public(lifter, query, node)
        if found_there is not None:
            return found_there
        names = self._inner(query)
        if names is None:
            return exists_released(query, self._groups, lifter)
        parts = list(conjuncts(query.args["where"].this))
        either = [place for place, part in enumerate(parts) if self._is_either(part, names)]
        if len(either) == 1 and len(list(parts[either[0]].unnest().flatten())) <= EITHER_MAX:
            return self._any_of(lifter, query, parts, either[0])
        found = [(place, self._link(part, names)) for place, part in enumerate(parts)]
        links = [(place, *sides) for place, sides in found if sides is not None]
        compared = sum(any(self._is_outer(c, names) for c in part.find_all(exp.Column)) for part in parts)
        if not links or compared > 1:
            return self._correlated.exists(lifter, query, node)
        at, own, other = links[0]
        selected = query.copy()
        selected.set("expressions", [own.copy()])
        rest = [part for place, part in enumerate(conjuncts(selected.args["where"].this)) if place != at]
        selected.set("where", exp.Where(this=conjunction(rest)) if rest else None)
        self._kept.append(selected)
        rows = self._rows(selected)
        child = self._names.resolve(other)
        assert isinstance(child, ColumnRef)
        return None if rows is None else self._present(child, rows, node)

    def _is_either(self, part: exp.Expr, names: SourceNames) -> bool:
        """Whether a condition is an OR of conditions that read rows inside and outside."""
        if not isinstance(part.unnest(), exp.Or) or part.find(exp.Query) is not None:
            return False
        outside = [self._is_outer(column, names) for column in part.find_all(exp.Column)]
        return any(outside) and not all(outside)

    def _any_of(
        self, lifter: ExpressionLift, query: exp.Select, parts: Sequence[exp.Expr], place: int
    ) -> Expression | None:
        """EXISTS of rows that fulfil one of several conditions: it is that of one of them, or of another one."""
        found = []
        for one in parts[place].unnest().flatten():
            inner = query.copy()
            kept = [*(part.copy() for at, part in enumerate(parts) if at != place), one.unnest().copy()]
            inner.set("where", exp.Where(this=conjunction(kept)))
            node = exp.Exists(this=inner)
            self._kept.append(node)
            found.append(self._exists(lifter, node))
        if None in found:
            return None
        return build("or", tuple(condition for condition in found if condition is not None))

    def _exists_public(self, lifter: ExpressionLift, query: exp.Select, node: exp.Expr) -> Expression | None:
        """EXISTS over a public table whose key a column outside refers to: it is false where that column is NULL."""
        item = query.args["from_"].this if query.args.get("from_") is not None else None
        table = self._public(item) if isinstance(item, exp.Table) else None
        if table is None or item is None:
            return None
        alias = item.alias_or_name.lower()

        def inside(column: exp.Column) -> bool:
            return column.table.lower() == alias if column.table else table.column(column.name) is not None

        parts = list(conjuncts(query.args["where"].this))
        others = [part for part in parts if not all(map(inside, part.find_all(exp.Column)))]
        link = others[0] if len(others) == 1 else None
        if not isinstance(link, exp.EQ):
            return None
        sides = sorted((link.this, link.expression), key=lambda side: isinstance(side, exp.Column) and inside(side))
        outer, own = sides
        if not isinstance(outer, exp.Column) or not isinstance(own, exp.Column) or not inside(own):
            return None
        child = self._names.resolve(outer) if self._names.is_source(outer) else None
        if not isinstance(child, ColumnRef):
            return None
        selected = query.copy()
        rest = [part.copy() for part in parts if part is not link]
        selected.set("expressions", [own.copy()])
        selected.set("where", exp.Where(this=exp.and_(*rest, copy=False)) if rest else None)
        self._kept.append(selected)
        return self._of_public(lifter, child, selected, node)

    def _link(self, part: exp.Expr, names: SourceNames) -> tuple[exp.Column, exp.Column] | None:
        """The column inside and that outside, of an equality of units."""
        if not (isinstance(part, exp.EQ) and isinstance(part.this, exp.Column)):
            return None
        if not isinstance(part.expression, exp.Column):
            return None
        for own, other in ((part.this, part.expression), (part.expression, part.this)):
            if names.is_source(own) and self._is_outer(other, names):
                units = names_unit(names.resolve(own), names.sources) and names_unit(
                    self._names.resolve(other), self._names.sources
                )
                return (own, other) if units else None
        return None

    def _is_outer(self, column: exp.Column, names: SourceNames) -> bool:
        return is_outer(column, names, self._names)

    def _present(self, child: ColumnRef, rows: Rows, node: exp.Expr) -> Expression:
        """Whether the unit of a column has one of the rows, whose only column is of the same key space."""
        if len(rows.columns) != 1:
            raise self._of_others(node)
        (shown, key) = rows.columns[0]
        space = key_space(key, rows.sources)
        if space is None or space != key_space(child, self._names.sources):
            raise self._of_others(node)
        if leaves(rows.sources) > LEAVES_MAX:
            raise refuse("too_large", "a nested query is refused", f"It reads more than {LEAVES_MAX} tables.")
        name = content_name("k", form_of(key))
        found = renamed(key, name, shown, nullable=False)
        column = content_name("c", form_of(found))
        groups = UnitGroups(rows.sources, rows.where, ((name, key),), (), None, ((column, found),))
        table = described(groups, {column: shown}, self._dataset)
        on_unit = names_unit(key, rows.sources)
        assert table.one_row == on_unit

        def source(relation: str) -> Source:
            parent = reference(Source(relation, table, None, groups), table.columns[0], self._dataset)
            also = () if on_unit else ((child, parent),)
            return Source(relation, table, Join(child, parent, outer=True, on_unit=True, also=also), groups)

        added = self._names.add(source, node)
        return build("is_not_null", (reference(added, table.columns[0], self._dataset),))

    def _of_others(self, node: exp.Expr) -> Refused:
        return refuse(
            "correlated_subquery",
            "IN over rows of people is refused",
            "Its nested query must have one column, the key of the privacy unit or the key of rows that this column "
            "refers to: anything else compares a row with rows of other people.",
            "ask for the values in a query of their own, and write them as a list",
            position=self._text.position(node),
        )


def _child_of(source: Source) -> ColumnRef | None:
    return None if source.join is None else source.join.child


def _refers(holder: Source, child: ColumnRef, source: Source, key: ColumnRef) -> bool:
    """Whether a column is declared to refer to the key."""
    wanted = (child.name.lower(), source.table.name.lower(), key.name.lower())
    return any((r.column.lower(), r.table.lower(), r.key.lower()) == wanted for r in holder.table.references)
