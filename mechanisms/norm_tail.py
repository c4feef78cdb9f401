"""The numbers of units that a noisy histogram of norms cannot show: laws for its tail, and how probable each is.

Post-processing of a released histogram (norm_choice.md). Units are looked at by octaves: four bins together have twice
the noise of one and four times its units, and octaves of whole rows are smooth where bins are not (no unit has between
1 and 2 rows, so the bins between are empty however many units there are).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from privacy.norms import BINS, BINS_PER_OCTAVE

__all__ = ["SEEN", "Tail", "last_octave", "norm_tail", "seen_at"]

SEEN = 5.0
"""A count is seen from this many standard deviations on: one histogram in 20,000 shows one that is not there."""

_SEEN_LAPLACE = {1: 8.0, 2: 6.7, BINS_PER_OCTAVE: 5.2, 8: 5.2, 16: 4.9}
"""The same of so many bins together, where their noise is Laplace noise: one histogram in 1,000 for each,
by its exact tails, and so one in 500 for single bins and octaves together.

At five deviations one in fifteen showed a bin of nobody, and its norm was a hundred times too large.
"""

_BACK, _AHEAD = 3, 6
"""Octaves before the last one that is seen, to which laws are fitted, and after it, into which they reach."""

_LEAST = 0.5
"""A law ends where it leaves fewer units than this."""

_MISFIT = 0.25
"""Part by which an octave that is seen may miss a law that the tail still follows."""

_UNLIKELY = 1e-6
"""Laws whose weight is a smaller part of the greatest one are left out: hundreds of them say nothing, and take time."""

_HEAVY, _NONE = 0.5, 0.1
"""Weights before the counts are looked at: of all power laws together (bent laws share the rest), and of nothing after.

A law that is too light is worse than one that is too heavy: what it cuts is in no interval, and noise is."""

Floats = npt.NDArray[np.float64]


def seen_at(bins: int, *, laplace: bool) -> float:
    """From how many standard deviations on a count of so many bins together is seen: 1, 2, 4, 8 or 16."""
    return _SEEN_LAPLACE[bins] if laplace else SEEN


_SLOPES = np.linspace(-8.0, 1.6, 49)
_BENDS = -np.array([0, 0.08, 0.16, 0.32, 0.5, 0.8, 1.3, 2.0, 3.2, 4.8, 8.0, 12.8])
_LAWS = np.array([(slope, bend) for slope in _SLOPES for bend in _BENDS])
_PRIORS = np.where(_LAWS[:, 1] == 0, _HEAVY, (1 - _HEAVY) / (len(_BENDS) - 1))

_HEAVY_UNSEEN, _STEEPEST = 0.9, -2.5
"""The same weight of power laws, and the steepest slope, where only units of the least norm are seen.

