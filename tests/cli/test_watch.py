"""How a running server notices datasets of other processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from accountant.ledger import utc_now
from server.build import open_catalogue
from server.home import Home
from server.services import Services
from server.store.registry import Registry
from server.watching import DatasetWatch, Versions


@contextmanager
def served(home: Path) -> Iterator[tuple[DatasetWatch, Any, Registry, list[Versions]]]:
    settings = Home(home).settings()
    registry = Registry(settings.database(), secret=settings.keys_secret(), clock=utc_now)
    try:
        catalogue = open_catalogue(settings, registry)
        told: list[Versions] = []
        services = cast(Services, SimpleNamespace(registry=registry, catalogue=catalogue))
        yield DatasetWatch(services, changed=told.append), catalogue, registry, told
    finally:
        registry.close()


def test_removed_dataset_goes(home: Path) -> None:
    """A dataset that another process removed goes with the next look; an unchanged one is not read again."""
    with served(home) as (watch, catalogue, registry, told):
        watch.look()
        assert [list(item) for item in told] == [["people"]]
        before = catalogue.get("people")
        watch.look()
        assert catalogue.get("people") is before
        assert len(told) == 1
        registry.remove_dataset("people", actor="test")
        watch.look()
        assert catalogue.get("people") is None
        assert told[-1] == {}


def test_failure_keeps_what_is_served(home: Path, monkeypatch: Any) -> None:
    """What cannot be read is tried once, and what was served stays; the next change is tried again."""
    with served(home) as (watch, catalogue, registry, _):
        tries = []

        def fail() -> None:
            tries.append(1)
            raise OSError("lost")

        monkeypatch.setattr(catalogue, "reload", fail)
        registry.remove_dataset("people", actor="test")
        watch.look()
        watch.look()
        assert len(tries) == 1
        assert catalogue.get("people") is not None


def test_watch_ends(home: Path) -> None:
    """The thread ends when the server does, also when it was never started."""
    with served(home) as (watch, _, _, told):
        watch.start()
        watch.close()
        assert told == [{"people": told[0]["people"]}]
    with served(home) as (watch, _, _, _):
        watch.close()
