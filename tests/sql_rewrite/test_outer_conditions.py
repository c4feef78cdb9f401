"""Conditions of a LEFT JOIN on the tables before it: what is known of its rows, its statement, refusals."""

from __future__ import annotations

import pytest

from sql_rewrite.contribution import Contribution
from sql_rewrite.lower import lower
from sql_rewrite.lower_unit_groups import read_columns
from tests.sql_rewrite.test_unit_groups import core, refused

JOINED = "FROM visits AS v LEFT JOIN people AS p ON p.person_id = v.person_id"


def test_a_partner_that_some_rows_meet_is_not_the_same_in_all() -> None:
    """Shows that a unit is in one group of its person's sex, and in that of NULL as well under such a condition."""
    found = [core(f"SELECT p.sex, COUNT(*) {JOINED}{more} GROUP BY p.sex") for more in ("", " AND v.cost > 3")]
    groups = [one.contribution.groups for one in found if isinstance(one.contribution, Contribution)]
    assert groups[0] == 1
    assert groups[1] > 1


@pytest.mark.parametrize("joined", ["people", "(SELECT person_id, age FROM people)"])
@pytest.mark.parametrize("more", ["v.cost > 3", "p.age > 30", "p.age > v.cost"])
def test_the_key_of_the_joined_side_counts_as_values(joined: str, more: str) -> None:
    """Shows that rows without a partner are no rows of its unit: whoever meets none is not counted."""
    asked = f"SELECT COUNT(DISTINCT p.person_id) FROM visits AS v LEFT JOIN {joined} AS p ON p.person_id = v.person_id"
    assert core(asked).statistics[0].distinct is None
    assert core(f"{asked} AND {more}").statistics[0].distinct is not None


def test_the_statement_joins_by_equal_values() -> None:
    """Shows a NULL in place of the key for rows that fail, and a comparison beside the equality of units."""
    alone = lower(core(f"SELECT COUNT(p.age) {JOINED} AND v.cost > 3")).sql
    assert alone.partition(" ON (")[2].lstrip("(").startswith("CASE WHEN")
    both = lower(core(f"SELECT COUNT(p.age) {JOINED} AND p.age > v.cost")).sql
    assert both.partition(" ON (")[2].count(" AND ") == 1


@pytest.mark.parametrize(
    "more",
    ["(v.cost > 3 OR p.age > 3)", "p.age + v.cost > 3", "(v.cost > 3) = (v.cost > p.age)", "p.age + v.cost > v.cost"],
)
def test_what_compares_no_side_with_the_other_is_refused(more: str) -> None:
    """Shows conditions that an engine could only try on every pair of rows."""
    assert refused(f"SELECT COUNT(*) {JOINED} AND {more}").code == "join_not_on_key"


@pytest.mark.parametrize(
    ("before", "more", "after"),
    [
        ("JOIN (VALUES (3), (4)) AS c(x) ON v.cost > c.x ", "c.x > 3", ""),
        ("JOIN (VALUES (3), (4)) AS c(x) ON v.cost > c.x ", "p.age > c.x", ""),
        ("", "v.cost > h.beds", " LEFT JOIN hospitals AS h ON h.hospital_id = v.hospital_id"),
        ("", "p.age > h.beds", " LEFT JOIN hospitals AS h ON h.hospital_id = v.hospital_id"),
    ],
)
def test_a_condition_reads_tables_that_are_joined_by_then(before: str, more: str, after: str) -> None:
    """Shows that rows of constants, which are joined after all tables, and later tables are no earlier side."""
    people = "LEFT JOIN people AS p ON p.person_id = v.person_id"
    found = refused(f"SELECT COUNT(*) FROM visits AS v {before}{people} AND {more}{after}")
    assert found.code == "join_not_on_key"
    assert "LEFT JOIN is refused" in found.what


def test_what_a_comparison_reads_is_there() -> None:
    """Shows that the columns which ON alone compares are read, also that of a nested query."""
    nested = "(SELECT person_id, MAX(cost) AS top FROM visits GROUP BY person_id)"
    only = core(
        f"SELECT COUNT(*) FROM visits AS v LEFT JOIN {nested} AS t ON t.person_id = v.person_id AND t.top > v.cost"
    )
    assert {relation for relation, _ in read_columns(only.core.sources)} == {"r0", "r1"}
