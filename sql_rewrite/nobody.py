"""A row of nobody in what a join hashes, so that it is never empty.

    visits JOIN people ON visits.person_id = people.person_id WHERE people.age = 119
    visits JOIN ((people with age = 119) and nobody) ON visits.person_id IS NOT DISTINCT FROM people.person_id ...

An engine that has hashed nothing skips what it would ask: all rows of the left side, whoever owns them. So the first
person who meets a condition would make the rows of all others be read, and be looked up, which takes as long as the
table is large, and no tick is as long as that. With a row of nobody they always are.

Claim. The rows of the join are what they were, each as often. Proof. Where two sides meet on the unit, nobody's number
is -1, which no unit has: it equals nothing. Else nobody's key is NULL, rows whose key is NULL are left out of what is
hashed, since they equal nothing, and NULL meets NULL (`alike`). So a row meets nobody where its own key is NULL. Of an
inner join such rows, which met no row, are left out by a condition. Of an outer one they are kept with NULL in all
columns of the other side, and so they are with nobody, in whom all columns are NULL; there is one row of nobody, and a
comparison beside the equality is not true of it. QED.

Where what is hashed is itself joined (join_tree.py), each of its tables has a row of nobody, and these meet one
another: their keys are NULL. Of a row that is somebody's the key must not be NULL, as above; a row is nobody's where
its unit is -1. So the joined rows are the earlier ones and one of nobody, whose key is NULL, or whose unit is -1.

Public tables alone need no such row: that they are empty is public. Nor do tables without conditions.

Not covered: what meets on the unit and on a further column that is no whole number, and on a key beside further
columns; and what is hashed and itself joined where a public table refers to another by a column that may be NULL.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from privacy.policy import ColumnType
from sql_rewrite.plan import Join, Source
from sql_rewrite.relations import BesideNobody, JoinOn, Output, Relation
from sql_rewrite.scalars import Column, Comparison, IsNull, Junction, Null, Scalar, Whole

__all__ = ["beside_nobody", "kept_apart", "met_by_nobody", "met_within", "needs_nobody", "nobody_within"]

_NOBODY = Whole(-1)
_EMPTY = {ColumnType.INTEGER: Whole(0)}
"""Values of nobody in further columns that must be equal, which no row with them ever meets."""


def needs_nobody(sources: Iterable[Source]) -> bool:
    """Whether one person may decide that no row is left of these sources, which a join hashes."""
    listed = list(sources)
    return any(one.table.protected for one in listed) and any(one.only is not None or not one.stored for one in listed)


def met_by_nobody(join: Join) -> bool:
    """Whether a source with this join, hashed alone, can have a row of nobody."""
    if join.on_unit:
        return all(end.type in _EMPTY for _, end in join.also)
    return not join.also


def beside_nobody(rows: Relation, source: Source, join: Join | None, unit: str, *, within: bool) -> Relation:
    """The rows of a source that is hashed, and nobody. Without a join it is hashed by its unit.

    Not `within` what is hashed, it is hashed alone.
    """
    by_unit = join is None or join.on_unit
    values = {}
    if source.table.protected and (by_unit or (within and not (join is not None and join.outer))):
        values[unit] = Output(_NOBODY, unit)
    if join is not None and join.on_unit:
        values |= {end.name: Output(_EMPTY[end.type], end.name) for _, end in join.also}
    if join is not None and not join.on_unit:
        values[join.parent.name] = Output(Null(), join.parent.name)
    key = unit if join is None or join.on_unit else join.parent.name
    return BesideNobody(rows, key, tuple(values.values()))


def kept_apart(on: JoinOn, join: Join) -> JoinOn:
    """The join of such rows, which leaves nobody out."""
    if join.on_unit:
        return on
    guard = () if join.outer else (IsNull(on.child, negated=True),)
    return replace(on, alike=True, beside=(*on.beside, *guard))


def nobody_within(join: Join, beside: Source) -> bool:
    """Whether a source can have a row of nobody that meets the one of the source `beside`, which it is joined to."""
    plain = not join.on_unit and not join.also
    return plain and (beside.table.protected or not join.child.nullable)


def met_within(on: JoinOn, join: Join, beside: Source, unit: str) -> JoinOn:
    """Their join: rows of nobody meet, and a row of somebody whose key is NULL meets none."""
    if join.outer or not beside.table.protected:
        return replace(on, alike=True)
    nobody = Comparison("=", Column(beside.relation, unit), _NOBODY)
    guard: Scalar = Junction("OR", (IsNull(on.child, negated=True), nobody))
    return replace(on, alike=True, beside=(*on.beside, guard))
