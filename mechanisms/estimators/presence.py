"""The estimator of presence: whether a noisy count of rows is above what noise alone could make of none.

Let n be the true number of rows and [L, U] the interval of its noisy count, which misses n with probability at most
alpha. The answer is 1 where L > 0 and 0 elsewhere.

| n | answer 1 |
|---|---|
| 0 | with probability at most alpha: then n = 0 < L is missed |
| so many that n is more than two half-widths | with probability at least 1 - alpha |
| between | with a probability between these: a few rows are as good as none |

So 1 says that rows are there, with that confidence, and 0 that there are few or none. What is computed is a function of
a noisy count: it costs what the count does, and nothing more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechanisms.estimators.estimator import Column, Estimator, ExpectedError
from mechanisms.estimators.forms import half_width
from mechanisms.estimators.sums import ROWS
from mechanisms.interval import Floats
from mechanisms.measurement import Integers, Measurement
from privacy.aggregate import AggregateFunction
from privacy.statistic import Statistic, StatisticKind

__all__ = ["ESTIMATORS", "Presence"]

_SIMULATED_ALPHA = 0.05
"""The alpha of simulated answers, which have no confidence of their own."""


@dataclass(frozen=True, slots=True)
class Presence(Estimator):
    """1 where rows are there for certain, as far as the noise tells; 0 elsewhere. Its interval is within [0, 1]."""

    def truth(self, values: Floats, *, nulls: int) -> float:
        """Whether there is a row."""
        return float(values.size + nulls > 0)

    def ends(self, measurement: Measurement) -> tuple[float, float]:
        """Absent and present."""
        return 0.0, 1.0

    def form(self, statistic: Statistic) -> None:
        """No linear form. Errors: ValueError unless the statistic counts rows or units."""
        if statistic.kind not in (StatisticKind.COUNT, StatisticKind.UNITS):
            raise ValueError("the statistic does not hold the estimate")

    def of_nobody(self, measurement: Measurement, noisy: Integers, *, alpha: float) -> tuple[bool, ...]:
        """Never: that nobody is there is what it says."""
        return (False,) * len(noisy)

    def column(self, measurement: Measurement, noisy: Integers, *, integer: bool, alpha: float) -> Column:
        """Where the interval of the count lies, beside zero and one."""
        counted = ROWS.column(measurement, noisy, integer=True, alpha=alpha)
        assert integer
        there = [low is not None and low > 0 for low in counted.lows]
        maybe = [high is None or high >= 1 for high in counted.highs]
        return Column(
            values=tuple(int(one) for one in there),
            standard_errors=(None,) * len(there),
            lows=tuple(int(one) for one in there),
            highs=tuple(int(one or other) for one, other in zip(there, maybe, strict=True)),
        )

    def simulated(self, measurement: Measurement, noisy: Floats, *, integer: bool) -> Floats:
        """Whether the simulated counts are beyond the half-width."""
        form = ROWS.form(measurement.statistic)
        counts = ROWS.simulated(measurement, noisy, integer=False)
        return np.where(counts > half_width(measurement, form, _SIMULATED_ALPHA), 1.0, 0.0)

    def rows_of_noise(self, measurement: Measurement, *, alpha: float) -> None:
        """It always says something: that few are there, or some."""
        return

    def expected(self, measurement: Measurement, *, integer: bool, alpha: float) -> tuple[ExpectedError, ...]:
        """None: what it says is not a number with an error."""
        return ()


ESTIMATORS: tuple[Estimator, ...] = (Presence(AggregateFunction.PRESENT),)
