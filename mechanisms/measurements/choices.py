"""Selections that release keys and no number: exponential_mechanism.md and permute_and_flip.md."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from statistics import NormalDist
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from mechanisms.interval import Floats
from mechanisms.measurement import SCALE_BITS, Integers, Law, Measurement, Perturbed, plain_text
from mechanisms.randomness import BitSource
from mechanisms.samplers.selection import Race, best
from mechanisms.samplers.undecided import require_scale
from privacy.events import BoundedRangeEvent, Event, PermuteAndFlipEvent
from privacy.events.selection import DRAWS_MAX, bounded_range_loss
from privacy.numbers import dyadic_up
from privacy.statistic import Choice, CoreStatistics, Keys, Statistic

__all__ = ["ChoiceMeasurement", "ExponentialMechanism", "PermuteAndFlip", "distance", "kept_within"]


def distance(*, scale: float, candidates: int, draws: int, alpha: float) -> float:
    """How far a chosen score may lie below the best of its draw, in any of the draws, with probability alpha at most.

    Both selections: with m candidates, P(distance >= x) <= m exp(-x / scale) in each draw (their pages).
    """
    return scale * (math.log(candidates) + math.log(draws / alpha))


def kept_within(choice: Choice, keys: Keys) -> tuple[int, int]:
    """The most candidates of one draw, and the number of all draws."""
    parts = choice.parts(keys)
    return max(map(len, parts)), sum(min(choice.count, len(part)) for part in parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceMeasurement(Measurement):
    """The choice of some cells by noisy sums of which none is released. `scale` is that of the noise of one draw."""

    law: ClassVar[Law] = Law.OTHER
    use: ClassVar[str] = "keys alone: the best of public groups"

    scale: Fraction
    choice: Choice
    keys: Keys
    _parts: tuple[npt.NDArray[np.int64], ...] = field(init=False, repr=False, compare=False)
    """The places of the cells of each part: they follow from public keys, so they are found before any score is."""

    def __post_init__(self) -> None:
        parts = self.choice.parts(self.keys)
        object.__setattr__(self, "_parts", tuple(np.array(part, dtype=np.int64) for part in parts))

    @classmethod
    def _for_epsilon(cls, *, core: CoreStatistics, statistic: Statistic, share: Fraction, epsilon: Fraction) -> Self:
        """The measurement each of whose draws has the epsilon, or a little less. ValueError when out of range."""
        choice = core.choice
        assert choice is not None
        if choice.draws_per_unit > DRAWS_MAX:
            raise ValueError("too many keys are chosen")
        scale = dyadic_up(_change(statistic, choice) / epsilon, bits=SCALE_BITS)
        require_scale(scale)
        return cls(core=core.name, statistic=statistic, share=share, scale=scale, choice=choice, keys=core.keys)

    @property
    def epsilon(self) -> Fraction:
        """That of one draw."""
        return _change(self.statistic, self.choice) / self.scale

    @property
    def draws(self) -> Fraction:
        """The most draws whose chances one unit changes."""
        return Fraction(self.choice.draws_per_unit)

    @abstractmethod
    def _best(self, scores: Integers, count: int, bits: BitSource) -> list[int]:
        """The places of the chosen scores, the first one first."""

    def perturb(self, exact: Integers, bits: BitSource) -> Perturbed:
        """The chosen cells: part by part, in each the first one first. Called by the gateway only."""
        scores = -exact[:, 0] if self.choice.least else exact[:, 0]
        chosen: list[int] = []
        for part in self._parts:
            count = min(self.choice.count, part.size)
            chosen += part[self._best(scores[part], count, bits)].tolist()
        return Perturbed(None, chosen=tuple(chosen))

    @property
    def scale_of_sums(self) -> Fraction:
        """The scale of the noise of one draw, in integer units."""
        return self.scale

    @property
    def sensitivity_text(self) -> str:
        """The greatest change of one score, in the unit of the statistic."""
        return f"linf {plain_text(self.statistic.sensitivity.linf * self.unit)}"

    # No sum is released, so nothing asks how far one may be off.

    def noise(self, count: int, bits: BitSource) -> npt.NDArray[np.int64]:
        """Never drawn: noise is compared, not released."""
        raise ValueError(_NO_NUMBERS)

    def quantile(self, weights: Floats, alpha: float) -> Floats:
        """Errors: ValueError, always."""
        raise ValueError(_NO_NUMBERS)

    def tail(self, weights: Floats, reach: float) -> Floats:
        """Errors: ValueError, always."""
        raise ValueError(_NO_NUMBERS)

    def quantile_single(self, alpha: float) -> int:
        """Errors: ValueError, always."""
        raise ValueError(_NO_NUMBERS)

    @abstractmethod
    def variance(self) -> float:
        """The variance of the noise on a score, in squared integer units."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialMechanism(ChoiceMeasurement):
    """Gumbel noise on every score, and the greatest ones: exponential_mechanism.md."""

    name: ClassVar[str] = "exponential_mechanism"
    loss: ClassVar[str] = "bounded range"

    @classmethod
    def for_mu_squared(
        cls, core: CoreStatistics, *, statistic: Statistic, share: Fraction, mu_squared: Fraction
    ) -> ExponentialMechanism:
        """The measurement whose event is at most `mu_squared`, all draws together. ValueError when out of range."""
        assert core.choice is not None
        each = mu_squared / core.choice.draws_per_unit
        epsilon = _lowered(_about(float(each)), lambda one: (bounded_range_loss(one).mu_squared or 0) <= each)
        return cls._for_epsilon(core=core, statistic=statistic, share=share, epsilon=epsilon)

    def event(self) -> Event:
        """Draws of bounded range."""
        return BoundedRangeEvent(epsilon=self.epsilon, draws=self.draws)

    def variance(self) -> float:
        """Of a Gumbel variable."""
        return math.pi**2 / 6 * float(self.scale) ** 2

    def _best(self, scores: Integers, count: int, bits: BitSource) -> list[int]:
        """One noise for all draws: the order of scores with Gumbel noise is that of draws one after the other."""
        return best(scores, count=count, scale=self.scale, race=Race.GUMBEL, bits=bits)


