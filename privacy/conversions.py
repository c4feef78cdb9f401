"""From one measure of privacy loss to another, always rounded so that the loss is never understated.

| from | to | function | rounded |
|---|---|---|---|
| mu of Gaussian DP, epsilon | delta | `gaussian_delta` | up |
| mu squared, delta | epsilon | `gaussian_epsilon` | up |
| (epsilon, delta) | mu squared | `gaussian_mu_squared` | down |
| (epsilon, delta) | mu squared in whole picos | `gaussian_mu_squared_near` | down |
| rho of zero-concentrated DP, delta | epsilon | `concentrated_epsilon` | up |
| (epsilon, delta) | rho | `concentrated_rho` | down |
| (epsilon, delta) | probability of guessing membership | `membership_guess` | up |
| probability | Gaussian quantile | `gaussian_quantile` | up |

There is no way back from an (epsilon, delta) pair to a Gaussian's mu: an event has the measures it was charged with.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from privacy.least import least_place
from privacy.numbers import PICO, units_down
from privacy.special import erfc, erfc_inverse, precise, rounded_down, rounded_up, to_decimal

__all__ = [
    "concentrated_epsilon",
    "concentrated_rho",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu_squared",
    "gaussian_mu_squared_near",
    "gaussian_quantile",
    "membership_guess",
]

# The caches below are typed: the float 0.5 equals one half, and must not be answered from its entry.

EPSILON_RANGE = (Fraction(1, 10**12), Fraction(10**6))
RHO_RANGE = (Fraction(1, 10**30), Fraction(10**12))
DELTA_MIN = Fraction(1, 10**300)
DELTA_LEAST = Decimal("1e-1000")
_ABOVE_ONE = (-40.0, 80.0)
"""Logarithms of how far an order of Renyi divergence is above one: where the best one is looked for."""


def gaussian_delta(*, mu: Fraction, epsilon: Fraction) -> Fraction:
    """The smallest delta for which mu-GDP implies (epsilon, delta)-DP, rounded up.

    delta = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu), never shown below 10^-1000.

    Requires: mu within [10^-12, 10^6], epsilon zero or within [10^-12, 10^6].
    Errors: ValueError outside.
    Source: Balle and Wang 2018, Theorem 8; Dong, Roth and Su 2022, Corollary 2.13.
    """
    _require(mu, name="mu", lowest=EPSILON_RANGE[0], highest=EPSILON_RANGE[1])
    if epsilon != 0:
        _require_epsilon(epsilon)
    with precise():
        # Whatever is below the least value, or cannot be distinguished from zero, is reported as the least value.
        return min(rounded_up(max(_gaussian_delta(to_decimal(mu), to_decimal(epsilon)), DELTA_LEAST)), Fraction(1))


def _gaussian_delta(mu: Decimal, epsilon: Decimal) -> Decimal:
    root = Decimal(8).sqrt()  # (epsilon/mu - mu/2) / sqrt(2) = (2 epsilon/mu - mu) / sqrt(8)
    likely = erfc((2 * epsilon / mu - mu) / root) / 2
    unlikely = epsilon.exp() * erfc((2 * epsilon / mu + mu) / root) / 2
    return likely - unlikely


@lru_cache(maxsize=4096, typed=True)
def gaussian_epsilon(*, mu_squared: Fraction, delta: Fraction) -> Fraction:
    """An epsilon for which mu-GDP implies (epsilon, delta)-DP: the least one, rounded up by about a part in 10^9.

    Floats propose it and the exact curve decides, so floats can make it too large and never too small. Chernoff's
    bound on the tail, Phi(-t) <= e^(-t^2/2), is what is left when no proposal passes.

    Requires: mu within [10^-12, 10^6], delta within [10^-300, 1). Errors: ValueError outside.
    Ensures: zero, or at least 10^-12; `gaussian_delta` at the result is at most delta.
    Source: Balle and Wang 2018, Theorem 8, solved for epsilon.
    """
    _require(mu_squared, name="mu squared", lowest=EPSILON_RANGE[0] ** 2, highest=EPSILON_RANGE[1] ** 2)
    _require_delta(delta)
    with precise():
        mu, target = to_decimal(mu_squared).sqrt(), to_decimal(delta)
        if _gaussian_delta(mu, Decimal(0)) <= target:
            return Fraction(0)
        wide, tail = float(mu), float(target.ln())
        low, high = 0.0, wide * wide / 2 + wide * math.sqrt(-2 * tail)
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if _log_gaussian_delta(wide, middle) > tail else (low, middle)
        for margin in (1e-9, 1e-6, 1e-3):
            proposed = max(rounded_up(Decimal(high) * (1 + Decimal(margin))), EPSILON_RANGE[0])
            if _gaussian_delta(mu, to_decimal(proposed)) <= target:
                return proposed
        return max(rounded_up(mu * mu / 2 + mu * (-2 * target.ln()).sqrt()), EPSILON_RANGE[0])


def _log_gaussian_delta(mu: float, epsilon: float) -> float:
    """The logarithm of `gaussian_delta` in floats: phi(a) (M(a) - M(a + mu)), a = epsilon/mu - mu/2, M Mills' ratio."""
    near = epsilon / mu - mu / 2
    if near < -5:
        return 0.0  # nearly one: far above every delta that is asked for
    gap = _mills(near) - _mills(near + mu)
    return -near * near / 2 - 0.9189385332046727 + math.log(gap) if gap > 0 else -math.inf


