"""Linear forms of the noisy sums: where each statistic keeps rows, values and sums, and the error of such a form.

| statistic | rows | values | sum of t | sum of t^2 |
|---|---|---|---|---|
| units, count | 1 | 1 | | |
| sum | | | S (step S is the sum) | |
| moments, degree 1: (W-T, T) | (1, 1)/W | (1, 1)/W | (0, 1)/W | |
| the same, raised and lowered | (1, 1, 1, 1)/W | (1, 1, 1, 1)/W | clipped (0, 1, 1, 0)/W, scaled (0, 1, 0, 1)/W | |
| moments, degree 2: ((W-T)^2, 2T(W-T), T^2) | (1, 1, 1)/W^2 | (1, 1, 1)/W^2 | (0, 1/2, 1)/W^2 | (0, 0, 1)/W^2 |
| moments, degree d | (1, ..., 1)/W^d | (1, ..., 1)/W^d | (i/d)/W^d | (i(i-1)/(d(d-1)))/W^d |
| products: pairs with both values | (1, ..., 1)/(V^d W^e) | (1, ..., 1)/(V^d W^e) | | |

Here t = T/W lies in [0, 1] and x = offset + step W t. With NULL rows counted, `rows` has the last coordinate too. A sum
is the clipped one where there are two, an average takes the scaled one. See moments.md and bounding.md.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from mechanisms.estimators.estimator import GROUP_SIZES, Form
from mechanisms.interval import Floats
from mechanisms.measurement import Integers, Measurement
from privacy.statistic import Encoding, Statistic

__all__ = [
    "LIMIT",
    "clipped_form",
    "combine",
    "divide",
    "encoding_of",
    "evenly_spread",
    "first_form",
    "floats",
    "half_width",
    "outer_half",
    "per_row",
    "standard_error",
    "values_form",
]

LIMIT = 2**61
"""Integers within this may be added and doubled in 64 bits."""


def encoding_of(statistic: Statistic) -> Encoding:
    """The encoding of a statistic of values, which always has one."""
    assert statistic.encoding is not None
    return statistic.encoding


def per_row(statistic: Statistic) -> Fraction:
    """Rows that one integer unit of moments or products is worth."""
    return Fraction(1, statistic.row_units)


def values_form(statistic: Statistic) -> Form:
    """Number of rows with a value."""
    count = (statistic.degree + 1) * (statistic.second_degree + 1)
    return _padded(statistic, *(Fraction(1),) * count, raised=1, lowered=1)


def first_form(statistic: Statistic) -> Form:
    """Sum of t of the scaled rows: the numerator of an average."""
    if statistic.degree == 1:
        return _padded(statistic, Fraction(0), Fraction(1), raised=0, lowered=1)
    degree = statistic.degree
    return _padded(statistic, *(Fraction(i, degree) for i in range(degree + 1)), raised=0, lowered=0)


def clipped_form(statistic: Statistic) -> Form:
    """Sum of t as a SUM bounds it; where there is only one sum of t, that one."""
    if statistic.raised or statistic.lowered:
        return _padded(statistic, Fraction(0), Fraction(1), raised=1, lowered=0)
    return first_form(statistic)


def _padded(statistic: Statistic, *form: Fraction, raised: int, lowered: int) -> Form:
    """The form on the value coordinates, with zero for the NULL rows."""
    one = per_row(statistic)
    values = (*form, *(Fraction(raised),) * statistic.raised, *(Fraction(lowered),) * statistic.lowered)
    return tuple([one if part == 1 else part and one * part for part in values]) + (_ZERO,) * statistic.counts_nulls


_ZERO = Fraction(0)


def half_width(measurement: Measurement, form: Form, alpha: float) -> float:
    """Half the width of the interval of a linear estimate; the same for every cell and independent of data."""
    if len(form) == 1:
        # Exact: the noise is an integer, and coarse sums add at most half a grid step.
        error = measurement.quantile_single(alpha) + (measurement.rounding - 0.5)
        return abs(float(form[0] * measurement.grid)) * error
    weights = np.array([[abs(float(part * measurement.grid)) for part in form]])
    return float(measurement.quantile(weights, alpha)[0])


def outer_half(measurement: Measurement, alpha: float) -> float:
    """The quantile of half the noise of the first and of the last coordinate of values together, in rows."""
    statistic = measurement.statistic
    last = (statistic.degree + 1) * (statistic.second_degree + 1) - 1
    weights = np.zeros((1, statistic.coordinates))
    weights[0, [0, last]] = float(measurement.grid * per_row(statistic)) / 2
    return float(measurement.quantile(weights, alpha)[0])


def standard_error(measurement: Measurement, form: Form, *, integer: bool = False) -> float:
    """The standard error of a linear estimate; independent of data.

    `integer`: the estimate is rounded to a whole number, as the true value is, and the rounding is part of the error.
    """
    weights = [float(part * measurement.grid) for part in form]
    variance = float(measurement.variances(np.array([weights]))[0])
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


def combine(noisy: Integers, form: Form) -> tuple[Integers, int]:
    """The linear form of each row as an exact integer over a common denominator; twice it fits where it is int64."""
    bottom = math.lcm(*(part.denominator for part in form))
    factors = [int(part * bottom) for part in form]
    total: Integers
    # Of no cell, or zeros alone, the factors must fit all the same.
    greatest = max(1, int(np.abs(noisy).max())) if noisy.size else 1
    if noisy.dtype != np.int64 or sum(map(abs, factors)) * greatest + bottom > LIMIT:
        noisy = noisy.astype(object)
    total = noisy[:, 0] * factors[0]
    for i in range(1, len(factors)):
        total = total + noisy[:, i] * factors[i]
    return total, bottom


def divide(tops: Integers, bottom: Integers | int) -> Floats:
    """Quotients of exact integers as floats."""
    if tops.dtype == np.int64 and (isinstance(bottom, int) or bottom.dtype == np.int64):
        result: Floats = tops / (float(bottom) if isinstance(bottom, int) else bottom)
        return result
    if isinstance(bottom, int):
        return np.array([int(top) / bottom for top in tops], dtype=np.float64)
    return np.array([int(top) / int(low) for top, low in zip(tops, bottom, strict=True)], dtype=np.float64)


def floats(form: Form) -> Floats:
    """The coefficients as floats."""
    return np.array([float(part) for part in form])


def evenly_spread(measurement: Measurement, parts: int) -> Integers:
    """The sums without noise of groups of `GROUP_SIZES` rows whose values are spread evenly over their bounds.

    Shape: groups x coordinates. The first `parts` of these are sums of the (products of) Bernstein polynomials of one
    degree, which have equal integrals; the others are zero.
    """
    statistic = measurement.statistic
    made = []
    for rows in GROUP_SIZES:
        even = round(Fraction(rows * statistic.row_units, parts) / measurement.grid)
        made.append([even] * parts + [0] * (statistic.coordinates - parts))
    small = max(map(max, made)) < LIMIT
    spread: Integers = np.array(made, dtype=np.int64 if small else object)
    return spread
