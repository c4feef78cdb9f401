"""Which bounds the values of a column are clipped to, chosen from noisy histograms of the units' values.

Everything here is post-processing of released histograms (value_bounds.md): no choice can cost privacy; a poor one
costs accuracy. A bin counts by how probable it is that somebody is in it, given its noisy count and how far it lies
from the bins that are certain; beyond those, tails count that the noisy counts support. The bounds minimise the mean
square error that is expected from clipping and noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mechanisms.norm_tail import SEEN
from privacy.value_grid import ValueGrid

__all__ = ["BoundsChoice", "choose_bounds"]

_CERTAIN = 14.0
"""Evidence, in natural logarithms, from which on a bin is certain wherever it lies: one histogram in 3,000 shows one of
its 600 bins by Laplace noise alone, one in a million by Gaussian noise. The same evidence is asked of several bins
together, of which there are fewer."""

_NEAR, _PER_BIN = 3.0, 0.75
"""How much evidence is asked for next to a certain bin, and how much more for each bin that one goes away from it."""

_ROUNDED = 0.5
"""The least standard deviation that noise is taken to have. Noise of less is rounded to whole numbers, mostly to zero,
and its 1 is so many deviations away that it looked like a unit."""

_WINDOWS = (1, 2, 4, 8, 16)
"""Numbers of neighbouring bins that are looked at together where no bin is certain alone."""

_EVERYDAY, _UNUSUAL, _NEGATIVE = (-7, 20), 2.0, 2.0
"""Where nobody is seen for certain: binary logarithms of the magnitudes that numbers usually have, and how much
evidence is asked for with each octave beyond them, and for negative ones. Noise alone is as likely to show a bin of
2^40 as one of 2^5, and bounds there made sums a billion times too noisy."""

_BACK, _AHEAD = 8, 20
"""Bins before the last one that is seen, to which tails are fitted, and after it, into which they reach: 5 octaves."""

_LEAST = 0.5
"""A tail ends where fewer units are left in a bin."""

_TOGETHER = 2.0
"""From how many standard deviations on all bins beyond the bounds together show units. One choice in twenty states
some that are not there, with an error of half their number; to state nobody where there are many is worse."""

_MISFIT = 0.15
"""Part by which a bin of the body may miss a law that its tail still follows."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Noise:
    """The noise of one bin: its standard deviation, and whether it is Laplace noise; else it is Gaussian."""

    deviation: float
    laplace: bool


_SLOPES = np.linspace(-3.0, 0.4, 35)
_BENDS = -np.array([0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.3, 0.5, 0.8])
_NARROW = [(-2 * bend * peak, bend) for bend in (-1.2, -2.0, -3.0, -5.0, -8.0) for peak in (-2, -1.5, -1, -0.5, 0, 0.5)]
"""Laws of values that fill a bin or two, such as years: they rise as steeply as they fall, within bins of the last one.
Without them all that was fitted fell slowly, and bounds reached an octave beyond the values."""

_LAWS = np.array([*((slope, bend) for slope in _SLOPES for bend in _BENDS), *_NARROW])


@dataclass(frozen=True, slots=True)
class BoundsChoice:
    """Bounds in the unit of value bounds, both ends of bins; `certain` says that the histograms show somebody.

    `cut` is what clipping is expected to take from, or add to, the sum over all cells. `share` is the part of the units
    that has a value beyond the bounds, with its standard error; None where nobody is seen for certain. Estimates
    without a promise: a unit too rare to be seen in the histograms is in none.
    """

    lower: Fraction
    upper: Fraction
    certain: bool
    cut: float
    share: float | None = None
    share_error: float | None = None


