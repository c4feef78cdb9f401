"""Aggregates of two values and of higher moments over the whole way: without noise they are those of DuckDB."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from server.services import Services
from tests.journey.clinic import answer_to, attach, open_account, question, services_of, write_files
from tests.mechanisms.support import recorded

PAIRS = (
    "CORR(y, x) AS c, COVAR_POP(x, y) AS p, COVAR_SAMP(y, x) AS s, REGR_SLOPE(y, x) AS b, REGR_INTERCEPT(y, x) AS a, "
    "REGR_R2(y, x) AS r, REGR_COUNT(y, x) AS n, REGR_AVGX(y, x) AS mx, REGR_AVGY(y, x) AS my, REGR_SXX(y, x) AS xx, "
    "REGR_SXY(y, x) AS xy, REGR_SYY(y, x) AS yy"
)


def of(y: str, x: str) -> str:
    """Every aggregate of two expressions."""
    return PAIRS.replace("(y, x)", f"({y}, {x})").replace("(x, y)", f"({x}, {y})")


QUESTIONS = (
    f"SELECT {of('age', 'person_id % 37')} FROM people",
    f"SELECT sex, {of('salary', 'age + person_id % 11')}, COUNT(*) AS every FROM people GROUP BY sex ORDER BY sex",
    f"SELECT {of('NULLIF(age, 40)', 'NULLIF(person_id % 7, 3)')} FROM people",
    f"SELECT {of('cost', 'visit_id % 13')} FROM visits",
    "SELECT CORR(cost, visit_id % 5) FILTER (WHERE visit_id % 2 = 0) AS c, COUNT(*) AS n FROM visits",
    "SELECT SKEWNESS(salary) AS s, KURTOSIS(salary) AS k, KURTOSIS_POP(salary) AS p, AVG(salary) AS a, COUNT(*) AS n, "
    "VAR_POP(salary) AS v FROM people",
    "SELECT SKEWNESS(cost) AS s, COUNT(*) AS n FROM visits",
    "SELECT KURTOSIS(NULLIF(cost, 100)) AS s, COUNT(*) AS n FROM visits",
    "SELECT REGR_SLOPE(age, person_id % 7) AS b, CORR(person_id % 7, age) AS c FROM people WHERE sex = 'male'",
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def services(home: Path) -> Iterator[Services]:
    path = write_files(home / "sources")
    with services_of(home) as started:
        attach(started, path)
        open_account(started.ledger, "anna")
        yield started


@pytest.fixture(scope="module")
def plain(home: Path, services: Services) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        for file in (home / "sources").glob("*.csv"):
            connection.execute(f"CREATE TABLE {file.stem} AS FROM '{file}'")
        yield connection


@pytest.mark.slow
@pytest.mark.sparse(3)
@pytest.mark.parametrize("sql", QUESTIONS)
def test_without_noise_it_is_what_the_engine_says(
    services: Services, plain: duckdb.DuckDBPyConnection, sql: str
) -> None:
    """Each value is within the rounding of values to steps of their ranges, and its interval holds it."""
    with recorded(noiseless=True):
        answer = answer_to(services, question(sql, "anna", epsilon="2"))
    expected = [row for row in plain.execute(sql).fetchall() if row[0] is not None]
    found = [row for row in answer["rows"] if row[0] is not None]
    assert len(found) == len(expected)
    for got, wanted in zip(found, expected, strict=True):
        for value, truth in zip(got, wanted, strict=True):
            if isinstance(truth, str):
                assert value == truth
            else:
                assert value == pytest.approx(truth, rel=2e-3, abs=2e-3)
    assert not any(isinstance(value, float) and math.isnan(value) for row in found for value in row)
    # All aggregates of one pair share one noise.
    shared = [one for one in answer["provenance"]["mechanisms"] if one["columns"]]
    assert len(shared) == 1 + ("FILTER" in sql)  # all rows are others than those under a filter
