"""The shell engine: released tables in, plain values out, nothing that lasts."""

from __future__ import annotations

import datetime
import decimal
import os
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import pytest

from engines.handlers.results import _as_values, _span
from engines.handlers.shell import _RESULT_KINDS, ShellHandler
from engines.shell import ShellColumn, ShellEngine, ShellInvalid, ShellResult, ShellSlow, ShellTable
from privacy.policy import ColumnType
from privacy.refusal import ExecutionFailed, Refused
from server.answer_rows import check_types
from sql_rewrite.plan import Shell, ShellOutput
from tests.engines.logs import capture_logs
from tests.engines.workers import BOMBS, CANARY, ENDED, assert_says_nothing

ONE_COLUMN = Shell("", (ShellOutput("v", "derived"),), identities=0, trivial=False, simulation=None)
RELEASE = ShellTable(
    "release",
    (
        ShellColumn("city", ColumnType.TEXT, ("b", "a", None)),
        ShellColumn("n", ColumnType.INTEGER, (10, -3, None)),
        ShellColumn("mean", ColumnType.NUMBER, (1.5, None, -0.25)),
        ShellColumn("open", ColumnType.BOOLEAN, (True, False, None)),
        ShellColumn("day", ColumnType.DATE, (datetime.date.min, datetime.date.max, None)),
        ShellColumn("at", ColumnType.TIMESTAMP, (datetime.datetime.min, datetime.datetime.max, None)),
    ),
)


@pytest.fixture(scope="module")
def shell() -> Iterator[ShellEngine]:
    shell = ShellEngine(workers=2)
    assert shell.wait_ready()
    yield shell
    shell.close()


def run(
    shell: ShellEngine, sql: str, parameters: tuple[Any, ...] = (), *tables: ShellTable, seconds: float = 10
) -> ShellResult:
    return shell.run(tables or (RELEASE,), sql, parameters, timeout_seconds=seconds)


def fails(shell: ShellEngine, sql: str, *tables: ShellTable, seconds: float = 10) -> ExecutionFailed:
    with pytest.raises(ExecutionFailed) as caught:
        run(shell, sql, (), *tables, seconds=seconds)
    return caught.value


def test_released_tables_come_back_as_they_are(shell: ShellEngine) -> None:
    """Every language type, NULL and the edges of the calendar survive the way in and out."""
    result = run(shell, "SELECT * FROM release")
    assert result.columns == (
        ("city", "VARCHAR"),
        ("n", "BIGINT"),
        ("mean", "DOUBLE"),
        ("open", "BOOLEAN"),
        ("day", "DATE"),
        ("at", "TIMESTAMP"),
    )
    assert result.rows == list(zip(*(column.values for column in RELEASE.columns), strict=True))
    assert [type(value) for value in result.rows[0]] == [str, int, float, bool, datetime.date, datetime.datetime]


def test_integers_wider_than_the_machine(shell: ShellEngine) -> None:
    """A column with one value beyond 64 bits is HUGEINT, without loss; sums are HUGEINT as well."""
    values = (2**126, -(2**63) - 1, None, 5)
    table = ShellTable("wide", (ShellColumn("v", ColumnType.INTEGER, values),))
    result = run(shell, "SELECT v, sum(v) OVER () AS s FROM wide", (), table)
    assert result.columns == (("v", "HUGEINT"), ("s", "HUGEINT"))
    assert result.rows == [(value, 2**126 - 2**63 + 4) for value in values]


@pytest.mark.parametrize(
    ("sql", "type_name", "value"),
    [
        ("1.25::DECIMAL(10, 2)", "DECIMAL(10,2)", decimal.Decimal("1.25")),
        ("(-170141183460469231731687303715884105727)::HUGEINT", "HUGEINT", 1 - 2**127),
        ("18446744073709551615::UBIGINT", "UBIGINT", 2**64 - 1),
        ("0.1::FLOAT", "FLOAT", 0.10000000149011612),
        ("'inf'::DOUBLE", "DOUBLE", float("inf")),
        ("NULL", None, None),
    ],
)
def test_results_are_python_values(shell: ShellEngine, sql: str, type_name: str | None, value: object) -> None:
    """Result types keep their exact value, and `check` names the type that `run` gives."""
    text = f"SELECT {sql} AS v FROM release LIMIT 1"
    result = run(shell, text)
    assert result.rows == [(value,)]
    assert type(result.rows[0][0]) is type(value)
    if type_name is not None:
        assert result.columns == (("v", type_name),)
        assert shell.check((RELEASE,), text) == result.columns


