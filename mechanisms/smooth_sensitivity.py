"""Smooth sensitivity of a quantile, and noise that may be scaled with it: smooth_sensitivity.md.

The quantile is that of places, whole numbers from 0: the least place with more than p n of n rows up to it. Neighbours
add or remove one row. Nothing here draws or releases anything: sensitivities are true values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mechanisms.measurement import SCALE_BITS, Integers
from mechanisms.randomness import BitSource
from mechanisms.samplers import rounded_gaussian, rounded_laplace
from mechanisms.samplers.student import rounded_student
from privacy.events.approximate import ApproximateEvent, approximate_loss
from privacy.loss import Loss
from privacy.numbers import dyadic_up

__all__ = [
    "BETA_MIN",
    "SmoothGaussian",
    "SmoothLaplace",
    "SmoothStudent",
    "quantile_place",
    "reached_at_distance",
    "smooth_sensitivity",
]

FLOOR = 2.0**-20
"""Least sensitivity that noise is scaled to, in places: the greater of a smooth bound and a constant is smooth."""

BETA_MIN = Fraction(1, 2**24)
"""Least rate at which a sensitivity may grow: less would not be told from the errors of floats."""

_SLACK = 2.0**-36
"""Taken off every rate, and added to every sensitivity: far above the errors of floats, far below anything else."""

_SLIDE = Fraction(10606602, 10**7)
"""What sliding costs Student's noise, at most: sqrt(9/8)."""

_SAFE = 2**61

_MARGIN = 1e-9
"""Room for the errors of floats where a proof's condition is checked."""


def _ranked(counts: Integers, fraction: Fraction) -> Integers:
    """b times the rows up to each place, less a times all of them, for a fraction a/b. The last place is beyond all."""
    top, bottom = fraction.numerator, fraction.denominator
    below = np.cumsum(counts)
    if int(below[-1]) >= _SAFE // bottom:
        below = below.astype(object)
    result: Integers = bottom * below - top * below[-1]
    return result


def quantile_place(counts: Integers, fraction: Fraction) -> int:
    """The quantile: the least place with more than the fraction of all rows up to it, the last where there is none."""
    above = _ranked(counts, fraction)[:-1] > 0
    return int(np.argmax(above)) if above.any() else counts.size - 1


def reached_at_distance(counts: Integers, fraction: Fraction, distances: Integers) -> npt.NDArray[np.int64]:
    """A(k): the most by which the quantile of a table may change between neighbours, within k rows of this one.

    Ensures: A(k) of one table is at most A(k + 1) of its neighbours, and A(0) is at least the local sensitivity.
    """
    ranked, step = _ranked(counts, fraction)[:-1], max(fraction.numerator, fraction.denominator - fraction.numerator)
    high, low = step * (distances + 1), step * distances
    # The least place of which so many rows more, or fewer, than are needed lie below; the last where there is none.
    up, up_less = (np.searchsorted(ranked, reach, side="right") for reach in (high, low))
    down, down_more = (np.searchsorted(ranked, -reach, side="right") for reach in (low, high))
    result: npt.NDArray[np.int64] = np.maximum(up - down, up_less - down_more)
    return result


