"""Conversions between measures: reference values, direction of rounding, edges."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy.conversions import (
    concentrated_epsilon,
    concentrated_rho,
    gaussian_delta,
    gaussian_mu_squared,
    gaussian_quantile,
    membership_guess,
)
from tests.privacy.vectors import exact, load

EDGES = [
    ("1e-12", "1e-18"),
    ("1e-12", "0.999999"),
    ("1e-6", "1e-300"),
    ("0.001", "0.9"),
    ("1", "1e-300"),
    ("1", "2.5e-7"),
    ("10", "0.999"),
    ("1e6", "1e-6"),
    ("1e6", "0.99"),
]


def number(value: Fraction) -> mpmath.mpf:
    """The fraction at the working precision of mpmath."""
    return mpmath.mpf(value.numerator) / value.denominator


def true_delta(mu: mpmath.mpf, epsilon: mpmath.mpf) -> mpmath.mpf:
    """Balle and Wang 2018, Theorem 8, by mpmath's own normal distribution."""
    return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)


def true_epsilon(rho: mpmath.mpf, delta: mpmath.mpf, order: mpmath.mpf) -> mpmath.mpf:
    """Canonne, Kamath and Steinke 2020, Corollary 13, at one order."""
    return order * rho + mpmath.log(1 - 1 / order) - mpmath.log(delta * order) / (order - 1)


def test_analytic_gaussian_meets_the_reference_values() -> None:
    """Shows sigma of the reference table to 10^-12 relative, for 35 pairs of epsilon and delta."""
    rows = load("analytic_gaussian")["vectors"]
    assert len(rows) == 35
    for row in rows:
        mu_squared = gaussian_mu_squared(epsilon=exact(row["eps"]), delta=exact(row["delta"]))
        assert float(row["sigma"]) == pytest.approx(float(mu_squared) ** -0.5, rel=1e-12)


@pytest.mark.parametrize(("epsilon", "delta"), EDGES)
def test_mu_squared_is_rounded_down(epsilon: str, delta: str) -> None:
    """Shows with another implementation that the result keeps delta and that 10^-9 more of it would not."""
    mu_squared = gaussian_mu_squared(epsilon=Fraction(epsilon), delta=Fraction(delta))
    with mpmath.workdps(120):
        level, limit = number(Fraction(epsilon)), number(Fraction(delta))
        assert true_delta(mpmath.sqrt(number(mu_squared)), level) <= limit
        assert true_delta(mpmath.sqrt(number(mu_squared) * mpmath.mpf("1.000000001")), level) > limit


@given(
    mu=st.fractions(min_value=Fraction(1, 1000), max_value=Fraction(20), max_denominator=10**6),
    epsilon=st.fractions(min_value=Fraction(1, 1000), max_value=Fraction(40), max_denominator=10**6),
)
@settings(max_examples=80, deadline=None)
@pytest.mark.slow
def test_gaussian_delta_is_rounded_up(mu: Fraction, epsilon: Fraction) -> None:
    """Shows that delta is never below the truth and above it by 10^-20 relative at most."""
    result = gaussian_delta(mu=mu, epsilon=epsilon)
    with mpmath.workdps(1200):
        # Far in the tail the two terms agree in hundreds of digits, which mpmath must carry.
        truth = max(true_delta(number(mu), number(epsilon)), mpmath.mpf("1e-1000"))
        assert truth <= number(result) <= truth * (1 + mpmath.mpf("1e-20"))


def test_gaussian_delta_is_the_hockey_stick_divergence() -> None:
    """Shows the formula against numerical integration of max(p - e^eps q, 0) over two Gaussian densities."""
    with mpmath.workdps(30):
        mu, epsilon = mpmath.mpf("1.25"), mpmath.mpf("0.75")
        start = epsilon / mu + mu / 2
        integral = mpmath.quad(
            lambda y: mpmath.npdf(y, mu) - mpmath.exp(epsilon) * mpmath.npdf(y), [start, start + 4, start + 40]
        )
        assert mpmath.almosteq(integral, number(gaussian_delta(mu=Fraction(5, 4), epsilon=Fraction(3, 4))), 1e-20)


def test_gaussian_delta_at_the_edges() -> None:
    """Shows epsilon zero (total variation), a vanishing delta that is not called zero, and a delta of nearly one."""
    with mpmath.workdps(50):
        truth = mpmath.erf(1 / mpmath.sqrt(8))
        assert truth <= number(gaussian_delta(mu=Fraction(1), epsilon=Fraction(0))) <= truth * (1 + mpmath.mpf("1e-20"))
    assert (
        Fraction(1, 10**1000) <= gaussian_delta(mu=Fraction(1, 10**12), epsilon=Fraction(10**6)) < Fraction(1, 10**999)
    )
    assert gaussian_delta(mu=Fraction(10**6), epsilon=Fraction(1)) == 1


