"""Whether an analyst's text is the engine's dialect: parsed and bound on empty tables, never planned and never run.

The lift has read the text and accepted it, and is the only reader of its meaning. The engine is asked for one thing:
whether it reads the text at all. Binding looks up names and types; no operator runs, and there is nothing here that
one could read: no row, no file, no network. A text that takes too long is ended with the process.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import duckdb

from engines.handlers.connection import identifier, lock_down, only_statement, private_settings, read_parameters
from engines.handlers.layout import PLAIN_TYPES

__all__ = ["Broken", "judge", "open_tables"]

_BEFORE: Final = re.compile(r"[;\s]*")
_DESCRIBE: Final = "DESCRIBE "
_TAKEN: Final = frozenset(("main", "memory", "temp", "system", "pg_catalog", "information_schema"))
_BROKEN: Final = (duckdb.InternalException, duckdb.FatalException, duckdb.OutOfMemoryException)


class Broken(Exception):
    """The engine failed inside, so this connection cannot be used any more."""


def open_tables(tables: Sequence[Mapping[str, Any]], *, schema: str, memory_limit_mb: int) -> duckdb.DuckDBPyConnection:
    """An in-memory database with the tables as analysts see them: declared names and types, no row, nothing hidden.

    They stand in "main" and in the schema of that name, unless the engine has its own use for the name.
    """
    own = {"temp_directory": "", "max_temp_directory_size": "0MB", "errors_as_json": "true"}
    connection = duckdb.connect(
        ":memory:", config={**private_settings(threads=1, memory_limit_mb=memory_limit_mb), **own}
    )
    schemas = ["main"]
    if schema.lower() not in _TAKEN:
        connection.execute(f"CREATE SCHEMA {identifier(schema)}")
        schemas.append(schema)
    for table in tables:
        columns = ", ".join(f"{identifier(c['name'])} {PLAIN_TYPES[str(c['type'])]}" for c in table["columns"])
        for name in schemas:
            connection.execute(f"CREATE TABLE {identifier(name)}.{identifier(str(table['name']))} ({columns})")
    lock_down(connection, local_files=False)
    return connection


def judge(connection: duckdb.DuckDBPyConnection, text: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """None when the engine reads the text; else at which step it stopped, and at which byte where it says so.

    Errors: Broken.
    """
    whole = str(text["sql"])
    begins = _BEFORE.match(whole)
    offset = 0 if begins is None else begins.end()
    step, named = "read", text["parameters"]
    with contextlib.closing(connection.cursor()) as cursor:
        try:
            # The one word before it makes of a query its columns' names and types: it is bound and then forgotten.
            statement = only_statement(cursor, _DESCRIBE + whole[offset:])
            step = "bind"
            used = {name: read_parameters([named[name]])[0] for name in statement.named_parameters if name in named}
            cursor.execute(statement, used or None)
        except _BROKEN:
            raise Broken from None
        except (duckdb.Error, ValueError) as error:
            place = _place(error)
            if place is not None:
                place = max(0, place - len(_DESCRIBE) + len(whole[:offset].encode()))
            return {"step": step, "place": place}
    return None


def _place(error: Exception) -> int | None:
    """The byte at which the engine says that it stopped. Nothing else of its message is read."""
    _, brace, rest = str(error).partition("{")
    try:
        return int(json.loads(brace + rest)["position"])
    except (ValueError, TypeError, LookupError):
        return None
