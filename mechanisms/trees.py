"""Ranges of one ordered axis by a tree of sums: which trees there are, and which has the least error. See trees.md.

A tree whose nodes of one level all have the same number of children is a lattice whose keys are the digits of a cell's
number: its levels are those that group by the first digits. So the noise, its price, the least-squares estimate and
the errors of all sums are those of mechanisms/consistency.py; what is added here is the choice among trees, by the
error of the very sums that are asked for. Reads no data.
"""

from __future__ import annotations

import math

from mechanisms.consistency import CELLS_MAX, Lattice, Level, chosen_lattice
from mechanisms.interval import Floats

__all__ = ["DIGITS_MAX", "bases_of", "flat_error", "prefixes", "tree_error", "tree_of"]

DIGITS_MAX = 5
"""Most levels below the root."""

_BASES = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32)


def bases_of(count: int) -> tuple[tuple[int, ...], ...]:
    """The trees that are tried for so many cells: the number of children on each level, the root's first.

    All levels but the root's have one number of children. Cells that are added behind the last one are empty.
    """
    found: dict[tuple[int, ...], None] = {}
    for base in _BASES:
        for digits in range(2, DIGITS_MAX + 1):
            top = -(-count // base ** (digits - 1))
            bases = (top, *(base,) * (digits - 1))
            if top >= 2 and math.prod(bases) <= CELLS_MAX:
                found[bases] = None
    return tuple(found)


def prefixes(digits: int) -> tuple[Level, ...]:
    """The levels of a tree of so many digits, the finest first, the root last."""
    return tuple(tuple(range(length)) for length in range(digits, -1, -1))


def tree_of(bases: tuple[int, ...], *, power: int, groups: int) -> Lattice | None:
    """The tree with the weights of its levels; None where the cells alone are measured. Reads no data."""
    return chosen_lattice(bases, prefixes(len(bases)), power=power, groups=groups)


def flat_error(weights: Floats) -> float:
    """Root-mean-square error of weighted sums of cells (sums x cells) with noise of its own on each.

    Unit: the error of one such cell.
    """
    return math.sqrt(float((weights**2).sum(axis=1).mean()))


def tree_error(lattice: Lattice, weights: Floats, *, power: int, groups: int) -> float:
    """The same with the noise of a tree at the same price, in the unit of `flat_error`: trees.md, Proposition 2.

    `power` is that of the norm to which noise is calibrated, `groups` the most cells in which one unit changes a sum.
    """
    spread = lattice.spread(weights[:, :, None])[..., 0]
    change = lattice.change(power, groups)
    price = float(change) if power == 1 else math.sqrt(change)
    return price * math.sqrt(float((spread**2).sum(axis=1).mean()))
