"""Releases: noisy answers and their description. Free to copy, store and show."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from privacy.noise import NoiseFamily
from privacy.policy import ColumnType

__all__ = ["ColumnKind", "MechanismNote", "ReleasedColumn", "ReleasedTable"]


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
    values: tuple[Any, ...]
    standard_errors: tuple[float | None, ...] = ()
    lows: tuple[float | int | None, ...] = ()
    highs: tuple[float | int | None, ...] = ()
    linear: bool = False


@dataclass(frozen=True, slots=True)
class MechanismNote:
    """What was done to one statistic: shown to the analyst with its share of the price."""

    statistic: str
    mechanism: str
    scale: str
    sensitivity: str
    argument: str
    share: str
    estimates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReleasedTable:
    """The noisy table of one core: `rows` groups, the same order in every column.

    `sums` are the noisy sums that the released columns were computed from, with the law of their noise
    (`mechanisms.noisy_sums`); None for a release that was stored without them. `chosen` says that groups were left out
    by their noisy counts after the release. `family` is that of its noise, None where no measurement made the table.
    """

    name: str
    rows: int
    columns: tuple[ReleasedColumn, ...]
    confidence: str
    notes: tuple[MechanismNote, ...] = ()
    sums: Any = field(default=None, compare=False, repr=False)
    chosen: bool = False
    family: NoiseFamily | None = None
