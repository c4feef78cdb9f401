"""Laplace noise, rounded to integers: round(scale * Z) for a real Z with density exp(-|z|) / 2, exactly.

One word of 64 bits gives the sign (its top bit) and the leading 63 bits of a real uniform U; the magnitude is -ln U.
Its rounding is decided in floats where the error cannot matter and in intervals elsewhere. Proof: rounding.md.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mechanisms.randomness import BitSource
from mechanisms.samplers.undecided import Magnitude, require_scale

__all__ = ["rounded_laplace"]

MARGIN = 2.0**-40
"""Bound on the error of the float magnitude in units of the scale. Tests widen it to force the exact path."""

BLOCK = 8192
"""Draws per block: all buffers of a block stay in the second-level cache."""

_LEAST = 2.0**-18
"""Uniforms below this are always finished exactly: their 63 bits are too few for the margin."""

_LOW_BITS = np.uint64(2**63 - 1)
_EXTRA = 64


def rounded_laplace(*, scale: Fraction, count: int, bits: BitSource) -> npt.NDArray[np.int64]:
    """`count` independent draws of round(scale * Z), Z standard Laplace.

    Requires: `scale` a positive dyadic, at most 2^45.
    Ensures: each result has exactly the distribution of the rounded real. Takes `count` words first, and then one more
    word for each refinement of an undecided draw, in the order of the draws.
    Errors: ValueError for another scale.
    Source: inversion (Devroye 1986, chapter II.2); see rounding.md for the rounding.
    """
    require_scale(scale)
    result = np.empty(count, dtype=np.int64)
    factor = -float(scale)
    limit = 0.5 - MARGIN * float(scale)
    size = min(count, BLOCK)
    integers = np.empty(size, dtype=np.uint64)
    real, whole = np.empty(size), np.empty(size)
    undecided: list[tuple[int, int]] = []
    with np.errstate(divide="ignore", invalid="ignore"):
        for start in range(0, count, BLOCK):
            words = bits.words(min(BLOCK, count - start))
            if words.size < size:
                size = words.size
                integers, real, whole = integers[:size], real[:size], whole[:size]
            np.bitwise_and(words, _LOW_BITS, out=integers)
            np.copyto(real, integers.view(np.int64))
            real *= 2.0**-63
            low = np.flatnonzero(real < _LEAST) if real.min() < _LEAST else None
            np.log(real, out=real)
            real *= factor
            np.rint(real, out=whole)
            real -= whole
            np.abs(real, out=real)
            # Written so that a NaN (the logarithm of zero) counts as undecided.
            if low is not None:
                real[low] = np.nan
            if not real.max() <= limit:
                undecided.extend((start + int(i), int(words[i])) for i in np.flatnonzero(~(real <= limit)))
            np.copysign(whole, words.view(np.float64), out=whole)
            np.copyto(result[start : start + size], whole, casting="unsafe")
    for index, word in undecided:
        result[index] = _exact(scale, word, bits)
    return result


def _exact(scale: Fraction, word: int, bits: BitSource) -> int:
    """The draw whose first word is given, by intervals."""
    magnitude = Magnitude(word & (2**63 - 1), 63)
    extra = _EXTRA + max(0, scale.numerator.bit_length() - scale.denominator.bit_length())
    while (whole := magnitude.enclose(magnitude.length + extra).rounded(scale)) is None:
        magnitude.refine(bits)
    return -whole if word >> 63 else whole
