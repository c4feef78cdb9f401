"""Released lists of hidden groups in a later stage: their keys are released values, as many as a text has room for.

    SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward FROM visits GROUP BY ward HAVING COUNT(*) > 100)
    core c1:  visits where CASE WHEN list@0 AND ward = k0@list.0 THEN TRUE WHEN list@1 AND ... ELSE FALSE END

Nobody knows beforehand which groups a selection shows. So the statement has a number of places that follows from the
text, and each place holds a key, the numbers of its group, and whether there is a group: NULL and FALSE beyond them.

Claim. What stage_tables.py says of public groups holds of the rows of such a list. Proof: keys, numbers and flags are
released values (stage_values.py), each of one value in all rows, and the places of a list are as many whatever is
released; a released table has each key once, so a row equals the keys of one place at most, and of none beyond them,
for NULL equals nothing. So the condition, and what a joined row gets, are functions of the row and of released values.
Sensitivities are proved for every value of them, keys among them: no key is known to be one of a declared list.

A list that has more groups than places is not read: the question ends after its first release, with a refusal that
follows from released numbers alone (server/journey/stages.py). A group that is not shown is in no list, and a count of
it is that of nobody.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sql_rewrite.plan import Arrangement, Core
from sql_rewrite.stage_tables import CELLS_MAX, Cells, cell_name, list_name
from sql_rewrite.stage_values import KEY_TYPES, released_key

__all__ = ["HiddenList", "hidden_list", "places_of"]


@dataclass(frozen=True, slots=True)
class HiddenList:
    """A list of hidden groups: its name, what makes it of the released table, and the keys of its places.

    `whole` says that the arrangement does all that the block says.
    """

    name: str
    arrangement: Arrangement
    cells: Cells
    whole: bool


def places_of(arrangement: Arrangement) -> int:
    """How many groups of a list a later stage has room for."""
    return CELLS_MAX if arrangement.limit is None else max(1, min(CELLS_MAX, arrangement.limit))


def hidden_list(core: Core, arrangement: Arrangement | None) -> HiddenList | None:
    """The list that an arrangement makes of the groups of a core, all of them without one.

    None where one of the keys has a type that is not compared with columns.
    """
    if any(expression.type not in KEY_TYPES for _, expression in core.keys):
        return None
    names = tuple(name for name, _ in core.keys)
    listed = Arrangement(names, (), None, 0) if arrangement is None else replace(arrangement, columns=names)
    name = list_name(listed)
    cells = tuple(
        tuple(released_key(core.name, cell_name(key, place, name), expression.type) for key, expression in core.keys)
        for place in range(places_of(listed))
    )
    return HiddenList(name, listed, cells, arrangement is not None)
