"""Joins of a private block: many-to-one, from the table whose rows are counted to its parents, or on the unit.

A join along a declared reference leads from the table that holds it to the table whose unique key it names. It never
repeats a row, so the contribution bounds of the first table stay true.

Two relations of rows about people are also joined where both sides are the unit's key. Claim: the join is unit-local.
Proof: two rows meet only where their units are equal, so every row of the join belongs to that one unit, and the rows
of unit u are the pairs of u's own rows on either side; a row that an outer join keeps belongs to its own unit. The
rows of a unit multiply, and so do the bounds of what is stored and of what counts (plan.py); a bound per unit above
holds whatever the multiplicities are. A reference to another person, such as a manager, is no such path.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from sqlglot import exp

from privacy.policy import Column, Dataset, Table
from privacy.refusal import Position, Refused
from sql_rewrite.expressions import ColumnRef, Expression
from sql_rewrite.plan import Join, Source, rows_of_unit
from sql_rewrite.refuse import refuse
from sql_rewrite.rows import Rows
from sql_rewrite.sources import SOURCES_MAX, Entry, SourceNames, View, both, reference, tables_of
from sql_rewrite.syntax import consume, populated
from sql_rewrite.text import Text

__all__ = ["SOURCES_MAX", "conjuncts", "resolve_sources"]

_Place = Callable[[], Position | None]
"""Looks up where something is in the text, which only a refusal needs."""

PAIRS_MAX = 2**20
"""Most rows of one unit after joins on the unit: as many as two tables of a thousand rows each make."""


@dataclass(frozen=True, slots=True)
class _End:
    """One side of a join's equality: a stored column of a table, which an entry of FROM reads."""

    entry: Entry
    source: Source
    column: Column


@dataclass(frozen=True, slots=True)
class _Link:
    """The equality of a join as it is written: a column of an earlier entry, and one of the joined entry."""

    left: _End
    right: _End
    outer: Literal["", "LEFT", "RIGHT"]
    place: _Place


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
    drafts: list[Entry] = []
    for item, table in tables:
        if first >= SOURCES_MAX:
            raise refuse("too_large", "FROM is refused", f"It joins more than {SOURCES_MAX} tables.")
        name = (item.alias or item.name).lower() or f"nested {len(drafts)}"
        if name in aliases:
            raise refuse(
                "ambiguous_column",
                f'table "{name[:63]}" is read twice under one name',
                "The columns could not be distinguished.",
                "give each its own alias",
                position=text.position(item),
            )
        if isinstance(table, Rows):
            drafts.append(View(f"q{first}", table))
            first += len(table.sources)
        else:
            drafts.append(Source(f"r{first}", table))
            first += 1
        aliases[name] = drafts[-1].relation
    links: list[_Link] = []
    using: set[str] = set()
    conditions: list[exp.Expr] = []
    inside: list[tuple[str, exp.Expr]] = []
    apart = False
    for place, join in enumerate(node.args.get("joins") or [], start=1):
        visible = SourceNames(tuple(drafts[: place + 1]), aliases, text, dataset, frozenset(using))
        if _listed(join, node):
            apart = True
            continue
        links.append(_link(join, visible, dataset, text, conditions, inside))
        using.update(identifier.name.lower() for identifier in join.args.get("using") or [])
    linked: set[int] = set()
    if apart:
        everything = SourceNames(tuple(drafts), aliases, text, dataset, frozenset(using))
        found, linked = _linked(node, everything, {link.right.entry.relation for link in links}, dataset, text)
        links += found
        if len(links) < len(drafts) - 1:
            raise refuse(
                "join_not_on_key",
                "a join without a condition is refused",
                "WHERE does not say for each of the tables which declared reference joins it by the key that it names.",
                *_declared(dataset, *everything.sources),
                position=text.position(node),
            )
    joins, preserved = _joins(links, dataset)
    entries = _ordered(drafts, joins, dataset, partial(text.position, node))
    return SourceNames(
        entries,
        aliases,
        text,
        dataset,
        using,
        linked=linked,
        conditions=conditions,
        preserved=_kept(entries, preserved),
        inside=inside,
    )


def _kept(entries: Sequence[Entry], preserved: Collection[str]) -> frozenset[str]:
    """The public relations whose rows an outer join keeps, and what those refer to."""
    kept = set(preserved)
    for entry in entries if kept else ():
        for source in tables_of(entry):
            if source.join is not None and source.join.child.relation in kept and not source.table.protected:
                kept.add(source.relation)
    return frozenset(kept)


