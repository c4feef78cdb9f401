"""Lessons of other systems as far as they concern the text of a query, each under its number."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from functools import cache

import duckdb
import pytest

from privacy.refusal import Finding, Refused
from privacy.statistic import StatisticKind
from sql_rewrite.bound import bound
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower
from sql_rewrite.plan_key import core_key
from tests.hostile.corpus import refused
from tests.hostile.duck import Clinic, Reader
from tests.sql_rewrite.datasets import CLINIC

RAISING = (
    "error('x') IS NULL", "chr(age) = 'a'", "factorial(age) > 1", "make_timestamp(age, 1, 1, 1, 1, 1) > born",
    "sleep_ms(age) IS NULL", "strptime(education, '%Y') > born", "repeat('x', age) = 'x'",
    "from_hex(education) IS NULL", "regexp_matches(education, education)", "json_extract(education, '$') IS NULL",
    "TRY(age) = 1",
)  # fmt: skip
"""Conditions that raise, or take their time, on one person's row."""

TOTAL = (
    "CAST(education AS BIGINT) = 1", "CAST(education AS DATE) = born", "age // hours = 1", "age % hours = 1",
    "age / hours > 1", "LN(income) > 1", "SQRT(income) > 1", "person_id * 9223372036854775807 > 1",
    "-person_id - 9223372036854775807 < 1", "EXP(income) > 1", "POWER(income, 400) > 1", "ABS(person_id) > 1",
    "make_date(age, 13, 31) > born", "ASIN(income) > 1", "CAST(income AS DECIMAL(3, 1)) > 1", "age::UTINYINT > 1",
    "CAST(salary * 1e300 AS BIGINT) > 1", "CAST(education AS DOUBLE) > 1", "education::BOOLEAN",
)  # fmt: skip
"""Conditions that raise on one person's row in SQL itself, and give NULL here."""

CLAUSES = (
    "SELECT COUNT(*) FROM people WHERE {0}",
    "SELECT COUNT(*) FILTER (WHERE {0}) FROM people",
    "SELECT COUNT_IF({0}) FROM people",
    "SELECT SUM(CASE WHEN {0} THEN 1 ELSE 0 END) FROM people",
    "SELECT COUNT(CASE WHEN {0} THEN age END) FROM people",
    "SELECT {0} AS k, COUNT(*) FROM people GROUP BY k",
    "SELECT COUNT(*) FROM people WHERE person_id <> 7 OR {0}",
    "SELECT COUNT(*) FROM people WHERE CASE WHEN person_id = 7 THEN {0} ELSE TRUE END",
    "SELECT COUNT(*) FROM people GROUP BY CASE WHEN {0} THEN 1 ELSE 2 END",
)


@pytest.fixture
def clinic() -> Iterator[Clinic]:
    """The clinic's rows in DuckDB."""
    made = Clinic()
    yield made
    made.close()


@cache
def reader() -> Reader:
    """What reads texts before anything is charged."""
    return Reader()


def findings(text: str) -> tuple[Finding, ...]:
    """The findings of a text's refusal."""
    with pytest.raises(Refused) as caught:
        reader().read(text)
    return caught.value.findings


@pytest.mark.sparse(3)
@pytest.mark.parametrize("clause", CLAUSES)
def test_a1_no_clause_lets_a_row_raise(clinic: Clinic, clause: str) -> None:
    """Shows that what can only raise is refused in every clause, and that the rest runs on every row, as NULL."""
    for condition in RAISING:
        assert {f.code for f in findings(clause.format(condition))} == {"unsupported_function"}, condition
    for condition in TOTAL:
        assert clinic.planned(clause.format(condition)), condition


def test_a1_the_rows_of_the_test_do_raise_in_sql(clinic: Clinic) -> None:
    """Shows that the rows are such that SQL itself raises on most of these conditions: the test above can fail."""
    raised = 0
    for condition in TOTAL:
        try:
            clinic.direct(f"SELECT COUNT(*) FROM people WHERE {condition}")
        except duckdb.Error:
            raised += 1
    assert raised >= 8


