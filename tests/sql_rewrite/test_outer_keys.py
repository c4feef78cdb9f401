"""Aggregates that a query of public rows asks for by a column of its own: one release by that key, or a refusal."""

from __future__ import annotations

import pytest

from privacy.refusal import Refused
from sql_rewrite.bound import bound
from sql_rewrite.lift import lift
from sql_rewrite.plan_key import core_key
from tests.sql_rewrite.datasets import CLINIC


def _keys(sql: str) -> list[str]:
    return [core_key(core, CLINIC) for core in bound(lift(sql, CLINIC))]


def test_it_is_the_release_of_its_groups() -> None:
    """Shows that the nested query is the release of the groups that it chooses from, however it is written."""
    groups = "SELECT hospital_id, AVG(cost) FROM visits WHERE cost > 3 GROUP BY hospital_id"
    texts = [
        "SELECT beds, (SELECT AVG(cost) FROM visits AS v WHERE v.hospital_id = h.hospital_id AND cost > 3) "
        "FROM hospitals AS h",
        "SELECT beds FROM hospitals WHERE 7 < (SELECT 2 * AVG(cost) FROM visits AS v WHERE cost > 3 "
        "AND hospitals.hospital_id = v.hospital_id)",
    ]
    for text in texts:
        assert _keys(text) == _keys(groups)


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("(SELECT COUNT(*) FROM visits AS v WHERE v.hospital_id = h.hospital_id) > 3", "correlated_subquery"),
        (
            "(SELECT COALESCE(SUM(cost), 0) FROM visits AS v WHERE v.hospital_id = h.hospital_id) > 3",
            "correlated_subquery",
        ),
        ("(SELECT AVG(cost) FROM visits AS v WHERE v.hospital_id > h.hospital_id) > 3", "unknown_table"),
        ("(SELECT AVG(cost + beds) FROM visits AS v WHERE v.hospital_id = h.hospital_id) > 3", "unknown_table"),
        ("EXISTS (SELECT 1 FROM visits AS v WHERE v.hospital_id = h.hospital_id)", "unknown_table"),
        ("(SELECT AVG(cost) FROM visits AS v WHERE v.person_id = h.beds) > 3", "unknown_table"),
    ],
)
def test_what_is_refused(condition: str, code: str) -> None:
    """Shows that counts, other comparisons, rows and the unit's key are refused."""
    with pytest.raises(Refused) as caught:
        bound(lift(f"SELECT beds FROM hospitals AS h WHERE {condition}", CLINIC))
    assert caught.value.findings[0].code == code


def test_names_of_released_columns_are_no_names() -> None:
    """Shows that a text cannot mean a key or an aggregate by the name that it has inside."""
    nested = "(SELECT AVG(cost) FROM visits WHERE ward = k0)"
    with pytest.raises(Refused):
        lift(f"SELECT ward, COUNT(*) FROM visits GROUP BY ward HAVING COUNT(*) > {nested}", CLINIC)