def smooth_sensitivity(counts: Integers, fraction: Fraction, beta: Fraction) -> float:
    """S, the greatest of exp(-beta k) A(k) over all distances k from 0 (not 1), and a constant, rounded up.

    Shape: rows by place. Ensures: S is at least the local sensitivity, and S of neighbours differ by a factor of at
    most e^beta, errors of floats included. Errors: ValueError for a beta below BETA_MIN.
    """
    if beta < BETA_MIN:
        raise ValueError("the price is too small for noise that follows a smooth sensitivity")
    ranked = _ranked(counts, fraction)[:-1]
    step = max(fraction.numerator, fraction.denominator - fraction.numerator)
    # A changes only where a place comes within reach: high ones at -(-r // step) - 1, low ones one after -r // step.
    size = np.abs(ranked)
    marks = np.concatenate([np.zeros(1, dtype=ranked.dtype), -(-size // step) - 1, size // step, size // step + 1])
    distances = np.unique(np.maximum(marks, 0))
    reached = reached_at_distance(counts, fraction, distances)
    with np.errstate(under="ignore"):
        found = reached * np.exp(-(float(beta) - _SLACK) * distances.astype(np.float64))
    return max(float(found.max()), FLOOR) * (1 + _SLACK)


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothStudent:
    """Student's noise with two degrees of freedom: pure epsilon-DP, half of it for sliding and half for growing."""

    epsilon: Fraction

    def loss(self) -> Loss:
        """The price: that of any epsilon-DP mechanism."""
        return approximate_loss(self.epsilon, Fraction(0))

    @property
    def alpha(self) -> Fraction:
        """What a change of one smooth sensitivity is in units of the noise, at most."""
        return self.epsilon / 2 / _SLIDE

    @property
    def beta(self) -> Fraction:
        """The rate at which the sensitivity may grow. Growing costs twice the rate."""
        return self.epsilon / 4

    def noise(self, sensitivity: float, bits: BitSource) -> int:
        """Exactly rounded noise for this smooth sensitivity."""
        return rounded_student(scale=_scale(sensitivity, self.alpha), bits=bits)

    def answer(self, counts: Integers, fraction: Fraction, bits: BitSource) -> int:
        """The place of a quantile with noise, before it is held to the range."""
        return quantile_place(counts, fraction) + self.noise(smooth_sensitivity(counts, fraction, self.beta), bits)


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothLaplace:
    """Laplace noise: (epsilon, delta)-DP. Errors: ValueError for an epsilon at which the proof does not hold."""

    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        beta = float(self.beta)
        if (float(self.epsilon) / 2 + beta) / math.expm1(beta) < math.log(1 / self.delta) + _MARGIN:
            raise ValueError("epsilon is too large for Laplace noise that follows a smooth sensitivity")

    @property
    def alpha(self) -> Fraction:
        """Half of epsilon: what sliding may cost."""
        return self.epsilon / 2

    @property
    def beta(self) -> Fraction:
        """epsilon / (2 ln(2 / delta)), rounded down."""
        return _down(self.epsilon / 2, _log_up(2 / self.delta))

    def event(self) -> ApproximateEvent:
        """The price."""
        return ApproximateEvent(epsilon=self.epsilon, delta=self.delta)

    def noise(self, sensitivity: float, bits: BitSource) -> int:
        """Exactly rounded noise for this smooth sensitivity."""
        return int(rounded_laplace(scale=_scale(sensitivity, self.alpha), count=1, bits=bits)[0])

    def answer(self, counts: Integers, fraction: Fraction, bits: BitSource) -> int:
        """The place of a quantile with noise, before it is held to the range."""
        return quantile_place(counts, fraction) + self.noise(smooth_sensitivity(counts, fraction, self.beta), bits)


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothGaussian:
    """Gaussian noise: (epsilon, delta)-DP. Errors: ValueError for an epsilon at which the proof does not hold."""

    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        alpha, beta, most = float(self.alpha), float(self.beta), 2 * math.log(1 / self.delta)
        grown = math.exp(2 * beta) * (alpha * math.sqrt(most) + alpha**2 / 2)
        if beta + math.expm1(2 * beta) * most / 2 + grown > float(self.epsilon) - _MARGIN:
            raise ValueError("epsilon is too large for Gaussian noise that follows a smooth sensitivity")

    @property
    def alpha(self) -> Fraction:
        """epsilon / (5 sqrt(2 ln(2 / delta))), rounded down."""
        return _down(self.epsilon, 5 * Fraction(math.nextafter(math.sqrt(2 * _log_up(2 / self.delta)), math.inf)))

    @property
    def beta(self) -> Fraction:
        """epsilon / (4 (1 + ln(2 / delta))), rounded down."""
        return _down(self.epsilon / 4, 1 + _log_up(2 / self.delta))

    def event(self) -> ApproximateEvent:
        """The price."""
        return ApproximateEvent(epsilon=self.epsilon, delta=self.delta)

    def noise(self, sensitivity: float, bits: BitSource) -> int:
        """Exactly rounded noise for this smooth sensitivity."""
        return int(rounded_gaussian(sigma=_scale(sensitivity, self.alpha), count=1, bits=bits)[0])

    def answer(self, counts: Integers, fraction: Fraction, bits: BitSource) -> int:
        """The place of a quantile with noise, before it is held to the range."""
        return quantile_place(counts, fraction) + self.noise(smooth_sensitivity(counts, fraction, self.beta), bits)


def _scale(sensitivity: float, alpha: Fraction) -> Fraction:
    return dyadic_up(Fraction(sensitivity) / alpha, bits=SCALE_BITS)


def _log_up(value: Fraction) -> Fraction:
    """The natural logarithm, rounded up by more than the error of floats."""
    return Fraction(math.log(value.numerator) - math.log(value.denominator)) * (1 + Fraction(1, 2**40))


def _down(top: Fraction, bottom: Fraction) -> Fraction:
    return 1 / dyadic_up(bottom / top, bits=SCALE_BITS)
