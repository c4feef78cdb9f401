"""How a block says its joins: the equality of ON, USING, or of WHERE for tables after a comma.

What an equality compares are stored columns of two entries of FROM. Whether it may join them, joins.py decides.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from sqlglot import exp

from privacy.by_slots import by_slots
from privacy.policy import Column, Dataset
from privacy.refusal import Position, Refused
from sql_rewrite.entries import Entry, tables_of
from sql_rewrite.join_advice import declared
from sql_rewrite.plan import Source
from sql_rewrite.public_joins import shares
from sql_rewrite.references import reference
from sql_rewrite.refuse import refuse
from sql_rewrite.sources import SourceNames
from sql_rewrite.syntax import consume, populated
from sql_rewrite.text import Text
from sql_rewrite.unit_keys import KeySpace, column_space

__all__ = [
    "End",
    "Link",
    "Outer",
    "Place",
    "both_units",
    "conjunction",
    "conjuncts",
    "is_unit",
    "joined_by_columns",
    "keyed",
    "link_of",
    "linked",
    "listed",
    "one_key",
    "refers",
    "with_partners",
]

Place = Callable[[], Position | None]
"""Looks up where something is in the text, which only a refusal needs."""

Outer = Literal["", "LEFT", "RIGHT", "FULL"]
"""Which side of a join keeps its rows; FULL is one of people with a public table."""


@by_slots
@dataclass(frozen=True, slots=True)
class End:
    """One side of a join's equality: a stored column of a table, which an entry of FROM reads."""

    entry: Entry
    source: Source
    column: Column


@by_slots
@dataclass(frozen=True, slots=True)
class Link:
    """The equality of a join as it is written: a column of an earlier entry, and one of the joined entry."""

    left: End
    right: End
    outer: Outer
    place: Place


def listed(join: exp.Join, node: exp.Select) -> bool:
    """Whether a relation stands in FROM after a comma, or after CROSS JOIN, and WHERE says how it is joined."""
    kind, rest = str(join.args.get("kind") or "").upper(), populated(join) - {"this", "kind"}
    return not rest and kind in ("", "CROSS") and node.args.get("where") is not None


def conjuncts(node: exp.Expr) -> Iterator[exp.Expr]:
    """The conditions that AND connects, brackets apart, in order."""
    return _connected(node, exp.And)


def conjunction(parts: Sequence[exp.Expr]) -> exp.Expr:
    """The conditions connected by AND, as a tree of these very nodes. Requires: at least one."""
    whole = parts[0]
    for part in parts[1:]:
        whole = exp.And(this=whole, expression=part)
    return whole


def _connected(node: exp.Expr, connector: type[exp.Connector]) -> Iterator[exp.Expr]:
    stack = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, exp.Paren):
            stack.append(part.this)
        elif isinstance(part, connector):
            stack += [part.expression, part.this]
        else:
            yield part


def linked(
    node: exp.Select, names: SourceNames, joined: Collection[str], dataset: Dataset, text: Text
) -> tuple[list[Link], set[int]]:
    """The equalities of WHERE along declared references, or of units, one for each entry that no join has.

    With the identities of those that are conditions of WHERE by themselves. What joins nothing, or names an entry that
    another equality joins already, is a condition like others.
    """
    found: list[Link] = []
    own: set[int] = set()
    parents = set(joined)
    of_units: list[tuple[exp.Expr, exp.Expr, Link]] = []
    of_keys: list[tuple[exp.Expr, exp.Expr, Link]] = []
    of_unique: list[tuple[exp.Expr, exp.Expr, Link]] = []
    of_public: list[tuple[exp.Expr, exp.Expr, Link]] = []
    for whole in conjuncts(node.args["where"].this):
        for part in _in_every_branch(whole):
            link = _along(part, names, text)
            if link is None or link.right.entry.relation in parents:
                for kept, same in ((of_units, partial(both_units, dataset=dataset)), (of_keys, one_key)):
                    shared = _shared(part, names, same, text)
                    kept += [] if shared is None else [(whole, part, shared)]
                to_unique = None if link is not None else _to_unique(part, names, text)
                of_unique += [] if to_unique is None else [(whole, part, to_unique)]
                to_public = None if link is not None else _to_public(part, names, dataset, text)
                of_public += [] if to_public is None else [(whole, part, to_public)]
                continue
            parents.add(link.right.entry.relation)
            found.append(link)
            if part is whole:
                own.add(id(part))
    for whole, part, link in (*of_units, *of_keys, *of_unique, *of_public):
        if link.right.entry.relation not in parents:
            parents.add(link.right.entry.relation)
            found.append(link)
            if part is whole:
                own.add(id(part))
    return found, own


