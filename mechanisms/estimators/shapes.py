"""Estimators of skewness and kurtosis: moments of degree 3 and 4, around the mean and in units of the deviation.

See products.md. Edge cases:

| noisy number of rows or variance not positive, too few rows of a sample | None, interval what so many rows allow |
| beyond what n rows allow: |skewness| <= root of n, kurtosis (not less 3) from 1 to n | the end |
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms.estimators.estimator import GROUP_SIZES, Column, Estimator, ExpectedError
from mechanisms.estimators.forms import evenly_spread, outer_half, per_row
from mechanisms.estimators.moment_sums import cells, count_bounds
from mechanisms.estimators.pivots import Box, Change, Pivot, Rows, mean_within, rows_of, solved
from mechanisms.interval import Floats
from mechanisms.measurement import Integers, Measurement
from privacy.aggregate import AggregateFunction
from privacy.statistic import Statistic, StatisticKind

__all__ = ["ESTIMATORS", "Shape"]

_MAIN, _MEAN, _SPREAD, _THIRD, _COUNT = 0.83, 0.03, 0.04, 0.05, 0.05
"""Parts of alpha: for the quantity, the mean, the variance, the third moment, and the number of rows."""


def _powers(statistic: Statistic) -> list[Floats]:
    """The weights of 1, t, ... t^4 on the coordinates, as far as the degree holds them."""
    degree = statistic.degree
    places = np.arange(degree + 1, dtype=np.float64)
    found, weights = [], np.ones(degree + 1)
    for power in range(degree + 1):
        found.append(np.concatenate([weights, np.zeros(int(statistic.counts_nulls))]))
        weights = weights * (places - power) / max(1, degree - power)
    return found


@dataclass(frozen=True, slots=True)
class _Centred:
    """Noisy sums around their mean: weights of (t - mean)^k for k up to the degree (cells x coordinates)."""

    rows: Rows
    count: Floats
    mean: Box
    powers: Sequence[Floats]

    @classmethod
    def of(cls, measurement: Measurement, noisy: Integers, alpha: float) -> _Centred:
        rows, plain = rows_of(measurement, noisy), _powers(measurement.statistic)
        mean = mean_within(rows, plain[1], plain[0], _MEAN * alpha)
        c = mean.value[:, None]
        powers = [np.broadcast_to(plain[0], rows.values.shape), plain[1] - c * plain[0]]
        powers.append(plain[2] - 2 * c * plain[1] + c**2 * plain[0])
        powers.append(plain[3] - 3 * c * plain[2] + 3 * c**2 * plain[1] - c**3 * plain[0])
        if len(plain) > 4:
            powers.append(plain[4] - 4 * c * plain[3] + 6 * c**2 * plain[2] - 4 * c**3 * plain[1] + c**4 * plain[0])
        return cls(rows, rows.total(plain[0]), mean, powers)

    def moment(self, power: int) -> Floats:
        """The noisy mean of (t - mean)^power; of no rows it means nothing."""
        result: Floats = self.rows.total(self.powers[power]) / np.where(self.count > 0, self.count, 1.0)
        return result

    def third_changes(self, variance: Box) -> list[Change]:
        """What the box changes of (t-c)^3 - 3 v (t-c)."""
        d, v = self.mean.reach, variance.reach
        one, line, square = self.powers[:3]
        return [
            (3 * d, square - variance.value[:, None] * one),
            (3 * d**2 + 3 * v, line),
            (d**3 + 3 * v * d, one),
        ]

    def variance(self, alpha: float) -> Box:
        """The variance; its value is not held."""
        d = self.mean.reach
        one, line, square = self.powers[:3]
        pivot = Pivot(square, one, self.count, [(2 * d, line), (d**2, one)])
        value, low, high, _, known = solved(self.rows, pivot, _SPREAD * alpha)
        return Box(value, np.where(known, np.clip(low, 0, 0.25), 0.0), np.where(known, np.clip(high, 0, 0.25), 0.25))

    def third(self, variance: Box, alpha: float) -> Box:
        """The third moment around the mean, which lies within a quarter of zero."""
        one, line = self.powers[:2]
        top = self.powers[3] - 3 * variance.value[:, None] * line
        pivot = Pivot(top, one, self.count, self.third_changes(variance))
        value, low, high, _, known = solved(self.rows, pivot, _THIRD * alpha)
        return Box(value, np.where(known, np.maximum(low, -0.25), -0.25), np.where(known, np.minimum(high, 0.25), 0.25))


@dataclass(frozen=True, slots=True)
class Shape(Estimator):
    """A moment around the mean over a power of the deviation, of the rows or (`sample`) as an estimate for more."""

    sample: bool

    def form(self, statistic: Statistic) -> None:
        """None. Errors: ValueError when the statistic does not hold the aggregate."""
        if statistic.kind is not StatisticKind.MOMENTS or statistic.degree < self.function.degree:
            raise ValueError("the statistic does not hold the estimate")

    @abstractmethod
    def pivot(self, centred: _Centred, variance: Box, alpha: float) -> Pivot:
        """Of the population's value."""

    @abstractmethod
    def least_rows(self) -> int:
        """With fewer rows there is no value."""

    @abstractmethod
    def held(self, value: Floats, count: Floats) -> Floats:
        """The population's value within what so many rows allow."""

    @abstractmethod
    def of_sample(self, low: Floats, high: Floats, fewest: Floats, most: Floats) -> tuple[Floats, Floats]:
        """The ends of what is shown, from those of the population's value and of the number of rows."""

    @abstractmethod
    def quotient(self, moments: Sequence[Floats]) -> Floats:
        """The population's value of the moments 2 to 4 around the mean."""

    def ends(self, measurement: Measurement) -> None:
        """None: what is possible grows with the number of rows."""
        return

    def truth(self, values: Floats, *, nulls: int) -> float | None:
        """The definition."""
        size = float(values.size)
        if size < self.least_rows() or not values.std():
            return None
        around = values - values.mean()
        moments = [np.array([float((around**power).mean())]) for power in (2, 3, 4)]
        value, count = self.quotient(moments), np.array([size])
        return float(self.of_sample(value, value, count, count)[0][0])

    def column(self, measurement: Measurement, noisy: Integers, *, integer: bool, alpha: float) -> Column:
        """The pivot's set within what the number of rows allows, and of a sample with the ends of that number."""
        assert not integer
        least = float(self.least_rows())
        centred = _Centred.of(measurement, noisy, alpha)
        variance = centred.variance(alpha)
        there = ((centred.count >= least) & (variance.value > 0)).astype(np.bool_)
        value, low, high, error, known = solved(centred.rows, self.pivot(centred, variance, alpha), _MAIN * alpha)
        known &= there & (variance.low > 0)
        fewest, most = (np.maximum(end, least) for end in count_bounds(measurement, noisy, _COUNT * alpha))
        count = np.where(there, centred.count, least)
        value = self.held(np.where(there, value, 0.0), count)
        far = np.full_like(value, np.inf)
        low, high = np.where(known, low, -far), np.where(known, high, far)
        low, high = self.held(low, most), self.held(high, most)
        shown, _ = self.of_sample(value, value, count, count)
        above, _ = self.of_sample(value + error, value + error, count, count)
        low, high = self.of_sample(np.minimum(low, value), np.maximum(high, value), fewest, most)
        return Column(
            values=cells(shown, there),
            standard_errors=cells(np.minimum(above - shown, (high - low) / 2), there),
            lows=tuple(np.minimum(low, np.where(there, shown, low)).tolist()),
            highs=tuple(np.maximum(high, np.where(there, shown, high)).tolist()),
        )

    def simulated(self, measurement: Measurement, noisy: Floats, *, integer: bool) -> Floats:
        """The values alone."""
        assert not integer
        plain = _powers(measurement.statistic)
        n = noisy @ plain[0] * float(measurement.grid * per_row(measurement.statistic))
        total = np.where(n > 0, noisy @ plain[0], 1.0)
        raw = [noisy @ weights / total for weights in plain]
        c = np.clip(raw[1], 0, 1)
        second = raw[2] - 2 * c * raw[1] + c**2
        third = raw[3] - 3 * c * raw[2] + 3 * c**2 * raw[1] - c**3
        fourth = third
        if len(raw) > 4:
            fourth = raw[4] - 4 * c * raw[3] + 6 * c**2 * raw[2] - 4 * c**3 * raw[1] + c**4
        there = (n >= self.least_rows()) & (second > 0)
        count = np.where(there, n, float(self.least_rows()))
        moments = [np.where(there, second, 1.0), np.where(there, third, 0.0), np.where(there, fourth, 1.0)]
        value = self.held(self.quotient(moments), count)
        return np.where(there, self.of_sample(value, value, count, count)[0], np.nan)

    def of_nobody(self, measurement: Measurement, noisy: Integers, *, alpha: float) -> tuple[bool, ...]:
        """Where the interval of the number of rows with a value reaches zero."""
        return tuple((count_bounds(measurement, noisy, alpha)[0] <= 0).tolist())

    def rows_of_noise(self, measurement: Measurement, *, alpha: float) -> float:
        """With so many rows even a mean says nothing: see `Ratio.rows_of_noise`."""
        return outer_half(measurement, alpha)

    def expected(self, measurement: Measurement, *, integer: bool, alpha: float) -> tuple[ExpectedError, ...]:
        """Of values spread evenly over their bounds; the worst values, nearly constant ones, have no greatest error."""
        statistic = measurement.statistic
        noiseless = evenly_spread(measurement, statistic.degree + 1)
        column = self.column(measurement, noiseless, integer=integer, alpha=alpha)
        result = []
        for i, rows in enumerate(GROUP_SIZES):
            low, high = column.lows[i], column.highs[i]
            assert low is not None
            assert high is not None
            result.append(ExpectedError(rows, column.standard_errors[i], (high - low) / 2, None))
        return tuple(result)


