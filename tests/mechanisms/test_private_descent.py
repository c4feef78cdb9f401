"""Models from released sums: the accounting of the textbook's run, the intervals of weights, and what noise hides."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from mechanisms.private_descent import MOMENTUM, STEP, Descent, HeldOut, Method, ModelNoise, regression
from privacy.conversions import gaussian_epsilon
from privacy.events import GaussianEvent
from privacy.training import UNIT_WEIGHT, VECTOR_UNITS, WEIGHTS_NORM_MAX, Wanted
from tests.mechanisms.support import SeededBits


def noise_of(method: Method, *, width: int = 4, mu_squared: str = "1", **options: object) -> ModelNoise:
    """The measurements of a small model."""
    values = {"iterations": 30, "held": 100, "classes": True, **options}
    return ModelNoise(method=method, width=width, mu_squared=Fraction(mu_squared), **values)  # type: ignore[arg-type]


def test_the_textbooks_run_with_its_price() -> None:
    """Shows ten gradients, each with classical noise for (0.1, 1e-5): 0.2140 together, and 0.3140 with the count.

    Added up as the textbook does they are (1.1, 1e-4). Expected values: mpmath and the exact curve of a Gaussian.
    """
    sigma = math.sqrt(2 * math.log(1.25 / 1e-5)) / 0.1
    assert sigma == pytest.approx(48.44805262605389)
    one = GaussianEvent(l2_squared=Fraction(1), variance=Fraction(sigma) ** 2)
    mu_squared = one.loss().mu_squared
    assert mu_squared is not None
    together = float(gaussian_epsilon(mu_squared=10 * mu_squared, delta=Fraction(1, 10**5)))
    assert together == pytest.approx(0.2140363378613237, rel=1e-6)
    assert together + 0.1 < 1.1 / 3


def test_the_same_price_buys_less_noise_than_the_textbook_adds() -> None:
    """Shows the noise of ten gradients and a count at (0.3140, 1e-5), in norms of a row: below 48.4."""
    low, high = Fraction(1, 10**6), Fraction(1)
    while high - low > Fraction(1, 10**7):
        middle = (low + high) / 2
        fits = gaussian_epsilon(mu_squared=middle, delta=Fraction(1, 10**5)) <= Fraction(314, 1000)
        low, high = (middle, high) if fits else (low, middle)
    noise = noise_of(Method.INPUT_CLIPPING, mu_squared=str(low), iterations=10, held=0)
    scale = noise.deviation(Wanted.GRADIENT) / VECTOR_UNITS
    assert 30 < scale < 36


@pytest.mark.parametrize("curvature", np.linspace(0, 1, 41).tolist())
def test_a_disturbance_is_never_multiplied_by_more_than_where_the_loss_is_flat(curvature: float) -> None:
    """Shows the claim of the page on the recursion itself, for curvatures up to what steps of 4 allow."""
    weight, speed = 0.0, 0.0
    for step in range(200):
        speed = MOMENTUM * speed - curvature * weight + (1.0 if step == 0 else 0.0)
        weight += speed
        assert abs(weight) <= (1 - MOMENTUM ** (step + 1)) / (1 - MOMENTUM) + 1e-9


def test_weights_stay_within_what_a_worker_takes() -> None:
    """Shows a descent on gradients that are all noise and too large: its weights are still sent."""
    noise = noise_of(Method.GRADIENT_CLIPPING)
    descent = Descent(noise, -5, Fraction(1, 2))
    for _ in range(30):
        descent.step([10**14, -(10**14), 10**13, 7])
        assert sum(weight**2 for weight in descent.sent()) <= WEIGHTS_NORM_MAX**2
    assert descent.fitted().deviations[0] > 0
    assert STEP == 4


@pytest.mark.slow
def test_deviations_of_a_regression_are_those_of_its_noise() -> None:
    """Shows the first-order formula against 400 draws, where there is enough data for it."""
    noise = noise_of(Method.SUFFICIENT_STATISTICS, width=3)
    random = np.random.Generator(np.random.Philox(2))
    rows = random.normal(size=(40_000, 3)) / 3
    label = np.clip(rows @ np.array([0.5, -0.3, 0.8]), -1, 1)
    upper = np.triu_indices(3)
    exact = [int(v * VECTOR_UNITS) for v in [*(rows.T @ rows)[upper], *(label @ rows)]]
    sigma, bits = noise.deviation(Wanted.PRODUCTS), SeededBits(4)
    drawn = noise.measurement(Wanted.PRODUCTS)
    fits = []
    for _ in range(400):
        added = drawn.noise(9, bits) * drawn.grid
        fits.append(regression(noise, [value + int(more) for value, more in zip(exact, added, strict=True)]))
    assert sigma > 0
    spread = np.std([fit.weights for fit in fits], axis=0)
    stated = np.mean([fit.deviations for fit in fits], axis=0)
    assert np.abs(spread / stated - 1).max() < 0.2


@pytest.mark.parametrize("released", [[0, 0, 0, 0], [-(10**6), 10**6, 3, 0], [UNIT_WEIGHT] * 4])
@pytest.mark.parametrize("classes", [True, False])
def test_what_is_within_its_noise_says_nothing(released: list[int], *, classes: bool) -> None:
    """Shows no accuracy of held-out units that may as well not be there."""
    noise = noise_of(Method.INPUT_CLIPPING, classes=classes)
    assert HeldOut.of(noise, released, alpha=0.05).value is None


def test_accuracy_has_the_error_of_its_counts() -> None:
    """Shows the accuracy of 1,000 units, and a standard error of about sigma over their number."""
    noise = noise_of(Method.INPUT_CLIPPING)
    found = HeldOut.of(noise, [UNIT_WEIGHT * count for count in (600, 50, 150, 200)], alpha=0.05)
    assert found.value == pytest.approx(0.8)
    assert found.value_deviation is not None
    assert 0.0005 < found.value_deviation < 0.003
