"""Whether an analyst's text is the engine's dialect: parsed and bound on empty tables, never planned and never run.

The lift has read the text and accepted it, and is the only reader of its meaning. The engine is asked one thing:
whether it reads the text at all. Binding looks up names and types; no operator runs, and there is nothing here to
read: no row, no file, no network. A text that takes too long ends with the process.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import duckdb

from engines.described import TwinTable
from engines.handlers.connection import identifier, only_statement, read_parameters
from engines.handlers.layout import PLAIN_TYPES
from engines.records import read_record
from privacy.statement import Step
from privacy.values import Json

__all__ = ["Broken", "judge", "open_tables"]

_BEFORE: Final = re.compile(r"[;\s]*")
_DESCRIBE: Final = "DESCRIBE "
_DATABASE: Final = "noisegate texts"
_TAKEN: Final = frozenset(("main", "memory", "temp", "system", "pg_catalog", "information_schema"))
_BROKEN: Final = (duckdb.InternalException, duckdb.FatalException, duckdb.OutOfMemoryException)


@dataclass(frozen=True, slots=True)
class _Text:
    """A text and the values of its named parameters, as `read_parameters` reads them."""

    sql: str
    parameters: dict[str, tuple[str, str | bool | None]]


class Broken(Exception):
    """The engine failed inside, so this twin cannot be used any more."""


_WIDTH_BUCKET = """width_bucket(x, low, high, parts) AS CASE WHEN x < low THEN 0 WHEN x >= high THEN parts + 1
ELSE least(parts, CAST(floor((x - low) * parts / (high - low)) AS BIGINT) + 1) END"""
"""What texts may call and the engine has not: for the judgement of names and types (sql_rewrite/width_buckets.py)."""


def open_tables(
    twin: duckdb.DuckDBPyConnection, tables: Sequence[TwinTable], *, schema: str
) -> duckdb.DuckDBPyConnection:
    """A cursor on the tables as analysts see them: declared names and types, no row, nothing hidden.

    They are a database of their own beside the twin's, in the same engine: another engine would map its own memory.
    They are in "main" and in the schema of that name, unless the engine has its own use for the name. To be opened
    before the twin's configuration is locked, as the cursor has to choose its database.
    """
    seen = twin.cursor()
    seen.execute("SET errors_as_json = true")
    seen.execute(f"ATTACH ':memory:' AS {identifier(_DATABASE)}")
    seen.execute(f"USE {identifier(_DATABASE)}")
    schemas = ["main"]
    if schema.lower() not in _TAKEN:
        seen.execute(f"CREATE SCHEMA {identifier(schema)}")
        schemas.append(schema)
    for name in schemas:
        seen.execute(f"CREATE MACRO {identifier(name)}.{_WIDTH_BUCKET}")
    for table in tables:
        columns = ", ".join(f"{identifier(c.name)} {PLAIN_TYPES[c.type]}" for c in table.columns)
        for name in schemas:
            seen.execute(f"CREATE TABLE {identifier(name)}.{identifier(table.name)} ({columns})")
    return seen


def judge(seen: duckdb.DuckDBPyConnection, text: object) -> Mapping[str, Json] | None:
    """None when the engine reads the text; else at which step it stopped, and at which byte where it says so.

    Errors: Broken.
    """
    asked = read_record(_Text, text)
    whole, named = asked.sql, asked.parameters
    begins = _BEFORE.match(whole)
    offset = 0 if begins is None else begins.end()
    step = Step.READ
    try:
        # DESCRIBE before a query yields the names and types of its columns: it is bound and then forgotten.
        text_read = _DESCRIBE + whole[offset:]
        if [one.type for one in seen.extract_statements(text_read)] == [duckdb.StatementType.MULTI]:
            # PIVOT without a list: the engine reads it as several statements, one of which would ask rows for the
            # values. So it is read here and not bound; the lift has written out the declared values.
            return None
        statement = only_statement(seen, text_read)
        step = Step.BIND
        used = {name: read_parameters([named[name]])[0] for name in statement.named_parameters if name in named}
        seen.execute(statement, used or None).fetchall()
    except _BROKEN:
        raise Broken from None
    except (duckdb.Error, ValueError) as error:
        place = _place(error)
        if place is not None:
            place = max(0, place - len(_DESCRIBE) + len(whole[:offset].encode()))
        return {"step": step, "place": place}
    return None


def _place(error: Exception) -> int | None:
    """The byte at which the engine reports that it stopped. Nothing else of its message is read."""
    _, brace, rest = str(error).partition("{")
    try:
        return int(json.loads(brace + rest)["position"])
    except (ValueError, TypeError, LookupError):
        return None
