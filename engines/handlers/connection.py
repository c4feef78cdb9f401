"""What every engine connection of a worker shares: settings, the lock, one SELECT, results as columns."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence

import duckdb
import numpy as np
import numpy.typing as npt

from engines.frames import TIMESTAMP_RANGE, Column, encode_arrays, encode_values
from engines.handler import Answer
from engines.optimizers import PRIVATE_OFF, SHELL_OFF
from privacy.statement import Parameter
from privacy.values import Cell

__all__ = [
    "KINDS",
    "NULL_TYPES",
    "SIGNED",
    "columns_result",
    "identifier",
    "literal",
    "lock_down",
    "one_number",
    "one_row",
    "only_statement",
    "private_settings",
    "read_parameters",
    "settings",
    "shell_settings",
]

KINDS = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"), "integer"),
    **dict.fromkeys(("UBIGINT", "HUGEINT", "UHUGEINT"), "huge"),
    **dict.fromkeys(("DOUBLE", "FLOAT"), "number"),
    "VARCHAR": "text",
    "BOOLEAN": "boolean",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
}
"""How values of a type travel."""

Settings = dict[str, str | bool | int | float | list[str]]
SIGNED = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT"})
_PARAMETERS: Mapping[str, Callable[[str], Parameter]] = {
    "plain": str,
    "integer": int,
    "number": float.fromhex,
    "date": datetime.date.fromisoformat,
    "timestamp": datetime.datetime.fromisoformat,
}
NULL_TYPES = ("NULL", '"NULL"')
"""How the engine calls the type of a column of NULLs."""


def settings(*, threads: int, memory_limit_mb: int) -> Settings:
    """Settings of every connection, given when it is opened (SECURITY: what each closes)."""
    return {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_community_extensions": "false",
        "allow_unsigned_extensions": "false",
        "allow_extension_repositories": "forbidden",
        "python_enable_replacements": "false",
        "allow_persistent_secrets": "false",
        "threads": str(threads),
        "memory_limit": f"{memory_limit_mb}MB",
        # Non-raising arithmetic: an error that depends on a row is an answer.
        "error_on_division_by_zero": "false",
        "ieee_floating_point_ops": "true",
        # Rewrites bounding windows into a heap aggregate that cannot spill and has had wrong results.
        "disabled_optimizers": "top_n_window_elimination",
    }


def private_settings(*, threads: int, memory_limit_mb: int) -> Settings:
    """Settings of connections to true data and to their empty twins: plans are functions of text and schema."""
    return {
        **settings(threads=threads, memory_limit_mb=memory_limit_mb),
        "disabled_optimizers": ",".join(sorted(PRIVATE_OFF)),
        # No arrays with one entry for each value between the least and the greatest group.
        "perfect_ht_threshold": "0",
    }


def shell_settings(*, threads: int, memory_limit_mb: int) -> Settings:
    """Settings of connections to released numbers."""
    return {
        **settings(threads=threads, memory_limit_mb=memory_limit_mb),
        "disabled_optimizers": ",".join(sorted(SHELL_OFF)),
    }


def lock_down(connection: duckdb.DuckDBPyConnection, *, local_files: bool) -> None:
    """Close what can be closed only after opening; the lock comes last."""
    connection.execute("SET enable_external_access=false")
    if not local_files:
        connection.execute("SET disabled_filesystems='LocalFileSystem'")
    connection.execute("SET lock_configuration=true")


def identifier(name: str) -> str:
    """The name as a quoted identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """The text as a string literal."""
    return "'" + text.replace("'", "''") + "'"


def only_statement(cursor: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement:
    """The one SELECT of a text. A second fence: what we generate is one SELECT by construction."""
    statements = cursor.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise ValueError
    return statements[0]


def one_row(connection: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[Cell] = ()) -> list[int]:
    """The one row of a query that counts."""
    row = connection.execute(sql, list(parameters)).fetchone()
    assert row is not None
    return [int(value) for value in row]


def one_number(connection: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[Cell] = ()) -> int:
    """The one number of a query that counts."""
    (number,) = one_row(connection, sql, parameters)
    return number


def read_parameters(items: Sequence[Sequence[str | bool | None]]) -> list[Parameter]:
    """Parameter values of a request: pairs of a type word and a JSON value."""
    return [_PARAMETERS[str(word)](content) if isinstance(content, str) else content for word, content in items]


def columns_result(
    cursor: duckdb.DuckDBPyConnection,
    names: Sequence[str],
    types: Sequence[str],
    kinds: Sequence[str],
    *,
    rows_max: int | None = None,
) -> Answer:
    """Read every row of the cursor as columns of the kinds asked for.

    Errors: ValueError when a type does not fit, or when there are more than `rows_max` rows.
    """
    distinct = len(set(names)) == len(names)
    if distinct and all(_as_array(kind, name) for kind, name in zip(kinds, types, strict=True)):
        arrays = cursor.fetchnumpy()
        rows = len(next(iter(arrays.values()))) if arrays else 0
        if rows_max is not None and rows > rows_max:
            raise ValueError
        columns = [_array_column(kind, arrays[name]) for kind, name in zip(kinds, names, strict=True)]
    else:
        # Dictionary keys and wide integers have no exact array form; equal names would hide one another.
        if not all(_as_values(kind, name) for kind, name in zip(kinds, types, strict=True)):
            raise ValueError
        fetched = cursor.fetchall() if rows_max is None else cursor.fetchmany(rows_max + 1)
        rows = len(fetched)
        if rows_max is not None and rows > rows_max:
            raise ValueError
        values: Sequence[Sequence[Cell]] = list(zip(*fetched, strict=True)) if fetched else [()] * len(kinds)
        columns = [encode_values(kind, column) for kind, column in zip(kinds, values, strict=True)]
    buffers = [buffer for column in columns for buffer in column.buffers]
    return {"rows": rows, "columns": [column.description for column in columns]}, buffers


def _as_array(kind: str, type_name: str) -> bool:
    return kind != "huge" and KINDS.get(type_name) == kind


def _as_values(kind: str, type_name: str) -> bool:
    if kind == "text" and (type_name.startswith("ENUM(") or type_name in NULL_TYPES):
        return True
    if kind == "decimal" and type_name.startswith("DECIMAL("):
        return True
    if kind in ("integer", "huge") and KINDS.get(type_name) in ("integer", "huge"):
        return True
    return _as_array(kind, type_name)


def _array_column(kind: str, array: npt.NDArray[np.generic]) -> Column:
    nulls = np.ma.getmaskarray(array) if isinstance(array, np.ma.MaskedArray) else None
    data = np.ma.getdata(array)
    if kind == "text":
        return encode_values(kind, array.tolist())
    if kind in ("date", "timestamp"):
        micros = data.astype("datetime64[us]").astype(np.int64)
        shown = micros if nulls is None else micros[~nulls]
        if shown.size and (shown.min() < TIMESTAMP_RANGE[0] or shown.max() > TIMESTAMP_RANGE[1]):
            raise ValueError
        if kind == "timestamp":
            return encode_arrays(kind, micros, nulls)
        days = np.floor_divide(micros, 86_400_000_000)
        return encode_arrays(kind, days, nulls)
    return encode_arrays(kind, data, nulls)
