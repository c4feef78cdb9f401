"""Queries of public tables beside people: their rows are the engine's own, in every order, and constants of a plan."""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Sequence
from dataclasses import replace

import duckdb
import pytest

from privacy.policy import Column, ColumnType, Dataset, Table
from privacy.refusal import Refused
from privacy.values import Cell
from sql_rewrite.bound import bound
from sql_rewrite.evaluate import evaluate
from sql_rewrite.expressions import columns_of
from sql_rewrite.known_queries import KnownQueries
from sql_rewrite.known_rows import KnownTable, Meter
from sql_rewrite.lift import lift
from sql_rewrite.plan_key import core_key
from sql_rewrite.scope import Scope
from sql_rewrite.syntax import parse
from tests.sql_rewrite.datasets import CLINIC

_DAY = datetime.date(2024, 2, 28)
_ROWS: dict[str, list[tuple[Cell, ...]]] = {
    "items": [
        (number, ["a", "b", None, "c"][number % 4], [None, 0.1, 0.2, 0.7, 1e16, -1e16][number % 6],
         _DAY + datetime.timedelta(days=number % 3), [True, False, None][number % 3])
        for number in [*range(1, 12), 4, 4]
    ],
    "places": [("a", 3), ("a", 3), ("b", None), (None, 5)],
    "empty": [],
}  # fmt: skip
"""With NULL, rows that are equal, sums that depend on the order of rounding, and a table without rows."""

_COLUMNS = {
    "items": [("id", "integer"), ("kind", "text"), ("price", "number"), ("day", "date"), ("sold", "boolean")],
    "places": [("kind", "text"), ("size", "integer")],
    "empty": [("id", "integer"), ("price", "number")],
}


class _Public:
    """The rows, in an order."""

    def __init__(self, seed: int = 0) -> None:
        self._held = {name: random.Random(seed).sample(rows, len(rows)) for name, rows in _ROWS.items()}

    def rows(self, table: str, columns: Sequence[str], most: int) -> tuple[tuple[Cell, ...], ...] | None:
        """All of them, where they are no more than that."""
        held = self._held.get(table)
        if held is None or len(held) > most:
            return None
        places = [[name for name, _ in _COLUMNS[table]].index(column) for column in columns]
        return tuple(tuple(row[place] for place in places) for row in held)

    def agreeing(self, table: str, columns: Sequence[str]) -> int | None:
        """Nothing is said of it."""
        return None


def _dataset(public: _Public) -> Dataset:
    tables = tuple(
        Table(name, tuple(Column(own, ColumnType(kind)) for own, kind in columns), protected=False)
        for name, columns in _COLUMNS.items()
    )
    return replace(CLINIC, tables=(*CLINIC.tables, *tables), public=public)


def _known(sql: str, seed: int = 0, meter: Meter | None = None) -> KnownTable:
    tree, text = parse(sql)
    queries = KnownQueries(text, {}, _dataset(_Public(seed)), lambda node, scope: scope)
    if meter is not None:
        queries._meter = meter
    assert queries.knows(tree, Scope({}))
    return queries.table(tree, Scope({}))


@pytest.fixture(scope="module")
def plain() -> duckdb.DuckDBPyConnection:
    """The same tables in DuckDB."""
    connection = duckdb.connect()
    kinds = {"integer": "BIGINT", "text": "VARCHAR", "number": "DOUBLE", "date": "DATE", "boolean": "BOOLEAN"}
    for name, columns in _COLUMNS.items():
        connection.execute(f"CREATE TABLE {name} ({', '.join(f'{own} {kinds[kind]}' for own, kind in columns)})")
        for row in _ROWS[name]:
            connection.execute(f"INSERT INTO {name} VALUES ({', '.join('?' for _ in row)})", list(row))
    return connection


