"""One person who meets a condition does not decide whether the engine reads, or looks up, the rows of all others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from typing import Any

import duckdb
import pytest

from engines.handlers.connection import private_settings
from privacy.bounds import AutomaticContribution
from privacy.norms import NormPower
from privacy.policy import Dataset
from sql_rewrite import lower_unit_groups
from sql_rewrite.bound import bound
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower
from sql_rewrite.norms import at_norms
from tests.generated_relations import SMALL

PEOPLE = 4_000
"""Each with two visits, and two tests at each; one alone is 99 years old, and her tests have a result of 9."""

FEW = 100
"""More rows than one person's ever are, over all operators of a statement; far fewer than any table has."""

JOINS = [
    "SELECT ward, COUNT(*) FROM visits v JOIN people p ON v.person_id = p.person_id WHERE p.age = {} GROUP BY 1",
    "SELECT COUNT(*) FROM visits v JOIN people p ON v.person_id = p.person_id WHERE p.age = {}",
    "SELECT ward, COUNT(*) FROM visits v LEFT JOIN people p ON v.person_id = p.person_id AND p.age = {} GROUP BY 1",
    "SELECT kind, COUNT(*) FROM tests t JOIN visits v ON t.visit_id = v.visit_id "
    "JOIN people p ON v.person_id = p.person_id WHERE p.age = {} GROUP BY 1",
    "SELECT region, COUNT(*) FROM tests t JOIN visits v ON t.visit_id = v.visit_id "
    "JOIN hospitals h ON v.hospital_id = h.hospital_id JOIN people p ON v.person_id = p.person_id WHERE p.age = {} "
    "GROUP BY 1",
    "SELECT SUM(cost) FROM visits WHERE person_id IN (SELECT person_id FROM people WHERE age = {})",
    "SELECT SUM(cost) FROM visits v "
    "WHERE NOT EXISTS (SELECT 1 FROM people p WHERE p.person_id = v.person_id AND age = {})",
    "SELECT COUNT(*) FROM visits v WHERE EXISTS "
    "(SELECT 1 FROM tests t WHERE t.visit_id = v.visit_id AND t.result = {} - 90)",
    "SELECT SUM(cost) FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.person_id = v.person_id "
    "AND w.ward = v.ward AND w.visit_id < 2 AND w.cost + {} = 104)",
    "SELECT p.sex, COUNT(*) FROM people p JOIN (SELECT person_id, COUNT(*) AS n FROM visits GROUP BY 1 "
    "HAVING MAX(visit_id) + {} < 100) g ON g.person_id = p.person_id GROUP BY 1",
    "SELECT a.ward, COUNT(*) FROM visits a JOIN visits b ON a.person_id = b.person_id "
    "JOIN people p ON a.person_id = p.person_id WHERE p.age = {} GROUP BY 1",
]


@pytest.fixture(scope="module")
def people() -> Iterator[duckdb.DuckDBPyConnection]:
    """The tables as a snapshot stores them, with the private engine's settings."""
    with closing(duckdb.connect(":memory:", config=private_settings(threads=1, memory_limit_mb=256))) as connection:
        connection.execute(
            'CREATE TABLE people AS SELECT CAST(i AS INTEGER) AS "unit$id", i AS person_id, '
            "CASE WHEN i = 0 THEN 99 ELSE i % 90 END AS age, 1 AS score, CAST('f' AS VARCHAR) AS sex, "
            f'CAST(hash(i) AS UBIGINT) AS "unit$draw" FROM range({PEOPLE}) AS t(i)'
        )
        connection.execute(
            'CREATE TABLE visits AS SELECT "unit$id", "unit$draw", 2 * person_id + j AS visit_id, person_id, '
            "1 AS hospital_id, 5 AS cost, 3 AS days, 'a' AS ward FROM people, range(2) AS t(j)"
        )
        connection.execute(
            'CREATE TABLE tests AS SELECT "unit$id", "unit$draw", 2 * visit_id + j AS test_id, visit_id, '
            "CASE WHEN person_id = 0 THEN 9 ELSE 1 END AS result, 'x' AS kind FROM visits, range(2) AS t(j)"
        )
        connection.execute("CREATE TABLE hospitals AS SELECT 1 AS hospital_id, 'n' AS region, 7 AS beds")
        yield connection


def rows_of(connection: duckdb.DuckDBPyConnection, text: str, dataset: Dataset = SMALL) -> int:
    """How many rows the operators of the statements of a text hand on."""
    total = 0
    for core in bound(lift(text, dataset, {}), power=NormPower.L2):
        settled = at_norms(core, {item.norm.name: Fraction(2) for item in core.norms}) if core.norms else core
        statement = lower(settled)
        ((_, found),) = connection.execute(
            f"EXPLAIN (ANALYZE, FORMAT JSON) {statement.sql}", list(statement.parameters)
        ).fetchall()
        total += _handed_on(json.loads(found)["operator"])
    return total


def _handed_on(operators: list[dict[str, Any]]) -> int:
    return sum(one["intermediate_rows"] + _handed_on(one.get("children", [])) for one in operators)


@pytest.mark.parametrize("text", JOINS)
def test_joins_are_made_for_everybody_also_where_nobody_meets_the_condition(
    people: duckdb.DuckDBPyConnection, text: str
) -> None:
    """Shows as many rows on the way where one person is left on the other side as where nobody is."""
    one, none = (rows_of(people, text.format(age)) for age in (99, 98))
    assert abs(one - none) < FEW
    assert none > PEOPLE


def test_squares_look_up_rows_also_where_no_two_share_a_cell(people: duckdb.DuckDBPyConnection) -> None:
    """Shows the same of norms found beside rows: one person alone has two rows in a cell, or nobody has."""
    tables = tuple(
        replace(one, contribution=AutomaticContribution()) if one.name == "visits" else one for one in SMALL.tables
    )
    keys = ", ".join(map(str, range(40)))
    text = (
        "SELECT CASE WHEN person_id = {} THEN 0 ELSE visit_id % 40 END AS k, COUNT(*) FROM visits "
        f"WHERE (CASE WHEN person_id = {{}} THEN 0 ELSE visit_id % 40 END) IN ({keys}) GROUP BY 1"
    )
    dataset = replace(SMALL, tables=tables)
    one, none = (rows_of(people, text.format(person, person), dataset) for person in (7, PEOPLE))
    assert abs(one - none) < FEW
    assert none > 3 * PEOPLE


def test_a_join_with_nothing_is_found(people: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plants joins without a row of nobody: the engine reads thousands of rows less where nobody is on one side."""
    monkeypatch.setattr(lower_unit_groups, "needs_nobody", lambda sources: False)
    one, none = (rows_of(people, JOINS[0].format(age)) for age in (99, 98))
    assert one - none > PEOPLE
