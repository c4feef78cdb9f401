"""Two-sided geometric noise on counts: discrete_laplace.md."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from mechanisms.measurements.laplace import LaplaceMeasurement
from mechanisms.randomness import BitSource
from mechanisms.samplers import discrete_laplace
from privacy.events import Event
from privacy.events.approximate import DiscreteLaplaceEvent
from privacy.statistic import Statistic, StatisticKind

__all__ = ["SCALE_MOST", "DiscreteLaplaceMeasurement", "counted"]

SCALE_MOST = Fraction(8)
"""At greater scales it has the errors of rounded Laplace noise, to a thousandth."""


def counted(statistic: Statistic) -> bool:
    """Whether a statistic counts whole rows or units, one number for each cell."""
    return statistic.kind in (StatisticKind.UNITS, StatisticKind.COUNT) and statistic.encoding is None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplaceMeasurement(LaplaceMeasurement):
    """Two-sided geometric noise on every count: discrete_laplace.md. `scale` is that of the sums: none is rounded."""

    name: ClassVar[str] = "discrete_laplace"
    use: ClassVar[str] = "counts on accounts without delta"

    def __post_init__(self) -> None:
        assert self.grid == 1
        assert counted(self.statistic)

    def event(self) -> Event:
        """Two-sided geometric noise of the scale that is drawn."""
        return DiscreteLaplaceEvent(l1_sensitivity=self.statistic.sensitivity.l1, scale=self.scale)

    def noise(self, count: int, bits: BitSource) -> npt.NDArray[np.int64]:
        """Two-sided geometric noise."""
        return discrete_laplace(scale=self.scale, count=count, bits=bits)

    def quantile_single(self, alpha: float) -> int:
        """P(|X| > t) = 2 q^(t+1) / (1 + q), q = exp(-1 / scale)."""
        scale = float(self.scale)
        tail = math.log(2 / (alpha * (1 + math.exp(-1 / scale))))
        return max(0, math.ceil(scale * tail * (1 + 1e-12) - 1))

    def variance(self) -> float:
        """2 q / (1 - q)^2."""
        half = 0.5 / float(self.scale)
        return 0.0 if half > 300 else 0.5 / math.sinh(half) ** 2
