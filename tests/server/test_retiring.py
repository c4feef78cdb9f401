"""Copies of data that no dataset serves any more are removed, and no other file is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from accountant.ledger import utc_now
from server.retiring import Retirement
from server.store.registry import Registry

AFTER = 600.0


class Times:
    """Two clocks that go together."""

    def __init__(self) -> None:
        self.now = 10_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def registry(sqlite_url: str) -> Iterator[Registry]:
    """A registry in which nothing is attached."""
    made = Registry(sqlite_url, secret=b"x" * 32, clock=utc_now)
    yield made
    made.close()


def attach(registry: Registry, version: str) -> None:
    """Serves that version of the data."""
    registry.register_dataset(
        name="people", policy_version=1, data_version=version, snapshot=f"people/{version}.duckdb",
        document={"tables": {}}, actor="test",
    )  # fmt: skip


def copies(folder: Path) -> list[str]:
    """The files that are there."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def world(registry: Registry, tmp_path: Path) -> tuple[Callable[..., list[str]], Path, Times]:
    """Two copies with what describes them, of which the second is served, and a file of somebody else's."""
    folder, times = tmp_path / "snapshots", Times()
    (folder / "people").mkdir(parents=True)
    for version in ("one", "two"):
        attach(registry, version)
        for suffix in ("duckdb", "json"):
            (folder / "people" / f"{version}.{suffix}").write_text("true data")
    (folder / "people" / "notes.txt").write_text("mine")
    retirement = Retirement(registry, folder, after_seconds=AFTER, clock=times, wall=lambda: times.now + 1e10)

    def look(*, after: float = 0) -> list[str]:
        times.now += after
        retirement.look()
        return copies(folder)

    return look, folder, times


BOTH = ["people/notes.txt", "people/one.duckdb", "people/one.json", "people/two.duckdb", "people/two.json"]
SERVED = ["people/notes.txt", "people/two.duckdb", "people/two.json"]


def test_after_a_while(world: tuple[Callable[..., list[str]], Path, Times]) -> None:
    """What is not served goes after the time that was set, counted from the first look that misses it."""
    look, _, _ = world
    assert look() == BOTH
    assert look(after=AFTER - 1) == BOTH
    assert look(after=1) == SERVED
    assert look(after=10 * AFTER) == SERVED


def test_served_again(world: tuple[Callable[..., list[str]], Path, Times], registry: Registry) -> None:
    """A copy that is served again in between is kept, and its time begins anew when it is not."""
    look, _, _ = world
    look()
    attach(registry, "one")
    assert look(after=AFTER) == BOTH
    attach(registry, "two")
    assert look(after=1) == BOTH
    assert look(after=AFTER) == SERVED


def test_being_attached(registry: Registry, tmp_path: Path) -> None:
    """A copy that was made a moment ago is not named yet: it stays, however long this server has looked."""
    folder, times = tmp_path / "snapshots", Times()
    (folder / "people").mkdir(parents=True)
    fresh = folder / "people" / "new.duckdb"
    fresh.write_text("true data")
    made = fresh.stat().st_mtime
    retirement = Retirement(registry, folder, after_seconds=AFTER, clock=times, wall=lambda: made + AFTER - 1)
    retirement.look()
    times.now += 10 * AFTER
    retirement.look()
    assert copies(folder) == ["people/new.duckdb"]


def test_removed_datasets(world: tuple[Callable[..., list[str]], Path, Times], registry: Registry) -> None:
    """A dataset that was removed leaves no copy of its data behind."""
    look, _, _ = world
    registry.remove_dataset("people", actor="test")
    look()
    assert look(after=AFTER) == ["people/notes.txt"]