def _compared(part: exp.Expr, names: SourceNames) -> tuple[End, End] | None:
    """The stored columns of two entries that an equality compares; None for any other condition. Errors: Refused."""
    if not (isinstance(part, exp.EQ) and isinstance(part.this, exp.Column) and isinstance(part.expression, exp.Column)):
        return None
    one, two = _end(names, part.this), _end(names, part.expression)
    return None if one is None or two is None or one.entry.relation == two.entry.relation else (one, two)


def _known(part: exp.Expr, names: SourceNames) -> tuple[End, End] | None:
    """The same, of columns that are known: another name is refused where the condition is read."""
    columns = [side for side in part.iter_expressions() if isinstance(side, exp.Column)]
    return _compared(part, names) if all(map(names.is_source, columns)) else None


def _shared(part: exp.Expr, names: SourceNames, same: Callable[[End, End], bool], text: Text) -> Link | None:
    """The join that an equality of keys of one unit's rows in two entries says, to the later one of them."""
    ends = _known(part, names)
    if ends is None or not same(*ends):
        return None
    places = [entry.relation for entry in names.entries]
    earlier, later = sorted(ends, key=lambda end: places.index(end.entry.relation))
    return Link(earlier, later, outer="", place=partial(text.position, part))


def _along(part: exp.Expr, names: SourceNames, text: Text) -> Link | None:
    """The join that an equality of columns of two entries says, if it is along a declared reference."""
    ends = _known(part, names)
    if ends is None:
        return None
    child, parent = ends if refers(*ends) else reversed(ends)
    return Link(child, parent, outer="", place=partial(text.position, part)) if refers(child, parent) else None


def _to_unique(part: exp.Expr, names: SourceNames, text: Text) -> Link | None:
    """The join that an equality says, if one of its columns is a unique one of a public table."""
    ends = _known(part, names)
    if ends is None:
        return None
    found = next(((one, two) for one, two in (ends, ends[::-1]) if keyed(one, two)), None)
    return None if found is None else Link(*found, outer="", place=partial(text.position, part))


def _to_public(part: exp.Expr, names: SourceNames, dataset: Dataset, text: Text) -> Link | None:
    """The join that an equality says, if one of its columns is of a public table, of which several rows may have it."""
    ends = _known(part, names)
    if ends is None:
        return None
    place = [entry.relation for entry in names.entries].index
    child, parent = sorted(ends, key=lambda end: (not end.source.table.protected, place(end.entry.relation)))
    link = Link(child, parent, outer="", place=partial(text.position, part))
    return link if _partners(child, parent, dataset) else None


def _in_every_branch(part: exp.Expr) -> list[exp.Expr]:
    """A condition; or, of conditions that OR connects, the equalities which each of them contains.

    Such an equality joins as if it stood alone, and stays a part of the condition besides.
    """
    if not isinstance(part, exp.Or):
        return [part]
    first, *others = [list(conjuncts(branch)) for branch in _connected(part, exp.Or)]
    return [each for each in first if isinstance(each, exp.EQ) and all(each in other for other in others)]


def _end(names: SourceNames, node: exp.Column) -> End | None:
    """The stored column that a node names, None where a nested block computes it. Errors: Refused."""
    entry, name = names.find(node)
    stored = names.stored(entry, name)
    return None if stored is None or stored[0].constants is not None else End(entry, *stored)


