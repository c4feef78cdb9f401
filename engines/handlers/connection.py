"""What every engine connection of a worker shares: settings, the lock and one SELECT."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence

import duckdb

from engines.optimizers import PRIVATE_OFF, SHELL_OFF
from privacy.statement import Parameter
from privacy.values import Cell

__all__ = [
    "KINDS",
    "NULL_TYPES",
    "SIGNED",
    "identifier",
    "literal",
    "lock_down",
    "make_table",
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

SHARED_NAMES = frozenset({"unit$cells", "unit$norms"})
"""The only tables that a worker makes: no declared table can have such a name."""

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
        # Arrays instead of hash tables for groups of 16 bits (and NULL), which the engine knows by their type. Nothing
        # collects the least and the greatest value of others, so that they have none (engines/optimizers.md).
        "perfect_ht_threshold": "17",
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


def make_table(cursor: duckdb.DuckDBPyConnection, name: str, sql: str, parameters: Sequence[Parameter]) -> None:
    """Makes a table of the cursor's own, in memory that counts under its limit or spills: it ends with the cursor."""
    if name not in SHARED_NAMES:
        raise ValueError
    # A table is made of one SELECT, and what follows that would be a statement of its own. Read once: it takes a
    # millisecond.
    made = only_statement(cursor, f"CREATE TEMPORARY TABLE {identifier(name)} AS {sql}", duckdb.StatementType.CREATE)
    cursor.execute(made, list(parameters))


def only_statement(
    cursor: duckdb.DuckDBPyConnection, sql: str, kind: duckdb.StatementType = duckdb.StatementType.SELECT
) -> duckdb.Statement:
    """The one statement of a text, a SELECT. A second fence: what we generate is one SELECT by construction."""
    statements = cursor.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != kind:
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
