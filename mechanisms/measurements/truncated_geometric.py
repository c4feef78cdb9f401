"""Groups selected with truncated geometric noise: truncated_geometric.md."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from mechanisms.interval import Floats
from mechanisms.measurement import Integers, Law, Measurement, Perturbed, narrow
from mechanisms.randomness import BitSource
from mechanisms.shown import geometric_shown_ends
from mechanisms.truncated_geometric import EPSILON_CAP, SelectionTable, selection_table
from privacy.events import TruncatedGeometricEvent

__all__ = ["TruncatedGeometricMeasurement"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncatedGeometricMeasurement(Measurement):
    """Truncated geometric noise on the number of units of each group, and its threshold: truncated_geometric.md."""

    name: ClassVar[str] = "truncated_geometric"
    law: ClassVar[Law] = Law.OTHER
    loss: ClassVar[str] = "approximate"
    use: ClassVar[str] = "keys, one group per unit"
    selects: ClassVar[bool] = True

    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        assert self.statistic.sensitivity.l1 == 1, "each unit must own one group"
        assert self.grid == 1

    @property
    def table(self) -> SelectionTable:
        """The checked table of noise and thresholds."""
        return selection_table(epsilon=self.epsilon, delta=self.delta)

    def half_shown(self, groups: int) -> int:
        """The least number that the table keeps so often; it keeps more units at least as often."""
        most = 2 * self.table.threshold
        return bisect_left(range(most), Fraction(1, 2), key=self.table.keep_probability)

    def prepare(self) -> None:
        """The table, with its exact check."""
        assert self.table.threshold >= 1

    def event(self) -> TruncatedGeometricEvent:
        """An (epsilon, delta) selection; its noisy counts are covered."""
        return TruncatedGeometricEvent(epsilon=self.epsilon, delta=self.delta)

    def noise(self, count: int, bits: BitSource) -> npt.NDArray[np.int64]:
        """Noise alone."""
        return self.table.draw(count, bits)[0]

    def perturb(self, exact: Integers, bits: BitSource) -> Perturbed:
        """Noisy unit counts, and which groups pass their drawn threshold."""
        noise, threshold = self.table.draw(len(exact), bits)
        noisy = narrow(exact)[:, 0] + noise
        return Perturbed(narrow(noisy.reshape(-1, 1)), (noisy > threshold).astype(np.bool_))

    def shown_ends(self, noisy: Integers, alpha: float) -> tuple[Integers, Integers]:
        """By the law of the noise given that the count passed its threshold."""
        ends = geometric_shown_ends(
            epsilon=self.epsilon, delta=self.delta, alpha=alpha, reach=self.quantile_single(alpha)
        )
        return ends.ends(noisy[:, 0])

    def quantile(self, weights: Floats, alpha: float) -> Floats:
        """There is one coordinate only."""
        return weights[..., 0] * self.quantile_single(alpha)

    def tail(self, weights: Floats, reach: float) -> Floats:
        """There is one coordinate only."""
        rate = float(min(self.epsilon, EPSILON_CAP))
        whole = np.floor(reach / weights[..., 0])
        result: Floats = 2 * np.exp(-rate * (whole + 1)) / (1 + math.exp(-rate))
        return result

    def quantile_single(self, alpha: float) -> int:
        """P(|X| > t) = 2 q^(t+1) / (1 + q) without truncation, q = exp(-epsilon); truncation only lowers it."""
        rate = float(min(self.epsilon, EPSILON_CAP)) * (1 - 1e-12)
        return max(0, math.ceil(math.log(2 / (alpha * (1 + math.exp(-rate)))) / rate - 1))

    def variance(self) -> float:
        """2 q / (1 - q)^2 without truncation, q = exp(-epsilon); truncation only lowers it."""
        rate = float(min(self.epsilon, EPSILON_CAP))
        return 2 * math.exp(-rate) / math.expm1(-rate) ** 2

    @property
    def scale_of_sums(self) -> Fraction:
        """The scale 1/epsilon of the geometric."""
        return 1 / self.epsilon

    @property
    def sensitivity_text(self) -> str:
        """One unit, one group."""
        return "l1 1"
