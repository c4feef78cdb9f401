"""Estimators of two values of a row: covariances, correlation and the least-squares line. See products.md.

In units of their ranges the first value is s and the second t, both in [0, 1]; x of DuckDB's REGR functions is the
second. Edge cases:

| noisy number of rows, or variance that is divided by, not positive | None, interval the whole range |
| a correlation beyond [-1, 1], a covariance beyond what the ranges allow | the end |
| a negative sum of squares | shown as it is, as a SUM is |
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from mechanisms.estimators.estimator import GROUP_SIZES, Column, Estimator, ExpectedError, Form
from mechanisms.estimators.forms import LIMIT, encoding_of, per_row, values_form
from mechanisms.estimators.moments import cells, count_bounds
from mechanisms.estimators.pivots import Box, Pivot, Rows, mean_within, rows_of, solved
from mechanisms.estimators.sums import Linear
from mechanisms.interval import Floats
from mechanisms.measurement import Integers, Measurement
from privacy.aggregate import AggregateFunction
from privacy.statistic import Encoding, Statistic, StatisticKind

__all__ = ["ESTIMATORS", "Pair"]

_MAIN, _MEAN, _SPREAD = 0.90, 0.02, 0.03
"""Parts of alpha: for the quantity itself, for each mean, for each variance that it needs."""

_COUNT = 0.05
"""The part of alpha for the number of rows, where it is needed: taken from the whole first."""


@dataclass(frozen=True, slots=True)
class _Frame:
    """The weights on the coordinates of a pair of one, s, t, s^2, s t and t^2; those beyond the degrees are None."""

    one: Floats
    s: Floats
    t: Floats
    st: Floats
    ss: Floats | None
    tt: Floats | None

    @classmethod
    def of(cls, statistic: Statistic) -> _Frame:
        d, e = statistic.degree, statistic.second_degree
        i, j = (part.reshape(-1).astype(np.float64) for part in np.indices((d + 1, e + 1)))

        def padded(weights: Floats) -> Floats:
            return np.concatenate([weights, np.zeros(int(statistic.counts_nulls))])

        return cls(
            one=padded(np.ones_like(i)),
            s=padded(i / d),
            t=padded(j / e),
            st=padded(i * j / (d * e)),
            ss=padded(i * (i - 1) / (d * (d - 1))) if d > 1 else None,
            tt=padded(j * (j - 1) / (e * (e - 1))) if e > 1 else None,
        )


@dataclass(frozen=True, slots=True)
class _Centred:
    """A pair's noisy sums around its means: these with their intervals, and centred weights (cells x coordinates)."""

    rows: Rows
    frame: _Frame
    count: Floats
    mean_s: Box
    mean_t: Box

    @classmethod
    def of(cls, measurement: Measurement, noisy: Integers, alpha: float) -> _Centred:
        rows, frame = rows_of(measurement, noisy), _Frame.of(measurement.statistic)
        means = [mean_within(rows, part, frame.one, _MEAN * alpha) for part in (frame.s, frame.t)]
        return cls(rows, frame, rows.total(frame.one), *means)

    @property
    def s(self) -> Floats:
        """s - its noisy mean."""
        return self.frame.s - self.mean_s.value[:, None] * self.frame.one

    @property
    def t(self) -> Floats:
        """t - its noisy mean."""
        return self.frame.t - self.mean_t.value[:, None] * self.frame.one

    @property
    def ones(self) -> Floats:
        """One, for each cell."""
        return np.broadcast_to(self.frame.one, self.rows.values.shape)

    @property
    def product(self) -> Floats:
        """(s - its mean)(t - its mean)."""
        c, d, frame = self.mean_s.value[:, None], self.mean_t.value[:, None], self.frame
        result: Floats = frame.st - c * frame.t - d * frame.s + c * d * frame.one
        return result

    def square(self, *, second: bool) -> Floats:
        """(s - its mean)^2, or that of t."""
        mean = (self.mean_t if second else self.mean_s).value[:, None]
        line, square = (self.frame.t, self.frame.tt) if second else (self.frame.s, self.frame.ss)
        assert square is not None
        result: Floats = square - 2 * mean * line + mean**2 * self.frame.one
        return result

    def product_changes(self) -> list[tuple[Floats, Floats]]:
        """(s-c)(t-d) - (s-c')(t-d'): the means move by at most their reach."""
        a, b = self.mean_s.reach, self.mean_t.reach
        return [(a, self.t), (b, self.s), (a * b, self.ones)]

    def square_changes(self, *, second: bool) -> list[tuple[Floats, Floats]]:
        """(t-d)^2 - (t-d')^2."""
        reach = (self.mean_t if second else self.mean_s).reach
        return [(2 * reach, self.t if second else self.s), (reach**2, self.ones)]

    def variance(self, alpha: float, *, second: bool) -> Box:
        """The variance of s or t, within [0, 1/4]. Its value is not held, and may be negative."""
        pivot = Pivot(self.square(second=second), self.ones, self.count, self.square_changes(second=second))
        value, low, high, _, known = solved(self.rows, pivot, _SPREAD * alpha)
        low = np.where(known, np.clip(low, 0, 0.25), 0.0)
        return Box(value, low, np.where(known, np.clip(high, 0, 0.25), 0.25))


