"""The high-water mark: a small file, kept apart from the ledger, that remembers how far the ledger had got.

A backup of the ledger that is put back has forgotten charges; the people in the data have not forgotten the answers. A
ledger that is behind its mark, or whose entry at the mark is another one, spends nothing until somebody
acknowledges it with a name and a reason.

The mark is written after every commit, so it is never ahead of what is durable, and it is never lowered, except by an
acknowledgement: of several processes that write one file the one that is late leaves it as it is. It is not flushed:
after a power loss it may be a little behind, which can only hide the loss of as little. It notices nothing when it is
restored together with the ledger: keep it on another disk, outside the backup.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from accountant.entry import GENESIS, canonical_json
from privacy.values import Json

if sys.platform != "win32":
    import fcntl

__all__ = ["HighWater", "Mark"]

_RECORD_LENGTH = 256


@dataclass(frozen=True, slots=True)
class Mark:
    """Which ledger, the sequence of its last entry, that entry's hash, and the ledger's time in microseconds.

    Marks of earlier versions have the time 0.
    """

    ledger: str
    sequence: int
    hash: str
    epoch: int = field(default=0, compare=False)


class HighWater:
    """The file of one ledger. `failed` says that the last write did not succeed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1
        self.failed = False

    def read(self) -> Mark | None:
        """The mark, None when there is no file yet. Raises ValueError when the file is not a mark."""
        try:
            text = self._path.read_text(encoding="ascii")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError):
            raise ValueError("the high-water mark cannot be read") from None
        return _parsed(text)

    def read_epoch(self) -> int:
        """The ledger's time that the mark knows; 0 where there is none, or none that can be read."""
        try:
            mark = self.read()
        except ValueError:
            return 0
        return 0 if mark is None else mark.epoch

    def write(self, mark: Mark, *, lower: bool = False) -> None:
        """Writes the mark over the one before, unless that one is higher or another ledger's; `lower` always writes it.

        A failure does not undo a durable commit: `failed` remembers it. One write of one short record of constant
        length: a process that is killed leaves the old mark or the new one.
        """
        stored: dict[str, Json] = {"ledger": mark.ledger, "sequence": mark.sequence, "hash": mark.hash}
        text = canonical_json({**stored, "epoch": mark.epoch})
        record = text.ljust(_RECORD_LENGTH - 1).encode("ascii") + b"\n"
        try:
            fresh = self._descriptor < 0
            if fresh:
                self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
            with self._locked():
                if lower or self._rises_to(mark):
                    os.pwrite(self._descriptor, record, 0)
            if fresh:
                os.fsync(self._descriptor)
        except (OSError, ValueError):
            self.failed = True
        else:
            self.failed = False

    def _rises_to(self, mark: Mark) -> bool:
        """Whether `mark` is above what the file holds now. Errors: ValueError when that is not a mark."""
        there = os.pread(self._descriptor, _RECORD_LENGTH, 0)
        if not there:
            return True
        stored = _parsed(there.decode("ascii"))
        return stored.ledger == mark.ledger and stored.sequence < mark.sequence

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Keeps other processes from writing between the comparison and the write."""
        if sys.platform == "win32":
            yield
            return
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Flushes the mark and closes the file."""
        if self._descriptor >= 0:
            try:
                os.fsync(self._descriptor)
            except OSError:
                self.failed = True
            os.close(self._descriptor)
            self._descriptor = -1


def _parsed(text: str) -> Mark:
    """The mark in a file's text. Errors: ValueError."""
    try:
        stored = json.loads(text)
        epoch = stored.get("epoch", 0)
        mark = Mark(ledger=stored["ledger"], sequence=stored["sequence"], hash=stored["hash"], epoch=epoch)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError("the high-water mark cannot be read") from None
    typed = isinstance(mark.ledger, str) and isinstance(mark.sequence, int) and isinstance(mark.hash, str)
    if (
        not typed
        or not isinstance(mark.epoch, int)
        or mark.epoch < 0
        or mark.sequence < 0
        or len(mark.hash) != len(GENESIS)
    ):
        raise ValueError("the high-water mark cannot be read")
    return mark
