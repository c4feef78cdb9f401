"""Counts the units of a snapshot that share the values of some columns. One task of the attaching worker.

The owner asks, and true counts leave: an analyst's way never comes here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

import duckdb

from engines.classes import Coarse, Spread
from engines.handlers.connection import Settings, identifier, lock_down, one_row

__all__ = ["ClassesRequest", "sizes_of", "spreads_of"]

_UNIT = '"unit$id"'
_NUMBERS = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "DOUBLE"})


@dataclass(frozen=True, slots=True)
class ClassesRequest:
    """A table of people in a snapshot, and columns of it."""

    snapshot: str
    table: str
    columns: tuple[Coarse, ...]


def sizes_of(request: ClassesRequest, config: Settings) -> list[list[int]]:
    """How many units there are for each size of the smallest of their classes."""
    with _opened(request, config) as (connection, table):
        parts = [_expression(column) for column in request.columns if column.kept != "hidden"]
        same = f"row({', '.join(parts)})" if parts else "0"
        found = connection.execute(
            f"WITH pairs AS (SELECT DISTINCT {_UNIT} AS unit, {same} AS class FROM {table}), "
            "sized AS (SELECT unit, count(*) OVER (PARTITION BY class) AS size FROM pairs), "
            "least AS (SELECT unit, min(size) AS size FROM sized GROUP BY unit) "
            "SELECT size, count(*) FROM least GROUP BY size ORDER BY size"
        ).fetchall()
    return [[int(size), int(units)] for size, units in found]


def spreads_of(request: ClassesRequest, config: Settings) -> list[Spread]:
    """What coarser forms of the columns follow from."""
    with _opened(request, config) as (connection, table):
        types = dict(connection.execute(f"SELECT column_name, column_type FROM (DESCRIBE {table})").fetchall())
        return [_spread(connection, table, column.column, types[column.column]) for column in request.columns]


def _spread(connection: duckdb.DuckDBPyConnection, table: str, name: str, type_name: str) -> Spread:
    value = identifier(name)
    finite = f"isfinite({value})" if type_name == "DOUBLE" else "true"
    number = f"max({value}) FILTER ({finite})::DOUBLE - min({value}) FILTER ({finite})::DOUBLE"
    span = number if type_name in _NUMBERS else "0.0"
    long = f"max(length(CAST({value} AS VARCHAR)))"
    values, found, length = one_row(
        connection, f"SELECT count(DISTINCT {value}), coalesce({span}, 0.0), coalesce({long}, 0) FROM {table}"
    )
    return Spread(int(values), float(found), int(length))


def _expression(column: Coarse) -> str:
    value = identifier(column.column)
    match column.kept:
        case "exact":
            return value
        case "width":
            # floor of a DOUBLE: NaN and infinities are classes of their own.
            return f"floor(CAST({value} AS DOUBLE) / {int(column.size)})"
        case "prefix":
            return f"left(CAST({value} AS VARCHAR), {int(column.size)})"
        case "day" | "month" | "year":
            return f"date_trunc('{column.kept}', {value})"
        case "hidden":
            return "0"
        case _:
            assert_never(column.kept)


@contextlib.contextmanager
def _opened(request: ClassesRequest, config: Settings) -> Iterator[tuple[duckdb.DuckDBPyConnection, str]]:
    table = f"main.{identifier(request.table)}"
    with contextlib.closing(duckdb.connect(request.snapshot, read_only=True, config=config)) as connection:
        lock_down(connection, local_files=False)
        yield connection, table