@dataclass(frozen=True, slots=True)
class Skewness(Shape):
    """E (t-c)^3 over the cube of the deviation, times root(n(n-1)) / (n-2) of a sample."""

    def least_rows(self) -> int:
        """Three, where n - 2 is divided by."""
        return 3 if self.sample else 1

    def pivot(self, centred: _Centred, variance: Box, alpha: float) -> Pivot:
        """(t-c)^3 - 3 v (t-c) - theta (3/2 r (t-c)^2 - r^3/2), with r the root of v."""
        one, line, square, cube = centred.powers[:4]
        positive = variance.value > 0
        v = np.where(positive, variance.value, 1.0)
        r = np.sqrt(v)
        most = np.sqrt(variance.high)
        step = np.maximum(np.abs(np.sqrt(variance.low) / r - 1), np.abs(most / r - 1))
        d = centred.mean.reach
        bottom = 1.5 * r[:, None] * square - 0.5 * (r**3)[:, None] * one
        return Pivot(
            cube - 3 * v[:, None] * line,
            bottom,
            np.where(positive, centred.rows.total(bottom), 0.0),
            centred.third_changes(Box(v, variance.low, variance.high)),
            [
                (1.5 * r * step, square - v[:, None] * one),
                (0.5 * r**3 * (3 * step**2 + step**3) + 1.5 * most * d**2, one),
                (3 * most * d, line),
            ],
        )

    def held(self, value: Floats, count: Floats) -> Floats:
        """At most the root of n: one row alone is farthest."""
        most = np.sqrt(count)
        return np.clip(value, -most, most)

    def of_sample(self, low: Floats, high: Floats, fewest: Floats, most: Floats) -> tuple[Floats, Floats]:
        """The factor falls with n."""
        if not self.sample:
            return low, high
        great, small = (np.sqrt(n * (n - 1)) / np.maximum(n - 2, 1e-9) for n in (fewest, most))
        return np.minimum(low * great, low * small), np.maximum(high * great, high * small)

    def quotient(self, moments: Sequence[Floats]) -> Floats:
        """m3 / m2^(3/2)."""
        result: Floats = moments[1] / moments[0] ** 1.5
        return result


