"""Rows as units: what queries see of it."""

from __future__ import annotations

from fractions import Fraction

import pytest

from privacy.bounds import ContributionBound, ValueBounds
from privacy.policy import Column, ColumnType, Dataset, Table
from privacy.refusal import Refused
from privacy.unit import PrivacyUnit
from sql_rewrite.bound import bound
from sql_rewrite.lift import lift

SURVEY = Table(
    "survey",
    (
        Column("age", ColumnType.INTEGER, bounds=ValueBounds(Fraction(0), Fraction(110))),
        Column("city", ColumnType.TEXT),
    ),
    protected=True,
    contribution=ContributionBound(1, 1, 1),
)
DATASET = Dataset("survey", PrivacyUnit("survey", None), (SURVEY,), 1, "d")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM survey",
        "SELECT city, COUNT(*), AVG(age) FROM survey GROUP BY city",
        "SELECT SUM(age) FROM survey WHERE city = 'x'",
    ],
)
def test_each_row_counts_once(sql: str) -> None:
    """Every statistic of a table of units has the sensitivity of one row."""
    (core,) = bound(lift(sql, DATASET))
    assert core.contribution.one_row
    assert not core.contribution.choose_groups
    for item in core.statistics:
        assert item.statistic.sensitivity.l0 <= item.statistic.coordinates


@pytest.mark.parametrize("name", ['"unit$row"', '"unit$id"', '"unit$draw"', "rowid", "row_number"])
@pytest.mark.parametrize("sql", ["SELECT COUNT(*) FROM survey WHERE {} < 5", "SELECT COUNT(DISTINCT {}) FROM survey"])
def test_no_number_of_a_row_can_be_asked_about(sql: str, name: str) -> None:
    """Whatever would move with a row that is left out is no column of the dataset."""
    with pytest.raises(Refused) as caught:
        lift(sql.format(name), DATASET)
    assert {finding.code for finding in caught.value.findings} <= {"unknown_column", "unsupported_sql"}


def test_different_values_are_counted_with_one_row_each() -> None:
    """Each row is a unit, so it brings in one value, without any choice."""
    (core,) = bound(lift("SELECT COUNT(DISTINCT city) FROM survey", DATASET))
    (statistic,) = core.described.statistics
    assert statistic.distinct
    assert statistic.sensitivity.l1 == statistic.sensitivity.l2_squared == 1
