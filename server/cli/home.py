"""The folder of one installation: its settings, its stored keys, and which process serves it.

ledger.sqlite        what has been spent, who may ask, which datasets are served (unless database_url is set)
ledger.highwater     how far the ledger had got
datasets/            dataset files, and the demo's data
snapshots/           immutable copies of the data that queries run on
secrets/             secrets of this server; admin.apikey and analyst.apikey of `noisegate up`
serving.lock         locked by the process that serves this home; holds its address
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from server.cli.failure import CommandFailed, explained

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from accountant.ledger import Ledger
    from server.settings import Settings
    from server.store.registry import Registry

__all__ = ["KEY_NAMES", "Home", "ServingLock"]

KEY_NAMES = ("admin", "analyst")
"""The principals whose keys `noisegate up` makes and keeps."""

_MODE = 0o700


class ServingLock:
    """Held by the process that serves a home; the kernel lets it go when the process ends, however it ends."""

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
        # What the process before told of itself is no longer so; nobody may send a key there.
        os.ftruncate(self._descriptor, 0)
        return True

    def tell(self, **record: Any) -> None:
        """Writes where this process serves, for other commands; nothing when another process has the lock."""
        if not self._held:
            return
        text = json.dumps(record).encode()
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, text, 0)

    def close(self) -> None:
        """Lets the home go."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class Home:
    """One home. Nothing is created before it is needed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    # Settings

    def settings(self, **values: Any) -> Settings:
        """The settings for this home: arguments, environment and file. Errors: CommandFailed."""
        from server.settings import load_settings

        given = {name: value for name, value in values.items() if value is not None}
        with explained(self.path):
            return load_settings(home=self.path, **given)

    def create(self) -> None:
        """Makes the folder, open to its owner only. Errors: CommandFailed."""
        with explained(self.path):
            self.path.mkdir(mode=_MODE, parents=True, exist_ok=True)
            # The first write tells at once whether the folder can be used.
            probe = self.path / f".probe-{os.getpid()}"
            probe.write_bytes(b"noisegate\n")
            probe.unlink()

    # Who serves

    @property
    def lock_path(self) -> Path:
        """The file whose lock says that the home is served."""
        return self.path / "serving.lock"

    def serving(self) -> dict[str, Any] | None:
        """The record of the process that serves this home now: url, pid, datasets with their versions.

        {} when it wrote none yet, None when no process serves the home.
        """
        if not self.lock_path.is_file():
            return None
        try:
            lock = ServingLock(self.lock_path)
        except OSError:
            return None
        try:
            if lock.take():
                return None
        finally:
            lock.close()
        try:
            record = json.loads(self.lock_path.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return record if isinstance(record, dict) else {}

    def url(self) -> str | None:
        """The address at which this home is served on this machine, or None."""
        record = self.serving()
        url = None if record is None else record.get("url")
        return url if isinstance(url, str) else None

    # Ledger and registry

    def has_ledger(self, settings: Settings) -> bool:
        """Whether a ledger can be there: a file of SQLite must exist; a server of PostgreSQL is asked later."""
        from accountant.connection import parse_url, sqlite_path

        with explained(self.path):
            file = sqlite_path(parse_url(settings.database()))
            return file is None or file.is_file()

    def require(self, settings: Settings) -> None:
        """Errors: CommandFailed when nothing was ever set up here."""
        if self.has_ledger(settings):
            return
        raise CommandFailed(
            f'there is no ledger in "{self.path}"',
            why="Nothing was set up in this home yet, or it is somewhere else.",
            instead=(
                "Start everything with: noisegate up",
                "or name the right folder with --home DIR (or NOISEGATE_HOME),",
                "or make an empty ledger with: noisegate migrate",
            ),
        )

    def check_schema(self, settings: Settings) -> None:
        """Errors: NotMigrated or SchemaTooNew unless the database has exactly this program's schema."""
        from server.cli.schema import check_schema

        with self.registry(settings) as registry:
            check_schema(registry)

    def require_migrated(self, settings: Settings) -> None:
        """Errors: NotMigrated or SchemaTooNew unless there is a ledger of exactly this program's schema."""
        from accountant.errors import NotMigrated

        if not self.has_ledger(settings):
            # Looking would create an empty one.
            raise NotMigrated("there is no ledger yet")
        self.check_schema(settings)

    @contextlib.contextmanager
    def opened(self) -> Iterator[tuple[Settings, Ledger, Registry]]:
        """Settings, ledger and registry of a home that was set up. Errors: CommandFailed."""
        settings = self.settings()
        self.require(settings)
        with explained(self.path):
            self.check_schema(settings)
            with self.ledger(settings) as ledger, self.registry(settings) as registry:
                yield settings, ledger, registry

    @contextlib.contextmanager
    def registry(self, settings: Settings) -> Iterator[Registry]:
        """The registry of this home, closed afterwards."""
        from accountant.ledger import utc_now
        from server.store.registry import Registry

        registry = Registry(settings.database(), secret=settings.keys_secret(), clock=utc_now)
        try:
            yield registry
        finally:
            registry.close()

    @contextlib.contextmanager
    def ledger(self, settings: Settings) -> Iterator[Ledger]:
        """The ledger of this home, also while a server has it open; closed afterwards."""
        from accountant.ledger import Ledger

        ledger: Ledger | None = None
        try:
            # A commit of another process between reading the ledger and reading its mark looks like a ledger that is
            # behind. A real one stays behind.
            for attempt in range(4):
                if attempt:
                    time.sleep(0.05 * attempt)
                ledger = Ledger(settings.database(), instance="command-line", high_water=settings.high_water())
                if not ledger.behind or attempt == 3:
                    break
                ledger.close()
                ledger = None
            assert ledger is not None
            yield ledger
        finally:
            if ledger is not None:
                ledger.close()

    # The keys of `noisegate up`

    def _key_path(self, name: str) -> Path:
        assert name in KEY_NAMES
        return self.path / "secrets" / f"{name}.apikey"

    def stored_key(self, name: str) -> str | None:
        """The text of a stored key, or None. It may have been revoked since."""
        try:
            text = self._key_path(name).read_text("ascii").strip()
        except (OSError, UnicodeDecodeError):
            return None
        return text or None

    def store_key(self, name: str, text: str) -> None:
        """Stores a key, readable by the owner only; replaces an older one in one step. Errors: OSError."""
        path = self._key_path(name)
        path.parent.mkdir(mode=_MODE, parents=True, exist_ok=True)
        fresh = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "w") as file:
                file.write(text + "\n")
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(path)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise
