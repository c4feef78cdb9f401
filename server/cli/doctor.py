"""`noisegate doctor`: what is wrong with this installation, and how to fix it."""

from __future__ import annotations

import contextlib
import datetime
import enum
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from server.cli.explaining import explained
from server.cli.failure import CommandFailed
from server.cli.options import Here, option
from server.cli.output import say
from server.cli.serving import open_port
from server.home import Home
from server.installed import unlocked_packages

if TYPE_CHECKING:
    from server.settings import Settings

__all__ = ["Result", "doctor"]

_FREE_MB = 500
_START_SECONDS = 20.0


class Outcome(enum.StrEnum):
    """Of a check."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


OK, WARN, FAIL = Outcome


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a check: what was seen, and what to do when it is not OK."""

    outcome: Outcome
    seen: str
    instead: str = ""


def doctor(
    *, here: Here, port: int | None = option("--port N", "The port to look at. Default: 8765.", min=0, max=65535)
) -> None:
    """Check this installation."""
    results = {}
    for check, result in _results(here.place(), port):
        results[check] = result
        if not here.as_json:
            say(f"  {result.outcome.ljust(4)}  {check.ljust(12)}  {result.seen}")
            if result.instead:
                say(f"        {' ' * 12}  -> {result.instead}")
    outcomes = [result.outcome for result in results.values()]
    failed, warned = outcomes.count(FAIL), outcomes.count(WARN)
    checks = [{"check": check, **asdict(result)} for check, result in results.items()]
    verdict = f"\n{len(results)} checks: {failed} failed, {warned} with a warning."
    here.show({"ok": failed == 0, "checks": checks}, [verdict], failed=failed > 0)


def _results(place: Home, port: int | None) -> Iterator[tuple[str, Result]]:
    """Each check with its result; a check that cannot run has failed, and the others still run."""
    found: list[Settings] = []

    def settings() -> Result:
        found.append(place.settings(port=port))
        return Result(OK, f"home {place.path}")

    checks: dict[str, Callable[[], Result]] = {
        "python": _python,
        "packages": _packages,
        "environment": _environment,
        "settings": settings,
        "home": lambda: _home(place),
        "ledger": lambda: _ledger(place, found[0]),
        "datasets": lambda: _datasets(place, found[0]),
        "port": lambda: _port(place, found[0]),
        "tokens": lambda: _tokens(found[0]),
        "engine": _engine,
        "sandbox": _sandbox,
        "clock": lambda: _clock(place.path),
    }
    for check, run in checks.items():
        if found or check not in ("ledger", "datasets", "port", "tokens"):
            yield check, _guarded(run, place.path)


def _guarded(run: Callable[[], Result], home: Path) -> Result:
    try:
        with explained(home):
            return run()
    except CommandFailed as failure:
        found = failure.finding
        return Result(FAIL, f"{found.what}: {' '.join(found.why.split())}", " ".join(found.instead))
    except Exception as error:  # noqa: BLE001 - the doctor reports whatever is wrong and goes on
        return Result(FAIL, f"the check itself failed ({type(error).__name__})", "Set the environment up again.")


def _python() -> Result:
    version = f"Python {platform.python_version()}"  # an older one than we need does not get here
    if sys.maxsize < 2**32:
        return Result(FAIL, f"{version}, 32 bits", "Install a 64-bit Python.")
    return Result(OK, version)


def _packages() -> Result:
    """Installed versions against the lock file, or against nothing outside a checkout."""
    found = unlocked_packages()
    if found is None:
        return Result(OK, "installed without a lock file")
    present, wrong = found
    if wrong:
        return Result(FAIL, "; ".join(wrong[:5]), "Make the environment again: ./noisegate setup")
    return Result(OK, f"{present} packages as locked")


def _environment() -> Result:
    from server.settings import unknown_environment

    unknown = unknown_environment(os.environ)
    if unknown:
        return Result(WARN, f"no settings: {', '.join(unknown)}", "Correct or remove these misspelt variables.")
    return Result(OK, "every NOISEGATE_ variable is a setting")


def _home(place: Home) -> Result:
    folder = place.path
    if not folder.exists():
        parent = next(item for item in folder.parents if item.exists())
        if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
            return Result(FAIL, f"{folder} cannot be made", "Choose another folder with --home DIR.")
        return Result(WARN, f"{folder} does not exist yet", "Start everything with: noisegate up")
    place.probe()
    free = shutil.disk_usage(folder).free // 2**20
    if free < _FREE_MB:
        return Result(WARN, f"only {free} MB are free in {folder}", "Make room before attaching data.")
    if folder.stat().st_mode & 0o077:
        return Result(WARN, f"others on this machine can look into {folder}", f"Keep them out: chmod 700 {folder}")
    return Result(OK, f"can be written, {free:,} MB free")