@dataclass(frozen=True, slots=True, kw_only=True)
class PermuteAndFlip(ChoiceMeasurement):
    """One-sided exponential noise on every score, and the greatest one, again for each draw: permute_and_flip.md."""

    name: ClassVar[str] = "permute_and_flip"
    loss: ClassVar[str] = "pure"

    @classmethod
    def for_epsilon(
        cls, core: CoreStatistics, *, statistic: Statistic, share: Fraction, epsilon: Fraction
    ) -> PermuteAndFlip:
        """The measurement whose event is at most `epsilon`, all draws together. ValueError when out of range."""
        assert core.choice is not None
        each = epsilon / core.choice.draws_per_unit
        return cls._for_epsilon(core=core, statistic=statistic, share=share, epsilon=each)

    def event(self) -> Event:
        """Draws of pure epsilon."""
        return PermuteAndFlipEvent(epsilon=self.epsilon, draws=self.draws)

    def variance(self) -> float:
        """Of an exponential variable."""
        return float(self.scale) ** 2

    def _best(self, scores: Integers, count: int, bits: BitSource) -> list[int]:
        """Fresh noise on the scores that are left, draw by draw."""
        left = np.arange(scores.size)
        chosen: list[int] = []
        for _ in range(count):
            (place,) = best(scores[left], count=1, scale=self.scale, race=Race.EXPONENTIAL, bits=bits)
            chosen.append(int(left[place]))
            left = np.delete(left, place)
        return chosen


_NO_NUMBERS = "a selection of keys releases no number"


def _change(statistic: Statistic, choice: Choice) -> Fraction:
    """What the scale is divided by: the change of one score, twice where scores may move against each other."""
    return statistic.sensitivity.linf * (1 if choice.one_way else 2)


def _about(mu_squared: float) -> Fraction:
    """About the bounded range of that mu squared: mu = 2 Phi^-1(1 / (1 + e^-x)) with x half of it (its event)."""
    half = math.sqrt(mu_squared) / 2
    if half < 1e-4:
        return Fraction(half * math.sqrt(32 / math.pi))
    if half < 30:
        tail = NormalDist().cdf(-half)
        return Fraction(2 * math.log((1 - tail) / tail))
    return Fraction(half**2 + 2 * math.log(half * math.sqrt(2 * math.pi)))


def _lowered(value: Fraction, serves: Callable[[Fraction], bool]) -> Fraction:
    """The value, or one a little below it that serves."""
    step = Fraction(1, 2**40)
    while not serves(value):
        value *= 1 - step
        step *= 4
        if step >= 1:
            raise ValueError("the price is too small for a selection")
    return value
