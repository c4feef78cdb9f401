"""Putting a backup back, where nothing is: never over a ledger, and never unnoticed by it.

A backup has forgotten what was charged after it was made. What tells that is the high-water mark: where the home still
has one, it stays, and the ledger compares itself with it. Where there is none, nobody knows what was charged, so a mark
is written that is one entry beyond the backup. Either way nothing is spent until an administrator acknowledges it,
unless the mark says that the backup is the newest there was. Monitors and streams are charged when they are opened, and
what they say afterwards is in no entry: a backup with open ones is never taken for the newest, and acknowledging a
restore ends them.
"""

from __future__ import annotations

import filecmp
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from accountant.highwater import HighWater, Mark
from migrations.copies import CopyFault, copy_in, is_empty
from migrations.upgrade import head
from server.backups.archive import LEDGER, BackupRefused, Contents, unpack
from server.store.copied import read_copy

if TYPE_CHECKING:
    from server.settings import Settings

__all__ = ["Restored", "restore"]

_UNKNOWN = "f" * 64
"""In place of the hash of an entry that may have been written after a backup: no entry has it."""


@dataclass(frozen=True, slots=True)
class Restored:
    """What was put back. `newest` says that the mark of the home knows no later entry than the backup has."""

    contents: Contents
    newest: bool
    older_schema: bool


def restore(settings: Settings, archive: Path) -> Restored:
    """Puts a backup into an empty home, or into one that lost its ledger. No server may be running on it.

    Files of the home that are there already must be those of the backup: nothing is overwritten.
    Errors: BackupRefused; OSError; those of the database.
    """
    home = settings.home
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".restore-", dir=home) as folder:
        unpacked = Path(folder)
        contents = unpack(archive, unpacked)
        copy = unpacked / LEDGER
        found = read_copy(copy)
        if (found.identity, found.sequence, found.hash) != (contents.ledger, contents.sequence, contents.hash):
            raise BackupRefused(
                f'the file "{archive}" is no whole backup',
                "The ledger in it is not the one that its list names.",
                "Take another backup.",
            )
        if contents.revision > head():
            raise BackupRefused(
                f'cannot restore "{archive}"',
                f"Version {contents.program} made it, which is newer than this program.",
                "Restore it with that version.",
            )
        if not is_empty(settings.database()):
            raise BackupRefused(
                "there is a ledger already",
                "Nothing is put over a ledger: what it has charged would be forgotten.",
                "Choose another home with --home DIR,",
                "or move ledger.sqlite and the files beside it away first, and leave ledger.highwater where it is.",
            )
        moves = _moves(unpacked, home)
        newest = _marked(HighWater(settings.high_water()), contents, sessions=found.sessions)
        for source, target in moves:
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            source.rename(target)
        # Last: while there is no ledger, nothing can be spent, and the same command goes on where it stopped.
        try:
            copy_in(copy, settings.database())
        except CopyFault as fault:
            raise BackupRefused("could not put the ledger back", f"{fault}.", "Take another backup.") from None
    return Restored(contents, newest, contents.revision < head())


def _moves(unpacked: Path, home: Path) -> list[tuple[Path, Path]]:
    """Which unpacked files go where. Errors: BackupRefused when another file is in the way."""
    moves = []
    for file in sorted(unpacked.rglob("*")):
        inner = file.relative_to(unpacked)
        if not file.is_file() or inner.name.startswith(LEDGER):
            continue
        target = home / inner
        if not target.exists():
            moves.append((file, target))
        elif not _same(file, target):
            raise BackupRefused(
                f'another file is in the way: "{target}"',
                "It is not the one of the backup, and nothing is overwritten.",
                "Move it away, or choose an empty home with --home DIR.",
            )
    return moves


def _same(one: Path, other: Path) -> bool:
    return other.is_file() and filecmp.cmp(one, other, shallow=False)


def _marked(mark: HighWater, contents: Contents, *, sessions: bool) -> bool:
    """Leaves a mark that the restored ledger is compared with; whether it knows no later entry than the backup's.

    Errors: BackupRefused when it cannot be written.
    """
    there = Mark(ledger=contents.ledger, sequence=contents.sequence, hash=contents.hash)
    try:
        known = mark.read()
    except ValueError:
        return False
    epoch = 0 if known is None else known.epoch
    if known is not None:
        newest = known.ledger == there.ledger and known.sequence <= there.sequence
        if not (newest and sessions):
            return newest
    mark.write(Mark(ledger=contents.ledger, sequence=contents.sequence + 1, hash=_UNKNOWN, epoch=epoch))
    failed = mark.failed
    mark.close()
    if failed:
        raise BackupRefused(
            "could not write the high-water mark",
            "Without it nobody would notice that the backup has forgotten charges.",
            "Make its folder writable (high_water_file, by default the home).",
        )
    return False
