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

from mechanisms.norm_tail import Tail, last_octave, norm_tail, seen_at
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
    models = []
    for light in _lights(noisy, octave, power, of):
        tail = norm_tail(noisy, octave, deviation, _sizes(edges, cells, power, of, light), laplace=laplace)
        first = tail.last + 1
        end = first + tail.laws.shape[1]
        for inside in _PLACES:
            place = _norms_in_bins(end, most, inside)
            models.append(_Model(tail, place, _sizes(place, cells, power, of, light)))
    norms = np.minimum(2.0 ** (np.arange(_LEVELS * end) / (_LEVELS * BINS_PER_OCTAVE)), most)
    body = np.maximum(noisy[:first], 0)
    noise = (noise_per_norm * norms) ** 2
    # Of several views the product: a sum would follow the one that expects most.
    loss = math.prod(model.loss(norms, body, noise, cells) for model in models)
    best = int(np.argmin(loss))
    found = [model.cut(float(norms[best]), body, deviation) for model in models]
    (cut, error), (share, share_error), (size, _) = (_mixed(parts) for parts in zip(*found, strict=True))
    return NormChoice(float(norms[best]), cut, error, min(share, 1.0), min(share_error, 1.0), size)


@dataclass(frozen=True, slots=True)
class _Model:
    """The tail under one view of what units of each norm add and of where in a bin they are, as norms and sizes."""

    tail: Tail
    norms: Floats
    sizes: Floats

    def loss(self, norms: Floats, body: Floats, noise: Floats, cells: int) -> Floats:
        """The expected error of a cell at each norm."""
        tail, first = self.tail, len(body)
        lost = self._kept_off(norms) * self.sizes
        cut = lost[:, :first] @ body + tail.laws @ lost[:, first:].T
        # A law says how many units to expect: their number varies around that by its root.
        chance = tail.laws @ (lost[:, first:] ** 2).T
        loss: Floats = tail.weights @ np.sqrt((cut * cut + chance) / cells**2 + noise)
        return loss

    def cut(self, norm: float, body: Floats, deviation: float) -> tuple[tuple[float, float], ...]:
        """At one norm what is cut, the part of the whole that it is, and what a unit adds; each with its variance."""
        tail, first = self.tail, len(body)
        lost, weights = self._kept_off(np.array([norm]))[0] * self.sizes, self.tail.weights
        cut = lost[:first] @ body + tail.laws @ lost[first:]
        chance = tail.laws @ lost[first:] ** 2
        total = self.sizes[:first] @ body + tail.laws @ self.sizes[first:]
        mean, spread = _moments(cut, weights)
        share, share_spread = _moments(cut / total, weights)
        units = float(body.sum() + weights @ tail.laws.sum(axis=1))
        # Beside the tail, which is unknown, the noise of the bins that are cut.
        noise = deviation**2 * float(lost[:first] @ lost[:first])
        share_noise = noise / float(weights @ total) ** 2
        spread += float(weights @ chance)
        share_spread += float(weights @ (chance / total**2))
        size = max(0.0, float(weights @ total) - mean) / units
        return (mean, spread + noise), (share, share_spread + share_noise), (size, 0.0)

    def _kept_off(self, norms: Floats) -> Floats:
        """The part of a unit of each bin that scaling to each norm takes away."""
        kept_off: Floats = np.maximum(0.0, 1 - norms[:, None] / self.norms[None, :])
        return kept_off


def _mixed(parts: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Mean and standard deviation where each model may be the right one."""
    mean = math.fsum(mean for mean, _ in parts) / len(parts)
    spread = math.fsum(variance + (own - mean) ** 2 for own, variance in parts) / len(parts)
    return mean, math.sqrt(spread)


def _moments(values: Floats, weights: Floats) -> tuple[float, float]:
    """Mean and variance under weights that add up to one."""
    mean = float(weights @ values)
    return mean, float(weights @ (values - mean) ** 2)


_PLACES = (0.5, 0.0)
"""How far below a bin's end its units are, as a part of the bin, in two views: in its middle, or all at its end.

Everybody who has one row in each of four groups has the norm 2, an end. The distance between the views counts in the
error of what is cut.
"""


def _norms_in_bins(end: int, most: float, below: float) -> Floats:
    """A norm inside each bin; units that a law has beyond the greatest norm have that one."""
    norms: Floats = 2.0 ** ((np.arange(end) - below) / BINS_PER_OCTAVE)
    norms[0] = 1.0
    return np.minimum(norms, most)


_LIGHT = 0.5
"""The part of the units of which it is assumed, in one of two views, that all they add stands in cells of its own."""


def _lights(noisy: Floats, octave: int, power: NormPower, of: NormOf) -> list[float]:
    """What one row adds, in each view of it; of rows it is one.

    A norm of sums does not say how many rows are behind it. Where every row is as good as any other, heavy units share
    their cells and light ones do not, so that heavy ones add more to all cells for their norm; where few rows are most
    of every sum, each adds about its norm.
    """
    if power is NormPower.L1 or of is not NormOf.SUM:
        return [1.0]
    seen = np.cumsum(np.maximum(noisy[: BINS_PER_OCTAVE * octave + 1], 0))
    return [math.inf, edge(int(np.searchsorted(seen, _LIGHT * seen[-1])))]


def _sizes(norms: Floats, cells: int, power: NormPower, of: NormOf, light: float) -> Floats:
    """What a unit of each norm adds to the sum over all cells, about.

    An L1 norm is it. Where r rows fall into k cells at random, the square of the L2 norm is about r + r^2 / k: few
    rows stand alone in their cells, many share them. One row in each of n^2 cells has the norm n. Of sums the same
    holds in multiples of what one row adds, `light`.
    """
    if power is NormPower.L1:
        return norms
    match of:
        case NormOf.ROWS:
            return _of_rows(norms, cells)
        case NormOf.UNITS:
            found: Floats = np.maximum(norms, norms * np.minimum(norms, math.sqrt(cells)))
            return found
        case NormOf.SUM:
            return norms if math.isinf(light) else light * _of_rows(norms / light, cells)
        case _:
            assert_never(of)


def _of_rows(norms: Floats, cells: int) -> Floats:
    found: Floats = np.maximum(norms, (np.sqrt(1 + 4 * norms * norms / cells) - 1) * (cells / 2))
    return found


def _norm_of_few(noisy: Floats, deviation: float, *, laplace: bool) -> float | None:
    """The end of the fewest neighbouring bins that are seen together; None where nothing is seen."""
    for width in _WINDOWS:
        together = np.convolve(noisy, np.ones(width), "valid")
        seen = np.nonzero(together > seen_at(width, laplace=laplace) * deviation * math.sqrt(width))[0]
        if len(seen):
            return edge(int(seen[-1]) + width - 1)
    return None
