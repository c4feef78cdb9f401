"""Estimators of the least-squares line, DuckDB's REGR functions: x is the second value of a row. See products.md.

| noisy number of rows, or variance of x, not positive | None, interval the whole range |
| a negative sum of squares | shown as it is, as a SUM is |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mechanisms.estimators.estimator import GROUP_SIZES, Estimator, ExpectedError, Form
from mechanisms.estimators.forms import LIMIT, encoding_of, values_form
from mechanisms.estimators.pairs import MAIN, SPREAD, Centred, Frame, Pair, Solution, above, found, range_of, ranges
from mechanisms.estimators.pivots import Pivot, mean_within, rows_of
from mechanisms.estimators.sums import Linear
from mechanisms.interval import Floats
from mechanisms.measurement import Integers, Measurement
from privacy.aggregate import AggregateFunction
from privacy.statistic import Statistic, StatisticKind

__all__ = ["ESTIMATORS"]


@dataclass(frozen=True, slots=True)
class Slope(Pair):
    """The slope of the line of s over t: the covariance over the variance of t."""

    def solution(self, measurement: Measurement, noisy: Integers, alpha: float) -> Solution:
        """The pivot (s-c)(t-d) - theta (t-d)^2."""
        centred = Centred.of(measurement, noisy, alpha)
        return _line(centred, alpha, MAIN)

    def of_moments(self, n: Floats, s: Floats, t: Floats, ss: Floats, st: Floats, tt: Floats) -> Floats:
        """The quotient where the variance is positive."""
        spread = tt - t**2
        return np.where(spread > 0, (st - s * t) / np.where(spread > 0, spread, 1.0), np.nan)

    def scale(self, measurement: Measurement) -> tuple[float, float]:
        """The range of the first value over that of the second."""
        first, second = ranges(measurement)
        return 0.0, first / second

    def limits(self, measurement: Measurement) -> tuple[float, float]:
        """A mean of the slopes between pairs of rows, which differ by a step of t at least and by 1 in s at most."""
        steps = _steps(measurement)
        return -steps, steps

    def plain(self, y: Floats, x: Floats) -> float | None:
        """Of x that differ."""
        spread = float(x.var())
        return float(((y - y.mean()) * (x - x.mean())).mean()) / spread if spread else None


def _line(centred: Centred, alpha: float, part: float) -> Solution:
    pivot = Pivot(
        centred.product,
        centred.square(second=True),
        centred.rows.total(centred.square(second=True)),
        centred.product_changes(),
        centred.square_changes(second=True),
    )
    return found(centred, pivot, part * alpha, above(centred.count, 0))


def _steps(measurement: Measurement) -> float:
    second = measurement.statistic.second
    assert second is not None
    return float(second.highest)


@dataclass(frozen=True, slots=True)
class Intercept(Pair):
    """Where the line is at x = 0, which is t = t0."""

    def solution(self, measurement: Measurement, noisy: Integers, alpha: float) -> Solution:
        """The pivot (s - b (t-t0) - theta) G with G = v + (t0-d)(t-d), for the slope b and the variance v of t."""
        centred = Centred.of(measurement, noisy, alpha)
        slope, low, high, _, known, there = _line(centred, alpha, SPREAD)
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
        _, low, high, error, ends, there = found(
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
            (MAIN - 2 * SPREAD) * alpha,
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
        frame = Frame.of(measurement.statistic)
        n = noisy @ frame.one
        safe = np.where(n > 0, n, 1.0)
        s, t = (np.clip(noisy @ part / safe, 0, 1) for part in (frame.s, frame.t))
        value = s + (slope - added) / times * (self._zero(measurement) - t)
        added, times = self.scale(measurement)
        limits = self.limits(measurement)
        return added + times * np.clip(value, *limits)

    def scale(self, measurement: Measurement) -> tuple[float, float]:
        """The first value's lower bound and range."""
        return float(encoding_of(measurement.statistic).offset), ranges(measurement)[0]

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
        rows, frame = rows_of(measurement, noisy), Frame.of(measurement.statistic)
        top = frame.t if self.second else frame.s
        found = mean_within(rows, top, frame.one, alpha)
        count = rows.total(frame.one)
        there = above(count, 0)
        value = np.clip(rows.total(top) / np.where(there, count, 1.0), 0, 1)
        error = rows.deviation(top - value[:, None] * frame.one) / np.where(there, count, 1.0)
        return value, found.low, found.high, error, np.ones_like(there), there

    def rows_of_noise(self, measurement: Measurement, *, alpha: float) -> float:
        """Where sums share draws: the quantile of the distance from the middle, which is part of that at any mean."""
        if not measurement.mixed:
            return super(Mean, self).rows_of_noise(measurement, alpha=alpha)
        nothing = np.zeros((1, measurement.statistic.coordinates), dtype=np.int64)
        frame = Frame.of(measurement.statistic)
        far = (frame.t if self.second else frame.s) - frame.one / 2
        return float(rows_of(measurement, nothing).quantile(far, alpha)[0])

    def expected(self, measurement: Measurement, *, integer: bool, alpha: float) -> tuple[ExpectedError, ...]:
        """Of values spread evenly, and at most that of rows whose values all lie at the lower bounds.

        With the mean c the error has the weights i/d - c, whose squares, over symmetric noise, add up to something
        convex in c with equal ends.
        """
        statistic = measurement.statistic
        sizes = [rows * statistic.row_units // measurement.grid for rows in GROUP_SIZES]
        rest = [0] * (statistic.coordinates - 1)
        small = max(sizes) < LIMIT
        noiseless: Integers = np.array([[size, *rest] for size in sizes], dtype=np.int64 if small else object)
        worst = self.column(measurement, noiseless, integer=integer, alpha=alpha).standard_errors
        usual = super(Mean, self).expected(measurement, integer=integer, alpha=alpha)
        return tuple(replace(one, standard_error_at_most=error) for one, error in zip(usual, worst, strict=True))

    def of_moments(self, n: Floats, s: Floats, t: Floats, ss: Floats, st: Floats, tt: Floats) -> Floats:
        """That mean."""
        return t if self.second else s

    def scale(self, measurement: Measurement) -> tuple[float, float]:
        """The value's lower bound and range."""
        statistic = measurement.statistic
        encoding = statistic.second if self.second else statistic.encoding
        assert encoding is not None
        return float(encoding.offset), range_of(encoding)

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
        centred = Centred.of(measurement, noisy, alpha)
        if self.of == "st":
            top, changes = centred.product, centred.product_changes()
        else:
            second = self.of == "tt"
            top, changes = centred.square(second=second), centred.square_changes(second=second)
        one = np.ones(len(noisy))
        pivot = Pivot(top, np.zeros_like(centred.rows.values), one, changes)
        return found(centred, pivot, MAIN * alpha, above(centred.count, 0))

    def of_moments(self, n: Floats, s: Floats, t: Floats, ss: Floats, st: Floats, tt: Floats) -> Floats:
        """n times the covariance or variance."""
        return n * {"st": st - s * t, "ss": ss - s**2, "tt": tt - t**2}[self.of]

    def scale(self, measurement: Measurement) -> tuple[float, float]:
        """The product of the ranges."""
        first, second = ranges(measurement)
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
    _SLOPE,
    Intercept(AggregateFunction.REGRESSION_INTERCEPT),
    Linear(AggregateFunction.REGRESSION_COUNT, _pairs, _COUNTED),
    Mean(AggregateFunction.REGRESSION_MEAN_X, second=True),
    Mean(AggregateFunction.REGRESSION_MEAN_Y, second=False),
    Total(AggregateFunction.REGRESSION_SXX, of="tt"),
    Total(AggregateFunction.REGRESSION_SXY, of="st"),
    Total(AggregateFunction.REGRESSION_SYY, of="ss"),
)