No octave says then how the numbers fall. With all laws the steep and bent ones, which end at once, had most of the
weight before the counts were looked at, and a third of the rows was cut where one part in fifty was stated.
"""

_PRIORS_UNSEEN = np.where(_LAWS[:, 1] == 0, _HEAVY_UNSEEN, (1 - _HEAVY_UNSEEN) / (len(_BENDS) - 1))
_PRIORS_UNSEEN = _PRIORS_UNSEEN * (_LAWS[:, 0] >= _STEEPEST)


@dataclass(frozen=True, slots=True)
class Tail:
    """Numbers of units in the bins after `last`, laws x bins, and the weights of the laws, which add up to one."""

    last: int
    laws: Floats
    weights: Floats


def _octaves(noisy: Floats) -> Floats:
    """The counts of octaves: the first bin alone, then four bins each."""
    return np.concatenate([noisy[:1], noisy[1:].reshape(-1, BINS_PER_OCTAVE).sum(1)])


def _deviations(octaves: Floats, deviation: float) -> Floats:
    """The standard deviations of the counts of octaves."""
    found = np.full(len(octaves), deviation * BINS_PER_OCTAVE**0.5)
    found[0] = deviation
    return found


def last_octave(noisy: Floats, deviation: float, *, laplace: bool = False) -> int | None:
    """The last octave in which units are seen for certain, together or in one of its bins; None where there is none.

    Units that are alike stand in one bin, where its octave has twice the noise.
    """
    octaves = _octaves(noisy)
    certain = seen_at(BINS_PER_OCTAVE, laplace=laplace) * _deviations(octaves, deviation)
    certain[0] = seen_at(1, laplace=laplace) * deviation
    together = np.nonzero(octaves > certain)[0]
    alone = -(-np.nonzero(noisy > certain[0])[0] // BINS_PER_OCTAVE)
    return max(map(int, (*together[-1:], *alone[-1:])), default=None)


def norm_tail(noisy: Floats, last: int, deviation: float, sizes: Floats, *, laplace: bool = False) -> Tail:
    """The laws after octave `last`.

    A law is exp(a + slope x + bend x^2) units per octave of size, x that size in octaves and bend <= 0, fitted by least
    squares to the octaves from the fullest of the last few that are seen onwards. A power law has no bend. That nothing
    comes after is a law as well. `sizes` are those of units at the edges of the bins, from an octave below the first
    bin on. Laws of norms would be too light: the norm of a few rows, each alone in its cell, grows with the root of
    their number, that of many with the number itself, so that the tail of norms is heavier than what comes before it.
    Behind the body a law is judged by what its counts would need of noise, Gaussian or `laplace`.
    """
    assert noisy.shape == (BINS,)
    assert sizes.shape == (BINS + BINS_PER_OCTAVE,)
    octaves = _octaves(noisy)
    begin, end = max(0, last - _BACK), min(len(octaves) - 1, last + _AHEAD)
    begin += int(np.argmax(octaves[begin : last + 1]))
    places = np.arange(begin, end + 1)
    counts, deviations = octaves[begin : end + 1], _deviations(octaves, deviation)[begin : end + 1]
    # From the middle of the last octave: the first bin is the last one of an octave whose others are empty.
    edges = np.log2(sizes[BINS_PER_OCTAVE * begin : BINS_PER_OCTAVE * (end + 1) + 1])
    middle = (edges[BINS_PER_OCTAVE * (last - begin)] + edges[BINS_PER_OCTAVE * (last - begin + 1)]) / 2
    x = (edges[:-1] + edges[1:]) / 2 - middle
    fine = np.exp(np.clip(_LAWS[:, :1] * x + _LAWS[:, 1:] * x * x, -60, 30)) * np.diff(edges)
    fine = fine.reshape(len(_LAWS), -1, BINS_PER_OCTAVE)
    shape = fine.sum(2)
    body = places <= last
    certain = 1 / (deviations**2 + (_MISFIT * np.where(body, np.maximum(counts, 0), 0)) ** 2)
    height = (shape * counts * certain).sum(1) / (shape * shape * certain).sum(1)
    found = height > 0
    fitted = height[found, None] * shape[found]
    misfit = ((counts - fitted)[:, body] ** 2 * certain[body]).sum(1)
    after = _ended(fitted[:, ~body], deviation)
    noise = partial(_unlikely, laplace=laplace)
    against = noise((counts[~body] - after) / deviations[~body]).sum(1) + misfit - misfit.min(initial=np.inf)
    nothing = float(noise(counts[~body] / deviations[~body]).sum())
    spread = fine[found][:, ~body] / shape[found][:, ~body, None] * after[:, :, None]
    weights = np.concatenate([[_NONE], (_PRIORS if last else _PRIORS_UNSEEN)[found]])
    distance = np.concatenate([[nothing], against])
    weights *= np.exp(-(distance - distance.min()) / 2)
    bins = BINS_PER_OCTAVE * int((~body).sum())
    laws = np.vstack([np.zeros((1, bins)), spread.reshape(len(after), bins)])
    likely = weights > _UNLIKELY * weights.max()
    return Tail(BINS_PER_OCTAVE * last, laws[likely], weights[likely] / weights[likely].sum())


def _unlikely(deviations: Floats, *, laplace: bool) -> Floats:
    """Twice the negative logarithm of the density of noise at so many standard deviations, up to a constant.

    Of Laplace noise large deviations are as likely as in one bin: of four together they are hardly less.
    """
    squares: Floats = deviations**2
    return np.minimum(squares, 2 * np.sqrt(2) * np.abs(deviations) - 2 * (squares > 2)) if laplace else squares


def _ended(after: Floats, deviation: float) -> Floats:
    """Laws that end where few units are left, and stay below what would have been seen."""
    left = np.cumsum(after[:, ::-1], axis=1)[:, ::-1]
    ended: Floats = np.minimum(after * (left > _LEAST), SEEN * deviation * BINS_PER_OCTAVE**0.5)
    return ended
