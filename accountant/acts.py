"""Acts: what administrators did, in the one chain with the entries.

An act has a number of the ledger's own sequence and the hash of whatever came before it, entry or act; what comes after
it names its hash. So the head, the high-water mark, checkpoints, exports and audits cover acts as they cover charges.
It is written in the transaction of what it tells of, under the lock of the head.

An act also vouches for rows beside the ledger: it keeps the hash that each row which it changed has afterwards. The
audit compares every row of `WATCHED` with the last act about it, so a role that was raised past the program, a key that
was planted or a dataset that was exchanged is found like a changed charge. Rows are hashed, never shown: of a key the
act says nothing that helps to guess it.
"""

from __future__ import annotations

import contextlib
import hashlib
import heapq
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from sqlalchemy import Connection, RowMapping, inspect, select, text

from accountant.continuity import Head
from accountant.entry import GENESIS, Entry, canonical_json, read_entry
from accountant.highwater import HighWater, Mark
from accountant.statements import Columns
from accountant.tables import acts, entries, ledger_meta
from privacy.values import Json

__all__ = [
    "WATCHED",
    "Act",
    "Chain",
    "Link",
    "Rows",
    "Watched",
    "append_act",
    "chain",
    "continuing",
    "hash_at",
    "link_at",
    "lock_head",
    "missing_tables",
    "raise_mark",
    "read_act",
    "row_hash",
    "row_hashes",
    "rows_of",
]

Rows = Mapping[str, Mapping[str, str | None]]
"""Of a table's name and a row's key the hash of the row; None where there is no row any more."""


@dataclass(frozen=True, slots=True)
class Watched:
    """A table whose rows acts vouch for: its key, and the columns that change without an act."""

    key: str
    besides: frozenset[str] = frozenset()


WATCHED: Final[Mapping[str, Watched]] = {
    "principals": Watched("name"),
    "api_keys": Watched("id", frozenset({"last_used_day"})),
    "dataset_versions": Watched("sequence"),
    "proposals": Watched("id"),
    "webhooks": Watched("id", frozenset({"sealed"})),
}
"""Tables of the registry. What a webhook has sealed is encrypted anew when the secret changes, and is authenticated."""


@dataclass(frozen=True, slots=True)
class Act:
    """One act. `details` is canonical JSON: what changed, with hashes of bodies; `created` is in microseconds."""

    sequence: int
    actor: str
    action: str
    subject: str
    details: str
    created: int
    previous: str
    hash: str

    def digest(self) -> str:
        """What `hash` must be."""
        fields = (
            *("act/1", self.sequence, self.actor, self.action, self.subject, self.details),
            *(self.created, self.previous),
        )
        return hashlib.sha256(_ENCODER.encode(fields).encode("ascii")).hexdigest()


_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


def read_act(row: Columns) -> Act:
    """An act from a row that has all its columns by name."""
    fields = (row.sequence, row.actor, row.action, row.subject, row.details, row.created, row.previous, row.hash)
    return Act(*fields)


def rows_of(details: str) -> Rows:
    """What an act vouches for. Errors: ValueError, TypeError, AttributeError for what no act says."""
    found = json.loads(details).get("rows", {})
    return {str(table): dict(hashes.items()) for table, hashes in found.items()}


class Link(NamedTuple):
    """What the next entry or act follows."""

    hash: str
    created: int


def link_at(connection: Connection, sequence: int) -> Link | None:
    """The entry or act of that number; 64 zeros at 0, None where there is none."""
    if sequence == 0:
        return Link(GENESIS, 0)
    for table in (entries, acts):
        chosen = select(table.c.hash, table.c.created).where(table.c.sequence == sequence)
        found = connection.execute(chosen).one_or_none()
        if found is not None:
            return Link(*found)
    return None


def hash_at(connection: Connection, sequence: int) -> str | None:
    """The hash of the entry or act of that number; 64 zeros at 0, None where there is none."""
    link = link_at(connection, sequence)
    return None if link is None else link.hash


def chain(connection: Connection, *, after: int = 0) -> Iterator[Entry | Act]:
    """Entries and acts in the order of their numbers."""
    charged = select(entries).where(entries.c.sequence > after).order_by(entries.c.sequence)
    told = select(acts).where(acts.c.sequence > after).order_by(acts.c.sequence)
    found = connection.execution_options(yield_per=1000)
    return heapq.merge(map(read_entry, found.execute(charged)), map(read_act, found.execute(told)), key=_number)


