"""Bounds that are declared, never read from rows."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

__all__ = ["ContributionBound", "ValueBounds"]

BOUND_MAX = 2**20
"""Largest contribution bound. Keeps every product of the bounding SQL below 2^127 (see mechanisms/moments.md)."""


@dataclass(frozen=True, slots=True)
class ValueBounds:
    """Lower and upper to which a value is clipped, both included, in the unit of the column."""

    lower: Fraction
    upper: Fraction

    def __post_init__(self) -> None:
        assert self.lower <= self.upper, "bounds are reversed"


@dataclass(frozen=True, slots=True)
class ContributionBound:
    """How much one privacy unit may take part in one table's statistics.

    `rows_per_unit` applies to every answer, over all its groups together; `groups_per_unit` and
    `rows_per_unit_and_group` apply to answers with groups too. A unit beyond a bound is scaled down, clipped, or loses
    groups; it is never an error. Whether a unit can have more rows is another matter: `Table.one_row`.
    """

    rows_per_unit: int
    groups_per_unit: int
    rows_per_unit_and_group: int

    def __post_init__(self) -> None:
        assert 1 <= self.rows_per_unit <= BOUND_MAX
        assert 1 <= self.groups_per_unit <= BOUND_MAX
        assert 1 <= self.rows_per_unit_and_group <= BOUND_MAX