def test_gaussian_composition_meets_the_reference_values() -> None:
    """Shows k-fold Gaussians: exact epsilon gives back delta, and zCDP by the best order gives the table's."""
    for row in load("gaussian_composition")["vectors"]:
        mu_squared = exact(row["k"]) / exact(row["sigma"]) ** 2
        delta = exact(row["delta"])
        back = gaussian_mu_squared(epsilon=exact(row["eps_exact_gdp"]), delta=delta)
        assert float(mu_squared) == pytest.approx(float(back), rel=1e-9)
        epsilon = concentrated_epsilon(rho=mu_squared / 2, delta=delta)
        assert row["eps_zcdp_cks"] == pytest.approx(float(epsilon), rel=1e-9)
        assert row["eps_exact_gdp"] < epsilon


def test_concentrated_conversion_meets_the_reference_values() -> None:
    """Shows both directions of the reference table to 10^-9 relative, and the anchor (1, 1e-6)."""
    table = load("zcdp_conversion")
    for row in table["vectors"]:
        epsilon = concentrated_epsilon(rho=exact(row["rho"]), delta=exact(row["delta"]))
        assert row["eps_cks_optimal"] == pytest.approx(float(epsilon), rel=1e-9)
    for row in table["budget_to_rho"]:
        rho = concentrated_rho(epsilon=exact(row["eps"]), delta=exact(row["delta"]))
        assert row["rho_cks"] == pytest.approx(float(rho), rel=1e-9)
    anchor = concentrated_rho(epsilon=Fraction(1), delta=Fraction(1, 10**6))
    assert load("queries_allowed")["rho_budget_cks"] == pytest.approx(float(anchor), rel=1e-12)


def best_rho(epsilon: mpmath.mpf, delta: mpmath.mpf) -> mpmath.mpf:
    """The most that any order proves: a grid of orders, then thirds of the interval around the best."""

    def at(x: mpmath.mpf) -> mpmath.mpf:
        order = 1 + mpmath.exp(x)
        return (epsilon - true_epsilon(mpmath.mpf(0), delta, order)) / order

    best = max((mpmath.mpf(step) / 10 for step in range(-400, 800)), key=at)
    low, high = best - mpmath.mpf("0.1"), best + mpmath.mpf("0.1")
    for _ in range(150):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        if at(left) < at(right):
            low = left
        else:
            high = right
    return at((low + high) / 2)


@pytest.mark.sparse(3)
@pytest.mark.parametrize(("epsilon", "delta"), EDGES)
def test_rho_is_rounded_down(epsilon: str, delta: str) -> None:
    """Shows that the result is not above what the best order proves, and below it by 10^-9 relative at most."""
    rho = concentrated_rho(epsilon=Fraction(epsilon), delta=Fraction(delta))
    with mpmath.workdps(80):
        truth = best_rho(number(Fraction(epsilon)), number(Fraction(delta)))
        assert truth * (1 - mpmath.mpf("1e-9")) <= number(rho) <= truth


@pytest.mark.parametrize(("epsilon", "delta"), EDGES)
def test_both_conversions_meet(epsilon: str, delta: str) -> None:
    """Shows that the budget, turned back into an epsilon, is the epsilon from which it came."""
    rho = concentrated_rho(epsilon=Fraction(epsilon), delta=Fraction(delta))
    back = concentrated_epsilon(rho=rho, delta=Fraction(delta))
    assert float(epsilon) == pytest.approx(float(back), rel=1e-9)


@given(
    rho=st.fractions(min_value=Fraction(1, 10**6), max_value=Fraction(50), max_denominator=10**6),
    power=st.integers(min_value=2, max_value=18),
)
@settings(max_examples=40, deadline=None)
def test_concentrated_is_weaker_than_gaussian(rho: Fraction, power: int) -> None:
    """Shows that rho-zCDP never promises more than the Gaussian, one mechanism with that rho, keeps."""
    delta = Fraction(1, 10**power)
    epsilon = concentrated_epsilon(rho=rho, delta=delta)
    if epsilon > 0:
        assert gaussian_mu_squared(epsilon=epsilon, delta=delta) >= 2 * rho * (1 - Fraction(1, 10**12))


@given(
    epsilon=st.fractions(min_value=Fraction(1, 100), max_value=Fraction(20), max_denominator=1000),
    power=st.integers(min_value=3, max_value=15),
)
@settings(max_examples=40, deadline=None)
def test_budgets_are_monotone(epsilon: Fraction, power: int) -> None:
    """Shows that a larger epsilon or a larger delta always buys more."""
    delta = Fraction(1, 10**power)
    for budget in (gaussian_mu_squared, concentrated_rho):
        here = budget(epsilon=epsilon, delta=delta)
        assert here < budget(epsilon=epsilon * Fraction(1001, 1000), delta=delta)
        assert here < budget(epsilon=epsilon, delta=delta * Fraction(1001, 1000))


