"""One kind of question, asked again and again with noise of the same size."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

from privacy.events.gaussian import GaussianEvent
from privacy.events.laplace import LaplaceEvent
from privacy.events.selection import BoundedRangeEvent, PermuteAndFlipEvent
from privacy.loss import Loss

__all__ = ["Kind", "Repeated"]


class Kind(enum.Enum):
    """What a question is answered with. The value is its word in the API."""

    LAPLACE = "laplace"
    """A number with Laplace noise."""

    GAUSSIAN = "gaussian"
    """A number with Gaussian noise."""

    SELECTION = "selection"
    """The exponential mechanism: a choice among many."""

    PURE = "pure"
    """Anything of which nothing but its pure epsilon is known, such as a sparse-vector session."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """A question of one kind. `size` is its epsilon; of a Gaussian it is mu: sensitivity over standard deviation.

    Requires: `size` within [10^-6, 100]. Errors: ValueError outside.
    """

    kind: Kind
    size: Fraction

    def __post_init__(self) -> None:
        if not Fraction(1, 10**6) <= self.size <= 100:
            raise ValueError("the size of a question must be between 0.000001 and 100")

    @classmethod
    def with_deviation(cls, kind: Kind, deviation: Fraction) -> Repeated:
        """A count of one row per unit, with noise of this standard deviation.

        Errors: ValueError for a kind that adds no noise to a number, and outside the range of sizes.
        """
        if deviation <= 0:
            raise ValueError("the standard deviation must be above zero")
        match kind:
            case Kind.GAUSSIAN:
                return cls(kind, 1 / deviation)
            case Kind.LAPLACE:
                # sqrt(2) b, with b the scale: to 15 digits, as a plan needs it.
                return cls(kind, Fraction(math.sqrt(2)) / deviation)
            case Kind.SELECTION | Kind.PURE:
                raise ValueError("only noise of numbers has a standard deviation")
            case _:
                assert_never(kind)

    @property
    def deviation(self) -> float | None:
        """Standard deviation of the noise of such a count; None where no number gets noise."""
        match self.kind:
            case Kind.GAUSSIAN:
                return 1 / float(self.size)
            case Kind.LAPLACE:
                return math.sqrt(2) / float(self.size)
            case Kind.SELECTION | Kind.PURE:
                return None
            case _:
                assert_never(self.kind)

    @property
    def epsilon(self) -> float | None:
        """Pure epsilon of one question; None for a Gaussian, which has none."""
        return None if self.kind is Kind.GAUSSIAN else float(self.size)

    def loss(self) -> Loss:
        """The loss of one question, as the ledger would compute it from its event."""
        match self.kind:
            case Kind.LAPLACE:
                return LaplaceEvent(l1_sensitivity=Fraction(1), scale=1 / self.size).loss()
            case Kind.GAUSSIAN:
                return GaussianEvent(l2_squared=Fraction(1), variance=1 / self.size**2).loss()
            case Kind.SELECTION:
                return BoundedRangeEvent(epsilon=self.size, draws=Fraction(1)).loss()
            case Kind.PURE:
                return PermuteAndFlipEvent(epsilon=self.size, draws=Fraction(1)).loss()
            case _:
                assert_never(self.kind)