Solution = tuple[Floats, Floats, Floats, Floats, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]
"""Values, ends, standard errors, where there are ends, and where there is a value."""


def _found(centred: _Centred, pivot: Pivot, alpha: float, there: npt.NDArray[np.bool_]) -> Solution:
    value, low, high, error, known = solved(centred.rows, pivot, alpha)
    return value, low, high, error, known & there, there & (pivot.slope > 0)


@dataclass(frozen=True, slots=True)
class Pair(Estimator):
    """An aggregate of pairs that is not linear. It is solved in units of the ranges; `scale` makes it the answer."""

    def form(self, statistic: Statistic) -> Form | None:
        """None. Errors: ValueError when the statistic does not hold the aggregate."""
        held = (
            statistic.kind is StatisticKind.PRODUCTS
            and statistic.degree >= self.function.degree
            and statistic.second_degree >= self.function.second_degree
        )
        if not held:
            raise ValueError("the statistic does not hold the estimate")
        return None

    @abstractmethod
    def solution(self, measurement: Measurement, noisy: Integers, alpha: float) -> Solution:
        """In units of the ranges."""

    @abstractmethod
    def of_moments(self, n: Floats, s: Floats, t: Floats, ss: Floats, st: Floats, tt: Floats) -> Floats:
        """The value from the number of rows and the means of s, t, their squares and product; NaN where undefined."""

    @abstractmethod
    def scale(self, measurement: Measurement) -> tuple[float, float]:
        """What is added to a value in units of the ranges, after it was multiplied by the second number."""

    @abstractmethod
    def limits(self, measurement: Measurement) -> tuple[float, float] | None:
        """The range of values in units of the ranges, to which noisy ones are held; None where there is none."""

    @abstractmethod
    def plain(self, y: Floats, x: Floats) -> float | None:
        """The definition, of at least one row."""

    def truth(self, values: Floats, *, nulls: int) -> float | None:
        """The definition, of rows of the first and the second value (rows x 2)."""
        if not len(values):
            return None
        found = self.plain(values[:, 0], values[:, 1])
        return None if found is None or not math.isfinite(found) else found

    def ends(self, measurement: Measurement) -> tuple[float, float] | None:
        """The limits in the units of the answer."""
        limits = self.limits(measurement)
        if limits is None:
            return None
        added, times = self.scale(measurement)
        return added + times * limits[0], added + times * limits[1]

    def column(self, measurement: Measurement, noisy: Integers, *, integer: bool, alpha: float) -> Column:
        """The solution held to its limits; where there are no ends they are the limits, or unknown."""
        assert not integer
        value, low, high, error, known, there = self.solution(measurement, noisy, alpha)
        limits = self.limits(measurement)
        if limits is not None:
            value, low, high = (np.clip(part, *limits) for part in (value, low, high))
            low, high = np.where(known, low, limits[0]), np.where(known, high, limits[1])
            known = np.ones_like(known)
            error = np.minimum(error, (limits[1] - limits[0]) / 2)
        low, high = np.minimum(low, np.where(there, value, low)), np.maximum(high, np.where(there, value, high))
        added, times = self.scale(measurement)
        return Column(
            values=cells(added + times * value, there),
            standard_errors=cells(times * error, there),
            lows=cells(added + times * low, known),
            highs=cells(added + times * high, known),
        )

    def simulated(self, measurement: Measurement, noisy: Floats, *, integer: bool) -> Floats:
        """The values alone."""
        assert not integer
        frame = _Frame.of(measurement.statistic)
        factor = float(measurement.grid * per_row(measurement.statistic))
        n = noisy @ frame.one * factor
        safe = np.where(n > 0, n, 1.0)

        def mean(weights: Floats | None) -> Floats:
            return np.zeros_like(n) if weights is None else noisy @ weights * factor / safe

        s, t = np.clip(mean(frame.s), 0, 1), np.clip(mean(frame.t), 0, 1)
        # Around the means as they are held: the sums of products follow from all of them.
        first, second = mean(frame.s) - s, mean(frame.t) - t
        st = mean(frame.st) - s * second - t * first
        ss, tt = mean(frame.ss) - 2 * s * first, mean(frame.tt) - 2 * t * second
        with np.errstate(divide="ignore", invalid="ignore"):
            value = self.of_moments(n, s, t, ss, st, tt)
        limits = self.limits(measurement)
        if limits is not None:
            value = np.clip(value, *limits)
        added, times = self.scale(measurement)
        return np.where((n > 0) & np.isfinite(value), added + times * value, np.nan)

    def of_nobody(self, measurement: Measurement, noisy: Integers, *, alpha: float) -> tuple[bool, ...]:
        """Where the interval of the number of rows with both values reaches zero."""
        return tuple((count_bounds(measurement, noisy, alpha)[0] <= 0).tolist())

    def rows_of_noise(self, measurement: Measurement, *, alpha: float) -> float:
        """With so many rows the interval of a mean is as wide as its values' range: see `Ratio.rows_of_noise`."""
        one = float(measurement.grid * per_row(measurement.statistic)) / 2
        return float(measurement.quantile(np.array([[one, one]]), alpha)[0])

    def expected(self, measurement: Measurement, *, integer: bool, alpha: float) -> tuple[ExpectedError, ...]:
        """Of values spread evenly over both ranges, independently; at most half the range, where there is one."""
        statistic = measurement.statistic
        parts = (statistic.degree + 1) * (statistic.second_degree + 1)
        made = []
        for rows in GROUP_SIZES:
            # The products of Bernstein polynomials of one degree have equal integrals.
            even = round(Fraction(rows * statistic.row_units, parts) / measurement.grid)
            made.append([even] * parts + [0] * (statistic.coordinates - parts))
        small = max(map(max, made)) < LIMIT
        noiseless: Integers = np.array(made, dtype=np.int64 if small else object)
        column = self.column(measurement, noiseless, integer=integer, alpha=alpha)
        ends = self.ends(measurement)
        most = None if ends is None else (ends[1] - ends[0]) / 2
        return tuple(
            ExpectedError(
                rows=rows,
                standard_error=column.standard_errors[i],
                half_width=_half(column.lows[i], column.highs[i]),
                standard_error_at_most=most,
            )
            for i, rows in enumerate(GROUP_SIZES)
        )


