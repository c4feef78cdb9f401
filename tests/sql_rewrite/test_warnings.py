"""Warnings: what a plan says beside its numbers. From text and declarations alone, with a place in the text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from privacy.bounds import AskedContribution
from privacy.norms import NormPower
from privacy.policy import Column, ColumnType, Other, PublicKeys
from privacy.refusal import Finding
from sql_rewrite.bound import bound
from sql_rewrite.cut_groups import bounds_partly_asked
from sql_rewrite.lift import lift
from sql_rewrite.plan_warnings import plan_warnings
from tests.sql_rewrite.datasets import AUTOMATIC, CLINIC, PEOPLE


def warned(sql: str) -> tuple[Finding, ...]:
    """The warnings of a text."""
    plan = lift(sql, CLINIC)
    return plan_warnings(plan, bound(plan))


@pytest.mark.parametrize(
    ("condition", "place"),
    [
        ("sex = 'mal'", "sex = 'mal'"),
        ("sex IN ('female', 'mal')", "sex IN ('female', 'mal')"),
        ("NOT (sex <> 'mal')", "sex <> 'mal'"),
        ("age = 150", "age = 150"),
        ("age > 150", "age > 150"),
        ("-1 < age", None),
        ("age BETWEEN 20 AND 200", None),
        ("age = 100.5", "age = 100.5"),
        ("salary >= 200001", "salary >= 200001"),
        ("hours = 81", "hours = 81"),
    ],
)
def test_literal_outside_declaration_is_never_silent(condition: str, place: str | None) -> None:
    """Shows that a constant beyond a column's declared keys or bounds is a warning with its place in the text."""
    for sql in (
        f"SELECT COUNT(*) FROM people WHERE {condition}",
        f"SELECT COUNT(*) FILTER (WHERE {condition}) FROM people",
        f"SELECT {condition} AS k, COUNT(*) FROM people GROUP BY k",
        f"WITH c AS (SELECT COUNT(*) AS n FROM people WHERE {condition}) SELECT n + 1 FROM c",
    ):
        found = warned(sql)
        assert [warning.code for warning in found] == ["literal_outside_declaration"] * len(found)
        assert found
        assert all(warning.what and warning.why and warning.instead and warning.position for warning in found)
        if place is not None:
            assert {warning.position.text for warning in found if warning.position} == {place}


@pytest.mark.parametrize(
    "condition",
    [
        "sex = 'male'",
        "sex <> 'female'",
        "sex IS NULL",
        "sex > 'mal'",
        "age = 100",
        "age BETWEEN 0 AND 100",
        "age = 20.0",
        "education = 'none of it'",
        "income = 1e9",
        "hours = 80",
        "LENGTH(sex) = 400",
    ],
)
def test_literals_inside_their_declaration_give_no_warning(condition: str) -> None:
    """Shows that declared values, columns without declarations and other expressions pass without a word."""
    assert warned(f"SELECT COUNT(*) FROM people WHERE {condition}") == ()


def test_a_warning_comes_once() -> None:
    """Shows that a text that says the same twice at one place is warned about once, and at two places twice."""
    once = warned("SELECT sex, COUNT(*) AS n FROM people WHERE age > 150 GROUP BY sex HAVING COUNT(*) > 3")
    assert len(once) == 1
    twice = warned("SELECT COUNT(*) FILTER (WHERE age > 150), SUM(age) FILTER (WHERE age > 150) FROM people")
    assert len(twice) == 2


def test_a_timestamp_as_key_is_warned_about_where_it_stands() -> None:
    """Shows the warning of a key that is a timestamp as it is stored, and none where it is cut to days."""
    entered = Column("entered", ColumnType.TIMESTAMP)
    people = replace(PEOPLE, columns=(*PEOPLE.columns, entered))
    dataset = replace(CLINIC, tables=(people, *CLINIC.tables[1:]))

    def found(key: str) -> list[tuple[str, str | None]]:
        plan = lift(f"SELECT {key}, COUNT(*) FROM people GROUP BY {key}", dataset)
        return [(w.code, w.position and w.position.text) for w in plan_warnings(plan, bound(plan))]

    assert found("entered") == [("groups_nearly_unique", "entered")]
    assert found("date_trunc('day', entered)") == []
    assert found("YEAR(entered)") == []
    assert found("born") == []
    for nested, warned_of in (
        ("SELECT DISTINCT person_id, date_trunc('month', entered) AS m FROM people", False),
        ("SELECT DISTINCT person_id, entered AS m FROM people", True),
        ("SELECT person_id, MAX(entered) AS m FROM people GROUP BY person_id", True),
        ("SELECT date_trunc('day', entered) AS m, ROW_NUMBER() OVER (PARTITION BY person_id) AS k FROM people", False),
    ):
        plan = lift(f"SELECT m, COUNT(*) FROM ({nested}) GROUP BY m", dataset)
        warnings = [w.what for w in plan_warnings(plan, bound(plan))]
        assert warnings == ['grouping by "m" may show no group'] * warned_of


