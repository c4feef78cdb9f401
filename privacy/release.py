"""Releases: noisy answers and their description. Free to copy, store and show."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from privacy.policy import ColumnType
from privacy.values import Cell

__all__ = ["BoundsNote", "BoundsSource", "ColumnKind", "MechanismNote", "NormNote", "NormSource", "ReleasedColumn"]


class ColumnKind(StrEnum):
    """What a column of a released table or of an answer holds. The values are stored and sent."""

    KEY = "key"
    RELEASED = "released"
    """Noisy numbers of a core, as they are."""

    DERIVED = "derived"
    """Computed from released numbers; no column of a released table."""


@dataclass(frozen=True, slots=True)
class ReleasedColumn:
    """One column of a released table.

    `role` is KEY or RELEASED. `type` is a language type; released columns are INTEGER or NUMBER. `values` has
    one entry per group. `standard_errors`, `lows` and `highs` have one entry per group for released columns and
    are empty for keys. `linear` says that the value is a sum with noise of one known spread in every group, so that
    its interval grows with the confidence by a known factor.
    """

    name: str
    role: ColumnKind
    type: ColumnType
    values: tuple[Cell, ...]
    standard_errors: tuple[float | None, ...] = ()
    lows: tuple[float | int | None, ...] = ()
    highs: tuple[float | int | None, ...] = ()
    linear: bool = False

    @property
    def numbers(self) -> tuple[int | float | None, ...]:
        """The values of a column of numbers. Errors: TypeError for another column."""
        numbers = tuple(value for value in self.values if value is None or isinstance(value, int | float))
        if len(numbers) != len(self.values):
            raise TypeError(f"the column {self.name} does not hold numbers")
        return numbers


@dataclass(frozen=True, slots=True)
class MechanismNote:
    """What was done to one statistic: shown to the analyst, with its share of the price."""

    statistic: str
    mechanism: str
    scale: str
    sensitivity: str
    argument: str
    share: str
    estimates: tuple[str, ...]


class NormSource(StrEnum):
    """Where the norm of a release comes from. The values are stored and sent."""

    CHOSEN = "chosen"
    """A histogram of norms that the same question released and paid for."""

    STORED = "stored"
    """A histogram of norms that an earlier question released."""


@dataclass(frozen=True, slots=True)
class NormNote:
    """To which norm units were scaled for some estimates, where it comes from, and what scaling is expected to cut.

    `norm` is decimal text, in rows, units or the unit of the sum; `share` is the part of the sum over all cells that is
    cut, with its standard error: estimates without a promise. Both are None where nothing is known of these rows: too
    few units are seen, or the histogram is of older data.
    """

    estimates: tuple[str, ...]
    norm: str
    power: str
    of: str
    text: str
    source: NormSource
    share: float | None
    error: float | None


class BoundsSource(StrEnum):
    """Where the value bounds of a column come from. The values are stored and sent."""

    DECLARED = "declared"
    """The dataset declares them."""

    CHOSEN = "chosen"
    """A histogram of the column's values that the same question released and paid for."""

    STORED = "stored"
    """A histogram of the column's values that an earlier question released."""


@dataclass(frozen=True, slots=True)
class BoundsNote:
    """To which bounds the values of a column were clipped, and where they come from.

    The ends are text, as values of the column are written. `certain` is False where the histogram may show noise alone.
    `share` is about which part of the units has values beyond the ends, with its standard error; None where that is not
    known: nobody is seen for certain, or the bounds were chosen by an earlier version.
    """

    table: str
    column: str
    lower: str
    upper: str
    source: BoundsSource
    certain: bool = True
    share: float | None = None
    error: float | None = None
