"""Serving a home over HTTP in this process, and `noisegate serve`."""

from __future__ import annotations

import gc
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from server.cli.failure import CommandFailed, Interrupted, explained
from server.cli.home import Home, ServingLock
from server.cli.options import HomeOption, JsonOption, default_home
from server.cli.output import print_json, say

if TYPE_CHECKING:
    import uvicorn
    from fastapi import FastAPI

    from server.services import Services
    from server.settings import Settings

__all__ = ["interruptible", "make_application", "open_port", "public_url", "serve", "serve_here", "take_home"]


def serve(
    home: HomeOption = None,
    host: Annotated[str | None, typer.Option("--host", metavar="ADDRESS", help="Default: 127.0.0.1.")] = None,
    port: Annotated[
        int | None, typer.Option("--port", metavar="N", min=0, max=65535, help="Default: 8765; 0 takes a free one.")
    ] = None,
    migrate: Annotated[
        bool, typer.Option("--migrate", help="Bring the ledger to this version before the start.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Start the server only, as a service does. Every setting: docs/settings.md.

    Makes no data, keys or budgets, and refuses a ledger that is not of this version unless --migrate is given. Logs are
    JSON lines on standard error. SIGTERM stops it: running queries are finished first.

    \b
    examples
      noisegate serve --migrate
      noisegate serve --home /srv/noisegate --port 8080
      NOISEGATE_HOST=0.0.0.0 NOISEGATE_TLS_TERMINATED=true noisegate serve       behind a proxy that speaks TLS
    """
    from server.settings import unknown_environment

    place = Home(default_home(home))
    settings = place.settings(host=host, port=port)
    unknown = unknown_environment(os.environ)
    if unknown:
        say(f"noisegate: these variables are no settings and have no effect: {', '.join(unknown)}", error=True)
    place.create()
    with interruptible(), explained(place.path), take_home(place, settings) as lock:
        if migrate:
            from migrations.upgrade import upgrade

            upgrade(settings.database())
        else:
            place.require_migrated(settings)
        _require_snapshots(place, settings)
        if settings.workers > 1:
            if as_json:
                print_json({"url": public_url(settings.host, settings.port)})
            _serve_many(settings, lock)
            return
        listener = open_port(settings.host, settings.port)
        with listener:
            if as_json:
                serve_here(settings, listener, lock, ready=lambda url, stopping: print_json({"url": url}))
            else:
                serve_here(settings, listener, lock)


def _require_snapshots(place: Home, settings: Settings) -> None:
    """Errors: CommandFailed when a dataset cannot be served."""
    from server.cli.snapshots import lost_failure, lost_snapshots

    with place.registry(settings) as registry:
        for name in lost_snapshots(settings, registry):
            raise lost_failure(name)


# Ports and homes


def open_port(host: str, port: int) -> socket.socket:
    """A listening socket. From here on nobody else can take the port. Errors: CommandFailed."""
    from server.settings import CONNECTION_BACKLOG

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        # Connections of a server that has just ended must not keep the port from us; a listening one still does.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(CONNECTION_BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise _port_failure(error, host, port) from None
    return listener


def _port_failure(error: OSError, host: str, port: int) -> CommandFailed:
    import errno

    if error.errno == errno.EADDRINUSE:
        return CommandFailed(
            f"could not start: port {port} is in use",
            why=f"Another program listens on {host}:{port}, perhaps an older noisegate.",
            instead=("Choose another port with --port N (--port 0 takes a free one),", "or stop the other program."),
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        return CommandFailed(
            f"could not start: port {port} may not be used",
            why="Ports below 1024 belong to the administrator of the machine.",
            instead="Choose another port with --port N.",
        )
    return CommandFailed(
        f'could not start: cannot listen on "{host}"',
        why="It is not an address of this machine.",
        instead="Use 127.0.0.1, or an address of this machine with --host.",
    )


def public_url(host: str, port: int) -> str:
    """The address at which this machine reaches the server."""
    if host in ("0.0.0.0", ""):  # noqa: S104 - where it is reached, not where it listens
        host = "127.0.0.1"
    elif host == "::":
        host = "::1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextmanager
def take_home(place: Home, settings: Settings) -> Iterator[ServingLock]:
    """Holds the home as the process that serves it. Errors: CommandFailed when another one does.

    A second server would not notice datasets that the first one attaches. With PostgreSQL that is the operator's
    choice: several servers may share a folder there, and the lock is only how other commands find one of them.
    """
    lock = ServingLock(place.lock_path)
    try:
        if not lock.take() and settings.database().startswith("sqlite"):
            record = place.serving() or {}
            where = f" at {record['url']}" if record.get("url") else ""
            process = f" by process {record['pid']}" if record.get("pid") else ""
            raise CommandFailed(
                f'could not start: "{place.path}" is served already{where}',
                why=f"It is in use{process}, and one home is served by one program.",
                instead=(
                    f"Use that one: {record['url']}/docs" if record.get("url") else "Use that one.",
                    f"Stop it: kill {record['pid']}" if record.get("pid") else "Stop it first.",
                    "To add data to it: noisegate init FILE --unit COLUMN -o FILE.yaml, "
                    "then noisegate dataset add FILE.yaml",
                    "Or choose another home with --home DIR.",
                ),
            )
        yield lock
    finally:
        lock.close()


# Signals


@contextmanager
def interruptible() -> Iterator[None]:
    """SIGTERM and SIGINT end a working command like an exception, so that its parts are closed in order."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Interrupted

    before = {name: signal.signal(name, stop) for name in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


# Serving


def make_application() -> FastAPI:
    """The application of one of several server processes, from the environment alone."""
    from server.app import create_app
    from server.build import build_services
    from server.cli.watching import watched
    from server.settings import load_settings

    return create_app(load_settings(), build=lambda settings: watched(build_services(settings)))


def _serve_many(settings: Settings, lock: ServingLock) -> None:
    """Several processes under uvicorn's supervisor; they read the same settings from the environment."""
    import uvicorn

    from server.settings import uvicorn_options

    os.environ["NOISEGATE_HOME"] = str(settings.home)
    os.environ["NOISEGATE_HOST"], os.environ["NOISEGATE_PORT"] = settings.host, str(settings.port)
    lock.tell(url=public_url(settings.host, settings.port), pid=os.getpid())
    uvicorn.run("server.cli.serving:make_application", factory=True, **uvicorn_options(settings))


def serve_here(
    settings: Settings,
    listener: socket.socket,
    lock: ServingLock,
    *,
    prepare: Callable[[Services], None] = lambda services: None,
    ready: Callable[[str, threading.Event], None] = lambda url, stopping: None,
    log_level: str | None = None,
) -> None:
    """Serves until SIGTERM or SIGINT, then closes everything in order and returns.

    `prepare` is called with the services before the first request is answered; `ready` on a thread of its own when
    requests are answered, with an event that is set when the server stops. Errors: those of the services.
    """
    from server.build import build_services
    from server.cli.watching import watched
    from server.log import configure_logs, logger

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
        from server.routes.operations import server_version
        from server.settings import uvicorn_options

        prepare(services)
        url = public_url(settings.host, listener.getsockname()[1])
        options: dict[str, Any] = {**uvicorn_options(settings), "workers": 1}
        server = uvicorn.Server(uvicorn.Config(create_app(settings, services=services), **options))
        # From here on a signal ends the server instead of interrupting us; uvicorn passes it on to these in the end.
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, stop)
        watched(services, changed=lambda served: lock.tell(url=url, pid=os.getpid(), datasets=served))
        waiter = threading.Thread(target=_when_ready, args=(server, url, ready, stopping), daemon=True)
        waiter.start()
        logger().info("started", version=server_version(), instance=settings.instance)
        # What was loaded stays until the end: the collector need not look through it during requests.
        gc.freeze()
        server.run(sockets=[listener])
        stopping.set()
        waiter.join(timeout=2.0)
    finally:
        stopping.set()
        _close(services, seconds=settings.shutdown_seconds)
        logger().info("stopped")


def _when_ready(
    server: Any, url: str, ready: Callable[[str, threading.Event], None], stopping: threading.Event
) -> None:
    while not server.started:
        if stopping.wait(0.01):
            return
    try:
        ready(url, stopping)
    except CommandFailed as failure:
        say(str(failure), error=True)
    except Exception as error:  # noqa: BLE001 - the end of a thread: a message instead of a traceback
        say(f"noisegate: could not show the first answer ({type(error).__name__}); the server runs.", error=True)


def _close(services: Services, *, seconds: float) -> None:
    """Running queries first, then engines, then the ledger; every part is closed whatever the others do."""
    from contextlib import ExitStack

    with ExitStack() as stack:
        for close in reversed(services.closing):
            stack.callback(close)
        stack.callback(lambda: services.jobs.close(seconds=seconds))