def _mills(x: float) -> float:
    """Phi(-x) / phi(x) for x above -6."""
    if x < 25:
        return math.sqrt(math.pi / 2) * math.erfc(x / math.sqrt(2)) * math.exp(x * x / 2)
    square = 1 / (x * x)
    return (1 - square * (1 - square * (3 - square * 15))) / x


@lru_cache(maxsize=1024, typed=True)
def gaussian_mu_squared(*, epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest mu squared for which mu-GDP implies (epsilon, delta)-DP, rounded down.

    Requires: epsilon within [10^-12, 10^6], delta within [10^-300, 1).
    Ensures: `gaussian_delta` of a root of the result is at most delta.
    Errors: ValueError outside.
    Source: the inverse of Balle and Wang 2018, Theorem 8 ("analytic Gaussian").
    """
    _require_epsilon(epsilon)
    _require_delta(delta)
    with precise():
        level, target = to_decimal(epsilon), to_decimal(delta)
        # delta grows with mu, from 0 to 1; each side is moved until the root lies between them.
        low, high = level, level + 1
        while _gaussian_delta(low, level) > target:
            low /= 4
        while _gaussian_delta(high, level) <= target:
            high *= 2
        mu = (low + high) / 2
        while high - low > low * Decimal("1e-30"):
            value = _gaussian_delta(mu, level)
            if value > target:
                high = mu
            else:
                low = mu
            # Newton on ln delta, whose derivative is the Gaussian density at epsilon/mu - mu/2 over delta; a
            # step that leaves the bracket is replaced by its middle.
            density = (-((level / mu - mu / 2) ** 2) / 2).exp() / Decimal("2.5066282746310005024157652848110452530")
            step = (target / value).ln() * value / density if value > 0 else high
            close = mu + step
            # The root is approached from both sides: a hair beyond it moves the other end of the bracket.
            close += close.copy_abs() * Decimal("3e-31") * (1 if value <= target else -1)
            mu = close if low < close < high else (low + high) / 2
        return rounded_down(low * low)


@lru_cache(maxsize=1024, typed=True)
def gaussian_mu_squared_near(*, epsilon: Fraction, delta: Fraction) -> Fraction:
    """`gaussian_mu_squared` to about nine digits in whole picos, at a fraction of its time: for prices, not limits.

    Floats propose it and the exact curve decides, so floats can make it too small and never too large.

    Requires: as `gaussian_mu_squared`. Ensures: at most `gaussian_mu_squared`.
    Errors: ValueError outside, and when the result would be less than a pico.
    """
    _require_epsilon(epsilon)
    _require_delta(delta)
    level, tail = float(epsilon), _log(delta)
    low, high = 1e-12, 1e6
    for _ in range(80):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if _log_gaussian_delta(middle, level) <= tail else (low, middle)
    with precise():
        for margin in (1e-9, 1e-6, 1e-3):
            units = units_down(Fraction(low * (1 - margin)) ** 2, PICO)
            if units < 1:
                break
            mu = (Decimal(units) * Decimal("1e-12")).sqrt() * (1 + Decimal("1e-40"))
            if _gaussian_delta(mu, to_decimal(epsilon)) <= to_decimal(delta):
                return units * PICO
    raise ValueError("epsilon is too small for Gaussian noise at this delta")


@lru_cache(maxsize=1024, typed=True)
def concentrated_epsilon(*, rho: Fraction, delta: Fraction) -> Fraction:
    """An epsilon for which rho-zCDP implies (epsilon, delta)-DP, rounded up.

    The infimum over orders a > 1 of a rho + ln(1 - 1/a) - (ln delta + ln a) / (a - 1); every order gives a valid
    epsilon, so the search for the best one may be inexact without harm.

    Requires: rho within [10^-30, 10^12], delta within [10^-300, 1).
    Errors: ValueError outside.
    Source: Canonne, Kamath and Steinke 2020, Proposition 12 and Corollary 13.
    """
    _require(rho, name="rho", lowest=RHO_RANGE[0], highest=RHO_RANGE[1])
    _require_delta(delta)
    slope, tail = float(rho), _log(delta)
    above = least_place(lambda x: slope * (1 + math.exp(x)) + _concentrated_rest(x, tail), *_ABOVE_ONE)
    with precise():
        order = 1 + Decimal(above).exp()
        value = order * to_decimal(rho) + _exact_rest(order, to_decimal(delta))
        return rounded_up(max(value, Decimal(0)))


@lru_cache(maxsize=1024, typed=True)
def concentrated_rho(*, epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho for which rho-zCDP implies (epsilon, delta)-DP by `concentrated_epsilon`, rounded down.

    Requires: epsilon within [10^-12, 10^6], delta within [10^-300, 1).
    Errors: ValueError outside.
    Source: Canonne, Kamath and Steinke 2020, Corollary 13, solved for rho at each order.
    """
    _require_epsilon(epsilon)
    _require_delta(delta)
    level, tail = float(epsilon), _log(delta)
    above = least_place(lambda x: -(level - _concentrated_rest(x, tail)) / (1 + math.exp(x)), *_ABOVE_ONE)
    with precise():
        order = 1 + Decimal(above).exp()
        value = (to_decimal(epsilon) - _exact_rest(order, to_decimal(delta))) / order
        assert value > 0, "some order always leaves room for a little rho"
        return rounded_down(value)


def _concentrated_rest(x: float, tail: float) -> float:
    """ln(1 - 1/a) - (ln delta + ln a) / (a - 1) at a = 1 + e^x."""
    above = math.exp(x)
    return -math.log1p(math.exp(-x)) - (tail + math.log1p(above)) / above


def _exact_rest(order: Decimal, delta: Decimal) -> Decimal:
    return ((order - 1) / order).ln() - (delta * order).ln() / (order - 1)


def membership_guess(epsilon: Fraction, delta: Fraction = Fraction(0)) -> Fraction:
    """The greatest probability of guessing, after a fair coin, whether a unit took part, rounded up.

    (e^E + delta) / (e^E + 1), and it is attained: membership.md beside this file has the proof and its limits.
    Requires: epsilon within [10^-12, 10^6], delta within [0, 1). Errors: ValueError outside.
    Source: Kairouz, Oh and Viswanath 2015, Theorem 2.1.
    """
    _require_epsilon(epsilon)
    if not isinstance(delta, Fraction):
        raise TypeError("delta must be a Fraction")
    if not 0 <= delta < 1:
        raise ValueError("delta must be at least zero and less than one")
    with precise():
        other = (-to_decimal(epsilon)).exp()
        return min(rounded_up((1 + to_decimal(delta) * other) / (1 + other)), Fraction(1))


@lru_cache(maxsize=1024, typed=True)
def gaussian_quantile(probability: Fraction) -> Fraction:
    """The z with Phi(z) = probability for the standard Gaussian, rounded up.

    Requires: probability within [1/2, 1 - 10^-300]. Errors: ValueError outside.
    """
    if not isinstance(probability, Fraction):
        raise TypeError("probability must be a Fraction")
    if not Fraction(1, 2) <= probability <= 1 - DELTA_MIN:
        raise ValueError("probability must be at least one half and less than one")
    if probability == Fraction(1, 2):
        return Fraction(0)
    with precise():
        # The tail is subtracted as a fraction, so a probability near one keeps its digits.
        tail = to_decimal(2 * (1 - probability))
        centre = to_decimal(2 * probability - 1)
        if centre < Decimal("1e-20"):
            return rounded_up(centre * Decimal("1.25331413731550025121"))  # sqrt(pi/2), its last digit rounded up
        return rounded_up(Decimal(2).sqrt() * erfc_inverse(-tail.ln()))


def _log(value: Fraction) -> float:
    with precise():
        return float(to_decimal(value).ln())


def _require_epsilon(epsilon: Fraction) -> None:
    _require(epsilon, name="epsilon", lowest=EPSILON_RANGE[0], highest=EPSILON_RANGE[1])


def _require_delta(delta: Fraction) -> None:
    _require(delta, name="delta", lowest=DELTA_MIN, highest=1 - DELTA_MIN)


def _require(value: Fraction, *, name: str, lowest: Fraction, highest: Fraction) -> None:
    if not isinstance(value, Fraction):
        raise TypeError(f"{name} must be a Fraction")
    if not lowest <= value <= highest:
        raise ValueError(f"{name} is outside the range of this conversion")
