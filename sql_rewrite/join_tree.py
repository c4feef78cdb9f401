"""Which tables of a statement are joined to one another first, and in which order: a function of the plan.

    FROM items JOIN orders ON ... JOIN people ON ... JOIN shops ON ...        as the sources of a core say it
    FROM items JOIN (orders JOIN people ON ...) ON ... JOIN shops ON ...      as the statement says it

The engine hashes the right side of a join and asks it for each row of the left side, in the order in which they are
written, since its own choice would read numbers of rows (engines/optimizers.md). A row of a table meets one row of the
tables that it refers to, so there are fewer rows to ask for where these are joined to one another first; those that
leave out rows by conditions come before the others. Of two tables of people that meet on the unit, the one with
conditions is hashed.

Claim. The rows are the same, each as often. Proof. Inner joins by equality of columns may change places and be put in
brackets as long as the columns of each condition are there: of three relations of which the third is joined by columns
of the second alone, (a JOIN b) JOIN c is a JOIN (b JOIN c). What is not such a join stays where it was: outer joins,
rows of constants, and what multiplies rows.

Claim. `asked` counts at least as often as they are hashed, or asked for, the rows of one unit in tables after the first
source. Each is hashed once, and asks for a row of each table that is joined to it first. Rows of the first source are
counted with the core's own, one for each join; where they are hashed instead, once more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sql_rewrite.plan import Source

__all__ = ["Branch", "asked", "branches_of", "of_unit", "turned", "unit_source"]


@dataclass(frozen=True, slots=True)
class Branch:
    """A source, and those that are joined to it before it is joined itself."""

    source: Source
    first: tuple[Branch, ...] = ()

    @property
    def sources(self) -> Iterator[Source]:
        """All sources of it."""
        yield self.source
        for branch in self.first:
            yield from branch.sources

    @property
    def conditions(self) -> int:
        """How many of its sources leave out rows."""
        return sum(source.only is not None for source in self.sources)


def branches_of(sources: Sequence[Source]) -> tuple[Branch, ...]:
    """What is joined to the first source, one after another."""
    root, *others = sources
    if len(others) < 2:
        return tuple([Branch(source) for source in others])
    below: dict[str, list[Source]] = {source.relation: [] for source in sources}
    known = {source.relation: source for source in sources}
    top: list[Source] = []
    for source in others:
        beside = None if source.join is None else known.get(source.join.child.relation)
        if beside is not None and beside is not root and _one_row_of(source, beside):
            below[beside.relation].append(source)
        else:
            top.append(source)

    def branch(source: Source) -> Branch:
        return Branch(source, _in_order([branch(one) for one in below[source.relation]]))

    found = [branch(source) for source in top]
    if root.only is not None:
        # Few rows ask for few others: tables without conditions are not joined to one another first.
        found = [flat for one in found for flat in _apart(one)]
    return _in_order(found)


def _apart(branch: Branch) -> list[Branch]:
    """A branch without those parts that leave out no row, which come after it."""
    first: list[Branch] = []
    later: list[Branch] = []
    for one in branch.first:
        kept, *apart = _apart(one)
        (first if kept.conditions else later).append(kept)
        later += apart
    return [Branch(branch.source, tuple(first)), *later]


def _one_row_of(source: Source, beside: Source) -> bool:
    """Whether a source is joined by columns of another one alone, one row to each of it, and neither join is outer."""
    join = source.join
    assert join is not None
    plain = not join.outer and not join.on_unit and join.most == 1 and join.tried == 1
    alone = all(child.relation == beside.relation for child, _ in join.also)
    return plain and alone and beside.join is not None and not beside.join.outer


def _in_order(branches: Sequence[Branch]) -> tuple[Branch, ...]:
    """Those with most conditions first, where every one is joined by columns of the same source."""
    children = {None if branch.source.join is None else branch.source.join.child.relation for branch in branches}
    joins = [branch.source.join for branch in branches]
    if len(children) > 1 or any(join is None or join.outer or join.also or join.on_unit for join in joins):
        return tuple(branches)
    return tuple(sorted(branches, key=lambda branch: -branch.conditions))


def turned(before: Sequence[Source], branch: Branch) -> bool:
    """Whether the sources before a branch are hashed, and its rows ask for them: only these leave out rows."""
    join = branch.source.join
    if join is None or join.outer or not join.on_unit or not branch.source.stored or branch.conditions:
        return False
    pairs = any(source.join is not None and (source.join.on_unit or source.join.most > 1) for source in before)
    constant = any(source.constants is not None for source in before)
    return not pairs and not constant and any(source.only is not None for source in before)


def of_unit(source: Source) -> bool:
    """Whether each row meets the row of its unit in a source, and that alone, or is left out.

    The source has one row at most for a unit (`one_row`, as the snapshot verified). It is joined on the unit, or by two
    columns that both hold the unit's key: a snapshot stores a row with the unit whose key such a column equals, and
    without a unit it stores none (engines/handlers/units.py).
    """
    join = source.join
    if join is None or join.outer or join.also or join.most > 1 or join.tried > 1:
        return False
    return source.stored and source.table.one_row and (join.on_unit or (join.child.is_unit and join.parent.is_unit))


def unit_source(sources: Sequence[Source], *, draw: bool) -> Source:
    """The source of which the number of a row's unit is read, and its draw.

    That is the first one, or where draws are read a table with one row of each unit: all sources are joined along the
    way to the unit, or on it, so a row has one unit in all of them. Two columns less of the largest table are read.
    `of_unit` is joined by an inner join, so each row that is left has its row, whatever other joins are outer ones: no
    join leaves the first source out of a row.
    """
    held = [source for source in sources[1:] if of_unit(source)] if draw else []
    return held[0] if held else sources[0]


def asked(sources: Sequence[Source]) -> int:
    """How often, at most, rows of one unit are hashed or ask for others, beside those of the first source."""
    return sum(source.table.rows_stored * times for source, times in _asking(sources) if source.table.protected)


def _asking(sources: Sequence[Source]) -> Iterator[tuple[Source, int]]:
    """Sources whose rows are hashed, or ask for others while they are, and how often."""
    before = [sources[0]]
    for branch in branches_of(sources):
        if turned(before, branch):
            yield sources[0], 1
        yield from _of_branch(branch)
        before += branch.sources


def _of_branch(branch: Branch) -> Iterator[tuple[Source, int]]:
    yield branch.source, 1 + len(branch.first)
    for one in branch.first:
        yield from _of_branch(one)
