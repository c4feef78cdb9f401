"""`noisegate doctor`: what is wrong with this installation, and how to mend it."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import re
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from server.cli.failure import CommandFailed, explained
from server.cli.home import Home
from server.cli.options import HomeOption, JsonOption, default_home
from server.cli.output import print_json, say

if TYPE_CHECKING:
    from server.settings import Settings

__all__ = ["Result", "doctor"]

_OLDEST = (3, 11)
_FREE_MB = 500
_START_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Result:
    """One line: the check, its outcome, what was seen, and what to do when it is not "ok"."""

    check: str
    outcome: Literal["ok", "warn", "fail"]
    seen: str
    instead: str = ""


def doctor(
    home: HomeOption = None,
    port: Annotated[
        int | None, typer.Option("--port", metavar="N", min=0, max=65535, help="The port to look at. Default: 8765.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check this installation: one line per check, with what to do. Exit code 1 when a check fails.

    Changes no balance, key or dataset; safe while a server is running.

    \b
    examples
      noisegate doctor
      noisegate doctor --home /srv/noisegate --port 8080 --json
    """
    place = Home(default_home(home))
    results = []
    for result in _results(place, port):
        results.append(result)
        if not as_json:
            say(f"  {result.outcome.ljust(4)}  {result.check.ljust(12)}  {result.seen}")
            if result.instead:
                say(f"        {' ' * 12}  -> {result.instead}")
    failed = sum(result.outcome == "fail" for result in results)
    warned = sum(result.outcome == "warn" for result in results)
    if as_json:
        print_json({"ok": failed == 0, "checks": [asdict(result) for result in results]})
    else:
        say(f"\n{len(results)} checks: {failed} failed, {warned} with a warning.")
    if failed:
        raise typer.Exit(1)


def _results(place: Home, port: int | None) -> Iterator[Result]:
    yield _guarded("python", _python)
    yield _guarded("packages", _packages)
    yield _guarded("environment", _environment)
    settings: Settings | None = None
    try:
        settings = place.settings(port=port)
        yield Result("settings", "ok", f"home {place.path}")
    except CommandFailed as failure:
        yield _failed("settings", failure)
    yield _guarded("home", lambda: _home(place))
    if settings is not None:
        chosen = settings
        yield _guarded("ledger", lambda: _ledger(place, chosen))
        yield _guarded("snapshots", lambda: _snapshots(place, chosen))
        yield _guarded("port", lambda: _port(place, chosen))
    yield _guarded("engine", _engine)
    yield _guarded("sandbox", _sandbox)
    yield _guarded("clock", lambda: _clock(place))


def _guarded(check: str, run: Callable[[], Result]) -> Result:
    """The result of a check; a check that cannot run has failed, and the others still run."""
    try:
        with explained():
            return run()
    except CommandFailed as failure:
        return _failed(check, failure)
    except Exception as error:  # noqa: BLE001 - the doctor reports whatever is wrong and goes on
        return Result(
            check, "fail", f"the check itself failed ({type(error).__name__})", "Set the environment up again."
        )


def _failed(check: str, failure: CommandFailed) -> Result:
    reason = " ".join(failure.why.split())
    return Result(check, "fail", f"{failure.what}: {reason}", " ".join(failure.instead))


def _python() -> Result:
    version = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info[:2] < _OLDEST:
        return Result("python", "fail", f"Python {version}", "Install Python 3.11 or newer.")
    if sys.maxsize < 2**32:
        return Result("python", "fail", f"Python {version}, 32 bits", "Install a 64-bit Python.")
    return Result("python", "ok", f"Python {version}")


def _packages() -> Result:
    """Installed versions against the lock file, or against nothing outside a checkout."""
    lock = Path(__file__).resolve().parents[2] / "requirements.lock"
    if not lock.is_file():
        return Result("packages", "ok", "installed without a lock file")
    wrong = []
    names = 0
    # A line of the lock is name==version, sometimes with a condition on system or Python.
    for match in re.finditer(
        r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^ ;\\]+)( ;)?", lock.read_text("utf-8"), re.MULTILINE
    ):
        name, wanted, condition = match.groups()
        try:
            present = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            if condition is None:
                wrong.append(f"{name} is missing")
            continue
        names += 1
        if present != wanted and condition is None:
            wrong.append(f"{name} is {present}, locked is {wanted}")
    if wrong:
        return Result("packages", "fail", "; ".join(wrong[:5]), "Make the environment again: ./noisegate setup")
    return Result("packages", "ok", f"{names} packages as locked")


def _environment() -> Result:
    from server.settings import unknown_environment

    unknown = unknown_environment(os.environ)
    if unknown:
        return Result(
            "environment", "warn", f"no settings: {', '.join(unknown)}", "Mend or remove these misspelt variables."
        )
    return Result("environment", "ok", "every NOISEGATE_ variable is a setting")


