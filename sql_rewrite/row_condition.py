"""Which rows a private block reads: its WHERE, what ON says beside the joins, and the conditions of nested blocks."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from privacy.refusal import Refused
from sql_rewrite.aggregate_calls import AggregateReader, aggregate_calls
from sql_rewrite.constant_outer import kept_people, met_alone
from sql_rewrite.constant_rows import keeps_all, most_met
from sql_rewrite.expressions import Expression, columns_of
from sql_rewrite.functions import TypeRefused, build
from sql_rewrite.join_links import conjuncts
from sql_rewrite.numbered_rows import limited, most_rows
from sql_rewrite.outer_conditions import beside_outer
from sql_rewrite.predicates import normal_predicate
from sql_rewrite.preserved import drops_nobody
from sql_rewrite.public_joins import compares, partners
from sql_rewrite.reachable import conjuncts as parts_of
from sql_rewrite.refuse import refuse
from sql_rewrite.select_list import SelectList
from sql_rewrite.sources import SourceNames
from sql_rewrite.syntax import consume
from sql_rewrite.text import Text

__all__ = ["RowCondition"]


class RowCondition:
    """Reads the conditions of one block."""

    def __init__(self, text: Text, names: SourceNames, select: SelectList, reader: AggregateReader) -> None:
        self._text = text
        self._names = names
        self._select = select
        self._reader = reader
        self.own: list[Expression] = []
        """The parts of the block's own WHERE, once it is read."""
        self.met: tuple[Expression, ...] = ()
        """The parts of all of it that an outer join says which keeps public rows: they rule out none of these."""

    def read(self, where: exp.Expr | None) -> Expression | None:
        """All of them as one condition, None where every row is read. Errors: Refused."""
        while self._names.inside:
            (relation, part), *self._names.inside = self._names.inside
            condition = self._condition(part, "ON")
            if compares(self._names, relation, condition):
                continue
            for one in parts_of(condition):
                beside_outer(self._names, relation, one, part, self._text)
        found = [view.rows.where for view in self._names.views if view.rows.where is not None]
        joined = [self._condition(part, "ON") for part in self._names.conditions]
        found += joined
        outer = {relation: [self._condition(one, "ON") for one in ons] for relation, ons in self._names.without}
        kept = {relation: self._kept_people(relation, parts) for relation, parts in outer.items()}
        found += kept.values()
        if where is not None:
            consume(where, "this", text=self._text, what="WHERE")
            self.own = [self._condition(part, "WHERE") for part in self._left(where.this)]
            found += self.own
        self._keep_groups(joined, [part for relation, part in kept.items() if relation in self._names.preserved])
        parts = [part for whole in found for part in parts_of(whole)]
        listed = [source for source in self._names.sources if source.constants is not None]
        for place, source in enumerate(listed, start=1):
            assert source.constants is not None
            later = [other.relation for other in listed[place:]]
            alone = met_alone(source.constants) if source.relation in outer else source.constants
            said = [part for whole in outer.get(source.relation, ()) for part in parts_of(whole)]
            met = max(1, most_met(alone, source.relation, [*parts, *said], later))
            self._names.meet(source.relation, min(met, source.constants.most))
        left = partners(self._names, parts)
        if len(left) < len(parts):
            found = parts = left
        if any(source.windows is not None for source in self._names.sources) and not self._names.preserved:
            found = parts = [part for part in parts if not self._numbered(part)]
        if not found:
            return None
        whole = build("and", parts) if len(found) > 1 else found[0]
        # Where public rows are kept, its parts are compared with one another as they are written.
        return whole if self.met or self._names.preserved else normal_predicate(whole)

    def _kept_people(self, relation: str, parts: list[Expression]) -> Expression:
        """The condition of a LEFT JOIN with rows of constants. Errors: Refused."""
        source = next(one for one in self._names.sources if one.relation == relation)
        place = self._text.position(dict(self._names.without)[relation][0]) if parts else None
        assert source.constants is not None
        try:
            if parts:
                return kept_people(source.constants, relation, parts)
        except TypeRefused as refused:
            raise Refused([replace(refused.finding, position=place)]) from None
        raise refuse(
            "join_not_on_key",
            "a LEFT JOIN with rows of constants is refused",
            "It has no condition, so that every row would meet all of them.",
            "write CROSS JOIN",
            position=place,
        )

    def _keep_groups(self, joined: list[Expression], both: list[Expression]) -> None:
        """Notes what outer joins that keep public rows say, `both` those that keep people as well.

        Where every row may meet somebody by what is declared, nothing is ruled out. Where a part of WHERE drops the
        rows of nobody, what the joins say rules out groups like any other condition.
        """
        said = zip(self._names.conditions, joined, strict=True)
        met = [whole for node, whole in said if id(node) in self._names.met]
        if not (met or both) or drops_nobody(self._names.preserved, self.own):
            return
        listed = [s for s in self._names.sources if s.constants is not None and s.relation in self._names.preserved]
        if not both and len(joined) == 1 and len(listed) == 1:
            constants = listed[0].constants
            assert constants is not None
            if keeps_all(constants, listed[0].relation, joined[0]):
                return
        own = [part for whole in self.own for part in parts_of(whole)]
        said_of_groups = [part for whole in (*met, *both) for part in parts_of(whole) if self._of_groups(part)]
        self.met = tuple(part for part in said_of_groups if part not in own)

    def _of_groups(self, part: Expression) -> bool:
        """Whether a condition could rule out public rows: of people's columns alone it cannot."""
        read = {column.relation for column in columns_of(part)}
        return not read or not read.isdisjoint(self._names.preserved)

    def _numbered(self, part: Expression) -> bool:
        """Whether a condition keeps so many of a unit's rows at most, and is now one on those rows before any join."""
        known = most_rows(part, self._names.sources)
        if known is not None:
            self._names.change(known[0], lambda source: limited(source, part, known[1]))
        return known is not None

    def _left(self, where: exp.Expr) -> list[exp.Expr]:
        """What is left of WHERE without the equalities that join tables: as it is, where there are none."""
        if not self._names.linked:
            return [where]
        return [part for part in conjuncts(where) if id(part) not in self._names.linked]

    def _meant(self, alias: exp.Expr) -> tuple[str, ...]:
        """What to write instead of the alias of an expression."""
        place = None if aggregate_calls([alias]) else self._text.position(alias)
        return ("use HAVING",) if place is None else (f"{place.text} in place of the alias", "use HAVING")

    def _condition(self, node: exp.Expr, clause: str) -> Expression:
        calls = aggregate_calls([node])
        if calls:
            called = calls[0].this if isinstance(calls[0], exp.Filter) else calls[0]
            name = self._text.spelled(called)
            raise refuse(
                "unsupported_sql",
                f"an aggregate in {clause} is refused" if name is None else f"{name} in {clause} is refused",
                f"It is an aggregate, and {clause} filters rows before they are aggregated.",
                "use HAVING",
                position=self._text.position(calls[0]),
            )
        for reference in node.find_all(exp.Column):
            alias = None if reference.table or self._names.knows(reference.name) else self._select.alias(reference.name)
            if alias is not None:
                raise refuse(
                    "unsupported_sql",
                    f'the alias "{reference.name[:63]}" in {clause} is refused',
                    f"{clause} filters rows, before the select list is computed.",
                    *self._meant(alias),
                    position=self._text.position(reference),
                )
        return self._reader.condition(node, clause)