QUERIES = """
SELECT COUNT(*), COUNT(price), COUNT(DISTINCT kind), COUNT_IF(price > 0.1), MIN(day), MAX(kind), SUM(id) FROM items
SELECT COUNT(*), COUNT(price), MAX(id), SUM(id), SUM(price), AVG(price), MEDIAN(id), STDDEV(id) FROM empty
SELECT BOOL_OR(id > 1), BOOL_AND(id > 1), MIN(price) FROM empty
SELECT VAR_POP(id), VAR_SAMP(id), STDDEV(id), STDDEV_POP(id), AVG(id) FROM items
SELECT MEDIAN(id), QUANTILE_CONT(id, 0.3), QUANTILE_DISC(id, 0.3) FROM items
SELECT VAR_SAMP(id), STDDEV_POP(id), SUM(DISTINCT id), AVG(DISTINCT id) FROM items WHERE id = 4
SELECT VAR_SAMP(id) FROM items WHERE id = 5
SELECT BOOL_OR(sold), BOOL_AND(sold), BOOL_OR(sold) FILTER (WHERE id = 3), MIN(sold), MAX(sold) FROM items
SELECT kind, COUNT(*) AS n, MIN(price), MAX(day) FROM items GROUP BY kind
SELECT kind, sold, COUNT(*) FILTER (WHERE id > 3), SUM(id) + 1 FROM items GROUP BY ALL HAVING COUNT(*) > 1
SELECT id > 5 AS late, COUNT(*) FROM items GROUP BY late
SELECT id // 4, MAX(id) - MIN(id) FROM items GROUP BY 1
SELECT DISTINCT kind, sold FROM items
SELECT DISTINCT size FROM places WHERE size > 1 OR kind IS NOT NULL
SELECT id, kind FROM items ORDER BY id DESC LIMIT 3
SELECT id, kind FROM items ORDER BY kind NULLS FIRST, id LIMIT 4 OFFSET 1
SELECT DISTINCT kind FROM items ORDER BY kind DESC LIMIT 2
SELECT kind, COUNT(*) AS n FROM items GROUP BY kind ORDER BY n DESC, kind LIMIT 2
SELECT i.id, p.size FROM items i JOIN places p ON p.kind = i.kind
SELECT i.id, p.size FROM items i LEFT JOIN places p ON p.kind = i.kind AND p.size > 2
SELECT kind, i.id, size FROM items AS i LEFT JOIN places USING (kind)
SELECT i.id, e.price FROM items i LEFT JOIN empty e ON e.id = i.id WHERE e.price IS NULL
SELECT COUNT(*) FROM items, places, (VALUES (1), (2)) AS v(x) WHERE x < id
SELECT kind, SUM(n) FROM places JOIN (SELECT kind, COUNT(*) AS n FROM items GROUP BY kind) USING (kind) GROUP BY ALL
SELECT id FROM items WHERE id > (SELECT AVG(id) FROM items)
SELECT id FROM items WHERE price < (SELECT MIN(price) FROM empty)
SELECT id FROM items WHERE kind IN (SELECT kind FROM places)
SELECT id FROM items WHERE kind NOT IN (SELECT kind FROM places)
SELECT id FROM items WHERE kind NOT IN (SELECT kind FROM places WHERE kind IS NOT NULL)
SELECT id FROM items WHERE id IN (SELECT id FROM empty) OR NOT EXISTS (SELECT 1 FROM empty)
SELECT kind FROM items UNION SELECT kind FROM places
SELECT kind FROM items EXCEPT SELECT kind FROM places WHERE kind = 'a'
SELECT kind, id FROM items INTERSECT SELECT kind, size FROM places
SELECT id FROM items WHERE id < 3 UNION ALL SELECT size + 0.5 FROM places
SELECT CASE WHEN sold THEN 'x' END AS part, COUNT(*) FROM items GROUP BY part
SELECT id, kind, RANK() OVER (PARTITION BY kind ORDER BY day DESC), DENSE_RANK() OVER (ORDER BY kind) FROM items
SELECT id, ROW_NUMBER() OVER (PARTITION BY kind ORDER BY price, id) AS r FROM items WHERE id <> 4 QUALIFY r <= 2
SELECT kind, RANK() OVER (ORDER BY COUNT(*) DESC) AS r, COUNT(*) FROM items GROUP BY kind QUALIFY r < 3
SELECT id + ROW_NUMBER() OVER (ORDER BY id DESC, kind, price) FROM items
SELECT x * 2 AS y FROM UNNEST([1, 2, 2]) AS t(x) GROUP BY x
""".strip().splitlines()


def _place(row: Sequence[object]) -> list[tuple[bool, str]]:
    return [(value is None, f"{value:.6g}" if isinstance(value, float) else str(value)) for value in row]


