"""Joins of a private block: many-to-one, from the table whose rows are counted to its parents, or on the unit.

A join along a declared reference leads from the table that holds it to the table whose unique key it names. It never
repeats a row, so the contribution bounds of the first table stay true. So does one to a public table by a column that
is declared unique, from any column of that type: attaching verifies that its values are different.

Two relations of rows about people are also joined where both sides are the unit's key. Claim: the join is unit-local.
Proof: two rows meet only where their units are equal, so every row of the join belongs to that one unit, and the rows
of unit u are the pairs of u's own rows on either side; a row that an outer join keeps belongs to its own unit. The
rows of a unit multiply, and so do the bounds of what is stored and of what counts (unit_facts.py); a bound per unit
above holds whatever the multiplicities are. A reference to another person, such as a manager, is no such path.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeGuard

from sqlglot import exp

from privacy.policy import Dataset, Table
from privacy.refusal import Refused
from sql_rewrite.constant_outer import with_nobody
from sql_rewrite.entries import Entry, View, tables_of
from sql_rewrite.join_advice import INNER, declared
from sql_rewrite.join_constants import check_order, meeting, natural, of_constants
from sql_rewrite.join_links import (
    End,
    Link,
    Place,
    both_units,
    joined_by_columns,
    keyed,
    link_of,
    linked,
    listed,
    one_key,
    refers,
    with_partners,
)
from sql_rewrite.join_order import ordered
from sql_rewrite.plan import Join, Source
from sql_rewrite.public_joins import as_constants
from sql_rewrite.references import reference
from sql_rewrite.refuse import refuse
from sql_rewrite.rows import Rows
from sql_rewrite.sources import SOURCES_MAX, SourceNames
from sql_rewrite.stage_joins import beside, join_released, keeps_left_out
from sql_rewrite.stage_tables import StageTable
from sql_rewrite.text import Text

__all__ = ["SOURCES_MAX", "resolve_sources"]


def resolve_sources(
    node: exp.Select,
    tables: Sequence[tuple[exp.Expr, Table | Rows]],
    dataset: Dataset,
    text: Text,
    *,
    first: int = 0,
    public: bool = False,
) -> SourceNames:
    """What FROM of a block lists: the table whose rows are counted first, its parents after it.

    Tables are called r and a number, from `first` on; those of nested blocks are called so already. A nested block may
    be `public`: then it starts from a public table, and what reads it joins its rows as it would join that table's.
    Errors: Refused (join_not_on_key, join_multiplies, too_large, unsupported_sql).
    """
    found = _From(node, dataset, text, public=public)
    for item, table in tables:
        if first >= SOURCES_MAX:
            raise refuse("too_large", "FROM is refused", f"It joins more than {SOURCES_MAX} tables.")
        first += found.place(item, table, first)
    for place, join in enumerate(node.args.get("joins") or [], start=1):
        found.join(place, join)
    return found.names()


class _From:
    """What FROM lists, item by item and then join by join."""

    def __init__(self, node: exp.Select, dataset: Dataset, text: Text, *, public: bool) -> None:
        self._node = node
        self._public = public
        self._dataset = dataset
        self._text = text
        self._aliases: dict[str, str] = {}
        self._drafts: list[Entry] = []
        self._rows: list[View] = []
        """Released rows, one each: they join nothing, and every row meets them."""
        self._released: list[tuple[int, str, StageTable]] = []
        self._single: set[int] = set()
        """The places of released rows among the items."""
        self._before: list[int] = []
        """How many drafts there are before each item."""
        self._links: list[Link] = []
        self._using: set[str] = set()
        self._conditions: list[exp.Expr] = []
        self._compared: list[exp.Expr] = []
        """Conditions with released rows: of all rows that meet them."""
        self._met: list[exp.Expr] = []
        """Those of the conditions that a join says which keeps public rows."""
        self._inside: list[tuple[str, exp.Expr]] = []
        self._without: list[tuple[str, list[exp.Expr]]] = []
        self._kept: set[str] = set()
        self._apart = False
        """Whether WHERE says how some of them are joined."""

    def place(self, item: exp.Expr, table: Table | Rows, first: int) -> int:
        """Takes the next item, whose first table is called by that number. Returns how many numbers it takes."""
        self._before.append(len(self._drafts))
        name = (item.alias or item.name).lower() or f"nested {len(self._drafts)}"
        if name in self._aliases or any(name == other for _, other, _ in self._released):
            raise refuse(
                "ambiguous_column",
                f'table "{name[:63]}" is read twice under one name',
                "The columns could not be distinguished.",
                "give each its own alias",
                position=self._text.position(item),
            )
        if _is_row(table) and table.released is not None:
            self._released.append((len(self._before) - 1, name, table.released))
            return 0
        if _is_row(table):
            self._single.add(len(self._before) - 1)
            self._rows.append(View(f"s{len(self._rows)}", table))
            self._aliases[name] = self._rows[-1].relation
            return 0
        self._drafts.append(View(f"q{first}", table) if isinstance(table, Rows) else Source(f"r{first}", table))
        self._aliases[name] = self._drafts[-1].relation
        return len(table.sources) if isinstance(table, Rows) else 1

    def join(self, place: int, said: exp.Join) -> None:
        """Reads the join of the item at that place."""
        at = self._before[place]
        if any(place == of for of, _, _ in self._released):
            return
        if place in self._single or not at:
            self._compared += beside(said, self._text)
            return
        met = self._compared or any(of < place for of, _, _ in self._released)
        if met and str(said.args.get("side") or "").upper() in ("RIGHT", "FULL"):
            raise keeps_left_out(said, self._text)
        visible = self._seen((*self._rows, *self._drafts[: at + 1]))
        join = natural(said, visible, self._text)
        if self._know(at, join, visible):
            visible = self._seen((*self._rows, *self._drafts[: at + 1]))
        check_order(said, [*self._rows, *self._drafts[:at]], self._text)
        using = {identifier.name.lower() for identifier in join.args.get("using") or []}
        if of_constants(self._drafts[at]) or all(map(of_constants, self._drafts[:at])):
            self._meet_constants(at, join, visible)
            self._using |= using
        elif listed(join, self._node):
            self._apart = True
        else:
            before = len(self._conditions)
            self._links.append(link_of(join, visible, self._dataset, self._text, self._conditions, self._inside))
            self._met += self._conditions[before:] if self._links[-1].outer else []
            self._using |= using

    def _know(self, at: int, join: exp.Join, visible: SourceNames) -> bool:
        """Makes rows that everybody knows of public tables which a join compares by no columns of theirs."""
        if self._public or listed(join, self._node) or joined_by_columns(join, visible, self._dataset, self._text):
            return False
        earlier = range(at)
        if all(not source.table.protected for place in earlier for source in tables_of(self._drafts[place])):
            return self._known([place for place in earlier if not of_constants(self._drafts[place])])
        return self._known([at])

    def _known(self, places: Sequence[int]) -> bool:
        """Makes rows that everybody knows of the items at these places, where all of them are small public tables."""
        found = [as_constants(self._drafts[place], self._dataset) for place in places]
        if None in found:
            return False
        for place, view in zip(places, found, strict=True):
            assert view is not None
            self._aliases = {
                name: view.relation if of == self._drafts[place].relation else of for name, of in self._aliases.items()
            }
            self._drafts[place] = view
        return bool(found)

    def _seen(self, entries: tuple[Entry, ...]) -> SourceNames:
        return SourceNames(entries, self._aliases, self._text, self._dataset, frozenset(self._using))

    def _meet_constants(self, at: int, join: exp.Join, visible: SourceNames) -> None:
        outer: list[str] = []
        kept = len(self._kept)
        parts = meeting(join, visible, self._text, self._kept, outer)
        if not outer:
            self._conditions += parts
            self._met += parts if len(self._kept) > kept else []
            return
        at = next(place for place, entry in enumerate(self._drafts) if entry.relation == outer[0])
        view = self._drafts[at]
        assert isinstance(view, View)
        self._drafts[at] = with_nobody(view)
        self._without.append((tables_of(view)[0].relation, parts))

    def _linked_in_where(self) -> set[int]:
        """Adds the links that WHERE says. Returns the conditions that say them."""
        node, drafts = self._node, self._drafts
        everything = self._seen((*drafts, *self._rows))
        known = {link.right.entry.relation for link in self._links}
        found, written = linked(node, everything, known, self._dataset, self._text)
        self._links += found
        ends = {end.entry.relation for link in self._links for end in (link.left, link.right)}
        if not self._public:
            self._known([place for place, one in enumerate(drafts) if one.relation not in ends and _is_public(one)])
        if len(self._links) < sum(not of_constants(entry) for entry in drafts) - 1:
            raise refuse(
                "join_not_on_key",
                "a join without a condition is refused",
                "WHERE does not say for each of the tables which declared reference joins it by the key that it names.",
                *declared(self._dataset, *everything.sources),
                position=self._text.position(node),
            )
        return written

    def names(self) -> SourceNames:
        """The names of all that was read."""
        conditions = [*self._conditions, *self._compared]
        written = self._linked_in_where() if self._apart else set()
        joins, preserved = _joins(self._links, self._dataset)
        place = partial(self._text.position, self._node)
        entries = ordered(self._drafts, joins, self._dataset, place, public=self._public)
        if self._released:
            known = SourceNames((*entries, *self._rows), self._aliases, self._text, self._dataset, self._using)
            met = [
                join_released(self._node, place, name, f"t{number}", table, known, conditions, self._text)
                for number, (place, name, table) in enumerate(self._released)
            ]
            self._aliases |= {name: view.relation for (_, name, _), view in zip(self._released, met, strict=True)}
            self._rows += met
        names = SourceNames(
            (*entries, *self._rows),
            self._aliases,
            self._text,
            self._dataset,
            self._using,
            linked=written,
            conditions=conditions,
            preserved=_kept(entries, preserved | self._kept),
            inside=self._inside,
            without=self._without,
        )
        names.met = frozenset(map(id, self._met))
        return names


def _is_row(table: Table | Rows) -> TypeGuard[Rows]:
    """Whether an item of FROM is one released row."""
    return isinstance(table, Rows) and not table.sources


def _is_public(entry: Entry) -> bool:
    """Whether an item of FROM is a stored public table as it is."""
    return isinstance(entry, Source) and entry.stored and not entry.table.protected


def _kept(entries: Sequence[Entry], preserved: Collection[str]) -> frozenset[str]:
    """The public relations whose rows an outer join keeps, and what those refer to."""
    kept = set(preserved)
    for entry in entries if kept else ():
        for source in tables_of(entry):
            if source.join is not None and source.join.child.relation in kept and not source.table.protected:
                kept.add(source.relation)
    return frozenset(kept)


def _joins(links: Sequence[Link], dataset: Dataset) -> tuple[dict[str, Join], set[str]]:
    """The joins by the entry of their parent, and the public relations whose rows an outer join keeps.

    Each link points from a reference to a unique key, or else it is of units.
    """
    joins: dict[str, Join] = {}
    preserved: set[str] = set()
    for place, link in enumerate(links):
        child, parent = link.left, link.right
        if not refers(child, parent) and (refers(parent, child) or not keyed(child, parent)):
            child, parent = parent, child
        along = refers(child, parent) or keyed(child, parent)
        child, parent, met = (child, parent, 1) if along else with_partners(link, dataset)
        along = along or met > 0
        both = link.outer == "FULL"
        kept = child if both else {"LEFT": link.left, "RIGHT": link.right, "": None}[link.outer]
        if both and not (along and child.source.table.protected and not parent.source.table.protected):
            raise _full(link)
        single = along and kept is not parent and parent.entry.relation not in joins
        single = single and parent.source.relation == _first(parent.entry)
        of_units = both_units(link.left, link.right, dataset=dataset)
        if not single and (of_units or one_key(link.left, link.right)):
            _add_on_unit(link, joins, dataset, alone=not place, of_units=of_units)
            continue
        if not along:
            raise refuse(
                "join_not_on_key",
                "a join is refused",
                "No declared reference connects these two columns.",
                *declared(dataset, child.source, parent.source),
                position=link.place(),
            )
        if (both or kept is parent) and isinstance(parent.entry, View) and not parent.source.table.protected:
            raise _outer_of_nested(link)  # which public rows are kept would follow from the nested query's condition
        if both:
            preserved.add(parent.source.relation)
            _check_outer(replace(link, outer="LEFT", left=child, right=parent), child, parent, dataset, first=not place)
        elif kept is parent and not parent.source.table.protected:
            preserved.add(parent.source.relation)
        else:
            _check_outer(link, child, parent, dataset, first=not place)
        _check_unit_path(child, parent.source.table, dataset, link.place)
        if parent.entry.relation in joins:
            raise _meets_many(link)
        if parent.source.relation != _first(parent.entry):
            raise refuse(
                "join_multiplies",
                "a join is refused",
                f'The nested query has a row for each row of "{tables_of(parent.entry)[0].table.name}", so a row of '
                f'"{child.source.table.name}" could meet many of them.',
                f"join {parent.source.table.name} itself",
                position=link.place(),
            )
        joins[parent.entry.relation] = Join(
            child=reference(child.source, child.column, dataset),
            parent=reference(parent.source, parent.column, dataset),
            outer=kept is child,
            most=met,
            tried=met,
        )
    return joins, preserved


def _check_outer(link: Link, child: End, parent: End, dataset: Dataset, *, first: bool) -> None:
    """Errors: Refused where an outer join keeps rows that have no unit, or that nobody can tell apart."""
    kept = {"LEFT": link.left, "RIGHT": link.right, "": None}[link.outer]
    if kept is parent:
        raise refuse(
            "join_multiplies",
            f"a {link.outer} JOIN to many rows is refused",
            "It would repeat rows of one person and add rows without a partner.",
            *declared(dataset, child.source, parent.source),
            position=link.place(),
        )
    if kept is child and isinstance(parent.entry, View) and not parent.entry.rows.plain:
        raise _outer_of_nested(link)
    if link.outer == "RIGHT" and not first:
        raise _right_after_another(link)


def _outer_of_nested(link: Link) -> Refused:
    return refuse(
        "unsupported_sql",
        f"a {link.outer} JOIN of a nested query is refused",
        "Rows that it leaves out and rows that are missing could not be distinguished. It is not answered yet.",
        "join the table itself, and compute outside: CASE WHEN v.key IS NOT NULL THEN v.x * 2 END",
        INNER,
        position=link.place(),
    )


def _right_after_another(link: Link) -> Refused:
    return refuse(
        "unsupported_sql",
        "a RIGHT JOIN after another join is refused",
        "It would leave out every table before it. It is not answered yet.",
        "write it as LEFT JOIN",
        position=link.place(),
    )


def _full(link: Link) -> Refused:
    return refuse(
        "unsupported_sql",
        "a FULL JOIN is refused",
        "It joins two tables of people alone, on the key of the privacy unit, or one of people with a public table.",
        "use LEFT JOIN, from the table whose rows are kept",
        position=link.place(),
    )


def _meets_many(link: Link) -> Refused:
    return refuse(
        "join_multiplies",
        "a join is refused",
        "Two tables refer to one table, so rows of one person would be multiplied.",
        "aggregate each table in its own query",
        position=link.place(),
    )


def _add_on_unit(link: Link, joins: dict[str, Join], dataset: Dataset, *, alone: bool, of_units: bool) -> None:
    """Adds the join of rows about people that belong to one unit, which all tables of an entry share.

    An equality of columns of one key space implies that of the units; the join compares both.
    """
    left, right = (link.right, link.left) if link.outer == "RIGHT" else (link.left, link.right)
    if link.outer == "RIGHT" and not alone:
        raise _right_after_another(link)
    if link.outer and isinstance(right.entry, View) and not right.entry.rows.plain:
        raise _outer_of_nested(link)
    if right.entry.relation in joins:
        raise _meets_many(link)
    if not of_units and right.source.relation != _first(right.entry):
        raise refuse(
            "unsupported_sql",
            "a join of a nested query is refused",
            f'It compares a column of "{right.source.table.name}", and the nested query starts from '
            f'"{tables_of(right.entry)[0].table.name}". It is not answered yet.',
            f"join {right.source.table.name} itself",
            position=link.place(),
        )
    child, parent = (reference(end.source, end.column, dataset) for end in (left, right))
    joins[right.entry.relation] = Join(
        child=child,
        parent=replace(parent, relation=_first(right.entry)),
        outer=bool(link.outer),
        on_unit=True,
        also=() if of_units else ((child, parent),),
    )


def _first(entry: Entry) -> str:
    """The relation whose rows are the entry's."""
    return tables_of(entry)[0].relation


def _check_unit_path(child: End, parent: Table, dataset: Dataset, place: Place) -> None:
    """A protected parent must be on the child's own way to the privacy unit: then both rows have one owner."""
    if not parent.protected:
        return
    table, column = child.source.table, child.column
    if not table.protected:
        raise refuse(
            "join_multiplies",
            "a join is refused",
            f'The public table "{table.name}" cannot own rows of people.',
            position=place(),
        )
    direct = not table.unit_path and table.unit_column == column.name and parent.name == dataset.unit.table
    first = table.unit_path[0] if table.unit_path else None
    along = first is not None and first.column == column.name and first.table == parent.name
    if not (direct or along):
        raise refuse(
            "join_not_on_key",
            "a join is refused",
            "It does not follow the table's way to the privacy unit, so two people could meet in one row.",
            *declared(dataset),
            position=place(),
        )
