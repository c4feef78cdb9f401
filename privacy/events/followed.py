"""Events of noisy counts after which values were released of which nothing but a pure epsilon is known."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from privacy.events.approximate import approximate_loss
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
from privacy.events.laplace import LaplaceEvent
from privacy.loss import Loss
from privacy.values import Json

__all__ = ["EVENTS", "GaussianFollowedEvent", "LaplaceFollowedEvent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Followed:
    """Noise on a vector, and then `count` values, chosen adaptively, each of them epsilon-DP.

    Where each unit is in one cell at most, the values of the other cells have the same law on both neighbours: `count`
    is that of one cell.
    """

    epsilon: Fraction
    count: Fraction

    _FIRST: ClassVar[tuple[str, str]]

    def __post_init__(self) -> None:
        self._noise()
        require_positive(self.epsilon, name="epsilon")
        require_ratio(self.epsilon, name="epsilon", lowest=EPSILON_MIN, highest=EPSILON_MAX)
        require_positive(self.count, name="count")
        if self.count.denominator != 1 or self.count > 1000:
            raise ValueError("count is outside the range of whole numbers up to a thousand")

    @abstractmethod
    def _noise(self) -> Event:
        """The event of the noise alone."""

    def loss(self) -> Loss:
        """Loss of noise and values together: every measure adds up over adaptive releases."""
        return self._noise().loss() + approximate_loss(self.epsilon, Fraction(0)).times(int(self.count))

    def parameters(self) -> dict[str, str]:
        """Those of the noise, the epsilon of one value, and how many there are, exact."""
        names = (*self._FIRST, "epsilon", "count")
        return {name: fraction_to_text(getattr(self, name)) for name in names}

    @classmethod
    def from_parameters(cls, parameters: Json) -> Self:
        """Reads `parameters()` back. Raises ValueError for anything else."""
        names = (*cls._FIRST, "epsilon", "count")
        return cls(**dict(zip(names, read_fractions(parameters, names), strict=True)))


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceFollowedEvent(_Followed):
    """Laplace noise, and then values of which each is epsilon-DP.

    Ensures: `loss()` is that of `LaplaceEvent` and `count` times that of any epsilon-DP mechanism. Errors: ValueError.
    """

    kind: ClassVar[str] = "laplace_followed/1"
    _FIRST: ClassVar[tuple[str, str]] = ("l1_sensitivity", "scale")

    l1_sensitivity: Fraction
    scale: Fraction

    def _noise(self) -> Event:
        return LaplaceEvent(l1_sensitivity=self.l1_sensitivity, scale=self.scale)


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianFollowedEvent(_Followed):
    """Gaussian noise, and then values of which each is epsilon-DP.

    Ensures: `loss()` is that of `GaussianEvent` and `count` times that of any epsilon-DP mechanism. Errors: ValueError.
    """

    kind: ClassVar[str] = "gaussian_followed/1"
    _FIRST: ClassVar[tuple[str, str]] = ("l2_squared", "variance")

    l2_squared: Fraction
    variance: Fraction

    def _noise(self) -> Event:
        return GaussianEvent(l2_squared=self.l2_squared, variance=self.variance)


EVENTS = (LaplaceFollowedEvent, GaussianFollowedEvent)