def _number(one: Entry | Act) -> int:
    return one.sequence


class Chain(Protocol):
    """Where the chain ends in a transaction that has not written its head yet; `now` is the ledger's time."""

    sequence: int
    hash: str
    now: int


_CHAIN = "noisegate.chain"
"""Under this name a connection knows the chain of a batch of the ledger, while that lets others write beside it."""


@contextlib.contextmanager
def continuing(connection: Connection, chain: Chain) -> Iterator[None]:
    """Acts on this connection follow the chain of a batch; where something is raised, the chain is as before."""
    before = chain.sequence, chain.hash
    connection.info[_CHAIN] = chain
    try:
        yield
    except BaseException:
        chain.sequence, chain.hash = before
        raise
    finally:
        del connection.info[_CHAIN]


def lock_head(connection: Connection) -> Head:
    """The ledger's head, which nobody else moves until the transaction ends. First of all locks, as in the ledger."""
    meta = ledger_meta.c
    return Head(*connection.execute(select(meta.sequence, meta.hash, meta.epoch).with_for_update()).one())


def append_act(
    connection: Connection, *, actor: str, action: str, subject: str, details: Mapping[str, Json], clock: int
) -> Act:
    """Writes an act in the transaction that is open, which holds the ledger's head until it ends.

    `clock` is this machine's, in microseconds: the act is of the ledger's time, which never falls.
    """
    batch: Chain | None = connection.info.get(_CHAIN)
    if batch is None:
        head = lock_head(connection)
    else:
        head = Head(batch.sequence, batch.hash, batch.now)
    told, now = canonical_json(dict(details)), max(clock, head.epoch) if batch is None else batch.now
    made = Act(head.sequence + 1, actor, action, subject, told, now, head.hash, "")
    written = replace(made, hash=made.digest())
    connection.execute(acts.insert().values(**asdict(written)))
    if batch is None:
        moved = {"sequence": written.sequence, "hash": written.hash, "epoch": now}
        connection.execute(ledger_meta.update().values(**moved))
    else:
        batch.sequence, batch.hash = written.sequence, written.hash
    return written


def row_hash(row: Mapping[str, object] | RowMapping, watched: Watched) -> str:
    """SHA-256 of a row: of its columns that are not NULL, by name; bytes as hexadecimal digits, truth as 0 and 1."""
    kept = {name: _plain(value) for name, value in row.items() if value is not None and name not in watched.besides}
    return hashlib.sha256(canonical_json(kept).encode("ascii")).hexdigest()


def _plain(value: object) -> Json:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).hex()
    if isinstance(value, (int, str)):
        return value
    return str(value)


def row_hashes(
    connection: Connection, table: str, keys: Sequence[str | int] | None = None
) -> Iterator[tuple[str, str]]:
    """Key and hash of the rows of a watched table that are there: of these keys, or of all."""
    watched = WATCHED[table]
    if keys is None:
        found = connection.execute(text(f"SELECT * FROM {table}"))
        for row in found.mappings():
            yield str(row[watched.key]), row_hash(row, watched)
        return
    one = text(f"SELECT * FROM {table} WHERE {watched.key} = :key")
    for key in keys:
        for row in connection.execute(one, {"key": key}).mappings():
            yield str(key), row_hash(row, watched)


def missing_tables(connection: Connection) -> frozenset[str]:
    """The watched tables that a database does not have."""
    there = set(inspect(connection).get_table_names())
    return frozenset(WATCHED.keys() - there)


def raise_mark(connection: Connection, file: Path) -> None:
    """Notes the head in the high-water mark after an act, where the ledger holds what the mark remembers.

    A ledger that is behind its mark, or that has none yet, is left to whoever opens it for spending.
    """
    with contextlib.closing(HighWater(file)) as mark:
        try:
            known = mark.read()
        except ValueError:
            return
        if known is None:
            return
        meta = ledger_meta.c
        chosen = select(meta.ledger, meta.sequence, meta.hash, meta.epoch)
        ledger, sequence, digest, epoch = connection.execute(chosen).one()
        if known.ledger == ledger and hash_at(connection, known.sequence) == known.hash:
            mark.write(Mark(ledger, sequence, digest, epoch))
    connection.rollback()
