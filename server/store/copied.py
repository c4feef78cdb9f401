"""What a copy of the database says of itself: which ledger it is, how far it got, and what it serves."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, func, inspect, select

from accountant.audit import AuditReport, audit_ledger
from accountant.connection import open_engine
from accountant.tables import ledger_meta
from server.store.tables import dataset_versions, monitors, streams

__all__ = ["Copied", "audit_copy", "read_copy"]


@dataclass(frozen=True, slots=True)
class Copied:
    """The ledger's name, the sequence and the hash of its last entry, and the datasets that are attached.

    `datasets` are their names; `snapshots` where theirs are, relative to the folder of all snapshots. `sessions` says
    whether monitors or streams may still say something: what they have said is in no entry of the ledger.
    """

    identity: str
    sequence: int
    hash: str
    datasets: tuple[str, ...]
    snapshots: tuple[str, ...]
    sessions: bool


def read_copy(file: Path) -> Copied:
    """Reads a copy, of the schema of any version. Errors: those of the database."""
    meta, versions = ledger_meta.c, dataset_versions.c
    with _opened(file) as connection:
        identity, sequence, digest = connection.execute(select(meta.ledger, meta.sequence, meta.hash)).one()
        chosen = select(versions.name, versions.snapshot).where(versions.current).order_by(versions.name)
        attached = connection.execute(chosen).all()
        there = [table for table in (monitors, streams) if inspect(connection).has_table(table.name)]
        left = [select(func.count()).select_from(table).where(table.c.left > 0) for table in there]
        sessions = any(connection.execute(count).scalar_one() for count in left)
    names, snapshots = (tuple(column) for column in zip(*attached, strict=True)) if attached else ((), ())
    return Copied(identity, sequence, digest, names, snapshots, sessions)


def audit_copy(file: Path) -> AuditReport:
    """Recomputes every balance of a copy that has this version's schema. Changes nothing in it."""
    with _opened(file) as connection:
        return audit_ledger(connection)


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[Connection]:
    engine = open_engine(f"sqlite:///{file.absolute()}", foreign_keys=False)
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()