def _half(low: float | None, high: float | None) -> float | None:
    return None if low is None or high is None else (high - low) / 2


def _range_of(encoding: Encoding) -> float:
    """What 1 is worth in units of a value."""
    return float(encoding.step * encoding.highest)


def _ranges(measurement: Measurement) -> tuple[float, float]:
    statistic = measurement.statistic
    assert statistic.second is not None
    return _range_of(encoding_of(statistic)), _range_of(statistic.second)


def _above(count: Floats, least: int) -> npt.NDArray[np.bool_]:
    return (count > least).astype(np.bool_)


@dataclass(frozen=True, slots=True)
class Covariance(Pair):
    """E (s-c)(t-d) at the means, over n rows or (`sample`) over n - 1."""

    sample: bool

    def solution(self, measurement: Measurement, noisy: Integers, alpha: float) -> Solution:
        """The pivot (s-c)(t-d) - theta; the factor n / (n-1) with the ends of the number of rows."""
        main = alpha * (1 - _COUNT) if self.sample else alpha
        centred = _Centred.of(measurement, noisy, main)
        pivot = Pivot(centred.product, centred.ones, centred.count, centred.product_changes())
        there = _above(centred.count, 1 if self.sample else 0)
        value, low, high, error, known, there = _found(centred, pivot, _MAIN * main, there)
        value = np.clip(value, -0.25, 0.25)
        if self.sample:
            fewest, most = (np.maximum(end, 2.0) for end in count_bounds(measurement, noisy, _COUNT * alpha))
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
        return 0.0, math.prod(_ranges(measurement))

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
        centred = _Centred.of(measurement, noisy, alpha)
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
        value, low, high, error, known, there = _found(centred, pivot, _MAIN * alpha, there)
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


