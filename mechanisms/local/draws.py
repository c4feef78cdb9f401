"""Uniform integers and events of rational probability, exactly, out of random bits."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mechanisms.randomness import BitSource, Words

__all__ = ["Flags", "Places", "happen", "uniform_below"]

Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]


def uniform_below(bound: int, count: int, bits: BitSource) -> Places:
    """Independent integers, each uniform in 0..bound-1.

    Each word is cut to as many bits as `bound - 1` has; what is not below the bound is drawn again, which depends on
    nothing but fresh bits. More than half of the words are kept.
    Requires: 1 <= bound <= 2^63.
    """
    assert 1 <= bound <= 1 << 63
    if bound == 1:
        return np.zeros(count, dtype=np.int64)
    shift = np.uint64(64 - (bound - 1).bit_length())
    drawn: Words = bits.words(count) >> shift
    limit = np.uint64(bound)
    again = np.flatnonzero(drawn >= limit)
    while again.size:
        drawn[again] = bits.words(again.size) >> shift
        again = again[drawn[again] >= limit]
    return drawn.astype(np.int64)


def happen(probability: Fraction, count: int, bits: BitSource) -> Flags:
    """Independent events of that probability.

    Each compares a uniform number of [0, 1) with the probability, byte by byte: a byte below that of the probability
    decides for the event and one above against it. An equal one, of which there are one in 256, leaves the same
    question to the next byte, about what is left of the probability. No number is ever cut: it is exact for every
    fraction, and an event takes hardly more than a byte (local_encoders.md, section 7).
    Requires: it is from 0 to 1.
    """
    left, denominator = probability.numerator, probability.denominator
    assert 0 <= left <= denominator
    if left == denominator:
        return np.ones(count, dtype=np.bool_)
    result = np.zeros(count, dtype=np.bool_)
    open_: Places | slice = slice(None)
    while left and count:
        byte, left = divmod(256 * left, denominator)
        drawn = bits.words(-(-count // 8)).view(np.uint8)[:count]
        result[open_] = drawn < byte
        equal = np.flatnonzero(drawn == byte)
        open_ = equal if isinstance(open_, slice) else open_[equal]
        count = equal.size
    return result
