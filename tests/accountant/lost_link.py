"""A ledger whose link to PostgreSQL swallows everything for a while, in a network of its own.

    python -m tests.accountant.lost_link DATABASE_URL

Run without a network, in which it makes a loopback device, relays a port of it to PostgreSQL's socket, and takes the
device down and up again. Prints one JSON object: how long a step took to fail, and how long after healing one worked.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import socket
import struct
import sys
import threading
import time

from sqlalchemy import make_url

from accountant import connection
from accountant.errors import LedgerUnavailable
from accountant.ledger import Ledger
from tests.accountant.making import analyst, request, root

_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 1


def loopback(*, up: bool) -> None:
    """Switches the loopback device of this network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as device:
        name = b"lo".ljust(16, b"\0")
        (flags,) = struct.unpack_from("h", fcntl.ioctl(device, _GET_FLAGS, name + bytes(16)), 16)
        wanted = flags | _UP if up else flags & ~_UP
        fcntl.ioctl(device, _SET_FLAGS, name + struct.pack("h", wanted) + bytes(14))


def relay(path: str) -> int:
    """A port of this network that leads to a socket in the file system."""
    listener = socket.create_server(("127.0.0.1", 0))

    def pump(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(65_536):
                target.sendall(piece)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def serve() -> None:
        while True:
            near, _ = listener.accept()
            far = socket.socket(socket.AF_UNIX)
            far.connect(path)
            for pair in ((near, far), (far, near)):
                threading.Thread(target=pump, args=pair, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    port = listener.getsockname()[1]
    assert isinstance(port, int)
    return port


def main(address: str, seconds: str) -> None:
    """Breaks the link and heals it."""
    connection.LINK_SECONDS = int(seconds)
    url = make_url(address)
    folder = url.query["host"]
    loopback(up=True)
    port = relay(f"{folder}/.s.PGSQL.5432")
    near = url.set(host="127.0.0.1", port=port, query={}).render_as_string(hide_password=False)
    with Ledger(near, instance="far", patience_seconds=1.0, lease_seconds=300) as ledger:
        leaf = analyst(ledger, root(ledger, epsilon=100), epsilon=100)
        ledger.reserve(request(leaf))
        loopback(up=False)
        started = time.monotonic()
        try:
            ledger.reserve(request(leaf))
            failed = None
        except LedgerUnavailable:
            failed = time.monotonic() - started
        loopback(up=True)
        started = time.monotonic()
        while time.monotonic() - started < 120:
            try:
                ledger.reserve(request(leaf))
                break
            except LedgerUnavailable:
                time.sleep(0.05)
        healed = time.monotonic() - started
        print(json.dumps({"failed": failed, "healed": healed, "ok": ledger.audit().ok}))


if __name__ == "__main__":
    main(*sys.argv[1:])
