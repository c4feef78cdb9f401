"""Propose-test-release of quantiles and of a most frequent value: proposed_quantiles.md, stable_mode.md.

Both test, with noise, how many units would have to come or go before an answer were unstable. Where the test does not
pass the outcome is None, which is a released value: it is in the price like any other.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mechanisms.measurement import SCALE_BITS, Integers
from mechanisms.randomness import BitSource
from mechanisms.samplers import rounded_laplace
from privacy.events.approximate import ApproximateEvent
from privacy.numbers import dyadic_up

__all__ = ["FAR", "ProposedQuantiles", "StableMode", "Term", "Tested"]

FAR = 2**40
"""The greatest distance that is counted: as many units as a table has at most."""

_GRAIN = 2**20
"""Parts of one unit in which noise on a distance is drawn."""

_SAFE = 2**62


@dataclass(frozen=True, slots=True)
class Term:
    """A quantile, taken once from the others or added to them."""

    fraction: Fraction
    sign: int

    def __post_init__(self) -> None:
        assert 0 < self.fraction < 1
        assert self.sign in (-1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested(ABC):
    """The price and the noise of one statistic that is tested first: (epsilon, delta)-DP, its refusal included.

    `change` is the most that one unit adds to all counts of the table together, in their own units.
    Errors: ValueError for an epsilon that is not positive, or a delta that is not below a half.
    """

    epsilon: Fraction
    delta: Fraction
    change: int

    def __post_init__(self) -> None:
        if not 0 < self.delta < Fraction(1, 2) or self.epsilon <= 0:
            raise ValueError("a test has an epsilon above zero, and a delta below a half")
        assert self.change >= 1

    @property
    @abstractmethod
    def tested(self) -> Fraction:
        """The part of epsilon that the test takes."""

    @abstractmethod
    def distance(self, counts: Integers) -> int:
        """A distance to instability: neighbours' differ by one at most, and from one on the answer is stable."""

    @abstractmethod
    def answer(self, counts: Integers, bits: BitSource) -> int | None:
        """The outcome from true counts by place; None where the test does not pass. Called by the gateway only."""

    def event(self) -> ApproximateEvent:
        """The price, whichever way the test ends."""
        return ApproximateEvent(epsilon=self.epsilon, delta=self.delta)

    @property
    def threshold(self) -> Fraction:
        """What the noisy distance has to exceed, in units: ln(1 / (2 delta)) over the test's epsilon, rounded up."""
        return Fraction(math.log(1 / (2 * self.delta))) * (1 + Fraction(1, 2**40)) / self.tested

    def passes(self, counts: Integers, bits: BitSource) -> bool:
        """Whether the noisy distance exceeds the threshold. Draws once."""
        scale = dyadic_up(_GRAIN / self.tested, bits=SCALE_BITS)
        noise = int(rounded_laplace(scale=scale, count=1, bits=bits)[0])
        return self.distance(counts) * _GRAIN + noise > math.ceil(self.threshold * _GRAIN)

    def distance_of(self, chance: float) -> float:
        """The distance at which an answer has this probability: `passing` the other way round."""
        away = math.log(2 * chance) if chance < 0.5 else -math.log(2 * (1 - chance))
        return float(self.threshold) + away / float(self.tested)

    def passing(self, distance: int) -> float:
        """How probable an answer is at a distance."""
        away = float(self.tested) * (distance - float(self.threshold))
        return 1 - math.exp(-away) / 2 if away > 0 else math.exp(away) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedQuantiles(Tested):
    """A sum or difference of quantiles of counts by place: proposed_quantiles.md.

    `width` is the proposal: by how many places one unit may move it. Half of epsilon tests, the other half releases.
    Errors: ValueError as of `Tested`, and for a proposal below one place.
    """

    terms: tuple[Term, ...]
    width: int

    def __post_init__(self) -> None:
        super(ProposedQuantiles, self).__post_init__()
        assert self.terms
        if self.width < 1:
            raise ValueError("a proposal is at least as wide as a place")

    @property
    def tested(self) -> Fraction:
        """Half of epsilon."""
        return self.epsilon / 2

    @property
    def scale(self) -> Fraction:
        """The scale of the Laplace noise of what is released, in places."""
        return dyadic_up(self.width / (self.epsilon - self.tested), bits=SCALE_BITS)

    def distance(self, counts: Integers) -> int:
        """The least number of units at which the quantiles might move by more than the proposal; FAR at most."""
        ranks = [_Ranks(counts, term.fraction, self.change) for term in self.terms]

        def unstable(units: int) -> bool:
            return sum(one.reach(units) for one in ranks) > self.width

        if not unstable(FAR):
            return FAR
        # The reach never falls: the first number of units with more than the width.
        low, high = -1, FAR
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if unstable(middle) else (middle, high)
        return high

    def place(self, counts: Integers) -> int:
        """The true sum or difference of places."""
        return sum(term.sign * _Ranks(counts, term.fraction, self.change).place for term in self.terms)

    def answer(self, counts: Integers, bits: BitSource) -> int | None:
        """The place with noise, before it is held to the range. Both noises are drawn in either case."""
        passed = self.passes(counts, bits)
        noise = int(rounded_laplace(scale=self.scale, count=1, bits=bits)[0])
        return self.place(counts) + noise if passed else None


@dataclass(frozen=True, slots=True, kw_only=True)
class StableMode(Tested):
    """The place with the greatest count, without noise where that is stable: stable_mode.md.

    Requires: a unit that comes raises counts, or leaves them. All of epsilon tests.
    """

    @property
    def tested(self) -> Fraction:
        """All of epsilon."""
        return self.epsilon

    def distance(self, counts: Integers) -> int:
        """How many units fit into the lead of the first place over the second, less one."""
        first, second = sorted((int(value) for value in counts), reverse=True)[:2]
        return min(FAR, max(0, -((second - first) // self.change) - 1))

    def lead_from(self, distance: int) -> int:
        """The least lead, in the unit of the counts, of at least this distance."""
        return distance * self.change + 1

    def lead_to(self, distance: int) -> int:
        """The greatest lead of at most this distance."""
        return max(0, (distance + 1) * self.change)

    def answer(self, counts: Integers, bits: BitSource) -> int | None:
        """The place of the greatest count."""
        return int(np.argmax(counts)) if self.passes(counts, bits) else None


class _Ranks:
    """A quantile of counts by place, and how far so many units might move it: whole numbers throughout."""

    __slots__ = ("_change", "_last", "_sums", "_wide")

    def __init__(self, counts: Integers, fraction: Fraction, change: int) -> None:
        top, bottom = fraction.numerator, fraction.denominator
        below = np.cumsum(counts)
        self._wide = int(below[-1]) >= _SAFE // (2 * bottom)
        below = below.astype(object) if self._wide else below
        # The surplus of a place over the rank that is asked for, in parts of a row.
        self._sums = below * bottom - top * below[-1]
        self._last = len(counts) - 1
        self._change = max(top, bottom - top) * change

    @property
    def place(self) -> int:
        """The least place with a surplus, the last one where none has."""
        return self._above(0)

    def reach(self, units: int) -> int:
        """By how many places one unit more might move the quantile of any table so many units away."""
        now, more = units * self._change, (units + 1) * self._change
        return max(self._above(more) - self._above(-now), self._above(now) - self._above(-more))

    def _above(self, surplus: int) -> int:
        # Sums of 64 bits lie within these ends.
        held = surplus if self._wide else max(-_SAFE, min(surplus, _SAFE))
        return min(int(np.searchsorted(self._sums, held, side="right")), self._last)
