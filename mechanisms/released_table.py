"""The noisy table of one core: what is released of it. Free to copy, store and show."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from mechanisms.families import NoiseFamily
from mechanisms.noisy_sums import NoisySums
from privacy.release import BoundsNote, MechanismNote, NormNote, ReleasedColumn

__all__ = ["ReleasedTable"]


@dataclass(frozen=True, slots=True)
class ReleasedTable:
    """The noisy table of one core: `rows` groups, the same order in every column.

    `sums` are the noisy sums that the released columns were computed from, with the law of their noise; None for a
    release that was stored without them. `cells` is the number of groups before some were left out by their noisy
    counts after the release, None where none could be. `family` is that of its noise, None where no measurement made
    the table.
    """

    name: str
    rows: int
    columns: tuple[ReleasedColumn, ...]
    confidence: str
    notes: tuple[MechanismNote, ...] = ()
    sums: tuple[NoisySums, ...] | None = field(default=None, compare=False, repr=False)
    cells: int | None = None
    family: NoiseFamily | None = None
    norms: tuple[NormNote, ...] = ()
    """The norms that were chosen for its sums."""
    bounds: tuple[BoundsNote, ...] = ()
    """The value bounds that were chosen for its sums."""
    steps: tuple[tuple[str, Fraction], ...] = ()
    """Of a histogram of norms, what one unit of each norm was worth."""
    scaled_to: tuple[tuple[str, Fraction], ...] = ()
    """The norms that were chosen for its sums, exact; empty where none were, or an earlier version stored it."""
    clipped_to: tuple[tuple[str, str, Fraction, Fraction], ...] = ()
    """The value bounds that were chosen for its sums, by table and column, exact; empty as above."""

    def sums_of(self, column: str) -> NoisySums | None:
        """The noisy sums that a column was computed from; None where none are kept."""
        return next((one for one in self.sums or () if one.estimate(column)), None)

    def ends(
        self, column: str, alpha: float
    ) -> tuple[tuple[float | int | None, ...], tuple[float | int | None, ...]] | None:
        """Lower and upper ends of a column, each interval missing with at most alpha; None where no sums are kept."""
        sums = self.sums_of(column)
        estimate = None if sums is None else sums.estimate(column)
        if sums is None or estimate is None:
            return None
        found = sums.column(estimate, alpha)
        return found.lows, found.highs
