"""Groups selected by a threshold on Gaussian weights: weighted_threshold.md."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mechanisms.measurement import Integers
from mechanisms.measurements.gaussian_threshold import GaussianThresholdMeasurement
from mechanisms.weighted_threshold import weight, weighted_threshold

__all__ = ["WeightedThresholdMeasurement"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedThresholdMeasurement(GaussianThresholdMeasurement):
    """Gaussian noise on the weight of each group that occurs, and a threshold: weighted_threshold.md.

    `groups_per_unit` is the most that a unit can have: none of them is left out.
    """

    name: ClassVar[str] = "weighted_threshold"
    use: ClassVar[str] = "keys, all groups of a unit, weighted"

    @property
    def threshold(self) -> int:
        """The least noisy weight that is released, in integer units of the statistic."""
        encoding = self.statistic.encoding
        assert encoding is not None
        return weighted_threshold(
            sigma=self.sigma, groups_per_unit=self.groups_per_unit, delta=self.delta, whole=encoding.highest
        )

    def half_shown(self, groups: int) -> int:
        """Units that weigh as much as the threshold together, each as much as its number of groups leaves it."""
        assert self.statistic.encoding is not None
        return -(-self.threshold // weight(groups=groups, whole=self.statistic.encoding.highest))

    def shown_ends(self, noisy: Integers, alpha: float) -> None:
        """No estimate is made of weights."""
        return
