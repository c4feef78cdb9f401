"""One server process from its start to its end: the lock of its home, its port, its services, its signals."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    import uvicorn

    from server.services import Services
    from server.settings import Settings

__all__ = ["ServingLock", "interruptible", "listen", "public_url", "serve", "serve_many", "serving_record"]


class ServingLock:
    """Held by the process that serves a home; the kernel releases it when the process ends, however it ends."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        self._held = False

    def take(self) -> bool:
        """Takes the lock, or returns False when another process has it."""
        if sys.platform != "win32":
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
        self._held = True
        # What the earlier process reported of itself no longer holds; nobody may send a key there.
        os.ftruncate(self._descriptor, 0)
        return True

    def report(self, **record: object) -> None:
        """Writes where this process serves, for other commands; nothing when another process has the lock."""
        if not self._held:
            return
        text = json.dumps(record).encode()
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, text, 0)

    def close(self) -> None:
        """Releases the home."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def serving_record(path: Path) -> dict[str, object] | None:
    """What the process that holds the lock of a home reports: url, pid, datasets with their versions.

    {} when it has reported nothing yet, None when no process serves the home.
    """
    if not path.is_file():
        return None
    try:
        lock = ServingLock(path)
    except OSError:
        return None
    try:
        if lock.take():
            return None
    finally:
        lock.close()
    try:
        record = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def public_url(host: str, port: int) -> str:
    """The address at which this machine reaches the server."""
    if host in ("0.0.0.0", ""):  # noqa: S104 - where it is reached, not where it listens
        host = "127.0.0.1"
    elif host == "::":
        host = "::1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. From here on nobody else can take the port. Errors: OSError."""
    from server.settings import CONNECTION_BACKLOG

    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        # Connections of a server that has just ended must not keep the port from us; a listening one still does.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(CONNECTION_BACKLOG)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def serve_many(settings: Settings, lock: ServingLock) -> None:
    """Several processes under uvicorn's supervisor; they read the same settings from the environment."""
    import uvicorn

    from server.web_server import uvicorn_options

    os.environ["NOISEGATE_HOME"] = str(settings.home)
    os.environ["NOISEGATE_HOST"], os.environ["NOISEGATE_PORT"] = settings.host, str(settings.port)
    lock.report(url=public_url(settings.host, settings.port), pid=os.getpid())
    uvicorn.run("server.asgi:application", factory=True, **uvicorn_options(settings))


def serve(
    settings: Settings,
    listener: socket.socket,
    lock: ServingLock,
    *,
    prepare: Callable[[Services], None] = lambda services: None,
    ready: Callable[[str, threading.Event], None] | None = None,
    log_level: str | None = None,
) -> None:
    """Serves until SIGTERM or SIGINT, then closes everything in order and returns.

    `prepare` is called with the services before the first request is answered; `ready` on a thread of its own when
    requests are answered, with its address and an event that is set when the server stops. Errors: the services'.
    """
    from server.build import build_services
    from server.log import configure_logs, logger
    from server.watching import watched

    configure_logs(level=log_level or settings.log_level)
    services = build_services(settings)
    server: uvicorn.Server | None = None
    stopping = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        stopping.set()
        if server is not None:
            server.should_exit = True

    try:
        # Only now, so that the workers of the engines start while these load.
        import uvicorn

        from server.app import create_app
        from server.attending import attended
        from server.collecting import settle
        from server.installed import program_version
        from server.web_server import uvicorn_options

        prepare(services)
        url = public_url(settings.host, listener.getsockname()[1])
        options = {**uvicorn_options(settings), "workers": 1}
        server = uvicorn.Server(uvicorn.Config(create_app(settings, services=services), **options))
        # From here on a signal ends the server instead of interrupting us; uvicorn passes it on to these in the end.
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, stop)
        watched(services, changed=lambda served: lock.report(url=url, pid=os.getpid(), datasets=served))
        attended(services)
        waiter = threading.Thread(target=_when_started, args=(server, url, ready, stopping), daemon=True)
        waiter.start()
        logger().info("started", version=program_version(), instance=settings.instance)
        settle()
        server.run(sockets=[listener])
        stopping.set()
        waiter.join(timeout=2.0)
    finally:
        stopping.set()
        _close(services, seconds=settings.shutdown_seconds)
        logger().info("stopped")


def _when_started(
    server: uvicorn.Server,
    url: str,
    ready: Callable[[str, threading.Event], None] | None,
    stopping: threading.Event,
) -> None:
    while not server.started:
        if stopping.wait(0.01):
            return
    if ready is not None:
        ready(url, stopping)


def _close(services: Services, *, seconds: float) -> None:
    """Running queries first, then engines, then the ledger; every part is closed whatever the others do."""
    from contextlib import ExitStack

    with ExitStack() as stack:
        for close in reversed(services.closing):
            stack.callback(close)
        stack.callback(lambda: services.jobs.close(seconds=seconds))


@contextmanager
def interruptible() -> Iterator[None]:
    """SIGTERM and SIGINT end a working command like an exception, so that its parts are closed in order."""
    before = {name: signal.signal(name, signal.default_int_handler) for name in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
