"""The shell worker: public SQL on released tables, a fresh in-memory database for every run."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import numpy.typing as npt

from engines.arrays import columns_of, decode_arrays, decode_values
from engines.frames import Frame, FrameFault
from engines.handler import Answer, Invalid
from engines.handlers.connection import (
    KINDS,
    NULL_TYPES,
    identifier,
    lock_down,
    only_statement,
    read_parameters,
    shell_settings,
)
from engines.handlers.layout import PLAIN_TYPES
from engines.handlers.plan import Twins
from engines.handlers.results import SPANS, columns_result
from engines.records import read_record
from privacy.statement import Parameter
from privacy.values import Json

__all__ = ["ShellHandler"]

_STORED = {**PLAIN_TYPES, "huge": "HUGEINT"}
_RESULT_KINDS = {**KINDS, **dict.fromkeys((*NULL_TYPES, SPANS), "text")}
_Received = tuple[Mapping[str, object], tuple[memoryview, ...]]
_DECIMAL = re.compile(r"DECIMAL\(\d{1,2},\d{1,2}\)\Z")
_BROKEN = (duckdb.InternalException, duckdb.FatalException, duckdb.OutOfMemoryException, duckdb.IOException)


@dataclass(frozen=True, slots=True)
class _Options:
    threads: int
    memory_limit_mb: int
    rows_max: int
    cells_max: int


@dataclass(frozen=True, slots=True)
class _Table:
    """A released table: the names and kinds of its columns, whose values are in the frame where it is filled."""

    name: str
    columns: tuple[tuple[str, str], ...]
    rows: int


_Sample = tuple[tuple[str | None, ...], ...]
"""One row for each table."""


@dataclass(frozen=True, slots=True)
class _Asked:
    tables: tuple[_Table, ...]
    sql: str
    parameters: tuple[tuple[str, str | bool | None], ...]
    rows_max: int | None = None
    text_max: int | None = None
    samples: tuple[_Sample, ...] = ()
    others: tuple[_Sample, ...] = ()


class ShellHandler:
    """Creates the released tables, runs or binds one SELECT over them, forgets everything."""

    def __init__(self, options: Mapping[str, object]) -> None:
        read = read_record(_Options, options)
        self._settings = shell_settings(threads=read.threads, memory_limit_mb=read.memory_limit_mb)
        self._rows_max = read.rows_max
        self._cells_max = read.cells_max
        self._twins = Twins()
        self._binding = self._open()
        self._fresh: duckdb.DuckDBPyConnection | None = self._open()
        self._used: duckdb.DuckDBPyConnection | None = None
        # The first arrays in and out import what they need: now, not during the first query.
        with contextlib.closing(self._binding.cursor()) as cursor:
            _warm(cursor)
            cursor.execute("SELECT CAST(1 AS DECIMAL(9, 1)), CAST(2 AS HUGEINT)").fetchall()

    def handle(self, frame: Frame) -> Answer:
        """Bind on empty tables ("check"), run on filled ones ("run"), or plan private statements on a twin ("plan")."""
        if frame.header["operation"] == "plan":
            return self._twins.plan(frame.header), ()
        asked = read_record(_Asked, frame.header)
        if frame.header["operation"] == "check":
            return self._check(asked), ()
        return self._run(asked, columns_of(frame))

    def between(self) -> None:
        """Close the last run's database and open and warm the next one while nobody waits (15 ms)."""
        if self._used is not None:
            self._used.close()
            self._used = None
        if self._fresh is None:
            self._fresh = self._open()
            _warm(self._fresh)

    def _open(self) -> duckdb.DuckDBPyConnection:
        no_spill = {"temp_directory": "", "max_temp_directory_size": "0MB"}
        connection = duckdb.connect(":memory:", config={**self._settings, **no_spill})
        connection.execute("SET GLOBAL errors_as_json = true")
        lock_down(connection, local_files=False)
        return connection

    def _check(self, asked: _Asked) -> Mapping[str, Json]:
        parameters = read_parameters(asked.parameters)
        # Binding changes nothing, and what it might change is rolled back: this database may stay open.
        with contextlib.closing(self._binding.cursor()) as cursor:
            try:
                _begin(cursor, asked.tables)
                described = _describe(cursor, asked.sql, parameters)
                fails = _fails_always(cursor, asked, parameters)
            except _Unreadable as unreadable:
                return {"described": [], "place": unreadable.place, "fails": False}
            finally:
                cursor.execute("ROLLBACK")
        return {"described": [] if fails else described, "place": None, "fails": fails}

    def _run(self, asked: _Asked, received: Sequence[_Received]) -> Answer:
        self._used = connection = self._fresh or self._open()
        self._fresh = None
        columns = iter(received)
        for table in asked.tables:
            _create(connection, table, columns)
        connection.execute(only_statement(connection, asked.sql), read_parameters(asked.parameters))
        described = [(str(column[0]), str(column[1])) for column in connection.description or []]
        kinds = [_result_kind(type_name) for _, type_name in described]
        names, types = [name for name, _ in described], [type_name for _, type_name in described]
        rows_max = min(self._rows_max, self._cells_max // len(names))
        if asked.rows_max is not None:
            rows_max = min(rows_max, asked.rows_max)
        header, buffers = columns_result(connection, names, types, kinds, rows_max=rows_max, text_max=asked.text_max)
        return {**header, "described": described}, buffers


def _warm(connection: duckdb.DuckDBPyConnection) -> None:
    """A table made and read: what a database does only the first time, on numbers that mean nothing."""
    connection.register("warm", {"a": np.arange(2), "b": np.array(["x", None], dtype=object)})
    connection.execute("CREATE TEMP TABLE made AS SELECT CAST(a AS BIGINT) AS a, CAST(b AS VARCHAR) AS b FROM warm")
    connection.unregister("warm")
    connection.execute("SELECT b, a / 2 AS h, rank() OVER (ORDER BY a) AS r FROM made ORDER BY b LIMIT 1").fetchnumpy()
    connection.execute("DROP TABLE made")


_DESCRIBE = "DESCRIBE "


def _describe(cursor: duckdb.DuckDBPyConnection, sql: str, parameters: list[Parameter]) -> list[tuple[str, str]]:
    try:
        only_statement(cursor, sql)
        rows = cursor.execute(_DESCRIBE + sql, parameters).fetchall()
    except _BROKEN:
        raise
    except (duckdb.ConversionException, duckdb.BinderException) as error:
        raise _Unreadable(str(error), len(_DESCRIBE)) from None
    except (duckdb.Error, ValueError):
        raise Invalid from None
    return [(str(row[0]), str(row[1])) for row in rows]


_UNREADABLE = re.compile(r"Could not convert string|field format|field value out of range|Unimplemented type for cast")
"""What the engine reports of a text that is not of the required type, whatever the other values are."""


class _Unreadable(Exception):
    """A value cannot be read as the type that it meets, or a name does not bind; `place` is its byte in the SQL."""

    def __init__(self, message: str, before: int) -> None:
        found = _PLACE.search(message)
        self.place = None if found is None else max(0, int(found[1]) - before)


_PLACE = re.compile(r'"position":"(\d{1,9})"')
"""Nothing else of the engine's message is read."""


def _begin(cursor: duckdb.DuckDBPyConnection, tables: Sequence[_Table]) -> None:
    """Makes empty tables, in a transaction that is not committed."""
    cursor.execute("BEGIN")
    for table in tables:
        columns = ", ".join(f"{identifier(name)} {_STORED[kind]}" for name, kind in table.columns)
        cursor.execute(f"CREATE TABLE {identifier(table.name)} ({columns})")


def _fails_always(cursor: duckdb.DuckDBPyConnection, asked: _Asked, parameters: list[Parameter]) -> bool:
    """Tries the samples, and the others where it matters: whether the statement fails whatever the numbers are.

    That is when it fails on each row of numbers, and on all of them together. The first sample has none: it shows what
    cannot be read. Errors: _Unreadable.
    """
    failed = (
        place
        for place, sample in enumerate(asked.samples)
        if not _tried(cursor, asked.tables, [sample], asked.sql, parameters)
    )
    if next(failed, len(asked.samples)) > 1 or not asked.others:
        return False
    rows = [*asked.samples[1:], *asked.others]
    for chosen in (*([row] for row in rows), rows):
        # The error has ended the transaction.
        cursor.execute("ROLLBACK")
        _begin(cursor, asked.tables)
        if _tried(cursor, asked.tables, chosen, asked.sql, parameters):
            return False
    return True


def _tried(
    cursor: duckdb.DuckDBPyConnection,
    tables: Sequence[_Table],
    samples: Sequence[_Sample],
    sql: str,
    parameters: list[Parameter],
) -> bool:
    """Runs the statement on the samples' rows; False when that fails for a reason that real rows may not have."""
    for place, table in enumerate(tables):
        values = ", ".join(f"CAST(? AS {_STORED[kind]})" for _, kind in table.columns)
        cursor.execute(f"DELETE FROM {identifier(table.name)}")
        for sample in samples:
            cursor.execute(f"INSERT INTO {identifier(table.name)} VALUES ({values})", list(sample[place]))
    # Into a table, for every column of every row is computed then, of types that nobody can carry away too.
    into = f"CREATE OR REPLACE TABLE {identifier('noisegate tried')} AS "
    try:
        cursor.execute(into + sql, parameters)
    except _BROKEN:
        raise
    except duckdb.ConversionException as error:
        if _UNREADABLE.search(str(error)):
            raise _Unreadable(str(error), len(into)) from None
        return False
    except (duckdb.Error, ValueError):
        return False
    return True


def _result_kind(type_name: str) -> str:
    """How a result type travels; Invalid for types that answers do not have."""
    kind = _RESULT_KINDS.get(type_name)
    if kind is not None:
        return kind
    if _DECIMAL.match(type_name):
        return "decimal"
    raise Invalid


def _create(connection: duckdb.DuckDBPyConnection, table: _Table, columns: Iterator[_Received]) -> None:
    arrays: dict[str, npt.NDArray[np.generic]] = {}
    parts: list[str] = []
    for position, (name, _) in enumerate(table.columns):
        description, buffers = next(columns)
        kind = str(description["kind"])
        arrays[f"c{position}"] = _array(description, buffers, table.rows)
        parts.append(f"CAST(c{position} AS {_STORED[kind]}) AS {identifier(name)}")
    if not parts:
        raise FrameFault
    # One name that no released table may have: it lives in the temporary catalogue only for this statement.
    source = "noisegate source"
    connection.register(source, arrays)
    connection.execute(
        f"CREATE TABLE main.{identifier(table.name)} AS SELECT {', '.join(parts)} FROM {identifier(source)}"
    )
    connection.unregister(source)


def _array(description: Mapping[str, object], buffers: Sequence[memoryview], rows: int) -> npt.NDArray[np.generic]:
    kind = str(description["kind"])
    if kind in ("text", "huge"):
        values = decode_values(description, buffers, rows)
        return np.array([None if value is None else str(value) for value in values], dtype=object)
    data, nulls = decode_arrays(description, buffers, rows)
    if kind == "boolean":
        data = data != 0
    elif kind in ("date", "timestamp"):
        # Days and microseconds since 1970; the engine reads both as timestamps.
        data = (data * (86_400_000_000 if kind == "date" else 1)).astype("M8[us]")
    return data if nulls is None else np.ma.masked_array(data, mask=nulls)
