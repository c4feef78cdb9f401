"""What the noisy sums of moments say: numbers of rows, means, variances, with their ends. See moments.md."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from mechanisms.estimators.forms import (
    combine,
    divide,
    encoding_of,
    first_form,
    floats,
    half_width,
    per_row,
    values_form,
)
from mechanisms.interval import Floats
from mechanisms.measurement import Integers, Measurement
from mechanisms.ratios import ratio_bounds
from privacy.statistic import Statistic

__all__ = [
    "PopulationVariance",
    "cells",
    "count_bounds",
    "mean_bounds",
    "moments_of",
    "population_variance",
    "powers",
    "scale_of_values",
    "simulated_moments",
    "squared_distance",
]


@dataclass(frozen=True, slots=True)
class PopulationVariance:
    """The population variance of t, in [0, 1/4], and the noisy number of rows; one entry per cell.

    Where `count` is not positive the values mean nothing.
    """

    count: Floats
    values: Floats
    lows: Floats
    highs: Floats
    errors: Floats


def population_variance(
    measurement: Measurement, noisy: Integers, alpha: float, *, counted: bool
) -> PopulationVariance:
    """The population variance of t. `counted`: a twentieth of alpha is left for the number of rows.

    Exactly (sum t^2)/n - (sum t / n)^2 = (4 n second - first^2) / (4 n^2), in integers: floats would cancel. Of higher
    degrees d it is (d n second - (d-1) first^2) / (d^2 (d-1) n^2).
    """
    rows, first, second = (part.astype(object) for part in moments_of(measurement, noisy))
    degree = measurement.statistic.degree
    if degree == 2:
        tops, bottoms = 4 * rows * second - first * first, 4 * rows * rows
    else:
        tops = degree * rows * second - (degree - 1) * first * first
        bottoms = degree**2 * (degree - 1) * rows * rows
    there = (rows > 0).astype(np.bool_)
    low, high, error = _variance_bounds(measurement, noisy, alpha, counted=counted)
    return PopulationVariance(
        count=divide(rows, 1) * float(measurement.grid * per_row(measurement.statistic)),
        values=np.clip(divide(tops, np.where(there, bottoms, 1)), 0, 0.25),
        lows=low,
        highs=high,
        errors=error,
    )


def count_bounds(measurement: Measurement, noisy: Integers, alpha: float) -> tuple[Floats, Floats]:
    """Ends of the number of rows with a value."""
    form = values_form(measurement.statistic)
    reach = half_width(measurement, form, alpha)
    tops, bottom = combine(noisy, tuple(part * measurement.grid for part in form))
    count = divide(tops, bottom)
    return count - reach, count + reach


def scale_of_values(measurement: Measurement) -> float:
    """What t = 1 is worth in units of x: the width of the values' range."""
    encoding = encoding_of(measurement.statistic)
    return float(encoding.step * encoding.highest)


def cells(values: Floats, there: npt.NDArray[np.bool_]) -> tuple[float | None, ...]:
    """One value per cell, None where there is none."""
    return tuple(value if known else None for value, known in zip(values.tolist(), there.tolist(), strict=True))


def simulated_moments(measurement: Measurement, noisy: Floats) -> tuple[Floats, Floats, Floats]:
    """Number of rows, mean of t and mean of t^2 of simulated sums (the last at degree 2 only); not clipped.

    Where the number of rows is not positive the means are finite and mean nothing.
    """
    statistic = measurement.statistic
    factor = float(measurement.grid * per_row(statistic))
    values = statistic.degree + 1 + statistic.raised + statistic.lowered
    rows = noisy[..., :values].sum(axis=-1) * factor
    safe = np.where(rows > 0, rows, 2.0)
    if statistic.degree == 1:
        first, second = noisy[..., 1], noisy[..., 1]
        if statistic.lowered:
            first = first + noisy[..., values - 1]
    elif statistic.degree == 2:
        first, second = noisy[..., 1] / 2 + noisy[..., 2], noisy[..., 2]
    else:
        degree = statistic.degree
        places = np.arange(degree + 1)
        first = noisy[..., :values] @ (places / degree)
        second = noisy[..., :values] @ (places * (places - 1) / (degree * (degree - 1)))
    return rows, first * factor / safe, second * factor / safe


