"""GoogleSQL's clause: what it asks for, the plain text that is left, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import pytest

from privacy.refusal import Refused
from sql_rewrite.google_clause import Clause, respelled

CLAUSE = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1) "


def plain(sql: str) -> str:
    """The plain text with single spaces."""
    found = respelled(sql)
    assert found is not None
    return " ".join(found.sql.split())


def clause(sql: str) -> Clause:
    """What a text asks for."""
    found = respelled(sql)
    assert found is not None
    return found.clause


@pytest.mark.parametrize(
    ("expected", "sql"),
    [
        ("SELECT COUNT(*) FROM t", "SELECT WITH DIFFERENTIAL_PRIVACY COUNT(*) FROM t"),
        ("SELECT COUNT(*) FROM t", CLAUSE + "COUNT(*) FROM t"),
        ("SELECT a, COUNT(*) FROM t", "select with anonymization options(kappa=2) a, ANON_COUNT(*) FROM t"),
        (
            "SELECT SUM(GREATEST(0,LEAST(9,x))) FROM t",
            CLAUSE + "SUM(x, contribution_bounds_per_group => (0, 9)) FROM t",
        ),
        (
            "SELECT AVG(GREATEST(-1.5,LEAST(9,x))) FROM t",
            CLAUSE + "AVG(x,contribution_bounds_per_row=>(-1.5,9)) FROM t",
        ),
        ("SELECT SUM(GREATEST(0,LEAST(9,x + y))) FROM t", CLAUSE + "ANON_SUM(x + y CLAMPED BETWEEN 0 AND 9) FROM t"),
        ("SELECT SUM(f(x, 2)) FROM t", CLAUSE + "ANON_SUM(f(x, 2)) FROM t"),
        ("SELECT COUNT(*) FROM t", CLAUSE + "COUNT(*, contribution_bounds_per_group => (0, 3)) FROM t"),
        ("SELECT COUNT(x) FROM t", CLAUSE + "ANON_COUNT(x CLAMPED BETWEEN 0 AND 3) FROM t"),
        ("SELECT n FROM (SELECT COUNT(*) AS n FROM t)", f"SELECT n FROM ({CLAUSE} COUNT(*) AS n FROM t)"),
    ],
)
def test_the_text_that_is_left_is_plain(expected: str, sql: str) -> None:
    """Shows what is lifted and judged in place of each spelling."""
    assert expected.lower() == plain(sql).lower()


def test_options_are_those_of_the_request() -> None:
    """Shows each option as the request would say it, exactly."""
    said = clause(
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.5, delta = 1e-7, max_groups_contributed = 4, "
        "privacy_unit_column = person_id) a, COUNT(*, contribution_bounds_per_group => (0, 3)) FROM t GROUP BY a"
    )
    assert (said.epsilon, said.delta) == (Fraction(1, 2), Fraction(1, 10**7))
    assert (said.groups_per_unit, said.rows_per_unit_and_group, said.unit_column) == (4, 3, "person_id")


@pytest.mark.parametrize(
    "sql",
    [
        CLAUSE + "SUM(x, contribution_bounds_per_group => (0, 9)) AS s, nowhere FROM t",
        "SELECT WITH DIFFERENTIAL_PRIVACY\n  OPTIONS (\n epsilon = 1)\n"
        "  a, ANON_SUM(x\nCLAMPED BETWEEN 0\n AND 9) AS s, nowhere",
        CLAUSE + "SUM(\n x,\n contribution_bounds_per_group => (\n0, 9)) AS s, nowhere FROM t",
        CLAUSE + "AVG(x,contribution_bounds_per_row=>(0,1)) AS s, nowhere FROM t",
    ],
)
def test_what_follows_keeps_its_line_and_column(sql: str) -> None:
    """Shows a later name at the place where the analyst wrote it."""

    def place(text: str) -> tuple[int, int]:
        before = text[: text.index("nowhere")]
        return before.count("\n"), len(before.rpartition("\n")[2])

    found = respelled(sql)
    assert found is not None
    assert place(sql) == place(found.sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (noise_kind = GAUSSIAN) COUNT(*) FROM t",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon) COUNT(*) FROM t",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0) COUNT(*) FROM t",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = -1) COUNT(*) FROM t",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1e9) COUNT(*) FROM t",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, epsilon = 2) COUNT(*) FROM t",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1e-13) COUNT(*) FROM t",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = (SELECT 1)) COUNT(*) FROM t",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (delta = 0.5) COUNT(*) FROM t",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (kappa = 1, max_groups_contributed = 2) COUNT(*) FROM t",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 0) COUNT(*) FROM t",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = NULL) COUNT(*) FROM t",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (privacy_unit_column = a.b) COUNT(*) FROM t",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1 COUNT(*) FROM t",
        f"SELECT n FROM ({CLAUSE} COUNT(*) FROM t), ({CLAUSE} COUNT(*) FROM t)",
        CLAUSE + "ANON_QUANTILES(x, 4) FROM t",
        CLAUSE + "SUM(x, contribution_bounds_per_group => (9, 0)) FROM t",
        CLAUSE + "SUM(x, contribution_bounds_per_group => (0, y)) FROM t",
        CLAUSE + "SUM(x, contribution_bounds_per_group => (0, 1, 2)) FROM t",
        CLAUSE + "SUM(x, contribution_bounds_per_group => 5) FROM t",
        CLAUSE + "SUM(contribution_bounds_per_group => (0, 5), x) FROM t",
        CLAUSE + "SUM(x, y, contribution_bounds_per_group => (0, 5)) FROM t",
        CLAUSE + "UPPER(x, contribution_bounds_per_group => (0, 5)) FROM t",
        CLAUSE + "COUNT(*, contribution_bounds_per_group => (1, 5)) FROM t",
        CLAUSE
        + "COUNT(*, contribution_bounds_per_group => (0, 5)), COUNT(x, contribution_bounds_per_group => (0, 6)) FROM t",
        CLAUSE + "ANON_SUM(x CLAMPED BETWEEN 0) FROM t",
        CLAUSE + "ANON_SUM(x WITH REPORT(FORMAT 'JSON') CLAMPED BETWEEN 0 AND y) FROM t",
    ],
)
def test_what_is_not_known_is_refused(sql: str) -> None:
    """Shows that nothing of the clause is ever ignored, and that each refusal shows what is read."""
    with pytest.raises(Refused) as caught:
        respelled(sql)
    (finding,) = caught.value.findings
    assert finding.code == "unsupported_sql"
    assert any("DIFFERENTIAL_PRIVACY" in way for way in finding.instead)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM t",
        "SELECT 'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1)' AS x",
        'SELECT COUNT(*) AS "anon_count(" FROM t',
        "SELECT COUNT(*) AS anon_n FROM t -- WITH DIFFERENTIAL_PRIVACY",
        "WITH differential_privacy AS (SELECT 1 AS a) SELECT a FROM differential_privacy",
    ],
)
def test_other_texts_stay_as_they_are(sql: str) -> None:
    """Shows that strings, names and comments are no clause."""
    assert respelled(sql) is None


def test_what_differs_in_meaning_is_said() -> None:
    """Shows a warning for clipped rows, for a default that is another one, and for a bound of all aggregates."""
    said = clause(
        "SELECT WITH DIFFERENTIAL_PRIVACY SUM(x, contribution_bounds_per_group => (0, 9)), ANON_COUNT(*) FROM t"
    )
    assert [warning.code for warning in said.warnings] == ["other_meaning"] * 2
    both = (
        CLAUSE.replace(")", ", max_groups_contributed = 1)")
        + "COUNT(*, contribution_bounds_per_group => (0, 9)) FROM t"
    )
    assert ["every aggregate" in warning.what for warning in clause(both).warnings] == [True]
    assert clause(CLAUSE.replace(")", ", max_groups_contributed = 1)") + "COUNT(*) FROM t").warnings == ()


def test_a_call_inside_another_is_refused() -> None:
    """Shows that two changes of one place are no text of their own."""
    with pytest.raises(Refused) as caught:
        respelled("SELECT SUM(COALESCE(ANON_SUM(age), 0), contribution_bounds_per_group => (0, 9)) FROM people")
    assert caught.value.findings[0].code == "unsupported_sql"
    assert "inside another" in caught.value.findings[0].why
