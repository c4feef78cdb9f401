"""Sums of squares over the cells of units are those of a group for each cell, whatever the keys and values are."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import duckdb
import pytest

from engines.handlers.connection import private_settings
from privacy.norms import NormPower
from privacy.policy import KeyValue, PublicKeys
from sql_rewrite.bound import bound
from sql_rewrite.bounded import BoundedCore
from sql_rewrite.cost import passes_of
from sql_rewrite.dialects.duckdb import DUCKDB
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower
from sql_rewrite.norm_shapes import Shape, finds_squares, shape_of
from sql_rewrite.relations import SharedRows, SquaredTotal, SquaredTotals
from sql_rewrite.scalars import Named, Whole
from sql_rewrite.squared_places import place_of_null
from tests.sql_rewrite.test_cost_measured import _automatic
from tests.sql_rewrite.test_cost_measured import dataset as messages

TOTALS = (SquaredTotal(Whole(1), "a", one=True, wide=False), SquaredTotal(Named("t"), "b", one=False, wide=True))


@pytest.fixture(scope="module")
def engine() -> duckdb.DuckDBPyConnection:
    """A connection as true data have, which this module's tests share."""
    return duckdb.connect(":memory:", config=private_settings(threads=1, memory_limit_mb=512))


def compare(engine: duckdb.DuckDBPyConnection, keys: tuple[str, ...], *, whole: bool) -> int:
    """Both ways on the table as it is. Returns the number of units."""
    written = DUCKDB.write(SquaredTotals(SharedRows("rows"), keys, TOTALS, whole))
    by = ", ".join(keys)
    expected = engine.execute(
        "SELECT u, CAST(SUM(n * n) AS BIGINT), SUM(x * x) FROM (SELECT u, COUNT(*) AS n, COALESCE(SUM(t), 0) AS x "
        f"FROM rows GROUP BY u, {by}) GROUP BY u ORDER BY u"
    ).fetchall()
    assert expected == sorted(engine.execute(written).fetchall())
    return len(expected)


@pytest.mark.parametrize("keys", [3, 40, 1_000])
def test_squares_are_those_of_cells(engine: duckdb.DuckDBPyConnection, keys: int) -> None:
    """Units of one row and of hundreds, keys below zero and NULL, texts, two keys, values NULL and great."""
    r = random.Random(keys)
    rows = [
        (
            r.randrange(60) if r.random() < 0.7 else 0,
            None if r.random() < 0.1 else r.randrange(-keys, keys),
            r.choice([None, "a", "b", "c"]),
            r.choice([None, 0, 1, r.randrange(2**20), 2**39 + r.randrange(9)]),
        )
        for _ in range(500)
    ]
    listed = ", ".join(f"({', '.join('NULL' if v is None else repr(v) for v in row)})" for row in rows)
    engine.execute(
        "CREATE OR REPLACE TEMP TABLE rows AS SELECT CAST(u AS INTEGER) AS u, CAST(k0 AS BIGINT) AS k0, k1, "
        f"CAST(t AS BIGINT) AS t FROM (VALUES {listed}) AS v(u, k0, k1, t)"
    )
    assert compare(engine, ("k0",), whole=True) > 50
    assert compare(engine, ("k0",), whole=False) > 50
    assert compare(engine, ("k1",), whole=False) > 50
    assert compare(engine, ("k0", "k1"), whole=False) > 50


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_unit_in_every_bucket_raises_nothing(engine: duckdb.DuckDBPyConnection, times: int) -> None:
    """All 64 bits set, once, twice and three times: no number of bits leaves its type."""
    engine.execute(
        "CREATE OR REPLACE TEMP TABLE rows AS SELECT CAST(1 AS INTEGER) AS u, k0 % 64 AS k0, CAST(1 AS BIGINT) AS t "
        f"FROM range({64 * times}) r(k0)"
    )
    assert compare(engine, ("k0",), whole=True) == 1


def counted(engine: duckdb.DuckDBPyConnection, null: int | None) -> tuple[list[tuple[int, ...]], str]:
    """The squares of numbers of rows, and the statement."""
    written = DUCKDB.write(SquaredTotals(SharedRows("rows"), ("k0",), TOTALS[:1], whole=True, null=null))
    return sorted(engine.execute(written).fetchall()), written


