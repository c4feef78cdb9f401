"""Bounds that are declared, never read from rows."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from fractions import Fraction

__all__ = [
    "BOUND_MAX",
    "AskedContribution",
    "ContributionBound",
    "ValueBounds",
    "date_at",
    "number_of_date",
    "number_of_timestamp",
    "timestamp_at",
]

BOUND_MAX = 2**20
"""Largest contribution bound. Keeps every product of the bounding SQL below 2^127 (see mechanisms/moments.md)."""


@dataclass(frozen=True, slots=True)
class ValueBounds:
    """Lower and upper to which a value is clipped, both included, in the unit of the column.

    Dates are days since the first of January of the year 1, timestamps microseconds since then.
    """

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


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedContribution:
    """Contribution bounds that a request names for itself, in place of the declared ones; None leaves one as it is.

    Every bound is safe: the sensitivity, and with it the noise, follows from the bound that is used.
    """

    rows_per_unit: int | None = None
    groups_per_unit: int | None = None
    rows_per_unit_and_group: int | None = None

    def over(self, declared: ContributionBound) -> ContributionBound:
        """The bounds to use. Where fewer rows are asked for, the declared bounds of groups shrink with them."""
        rows = self.rows_per_unit
        most = BOUND_MAX if rows is None else rows
        return ContributionBound(
            declared.rows_per_unit if rows is None else rows,
            min(declared.groups_per_unit, most) if self.groups_per_unit is None else self.groups_per_unit,
            min(declared.rows_per_unit_and_group, most)
            if self.rows_per_unit_and_group is None
            else self.rows_per_unit_and_group,
        )


_FIRST = datetime.datetime(1, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)


def number_of_date(day: datetime.date) -> Fraction:
    """Days since the first of January of the year 1."""
    return Fraction(day.toordinal() - 1)


def date_at(number: Fraction) -> datetime.date:
    """The date of a number of days. Errors: ValueError or OverflowError outside the years 1 to 9999."""
    return datetime.date.fromordinal(int(number) + 1)


def number_of_timestamp(moment: datetime.datetime) -> Fraction:
    """Microseconds since the year 1 began."""
    return Fraction((moment - _FIRST) // _MICROSECOND)


def timestamp_at(number: Fraction) -> datetime.datetime:
    """The timestamp of a number of microseconds. Errors: OverflowError outside the years 1 to 9999."""
    return _FIRST + int(number) * _MICROSECOND
