"""Bounds that are declared, never read from rows."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from fractions import Fraction

__all__ = [
    "AUTOMATIC_COUNTED",
    "BOUND_MAX",
    "AskedContribution",
    "AutomaticContribution",
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


AUTOMATIC_COUNTED = ContributionBound(rows_per_unit=20, groups_per_unit=4, rows_per_unit_and_group=20)
"""The bounds of a unit where nothing is declared and hidden groups cannot be selected without dropping some of it."""


@dataclass(frozen=True, slots=True)
class AutomaticContribution:
    """How much a unit may take part is chosen by each question, from a histogram that it releases first.

    A unit's whole vector is scaled to a norm. A unit is held to `counted` only where groups are hidden and cannot be
    selected by weights (sql_rewrite/contribution.py).
    """

    counted: ContributionBound = AUTOMATIC_COUNTED


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedContribution:
    """Contribution bounds that a request names for itself, in place of the declared ones; None leaves one as it is.

    Every bound is safe: the sensitivity, and with it the noise, follows from the bound that is used. `automatic` asks
    for none of them: the question chooses.
    """

    rows_per_unit: int | None = None
    groups_per_unit: int | None = None
    rows_per_unit_and_group: int | None = None
    automatic: bool = False

    def __post_init__(self) -> None:
        named = (self.rows_per_unit, self.groups_per_unit, self.rows_per_unit_and_group)
        assert not self.automatic or named == (None, None, None), "bounds are chosen or named"

    def over(self, declared: ContributionBound | AutomaticContribution) -> ContributionBound | AutomaticContribution:
        """The bounds to use. Where fewer rows are asked for, the declared bounds of groups shrink with them.

        Where a question would choose bounds and the request names only some, the others are those for hidden groups.
        """
        counted = declared.counted if isinstance(declared, AutomaticContribution) else declared
        if self.automatic:
            return AutomaticContribution(counted)
        return declared if self == AskedContribution() else self._named(counted)

    def _named(self, declared: ContributionBound) -> ContributionBound:
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