@pytest.mark.parametrize("least", [-40, 0, 2**63 - 64])
def test_cells_with_buckets_of_their_own(engine: duckdb.DuckDBPyConnection, least: int) -> None:
    """Units of one row and of hundreds; only those with three rows in a cell are grouped by it."""
    r = random.Random(least)
    domain = [None, *range(least, least + 63)]
    null = place_of_null([(key,) for key in domain])
    assert null == (least + 63) % 64
    rows = [(min(r.randrange(90), r.randrange(90)), r.choice(domain)) for _ in range(500)]
    rows += [(100, key) for key in 2 * domain] + [(101, key) for key in 3 * domain] + [(102, None), (102, least)]
    listed = ", ".join(f"({unit}, {'NULL' if key is None else key})" for unit, key in rows)
    engine.execute(
        "CREATE OR REPLACE TEMP TABLE rows AS SELECT CAST(u AS INTEGER) AS u, CAST(k0 AS BIGINT) AS k0 "
        f"FROM (VALUES {listed}) AS v(u, k0)"
    )
    expected = sorted(
        (unit, sum(n * n for n in Counter(key for one, key in rows if one == unit).values()))
        for unit in {one for one, _ in rows}
    )
    found, written = counted(engine, null)
    assert found == expected == counted(engine, None)[0]
    assert expected[-3:] == [(100, 4 * 64), (101, 9 * 64), (102, 2)]
    for right, wrong in [
        (" 4 *", " 3 *"),
        ("IS NOT TRUE", "IS NULL"),
        ("SUM(", "MAX("),
        (f", {null})", f", {least % 64})"),
    ]:
        assert written != written.replace(right, wrong)
        assert sorted(engine.execute(written.replace(right, wrong)).fetchall()) != expected, right


@pytest.mark.parametrize(
    ("values", "null"),
    [
        (range(50), 50), (range(64), 0), ([None, *range(1, 64)], 0), ([None, *range(64)], None), (range(65), None),
        ([0, 64], None), ([None, 0, 5], 1), ([None, "a"], None), ([True, False], None), ([-1, 62], 0), ([-1, 63], None),
    ],
)  # fmt: skip
def test_which_cells_have_buckets_of_their_own(values: Sequence[KeyValue], null: int | None) -> None:
    """64 whole numbers whose last six bits are different, with NULL among them where there is a place for it."""
    assert place_of_null([(value,) for value in values]) == null
    assert place_of_null([(value, 1) for value in values]) is place_of_null(None) is None


def core_of(sql: str, *, groups: int, power: NormPower, rows: int = 40) -> BoundedCore:
    """The core of a text over messages whose n has so many public keys, and may be NULL, which is one group more."""
    declared = messages(rows_stored=rows, length_max=40)
    keys = PublicKeys(tuple(range(groups)))
    tables = []
    for table in declared.tables:
        made = _automatic(table) if table.name == "messages" else table
        columns = tuple(replace(column, keys=keys) if column.name == "n" else column for column in made.columns)
        tables.append(replace(made, columns=columns))
    (core,) = bound(lift(sql, replace(declared, tables=tuple(tables)), {}), power=power)
    return core


@pytest.mark.parametrize(
    ("sql", "groups", "power", "expected"),
    [
        ("SELECT n, COUNT(*) AS c FROM messages GROUP BY n", 101, NormPower.L2, True),
        ("SELECT n, COUNT(*) AS c, AVG(x) AS a FROM messages GROUP BY n", 31, NormPower.L2, True),
        ("SELECT n, COUNT(*) AS c FROM messages GROUP BY n", 30, NormPower.L2, False),
        ("SELECT n, COUNT(*) AS c FROM messages GROUP BY n", 101, NormPower.L1, False),
        ("SELECT n, COUNT(DISTINCT person_id) AS c FROM messages GROUP BY n", 101, NormPower.L2, False),
        ("SELECT n, SUM(x) AS s FROM messages GROUP BY n", 101, NormPower.L2, True),
        ("SELECT n, SUM(0 - x) AS s FROM messages GROUP BY n", 101, NormPower.L2, False),
    ],
)
def test_what_declarations_decide(sql: str, groups: int, power: NormPower, *, expected: bool) -> None:
    """Many public groups, what adds up over rows and is never negative: else each unit and cell has a group."""
    core = core_of(sql, groups=groups, power=power)
    assert finds_squares(core) is expected
    assert (shape_of(core) is Shape.ROWS) is (expected or power is NormPower.L1)
    # Rows are read for their units, once more for those that share a cell, and for the sums.
    assert passes_of(core) == (3 if expected else 2 if power is NormPower.L1 else 1)


def test_sums_that_a_norm_may_hold_keep_their_cells() -> None:
    """A cell of more rows than steps leave room for is held to 2^40, which no square of its rows would know."""
    sql = "SELECT n, SUM(x) AS s FROM messages GROUP BY n"
    found = [finds_squares(core_of(sql, groups=101, power=NormPower.L2, rows=2**bits)) for bits in (20, 21)]
    assert found == [True, False]


def test_buckets_of_several_keys_follow_from_all_of_them() -> None:
    """The last bits of one whole number are a bucket; of two keys, whatever they are, it is a hash."""
    one, two = (
        lower(
            core_of(f"SELECT {keys}, COUNT(*) AS c FROM messages GROUP BY {keys}", groups=101, power=NormPower.L2)
        ).sql
        for keys in ("n", "n, n % 2")
    )
    assert ('COALESCE("k0" & 63, 0)' in one, "hash(" in one) == (True, False)
    assert ('hash("k0", "k1") & 63' in two, 'COALESCE("k0"' in two) == (True, False)
