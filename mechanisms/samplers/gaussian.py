"""Gaussian noise, rounded to integers: round(sigma * Z) for a real standard normal Z, exactly.

Two words give the leading bits of a real uniform U and of a real angle; sqrt(-2 ln U) times the angle's cosine and sine
are two independent normals (Box and Muller 1958). Their rounding is decided in floats where the error cannot matter and
in intervals elsewhere; both normals of a pair share every further bit. Proof: rounding.md.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mechanisms.randomness import BitSource
from mechanisms.samplers.undecided import Magnitude, Turn, require_scale

__all__ = ["rounded_gaussian"]

MARGIN = 2.0**-40
"""Bound on the error of the float normal in units of sigma. Tests widen it to force the exact path."""

BLOCK = 4096
"""Pairs per block: all buffers of a block stay in the second-level cache."""

_LEAST = 2.0**-18
_MOST = 1 - 2.0**-16
"""Uniforms outside are always finished exactly: near 0 their 63 bits, near 1 the square root's slope are too coarse."""

_EXTRA = 64


def rounded_gaussian(*, sigma: Fraction, count: int, bits: BitSource) -> npt.NDArray[np.int64]:
    """`count` independent draws of round(sigma * Z), Z standard normal.

    Requires: `sigma` a positive dyadic, at most 2^45.
    Ensures: each result has exactly the distribution of the rounded real. Takes two words for each pair of results
    first, and then two more for each refinement of an undecided pair, in the order of the pairs.
    Errors: ValueError for another sigma.
    Source: Box and Muller 1958; see rounding.md for the rounding.
    """
    require_scale(sigma)
    pairs = (count + 1) // 2
    result = np.empty((2, pairs), dtype=np.int64)
    factor = -2 * float(sigma) ** 2
    limit = 0.5 - MARGIN * float(sigma)
    undecided: list[tuple[int, int, int]] = []
    size = min(pairs, BLOCK)
    radius, angle, part = np.empty(size), np.empty(size), np.empty(size)
    with np.errstate(divide="ignore", invalid="ignore"):
        for start in range(0, pairs, BLOCK):
            words = bits.words(2 * min(BLOCK, pairs - start)).reshape(2, -1)
            if words.shape[1] < size:
                size = words.shape[1]
                radius, angle, part = radius[:size], angle[:size], part[:size]
            np.copyto(radius, (words[0] >> np.uint64(1)).view(np.int64))
            radius *= 2.0**-63
            doubtful = (radius < _LEAST) | (radius > _MOST)
            np.log(radius, out=radius)
            radius *= factor
            np.sqrt(radius, out=radius)
            np.copyto(angle, words[1].view(np.int64))
            angle *= math.pi * 2.0**-63
            for row, turn in enumerate((np.cos, np.sin)):
                turn(angle, out=part)
                part *= radius
                whole = np.rint(part)
                np.copyto(result[row, start : start + size], whole, casting="unsafe")
                part -= whole
                np.abs(part, out=part)
                if not part.max() <= limit:
                    doubtful |= ~(part <= limit)
            if doubtful.any():
                undecided.extend((start + int(i), int(words[0, i]), int(words[1, i])) for i in np.flatnonzero(doubtful))
    for index, first, second in undecided:
        result[:, index] = _exact(sigma, first, second, bits)
    return result.reshape(-1)[:count]


def _exact(sigma: Fraction, first: int, second: int, bits: BitSource) -> tuple[int, int]:
    """The pair whose first two words are given, by intervals."""
    magnitude = Magnitude(first >> 1, 63)
    turn = Turn(second - 2**64 if second >> 63 else second, 63)
    extra = _EXTRA + max(0, sigma.numerator.bit_length() - sigma.denominator.bit_length())
    while True:
        places = magnitude.length + extra
        radius = magnitude.enclose(places, factor=2).root()
        cosine, sine = turn.enclose(places)
        left, right = radius.times(cosine).rounded(sigma), radius.times(sine).rounded(sigma)
        if left is not None and right is not None:
            return left, right
        magnitude.refine(bits)
        turn.refine(bits)
