"""The worker process: a fresh interpreter that answers one request at a time over one socket.

Started by `engines.pool` as `python -I -c ... <root> <descriptor> <parent>`. The first frame configures it, every
other frame is a request. Whatever goes wrong inside is answered with one word and nothing else: no message, no
class name, no value. Standard output and error are closed by the parent.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engines.confinement import allow_cpu_seconds, confine
from engines.frames import Frame, FrameFault, receive_frame, send_frame
from engines.handler import Handler, Invalid
from engines.memory import MemoryWatch
from engines.records import read_record
from privacy.values import Json

__all__ = ["main", "serve"]


@dataclass(frozen=True, slots=True)
class _Options:
    """What the first frame says to every kind of worker; the rest of it is for the handler."""

    kind: str
    bytes_max: int
    resident_mb: int | None


@dataclass(frozen=True, slots=True)
class _Allowance:
    """What every request allows."""

    cpu_seconds: float


def main() -> None:
    """Entry point of the child: limits first, then the engine, then requests until the parent closes the socket."""
    descriptor, parent = int(sys.argv[2]), int(sys.argv[3])
    address_space, file_bytes = int(sys.argv[4]), int(sys.argv[5])
    confine(parent=parent, connection=descriptor, address_space_bytes=address_space, file_bytes=file_bytes)
    connection = socket.socket(fileno=descriptor)
    try:
        serve(connection)
    except BaseException:  # noqa: BLE001 - nothing of an exception may reach a traceback
        os._exit(1)
    os._exit(0)


def serve(connection: socket.socket) -> None:
    """Configure from the first frame, say ready, then answer frames until the end of the stream."""
    first = receive_frame(connection, bytes_max=1 << 20)
    if first is None:
        return
    options = read_record(_Options, first.header)
    handler = _handler(options.kind, first.header)
    watch = None if options.resident_mb is None else MemoryWatch(options.resident_mb)
    send_frame(connection, {"status": "ready"})
    while True:
        frame = receive_frame(connection, bytes_max=options.bytes_max)
        if frame is None:
            return
        allow_cpu_seconds(read_record(_Allowance, frame.header).cpu_seconds)
        if watch is not None:
            watch.begin()
        status, header, buffers = _answer(handler, frame)
        send_frame(connection, {**header, "status": status}, buffers)
        if watch is not None:
            watch.end()
        handler.between()


def _answer(handler: Handler, frame: Frame) -> tuple[str, Mapping[str, Json], Sequence[bytes]]:
    try:
        header, buffers = handler.handle(frame)
    except Invalid:
        return "invalid", {}, ()
    except MemoryError:
        return "memory", {}, ()
    except (Exception, FrameFault):  # noqa: BLE001 - every failure is the same one word
        return "failed", {}, ()
    return "done", header, buffers


def _handler(kind: str, options: Mapping[str, object]) -> Handler:
    if kind == "private":
        from engines.handlers.private import PrivateHandler

        return PrivateHandler(options)
    if kind == "shell":
        from engines.handlers.shell import ShellHandler

        return ShellHandler(options)
    from engines.handlers.attach import AttachHandler

    return AttachHandler(options)
