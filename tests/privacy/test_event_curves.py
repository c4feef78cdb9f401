"""The measures of events against independent computations (mpmath at 60 digits) and reference values."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy.events import GaussianEvent, GaussianThresholdEvent, LaplaceEvent, TruncatedGeometricEvent
from privacy.loss import Loss
from tests.privacy.vectors import exact, load

EPSILONS = [
    "1e-14",
    "1e-12",
    "1e-9",
    "1e-6",
    "0.001",
    "0.01",
    "0.1",
    "0.5",
    "1",
    "2",
    "5",
    "10",
    "30",
    "100",
    "1e4",
    "1e6",
]
TINY_DELTA = Fraction(1, 10**9)


def laplace(epsilon: Fraction) -> Loss:
    """The loss of Laplace noise at this epsilon."""
    return LaplaceEvent(l1_sensitivity=epsilon, scale=Fraction(1)).loss()


def response(epsilon: Fraction) -> Loss:
    """The loss of an (epsilon, delta) box."""
    return TruncatedGeometricEvent(epsilon=epsilon, delta=TINY_DELTA).loss()


def number(value: Fraction | None) -> mpmath.mpf:
    """The fraction at the working precision of mpmath."""
    assert value is not None
    return mpmath.mpf(value.numerator) / value.denominator


def assert_just_above(truth: mpmath.mpf, bound: Fraction | None, *, relative: float = 1e-11) -> None:
    """The bound is not below the truth and hardly above it."""
    value = number(bound)
    assert truth <= value
    assert value <= truth * (1 + mpmath.mpf(relative))


@pytest.mark.parametrize("text", EPSILONS)
def test_laplace_loss_is_exact_or_just_above(text: str) -> None:
    """Shows each measure of Laplace noise from 10^-14 to 10^6: pure exact, the others rounded up and tight."""
    epsilon = Fraction(text)
    loss = laplace(epsilon)
    assert epsilon == loss.pure
    assert loss.delta == 0
    with mpmath.workdps(100):
        x = number(epsilon)
        assert_just_above(x + mpmath.expm1(-x), loss.rho)
        assert_just_above(4 * _tail_root(mpmath.exp(-x / 2) / 2, x) ** 2, loss.mu_squared)


@pytest.mark.parametrize("text", EPSILONS)
def test_box_loss_is_exact_or_just_above(text: str) -> None:
    """Shows each measure of an (epsilon, delta) box: those of randomised response, rounded up and tight."""
    epsilon = Fraction(text)
    loss = response(epsilon)
    assert epsilon == loss.pure
    assert loss.delta == TINY_DELTA
    with mpmath.workdps(100):
        x = number(epsilon)
        assert_just_above(x * mpmath.tanh(x / 2), loss.rho)
        assert_just_above(4 * _tail_root(1 / (1 + mpmath.exp(x)), x) ** 2, loss.mu_squared)


def _tail_root(tail: mpmath.mpf, epsilon: mpmath.mpf) -> mpmath.mpf:
    """The x with Q(x) = tail, by a bracketing search that shares nothing with the code under test."""
    level = mpmath.log(2 * tail)
    low, high = mpmath.mpf(0), mpmath.sqrt(4 * epsilon) + epsilon
    for _ in range(170):
        middle = (low + high) / 2
        if mpmath.log(mpmath.erfc(middle / mpmath.sqrt(2))) > level:
            low = middle
        else:
            high = middle
    return low


def test_rho_bounds_the_reference_curves() -> None:
    """Shows that order times rho meets the Gaussian's Renyi divergences of a reference table and bounds the others."""
    gaussian = GaussianEvent(l2_squared=Fraction(1), variance=Fraction(1)).loss()
    compared = 0
    for row in load("rdp_curves")["vectors"]:
        order = exact(row["alpha"])
        assert row["gaussian_sigma1"] == pytest.approx(float(number(gaussian.rho) * number(order)), rel=1e-15)
        for text, value in row["laplace"].items():
            assert value <= number(laplace(Fraction(text)).rho) * number(order)
            compared += 1
        for text, value in row["randomized_response"].items():
            assert value <= number(response(Fraction(text)).rho) * number(order)
    assert compared == 27


