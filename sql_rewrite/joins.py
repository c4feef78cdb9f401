"""Joins of a private block: many-to-one, from the table whose rows are counted to its parents.

A join is answered only along a declared reference, from the table that holds the reference to the table whose
unique key it names. Such a join never repeats a row, so the contribution bounds of the first table stay true.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from sqlglot import exp

from privacy.policy import Column, Dataset, Table
from privacy.refusal import Position
from sql_rewrite.plan import Join, Source
from sql_rewrite.refuse import refuse
from sql_rewrite.sources import SourceNames, reference
from sql_rewrite.syntax import consume
from sql_rewrite.text import Text

__all__ = ["resolve_sources"]

_Place = Callable[[], Position | None]
"""Looks up where something is in the text, which only a refusal needs."""

SOURCES_MAX = 8


@dataclass(frozen=True, slots=True)
class _End:
    """One side of a join's equality."""

    source: Source
    column: Column


@dataclass(frozen=True, slots=True)
class _Link:
    """The equality of a join as it is written: a column of an earlier source, and one of the joined source."""

    left: _End
    right: _End
    outer: bool
    place: _Place


def resolve_sources(
    node: exp.Select, tables: Sequence[tuple[exp.Expr, Table]], dataset: Dataset, text: Text
) -> SourceNames:
    """The sources of a block: the table whose rows are counted first, its parents after it.

    Errors: Refused (join_not_on_key, join_multiplies, too_large, unsupported_sql).
    """
    if len(tables) > SOURCES_MAX:
        raise refuse("too_large", "FROM is refused", f"It joins more than {SOURCES_MAX} tables.")
    aliases: dict[str, str] = {}
    drafts: list[Source] = []
    for place, (item, table) in enumerate(tables):
        relation = f"r{place}"
        name = (item.alias or item.name).lower()
        if name in aliases:
            raise refuse(
                "ambiguous_column",
                f'table "{name[:63]}" is read twice under one name',
                "The columns could not be distinguished.",
                "give each its own alias",
                position=text.position(item),
            )
        aliases[name] = relation
        drafts.append(Source(relation, table))
    links: list[_Link] = []
    using: set[str] = set()
    for place, join in enumerate(node.args.get("joins") or [], start=1):
        visible = SourceNames(tuple(drafts[: place + 1]), aliases, text, dataset, frozenset(using))
        links.append(_link(join, visible, dataset, text))
        using.update(identifier.name.lower() for identifier in join.args.get("using") or [])
    sources = _ordered(drafts, _joins(links, dataset), dataset, partial(text.position, node))
    return SourceNames(sources, aliases, text, dataset, using)


def _link(join: exp.Join, names: SourceNames, dataset: Dataset, text: Text) -> _Link:
    """The equality of a join; the joined source is the last of the visible ones."""
    visible = names.sources
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
    if side not in ("", "LEFT") or kind not in ("", "INNER", "OUTER"):
        raise refuse(
            "unsupported_sql",
            f"a {(side + ' ' + kind).strip().lower()} join is refused",
            "Tables of people are joined with JOIN or LEFT JOIN, from a table to what it refers to.",
            position=place(),
        )
    joined = visible[-1]
    on, using = join.args.get("on"), join.args.get("using") or []
    if len(using) == 1 and on is None:
        ends = [_End(s, c) for s in visible if (c := s.table.column(using[0].name)) is not None]
        if len(ends) > 1 and ends[-1].source is joined:
            names.check_using(using[0], [end.source for end in ends[:-1]])
            return _Link(ends[0], ends[-1], side == "LEFT", place)
    on = on.unnest() if on is not None else None
    if isinstance(on, exp.EQ) and isinstance(on.this, exp.Column) and isinstance(on.expression, exp.Column):
        one, two = _End(*names.find(on.this)), _End(*names.find(on.expression))
        if two.source is not joined:
            one, two = two, one
        if two.source is joined and one.source is not joined:
            return _Link(one, two, side == "LEFT", place)
    if on is None and not using and not kind:
        raise refuse(
            "join_not_on_key",
            "a join without a condition is refused",
            "A join needs a condition: without one, every row would meet every row of the other table.",
            *_declared(dataset, *visible),
            position=place(),
        )
    raise refuse(
        "join_not_on_key",
        "a join is refused",
        "It is not one equality between a declared reference and the key it names.",
        *_declared(dataset, *visible),
        position=place(),
    )


def _declared(dataset: Dataset, *sources: Source) -> tuple[str, ...]:
    """The declared joins between the tables of these sources, or every declared join when there are none."""
    lines = {
        f"{table.name} JOIN {r.table} ON {table.name}.{r.column} = {r.table}.{r.key}": (table.name, r.table)
        for table in dataset.tables
        for r in table.references
    }
    meant = [line for line, ends in lines.items() if set(ends) <= {source.table.name for source in sources}]
    return tuple((meant or list(lines))[:5])


def _joins(links: Sequence[_Link], dataset: Dataset) -> dict[str, Join]:
    """The joins by the relation of their parent. Each link must point from a reference to a unique key."""
    joins: dict[str, Join] = {}
    for link in links:
        child, parent = link.left, link.right
        if not _refers(child, parent):
            child, parent = parent, child
            if not _refers(child, parent):
                raise refuse(
                    "join_not_on_key",
                    "a join is refused",
                    "No declared reference connects these two columns.",
                    *_declared(dataset),
                    position=link.place(),
                )
            if link.outer:
                raise refuse(
                    "join_multiplies",
                    "a LEFT JOIN to many rows is refused",
                    "It would repeat rows of one person and add rows without a partner.",
                    *_declared(dataset, child.source, parent.source),
                    position=link.place(),
                )
        _check_unit_path(child, parent.source.table, dataset, link.place)
        if parent.source.relation in joins:
            raise refuse(
                "join_multiplies",
                "a join is refused",
                "Two tables refer to one table, so rows of one person would be multiplied.",
                "aggregate each table in its own query",
                position=link.place(),
            )
        joins[parent.source.relation] = Join(
            child=reference(child.source, child.column, dataset),
            parent=reference(parent.source, parent.column, dataset),
            outer=link.outer,
        )
    return joins


def _ordered(
    drafts: Sequence[Source], joins: Mapping[str, Join], dataset: Dataset, place: _Place
) -> tuple[Source, ...]:
    """The sources with their joins, from the counted table to its parents."""
    roots = [source for source in drafts if source.relation not in joins]
    if len(roots) != 1:
        raise refuse(
            "join_multiplies",
            "FROM is refused",
            "It does not start from one table whose rows are counted.",
            *_declared(dataset),
            position=place(),
        )
    root = roots[0]
    if not root.table.protected:
        raise refuse(
            "unsupported_sql",
            "a query of public tables alone is refused",
            "Public tables are known to everybody; reading them through the server is not answered yet.",
            *(line for line in _declared(dataset) if f" JOIN {root.table.name} ON " in line),
            position=place(),
        )
    result, placed = [root], {root.relation}
    while len(result) < len(drafts):
        # Parents whose child is already there.
        ready = [s for s in drafts if s.relation not in placed and joins[s.relation].child.relation in placed]
        if not ready:
            raise refuse("join_multiplies", "FROM is refused", "Its joins form a ring.", position=place())
        for source in ready:
            result.append(Source(source.relation, source.table, joins[source.relation]))
            placed.add(source.relation)
    return tuple(result)


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