@pytest.mark.parametrize(("power", "codes"), [(NormPower.L1, ["bounds_assumed"]), (NormPower.L2, [])])
def test_bounds_of_nobody_are_warned_about(power: NormPower, codes: list[str]) -> None:
    """Hidden groups without a norm are held to counts that nobody declared; a count was half the truth in silence."""
    plan = lift("SELECT day, COUNT(*) FROM visits GROUP BY day", AUTOMATIC)
    assert [warning.code for warning in plan_warnings(plan, bound(plan, power=power))] == codes


@pytest.mark.parametrize(
    ("condition", "warned_of"),
    [
        ("sex = 'diverse'", True),
        ("sex <> 'diverse'", True),
        ("sex IN ('male', 'diverse')", True),
        ("sex = 'male'", False),
        ("sex = 'unheard of'", False),
        ("sex NOT IN ('female', 'male')", False),
    ],
)
def test_the_name_of_the_gathered_group_is_no_stored_value(condition: str, warned_of: bool) -> None:
    """Shows that a condition on the value of `other`, which only groups have, is never silent."""
    sex = Column("sex", ColumnType.TEXT, keys=PublicKeys(("female", "male"), Other("diverse")))
    people = replace(PEOPLE, columns=tuple(sex if column.name == "sex" else column for column in PEOPLE.columns))
    dataset = replace(CLINIC, tables=(people, *CLINIC.tables[1:]))
    plan = lift(f"SELECT COUNT(*) FROM people WHERE {condition}", dataset)
    found = plan_warnings(plan, bound(plan))
    assert [warning.code for warning in found] == ["literal_outside_declaration"] * warned_of
    assert all("sex NOT IN ('female', 'male')" in warning.instead[0] for warning in found)


@pytest.mark.parametrize(
    ("sql", "asked", "held"),
    [
        ("SELECT hospital_id, COUNT(*) FROM visits GROUP BY hospital_id", {"groups_per_unit": 8}, "20 rows over all"),
        ("SELECT COUNT(*) FROM visits", {"rows_per_unit_and_group": 100}, "20 rows over all"),
        ("SELECT hospital_id, COUNT(*) FROM visits GROUP BY hospital_id", {"rows_per_unit": 400}, "20 rows in each"),
        ("SELECT COUNT(*) FROM visits", {"rows_per_unit": 400}, None),
        ("SELECT hospital_id, COUNT(*) FROM visits GROUP BY hospital_id", {"rows_per_unit": 10}, None),
        (
            "SELECT hospital_id, COUNT(*) FROM visits GROUP BY hospital_id",
            {"rows_per_unit": 400, "rows_per_unit_and_group": 100},
            None,
        ),
        ("SELECT COUNT(*) FROM people", {"groups_per_unit": 8}, None),
        ("SELECT COUNT(*) FROM visits", {"automatic": True}, None),
    ],
)
def test_bounds_that_a_request_leaves_out_are_not_silent(sql: str, asked: dict[str, Any], held: str | None) -> None:
    """Shows that a bound of nobody is said where the request names another one: a count was a third of the truth."""
    contribution = AskedContribution(**asked)
    plan = lift(sql, AUTOMATIC.bounded_by(contribution))
    found = list(bounds_partly_asked(contribution, AUTOMATIC, bound(plan)))
    assert [(finding.code, held in finding.why) for finding in found if held] == [("bounds_assumed", True)] * bool(held)
    assert len(found) == bool(held)
    assert not list(bounds_partly_asked(contribution, CLINIC, bound(plan)))
