"""The threshold for groups of units that own several groups: gaussian_threshold.md."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from privacy.conversions import gaussian_quantile

__all__ = ["chance_per_group", "gaussian_threshold"]

_PRECISION = 1600
"""Bits: delta / groups is 2^-1020 at least, and its leading 500 bits stay right."""


@lru_cache(maxsize=1024)
def chance_per_group(*, groups_per_unit: int, delta: Fraction) -> Fraction:
    """The chance p with which each group of a single unit may pass: 1 - (1 - p)^groups <= delta. Rounded down.

    Errors: ValueError when delta is not inside (0, 1).
    """
    if not 0 < delta < 1:
        raise ValueError("a threshold needs a delta above zero and below one")
    if groups_per_unit == 1:
        return delta
    # Loaded when it is needed: it takes a tenth of the server's start.
    from mpmath.libmp import from_int, from_rational, mpf_div, mpf_exp, mpf_log, to_rational

    missed = 1 - delta
    logarithm = mpf_log(from_rational(missed.numerator, missed.denominator, _PRECISION), _PRECISION)
    top, bottom = to_rational(mpf_exp(mpf_div(logarithm, from_int(groups_per_unit), _PRECISION), _PRECISION))
    chance = (1 - Fraction(int(top), int(bottom))) * (1 - Fraction(1, 2**128))
    if chance <= 0:
        raise ValueError("delta is too small for a threshold")
    return chance


@lru_cache(maxsize=1024)
def gaussian_threshold(*, sigma: Fraction, groups_per_unit: int, delta: Fraction) -> int:
    """The least whole noisy count that is released.

    Ensures: a group of one unit, whose noisy count is 1 + round(sigma Z), reaches it with probability at most
    `chance_per_group`, so that any of the unit's groups does with at most delta.
    Errors: ValueError for a delta outside (0, 1) or below 10^-300.
    """
    chance = chance_per_group(groups_per_unit=groups_per_unit, delta=delta)
    # 1 + round(sigma Z) >= T needs sigma Z >= T - 3/2 (a tie has probability zero).
    quantile = gaussian_quantile(max(1 - chance, Fraction(1, 2)))
    return max(2, math.ceil(Fraction(3, 2) + sigma * quantile))
