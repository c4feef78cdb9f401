"""The threshold for groups that are shown by the number of rows in their own moments: own_threshold.md."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np

from mechanisms.gaussian_threshold import chance_per_group
from mechanisms.interval import Floats
from mechanisms.linear import upper_normal
from mechanisms.measurement import root_up
from privacy.conversions import gaussian_quantile

__all__ = ["gaussian_reach", "laplace_reach", "laplace_tail", "normal_tail", "shown_alphas"]

_DIGITS = 60

_FAR, _NEAR = 2.0**-20, 1 / 64
"""Parts of alpha for the number of rows itself: of groups that hardly anything hides, and of others."""

_ROOM = 1 - 1e-6
"""For the rounding of floats: it only widens."""

_HALVINGS = 60


@lru_cache(maxsize=1024)
def gaussian_reach(*, variance: Fraction, groups_per_unit: int, delta: Fraction) -> Fraction:
    """What a normal number of this variance exceeds with `chance_per_group` at most. Rounded up, not negative.

    Errors: ValueError for a delta outside (0, 1) or below 10^-300.
    """
    chance = chance_per_group(groups_per_unit=groups_per_unit, delta=delta)
    return root_up(variance) * gaussian_quantile(max(1 - chance, Fraction(1, 2)))


@lru_cache(maxsize=1024)
def laplace_reach(*, several: int, groups_per_unit: int, delta: Fraction) -> Fraction:
    """What the sum of so many standard Laplace variables exceeds with `chance_per_group` at most. Rounded up.

    Errors: ValueError for a delta outside (0, 1) or below 10^-300.
    """
    chance = chance_per_group(groups_per_unit=groups_per_unit, delta=delta)
    if chance >= Fraction(1, 2):
        return Fraction(0)
    with localcontext(prec=_DIGITS):
        goal = Decimal(chance.numerator) / Decimal(chance.denominator)
        terms = [Decimal(part.numerator) / Decimal(part.denominator) for part in _terms(several)]

        def above(t: Decimal) -> bool:
            polynomial = sum((term * t**power for power, term in enumerate(terms)), Decimal(0))
            return polynomial * (-t).exp() * (1 + Decimal(10) ** (10 - _DIGITS)) > goal

        low, high = Decimal(0), Decimal(1)
        while above(high):
            low, high = high, 2 * high
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if above(middle) else (low, middle)
        return Fraction(high)


@lru_cache(maxsize=32)
def _terms(several: int) -> tuple[Fraction, ...]:
    """The polynomial q with P(sum of so many > t) = q(t) exp(-t) for t >= 0, by its coefficients from t^0 on.

    The density is p(t) exp(-|t|), the difference of two gamma variables, and q is the sum of all derivatives of p.
    """
    n, bottom = several, math.factorial(several - 1) * 2**several
    density = [Fraction(0)] * n
    for k in range(n):
        top = Fraction(math.factorial(n - 1 + k), math.factorial(k) * math.factorial(n - 1 - k) * 2**k)
        density[n - 1 - k] = top / bottom
    total, part = list(density), density
    while len(part) > 1:
        part = [power * part[power] for power in range(1, len(part))]
        total = [one + (part[i] if i < len(part) else 0) for i, one in enumerate(total)]
    return tuple(total)


def laplace_tail(several: int, scale: float) -> Callable[[Floats], Floats]:
    """P(sum of so many Laplace variables of this scale > x)."""
    terms = [float(term) for term in _terms(several)]

    def tail(x: Floats) -> Floats:
        size = np.abs(x) / scale
        beyond = np.polynomial.polynomial.polyval(size, terms) * np.exp(-size)
        return np.where(x >= 0, beyond, 1 - beyond)

    return tail


def normal_tail(deviation: float) -> Callable[[Floats], Floats]:
    """P(a normal number of this deviation > x)."""

    def tail(x: Floats) -> Floats:
        return upper_normal(x / deviation)

    return tail


def shown_alphas(
    counts: Floats, *, least: float, threshold: float, fuzz: float, tail: Callable[[Floats], Floats], alpha: float
) -> Floats:
    """For each noisy count that is shown, an alpha at which intervals hold with 1 - alpha given that it is shown.

    `fuzz` bounds the rounding of a noisy count; no group has fewer rows than `least`. Ensures: at most alpha, and of
    counts far above the threshold nearly that. There are few different ones. Proof: own_threshold.md.
    """
    excess = np.maximum(counts - threshold - 2 * fuzz, 0.0)
    edge = threshold + fuzz

    def fewest(part: float) -> Floats:
        """The least number of rows of which so high a count is not too rare, given that it is shown; or less."""
        low, high = np.full_like(excess, least), np.maximum(counts, least)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            rare = tail(edge - middle + excess) <= part * alpha * tail(edge - middle) * _ROOM
            low, high = np.where(rare, middle, low), np.where(rare, high, middle)
        return low

    far = tail(fewest(_FAR) - edge) <= _FAR * _ROOM
    shown = tail(edge - fewest(_NEAR)) * _ROOM
    steps = 2.0 ** -(np.ceil(-4 * np.log2(np.maximum(shown, 1e-300))) / 4)
    found: Floats = alpha * np.where(far, 1 - 2 * _FAR, (1 - 2 * _NEAR) * steps)
    return found
