"""The Gaussian threshold: a unit's own groups stay hidden except with delta, for 1, 3, 10 and more groups per unit."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest

from mechanisms.calibrate import Price, calibrate
from mechanisms.families import NoiseFamily
from mechanisms.gateway import perturb
from mechanisms.gaussian_threshold import chance_per_group, gaussian_threshold
from mechanisms.measurement import root_up
from mechanisms.measurements.gaussian_threshold import GaussianThresholdMeasurement
from tests.mechanisms.support import SeededBits, selected_core

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "partition_selection.json").read_text())["vectors"]

CASES = [
    (groups, sigma, delta)
    for groups in (1, 3, 10, 1000)
    for sigma in (Fraction(1, 2), Fraction(845, 200), Fraction(36), Fraction(10**4))
    for delta in (Fraction(1, 10**3), Fraction(1, 10**6), Fraction(1, 10**12), Fraction(1, 2))
]


def chance_of_any(sigma: Fraction, groups: int, threshold: int) -> mpmath.mpf:
    """The exact chance that any of a unit's own groups, noisy count 1 + round(sigma Z), reaches the threshold."""
    tail = (
        mpmath.erfc((mpmath.mpf(threshold) - 1.5) / (mpmath.mpf(sigma.numerator) / sigma.denominator) / mpmath.sqrt(2))
        / 2
    )
    return -mpmath.expm1(groups * mpmath.log1p(-tail))


@pytest.mark.parametrize(("groups", "sigma", "delta"), CASES, ids=str)
def test_singletons_are_released_with_at_most_delta(groups: int, sigma: Fraction, delta: Fraction) -> None:
    """The exact chance is at most delta; one threshold lower it is above (tau - 1 is caught)."""
    threshold = gaussian_threshold(sigma=sigma, groups_per_unit=groups, delta=delta)
    with mpmath.workdps(60):
        claim = mpmath.mpf(delta.numerator) / delta.denominator
        assert chance_of_any(sigma, groups, threshold) <= claim
        assert threshold == 2 or chance_of_any(sigma, groups, threshold - 1) > claim


@pytest.mark.parametrize("groups", [1, 3, 10, 2**20])
@pytest.mark.parametrize("delta", [Fraction(1, 10**18), Fraction(1, 10**6), Fraction(1, 3)], ids=str)
def test_chance_per_group_is_rounded_down(groups: int, delta: Fraction) -> None:
    """1 - (1 - p)^groups is at most delta, and within 1e-30 of it."""
    chance = chance_per_group(groups_per_unit=groups, delta=delta)
    with mpmath.workdps(120):
        p, claim = (mpmath.mpf(value.numerator) / value.denominator for value in (chance, delta))
        any_of = -mpmath.expm1(groups * mpmath.log1p(-p))
        assert claim * (1 - mpmath.mpf(10) ** -30) < any_of <= claim


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: f"{vector['eps']}-{vector['delta']}-{vector['kappa']}")
def test_threshold_of_the_vectors(vector: dict[str, float]) -> None:
    """With the vectors' sigma and half delta, the threshold is theirs plus the half that rounding costs, rounded up."""
    sigma = Fraction(vector["gauss_sigma"]).limit_denominator(2**40)
    groups = int(vector["kappa"])
    delta = Fraction(str(vector["delta"])) / 2
    threshold = gaussian_threshold(sigma=sigma, groups_per_unit=groups, delta=delta)
    assert threshold - 1 < vector["gauss_threshold"] + 0.5 + 1e-6 <= threshold + 1e-5


@pytest.mark.parametrize("groups", [1, 3, 10])
def test_frequency_of_singletons(groups: int) -> None:
    """By drawing: 200,000 units alone in all their groups, delta 0.02: within 6 sigma of the exact chance,
    which is at most delta."""
    delta = Fraction(1, 50)
    core = selected_core(groups=groups)
    measurement = calibrate([core], Price(NoiseFamily.GAUSSIAN, Fraction(1), delta)).measurements[0]
    assert isinstance(measurement, GaussianThresholdMeasurement)
    count = 200_000
    drawn = perturb(measurement, np.ones((count * groups, 1), dtype=np.int64), SeededBits(groups))
    assert drawn.kept is not None
    frequency = drawn.kept.reshape(count, groups).any(axis=1).mean()
    expected = float(chance_of_any(measurement.sigma, groups, measurement.threshold))
    assert expected <= delta
    assert abs(frequency - expected) < 6.2 * (expected / count) ** 0.5


def test_groups_above_the_threshold_are_kept() -> None:
    """Exactly the noisy counts at the threshold or above are kept."""
    measurement = calibrate(
        [selected_core(groups=3)], Price(NoiseFamily.GAUSSIAN, Fraction(1), Fraction(1, 10**6))
    ).measurements[0]
    assert isinstance(measurement, GaussianThresholdMeasurement)
    exact = np.arange(1, 400, dtype=np.int64).reshape(-1, 1)
    drawn = perturb(measurement, exact, SeededBits(3))
    assert drawn.kept is not None
    assert (drawn.kept == (drawn.values[:, 0] >= measurement.threshold)).all()
    assert 0 < drawn.kept.sum() < 399


def test_the_noise_is_for_all_groups_of_a_unit() -> None:
    """Three groups per unit have l2^2 = 3: sigma^2 is 3 / mu^2, and the event says so with the whole delta."""
    price = Price(NoiseFamily.GAUSSIAN, Fraction(1, 4), Fraction(1, 10**6))
    measurement = calibrate([selected_core(groups=3)], price).measurements[0]
    assert isinstance(measurement, GaussianThresholdMeasurement)
    assert measurement.sigma == root_up(Fraction(12))
    event = measurement.event()
    assert (event.l2_squared, event.variance, event.delta) == (3, measurement.sigma**2, Fraction(1, 10**6))


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1), Fraction(-1, 10)], ids=str)
def test_other_deltas_are_refused(delta: Fraction) -> None:
    """A threshold needs a delta inside (0, 1)."""
    with pytest.raises(ValueError, match="delta"):
        gaussian_threshold(sigma=Fraction(1), groups_per_unit=1, delta=delta)