def link_of(
    join: exp.Join,
    names: SourceNames,
    dataset: Dataset,
    text: Text,
    conditions: list[exp.Expr],
    inside: list[tuple[str, exp.Expr]],
) -> Link:
    """The equality of a join; the joined entry is the last of the visible ones.

    What ON says beside the equality of an inner join is a condition of the block; beside that of a LEFT JOIN it is
    `inside`, a condition on the rows of the joined relation before they are joined.
    """
    visible = names.entries
    place = partial(text.position, join.this)
    side, kind = _side_and_kind(join, names, dataset, text, place)
    joined = visible[-1]
    outer: Outer = "LEFT" if side == "LEFT" else "RIGHT" if side == "RIGHT" else "FULL" if side == "FULL" else ""
    on, using = join.args.get("on"), join.args.get("using") or []
    if len(using) == 1 and on is None:
        holding = [(e, own) for e in visible if (own := names.own_name(e, using[0].name)) is not None]
        if len(holding) > 1 and holding[-1][0] is joined:
            names.check_using(using[0], [entry for entry, _ in holding[:-1]])
            left, right = names.stored(*holding[0]), names.stored(*holding[-1])
            if left is not None and right is not None:
                return Link(End(holding[0][0], *left), End(joined, *right), outer, place)
    parts = list(conjuncts(on)) if on is not None else _of_using(using, names, joined) if len(using) > 1 else []
    links = [_equality(part, names, joined, outer, place) for part in parts]
    best = 0 if len(links) == 1 else max(range(len(links)), key=lambda i: (_joins_by(links[i], dataset), -i), default=0)
    found = links[best] if links else None
    rest = [part for number, part in enumerate(parts) if found is None or number != best]
    # A condition beside an outer join may stand in WHERE only where it is of the rows that the join looks for.
    if found is not None and not (rest and outer and not _keeps_public(found)):
        conditions += rest
        return found
    if found is not None and rest and outer == "FULL":
        raise refuse(
            "join_not_on_key",
            "a condition of a FULL JOIN is refused",
            "With a public table it is answered on one equality of a column of each side.",
            "write the other conditions in nested queries on either side",
            position=text.position(rest[0]),
        )
    if found is not None and outer == "LEFT" and (isinstance(joined, Source) or joined.rows.plain):
        inside += [(tables_of(joined)[0].relation, part) for part in rest]
        return found
    # A RIGHT JOIN of two tables keeps the rows of the joined one, and looks for those of the first.
    first, of_people = visible[0], any(map(_is_people, visible))
    alone = outer == "RIGHT" and len(visible) == 2 and (isinstance(first, Source) or first.rows.plain)
    if found is not None and alone and of_people:
        inside += [(tables_of(first)[0].relation, part) for part in rest]
        return found
    if found is not None and outer == "LEFT":
        raise refuse(
            "unsupported_sql",
            "a LEFT JOIN of a nested query is refused",
            "The nested query computes columns or joins tables: rows that it leaves out and rows that are missing "
            "could not be distinguished. It is not answered yet.",
            "join the table itself, and compute outside: CASE WHEN v.key IS NOT NULL THEN v.x * 2 END",
            position=place(),
        )
    raise _not_on_key(names, dataset, place, outer, bare=on is None and not using and kind in ("", "CROSS"))


def _keeps_public(link: Link) -> bool:
    """Whether an outer join keeps rows of a public table, and looks for those that refer to its key."""
    kept, met = (link.right, link.left) if link.outer == "RIGHT" else (link.left, link.right)
    return link.outer in ("LEFT", "RIGHT") and refers(met, kept) and not kept.source.table.protected


def _not_on_key(names: SourceNames, dataset: Dataset, place: Place, outer: Outer, *, bare: bool) -> Refused:
    """The refusal of a join that no equality makes; `bare` where it has no condition at all."""
    if bare:
        return refuse(
            "join_not_on_key",
            "a join without a condition is refused",
            "A join needs a condition: without one, every row would meet every row of the other table.",
            *declared(dataset, *names.sources),
            position=place(),
        )
    joined = names.entries[-1]
    public = isinstance(joined, Source) and joined.stored and not joined.table.protected
    return refuse(
        "join_not_on_key",
        "a join is refused",
        "It compares no columns for equality, and the public table is too large to look at all of its rows."
        if public
        else "It is not one equality between a declared reference and the key it names.",
        *declared(dataset, *names.sources, outer=outer),
        position=place(),
    )


def _of_using(using: Sequence[exp.Identifier], names: SourceNames, joined: Entry) -> list[exp.Expr]:
    """The equalities that USING says, none where a name is not of both sides. Errors: Refused (ambiguous_column)."""
    parts: list[exp.Expr] = []
    for identifier in using:
        holding = [entry for entry in names.entries if names.own_name(entry, identifier.name) is not None]
        if len(holding) < 2 or holding[-1] is not joined:
            return []
        names.check_using(identifier, holding[:-1])
        parts.append(
            exp.EQ(this=names.column_of(holding[0], identifier), expression=names.column_of(joined, identifier))
        )
    return parts


