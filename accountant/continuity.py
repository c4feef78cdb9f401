"""Notices that a ledger went backwards, or was replaced, while this process had it open.

A database can lose commits that had returned: a failover to a replica that lacked them, a backup put back under a
running server, a file that was removed. What was revealed in between cannot be taken back, but nothing more may be
spent on the strength of a ledger that has forgotten it. So every batch shows three things before it decides anything:

- the entry at the last head that this process saw durable is still there, with the same hash;
- this process's own row still holds the number of its last durable batch (batches without entries count too);
- SQLite's file, and its write-ahead log, are the ones that were opened, by device and inode. A removed file goes on
  taking commits that nobody will find again, so this is asked after each commit as well, before anybody is answered.

Each of them that fails is `LedgerBehind`, from then on and for every step, until an administrator acknowledges it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from accountant.entry import GENESIS
from accountant.errors import LedgerBehind
from privacy.values import Json

__all__ = ["Continuity", "Head", "OpenedFile"]


@dataclass(frozen=True, slots=True)
class Head:
    """A ledger's last entry: its sequence and its hash. An empty ledger has 0 and 64 zeros. `epoch` is its time."""

    sequence: int = 0
    hash: str = GENESIS
    epoch: int = 0


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


class OpenedFile:
    """The files of a SQLite ledger as they were when they were opened. Nothing is checked without a path."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._log = None if path is None else path.with_name(f"{path.name}-wal")
        self._opened = None if path is None else _identity(path)
        self._opened_log: tuple[int, int] | None = None

    def log_may_change(self) -> None:
        """The connection that held the write-ahead log was closed: SQLite may have made another one."""
        self._opened_log = None

    def log_is_open(self) -> None:
        """A transaction is open, so the write-ahead log is there and stays; the first one after opening is kept."""
        if self._log is not None and self._opened_log is None:
            self._opened_log = _identity(self._log)

    def intact(self) -> bool:
        """Whether the files at their paths are those that are open."""
        if self._path is None or self._log is None:
            return True
        if _identity(self._path) != self._opened:
            return False
        return self._opened_log is None or _identity(self._log) == self._opened_log


class Continuity:
    """What this process knows to be durable. Used by the writer's thread alone.

    `lost` says what was missing when a check failed, as `Acknowledge` keeps it.
    """

    def __init__(self, head: Head, file: OpenedFile) -> None:
        self.head = head
        self.batch = 0
        self.file = file
        self.lost: dict[str, Json] | None = None

    def check_file(self) -> None:
        """Errors: LedgerBehind when SQLite's file is not the one that was opened."""
        if not self.file.intact():
            self._stop(
                {"file": "exchanged"},
                "the ledger's file was removed or exchanged while it was open; nothing is spent until the server is "
                "started again on the right one",
            )

    def check_head(self, sequence: int, hash_there: str | None) -> None:
        """Compares the locked head, and the hash of the entry at the last durable head, with what was durable.

        Errors: LedgerBehind.
        """
        expected = GENESIS if self.head.sequence == 0 else self.head.hash
        there = GENESIS if self.head.sequence == 0 else hash_there
        if sequence < self.head.sequence or there != expected:
            self._stop(
                {
                    "durable": {"hash": self.head.hash, "sequence": self.head.sequence},
                    "ledger_sequence": sequence,
                },
                "the ledger has lost entries that were durable: its database went back to an older state; nothing is "
                "spent until an administrator acknowledges it",
            )

    def check_instance(self, rows: int) -> None:
        """The update of this process's row must have hit that one row, with the number of the last durable batch.

        Errors: LedgerBehind.
        """
        if rows != 1:
            self.lose_batches()

    def lose_batches(self) -> None:
        """The process's own row is gone or holds another number. Errors: LedgerBehind, always."""
        self._stop(
            {"batch": self.batch, "durable": {"hash": self.head.hash, "sequence": self.head.sequence}},
            "the ledger has lost transactions of this process that were durable; nothing is spent until an "
            "administrator acknowledges it",
        )

    def durable(self, head: Head, batch: int) -> None:
        """A batch is durable. Not called while something is lost, except by the batch that acknowledges it."""
        self.head = head
        self.batch = batch
        self.lost = None

    def _stop(self, lost: dict[str, Json], text: str) -> None:
        self.lost = lost
        raise LedgerBehind(text)
