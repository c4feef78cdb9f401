"""Draws from a finite table of integer weights, exactly."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from mechanisms.randomness import BitSource, Words

__all__ = ["WEIGHT_BITS", "WeightTable"]

WEIGHT_BITS = 192
"""All weights of a table add up to 2^192: a uniform integer of three words picks an entry without rejection."""


@dataclass(frozen=True, slots=True)
class WeightTable:
    """Positive integer weights that add up to 2^192; entry i is drawn with probability weights[i] / 2^192."""

    weights: tuple[int, ...]
    _bounds: tuple[int, ...] = field(init=False, repr=False, compare=False)
    _leading: Words = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        assert all(weight > 0 for weight in self.weights)
        assert sum(self.weights) == 1 << WEIGHT_BITS
        bounds = tuple(accumulate(self.weights[:-1]))
        object.__setattr__(self, "_bounds", bounds)
        leading = np.array([bound >> (WEIGHT_BITS - 64) for bound in bounds], dtype=np.uint64)
        object.__setattr__(self, "_leading", leading)

    def draw(self, count: int, bits: BitSource) -> npt.NDArray[np.int64]:
        """Indexes of `count` independent draws.

        Takes `count` words first, and then two more for each draw whose word equals the leading word of a bound.
        """
        words = bits.words(count)
        first = np.searchsorted(self._leading, words, side="left")
        result = np.searchsorted(self._leading, words, side="right")
        for i in np.flatnonzero(first != result):
            low = bits.words(2)
            number = int(words[i]) << 128 | int(low[0]) << 64 | int(low[1])
            result[i] = bisect_right(self._bounds, number)
        return result.astype(np.int64, copy=False)