def _ledger(place: Home, settings: Settings) -> Result:
    if not place.has_ledger(settings):
        return Result(WARN, "there is none yet", "Start everything with: noisegate up")
    place.require_migrated(settings)
    # Opening refuses a database that may lose a commit.
    with place.ledger(settings) as ledger:
        ledger.check_writable()
        accounts = len(ledger.accounts())
        if ledger.high_water_failed:
            advice = "A restored backup might go unnoticed. Make its folder writable (high_water_file)."
            return Result(FAIL, f"the high-water mark {settings.high_water()} cannot be written", advice)
    if ledger.mark_made:
        advice = "Right on a machine that is new to this ledger. Otherwise find out who removed it."
        return Result(WARN, f"there was no high-water mark at {settings.high_water()}; one was made", advice)
    kind = "SQLite" if settings.database().startswith("sqlite") else "PostgreSQL"
    return Result(OK, f"{kind}, schema of this version, durable, {accounts} accounts")


def _datasets(place: Home, settings: Settings) -> Result:
    """Whether each attached dataset can be read as a start reads it."""
    from server.build import open_catalogue

    if not place.has_ledger(settings):
        return Result(OK, "no dataset is attached")
    with place.registry(settings) as registry:
        catalogue = open_catalogue(settings, registry)
    broken, count = catalogue.broken(), len(catalogue.all())
    if broken:
        advice = "Attach them again: noisegate dataset add FILE (what was spent stays known). Others are served."
        return Result(FAIL, "not served: " + " ".join(f"{name} ({it.why})" for name, it in broken.items()), advice)
    return Result(OK, "one dataset, with its snapshot" if count == 1 else f"{count} datasets, each with its snapshot")


def _port(place: Home, settings: Settings) -> Result:
    url = place.url()
    if url is not None:
        return Result(OK, f"this home is served at {url}")
    with open_port(settings.host, settings.port):
        return Result(OK, f"{settings.host}:{settings.port} is free")


def _tokens(settings: Settings) -> Result:
    """Whether the keys of the provider of tokens can be had now."""
    source = settings.oidc_keys_file or settings.oidc_keys_url
    if settings.oidc_issuer is None or source is None:
        return Result(OK, "API keys alone are accepted")
    from server.store.errors import KeysUnavailable
    from server.token_keys import ProviderKeys

    keys = ProviderKeys(source, fresh_seconds=60, clock=time.monotonic)
    try:
        fitting = sum(bool(keys.count(algorithm)) for algorithm in settings.oidc_algorithms)
    except KeysUnavailable:
        advice = "Look at oidc_keys_file or oidc_keys_url: a JSON Web Key Set with keys for signatures."
        return Result(FAIL, "the keys of oidc_issuer cannot be read: its tokens would be 503", advice)
    if not fitting:
        return Result(FAIL, "no key of oidc_issuer fits oidc_algorithms", "Set oidc_algorithms to what it signs with.")
    return Result(OK, "tokens of oidc_issuer can be checked")


def _engine() -> Result:
    from engines.private import PrivateEngine

    with contextlib.closing(PrivateEngine(workers=1, threads=1, memory_limit_mb=256)) as engine:
        if engine.wait_ready(timeout_seconds=_START_SECONDS):
            return Result(OK, "a worker process starts and answers")
    return Result(FAIL, "a worker process did not start", "Memory limits of this machine or container may be low.")


def _sandbox() -> Result:
    """Which walls around a worker this system offers. The guarantees do not rest on them alone."""
    from engines.confinement import missing_walls

    missing = missing_walls(timeout_seconds=_START_SECONDS)
    if not missing:
        return Result(OK, "limits, no new privileges, and a network of its own for workers")
    advice = "Run on Linux, allow user namespaces, or run the server in a container without a network."
    return Result(WARN, f"not offered here: {', '.join(missing)}", advice)


def _clock(folder: Path) -> Result:
    from accountant.highwater import HighWater

    now = datetime.datetime.now(datetime.UTC)
    advice = "Set the clock: keys and entries carry times."
    if now.year < 2025:
        return Result(FAIL, f"the clock says {now:%Y-%m-%d}", advice)
    mark = folder / "ledger.highwater"
    if mark.exists() and mark.stat().st_mtime > now.timestamp() + 60:
        return Result(WARN, "the ledger was written in the future", advice)
    ahead = HighWater(mark).read_epoch() / 1e6 - now.timestamp()
    if ahead > 60:
        return Result(WARN, f"the ledger's time is {datetime.timedelta(seconds=int(ahead))} ahead of the clock", advice)
    return Result(OK, f"{now:%Y-%m-%d %H:%M} UTC")