@pytest.mark.parametrize(
    ("sql", "type_name"),
    [
        ("'a'::BLOB", "BLOB"),
        ("now()", "TIMESTAMP WITH TIME ZONE"),
        ("{'a': 1}", "STRUCT(a INTEGER)"),
        ("MAP {'a': 1}", "MAP(VARCHAR, INTEGER)"),
        ("[{'a': 1}]", "STRUCT(a INTEGER)[]"),
        ("'1'::BIT", "BIT"),
        ("TIME '01:02:03.5'", "TIME"),
        ("TIMESTAMP_S '2020-01-01 00:00:01'", "TIMESTAMP_S"),
        ("'b'::ENUM('a', 'b')", "ENUM('a', 'b')"),
        ("[1, NULL, 3]", "INTEGER[]"),
        ("[1.5::DECIMAL(3,1)]", "DECIMAL(3,1)[]"),
        ("UUID '00000000-0000-0000-0000-000000000007'", "UUID"),
    ],
)
def test_results_that_answers_do_not_have(shell: ShellEngine, sql: str, type_name: str) -> None:
    """Types that no answer carries are told by `check`, so that they are refused before anything is charged."""
    assert shell.check((RELEASE,), f"SELECT {sql} AS v") == (("v", type_name),)
    with pytest.raises(Refused, match="is refused") as refused:
        check_types((("v", type_name),), ONE_COLUMN)
    assert [finding.code for finding in refused.value.findings] == ["unsupported_type"]
    assert fails(shell, f"SELECT {sql} AS v").started


def test_the_shell_is_sql(shell: ShellEngine) -> None:
    """Joins, windows, parameters, equal column names and quoted names work on several tables."""
    odd = ShellTable(
        'o"dd', (ShellColumn('co"l', ColumnType.TEXT, ("a", "b")), ShellColumn("n", ColumnType.INTEGER, (1, 2)))
    )
    result = run(
        shell,
        'SELECT r.n, o.n, rank() OVER (ORDER BY o.n DESC) AS place FROM release r JOIN "o""dd" o ON r.city = o."co""l" '
        "WHERE r.n > $1 OR r.city = $2 ORDER BY o.n",
        (0, "a"),
        RELEASE,
        odd,
    )
    assert [name for name, _ in result.columns] == ["n", "n", "place"]
    assert result.rows == [(-3, 1, 2), (10, 2, 1)]


def test_empty_tables_and_results(shell: ShellEngine) -> None:
    """A release without groups is a table without rows; its types are the same."""
    empty = ShellTable("release", tuple(ShellColumn(column.name, column.type) for column in RELEASE.columns))
    result = run(shell, "SELECT * FROM release", (), empty)
    assert result.columns == run(shell, "SELECT * FROM release").columns
    assert result.rows == []
    assert run(shell, "SELECT count(*), sum(n) FROM release", (), empty).rows == [(0, None)]


def test_large_releases(shell: ShellEngine) -> None:
    """100,000 groups pass in order, and well within a run's time."""
    count = 100_000
    table = ShellTable(
        "big",
        (
            ShellColumn("k", ColumnType.TEXT, [f"k{i}" for i in range(count)]),
            ShellColumn("n", ColumnType.INTEGER, list(range(count))),
            ShellColumn("x", ColumnType.NUMBER, [i / 2 for i in range(count)]),
        ),
    )
    rows = run(shell, "SELECT k, n, x FROM big ORDER BY n DESC", (), table).rows
    assert len(rows) == count
    assert rows[0] == (f"k{count - 1}", count - 1, (count - 1) / 2)


def test_check_binds_on_empty_tables(shell: ShellEngine) -> None:
    """Names and types come from tables without values."""
    described = shell.check(
        (RELEASE,), "SELECT city, n / 2 AS h, n * 2 AS d, $1 AS p FROM release WHERE n > $1", (7,), timeout_seconds=60
    )
    assert described[:3] == (("city", "VARCHAR"), ("h", "DOUBLE"), ("d", "BIGINT"))
    assert [name for name, _ in described] == ["city", "h", "d", "p"]


def sample(city: str | None, n: str | None) -> tuple[tuple[str | None, ...], ...]:
    """A row of RELEASE, whose other columns are NULL."""
    given = {"city": city, "n": n}
    return (tuple(given.get(column.name) for column in RELEASE.columns),)


