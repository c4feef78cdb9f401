"""What estimators of two values of a row have in common: the noisy moments, centred, and intervals. See products.md.

In units of their ranges the first value is s and the second t, both in [0, 1].
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechanisms.estimators.estimator import GROUP_SIZES, Column, Estimator, ExpectedError, Form
from mechanisms.estimators.forms import encoding_of, evenly_spread, outer_half, per_row
from mechanisms.estimators.moment_sums import cells, count_bounds
from mechanisms.estimators.pivots import Box, Pivot, Rows, mean_within, rows_of, solved
from mechanisms.interval import Floats
from mechanisms.measurement import Integers, Measurement
from privacy.statistic import Encoding, Statistic, StatisticKind

__all__ = ["COUNT", "MAIN", "SPREAD", "Centred", "Frame", "Pair", "Solution", "above", "found", "range_of", "ranges"]

MAIN, _MEAN, SPREAD = 0.90, 0.02, 0.03
"""Parts of alpha: for the quantity itself, for each mean, for each variance that it needs."""

COUNT = 0.05
"""The part of alpha for the number of rows, where it is needed: taken from the whole first."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The weights on the coordinates of a pair of one, s, t, s^2, s t and t^2; those beyond the degrees are None."""

    one: Floats
    s: Floats
    t: Floats
    st: Floats
    ss: Floats | None
    tt: Floats | None

    @classmethod
    def of(cls, statistic: Statistic) -> Frame:
        """Those of a statistic's degrees, each as long as it has coordinates."""
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
class Centred:
    """A pair's noisy sums around its means: these with their intervals, and centred weights (cells x coordinates)."""

    rows: Rows
    frame: Frame
    count: Floats
    mean_s: Box
    mean_t: Box

    @classmethod
    def of(cls, measurement: Measurement, noisy: Integers, alpha: float) -> Centred:
        """Those of noisy sums (cells x coordinates); intervals of the means miss with a part of alpha."""
        rows, frame = rows_of(measurement, noisy), Frame.of(measurement.statistic)
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
        value, low, high, _, known = solved(self.rows, pivot, SPREAD * alpha)
        low = np.where(known, np.clip(low, 0, 0.25), 0.0)
        return Box(value, low, np.where(known, np.clip(high, 0, 0.25), 0.25))


Solution = tuple[Floats, Floats, Floats, Floats, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]
"""Values, lows, highs and standard errors by cell; where they are known; where there is anything to be known."""
"""Values, ends, standard errors, where there are ends, and where there is a value."""


def found(centred: Centred, pivot: Pivot, alpha: float, there: npt.NDArray[np.bool_]) -> Solution:
    """What the pivot says: values, ends, errors, where they are known, and where there is anything to be known."""
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
        frame = Frame.of(measurement.statistic)
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
        return outer_half(measurement, alpha)

    def expected(self, measurement: Measurement, *, integer: bool, alpha: float) -> tuple[ExpectedError, ...]:
        """Of values spread evenly over both ranges, independently; at most half the range, where there is one."""
        statistic = measurement.statistic
        parts = (statistic.degree + 1) * (statistic.second_degree + 1)
        column = self.column(measurement, evenly_spread(measurement, parts), integer=integer, alpha=alpha)
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


def range_of(encoding: Encoding) -> float:
    """What 1 is worth in units of a value."""
    return float(encoding.step * encoding.highest)


def ranges(measurement: Measurement) -> tuple[float, float]:
    """What 1 is worth in units of the first value and of the second."""
    statistic = measurement.statistic
    assert statistic.second is not None
    return range_of(encoding_of(statistic)), range_of(statistic.second)


def above(count: Floats, least: int) -> npt.NDArray[np.bool_]:
    """Where there are more rows than so many."""
    return (count > least).astype(np.bool_)