@pytest.mark.parametrize("text", ["0.01", "0.3", "1", "4", "12", "40"])
def test_rho_bounds_every_order(text: str) -> None:
    """Shows on a dense grid of orders that D_a <= a rho for Laplace noise and for boxes, and that order 1 is tight."""
    epsilon = Fraction(text)
    with mpmath.workdps(60):
        x = number(epsilon)
        p, q = 1 / (1 + mpmath.exp(-x)), 1 / (1 + mpmath.exp(x))
        laplace_rho, response_rho = number(laplace(epsilon).rho), number(response(epsilon).rho)
        closest = [mpmath.mpf(0), mpmath.mpf(0)]
        for step in range(-120, 121):
            above = mpmath.mpf(10) ** (mpmath.mpf(step) / 20)
            a = 1 + above
            first = mpmath.log(a / (2 * a - 1) * mpmath.exp(above * x) + above / (2 * a - 1) * mpmath.exp(-a * x))
            second = mpmath.log(p**a * q**-above + q**a * p**-above)
            closest = [
                max(closest[0], first / above / a / laplace_rho),
                max(closest[1], second / above / a / response_rho),
            ]
        assert max(closest) <= 1
        assert min(closest) >= 1 - mpmath.mpf("1e-4"), "a smaller rho would be false"


def _gaussian_trade_off(alpha: mpmath.mpf, mu: mpmath.mpf) -> mpmath.mpf:
    """G_mu(alpha) = Phi(Phi^-1(1 - alpha) - mu)."""
    quantile = -mpmath.sqrt(2) * mpmath.erfinv(2 * alpha - 1)
    return mpmath.ncdf(quantile - mu)


def _lowest_ratio(epsilon: mpmath.mpf, mu: mpmath.mpf, *, of_laplace: bool) -> mpmath.mpf:
    """The least trade-off function over G_mu on a dense grid of errors from both ends."""
    grid = [mpmath.mpf(10) ** (-mpmath.mpf(step) / 10) / 2 for step in range(60)]
    grid += [1 - alpha for alpha in grid]
    corner = mpmath.exp(-epsilon / 2) / 2 if of_laplace else 1 / (1 + mpmath.exp(epsilon))
    lowest = mpmath.inf
    for alpha in [*grid, corner]:
        if of_laplace and mpmath.exp(-epsilon) / 2 <= alpha <= mpmath.mpf(1) / 2:
            curve = mpmath.exp(-epsilon) / (4 * alpha)
        else:
            curve = max(1 - mpmath.exp(epsilon) * alpha, mpmath.exp(-epsilon) * (1 - alpha))
        lowest = min(lowest, curve / _gaussian_trade_off(alpha, mu))
    return lowest


@pytest.mark.sparse(8)
@pytest.mark.parametrize("text", ["0.01", "0.1", "0.7", "1", "3", "8", "20"])
@pytest.mark.parametrize("of_laplace", [True, False], ids=["laplace", "box"])
def test_a_gaussian_dominates(text: str, of_laplace: bool) -> None:
    """Shows on a dense grid that the trade-off function lies above G_mu, and below it for a mu of 0.1 % less."""
    epsilon = Fraction(text)
    loss = laplace(epsilon) if of_laplace else response(epsilon)
    with mpmath.workdps(50):
        mu = mpmath.sqrt(number(loss.mu_squared))
        assert _lowest_ratio(number(epsilon), mu, of_laplace=of_laplace) >= 1 - mpmath.mpf("1e-40")
        assert _lowest_ratio(number(epsilon), mu * mpmath.mpf("0.999"), of_laplace=of_laplace) < 1


