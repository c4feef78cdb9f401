"""FULL JOIN on the unit: what is known of its rows, its keys, refusals."""

from __future__ import annotations

import pytest

from sql_rewrite.contribution import Contribution
from sql_rewrite.unit_facts import rows_of_unit
from tests.sql_rewrite.test_unit_groups import core, refused

GROUPED = "(SELECT person_id, COUNT(*) AS n FROM visits WHERE cost > 100 GROUP BY person_id)"


def test_one_row_on_either_side_is_one_row() -> None:
    """Shows that a unit has rows in one branch alone: one where both sides have one, and else as in the larger."""
    found = core(f"SELECT AVG(COALESCE(a.n, 0)) FROM {GROUPED} AS a FULL JOIN people AS p ON a.person_id = p.person_id")
    assert isinstance(found.contribution, Contribution)
    assert found.contribution.one_row
    several = core("SELECT COUNT(*) FROM people AS p FULL JOIN visits AS v ON p.person_id = v.person_id")
    assert rows_of_unit(several.core.sources) == 1_000
    assert several.contribution == core("SELECT COUNT(*) FROM visits").contribution


@pytest.mark.parametrize(
    "unit",
    [
        "COALESCE(v.person_id, p.person_id)",
        "COALESCE(p.person_id, v.person_id)",
        "COALESCE(v.person_id, p.person_id, 0)",
    ],
)
def test_either_key_is_the_unit(unit: str) -> None:
    """Shows that COALESCE of both keys counts units and groups by them, and one of them alone does not."""
    joined = "FROM visits AS v FULL JOIN people AS p ON v.person_id = p.person_id"
    assert core(f"SELECT COUNT(DISTINCT {unit}) {joined}").statistics[0].distinct is None
    assert core(f"SELECT COUNT(DISTINCT v.person_id) {joined}").statistics[0].distinct is not None
    grouped = core(f"SELECT AVG(n) FROM (SELECT {unit} AS u, COUNT(v.cost) AS n {joined} GROUP BY u) AS t")
    assert grouped.core.sources[0].table.one_row


def test_the_name_in_using_is_the_unit() -> None:
    """Shows that a name which USING joins is the key of either side."""
    assert (
        core("SELECT COUNT(DISTINCT person_id) FROM visits FULL JOIN people USING (person_id)").statistics[0].distinct
        is None
    )


@pytest.mark.parametrize("more", ["v.cost > 5", "v.cost > p.age", "(v.cost > 5 OR p.age > 6)", "v.cost + p.age > 5"])
def test_further_conditions_leave_rows_on_both_sides(more: str) -> None:
    """Shows that a unit then has rows that meet and rows that do not: the bounds of both branches add up."""
    found = core(f"SELECT COUNT(*) FROM visits v FULL JOIN people p ON v.person_id = p.person_id AND {more}")
    assert rows_of_unit(found.core.sources) in (1_001, 2_001)  # the second where even the LEFT JOIN is a union
    assert isinstance(found.contribution, Contribution)
    assert found.contribution.total in (41, 81)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (
            "SELECT COUNT(*) FROM visits v FULL JOIN people p ON v.person_id = p.person_id AND v.cost > ALL (SELECT 1)",
            "join_not_on_key",
        ),
        ("SELECT COUNT(*) FROM visits v FULL JOIN people p ON v.person_id < p.person_id", "join_not_on_key"),
        ("SELECT COUNT(*) FROM visits v FULL JOIN people p ON v.hospital_id = p.age", "join_not_on_key"),
        ("SELECT COUNT(*) FROM visits v FULL JOIN hospitals h USING (hospital_id)", "unsupported_sql"),
        ("SELECT COUNT(person_id) FROM visits v FULL JOIN people p ON v.person_id = p.person_id", "ambiguous_column"),
        (
            "SELECT AVG(x) FROM (SELECT *, 1 AS x FROM visits v FULL JOIN people p USING (person_id)) AS t",
            "unsupported_sql",
        ),
        (
            "SELECT COUNT(*) FROM visits v FULL JOIN people p USING (person_id) JOIN hospitals h USING (hospital_id)",
            "unsupported_sql",
        ),
    ],
)
def test_other_full_joins_are_refused(text: str, code: str) -> None:
    """Shows further conditions, other keys, other tables and stars."""
    assert refused(text).code == code