def _listed(join: exp.Join, node: exp.Select) -> bool:
    """Whether a relation stands in FROM after a comma, or after CROSS JOIN, and WHERE says how it is joined."""
    kind, rest = str(join.args.get("kind") or "").upper(), populated(join) - {"this", "kind"}
    return not rest and kind in ("", "CROSS") and node.args.get("where") is not None


def conjuncts(node: exp.Expr) -> Iterator[exp.Expr]:
    """The conditions that AND connects, brackets apart, in order."""
    stack = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, exp.Paren):
            stack.append(part.this)
        elif isinstance(part, exp.And):
            stack += [part.expression, part.this]
        else:
            yield part


def _linked(
    node: exp.Select, names: SourceNames, joined: Collection[str], dataset: Dataset, text: Text
) -> tuple[list[_Link], set[int]]:
    """The equalities of WHERE along declared references, or of units, one for each entry that no join has.

    With the identities of those that are conditions of WHERE by themselves. What joins nothing, or names an entry that
    another equality joins already, is a condition like others.
    """
    found: list[_Link] = []
    own: set[int] = set()
    parents = set(joined)
    of_units: list[tuple[exp.Expr, exp.Expr, _Link]] = []
    for whole in conjuncts(node.args["where"].this):
        for part in _in_every_branch(whole):
            link = _along(part, names, text)
            if link is None or link.right.entry.relation in parents:
                shared = _of_units(part, names, dataset, text)
                of_units += [] if shared is None else [(whole, part, shared)]
                continue
            parents.add(link.right.entry.relation)
            found.append(link)
            if part is whole:
                own.add(id(part))
    for whole, part, link in of_units:
        if link.right.entry.relation not in parents:
            parents.add(link.right.entry.relation)
            found.append(link)
            if part is whole:
                own.add(id(part))
    return found, own


def _of_units(part: exp.Expr, names: SourceNames, dataset: Dataset, text: Text) -> _Link | None:
    """The join that an equality of the unit's keys of two entries says, to the later one of them."""
    if not (isinstance(part, exp.EQ) and isinstance(part.this, exp.Column)):
        return None
    if not isinstance(part.expression, exp.Column) or not all(map(names.is_source, (part.this, part.expression))):
        return None
    one, two = _end(names, part.this), _end(names, part.expression)
    if one is None or two is None or one.entry.relation == two.entry.relation:
        return None
    if not (_is_unit(one, dataset) and _is_unit(two, dataset)):
        return None
    places = [entry.relation for entry in names.entries]
    earlier, later = sorted((one, two), key=lambda end: places.index(end.entry.relation))
    return _Link(earlier, later, outer="", place=partial(text.position, part))


def _along(part: exp.Expr, names: SourceNames, text: Text) -> _Link | None:
    """The join that an equality of columns of two entries says, if it is along a declared reference."""
    if not (isinstance(part, exp.EQ) and isinstance(part.this, exp.Column)):
        return None
    if not isinstance(part.expression, exp.Column) or not all(map(names.is_source, (part.this, part.expression))):
        return None
    one, two = _end(names, part.this), _end(names, part.expression)
    if one is None or two is None or one.entry.relation == two.entry.relation:
        return None
    child, parent = (one, two) if _refers(one, two) else (two, one)
    return _Link(child, parent, outer="", place=partial(text.position, part)) if _refers(child, parent) else None


def _in_every_branch(part: exp.Expr) -> list[exp.Expr]:
    """A condition; or, of conditions that OR connects, the equalities which each of them contains.

    Such an equality joins as if it stood alone, and stays a part of the condition besides.
    """
    if not isinstance(part, exp.Or):
        return [part]
    first, *others = [list(conjuncts(branch)) for branch in _alternatives(part)]
    return [each for each in first if isinstance(each, exp.EQ) and all(each in other for other in others)]


def _alternatives(node: exp.Expr) -> Iterator[exp.Expr]:
    """The conditions that OR connects, brackets apart, in order."""
    stack = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, exp.Paren):
            stack.append(part.this)
        elif isinstance(part, exp.Or):
            stack += [part.expression, part.this]
        else:
            yield part


def _end(names: SourceNames, node: exp.Column) -> _End | None:
    """The stored column that a node names, None where a nested block computes it. Errors: Refused."""
    entry, name = names.find(node)
    stored = names.stored(entry, name)
    return None if stored is None else _End(entry, *stored)


