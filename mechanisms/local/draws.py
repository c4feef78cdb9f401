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
    """Independent events of that probability. Requires: its denominator is at most 2^63."""
    return uniform_below(probability.denominator, count, bits) < probability.numerator
