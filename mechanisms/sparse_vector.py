"""The sparse vector technique: which of many scores lie above a threshold, paid by hits alone. sparse_vector.md.

`SparseVector` is price and noise in one object: a single hit is above-threshold. `NumericSparse` adds numbers to hits:
the distance from the threshold, which costs nothing more, and on request a fresh noisy answer, combined with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from mechanisms.measurement import SCALE_BITS, Integers
from mechanisms.randomness import BitSource
from mechanisms.samplers import rounded_laplace
from mechanisms.samplers.threshold import NoisyThreshold
from mechanisms.samplers.undecided import require_scale
from privacy.events import LaplaceEvent, SparseSessionEvent, SparseVectorEvent
from privacy.events.sparse import HITS_MAX
from privacy.numbers import dyadic_up

__all__ = ["Hit", "NumericSparse", "SparseRun", "SparseVector", "optimal_split"]


def optimal_split(*, hits: int, one_way: bool) -> Fraction:
    """The part of epsilon for the threshold at which a comparison has the least variance: 1 : (moves * hits)^(2/3).

    Any part is private, so a float root may choose it. Source: Lyu, Su and Li 2017, section 4.2.
    """
    return Fraction(1 / (1 + ((1 if one_way else 2) * hits) ** (2 / 3)))


@dataclass(frozen=True, slots=True)
class Hit:
    """A score found above the threshold: its place among those that were asked, and its noisy distance from it.

    `gap` is in integer units of the scores; its noise has the variance `SparseVector.gap_variance`, and no bias before
    the selection of hits.
    """

    place: int
    gap: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseVector:
    """Comparisons of scores with a public threshold until `hits` of them were above it. Scales in units of the scores.

    `sensitivity`: the greatest change of one score between neighbours. `one_way`: whether a unit moves all scores that
    are asked in one direction, as it does counts. `interactive`: whether others of the account may be measured between.
    """

    sensitivity: Fraction
    hits: int
    one_way: bool
    interactive: bool
    threshold_scale: Fraction
    query_scale: Fraction

    def __post_init__(self) -> None:
        assert self.sensitivity > 0
        require_hits(self.hits)
        require_scale(self.threshold_scale)
        require_scale(self.query_scale)

    @classmethod
    def for_epsilon(
        cls,
        epsilon: Fraction,
        *,
        sensitivity: Fraction,
        hits: int,
        one_way: bool,
        interactive: bool,
        split: Fraction | None = None,
    ) -> SparseVector:
        """The comparisons with the least noise whose event is at most `epsilon`.

        Errors: ValueError when epsilon, hits or the scales are out of range.
        """
        require_hits(hits)
        if epsilon <= 0:
            raise ValueError("epsilon must be greater than zero")
        part = optimal_split(hits=hits, one_way=one_way) if split is None else split
        moves = 1 if one_way else 2
        return cls(
            sensitivity=sensitivity,
            hits=hits,
            one_way=one_way,
            interactive=interactive,
            threshold_scale=dyadic_up(sensitivity / (epsilon * part), bits=SCALE_BITS),
            query_scale=dyadic_up(sensitivity * moves * hits / (epsilon * (1 - part)), bits=SCALE_BITS),
        )

    def event(self) -> SparseVectorEvent | SparseSessionEvent:
        """The price of all comparisons, with the scales that are drawn."""
        kind = SparseSessionEvent if self.interactive else SparseVectorEvent
        return kind(
            sensitivity=self.sensitivity,
            threshold_scale=self.threshold_scale,
            query_scale=self.query_scale,
            moves=Fraction(1 if self.one_way else 2),
            hits=Fraction(self.hits),
        )

    @property
    def correction(self) -> int:
        """What is added to the threshold so that the one-sided noises have no bias together: known beforehand."""
        return round(self.query_scale - self.threshold_scale)

    @property
    def gap_variance(self) -> float:
        """Of the noise of one comparison, with the rounding of a gap: in squared units of the scores."""
        return float(self.threshold_scale) ** 2 + float(self.query_scale) ** 2 + 1 / 12

    def accuracy(self, *, queries: int, beta: float) -> float:
        """The alpha of Dwork and Roth's definition: with probability 1 - beta no comparison of so many is off by more.

        Above means then: at least the threshold less alpha; below: at most the threshold plus alpha. It grows with the
        logarithm of the number of queries; the price does not.
        """
        first, later = float(self.threshold_scale), float(self.query_scale)
        up = later * math.log(2 * queries / beta) - later + first
        down = first * math.log(2 / beta) - first + later
        return max(up, down) + 0.5

    def start(self, bits: BitSource) -> SparseRun:
        """A run with fresh noise on the threshold, charged before."""
        return SparseRun(self, NoisyThreshold.drawn(self.threshold_scale, bits), self.hits)

    def first_above(self, distances: Integers, bits: BitSource) -> int | None:
        """The place of the first score above the threshold, in a run of its own; None says that none was.

        `distances`: scores less the threshold, in integer units.
        """
        found = self.start(bits).ask(distances, bits)
        return found[0].place if found else None


@dataclass(slots=True, repr=False)
class SparseRun:
    """A run under way: the secret noise of its threshold, and how many hits are left. No readable repr."""

    mechanism: SparseVector
    threshold: NoisyThreshold
    left: int

    def ask(self, distances: Integers, bits: BitSource) -> tuple[Hit, ...]:
        """The hits among some scores less the threshold, in their order; after the last one nothing more is looked at.

        Requires: hits are left, and the scores follow from data and what this run released before. Every place up to
        the last hit that is not among the hits was below; nothing is known of places after the last hit of the run.
        Errors: ValueError when no hit is left.
        """
        if self.left < 1:
            raise ValueError("the last hit of this run was released")
        shifted = distances - self.mechanism.correction
        compared = self.threshold.compare(shifted, scale=self.mechanism.query_scale, bits=bits)
        places: Sequence[int] = compared.above.nonzero()[0][: self.left].tolist()
        self.left -= len(places)
        return tuple(Hit(place, compared.gap(place, bits)) for place in places)


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericSparse:
    """Sparse vector whose hits may be answered with numbers, each charged when it is released."""

    sparse: SparseVector
    answer_scale: Fraction

    def __post_init__(self) -> None:
        require_scale(self.answer_scale)

    @classmethod
    def for_epsilon(
        cls,
        epsilon: Fraction,
        *,
        answers: Fraction,
        sensitivity: Fraction,
        hits: int,
        one_way: bool,
        interactive: bool,
    ) -> NumericSparse:
        """The run whose comparisons and answers cost `epsilon` at most, of which `answers` is the part of all answers.

        Errors: ValueError when epsilon, hits or the scales are out of range.
        """
        if not 0 < answers < 1:
            raise ValueError("the part of the answers must be between 0 and 1")
        require_hits(hits)
        sparse = SparseVector.for_epsilon(
            epsilon * (1 - answers), sensitivity=sensitivity, hits=hits, one_way=one_way, interactive=interactive
        )
        scale = dyadic_up(sensitivity * hits / (epsilon * answers), bits=SCALE_BITS)
        return cls(sparse=sparse, answer_scale=scale)

    def answer_event(self) -> LaplaceEvent:
        """The price of one answer: charged when it is released, and never for hits that did not come."""
        return LaplaceEvent(l1_sensitivity=self.sparse.sensitivity, scale=self.answer_scale)

    def answer(self, distance: int, bits: BitSource) -> int:
        """The true distance from the threshold of a score that was hit, with fresh noise."""
        return distance + int(rounded_laplace(scale=self.answer_scale, count=1, bits=bits)[0])

    @property
    def answer_variance(self) -> float:
        """Of one answer by itself, with its rounding: in squared units of the scores."""
        return 2 * float(self.answer_scale) ** 2 + 1 / 12

    def combined(self, hit: Hit, answer: int) -> Fraction:
        """The distance from the threshold by the gap and the answer, each weighted by the other's variance."""
        share = self._share_of_answer
        return share * answer + (1 - share) * hit.gap

    @property
    def combined_variance(self) -> float:
        """Of both together before the selection of hits; less than that of either."""
        first, second = self.sparse.gap_variance, self.answer_variance
        return first * second / (first + second)

    def accuracy(self, *, queries: int, beta: float) -> float:
        """With probability 1 - beta every comparison, gap aside, and every answer is off by at most this.

        The bound of Dwork and Roth, Theorem 3.28, for the noise that is drawn here.
        """
        answers = float(self.answer_scale) * math.log(2 * self.sparse.hits / beta) + 0.5
        return max(self.sparse.accuracy(queries=queries, beta=beta / 2), answers)

    @property
    def _share_of_answer(self) -> Fraction:
        first, second = self.sparse.gap_variance, self.answer_variance
        return Fraction(first / (first + second)).limit_denominator(10**6)


def require_hits(hits: int) -> None:
    """Refuses a number of hits that no run has: ValueError."""
    if not 1 <= hits <= HITS_MAX:
        raise ValueError("the number of hits must be between 1 and a million")
