"""Private folders that are removed even when the server is killed: the next start sweeps what nobody holds.

A folder holds what queries spill and half-built snapshots, that is, true data. While its owner lives, the owner
holds a lock on a file inside; a folder whose lock is free has no owner any more.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

__all__ = ["PrivateFolder"]

_PREFIX = "noisegate-"
_LOCK = "lock"


class PrivateFolder:
    """A folder for this process alone, in `parent` or the system's place for temporary files."""

    def __init__(self, parent: Path | None = None) -> None:
        """Remove abandoned folders in the same place, then create a new one."""
        if parent is not None:
            parent.mkdir(parents=True, exist_ok=True)
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        # Locked before it has its name: a sweep never sees an unlocked lock of a living owner.
        hidden = self.path / "new"
        self._lock = os.open(hidden, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        hidden.rename(self.path / _LOCK)
        _sweep(self.path)

    def remove(self) -> None:
        """Remove the folder and everything in it. May be called twice."""
        shutil.rmtree(self.path, ignore_errors=True)
        lock, self._lock = self._lock, -1
        if lock >= 0:
            os.close(lock)


def _sweep(own: Path) -> None:
    for lock in own.parent.glob(f"{_PREFIX}*/{_LOCK}"):
        if lock.parent == own:
            continue
        with contextlib.suppress(OSError):
            descriptor = os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(lock.parent, ignore_errors=True)
            finally:
                os.close(descriptor)
