"""Statements are planned on an empty twin before they are charged, and errors on true data are incidents."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from engines.handler import Invalid
from engines.handlers.plan import Twins, open_twin
from engines.incidents import Incidents
from engines.private import PrivateEngine
from engines.shell import PlanFailed, ShellEngine
from engines.snapshot import build_snapshot
from engines.stored import stored_norms, stored_units
from engines.table_source import TableSource
from engines.twin import twin_of
from privacy.policy import ColumnType, Table
from privacy.refusal import ExecutionFailed
from privacy.statement import Statement, StatementKey, StatementSum
from tests.engines.datasets import DRAW_KEY, bills, column, dataset, people, read, visits, write_csv
from tests.engines.logs import capture_logs

CITY = Table(name="City", columns=(column("Name", "text"), column("size", "integer")), protected=False, key="Name")
DECLARED = dataset(
    people(
        column("Kind", "text", keys=("b", "a'", None), nullable=False),
        column("day", "date"),
        column("at", "timestamp"),
        column("ok", "boolean"),
        column("x", "number"),
    ),
    visits(),
    bills(),
    CITY,
)
COUNT = Statement(
    'SELECT CAST("Kind" AS VARCHAR) AS "k0", CAST(0 AS BIGINT) AS "s_high", COUNT(*) AS "s_low" FROM people GROUP BY 1',
    (),
    (StatementKey("k0", ColumnType.TEXT),),
    (StatementSum("s", 2**40),),
)
COLUMNS = (
    "SELECT table_name, column_name, data_type, is_nullable, column_default FROM duckdb_columns() "
    "WHERE NOT internal AND database_name = current_database() ORDER BY table_name, column_index"
)


def broken(sql: str) -> Statement:
    return replace(COUNT, sql=COUNT.sql.replace("COUNT(*)", sql))


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("twin")
    sources = (
        TableSource(
            "people",
            write_csv(folder / "p.csv", "id,Kind,day,at,ok,x", "7,b,2020-01-01,2020-01-01 10:00:00,t,1"),
            "csv",
        ),
        TableSource("visits", write_csv(folder / "v.csv", "visit,person,city", "1,7,x"), "csv"),
        TableSource("bills", write_csv(folder / "b.csv", "visit,amount", "1,1.5"), "csv"),
        TableSource("City", write_csv(folder / "c.csv", "Name,size", "x,10"), "csv"),
    )
    return build_snapshot(DECLARED, sources, directory=folder / "snapshots", draw_key=DRAW_KEY).path


@pytest.fixture(scope="module")
def shell() -> Iterator[tuple[ShellEngine, Incidents]]:
    incidents = Incidents()
    with closing(ShellEngine(workers=1, incidents=incidents)) as engine:
        assert engine.wait_ready()
        yield engine, incidents


def test_a_twin_has_the_snapshots_tables_and_no_row(snapshot: Path) -> None:
    """Same tables, columns in order, types, ENUM values and constraints, from the declaration alone."""
    norms, units = stored_norms(snapshot), stored_units(snapshot)
    assert set(norms) == units
    tables = tuple(
        replace(table, stored_norms=norms.get(table.name), stored_units=table.name in units)
        for table in DECLARED.tables
    )
    assert tables != DECLARED.tables
    twin = open_twin(twin_of(replace(DECLARED, tables=tables)).tables, "test").stored
    assert read(snapshot, COLUMNS) == twin.execute(COLUMNS).fetchall()
    constraints = "SELECT constraint_type FROM duckdb_constraints() WHERE database_name = current_database()"
    assert [] == read(snapshot, constraints) == twin.execute(constraints).fetchall()
    for table in DECLARED.tables:
        assert [(0,)] == twin.execute(f'SELECT count(*) FROM "{table.name}"').fetchall()


def test_tables_for_texts_stand_in_the_same_engine() -> None:
    """Another engine would map 70 MB more of a worker's address space for each of the twins that it keeps."""
    twin = open_twin(twin_of(DECLARED).tables, "test")
    databases = twin.stored.execute("SELECT database_name FROM duckdb_databases() WHERE NOT internal").fetchall()
    assert {("memory",), ("noisegate texts",)} == set(databases)
    assert twin.seen.execute("SELECT current_database()").fetchone() == ("noisegate texts",)
    twin.close()


