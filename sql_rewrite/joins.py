"""Joins of a private block: many-to-one, from the table whose rows are counted to its parents, or on the unit.

A join along a declared reference leads from the table that holds it to the table whose unique key it names. It never
repeats a row, so the contribution bounds of the first table stay true. So does one to a public table by a column that
is declared unique, from any column of that type: attaching verifies that its values are different.

Two relations of rows about people are also joined where both sides are the unit's key. Claim: the join is unit-local.
Proof: two rows meet only where their units are equal, so every row of the join belongs to that one unit, and the rows
of unit u are the pairs of u's own rows on either side; a row that an outer join keeps belongs to its own unit. The
rows of a unit multiply, and so do the bounds of what is stored and of what counts (plan.py); a bound per unit above
holds whatever the multiplicities are. A reference to another person, such as a manager, is no such path.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeGuard

from sqlglot import exp

from privacy.policy import Dataset, Table
from privacy.refusal import Refused
from sql_rewrite.constant_outer import with_nobody
from sql_rewrite.expressions import ColumnRef, Expression
from sql_rewrite.join_advice import declared
from sql_rewrite.join_constants import check_order, meeting, natural, of_constants
from sql_rewrite.join_links import (
    End,
    Link,
    Place,
    both_units,
    conjuncts,
    keyed,
    link_of,
    linked,
    listed,
    one_key,
    refers,
)
from sql_rewrite.plan import Join, Source, rows_of_unit
from sql_rewrite.refuse import refuse
from sql_rewrite.rows import Rows
from sql_rewrite.sources import SOURCES_MAX, Entry, SourceNames, View, both, reference, tables_of
from sql_rewrite.stage_joins import join_released
from sql_rewrite.stage_tables import StageTable
from sql_rewrite.syntax import populated
from sql_rewrite.text import Text

__all__ = ["SOURCES_MAX", "resolve_sources"]

PAIRS_MAX = 2**20
"""Most rows of one unit after joins on the unit: as many as two tables of a thousand rows each make."""


def resolve_sources(
    node: exp.Select,
    tables: Sequence[tuple[exp.Expr, Table | Rows]],
    dataset: Dataset,
    text: Text,
    *,
    first: int = 0,
) -> SourceNames:
    """What FROM of a block lists: the table whose rows are counted first, its parents after it.

    Tables are called r and a number, from `first` on; those of nested blocks are called so already.
    Errors: Refused (join_not_on_key, join_multiplies, too_large, unsupported_sql).
    """
    aliases: dict[str, str] = {}
    released: list[tuple[int, str, StageTable]] = []
    drafts: list[Entry] = []
    rows: list[View] = []
    """Released rows, one each: they join nothing, and every row meets them."""
    before: list[int] = []
    for item, table in tables:
        before.append(len(drafts))
        if first >= SOURCES_MAX:
            raise refuse("too_large", "FROM is refused", f"It joins more than {SOURCES_MAX} tables.")
        name = (item.alias or item.name).lower() or f"nested {len(drafts)}"
        if name in aliases or any(name == other for _, other, _ in released):
            raise refuse(
                "ambiguous_column",
                f'table "{name[:63]}" is read twice under one name',
                "The columns could not be distinguished.",
                "give each its own alias",
                position=text.position(item),
            )
        if _is_row(table) and table.released is not None:
            released.append((len(before) - 1, name, table.released))
            continue
        if _is_row(table):
            rows.append(View(f"s{len(rows)}", table))
            aliases[name] = rows[-1].relation
            continue
        if isinstance(table, Rows):
            drafts.append(View(f"q{first}", table))
            first += len(table.sources)
        else:
            drafts.append(Source(f"r{first}", table))
            first += 1
        aliases[name] = drafts[-1].relation
    links: list[Link] = []
    using: set[str] = set()
    conditions: list[exp.Expr] = []
    inside: list[tuple[str, exp.Expr]] = []
    apart = False
    kept: set[str] = set()
    without: list[tuple[str, list[exp.Expr]]] = []
    compared: list[exp.Expr] = []
    for place, said in enumerate(node.args.get("joins") or [], start=1):
        at = before[place]
        if any(place == of for of, _, _ in released):
            continue
        if _is_row(tables[place][1]) or not at:
            compared += _beside(said, text)
            continue
        if (compared or any(of < place for of, _, _ in released)) and str(said.args.get("side") or "").upper() in (
            "RIGHT",
            "FULL",
        ):
            raise _keeps_left_out(said, text)
        visible = SourceNames((*rows, *drafts[: at + 1]), aliases, text, dataset, frozenset(using))
        join = natural(said, visible, text)
        check_order(said, [*rows, *drafts[:at]], text)
        if of_constants(drafts[at]) or all(map(of_constants, drafts[:at])):
            outer: list[str] = []
            parts = meeting(join, visible, text, kept, outer)
            if outer:
                view = drafts[at]
                assert isinstance(view, View)
                drafts[at] = with_nobody(view)
                without.append((tables_of(view)[0].relation, parts))
            else:
                conditions += parts
            using.update(identifier.name.lower() for identifier in join.args.get("using") or [])
            continue
        if listed(join, node):
            apart = True
            continue
        links.append(link_of(join, visible, dataset, text, conditions, inside))
        using.update(identifier.name.lower() for identifier in join.args.get("using") or [])
    conditions += compared
    written: set[int] = set()
    if apart:
        everything = SourceNames((*drafts, *rows), aliases, text, dataset, frozenset(using))
        found, written = linked(node, everything, {link.right.entry.relation for link in links}, dataset, text)
        links += found
        if len(links) < sum(not of_constants(entry) for entry in drafts) - 1:
            raise refuse(
                "join_not_on_key",
                "a join without a condition is refused",
                "WHERE does not say for each of the tables which declared reference joins it by the key that it names.",
                *declared(dataset, *everything.sources),
                position=text.position(node),
            )
    joins, preserved = _joins(links, dataset)
    preserved |= kept
    entries = _ordered(drafts, joins, dataset, partial(text.position, node))
    if released:
        known = SourceNames((*entries, *rows), aliases, text, dataset, using)
        met = [
            join_released(node, place, name, f"t{number}", table, known, conditions, text)
            for number, (place, name, table) in enumerate(released)
        ]
        aliases |= {name: view.relation for (_, name, _), view in zip(released, met, strict=True)}
        rows = [*rows, *met]
    return SourceNames(
        (*entries, *rows),
        aliases,
        text,
        dataset,
        using,
        linked=written,
        conditions=conditions,
        preserved=_kept(entries, preserved),
        inside=inside,
        without=without,
    )


def _is_row(table: Table | Rows) -> TypeGuard[Rows]:
    """Whether an item of FROM is one released row."""
    return isinstance(table, Rows) and not table.sources


def _beside(join: exp.Join, text: Text) -> list[exp.Expr]:
    """The conditions of a join with one released row: of all rows that meet it. Errors: Refused."""
    kind, side = str(join.args.get("kind") or "").upper(), str(join.args.get("side") or "").upper()
    if populated(join) - {"this", "on", "kind", "side"} or kind not in ("", "CROSS", "INNER") or side:
        raise refuse(
            "unsupported_sql",
            "a join with released numbers is refused",
            "Every row meets the one released row: it is joined with CROSS JOIN, a comma, or JOIN ... ON a condition.",
            "write it last, as CROSS JOIN, and its conditions into WHERE",
            position=text.position(join.this),
        )
    on = join.args.get("on")
    return [] if on is None else [part for part in conjuncts(on) if not _is_true(part)]


def _keeps_left_out(join: exp.Join, text: Text) -> Refused:
    return refuse(
        "unsupported_sql",
        f"a {str(join.args.get('side')).upper()} JOIN after a join with released numbers is refused",
        "It would keep rows that the join before it leaves out. It is not answered yet.",
        "join the released numbers last, or write their condition into WHERE",
        position=text.position(join.this),
    )


def _is_true(part: exp.Expr) -> bool:
    return isinstance(part, exp.Boolean) and part.this is True


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
        kept = {"LEFT": link.left, "RIGHT": link.right, "": None}[link.outer]
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
        if kept is parent and not parent.source.table.protected and child.source.table.protected:
            preserved.add(parent.source.relation)
        elif kept is parent:
            raise refuse(
                "join_multiplies",
                f"a {link.outer} JOIN to many rows is refused",
                "It would repeat rows of one person and add rows without a partner.",
                *declared(dataset, child.source, parent.source),
                position=link.place(),
            )
        elif kept is child and isinstance(parent.entry, View) and not parent.entry.rows.plain:
            raise refuse(
                "unsupported_sql",
                f"a {link.outer} JOIN of a nested query is refused",
                "Rows that it leaves out and rows that are missing could not be distinguished. It is not answered yet.",
                "use JOIN, or join the table itself",
                position=link.place(),
            )
        elif link.outer == "RIGHT" and place:
            raise refuse(
                "unsupported_sql",
                "a RIGHT JOIN after another join is refused",
                "It would leave out every table before it. It is not answered yet.",
                "write it as LEFT JOIN",
                position=link.place(),
            )
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
        )
    return joins, preserved


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
        raise refuse(
            "unsupported_sql",
            "a RIGHT JOIN after another join is refused",
            "It would leave out every table before it. It is not answered yet.",
            "write it as LEFT JOIN",
            position=link.place(),
        )
    if link.outer and isinstance(right.entry, View) and not right.entry.rows.plain:
        raise refuse(
            "unsupported_sql",
            f"a {link.outer} JOIN of a nested query is refused",
            "Rows that it leaves out and rows that are missing could not be distinguished. It is not answered yet.",
            "use JOIN, or join the table itself",
            position=link.place(),
        )
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


def _ordered(drafts: Sequence[Entry], joins: Mapping[str, Join], dataset: Dataset, place: Place) -> tuple[Entry, ...]:
    """The entries with their joins, from the one whose rows are counted to its parents."""
    constants = [entry for entry in drafts if of_constants(entry)]
    drafts = [entry for entry in drafts if not of_constants(entry)]
    roots = [entry for entry in drafts if entry.relation not in joins]
    if len(roots) != 1:
        raise refuse(
            "join_multiplies",
            "FROM is refused",
            "It does not start from one table whose rows are counted.",
            *declared(dataset),
            position=place(),
        )
    root = tables_of(roots[0])[0]
    if not root.table.protected:
        raise refuse(
            "unsupported_sql",
            "a join that starts from a public table is refused",
            "Rows of people are counted, each once: the join starts from their table and follows its references.",
            *(line for line in declared(dataset) if f" JOIN {root.table.name} ON " in line),
            position=place(),
        )
    result: list[Entry] = [roots[0]]
    placed = {source.relation for source in tables_of(roots[0])}
    while len(result) < len(drafts):
        # Parents whose child is already there.
        ready = [
            entry
            for entry in drafts
            if tables_of(entry)[0].relation not in placed and joins[entry.relation].child.relation in placed
        ]
        if not ready:
            raise refuse("join_multiplies", "FROM is refused", "Its joins form a ring.", position=place())
        for entry in ready:
            result.append(_joined(entry, joins[entry.relation], dataset))
            placed.update(source.relation for source in tables_of(entry))
    result += constants
    _check_pairs([source for entry in result for source in tables_of(entry)], place)
    return tuple(result)


def _check_pairs(sources: Sequence[Source], place: Place) -> None:
    """Refuses joins on the unit in which the rows of one person multiply beyond what a worker may hold."""
    if not any(source.join is not None and source.join.on_unit for source in sources):
        return
    pairs = rows_of_unit(sources)
    if pairs > PAIRS_MAX:
        raise refuse(
            "join_multiplies",
            "a join on the privacy unit is refused",
            f"Up to {pairs:,} pairs of one person's rows could meet, and {PAIRS_MAX:,} are allowed: "
            f"rows_stored_per_unit "
            "of the tables multiply.",
            "aggregate one of the tables first, in a nested query that groups by the privacy unit",
            "ask an administrator to declare a smaller rows_stored_per_unit",
            position=place(),
        )


def _joined(entry: Entry, join: Join, dataset: Dataset) -> Entry:
    """The entry with its join. Columns of an outer join's parent may be NULL."""
    first, *others = tables_of(entry)
    source = replace(first, join=join)
    if isinstance(entry, Source):
        return source
    columns, where = entry.rows.columns, entry.rows.where
    if join.outer:
        assert entry.rows.plain
        # Rows that the nested query leaves out are missing before the join, not after it.
        source, where = replace(source, only=both(first.only, where)), None
        columns = tuple((name, _outer(source, found, dataset)) for name, found in columns)
    return View(entry.relation, Rows((source, *others), where, columns))


def _outer(source: Source, found: Expression, dataset: Dataset) -> Expression:
    assert isinstance(found, ColumnRef)
    column = source.table.column(found.name)
    assert column is not None
    return reference(source, column, dataset)


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