def moments_of(measurement: Measurement, noisy: Integers) -> tuple[Integers, Integers, Integers]:
    """Exact integers proportional to (n, sum of t, sum of t^2), the last two with factors 2 and 1 at degree 2.

    Degree 1: A + B, B, unused (the scaled sum where there are two). Degree 2: m0 + m1 + m2, m1 + 2 m2, m2. Above, of
    degree d: the sums of m_i, of i m_i and of i(i-1) m_i, with factors d and d(d-1).
    """
    statistic = measurement.statistic
    if statistic.degree == 1:
        rows, first = noisy[:, 0] + noisy[:, 1], noisy[:, 1]
        for place in range(2, 2 + statistic.raised + statistic.lowered):
            rows = rows + noisy[:, place]
        if statistic.lowered:
            first = first + noisy[:, 2 + statistic.raised]
        return rows, first, first
    if statistic.degree == 2:
        return noisy[:, 0] + noisy[:, 1] + noisy[:, 2], noisy[:, 1] + 2 * noisy[:, 2], noisy[:, 2]
    parts = noisy.astype(object)[:, : statistic.degree + 1]
    places = np.arange(statistic.degree + 1).astype(object)
    return parts.sum(axis=1), parts @ places, parts @ (places * (places - 1))


def powers(statistic: Statistic) -> tuple[Floats, Floats, Floats]:
    """1, t and t^2 on the Bernstein basis: a weight for each coordinate, zero for rows without a value."""
    degree, nulls = statistic.degree, np.zeros(int(statistic.counts_nulls))
    one = np.concatenate([np.ones(degree + 1), nulls])
    line = np.concatenate([np.arange(degree + 1) / degree, nulls])
    return one, line, line * (degree * line - 1) / (degree - 1)


def squared_distance(statistic: Statistic, c: Floats) -> Floats:
    """(t-c)^2 on the Bernstein basis (cells x coordinates): at degree 2 it has c^2, c^2 - c and (1-c)^2."""
    one, line, square = powers(statistic)
    if statistic.degree == 2:
        top = np.zeros((len(c), len(one)))
        top[:, 0], top[:, 1], top[:, 2] = c**2, c**2 - c, (1 - c) ** 2
        return top
    found: Floats = square - 2 * np.outer(c, line) + np.outer(c**2, one)
    return found


def mean_bounds(measurement: Measurement, noisy: Integers, alpha: float) -> tuple[Floats, Floats, Floats]:
    """Low and high ends of the mean of t within [0, 1], and its standard error."""
    scale = per_row(measurement.statistic)
    top = floats(tuple(part / scale for part in first_form(measurement.statistic)))
    bottom = floats(tuple(part / scale for part in values_form(measurement.statistic)))
    return _bounded_ratio(measurement, noisy.astype(np.float64), top, bottom, alpha, greatest=1.0)


def _bounded_ratio(
    measurement: Measurement, noisy: Floats, top: Floats, bottom: Floats, alpha: float, *, greatest: float
) -> tuple[Floats, Floats, Floats]:
    """Ends of a ratio that is known to lie in [0, greatest], and its standard error by the delta method."""
    low, high, known = ratio_bounds(noisy, top, bottom, partial(measurement.signed_quantile, alpha=alpha))
    low = np.where(known, np.clip(low, 0, greatest), 0.0)
    high = np.where(known, np.clip(high, 0, greatest), greatest)
    # Far below any number of rows, and far enough from zero that wide noise over it stays finite.
    rows = np.maximum(noisy @ bottom, 1e-100)
    ratio = np.clip((noisy * top).sum(axis=-1) / rows, 0, greatest)
    weights = top - ratio[:, None] * bottom
    error: Floats = np.sqrt(measurement.variances(weights)) / rows
    return low, high, np.minimum(error, greatest / 2)


def _variance_bounds(
    measurement: Measurement, noisy: Integers, alpha: float, *, counted: bool
) -> tuple[Floats, Floats, Floats]:
    """Ends of the population variance of t, and its standard error.

    For every c, E(t-c)^2 is a ratio with an exact interval, and the variance is the one at c = E t. So the union of
    those intervals over an interval for E t covers it; one tenth of alpha pays for the latter (and where the number of
    rows is needed too, half of that again is left for it). The ratio is a parabola in c that is least at the noisy
    mean, so the mean and the two ends stand for the whole interval.
    """
    values = noisy.astype(np.float64)
    least, most, _ = mean_bounds(measurement, noisy, 0.1 * alpha)
    rest = (0.85 if counted else 0.9) * alpha
    one, line, _ = powers(measurement.statistic)
    firsts = values @ line
    mean = np.clip(firsts / np.maximum(values @ one, 1e-100), least, most)
    lows, highs, errors = [], [], []
    for c in (mean, least, most):
        top = squared_distance(measurement.statistic, c)
        low, high, error = _bounded_ratio(measurement, values, top, one, rest, greatest=1.0)
        lows.append(low)
        highs.append(high)
        errors.append(error)
    unknown = most - least >= 1
    low = np.where(unknown, 0.0, np.clip(np.minimum.reduce(lows), 0, 0.25))
    high = np.where(unknown, 0.25, np.clip(np.maximum.reduce(highs), 0, 0.25))
    return low, high, np.minimum(errors[0], 0.125)
