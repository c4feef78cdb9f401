"""Frames between the server and its workers: a JSON header and plain little-endian buffers, nothing that can run.

A worker may have been taken over by a hostile query, so what it sends is parsed as data only: no pickle, no class
names, every length checked before memory is taken, every value checked against the kind that was asked for.

    frame  = prefix, header, body
    prefix = magic "NGF1", header bytes (u32), body bytes (u64), little-endian
    header = JSON object; "buffers" lists the length of each buffer of the body

What the buffers of columns hold is said in `engines/arrays.py`. Workers that attach data exchange frames without
columns, and start without the library of arrays.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from privacy.values import Json

__all__ = ["Frame", "FrameCut", "FrameFault", "receive_frame", "send_frame"]

_MAGIC = b"NGF1"
_PREFIX = struct.Struct("<4sIQ")


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
