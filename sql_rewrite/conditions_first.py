"""Conditions before joins: what WHERE says of one table alone decides which of its rows are joined at all.

    FROM visits JOIN people ON ... WHERE people.age > 60 AND visits.cost > 9
    (visits with cost > 9) JOIN (people with age > 60) ON ...

An engine would move them, and choose an order of joins, by statistics of rows, which private statements do not read
(engines/optimizers.md). What is moved here is a function of the plan: the identity of a core, its facts and its
statistics are those of the plan before this; only its statement and what that costs follow from the plan after it.

Claim. Both plans read the same rows above the joins, with the same values, each as often.
Proof. A conjunction is true where each part is. A part that reads columns of one relation s alone has one value in all
joined rows of a row of s. Where s is the first source, or joined by an inner join, a row of s of which the part is
not true is in no row that WHERE keeps; left out before the join, it is missing in those rows alone: sources after s
add to rows that are there, or leave out, and never make a row without one of s. Of a source behind an outer join the
opposite holds: rows that meet no row of it are there, with NULL in its place, so nothing is moved there. A unit without
rows on one side of an inner join has none above it in either plan. Every operator is total, so a condition that is
computed of more rows than before fails for none of them.

A public table that was joined by a public column is joined by a column of people where WHERE says that both are equal:
then few public rows leave out people before their rows are counted. The condition stays, so in each row that is kept
either equality implies the other (whole numbers alone: equality of them is transitive), and inner joins may change
places. An equality of columns of two tables becomes a part of the join of the later one, where all joins are inner
ones: of their rows the same pairs fulfil both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from privacy.policy import ColumnType
from sql_rewrite.expressions import Call, ColumnRef, Expression, columns_of
from sql_rewrite.functions import build
from sql_rewrite.join_tree import branches_of
from sql_rewrite.plan import Core, Source, UnitBranch
from sql_rewrite.reachable import conjuncts
from sql_rewrite.stage_values import is_released

__all__ = ["conditions_first"]


def conditions_first(core: Core) -> Core:
    """The core as its statement reads it. A second time changes nothing."""
    sources, where = _arranged(core.sources, core.where)
    return core if sources is core.sources and where is core.where else replace(core, sources=sources, where=where)


def _arranged(sources: tuple[Source, ...], where: Expression | None) -> tuple[tuple[Source, ...], Expression | None]:
    """Sources with their own conditions, also within what is computed below them, and what is left of WHERE."""
    below = tuple([_below(source) for source in sources])
    if any(one is not other for one, other in zip(below, sources, strict=True)):
        sources = below
    if len(sources) == 1 or where is None:
        return sources, where
    takes = {source.relation for source in sources if source.stored and _kept_with_it(source)}
    moved: dict[str, list[Expression]] = {}
    left: list[Expression] = []
    for part in conjuncts(where):
        read = {ref.relation for ref in columns_of(part) if not is_released(ref)}
        relation = next(iter(read)) if len(read) == 1 else None
        if relation is None or relation not in takes:
            left.append(part)
        else:
            moved.setdefault(relation, []).append(part)
    if moved:
        sources = tuple([_with(source, moved.get(source.relation, [])) for source in sources])
    equal = False
    if any(_equal_columns(part) is not None for part in left):
        sources = _by_people(sources, left)
        sources, equal = _in_joins(sources, left)
    return sources, _all(left) if moved or equal else where


def _with(source: Source, parts: Sequence[Expression]) -> Source:
    return replace(source, only=_all([*(() if source.only is None else (source.only,)), *parts])) if parts else source


def _all(parts: Sequence[Expression]) -> Expression | None:
    """The conditions as one; None where there is none."""
    if len(parts) < 2:
        return parts[0] if parts else None
    return build("and", parts)


def _kept_with_it(source: Source) -> bool:
    """Whether a row that is kept has a row of the source: it is the first one, or joined by an inner join."""
    return source.join is None or not source.join.outer


def _below(source: Source) -> Source:
    """The source, where it is computed, with conditions first below it too."""
    if source.union is not None:
        branches = tuple([_branch(branch) for branch in source.union.branches])
        if all(one is other for one, other in zip(branches, source.union.branches, strict=True)):
            return source
        return replace(source, union=replace(source.union, branches=branches))
    computed = source.windows or source.groups
    if computed is None:
        return source
    sources, where = _arranged(computed.sources, computed.where)
    if sources is computed.sources and where is computed.where:
        return source
    if source.windows is not None:
        return replace(source, windows=replace(source.windows, sources=sources, where=where))
    assert source.groups is not None
    return replace(source, groups=replace(source.groups, sources=sources, where=where))


def _branch(branch: UnitBranch) -> UnitBranch:
    sources, where = _arranged(branch.sources, branch.where)
    if sources is branch.sources and where is branch.where:
        return branch
    return replace(branch, sources=sources, where=where)


def _by_people(sources: tuple[Source, ...], where: Sequence[Expression]) -> tuple[Source, ...]:
    """Sources of which public ones that leave out rows are joined by an equal column of people, where there is one."""
    equal = [pair for part in where if (pair := _equal_columns(part)) is not None]
    known = {source.relation: source for source in sources}
    fewer = _with_conditions(sources)
    before: set[str] = set()
    result = []
    for source in sources:
        join = source.join
        if join is not None and source.relation in fewer and _by_public(source, known):
            for pair in equal:
                ends = {(ref.relation, ref.name): ref for ref in pair}
                child = ends.pop((join.child.relation, join.child.name), None)
                if child is None or len(ends) != 1:
                    continue
                (other,) = ends.values()
                people = known.get(other.relation)
                if other.relation in before and people is not None and _of_people(people):
                    source = replace(source, join=replace(join, child=other))
                    break
        before.add(source.relation)
        result.append(source)
    return tuple(result) if any(one is not other for one, other in zip(result, sources, strict=True)) else sources


def _in_joins(sources: tuple[Source, ...], where: list[Expression]) -> tuple[tuple[Source, ...], bool]:
    """Sources in the order of their joins, with what `where` has of equal columns in the join of the later table.

    A row that fails the condition then meets no row. What has moved is taken out of `where`: whether anything has.
    """
    if not all(source.stored for source in sources) or not all(map(_by_reference, sources[1:])):
        return sources, False
    branches = branches_of(sources)
    heads = {branch.source.relation for branch in branches}
    ordered = [sources[0], *(source for branch in branches for source in branch.sources)]
    places = {source.relation: place for place, source in enumerate(ordered)}
    found = False
    for part in list(where):
        pair = _equal_columns(part)
        if pair is None or any(ref.relation not in places for ref in pair):
            continue
        early, late = sorted(pair, key=lambda ref: places[ref.relation])
        place = places[late.relation]
        source = ordered[place]
        if early.relation == late.relation or late.relation not in heads or source.join is None:
            continue
        ordered[place] = replace(source, join=replace(source.join, also=(*source.join.also, (early, late))))
        where.remove(part)
        found = True
    return (tuple(ordered), True) if found else (sources, False)


def _by_reference(source: Source) -> bool:
    """Whether a row meets one row at most of a source, by a pair of columns, and is left out where it meets none."""
    join = source.join
    if join is None or join.outer or join.on_unit or join.also:
        return False
    return join.most == 1 and join.tried == 1


def _equal_columns(part: Expression) -> tuple[ColumnRef, ColumnRef] | None:
    """The two columns of whole numbers that a condition says are equal."""
    if not isinstance(part, Call) or part.operator != "=":
        return None
    one, other = part.arguments
    if not isinstance(one, ColumnRef) or not isinstance(other, ColumnRef) or is_released(one) or is_released(other):
        return None
    return (one, other) if one.type is ColumnType.INTEGER and other.type is ColumnType.INTEGER else None


def _with_conditions(sources: Sequence[Source]) -> set[str]:
    """The relations that leave out rows by a condition of their own, or of those that are joined to them."""
    found: set[str] = set()
    for source in reversed(sources):
        if source.only is not None:
            found.add(source.relation)
        if source.relation in found and source.join is not None and not source.join.outer:
            found.add(source.join.child.relation)
    return found


def _by_public(source: Source, known: dict[str, Source]) -> bool:
    """Whether a public table is joined by its key to a public one, each of whose rows meets one row at most."""
    join = source.join
    assert join is not None
    child = known.get(join.child.relation)
    public = source.stored and not source.table.protected
    return _by_reference(source) and public and child is not None and child.stored and not child.table.protected


def _of_people(source: Source) -> bool:
    return source.stored and source.table.protected and _kept_with_it(source)