SAMPLES = (sample(None, None), sample("Ghent", "7"), sample("10", "1000000"))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT city FROM release WHERE n > 'a'",
        "SELECT city, sum(n) FROM release GROUP BY city HAVING sum(n) > 'b'",
        "SELECT n + 'x' FROM release",
        "SELECT n IN (1, 'a') FROM release",
        "SELECT n FROM release WHERE n > 5 AND n < 'x'",
        "SELECT CASE WHEN n > 10 THEN 'x' ELSE n END AS v FROM release",
        "SELECT n FROM release WHERE city = 5",
        "SELECT CAST(n AS DATE) AS d FROM release",
        "SELECT a.n FROM release AS a JOIN release AS b ON a.n = b.city",
    ],
)
def test_what_no_value_can_be_read_as_is_invalid_before_it_runs(shell: ShellEngine, sql: str) -> None:
    """It binds, and would fail on released rows: after the charge."""
    assert shell.check((RELEASE,), sql)
    with pytest.raises(ShellInvalid):
        shell.check((RELEASE,), sql, samples=SAMPLES)


@pytest.mark.sparse(3)
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT CAST(n AS TINYINT) AS v FROM release",
        "SELECT CAST(n AS DECIMAL(3, 2)) AS v FROM release",
        "SELECT TRY_CAST(city AS BIGINT) AS v FROM release",
        "SELECT n / 0 AS v FROM release",
        "SELECT POWER(n, 1000) AS v FROM release",
        "SELECT (SELECT n FROM release WHERE n > 5) AS v FROM release",
        "SELECT CAST(city AS BIGINT) AS v FROM release WHERE city = '10'",
    ],
)
def test_what_fails_on_made_up_numbers_alone_is_left_to_the_run(shell: ShellEngine, sql: str) -> None:
    """Real numbers may be small enough, and keys in WHERE may be those that fit."""
    assert shell.check((RELEASE,), sql, samples=SAMPLES)


def test_a_check_that_takes_long_ends_at_its_time() -> None:
    """Samples come before any charge: nobody may keep a worker with them."""
    shell = ShellEngine(workers=1)
    try:
        assert shell.wait_ready()
        with capture_logs(), pytest.raises(ShellSlow):
            shell.check((RELEASE,), "SELECT sleep_ms(600000) AS z FROM release", samples=SAMPLES, timeout_seconds=0.5)
        assert shell.check((RELEASE,), "SELECT n FROM release") == (("n", "BIGINT"),)
    finally:
        shell.close()


@pytest.mark.sparse(4)
@pytest.mark.parametrize(
    "sql",
    [
        "",
        "SELEC 1",
        f"SELECT {CANARY} FROM release",
        f"SELECT * FROM {CANARY}",
        f"SELECT CAST('{CANARY}' AS BIGINT) + ['a']",
        "SELECT sum(city) FROM release",
        "SELECT 1; SELECT 2",
        "CREATE TABLE x AS SELECT 1",
        "SET threads = 8",
        "COMMIT",
        "SELECT $1",
        "SELECT '\ud800'",
    ],
)
def test_what_does_not_bind_is_invalid_without_words(
    shell: ShellEngine, capfd: pytest.CaptureFixture[str], sql: str
) -> None:
    """ShellInvalid carries no engine text, no cause and no part of the SQL; the worker lives on."""
    assert shell.wait_ready()
    processes = shell.process_ids()
    with capture_logs() as logs, pytest.raises(ShellInvalid) as caught:
        shell.check((RELEASE,), sql)
    assert_says_nothing(caught.value, capfd, logs)
    assert logs == []
    assert shell.process_ids() == processes


def test_checks_do_not_see_one_another(shell: ShellEngine) -> None:
    """Tables of one check are gone in the next, and a name may come back with other types."""
    other = ShellTable("other", (ShellColumn("n", ColumnType.TEXT),))
    for _ in range(6):
        assert shell.check((RELEASE, other), "SELECT n FROM other") == (("n", "VARCHAR"),)
        with pytest.raises(ShellInvalid):
            shell.check((RELEASE,), "SELECT n FROM other")
        numbers = ShellTable("other", (ShellColumn("n", ColumnType.NUMBER),))
        assert shell.check((numbers,), "SELECT n FROM other") == (("n", "DOUBLE"),)


