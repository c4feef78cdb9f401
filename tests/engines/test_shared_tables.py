"""Tables that statements of one lease share: made once, read by that lease alone, and gone with it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from engines.encoding import encode_statement
from engines.frames import Frame
from engines.handlers.private import PrivateHandler
from engines.private import PrivateEngine
from privacy.refusal import ExecutionFailed
from privacy.statement import Shared, SharedTable, Statement, StatementSum

DRAWN = "SELECT CAST(1000000000000000 * random() AS BIGINT) AS u FROM main.t WHERE i < $1"
"""Another number each time that it is made."""

READ = 'SELECT CAST(0 AS BIGINT) AS "s_high", CAST(max(u) AS BIGINT) AS "s_low" FROM "temp"."main"."unit$cells"'
COUNTED = 'SELECT CAST(0 AS BIGINT) AS "s_high", CAST(count(*) AS BIGINT) AS "s_low" FROM "temp"."main"."unit$cells"'


def reading(sql: str = READ, *, made: str = DRAWN, below: int = 9, kept: bool = True) -> Statement:
    """A statement over one shared table."""
    shared = Shared((SharedTable("unit$cells", made, (below,)),), kept)
    return Statement(sql, (), (), (StatementSum("s", 2**62),), shared)


@pytest.fixture
def snapshots(tmp_path: Path) -> list[Path]:
    """Two, with other rows."""
    paths = [tmp_path / "one.duckdb", tmp_path / "two.duckdb"]
    for path, rows in zip(paths, (10, 20), strict=True):
        with duckdb.connect(str(path)) as connection:
            connection.execute(f"CREATE TABLE t AS SELECT i FROM range({rows}) r(i)")
    return paths


@pytest.fixture
def handler(tmp_path: Path) -> PrivateHandler:
    """What a worker runs."""
    options = {"threads": 1, "memory_limit_mb": 256, "temporary": str(tmp_path), "temporary_mb": 64, "open_max": 2}
    return PrivateHandler(options)


def ask(handler: PrivateHandler, path: Path, statement: Statement, lease: str = "a") -> int:
    """The one number of a statement."""
    encoded = encode_statement(statement)
    assert encoded is not None
    header = {"operation": "run", "snapshot": str(path), "lease": lease, **encoded}
    # As after a journey through JSON.
    _, buffers = handler.handle(Frame(_plain(header), ()))
    return int(np.frombuffer(buffers[1], dtype=np.int64)[0])


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def test_the_next_statement_of_the_lease_reads_what_the_first_has_made(
    handler: PrivateHandler, snapshots: list[Path]
) -> None:
    """Once: then the table is gone, and a statement that wants it makes it anew."""
    first = ask(handler, snapshots[0], reading())
    assert ask(handler, snapshots[0], reading(kept=False)) == first
    assert handler._tables is None
    assert ask(handler, snapshots[0], reading(kept=False)) != first
    assert handler._tables is None


@pytest.mark.parametrize("other", ["lease", "snapshot", "filter", "text"])
def test_what_is_left_of_anything_else_is_never_read(
    handler: PrivateHandler, snapshots: list[Path], other: str
) -> None:
    """Another lease, snapshot, parameter or text makes its own, and ends the one before."""
    before = ask(handler, snapshots[0], reading())
    statement = {
        "filter": reading(below=8),
        "text": reading(made=DRAWN + " AND i >= 0"),
    }.get(other, reading())
    path, lease = snapshots[other == "snapshot"], "b" if other == "lease" else "a"
    left = handler._tables
    assert left is not None
    now = ask(handler, path, statement, lease)
    assert now != before
    with pytest.raises(duckdb.Error):
        left.cursor.execute('SELECT 1 FROM "temp"."main"."unit$cells"')
    counted = replace(statement, sql=COUNTED, shared=replace(statement.shared, kept=False))
    assert ask(handler, path, counted, lease) == (8 if other == "filter" else 9)


def test_a_statement_without_shared_tables_finds_none(handler: PrivateHandler, snapshots: list[Path]) -> None:
    """It has a cursor of its own, in which the name means nothing; the tables end before it runs."""
    ask(handler, snapshots[0], reading())
    with pytest.raises(duckdb.Error):
        ask(handler, snapshots[0], replace(reading(), shared=None))
    assert handler._tables is None


def test_the_rows_of_a_model_are_alone_with_their_snapshot(handler: PrivateHandler, snapshots: list[Path]) -> None:
    """The other snapshot is closed, so that its part of the worker's memory is for the rows; it opens again later."""
    ask(handler, snapshots[0], reading())
    number = {"highest": 99, "keys": False}
    handler.handle(
        Frame(
            {
                "operation": "rows",
                "snapshot": str(snapshots[1]),
                "lease": "a",
                "sql": "SELECT CAST(i AS INTEGER) AS u, 0 AS p, i AS n, i AS l FROM t",
                "parameters": [],
                "keys": [[name, "integer"] for name in "upnl"],
                "columns": [number],
                "label": number,
                "label_place": 1,
                "held": 0,
                "clipping": "inputs",
                "clip": 1,
            },
            (),
        )
    )
    assert list(handler._open) == [str(snapshots[1])]
    assert (
        handler.handle(Frame({"operation": "sums", "lease": "a", "wanted": "count", "weights": []}, ()))[0]["rows"] == 1
    )
    ask(handler, snapshots[0], reading())
    assert len(handler._open) == 2


