"""Events of selections that release keys alone: the exponential mechanism, and permute-and-flip.

Several draws of one question are one event with a count: each of them has the same loss, and they compose.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
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

__all__ = ["DRAWS_MAX", "EVENTS", "BoundedRangeEvent", "PermuteAndFlipEvent", "bounded_range_loss"]

DRAWS_MAX = 10**6
"""Most draws that one event stands for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draws:
    """`draws` selections, one after the other, of each of which the same `epsilon` is known."""

    epsilon: Fraction
    draws: Fraction

    def __post_init__(self) -> None:
        require_positive(self.epsilon, name="epsilon")
        require_ratio(self.epsilon, name="epsilon", lowest=EPSILON_MIN, highest=EPSILON_MAX)
        require_positive(self.draws, name="draws")
        if self.draws.denominator != 1 or self.draws > DRAWS_MAX:
            raise ValueError("draws is outside the range: a whole number of selections, a million at most")

    def parameters(self) -> dict[str, str]:
        """Epsilon of one draw, and the number of draws, exact."""
        return {"epsilon": fraction_to_text(self.epsilon), "draws": fraction_to_text(self.draws)}

    @classmethod
    def from_parameters(cls, parameters: Json) -> Self:
        """Reads `parameters()` back. Raises ValueError for anything else."""
        epsilon, draws = read_fractions(parameters, ("epsilon", "draws"))
        return cls(epsilon=epsilon, draws=draws)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedRangeEvent(_Draws):
    """`draws` selections ran, chosen adaptively, each of bounded range `epsilon`: the exponential mechanism.

    Requires: for two neighbours P and Q and each draw there is a t with t - epsilon <= ln P(y)/Q(y) <= t for all y.
    Ensures: `loss().pure` is exact, rho and mu squared are rounded up where they are not.
    Errors: ValueError for an epsilon above 10^6 or below 10^-30, and for draws that are not a whole number.

    Why, for one draw (the measures compose by addition):

    - pure: P and Q have the mass one each, so 0 lies in [t - epsilon, t], and the range lies within epsilon of it.
    - rho = epsilon^2 / 8, or mu^2 / 2 of the next line where that is less (from epsilon 9.2 on). Let
      K(s) = ln E_Q exp(s L) with L = ln P/Q: K(0) = K(1) = 0. K'' is the variance of L under a tilted law, and L lies
      in an interval of length epsilon, so it is at most epsilon^2 / 4. Then K(s) - s (s-1) epsilon^2 / 8 is concave,
      zero at 0 and 1, and so at most zero beyond 1: (a-1) D_a = K(a) <= a (a-1) epsilon^2 / 8 for every order a.
      (Cesar and Rogers 2021, Lemma 3.4.)
    - mu = 2 Phi^-1(e^(epsilon/2) / (1 + e^(epsilon/2))), that of randomised response with half of epsilon. For every
      test A, P(A) <= e^t Q(A) and P(not A) >= e^(t-epsilon) Q(not A), so logit P(A) - logit Q(A) <= epsilon. With
      h(x) = Phi^-1(1 / (1 + e^-x)) the distance of Phi^-1 P(A) and Phi^-1 Q(A) is at most the integral of h' over an
      interval of length epsilon. h' is even and falls on x > 0, so the integral is greatest around 0: 2 h(epsilon/2).
      h' falls because logit Phi(s), its inverse, is convex on s > 0: the derivative f/(F G), with the normal density
      f, F = Phi(s), G = 1 - F, rises where D = f (F - G) - s F G > 0. D(0) = 0, D' = 2 f^2 - F G, and D'' =
      f ((F - G) - 4 s f), whose bracket falls from 0 while s^2 < 1/2 and rises after that to 1. So D' is positive at 0
      (1/pi > 1/4), falls, and rises to its limit 0 from below; D rises from 0 and then falls to its limit 0.
    """

    kind: ClassVar[str] = "bounded_range/1"

    def loss(self) -> Loss:
        """Loss of all draws."""
        return bounded_range_loss(self.epsilon).times(int(self.draws))


@dataclass(frozen=True, slots=True, kw_only=True)
class PermuteAndFlipEvent(_Draws):
    """`draws` selections ran, chosen adaptively, each of pure `epsilon`: permute-and-flip. Nothing more is used of it.

    Ensures: `loss().pure` is exact, the other measures are those of randomised response, rounded up.
    Errors: ValueError for an epsilon above 10^6 or below 10^-30, and for draws that are not a whole number.
    """

    kind: ClassVar[str] = "permute_and_flip/1"

    def loss(self) -> Loss:
        """Loss of all draws."""
        return approximate_loss(self.epsilon, Fraction(0)).times(int(self.draws))


@lru_cache(maxsize=4096)
def bounded_range_loss(epsilon: Fraction) -> Loss:
    """The loss of one selection of bounded range `epsilon`."""
    half = approximate_loss(epsilon / 2, Fraction(0))
    assert half.mu_squared is not None
    rho = min(epsilon**2 / 8, half.mu_squared / 2)
    return Loss(pure=epsilon, delta=Fraction(0), rho=rho, mu_squared=half.mu_squared)


EVENTS = (BoundedRangeEvent, PermuteAndFlipEvent)