@pytest.mark.slow
def test_runs_share_nothing(tmp_path: Path) -> None:
    """A run's tables, changes and temporary objects are gone in the next one, in the same worker."""
    shell = ShellEngine(workers=1)
    try:
        assert shell.wait_ready()
        processes = shell.process_ids()
        secret = ShellTable("secret", (ShellColumn("v", ColumnType.INTEGER, (1, 2)),))
        listing = "SELECT count(*) FROM duckdb_tables() WHERE NOT internal"
        for _ in range(4):
            assert run(shell, listing, (), secret).rows == [(1,)]
            changed = "WITH x AS (INSERT INTO secret VALUES (3) RETURNING v) SELECT count(*) FROM x"
            assert run(shell, changed, (), secret).rows == [(1,)]
            assert run(shell, "SELECT count(*) FROM secret", (), secret).rows == [(2,)]
        assert shell.process_ids() == processes
        fails(shell, "SELECT * FROM secret")
        fails(shell, "SELECT * FROM query_table('secret')")
    finally:
        shell.close()
    handler = ShellHandler({"threads": 1, "memory_limit_mb": 100, "rows_max": 10, "cells_max": 100})
    first = handler._fresh
    assert first is not None
    first.execute(
        "CREATE TEMP MACRO sum(x) AS 7; CREATE TEMP VIEW v AS SELECT 1; SET VARIABLE s = 5; CREATE TABLE t AS SELECT 1"
    )
    handler._used, handler._fresh = first, None
    handler.between()
    second = handler._fresh
    assert second is not None
    assert second is not first
    assert second.execute("SELECT sum(x), getvariable('s') FROM range(3) r(x)").fetchall() == [(3, None)]
    for name in ("v", "t"):
        with pytest.raises(duckdb.CatalogException):
            second.execute(f"SELECT * FROM {name}")
    with pytest.raises(duckdb.ConnectionException):
        first.execute("SELECT 1")


@pytest.mark.slow
def test_hostile_texts_reach_nothing(shell: ShellEngine, tmp_path: Path) -> None:
    """Files, databases, settings and several statements are refused; nothing is written."""
    csv = tmp_path / "x.csv"
    csv.write_text("a\n1\n")
    out = tmp_path / "out.csv"
    for sql in (
        f"SELECT * FROM read_csv('{csv}')",
        f"FROM '{csv}'",
        f"SELECT * FROM glob('{tmp_path}/*')",
        "SELECT * FROM read_blob('/proc/self/environ')",
        f"COPY release TO '{out}'",
        f"WITH x AS (COPY release TO '{out}') SELECT 1",
        f"ATTACH '{tmp_path / 'new.duckdb'}' AS n",
        f"EXPORT DATABASE '{tmp_path / 'dump'}'",
        "SET VARIABLE x = 1",
        "CREATE TEMP VIEW release AS SELECT 1",
        "SELECT 1; SELECT 2",
        "INSTALL httpfs",
    ):
        assert fails(shell, sql).started, sql
    assert os.listdir(tmp_path) == ["x.csv"]


@pytest.mark.sparse(3)
@pytest.mark.parametrize(
    "sql",
    [
        *(f"SELECT {bomb}" for bomb in BOMBS),
        "SELECT * FROM range(100000000)",
        "SELECT sleep_ms(60000)",
    ],
)
def test_bombs_end_and_the_next_run_works(shell: ShellEngine, sql: str) -> None:
    """Runs that eat time or memory (some would succeed in the end) are ended; the shell goes on."""
    with capture_logs() as logs:
        assert fails(shell, sql, seconds=1.0).started
    assert {line["category"] for line in logs} <= ENDED
    assert run(shell, "SELECT count(*) FROM release").rows == [(3,)]


@pytest.mark.slow
def test_check_is_bounded_too() -> None:
    """A text that takes long to bind is given up after the timeout, not an endless wait."""
    shell = ShellEngine(workers=1)
    try:
        assert shell.wait_ready()
        # The binder computes a constant LIMIT.
        text = "SELECT n FROM release LIMIT (CAST(list_sum([x + 1 for x in range(100000000)]) AS BIGINT))"
        with capture_logs() as logs, pytest.raises(ShellSlow):
            shell.check((RELEASE,), text, timeout_seconds=0.5)
        # On a busy machine the list may meet the limit of memory first.
        assert [line["category"] for line in logs] in (["timeout"], ["refused"])
        assert shell.check((RELEASE,), "SELECT n FROM release") == (("n", "BIGINT"),)
    finally:
        shell.close()


