"""The private engine: exact answers, a wall around everything else, and one failure without words."""

from __future__ import annotations

import contextlib
import datetime
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engines import process as process_module
from engines.folders import PrivateFolder
from engines.handlers.private import PrivateHandler
from engines.optimizers import PRIVATE_OFF
from engines.pool import Pool
from engines.private import PrivateEngine
from engines.process import Failure, WorkerOptions
from privacy.exact import Exact
from privacy.policy import ColumnType
from privacy.refusal import ExecutionFailed
from privacy.statement import Statement, StatementKey, StatementSum
from tests.engines.logs import capture_logs
from tests.engines.workers import BOMBS, CANARY, ENDED, assert_says_nothing, eventually, gone


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("snapshots") / "0123456789abcdef.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT i, "
            "(CASE WHEN i % 3 = 0 THEN 'b' WHEN i % 3 = 1 THEN 'a' END)::ENUM('b', 'a') AS k, "
            "DATE '2020-01-01' + (i % 2)::INTEGER AS d, i % 2 = 0 AS f, "
            f"'{CANARY}' || i AS name FROM range(1000) r(i)"
        )
    path.chmod(0o400)
    return path


@pytest.fixture(scope="module")
def engine() -> Iterator[PrivateEngine]:
    engine = PrivateEngine(workers=2, memory_limit_mb=256)
    assert engine.wait_ready()
    yield engine
    engine.close()


