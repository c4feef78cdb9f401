"""The folder of one installation: its settings, its stored keys, and which process serves it.

ledger.sqlite        what has been spent, who may ask, which datasets are served (unless database_url is set)
ledger.highwater     how far the ledger had got; .checkpoint beside it: what the last whole audit knew
datasets/            dataset files, and the demo's data
snapshots/           immutable copies of the data that queries run on
secrets/             secrets of this server; admin.apikey and analyst.apikey of `noisegate up`
serving.lock         locked by the process that serves this home; holds its address
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from server.files import write_whole
from server.serving import serving_record

if TYPE_CHECKING:
    from accountant.ledger import Ledger
    from accountant.reader import LedgerReader
    from server.settings import Settings
    from server.store.registry import Registry

__all__ = ["KEY_NAMES", "Home", "NoLedger"]

KEY_NAMES = ("admin", "analyst")
"""The principals whose keys `noisegate up` makes and keeps."""

_MODE = 0o700


class NoLedger(Exception):
    """Nothing was ever set up in this folder. Its text is the folder."""


class Home:
    """One home. Nothing is created before it is needed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    # Settings

    def settings(self, **values: str | int | None) -> Settings:
        """The settings for this home: arguments, environment and file. Errors: SettingsRefused, OSError."""
        from server.settings import load_settings

        given = {name: value for name, value in values.items() if value is not None}
        return load_settings(home=self.path, **given)

    def create(self) -> None:
        """Makes the folder, open to its owner only. Errors: OSError."""
        self.path.mkdir(mode=_MODE, parents=True, exist_ok=True)
        self.probe()

    def probe(self) -> None:
        """Writes in the folder, which shows at once whether it can be used. Errors: OSError."""
        probe = self.path / f".probe-{os.getpid()}"
        probe.write_bytes(b"noisegate\n")
        probe.unlink()

    # Who serves

    @property
    def lock_path(self) -> Path:
        """The file whose lock says that the home is served."""
        return self.path / "serving.lock"

    def serving(self) -> dict[str, object] | None:
        """The record of the process that serves this home now: url, pid, datasets with their versions.

        {} when it wrote none yet, None when no process serves the home.
        """
        return serving_record(self.lock_path)

    def url(self) -> str | None:
        """The address at which this home is served on this machine, or None."""
        record = self.serving()
        url = None if record is None else record.get("url")
        return url if isinstance(url, str) else None

    def wait_served(self, done: Callable[[dict[str, object]], bool], *, seconds: float) -> bool | None:
        """Whether the server of this home reports datasets that are `done` in time; None when none serves it."""
        deadline = time.monotonic() + seconds
        while (record := self.serving()) is not None:
            served = record.get("datasets")
            if isinstance(served, dict) and done(served):
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)
        return None

    # Ledger and registry

    def has_ledger(self, settings: Settings) -> bool:
        """Whether a ledger can be there: a file of SQLite must exist; a server of PostgreSQL is asked later."""
        from accountant.connection import parse_url, sqlite_path

        file = sqlite_path(parse_url(settings.database()))
        return file is None or file.is_file()

    def require(self, settings: Settings) -> None:
        """Errors: NoLedger when nothing was ever set up here."""
        if not self.has_ledger(settings):
            raise NoLedger(str(self.path))

    def require_migrated(self, settings: Settings) -> None:
        """Errors: NotMigrated or SchemaTooNew unless there is a ledger of exactly this program's schema."""
        from accountant.errors import NotMigrated
        from migrations.upgrade import require_newest

        if not self.has_ledger(settings):
            raise NotMigrated("there is no ledger yet")  # looking would create an empty one
        with self.registry(settings) as registry:
            require_newest(registry.schema_revision())

    @contextlib.contextmanager
    def opened(self) -> Iterator[tuple[Settings, Ledger, Registry]]:
        """Settings, ledger and registry of a home that was set up.

        Errors: NoLedger; those of `settings`, `require_migrated`, the ledger and the registry.
        """
        settings = self.settings()
        self.require(settings)
        self.require_migrated(settings)
        with self.ledger(settings) as ledger, self.registry(settings) as registry:
            yield settings, ledger, registry

    @contextlib.contextmanager
    def read(self) -> Iterator[LedgerReader]:
        """The ledger of a home that was set up, to be read alone; closed afterwards. Errors: as `opened`."""
        from accountant.reader import LedgerReader

        settings = self.settings()
        self.require(settings)
        self.require_migrated(settings)
        reader = LedgerReader(settings.database(), high_water=settings.high_water())
        with contextlib.closing(reader):
            yield reader

    @contextlib.contextmanager
    def registry(self, settings: Settings) -> Iterator[Registry]:
        """The registry of this home, closed afterwards."""
        from server.opening import open_registry

        with contextlib.closing(open_registry(settings)) as registry:
            yield registry

    @contextlib.contextmanager
    def ledger(self, settings: Settings) -> Iterator[Ledger]:
        """The ledger of this home, also while a server has it open; closed afterwards."""
        from accountant.ledger import Ledger

        for pause in (0.05, 0.1, 0.15, None):
            ledger = Ledger(settings.database(), instance="command-line", high_water=settings.high_water())
            # A commit of another process between reading the ledger and reading its mark looks like a ledger that is
            # behind. A real one stays behind.
            if not ledger.behind or pause is None:
                break
            ledger.close()
            time.sleep(pause)
        with contextlib.closing(ledger):
            yield ledger

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
        write_whole(path, text + "\n", mode=0o600)
