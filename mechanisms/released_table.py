"""The noisy table of one core: what is released of it. Free to copy, store and show."""

from __future__ import annotations

from dataclasses import dataclass, field

from mechanisms.families import NoiseFamily
from mechanisms.noisy_sums import NoisySums
from privacy.release import MechanismNote, ReleasedColumn

__all__ = ["ReleasedTable"]


@dataclass(frozen=True, slots=True)
class ReleasedTable:
    """The noisy table of one core: `rows` groups, the same order in every column.

    `sums` are the noisy sums that the released columns were computed from, with the law of their noise
    ; None for a release that was stored without them. `chosen` says that groups were left out
    by their noisy counts after the release. `family` is that of its noise, None where no measurement made the table.
    """

    name: str
    rows: int
    columns: tuple[ReleasedColumn, ...]
    confidence: str
    notes: tuple[MechanismNote, ...] = ()
    sums: tuple[NoisySums, ...] | None = field(default=None, compare=False, repr=False)
    chosen: bool = False
    family: NoiseFamily | None = None
