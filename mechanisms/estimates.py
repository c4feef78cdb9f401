"""Estimates: what the noisy sums of one statistic say, with error bounds. Post-processing: costs nothing.

| statistic | rows | values | sum of t | sum of t^2 |
|---|---|---|---|---|
| units, count | 1 | 1 | | |
| sum | | | S (step S is the sum) | |
| moments, degree 1: (W-T, T) | (1, 1)/W | (1, 1)/W | (0, 1)/W | |
| the same, raised and lowered | (1, 1, 1, 1)/W | (1, 1, 1, 1)/W | clipped (0, 1, 1, 0)/W, scaled (0, 1, 0, 1)/W | |
| moments, degree 2: ((W-T)^2, 2T(W-T), T^2) | (1, 1, 1)/W^2 | (1, 1, 1)/W^2 | (0, 1/2, 1)/W^2 | (0, 0, 1)/W^2 |

Here t = T/W lies in [0, 1] and x = offset + step W t. With NULL rows counted, `rows` has the last coordinate too. A sum
is the clipped one where there are two, an average takes the scaled one. All forms are linear in the sums; averages and
variances are ratios of two of them. See moments.md and bounding.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from mechanisms.interval import Floats, ratio_bounds
from mechanisms.measurement import Integers, Measurement
from privacy.statistic import Encoding, Estimate, EstimateKind, Statistic, StatisticKind

__all__ = [
    "GROUP_SIZES",
    "Column",
    "ExpectedError",
    "estimate_column",
    "expected_errors",
    "linear_form",
    "linear_half_width",
    "linear_standard_error",
    "simulate_column",
]

Form = tuple[Fraction, ...]

_DEVIATIONS = (EstimateKind.DEVIATION_POPULATION, EstimateKind.DEVIATION_SAMPLE)
_SAMPLE = (EstimateKind.VARIANCE_SAMPLE, EstimateKind.DEVIATION_SAMPLE)

_LIMIT = 2**61


@dataclass(frozen=True, slots=True)
class Column:
    """Values of one estimate with their standard errors and interval ends, one per cell."""

    values: tuple[Any, ...]
    standard_errors: tuple[float | None, ...]
    lows: tuple[float | int | None, ...]
    highs: tuple[float | int | None, ...]


GROUP_SIZES = (100, 1_000, 10_000)
"""Numbers of rows for which the error of a ratio is told in advance."""


@dataclass(frozen=True, slots=True)
class ExpectedError:
    """The error that a ratio would have in a group of so many rows; not read from data.

    `standard_error` and `half_width` are those of values spread evenly over their bounds; `standard_error_at_most` is
    that of the worst values within them.
    """

    rows: int
    standard_error: float | None
    half_width: float | None
    standard_error_at_most: float | None


def linear_form(statistic: Statistic, kind: EstimateKind) -> Form | None:
    """Coefficients of the estimate on the integer sums, or None when it is not linear.

    Errors: ValueError when the statistic does not hold the estimate.
    """
    plain = statistic.kind in (StatisticKind.UNITS, StatisticKind.COUNT)
    if plain and kind in (EstimateKind.ROWS, EstimateKind.VALUES, EstimateKind.UNITS):
        if kind is EstimateKind.UNITS and statistic.kind is StatisticKind.COUNT:
            raise ValueError("a count of rows does not tell the number of units")
        return (Fraction(1) if statistic.encoding is None else statistic.encoding.step,)
    if statistic.kind is StatisticKind.SUM and kind is EstimateKind.SUM:
        return (_encoding(statistic).step,)
    if statistic.kind is not StatisticKind.MOMENTS or kind is EstimateKind.UNITS:
        raise ValueError("the statistic does not hold the estimate")
    if kind is EstimateKind.ROWS:
        one = _per_row(statistic)
        return (one,) * statistic.coordinates
    if kind is EstimateKind.VALUES:
        return _values_form(statistic)
    if kind is EstimateKind.SUM:
        encoding = _encoding(statistic)
        width = encoding.step * encoding.highest
        values, firsts = _values_form(statistic), _clipped_form(statistic)
        return tuple(encoding.offset * value + width * first for value, first in zip(values, firsts, strict=True))
    if kind is not EstimateKind.AVERAGE and statistic.degree < 2:
        raise ValueError("the statistic does not hold the estimate")
    return None


def _encoding(statistic: Statistic) -> Encoding:
    assert statistic.encoding is not None
    return statistic.encoding


def _per_row(statistic: Statistic) -> Fraction:
    return Fraction(1, _encoding(statistic).highest ** statistic.degree)


def _padded(statistic: Statistic, *form: Fraction, raised: int, lowered: int) -> Form:
    """The form on the value coordinates, with zero for the NULL rows."""
    one = _per_row(statistic)
    values = (*form, *(Fraction(raised),) * statistic.raised, *(Fraction(lowered),) * statistic.lowered)
    return tuple(one * part for part in values) + (Fraction(0),) * statistic.counts_nulls


def _values_form(statistic: Statistic) -> Form:
    return _padded(statistic, *(Fraction(1),) * (statistic.degree + 1), raised=1, lowered=1)


def _first_form(statistic: Statistic) -> Form:
    """Sum of t of the scaled rows: the numerator of an average."""
    if statistic.degree == 1:
        return _padded(statistic, Fraction(0), Fraction(1), raised=0, lowered=1)
    return _padded(statistic, Fraction(0), Fraction(1, 2), Fraction(1), raised=0, lowered=0)


def _clipped_form(statistic: Statistic) -> Form:
    """Sum of t as a SUM bounds it; where there is only one sum of t, that one."""
    if statistic.raised or statistic.lowered:
        return _padded(statistic, Fraction(0), Fraction(1), raised=1, lowered=0)
    return _first_form(statistic)


def linear_half_width(measurement: Measurement, form: Form, alpha: float) -> float:
    """Half the width of the interval of a linear estimate; the same for every cell and independent of data."""
    if len(form) == 1:
        # Exact: the noise is an integer, and coarse sums add at most half a grid step.
        error = measurement.quantile_single(alpha) + (measurement.rounding - 0.5)
        return abs(float(form[0] * measurement.grid)) * error
    weights = np.array([[abs(float(part * measurement.grid)) for part in form]])
    return float(measurement.quantile(weights, alpha)[0])


def linear_standard_error(measurement: Measurement, form: Form, *, integer: bool = False) -> float:
    """The standard error of a linear estimate; independent of data.

    `integer`: the estimate is rounded to a whole number, as the true value is, and the rounding is part of the error.
    """
    weights = [float(part * measurement.grid) for part in form]
    variance = measurement.variance() * math.fsum(weight**2 for weight in weights)
    if not integer or all((part * measurement.grid).denominator == 1 for part in form):
        return math.sqrt(variance)
    return math.sqrt(_rounded_variance(measurement, np.array([[abs(weight) for weight in weights]]), variance))


def _rounded_variance(measurement: Measurement, weights: Floats, variance: float) -> float:
    """The variance of the weighted noise after rounding to whole numbers.

    With wide noise the rounding adds 1/12; E R^2 = sum over j >= 1 of (2j - 1) P(|R| >= j) where it is narrow.
    """
    if variance > 4:
        return variance + 1 / 12
    return math.fsum((2 * j - 1) * float(measurement.tail(weights, j - 0.5)[0]) for j in range(1, 120))


def estimate_column(measurement: Measurement, estimate: Estimate, noisy: Integers, *, alpha: float) -> Column:
    """One column of the answer.

    Shape: `noisy` cells x coordinates in units of the measurement's grid.
    Edge cases:
    | noisy denominator not positive (for sample variance: one or less) | None, interval the whole range of values |
    | average beyond the clip bounds | the bound |
    | variance below zero | zero; above the greatest possible | the greatest possible |
    | negative noisy count | shown as it is: cutting it at zero would bias every sum of counts |
    """
    form = linear_form(measurement.statistic, estimate.kind)
    if form is not None:
        return _linear(measurement, form, noisy, integer=estimate.integer, alpha=alpha)
    if estimate.kind is EstimateKind.AVERAGE:
        return _average(measurement, noisy, alpha=alpha)
    return _variance(measurement, estimate.kind, noisy, alpha=alpha)


def expected_errors(measurement: Measurement, estimate: Estimate, *, alpha: float) -> tuple[ExpectedError, ...]:
    """What `estimate_column` would say of a ratio in groups of `GROUP_SIZES` rows, without noise. Reads no data.

    With t in [0, 1], noise of standard deviation s in each coordinate, n rows, mean c and variance v, the standard
    error is s |w| / n, where w are the weights of the ratio less the ratio itself: at degree 1 (-c, 1-c) for the
    average, at degree 2 (-c, 1/2-c, 1-c), and (c^2-v, c^2-c-v, (1-c)^2-v) for the variance. Each is largest when all
    values stand at one bound (c = v = 0): the first two are convex in c, with equal ends; |w|^2 of the variance is
    convex in v, and with p = c(1-c) it is 1 - 4p + 3p^2 at v = 0 and 1 - 6p + 12p^2 at v = p, both at most 1. The error
    of a deviation is at most the root of the variance's. A raised coordinate has the weight -c and a lowered one 1-c,
    so |w|^2 is then 2 at c = 1 for raised, at c = 0 for lowered, at both for both, and convex between.
    """
    statistic = measurement.statistic
    size = _encoding(statistic).highest ** statistic.degree
    parts = statistic.degree + 1
    rest = [0] * (statistic.coordinates - parts)
    worst = 1 if statistic.raised and not statistic.lowered else 0
    cells: list[list[int]] = []
    for rows in GROUP_SIZES:
        # Evenly spread values: the Bernstein polynomials of one degree have equal integrals.
        even = round(Fraction(rows * size, parts) / measurement.grid)
        cells.append([even] * parts + rest)
        extreme = [0] * parts
        extreme[worst] = rows * size // measurement.grid
        cells.append(extreme + rest)
    small = max(map(max, cells)) < _LIMIT
    column = estimate_column(measurement, estimate, np.array(cells, dtype=np.int64 if small else object), alpha=alpha)
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


def _linear(measurement: Measurement, form: Form, noisy: Integers, *, integer: bool, alpha: float) -> Column:
    cells = len(noisy)
    tops, bottom = _combine(noisy, tuple(part * measurement.grid for part in form))
    reach = linear_half_width(measurement, form, alpha)
    error = linear_standard_error(measurement, form, integer=integer)
    shown = measurement.shown_ends(noisy, alpha) if form == (Fraction(1),) else None
    if shown is not None:
        least, most = shown
        return Column(tuple(noisy[:, 0].tolist()), (error,) * cells, tuple(least.tolist()), tuple(most.tolist()))
    lows: list[float | int]
    highs: list[float | int]
    values: list[Any]
    if integer:
        values = ((2 * tops + bottom) // (2 * bottom)).tolist()
        # The true value is whole as well, so the ends are the whole numbers within reach of the unrounded estimate.
        # That of scaled rows is not, so there the ends are the next whole numbers outside.
        margin = math.ceil(reach * bottom)
        if margin > _LIMIT:
            tops = tops.astype(object)
        if measurement.statistic.fractional:
            lows, highs = ((tops - margin) // bottom).tolist(), (-(-(tops + margin) // bottom)).tolist()
        else:
            lows, highs = (-((margin - tops) // bottom)).tolist(), ((tops + margin) // bottom).tolist()
        lows = [min(low, value) for low, value in zip(lows, values, strict=True)]
        highs = [max(high, value) for high, value in zip(highs, values, strict=True)]
    else:
        values = _divide(tops, bottom).tolist()
        lows, highs = [value - reach for value in values], [value + reach for value in values]
    return Column(tuple(values), (error,) * cells, tuple(lows), tuple(highs))


def _combine(noisy: Integers, form: Form) -> tuple[Integers, int]:
    """The linear form of each row as an exact integer over a common denominator; twice it fits where it is int64."""
    bottom = math.lcm(*(part.denominator for part in form))
    factors = [int(part * bottom) for part in form]
    total: Integers
    greatest = int(np.abs(noisy).max()) if noisy.size else 0
    if noisy.dtype != np.int64 or sum(map(abs, factors)) * greatest + bottom > _LIMIT:
        noisy = noisy.astype(object)
    total = noisy[:, 0] * factors[0]
    for i in range(1, len(factors)):
        total = total + noisy[:, i] * factors[i]
    return total, bottom


def _divide(tops: Integers, bottom: Integers | int) -> Floats:
    """Quotients of exact integers as floats."""
    if tops.dtype == np.int64 and (isinstance(bottom, int) or bottom.dtype == np.int64):
        result: Floats = tops / (float(bottom) if isinstance(bottom, int) else bottom)
        return result
    if isinstance(bottom, int):
        return np.array([int(top) / bottom for top in tops], dtype=np.float64)
    return np.array([int(top) / int(low) for top, low in zip(tops, bottom, strict=True)], dtype=np.float64)


def _moments(measurement: Measurement, noisy: Integers) -> tuple[Integers, Integers, Integers]:
    """Exact integers proportional to (n, sum of t, sum of t^2), the last two with factors 2 and 1 at degree 2.

    Degree 1: A + B, B, unused (the scaled sum where there are two). Degree 2: m0 + m1 + m2, m1 + 2 m2, m2.
    """
    statistic = measurement.statistic
    if statistic.degree == 1:
        rows, first = noisy[:, 0] + noisy[:, 1], noisy[:, 1]
        for place in range(2, 2 + statistic.raised + statistic.lowered):
            rows = rows + noisy[:, place]
        if statistic.lowered:
            first = first + noisy[:, 2 + statistic.raised]
        return rows, first, first
    return noisy[:, 0] + noisy[:, 1] + noisy[:, 2], noisy[:, 1] + 2 * noisy[:, 2], noisy[:, 2]


def _average(measurement: Measurement, noisy: Integers, *, alpha: float) -> Column:
    encoding = _encoding(measurement.statistic)
    offset, width = float(encoding.offset), float(encoding.step * encoding.highest)
    rows, first, _ = _moments(measurement, noisy)
    there = (rows > 0).astype(np.bool_)
    doubled = measurement.statistic.degree
    mean = np.clip(_divide(first, np.where(there, doubled * rows, 1)), 0, 1)
    low, high, error = _mean_bounds(measurement, noisy, alpha)
    low, high = np.minimum(low, mean), np.maximum(high, mean)
    low, high = np.where(there, low, 0.0), np.where(there, high, 1.0)
    least, most = offset, float(encoding.offset + encoding.step * encoding.highest)
    return Column(
        values=_cells(np.clip(offset + width * mean, least, most), there),
        standard_errors=_cells(np.minimum(error, 0.5) * width, there),
        lows=tuple(np.clip(offset + width * low, least, most).tolist()),
        highs=tuple(np.clip(offset + width * high, least, most).tolist()),
    )


def _cells(values: Floats, there: Any) -> tuple[float | None, ...]:
    return tuple(value if known else None for value, known in zip(values.tolist(), there.tolist(), strict=True))


def _floats(form: Form) -> Floats:
    return np.array([float(part) for part in form])


def _mean_bounds(measurement: Measurement, noisy: Integers, alpha: float) -> tuple[Floats, Floats, Floats]:
    """Low and high ends of the mean of t within [0, 1], and its standard error."""
    scale = _per_row(measurement.statistic)
    top = _floats(tuple(part / scale for part in _first_form(measurement.statistic)))
    bottom = _floats(tuple(part / scale for part in _values_form(measurement.statistic)))
    return _bounded_ratio(measurement, noisy.astype(np.float64), top, bottom, alpha, greatest=1.0)


def _bounded_ratio(
    measurement: Measurement, noisy: Floats, top: Floats, bottom: Floats, alpha: float, *, greatest: float
) -> tuple[Floats, Floats, Floats]:
    """Ends of a ratio that is known to lie in [0, greatest], and its standard error by the delta method."""
    low, high, known = ratio_bounds(noisy, top, bottom, lambda weights: measurement.quantile(weights, alpha))
    low = np.where(known, np.clip(low, 0, greatest), 0.0)
    high = np.where(known, np.clip(high, 0, greatest), greatest)
    # Far below any number of rows, and far enough from zero that wide noise over it stays finite.
    rows = np.maximum(noisy @ bottom, 1e-100)
    ratio = np.clip((noisy * top).sum(axis=-1) / rows, 0, greatest)
    weights = top - ratio[:, None] * bottom
    error: Floats = np.sqrt(measurement.variance() * (weights**2).sum(axis=-1)) / rows
    return low, high, np.minimum(error, greatest / 2)


def _variance(measurement: Measurement, kind: EstimateKind, noisy: Integers, *, alpha: float) -> Column:
    encoding = _encoding(measurement.statistic)
    width = float(encoding.step * encoding.highest)
    rows, first, second = (part.astype(object) for part in _moments(measurement, noisy))
    # Exactly (sum t^2)/n - (sum t / n)^2 = (4 n second - first^2) / (4 n^2): floats would cancel.
    tops, bottoms = 4 * rows * second - first * first, 4 * rows * rows
    sample = kind in _SAMPLE
    count = _divide(rows, 1) * float(measurement.grid * _per_row(measurement.statistic))
    there = count > (1 if sample else 0)
    plain = np.clip(_divide(tops, np.where(there, bottoms, 1)), 0, 0.25)
    low, high, error = _variance_bounds(measurement, noisy, alpha, sample=sample)
    if sample:
        least, most = _sample_factors(measurement, noisy, alpha)
        factor = np.where(there, count / np.where(there, count - 1, 1), 1.0)
        plain, error = np.minimum(plain * factor, 0.5), error * factor
        low, high = low * least, np.minimum(high * most, 0.5)
    greatest = 0.5 if sample else 0.25
    low, high = np.minimum(low, plain), np.maximum(high, plain)
    low, high = np.where(there, low, 0.0), np.where(there, high, greatest)
    if kind in _DEVIATIONS:
        root = np.sqrt(plain)
        # Near zero the square root has no slope: there the error is at most the root of the variance's error.
        error = np.minimum(error / np.maximum(2 * root, 1e-300), np.sqrt(error))
        values, low, high, power = root, np.sqrt(low), np.sqrt(high), 1
    else:
        values, power = plain, 2
    unit = width**power
    return Column(
        values=_cells(values * unit, there),
        standard_errors=_cells(np.minimum(error, greatest) * unit, there),
        lows=tuple((low * unit).tolist()),
        highs=tuple((high * unit).tolist()),
    )


def _variance_bounds(
    measurement: Measurement, noisy: Integers, alpha: float, *, sample: bool
) -> tuple[Floats, Floats, Floats]:
    """Ends of the population variance of t, and its standard error.

    For every c, E(t-c)^2 is a ratio with an exact interval, and the variance is the one at c = E t. So the union of
    those intervals over an interval for E t covers it; one tenth of alpha pays for the latter (and half of that again
    for the number of rows, where the sample variance needs it). The ratio is a parabola in c that is least at the
    noisy mean, so the mean and the two ends stand for the whole interval.
    """
    values = noisy.astype(np.float64)
    least, most, _ = _mean_bounds(measurement, noisy, 0.1 * alpha)
    rest = (0.85 if sample else 0.9) * alpha
    one = np.concatenate([np.ones(3), np.zeros(int(measurement.statistic.counts_nulls))])
    firsts = values @ np.concatenate([[0.0, 0.5, 1.0], np.zeros(int(measurement.statistic.counts_nulls))])
    mean = np.clip(firsts / np.maximum(values @ one, 1e-100), least, most)
    lows, highs, errors = [], [], []
    for c in (mean, least, most):
        # (t-c)^2 on the Bernstein basis: its values c^2, c^2 - c and (1-c)^2.
        top = np.zeros_like(values)
        top[:, 0], top[:, 1], top[:, 2] = c**2, c**2 - c, (1 - c) ** 2
        low, high, error = _bounded_ratio(measurement, values, top, one, rest, greatest=1.0)
        lows.append(low)
        highs.append(high)
        errors.append(error)
    unknown = most - least >= 1
    low = np.where(unknown, 0.0, np.clip(np.minimum.reduce(lows), 0, 0.25))
    high = np.where(unknown, 0.25, np.clip(np.maximum.reduce(highs), 0, 0.25))
    return low, high, np.minimum(errors[0], 0.125)


def _sample_factors(measurement: Measurement, noisy: Integers, alpha: float) -> tuple[Floats, Floats]:
    """Ends of n / (n - 1) for the true number of rows n, two or more, at 0.05 alpha."""
    form = _values_form(measurement.statistic)
    reach = linear_half_width(measurement, form, 0.05 * alpha)
    tops, bottom = _combine(noisy, tuple(part * measurement.grid for part in form))
    count = _divide(tops, bottom)
    most, least = np.maximum(count + reach, 2.0), np.maximum(count - reach, 2.0)
    return most / (most - 1), least / (least - 1)


def simulate_column(measurement: Measurement, estimate: Estimate, noisy: Floats) -> Floats:
    """The estimate of simulated noisy sums in floats, NaN where it is undefined. Simulations x cells."""
    statistic = measurement.statistic
    form = linear_form(statistic, estimate.kind)
    if form is not None:
        result: Floats = noisy @ _floats(tuple(part * measurement.grid for part in form))
        return np.rint(result) if estimate.integer else result
    encoding = _encoding(statistic)
    offset, width = float(encoding.offset), float(encoding.step * encoding.highest)
    factor = float(measurement.grid * _per_row(statistic))
    values = statistic.degree + 1 + statistic.raised + statistic.lowered
    rows = noisy[..., :values].sum(axis=-1) * factor
    sample = estimate.kind in _SAMPLE
    there = rows > (1 if sample else 0)
    safe = np.where(there, rows, 2.0)
    first = noisy[..., 1] if statistic.degree == 1 else noisy[..., 1] / 2 + noisy[..., 2]
    if statistic.lowered:
        first = first + noisy[..., values - 1]
    mean = np.clip(first * factor / safe, 0, 1)
    if estimate.kind is EstimateKind.AVERAGE:
        return np.where(there, offset + width * mean, np.nan)
    exact_mean = first * factor / safe
    variance = np.clip(noisy[..., 2] * factor / safe - exact_mean**2, 0, 0.25)
    if sample:
        variance = np.minimum(variance * safe / (safe - 1), 0.5)
    if estimate.kind in _DEVIATIONS:
        return np.where(there, np.sqrt(variance) * width, np.nan)
    return np.where(there, variance * width**2, np.nan)
