"""PIVOT and UNPIVOT of rows: which groups and columns they are, and what is refused."""

from __future__ import annotations

import pytest

from privacy.refusal import Refused
from sql_rewrite.bound import bound
from sql_rewrite.lift import lift
from sql_rewrite.plan_key import core_key
from sql_rewrite.unit_facts import rows_of_unit
from tests.sql_rewrite.datasets import CLINIC


def names(text: str) -> list[str]:
    """The columns of an answer."""
    return [output.name for output in lift(text, CLINIC).shell.outputs]


def keys(text: str) -> list[str]:
    """The identities of what a text releases."""
    return [core_key(one, CLINIC) for one in bound(lift(text, CLINIC))]


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("PIVOT people ON sex IN ('female', 'male') USING COUNT(*) GROUP BY smoker", ["smoker", "female", "male"]),
        ("PIVOT people ON sex IN ('male') GROUP BY smoker", ["smoker", "male"]),
        ("PIVOT people ON smoker IN (false, true) USING AVG(age) AS a GROUP BY sex", ["sex", "false_a", "true_a"]),
        (
            "PIVOT people ON sex IN ('male'), smoker IN (false, true) USING COUNT(*), SUM(age) GROUP BY hours",
            ["hours", "male_false_count_star()", "male_false_sum(age)", "male_true_count_star()", "male_true_sum(age)"],
        ),
        ("SELECT * FROM people PIVOT (COUNT(*) AS n FOR sex IN ('male' AS m) GROUP BY smoker)", ["smoker", "m_n"]),
        ("PIVOT (SELECT sex, smoker FROM people) ON sex IN ('male') USING COUNT(*)", ["smoker", "male"]),
    ],
)
def test_columns_are_called_as_duckdb_calls_them(text: str, columns: list[str]) -> None:
    """Shows listed and declared values, several of them, aggregates with and without names."""
    assert names(text) == columns


def test_a_pivot_is_the_release_of_its_groups() -> None:
    """Shows that it is stored for and served by the same groups, one below the other."""
    assert keys("PIVOT people ON sex IN ('female', 'male') USING COUNT(*), AVG(age) GROUP BY smoker") == keys(
        "SELECT smoker, sex, COUNT(*), AVG(age) FROM people WHERE sex IN ('female', 'male') GROUP BY smoker, sex"
    )


def test_an_unpivot_has_a_row_for_each_column() -> None:
    """Shows that a unit has as many rows more, and that names of columns are public keys."""
    (core,) = bound(lift("SELECT k, AVG(v) FROM people UNPIVOT (v FOR k IN (age, hours)) GROUP BY k", CLINIC))
    assert rows_of_unit(core.core.sources) == 2
    assert core.described.keys.domain == (("age",), ("hours",))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("PIVOT people ON education USING COUNT(*) GROUP BY sex", "unsupported_sql"),
        ("PIVOT people ON sex IN ('male') USING COUNT(*)", "group_by_unit"),
        ("PIVOT people ON sex IN ('male') USING COUNT(*) GROUP BY person_id", "group_by_unit"),
        ("PIVOT people ON sex IN (SELECT sex FROM people) USING COUNT(*) GROUP BY smoker", "parse_error"),
        ("PIVOT people ON sex IN ('male') USING age GROUP BY smoker", "unsupported_sql"),
        ("PIVOT people ON sex IN ('male') USING LIST(age) GROUP BY smoker", "unsupported_function"),
        (
            f"PIVOT people ON hours IN ({', '.join(map(str, range(99)))}) USING COUNT(*), SUM(age), AVG(age) "
            "GROUP BY sex",
            "unsupported_sql",
        ),
        ("PIVOT nobody ON sex IN ('a') USING COUNT(*) GROUP BY smoker", "unknown_table"),
        ("UNPIVOT people ON age, hours", "raw_rows"),
        ("SELECT COUNT(*) FROM (UNPIVOT people ON age, nothing)", "unsupported_sql"),
        ("SELECT COUNT(*) FROM (UNPIVOT people ON age, hours INTO NAME sex VALUE v)", "unsupported_sql"),
        ("SELECT COUNT(*) FROM people UNPIVOT (v FOR k IN (age)) UNPIVOT (w FOR l IN (hours))", "unsupported_sql"),
    ],
)
def test_others_are_refused(text: str, code: str) -> None:
    """Shows values that depend on rows, groups of one person, what is no aggregate, and names that are taken."""
    with pytest.raises(Refused) as refused:
        lift(text, CLINIC)
    assert refused.value.findings[0].code == code


@pytest.mark.parametrize(
    ("relation", "column", "listed"),
    [
        ("people", "sex", "'female', 'male'"),
        ("people", "smoker", "false, true"),
        (
            "(SELECT p.sex AS s, v.ward FROM visits v JOIN people p ON v.person_id = p.person_id)",
            "s",
            "'female', 'male'",
        ),
        ("(SELECT smoker, sex, COUNT(*) AS n FROM people GROUP BY ALL)", "sex", "'female', 'male'"),
    ],
)
def test_declared_values_need_no_list(relation: str, column: str, listed: str) -> None:
    """Shows that the columns are those of all declared values, in their order."""
    using = (
        "SUM(n) GROUP BY smoker" if "COUNT" in relation else "COUNT(*) GROUP BY ward" if "ward" in relation else None
    )
    using = using or "COUNT(*) GROUP BY hours"
    short, whole = (f"PIVOT {relation} ON {column}{values} USING {using}" for values in ("", f" IN ({listed})"))
    assert names(short) == names(whole)
    assert keys(short) == keys(whole)


@pytest.mark.parametrize(
    "text",
    [
        "PIVOT people ON education USING COUNT(*) GROUP BY sex",
        "PIVOT hospitals ON beds USING COUNT(*) GROUP BY region",
        "PIVOT (SELECT UPPER(sex) AS sex, smoker FROM people) ON sex USING COUNT(*) GROUP BY smoker",
        "PIVOT (SELECT p.sex, v.ward FROM visits v LEFT JOIN people p ON v.person_id = p.person_id) ON sex "
        "USING COUNT(*) GROUP BY ward",
    ],
)
def test_values_that_may_be_others_need_a_list(text: str) -> None:
    """Shows the refusal where values depend on rows, are computed, or may be NULL."""
    with pytest.raises(Refused) as refused:
        lift(text, CLINIC)
    assert "without a list" in refused.value.findings[0].what


def test_declared_values_are_written_out_in_the_advice() -> None:
    """Shows that what is suggested instead of a pivot of a column that may be NULL is answered."""
    with pytest.raises(Refused) as refused:
        lift("PIVOT people ON hours USING COUNT(*) GROUP BY sex", CLINIC)
    on = refused.value.findings[0].instead[0].removeprefix("write the values: ")
    assert len(names(f"PIVOT people {on} USING COUNT(*) GROUP BY sex")) == 82
