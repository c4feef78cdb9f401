"""Student's noise with two degrees of freedom, rounded to integers: round(scale * T), exactly.

Its density is (2 + t^2)^(-3/2), and P(|T| <= t) = t / sqrt(2 + t^2): T is V sqrt(2 / (1 - V^2)) for a uniform V, with
either sign. One word of 64 bits gives the sign (its top bit) and the leading 63 bits of V. All is arithmetic of whole
numbers: no float decides a result. Proof: smooth_sensitivity.md.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mechanisms.randomness import BitSource
from mechanisms.samplers.undecided import require_scale

__all__ = ["QUANTILE_68", "rounded_student", "student_floats"]

QUANTILE_68 = 1.3213
"""What |T| stays within in 68.27 % of draws, as normal noise within one standard deviation. It has no variance."""


def rounded_student(*, scale: Fraction, bits: BitSource) -> int:
    """One draw of round(scale * T).

    Requires: `scale` a positive dyadic, at most 2^45. Ensures: the law is that of the rounded real, exactly. Takes one
    word, and one more for each refinement. Errors: ValueError for another scale.
    """
    require_scale(scale)
    word = int(bits.words(1)[0])
    value, length = word & (2**63 - 1), 63
    while True:
        whole = 1 << length
        if value + 1 < whole:
            low, high = (_rounded(scale, end, whole) for end in (value, value + 1))
            if low == high:
                return -low if word >> 63 else low
        value, length = value << 64 | int(bits.words(1)[0]), length + 64


def _rounded(scale: Fraction, value: int, whole: int) -> int:
    """floor(s V sqrt(2 / (1 - V^2)) + 1/2) for V = value / whole: half of floor(sqrt(4 X)) + 1, X the square."""
    top = 8 * scale.numerator**2 * value**2
    bottom = scale.denominator**2 * (whole - value) * (whole + value)
    return (math.isqrt(top // bottom) + 1) // 2


def student_floats(count: int, bits: BitSource) -> npt.NDArray[np.float64]:
    """About as many draws of T itself, in floats: for simulated answers alone."""
    words = bits.words(count)
    part = ((words & np.uint64(2**63 - 1)).astype(np.float64) + 0.5) * 2.0**-63
    size = part * np.sqrt(2 / np.maximum(1 - part * part, 2.0**-60))
    result: npt.NDArray[np.float64] = np.where(words >> np.uint64(63), -size, size)
    return result
