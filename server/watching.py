"""How a running server notices datasets that another process attached or removed.

The registry is asked every second; the catalogue is read again only when it differs, and every ten seconds while a
dataset cannot be served: its snapshot may have been made again. A dataset that cannot be read does not keep others from
being served; when the registry itself cannot be read, what was served before stays served.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from server.catalogue import ServedDatasets
from server.log import logger, where
from server.services import Services
from server.store.versions import version_tag

__all__ = ["DatasetWatch", "Versions", "catalogue_of", "watched"]

_PAUSE_SECONDS = 1.0
_AGAIN_SECONDS = 10.0
"""How often a dataset that cannot be served is read again, and reported in the log."""

Versions = dict[str, list[int | str]]
"""Policy version and data version of each dataset."""


def catalogue_of(services: Services) -> ServedDatasets:
    """The catalogue of a server that was built by `server.build`."""
    assert isinstance(services.catalogue, ServedDatasets)
    return services.catalogue


class DatasetWatch:
    """A thread that keeps the catalogue equal to the registry. `changed` gets what is served, at the start too."""

    def __init__(self, services: Services, *, changed: Callable[[Versions], None] = lambda versions: None) -> None:
        self._registry = services.registry
        self._catalogue = catalogue_of(services)
        self._changed = changed
        self._told: Versions | None = None
        self._failed: dict[str, str] | None = None
        self._again = time.monotonic() + _AGAIN_SECONDS
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="dataset-watch", daemon=True)

    def start(self) -> None:
        """Reports what is served, then begins to look."""
        self._tell()
        self._thread.start()

    def close(self) -> None:
        """Ends the thread."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5.0)

    def look(self) -> None:
        """Compares once, and reads the catalogue again when it differs."""
        wanted: dict[str, str] = {}
        try:
            for version in self._registry.datasets():
                wanted[version.name] = version_tag(version.policy_version, version.data_version)
            changed = wanted != self._catalogue.tags() and wanted != self._failed
            if changed or (self._catalogue.unavailable() and time.monotonic() > self._again):
                self._again = time.monotonic() + _AGAIN_SECONDS
                self._catalogue.reload()
                self._failed = None
                logger().info("datasets_reloaded", count=len(self._catalogue.all()))
        except Exception as error:  # noqa: BLE001 - the thread goes on: a busy database is not a reason to end
            self._failed = wanted
            logger().warning("datasets_not_reloaded", exception=type(error).__name__, where=where(error))
        self._tell()

    def _served(self) -> Versions:
        return {dataset.name: [dataset.policy_version, dataset.data_version] for dataset in self._catalogue.all()}

    def _tell(self) -> None:
        served = self._served()
        if served != self._told:
            self._told = served
            self._changed(served)

    def _run(self) -> None:
        while not self._stopping.wait(_PAUSE_SECONDS):
            self.look()


def watched(services: Services, *, changed: Callable[[Versions], None] = lambda versions: None) -> Services:
    """The services with a watch that is closed before them."""
    watch = DatasetWatch(services, changed=changed)
    watch.start()
    services.closing = (watch.close, *services.closing)
    return services
