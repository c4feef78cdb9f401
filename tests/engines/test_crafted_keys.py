"""Hidden keys made to fall in front of a group of others: the engine's hash is public, the place of a group is not."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from dataclasses import replace

import duckdb
import pytest

from engines.handlers.connection import private_settings
from engines.handlers.private import run_statement
from privacy.bounds import ContributionBound
from privacy.policy import Column, ColumnType, Dataset, Table
from privacy.statement import Statement
from privacy.unit import PrivacyUnit
from sql_rewrite.bound import bound
from sql_rewrite.dialects.duckdb import SEED
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower

KEYS, OTHERS = 300, 40_000
FIRST = 3
"""A number of a unit whose rows come out of the choice of groups before those of all others."""
POPULAR = (5, 6)
_ODD = 0xD6E8FEB86659FD93
_BITS = 2**64 - 1

DATASET = Dataset(
    name="d",
    unit=PrivacyUnit("people", "person_id"),
    tables=(
        Table(
            "people", (Column("person_id", ColumnType.INTEGER, nullable=False),), protected=True, key="person_id",
            unit_column="person_id", contribution=ContributionBound(1, 1, 1),
        ),
        Table(
            "visits",
            (
                Column("person_id", ColumnType.INTEGER, nullable=False),
                Column("a", ColumnType.INTEGER),
                Column("b", ColumnType.INTEGER),
                Column("memo", ColumnType.TEXT, length_max=20),
            ),
            protected=True, unit_column="person_id", contribution=ContributionBound(KEYS, KEYS, 1),
            rows_stored_per_unit=KEYS,
        ),
    ),
    policy_version=1,
    data_version="v",
)  # fmt: skip
GROUPED = "SELECT a, b, COUNT(*) AS n FROM visits GROUP BY a, b"


def lowered(sql: str) -> Statement:
    (core,) = bound(lift(sql, DATASET, {}))
    return lower(core)


def unsalted(statement: Statement) -> Statement:
    """The planted twin: the same statement, whose groups are found by the keys alone."""
    bare = re.sub(r'\*, hash\(.*\) AS "s"', "*", statement.sql).replace('"s", ', "")
    assert '"s"' not in bare
    return replace(statement, sql=bare)


def hashed(value: int) -> int:
    """The engine's hash of a 64-bit integer; it can be undone."""
    value &= _BITS
    for _ in range(2):
        value = (value ^ value >> 32) * _ODD & _BITS
    return value ^ value >> 32


def unhashed(value: int) -> int:
    back = pow(_ODD, -1, 2**64)
    for _ in range(2):
        value = (value ^ value >> 32) * back & _BITS
    return value ^ value >> 32


def combined(first: int, second: int) -> int:
    """The engine's hash of two columns."""
    return (first ^ first >> 32) * _ODD & _BITS ^ second


def crafted(number: int) -> tuple[int, int]:
    """A pair of integers with the hash of the popular pair."""
    target = combined(*map(hashed, POPULAR))
    second = unhashed(target ^ combined(hashed(number), 0))
    return number, second - 2**64 if second >= 2**63 else second


@pytest.fixture(name="connection")
def _connection() -> Iterator[duckdb.DuckDBPyConnection]:
    config = private_settings(threads=1, memory_limit_mb=1024)
    with contextlib.closing(duckdb.connect(":memory:", config=config)) as connection:
        made = [list(column) for column in zip(*map(crafted, range(100, 100 + KEYS)), strict=True)]
        connection.execute(
            "CREATE TABLE visits AS SELECT CAST(0 AS BIGINT) AS person_id, unnest(CAST(? AS BIGINT[])) AS a, "
            "unnest(CAST(? AS BIGINT[])) AS b, CAST(NULL AS VARCHAR) AS memo, "
            f'CAST({FIRST} AS INTEGER) AS "unit$id", CAST(77 AS UBIGINT) AS "unit$draw"',
            made,
        )
        connection.execute("UPDATE visits SET memo = 'm' || a")
        connection.execute(
            f"INSERT INTO visits SELECT k + 1, {POPULAR[0]}, {POPULAR[1]}, 'm' || k % 3, k + 1 + {FIRST}, hash(k) "
            f"FROM range({OTHERS}) r(k)"
        )
        yield connection


def test_equal_hashes_are_easily_made(connection: duckdb.DuckDBPyConnection) -> None:
    """The attack: three hundred groups that one look at the public hash of the engine cannot tell from the popular one.

    When this fails the engine's hash has changed: read whether it has a secret now.
    """
    found = connection.execute("SELECT count(DISTINCT hash(a, b)), count(DISTINCT (a, b)) FROM visits").fetchone()
    assert found == (1, KEYS + 1)