@dataclass(frozen=True, slots=True)
class Kurtosis(Shape):
    """E (t-c)^4 over the square of the variance, less 3; of a sample corrected for the number of rows."""

    def least_rows(self) -> int:
        """Four, where n - 3 is divided by; two that differ."""
        return 4 if self.sample else 2

    def pivot(self, centred: _Centred, variance: Box, alpha: float) -> Pivot:
        """(t-c)^4 - 4 m (t-c) - theta (2 v (t-c)^2 - v^2), with m the third moment."""
        one, line, square, cube, fourth = centred.powers
        positive = variance.value > 0
        v = np.where(positive, variance.value, 1.0)
        third = centred.third(Box(v, variance.low, variance.high), alpha)
        m, d, w = third.value[:, None], centred.mean.reach, variance.reach
        bottom = 2 * v[:, None] * square - (v**2)[:, None] * one
        return Pivot(
            fourth - 4 * m * line,
            bottom,
            np.where(positive, centred.rows.total(bottom), 0.0),
            [
                (4 * d, cube - m * one),
                (6 * d**2, square),
                (4 * d**3 + 4 * third.reach, line),
                (d**4 + 4 * third.reach * d, one),
            ],
            [
                (2 * w, square - v[:, None] * one),
                (w**2 + 2 * variance.high * d**2, one),
                (4 * variance.high * d, line),
            ],
        )

    def held(self, value: Floats, count: Floats) -> Floats:
        """From 1, of two values in equal numbers, to n."""
        return np.clip(value, 1.0, np.maximum(count, 1.0))

    def of_sample(self, low: Floats, high: Floats, fewest: Floats, most: Floats) -> tuple[Floats, Floats]:
        """Less 3; of a sample a(n) theta - 3 b(n), both of which fall with n."""
        if not self.sample:
            return low - 3, high - 3

        def factors(n: Floats) -> tuple[Floats, Floats]:
            below = (n - 2) * np.maximum(n - 3, 1e-9)
            return (n**2 - 1) / below, (n - 1) ** 2 / below

        (great, more), (small, less) = factors(fewest), factors(most)
        return small * low - 3 * more, great * high - 3 * less

    def quotient(self, moments: Sequence[Floats]) -> Floats:
        """m4 / m2^2."""
        result: Floats = moments[2] / moments[0] ** 2
        return result


ESTIMATORS: tuple[Estimator, ...] = (
    Skewness(AggregateFunction.SKEWNESS, sample=True),
    Kurtosis(AggregateFunction.KURTOSIS, sample=True),
    Kurtosis(AggregateFunction.KURTOSIS_POPULATION, sample=False),
)
