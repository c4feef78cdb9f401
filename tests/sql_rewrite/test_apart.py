"""MODE, HISTOGRAM and APPROX_TOP_K beside other aggregates: what is released, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from privacy.refusal import Finding, Refused
from sql_rewrite.apart import TOP_MAX
from sql_rewrite.apart_calls import BINS_MAX
from sql_rewrite.bound import bound
from sql_rewrite.lift import lift
from sql_rewrite.plan_key import core_key
from tests.battery.worlds import open_world
from tests.plain_clinic import Clinic
from tests.sql_rewrite.datasets import CLINIC


def keys_of(sql: str) -> list[str]:
    """The identities of what a text releases."""
    return sorted(core_key(core, CLINIC) for core in bound(lift(sql, CLINIC)))


def refused(sql: str) -> Finding:
    """The first finding of a text that must be refused."""
    with pytest.raises(Refused) as caught:
        bound(lift(sql, CLINIC))
    return caught.value.findings[0]


@pytest.mark.parametrize(
    ("together", "alone"),
    [
        ("SELECT MODE(sex), COUNT(*) FROM people", ["SELECT MODE(sex) FROM people", "SELECT COUNT(*) FROM people"]),
        (
            "SELECT smoker AS s, MODE(sex), AVG(age) AS a FROM people WHERE age > 30 GROUP BY s HAVING a > 5 "
            "ORDER BY 1",
            [
                "SELECT smoker, MODE(sex) FROM people WHERE age > 30 GROUP BY smoker",
                "SELECT smoker, AVG(age) FROM people WHERE age > 30 GROUP BY smoker",
            ],
        ),
        (
            "SELECT MODE(sex), MODE(sex) FILTER (WHERE smoker) FROM people",
            ["SELECT MODE(sex) FROM people", "SELECT MODE(sex) FILTER (WHERE smoker) FROM people"],
        ),
        ("SELECT HISTOGRAM(sex) FROM people", ["SELECT sex, COUNT(*) FROM people WHERE sex IS NOT NULL GROUP BY sex"]),
        (
            "SELECT sex, HISTOGRAM(ward) FROM visits JOIN people USING (person_id) GROUP BY ALL",
            [
                "SELECT sex, ward, COUNT(*) FROM visits JOIN people USING (person_id) WHERE ward IS NOT NULL "
                "GROUP BY sex, ward"
            ],
        ),
        (
            "SELECT HISTOGRAM(ward), APPROX_TOP_K(ward, 3), MODE(ward) FROM visits",
            ["SELECT ward, COUNT(*) FROM visits WHERE ward IS NOT NULL GROUP BY ward"],
        ),
        (
            "SELECT sex, MODE(smoker), COUNT(*) FROM people GROUP BY ROLLUP (sex)",
            [
                "SELECT sex, MODE(smoker) FROM people GROUP BY sex",
                "SELECT MODE(smoker) FROM people",
                "SELECT sex, COUNT(*) FROM people GROUP BY sex",
            ],
        ),
        (
            "SELECT sex, HISTOGRAM(smoker) FROM people GROUP BY CUBE (sex)",
            ["SELECT sex, smoker, COUNT(*) FROM people WHERE smoker IS NOT NULL GROUP BY sex, smoker"],
        ),
        (
            "SELECT sex, COUNT(*), MEDIAN(age), AVG(age), COUNT(DISTINCT hours) FROM people GROUP BY ROLLUP (sex)",
            [
                "SELECT sex, COUNT(*), AVG(age) FROM people GROUP BY sex",
                "SELECT sex, MEDIAN(age), COUNT(DISTINCT hours) FROM people GROUP BY sex",
                "SELECT MEDIAN(age), COUNT(DISTINCT hours) FROM people",
            ],
        ),
        (
            "SELECT sex, COUNT(*), VARIANCE(age), MEDIAN(age) FROM people GROUP BY ROLLUP (sex)",
            [
                "SELECT sex, COUNT(*), VARIANCE(age), MEDIAN(age) FROM people GROUP BY sex",
                "SELECT COUNT(*), VARIANCE(age), MEDIAN(age) FROM people",
            ],
        ),
        (
            "SELECT education, COUNT(*), MEDIAN(age) FROM people GROUP BY ROLLUP (education)",
            [
                "SELECT education, COUNT(*), MEDIAN(age) FROM people GROUP BY education",
                "SELECT COUNT(*), MEDIAN(age) FROM people",
            ],
        ),
        ("SELECT sex, MODE(sex) FROM people GROUP BY sex", ["SELECT sex, MODE(sex) FROM people GROUP BY sex"]),
    ],
)
def test_each_is_released_as_if_it_were_asked_alone(together: str, alone: list[str]) -> None:
    """Shows the identities: stored releases of the blocks serve the question, and of equal blocks there is one."""
    assert keys_of(together) == sorted({key for sql in alone for key in keys_of(sql)})


def test_names_of_columns_are_those_of_the_text() -> None:
    """Shows the aliases, and that a list is one column for each of its values."""
    plan = lift("SELECT sex AS s, HISTOGRAM(age // 10), APPROX_TOP_K(ward, 2) AS w, COUNT(*) FROM visits JOIN people "
                "USING (person_id) GROUP BY s", CLINIC)  # fmt: skip
    names = [output.name for output in plan.shell.outputs]
    assert names == ["s", "HISTOGRAM(age // 10)", "w_1", "w_2", "count_star()"]


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT HISTOGRAM(age, [30, 20]) FROM people", "unsupported_sql"),
        ("SELECT HISTOGRAM(age, 10) FROM people", "unsupported_sql"),
        ("SELECT HISTOGRAM(age, [smoker]) FROM people", "unsupported_sql"),
        (f"SELECT HISTOGRAM(age, {list(range(BINS_MAX + 1))}) FROM people", "too_large"),
        ("SELECT HISTOGRAM(sex) FROM people GROUP BY GROUPING SETS ((smoker), (smoker))", "unsupported_sql"),
        ("SELECT MODE(smoker), COUNT(*) FROM people GROUP BY GROUPING SETS (())", "unsupported_sql"),
        ("SELECT DISTINCT sex, MODE(smoker) FROM people GROUP BY CUBE (sex)", "unsupported_sql"),
        ("SELECT LENGTH(HISTOGRAM(sex)) FROM people", "unsupported_sql"),
        ("SELECT COUNT(*) FROM people HAVING HISTOGRAM(sex) = '{}'", "unsupported_sql"),
        (f"SELECT APPROX_TOP_K(sex, {TOP_MAX + 1}) FROM people", "unsupported_sql"),
        ("SELECT APPROX_TOP_K(sex, age) FROM people", "unsupported_sql"),
        ("SELECT LENGTH(APPROX_TOP_K(sex, 2)) FROM people", "unsupported_sql"),
        ("SELECT HISTOGRAM(salary) FROM people", "unsupported_type"),
        ("SELECT HISTOGRAM(person_id) FROM people", "unsupported_function"),
        ("SELECT APPROX_TOP_K(person_id, 2), COUNT(*) FROM people", "private_row_limit"),
        ("SELECT HISTOGRAM(visit_id) FROM visits", "unsupported_function"),
        ("SELECT smoker, MODE(sex), COUNT(*), age FROM people GROUP BY smoker", "raw_rows"),
        ("SELECT person_id, HISTOGRAM(ward) FROM visits GROUP BY person_id", "unsupported_function"),
        ("SELECT COUNT(*) FROM people WHERE sex = (SELECT HISTOGRAM(sex) FROM people)", "unsupported_function"),
        ("SELECT HISTOGRAM(sex) OVER () FROM people", "private_row_limit"),
    ],
)
def test_other_forms_are_refused(sql: str, code: str) -> None:
    """Shows that what is not of the forms above is refused with its own code and place."""
    finding = refused(sql)
    assert finding.code == code, finding
    assert finding.position is not None


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """Rows that are plain tables too."""
    with open_world("people", tmp_path_factory.mktemp("people")) as opened:
        yield opened


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("SELECT HISTOGRAM(smoker) FROM people", "SELECT to_json(HISTOGRAM(smoker)) FROM people"),
        (
            "SELECT sex, HISTOGRAM(age // 10) FILTER (WHERE insured), COUNT(*) FROM people GROUP BY sex ORDER BY sex",
            "SELECT sex, to_json(HISTOGRAM(age // 10) FILTER (WHERE insured)), COUNT(*) FROM people GROUP BY sex "
            "ORDER BY sex",
        ),
        (
            "SELECT HISTOGRAM(age, [20, 40, 60]), HISTOGRAM(sex), HISTOGRAM(state_code) FROM people",
            "SELECT to_json(MAP([20, 40, 60, 'other'], [COUNT_IF(age <= 20), COUNT_IF(age > 20 AND age <= 40), "
            "COUNT_IF(age > 40 AND age <= 60), COUNT_IF(age > 60)])), to_json(HISTOGRAM(sex)), "
            "to_json(HISTOGRAM(state_code)) FROM people",
        ),
        (
            "SELECT coast, HISTOGRAM(sex), APPROX_TOP_K(education, 1) FROM people JOIN states USING (state_code) "
            "GROUP BY coast ORDER BY coast",
            "SELECT coast, to_json(HISTOGRAM(sex)), MODE(education) FROM people JOIN states USING (state_code) "
            "GROUP BY coast ORDER BY coast",
        ),
        (
            "SELECT sex AS s, insured, HISTOGRAM(age // 10) AS h, GROUPING(insured, sex) AS g, MODE(smoker), COUNT(*) "
            "FROM people GROUP BY CUBE (s, 2) HAVING COUNT(*) > 1 ORDER BY g, s, insured",
            "SELECT sex AS s, insured, to_json(HISTOGRAM(age // 10)) AS h, GROUPING(insured, sex) AS g, MODE(smoker), "
            "COUNT(*) FROM people GROUP BY CUBE (sex, insured) HAVING COUNT(*) > 1 ORDER BY g, s, insured",
        ),
        (
            "SELECT education, MODE(smoker) FROM people GROUP BY ROLLUP (education) "
            "ORDER BY GROUPING(education), education",
            "SELECT education, MODE(smoker) FROM people GROUP BY ROLLUP (education) "
            "ORDER BY GROUPING(education), education",
        ),
    ],
)
def test_a_histogram_is_the_engines_own_as_json(people: Clinic, ours: str, theirs: str) -> None:
    """Shows the text at an epsilon that leaves no noise: DuckDB's map of the same rows, as JSON."""
    theirs = theirs.replace("[20, 40, 60, 'other']", "['20', '40', '60', 'other']")
    answer, plain = people.answer(ours, {}, gaussian=True), people.directly(theirs, {})
    assert [list(map(_read, row)) for row in answer] == [list(map(_read, row)) for row in plain]


def _read(value: object) -> object:
    """A histogram without its empty cells, which DuckDB leaves out where they are not bins."""
    if not isinstance(value, str) or not value.startswith("{"):
        return value
    return {label: rows for label, rows in json.loads(value).items() if rows}


def test_labels_with_quotes_are_json(people: Clinic) -> None:
    """Shows that a key cannot end its string."""
    key = """CASE WHEN smoker THEN 'a"b' ELSE 'c\\d' END"""
    ((text,),) = people.answer(f"SELECT HISTOGRAM({key}) FROM people", {}, gaussian=True)
    assert set(json.loads(text)) == {'a"b', "c\\d"}


def test_levels_of_a_choice_say_that_they_share_the_price() -> None:
    """Shows the warning once, and none for histograms, whose levels follow from one release."""
    said = [one.code for one in lift("SELECT sex, MODE(smoker) FROM people GROUP BY ROLLUP (sex)", CLINIC).warnings]
    assert said.count("levels_apart") == 1
    plan = lift("SELECT sex, HISTOGRAM(smoker), COUNT(*) FROM people GROUP BY ROLLUP (sex)", CLINIC)
    assert "levels_apart" not in [one.code for one in plan.warnings]
    assert plan.cores[-1].levels
