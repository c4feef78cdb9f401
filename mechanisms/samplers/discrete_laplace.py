"""Two-sided geometric noise, P(X = k) ~ exp(-|k| / scale), exactly, from rounded Laplace noise: discrete_laplace.md."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mechanisms.randomness import BitSource
from mechanisms.samplers.laplace import rounded_laplace

__all__ = ["discrete_laplace"]

_ROUNDS_BITS = 40
"""At small scales so many rounds are drawn that none has to follow, but once in 2^40 calls."""


def discrete_laplace(*, scale: Fraction, count: int, bits: BitSource) -> npt.NDArray[np.int64]:
    """`count` independent draws of the difference of two geometric numbers, P(G >= k) = exp(-k / scale).

    Requires: `scale` a positive dyadic, at most 2^45.
    Ensures: exactly that distribution; how many words are taken does not follow from the results, but once in 2^40
    calls. Errors: ValueError for another scale.
    Source: see discrete_laplace.md.
    """
    one_sided = _kept if scale >= 1 else _by_rounds
    both = one_sided(scale, 2 * count, bits)
    return both[:count] - both[count:]


def _kept(scale: Fraction, count: int, bits: BitSource) -> npt.NDArray[np.int64]:
    """Rounded Laplace noise without its sign, less one, of the draws that are not zero: three in five at least."""
    found = np.empty(0, dtype=np.int64)
    while found.size < count:
        drawn = np.abs(rounded_laplace(scale=scale, count=2 * count + 32, bits=bits))
        found = np.concatenate([found, drawn[drawn > 0] - 1])
    return found[:count]


def _by_rounds(scale: Fraction, count: int, bits: BitSource) -> npt.NDArray[np.int64]:
    """How many coins with the chance exp(-1 / scale) come before the first that fails: all rounds for every draw."""
    found = np.zeros(count, dtype=np.int64)
    going = np.ones(count, dtype=np.bool_)
    rounds = math.ceil(float(scale) * (_ROUNDS_BITS * math.log(2) + math.log(max(count, 1)))) + 1
    while going.any():
        for _ in range(rounds):
            going &= rounded_laplace(scale=scale / 2, count=count, bits=bits) != 0
            found += going
    return found
