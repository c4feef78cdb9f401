"""Frames: what goes in comes out, and bytes of a hostile worker are refused as data, never run or trusted."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import json
import pickle
import socket
import struct
import threading
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.arrays import (
    columns_of,
    decode_integers,
    decode_values,
    encode_values,
)
from engines.frames import Frame, FrameFault, receive_frame, send_frame

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "integer": st.integers(-(2**63), 2**63 - 1),
    "huge": st.integers(-(2**127), 2**127),
    "number": st.floats(allow_nan=False),
    "boolean": st.booleans(),
    "date": st.dates(),
    "timestamp": st.datetimes(),
    "text": st.text(st.characters(exclude_categories=["Cs"])),
    "decimal": st.decimals(allow_nan=False, allow_infinity=False, places=9, min_value=-(10**28), max_value=10**28),
}


@pytest.mark.sparse(3)
@pytest.mark.parametrize("kind", sorted(VALUES))
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_columns_survive(kind: str, data: st.DataObject) -> None:
    """Every kind of column comes back as it was, NULL and the edges of the type included."""
    values = data.draw(st.lists(st.none() | VALUES[kind], max_size=20))
    column = encode_values(kind, values)
    described = json.loads(json.dumps(column.description))
    assert decode_values(described, [memoryview(buffer) for buffer in column.buffers], len(values)) == values


@pytest.mark.parametrize(
    ("kind", "item"),
    [
        ("huge", "1e9"),
        ("huge", 5),
        ("huge", "9" * 81),
        ("huge", ""),
        ("decimal", "NaN"),
        ("decimal", "-Infinity"),
        ("decimal", "1" * 81),
        ("decimal", "1,5"),
        ("decimal", 1.5),
        ("decimal", {"n": "1"}),
    ],
)
def test_numbers_as_text_that_nobody_writes_are_refused(kind: str, item: object) -> None:
    """Anything but a finite number of moderate length is a fault without content."""
    with pytest.raises(FrameFault):
        decode_values({"kind": kind, "nulls": False}, [memoryview(json.dumps([item]).encode())], 1)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("integer", [True]),
        ("integer", [1.0]),
        ("integer", [2**63]),
        ("integer", ["1"]),
        ("huge", [1.5]),
        ("text", [1]),
        ("boolean", [1]),
        ("date", [datetime.datetime(2020, 1, 1)]),
        ("timestamp", [datetime.date(2020, 1, 1)]),
        ("timestamp", [datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)]),
        ("decimal", [1]),
        ("decimal", [0.5]),
    ],
)
def test_values_of_another_type_are_not_sent(kind: str, values: list[object]) -> None:
    """A column is what it says: nothing is cast on the way out."""
    with pytest.raises((TypeError, ValueError, OverflowError)):
        encode_values(kind, values)


def _through(payload: bytes, *, bytes_max: int = 1 << 20) -> Frame | None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        sender = threading.Thread(target=lambda: (theirs.sendall(payload), theirs.close()))
        sender.start()
        try:
            return receive_frame(ours, bytes_max=bytes_max, deadline=time.monotonic() + 5)
        finally:
            sender.join()


def _frame(head: bytes, body: bytes = b"", *, magic: bytes = b"NGF1") -> bytes:
    return struct.pack("<4sIQ", magic, len(head), len(body)) + head + body


def test_frames_survive() -> None:
    """Header and buffers come back, also when they are larger than the socket's buffer."""
    ours, theirs = socket.socketpair()
    buffers = [b"x" * 300_000, b"", b"yz"]
    with ours, theirs:
        sender = threading.Thread(target=send_frame, args=(theirs, {"a": ["ü", 1]}, buffers))
        sender.start()
        frame = receive_frame(ours, bytes_max=1 << 20, deadline=time.monotonic() + 5)
        sender.join()
    assert frame is not None
    assert frame.header == {"a": ["ü", 1]}
    assert [bytes(buffer) for buffer in frame.buffers] == buffers
    assert "ü" not in repr(frame)


@pytest.mark.parametrize(
    "payload",
    [
        b"NGF",
        _frame(b"{}", magic=b"EVIL"),
        _frame(b"{}"),
        _frame(b"[]"),
        _frame(b"{"),
        _frame(b"\xff"),
        _frame(b"[" * 100_000),
        _frame(b'{"buffers":[1]}'),
        _frame(b'{"buffers":[-1,2]}', b"x"),
        _frame(b'{"buffers":[true]}', b"x"),
        _frame(b'{"buffers":[0.5]}', b"x"),
        _frame(b'{"buffers":{"a":1}}', b"x"),
        _frame(pickle.dumps(OSError("boom"))),
        _frame(b'{"buffers":[]}')[:-1],
        struct.pack("<4sIQ", b"NGF1", 2, 2**63) + b"{}",
    ],
)
def test_malformed_frames_are_refused(payload: bytes) -> None:
    """Cut, oversized, wrongly counted, nested and pickled frames are one fault, and take no memory first."""
    with pytest.raises(FrameFault):
        _through(payload)


def test_the_end_between_frames_is_not_a_fault() -> None:
    """A closed connection is told apart from a broken frame."""
    assert _through(b"") is None


def test_receiving_stops_at_the_deadline() -> None:
    """Bytes that drip in do not move the deadline."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        over = threading.Event()

        def drip() -> None:
            # By itself this would end after hours.
            theirs.sendall(_frame(b"x" * (1 << 19))[:64])
            while not over.wait(0.01):
                theirs.sendall(b"x")

        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            with pytest.raises(TimeoutError):
                receive_frame(ours, bytes_max=1 << 20, deadline=time.monotonic() + 0.2)
        finally:
            over.set()
            dripping.join()


@settings(max_examples=200, deadline=None)
@given(
    description=st.fixed_dictionaries(
        {"kind": st.sampled_from([*VALUES, "any", "pickle"]), "nulls": st.booleans() | st.integers()}
    )
    | st.none()
    | st.lists(st.integers()),
    buffers=st.lists(st.binary(max_size=40) | st.sampled_from([b"[1]", b'["a"]', b"[null]", b'["1.5"]']), max_size=3),
    rows=st.integers(0, 5),
)
def test_hostile_columns_give_valid_values_or_a_fault(description: Any, buffers: list[bytes], rows: int) -> None:
    """Whatever a worker claims, the result has the right length and plain types, or there is none."""
    views = tuple(memoryview(buffer) for buffer in buffers)
    allowed = (
        int,
        float,
        bool,
        str,
        datetime.date,
        decimal.Decimal,
    )
    try:
        values = decode_values(description, views, rows)
    except FrameFault:
        pass
    else:
        assert len(values) == rows
        assert all(value is None or isinstance(value, allowed) for value in values)
    with contextlib.suppress(FrameFault):
        assert len(decode_integers(description, views, rows)) == rows
    with contextlib.suppress(FrameFault):
        columns_of(Frame({"columns": [description]}, views))
