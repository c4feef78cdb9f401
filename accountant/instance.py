"""Which processes are alive: what a dead one had reserved is failed, and stays charged.

Every start of a writing process has a row with a lease that each of its batches renews. When the lease is over, its
open queries are failed by whoever recovers next. A process that was only slow finds its query failed when it posts: it
reveals nothing, and the charge stays, so a wrong guess costs budget and never privacy.

On SQLite the processes are on one machine, and a lock on a file beside the ledger, which the kernel releases when a
process ends, shows at once whether there is any other: the first process after a crash does not have to wait for a
lease.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

if sys.platform != "win32":
    import fcntl

__all__ = ["OwnerLock"]


class OwnerLock:
    """A shared lock held while the ledger is open, taken exclusively for a moment when nobody else has it.

    `exclusive` is True from the start until `share` when no other process has the ledger open.
    """

    def __init__(self, ledger: Path) -> None:
        self.exclusive = False
        self._descriptor = os.open(ledger.with_name(f"{ledger.name}-owner"), os.O_RDWR | os.O_CREAT, 0o600)
        if sys.platform != "win32":
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self.exclusive = True
            if not self.exclusive:
                self.share()

    def share(self) -> None:
        """Lets others in."""
        if sys.platform != "win32":
            fcntl.flock(self._descriptor, fcntl.LOCK_SH)
        self.exclusive = False

    def close(self) -> None:
        """Releases the lock."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
