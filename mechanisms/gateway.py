"""The one place where true sums meet noise.

Every release calls `gateway.perturb` by that name at the moment of the call, so that a test can put a recorder in its
place (measurement with its declared sensitivity, exact matrix) and fix the bits. Nothing that can be configured does.
"""

from __future__ import annotations

from mechanisms.measurement import Integers, Measurement, Perturbed
from mechanisms.randomness import BitSource

__all__ = ["perturb"]


def perturb(measurement: Measurement, exact_matrix: Integers, bits: BitSource) -> Perturbed:
    """The exact matrix with the measurement's noise; for a selection also which cells are kept.

    Shape: cells x sums of the measurement's statistic, integers; the result, cells x coordinates, is in units of its
    grid.
    Ensures: run once per measurement and release. Never called again because a draw was unwelcome.
    """
    assert exact_matrix.ndim == 2
    assert exact_matrix.shape[1] == measurement.statistic.summed
    return measurement.perturb(exact_matrix, bits)
