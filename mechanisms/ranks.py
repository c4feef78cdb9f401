"""Ranks from noisy counts on a tree of intervals, and the error that they have: quantiles.md.

Post-processing: functions of released numbers. Arrays have the nodes of the tree, or the ends of its places, as their
last axis; `consistent` turns one into the other, and everything after it is in rows.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TypeVar, assert_never

import numpy as np
import numpy.typing as npt

from mechanisms.interval import Floats, gaussian_two_sided
from mechanisms.measurement import Law, Measurement
from privacy.rank_tree import RankTree

__all__ = [
    "WEIGHT_MAX",
    "consistent",
    "counts_below",
    "monotone",
    "nodes_of",
    "rank_deviation",
    "reach",
    "slopes",
    "spread",
]

WEIGHT_MAX = 2.0
"""No count on a node takes part in a rank with a greater weight than this: quantiles.md."""

_ROUNDING_PART = 0.05
"""The part of the chance of a miss that is kept for the rounding of the noise."""

_Number = TypeVar("_Number", np.int64, np.float64)

_TILTS = np.linspace(0.02, 0.98, 49)


def nodes_of(tree: RankTree, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Exact counts on all nodes, level by level, from those of the places (cells x places)."""
    levels = [places]
    for _ in range(tree.levels - 1):
        levels.insert(0, _added(levels[0], tree.branching))
    return np.concatenate(levels, axis=1)


def consistent(tree: RankTree, noisy: Floats) -> Floats:
    """The least-squares estimate of the counts of the places (... x nodes to ... x places).

    Source: Hay, Rastogi, Miklau and Suciu 2010, Theorem 3, for every subtree of the first level.
    """
    branching, ends = tree.branching, np.cumsum([tree.branching**level for level in range(1, tree.levels + 1)])
    levels = [noisy[..., (0 if i == 0 else ends[i - 1]) : end] for i, end in enumerate(ends)]
    up = [levels[-1]]
    for own, weight in zip(reversed(levels[:-1]), _weights(tree)[1:], strict=True):
        up.insert(0, weight * own + (1 - weight) * _added(up[0], branching))
    down = up[0]
    for own in up[1:]:
        missing = (down - _added(own, branching)) / branching
        down = own + np.repeat(missing, branching, axis=-1)
    return down


def counts_below(tree: RankTree, noisy: Floats, used: int) -> Floats:
    """Estimated counts below the ends of the used places, from 0 to all (... x used + 1). All rows are in these."""
    below = np.cumsum(consistent(tree, noisy), axis=-1)
    whole = below[..., -1:]
    return np.concatenate([np.zeros_like(whole), below[..., : used - 1], whole], axis=-1)


def monotone(below: Floats) -> Floats:
    """The middle of the least rising function above and the greatest one below: what counts below ends can be."""
    above = np.maximum.accumulate(below, axis=-1)
    under = np.minimum.accumulate(below[..., ::-1], axis=-1)[..., ::-1]
    result: Floats = np.clip((above + under) / 2, 0.0, np.maximum(below[..., -1:], 0.0))
    return result


def slopes(measurement: Measurement, noisy: Floats, fraction: Fraction, at: Floats, used: int) -> tuple[Floats, Floats]:
    """About how many places values lie apart for each row, below and above a position among the places.

    Between the position and where the rank is one standard error of the tree away: nearer it does not see. Shape:
    `noisy` counts on nodes in rows (... x nodes), `at` one position each.
    """
    tree = measurement.statistic.tree
    assert tree is not None
    smooth = monotone(counts_below(tree, noisy, used))
    count = math.sqrt(measurement.variance()) * float(measurement.grid * measurement.unit)
    most = count * float(spread(tree.branching, tree.levels, fraction).max())
    place = np.minimum(at.astype(np.int64), used - 1)[..., None]
    first, last = (np.take_along_axis(smooth, place + end, axis=-1)[..., 0] for end in (0, 1))
    rank = first + (at - place[..., 0]) * (last - first)
    below, above = (_position(smooth, rank + sign * most) for sign in (-1, 1))
    return np.maximum(at - below, 0) / most, np.maximum(above - at, 0) / most


