"""Groups selected by a threshold on Gaussian counts: gaussian_threshold.md."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from mechanisms.gaussian_threshold import gaussian_threshold
from mechanisms.measurement import Integers, Law, Perturbed
from mechanisms.measurements.gaussian import GaussianMeasurement
from mechanisms.randomness import BitSource
from mechanisms.shown import gaussian_shown_ends
from privacy.events import GaussianThresholdEvent

__all__ = ["GaussianThresholdMeasurement"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianThresholdMeasurement(GaussianMeasurement):
    """Gaussian noise on the number of units of each group that occurs, and a threshold: gaussian_threshold.md."""

    name: ClassVar[str] = "gaussian_threshold"
    law: ClassVar[Law] = Law.OTHER
    loss: ClassVar[str] = "approximate"
    use: ClassVar[str] = "keys, several groups per unit"
    selects: ClassVar[bool] = True

    delta: Fraction
    groups_per_unit: int

    @property
    def threshold(self) -> int:
        """The least noisy count that is released."""
        return gaussian_threshold(sigma=self.sigma, groups_per_unit=self.groups_per_unit, delta=self.delta)

    def half_shown(self, groups: int) -> int:
        """The threshold: below it the rounded noise has to be above zero, which it is with less than a half."""
        return self.threshold

    def prepare(self) -> None:
        """The threshold."""
        assert self.threshold >= 2

    def event(self) -> GaussianThresholdEvent:
        """The Gaussian, and the delta of the threshold."""
        return GaussianThresholdEvent(l2_squared=self.l2_squared, variance=self.scale_of_sums**2, delta=self.delta)

    def perturb(self, exact: Integers, bits: BitSource) -> Perturbed:
        """Noisy unit counts, and which groups reach the threshold."""
        # Named in full: with slots, the zero-argument form does not find the class that was rebuilt.
        noisy = GaussianMeasurement.perturb(self, exact, bits).sums
        return Perturbed(noisy, (noisy[:, 0] >= self.threshold).astype(np.bool_))

    def shown_ends(self, noisy: Integers, alpha: float) -> tuple[Integers, Integers] | None:
        """By the law of the noise given that the count reached the threshold."""
        ends = gaussian_shown_ends(
            sigma=float(self.sigma), threshold=self.threshold, alpha=alpha, reach=self.quantile_single(alpha)
        )
        return ends.ends(noisy[:, 0])
