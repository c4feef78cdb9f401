"""A row of nobody in what a join hashes, so that it is never empty.

    visits JOIN people ON visits.person_id = people.person_id WHERE people.age = 119
    visits JOIN ((people with age = 119) and nobody) ON visits.person_id IS NOT DISTINCT FROM people.person_id ...

An engine that has hashed nothing skips what it would ask: all rows of the left side, whoever owns them. So the first
person who meets a condition would make the rows of all others be read, and be looked up, which takes as long as the
table is large, and no tick is as long as that. With a row of nobody they always are.

Claim. The rows of the join are what they were, each as often. Proof. Rows with NULL in a key equal nothing, and are
left out of what is hashed; among the others NULL of the left side (`alike`) meets nobody alone. Where two sides meet on
the unit, nobody's number is -1, which no unit has: nobody is met by no row. Else nobody's keys are all NULL, and only a
row whose own keys are NULL meets nobody. Of an inner join such rows, which met no row, are left out by a condition. Of
an outer one they are kept with NULL in all columns of the other side, and so they are with nobody, in whom all columns
are NULL, whatever a comparison beside the equality says; there is one row of nobody. QED.

Where the sources before a join are hashed in place of the one that is joined (`turned`), NULL may be in further columns
of what is hashed: there rows that ask with NULL are left out by a condition.

Where what is hashed is itself joined (join_tree.py), each of its tables has a row of nobody, and these meet one
another: their keys are NULL. Of a row that is somebody's the key must not be NULL, as above; a row is nobody's where
its unit is -1. So the joined rows are the earlier ones and one of nobody, whose key is NULL, or whose unit is -1.

Public tables alone need no such row: that they are empty is public. Nor do tables without conditions.

Not covered: what is hashed and itself joined where a public table refers to another by a column that may be NULL.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sql_rewrite.plan import Join, Source
from sql_rewrite.relations import BesideNobody, JoinOn, Output, Relation
from sql_rewrite.scalars import Column, Comparison, IsNull, Junction, Null, Scalar, Whole

__all__ = ["asked_by", "beside_nobody", "kept_apart", "met_within", "needs_nobody", "nobody_within"]

_NOBODY = Whole(-1)


def needs_nobody(sources: Iterable[Source]) -> bool:
    """Whether one person may decide that no row is left of these sources, which a join hashes."""
    listed = list(sources)
    return any(one.table.protected for one in listed) and any(one.only is not None or not one.stored for one in listed)


def beside_nobody(rows: Relation, source: Source, join: Join | None, unit: str, *, within: bool) -> Relation:
    """The rows of a source that is hashed, and nobody. Without a join it is hashed by its unit.

    Not `within` what is hashed, it is hashed alone.
    """
    by_unit = join is None or join.on_unit
    also = () if join is None else tuple([end.name for _, end in join.also])
    nobody = () if join is None or join.on_unit else (Output(Null(), join.parent.name),)
    if source.table.protected and (by_unit or (within and not (join is not None and join.outer))):
        nobody = (Output(_NOBODY, unit), *nobody)
    key = unit if join is None or join.on_unit else join.parent.name
    return BesideNobody(rows, (key, *also), nobody)


def kept_apart(on: JoinOn, join: Join) -> JoinOn:
    """The join of such rows, which leaves nobody out."""
    if join.on_unit:
        return replace(on, alike=bool(join.also))
    guard = () if join.outer else (IsNull(on.child, negated=True),)
    return replace(on, alike=True, beside=(*on.beside, *guard))


def asked_by(on: JoinOn, join: Join) -> JoinOn:
    """The join, on the unit, of such rows with a source that asks for them: of its rows none has NULL in a key."""
    assert join.on_unit
    return replace(on, alike=bool(join.also), beside=(*on.beside, *[IsNull(end, negated=True) for _, end in on.also]))


def nobody_within(join: Join, beside: Source) -> bool:
    """Whether a source can have a row of nobody that meets the one of the source `beside`, which it is joined to."""
    return not join.on_unit and (beside.table.protected or not join.child.nullable)


def met_within(on: JoinOn, join: Join, beside: Source, unit: str) -> JoinOn:
    """Their join: rows of nobody meet, and a row of somebody whose key is NULL meets none."""
    if join.outer or not beside.table.protected:
        return replace(on, alike=True)
    nobody = Comparison("=", Column(beside.relation, unit), _NOBODY)
    guard: Scalar = Junction("OR", (IsNull(on.child, negated=True), nobody))
    return replace(on, alike=True, beside=(*on.beside, guard))