@pytest.mark.parametrize("sql", QUERIES)
def test_the_rows_are_the_engines_own(plain: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Shows it with NULL, equal rows and a table without rows, and that the order of rows changes nothing."""
    found = _known(sql)
    theirs = plain.execute(sql).fetchall()
    assert len(found.rows) == len(theirs)
    for ours, row in zip(sorted(found.rows, key=_place), sorted(theirs, key=_place), strict=True):
        for value, other in zip(ours, row, strict=True):
            number = isinstance(value, int | float) and isinstance(other, int | float)
            assert value == other or (number and math.isclose(float(str(value)), other)), (ours, row)
    kept = "LIMIT" in sql
    for seed in (1, 2, 3):
        again = _known(sql, seed)
        assert again.kinds == found.kinds
        assert (again.rows == found.rows) if kept else (sorted(map(repr, again.rows)) == sorted(map(repr, found.rows)))


def test_sums_and_means_are_rounded_once() -> None:
    """Shows values that the engine's order of adding would lose, and that groups are listed in one order."""
    sql = "SELECT SUM(price), AVG(price), STDDEV(price) FROM items"
    held = [row[2] for row in _ROWS["items"] if isinstance(row[2], float)]
    assert _known(sql).rows[0][0] == math.fsum(held)
    assert len({_known(sql, seed).rows for seed in range(6)}) == 1
    assert len({_known("SELECT kind, price FROM items GROUP BY ALL", seed).rows for seed in range(6)}) == 1


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("SELECT id FROM items LIMIT 2", "Different rows tie"),
        ("SELECT id, kind FROM items ORDER BY kind LIMIT 2", "Different rows tie"),
        ("SELECT DISTINCT kind FROM items ORDER BY id", "Different rows tie"),
        ("SELECT id, ROW_NUMBER() OVER (ORDER BY kind) FROM items", "Different rows tie"),
        ("SELECT FIRST(id) FROM items", "whatever the order of the rows is"),
        ("SELECT MODE(kind) FROM items", "whatever the order of the rows is"),
        ("SELECT kind, id FROM items GROUP BY kind", "no key of the nested query's GROUP BY"),
        ("SELECT LN(id) FROM items", "the engine's own in the last digits"),
        ("SELECT nothing FROM items", "No relation that the nested query reads"),
        ("SELECT kind FROM items, places", "Several relations"),
        ("SELECT 9223372036854775807 + id FROM items", "beyond 64 bits"),
        ("SELECT SUM(id * 9223372036854775807) FROM items", "beyond 64 bits"),
    ],
)
def test_what_is_not_known_beforehand_is_refused(sql: str, what: str) -> None:
    """Shows what would follow from the order of rows, or from the engine's own arithmetic, and mistakes."""
    with pytest.raises(Refused) as refused:
        _known(sql)
    assert what in refused.value.findings[0].why


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT person_id FROM people",
        "SELECT id FROM items, people",
        "SELECT id FROM items UNION ALL SELECT person_id FROM people",
        "SELECT id, (SELECT MAX(age) FROM people) FROM items",
        "SELECT id FROM items WHERE id > (SELECT COUNT(*) FROM people)",
        "SELECT COUNT(*) FROM items GROUP BY id IN (SELECT person_id FROM people)",
        "SELECT kind FROM items GROUP BY kind HAVING COUNT(*) > (SELECT COUNT(*) FROM people)",
        "SELECT id FROM items ORDER BY (SELECT COUNT(*) FROM people)",
        "SELECT id FROM items JOIN places ON id > (SELECT COUNT(*) FROM people)",
    ],
)
def test_what_reads_people_anywhere_is_not_known(sql: str) -> None:
    """Shows it of each clause that may have a nested query: else rows of people would be read before any charge."""
    assert not _is_known(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, SUM(id) OVER () FROM items",
        "SELECT id FROM items QUALIFY LAG(id) OVER (ORDER BY id) = 1",
        "SELECT DISTINCT ON (kind) kind, id FROM items",
        "SELECT id FROM items NATURAL JOIN places",
        "SELECT id FROM items RIGHT JOIN places USING (kind)",
        "SELECT id FROM items FULL JOIN places USING (kind)",
        "SELECT id FROM items SEMI JOIN places USING (kind)",
        "SELECT id FROM items ANTI JOIN places USING (kind)",
        "SELECT id FROM main.items",
        "SELECT id FROM items TABLESAMPLE 10 PERCENT (bernoulli)",
    ],
)
def test_clauses_that_are_not_read_are_not_known(sql: str) -> None:
    """Shows that nothing is read as if a part of it were not there."""
    assert not _is_known(sql)


def _is_known(sql: str) -> bool:
    tree, text = parse(sql)
    return KnownQueries(text, {}, _dataset(_Public()), lambda node, scope: scope).knows(tree, Scope({}))


def test_the_work_is_bounded() -> None:
    """Shows that an estimate, which is free, computes no more than so many operators."""
    with pytest.raises(Refused) as refused:
        _known("SELECT SUM(id + 1) FROM items", meter=Meter(left=20))
    assert refused.value.findings[0].code == "too_large"
    with pytest.raises(Refused) as refused:
        _known(f"SELECT COUNT(*) FROM {', '.join(f'items AS i{n}' for n in range(6))}")
    assert refused.value.findings[0].code == "too_large"