@pytest.mark.slow
def test_a2_refusals_are_written_here(caplog: pytest.LogCaptureFixture) -> None:
    """Shows that no refusal carries an exception of a library, and that nothing of a text goes to a log."""
    with caplog.at_level(logging.DEBUG):
        for entry in refused():
            with pytest.raises(Refused) as caught:
                reader().read(entry.text)
            assert caught.value.__cause__ is None
            assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert caplog.records == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT sex, COUNT(*) FROM people GROUP BY sex HAVING LIST(age) > 3", "unsupported_function"),
        ("SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY LIST(age)", "unsupported_function"),
        ("SELECT sex, COUNT(*) FROM people GROUP BY sex HAVING SUM(income) > 3", "column_without_bounds"),
        ("SELECT sex, COUNT(*) FROM people GROUP BY sex QUALIFY RANK() OVER (ORDER BY income) = 1", "raw_rows"),
        ("SELECT COUNT(*) FROM people LIMIT 'a'", "unsupported_sql"),
        ("SELECT SUM(income // 2) FROM people", "unsupported_type"),
    ],
)
def test_a4_reasons_known_before_are_refusals(text: str, code: str) -> None:
    """Shows that HAVING, ORDER BY and QUALIFY are read before anything is charged."""
    assert {f.code for f in findings(text)} == {code}


def test_a4_an_aggregate_of_having_is_measured() -> None:
    """Shows that HAVING on an aggregate that is not selected is part of the core, not a surprise at the end."""
    (core,) = bound(lift("SELECT sex FROM people GROUP BY sex HAVING AVG(age) > 30", CLINIC))
    assert [s.statistic.kind for s in core.statistics] == [StatisticKind.MOMENTS]


@pytest.mark.parametrize(
    ("plain", "altered"),
    [
        ("SELECT COUNT(DISTINCT age) FROM people", "SELECT COUNT(DISTINCT age, hours) FROM people"),
        ("SELECT SUM(DISTINCT age) FROM people", "SELECT SUM(DISTINCT age ORDER BY age) FROM people"),
        ("SELECT COUNT(*) FROM people", "SELECT COUNT(*) FROM people TABLESAMPLE 10%"),
        ("SELECT COUNT(*) FROM people", "SELECT COUNT(*) FROM people USING SAMPLE 5"),
        ("SELECT COUNT(*) FROM people", "SELECT COUNT(*) FROM people; SELECT 1"),
        ("SELECT COUNT(*) FROM people", "SELECT COUNT(*) FROM people FOR UPDATE"),
        ("SELECT COUNT(*) FROM people", "SELECT COUNT(*) FROM people AS p(age, person_id)"),
        ("SELECT COUNT(*) FROM people WHERE age > 1", "SELECT COUNT(*) FROM people WHERE age > 1,"),
        ("SELECT COUNT(*) FROM people WHERE MOD(age, 2) = 1", "SELECT COUNT(*) FROM people WHERE MOD(age, 2, 3) = 1"),
        ("SELECT COUNT(*) FROM people WHERE LOG10(age) = 1", "SELECT COUNT(*) FROM people WHERE LOG10(age, 2) = 1"),
        ("SELECT COUNT(*) FROM people", "SELECT COUNT(*) FROM people {# WHERE smoker #}"),
        ("SELECT COUNT(*) FROM people", "SELECT COUNT(*) FROM people*"),
        ("SELECT COUNT(*) FROM people UNION SELECT 1", "SELECT COUNT(*) FROM people UNION BY NAME SELECT 1"),
        ("SELECT COUNT(*) FROM people LIMIT 1", "SELECT COUNT(*) FROM people LIMIT 1 PERCENT"),
        ("SELECT SUM(age) FROM people", "SELECT SUM(age ORDER BY age) FROM people"),
        ("SELECT SUM(age) FROM people", "SELECT SUM(age) IGNORE NULLS FROM people"),
    ],
)
def test_a6_nothing_is_dropped(plain: str, altered: str) -> None:
    """Shows that a text is answered, and the same text with one more word is refused: the word was not ignored."""
    bound(lift(plain, CLINIC))
    assert findings(altered)


def test_a6_filters_are_part_of_the_question() -> None:
    """Shows that FILTER and WHERE change the identity of a release."""
    texts = (
        "SELECT COUNT(*) FROM people",
        "SELECT COUNT(*) FROM people WHERE smoker",
        "SELECT COUNT(*), COUNT(*) FILTER (WHERE smoker) FROM people",
        "SELECT COUNT_IF(NOT smoker) FROM people",
        "SELECT COUNT(hours) FROM people",
        "SELECT COUNT(DISTINCT hours) FROM people",
    )
    assert len({core_key(bound(lift(text, CLINIC))[0], CLINIC) for text in texts}) == len(texts)