def test_opening_a_snapshot_ends_them(handler: PrivateHandler, snapshots: list[Path]) -> None:
    """Whatever else a worker is asked for."""
    ask(handler, snapshots[0], reading())
    handler.handle(Frame({"operation": "open", "snapshot": str(snapshots[0])}, ()))
    assert handler._tables is None


def test_a_failure_ends_them(handler: PrivateHandler, snapshots: list[Path]) -> None:
    """Of the tables, or of the statement over them."""
    for broken in (reading(made="SELECT x AS u FROM main.t WHERE i < $1"), reading("SELECT no")):
        ask(handler, snapshots[0], reading())
        with pytest.raises(duckdb.Error):
            ask(handler, snapshots[0], broken)
        assert handler._tables is None


@pytest.mark.parametrize(
    "table",
    [
        SharedTable("visits", "SELECT 1 AS u", ()),
        SharedTable("unit$cells", "SELECT 1 AS u; SELECT 2", ()),
        SharedTable("unit$cells", "DROP TABLE main.t", ()),
    ],
)
def test_only_selects_under_names_of_ours(handler: PrivateHandler, snapshots: list[Path], table: SharedTable) -> None:
    """A table of the snapshot's name would hide it."""
    with pytest.raises((ValueError, duckdb.Error)):
        ask(handler, snapshots[0], replace(reading(), shared=Shared((table,), kept=True)))
    assert handler._tables is None


@contextlib.contextmanager
def one_slot() -> Iterator[PrivateEngine]:
    """An engine with one slot."""
    engine = PrivateEngine(workers=1, threads=1, memory_limit_mb=256)
    try:
        assert engine.wait_ready(timeout_seconds=60)
        yield engine
    finally:
        engine.close()


def test_a_worker_that_still_has_some_ends_with_its_lease(snapshots: list[Path]) -> None:
    """The stage after it failed, say. A lease that read them to the end gives its worker back."""
    with one_slot() as engine:
        before = set(engine.process_ids())
        with engine.lease() as lease:
            low = engine.run(snapshots[0], reading(), timeout_seconds=30, lease=lease).reveal()[1]["s"][0]
            again = engine.run(snapshots[0], reading(kept=False), timeout_seconds=30, lease=lease)
            assert again.reveal()[1]["s"][0] == low
        assert engine.wait_ready(timeout_seconds=60)
        assert set(engine.process_ids()) == before
        with engine.lease() as lease:
            engine.run(snapshots[0], reading(), timeout_seconds=30, lease=lease)
        assert engine.wait_ready(timeout_seconds=60)
        assert len(set(engine.process_ids()) - before) == 1


def test_a_lease_after_a_failure_between_the_parts_has_nothing(snapshots: list[Path]) -> None:
    """The same opaque outcome as any: nothing more is sent, and the next lease makes its own tables."""
    with one_slot() as engine:
        with engine.lease() as lease:
            engine.run(snapshots[0], reading(), timeout_seconds=30, lease=lease)
            with pytest.raises(ExecutionFailed):
                engine.run(snapshots[0], reading("SELECT no", kept=False), timeout_seconds=30, lease=lease)
            with pytest.raises(ExecutionFailed) as caught:
                engine.run(snapshots[0], reading(kept=False), timeout_seconds=30, lease=lease)
            assert not caught.value.started
        with engine.lease() as lease:
            found = engine.run(snapshots[1], reading(COUNTED, kept=False), timeout_seconds=30, lease=lease)
            assert found.reveal()[1]["s"][0] == 9
