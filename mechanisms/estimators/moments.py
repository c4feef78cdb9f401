"""Estimators of averages, variances and deviations: ratios of linear forms of moments. See moments.md.

Edge cases:

| noisy denominator not positive (for sample variance: one or less) | None, interval the whole range of values |
| average beyond the clip bounds | the bound |
| variance below zero | zero; above the greatest possible | the greatest possible |
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from mechanisms.estimators.estimator import GROUP_SIZES, Column, Estimator, ExpectedError
from mechanisms.estimators.forms import LIMIT, divide, encoding_of, outer_half, per_row
from mechanisms.estimators.moment_sums import (
    cells,
    count_bounds,
    mean_bounds,
    moments_of,
    population_variance,
    powers,
    scale_of_values,
    simulated_moments,
    squared_distance,
)
from mechanisms.interval import Floats
from mechanisms.measurement import Integers, Measurement
from privacy.aggregate import AggregateFunction
from privacy.statistic import Statistic

__all__ = ["ESTIMATORS", "Average", "Ratio", "Spread"]


@dataclass(frozen=True, slots=True)
class Ratio(Estimator):
    """An aggregate of moments that is not linear: its error depends on the number of rows, and on the values."""

    def form(self, statistic: Statistic) -> None:
        """None. Errors: ValueError when the statistic does not hold the aggregate."""
        held = statistic.kind is self.function.statistic and statistic.degree >= self.function.degree
        if not held:
            raise ValueError("the statistic does not hold the estimate")

    @abstractmethod
    def worst(self, statistic: Statistic) -> int:
        """The coordinate that holds all rows where the standard error of a group of that many rows is greatest.

        Each estimator has to prove where that is; no coordinate is right for all.
        """

    def rows_of_noise(self, measurement: Measurement, *, alpha: float) -> float:
        """q: with so many rows the interval of an average is at least as wide, to either side, as its values' range.

        With the true mean c the error is that of (sum of t - c n) / n, with the weights c and 1 - c on two coordinates.
        Of all such pairs the halves give the most peaked sum (Proschan 1965, Theorem 2.3: symmetric log-concave noise),
        and the noise of further coordinates only adds. A variance is a ratio over the same n, whose own count is then
        within its noise.
        """
        return outer_half(measurement, alpha)

    def of_nobody(self, measurement: Measurement, noisy: Integers, *, alpha: float) -> tuple[bool, ...]:
        """Where the interval of the number of rows with a value reaches zero."""
        return tuple((count_bounds(measurement, noisy, alpha)[0] <= 0).tolist())

    def expected(self, measurement: Measurement, *, integer: bool, alpha: float) -> tuple[ExpectedError, ...]:
        """What `column` says of groups without noise: of values spread evenly, and of the worst ones."""
        statistic = measurement.statistic
        size = statistic.row_units
        parts = statistic.degree + 1
        rest = [0] * (statistic.coordinates - parts)
        worst = self.worst(statistic)
        made: list[list[int]] = []
        for rows in GROUP_SIZES:
            # Evenly spread values: the Bernstein polynomials of one degree have equal integrals.
            even = round(Fraction(rows * size, parts) / measurement.grid)
            made.append([even] * parts + rest)
            extreme = [0] * parts
            extreme[worst] = rows * size // measurement.grid
            made.append(extreme + rest)
        small = max(map(max, made)) < LIMIT
        noiseless: Integers = np.array(made, dtype=np.int64 if small else object)
        column = self.column(measurement, noiseless, integer=integer, alpha=alpha)
        result = []
        for i, rows in enumerate(GROUP_SIZES):
            low, high = column.lows[2 * i], column.highs[2 * i]
            result.append(
                ExpectedError(
                    rows=rows,
                    standard_error=column.standard_errors[2 * i],
                    half_width=None if low is None or high is None else (high - low) / 2,
                    standard_error_at_most=column.standard_errors[2 * i + 1],
                )
            )
        return tuple(result)


@dataclass(frozen=True, slots=True)
class Average(Ratio):
    """The mean of x.

    With t in [0, 1], noise of standard deviation s in each coordinate, n rows and mean c, the standard error of the
    mean of t is s |w| / n with the weights w of the ratio less the ratio itself: at degree 1 (-c, 1-c), at degree 2
    (-c, 1/2-c, 1-c).
    """

    def worst(self, statistic: Statistic) -> int:
        """All values at one bound: |w|^2 is convex in c, with equal ends.

        A raised coordinate has the weight -c and a lowered one 1-c, so |w|^2 is then 2 at c = 1 for raised, at c = 0
        for lowered, at both for both, and convex between.
        """
        return 1 if statistic.raised and not statistic.lowered else 0

    def ends(self, measurement: Measurement) -> tuple[float, float]:
        """The bounds of the values."""
        encoding = encoding_of(measurement.statistic)
        return float(encoding.offset), float(encoding.offset + encoding.step * encoding.highest)

    def truth(self, values: Floats, *, nulls: int) -> float | None:
        """The mean of the values."""
        return float(values.mean()) if values.size else None

    def column(self, measurement: Measurement, noisy: Integers, *, integer: bool, alpha: float) -> Column:
        """Fieller's set of the ratio, within the bounds of the values."""
        assert not integer
        encoding = encoding_of(measurement.statistic)
        offset, width = float(encoding.offset), scale_of_values(measurement)
        rows, first, _ = moments_of(measurement, noisy)
        there = (rows > 0).astype(np.bool_)
        doubled = measurement.statistic.degree
        mean = np.clip(divide(first, np.where(there, doubled * rows, 1)), 0, 1)
        low, high, error = mean_bounds(measurement, noisy, alpha)
        low, high = np.minimum(low, mean), np.maximum(high, mean)
        low, high = np.where(there, low, 0.0), np.where(there, high, 1.0)
        least, most = self.ends(measurement)
        return Column(
            values=cells(np.clip(offset + width * mean, least, most), there),
            standard_errors=cells(np.minimum(error, 0.5) * width, there),
            lows=tuple(np.clip(offset + width * low, least, most).tolist()),
            highs=tuple(np.clip(offset + width * high, least, most).tolist()),
        )

    def simulated(self, measurement: Measurement, noisy: Floats, *, integer: bool) -> Floats:
        """The clipped mean."""
        assert not integer
        rows, mean, _ = simulated_moments(measurement, noisy)
        offset = float(encoding_of(measurement.statistic).offset)
        clipped = np.clip(mean, 0, 1)
        return np.where(rows > 0, offset + scale_of_values(measurement) * clipped, np.nan)


