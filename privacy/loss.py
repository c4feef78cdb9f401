"""Privacy loss: what releases cost, in several stated measures at once, and how two losses add up.

A loss is a statement about one neighbouring relation. Each measure composes by addition (adaptively as well):
pure epsilon (Dwork et al. 2006), delta of the approximate parts, rho of zero-concentrated DP (Bun and Steinke
2016, Lemma 1.7) and mu squared of Gaussian DP (Dong, Roth and Su 2022, Corollary 3.3). Measures are never mixed; a
measure in which an event has no finite bound is None and stays None for the sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

__all__ = ["ZERO_LOSS", "Loss"]


@dataclass(frozen=True, slots=True)
class Loss:
    """One privacy loss in every measure; None where there is no finite bound.

    `delta` is the probability mass that `rho`, `mu_squared` and `pure` do not cover: an event with delta above
    zero is "approximately" what its other measures say.
    """

    pure: Fraction | None
    delta: Fraction
    rho: Fraction | None
    mu_squared: Fraction | None

    def __post_init__(self) -> None:
        assert self.delta >= 0

    def __add__(self, other: Loss) -> Loss:
        """Sequential composition."""
        return Loss(
            pure=_add(self.pure, other.pure),
            delta=self.delta + other.delta,
            rho=_add(self.rho, other.rho),
            mu_squared=_add(self.mu_squared, other.mu_squared),
        )

    def times(self, count: int) -> Loss:
        """Composition of `count` equal losses."""
        assert count >= 1
        return Loss(
            pure=None if self.pure is None else self.pure * count,
            delta=self.delta * count,
            rho=None if self.rho is None else self.rho * count,
            mu_squared=None if self.mu_squared is None else self.mu_squared * count,
        )


def _add(left: Fraction | None, right: Fraction | None) -> Fraction | None:
    return None if left is None or right is None else left + right


ZERO_LOSS = Loss(pure=Fraction(0), delta=Fraction(0), rho=Fraction(0), mu_squared=Fraction(0))
"""The loss of revealing nothing."""
