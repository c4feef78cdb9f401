"""Results of an engine as columns of frames."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

import duckdb
import numpy as np
import numpy.typing as npt

from engines.arrays import CELL_BYTES, TIMESTAMP_RANGE, Column, encode_arrays, encode_values
from engines.handler import Answer
from engines.handlers.connection import KINDS, NULL_TYPES
from privacy.values import Cell

__all__ = ["LISTS", "SPANS", "columns_result", "places_result"]

LISTS = "BIGINT[]"
"""The type of a column of lists."""

SPANS = "INTERVAL"
"""The type of a column of intervals, which travel as text: 3 days 04:00:00, a month being 30 days."""


def columns_result(
    cursor: duckdb.DuckDBPyConnection,
    names: Sequence[str],
    types: Sequence[str],
    kinds: Sequence[str],
    *,
    rows_max: int | None = None,
    text_max: int | None = None,
) -> Answer:
    """Read every row of the cursor as columns of the kinds asked for.

    Errors: ValueError when a type does not fit, when there are more than `rows_max` rows, or when the strings have more
    than `text_max` bytes and more than `CELL_BYTES` for each value.
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
        shown = [_spans(column) if name == SPANS else column for name, column in zip(types, values, strict=True)]
        columns = [encode_values(kind, column) for kind, column in zip(kinds, shown, strict=True)]
    texts = sum(len(buffer) for column in columns if column.description["kind"] == "text" for buffer in column.buffers)
    if text_max is not None and texts > max(text_max, CELL_BYTES * rows * len(columns)):
        raise ValueError
    buffers = [buffer for column in columns for buffer in column.buffers]
    return {"rows": rows, "columns": [column.description for column in columns]}, buffers


def places_result(
    cursor: duckdb.DuckDBPyConnection, types: Sequence[str], kinds: Sequence[str], places: Sequence[int]
) -> Answer:
    """Read every row of the cursor: columns of the kinds asked for, then pairs of lists as integers by place.

    Each pair is one column of rows x places integers, zero where a place is not listed.
    Errors: ValueError when a type does not fit, or a list names a place twice or one that there is not.
    """
    if not all(_as_values(kind, name) for kind, name in zip(kinds, types, strict=True)):
        raise ValueError
    given: Sequence[Sequence[object] | npt.NDArray[np.generic]]
    if all(_as_array(kind, name) for kind, name in zip(kinds, types, strict=True)):
        # Lists are arrays then, and no number of theirs becomes an object.
        arrays = list(cursor.fetchnumpy().values())
        columns = [_array_column(kind, array) for kind, array in zip(kinds, arrays, strict=False)]
        given = [np.ma.getdata(array) for array in arrays]
    else:
        fetched = cursor.fetchall()
        values = list(zip(*fetched, strict=True)) if fetched else [()] * (len(kinds) + 2 * len(places))
        columns = [encode_values(kind, column) for kind, column in zip(kinds, values, strict=False)]
        given = values
    rows = len(given[-1])
    for item, count in enumerate(places):
        first = len(kinds) + 2 * item
        table = np.zeros((rows, count), dtype=np.int64)
        for row, lists in enumerate(zip(given[first], given[first + 1], strict=True)):
            _put(table[row], *[np.asarray(one, dtype=np.int64) for one in lists])
        columns.append(encode_arrays("integer", table.reshape(-1), None))
    buffers = [buffer for column in columns for buffer in column.buffers]
    return {"rows": rows, "columns": [column.description for column in columns]}, buffers


def _put(places: npt.NDArray[np.int64], found: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> None:
    """Writes the counts to the places found. Errors: ValueError, as of `places_result`."""
    if found.shape != counts.shape:
        raise ValueError
    if found.size and not 0 <= found.min() <= found.max() < places.size:
        raise ValueError
    listed = np.zeros(places.size, dtype=np.bool_)
    listed[found] = True
    if np.count_nonzero(listed) != found.size:
        raise ValueError
    places[found] = counts


def _spans(values: Sequence[object]) -> list[str | None]:
    """Intervals as the engine writes them, in days, hours, minutes and seconds, all of one sign."""
    return [None if value is None else _span(value) for value in values]


def _span(value: object) -> str:
    if not isinstance(value, datetime.timedelta):
        raise TypeError("a column of intervals holds something else")
    sign = "-" if value < datetime.timedelta(0) else ""
    size = abs(value)
    minutes, seconds = divmod(size.seconds, 60)
    clock = f"{sign}{minutes // 60:02}:{minutes % 60:02}:{seconds:02}"
    if size.microseconds:
        clock += f".{size.microseconds:06}".rstrip("0")
    days = f"{sign}{size.days} day{'' if size.days == 1 else 's'}" if size.days else ""
    return " ".join(part for part in (days, clock if size.seconds or size.microseconds or not days else "") if part)


def _as_array(kind: str, type_name: str) -> bool:
    return kind != "huge" and KINDS.get(type_name) == kind


def _as_values(kind: str, type_name: str) -> bool:
    if kind == "text" and (type_name.startswith("ENUM(") or type_name in (*NULL_TYPES, SPANS)):
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
