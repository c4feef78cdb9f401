"""Rows of a model in the private worker: read once in a lease, kept encoded, and added up when asked."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
import numpy as np

from engines.arrays import encode_values
from engines.design import Design, DesignColumn, Gathered, Whole
from engines.handler import Answer
from engines.handlers.connection import SIGNED, only_statement, read_parameters
from engines.records import read_record
from privacy.training import Clipping, Wanted

__all__ = ["gathered_rows", "read_design", "sums_answer"]


@dataclass(frozen=True, slots=True)
class _Rows:
    """The statement of the rows, its columns in order, and how they are encoded."""

    sql: str
    parameters: tuple[tuple[str, str | bool | None], ...]
    keys: tuple[tuple[str, str], ...]
    columns: tuple[DesignColumn, ...]
    label: DesignColumn
    label_place: int
    held: int
    clipping: Clipping
    clip: int


@dataclass(frozen=True, slots=True)
class _Sums:
    wanted: Wanted
    weights: tuple[int, ...]


def read_design(cursor: duckdb.DuckDBPyConnection, header: object) -> Design:
    """Reads and encodes the rows of a request. Errors: the engine's; ValueError for columns that are not declared."""
    asked = read_record(_Rows, header)
    return Design(
        gathered_rows(cursor, asked),
        asked.columns,
        asked.label,
        held=asked.held,
        clipping=asked.clipping,
        clip=asked.clip,
    )


def gathered_rows(cursor: duckdb.DuckDBPyConnection, asked: _Rows) -> Gathered:
    """The rows as arrays, the label apart."""
    cursor.execute(only_statement(cursor, asked.sql), read_parameters(asked.parameters))
    described = cursor.description or []
    if [str(column[0]) for column in described] != [name for name, _ in asked.keys]:
        raise ValueError
    if any(str(column[1]) not in SIGNED for column in described):
        raise ValueError
    arrays = cursor.fetchnumpy()
    columns: list[Whole] = []
    nulls = []
    for name, _ in asked.keys:
        array = arrays.pop(name)
        nulls.append(np.ma.getmaskarray(array))
        columns.append(np.ma.getdata(array).astype(np.int64))
    label, label_null = columns.pop(2 + asked.label_place), nulls.pop(2 + asked.label_place)
    return Gathered(
        units=columns[0],
        parts=columns[1],
        columns=columns[2:],
        nulls=nulls[2:],
        label=label,
        label_null=label_null,
    )


def sums_answer(design: Design, header: object) -> Answer:
    """The sums that a request asks for. Errors: ValueError for weights that do not fit."""
    asked = read_record(_Sums, header)
    sums = design.sums(asked.wanted, asked.weights)
    column = encode_values("huge", sums)
    return {"rows": len(sums), "columns": [column.description]}, column.buffers
