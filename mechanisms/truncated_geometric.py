"""Selecting groups of units that own one group each: truncated geometric noise with exact integer weights.

Statement and proof: truncated_geometric.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from mechanisms.randomness import BitSource
from mechanisms.samplers.weighted import WEIGHT_BITS, WeightTable

__all__ = ["EPSILON_CAP", "SUPPORT_MAX", "SelectionTable", "selection_table"]

SUPPORT_MAX = 2**16
"""Largest truncation point. A table beyond it would be slow to build; the price that asks for it is refused."""

EPSILON_CAP = Fraction(40)
"""A larger epsilon is answered with the noise of this one, which nearly never differs from zero."""

_TOTAL = 1 << WEIGHT_BITS
_PRECISION = 320
_SLACK = 1 - Fraction(1, 2**60)
"""Neighbouring weights stay apart from the greatest ratio by this factor, so that rounding them to integers (which
moves them by 2^-100 and less) cannot cross it. The check is exact all the same."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Symmetric noise on -k..k: weights[x] for x = 0..k. A group is released when its noisy count is above k."""

    weights: tuple[int, ...]

    @property
    def k(self) -> int:
        return len(self.weights) - 1

    @property
    def tail(self) -> int:
        return self.weights[-1]


@dataclass(frozen=True, slots=True)
class SelectionTable:
    """The joint law of noise and threshold of one group: an exact mixture of at most two truncated geometrics.

    A group with n units gets the noisy count n + noise and is released when that is above the drawn threshold.
    """

    epsilon: Fraction
    delta: Fraction
    parts: tuple[_Part, ...]
    _table: WeightTable = field(init=False, repr=False, compare=False)
    _noise: npt.NDArray[np.int64] = field(init=False, repr=False, compare=False)
    _threshold: npt.NDArray[np.int64] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _verify(self)
        weights: list[int] = []
        noise: list[int] = []
        threshold: list[int] = []
        for part in self.parts:
            support = range(-part.k, part.k + 1)
            weights.extend(part.weights[abs(x)] for x in support)
            noise.extend(support)
            threshold.extend([part.k] * len(support))
        object.__setattr__(self, "_table", WeightTable(tuple(weights)))
        object.__setattr__(self, "_noise", np.array(noise, dtype=np.int64))
        object.__setattr__(self, "_threshold", np.array(threshold, dtype=np.int64))

    @property
    def threshold(self) -> int:
        """A noisy count above this is always released."""
        return max(part.k for part in self.parts)

    def draw(self, count: int, bits: BitSource) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Noise and threshold of `count` groups, independent."""
        index = self._table.draw(count, bits)
        return self._noise[index], self._threshold[index]

    def probability(self, x: int) -> Fraction:
        """The exact probability of the noise x."""
        return Fraction(sum(part.weights[abs(x)] for part in self.parts if abs(x) <= part.k), _TOTAL)

    def keep_probability(self, units: int) -> Fraction:
        """The exact probability that a group of that many units is released."""
        kept = 0
        for part in self.parts:
            # The noise must be above k - units.
            kept += sum(part.weights[abs(x)] for x in range(max(part.k - units + 1, -part.k), part.k + 1))
        return Fraction(kept, _TOTAL)

    def quantile(self, alpha: float) -> int:
        """The least t for which the noise leaves [-t, t] with probability at most alpha."""
        allowed = Fraction(alpha) * _TOTAL
        t = max(part.k for part in self.parts)
        outside = 0
        while t > 0:
            outside += 2 * sum(part.weights[t] for part in self.parts if t <= part.k)
            if outside > allowed:
                return t
            t -= 1
        return 0

    def variance(self) -> float:
        """The variance of the noise."""
        return float(Fraction(sum(2 * x * x * w for part in self.parts for x, w in enumerate(part.weights)), _TOTAL))


@lru_cache(maxsize=32)
def selection_table(*, epsilon: Fraction, delta: Fraction) -> SelectionTable:
    """The table for one release of (epsilon, delta)-DP, as likely to release a group as rational noise allows.

    Ensures: every table has passed the exact check of its ratios and tails.
    Errors: ValueError when an amount is not positive, delta is not below one, or the table would be too long.
    Source: Desfontaines, Voss, Gipson and Mandayam 2022, Definition 3 and Theorem 4; mixture: truncated_geometric.md.
    """
    if not (epsilon > 0 and 0 < delta < 1):
        raise ValueError("partition selection needs an epsilon and a delta above zero, and a delta below one")
    ratio = _exp_below(min(epsilon, EPSILON_CAP)) * _SLACK
    if ratio <= 1:
        raise ValueError("epsilon is too small for partition selection: the table of noise would be too long")
    k = _truncation(ratio, delta)
    longer = _tail(ratio, k)
    # A mixture of the tables for k - 1 and k whose mean tail is delta. Never with k - 1 = 0, which is no noise at all.
    first = 0
    if k > 1 and longer < delta:
        shorter = _tail(ratio, k - 1)
        first = math.floor((delta - longer) / (shorter - longer) * _SLACK * _TOTAL)
        if min(first, _TOTAL - first) < _TOTAL >> 40:
            first = 0  # too rare to matter, and too coarse for the integer weights
    parts = [_part(ratio, k, _TOTAL - first)]
    if first:
        parts.insert(0, _part(ratio, k - 1, first))
    return SelectionTable(epsilon=epsilon, delta=delta, parts=tuple(parts))


def _verify(table: SelectionTable) -> None:
    """Exact comparison of all weights with the claim. Failing it is a fault of this module."""
    greatest = _exp_below(table.epsilon if table.epsilon < 2 * EPSILON_CAP else 2 * EPSILON_CAP)
    up, down = greatest.numerator, greatest.denominator
    total = tails = 0
    for part in table.parts:
        _require(part.k >= 1, "noise that is always zero releases true counts")
        weights = part.weights
        for outer, inner in zip(weights[1:], weights[:-1], strict=True):
            _require(0 < outer <= inner, "the noise must fall away from zero")
            _require(inner * down <= outer * up, "neighbouring counts differ by more than epsilon")
        total += weights[0] + 2 * sum(weights[1:])
        tails += part.tail
    _require(total == _TOTAL, "the weights are not probabilities")
    _require(tails <= table.delta * _TOTAL, "a single unit is released with more than delta")


def _require(holds: bool, claim: str) -> None:  # noqa: FBT001
    """As an assertion, but kept when Python runs without assertions."""
    if not holds:
        raise AssertionError(claim)


def _exp_below(value: Fraction) -> Fraction:
    """A fraction below e^value, by a relative 2^-250 at most."""
    # Loaded when it is needed: it takes a tenth of the server's start.
    from mpmath.libmp import from_rational, mpf_exp, to_rational

    power = mpf_exp(from_rational(value.numerator, value.denominator, _PRECISION, "d"), _PRECISION, "d")
    top, bottom = to_rational(power)
    return Fraction(int(top), int(bottom)) * (1 - Fraction(1, 2**256))


def _tail(ratio: Fraction, k: int) -> Fraction:
    """The probability of the outermost value when neighbouring weights differ by `ratio`, rounded to 300 bits."""
    power = _power(ratio, k)
    return 1 / (power + 2 * (power - 1) / (ratio - 1))


def _power(ratio: Fraction, k: int) -> Fraction:
    """ratio^k, to a relative 2^-280; plain powers would have k times as many digits."""
    result, square = Fraction(1), ratio
    while k:
        if k & 1:
            result = _short(result * square)
        square = _short(square * square)
        k >>= 1
    return result


def _short(value: Fraction) -> Fraction:
    shift = _PRECISION - value.numerator.bit_length() + value.denominator.bit_length()
    if shift <= 0:
        return Fraction(math.floor(value))
    return Fraction(math.floor(value * (1 << shift)), 1 << shift)


def _truncation(ratio: Fraction, delta: Fraction) -> int:
    """The least k, one or more, whose tail is at most delta."""
    low, high = 0, 1
    while _tail(ratio, high) > delta:
        low, high = high, high * 2
        if high > SUPPORT_MAX:
            raise ValueError("epsilon is too small for partition selection: the table of noise would be too long")
    while high - low > 1:
        middle = (low + high) // 2
        if _tail(ratio, middle) <= delta:
            high = middle
        else:
            low = middle
    return high


def _part(ratio: Fraction, k: int, total: int) -> _Part:
    """Integer weights that add up to `total` over -k..k and grow by `ratio` (rounded down) towards zero."""
    weight = math.floor(_tail(ratio, k) * total)
    if weight <= 1 << 64:
        raise ValueError("delta is too small for partition selection")
    up, down = ratio.numerator, ratio.denominator
    weights = [weight]
    for _ in range(k - 1):
        weight = weight * up // down
        weights.append(weight)
    weights.append(total - 2 * sum(weights))
    return _Part(tuple(reversed(weights)))