def test_guesses() -> None:
    """Shows the attacker's chances: 0.731 at epsilon 1, never above one or below a half."""
    assert float(membership_guess(Fraction(1))) == pytest.approx(math.e / (1 + math.e), rel=1e-15)
    assert membership_guess(Fraction(10**6)) == 1
    assert Fraction(1, 2) < membership_guess(Fraction(1, 10**9)) < Fraction(1, 2) + Fraction(1, 10**9)


@pytest.mark.parametrize(("epsilon", "delta"), [("0.5", "0"), ("1", "0.01"), ("3", "0.3"), ("0.01", "0.5")])
def test_the_membership_guess_is_reached_and_never_exceeded(epsilon: str, delta: str) -> None:
    """The mechanism that leaks with chance delta reaches it; no pair of errors in the region beats it."""
    exact_epsilon, exact_delta = Fraction(epsilon), Fraction(delta)
    shown = float(membership_guess(exact_epsilon, exact_delta))
    truth = math.exp(exact_epsilon) / (1 + math.exp(exact_epsilon))
    assert shown == pytest.approx(float(delta) + (1 - float(delta)) * truth, rel=1e-12)
    factor = math.exp(exact_epsilon)
    best = max(
        1 - (alarm + max(0.0, 1 - float(delta) - factor * alarm, (1 - float(delta) - alarm) / factor)) / 2
        for alarm in (step / 10_000 for step in range(10_001))
    )
    assert best <= shown + 1e-12
    assert best == pytest.approx(shown, abs=1e-3)
    assert membership_guess(exact_epsilon, exact_delta) >= membership_guess(exact_epsilon)


@pytest.mark.parametrize("text", ["0.5000000000000000000000001", "0.6", "0.975", "0.9999", "0.999999999999999999"])
def test_quantile_is_rounded_up(text: str) -> None:
    """Shows the Gaussian quantile against mpmath's error function, on both sides."""
    probability = Fraction(text)
    quantile = gaussian_quantile(probability)
    with mpmath.workdps(60):
        tail = number(1 - probability)
        assert mpmath.erfc(number(quantile) / mpmath.sqrt(2)) / 2 <= tail
        assert mpmath.erfc(number(quantile) * (1 - mpmath.mpf("1e-15")) / mpmath.sqrt(2)) / 2 > tail


def test_quantile_of_a_half_is_zero() -> None:
    """Shows the one exact quantile."""
    assert gaussian_quantile(Fraction(1, 2)) == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda: gaussian_delta(mu=Fraction(0), epsilon=Fraction(1)),
        lambda: gaussian_delta(mu=Fraction(1), epsilon=Fraction(-1)),
        lambda: gaussian_mu_squared(epsilon=Fraction(0), delta=Fraction(1, 10)),
        lambda: gaussian_mu_squared(epsilon=Fraction(1), delta=Fraction(0)),
        lambda: gaussian_mu_squared(epsilon=Fraction(1), delta=Fraction(1)),
        lambda: gaussian_mu_squared(epsilon=Fraction(10**7), delta=Fraction(1, 10)),
        lambda: concentrated_rho(epsilon=Fraction(-1), delta=Fraction(1, 10)),
        lambda: concentrated_rho(epsilon=Fraction(1), delta=Fraction(1, 10**301)),
        lambda: concentrated_epsilon(rho=Fraction(0), delta=Fraction(1, 10)),
        lambda: concentrated_epsilon(rho=Fraction(1), delta=Fraction(2)),
        lambda: membership_guess(Fraction(0)),
        lambda: gaussian_quantile(Fraction(1)),
        lambda: gaussian_quantile(Fraction(1, 3)),
    ],
)
def test_outside_the_range_is_refused(call: Callable[[], Fraction]) -> None:
    """Shows that amounts for which no statement is made raise ValueError."""
    with pytest.raises(ValueError, match=r"outside the range|probability must be"):
        call()


@pytest.mark.parametrize("wrong", [0.5, math.nan, "1", None])
def test_floats_are_not_budgets(wrong: Any) -> None:
    """Shows that bare floats (with NaN), text and None are refused, also when an equal fraction was just answered."""
    half = Fraction(1, 2)
    assert gaussian_quantile(half) == 0
    assert gaussian_mu_squared(epsilon=half, delta=half) > 0
    assert concentrated_rho(epsilon=Fraction(1), delta=half) > 0
    with pytest.raises(TypeError, match="must be a Fraction"):
        gaussian_mu_squared(epsilon=wrong, delta=half)
    with pytest.raises(TypeError, match="must be a Fraction"):
        concentrated_rho(epsilon=Fraction(1), delta=wrong)
    with pytest.raises(TypeError, match="must be a Fraction"):
        membership_guess(wrong)
    with pytest.raises(TypeError, match="must be a Fraction"):
        gaussian_quantile(wrong)
