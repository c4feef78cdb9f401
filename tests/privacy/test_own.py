"""The own figure of an answer: never below what the events really promise, and tight where one knows the truth."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from privacy.conversions import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu_squared,
    gaussian_mu_squared_near,
)
from privacy.events import (
    Event,
    GaussianEvent,
    GaussianThresholdEvent,
    LaplaceEvent,
    TruncatedGeometricEvent,
)
from privacy.own import Own, own_figure

ONE = Fraction(1)
OTHERWISE = Fraction(1, 10**9)


def laplace(epsilon: str) -> LaplaceEvent:
    return LaplaceEvent(l1_sensitivity=Fraction(epsilon), scale=ONE)


def gaussian(mu_squared: str) -> GaussianEvent:
    return GaussianEvent(l2_squared=Fraction(mu_squared), variance=ONE)


def threshold(mu_squared: str, delta: str) -> GaussianThresholdEvent:
    return GaussianThresholdEvent(l2_squared=Fraction(mu_squared), variance=ONE, delta=Fraction(delta))


def own(events: list[Event], delta: str = "1e-6") -> Own:
    return own_figure(events, delta=Fraction(delta), otherwise=OTHERWISE)


# Conversions


@pytest.mark.slow
def test_epsilon_and_mu_squared_are_inverse_to_a_billionth() -> None:
    """Over 200 random pairs: never understated, and at most 10^-8 too large (10^-6 near the smallest amounts)."""
    source = random.Random(5)
    for _ in range(200):
        epsilon = Fraction(source.randrange(1, 10**6), 10 ** source.randrange(3, 9))
        delta = Fraction(source.randrange(1, 100), 10 ** source.randrange(4, 20))
        exact = gaussian_mu_squared(epsilon=epsilon, delta=delta)
        back = gaussian_epsilon(mu_squared=exact, delta=delta)
        assert abs(back / epsilon - 1) < Fraction(1, 10**8)
        if exact > Fraction(1, 10**5):
            near = gaussian_mu_squared_near(epsilon=epsilon, delta=delta)
            assert exact * (1 - Fraction(1, 10**6)) <= near <= exact


@pytest.mark.parametrize("mu_squared", ["1e-12", "0.0001", "0.3", "9", "400", "1000000"])
@pytest.mark.parametrize("delta", ["0.5", "0.01", "1e-6", "1e-18", "1e-100"])
def test_an_epsilon_from_mu_squared_has_at_most_the_delta(mu_squared: str, delta: str) -> None:
    """The exact curve at the result is within delta; where zero would do it is zero."""
    epsilon = gaussian_epsilon(mu_squared=Fraction(mu_squared), delta=Fraction(delta))
    mu = Fraction(math.isqrt(math.floor(Fraction(mu_squared) * 10**40)), 10**20)
    assert gaussian_delta(mu=mu, epsilon=epsilon) <= Fraction(delta)
    if epsilon > Fraction(1, 10**6):
        assert gaussian_delta(mu=mu * (1 + Fraction(1, 10**9)), epsilon=epsilon * Fraction(999, 1000)) > Fraction(delta)


@pytest.mark.parametrize("convert", [gaussian_epsilon, gaussian_mu_squared_near])
def test_conversions_refuse_what_is_outside(convert: object) -> None:
    """Nothing below zero, above the range, or of another type."""
    name = "mu_squared" if convert is gaussian_epsilon else "epsilon"
    for value, delta, error in (
        (Fraction(0), Fraction(1, 10), ValueError),
        (Fraction(10**13), Fraction(1, 10), ValueError),
        (Fraction(1), Fraction(0), ValueError),
        (Fraction(1), Fraction(1), ValueError),
        (0.5, Fraction(1, 10), TypeError),
    ):
        with pytest.raises(error):
            convert(**{name: value, "delta": delta})  # type: ignore[operator]


# The truth, by numbers: the loss of a mixture of mechanisms on a grid


def hockey_stick(laplaces: list[float], mu: float, epsilon: float) -> float:
    """delta(epsilon) of one-dimensional Laplace and Gaussian mechanisms together, from below.

    The privacy loss of each is put on a grid, rounded down, and convolved; rounding a loss down can only lower the
    divergence, so a figure that is below this value is wrong.
    """
    step = 2e-4
    total = np.array([1.0])
    low = 0

    def convolve(losses: np.ndarray, masses: np.ndarray) -> None:
        nonlocal total, low
        places = np.floor(losses / step).astype(int)
        first = int(places.min())
        grid = np.zeros(int(places.max()) - first + 1)
        np.add.at(grid, places - first, masses)
        size = 1 << (len(total) + len(grid)).bit_length()
        total = np.maximum(np.fft.irfft(np.fft.rfft(total, size) * np.fft.rfft(grid, size), size), 0)[
            : len(total) + len(grid) - 1
        ]
        low += first

    for epsilon_0 in laplaces:
        # The loss is e with mass 1/2, -e with mass e^-e / 2, and between them has the density e^((l - e)/2) / 4.
        edges = np.arange(-epsilon_0, epsilon_0, step)
        ends = np.minimum(edges + step, epsilon_0)
        masses = (np.exp((ends - epsilon_0) / 2) - np.exp((edges - epsilon_0) / 2)) / 2
        convolve(
            np.concatenate([edges, [epsilon_0, -epsilon_0]]), np.concatenate([masses, [0.5, math.exp(-epsilon_0) / 2]])
        )
    if mu:
        z = np.arange(-9, 9, 1e-4)
        masses = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) * 1e-4
        convolve(mu * mu / 2 + mu * z, masses)
    losses = (low + np.arange(len(total))) * step
    above = losses > epsilon
    return float((total[above] * -np.expm1(epsilon - losses[above])).sum())


CASES: list[tuple[list[str], str]] = [
    (["0.3"], "0"),
    (["0.1"] * 12, "0"),
    (["0.3", "0.2"], "0.09"),
    (["0.02"] * 3, "0.25"),
    (["1"], "0.01"),
    ([], "0.49"),
    (["0.1"] * 30, "0.01"),
]


@pytest.mark.parametrize("delta", ["0.001", "0.00001"])
@pytest.mark.parametrize(("laplaces", "mu_squared"), CASES)
def test_no_own_figure_is_below_the_truth(laplaces: list[str], mu_squared: str, delta: str) -> None:
    """The events' true divergence at the figure's epsilon is within its delta."""
    events: list[Event] = [laplace(text) for text in laplaces]
    if mu_squared != "0":
        events.append(gaussian(mu_squared))
    figure = own(events, delta)
    assert figure.delta == Fraction(delta)
    truth = hockey_stick([float(text) for text in laplaces], math.sqrt(float(mu_squared)), float(figure.epsilon))
    assert truth <= float(delta) * (1 + 1e-6) + 1e-12
    # It can fail: well below the figure of Gaussian noise, and of one Laplace, the true divergence is above delta.
    if len(events) == 1:
        below = hockey_stick(
            [float(text) for text in laplaces], math.sqrt(float(mu_squared)), float(figure.epsilon) * 0.97
        )
        assert below > float(delta)


def test_the_delta_of_a_threshold_is_inside_the_figures_delta() -> None:
    """A threshold's delta leaves less for the curve; a figure that forgot it (the planted twin) would be smaller."""
    plain, selecting = own([gaussian("0.04")]), own([threshold("0.04", "9e-7")])
    assert plain.delta == selecting.delta == Fraction(1, 10**6)
    assert selecting.epsilon > plain.epsilon
    room = Fraction(1, 10**6) - Fraction(9, 10**7)
    assert selecting.epsilon == gaussian_epsilon(mu_squared=Fraction("0.04"), delta=room)