def _link(
    join: exp.Join,
    names: SourceNames,
    dataset: Dataset,
    text: Text,
    conditions: list[exp.Expr],
    inside: list[tuple[str, exp.Expr]],
) -> _Link:
    """The equality of a join; the joined entry is the last of the visible ones.

    What ON says beside the equality of an inner join is a condition of the block; beside that of a LEFT JOIN it is
    `inside`, a condition on the rows of the joined relation before they are joined.
    """
    visible = names.entries
    place = partial(text.position, join.this)
    if join.args.get("method"):
        raise refuse(
            "unsupported_sql",
            f"a {str(join.args['method']).lower()} join is refused",
            "It does not say which columns are compared.",
            *_declared(dataset),
            position=place(),
        )
    consume(join, "this", "on", "using", "side", "kind", text=text, what="a join")
    side, kind = str(join.args.get("side") or "").upper(), str(join.args.get("kind") or "").upper()
    if side not in ("", "LEFT", "RIGHT") or kind not in ("", "INNER", "OUTER"):
        raise refuse(
            "unsupported_sql",
            f"a {(side + ' ' + kind).strip().lower()} join is refused",
            "Tables of people are joined with JOIN or LEFT JOIN, from a table to what it refers to.",
            position=place(),
        )
    joined = visible[-1]
    outer: Literal["", "LEFT", "RIGHT"] = "LEFT" if side == "LEFT" else "RIGHT" if side == "RIGHT" else ""
    on, using = join.args.get("on"), join.args.get("using") or []
    if len(using) == 1 and on is None:
        holding = [(e, own) for e in visible if (own := names.own_name(e, using[0].name)) is not None]
        if len(holding) > 1 and holding[-1][0] is joined:
            names.check_using(using[0], [entry for entry, _ in holding[:-1]])
            left, right = names.stored(*holding[0]), names.stored(*holding[-1])
            if left is not None and right is not None:
                return _Link(_End(holding[0][0], *left), _End(joined, *right), outer, place)
    found: _Link | None = None
    rest: list[exp.Expr] = []
    parts = [] if on is None else list(conjuncts(on))
    links = [_equality(part, names, joined, outer, place) for part in parts]
    best = 0 if len(links) == 1 else max(range(len(links)), key=lambda i: (_joins_by(links[i], dataset), -i), default=0)
    for place_of, part in enumerate(parts):
        if place_of == best and links[place_of] is not None:
            found = links[place_of]
        else:
            rest.append(part)
    # A condition beside an outer join may stand in WHERE only where it is of the rows that the join looks for.
    reversed_ = found is not None and _refers(found.right, found.left) and not found.left.source.table.protected
    if found is not None and not (rest and (outer == "RIGHT" or (outer and not reversed_))):
        conditions += rest
        return found
    if found is not None and outer == "LEFT" and isinstance(joined, Source) and joined.table.protected:
        inside += [(joined.relation, part) for part in rest]
        return found
    if on is None and not using and kind in ("", "CROSS"):
        raise refuse(
            "join_not_on_key",
            "a join without a condition is refused",
            "A join needs a condition: without one, every row would meet every row of the other table.",
            *_declared(dataset, *names.sources),
            position=place(),
        )
    raise refuse(
        "join_not_on_key",
        "a join is refused",
        "It is not one equality between a declared reference and the key it names.",
        *_declared(dataset, *names.sources),
        position=place(),
    )


def _equality(
    part: exp.Expr, names: SourceNames, joined: Entry, outer: Literal["", "LEFT", "RIGHT"], place: _Place
) -> _Link | None:
    """The equality of a stored column of the joined entry and one of an earlier entry, if that is what the part is."""
    if not (isinstance(part, exp.EQ) and isinstance(part.this, exp.Column) and isinstance(part.expression, exp.Column)):
        return None
    one, two = _end(names, part.this), _end(names, part.expression)
    if one is None or two is None:
        return None
    if two.entry is not joined:
        one, two = two, one
    return _Link(one, two, outer, place) if two.entry is joined and one.entry is not joined else None


def _declared(dataset: Dataset, *sources: Source) -> tuple[str, ...]:
    """The declared joins between the tables of these sources, or every declared join when there are none."""
    lines = {
        f"{table.name} JOIN {r.table} ON {table.name}.{r.column} = {r.table}.{r.key}": (table.name, r.table)
        for table in dataset.tables
        for r in table.references
    }
    meant = [line for line, ends in lines.items() if set(ends) <= {source.table.name for source in sources}]
    return tuple((meant or list(lines))[:5])


