"""Events whose loss is that of Gaussian noise: adding it, and selecting partitions by it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from privacy.events.event import (
    EPSILON_MAX,
    EPSILON_MIN,
    fraction_to_text,
    read_fractions,
    require_delta,
    require_positive,
    require_ratio,
)
from privacy.loss import Loss
from privacy.values import Json

__all__ = ["EVENTS", "GaussianEvent", "GaussianThresholdEvent", "gaussian_loss"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianEvent:
    """Gaussian noise of one variance was added to a vector, each entry independently.

    Requires: both positive; `l2_squared` is the square of the greatest L2 change of the whole vector between
    neighbours. Squares are kept because they are exact where their roots are not.
    Ensures: `loss().mu_squared` is `l2_squared / variance` and rho half of it, both exact.
    Pure is None: no Gaussian has a pure bound.
    Shape: the vector may have any length. Rounding the noisy value to a grid is post-processing.
    Units: both in the squared unit of the vector.
    Errors: ValueError when a parameter is not positive or the ratio is above 10^12 or below 10^-60.
    Source: Dong, Roth and Su 2022, Theorem 2.7; Bun and Steinke 2016, Proposition 1.6.
    """

    kind: ClassVar[str] = "gaussian/1"

    l2_squared: Fraction
    variance: Fraction

    def __post_init__(self) -> None:
        _require_gaussian(l2_squared=self.l2_squared, variance=self.variance)

    def loss(self) -> Loss:
        """Loss of the whole vector under the relation of its sensitivity."""
        return gaussian_loss(mu_squared=self.l2_squared / self.variance, delta=Fraction(0))

    def parameters(self) -> dict[str, str]:
        """Squared sensitivity and variance, exact."""
        return {"l2_squared": fraction_to_text(self.l2_squared), "variance": fraction_to_text(self.variance)}

    @classmethod
    def from_parameters(cls, parameters: Json) -> Self:
        """Reads `parameters()` back. Raises ValueError for anything else."""
        l2_squared, variance = read_fractions(parameters, ("l2_squared", "variance"))
        return cls(l2_squared=l2_squared, variance=variance)


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianThresholdEvent:
    """Counts (or weights) of the partitions that occur got Gaussian noise, and those above a threshold were released.

    Requires: `l2_squared` and `variance` as for `GaussianEvent`, for the numbers of all partitions; `delta` inside
    (0, 1) is at least the probability that any of the partitions in which a privacy unit is alone passes the
    threshold; the noise of different partitions is independent.
    Ensures: the Gaussian's loss plus `delta`, all exact. The noisy counts above the threshold are covered too.
    Errors: ValueError for other parameters.

    Why: take the database with the unit and the one without. Let B be "a partition with this unit alone passes",
    probability b <= delta. B depends only on the noise of partitions which the other database does not have, so given
    not B the output is distributed as the output of a Gaussian mechanism over the shared partitions followed by
    the threshold, and no worse than the Gaussian's curve against the output without the unit. Hence
    P = (1 - b) P' + b E and, trivially, Q = (1 - b) Q + b Q with (P', Q) on the curve: within total variation delta of
    the Gaussian, with the same weight on both sides. That is the form in which deltas add up
    (Bun and Steinke 2016, Definition 8.1 and Lemma 8.2; accountant/filter.md for adaptive choice).
    """

    kind: ClassVar[str] = "gaussian_threshold/1"

    l2_squared: Fraction
    variance: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        _require_gaussian(l2_squared=self.l2_squared, variance=self.variance)
        require_delta(self.delta)

    def loss(self) -> Loss:
        """Loss of the selection and its noisy counts."""
        return gaussian_loss(mu_squared=self.l2_squared / self.variance, delta=self.delta)

    def parameters(self) -> dict[str, str]:
        """Squared sensitivity, variance and delta, exact."""
        return {
            "l2_squared": fraction_to_text(self.l2_squared),
            "variance": fraction_to_text(self.variance),
            "delta": fraction_to_text(self.delta),
        }

    @classmethod
    def from_parameters(cls, parameters: Json) -> Self:
        """Reads `parameters()` back. Raises ValueError for anything else."""
        l2_squared, variance, delta = read_fractions(parameters, ("l2_squared", "variance", "delta"))
        return cls(l2_squared=l2_squared, variance=variance, delta=delta)


def _require_gaussian(*, l2_squared: Fraction, variance: Fraction) -> None:
    """Refuses parameters that no Gaussian measurement may have. Raises TypeError or ValueError."""
    require_positive(l2_squared, name="l2_squared")
    require_positive(variance, name="variance")
    require_ratio(l2_squared / variance, name="l2_squared / variance", lowest=EPSILON_MIN**2, highest=EPSILON_MAX**2)


def gaussian_loss(*, mu_squared: Fraction, delta: Fraction) -> Loss:
    """The loss of a Gaussian with that mu squared, except with probability delta."""
    return Loss(pure=None, delta=delta, rho=mu_squared / 2, mu_squared=mu_squared)


EVENTS = (GaussianEvent, GaussianThresholdEvent)
