"""Estimators of covariances and correlation. See products.md.

| noisy number of rows, or variance that is divided by, not positive | None, interval the whole range |
| a correlation beyond [-1, 1], a covariance beyond what the ranges allow | the end |
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mechanisms.estimators.estimator import Estimator
from mechanisms.estimators.moment_sums import count_bounds
from mechanisms.estimators.pairs import COUNT, MAIN, Centred, Pair, Solution, above, found, ranges
from mechanisms.estimators.pivots import Pivot
from mechanisms.interval import Floats
from mechanisms.measurement import Integers, Measurement
from privacy.aggregate import AggregateFunction

__all__ = ["ESTIMATORS"]


@dataclass(frozen=True, slots=True)
class Covariance(Pair):
    """E (s-c)(t-d) at the means, over n rows or (`sample`) over n - 1."""

    sample: bool

    def solution(self, measurement: Measurement, noisy: Integers, alpha: float) -> Solution:
        """The pivot (s-c)(t-d) - theta; the factor n / (n-1) with the ends of the number of rows."""
        main = alpha * (1 - COUNT) if self.sample else alpha
        centred = Centred.of(measurement, noisy, main)
        pivot = Pivot(centred.product, centred.ones, centred.count, centred.product_changes())
        there = above(centred.count, 1 if self.sample else 0)
        value, low, high, error, known, there = found(centred, pivot, MAIN * main, there)
        value = np.clip(value, -0.25, 0.25)
        if self.sample:
            fewest, most = (np.maximum(end, 2.0) for end in count_bounds(measurement, noisy, COUNT * alpha))
            factor = np.where(there, centred.count / np.where(there, centred.count - 1, 1.0), 1.0)
            least, greatest = most / (most - 1), fewest / (fewest - 1)
            low = np.minimum(low * least, low * greatest)
            high = np.maximum(high * least, high * greatest)
            value, error = value * factor, error * factor
        return value, low, high, error, known, there

    def of_moments(self, n: Floats, s: Floats, t: Floats, ss: Floats, st: Floats, tt: Floats) -> Floats:
        """st - s t, times n / (n-1) of a sample."""
        value = np.clip(st - s * t, -0.25, 0.25)
        return np.where(n > 1, value * n / np.where(n > 1, n - 1, 1.0), np.nan) if self.sample else value

    def scale(self, measurement: Measurement) -> tuple[float, float]:
        """The product of both ranges."""
        return 0.0, math.prod(ranges(measurement))

    def limits(self, measurement: Measurement) -> tuple[float, float]:
        """A quarter (of a sample of two rows, half) of the product of the ranges."""
        most = 0.5 if self.sample else 0.25
        return -most, most

    def plain(self, y: Floats, x: Floats) -> float | None:
        """The products of the distances from the means, summed, over n or n - 1."""
        over = len(y) - self.sample
        return float(((y - y.mean()) * (x - x.mean())).sum()) / over if over > 0 else None


@dataclass(frozen=True, slots=True)
class Correlation(Pair):
    """The covariance over the root of both variances, or (`squared`) its square."""

    squared: bool

    def solution(self, measurement: Measurement, noisy: Integers, alpha: float) -> Solution:
        """The pivot (s-c)(t-d) - theta (l (s-c)^2 + (t-d)^2 / l) / 2, with l the ratio of the deviations of t and s."""
        centred = Centred.of(measurement, noisy, alpha)
        spread_s, spread_t = (centred.variance(alpha, second=second) for second in (False, True))
        there = (spread_s.value > 0) & (spread_t.value > 0) & (centred.count > 0)
        variance_s, variance_t = (np.where(there, spread.value, 1.0) for spread in (spread_s, spread_t))
        safe = there & (spread_s.low > 0) & (spread_t.low > 0)
        ratio = np.sqrt(variance_t / variance_s)
        least = np.where(safe, np.sqrt(spread_t.low / np.where(safe, spread_s.high, 1.0)), ratio)
        most = np.where(safe, np.sqrt(spread_t.high / np.where(safe, spread_s.low, 1.0)), ratio)
        steps = [end / ratio - 1 for end in (least, most)]
        first = np.maximum.reduce([np.abs(step) for step in steps])
        second = np.maximum.reduce([step**2 / (1 + step) for step in steps])
        l = ratio[:, None]  # noqa: E741
        left, right = l * centred.square(second=False), centred.square(second=True) / l
        a, b = centred.mean_s.reach, centred.mean_t.reach
        pivot = Pivot(
            centred.product,
            (left + right) / 2,
            np.where(there, centred.count * np.sqrt(variance_s * variance_t), 0.0),
            centred.product_changes(),
            [
                (first / 2, left - right),
                (second / 2, right),
                (most * a, centred.s),
                (b / least, centred.t),
                (most * a**2 / 2 + b**2 / least / 2, centred.ones),
            ],
        )
        value, low, high, error, known, there = found(centred, pivot, MAIN * alpha, there)
        known &= safe
        value = np.clip(value, -1, 1)
        low, high = (np.clip(np.where(known, end, unknown), -1, 1) for end, unknown in ((low, -1.0), (high, 1.0)))
        if not self.squared:
            return value, low, high, error, known, there
        inside = (low <= 0) & (high >= 0)
        ends = np.stack([low**2, high**2])
        # Near zero a square has no slope: there the error is that of the square of the noise.
        error = np.minimum(np.hypot(2 * value * error, math.sqrt(2) * error**2), 1.0)
        return value**2, np.where(inside, 0.0, ends.min(axis=0)), ends.max(axis=0), error, known, there

    def of_moments(self, n: Floats, s: Floats, t: Floats, ss: Floats, st: Floats, tt: Floats) -> Floats:
        """The quotient where both variances are positive."""
        first, second = ss - s**2, tt - t**2
        there = (first > 0) & (second > 0)
        value = np.clip((st - s * t) / np.sqrt(np.where(there, first * second, 1.0)), -1, 1)
        return np.where(there, value**2 if self.squared else value, np.nan)

    def scale(self, measurement: Measurement) -> tuple[float, float]:
        """It has no unit."""
        return 0.0, 1.0

    def limits(self, measurement: Measurement) -> tuple[float, float]:
        """By the inequality of Cauchy and Schwarz."""
        return (0.0, 1.0) if self.squared else (-1.0, 1.0)

    def plain(self, y: Floats, x: Floats) -> float | None:
        """Of values that differ."""
        spread = float(y.std() * x.std())
        if not spread:
            return None
        value = float(((y - y.mean()) * (x - x.mean())).mean()) / spread
        return value**2 if self.squared else value


ESTIMATORS: tuple[Estimator, ...] = (
    Covariance(AggregateFunction.COVARIANCE_POPULATION, sample=False),
    Covariance(AggregateFunction.COVARIANCE_SAMPLE, sample=True),
    Correlation(AggregateFunction.CORRELATION, squared=False),
    Correlation(AggregateFunction.REGRESSION_R2, squared=True),
)
