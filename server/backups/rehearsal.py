"""Rehearses an upgrade: a copy of the ledger is brought to this version and audited, and the real one is left alone."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from migrations.copies import CopyFault, copy_out
from migrations.upgrade import upgrade
from server.backups.archive import LEDGER, BackupRefused
from server.store.copied import audit_copy

if TYPE_CHECKING:
    from accountant.audit import AuditReport
    from server.settings import Settings

__all__ = ["Rehearsed", "rehearse"]


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """The schema as it is, the schema after the upgrade, and the audit of the upgraded copy."""

    before: str
    after: str
    audit: AuditReport


def rehearse(settings: Settings) -> Rehearsed:
    """Upgrades a copy in the home, which is removed afterwards. A PostgreSQL's copy is one of SQLite.

    Errors: BackupRefused; NotMigrated, SchemaTooNew; OSError; those of the database.
    """
    with tempfile.TemporaryDirectory(prefix=".rehearsal-", dir=settings.home) as folder:
        copy = Path(folder) / LEDGER
        try:
            before = copy_out(settings.database(), copy)
        except CopyFault as fault:
            raise BackupRefused("could not copy the ledger", f"{fault}.", "See: noisegate doctor") from None
        after = upgrade(f"sqlite:///{copy.absolute()}")
        return Rehearsed(before, after, audit_copy(copy))