def choose_bounds(
    lows: Sequence[float],
    highs: Sequence[float],
    grid: ValueGrid,
    *,
    deviation: float,
    cells: int,
    noise: float,
    from_zero: bool,
    laplace: bool = True,
) -> BoundsChoice:
    """The bounds for sums over `cells` cells.

    `lows` are noisy numbers of units by the bin of their least value, `highs` by the bin of their greatest, each with
    noise of standard deviation `deviation`, Laplace noise or Gaussian. The noise of a sum has the standard deviation
    `noise` times the width between the bounds, or with `from_zero` times the greater of their magnitudes.
    """
    assert deviation > 0
    assert noise > 0
    assert cells > 0
    law, usual = _Noise(max(deviation, _ROUNDED), laplace), _usual(grid)
    least, greatest = _Seen.of(lows, law, usual), _Seen.of(highs, law, usual)
    certain = least.certain and greatest.certain
    low_ends, high_ends = (np.array([float(end) for end in ends]) for ends in (grid.lows, grid.highs))
    middles = (low_ends + high_ends) / 2
    first, last = _reach(least.units, greatest.units)
    lowers, uppers = low_ends[first : last + 1], high_ends[first : last + 1]
    below = np.maximum(lowers[:, None] - middles[None, :], 0) @ least.units
    above = np.maximum(middles[None, :] - uppers[:, None], 0) @ greatest.units
    widths = uppers[None, :] - lowers[:, None]
    if from_zero:
        sizes = np.maximum(np.abs(lowers)[:, None], np.abs(uppers)[None, :])
    else:
        sizes = np.maximum(widths, 0)
    loss = (below[:, None] ** 2 + above[None, :] ** 2) / cells**2 + (noise * sizes) ** 2
    loss[widths < 0] = np.inf
    one, two = np.unravel_index(int(np.argmin(loss)), loss.shape)
    low, high = first + int(one), first + int(two)
    cut = float(below[one] + above[two])
    if not certain:
        return BoundsChoice(grid.lows[low], grid.highs[high], certain, cut)
    # The bins at the ends of the grid hold what lies beyond it, too: no bound reaches that.
    beyond = np.concatenate([least.units[: max(low, 1)], greatest.units[min(high + 1, len(high_ends) - 1) :]])
    sides = ((lows, least, slice(0, low)), (highs, greatest, slice(high + 1, None)))
    unseen, unsure = _unseen(
        [(np.asarray(noisy)[part], seen.units[part], usual[part]) for noisy, seen, part in sides], deviation
    )
    total = max(float(least.units.sum()), float(greatest.units.sum())) + unseen
    # The noise of the bins that are counted, and of one at least; and how many units a bin has varies by its root.
    spread = math.sqrt(deviation**2 * max(1, int(np.count_nonzero(beyond))) + float(beyond.sum()) + unsure)
    share = min(1.0, (float(beyond.sum()) + unseen) / total)
    return BoundsChoice(grid.lows[low], grid.highs[high], certain, cut, share, min(1.0, spread / total))


def _unseen(sides: Sequence[tuple[Floats, Floats, Floats]], deviation: float) -> tuple[float, float]:
    """Units beyond the bounds that no bin shows, but all bins together do, and the variance of their number.

    Of each side the noisy counts, the units that are expected, and how usual the bins are. Where nine of ten values are
    zero the others may lie in twenty bins far away, each within its noise: their sum is not, although nobody can say
    where they lie.
    """
    units = variance = 0.0
    for noisy, expected, usual in sides:
        everyday = usual >= -_NEGATIVE
        more, spread = float((noisy - expected)[everyday].sum()), deviation * math.sqrt(np.count_nonzero(everyday))
        if more > _TOGETHER * spread:
            units, variance = units + more, variance + spread * spread
    return units, variance


@dataclass(frozen=True, slots=True)
class _Seen:
    """Expected numbers of units by bin, and whether there is anybody for certain."""

    units: Floats
    certain: bool

    @staticmethod
    def of(noisy: Sequence[float], noise: _Noise, usual: Floats) -> _Seen:
        """What a noisy histogram shows."""
        counts, deviation = np.asarray(noisy, dtype=np.float64), noise.deviation
        body = _body(counts, noise)
        certain = bool(body.any())
        if not certain:
            body = _likeliest(counts, noise, usual)
        places = np.arange(len(counts))
        away = np.abs(places[:, None] - places[body][None, :]).min(axis=1)
        asked = np.where(away == 0, 0.0, np.minimum(_NEAR + _PER_BIN * away, _CERTAIN))
        evidence = _evidence(counts, noise)
        probable = 1 / (1 + np.exp(np.clip(asked - evidence, -60, 60)))
        # What is far away and not probable weighs nothing: its distance would outweigh any doubt.
        probable[(away > _WINDOWS[-1]) & (probable < 0.5)] = 0
        units = np.maximum(counts, 0) * probable
        if certain:
            units = np.maximum(units, _after(counts, body, deviation))
            units = np.maximum(units, _after(counts[::-1], body[::-1], deviation)[::-1])
        return _Seen(units, certain)


def _after(counts: Floats, body: npt.NDArray[np.bool_], deviation: float) -> Floats:
    """Units expected in the bins after the last certain one, under the laws that the counts around it support."""
    last = int(np.flatnonzero(body)[-1])
    laws, weights = _tails(counts, last, deviation)
    units = np.zeros(len(counts))
    units[last + 1 : last + 1 + laws.shape[1]] = weights @ laws
    return units


