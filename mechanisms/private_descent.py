"""Models from noisy sums over units: logistic regression by gradient descent, linear regression from second moments.

private_descent.md has the claims and their proofs. Everything here works on released numbers, except that
`ModelNoise.released` takes true sums to the gateway.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import assert_never

import numpy as np

from mechanisms.interval import Floats, gaussian_two_sided
from mechanisms.measurement import root_up
from mechanisms.measurements.gaussian import GaussianMeasurement
from mechanisms.randomness import BitSource
from mechanisms.release import noisy_vector
from privacy.events import GaussianEvent
from privacy.exact import Exact
from privacy.statistic import Encoding, Sensitivity, Statistic, StatisticKind
from privacy.training import (
    CLIPPED_UNITS,
    HELD_PLACES,
    PRODUCT_COLUMNS_MAX,
    UNIT_WEIGHT,
    VECTOR_UNITS,
    WEIGHT_UNITS,
    WEIGHTS_NORM_MAX,
    Clipping,
    Wanted,
    greatest_change,
    sums_of,
)
from privacy.unit import Neighbouring

__all__ = ["ITERATIONS_MAX", "Descent", "Fitted", "HeldOut", "Method", "ModelNoise", "regression"]

ITERATIONS_MAX = 1_000
MOMENTUM = 0.9
STEP = 4.0
"""Of the mean gradient: one over the greatest curvature of the logistic loss, where rows have norm one."""

COUNT_SHARE = Fraction(1, 50)
"""The part of mu squared that counts the units; the gradients share what is left."""

_NORM_MAX = WEIGHTS_NORM_MAX / WEIGHT_UNITS / 2


class Method(enum.StrEnum):
    """How a model is fitted."""

    INPUT_CLIPPING = "input_clipping"
    """Logistic regression by gradient descent; the rows of a unit are held to a norm once."""

    GRADIENT_CLIPPING = "gradient_clipping"
    """The same; the gradient of a unit is held to a norm in each iteration."""

    SUFFICIENT_STATISTICS = "sufficient_statistics"
    """Ridge regression from noisy second moments, with the penalty that their noise needs."""

    @property
    def logistic(self) -> bool:
        """Whether it fits a logistic curve; the other is linear."""
        return self is not Method.SUFFICIENT_STATISTICS

    @property
    def clipping(self) -> Clipping:
        """What of a unit is held to a norm."""
        return Clipping.GRADIENTS if self is Method.GRADIENT_CLIPPING else Clipping.INPUTS


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelNoise:
    """All measurements of one model, and the one event that is their price: private_descent.md, theorem 2.

    `mu_squared` is the most that it may take. `held` of HELD_PLACES parts of the units are held out: what is measured
    of them costs no more than what is measured of the others, and no unit is in both. `classes` says that predictions
    of held-out rows are counted by label; else their errors are added up.
    """

    method: Method
    width: int
    mu_squared: Fraction
    iterations: int
    held: int
    classes: bool
    _made: dict[Wanted, GaussianMeasurement] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        assert self.width >= 2
        assert self.mu_squared > 0
        assert 1 <= self.iterations <= ITERATIONS_MAX
        assert 0 <= self.held < HELD_PLACES
        assert self.method.logistic or self.width <= PRODUCT_COLUMNS_MAX

    @property
    def fitted_by(self) -> tuple[tuple[Wanted, int], ...]:
        """What is measured of the units that are trained on, in order, and how often."""
        if self.method.logistic:
            return (Wanted.COUNT, 1), (Wanted.GRADIENT, self.iterations)
        return ((Wanted.PRODUCTS, 1),)

    @property
    def tested_by(self) -> Wanted | None:
        """What is measured of the units that are held out."""
        if not self.held:
            return None
        return Wanted.OUTCOMES if self.classes else Wanted.ERRORS

    def measurement(self, wanted: Wanted) -> GaussianMeasurement:
        """The noise of one release. Errors: ValueError when it cannot be drawn at this price."""
        if wanted not in self._made:
            share = self._share(wanted)
            self._made[wanted] = GaussianMeasurement.for_mu_squared(
                core="model",
                statistic=self._statistic(wanted),
                share=share,
                mu_squared=self.mu_squared * share,
            )
        return self._made[wanted]

    def _share(self, wanted: Wanted) -> Fraction:
        match wanted:
            case Wanted.COUNT:
                return COUNT_SHARE
            case Wanted.GRADIENT:
                return (1 - COUNT_SHARE) / self.iterations
            case Wanted.PRODUCTS | Wanted.OUTCOMES | Wanted.ERRORS:
                return Fraction(1)
            case _:
                assert_never(wanted)

    def _statistic(self, wanted: Wanted) -> Statistic:
        square, sums = greatest_change(wanted, self.method.clipping), sums_of(wanted, self.width)
        greatest = math.isqrt(square)
        sensitivity = Sensitivity(
            relation=Neighbouring.ADD_REMOVE,
            l0=sums,
            l1=root_up(Fraction(square * sums)),
            l2_squared=Fraction(square),
            linf=Fraction(greatest),
        )
        encoding = Encoding(Fraction(0), Fraction(1), -greatest, greatest)
        return Statistic(wanted.value, StatisticKind.SUM, sensitivity, encoding=encoding, argument=wanted.value)

    def event(self) -> GaussianEvent:
        """The price of all of it: what a unit that is trained on loses, or one that is held out if that is more."""
        fitted = sum((times * _mu_squared(self.measurement(wanted)) for wanted, times in self.fitted_by), Fraction(0))
        tested = self.tested_by
        greatest = fitted if tested is None else max(fitted, _mu_squared(self.measurement(tested)))
        assert greatest <= self.mu_squared
        return GaussianEvent(l2_squared=greatest, variance=Fraction(1))

    def sums(self, wanted: Wanted) -> int:
        """How many numbers are released."""
        return sums_of(wanted, self.width)

    def released(self, wanted: Wanted, exact: Exact, bits: BitSource) -> list[int]:
        """True sums with their noise, in integer units. Errors: ExecutionFailed."""
        return noisy_vector(self.measurement(wanted), exact, coordinates=self.sums(wanted), bits=bits)

    def deviation(self, wanted: Wanted) -> float:
        """The standard deviation of the noise of one number, in integer units."""
        return float(self.measurement(wanted).scale_of_sums)


def _mu_squared(measurement: GaussianMeasurement) -> Fraction:
    mu_squared = measurement.event().loss().mu_squared
    assert mu_squared is not None
    return mu_squared


@dataclass(frozen=True, slots=True)
class Fitted:
    """Weights of encoded rows, the intercept first, and the standard deviation that noise gives each, or a bound of it.

    An encoded row has norm one, or less.
    """

    weights: tuple[float, ...]
    deviations: tuple[float, ...]

    def sent(self) -> list[int]:
        """The weights as a worker is sent them."""
        return whole_weights(np.array(self.weights))


def whole_weights(weights: Floats) -> list[int]:
    """In units of WEIGHT_UNITS, cut toward zero: their norm is within the greatest one if that of the weights is."""
    return [int(value) for value in np.trunc(weights * WEIGHT_UNITS).tolist()]


class Descent:
    """Gradient descent with momentum, of released gradients. `weights` are sent before each gradient is asked for."""

    def __init__(self, noise: ModelNoise, count: int, clip: Fraction) -> None:
        """`count` is the noisy number of units; `clip` the norm to which gradients are held, of those of rows."""
        assert noise.method.logistic
        # Below its own noise a count says nothing: a small one would make steps long.
        self._count = max(float(count), 3 * noise.deviation(Wanted.COUNT), 1.0)
        inputs = noise.method.clipping is Clipping.INPUTS
        self._unit = 1 / VECTOR_UNITS if inputs else float(clip) / CLIPPED_UNITS
        self._noise = noise
        self._weights: Floats = np.zeros(noise.width)
        self._speed: Floats = np.zeros(noise.width)
        self.steps = 0

    def sent(self) -> list[int]:
        """The weights at which the next gradient is taken."""
        return whole_weights(self._weights)

    def step(self, gradient: Sequence[int]) -> None:
        """Takes a noisy sum of gradients."""
        mean = np.array([float(value) for value in gradient]) * self._unit / self._count
        self._speed = MOMENTUM * self._speed - STEP * mean
        self._weights = _within(self._weights + self._speed)
        self.steps += 1

    def fitted(self) -> Fitted:
        """The last weights."""
        sigma = self._noise.deviation(Wanted.GRADIENT) * self._unit / self._count
        # How much of a disturbance is left after k steps, where the loss is flat: nowhere is it more.
        left = [(1 - MOMENTUM ** (k + 1)) / (1 - MOMENTUM) for k in range(self.steps)]
        deviation = STEP * sigma * math.sqrt(sum(one * one for one in left))
        return Fitted(tuple(self._weights.tolist()), (deviation,) * self._noise.width)


def _within(weights: Floats) -> Floats:
    norm = float(np.sqrt((weights**2).sum()))
    return weights if norm <= _NORM_MAX else weights * (_NORM_MAX / norm)


def regression(noise: ModelNoise, released: Sequence[int]) -> Fitted:
    """Ridge regression from released second moments: private_descent.md, section 5."""
    width = noise.width
    sigma = noise.deviation(Wanted.PRODUCTS) / VECTOR_UNITS
    pairs = np.zeros((width, width))
    upper = np.triu_indices(width)
    cut = len(upper[0])
    pairs[upper] = [value / VECTOR_UNITS for value in released[:cut]]
    pairs = pairs + np.triu(pairs, 1).T
    along = np.array([value / VECTOR_UNITS for value in released[cut:]])
    # The noise of the pairs has spectral norm of about 2 sigma sqrt(width): below that, directions are noise alone.
    reach = 2 * sigma * math.sqrt(width)
    values, vectors = np.linalg.eigh(pairs)
    least = float(values.min()) - reach
    penalty = max(reach - max(least, 0.0), 0.0)
    # Not below a positive curvature, whatever the noise is.
    inverse = (vectors / np.maximum(values + penalty, max(sigma, 1e-12))) @ vectors.T
    weights = _within(inverse @ along)
    # First order: d w = M (d b - dA w), with the entries of dA above and on the diagonal independent.
    squares, own = inverse**2, weights**2
    spread = squares.sum(axis=1) * (1 + own.sum()) - squares @ own
    cross = (inverse @ weights) ** 2
    deviations = sigma * np.sqrt(np.maximum(spread + cross, 0.0))
    return Fitted(tuple(weights.tolist()), tuple(deviations.tolist()))


@dataclass(frozen=True, slots=True)
class HeldOut:
    """What noisy sums of held-out units say: the numbers in units, and what follows from them."""

    numbers: tuple[float, ...]
    deviation: float
    half_width: float
    value: float | None
    value_deviation: float | None

    @classmethod
    def of(cls, noise: ModelNoise, released: Sequence[int], *, alpha: float) -> HeldOut:
        """Of the outcomes: the accuracy. Of the errors: the part of the variance that is explained.

        None where the noisy weight of what is held out is within its own noise.
        """
        wanted = noise.tested_by
        assert wanted is not None
        deviation = noise.deviation(wanted) / UNIT_WEIGHT
        numbers = tuple([value / UNIT_WEIGHT for value in released])
        half_width = gaussian_two_sided(alpha) * deviation
        if wanted is Wanted.OUTCOMES:
            total, right = sum(numbers), numbers[0] + numbers[3]
            if total <= 3 * 2 * deviation:
                return cls(numbers, deviation, half_width, None, None)
            value = min(max(right / total, 0.0), 1.0)
            spread = deviation * math.sqrt(2 * (1 - value) ** 2 + 2 * value**2) / total
            return cls(numbers, deviation, half_width, value, spread)
        weight, label, square, error = numbers
        if weight <= 3 * deviation:
            return cls(numbers, deviation, half_width, None, None)
        variance = square / weight - (label / weight) ** 2
        if variance <= 3 * deviation / weight:
            return cls(numbers, deviation, half_width, None, None)
        explained = 1 - 4 * error / weight / variance
        spread = 4 * deviation / (weight * variance)
        return cls(numbers, deviation, half_width, explained, spread)
