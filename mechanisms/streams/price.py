"""The price of a stream and all of its noise, in one object. Proof: ../stream_synopsis.md.

Three things are drawn: noise on every cell once, noise of the comparisons, and noise on the pieces of each update. Each
has its part of epsilon, and all of it is charged before the first row is read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from mechanisms.interval import rounded_laplace_variance
from mechanisms.measurement import SCALE_BITS
from mechanisms.measurements.laplace import LaplaceMeasurement
from mechanisms.samplers.undecided import require_scale
from mechanisms.sparse_vector import SparseVector
from privacy.events import Event, LaplaceEvent
from privacy.numbers import dyadic_up
from privacy.statistic import Sensitivity, Statistic

__all__ = ["PIECES_MAX", "UPDATES_MAX", "StreamNoise"]

UPDATES_MAX = 64
"""Most updates of a stream: of many more, each would be noise."""

PIECES_MAX = 16
"""Most pieces of one update: the range itself, and what is outside in so many parts less one."""

_GATE = Fraction(1, 2)
_FIRST = Fraction(2, 5)
"""Parts of epsilon for comparisons and for the cells; what is left is for updates. stream_synopsis.md says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamNoise:
    """Scales of a stream's noise, in integer units of its cells.

    `change` is the greatest L1 change of all cells together between neighbours.
    """

    change: Fraction
    updates: int
    first_scale: Fraction
    update_scale: Fraction
    threshold_scale: Fraction
    query_scale: Fraction

    def __post_init__(self) -> None:
        if not 1 <= self.updates <= UPDATES_MAX:
            raise ValueError(f"the number of updates must be between 1 and {UPDATES_MAX}")
        require_scale(self.first_scale)
        require_scale(self.update_scale)

    @classmethod
    def for_epsilon(cls, epsilon: Fraction, *, change: Fraction, updates: int) -> StreamNoise:
        """The noise whose events are at most `epsilon` together. Errors: ValueError when it is out of range."""
        if epsilon <= 0:
            raise ValueError("epsilon must be greater than zero")
        if not 1 <= updates <= UPDATES_MAX:
            raise ValueError(f"the number of updates must be between 1 and {UPDATES_MAX}")
        gate = SparseVector.for_epsilon(
            epsilon * _GATE, sensitivity=change, hits=updates, one_way=False, interactive=True
        )
        each = epsilon * (1 - _GATE - _FIRST) / updates
        return cls(
            change=change,
            updates=updates,
            first_scale=dyadic_up(change / (epsilon * _FIRST), bits=SCALE_BITS),
            update_scale=dyadic_up(change / each, bits=SCALE_BITS),
            threshold_scale=gate.threshold_scale,
            query_scale=gate.query_scale,
        )

    @property
    def gate(self) -> SparseVector:
        """The comparisons: scores that a unit moves either way, and as many hits as there are updates."""
        return SparseVector(
            sensitivity=self.change,
            hits=self.updates,
            one_way=False,
            interactive=True,
            threshold_scale=self.threshold_scale,
            query_scale=self.query_scale,
        )

    def events(self) -> tuple[Event, ...]:
        """The whole price, with the scales that are drawn: comparisons, cells, and every update."""
        update = LaplaceEvent(l1_sensitivity=self.change, scale=self.update_scale)
        first = LaplaceEvent(l1_sensitivity=self.change, scale=self.first_scale)
        return self.gate.event(), first, *(update,) * self.updates

    def cells(self, core: str, statistic: Statistic) -> LaplaceMeasurement:
        """The noise on every cell."""
        return LaplaceMeasurement(
            core=core, statistic=self._within(statistic, statistic.sensitivity.l0), share=_FIRST, scale=self.first_scale
        )

    def pieces(self, core: str, statistic: Statistic) -> LaplaceMeasurement:
        """The noise on the pieces of one update."""
        share = (1 - _GATE - _FIRST) / self.updates
        return LaplaceMeasurement(
            core=core, statistic=self._within(statistic, PIECES_MAX), share=share, scale=self.update_scale
        )

    def _within(self, statistic: Statistic, l0: int) -> Statistic:
        """Sums of disjoint sets of cells: together they change by no more than the cells do in L1."""
        change = self.change
        bound = Sensitivity(
            relation=statistic.sensitivity.relation, l0=l0, l1=change, l2_squared=change**2, linf=change
        )
        return replace(statistic, sensitivity=bound)

    # What is known of errors beforehand

    @property
    def cell_variance(self) -> float:
        """Of the noise of one cell with its rounding, in squared units."""
        return rounded_laplace_variance(float(self.first_scale))

    @property
    def piece_variance(self) -> float:
        """Of the noise of one piece with its rounding, in squared units."""
        return rounded_laplace_variance(float(self.update_scale))

    def wrong_updates(self, *, tolerance: int, queries: int) -> float:
        """How many updates so many queries use up on average, at most, of a synopsis without any error."""
        first, later = float(self.threshold_scale), float(self.query_scale)
        return 2 * queries * later / (first + later) * math.exp(-tolerance / later)

    def usual_tolerance(self, *, queries: int, cells: int) -> int:
        """Where noise would use up a tenth of the updates, and twice the standard error of half the cells more."""
        later = float(self.query_scale)
        wrong = self.wrong_updates(tolerance=0, queries=queries)
        lucky = later * math.log(max(wrong / (self.updates / 10), 1.0))
        return math.ceil(lucky + 2 * math.sqrt(self.cell_variance * cells / 2))

    def within(self, *, tolerance: int, beta: float) -> float:
        """With probability 1 - beta every answer that passed a comparison is off by at most this, however many."""
        return tolerance + float(self.threshold_scale) * math.log(1 / beta)

    def of_one_update(self, *, beta: float) -> float:
        """With probability 1 - beta the answer that one update measures is off by at most this."""
        return float(self.update_scale) * math.log(1 / beta) + 0.5
