"""Estimators of counts and sums: linear in the noisy sums, so that their error is the same in every cell."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

import numpy as np

from mechanisms.estimators.estimator import GROUP_SIZES, Column, Estimator, ExpectedError, Form
from mechanisms.estimators.forms import (
    LIMIT,
    clipped_form,
    combine,
    divide,
    encoding_of,
    floats,
    half_width,
    per_row,
    standard_error,
    values_form,
)
from mechanisms.interval import Floats
from mechanisms.measurement import Integers, Measurement
from privacy.aggregate import AggregateFunction
from privacy.described import ResultType
from privacy.statistic import Statistic, StatisticKind

__all__ = ["ESTIMATORS", "ROWS", "Linear"]


@dataclass(frozen=True, slots=True)
class Linear(Estimator):
    """An aggregate that is a linear form of the sums.

    Edge case: a negative noisy count is shown as it is; cutting it at zero would bias every sum of counts.
    """

    coefficients: Callable[[Statistic], Form]
    """The form on a statistic's sums. Errors: ValueError when the statistic does not hold the aggregate."""

    defined: Callable[[Floats, int], float]
    """The aggregate of plain values, and of so many rows without one."""

    def truth(self, values: Floats, *, nulls: int) -> float:
        """The definition. A sum of nothing is zero: that is what its noise is added to."""
        return self.defined(values, nulls)

    def ends(self, measurement: Measurement) -> None:
        """Counts and sums are shown as they are."""
        return

    def form(self, statistic: Statistic) -> Form:
        """The form on the statistic's sums."""
        return self.coefficients(statistic)

    def column(self, measurement: Measurement, noisy: Integers, *, integer: bool, alpha: float) -> Column:
        """Exact sums of the noisy integers, with the quantile of their noise."""
        form = self.form(measurement.statistic)
        error = (standard_error(measurement, form, integer=integer),) * len(noisy)
        shown = measurement.shown_ends(noisy, alpha) if form == (Fraction(1),) else None
        if shown is not None:
            least, most = shown
            return Column(tuple(noisy[:, 0].tolist()), error, tuple(least.tolist()), tuple(most.tolist()))
        tops, bottom = combine(noisy, tuple(part * measurement.grid for part in form))
        reach = half_width(measurement, form, alpha)
        if not integer:
            values = divide(tops, bottom).tolist()
            lows, highs = tuple(value - reach for value in values), tuple(value + reach for value in values)
            return Column(tuple(values), error, lows, highs)
        whole = ((2 * tops + bottom) // (2 * bottom)).tolist()
        ends = _whole_ends(tops, bottom, reach, fractional=measurement.statistic.fractional)
        return Column(
            tuple(whole),
            error,
            tuple(min(low, value) for low, value in zip(ends[0], whole, strict=True)),
            tuple(max(high, value) for high, value in zip(ends[1], whole, strict=True)),
        )

    def simulated(self, measurement: Measurement, noisy: Floats, *, integer: bool) -> Floats:
        """The form of the simulated sums."""
        form = self.form(measurement.statistic)
        result: Floats = noisy @ floats(tuple(part * measurement.grid for part in form))
        return np.rint(result) if integer else result

    def rows_of_noise(self, measurement: Measurement, *, alpha: float) -> float | None:
        """The half-width of a sum over the greatest magnitude that a row can have; None for counts."""
        if not self.function.statistic.described.of_values or self.function.described.result is ResultType.WHOLE:
            return None
        encoding = encoding_of(measurement.statistic)
        ends = (encoding.offset + end * encoding.step for end in (encoding.lowest, encoding.highest))
        greatest = float(max(map(abs, ends)))
        return half_width(measurement, self.form(measurement.statistic), alpha) / greatest if greatest else 0.0

    def expected(self, measurement: Measurement, *, integer: bool, alpha: float) -> tuple[ExpectedError, ...]:
        """The same error in groups of any size, whatever the values."""
        form = self.form(measurement.statistic)
        error, reach = standard_error(measurement, form, integer=integer), half_width(measurement, form, alpha)
        return tuple(ExpectedError(rows, error, reach, error) for rows in GROUP_SIZES)


def _whole_ends(tops: Integers, bottom: int, reach: float, *, fractional: bool) -> tuple[list[int], list[int]]:
    """Ends of the intervals of whole estimates.

    The true value is whole as well, so the ends are the whole numbers within reach of the unrounded estimate. That of
    scaled rows (`fractional`) is not, so there the ends are the next whole numbers outside.
    """
    margin = math.ceil(reach * bottom)
    if margin > LIMIT:
        tops = tops.astype(object)
    if fractional:
        return ((tops - margin) // bottom).tolist(), (-(-(tops + margin) // bottom)).tolist()
    return (-((margin - tops) // bottom)).tolist(), ((tops + margin) // bottom).tolist()


def _not_held() -> ValueError:
    return ValueError("the statistic does not hold the estimate")


def _counted(statistic: Statistic) -> Form:
    """The only coordinate of units or rows."""
    return (Fraction(1) if statistic.encoding is None else statistic.encoding.step,)


def _rows(statistic: Statistic) -> Form:
    match statistic.kind:
        case StatisticKind.UNITS | StatisticKind.COUNT:
            return _counted(statistic)
        case StatisticKind.WEIGHTS | StatisticKind.SUM | StatisticKind.RANKS:
            raise _not_held()
        case StatisticKind.MOMENTS | StatisticKind.PRODUCTS:
            return (per_row(statistic),) * statistic.coordinates
        case _:
            assert_never(statistic.kind)


def _values(statistic: Statistic) -> Form:
    match statistic.kind:
        case StatisticKind.UNITS | StatisticKind.COUNT:
            return _counted(statistic)
        case StatisticKind.WEIGHTS | StatisticKind.SUM | StatisticKind.RANKS:
            raise _not_held()
        case StatisticKind.MOMENTS:
            return values_form(statistic)
        case StatisticKind.PRODUCTS:
            raise _not_held()
        case _:
            assert_never(statistic.kind)


def _units(statistic: Statistic) -> Form:
    match statistic.kind:
        case StatisticKind.UNITS:
            return _counted(statistic)
        case StatisticKind.COUNT:
            raise ValueError("a count of rows does not determine the number of units")
        case (
            StatisticKind.WEIGHTS
            | StatisticKind.SUM
            | StatisticKind.MOMENTS
            | StatisticKind.PRODUCTS
            | StatisticKind.RANKS
        ):
            raise _not_held()
        case _:
            assert_never(statistic.kind)


def _sum(statistic: Statistic) -> Form:
    match statistic.kind:
        case (
            StatisticKind.UNITS
            | StatisticKind.WEIGHTS
            | StatisticKind.COUNT
            | StatisticKind.PRODUCTS
            | StatisticKind.RANKS
        ):
            raise _not_held()
        case StatisticKind.SUM:
            return (encoding_of(statistic).step,)
        case StatisticKind.MOMENTS:
            encoding = encoding_of(statistic)
            width = encoding.step * encoding.highest
            parts = zip(values_form(statistic), clipped_form(statistic), strict=True)
            offset = encoding.offset
            # Most parts are 0 or 1, and a product of fractions takes ten times as long as a look at them.
            both = [(_times(offset, value), _times(width, first)) for value, first in parts]
            return tuple([below + above if below and above else below or above for below, above in both])
        case _:
            assert_never(statistic.kind)


def _times(weight: Fraction, part: Fraction) -> Fraction:
    return part and (weight if part == 1 else weight * part)


ROWS = Linear(AggregateFunction.ROWS, _rows, lambda values, nulls: values.size + nulls)
"""The count of rows, which `presence` reads too."""

ESTIMATORS: tuple[Estimator, ...] = (
    ROWS,
    Linear(AggregateFunction.VALUES, _values, lambda values, nulls: values.size),
    Linear(AggregateFunction.UNITS, _units, lambda values, nulls: values.size + nulls),
    Linear(AggregateFunction.SUM, _sum, lambda values, nulls: float(values.sum())),
)
