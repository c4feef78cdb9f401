"""What to write where a later part of a question reads more released groups than its expressions have room for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from sql_rewrite.plan import Core
from sql_rewrite.stage_tables import CELLS_MAX
from sql_rewrite.stage_values import places_read

__all__ = ["shorter_lists"]

_LEAST = 5
"""A list that would have to be shorter than this helps nobody."""


def shorter_lists(cores: Sequence[Core], operators: int, most: int) -> tuple[str, ...]:
    """How many groups a list may keep, of cores that have so many operators and may have `most`; none without one."""
    read: dict[str, set[str]] = defaultdict(set)
    for core in cores:
        for of, place in places_read(core):
            read[of].add(place)
    places = max(map(len, read.values()), default=0)
    room = min(CELLS_MAX, places * most * 4 // (operators * 5)) // _LEAST * _LEAST
    if room < _LEAST or room >= places:
        return ()
    return (
        f"name the groups in a CTE with ORDER BY COUNT(*) DESC LIMIT {room}, and join it, or compare IN (SELECT its "
        f"key FROM it): each of {places} that may be there is a branch",
    )