def _evidence(counts: Floats, noise: _Noise, width: int = 1) -> Floats:
    """The logarithm of how much likelier a count of so many bins together is by units in them than by noise alone.

    At least that of the chance that noise alone reaches it (Chernoff): for the standard deviation s of one of w bins,
    Gaussian noise reaches x with at most exp(-x^2 / 2 w s^2). The sum of w Laplace variables of scale b has the moment
    generating function (1 - b^2 t^2)^-w for t < 1 / b; x is then reached with at most exp(-t x) (1 - b^2 t^2)^-w, least
    at b t = (root of (w^2 + (x/b)^2) - w) / (x/b). Of one bin it is exp(-x / b) / 2.
    """
    high = np.maximum(counts, 0) / noise.deviation
    gaussian: Floats = high * high / (2 * width)
    if not noise.laplace:
        return gaussian
    places = math.sqrt(2) * high
    if width == 1:
        return np.minimum(gaussian, places)
    slope = (np.sqrt(width * width + places * places) - width) / np.maximum(places, 1e-12)
    laplace: Floats = slope * places + width * np.log1p(-slope * slope)
    return laplace


def _body(counts: Floats, noise: _Noise) -> npt.NDArray[np.bool_]:
    """The bins that are certain, alone or, where none of them is, together with their neighbours."""
    body = np.zeros(len(counts), dtype=np.bool_)
    for width in _WINDOWS:
        together = np.convolve(counts, np.ones(width), "valid")
        evidence = _evidence(together, noise, width)
        for start in np.argsort(-together, kind="stable"):
            if evidence[start] < _CERTAIN:
                break
            if not body[start : start + width].any():
                body[start : start + width] = True
    return body


def _likeliest(counts: Floats, noise: _Noise, usual: Floats) -> npt.NDArray[np.bool_]:
    """The bins in which somebody is most probably, where nobody is for certain.

    Of many windows the best one shows more by noise alone than of few: each counts by the evidence less the logarithm
    of their number, and by how usual values of its bins are.
    """
    best = (-math.inf, 0, 1)
    for width in _WINDOWS:
        together = np.convolve(counts, np.ones(width), "valid")
        among = np.convolve(usual, np.ones(width), "valid") / width
        score = _evidence(together, noise, width) - math.log(len(together) / width) + among
        start = int(np.argmax(score))
        best = max(best, (float(score[start]), start, width))
    body = np.zeros(len(counts), dtype=np.bool_)
    body[best[1] : best[1] + best[2]] = True
    return body


def _usual(grid: ValueGrid) -> Floats:
    """The logarithm of how usual values of each bin are, beside others: numbers of everyday size are most."""
    bins = np.arange(grid.first, grid.last + 1)
    if grid.first >= 0:
        return np.zeros(len(bins))
    greatest = [max(abs(float(low)), abs(float(high))) for low, high in zip(grid.lows, grid.highs, strict=True)]
    sizes = np.log2([size or 1.0 for size in greatest])
    beyond = np.maximum(sizes - _EVERYDAY[1], 0) + np.maximum(_EVERYDAY[0] - sizes, 0)
    found: Floats = -_UNUSUAL * beyond - _NEGATIVE * (bins < 0)
    return found


def _reach(*units: Floats) -> tuple[int, int]:
    """The first and the last bin that holds anything."""
    places = np.flatnonzero(sum(units))
    return (int(places[0]), int(places[-1])) if len(places) else (len(units[0]) // 2, len(units[0]) // 2)


def _tails(noisy: Floats, last: int, deviation: float) -> tuple[Floats, Floats]:
    """Numbers of units in the bins after the last one that is seen, by law, and how probable each law is.

    A law is exp(a + slope x + bend x^2) with bend <= 0, fitted by least squares to the bins around the last one; that
    nothing comes after it is a law as well. Numbers of units: laws x bins, over at most the next 5 octaves.
    """
    begin, end = max(0, last - _BACK), min(len(noisy), last + 1 + _AHEAD)
    x = np.arange(begin, end) - last
    counts = noisy[begin:end]
    shape = np.exp(np.clip(_LAWS[:, :1] * x + _LAWS[:, 1:] * x * x, -60, 30))
    certain = 1 / (deviation**2 + (_MISFIT * np.where(x <= 0, np.maximum(counts, 0), 0)) ** 2)
    height = (shape * counts * certain).sum(1) / (shape * shape * certain).sum(1)
    shape, height = shape[height > 0], height[height > 0]
    body, after = x <= 0, x > 0
    fitted = height[:, None] * shape
    misfit = ((counts - fitted)[:, body] ** 2 * certain[body]).sum(1)
    laws = fitted[:, after]
    laws = np.minimum(laws * np.cumprod(laws > _LEAST, axis=1), SEEN * deviation)
    laws = np.vstack([np.zeros((1, int(after.sum()))), laws])
    against = ((counts[after] - laws) ** 2).sum(1) / deviation**2
    against[1:] += misfit - misfit.min() if len(misfit) else 0.0
    against[0] += 2.0
    weights = np.exp(-(against - against.min()) / 2)
    return laws, weights / weights.sum()