def test_a_twin_is_named_by_its_shape() -> None:
    """Another type or list of keys is another twin; texts and bounds are not part of it."""
    first = twin_of(DECLARED)
    assert first is twin_of(DECLARED)
    assert first.name == twin_of(replace(DECLARED, description="new", policy_version=7)).name
    assert first.name != twin_of(dataset(people(column("Kind", "text", keys=("b",))), visits(), bills(), CITY)).name


def test_what_cannot_be_planned_is_said_before_the_charge(shell: tuple[ShellEngine, Incidents]) -> None:
    """A statement that does not bind, or has another shape than it declares, fails on the twin: counted, and loud."""
    engine, incidents = shell
    engine.plan(DECLARED, [COUNT, COUNT])
    before = incidents.counts()["unplannable"]
    wrong = ("no_such_function(ok)", "SUM(ok, ok, ok)", 'SUM("no such column")', "COUNT(*)::VARCHAR")
    for sql in wrong:
        with capture_logs() as logs, pytest.raises(PlanFailed):
            engine.plan(DECLARED, [COUNT, broken(sql)])
        assert {"event": "incident", "level": "ERROR", "kind": "unplannable", "category": "invalid"} in logs
        assert "Error" not in repr([{**log, "level": ""} for log in logs])
        engine.plan(DECLARED, [COUNT])
    assert before + len(wrong) == incidents.counts()["unplannable"]
    assert incidents.counts()["engine_error"] == 0


def test_a_worker_asks_for_a_twin_that_it_does_not_know() -> None:
    """The tables travel once per worker; a worker keeps a few twins, and forgets one that the engine broke."""
    twins = Twins()
    header = {"twin": "a", "schema": "test", "tables": None, "text": None, "statements": []}
    unknown, known = {"known": False, "stopped": None}, {"known": True, "stopped": None}
    assert unknown == twins.plan(header)
    assert known == twins.plan({**header, "tables": twin_of(DECLARED).tables})
    assert known == twins.plan(header)
    with pytest.raises(Invalid):
        twins.plan({**header, "statements": [{"sql": "SELEC", "parameters": [], "keys": [], "sums": []}]})
    assert unknown == twins.plan(header)
    for name in "bcdefghi":
        twins.plan({**header, "twin": name, "tables": twin_of(DECLARED).tables})
    assert unknown == twins.plan({**header, "twin": "a"})


@pytest.mark.slow
def test_an_engine_error_on_true_data_is_an_incident(snapshot: Path) -> None:
    """Errors, crashes and garbled answers are counted and logged as errors; time and memory are not."""
    incidents = Incidents()
    greedy = broken("(SELECT length(string_agg(repeat(chr(65 + i::INTEGER % 9), 20000), '')) FROM range(500000) r(i))")
    endless = broken("(SELECT count(*) FROM range(1000000000000))")
    with closing(PrivateEngine(workers=1, memory_limit_mb=128, incidents=incidents)) as engine:
        for statement, seconds, expected in (
            (greedy, 20.0, 0),
            (endless, 0.3, 0),
            (broken('MAX(CAST("Kind" AS BIGINT))'), 10.0, 1),
            (broken("-7 - COUNT(*)::BIGINT * 9000000000000000000"), 10.0, 2),
        ):
            assert engine.wait_ready()
            with capture_logs() as logs, pytest.raises(ExecutionFailed):
                engine.run(snapshot, statement, timeout_seconds=seconds)
            assert incidents.counts()["engine_error"] == expected, statement.sql
            assert (expected > 0) == any(log["event"] == "incident" and log["level"] == "ERROR" for log in logs)
            assert "Kind" not in repr(logs)