@dataclass(frozen=True, slots=True)
class Slope(Pair):
    """The slope of the line of s over t: the covariance over the variance of t."""

    def solution(self, measurement: Measurement, noisy: Integers, alpha: float) -> Solution:
        """The pivot (s-c)(t-d) - theta (t-d)^2."""
        centred = _Centred.of(measurement, noisy, alpha)
        return _line(centred, alpha, _MAIN)

    def of_moments(self, n: Floats, s: Floats, t: Floats, ss: Floats, st: Floats, tt: Floats) -> Floats:
        """The quotient where the variance is positive."""
        spread = tt - t**2
        return np.where(spread > 0, (st - s * t) / np.where(spread > 0, spread, 1.0), np.nan)

    def scale(self, measurement: Measurement) -> tuple[float, float]:
        """The range of the first value over that of the second."""
        first, second = _ranges(measurement)
        return 0.0, first / second

    def limits(self, measurement: Measurement) -> tuple[float, float]:
        """A mean of the slopes between pairs of rows, which differ by a step of t at least and by 1 in s at most."""
        steps = _steps(measurement)
        return -steps, steps

    def plain(self, y: Floats, x: Floats) -> float | None:
        """Of x that differ."""
        spread = float(x.var())
        return float(((y - y.mean()) * (x - x.mean())).mean()) / spread if spread else None


def _line(centred: _Centred, alpha: float, part: float) -> Solution:
    pivot = Pivot(
        centred.product,
        centred.square(second=True),
        centred.rows.total(centred.square(second=True)),
        centred.product_changes(),
        centred.square_changes(second=True),
    )
    return _found(centred, pivot, part * alpha, _above(centred.count, 0))


def _steps(measurement: Measurement) -> float:
    second = measurement.statistic.second
    assert second is not None
    return float(second.highest)


