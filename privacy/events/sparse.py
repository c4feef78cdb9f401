"""Events of the sparse vector technique: comparisons with one noisy threshold, of which the first few hits cost.

Comparisons below the threshold cost nothing, whatever their number. Theorem and proof: mechanisms/sparse_vector.md.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from typing import ClassVar, Self

from privacy.events.approximate import approximate_loss
from privacy.events.event import (
    EPSILON_MAX,
    EPSILON_MIN,
    fraction_to_text,
    read_fractions,
    require_positive,
    require_ratio,
)
from privacy.loss import Loss
from privacy.values import Json

__all__ = ["EVENTS", "HITS_MAX", "SparseSessionEvent", "SparseVectorEvent"]

HITS_MAX = 10**6
"""Most hits that one event stands for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sparse:
    """Scores were compared with a threshold, both with one-sided exponential noise, until so many `hits`.

    `moves`: 1 where a unit moves all scores in one direction, 2 where it may move them against each other.
    """

    sensitivity: Fraction
    threshold_scale: Fraction
    query_scale: Fraction
    moves: Fraction
    hits: Fraction

    def __post_init__(self) -> None:
        for field in fields(self):
            require_positive(getattr(self, field.name), name=field.name)
        if self.moves not in (1, 2):
            raise ValueError("moves is outside the range: scores move in one direction (1), or in both (2)")
        if self.hits.denominator != 1 or self.hits > HITS_MAX:
            raise ValueError("hits is outside the range: a whole number of hits, a million at most")
        parts = (self.sensitivity / self.threshold_scale, self.sensitivity * self.moves / self.query_scale)
        for part in (*parts, self.epsilon):
            require_ratio(part, name="sensitivity / scale", lowest=EPSILON_MIN, highest=EPSILON_MAX)

    @property
    def epsilon(self) -> Fraction:
        """That of all comparisons together: D / b1 for the threshold, and D moves / b2 for each hit."""
        return self.sensitivity * (1 / self.threshold_scale + self.hits * self.moves / self.query_scale)

    def parameters(self) -> dict[str, str]:
        """Sensitivity of one score, both scales, directions and hits, exact."""
        return {field.name: fraction_to_text(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def from_parameters(cls, parameters: Json) -> Self:
        """Reads `parameters()` back. Raises ValueError for anything else."""
        names = tuple(field.name for field in fields(cls))
        return cls(**dict(zip(names, read_fractions(parameters, names), strict=True)))


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseVectorEvent(_Sparse):
    """Comparisons whose outcomes were released at once: nothing else ran between them.

    Requires: `sensitivity` is the greatest change of one score between neighbours, under the dataset's relation.
    Ensures: `loss().pure` is the epsilon of the theorem, exact; the other measures are those of randomised response,
    rounded up.
    Errors: ValueError for parameters that are not positive or out of range, for `moves` other than 1 and 2, and for
    hits that are not a whole number.
    Source: Dwork and Roth 2014, Theorem 3.25; Lyu, Su and Li 2017, Theorems 4 and 5 (one threshold, optimal split).
    """

    kind: ClassVar[str] = "sparse_vector/1"

    def loss(self) -> Loss:
        """Loss of all comparisons."""
        return approximate_loss(self.epsilon, Fraction(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseSessionEvent(_Sparse):
    """A session of comparisons that stays open while other measurements of the same account run.

    Requires: as `SparseVectorEvent`; the whole session is charged with this event before its first comparison.
    Ensures: `loss().pure` is the epsilon of the theorem, exact; mu squared is that of randomised response, rounded up;
    rho is None. Errors: as `SparseVectorEvent`.

    Why rho is None: measurements run between the comparisons, so sums over an account have to hold for interactive
    mechanisms side by side. They do for sums of epsilon and delta (Vadhan and Wang 2021; Vadhan and Zhang 2023) and
    for mu squared (trade-off functions, Vadhan and Zhang 2023). For rho beside the deltas of thresholds there is no
    proof to cite (accountant/filter.md), so an account with a session never again counts on that sum.

    Why mu squared is that of randomised response: an interactive epsilon-DP mechanism is an interactive post-processing
    of one draw of randomised response with epsilon (Vadhan and Zhang 2023, Theorem 4.1; for pure DP Vadhan and Wang
    2021), and `approximate_loss` has the Gaussian draw of which that one is a post-processing in its turn.
    """

    kind: ClassVar[str] = "sparse_session/1"

    def loss(self) -> Loss:
        """Loss of the whole session."""
        whole = approximate_loss(self.epsilon, Fraction(0))
        return Loss(pure=whole.pure, delta=whole.delta, rho=None, mu_squared=whole.mu_squared)


EVENTS = (SparseVectorEvent, SparseSessionEvent)