def test_a7_the_text_stays_outside() -> None:
    """Shows that names, aliases, comments and constants of the text are not in the SQL that reads rows."""
    text = (
        '/* zqcomment */ SELECT sex AS zqalias, COUNT(*) AS "zq\'; DROP TABLE people" FROM people AS zqtable '
        "WHERE zqtable.education = 'zqvalue' AND education LIKE '%zqpattern%' AND age <> 7171 GROUP BY zqalias -- zqend"
    )
    (core,) = bound(lift(text, CLINIC))
    statement = lower(core)
    assert not re.search("zq|7171", statement.sql)
    assert {"zqvalue", 7171} <= set(statement.parameters)


def test_a7_one_plan_for_two_readings() -> None:
    """Shows that a text which two parsers read differently is refused, and with brackets it is answered."""
    assert {f.code for f in findings("SELECT COUNT(*) FROM people WHERE -age ^ 2 > 1")} == {"unsupported_sql"}
    bound(lift("SELECT COUNT(*) FROM people WHERE POWER(-age, 2) > 1", CLINIC))


def test_b10_the_summed_column_is_clipped_within_its_own_group(clinic: Clinic) -> None:
    """Shows that a value outside its bounds counts as the bound also where the group's key is that value."""
    clinic.connection.execute("UPDATE people SET age = 5000 WHERE person_id = 1")
    rows = clinic.planned("SELECT age, SUM(age) FROM people GROUP BY age")
    assert (5000, 100) in rows
    (core,) = bound(lift("SELECT age, SUM(age) FROM people GROUP BY age", CLINIC))
    total = next(s.statistic for s in core.statistics if s.statistic.kind is StatisticKind.MOMENTS)
    assert total.sensitivity.linf == 100


@pytest.mark.parametrize(
    "table",
    [
        "nothing", "persons", "information_schema.tables", "temp.people", "other.people", "duckdb_tables", "'x.csv'",
        "\"x.parquet\"", "sqlite_master", "pg_catalog.pg_class", "df", "c0", "people2",
    ],
)  # fmt: skip
def test_b13_unknown_is_refused(table: str) -> None:
    """Shows that a relation which the dataset does not declare is refused, whatever it may be to an engine."""
    (finding,) = findings(f"SELECT COUNT(*) FROM {table}")
    assert finding.code == "unknown_table"


def test_b12_names_do_not_overwrite_each_other(clinic: Clinic) -> None:
    """Shows that names of hidden columns are not given away, and that two columns of one name are not one column."""
    assert {f.code for f in findings('SELECT COUNT(*) AS "id$0" FROM people')} == {"unsupported_sql"}
    twice = "(SELECT COUNT(*) AS n, SUM(age) AS N FROM people)"
    assert {f.code for f in findings(f"SELECT * FROM {twice}")} == {"ambiguous_column"}
    assert clinic.planned("SELECT COUNT(*) AS n, SUM(age) AS n FROM people") == [(8, 338)]


def test_f38_all_findings_come_at_once() -> None:
    """Shows that every clause reports its own finding in one refusal, each with a way out or a near name."""
    found = findings(
        "SELECT sexx, LIST(age), SUM(incom), AVG(education), COUNT(DISTINCT age, hours) FROM people "
        "WHERE born < now() GROUP BY agee"
    )
    assert sorted(f.code for f in found) == [
        "unknown_column", "unknown_column", "unknown_column", "unsupported_function", "unsupported_sql",
        "unsupported_type", "volatile_function",
    ]  # fmt: skip
    assert all(f.position is not None for f in found)
    assert 'did you mean "income"?' in {line for f in found for line in f.instead}


def test_f38_all_sums_without_bounds_come_at_once() -> None:
    """Shows that two sums without bounds are two findings, with the rewritten aggregate for each."""
    found = findings("SELECT SUM(income), AVG(income * 2), (SELECT SUM(person_id) FROM people) FROM people")
    assert [f.code for f in found] == ["column_without_bounds"] * 3
    assert "SUM(GREATEST(<lowest>, LEAST(income, <highest>)))" in {line for f in found for line in f.instead}
