"""Weighted sums of the cells of one release: their values, standard errors and intervals. Post-processing.

What a range of a tree is, and a total of a hierarchy: trees.md. The error follows from the noise that was drawn, cell
by cell where each has its own, and node by node where several levels are measured together (consistency.md,
Propositions 2 and 4).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

import numpy as np

from mechanisms.estimates import linear_form
from mechanisms.interval import Floats
from mechanisms.linear import weighted_quantiles
from mechanisms.measurement import Law, Measurement
from mechanisms.noisy_sums import NoisySums
from privacy.statistic import Estimate

__all__ = ["Weighted", "standard_errors", "weighted_sums"]


@dataclass(frozen=True, slots=True)
class Weighted:
    """Weighted sums, one of each for each row of weights: interval i is `values[i]` plus and minus `reaches[i]`."""

    values: tuple[Fraction, ...]
    errors: Floats
    reaches: Floats


def standard_errors(measurement: Measurement, estimate: Estimate, weights: Floats) -> Floats:
    """The standard error that each weighted sum of cells has, or will have: of the noise, and of whole numbers.

    Each end of a run of cells is off by one rounding, of variance 1/12: a run by 1/6 (consistency.md).
    Shape: `weights` is sums x cells. Errors: ValueError for an estimate that is not linear in one coordinate.
    """
    factor = float(_factor(measurement, estimate))
    noise, moved = _noise(measurement, weights * factor)
    rounded = moved * abs(factor) / 6
    result: Floats = np.sqrt(measurement.noise_variance() * (noise**2).sum(axis=-1) + rounded)
    return result


def weighted_sums(one: NoisySums, estimate: Estimate, weights: Floats, alpha: float) -> Weighted:
    """The weighted sums of a release by weights that are zero or one.

    Ensures: each interval misses the sum of the true cells with probability at most alpha. Sums are those of the
    released whole numbers, exactly, so that parts add up; they are whole themselves where no unit is scaled to a part
    of a row. Errors: ValueError as `standard_errors`.
    """
    measurement = one.measurement
    factor = _factor(measurement, estimate)
    noise, beside = _noise(measurement, weights * float(factor))
    scale = float(measurement.scale_of_sums / measurement.grid)
    laplace, variance = np.zeros((len(weights), 0)), np.zeros(len(weights))
    match measurement.law:
        case Law.LAPLACE:
            laplace = np.abs(noise) * scale
        case Law.NORMAL:
            variance = scale**2 * (noise**2).sum(axis=-1)
        case Law.OTHER:
            raise ValueError("the law of the noise is not one that adds up")
        case _:
            assert_never(measurement.law)
    rounding = np.abs(noise) * measurement.noise_rounding
    reach = weighted_quantiles(laplace, variance, rounding, alpha, wider=measurement.widening(alpha)) + beside
    cells = one.values[:, 0].tolist()
    values = tuple(factor * sum(cells[place] for place in np.flatnonzero(row).tolist()) for row in weights)
    if factor.denominator == 1:
        # Sums of whole numbers: an error within a reach is within its whole part.
        reach = np.floor(reach * (1 + 1e-12) + 1e-9)
    return Weighted(values, standard_errors(measurement, estimate, weights), reach)


def _factor(measurement: Measurement, estimate: Estimate) -> Fraction:
    """What a released sum is times to be the estimate. Errors: ValueError where it is not linear in one coordinate."""
    form = linear_form(measurement.statistic, estimate.kind)
    if form is None or len(form) != 1:
        raise ValueError("the estimate is not a multiple of one sum")
    return Fraction(form[0]) * measurement.grid


def _noise(measurement: Measurement, weights: Floats) -> tuple[Floats, Floats]:
    """The weights of independent noise, and how far whole numbers in place of estimates move each sum at most."""
    cells = weights[:, :, None]
    spread = measurement.spread(cells)
    if spread is None:
        return weights, np.zeros(len(weights))
    moved: Floats = np.abs(np.diff(weights, axis=1, prepend=0.0, append=0.0)).sum(axis=1) / 2
    return spread, moved