def test_everything_the_value_uses_is_in_the_figure() -> None:
    """Stored parts beside fresh ones: more than either alone, at most the sum of pure and Gaussian parts."""
    parts: list[Event] = [laplace("0.2"), gaussian("0.04")]
    together = own(parts).epsilon
    assert together > max(own(parts[:1]).epsilon, own(parts[1:]).epsilon)
    assert together <= own(parts[:1]).epsilon + own(parts[1:]).epsilon


def test_pure_events_on_a_pure_account_are_their_exact_sum() -> None:
    """Delta 0, and the epsilon that was asked for."""
    assert own([laplace("0.1"), laplace("0.2")], "0") == Own(Fraction(3, 10), Fraction(0))
    assert own([], "0") == Own(Fraction(0), Fraction(0))
    assert own([], "1e-6") == Own(Fraction(0), Fraction(1, 10**6))


def test_many_small_laplace_answers_promise_less_than_their_sum() -> None:
    """On an approximate account the tight conversion of many events is below the sum of their epsilons."""
    events: list[Event] = [laplace("0.01")] * 100
    assert own(events).epsilon < Fraction(1, 2)
    assert own(events, "0").epsilon == 1


@pytest.mark.parametrize(
    ("events", "delta", "expected"),
    [
        ([gaussian("0.04")], "0", OTHERWISE),
        ([threshold("0.04", "1e-8")], "0", OTHERWISE + Fraction(1, 10**8)),
        ([threshold("0.04", "1e-6")], "1e-6", Fraction(2, 10**6)),
        ([TruncatedGeometricEvent(epsilon=ONE, delta=Fraction(1, 10**8))], "0", Fraction(1, 10**8)),
        ([TruncatedGeometricEvent(epsilon=ONE, delta=Fraction(1, 10**6))], "1e-6", Fraction(1, 10**6)),
    ],
)
def test_a_delta_that_cannot_cover_the_events_is_said_larger(
    events: list[Event], delta: str, expected: Fraction
) -> None:
    """Stored releases can need more delta than the account has: the figure says which, and stays finite."""
    figure = own(events, delta)
    assert figure.delta == expected
    assert 0 < figure.epsilon < 10