@pytest.mark.parametrize("keys", ["a, b", "memo, a, b"])
def test_where_a_hidden_group_lies_is_a_secret_of_the_run(connection: duckdb.DuckDBPyConnection, keys: str) -> None:
    """Groups are found by a number that no one knows beforehand, and that differs from group to group and by run."""
    text = lowered(f"SELECT {keys}, COUNT(*) AS n FROM visits GROUP BY {keys}").sql
    salt = re.search(r'SELECT \*, (hash\(.*\)) AS "s" FROM', text)
    assert salt is not None
    assert text.count('GROUP BY "u", "s"') == text.count('GROUP BY "s"') == 1
    named = ", ".join(f'{name} AS "k{place}"' for place, name in enumerate(keys.split(", ")))
    (groups,) = connection.execute(f"SELECT count(DISTINCT ({keys})) FROM visits").fetchone() or (0,)
    seen = []
    for seed in (1, 2**62 - 5):
        connection.execute(f"SET VARIABLE seed = {seed}")
        values = connection.execute(f"SELECT DISTINCT {salt[1]} FROM (SELECT {named} FROM visits)").fetchall()
        assert len(values) == groups
        seen.append({value for (value,) in values})
    assert not seen[0] & seen[1]


def test_the_seed_changes_nothing_of_the_answer(connection: duckdb.DuckDBPyConnection) -> None:
    """It decides where groups lie, and neither which there are nor what they hold."""
    statement = lowered(GROUPED)
    answers = []
    for seed in ("NULL", "7", "8"):
        connection.execute(f"SET VARIABLE seed = {seed}")
        answers.append(sorted(connection.execute(statement.sql, list(statement.parameters)).fetchall()))
    assert answers[0] == answers[1] == answers[2]
    assert len(answers[0]) == KEYS + 1


def test_one_whole_number_is_hidden_by_the_seed(connection: duckdb.DuckDBPyConnection) -> None:
    """Its groups are those without a seed, NULL and numbers of 64 bits among them, and are found by another number."""
    statement = lowered("SELECT NULLIF(b, 6) AS k, COUNT(*) AS n FROM visits GROUP BY k")
    masked = "xor(\"k0\", CAST(COALESCE(getvariable('seed'), 0) AS BIGINT))"
    assert statement.sql.count(masked) == 4
    assert '"s"' not in statement.sql
    plain = connection.execute(
        "SELECT k, COUNT(*) FROM (SELECT DISTINCT person_id, NULLIF(b, 6) AS k FROM visits) GROUP BY k"
    ).fetchall()
    assert (None, OTHERS) in plain
    planted = statement.sql.replace(masked, '"k0"', 1)
    for seed, sql, equal in [("NULL", statement.sql, True), ("8", statement.sql, True), ("8", planted, False)]:
        connection.execute(f"SET VARIABLE seed = {seed}")
        found = connection.execute(sql, list(statement.parameters)).fetchall()
        assert ({(row[0], row[2]) for row in found} == set(plain)) is equal


def test_each_run_draws_a_seed_of_its_own(connection: duckdb.DuckDBPyConnection) -> None:
    """The worker sets it for every statement: who learns one (by timing, say) has learnt nothing of the next."""
    header = {
        "sql": "SELECT CAST(0 AS BIGINT) AS s_high, CAST(getvariable('seed') AS BIGINT) AS s_low",
        "parameters": [], "keys": [], "sums": ["s"],
    }  # fmt: skip
    drawn = set()
    for _ in range(5):
        _, buffers = run_statement(connection, header)
        drawn.add(b"".join(bytes(buffer) for buffer in buffers))
    assert len(drawn) == 5


def test_statements_name_the_seed_only_where_groups_are_hidden() -> None:
    """A statement without hidden groups of several rows of a unit is as it was."""
    assert SEED in lowered(GROUPED).sql
    assert SEED not in lowered("SELECT COUNT(*) AS n FROM visits").sql
    assert SEED not in lowered("SELECT person_id % 7 AS k, COUNT(*) AS n FROM people GROUP BY k").sql


@pytest.mark.nightly
def test_crafted_keys_do_not_slow_the_rows_of_others(connection: duckdb.DuckDBPyConnection) -> None:
    """One person's keys took so long for each row of everybody; the twin without the salt still shows it."""

    def seconds(statement: Statement, *, person: bool) -> float:
        connection.execute("SET VARIABLE seed = 123456789")
        sql = statement.sql if person else statement.sql.replace('"main"."visits"', "(FROM visits WHERE person_id > 0)")
        best = float("inf")
        for _ in range(7):
            start = time.process_time()
            connection.execute(sql, list(statement.parameters)).fetchall()
            best = min(best, time.process_time() - start)
        return best

    def moved(statement: Statement) -> float:
        return seconds(statement, person=True) / seconds(statement, person=False)

    statement = lowered(GROUPED)
    assert moved(statement) < 1.5
    assert moved(unsalted(statement)) > 3
