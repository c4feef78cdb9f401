"""Making a backup: the ledger at one moment, and everything without which it is of no use.

What belongs to a ledger: the files of its datasets, the secrets that keys are hashed and groups are chosen with, and
the snapshots that questions run on. Snapshots never change, and the ledger is copied before them, so each that it names
is there. What does not belong to it is the high-water mark: it must not go back together with what it watches.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from accountant.ledger import utc_now
from migrations.copies import CopyFault, copy_out
from migrations.upgrade import head
from server.backups.archive import LEDGER, BackupRefused, Contents, Packer
from server.installed import program_version
from server.store.copied import audit_copy, read_copy
from server.store.transactions import iso

if TYPE_CHECKING:
    from accountant.audit import AuditReport
    from server.settings import Settings

__all__ = ["Made", "make_backup"]


_DESCRIPTIONS = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True)
class Made:
    """A backup that was made: what it holds, its length in bytes, and the audit of the ledger in it.

    `audit` is None where the ledger has the schema of an older version, which this one cannot read. `missing` are
    snapshots that the ledger names and that were not there.
    """

    contents: Contents
    bytes: int
    audit: AuditReport | None
    missing: tuple[str, ...]


def make_backup(settings: Settings, target: Path, *, data: bool = True) -> Made:
    """Writes a backup to a file that does not exist yet, also while servers run and spend.

    `data` takes the snapshots of the attached datasets; without them their owners attach the data again.
    Errors: BackupRefused; NotMigrated, SchemaTooNew; OSError; those of the database.
    """
    if target.exists():
        raise BackupRefused(
            f'could not write "{target}": it exists', "It may be your only backup.", "Choose another name."
        )
    with tempfile.TemporaryDirectory(prefix=".backup-", dir=target.parent) as folder, Packer(target) as packer:
        copy = Path(folder) / LEDGER
        try:
            revision = copy_out(settings.database(), copy)
        except CopyFault as fault:
            raise BackupRefused("could not copy the ledger", f"{fault}.", "See: noisegate doctor") from None
        audit, ledger = audit_copy(copy) if revision == head() else None, read_copy(copy)
        packer.add(LEDGER, copy)
        for one in (settings.datasets_directory, settings.secrets_directory):
            for file in _files(one):
                if not data and one == settings.datasets_directory and file.suffix not in _DESCRIPTIONS:
                    continue  # the data of a dataset, of people
                packer.add(f"{one.name}/{file.relative_to(one).as_posix()}", file)
        missing = []
        for snapshot in ledger.snapshots if data else ():
            there = [*_of_snapshot(settings.snapshots_directory / snapshot)]
            missing += [] if there else [snapshot]
            for file in there:
                packer.add(f"snapshots/{file.relative_to(settings.snapshots_directory).as_posix()}", file)
        contents = Contents(
            made=iso(utc_now()),
            program=program_version(),
            database="sqlite" if settings.database().startswith("sqlite") else "postgresql",
            revision=revision,
            ledger=ledger.identity,
            sequence=ledger.sequence,
            hash=ledger.hash,
            datasets=ledger.datasets,
            left_out=() if data else ("snapshots",),
        )
        packer.finish(contents)
    return Made(contents, target.stat().st_size, audit, tuple(missing))


def _files(folder: Path) -> Iterator[Path]:
    """The files of a folder and of those in it; links are left out, what they name is not the home's."""
    if folder.is_dir():
        yield from sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _of_snapshot(path: Path) -> Iterator[Path]:
    """The file of a snapshot and what describes it."""
    if path.is_file():
        yield from sorted(path.parent.glob(f"{path.stem}.*"))