@dataclass(frozen=True, slots=True)
class Intercept(Pair):
    """Where the line is at x = 0, which is t = t0."""

    def solution(self, measurement: Measurement, noisy: Integers, alpha: float) -> Solution:
        """The pivot (s - b (t-t0) - theta) G with G = v + (t0-d)(t-d), for the slope b and the variance v of t."""
        centred = _Centred.of(measurement, noisy, alpha)
        slope, low, high, _, known, there = _line(centred, alpha, _SPREAD)
        slope = np.where(there, slope, 0.0)
        spread = centred.variance(alpha, second=True)
        frame, d = centred.frame, centred.mean_t.value
        zero = self._zero(measurement)
        b, far = slope[:, None], (zero - d)[:, None]
        line = frame.t - zero * frame.one  # t - t0
        # Weights of products with (t - d): those of t, of t^2 and of s t are at hand.
        assert frame.tt is not None
        line_t = frame.tt - (zero + d[:, None]) * frame.t + zero * d[:, None] * frame.one
        s_t = frame.st - d[:, None] * frame.s
        centre = centred.mean_s.value + slope * (zero - d)
        rest = frame.s - b * line - centre[:, None] * frame.one
        rest_t = s_t - b * line_t - centre[:, None] * centred.t
        v = spread.value[:, None]
        reach_b = np.where(known, np.maximum(high - slope, slope - low), 0.0)
        reach_d, reach_v = centred.mean_t.reach, spread.reach
        weight = reach_v + reach_d * np.abs(zero - d) + reach_d**2
        bottom = v * centred.ones + far * centred.t
        # Of theta - centre, which is nearly zero: so the changes of the bottom hardly count.
        _, low, high, error, ends, there = _found(
            centred,
            Pivot(
                v * rest + far * rest_t,
                bottom,
                np.where(there, centred.rows.total(bottom), 0.0),
                [
                    (weight, rest),
                    (reach_d, rest_t),
                    (reach_b, v * line + far * line_t),
                    (reach_b * weight, np.broadcast_to(line, centred.rows.values.shape)),
                    (reach_b * reach_d, line_t),
                ],
                [(weight, centred.ones), (reach_d, centred.t)],
            ),
            (_MAIN - 2 * _SPREAD) * alpha,
            there,
        )
        return centre, centre + low, centre + high, error, ends & known, there

    def _zero(self, measurement: Measurement) -> float:
        """t0: where x is zero, in units of its range."""
        second = measurement.statistic.second
        assert second is not None
        return -float(second.offset / (second.step * second.highest))

    def of_moments(self, n: Floats, s: Floats, t: Floats, ss: Floats, st: Floats, tt: Floats) -> Floats:
        """The mean of s less the slope times that of t is for `scale`, which knows where x is zero; see `simulated`."""
        raise AssertionError("`simulated` has its own")

    def simulated(self, measurement: Measurement, noisy: Floats, *, integer: bool) -> Floats:
        """The mean of s, moved along the line to t0."""
        assert not integer
        slope = _SLOPE.simulated(measurement, noisy, integer=False)
        added, times = _SLOPE.scale(measurement)
        frame = _Frame.of(measurement.statistic)
        n = noisy @ frame.one
        safe = np.where(n > 0, n, 1.0)
        s, t = (np.clip(noisy @ part / safe, 0, 1) for part in (frame.s, frame.t))
        value = s + (slope - added) / times * (self._zero(measurement) - t)
        added, times = self.scale(measurement)
        limits = self.limits(measurement)
        return added + times * np.clip(value, *limits)

    def scale(self, measurement: Measurement) -> tuple[float, float]:
        """The first value's lower bound and range."""
        return float(encoding_of(measurement.statistic).offset), _ranges(measurement)[0]

    def limits(self, measurement: Measurement) -> tuple[float, float]:
        """A mean within its range, and as far from it as the steepest line leads to t0."""
        most = _steps(measurement) * (abs(self._zero(measurement)) + 1)
        return -most, 1 + most

    def plain(self, y: Floats, x: Floats) -> float | None:
        """Of x that differ."""
        slope = _SLOPE.plain(y, x)
        return None if slope is None else float(y.mean() - slope * x.mean())


