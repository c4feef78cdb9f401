"""Backups of an installation: one file that is made while a server runs, verified when it is made and when it is read.

archive      the file: its members, its list of contents with hashes, what it refuses to be
making       the ledger at one moment, and everything that belongs to it
restoring    the same put back, never over anything, and never unnoticed by the ledger
rehearsal    a copy of the ledger brought to this version, to see that the real one can be
"""

from __future__ import annotations

from server.backups.archive import BackupRefused, Contents
from server.backups.making import Made, make_backup
from server.backups.rehearsal import Rehearsed, rehearse
from server.backups.restoring import Restored, restore

__all__ = ["BackupRefused", "Contents", "Made", "Rehearsed", "Restored", "make_backup", "rehearse", "restore"]
