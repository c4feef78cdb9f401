"""What is computed of the rows of one unit: values of its groups, and of the rows around each row."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from privacy.statistic import Encoding
from sql_rewrite.expressions import Expression

__all__ = [
    "RANKED",
    "FrameExclusion",
    "FrameMeasure",
    "Placement",
    "UnitFunction",
    "UnitPlace",
    "UnitValue",
    "UnitWindow",
    "WindowFrame",
    "WindowTerm",
]


FrameMeasure = Literal["", "groups", "whole", "clock"]
FrameExclusion = Literal["", "current row", "group", "ties"]


class UnitFunction(enum.Enum):
    """What is computed of the rows of one group of one unit, exactly."""

    ROWS = "rows"
    VALUES = "values"
    DISTINCT = "distinct"
    SUM = "sum"
    AVERAGE = "average"
    LEAST = "least"
    GREATEST = "greatest"
    ANY_TRUE = "any_true"
    ALL_TRUE = "all_true"
    AT_LEAST = "at_least"
    """Of the rows with the least `by`, the least value."""
    AT_GREATEST = "at_greatest"
    """Of the rows with the greatest `by`, the greatest value."""
    QUANTILE = "quantile"
    """The value with a `fraction` of the values below it, between two of them where it lies so."""
    QUANTILE_DISCRETE = "quantile_discrete"
    """The least value that a `fraction` of the values does not exceed."""
    DEVIATION = "deviation"
    """The median of the distances from the median."""
    MODE = "mode"
    """The value that is there most often, the least of several."""


RANKED = (UnitFunction.QUANTILE, UnitFunction.QUANTILE_DISCRETE, UnitFunction.DEVIATION, UnitFunction.MODE)
"""Functions of the values in their order."""


@dataclass(frozen=True, slots=True)
class UnitValue:
    """One value of a group of a unit's rows: of those under `filter`. `argument` is clipped where it is summed.

    Numbers are summed in whole steps of `encoding`, so that their order does not matter.
    """

    name: str
    function: UnitFunction
    argument: Expression | None
    filter: Expression | None
    encoding: Encoding | None = None
    by: Expression | None = None
    fraction: Fraction | None = None

    @property
    def read(self) -> tuple[Expression, ...]:
        """The expressions of a row that it reads."""
        return tuple(part for part in (self.argument, self.by, self.filter) if part is not None)


class Placement(enum.Enum):
    """What a row is given by its place among the rows of its unit."""

    ROW_NUMBER = "row_number"
    RANK = "rank"
    DENSE_RANK = "dense_rank"
    PERCENT_RANK = "percent_rank"
    CUME_DIST = "cume_dist"
    NTILE = "ntile"
    LAG = "lag"
    LEAD = "lead"
    FIRST_VALUE = "first_value"
    LAST_VALUE = "last_value"
    NTH_VALUE = "nth_value"


@dataclass(frozen=True, slots=True)
class UnitPlace:
    """A place, or the value of the row at one: `number` rows away, or of the parts or rows that are counted.

    Where LAG and LEAD find no row they give `otherwise`.
    """

    function: Placement
    argument: Expression | None = None
    number: int = 1
    otherwise: Expression | None = None
    ignores_null: bool = False
    """Whether rows in which the value is NULL are passed over."""


@dataclass(frozen=True, slots=True)
class WindowTerm:
    """One term of the order of a unit's rows."""

    expression: Expression
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class WindowFrame:
    """The rows around each row that a window reads, None for no end: by their number, or all that are equal to it.

    `by` says what ends count otherwise: `groups` of rows that are equal in the order, `whole` numbers by which the one
    value of the order differs, or `clock`, microseconds by which two moments do. `exclude` are rows left out of them.
    """

    rows: bool
    start: int | None
    end: int | None
    by: FrameMeasure = ""
    exclude: FrameExclusion = ""


@dataclass(frozen=True, slots=True)
class UnitWindow:
    """A window function over those rows of one unit that are equal in `partition`. All read cells under `GROUPS`."""

    name: str
    value: UnitValue | UnitPlace
    partition: tuple[Expression, ...]
    order: tuple[WindowTerm, ...]
    frame: WindowFrame | None

    @property
    def by_place(self) -> bool:
        """Whether it distinguishes rows that are equal in its order."""
        if isinstance(self.value, UnitPlace):
            return self.value.function not in _OF_EQUALS
        return self.frame is not None and self.frame.rows and (self.frame.start, self.frame.end) != (None, None)

    @property
    def of_all_rows(self) -> bool:
        """Whether it has one value in all rows that are equal in `partition`."""
        frame = self.frame
        if isinstance(self.value, UnitValue):
            return not self.order if frame is None else (frame.start, frame.end, frame.exclude) == (None, None, "")
        first = frame is not None and frame.start is None and (frame.end is None or frame.end >= 0)
        last = frame is not None and frame.end is None and (frame.start is None or frame.start <= 0)
        reads = {Placement.FIRST_VALUE: first, Placement.LAST_VALUE: last, Placement.NTH_VALUE: first and last}
        return reads.get(self.value.function, False)


_OF_EQUALS = (Placement.RANK, Placement.DENSE_RANK, Placement.PERCENT_RANK, Placement.CUME_DIST)
