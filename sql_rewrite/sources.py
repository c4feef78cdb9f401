"""Tables of a private block and rows of blocks inside it, and what its column names mean."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from privacy.policy import Column, Dataset
from privacy.refusal import Refused
from sql_rewrite.entries import Entry, View, ambiguous_column, column_named, columns_of, tables_of
from sql_rewrite.expressions import Call, ColumnRef, Expression
from sql_rewrite.functions import build
from sql_rewrite.interval_columns import moments_of_interval
from sql_rewrite.plan import Source
from sql_rewrite.references import reference, without_unit
from sql_rewrite.refuse import did_you_mean, refuse
from sql_rewrite.syntax import consume, copied, rebuilt
from sql_rewrite.text import Text

__all__ = ["SOURCES_MAX", "SourceNames", "both"]

_NESTED = (exp.Query, exp.Subquery)
_RELATION = "relation"
"""Marks a column node whose table is a relation's own name and not an alias."""


SOURCES_MAX = 8
"""Most tables that one block joins."""


class SourceNames:
    """What FROM lists in a private block, and the resolution of column names against it.

    `aliases` are the relations by their folded names as written; `using` the folded names in USING: only these may
    stand for columns of two tables. `linked` are the equalities of WHERE that join tables, and `conditions` those of ON
    beside the equality that joins, and `without` those of joins that keep rows without constants, by their relation.
    `preserved` are public relations whose rows an outer join keeps, and `met` those of `conditions` that it says.
    """

    def __init__(
        self,
        entries: tuple[Entry, ...],
        aliases: Mapping[str, str],
        text: Text,
        dataset: Dataset,
        using: Collection[str] = (),
        *,
        linked: Collection[int] = (),
        conditions: Sequence[exp.Expr] = (),
        preserved: Collection[str] = (),
        inside: Sequence[tuple[str, exp.Expr]] = (),
        without: Sequence[tuple[str, Sequence[exp.Expr]]] = (),
    ) -> None:
        self.entries = entries
        self.linked = linked
        self.conditions = conditions
        self.preserved = preserved
        self.inside = inside
        self.without = without
        self.met: frozenset[int] = frozenset()
        self._using = using
        self._aliases = aliases
        self._by_relation = {entry.relation: entry for entry in entries}
        self._references: dict[tuple[str, str], Expression] = {}
        self._text = text
        self._dataset = dataset
        self._written = 0
        self._added: list[Source] = []

    @property
    def dataset(self) -> Dataset:
        """What is declared."""
        return self._dataset

    @property
    def sources(self) -> tuple[Source, ...]:
        """The tables of all entries, in the order of the entries."""
        return (*(source for entry in self.entries for source in tables_of(entry)), *self._added)

    def change(self, relation: str, change: Callable[[Source], Source], *, missing: bool = False) -> None:
        """Another description of a source, with the same columns; also of one that a nested block reads.

        Where it is `missing` beside some rows of a unit, the unit's key is NULL in these, also as a nested column.
        """

        def changed(entry: Entry) -> Entry:
            own = tuple([change(one) if one.relation == relation else one for one in tables_of(entry)])
            if isinstance(entry, Source):
                return own[0]
            columns = entry.rows.columns
            if missing:
                columns = tuple([(name, without_unit(column, relation)) for name, column in columns])
            return replace(entry, rows=replace(entry.rows, sources=own, columns=columns))

        self.entries = tuple(map(changed, self.entries))
        self._by_relation = {entry.relation: entry for entry in self.entries}
        self._references.clear()

    def number_of(self, known: Callable[[Source], bool]) -> int:
        """The number of an added source, or the one that the next source has."""
        found = next((source for source in self._added if known(source)), None)
        return 1 + max(int(s.relation[1:]) for s in self.sources) if found is None else int(found.relation[1:])

    def add(self, make: Callable[[str], Source], node: exp.Expr) -> Source:
        """A source that no name means, under a new relation; one with the same rows and join is there once.

        Errors: Refused (too_large).
        """
        number = 1 + max(int(source.relation[1:]) for source in self.sources)
        source = make(f"r{number}")
        for known in self._added:
            assert known.join is not None
            assert source.join is not None
            same = (known.table.name, known.groups, known.union) == (source.table.name, source.groups, source.union)
            also = [[(child, parent.name) for child, parent in one.join.also] for one in (known, source) if one.join]
            if same and known.join.child == source.join.child and also[0] == also[1]:
                return known
        if number >= SOURCES_MAX:
            raise refuse(
                "too_large",
                "the query is refused",
                f"It reads more than {SOURCES_MAX} tables, nested queries in its conditions included.",
                position=self._text.position(node),
            )
        self._added.append(source)
        return source

    def meet(self, relation: str, most: int) -> None:
        """Of a source of rows of constants, how many of them a row about people meets at most."""

        def met(source: Source) -> Source:
            assert source.constants is not None
            return replace(source, constants=replace(source.constants, most=most))

        self.change(relation, met)

    @property
    def views(self) -> tuple[View, ...]:
        """The entries that are rows of nested blocks."""
        return tuple(entry for entry in self.entries if isinstance(entry, View))

    def knows(self, name: str) -> bool:
        """Whether some entry has a column of that name."""
        return any(column_named(entry, name) is not None for entry in self.entries)

    def is_source(self, node: exp.Column) -> bool:
        """Whether a column node names a column of an entry."""
        try:
            return self._sought(node) is not None
        except Refused:
            return False

    def resolve(self, node: exp.Column) -> Expression:
        """What a column node stands for: a typed reference, or the expression that a nested block gives that name.

        Errors: Refused (unknown_column, unknown_table, ambiguous_column, too_large).
        """
        merged = self._merged(node)
        if merged is not None:
            return build("coalesce", merged)
        entry, name = self.find(node)
        known = self._references.get((entry.relation, name))
        if known is None:
            known = self._references[entry.relation, name] = self._expression(entry, name)
        if isinstance(known, Call):
            # Each name may stand for an expression that holds others twice: without a limit their size doubles.
            self._written += known.weight
            if self._written > _WRITTEN_MAX:
                raise refuse(
                    "too_large",
                    "the query is refused",
                    "Columns of its nested queries are too large once they are written out.",
                    "use fewer of them, or shorter ones",
                    position=self._text.position(node),
                )
        return known

    def _expression(self, entry: Entry, name: str) -> Expression:
        if isinstance(entry, View):
            found = entry.column(name)
            assert found is not None
            return self._counted(found[1])
        column = entry.table.column(name)
        assert column is not None
        return self._counted(reference(entry, column, self._dataset))

    def _counted(self, found: Expression) -> Expression:
        """The expression. Behind two outer joins the unit's key counts as values: it is NULL in some rows of a unit."""
        if not isinstance(found, ColumnRef) or not found.is_unit:
            return found
        by_relation = {source.relation: source for source in self.sources}
        source = by_relation.get(found.relation)
        if source is None or source.join is None or not source.join.outer:
            return found
        child = by_relation.get(source.join.child.relation)
        behind = child is not None and child.join is not None and child.join.outer
        return replace(found, is_unit=False) if behind else found

    def star(self, relation: str | None = None) -> list[tuple[str, Expression]]:
        """The columns of all entries, or of one, in order; those that USING joins once. Errors: Refused."""
        result: list[tuple[str, Expression]] = []
        merged: set[str] = set()
        for entry in self.entries:
            if relation is not None and entry.relation != relation:
                continue
            for name in columns_of(entry):
                if name.lower() in self._using and relation is None:
                    if name.lower() in merged:
                        continue
                    merged.add(name.lower())
                either = None if relation is not None else self._merged(exp.column(name))
                result.append((name, self._expression(entry, name) if either is None else build("coalesce", either)))
        return result

    def relation_of(self, alias: str) -> str | None:
        """The relation that an alias means."""
        return self._aliases.get(alias.lower())

    def qualified(self, node: exp.Expr) -> exp.Expr:
        """A copy of a node in which every column of an entry is written as relation and declared name.

        Two spellings of one expression are then equal trees. Nested queries are left alone, and stay the same
        objects, so that they are lifted once.
        """
        if isinstance(node, _NESTED):
            return node
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            try:
                found = self._sought(node)
            except Refused:
                found = None
            if found is None:
                return copied(node)
            entry, name = found
            if _RELATION in node.meta:
                return copied(node)
            copy = exp.Column(
                this=exp.Identifier(this=name, quoted=True),
                table=exp.Identifier(this=entry.relation, quoted=True),
            )
            copy.meta[_RELATION] = True
            if self._merged(node) is not None:
                copy = exp.Column(this=exp.Identifier(this=name, quoted=True))
            place = self._place(node)
            if place is not None:
                copy.meta.update(place)
            return copy
        result = rebuilt(node, self.qualified)
        result.meta.update(node.meta)
        return result

    def _place(self, node: exp.Column) -> dict[str, int] | None:
        spans = [part.meta for part in node.walk() if "start" in part.meta]
        if not spans:
            return None
        return {"start": min(m["start"] for m in spans), "end": max(m["end"] for m in spans)}

    def _sought(self, node: exp.Column) -> tuple[Entry, str] | None:
        """The entry and column of a node, None when there is none: most of these names are aliases of the answer."""
        consume(node, "this", "table", text=self._text, what="a column reference")
        name, qualifier = node.name, node.table
        if qualifier:
            entry = self._by_relation.get(self._relation(node) or "")
            column = None if entry is None else column_named(entry, name)
            return None if entry is None or column is None else (entry, column)
        found = [(entry, own) for entry in self.entries if (own := column_named(entry, name)) is not None]
        if len(found) > 1 and not self._same_by_join(found):
            raise self._ambiguous(node, [entry for entry, _ in found])
        kept = [one for one in found if any(s.relation in self.preserved for s in tables_of(one[0])[:1])]
        return kept[0] if kept else found[0] if found else None

    @property
    def merged(self) -> tuple[tuple[ColumnRef, ColumnRef], ...]:
        """What each FULL JOIN with a public table compares: a column of people, and the public one."""
        return tuple(
            (source.join.child, source.join.parent)
            for source in self.sources
            if source.join is not None
            and source.join.outer
            and source.relation in self.preserved
            and source.join.child.relation not in self.preserved
        )

    def _merged(self, node: exp.Column) -> tuple[Expression, ...] | None:
        """Both columns of a FULL JOIN that a name stands for, where USING says so (merged_keys.py)."""
        pairs = self.merged if self.preserved and not node.table and node.name.lower() in self._using else ()
        if not pairs:
            return None
        found = [(entry, own) for entry in self.entries if (own := column_named(entry, node.name)) is not None]
        columns = [one for one in [self._expression(*each) for each in found] if isinstance(one, ColumnRef)]
        for pair in pairs:
            ends = [next((c for c in columns if (c.relation, c.name) == (p.relation, p.name)), None) for p in pair]
            if ends[0] is not None and ends[1] is not None:
                return ends[0], ends[1]
        return None

    def holds_interval(self, node: exp.Column) -> bool:
        """Whether a name is that of a column of intervals: two moments stand for it (interval_columns.py)."""
        named = node.name.lower() in self._text.intervals
        return named and all(map(self.is_source, moments_of_interval(node)))

    def joins_to(self, table: str) -> tuple[str, ...] | None:
        """How a public table that no source reads is joined to the sources, by declared references.

        None for another table.
        """
        found = self._dataset.table(table)
        if found is None or found.protected:
            return None
        return tuple(
            f"{source.table.name} JOIN {found.name} ON {source.table.name}.{r.column} = {found.name}.{r.key}"
            for source in self.sources
            for r in source.table.references
            if r.table == found.name
        )

    def check_using(self, node: exp.Identifier, found: Sequence[Entry]) -> None:
        """Refuses a name of USING that several earlier entries have a column of, unless an earlier USING joined them.

        Errors: Refused (ambiguous_column).
        """
        if len(found) > 1 and node.name.lower() not in self._using:
            raise self._ambiguous(node, found)

    def _ambiguous(self, node: exp.Column | exp.Identifier, found: Sequence[Entry]) -> Refused:
        relations = {relation: alias for alias, relation in self._aliases.items()}
        return ambiguous_column(node, [relations[entry.relation] for entry in found], self._text)

    def _relation(self, node: exp.Column) -> str | None:
        """The relation that a column node names: our own name for it on nodes of ours, an alias on the analyst's.

        The analyst may call a table r1 that is our r0.
        """
        return node.table if _RELATION in node.meta else self._aliases.get(node.table.lower())

    def find(self, node: exp.Column) -> tuple[Entry, str]:
        """The entry and column that a node names. Errors: Refused, as `resolve`."""
        found = self._sought(node)
        if found is not None:
            return found
        name, qualifier = node.name, node.table
        if name.lower() in self._text.intervals:
            raise refuse(
                "unsupported_type",
                f'column "{name[:63]}" is refused here',
                "It is an interval, which is compared with INTERVAL, or has a mean, a median and extremes.",
                f"write epoch({name[:63]}), which are its seconds",
                position=self._text.position(node),
            )
        entries: Sequence[Entry] = self.entries
        if qualifier:
            relation = self._relation(node)
            if relation not in self._by_relation:
                raise refuse(
                    "unknown_table",
                    f'relation "{qualifier[:63]}" is refused',
                    "No table of that name is read here."
                    if relation is None
                    else "It is joined behind this condition.",
                    *(did_you_mean(qualifier, self._aliases) if relation is None else ("join it before",)),
                    position=self._text.position(node),
                )
            entries = [self._by_relation[relation or ""]]
        meant = name[:63] if not qualifier and isinstance(node.this, exp.Identifier) and node.this.quoted else "North"
        known = [column for entry in entries for column in columns_of(entry)]
        columns, string = "columns: " + ", ".join(known[:20]), f"a string stands in single quotes: '{meant}'"
        raise refuse(
            "unknown_column",
            f'column "{name[:63]}" is refused',
            "No table that the query reads has a column of that name.",
            *(did_you_mean(name, known) or (columns, string)),
            position=self._text.position(node),
        )

    def column_of(self, entry: Entry, identifier: exp.Identifier) -> exp.Column:
        """A node that names the entry's column of that name, whatever other entries have."""
        node = exp.Column(this=identifier.copy(), table=exp.Identifier(this=entry.relation, quoted=True))
        node.meta[_RELATION] = True
        return node

    def own_name(self, entry: Entry, name: str) -> str | None:
        """The declared name of an entry's column, None where it has none of that name."""
        return column_named(entry, name)

    def stored(self, entry: Entry, name: str) -> tuple[Source, Column] | None:
        """The table's column that a column of an entry is, None where a nested block computes it."""
        if isinstance(entry, Source):
            column = entry.table.column(name)
            return None if column is None else (entry, column)
        found = entry.column(name)
        if found is None or not isinstance(found[1], ColumnRef):
            return None
        source = next((one for one in entry.rows.sources if one.relation == found[1].relation), None)
        if source is None:
            return None  # a released number
        column = source.table.column(found[1].name)
        assert column is not None
        return source, column

    def _same_by_join(self, found: Sequence[tuple[Entry, str]]) -> bool:
        """Whether all candidates are the two sides of inner or left joins on that very column, by USING.

        DuckDB takes them for one column only where USING says so, and not where ON compares them.
        """
        if found[0][1].lower() not in self._using:
            return False
        if all(any(source.constants for source in tables_of(entry)) for entry, _ in found[1:]):
            return True  # inner joins with rows of constants, by an equality that is a condition of the block
        stored = [self.stored(*one) for one in found]
        if stored[0] is None:
            return False
        first, column = stored[0]
        for one in stored[1:]:
            if one is None or one[0].join is None:
                return False
            source, other = one
            join = one[0].join
            sides = {(join.child.relation, join.child.name), (join.parent.relation, join.parent.name)}
            if sides != {(first.relation, column.name), (source.relation, other.name)}:
                return False
        return True


_WRITTEN_MAX = 50_000
"""Most operators that the names of computed columns of nested blocks may stand for in one block, all together."""


def both(one: Expression | None, other: Expression | None) -> Expression | None:
    """Two conditions as one, None where there is none."""
    if one is None or other is None:
        return other if one is None else one
    return build("and", (one, other))
