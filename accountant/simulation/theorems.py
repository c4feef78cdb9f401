"""Composition theorems in closed form, as functions of the number of questions. Two of them are wrong, and say so.

Every function takes `count`, the number of questions, and gives the epsilon that they promise together at `delta`.
"""

from __future__ import annotations

import math

__all__ = [
    "advanced",
    "advanced_of_books",
    "bun_steinke",
    "classical_gaussian",
    "classical_gaussian_of_books",
    "filter_of_rogers",
    "filter_of_whitehouse",
]


def advanced(epsilon: float, count: int, delta: float) -> float:
    """Advanced composition of `count` epsilon-DP mechanisms. Source: Dwork, Rothblum and Vadhan 2010, Theorem III.3."""
    return epsilon * math.sqrt(2 * count * -math.log(delta)) + count * epsilon * math.expm1(epsilon)


def advanced_of_books(epsilon: float, count: int, delta: float) -> float:
    """The form 2 epsilon sqrt(2 k ln(1/delta)) that is printed without its condition. Wrong in general.

    It needs k (e^epsilon - 1)^2 <= 2 ln(1/delta). At epsilon 1, 500 questions and delta 10^-5 it gives 214.6, where
    Laplace noise has a delta of 0.0395.
    """
    return 2 * epsilon * math.sqrt(2 * count * -math.log(delta))


def filter_of_rogers(epsilon: float, count: int, delta: float) -> float:
    """The first filter for adaptively chosen epsilons, at its own limit.

    The limit stands on both sides of its inequality; the least one that admits `count` questions is returned.
    Source: Rogers, Roth, Ullman and Vadhan 2016, Theorem 5.1.
    """
    squares, drift = count * epsilon**2, count * epsilon * math.expm1(epsilon) / 2
    tail = -math.log(delta)

    def needed(limit: float) -> float:
        slack = limit**2 / (28.04 * tail)
        spread = 2 * (squares + slack) * (1 + math.log1p(squares / slack) / 2) * math.log(2 / delta)
        return drift + math.sqrt(spread)

    low, high = 0.0, 1.0
    while needed(high) > high:
        high *= 2
        if high > 1e9:
            return math.inf
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if needed(middle) <= middle else (middle, high)
    return high


def filter_of_whitehouse(epsilon: float, count: int, delta: float) -> float:
    """Advanced composition with its best constants, as a filter. Source: Whitehouse et al. 2023, Theorem 2."""
    return bun_steinke(count * epsilon**2 / 2, delta)


def bun_steinke(rho: float, delta: float) -> float:
    """The epsilon of rho-zCDP in its first conversion: rho + 2 sqrt(rho ln(1/delta)). Right, and loose.

    Source: Bun and Steinke 2016, Proposition 1.3.
    """
    return rho + 2 * math.sqrt(rho * -math.log(delta))


def classical_gaussian(mu: float, count: int, delta: float) -> float:
    """Classical Gaussian noise at delta / k for each of k questions, their epsilons added up.

    sqrt(2 ln(1.25 k / delta)) mu for each of them, which is proved for an epsilon of each below 1 only: above it
    infinite. Source: Dwork and Roth 2014, Theorems A.1 and 3.16.
    """
    each = mu * math.sqrt(2 * math.log(1.25 * count / delta))
    return count * each if each < 1 else math.inf


def classical_gaussian_of_books(mu: float, count: int, delta: float) -> float:
    """Classical Gaussian noise under the wrong form of advanced composition, half of delta for each of them. Wrong."""
    each = mu * math.sqrt(2 * math.log(2.5 * count / delta))
    return advanced_of_books(each, count, delta / 2)
