"""Events of noisy counts beside which quantiles were drawn: noise, and selections of bounded range after it."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from privacy.events.event import (
    EPSILON_MAX,
    EPSILON_MIN,
    Event,
    fraction_to_text,
    read_fractions,
    require_positive,
    require_ratio,
)
from privacy.events.gaussian import GaussianEvent
from privacy.events.laplace import HALF_PI_UP, LaplaceEvent
from privacy.loss import Loss
from privacy.values import Json

__all__ = ["EVENTS", "GaussianRangesEvent", "LaplaceRangesEvent", "ranges_loss"]


def ranges_loss(*, l1: Fraction, l2_squared: Fraction) -> Loss:
    """The loss of selections of which one unit changes each within a range: of those ranges the sum, and of squares.

    Requires: for two neighbours and every selection i, P and Q given all that was released before it, there is a t with
    t - r(i) <= ln P(y)/Q(y) <= t for all y, where the r(i) add up to at most `l1`, and their squares to `l2_squared`.
    Squares of ranges add up to no more than the square of their sum.
    Ensures: `pure` is `l1`, rho `l2_squared / 8`, mu squared not below pi / 8 times `l2_squared`.

    Why: one selection of range r has pure epsilon r, rho r^2 / 8 and mu = 2 h(r/2) with h(x) = Phi^-1(1 / (1 + e^-x))
    (`BoundedRangeEvent` has the proofs). h' is even and falls on x > 0, so 2 h(r/2) <= r h'(0), and h'(0) is
    a quarter over the normal density at zero, the root of pi / 8. All three measures add up over selections.
    """
    return Loss(pure=l1, delta=Fraction(0), rho=l2_squared / 8, mu_squared=HALF_PI_UP / 4 * l2_squared)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ranges:
    """Noise on a vector, and then selections, chosen adaptively, within ranges that a unit can change them by."""

    ranges_l1: Fraction
    ranges_l2_squared: Fraction

    _FIRST: ClassVar[tuple[str, str]]

    def __post_init__(self) -> None:
        self._noise()
        require_positive(self.ranges_l1, name="ranges_l1")
        require_positive(self.ranges_l2_squared, name="ranges_l2_squared")
        require_ratio(self.ranges_l1, name="ranges_l1", lowest=EPSILON_MIN, highest=EPSILON_MAX)
        lowest, highest = EPSILON_MIN**2, self.ranges_l1**2
        require_ratio(self.ranges_l2_squared, name="ranges_l2_squared", lowest=lowest, highest=highest)

    @abstractmethod
    def _noise(self) -> Event:
        """The event of the noise alone."""

    def loss(self) -> Loss:
        """Loss of noise and selections together."""
        return self._noise().loss() + ranges_loss(l1=self.ranges_l1, l2_squared=self.ranges_l2_squared)

    def parameters(self) -> dict[str, str]:
        """Those of the noise, and the sum and the sum of squares of the ranges, exact."""
        names = (*self._FIRST, "ranges_l1", "ranges_l2_squared")
        return {name: fraction_to_text(getattr(self, name)) for name in names}

    @classmethod
    def from_parameters(cls, parameters: Json) -> Self:
        """Reads `parameters()` back. Raises ValueError for anything else."""
        names = (*cls._FIRST, "ranges_l1", "ranges_l2_squared")
        return cls(**dict(zip(names, read_fractions(parameters, names), strict=True)))


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceRangesEvent(_Ranges):
    """Laplace noise, and then selections of bounded range.

    Ensures: `loss()` is that of `LaplaceEvent` and of `ranges_loss` together. Errors: ValueError as these.
    """

    kind: ClassVar[str] = "laplace_ranges/1"
    _FIRST: ClassVar[tuple[str, str]] = ("l1_sensitivity", "scale")

    l1_sensitivity: Fraction
    scale: Fraction

    def _noise(self) -> Event:
        return LaplaceEvent(l1_sensitivity=self.l1_sensitivity, scale=self.scale)


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianRangesEvent(_Ranges):
    """Gaussian noise, and then selections of bounded range.

    Ensures: `loss()` is that of `GaussianEvent` and of `ranges_loss` together. Errors: ValueError as these.
    """

    kind: ClassVar[str] = "gaussian_ranges/1"
    _FIRST: ClassVar[tuple[str, str]] = ("l2_squared", "variance")

    l2_squared: Fraction
    variance: Fraction

    def _noise(self) -> Event:
        return GaussianEvent(l2_squared=self.l2_squared, variance=self.variance)


EVENTS = (LaplaceRangesEvent, GaussianRangesEvent)
