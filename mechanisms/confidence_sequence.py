"""Intervals of which all hold at once, however often the precision is raised and whatever made somebody raise it.

Robbins' mixture from a first precision on (Robbins 1970, (17); proof for adaptive steps: gaussian_combined.md).
"""

from __future__ import annotations

import math
from functools import lru_cache

from mechanisms.interval import gaussian_two_sided

__all__ = ["constant", "factor", "missed", "narrower_from"]

_STEPS = 200


def missed(at: float) -> float:
    """The chance that |B(t)| ever reaches sqrt(t (at^2 + ln(t / t0))) for some t from t0 on, at most.

    2 (1 - Phi(a) + a phi(a)), B a Brownian motion. Requires: `at` is positive.
    """
    return math.erfc(at / math.sqrt(2)) + 2 * at * math.exp(-(at**2) / 2) / math.sqrt(2 * math.pi)


@lru_cache(maxsize=256)
def constant(alpha: float) -> float:
    """The a at which `missed` is at most alpha, rounded up. It falls with alpha, and `missed` falls with a."""
    low, high = 0.0, 64.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if missed(middle) * (1 + 1e-12) > alpha:
            low = middle
        else:
            high = middle
    return high * (1 + 1e-12)


def factor(alpha: float, grown: float) -> float:
    """How many standard errors such an interval reaches, over those of the interval of a single look.

    `grown` is the precision over the first one, at least 1.
    """
    return math.sqrt(constant(alpha) ** 2 + math.log(grown)) * (1 + 1e-12) / gaussian_two_sided(alpha)


@lru_cache(maxsize=256)
def narrower_from(alpha: float) -> float:
    """The precision over the first one from which on such an interval is narrower than that of the first look.

    Its reach over that one's, factor / sqrt(grown), falls with `grown`, as a^2 is above 1 for every alpha below 0.9.
    """
    low, high = 1.0, 2.0
    while factor(alpha, high) > math.sqrt(high):
        high *= 2
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if factor(alpha, middle) > math.sqrt(middle):
            low = middle
        else:
            high = middle
    return high
