"""The rational that stands for e^epsilon in local encoders: never above it."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

__all__ = ["EPSILON_MAX", "EPSILON_MIN", "RATIO_BITS", "ratio_below"]

RATIO_BITS = 32
"""Ratios are multiples of 2^-32, so that every weight of an encoder is an integer below 2^63."""

EPSILON_MIN, EPSILON_MAX = Fraction(1, 100), Fraction(16)
"""Below, a report says next to nothing; above, it is next to the value itself."""

_PRECISION = 256


@lru_cache(maxsize=256)
def ratio_below(epsilon: Fraction) -> Fraction:
    """The greatest multiple of 2^-32 that is at most e^epsilon.

    Errors: ValueError for an epsilon outside the limits.
    """
    if not EPSILON_MIN / 2 <= epsilon <= EPSILON_MAX:
        raise ValueError("the epsilon of a local encoder is at least 0.01 and at most 16")
    # Loaded when it is needed: it takes a tenth of the server's start.
    from mpmath.libmp import from_rational, mpf_exp, to_rational

    power = mpf_exp(from_rational(epsilon.numerator, epsilon.denominator, _PRECISION, "d"), _PRECISION, "d")
    top, bottom = to_rational(power)
    return Fraction(math.floor(Fraction(int(top), int(bottom)) * (1 << RATIO_BITS)), 1 << RATIO_BITS)
