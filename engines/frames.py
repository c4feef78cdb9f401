"""Frames between the server and its workers: a JSON header and plain little-endian buffers, nothing that can run.

A worker may have been taken over by a hostile query, so what it sends is parsed as data only: no pickle, no class
names, every length checked before memory is taken, every value checked against the kind that was asked for.

    frame  = prefix, header, body
    prefix = magic "NGF1", header bytes (u32), body bytes (u64), little-endian
    header = JSON object; "buffers" lists the length of each buffer of the body
    column = {"kind": ..., "nulls": bool} in the header and one data buffer (and one byte per value for NULLs)

Kinds: integer (i64), number (f64), boolean (u8), date (i64 days since 1970), timestamp (i64 microseconds since
1970), text (JSON list of strings), huge (JSON list of whole numbers as text), decimal (JSON list of numbers as text).
"""

from __future__ import annotations

import datetime
import decimal
import json
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from privacy.values import Cell, Json

__all__ = [
    "DATE_RANGE",
    "TIMESTAMP_RANGE",
    "Column",
    "Frame",
    "FrameCut",
    "FrameFault",
    "columns_of",
    "decode_arrays",
    "decode_integers",
    "decode_values",
    "encode_arrays",
    "encode_values",
    "receive_frame",
    "send_frame",
]

_MAGIC = b"NGF1"
_PREFIX = struct.Struct("<4sIQ")
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
_AS_TEXT = ("text", "huge", "decimal")
"""Kinds whose values travel as JSON text."""


class FrameFault(Exception):
    """A malformed frame. The text is constant: a fault never quotes the frame."""

    def __init__(self) -> None:
        super().__init__("malformed frame")


class FrameCut(FrameFault):
    """The other side ended in the middle of a frame."""


@dataclass(frozen=True, slots=True, repr=False)
class Frame:
    """One parsed frame: the header without its buffer list, and the buffers. Has no readable repr on purpose."""

    header: Mapping[str, object]
    buffers: tuple[memoryview, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Column:
    """One encoded column: its description for the header and its one or two buffers."""

    description: Mapping[str, Json]
    buffers: tuple[bytes, ...]


# ---------------------------------------------------------------------------------------------------- frames


def send_frame(connection: socket.socket, header: Mapping[str, Json], buffers: Sequence[bytes] = ()) -> None:
    """Write one frame. Blocks as the socket does; OSError when the other side is gone."""
    document = {**header, "buffers": [len(buffer) for buffer in buffers]}
    head = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    prefix = _PREFIX.pack(_MAGIC, len(head), sum(len(buffer) for buffer in buffers))
    if sum(len(buffer) for buffer in buffers) < 1 << 16:
        connection.sendall(b"".join((prefix, head, *buffers)))
        return
    connection.sendall(prefix + head)
    for buffer in buffers:
        connection.sendall(buffer)


def receive_frame(connection: socket.socket, *, bytes_max: int, deadline: float | None = None) -> Frame | None:
    """Read one frame of at most `bytes_max` bytes, or None when the other side closed between frames.

    Errors: FrameFault for a frame that is malformed or too large, FrameCut for one cut off; TimeoutError when the
    monotonic clock passes `deadline` first.
    """
    prefix = _receive(connection, _PREFIX.size, deadline, end_allowed=True)
    if prefix is None:
        return None
    magic, head_size, body_size = _PREFIX.unpack(prefix)
    if magic != _MAGIC or head_size + body_size > bytes_max:
        raise FrameFault
    head = _receive(connection, head_size, deadline)
    body = _receive(connection, body_size, deadline)
    assert head is not None
    assert body is not None
    try:
        header = json.loads(bytes(head))
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict):
        raise FrameFault
    sizes = header.pop("buffers", None)
    if (
        not isinstance(sizes, list)
        or not all(type(size) is int and 0 <= size <= body_size for size in sizes)
        or sum(sizes) != body_size
    ):
        raise FrameFault
    buffers: list[memoryview] = []
    start = 0
    for size in sizes:
        buffers.append(body[start : start + size])
        start += size
    return Frame(header, tuple(buffers))


def _receive(
    connection: socket.socket, size: int, deadline: float | None, *, end_allowed: bool = False
) -> memoryview | None:
    view = memoryview(bytearray(size))
    got = 0
    while got < size:
        if deadline is not None:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise TimeoutError
            connection.settimeout(remaining)
        count = connection.recv_into(view[got:])
        if count == 0:
            if end_allowed and got == 0:
                return None
            raise FrameCut
        got += count
    return view


# --------------------------------------------------------------------------------------------------- columns


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