def _keys(sql: str, seed: int = 0) -> list[str]:
    dataset = _dataset(_Public(seed))
    return [core_key(core, dataset) for core in bound(lift(sql, dataset))]


@pytest.mark.parametrize(
    ("nested", "value"),
    [
        ("(SELECT AVG(id) FROM items WHERE id < 3)", "1.5"),
        ("(SELECT MAX(id) FROM items)", "11"),
        ("(SELECT MAX(size) FROM places WHERE kind = 'nowhere')", "CAST(NULL AS BIGINT)"),
        ("(SELECT size FROM places WHERE kind = 'nowhere')", "CAST(NULL AS BIGINT)"),
        ("(WITH t AS (SELECT kind, COUNT(*) AS n FROM items GROUP BY kind) SELECT MAX(n) FROM t)", "4"),
    ],
)
def test_a_value_is_a_constant_of_the_plan(nested: str, value: str) -> None:
    """Shows the release of the text with the value written in its place, in every order of the public rows."""
    for form in ("COUNT(*) FROM visits WHERE cost > {}", "AVG(CASE WHEN cost < {} THEN 1 ELSE 0 END) FROM visits"):
        keys = _keys("SELECT " + form.format(nested))
        assert keys == _keys("SELECT " + form.format(nested), seed=5) == _keys("SELECT " + form.format(value))


def test_several_rows_are_no_value() -> None:
    """Shows the refusal of what DuckDB would fail on, and of what is no table of few rows."""
    for nested in ("(SELECT id FROM items)", "(SELECT kind, size FROM places WHERE kind = 'b')"):
        with pytest.raises(Refused) as refused:
            _keys(f"SELECT COUNT(*) FROM visits WHERE cost > {nested}")
        assert "where one value is needed" in refused.value.findings[0].why
    with pytest.raises(Refused) as refused:
        _keys("SELECT COUNT(*) FROM visits WHERE cost > (SELECT AVG(beds) FROM hospitals)")
    assert refused.value.findings[0].code == "correlated_subquery"


def test_groups_are_met_by_their_keys() -> None:
    """Shows how many rows of a public GROUP BY a person's row meets: one by its key, all without."""
    grouped = "(SELECT kind, MAX(id) AS id FROM items WHERE kind IS NOT NULL GROUP BY kind) AS t"
    for on, most in (("t.kind = v.ward", 1), ("t.id > v.cost", 3)):
        plan = lift(f"SELECT COUNT(*) FROM visits AS v JOIN {grouped} ON {on}", _dataset(_Public()))
        constants = plan.cores[0].sources[-1].constants
        assert constants is not None
        assert constants.most == most


@pytest.mark.parametrize(
    "nested",
    [
        "(SELECT COUNT(*) FROM items AS i WHERE i.kind = v.ward)",
        "(SELECT COALESCE(SUM(i.id), 7) + 1 FROM items AS i WHERE v.ward = i.kind AND i.id > 3)",
        "(SELECT MAX(size) FROM places AS p WHERE p.kind = v.ward)",
        "(SELECT p.size FROM places AS p WHERE p.kind = v.ward AND p.size IS NULL)",
        "(SELECT MIN(day) FROM items i JOIN places p ON size = id WHERE p.kind = v.ward AND i.kind = LOWER(v.ward))",
    ],
)
def test_a_value_is_looked_up_by_its_key(plain: duckdb.DuckDBPyConnection, nested: str) -> None:
    """Shows the value of public rows that agree with a row, for keys that they have, do not have, and for NULL."""
    plan = lift(f"SELECT {nested} AS part, COUNT(*) FROM visits AS v GROUP BY part", _dataset(_Public()))
    ((_, key),) = plan.cores[0].keys
    for ward in (None, "a", "b", "c", "z"):
        ours = evaluate(key, {(column.relation, column.name): ward for column in columns_of(key)})
        theirs = plain.execute(f"SELECT {nested} FROM (SELECT CAST(? AS VARCHAR) AS ward) AS v", [ward]).fetchall()
        assert theirs == [(ours,)]


def test_several_rows_for_one_key_are_no_value() -> None:
    """Shows the refusal of what DuckDB fails on when a row meets it, and of too many values to compare with."""
    for nested, why in (
        ("(SELECT p.size FROM places AS p WHERE p.kind = v.ward)", "several rows for one row outside"),
        ("(SELECT MAX(x + 1) FROM generate_series(1, 101) AS t(x) WHERE t.x = v.visit_id)", "101 different values"),
    ):
        with pytest.raises(Refused) as refused:
            _keys(f"SELECT COUNT(*) FROM visits AS v WHERE v.cost > {nested}")
        assert why in refused.value.findings[0].why