def _side_and_kind(join: exp.Join, names: SourceNames, dataset: Dataset, text: Text, place: Place) -> tuple[str, str]:
    """How the rows of both sides meet. Errors: Refused for ways that no table of people is joined in."""
    if join.args.get("method"):
        raise refuse(
            "unsupported_sql",
            f"a {str(join.args['method']).lower()} join is refused",
            "It does not say which columns are compared.",
            *declared(dataset),
            position=place(),
        )
    consume(join, "this", "on", "using", "side", "kind", text=text, what="a join")
    side, kind = str(join.args.get("side") or "").upper(), str(join.args.get("kind") or "").upper()
    apart = len({_is_people(entry) for entry in names.entries}) > 1
    sides = ("", "LEFT", "RIGHT", "FULL") if apart else ("", "LEFT", "RIGHT")
    if side not in sides or kind not in ("", "INNER", "OUTER"):
        raise refuse(
            "unsupported_sql",
            f"a {(side + ' ' + kind).strip().lower()} join is refused",
            "Tables of people are joined with JOIN or LEFT JOIN, from a table to what it refers to; two of them alone "
            "with FULL JOIN too, on the key of the privacy unit, and each with a public table.",
            position=place(),
        )
    return side, kind


def _is_people(entry: Entry) -> bool:
    """Whether an entry of FROM is rows about people."""
    return any(source.table.protected for source in tables_of(entry))


def _equality(part: exp.Expr, names: SourceNames, joined: Entry, outer: Outer, place: Place) -> Link | None:
    """The equality of a stored column of the joined entry and one of an earlier entry, if that is what the part is."""
    ends = _compared(part, names)
    if ends is None or joined.relation not in (ends[0].entry.relation, ends[1].entry.relation):
        return None
    left, right = ends if ends[1].entry.relation == joined.relation else reversed(ends)
    return Link(left, right, outer, place)


def _joins_by(link: Link | None, dataset: Dataset) -> int:
    """How good an equality is for a join: along a reference, of units, of one key space or key, any other, none."""
    if link is None:
        return 0
    if refers(link.left, link.right) or refers(link.right, link.left):
        return 4
    if both_units(link.left, link.right, dataset=dataset):
        return 3
    several = one_key(link.left, link.right) or keyed(link.left, link.right) or keyed(link.right, link.left)
    several = several or with_partners(link, dataset)[2] > 0
    return 2 if several else 1


def joined_by_columns(join: exp.Join, names: SourceNames, dataset: Dataset, text: Text) -> bool:
    """Whether ON or USING compares stored columns by which the joined entry may be joined; no refusal says so."""
    joined = names.entries[-1]
    on, using = join.args.get("on"), join.args.get("using") or []
    parts = [*([] if on is None else conjuncts(on)), *_of_using(using, names, joined)]
    links = [_equality(part, names, joined, "", partial(text.position, join.this)) for part in parts]
    return any(_joins_by(link, dataset) > 1 for link in links)


def both_units(one: End, other: End, *, dataset: Dataset) -> bool:
    """Whether both columns are the unit's key."""
    return is_unit(one, dataset) and is_unit(other, dataset)


def one_key(one: End, other: End) -> bool:
    """Whether both columns are of one key space, so that rows in which they are equal are one unit's."""
    space = _space(one)
    return space is not None and space == _space(other)


def _space(end: End) -> KeySpace | None:
    return column_space(end.source, end.column.name)


def is_unit(end: End, dataset: Dataset) -> bool:
    """Whether the column is the key of the unit that the row belongs to, in every row of the table."""
    found = reference(end.source, end.column, dataset)
    return found.is_unit and end.source.table.protected


def keyed(child: End, parent: End) -> bool:
    """Whether the parent's column is a unique one of a public table, so that a row meets one of its rows at most."""
    table, column = parent.source.table, parent.column
    unique = column.unique or (table.key or "").lower() == column.name.lower()
    return parent.source.stored and not table.protected and unique and child.column.type is column.type


def with_partners(link: Link, dataset: Dataset) -> tuple[End, End, int]:
    """The ends of a join with a public table by columns that are no key of it, and how many of its rows one may meet.

    The joined table comes second, where it is the public one. The number is 0 where neither is such a table.
    """
    for child, parent in ((link.left, link.right), (link.right, link.left)):
        met = _partners(child, parent, dataset)
        if met:
            return child, parent, met
    return link.left, link.right, 0


def _partners(child: End, parent: End, dataset: Dataset) -> int:
    """How many rows of a public table a row of the child may meet; 0 where it joins none by such columns."""
    first = tables_of(parent.entry)[0].relation == parent.source.relation
    if not first or child.source.constants is not None:
        return 0
    return shares(child.column, parent.source, parent.column, dataset) or 0


def refers(child: End, parent: End) -> bool:
    """Whether the child's column is declared to refer to the parent's."""
    wanted = (child.column.name.lower(), parent.source.table.name.lower(), parent.column.name.lower())
    return any((r.column.lower(), r.table.lower(), r.key.lower()) == wanted for r in child.source.table.references)