def _joins(links: Sequence[_Link], dataset: Dataset) -> tuple[dict[str, Join], set[str]]:
    """The joins by the entry of their parent, and the public relations whose rows an outer join keeps.

    Each link points from a reference to a unique key, or else it is of units.
    """
    joins: dict[str, Join] = {}
    preserved: set[str] = set()
    for place, link in enumerate(links):
        child, parent = link.left, link.right
        if not _refers(child, parent):
            child, parent = parent, child
        along = _refers(child, parent)
        kept = {"LEFT": link.left, "RIGHT": link.right, "": None}[link.outer]
        single = along and kept is not parent and parent.entry.relation not in joins
        single = single and parent.source.relation == _first(parent.entry)
        if not single and _is_unit(link.left, dataset) and _is_unit(link.right, dataset):
            _add_on_unit(link, joins, dataset, alone=not place)
            continue
        if not along:
            raise refuse(
                "join_not_on_key",
                "a join is refused",
                "No declared reference connects these two columns.",
                *_declared(dataset),
                position=link.place(),
            )
        if kept is parent and not parent.source.table.protected and child.source.table.protected:
            preserved.add(parent.source.relation)
        elif kept is parent:
            raise refuse(
                "join_multiplies",
                f"a {link.outer} JOIN to many rows is refused",
                "It would repeat rows of one person and add rows without a partner.",
                *_declared(dataset, child.source, parent.source),
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


def _meets_many(link: _Link) -> Refused:
    return refuse(
        "join_multiplies",
        "a join is refused",
        "Two tables refer to one table, so rows of one person would be multiplied.",
        "aggregate each table in its own query",
        position=link.place(),
    )


def _joins_by(link: _Link | None, dataset: Dataset) -> int:
    """How good an equality is for a join: along a reference, of units, of stored columns, none."""
    if link is None:
        return 0
    if _refers(link.left, link.right) or _refers(link.right, link.left):
        return 3
    return 2 if _is_unit(link.left, dataset) and _is_unit(link.right, dataset) else 1


def _is_unit(end: _End, dataset: Dataset) -> bool:
    """Whether the column is the key of the unit that the row belongs to, in every row of the table."""
    found = reference(end.source, end.column, dataset)
    return found.is_unit and end.source.table.protected


def _add_on_unit(link: _Link, joins: dict[str, Join], dataset: Dataset, *, alone: bool) -> None:
    """Adds the join of rows about people that belong to one unit, which all tables of an entry share."""
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
    parent = reference(right.source, right.column, dataset)
    joins[right.entry.relation] = Join(
        child=reference(left.source, left.column, dataset),
        parent=replace(parent, relation=_first(right.entry)),
        outer=bool(link.outer),
        on_unit=True,
    )


def _first(entry: Entry) -> str:
    """The relation whose rows are the entry's."""
    return tables_of(entry)[0].relation


def _ordered(drafts: Sequence[Entry], joins: Mapping[str, Join], dataset: Dataset, place: _Place) -> tuple[Entry, ...]:
    """The entries with their joins, from the one whose rows are counted to its parents."""
    roots = [entry for entry in drafts if entry.relation not in joins]
    if len(roots) != 1:
        raise refuse(
            "join_multiplies",
            "FROM is refused",
            "It does not start from one table whose rows are counted.",
            *_declared(dataset),
            position=place(),
        )
    root = tables_of(roots[0])[0]
    if not root.table.protected:
        raise refuse(
            "unsupported_sql",
            "a join that starts from a public table is refused",
            "Rows of people are counted, each once: the join starts from their table and follows its references.",
            *(line for line in _declared(dataset) if f" JOIN {root.table.name} ON " in line),
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
    _check_pairs([source for entry in result for source in tables_of(entry)], place)
    return tuple(result)


def _check_pairs(sources: Sequence[Source], place: _Place) -> None:
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


def _refers(child: _End, parent: _End) -> bool:
    """Whether the child's column is declared to refer to the parent's."""
    wanted = (child.column.name.lower(), parent.source.table.name.lower(), parent.column.name.lower())
    return any((r.column.lower(), r.table.lower(), r.key.lower()) == wanted for r in child.source.table.references)


def _check_unit_path(child: _End, parent: Table, dataset: Dataset, place: _Place) -> None:
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
            *_declared(dataset),
            position=place(),
        )
