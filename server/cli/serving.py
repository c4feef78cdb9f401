"""`noisegate serve`, and what every server needs before it starts: its port, its home, its signals."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from server import serving
from server.cli.failure import CommandFailed
from server.cli.options import Here, option
from server.cli.output import print_json, say
from server.home import Home

if TYPE_CHECKING:
    from server.settings import Settings

__all__ = ["open_port", "serve", "take_home"]


def serve(
    here: Here,
    host: str | None = option("--host ADDRESS", "Default: 127.0.0.1."),
    port: int | None = option("--port N", "Default: 8765; 0 takes a free one.", min=0, max=65535),
    migrate: bool = option("--migrate", "Bring the ledger to this version before the start.", False),
) -> None:
    """Start the server only, as a service does. Every setting: docs/settings.md."""
    from server.settings import unknown_environment

    place = here.place()
    settings = place.settings(host=host, port=port)
    unknown = unknown_environment(os.environ)
    if unknown:
        say(f"noisegate: these variables are not settings and have no effect: {', '.join(unknown)}", error=True)
    place.create()
    with serving.interruptible(), take_home(place, settings) as lock:
        if migrate:
            from migrations.upgrade import upgrade

            upgrade(settings.database())
        else:
            place.require_migrated(settings)
        if settings.workers > 1:
            if here.as_json:
                print_json({"url": serving.public_url(settings.host, settings.port)})
            serving.serve_many(settings, lock)
            return
        ready = (lambda url, stopping: print_json({"url": url})) if here.as_json else None
        with open_port(settings.host, settings.port) as listener:
            serving.serve(settings, listener, lock, ready=ready)


# Ports and homes


def open_port(host: str, port: int) -> socket.socket:
    """A listening socket. From here on nobody else can take the port. Errors: CommandFailed."""
    try:
        return serving.listen(host, port)
    except OSError as error:
        number = errno.EACCES if error.errno == errno.EPERM else error.errno
        words = _PORT_FAILURES.get(number, _PORT_FAILURES[None])
        raise CommandFailed(words.format(host=host, port=port)) from None


_PORT_FAILURES = {
    errno.EADDRINUSE: """could not start: port {port} is in use
        Another program listens on {host}:{port}, perhaps an older noisegate.
        Choose another port with --port N (--port 0 takes a free one),
        or stop the other program.""",
    errno.EACCES: """could not start: port {port} may not be used
        Ports below 1024 belong to the administrator of the machine.
        Choose another port with --port N.""",
    None: """could not start: cannot listen on "{host}"
        It is not an address of this machine.
        Use 127.0.0.1, or an address of this machine with --host.""",
}


@contextmanager
def take_home(place: Home, settings: Settings) -> Iterator[serving.ServingLock]:
    """Holds the home as the process that serves it. Errors: CommandFailed when another one does.

    A second server would not notice datasets that the first one attaches. With PostgreSQL that is the operator's
    choice: several servers may share a folder there, and the lock is only how other commands find one of them.
    """
    lock = serving.ServingLock(place.lock_path)
    try:
        if not lock.take() and settings.database().startswith("sqlite"):
            record = place.serving() or {}
            url, process = record.get("url"), record.get("pid")
            raise CommandFailed(f"""could not start: "{place.path}" is served already{f" at {url}" if url else ""}
                It is in use{f" by process {process}" if process else ""}, and one home is served by one program.
                {f"Use that one: {url}/docs" if url else "Use that one."}
                {f"Stop it: kill {process}" if process else "Stop it first."}
                To add data to it: noisegate init FILE --unit COLUMN -o FILE.yaml, then noisegate dataset add FILE.yaml
                Or choose another home with --home DIR.""")
        yield lock
    finally:
        lock.close()