def _home(place: Home) -> Result:
    folder = place.path
    if not folder.exists():
        parent = next(item for item in folder.parents if item.exists())
        if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
            return Result("home", "fail", f"{folder} cannot be made", "Choose another folder with --home DIR.")
        return Result("home", "warn", f"{folder} does not exist yet", "Start everything with: noisegate up")
    if not folder.is_dir():
        return Result("home", "fail", f"{folder} is not a folder", "Choose another folder with --home DIR.")
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"noisegate")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return Result(
            "home", "fail", f"{folder} cannot be written ({error.strerror})",
            "Mend its permissions, make room, or choose another folder with --home DIR.",
        )  # fmt: skip
    free = shutil.disk_usage(folder).free // 2**20
    if free < _FREE_MB:
        return Result("home", "warn", f"only {free} MB are free in {folder}", "Make room before attaching data.")
    if folder.stat().st_mode & 0o077:
        return Result(
            "home", "warn", f"others on this machine can look into {folder}", f"Keep them out: chmod 700 {folder}"
        )
    return Result("home", "ok", f"can be written, {free:,} MB free")


def _ledger(place: Home, settings: Settings) -> Result:
    if not place.has_ledger(settings):
        return Result("ledger", "warn", "there is none yet", "Start everything with: noisegate up")
    place.check_schema(settings)
    # Opening refuses a database that may lose a commit.
    with place.ledger(settings) as ledger:
        kind = "SQLite" if settings.database().startswith("sqlite") else "PostgreSQL"
        if ledger.behind:
            return Result(
                "ledger", "fail", "older than its high-water mark: a backup was put back",
                "See: noisegate audit --help",
            )  # fmt: skip
        ledger.check_writable()
        accounts = len(ledger.accounts())
    return Result("ledger", "ok", f"{kind}, schema of this version, durable, {accounts} accounts")


def _snapshots(place: Home, settings: Settings) -> Result:
    if not place.has_ledger(settings):
        return Result("snapshots", "ok", "no dataset is attached")
    from server.cli.snapshots import lost_snapshots

    with place.registry(settings) as registry:
        count = len(registry.datasets())
        lost = lost_snapshots(settings, registry)
    if lost:
        return Result(
            "snapshots", "fail", f"missing or damaged: {', '.join(lost)}",
            "Make them again: noisegate dataset add FILE (what was spent on them stays known).",
        )  # fmt: skip
    return Result(
        "snapshots",
        "ok",
        "one dataset, with its snapshot" if count == 1 else f"{count} datasets, each with its snapshot",
    )


def _port(place: Home, settings: Settings) -> Result:
    url = place.url()
    if url is not None:
        return Result("port", "ok", f"this home is served at {url}")
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
            probe.listen(1)
        except OSError as error:
            return Result(
                "port", "fail", f"{settings.host}:{settings.port} cannot be used ({error.strerror})",
                "Stop the other program, or choose another port with --port N.",
            )  # fmt: skip
    return Result("port", "ok", f"{settings.host}:{settings.port} is free")


def _engine() -> Result:
    from engines.private import PrivateEngine

    engine = PrivateEngine(workers=1, threads=1, memory_limit_mb=256)
    try:
        ready = engine.wait_ready(timeout_seconds=_START_SECONDS)
    finally:
        engine.close()
    if not ready:
        return Result(
            "engine", "fail", "a worker process did not start", "Memory limits of this machine or container may be low."
        )
    return Result("engine", "ok", "a worker process starts and answers")


def _sandbox() -> Result:
    """Which walls around a worker this system offers. The guarantees do not rest on them alone."""
    missing = []
    if not sys.platform.startswith("linux"):
        return Result(
            "sandbox", "warn", f"{sys.platform}: no limits of the Linux kernel", "Run on Linux where others may ask."
        )
    status = Path("/proc/self/status").read_text("ascii", "replace")
    if "NoNewPrivs" not in status:
        missing.append("no_new_privs")
    if not _network_namespace():
        missing.append("an empty network for workers (unshare is not permitted)")
    if missing:
        return Result(
            "sandbox", "warn", f"not offered here: {', '.join(missing)}",
            "Allow user namespaces, or run the server in a container without a network.",
        )  # fmt: skip
    return Result("sandbox", "ok", "limits, no new privileges, and a network of its own for workers")


def _network_namespace() -> bool:
    """Whether a process may leave the network; tried in a process of its own."""
    import subprocess

    program = (
        "import ctypes, sys\n"
        "unshare = ctypes.CDLL(None).unshare\n"
        "sys.exit(0 if unshare(0x40000000) == 0 or unshare(0x50000000) == 0 else 1)\n"
    )
    command = [sys.executable, "-I", "-S", "-c", program]
    return subprocess.run(command, capture_output=True, timeout=_START_SECONDS).returncode == 0


def _clock(place: Home) -> Result:
    now = datetime.datetime.now(datetime.UTC)
    if now.year < 2025:
        return Result("clock", "fail", f"the clock says {now:%Y-%m-%d}", "Set the clock: keys and entries carry times.")
    mark = place.path / "ledger.highwater"
    if mark.exists() and mark.stat().st_mtime > now.timestamp() + 60:
        return Result(
            "clock", "warn", "the ledger was written in the future", "Set the clock: keys and entries carry times."
        )
    return Result("clock", "ok", f"{now:%Y-%m-%d %H:%M} UTC")
