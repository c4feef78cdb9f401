"""Columns in the buffers of frames: values of one kind each, checked one by one when they are read.

    column = {"kind": ..., "nulls": bool} in the header and one data buffer (and one byte per value for NULLs)

Kinds: integer (i64), number (f64), boolean (u8), date (i64 days since 1970), timestamp (i64 microseconds since
1970), text (JSON list of strings), huge (JSON list of whole numbers as text), decimal (JSON list of numbers as text).
"""

from __future__ import annotations

import datetime
import decimal
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engines.frames import Frame, FrameFault
from privacy.values import Cell, Json

__all__ = [
    "CELL_BYTES",
    "DATE_RANGE",
    "TIMESTAMP_RANGE",
    "Column",
    "columns_of",
    "decode_arrays",
    "decode_integers",
    "decode_values",
    "encode_arrays",
    "encode_values",
]

_DIGITS_MAX = 80
"""Most characters of a number that travels as text."""

_EPOCH = datetime.date(1970, 1, 1)
_MOMENT = datetime.datetime(1970, 1, 1)
DATE_RANGE = ((datetime.date.min - _EPOCH).days, (datetime.date.max - _EPOCH).days)
"""Days since 1970-01-01 of the first and last date of the query language."""
TIMESTAMP_RANGE = (DATE_RANGE[0] * 86_400_000_000, (DATE_RANGE[1] + 1) * 86_400_000_000 - 1)
"""Microseconds since 1970-01-01 of the first and last timestamp of the query language."""

Fixed = npt.NDArray[np.int64] | npt.NDArray[np.float64] | npt.NDArray[np.uint8]
"""The data of a column whose values have one width each."""

_DTYPES: dict[str, npt.DTypeLike] = {
    "integer": np.dtype("<i8"),
    "number": np.dtype("<f8"),
    "boolean": np.dtype("u1"),
    "date": np.dtype("<i8"),
    "timestamp": np.dtype("<i8"),
}
CELL_BYTES = 64
"""Bytes of text that a result may have for each of its values, however few it may have altogether: about as many as are
stored beside it as numbers."""

_AS_TEXT = ("text", "huge", "decimal")
"""Kinds whose values travel as JSON text."""


@dataclass(frozen=True, slots=True, repr=False)
class Column:
    """One encoded column: its description for the header and its one or two buffers."""

    description: Mapping[str, Json]
    buffers: tuple[bytes, ...]


# ---------------------------------------------------------------------------------------------------- frames


def encode_arrays(kind: str, data: npt.NDArray[np.generic], nulls: npt.NDArray[np.bool_] | None) -> Column:
    """A column of a fixed-width kind from arrays; `nulls` marks the values that are NULL."""
    values = np.ascontiguousarray(data, dtype=_DTYPES[kind])
    if nulls is None or not nulls.any():
        return Column({"kind": kind, "nulls": False}, (values.tobytes(),))
    return Column({"kind": kind, "nulls": True}, (values.tobytes(), np.ascontiguousarray(nulls, dtype="u1").tobytes()))


def encode_values(kind: str, values: Sequence[Cell]) -> Column:
    """A column from Python values, None for NULL.

    Errors: ValueError, TypeError or OverflowError when a value does not fit the kind.
    """
    if kind == "decimal":
        return _json_column(kind, [None if value is None else str(_decimal(value)) for value in values])
    if kind == "huge":
        return _json_column(kind, [None if value is None else str(_whole(value)) for value in values])
    if kind == "text":
        return _json_column(kind, [None if value is None else _text(value) for value in values])
    quick = np.asarray(values) if kind in ("integer", "number") else None
    if quick is not None and quick.ndim == 1 and quick.dtype.kind in ("i" if kind == "integer" else "if"):
        return encode_arrays(kind, quick, None)
    nulls = np.fromiter((value is None for value in values), dtype=np.bool_, count=len(values))
    if kind == "date":
        listed = [0 if value is None else (_plain_date(value) - _EPOCH).days for value in values]
    elif kind == "timestamp":
        listed = [0 if value is None else _microseconds(value) for value in values]
    elif kind == "number":
        return encode_arrays(kind, np.array([0.0 if value is None else _fraction(value) for value in values]), nulls)
    elif kind == "boolean":
        if not all(value is None or isinstance(value, bool | np.bool_) for value in values):
            raise TypeError("a boolean column holds something else")
        listed = [bool(value) for value in values]
    else:
        listed = [0 if value is None else _whole(value) for value in values]
    return encode_arrays(kind, np.array(listed, dtype=_DTYPES[kind]), nulls)


