"""The distribution of the privacy loss of many equal questions, composed numerically.

For questions whose kind and size are fixed beforehand this is the best that can be said; as a filter over adaptively
chosen sizes it is unsound, which is why the ledger does not use it.

One question's curve of delta over epsilon is replaced by the piecewise linear one (in e^epsilon) through its points on
a grid. It lies above the curve, so it belongs to a distribution of losses on that grid that dominates the true one
(Doroshenko et al. 2022, "Connect the dots"). Sums of independent losses are powers of its Fourier transform on a
circle of losses; what goes around the circle is at most the tail beyond it, which Hoeffding bounds, and is added to
delta. Rounding errors of the transform are about 10^-15 a cell, and are added as well: delta is an upper bound.

| kind | one question's delta at epsilon |
|---|---|
| laplace | 1 - e^((epsilon - size) / 2) between -size and size |
| pure | that of randomised response, a straight line in e^epsilon: the worst mechanism of its epsilon |

For `pure` the result is the optimum of Kairouz, Oh and Viswanath 2015, Theorem 3.3.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from accountant.simulation.questions import Kind, Repeated

__all__ = ["COUNT_MAX", "DELTA_LEAST", "delta_of_many", "epsilon_of_many"]

CELLS = 2**15
"""Cells of the circle of losses."""

COUNT_MAX = 10**7
"""Most questions that are composed."""

DELTA_LEAST = 1e-9
"""Least delta that double precision serves with some digits left."""

ROUNDING = 1e-15
"""What a cell of the transform is wrong by, at most, in powers below `COUNT_MAX`."""

_FINEST = 512
"""Cells of one question's losses on each side of zero, at most."""

Vector = npt.NDArray[np.float64]


def epsilon_of_many(question: Repeated, count: int, delta: float) -> float:
    """The least epsilon, to nine digits, that `count` questions promise at `delta`.

    Requires: a kind with a pure epsilon, `delta` at least `DELTA_LEAST`, `count` within [1, `COUNT_MAX`].
    """
    composed = _composed(question, count, delta)
    low, high = 0.0, count * float(question.size)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if composed.delta(middle) <= delta else (middle, high)
    return high


def delta_of_many(question: Repeated, count: int, epsilon: float) -> float:
    """The delta of `count` questions at `epsilon`, rounded up by about 10^-10."""
    return _composed(question, count, 1e-7).delta(epsilon)


class _Composed:
    """Losses on a grid, with their probabilities; `beyond` is the probability that is nowhere on it."""

    def __init__(self, losses: Vector, chances: Vector, beyond: float) -> None:
        self._losses = losses
        self._chances = chances
        self._beyond = beyond

    def delta(self, epsilon: float) -> float:
        """The hockey-stick divergence at epsilon, from above."""
        first = int(np.searchsorted(self._losses, epsilon, side="right"))
        kept = -np.expm1(epsilon - self._losses[first:]) * self._chances[first:]
        return float(min(1.0, kept.sum() + self._beyond))


@lru_cache(maxsize=64)
def _composed(question: Repeated, count: int, delta: float) -> _Composed:
    assert question.kind in (Kind.LAPLACE, Kind.PURE), "Gaussian losses compose exactly; a selection has no one curve"
    assert 1 <= count <= COUNT_MAX
    size = float(question.size)
    # Hoeffding: losses lie in [-size, size], so their sum leaves its mean by `reach` with at most delta / 1000.
    reach = min(size * math.sqrt(2 * count * math.log(2000 / delta)), 2 * count * size)
    halves = 1 if question.kind is not Kind.LAPLACE else max(1, min(_FINEST, int((CELLS // 2 - 2) * size / reach)))
    step = size / halves
    single = _single(question.kind, size, halves)
    mean = float(single @ (np.arange(-halves, halves + 1) * step))
    cells = min(CELLS, 2 ** math.ceil(math.log2(2 * reach / step + 4)))
    circle = np.zeros(cells)
    circle[: halves + 1] = single[halves:]
    circle[-halves:] = single[:halves]
    powered = np.fft.irfft(np.fft.rfft(circle) ** count, cells)
    # The circle is cut opposite of the mean: each cell stands for the loss nearest to it.
    lowest = round(count * mean / step) - cells // 2
    index = np.arange(lowest, lowest + cells)
    chances: Vector = np.maximum(powered[index % cells], 0.0)
    return _Composed(index * step, chances, delta / 1000 + ROUNDING * math.sqrt(cells))


def _single(kind: Kind, size: float, halves: int) -> Vector:
    """Probabilities of the losses -size ... size of one question, on 2 halves + 1 points of the grid."""
    losses = np.linspace(-size, size, 2 * halves + 1)
    if kind is Kind.LAPLACE:
        deltas = -np.expm1((losses - size) / 2)
    else:
        deltas = np.maximum(-np.expm1(losses - size) / (1 + math.exp(-size)), 0.0)
        deltas[0] = -math.expm1(-size)
    # Between two points delta is A - B e^epsilon; B falls at a point by its probability times e^-loss.
    slopes = np.concatenate(([1.0], -np.diff(deltas) / np.diff(np.exp(losses)), [0.0]))
    chances: Vector = np.maximum(-np.diff(slopes), 0.0) * np.exp(losses)
    chances /= chances.sum()
    return chances
