"""The private worker: generated statements on read-only snapshots.

Statements of one lease may share tables (privacy/statement.py). They are temporary tables of one cursor, which no other
cursor can see and which end with it. The worker keeps at most one such cursor, and uses it again for the same lease,
snapshot, texts and parameters alone; whatever else comes closes it first, and so does a statement that fails.

The encoded rows of a model (handlers/training.py) are kept in the same way: for requests for sums of the same lease.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb

from engines.design import Design
from engines.encoding import PLACE_PARTS
from engines.frames import Frame
from engines.handler import Answer
from engines.handlers.connection import (
    SIGNED,
    lock_down,
    make_table,
    only_statement,
    private_settings,
    read_parameters,
)
from engines.handlers.results import LISTS, columns_result, places_result
from engines.handlers.speed import probe_nanoseconds
from engines.handlers.training import read_design, sums_answer
from engines.optimizers import DECISIONS
from engines.records import read_record

__all__ = ["PrivateHandler", "run_statement"]


@dataclass(frozen=True, slots=True)
class _Options:
    threads: int
    memory_limit_mb: int
    temporary: str
    temporary_mb: int
    open_max: int


@dataclass(frozen=True, slots=True)
class _Table:
    """A table that statements share; parameters as `read_parameters` reads them."""

    name: str
    sql: str
    parameters: tuple[tuple[str, str | bool | None], ...]


@dataclass(frozen=True, slots=True)
class _Statement:
    """A generated statement: its parameters as `read_parameters` reads them, its keys with their kinds, its sums."""

    sql: str
    parameters: tuple[tuple[str, str | bool | None], ...]
    keys: tuple[tuple[str, str], ...]
    sums: tuple[str, ...]
    shared: tuple[_Table, ...] = ()
    kept: bool = False
    by_place: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class _Tables:
    """Shared tables that were made, for which lease, of which snapshot, and the cursor that has them."""

    lease: str
    snapshot: str
    tables: tuple[_Table, ...]
    cursor: duckdb.DuckDBPyConnection


class PrivateHandler:
    """Keeps a few snapshots open, runs one statement at a time on a fresh cursor."""

    def __init__(self, options: Mapping[str, object]) -> None:
        read = read_record(_Options, options)
        self._settings = private_settings(threads=read.threads, memory_limit_mb=read.memory_limit_mb)
        self._temporary = read.temporary
        self._temporary_mb = read.temporary_mb
        self._open_max = read.open_max
        self._open: OrderedDict[str, duckdb.DuckDBPyConnection] = OrderedDict()
        self._tables: _Tables | None = None
        self._design: tuple[str, Design] | None = None
        # The first result as arrays imports what it needs (0.2 s): now, not during the first query.
        with contextlib.closing(duckdb.connect(":memory:", config=self._settings)) as connection:
            connection.execute("SELECT 1 AS a, 'x' AS b").fetchnumpy()
            known = {str(name) for (name,) in connection.execute("FROM duckdb_optimizers()").fetchall()}
        # Another version of the engine may have an optimizer that nobody has judged yet: it may read rows.
        if known != set(DECISIONS):
            raise ValueError

    def between(self) -> None:
        """Nothing waits to be done."""

    def handle(self, frame: Frame) -> Answer:
        """Open a snapshot ahead, or run a statement on it."""
        header = frame.header
        if header["operation"] == "probe":
            return {"nanoseconds": probe_nanoseconds()}, ()
        lease = str(header.get("lease"))
        if header["operation"] == "sums":
            if self._design is None or self._design[0] != lease:
                raise ValueError
            return sums_answer(self._design[1], header)
        path, self._design = str(header["snapshot"]), None
        reads = header["operation"] not in ("open", "rows")
        statement = read_record(_Statement, header) if reads else None
        made, self._tables = self._tables, None
        asked = None if statement is None else (lease, path, statement.shared)
        if made is not None and (made.lease, made.snapshot, made.tables) != asked:
            made.cursor.close()
            made = None
        if header["operation"] == "rows":
            return self._keep_rows(path, lease, header)
        if statement is None:
            self._snapshot(path)
            return {}, ()
        with contextlib.ExitStack() as closing:
            cursor = self._snapshot(path).cursor() if made is None else made.cursor
            closing.callback(cursor.close)
            try:
                answer = _run(cursor, statement, make=made is None)
            except duckdb.OutOfMemoryException:
                raise MemoryError from None
            if statement.kept and statement.shared:
                self._tables = _Tables(lease, path, statement.shared, cursor)
                closing.pop_all()
        return answer

    def _keep_rows(self, path: str, lease: str, header: Mapping[str, object]) -> Answer:
        """Reads the rows of a model. The answer says nothing, not even how many there are.

        Beside them only their own snapshot stays open: the memory of the others is for the rows (engines/memory.py).
        """
        for other in [known for known in self._open if known != path]:
            self._open.pop(other).close()
        with contextlib.closing(self._snapshot(path).cursor()) as cursor:
            cursor.execute(f"SET VARIABLE seed = {secrets.randbits(63)}")
            try:
                self._design = lease, read_design(cursor, header)
            except duckdb.OutOfMemoryException:
                raise MemoryError from None
        return {}, ()

    def _snapshot(self, path: str) -> duckdb.DuckDBPyConnection:
        connection = self._open.get(path)
        if connection is None:
            while len(self._open) >= self._open_max:
                self._open.popitem(last=False)[1].close()
            connection = self._open[path] = self._open_snapshot(Path(path))
        self._open.move_to_end(path)
        return connection

    def _open_snapshot(self, path: Path) -> duckdb.DuckDBPyConnection:
        """Open so that no SQL can name the file again.

        External access off still lets SQL read the database's own file, by its path (read_blob, ATTACH). Turning
        off the local file system closes that, and spilling with it: then a large query would die instead of
        spilling. So the file is opened through a hard link that is removed at once, and the only path which the
        engine would accept no longer exists. Where links cannot be made, spilling is given up instead.
        """
        try:
            folder = Path(tempfile.mkdtemp(prefix=".open-", dir=path.parent))
        except OSError:
            return self._connect(path, local_files=False)
        link = folder / "snapshot.duckdb"
        try:
            try:
                os.link(path, link)
            except OSError:
                return self._connect(path, local_files=False)
            connection = self._connect(link, local_files=True)
        finally:
            link.unlink(missing_ok=True)
            folder.rmdir()
        return connection

    def _connect(self, path: Path, *, local_files: bool) -> duckdb.DuckDBPyConnection:
        spill = {"temp_directory": self._temporary, "max_temp_directory_size": f"{self._temporary_mb}MB"}
        connection = duckdb.connect(str(path), read_only=True, config={**self._settings, **spill})
        lock_down(connection, local_files=local_files)
        return connection


def run_statement(cursor: duckdb.DuckDBPyConnection, header: object) -> Answer:
    """The answer of a generated statement, on a snapshot or on its empty twin; what it shares is made for it alone."""
    return _run(cursor, read_record(_Statement, header), make=True)


def _run(cursor: duckdb.DuckDBPyConnection, statement: _Statement, *, make: bool) -> Answer:
    """The answer of a statement, whose shared tables are made first unless the cursor has them.

    Each run has a seed of its own, which decides where the engine's hash tables put groups, and into which blocks a
    sample-and-aggregate puts units.
    """
    cursor.execute(f"SET VARIABLE seed = {secrets.randbits(63)}")
    for table in statement.shared if make else ():
        make_table(cursor, table.name, table.sql, read_parameters(table.parameters))
    cursor.execute(only_statement(cursor, statement.sql), read_parameters(statement.parameters))
    described = cursor.description or []
    names = [str(column[0]) for column in described]
    types = [str(column[1]) for column in described]
    expected = [name for name, _ in statement.keys]
    expected += [f"{name}_{part}" for name in statement.sums for part in ("high", "low")]
    plain = len(expected)
    expected += [f"{name}_{part}" for name, _ in statement.by_place for part in PLACE_PARTS]
    if names != expected:
        raise ValueError
    if any(kind not in SIGNED for kind in types[len(statement.keys) : plain]):
        raise ValueError
    if any(kind != LISTS for kind in types[plain:]):
        raise ValueError
    kinds = [kind for _, kind in statement.keys] + ["integer"] * (2 * len(statement.sums))
    if statement.by_place:
        return places_result(cursor, types[:plain], kinds, [places for _, places in statement.by_place])
    return columns_result(cursor, names, types, kinds)
