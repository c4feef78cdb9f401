"""Queries of which each two are nested or apart: hierarchies, whose totals are nodes of a tree."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mechanisms.consistency import CELLS_MAX
from mechanisms.trees import DIGITS_MAX

__all__ = ["nested_layout"]

_ROOM = 4
"""How many times more cells than pieces a tree may have, the others of which are empty."""


def nested_layout(
    pieces: int, members: Sequence[frozenset[int] | None]
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Children on each level, the root's first, and the number of each piece, so that every query is one node.

    None where two queries overlap, or where the tree would be mostly empty or too deep. Reads no data.
    """
    every = frozenset(range(pieces))
    sets = sorted({every if one is None else one for one in members} | {every}, key=len, reverse=True)
    paths: dict[int, list[int]] = {piece: [] for piece in every}
    within: dict[int, frozenset[int]] = dict.fromkeys(every, every)
    children: dict[frozenset[int], int] = {}
    for node in sets[1:]:
        around = within[next(iter(node))]
        if any(within[piece] is not around for piece in node) or not node < around:
            return None
        number = children.get(around, 0)
        children[around] = number + 1
        for piece in node:
            paths[piece].append(number)
            within[piece] = node
    for piece in sorted(every):
        around = within[piece]
        if len(around) > 1:
            number = children.get(around, 0)
            children[around] = number + 1
            paths[piece].append(number)
    depth = max(map(len, paths.values()))
    if not 2 <= depth <= DIGITS_MAX:
        return None
    bases = tuple(
        max((path[level] for path in paths.values() if level < len(path)), default=0) + 1 for level in range(depth)
    )
    if math.prod(bases) > min(CELLS_MAX, _ROOM * pieces) or min(bases) < 2:
        return None
    layout = []
    for piece in range(pieces):
        number = 0
        for level, base in enumerate(bases):
            number = number * base + (paths[piece][level] if level < len(paths[piece]) else 0)
        layout.append(number)
    return bases, tuple(layout)