@pytest.mark.slow
@given(
    parts=st.lists(
        st.fractions(min_value=Fraction(1, 10**5), max_value=Fraction(40), max_denominator=10**5),
        min_size=2,
        max_size=6,
    )
)
@settings(max_examples=60, deadline=None)
def test_laplace_holds_for_vectors(parts: list[Fraction]) -> None:
    """Shows that entries which share the L1 change lose no more, in any measure, than one entry with all of it."""
    together = laplace(sum(parts, start=Fraction(0)))
    apart = laplace(parts[0])
    for part in parts[1:]:
        apart = apart + laplace(part)
    assert apart.pure == together.pure
    slack = 1 + Fraction(1, 10**20)  # both sides are rounded up
    assert number(apart.rho) <= number(together.rho) * slack
    assert number(apart.mu_squared) <= number(together.mu_squared) * slack


@pytest.mark.parametrize("text", ["0.001", "0.01", "0.1", "1", "4"])
def test_laplace_noise_is_not_randomised_response(text: str) -> None:
    """Shows the discrete Laplace trap: with sensitivity 1 it is randomised response, which costs strictly more."""
    epsilon = Fraction(text)
    continuous, discrete = laplace(epsilon), response(epsilon)
    assert number(continuous.rho) < number(discrete.rho)
    assert number(continuous.mu_squared) < number(discrete.mu_squared)


def test_discrete_laplace_breaks_the_continuous_rho() -> None:
    """Shows that the divergences of discrete Laplace noise at sensitivity 1 exceed what LaplaceEvent's rho allows."""
    loss = laplace(Fraction(1))
    with mpmath.workdps(40):
        ratio = mpmath.exp(-1)
        mass = [(1 - ratio) / (1 + ratio) * ratio ** abs(k) for k in range(-200, 202)]
        for a in (mpmath.mpf("1.25"), mpmath.mpf("1.5")):
            total = mpmath.fsum(left**a * right ** (1 - a) for left, right in pairwise(mass))
            assert mpmath.log(total) / (a - 1) > a * number(loss.rho) * mpmath.mpf("1.001")


def test_gaussian_is_exact() -> None:
    """Shows that no measure of a Gaussian is rounded, and that thresholds add their delta and nothing else."""
    loss = GaussianEvent(l2_squared=Fraction(2, 3), variance=Fraction(7, 5)).loss()
    assert Fraction(10, 21) == loss.mu_squared
    assert Fraction(5, 21) == loss.rho
    assert loss.pure is None
    assert loss.delta == 0
    threshold = GaussianThresholdEvent(l2_squared=Fraction(2, 3), variance=Fraction(7, 5), delta=TINY_DELTA).loss()
    assert threshold.delta == TINY_DELTA
    assert (threshold.pure, threshold.rho, threshold.mu_squared) == (None, loss.rho, loss.mu_squared)


def test_anchors() -> None:
    """Shows published figures: mu of randomised response at 0.01 is 0.0125331, rho of Laplace 4.98337e-05."""
    assert float(response(Fraction(1, 100)).mu_squared or 0) ** 0.5 == pytest.approx(0.0125331, rel=1e-5)
    assert float(laplace(Fraction(1, 100)).rho or 0) == pytest.approx(4.98337e-05, rel=1e-6)


def test_small_and_ordinary_epsilon_meet() -> None:
    """Shows that where the leading terms take over, at 10^-12, the losses agree to 10^-11."""
    below, above = Fraction(1, 10**12) - Fraction(1, 10**30), Fraction(1, 10**12)
    for loss_at in (laplace, response):
        assert number(loss_at(below).rho) == pytest.approx(number(loss_at(above).rho), rel=1e-11)
        assert number(loss_at(below).mu_squared) == pytest.approx(number(loss_at(above).mu_squared), rel=1e-11)


def test_losses_stay_short() -> None:
    """Shows that a long sum of rounded measures stays a fraction of moderate length."""
    total = laplace(Fraction(1, 3))
    for step in range(1, 200):
        total = total + laplace(Fraction(1, 3 + step))
    assert total.mu_squared is not None
    assert total.mu_squared.denominator.bit_length() < 200
