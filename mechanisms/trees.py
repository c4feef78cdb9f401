"""Ranges of one ordered axis by a tree of sums: which trees there are, and which has the least error. See trees.md.

A tree whose nodes of one level all have the same number of children is a lattice whose keys are the digits of a cell's
number: its levels are those that group by the first digits. So the noise, its price, the least-squares estimate and
the errors of all sums are those of mechanisms/consistency.py; what is added here is the choice among trees, by the
error of the very sums that are asked for. Reads no data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from mechanisms.consistency import CELLS_MAX, WEIGHT_MAX, WORSE, WORTH, Lattice, Level, chosen_lattice
from mechanisms.interval import Floats
from privacy.statistic import RunningSums

__all__ = [
    "DIGITS_MAX",
    "bases_of",
    "flat_error",
    "prefixes",
    "ranges_error",
    "running_tree",
    "running_weights",
    "tree_error",
    "tree_of",
]

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


def ranges_error(
    bases: tuple[int, ...],
    weights: tuple[int, ...],
    ends: npt.ArrayLike,
    *,
    power: int,
    groups: int,
) -> float:
    """`tree_error` of ranges by their ends (ranges x first cell and the one behind the last): trees.md, Proposition 6.

    `weights` are those of the levels, the root's first, 0 where a level is not measured. In the unit of `flat_error`.
    """
    sizes = _sizes(bases)
    energies = _energies(np.array(sizes, dtype=np.float64), np.array(ends, dtype=np.int64))
    score = _Score(sizes, dict(zip(sizes, energies.tolist(), strict=True)), cells=False, power=power, groups=groups)
    return math.sqrt(float(score.errors(np.array([weights]))[0, 0]))


def running_weights(counts: tuple[int, ...], sums: RunningSums) -> Floats:
    """The running sums of the first combination of the other keys, as weights of cells (sums x cells)."""
    weights = np.zeros((len(sums.ends), *counts))
    for row, (low, high) in zip(weights, sums.ends, strict=True):
        first: list[int | slice] = [0] * len(counts)
        first[sums.key] = slice(low, high)
        row[tuple(first)] = 1.0
    return weights.reshape(len(sums.ends), -1)


ROOM_MAX = 2_048
"""Most groups of the finest level of the tree of running sums, those that no cell is among them."""

_BEYOND = 32.0


@lru_cache(maxsize=64)
def running_tree(counts: tuple[int, ...], sums: RunningSums, *, power: int, groups: int) -> Lattice | None:
    """The tree over one of several keys, within each combination of the others, with the least error for its sums.

    `counts` are the numbers of values of the keys. The geometric mean of the mean squared errors of the running sums
    and, where they are read too, of the cells: trees.md, Proposition 6. None where cells alone are as good, to
    `WORTH`. Of equal trees the first. Reads no data.
    """
    count, others = counts[sums.key], math.prod(counts) // max(1, counts[sums.key])
    if count < 3 or math.prod(counts) > CELLS_MAX:
        return None
    ends = np.array(sums.ends, dtype=np.int64)
    found: tuple[float, tuple[int, ...], tuple[int, ...]] | None = None
    known = [bases for bases in _binary_and(count) if math.prod(bases) * others <= ROOM_MAX]
    # Trees have nodes of few sizes: all of them at once take as long as those of one tree.
    sizes = sorted({size for bases in known for size in _sizes(bases)})
    energies = dict(zip(sizes, _energies(np.array(sizes, dtype=np.float64), ends).tolist(), strict=True))
    tried = [(_alike(_sizes(bases), energies, cells=sums.cells, power=power, groups=groups), bases) for bases in known]
    for _, bases in sorted(tried)[:2]:
        score = _Score(_sizes(bases), energies, cells=sums.cells, power=power, groups=groups)
        weights, value = score.best()
        if found is None or value < found[0] - 1e-6:
            found = value, bases, weights
    if found is None or not any(found[2][:-1]):
        return None
    value, bases, weights = found
    if value > -2 * (1 + sums.cells) * math.log(WORTH):
        return None
    return _woven(counts, sums.key, bases, weights)


def _binary_and(count: int) -> tuple[tuple[int, ...], ...]:
    """The trees of `bases_of`, without its limit of levels."""
    found: dict[tuple[int, ...], None] = {}
    for base in _BASES:
        digits = 1
        while base**digits < count:
            digits += 1
            bases = (-(-count // base ** (digits - 1)), *(base,) * (digits - 1))
            if bases[0] >= 2:
                found[bases] = None
    return tuple(found)


def _sizes(bases: tuple[int, ...]) -> tuple[int, ...]:
    """How many places the nodes of each level have, the root's first."""
    return tuple(math.prod(bases[depth:]) for depth in range(len(bases) + 1))


