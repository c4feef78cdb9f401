"""Copies of data that no question reads any more are removed: they hold what people have since changed or taken back.

A copy is read as long as a version of a dataset that is served names it. What none names may still be read for a
moment, by a query under way or by another server that has not looked yet, and what is just being attached is not named
yet. So a copy goes when nothing has named it for a while, in which this server looked, and when it is itself as old.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from server.log import logger
from server.rounds import Rounds
from server.store.registry import Registry

__all__ = ["Retirement"]

_LOOK_SECONDS = 60.0
_SUFFIX = ".duckdb"


@dataclass(slots=True)
class Retirement:
    """The copies in one folder. `after_seconds` is for how long one is kept that is not served any more."""

    registry: Registry
    folder: Path
    after_seconds: float
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    rounds: Rounds = field(init=False)
    _unnamed: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rounds = Rounds("retirement", self._look, seconds=_LOOK_SECONDS)

    async def _look(self) -> None:
        self.look()

    def look(self) -> None:
        """Looks once, and removes what has been unnamed for long enough. Errors: those of the registry's database."""
        there = {file.relative_to(self.folder).as_posix(): file for file in self.folder.glob(f"*/*{_SUFFIX}")}
        # The folder first: what is attached between the two is named by the registry.
        named = {version.snapshot for version in self.registry.datasets()}
        self._forget(there.keys() - named)
        for name in sorted(self._unnamed):
            file, old = there[name], self.clock() - self._unnamed[name] >= self.after_seconds
            if old and self.wall() - file.stat().st_mtime >= self.after_seconds:
                for one in sorted(file.parent.glob(f"{file.stem}.*")):
                    one.unlink(missing_ok=True)
                del self._unnamed[name]
                logger().info("snapshot_removed", snapshot=name)

    def _forget(self, unnamed: Collection[str]) -> None:
        """Keeps since when copies have been unnamed, of those that still are."""
        now = self.clock()
        self._unnamed = {name: self._unnamed.get(name, now) for name in unnamed}