@dataclass(frozen=True, slots=True)
class Spread(Ratio):
    """The variance of x or its root, over n rows or (`sample`) over n - 1.

    The variance v of t has the weights (c^2-v, c^2-c-v, (1-c)^2-v), as those of `Average`.
    """

    sample: bool
    root: bool

    def worst(self, statistic: Statistic) -> int:
        """All values at one bound (c = v = 0).

        |w|^2 is convex in v, and with p = c(1-c) it is 1 - 4p + 3p^2 at v = 0 and 1 - 6p + 12p^2 at v = p, both at
        most 1. The error of a deviation is at most the root of the variance's.
        """
        assert not statistic.raised
        assert not statistic.lowered
        return 0

    def ends(self, measurement: Measurement) -> tuple[float, float]:
        """Zero, and what values at both ends of the range would give."""
        unit, greatest = scale_of_values(measurement), 0.5 if self.sample else 0.25
        return 0.0, math.sqrt(greatest) * unit if self.root else greatest * unit**2

    def truth(self, values: Floats, *, nulls: int) -> float | None:
        """The squares of the distances from the mean, summed, over n or n - 1."""
        over = values.size - self.sample
        if over < 1:
            return None
        variance = float(((values - values.mean()) ** 2).sum()) / over
        return math.sqrt(variance) if self.root else variance

    def column(self, measurement: Measurement, noisy: Integers, *, integer: bool, alpha: float) -> Column:
        """`population_variance`, times n / (n - 1) and under the root where that is asked for."""
        assert not integer
        found = population_variance(measurement, noisy, alpha, counted=self.sample)
        there = found.count > (1 if self.sample else 0)
        plain, low, high, error = found.values, found.lows, found.highs, found.errors
        if self.sample:
            fewest, most = (np.maximum(end, 2.0) for end in count_bounds(measurement, noisy, 0.05 * alpha))
            factor = np.where(there, found.count / np.where(there, found.count - 1, 1), 1.0)
            plain, error = np.minimum(plain * factor, 0.5), error * factor
            low, high = low * (most / (most - 1)), np.minimum(high * (fewest / (fewest - 1)), 0.5)
        greatest = 0.5 if self.sample else 0.25
        low, high = np.minimum(low, plain), np.maximum(high, plain)
        low, high = np.where(there, low, 0.0), np.where(there, high, greatest)
        unit = scale_of_values(measurement)
        if self.root:
            root = np.sqrt(plain)
            # Near zero the square root has no slope: there the error is at most the root of the variance's error.
            error = np.minimum(error / np.maximum(2 * root, 1e-300), np.sqrt(error))
            plain, low, high = root, np.sqrt(low), np.sqrt(high)
        else:
            unit = unit**2
        return Column(
            values=cells(plain * unit, there),
            standard_errors=cells(np.minimum(error, greatest) * unit, there),
            lows=tuple((low * unit).tolist()),
            highs=tuple((high * unit).tolist()),
        )

    def simulated(self, measurement: Measurement, noisy: Floats, *, integer: bool) -> Floats:
        """The same without intervals."""
        assert not integer
        rows, mean, squares = simulated_moments(measurement, noisy)
        there = rows > (1 if self.sample else 0)
        variance = np.clip(squares - mean**2, 0, 0.25)
        if self.sample:
            safe = np.where(there, rows, 2.0)
            variance = np.minimum(variance * safe / (safe - 1), 0.5)
        width = scale_of_values(measurement)
        return np.where(there, np.sqrt(variance) * width if self.root else variance * width**2, np.nan)


