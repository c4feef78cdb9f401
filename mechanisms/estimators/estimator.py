"""What an estimator is: value, error, simulation and expectation of one aggregate, in one object."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from mechanisms.interval import Floats
from mechanisms.measurement import Integers, Measurement
from privacy.aggregate import AggregateFunction
from privacy.statistic import Statistic

__all__ = ["GROUP_SIZES", "Column", "Estimator", "ExpectedError", "Form"]

Form = tuple[Fraction, ...]
"""Coefficients of a linear estimate on the integer sums of a statistic, one per coordinate."""

GROUP_SIZES = (100, 1_000, 10_000)
"""Numbers of rows for which the error of a ratio is stated in advance."""


@dataclass(frozen=True, slots=True)
class Column:
    """Values of one estimate with their standard errors and interval ends, one per cell."""

    values: tuple[float | int | None, ...]
    standard_errors: tuple[float | None, ...]
    lows: tuple[float | int | None, ...]
    highs: tuple[float | int | None, ...]


@dataclass(frozen=True, slots=True)
class ExpectedError:
    """The error that an estimate would have in a group of that many rows; not read from data.

    `standard_error` and `half_width` are those of values spread evenly over their bounds; `standard_error_at_most` is
    that of the worst values within them.
    """

    rows: int
    standard_error: float | None
    half_width: float | None
    standard_error_at_most: float | None


@dataclass(frozen=True, slots=True)
class Estimator(ABC):
    """What the noisy sums of a statistic say of one aggregate. Functions of released numbers: they cost nothing.

    Shapes: noisy sums are cells x coordinates, in units of the measurement's grid.
    """

    widening: ClassVar[float] = 1.0
    """How many times wider than one set of its noise an interval is, at most, where there are many rows.

    Above 1 where the parts of an interval are bounded one by one and joined end to end: it then holds more often than
    it says, and the tests of this room ask that it does so by no more than this.
    """

    function: AggregateFunction

    def at(self, fraction: Fraction | None) -> Estimator:
        """The estimator of that part of the rows; itself where the aggregate asks for none."""
        return self

    @abstractmethod
    def truth(self, values: Floats, *, nulls: int) -> float | None:
        """The definition: the aggregate of plain values within their bounds, and of `nulls` rows without a value.

        Each row is a unit of its own. None where the aggregate is undefined. What is estimated without noise, and what
        intervals have to hold: the tests of this room, and DuckDB's own function, are compared with it.
        """

    @abstractmethod
    def ends(self, measurement: Measurement) -> tuple[float, float] | None:
        """The least and the greatest value to which a noisy one is held; None where it is held to nothing."""

    def of_nobody(self, measurement: Measurement, noisy: Integers, *, alpha: float) -> tuple[bool, ...]:
        """Whether each cell may be that of no row with a value: whether that is within the noise, at this alpha."""
        column = self.column(measurement, noisy, integer=False, alpha=alpha)
        return tuple(
            low is None or high is None or low <= 0 <= high for low, high in zip(column.lows, column.highs, strict=True)
        )

    @abstractmethod
    def form(self, statistic: Statistic) -> Form | None:
        """Coefficients of the estimate on the integer sums, or None when it is not linear.

        Errors: ValueError when the statistic does not hold the aggregate.
        """

    @abstractmethod
    def column(self, measurement: Measurement, noisy: Integers, *, integer: bool, alpha: float) -> Column:
        """Value, standard error and interval of each cell; each interval misses with probability at most alpha.

        `integer`: the values are rounded to whole numbers, as the true ones are.
        """

    @abstractmethod
    def simulated(self, measurement: Measurement, noisy: Floats, *, integer: bool) -> Floats:
        """The values of simulated noisy sums (... x cells x coordinates), NaN where they are undefined."""

    @abstractmethod
    def rows_of_noise(self, measurement: Measurement, *, alpha: float) -> float | None:
        """With how many rows the interval is as wide as everything that the aggregate could be. Reads no data.

        None for what always says something, as a count does: it could be any number.
        """

    @abstractmethod
    def expected(self, measurement: Measurement, *, integer: bool, alpha: float) -> tuple[ExpectedError, ...]:
        """The errors in groups of `GROUP_SIZES` rows, without noise. Reads no data."""
