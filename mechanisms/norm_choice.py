"""Which norm the units' contributions are scaled to, chosen from a noisy histogram of their norms.

Everything here is post-processing of a released histogram (norm_choice.md): no choice can cost privacy, a poor one
costs accuracy. The body of the histogram is read as it is; its tail, where single bins drown in noise, is extended by
laws that the noisy counts support (norm_tail.py), and the norm minimises the mean square error expected over them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

import numpy as np
import numpy.typing as npt

from mechanisms.norm_tail import last_octave, norm_tail, seen_at
from privacy.norms import BINS, BINS_PER_OCTAVE, NormOf, NormPower

__all__ = ["NormChoice", "bin_of", "choose", "edge"]

_WINDOWS = (2, 4, 8, 16)
"""Numbers of neighbouring bins that are looked at together where no bin is seen alone."""

_LEVELS = 2
"""Norms that are tried for each bin."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class NormChoice:
    """The norm, and what scaling to it is expected to cut from the sum over all cells, with its standard error.

    `share` and `share_error` are the same as parts of the whole sum (of absolute values), and `size` is what one unit,
    scaled to the norm, adds to the sum over all cells in the mean: None where too few units are seen to say it. All
    are estimates without a promise: a unit too rare to be seen in the histogram is not in them.
    """

    norm: float
    cut: float
    error: float
    share: float | None = None
    share_error: float | None = None
    size: float | None = None


def edge(place: int) -> float:
    """The greatest norm of a bin."""
    return float(2 ** (place / BINS_PER_OCTAVE))


def bin_of(square: int) -> int:
    """The bin of a vector by the square of its L2 norm, exactly: the first one whose edge is not below the norm."""
    assert square >= 0
    # norm <= 2^(place / 4)  if and only if  square^2 <= 2^place
    return min(BINS - 1, max(0, square * square - 1).bit_length())


def choose(
    counts: Sequence[float],
    *,
    deviation: float,
    cells: int,
    noise_per_norm: float,
    most: float = math.inf,
    power: NormPower = NormPower.L2,
    of: NormOf = NormOf.ROWS,
    laplace: bool = False,
) -> NormChoice | None:
    """The norm for sums over `cells` cells whose noise has the standard deviation `noise_per_norm` times the norm.

    `counts` are noisy numbers of units by bin, each with noise of standard deviation `deviation`; no unit has a
    norm above `most`; `laplace` says which noise it is. None when they show no unit: there may be some, and nothing is
    known of them.
    """
    noisy = np.asarray(counts, dtype=np.float64)
    assert noisy.shape == (BINS,)
    assert deviation > 0
    assert cells > 0
    octave = last_octave(noisy, deviation, laplace=laplace)
    if octave is None:
        few = _norm_of_few(noisy, deviation, laplace=laplace)
        return None if few is None else NormChoice(min(few, most), 0.0, 0.0)
    edges = 2.0 ** (np.arange(-BINS_PER_OCTAVE, BINS) / BINS_PER_OCTAVE)
    tail = norm_tail(noisy, octave, deviation, _sizes(edges, cells, power, of), laplace=laplace)
    first, weights = tail.last + 1, tail.weights
    end = first + tail.laws.shape[1]
    norms = np.minimum(2.0 ** (np.arange(_LEVELS * end) / (_LEVELS * BINS_PER_OCTAVE)), most)
    whole = _sizes(_middles(end, most), cells, power, of)
    lost = _kept_off(norms, end, most) * whole
    body = np.maximum(noisy[:first], 0)
    cut = lost[:, :first] @ body + tail.laws @ lost[:, first:].T
    # A law says how many units to expect: their number varies around that by its root.
    chance = tail.laws @ (lost[:, first:] ** 2).T
    loss = weights @ np.sqrt((cut * cut + chance) / cells**2 + (noise_per_norm * norms) ** 2)
    best = int(np.argmin(loss))
    total = whole[:first] @ body + tail.laws @ whole[first:]
    mean, spread = _moments(cut[:, best], weights)
    share, share_spread = _moments(cut[:, best] / total, weights)
    units = float(body.sum() + weights @ tail.laws.sum(axis=1))
    # Beside the tail, which is unknown, the noise of the bins that are cut.
    noise = deviation**2 * float(lost[best, :first] @ lost[best, :first])
    share_noise = noise / float(weights @ total) ** 2
    spread += float(weights @ chance[:, best])
    share_spread += float(weights @ (chance[:, best] / total**2))
    return NormChoice(
        float(norms[best]),
        mean,
        math.sqrt(spread + noise),
        min(share, 1.0),
        min(math.sqrt(share_spread + share_noise), 1.0),
        max(0.0, float(weights @ total) - mean) / units,
    )


def _moments(values: Floats, weights: Floats) -> tuple[float, float]:
    """Mean and variance under weights that add up to one."""
    mean = float(weights @ values)
    return mean, float(weights @ (values - mean) ** 2)


def _kept_off(norms: Floats, end: int, most: float) -> Floats:
    """The part of a unit of each bin that scaling to each norm takes away."""
    kept_off: Floats = np.maximum(0.0, 1 - norms[:, None] / _middles(end, most)[None, :])
    return kept_off


def _middles(end: int, most: float) -> Floats:
    """A norm inside each bin; units that a law has beyond the greatest norm have that one."""
    middle: Floats = 2.0 ** ((np.arange(end) - 0.5) / BINS_PER_OCTAVE)
    middle[0] = 1.0
    return np.minimum(middle, most)


def _sizes(norms: Floats, cells: int, power: NormPower, of: NormOf) -> Floats:
    """What a unit of each norm adds to the sum over all cells, about.

    An L1 norm is it. Where r rows fall into k cells at random, the square of the L2 norm is about r + r^2 / k: few
    rows stand alone in their cells, many share them. One row in each of n^2 cells has the norm n. Sums lie between n,
    all in one cell, and n sqrt(cells): their geometric mean.
    """
    if power is NormPower.L1:
        return norms
    match of:
        case NormOf.ROWS:
            found: Floats = np.maximum(norms, (np.sqrt(1 + 4 * norms * norms / cells) - 1) * (cells / 2))
        case NormOf.UNITS:
            found = np.maximum(norms, norms * np.minimum(norms, math.sqrt(cells)))
        case NormOf.SUM:
            found = norms * cells**0.25
        case _:
            assert_never(of)
    return found


def _norm_of_few(noisy: Floats, deviation: float, *, laplace: bool) -> float | None:
    """The end of the fewest neighbouring bins that are seen together; None where nothing is seen."""
    for width in _WINDOWS:
        together = np.convolve(noisy, np.ones(width), "valid")
        seen = np.nonzero(together > seen_at(width, laplace=laplace) * deviation * math.sqrt(width))[0]
        if len(seen):
            return edge(int(seen[-1]) + width - 1)
    return None
