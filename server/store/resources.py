"""Resources as they are stored: what all kinds have in one table, and what one kind has besides in a table of its own.

What a resource was charged, its state and its answer are those of the query of the same identifier in the ledger.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Generic, TypeVar

from sqlalchemy import ColumnElement, Connection, Select, Table, insert, select, update

from privacy.values import Json
from server.resources.kinds import ResourceKind
from server.store.tables import batches, monitors, resources, streams, synthetic_tables
from server.store.transactions import Transactions

__all__ = [
    "BATCHES",
    "MODELS",
    "MONITORS",
    "STREAMS",
    "SYNTHETICS",
    "BatchRow",
    "Kept",
    "MonitorRow",
    "ResourceRow",
    "ResourceRows",
    "StreamRow",
    "SyntheticRow",
]

R = TypeVar("R", bound="ResourceRow")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceRow:
    """What every resource has. `terms` and `price` are JSON that its owner and overseers may read: no text of SQL.

    `price` is what was agreed (server/resources/offer.py); None for what version 0.10.0 stored, and streams of 0.11.0.
    `closed` is when it was closed.
    """

    id: str
    principal: str
    dataset: str
    account: str
    created: str = ""
    price: str | None
    terms: str
    closed: str | None = None

    def of(self, row: Callable[..., R], **own: object) -> R:
        """The same as a row of a kind, with what this one has besides."""
        return row(**{field.name: getattr(self, field.name) for field in fields(ResourceRow)}, **own)


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorRow(ResourceRow):
    """One monitor. `sealed` is secret state, encrypted; `left` are hits that are left.

    `background`: the server evaluates it by itself.
    """

    sealed: bytes
    left: int
    revision: int = 0
    background: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRow(ResourceRow):
    """One stream. `frame` and `sealed` are encrypted; one that was closed has neither.

    `left` are updates, `made` are comparisons. `instance` is the process that has the turn, by the ledger's name for
    it. `shared`: others of the dataset may ask it.
    """

    frame: bytes
    sealed: bytes
    left: int
    made: int = 0
    revision: int = 0
    instance: str | None = None
    shared: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRow(ResourceRow):
    """One batch, under the identifier of its query. `sealed` has the texts."""

    sealed: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticRow(ResourceRow):
    """One synthetic table without its rows; without a report, which is JSON, it is not made yet."""

    name: str
    slot: str | None
    data_version: str
    report: str | None = None


@dataclass(frozen=True, slots=True)
class Kept(Generic[R]):
    """How a kind is kept: the type of its rows, and the table that has what others lack."""

    kind: ResourceKind
    row: type[R]
    beside: Table | None = None

    @property
    def own(self) -> tuple[str, ...]:
        """The columns of the table beside, without the identifier."""
        return tuple(field.name for field in fields(self.row) if field.name not in _COMMON)

    @property
    def all(self) -> Select[tuple[object, ...]]:
        """Every resource of the kind."""
        columns = [resources.c[name] for name in _COMMON]
        chosen: Select[tuple[object, ...]]
        if self.beside is None:
            chosen = select(*columns)
        else:
            columns += [self.beside.c[name] for name in self.own]
            chosen = select(*columns).join_from(resources, self.beside, resources.c.id == self.beside.c.id)
        return chosen.where(resources.c.kind == self.kind.value)


_COMMON = tuple(field.name for field in fields(ResourceRow))

MONITORS = Kept(ResourceKind.MONITOR, MonitorRow, monitors)
STREAMS = Kept(ResourceKind.STREAM, StreamRow, streams)
BATCHES = Kept(ResourceKind.BATCH, BatchRow, batches)
MODELS = Kept(ResourceKind.MODEL, ResourceRow)
SYNTHETICS = Kept(ResourceKind.SYNTHETIC, SyntheticRow, synthetic_tables)


class ResourceRows(Transactions):
    """The rows of resources. Thread-safe; every method is one transaction."""

    def add_resource(self, kept: Kept[R], row: R) -> R:
        """Stores a new resource, with the moment of its creation. Errors: IntegrityError where it cannot be one."""
        made = replace(row, created=self._now())
        with self._acting() as connection:
            values = {name: getattr(made, name) for name in _COMMON}
            connection.execute(insert(resources).values(kind=kept.kind.value, **values))
            if kept.beside is not None:
                own = {name: getattr(made, name) for name in ("id", *kept.own)}
                connection.execute(insert(kept.beside).values(**own))
            told: dict[str, Json] = {"dataset": row.dataset, "terms": hashlib.sha256(row.terms.encode()).hexdigest()}
            action = f"{kept.kind.value}_create"
            self._log(connection, actor=row.principal, action=action, subject=row.id, details=told)
            self._commit(connection)
        return made

    def resource(self, kept: Kept[R], identifier: str) -> R | None:
        """The resource of that kind and identifier."""
        found = self.resources_where(kept, resources.c.id == identifier)
        return found[0] if found else None

    def resources(
        self, kept: Kept[R], principal: str | None, *, dataset: str | None, after: str | None, count: int
    ) -> tuple[R, ...]:
        """A page of a principal's resources, or of everybody's, the newest first.

        `after` is the last one of the page before, `dataset` the only one whose resources are wanted.
        """
        query = kept.all
        if principal is not None:
            query = query.where(resources.c.principal == principal)
        if dataset is not None:
            query = query.where(resources.c.dataset == dataset)
        return tuple(kept.row(**row._mapping) for row in self._page(query, resources, after=after, count=count))

    def resources_where(self, kept: Kept[R], *conditions: ColumnElement[bool]) -> tuple[R, ...]:
        """Every resource of the kind of which that holds, the oldest first."""
        query = kept.all.where(*conditions).order_by(resources.c.created, resources.c.id)
        with self._engine.connect() as connection:
            return tuple(kept.row(**row._mapping) for row in connection.execute(query))

    def close_resource(self, kept: Kept[R], identifier: str, *, actor: str, **own: object) -> bool:
        """Closes a resource, and sets columns of the table beside. False, and nothing changed, where it was closed."""
        with self._acting() as connection:
            changed = self._close(connection, identifier)
            if changed and own:
                assert kept.beside is not None
                connection.execute(update(kept.beside).where(kept.beside.c.id == identifier).values(**own))
            if changed:
                self._log(connection, actor=actor, action=f"{kept.kind.value}_close", subject=identifier)
            self._commit(connection)
        return changed

    def _close(self, connection: Connection, identifier: str) -> bool:
        this = (resources.c.id == identifier) & resources.c.closed.is_(None)
        return connection.execute(update(resources).where(this).values(closed=self._now())).rowcount > 0
