"""Statistics: exact integer sums with a proved sensitivity, and the estimates that are computed from them.

A core (one private aggregation) is a grid of cells, one per group, and for each cell a few integer sums. One
`Statistic` is a family of sums that share one argument and one noise; an `Estimate` is a column of the answer
that is a function of one statistic's noisy sums.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from fractions import Fraction

from privacy.policy import ColumnType, KeyValue
from privacy.unit import Neighbouring

__all__ = [
    "CoreStatistics",
    "Encoding",
    "Estimate",
    "EstimateKind",
    "KeyColumn",
    "Keys",
    "Sensitivity",
    "Statistic",
    "StatisticKind",
]


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """Greatest change of a statistic's whole integer matrix (cells x coordinates) between neighbours.

    `l0` counts entries that may change, `l1` and `l2_squared` are norms over the whole matrix, `linf` is for one
    entry. All in integer units of the statistic's encoding.
    """

    relation: Neighbouring
    l0: int
    l1: Fraction
    l2_squared: Fraction
    linf: Fraction

    def __post_init__(self) -> None:
        assert self.l0 >= 1
        assert 0 < self.linf <= self.l1
        assert self.linf**2 <= self.l2_squared <= self.l1**2


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a value x becomes an integer T: T = clip(round((x - offset) / step), 0 or lowest, highest).

    For moments `lowest` is 0 and `highest` is the width W; for plain sums `offset` is 0 and T may be negative; a count
    of scaled rows has `highest` steps to the row. Back: x = offset + step * T.
    """

    offset: Fraction
    step: Fraction
    lowest: int
    highest: int

    def __post_init__(self) -> None:
        assert self.step > 0
        assert self.lowest <= self.highest


class StatisticKind(enum.Enum):
    """What the integer sums of a statistic are."""

    UNITS = "units"
    """One coordinate: privacy units present in the cell."""

    COUNT = "count"
    """One coordinate: rows, bounded per unit."""

    SUM = "sum"
    """One coordinate: sum of T, bounded per unit."""

    MOMENTS = "moments"
    """Bernstein sums of T in [0, W]: degree 1 has (W-T, T), degree 2 has ((W-T)^2, 2T(W-T), T^2); with
    `counts_nulls` one more coordinate W^degree for each row whose argument is NULL. Each row adds a vector of
    non-negative integers whose sum is exactly W^degree. With `raised` or `lowered` the sum and the average of T are
    bounded in two ways: those coordinates say how far the clipped sum lies above or below the scaled one."""


@dataclass(frozen=True, slots=True)
class Statistic:
    """A family of integer sums per cell that share one argument, one sensitivity and one noise."""

    name: str
    kind: StatisticKind
    sensitivity: Sensitivity
    coordinates: int = 1
    encoding: Encoding | None = None
    degree: int = 0
    counts_nulls: bool = False
    raised: bool = False
    lowered: bool = False
    fractional: bool = False
    """Whether units are scaled to a part of a row, so that true counts and sums of whole numbers are not whole."""
    argument: str = ""
    """The argument as text for people: the clip bounds and expression that the answer reports."""
    weight: int = 1
    """Relative share of the price; all ones today."""

    def __post_init__(self) -> None:
        assert (self.kind is StatisticKind.MOMENTS) == (self.degree > 0)
        if self.kind is StatisticKind.MOMENTS:
            assert self.coordinates == self.degree + 1 + self.raised + self.lowered + self.counts_nulls
            assert self.degree == 1 or not (self.raised or self.lowered)
            assert self.encoding is not None
            assert self.encoding.lowest == 0
            assert self.encoding.highest > 0
        else:
            assert self.coordinates == 1
            assert not self.raised
            assert not self.lowered
        if self.kind is StatisticKind.COUNT:
            assert (self.encoding is not None) == self.fractional
        else:
            assert (self.encoding is not None) == (self.kind in (StatisticKind.SUM, StatisticKind.MOMENTS))


class EstimateKind(enum.Enum):
    """Functions of one statistic's sums that an answer may show."""

    ROWS = "rows"  # COUNT(*): UNITS (one row per unit), COUNT, or MOMENTS including NULLs
    VALUES = "values"  # COUNT(x): MOMENTS without the NULL coordinate
    UNITS = "units"  # COUNT(DISTINCT unit)
    SUM = "sum"  # SUM or MOMENTS
    AVERAGE = "average"  # MOMENTS of degree 1 or 2
    VARIANCE_POPULATION = "variance_population"
    VARIANCE_SAMPLE = "variance_sample"
    DEVIATION_POPULATION = "deviation_population"
    DEVIATION_SAMPLE = "deviation_sample"


@dataclass(frozen=True, slots=True)
class Estimate:
    """One aggregate column of a core's release.

    `integer` asks for whole numbers (COUNT, and SUM of integers); otherwise the column is DOUBLE.
    """

    name: str
    kind: EstimateKind
    statistic: str
    integer: bool = False


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """One grouping column of a core's release."""

    name: str
    type: ColumnType


@dataclass(frozen=True, slots=True)
class Keys:
    """The cells of a core.

    `domain` lists every cell in order when the keys are public (also the empty tuple as the only cell of a core
    without groups); None means that cells are released only through partition selection, and the core then
    contains exactly one statistic of kind UNITS, named `selection`.
    """

    columns: tuple[KeyColumn, ...]
    domain: tuple[tuple[KeyValue, ...], ...] | None
    groups_per_unit: int
    selection: str | None = None

    def __post_init__(self) -> None:
        assert (self.domain is None) == (self.selection is not None)
        assert self.columns or self.domain == ((),)


@dataclass(frozen=True, slots=True)
class CoreStatistics:
    """Everything the mechanisms need to know about one core, and nothing about its rows."""

    name: str
    keys: Keys
    statistics: tuple[Statistic, ...]
    estimates: tuple[Estimate, ...]

    def __post_init__(self) -> None:
        names = [statistic.name for statistic in self.statistics]
        assert len(set(names)) == len(names)
        assert all(estimate.statistic in names for estimate in self.estimates)
        assert self.keys.selection is None or self.keys.selection in names
