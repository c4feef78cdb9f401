"""A small dataset for tests of the lift: people, their visits, public hospitals, and a chain to the unit."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from privacy.bounds import AutomaticContribution, ContributionBound, ValueBounds
from privacy.policy import Column, ColumnType, Dataset, Limits, PublicKeys, Reference, Table
from privacy.unit import PrivacyUnit

T = ColumnType


def bounds(lower: int, upper: int) -> ValueBounds:
    """Value bounds of whole numbers."""
    return ValueBounds(Fraction(lower), Fraction(upper))


PEOPLE = Table(
    "people",
    (
        Column("person_id", T.INTEGER, nullable=False),
        Column("age", T.INTEGER, bounds(0, 100), nullable=False),
        Column("sex", T.TEXT, keys=PublicKeys(("female", "male")), nullable=False),
        Column("income", T.NUMBER),
        Column("salary", T.NUMBER, bounds(0, 200_000)),
        Column("education", T.TEXT),
        Column("hours", T.INTEGER, bounds(0, 80), keys=PublicKeys(tuple(range(81)))),
        Column("born", T.DATE),
        Column("smoker", T.BOOLEAN, nullable=False),
    ),
    protected=True,
    key="person_id",
    unit_column="person_id",
    contribution=ContributionBound(1, 1, 1),
)
VISITS = Table(
    "visits",
    (
        Column("visit_id", T.INTEGER, nullable=False),
        Column("person_id", T.INTEGER, nullable=False),
        Column("hospital_id", T.INTEGER),
        Column("cost", T.NUMBER, bounds(0, 5_000)),
        Column("day", T.DATE),
        Column("ward", T.TEXT),
    ),
    protected=True,
    key="visit_id",
    references=(Reference("person_id", "people", "person_id"), Reference("hospital_id", "hospitals", "hospital_id")),
    unit_column="person_id",
    contribution=ContributionBound(40, 4, 15),
)
TESTS = Table(
    "tests",
    (
        Column("test_id", T.INTEGER, nullable=False),
        Column("visit_id", T.INTEGER, nullable=False),
        Column("result", T.NUMBER, bounds(-10, 10)),
    ),
    protected=True,
    key="test_id",
    references=(Reference("visit_id", "visits", "visit_id"),),
    unit_path=(Reference("visit_id", "visits", "visit_id"),),
    contribution=ContributionBound(20, 2, 10),
)
HOSPITALS = Table(
    "hospitals",
    (
        Column("hospital_id", T.INTEGER, nullable=False),
        Column("region", T.TEXT, keys=PublicKeys(("north", "south", "west")), nullable=False),
        Column("beds", T.INTEGER, bounds(0, 2_000)),
    ),
    protected=False,
    key="hospital_id",
)
CLINIC = Dataset(
    "clinic",
    PrivacyUnit("people", "person_id"),
    (PEOPLE, VISITS, TESTS, HOSPITALS),
    policy_version=1,
    data_version="v1",
    limits=Limits(epsilon_max=Fraction(10)),
)


AUTOMATIC = replace(
    CLINIC,
    tables=tuple(
        replace(table, contribution=AutomaticContribution()) if table.name in ("visits", "tests") else table
        for table in CLINIC.tables
    ),
)
"""The same where each question chooses how much a unit may take part."""


def clinic(**limits: object) -> Dataset:
    """The dataset with other limits."""
    return replace(CLINIC, limits=replace(CLINIC.limits, **limits))  # type: ignore[arg-type]