@pytest.fixture
def boot(engine: PrivateEngine, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes workers that start during the test run another program. The shared engine has all of its own by then:
    one that it lost in the test before would be replaced by such a worker, and lie in the test after."""
    assert engine.wait_ready()
    return lambda program: monkeypatch.setattr(process_module, "_BOOT", program)


def summed(
    sql: str = "count(*)", rest: str = "FROM main.t", *, keys: tuple[tuple[str, str], ...] = (), **options: Any
) -> Statement:
    """A statement with one sum, in the form that the lowering writes."""
    shown = "".join(f'{expression} AS "{name}", ' for name, expression in keys)
    return Statement(
        sql=f'SELECT {shown}CAST(0 AS BIGINT) AS "s_high", CAST({sql} AS BIGINT) AS "s_low" {rest}',
        parameters=options.get("parameters", ()),
        keys=tuple(StatementKey(name, options["types"][name]) for name, _ in keys),
        sums=(StatementSum("s", options.get("bound", 2**62)),),
    )


def fails(engine: PrivateEngine, path: Path, statement: Statement, *, seconds: float = 10.0) -> ExecutionFailed:
    with pytest.raises(ExecutionFailed) as caught:
        engine.run(path, statement, timeout_seconds=seconds)
    return caught.value


# -------------------------------------------------------------------------------------------------------- answers


def test_keys_and_sums_are_exact_and_hidden(engine: PrivateEngine, snapshot: Path) -> None:
    """Groups come as Python values with NULL as a group, sums as 64-bit integers, wrapped at once."""
    statement = summed(
        "sum(i)",
        "FROM main.t WHERE i >= $1 GROUP BY ALL ORDER BY ALL",
        keys=(("k", "k"), ("d", "d"), ("f", "f")),
        types={"k": ColumnType.TEXT, "d": ColumnType.DATE, "f": ColumnType.BOOLEAN},
        parameters=(990,),
    )
    exact = engine.run(snapshot, statement, timeout_seconds=10)
    assert isinstance(exact, Exact)
    assert repr(exact) == "<Exact>"
    keys, sums, rows = exact.reveal()
    days = (datetime.date(2020, 1, 1), datetime.date(2020, 1, 2))
    assert keys == {
        "k": ["b", "b", "a", "a", None, None],
        "d": [*days, *days, *days],
        "f": [True, False, True, False, True, False],
    }
    assert rows == 6
    assert isinstance(sums["s"], np.ndarray)
    assert sums["s"].dtype == np.int64
    assert sums["s"].tolist() == [990 + 996, 993 + 999, 994, 991 + 997, 992 + 998, 995]


def test_parameters_keep_their_type(engine: PrivateEngine, snapshot: Path) -> None:
    """Bound parameters arrive as what they are, quotes and all; text is never SQL."""
    values = (
        "it's; DROP TABLE t --",
        2**100,
        True,
        None,
        0.1,
        datetime.date(2020, 2, 3),
        datetime.datetime(1, 1, 1, 2),
    )
    sql = (
        "CASE WHEN $1 = 'it''s; DROP TABLE t --' AND $2::HUGEINT = 1267650600228229401496703205376 "
        "AND $3 AND $4 IS NULL AND $5::DOUBLE = 0.1::DOUBLE AND $6::DATE = DATE '2020-02-03' "
        "AND $7::TIMESTAMP = TIMESTAMP '0001-01-01 02:00:00' "
        "THEN 1 ELSE 0 END"
    )
    exact = engine.run(snapshot, summed(sql, "", parameters=values), timeout_seconds=10)
    assert exact.reveal()[1]["s"].tolist() == [1]


def test_no_groups_is_an_answer(engine: PrivateEngine, snapshot: Path) -> None:
    """An empty result has zero groups and typed, empty columns."""
    statement = summed(
        "count(*)", "FROM main.t WHERE i < 0 GROUP BY k", keys=(("k", "k"),), types={"k": ColumnType.TEXT}
    )
    keys, sums, rows = engine.run(snapshot, statement, timeout_seconds=10).reveal()
    assert (keys, sums["s"].tolist(), rows) == ({"k": []}, [], 0)


@settings(max_examples=20, deadline=None)
@given(
    values=st.lists(
        st.integers(-(2**100), 2**100) | st.sampled_from([2**62, -(2**62), 2**62 - 1, 1 - 2**62]),
        min_size=1,
        max_size=30,
    )
)
@example(values=[2**62, 0, -(2**62)])
@example(values=[-1, 2**100, 1 - 2**100])
@example(values=[2**63, -(2**63), 2**63 - 1])
def test_wide_sums_survive(engine: PrivateEngine, snapshot: Path, values: list[int]) -> None:
    """128-bit sums cross as two 64-bit halves without losing a bit, whatever their sign."""
    half = f"CAST({2**62} AS HUGEINT)"
    rows = ", ".join(f"({place}, {value})" for place, value in enumerate(values))
    statement = Statement(
        sql=f'SELECT CAST(p AS BIGINT) AS "p", CAST(v // {half} AS BIGINT) AS "s_high", '
        f'CAST(v % {half} AS BIGINT) AS "s_low" '
        f"FROM (SELECT p, CAST(v AS HUGEINT) AS v FROM (VALUES {rows}) r(p, v)) ORDER BY p",
        parameters=(),
        keys=(StatementKey("p", ColumnType.INTEGER),),
        sums=(StatementSum("s", 2**100),),
    )
    found = engine.run(snapshot, statement, timeout_seconds=10).reveal()[1]["s"]
    assert [int(value) for value in found] == values
    assert isinstance(found, list) == any(abs(value) >= 2**62 for value in values)


@pytest.mark.sparse(8)
@pytest.mark.parametrize(
    ("high", "low", "bound"),
    [
        ("0", "11", 10),
        ("0", "-11", 10),
        ("1", "0", 2**62 - 1),
        ("1", "-1", 2**100),
        ("-1", "1", 2**100),
        ("0", "4611686018427387904", 2**100),
        ("NULL", "0", 10),
        ("0", "NULL", 10),
        ("0::HUGEINT", "0", 10),
        ("0", "0.5::DOUBLE", 10),
        ("0", "'1'", 10),
    ],
)
def test_sums_beyond_what_was_proved_fail(
    engine: PrivateEngine, snapshot: Path, high: str, low: str, bound: int
) -> None:
    """A sum beyond its bound, of mixed sign, NULL or of another type is a fault of ours and fails closed."""
    cast = [text if "::" in text or "'" in text else f"CAST({text} AS BIGINT)" for text in (high, low)]
    statement = Statement(f'SELECT {cast[0]} AS "s_high", {cast[1]} AS "s_low"', (), (), (StatementSum("s", bound),))
    assert fails(engine, snapshot, statement).started


@pytest.mark.sparse(8)
@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("SELECT 1::BIGINT AS other, 0::BIGINT AS s_high, 0::BIGINT AS s_low", ColumnType.INTEGER),
        ("SELECT 0::BIGINT AS s_high, 1::BIGINT AS k, 0::BIGINT AS s_low", ColumnType.INTEGER),
        ("SELECT 1::BIGINT AS k, 0::BIGINT AS s_high", ColumnType.INTEGER),
        ("SELECT 1::BIGINT AS k, 0::BIGINT AS s_high, 0::BIGINT AS s_low, 1 AS more", ColumnType.INTEGER),
        ("SELECT 1::BIGINT AS K, 0::BIGINT AS s_high, 0::BIGINT AS s_low", ColumnType.INTEGER),
        ("SELECT 1.0::DOUBLE AS k, 0::BIGINT AS s_high, 0::BIGINT AS s_low", ColumnType.INTEGER),
        ("SELECT (2::HUGEINT ** 70)::HUGEINT AS k, 0::BIGINT AS s_high, 0::BIGINT AS s_low", ColumnType.INTEGER),
        ("SELECT 1::BIGINT AS k, 0::BIGINT AS s_high, 0::BIGINT AS s_low", ColumnType.TEXT),
        ("SELECT 'infinity'::DATE AS k, 0::BIGINT AS s_high, 0::BIGINT AS s_low", ColumnType.DATE),
        ("SELECT '10000-01-01'::TIMESTAMP AS k, 0::BIGINT AS s_high, 0::BIGINT AS s_low", ColumnType.TIMESTAMP),
    ],
)
def test_results_of_another_shape_fail(engine: PrivateEngine, snapshot: Path, sql: str, kind: ColumnType) -> None:
    """Columns, order, names and types are exactly the statement's."""
    statement = Statement(sql, (), (StatementKey("k", kind),), (StatementSum("s", 10),))
    assert fails(engine, snapshot, statement).started


def test_what_cannot_be_sent_was_not_started(engine: PrivateEngine, snapshot: Path, tmp_path: Path) -> None:
    """A missing snapshot, an impossible parameter or shape is found before a worker hears of it."""
    number = Statement("SELECT 1.0 AS k", (), (StatementKey("k", ColumnType.NUMBER),), ())
    twice = Statement("SELECT 1", (), (StatementKey("k", ColumnType.TEXT),) * 2, ())
    for path, statement in (
        (tmp_path / "none.duckdb", summed()),
        (snapshot, summed(parameters=("\ud800",))),
        (snapshot, summed(parameters=(2**200,))),
        (snapshot, number),
        (snapshot, twice),
        (snapshot, Statement("SELECT 1", (), (), ())),
    ):
        assert not fails(engine, path, statement).started
    assert not fails(engine, snapshot, summed(), seconds=float("nan")).started


# --------------------------------------------------------------------------------------------------- hostile SQL


@pytest.mark.slow
def test_hostile_texts_are_refused(engine: PrivateEngine, snapshot: Path, tmp_path: Path) -> None:
    """Files, the database's own file, other databases, writing and settings are all closed to SQL."""
    csv = tmp_path / "x.csv"
    csv.write_text("a\n1\n")
    out = tmp_path / "out.csv"
    tables = (
        f"read_csv('{csv}')",
        f"'{csv}'",
        f"glob('{tmp_path}/*')",
        f"read_duckdb('{snapshot}', table_name='t')",
        f"read_blob('{snapshot}')",
        f"read_text('{csv}')",
        "read_blob('/proc/self/environ')",
        "read_blob('/proc/self/maps')",
        f"read_parquet('{csv}')",
        f"sniff_csv('{csv}')",
    )
    for table in tables:
        assert fails(engine, snapshot, summed(rest=f"FROM {table}")).started, table
    for sql in (
        f"ATTACH '{snapshot}' AS other (READ_ONLY)",
        "ATTACH ':memory:' AS other",
        f"COPY t TO '{out}'",
        f"WITH x AS (COPY t TO '{out}') SELECT 0::BIGINT AS s_high, 0::BIGINT AS s_low",
        "WITH x AS (DELETE FROM t RETURNING i) SELECT 0::BIGINT AS s_high, count(*)::BIGINT AS s_low FROM x",
        f"EXPORT DATABASE '{tmp_path / 'dump'}'",
        "SET threads = 64",
        "SET VARIABLE x = 1",
        "CREATE TEMP MACRO sum(x) AS 7",
        "CREATE TEMP VIEW t AS SELECT 1 AS i",
        "INSTALL httpfs",
        "SELECT 1; SELECT 0::BIGINT AS s_high, 0::BIGINT AS s_low",
        "",
    ):
        assert fails(engine, snapshot, Statement(sql, (), (), (StatementSum("s", 10**6),))).started, sql
    assert sorted(os.listdir(tmp_path)) == ["x.csv"]
    assert engine.run(snapshot, summed(), timeout_seconds=10).reveal()[1]["s"].tolist() == [1000]


def test_the_connection_itself_is_locked(snapshot: Path, tmp_path: Path) -> None:
    """Without the one-SELECT gate, on the worker's connection: settings hold, and no path is readable or writable."""
    before = set(os.listdir(snapshot.parent))  # a worker of another test that was killed may have left a link
    handler = PrivateHandler(
        {"threads": 2, "memory_limit_mb": 200, "temporary": str(tmp_path / "spill"), "temporary_mb": 100, "open_max": 1}
    )
    connection = handler._snapshot(str(snapshot))
    link = connection.execute("SELECT path FROM duckdb_databases() WHERE database_name = 'snapshot'").fetchall()[0][0]
    assert not os.path.exists(link)
    closed = (
        f"SELECT count(*) FROM read_blob('{snapshot}')",
        f"SELECT * FROM read_duckdb('{snapshot}', table_name='t')",
        f"ATTACH '{snapshot}' AS own (READ_ONLY)",
        f"ATTACH '{link}' AS own (READ_ONLY)",
        f"ATTACH '{tmp_path / 'new.duckdb'}' AS new",
        "ATTACH ':memory:' AS memory2",
        f"COPY t TO '{tmp_path / 'out.csv'}'",
        f"COPY t TO '{link}.wal'",
        f"EXPORT DATABASE '{tmp_path / 'dump'}'",
        "INSERT INTO t SELECT * FROM t",
        "CREATE TABLE u AS SELECT 1",
        "INSTALL httpfs",
        "LOAD httpfs",
        "CREATE PERSISTENT SECRET s (TYPE s3)",
        "SELECT * FROM 's3://bucket/x.parquet'",
        "SET threads = 64",
        "SET enable_external_access = true",
        "SET memory_limit = '64GB'",
        "SET lock_configuration = false",
        "SET disabled_optimizers = ''",
        "SET temp_directory = '/'",
        "RESET threads",
        "PRAGMA enable_profiling",
    )
    for sql in closed:
        with pytest.raises(duckdb.Error):
            connection.cursor().execute(sql).fetchall()
    blobs = connection.cursor().execute(f"SELECT count(*) FROM read_blob('{link}')").fetchall()
    assert blobs == [(0,)]
    expected = {
        "access_mode": "READ_ONLY",
        "enable_external_access": False,
        "lock_configuration": True,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
        "allow_unsigned_extensions": False,
        "allow_persistent_secrets": False,
        "python_enable_replacements": False,
        "error_on_division_by_zero": False,
        "ieee_floating_point_ops": True,
        "disabled_optimizers": ",".join(sorted(PRIVATE_OFF)),
        "perfect_ht_threshold": 17,
        "threads": 2,
    }
    found = connection.execute("SELECT " + ", ".join(f"current_setting('{name}')" for name in expected)).fetchone()
    assert found is not None
    shown = [",".join(sorted(str(value).lower().split(","))) for value in found]
    assert shown == [str(value).lower() for value in expected.values()]
    local_rows = [(1,)]  # a variable in reach of a replacement scan
    with pytest.raises(duckdb.CatalogException):
        connection.cursor().execute("SELECT * FROM local_rows").fetchall()
    assert local_rows
    assert connection.execute("SELECT 1 // 0, 1 / 0, 1 % 0").fetchall()[0][0] is None
    with contextlib.closing(connection.cursor()) as cursor:
        cursor.execute("CREATE TEMP MACRO sum(x) AS 7; SET VARIABLE secret = 5")
    fresh = connection.cursor().execute("SELECT sum(i), getvariable('secret') FROM t").fetchall()
    assert fresh == [(499500, None)]
    assert set(os.listdir(snapshot.parent)) <= before
    connection.close()


def test_spilling_is_given_up_where_the_file_cannot_be_hidden(snapshot: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """Without hard links the local file system is disabled instead: the own file stays closed."""

    def no_link(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(os, "link", no_link)
    before = set(os.listdir(snapshot.parent))  # a worker of another test that was killed may have left a link
    handler = PrivateHandler(
        {"threads": 1, "memory_limit_mb": 200, "temporary": str(tmp_path / "spill"), "temporary_mb": 100, "open_max": 1}
    )
    connection = handler._snapshot(str(snapshot))
    assert connection.execute("SELECT count(*) FROM t").fetchall() == [(1000,)]
    for sql in (f"SELECT * FROM read_blob('{snapshot}')", f"ATTACH '{snapshot}' AS own (READ_ONLY)"):
        with pytest.raises(duckdb.Error):
            connection.execute(sql).fetchall()
    assert set(os.listdir(snapshot.parent)) <= before
    connection.close()


@pytest.mark.slow
def test_large_queries_spill(tmp_path: Path) -> None:
    """A window larger than the memory limit finishes by spilling to the private directory, which is then empty."""
    path = tmp_path / "wide.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t AS SELECT hash(i) AS h, i FROM range(2500000) r(i)")
    engine = PrivateEngine(workers=1, memory_limit_mb=60, temp_directory=tmp_path)
    try:
        statement = summed("sum(r)", "FROM (SELECT row_number() OVER (ORDER BY h) AS r, i FROM main.t)")
        exact = engine.run(path, statement, timeout_seconds=60)
        assert exact.reveal()[1]["s"].tolist() == [2_500_000 * 2_500_001 // 2]
    finally:
        engine.close()
    assert os.listdir(tmp_path) == ["wide.duckdb"]


@pytest.mark.sparse(5)
@pytest.mark.parametrize("bomb", BOMBS)
def test_bombs_end_and_the_next_query_works(engine: PrivateEngine, snapshot: Path, bomb: str) -> None:
    """Whatever a query eats (it would take hours), the worker is killed and another one answers the next query."""
    with capture_logs() as logs:
        assert fails(engine, snapshot, summed(bomb, ""), seconds=1.0).started
    assert {line["category"] for line in logs} <= ENDED
    assert engine.run(snapshot, summed(), timeout_seconds=10).reveal()[2] == 1


# ------------------------------------------------------------------------------------------------ errors say nothing


@pytest.mark.sparse(8)
@pytest.mark.parametrize(
    "clause",
    [
        "SELECT {} FROM t",
        "SELECT 0::BIGINT AS s_high, count(*)::BIGINT AS s_low FROM t WHERE {} > 0",
        "SELECT 0::BIGINT AS s_high, count(*)::BIGINT AS s_low FROM t GROUP BY {}",
        "SELECT 0::BIGINT AS s_high, count(*)::BIGINT AS s_low FROM t HAVING max({}) > 0",
        "SELECT 0::BIGINT AS s_high, i::BIGINT AS s_low FROM t ORDER BY {}",
        "SELECT 0::BIGINT AS s_high, count(*)::BIGINT AS s_low FROM t a JOIN t b ON {}",
    ],
)
@pytest.mark.parametrize("cell", ["CAST(name AS INTEGER)", "error(name)"])
def test_a01_a02_errors_in_every_clause_are_one_failure(
    engine: PrivateEngine, snapshot: Path, capfd: pytest.CaptureFixture[str], clause: str, cell: str
) -> None:
    """An error that depends on a row is one constant failure: no text, no cause, no context, no log of values."""
    expression = cell if "ON {}" not in clause else f"{cell.replace('name', 'a.name').replace('(i ', '(a.i ')} > 0"
    statement = Statement(clause.format(expression), (), (), (StatementSum("s", 10**6),))
    with capture_logs() as logs:
        failure = fails(engine, snapshot, statement)
    assert failure.started
    assert failure.args == ("the query could not be completed",)
    assert_says_nothing(failure, capfd, logs, hidden=("main.t",))
    assert [(log["category"], log["kind"]) for log in logs if log["event"] == "engine_worker"] == [
        ("refused", "private")
    ]


@pytest.mark.slow
def test_a05_crash_memory_and_timeout_are_the_same_failure(snapshot: Path) -> None:
    """The caller cannot tell a crash from memory, time or a bad row: same type, same text, same attributes."""
    endless = summed("(SELECT count(*) FROM range(1000000000000))", "")
    greedy = summed(
        "(SELECT length(string_agg(repeat(chr(65 + i::INTEGER % 9), 20000), '')) FROM range(500000) r(i))", ""
    )
    engine = PrivateEngine(workers=1, memory_limit_mb=128)
    failures: list[ExecutionFailed] = []
    try:
        with capture_logs() as logs:
            assert engine.wait_ready()
            killed = threading.Timer(0.5, lambda: [os.kill(process, 9) for process in engine.process_ids()])
            killed.start()
            failures.append(fails(engine, snapshot, endless, seconds=8))
            for statement, seconds in ((greedy, 20.0), (endless, 0.3), (summed("CAST(name AS BIGINT)"), 10.0)):
                assert engine.wait_ready()
                failures.append(fails(engine, snapshot, statement, seconds=seconds))
    finally:
        engine.close()
    ended = [log["category"] for log in logs if log["event"] == "engine_worker"]
    assert ended == ["crashed", "memory", "timeout", "refused"]
    assert len({(type(item), str(item), item.args, item.started) for item in failures}) == 1


# ---------------------------------------------------------------------------------------------------- worker lives


def test_a_worker_is_replaced_after_any_error(engine: PrivateEngine, snapshot: Path) -> None:
    """The process that failed is gone; those that did not are kept."""
    assert engine.wait_ready()
    before = set(engine.process_ids())
    fails(engine, snapshot, summed("error('x')", ""))
    assert engine.wait_ready()
    after = set(engine.process_ids())
    assert len(before - after) == 1
    assert len(after) == 3
    assert all(gone(process) for process in before - after)


def test_a_worker_is_replaced_after_some_requests(snapshot: Path) -> None:
    """No worker answers more requests than it may."""
    engine = PrivateEngine(workers=1, memory_limit_mb=128, recycle_after=2)
    try:
        assert engine.wait_ready()
        before = set(engine.process_ids())
        for _ in range(4):
            engine.run(snapshot, summed(), timeout_seconds=10)
        assert eventually(lambda: not before & set(engine.process_ids()))
        assert all(gone(process) for process in before)
    finally:
        engine.close()


def test_eight_threads_share_two_workers(engine: PrivateEngine, snapshot: Path) -> None:
    """Concurrent callers get their own answers."""

    def ask(number: int) -> int:
        statement = summed(rest="FROM main.t WHERE i < $1", parameters=(number,))
        return int(engine.run(snapshot, statement, timeout_seconds=20).reveal()[1]["s"][0])

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(ask, range(80))) == list(range(80))


@pytest.mark.slow
def test_whether_a_worker_is_free_does_not_tell_what_runs(snapshot: Path) -> None:
    """A statement that waits longer than its own time for a busy worker is answered: only a closing engine gives up.

    Giving up gave the charge back, and told for nothing how long another statement ran.
    """
    engine = PrivateEngine(workers=1, memory_limit_mb=128)
    forever = summed("(SELECT count(*) FROM range(1000000000000))", "")
    try:
        assert engine.wait_ready()
        turns = engine._pool._slots._turns
        ended: list[str] = []

        def run_long(seconds: float) -> None:
            fails(engine, snapshot, forever, seconds=seconds)
            ended.append("long")

        long = threading.Thread(target=run_long, args=(5.0,))
        long.start()
        assert eventually(lambda: turns.running == 1)
        ended.append("asked")
        assert engine.run(snapshot, summed(), timeout_seconds=4.5).reveal()[2] == 1
        assert ended == ["asked", "long"]
        long.join()
        long = threading.Thread(target=run_long, args=(20.0,))
        long.start()
        assert eventually(lambda: turns.running == 1)
        closing = threading.Timer(0.3, engine.close)
        closing.start()
        assert not fails(engine, snapshot, summed(), seconds=20.0).started
        long.join()
        closing.join()
    finally:
        engine.close()


@pytest.mark.slow
def test_a_dead_idle_worker_costs_nothing(engine: PrivateEngine, snapshot: Path) -> None:
    """Workers killed while they were idle are passed over; the request is answered."""
    assert engine.wait_ready()
    processes = engine.process_ids()
    for process in processes:
        os.kill(process, 9)
    assert eventually(lambda: all(gone(process) for process in processes))
    assert engine.run(snapshot, summed(), timeout_seconds=20).reveal()[2] == 1
    assert engine.wait_ready()


@pytest.mark.slow
def test_warming_opens_the_snapshot_in_all_workers(snapshot: Path, tmp_path: Path) -> None:
    """After warming the file may go: every worker, also one started later, has it open. A bad one harms nobody."""
    engine = PrivateEngine(workers=1, memory_limit_mb=128)
    copy = tmp_path / "copy.duckdb"
    copy.write_bytes(snapshot.read_bytes())
    bad = tmp_path / "bad.duckdb"
    bad.write_bytes(b"nonsense")
    try:
        assert engine.wait_ready()
        engine.warm(bad)
        engine.warm(copy)
        fails(engine, copy, summed("error('x')", ""))
        assert engine.wait_ready()
        copy.write_bytes(b"nonsense")
        for _ in range(4):
            assert engine.run(copy, summed(), timeout_seconds=10).reveal()[1]["s"].tolist() == [1000]
    finally:
        engine.close()


def test_closing_reaps_everything(snapshot: Path, tmp_path: Path) -> None:
    """After close no process, directory or waiting caller remains; later calls were never started."""
    engine = PrivateEngine(workers=2, memory_limit_mb=128, temp_directory=tmp_path)
    assert engine.wait_ready()
    processes = engine.process_ids()
    busy = threading.Thread(
        target=fails,
        args=(engine, snapshot, summed("(SELECT count(*) FROM range(1000000000000))", "")),
        kwargs={"seconds": 3600},
    )
    busy.start()
    assert eventually(lambda: engine._pool._slots._turns.running == 1)
    engine.close()
    # By itself the statement would end an hour later.
    busy.join(60)
    assert not busy.is_alive()
    assert len(processes) == 3
    assert all(gone(process) for process in processes)
    assert os.listdir(tmp_path) == []
    assert engine.process_ids() == []
    assert not fails(engine, snapshot, summed()).started
    engine.close()


@pytest.mark.slow
def test_children_die_with_the_server(snapshot: Path, tmp_path: Path) -> None:
    """When the server is killed, its workers end by themselves, and the next start removes what they spilled."""
    script = (
        "import sys, threading, time\n"
        "from pathlib import Path\n"
        "from engines.private import PrivateEngine\n"
        "from privacy.statement import Statement, StatementSum\n"
        "engine = PrivateEngine(workers=2, memory_limit_mb=128, temp_directory=Path(sys.argv[2]))\n"
        "assert engine.wait_ready()\n"
        "long = Statement('SELECT 0::BIGINT AS s_high, count(*)::BIGINT AS s_low FROM range(1000000000000)', (), (),"
        " (StatementSum('s', 1),))\n"
        "run = lambda: engine.run(Path(sys.argv[1]), long, timeout_seconds=60)\n"
        "threading.Thread(target=run, daemon=True).start()\n"
        "while not (engine._pool._slots._turns.running and len(engine.process_ids()) == 3):\n"
        "    time.sleep(0.02)\n"
        "print(*engine.process_ids(), flush=True)\n"
        "time.sleep(60)\n"
    )
    server = subprocess.Popen(
        [sys.executable, "-c", script, str(snapshot), str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=process_module._ROOT,
    )
    assert server.stdout is not None
    processes = [int(word) for word in server.stdout.readline().split()]
    assert len(processes) == 3
    assert not any(gone(process) for process in processes)
    server.kill()
    server.communicate()
    assert eventually(lambda: all(gone(process) for process in processes))
    abandoned = os.listdir(tmp_path)
    assert len(abandoned) == 1
    living = PrivateFolder(tmp_path)
    assert os.listdir(tmp_path) == [living.path.name]
    PrivateFolder(tmp_path).remove()
    assert os.listdir(tmp_path) == [living.path.name]
    living.remove()
    assert os.listdir(tmp_path) == []


def test_the_child_has_given_up_what_it_can(engine: PrivateEngine) -> None:
    """No inherited environment or descriptors, no core, no new privileges, limited memory and files."""
    assert engine.wait_ready()
    process = engine.process_ids()[0]
    if not Path("/proc/self/limits").exists():
        pytest.skip("needs /proc")
    limits = Path(f"/proc/{process}/limits").read_text()
    rows = {line[:26].strip(): line[26:].split() for line in limits.splitlines()[1:]}
    assert rows["Max core file size"][1] == "0"
    assert int(rows["Max open files"][1]) <= 128
    assert int(rows["Max address space"][1]) == (2048 + 3 * 256) << 20
    assert int(rows["Max file size"][1]) == (64 * 1024) << 20
    status = Path(f"/proc/{process}/status").read_text()
    assert "NoNewPrivs:\t1" in status
    try:
        environment = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
        descriptors = os.listdir(f"/proc/{process}/fd")
    except PermissionError:
        return
    names = {entry.split(b"=")[0].decode() for entry in environment if entry}
    assert names == {"HOME", "TMPDIR", "LANG", "TZ", "MALLOC_ARENA_MAX", "OPENBLAS_NUM_THREADS"}
    assert len(descriptors) <= 16


def test_the_server_never_loads_the_engine() -> None:
    """Importing everything that the server uses does not import DuckDB: private data has no reader in that process."""
    code = (
        "import sys, engines.private, engines.shell, engines.snapshot, engines.inspect; "
        "print([name for name in sys.modules if 'duckdb' in name])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=process_module._ROOT
    )
    assert done.stdout.strip() == "[]"


# ------------------------------------------------------------------------------------------- a worker that lies


LIAR = """
import json, pickle, socket, struct, sys, time
connection = socket.socket(fileno=int(sys.argv[2]))
def frame(document, body=b""):
    head = json.dumps(document).encode()
    return struct.pack("<4sIQ", b"NGF1", len(head), len(body)) + head + body
connection.recv(1 << 20)
connection.sendall(frame({"status": "ready", "buffers": []}))
connection.recv(1 << 20)
one = (1).to_bytes(8, "little")
column = {"kind": "integer", "nulls": False}
null, text = {"kind": "integer", "nulls": True}, {"kind": "text", "nulls": False}
def done(rows, columns, sizes, body):
    return frame({"status": "done", "rows": rows, "columns": columns, "buffers": sizes}, body)
answers = {
    "garbage": b"\\x80\\x04garbage" * 20,
    "pickle": pickle.dumps({"status": "done"}),
    "large": struct.pack("<4sIQ", b"NGF1", 10, 1 << 40),
    "status": frame({"status": "PWNED", "buffers": []}),
    "empty": frame({"status": "done", "buffers": []}),
    "rows": done(10**15, [column] * 2, [8, 8], one * 2),
    "negative": done(-1, [column] * 2, [8, 8], one * 2),
    "truth": done(True, [column] * 2, [8, 8], one * 2),
    "nulls": done(1, [null] * 2, [8, 1, 8, 1], (one + b"\\1") * 2),
    "kind": done(1, [text] * 2, [8, 8], b'["12345"' * 2),
    "more": done(1, [column] * 2, [8, 8, 8], one * 3),
    "exit": b"",
}
connection.sendall(answers["CASE"])
if "CASE" != "exit":
    time.sleep(30)
"""


@pytest.mark.parametrize(
    ("case", "failure"),
    [
        *(
            (case, Failure.GARBLED)
            for case in (
                "garbage",
                "pickle",
                "large",
                "status",
                "empty",
                "rows",
                "negative",
                "truth",
                "nulls",
                "kind",
                "more",
            )
        ),
        ("exit", Failure.CRASHED),
    ],
)
@pytest.mark.sparse(8)
def test_a_worker_that_lies_is_a_failure(boot: Callable[[str], None], case: str, failure: Failure) -> None:
    """Frames of a worker that was taken over are parsed as data, refused, and the worker is killed."""
    from engines.private import _parse

    boot(LIAR.replace("CASE", case))
    statement = summed()
    pool = Pool(WorkerOptions("private", 1, 64, 4096, 0), size=1, recycle_after=9)
    try:
        with capture_logs() as logs:
            answer = pool.call({"operation": "run"}, timeout_seconds=25, parse=lambda frame: _parse(frame, statement))
        assert answer is failure
        assert [log["category"] for log in logs] == [failure.value]
    finally:
        pool.close()


def test_a_worker_that_cannot_start_does_not_spin(boot: Callable[[str], None]) -> None:
    """Starts that fail are retried ever more slowly; callers are told that nothing was started."""
    boot("raise SystemExit(1)")
    pool = Pool(WorkerOptions("private", 1, 64, 4096, 0), size=1, recycle_after=9)
    try:
        with capture_logs() as logs:
            assert pool.call({}, timeout_seconds=1.0, parse=lambda frame: frame) is Failure.UNAVAILABLE
        assert len(logs) < 12
    finally:
        pool.close()