@dataclass(frozen=True, slots=True)
class Mean(Pair):
    """The mean of one of the two values over rows that have both."""

    second: bool

    widening: ClassVar[float] = 1.0

    def solution(self, measurement: Measurement, noisy: Integers, alpha: float) -> Solution:
        """Fieller's set."""
        rows, frame = rows_of(measurement, noisy), _Frame.of(measurement.statistic)
        top = frame.t if self.second else frame.s
        found = mean_within(rows, top, frame.one, alpha)
        count = rows.total(frame.one)
        there = _above(count, 0)
        value = np.clip(rows.total(top) / np.where(there, count, 1.0), 0, 1)
        error = rows.deviation(top - value[:, None] * frame.one) / np.where(there, count, 1.0)
        return value, found.low, found.high, error, np.ones_like(there), there

    def of_moments(self, n: Floats, s: Floats, t: Floats, ss: Floats, st: Floats, tt: Floats) -> Floats:
        """That mean."""
        return t if self.second else s

    def scale(self, measurement: Measurement) -> tuple[float, float]:
        """The value's lower bound and range."""
        statistic = measurement.statistic
        encoding = statistic.second if self.second else statistic.encoding
        assert encoding is not None
        return float(encoding.offset), _range_of(encoding)

    def limits(self, measurement: Measurement) -> tuple[float, float]:
        """Its bounds."""
        return 0.0, 1.0

    def plain(self, y: Floats, x: Floats) -> float | None:
        """The mean."""
        return float((x if self.second else y).mean())


@dataclass(frozen=True, slots=True)
class Total(Pair):
    """The sum of (s-c)(t-d), of (s-c)^2 or of (t-d)^2 over rows that have both values."""

    of: str

    def solution(self, measurement: Measurement, noisy: Integers, alpha: float) -> Solution:
        """The pivot with theta by itself: the sum is what the noise is added to."""
        centred = _Centred.of(measurement, noisy, alpha)
        if self.of == "st":
            top, changes = centred.product, centred.product_changes()
        else:
            second = self.of == "tt"
            top, changes = centred.square(second=second), centred.square_changes(second=second)
        one = np.ones(len(noisy))
        pivot = Pivot(top, np.zeros_like(centred.rows.values), one, changes)
        return _found(centred, pivot, _MAIN * alpha, _above(centred.count, 0))

    def of_moments(self, n: Floats, s: Floats, t: Floats, ss: Floats, st: Floats, tt: Floats) -> Floats:
        """n times the covariance or variance."""
        return n * {"st": st - s * t, "ss": ss - s**2, "tt": tt - t**2}[self.of]

    def scale(self, measurement: Measurement) -> tuple[float, float]:
        """The product of the ranges."""
        first, second = _ranges(measurement)
        return 0.0, {"st": first * second, "ss": first**2, "tt": second**2}[self.of]

    def limits(self, measurement: Measurement) -> None:
        """None: it grows with the rows."""
        return

    def plain(self, y: Floats, x: Floats) -> float | None:
        """The sum of products of distances from the means."""
        first, second = {"st": (y, x), "ss": (y, y), "tt": (x, x)}[self.of]
        return float(((first - first.mean()) * (second - second.mean())).sum())


def _pairs(statistic: Statistic) -> Form:
    if statistic.kind is not StatisticKind.PRODUCTS:
        raise ValueError("the statistic does not hold the estimate")
    return values_form(statistic)


_COUNTED: Callable[[Floats, int], float] = lambda values, nulls: len(values)  # noqa: E731

_SLOPE = Slope(AggregateFunction.REGRESSION_SLOPE)

ESTIMATORS: tuple[Estimator, ...] = (
    Covariance(AggregateFunction.COVARIANCE_POPULATION, sample=False),
    Covariance(AggregateFunction.COVARIANCE_SAMPLE, sample=True),
    Correlation(AggregateFunction.CORRELATION, squared=False),
    _SLOPE,
    Intercept(AggregateFunction.REGRESSION_INTERCEPT),
    Correlation(AggregateFunction.REGRESSION_R2, squared=True),
    Linear(AggregateFunction.REGRESSION_COUNT, _pairs, _COUNTED),
    Mean(AggregateFunction.REGRESSION_MEAN_X, second=True),
    Mean(AggregateFunction.REGRESSION_MEAN_Y, second=False),
    Total(AggregateFunction.REGRESSION_SXX, of="tt"),
    Total(AggregateFunction.REGRESSION_SXY, of="st"),
    Total(AggregateFunction.REGRESSION_SYY, of="ss"),
)