def decode_values(description: Mapping[str, object], buffers: Sequence[memoryview], rows: int) -> list[Cell]:
    """The Python values of a column, None for NULL. FrameFault unless there are exactly `rows` valid values."""
    kind = _kind(description)
    if kind in _AS_TEXT:
        texts = _json_list(buffers, rows)
        if kind == "text":
            return [*texts]
        parse = _parse_whole if kind == "huge" else _parse_decimal
        return [None if text is None else parse(text) for text in texts]
    data, nulls = decode_arrays(description, buffers, rows)
    if nulls is not None:
        data = data.copy()
        data[nulls] = 0
    values: list[Cell]
    if kind == "boolean":
        if (data > 1).any():
            raise FrameFault
        values = data.astype(np.bool_).tolist()
    elif kind == "date":
        _check_range(data, DATE_RANGE)
        values = data.astype("datetime64[D]").tolist()
    elif kind == "timestamp":
        _check_range(data, TIMESTAMP_RANGE)
        values = data.astype("datetime64[us]").tolist()
    else:
        values = data.tolist()
    if nulls is not None:
        for index in np.flatnonzero(nulls).tolist():
            values[index] = None
    return values


def decode_integers(
    description: Mapping[str, object], buffers: Sequence[memoryview], rows: int
) -> npt.NDArray[np.int64]:
    """A column of `rows` 64-bit integers without NULL."""
    if _kind(description) != "integer":
        raise FrameFault
    data, nulls = decode_arrays(description, buffers, rows)
    if nulls is not None:
        raise FrameFault
    return data.astype(np.int64)


def columns_of(frame: Frame) -> list[tuple[Mapping[str, object], tuple[memoryview, ...]]]:
    """Pair the column descriptions of a frame with their buffers, all buffers used exactly once."""
    descriptions = frame.header.get("columns")
    if not isinstance(descriptions, list):
        raise FrameFault
    pairs: list[tuple[Mapping[str, object], tuple[memoryview, ...]]] = []
    position = 0
    for description in descriptions:
        _kind(description)
        count = 2 if description.get("nulls") is True else 1
        pairs.append((description, frame.buffers[position : position + count]))
        position += count
    if position != len(frame.buffers):
        raise FrameFault
    return pairs


def _kind(description: object) -> str:
    kind = description.get("kind") if isinstance(description, dict) else None
    if kind not in _DTYPES and kind not in _AS_TEXT:
        raise FrameFault
    return str(kind)


def decode_arrays(
    description: Mapping[str, object], buffers: Sequence[memoryview], rows: int
) -> tuple[Fixed, npt.NDArray[np.bool_] | None]:
    """Data of a fixed-width column and the mask of its NULLs, as views on the buffers."""
    dtype = np.dtype(_DTYPES[_kind(description)])
    has_nulls = description.get("nulls") is True
    if len(buffers) != 1 + has_nulls or len(buffers[0]) != rows * dtype.itemsize:
        raise FrameFault
    data = np.frombuffer(buffers[0], dtype=dtype)
    if not has_nulls:
        return data, None
    if len(buffers[1]) != rows:
        raise FrameFault
    return data, np.frombuffer(buffers[1], dtype="u1") != 0


def _json_list(buffers: Sequence[memoryview], rows: int) -> list[str | None]:
    if len(buffers) != 1:
        raise FrameFault
    try:
        listed = json.loads(bytes(buffers[0]))
    except (ValueError, RecursionError):
        listed = None
    if not isinstance(listed, list) or len(listed) != rows:
        raise FrameFault
    if not all(item is None or type(item) is str for item in listed):
        raise FrameFault
    return listed


def _json_column(kind: str, listed: Sequence[Json]) -> Column:
    text = json.dumps(listed, ensure_ascii=False, separators=(",", ":"))
    return Column({"kind": kind, "nulls": False}, (text.encode(),))


def _check_range(data: Fixed, limits: tuple[int, int]) -> None:
    if data.size and (int(data.min()) < limits[0] or int(data.max()) > limits[1]):
        raise FrameFault


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("a text column holds something else")
    return value


def _fraction(value: object) -> float:
    if not isinstance(value, int | float | decimal.Decimal | np.number):
        raise TypeError("a column of numbers holds something else")
    return float(value)


def _whole(value: object) -> int:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError("an integer column holds something else")
    return int(value)


def _parse_whole(text: str) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS_MAX):
        raise FrameFault
    return int(text)


def _decimal(value: object) -> decimal.Decimal:
    if not isinstance(value, decimal.Decimal):
        raise TypeError("a decimal column holds something else")
    return value


def _parse_decimal(text: str) -> decimal.Decimal:
    try:
        value = decimal.Decimal(text)
    except decimal.InvalidOperation:
        raise FrameFault from None
    if not value.is_finite() or len(text) > _DIGITS_MAX:
        raise FrameFault
    return value


def _plain_date(value: object) -> datetime.date:
    if not isinstance(value, datetime.date) or isinstance(value, datetime.datetime):
        raise TypeError("a date column holds something else")
    return value


def _microseconds(value: object) -> int:
    if not isinstance(value, datetime.datetime) or value.tzinfo is not None:
        raise TypeError("a timestamp column holds something else")
    return (value - _MOMENT) // datetime.timedelta(microseconds=1)
