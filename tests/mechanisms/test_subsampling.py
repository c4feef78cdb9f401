"""Amplification by sampling: the law of a sampled count keeps its epsilon, attains it, and wrong uses are refused."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mechanisms.subsampling import PoissonSample
from privacy.unit import Neighbouring

RATE = Fraction(1, 5)
GOOD: dict[str, Any] = {
    "rate": RATE, "secret": True, "whole_units": True, "relation": Neighbouring.ADD_REMOVE,
}  # fmt: skip


def law(units: int, each: int, epsilon: float) -> np.ndarray:
    """The chances of two-sided geometric noise on the rows of a sample: units with one row, and one with `each`."""
    rate, outputs, mixed = float(RATE), np.arange(-60, 61), np.zeros(121)
    for kept in range(units + 1):
        chance = math.comb(units, kept) * rate**kept * (1 - rate) ** (units - kept)
        for mine, part in ((each, rate), (0, 1 - rate)) if each else ((0, 1.0),):
            mixed += chance * part * np.exp(-epsilon * np.abs(outputs - kept - mine))
    return mixed / mixed.sum()


def loss(one: np.ndarray, two: np.ndarray) -> float:
    """The greatest log ratio, in either direction."""
    return float(np.abs(np.log(one / two)).max())


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_a_secret_sample_costs_less_and_no_less_than_that(epsilon: float) -> None:
    """Exact laws of two neighbours: within the amplified epsilon, and above 95 % of it."""
    amplified, _ = PoissonSample(**GOOD).amplified(Fraction(epsilon))
    reached = loss(law(3, 1, epsilon), law(3, 0, epsilon))
    assert 0.95 * float(amplified) < reached <= float(amplified) + 1e-9
    assert float(amplified) == pytest.approx(math.log(1 + 0.2 * (math.exp(epsilon) - 1)))


def test_wrong_uses_are_refuted_and_refused() -> None:
    """A sample that is known has the whole loss, and a unit with three rows of which each is drawn has more."""
    sample, epsilon = PoissonSample(**GOOD), 1.0
    amplified = float(sample.amplified(Fraction(1))[0])
    outputs = np.arange(-60, 61)
    known = np.exp(-epsilon * np.abs(outputs - 1)), np.exp(-epsilon * np.abs(outputs))
    assert loss(*known) > 2 * amplified
    # Rows drawn one by one: one unit's three rows are three units of one row.
    by_rows = loss(law(6, 0, epsilon), law(3, 0, epsilon))
    assert by_rows > 1.5 * amplified
    for wrong, why in (
        ({"secret": False}, "known"),
        ({"whole_units": False}, "one by one"),
        ({"relation": Neighbouring.REPLACE_ONE}, "added or removed"),
        ({"rate": Fraction(1)}, "between zero and one"),
    ):
        with pytest.raises(ValueError, match=why):
            PoissonSample(**{**GOOD, **wrong})


def test_membership_is_of_the_unit_alone() -> None:
    """About the rate is in a sample, another key takes others, and delta shrinks by the rate."""
    sample = PoissonSample(**GOOD)
    one, two = ([sample.holds(unit, key) for unit in range(4_000)] for key in (b"one", b"two"))
    assert 650 < sum(one) < 950
    both = sum(a and b for a, b in zip(one, two, strict=True))
    assert 100 < both < 230
    assert sample.amplified(Fraction(1), Fraction(1, 10**6))[1] == Fraction(1, 5 * 10**6)
