"""The event of selecting partitions by a threshold on Gaussian counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from privacy.events.event import fraction_to_text
from privacy.events.gaussian import gaussian_loss, require_gaussian
from privacy.events.parameters import read_fractions, require_delta
from privacy.loss import Loss

__all__ = ["GaussianThresholdEvent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianThresholdEvent:
    """Counts of the partitions that occur got Gaussian noise, and those above a threshold were released.

    Requires: `l2_squared` and `variance` as for `GaussianEvent`, for the counts of all partitions; `delta` inside
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
        require_gaussian(l2_squared=self.l2_squared, variance=self.variance)
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
    def from_parameters(cls, parameters: Mapping[str, str]) -> GaussianThresholdEvent:
        """Reads `parameters()` back. Raises ValueError for anything else."""
        l2_squared, variance, delta = read_fractions(parameters, ("l2_squared", "variance", "delta"))
        return cls(l2_squared=l2_squared, variance=variance, delta=delta)
