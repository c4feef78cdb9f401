"""The one place where true sums meet noise.

Every release calls `gateway.perturb`, every comparison with a threshold `gateway.compare`, and every statistic that is
tested first `gateway.test`, by that name at the moment of the call, so that a test can put a recorder in its place
(measurement with its declared sensitivity, exact matrix) and fix the bits. Nothing that can be configured does.
"""

from __future__ import annotations

from mechanisms.measurement import Integers, Measurement, Perturbed
from mechanisms.randomness import BitSource
from mechanisms.sparse_vector import Hit, SparseRun
from mechanisms.tested_statistics import Tested

__all__ = ["compare", "perturb", "test"]


def perturb(measurement: Measurement, exact_matrix: Integers, bits: BitSource) -> Perturbed:
    """The exact matrix with the measurement's noise; for a selection also which cells are kept.

    Shape: cells x sums of the measurement's statistic, integers; the result, cells x coordinates, is in units of its
    grid.
    Ensures: run once per measurement and release. Never called again because a draw was unwelcome.
    """
    assert exact_matrix.ndim == 2
    assert exact_matrix.shape[1] == measurement.statistic.summed
    return measurement.perturb(exact_matrix, bits)


def compare(run: SparseRun, distances: Integers, bits: BitSource) -> tuple[Hit, ...]:
    """The hits of a run among true distances from its threshold, in integer units.

    Ensures: run once per comparison. Errors: ValueError when no hit is left.
    """
    assert distances.ndim == 1
    return run.ask(distances, bits)


def test(tested: Tested, counts: Integers, bits: BitSource) -> int | None:
    """The outcome of a statistic that is tested first, from true counts by place; None where the test does not pass.

    Ensures: run once per charge.
    """
    assert counts.ndim == 1
    return tested.answer(counts, bits)
