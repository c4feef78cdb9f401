"""Tables of which a core reads only whether a unit is in them: they are asked once for each unit, after its rows.

    SELECT SUM(cost) FROM visits JOIN people USING (person_id) WHERE age > 60
    (visits, added up by unit) JOIN (people with age > 60) ON their unit

Each row asks such a table for the same row, so a unit's rows are left out all together or not at all. Where a core has
no keys there is one sum for each unit: then one look-up for each unit takes the place of one for each row.

Claim. The sums of each unit are those of the join. Proof. A row meets the row of its own unit and no other (`of_unit`),
and every join is an inner one. No expression above the join reads the table, and no other table is joined by columns of
it; so leaving it out changes rows in nothing but which units have any, and the inner join afterwards leaves the units
that have a row of it.

A unit's rows are grouped whether or not its unit is left out: what they cost at most, every row in every branch, was
counted so before (cost.py), with one look-up for each row.
"""

from __future__ import annotations

from collections.abc import Collection

from sql_rewrite.join_tree import of_unit
from sql_rewrite.plan import Core, Source

__all__ = ["late_units"]


def late_units(core: Core, read: Collection[tuple[str, str]]) -> tuple[Source, ...]:
    """The sources of a core without keys that only say which units have rows, given the columns that are read."""
    sources = core.sources
    if core.keys or any(source.join is None or source.join.outer for source in sources[1:]):
        return ()
    named = {relation for relation, _ in read}
    asked = [source.join.child for source in sources[1:] if source.join is not None]
    asked += [child for source in sources[1:] if source.join is not None for child, _ in source.join.also]
    named |= {child.relation for child in asked}
    return tuple([source for source in sources[1:] if source.relation not in named and of_unit(source)])