def _woven(counts: tuple[int, ...], key: int, bases: tuple[int, ...], weights: tuple[int, ...]) -> Lattice:
    """A tree in place of one of the keys; all levels have all the other keys."""
    sizes = (*counts[:key], *bases, *counts[key + 1 :])
    behind = len(bases) - 1
    others = (*range(key), *range(key + behind + 1, len(sizes)))
    shared = math.gcd(*weights)
    levels = tuple(
        (tuple(sorted((*others, *range(key, key + depth)))), weights[depth] // shared)
        for depth in range(len(bases), -1, -1)
        if weights[depth]
    )
    axes = tuple((count, len(bases) if place == key else 1) for place, count in enumerate(counts))
    return Lattice(sizes, levels, axes)


def _alike(sizes: Sequence[int], energies: Mapping[int, float], *, cells: bool, power: int, groups: int) -> float:
    """The score of a tree whose levels all have the weight 1: as `_Score`, for a single choice."""
    change = len(sizes) ** 2 if power == 1 else sum(min(groups, size) for size in sizes)
    total = 0.0
    for item in ([energies[size] for size in sizes], [1 / size for size in sizes])[: 1 + cells]:
        eigenvalue, variance = 0, 0.0
        for size, energy, coarser in zip(reversed(sizes), reversed(item), [*reversed(item[:-1]), 0.0], strict=True):
            eigenvalue += size
            variance += (energy - coarser) / eigenvalue
        error = math.log(change * variance / item[-1])
        total += error + _BEYOND * max(0.0, error - math.log(WORSE**2))
    return round(total, 9)


@lru_cache(maxsize=32)
def _changes(levels: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]:
    """All changes of one weight: the level, and what it becomes; the finest level stays measured."""
    both = [(place, weight) for place in range(levels) for weight in range(WEIGHT_MAX + 1)]
    both = [(place, weight) for place, weight in both if weight or place < levels - 1]
    return np.array([place for place, _ in both]), np.array([weight for _, weight in both])


class _Score:
    """The errors of a tree by the weights of its levels, the root's first, against those of cells alone."""

    def __init__(
        self, sizes: Sequence[int], energies: Mapping[int, float], *, cells: bool, power: int, groups: int
    ) -> None:
        """`sizes` are those of the nodes of each level, the root's first; `energies` of the sums by size."""
        self._sizes = np.array(sizes, dtype=np.float64)
        self._power = power
        self._costs = np.minimum(groups, self._sizes)
        items = [np.array([energies[size] for size in sizes])]
        if cells:
            items.append(1 / self._sizes)
        # What the effects of each depth add, which are orthogonal.
        self._effects = np.array([np.diff(one, prepend=0.0) for one in items])
        self._flat = np.array([one[-1] for one in items])

    def scores(self, weights: npt.NDArray[np.int64]) -> Floats:
        """The logarithms of the products of squared errors (rows x levels to rows), cells alone being zero."""
        errors = np.log(self.errors(weights) / self._flat)
        result: Floats = (errors + _BEYOND * np.maximum(0.0, errors - math.log(WORSE**2))).sum(axis=1)
        return np.round(result, 9)

    def errors(self, weights: npt.NDArray[np.int64]) -> Floats:
        """The mean squared errors (rows x levels to rows x items): of the ranges, and of single cells."""
        squares = weights.astype(np.float64) ** 2
        # The eigenvalue of a depth is that of all measured levels that are at least as fine.
        eigenvalues = np.cumsum((squares * self._sizes)[:, ::-1], axis=1)[:, ::-1]
        change = weights.sum(axis=1) ** 2.0 if self._power == 1 else (squares * self._costs).sum(axis=1)
        result: Floats = change[:, None] * ((1 / eigenvalues) @ self._effects.T)
        return result

    def best(self) -> tuple[tuple[int, ...], float]:
        """Weights that no change of one of them makes better, the better of two such, and their score."""
        levels = len(self._sizes)
        starts = ((1,) * levels, (*(0 for _ in range(levels - 1)), 1))
        return min((self._descent(np.array(start)) for start in starts), key=lambda one: one[1])

    def _descent(self, found: npt.NDArray[np.int64]) -> tuple[tuple[int, ...], float]:
        known = float(self.scores(found[None])[0])
        places, weights = _changes(len(found))
        rows = np.arange(len(places))
        while True:
            tried = np.repeat(found[None], len(places), axis=0)
            tried[rows, places] = weights
            scores = self.scores(tried)
            best = int(scores.argmin())
            if scores[best] >= known - 1e-6:
                return tuple(map(int, found)), known
            found, known = tried[best], float(scores[best])


def _energies(sizes: Floats, ends: npt.NDArray[np.int64]) -> Floats:
    """Of ranges of cells (first, behind the last), the mean square of their projection on each level.

    That on a level is its sum in each node over the root of the node's size: whole nodes, and what is left at both
    ends. trees.md, Proposition 6.
    """
    low, high = ends[:, 0, None].astype(np.float64), ends[:, 1, None].astype(np.float64)
    first, last = np.ceil(low / sizes), np.floor(high / sizes)
    within = first > last
    left, right = first * sizes - low, high - last * sizes
    apart = (last - first) * sizes + (left**2 + right**2) / sizes
    result: Floats = np.where(within, (high - low) ** 2 / sizes, apart).mean(axis=0)
    return result


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