@dataclass(frozen=True, slots=True)
class StandardError(Ratio):
    """The standard error of the mean: the root of v / n, with the population variance v of t.

    The noise of the coordinates moves v / n with the weights (c^2-2v, c^2-c-2v, (1-c)^2-2v) over n^2.
    """

    widening: ClassVar[float] = 1.35
    """The ends of v are divided by those of n, as if both strayed to their worst at once."""

    def worst(self, statistic: Statistic) -> int:
        """All values at one bound (c = v = 0).

        With p = c(1-c), |w|^2 is 1 - 4p + 3p^2 at v = 0 and 1 - 8p + 27p^2 at v = p, both at most 1, and convex
        between. The error of a root is at most the root of the error.
        """
        return 0

    def ends(self, measurement: Measurement) -> tuple[float, float]:
        """Zero, and what a single row with the greatest variance would have."""
        return 0.0, 0.5 * scale_of_values(measurement)

    def truth(self, values: Floats, *, nulls: int) -> float | None:
        """The deviation of the values over the root of their number."""
        return float(values.std() / math.sqrt(values.size)) if values.size else None

    def column(self, measurement: Measurement, noisy: Integers, *, integer: bool, alpha: float) -> Column:
        """The root of v / n; its ends are those of v, over those of n, which miss with a twentieth of alpha."""
        assert not integer
        found = population_variance(measurement, noisy, alpha, counted=True)
        fewest, most = (np.maximum(end, 1.0) for end in count_bounds(measurement, noisy, 0.05 * alpha))
        there = found.count > 0
        count = np.where(there, found.count, 1.0)
        squared = np.minimum(found.values / count, 0.25)
        low = np.where(there, np.minimum(found.lows / most, squared), 0.0)
        high = np.where(there, np.maximum(found.highs / fewest, squared), 0.25)
        _, mean, _ = simulated_moments(measurement, noisy.astype(np.float64))
        mean = np.clip(mean, 0, 1)
        one, _, _ = powers(measurement.statistic)
        weights = squared_distance(measurement.statistic, mean) - 2 * np.outer(found.values, one)
        step = float(measurement.grid * per_row(measurement.statistic))
        error = np.sqrt(measurement.variances(weights)) * step / count**2
        error = np.minimum(error, 0.25)
        root = np.sqrt(squared)
        error = np.minimum(error / np.maximum(2 * root, 1e-300), np.sqrt(error))
        unit = scale_of_values(measurement)
        return Column(
            values=cells(root * unit, there),
            standard_errors=cells(np.minimum(error, 0.5) * unit, there),
            lows=tuple((np.sqrt(low) * unit).tolist()),
            highs=tuple((np.sqrt(high) * unit).tolist()),
        )

    def simulated(self, measurement: Measurement, noisy: Floats, *, integer: bool) -> Floats:
        """The same without intervals."""
        assert not integer
        rows, mean, squares = simulated_moments(measurement, noisy)
        count = np.where(rows > 0, rows, 1.0)
        root = np.sqrt(np.minimum(np.clip(squares - mean**2, 0, 0.25) / count, 0.25))
        return np.where(rows > 0, root * scale_of_values(measurement), np.nan)


ESTIMATORS: tuple[Estimator, ...] = (
    Average(AggregateFunction.AVERAGE),
    Spread(AggregateFunction.VARIANCE_POPULATION, sample=False, root=False),
    Spread(AggregateFunction.VARIANCE_SAMPLE, sample=True, root=False),
    Spread(AggregateFunction.DEVIATION_POPULATION, sample=False, root=True),
    Spread(AggregateFunction.DEVIATION_SAMPLE, sample=True, root=True),
    StandardError(AggregateFunction.STANDARD_ERROR),
)
