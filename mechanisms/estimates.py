"""Estimates: aggregates from the noisy sums of one statistic, with error bounds. Post-processing: they cost nothing.

Every aggregate has one estimator; `ESTIMATORS` is the list of them. An aggregate without one, or with two, makes the
import of this module fail, so that no aggregate is answered by the mathematics of another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

import numpy as np

from mechanisms.estimators import moments, presence, products, ranks, regression, shapes, sums
from mechanisms.estimators.estimator import GROUP_SIZES, Column, Estimator, ExpectedError, Form
from mechanisms.estimators.forms import half_width as linear_half_width
from mechanisms.estimators.forms import standard_error as linear_standard_error
from mechanisms.interval import Floats
from mechanisms.measurement import Integers, Measurement
from privacy.aggregate import AggregateFunction
from privacy.statistic import Estimate, Statistic

__all__ = [
    "ESTIMATORS",
    "GROUP_SIZES",
    "Column",
    "ExpectedError",
    "estimate_column",
    "expected_errors",
    "held_to",
    "linear_form",
    "linear_half_width",
    "linear_standard_error",
    "of_nobody",
    "registered",
    "rows_of_noise",
    "simulate_column",
]


T = TypeVar("T")


def registered(estimators: Iterable[Estimator]) -> Mapping[AggregateFunction, Estimator]:
    """The estimators by their aggregates. Errors: ValueError when an aggregate has none or more than one."""
    found: dict[AggregateFunction, Estimator] = {}
    for estimator in estimators:
        if estimator.function in found:
            raise ValueError(f"two estimators of the aggregate {estimator.function.name} are registered")
        found[estimator.function] = estimator
    missing = [function.name for function in AggregateFunction if function not in found]
    if missing:
        raise ValueError(f"no estimator is registered for the aggregates: {', '.join(missing)}")
    return MappingProxyType(found)


ESTIMATORS: Mapping[AggregateFunction, Estimator] = registered(
    (
        *sums.ESTIMATORS,
        *presence.ESTIMATORS,
        *moments.ESTIMATORS,
        *products.ESTIMATORS,
        *regression.ESTIMATORS,
        *ranks.ESTIMATORS,
        *shapes.ESTIMATORS,
    )
)


def _of(estimate: Estimate) -> Estimator:
    """The estimator of one estimate."""
    return ESTIMATORS[estimate.kind].at(estimate.fraction)


def linear_form(statistic: Statistic, kind: AggregateFunction) -> Form | None:
    """Coefficients of the estimate on the integer sums, or None when it is not linear.

    Errors: ValueError when the statistic does not hold the estimate.
    """
    return ESTIMATORS[kind].form(statistic)


def estimate_column(measurement: Measurement, estimate: Estimate, noisy: Integers, *, alpha: float) -> Column:
    """One column of the answer.

    Shape: `noisy` cells x coordinates in units of the measurement's grid.
    Errors: ValueError when the statistic does not hold the estimate.
    """
    estimator = _of(estimate)
    estimator.form(measurement.statistic)
    alphas = measurement.shown_alphas(noisy, alpha)
    if alphas is None or not len(noisy):
        return estimator.column(measurement, noisy, integer=estimate.integer, alpha=alpha)
    order, parts = np.argsort(alphas, kind="stable"), list[Column]()
    for one in np.unique(alphas).tolist():
        parts.append(estimator.column(measurement, noisy[alphas == one], integer=estimate.integer, alpha=one))
    back = np.argsort(order, kind="stable").tolist()
    return Column(
        values=_joined([part.values for part in parts], back),
        standard_errors=_joined([part.standard_errors for part in parts], back),
        lows=_joined([part.lows for part in parts], back),
        highs=_joined([part.highs for part in parts], back),
    )


def _joined(parts: Sequence[Sequence[T]], places: Sequence[int]) -> tuple[T, ...]:
    """What is known of some cells each, in the order of all cells."""
    every = [value for part in parts for value in part]
    return tuple([every[place] for place in places])


def held_to(measurement: Measurement, estimate: Estimate) -> tuple[float, float] | None:
    """The ends of the range to which noisy values of an estimate are held; None where they are held to nothing."""
    return _of(estimate).ends(measurement)


def of_nobody(measurement: Measurement, estimate: Estimate, noisy: Integers, *, alpha: float) -> tuple[bool, ...]:
    """Of each cell, whether an estimate may be that of no row with a value, as far as the noise tells."""
    return _of(estimate).of_nobody(measurement, noisy, alpha=alpha)


def expected_errors(measurement: Measurement, estimate: Estimate, *, alpha: float) -> tuple[ExpectedError, ...]:
    """What `estimate_column` would say in groups of `GROUP_SIZES` rows, without noise. Reads no data."""
    return _of(estimate).expected(measurement, integer=estimate.integer, alpha=alpha)


def rows_of_noise(measurement: Measurement, estimate: Estimate, *, alpha: float) -> float | None:
    """With how many rows an estimate would be noise alone; None for what always says something. Reads no data."""
    return _of(estimate).rows_of_noise(measurement, alpha=alpha)


def simulate_column(measurement: Measurement, estimate: Estimate, noisy: Floats) -> Floats:
    """The estimate of simulated noisy sums in floats, NaN where it is undefined. Simulations x cells."""
    return _of(estimate).simulated(measurement, noisy, integer=estimate.integer)