@pytest.mark.slow
def test_errors_say_nothing(shell: ShellEngine, capfd: pytest.CaptureFixture[str]) -> None:
    """A run that fails is the one constant failure, without text, cause or log of values."""
    table = ShellTable("release", (ShellColumn("v", ColumnType.TEXT, (CANARY,)),))
    with capture_logs() as logs:
        failure = fails(shell, "SELECT CAST(v AS INTEGER) FROM release", table)
    assert failure.started
    assert_says_nothing(failure, capfd, logs)


def test_values_of_another_type_are_never_sent(shell: ShellEngine) -> None:
    """A released value that is not of its column's type is found before the worker hears of it."""
    for kind, value in (
        (ColumnType.INTEGER, 1.5),
        (ColumnType.INTEGER, True),
        (ColumnType.TEXT, 5),
        (ColumnType.TEXT, "\ud800"),
        (ColumnType.NUMBER, "x"),
        (ColumnType.DATE, datetime.datetime(2020, 1, 1)),
        (ColumnType.BOOLEAN, 1),
    ):
        table = ShellTable("t", (ShellColumn("v", kind, (value, None)),))
        assert not fails(shell, "SELECT v FROM t", table).started
    with pytest.raises(AssertionError):
        ShellTable("t", (ShellColumn("a", ColumnType.TEXT, ("x",)), ShellColumn("b", ColumnType.TEXT)))


def test_rows_are_capped() -> None:
    """A result with more rows than allowed fails."""
    shell = ShellEngine(workers=1, rows_max=10)
    try:
        assert len(run(shell, "SELECT * FROM range(10)").rows) == 10
        assert fails(shell, "SELECT * FROM range(11)").started
    finally:
        shell.close()


def test_texts_are_capped(shell: ShellEngine) -> None:
    """A result whose strings are longer than allowed fails, however few its rows; short ones in many rows do not."""
    long = "SELECT repeat('x', 5000) AS t, 1 AS n"
    assert len(shell.run((), long, timeout_seconds=5, text_max=5_010).rows[0][0] or "") == 5_000
    with pytest.raises(ExecutionFailed) as failed:
        shell.run((), long, timeout_seconds=5, text_max=5_000)
    assert failed.value.started
    assert len(shell.run((), "SELECT 'some text' FROM range(1000)", timeout_seconds=5, text_max=10).rows) == 1_000


def test_many_threads(shell: ShellEngine) -> None:
    """Concurrent runs get their own tables and rows."""

    def ask(number: int) -> Any:
        table = ShellTable("t", (ShellColumn("v", ColumnType.INTEGER, (number,)),))
        shell.check((table,), "SELECT v FROM t")
        return run(shell, "SELECT v FROM t", (), table, seconds=20).rows[0][0]

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(ask, range(40))) == list(range(40))


def test_every_type_that_is_checked_can_be_carried() -> None:
    """A column that passes the check before the charge is never refused after it."""
    assert [name for name, kind in _RESULT_KINDS.items() if not _as_values(kind, name)] == []


@pytest.mark.parametrize(
    "columns",
    ["n AS a, n AS a, n AS A", "NULL AS x, n", 'n AS "row$", city AS "id$0"', "now() AS t", "[n] AS l", "$1 AS p"],
)
def test_a_check_takes_whatever_names_and_types_a_result_has(shell: ShellEngine, columns: str) -> None:
    """What no answer may have is refused with its reason by those who know it, not as a text that does not fit."""
    text = f"SELECT {columns} FROM release"
    described = shell.check((RELEASE,), text, (7,) if "$1" in columns else (), samples=SAMPLES)
    assert len(described) == columns.count(",") + 1


def test_intervals_travel_as_the_engine_writes_them() -> None:
    """Shows it of both signs, of days and clocks, and of NULL; days and the clock have one sign here."""
    draw = random.Random(7)
    sizes = [0, 1, -1, 86_400_000_000, -86_400_000_000, *(draw.randrange(-(10**13), 10**13) for _ in range(60))]
    with duckdb.connect() as connection:
        for size in sizes:
            sign = -1 if size < 0 else 1
            days, clock = divmod(abs(size), 86_400_000_000)
            (written,) = connection.execute(
                f"SELECT CAST(INTERVAL ({sign * days}) DAY + INTERVAL ({sign * clock}) MICROSECOND AS VARCHAR)"
            ).fetchall()[0]
            assert _span(datetime.timedelta(microseconds=size)) == written