def _position(smooth: Floats, rank: Floats) -> Floats:
    """Where among the places so many rows lie below: within a place, rows are spread evenly."""
    place = np.minimum((smooth[..., 1:] < rank[..., None]).sum(axis=-1), smooth.shape[-1] - 2)
    before, after = (np.take_along_axis(smooth, place[..., None] + end, axis=-1)[..., 0] for end in (0, 1))
    inside = np.where(after > before, (rank - before) / np.where(after > before, after - before, 1), 0.5)
    result: Floats = place + np.clip(inside, 0, 1)
    return result


def rank_deviation(measurement: Measurement) -> float:
    """The greatest standard deviation of the rank of a median, in rows."""
    tree = measurement.statistic.tree
    assert tree is not None
    count = math.sqrt(measurement.variance()) * float(measurement.grid * measurement.unit)
    return count * float(spread(tree.branching, tree.levels, Fraction(1, 2)).max())


@lru_cache(maxsize=256)
def spread(branching: int, levels: int, fraction: Fraction) -> Floats:
    """The L2 norm of the weights with which counts on nodes take part in a rank, by the end of a place.

    The rank of end j is the estimated count below it, less the fraction of all. From 0 to the number of places.
    """
    part, count = float(fraction), branching**levels
    ends = np.arange(count + 1)
    squares, carried = np.zeros(count + 1), np.zeros(count + 1)
    rest = ends.copy()
    heights = _variances(branching, levels)
    for height in range(levels - 1):
        before = rest % branching
        mean = (before + carried) / branching
        squares += heights[height] * np.maximum(before + carried**2 - branching * mean**2, 0.0)
        rest, carried = rest // branching, mean
    inside = rest < branching
    others = np.where(inside, branching - rest - 1, 0)
    squares += heights[-1] * (rest * (1 - part) ** 2 + np.where(inside, (carried - part) ** 2, 0.0) + others * part**2)
    result: Floats = np.sqrt(squares)
    result.flags.writeable = False
    return result


def reach(measurement: Measurement, fraction: Fraction, alpha: float) -> Floats:
    """What the error of a rank exceeds in one direction with probability at most alpha / 2, in rows, by end."""
    tree = measurement.statistic.tree
    assert tree is not None
    weights = spread(tree.branching, tree.levels, fraction)
    scale = float(measurement.scale_of_sums / measurement.grid)
    noise = (1 - _ROUNDING_PART) * alpha
    match measurement.law:
        case Law.NORMAL:
            found = gaussian_two_sided(noise) * measurement.widening(noise) * scale * weights
        case Law.LAPLACE:
            found = scale * _laplace(weights, noise / 2)
        case Law.OTHER:
            raise ValueError("the statistic does not hold the estimate")
        case _:
            assert_never(measurement.law)
    # Errors of rounding are independent, at most a half, and as often up as down (Hoeffding 1963, Theorem 2).
    found = found + weights * math.sqrt(math.log(2 / (_ROUNDING_PART * alpha)) / 2)
    # Those of the sums, and of what a mean is made of, are bounded as well, but not random.
    beside = measurement.rounding - 0.5
    if beside > 0:
        found = found + weights * math.sqrt(tree.nodes) * beside
    return found * float(measurement.grid * measurement.unit)


def _laplace(weights: Floats, alpha: float) -> Floats:
    """Chernoff's bound of a weighted sum of standard Laplace variables, by the L2 norms of the weights."""
    greatest = np.maximum(np.minimum(weights, WEIGHT_MAX), 1e-9)
    whole = (weights / greatest) ** 2
    bounds = greatest * (math.log(1 / alpha) - whole * np.log1p(-(_TILTS[:, None] ** 2))) / _TILTS[:, None]
    result: Floats = bounds.min(axis=0)
    return result


def _weights(tree: RankTree) -> list[float]:
    """The weight of a node's own count against the sum of its children, by height from the places."""
    return [variance if height else 1.0 for height, variance in enumerate(_variances(tree.branching, tree.levels))]


def _variances(branching: int, levels: int) -> npt.NDArray[np.float64]:
    """The variance of a node's count from its own subtree, by height, in variances of one count."""
    found = [1.0]
    for _ in range(levels - 1):
        found.append(1 / (1 + 1 / (branching * found[-1])))
    return np.array(found)


def _added(values: npt.NDArray[_Number], branching: int) -> npt.NDArray[_Number]:
    """The sums of as many neighbours each. There may be no group: of nothing no length can be left open."""
    *others, last = values.shape
    result: npt.NDArray[_Number] = values.reshape(*others, last // branching, branching).sum(axis=-1)
    return result
