"""Versions of datasets: which are stored, and which is served."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, Row, insert, select, update

from privacy.values import Json
from server.store.errors import NotReplaced, NotThere, VersionConflict
from server.store.tables import dataset_versions
from server.store.transactions import Transactions

__all__ = ["DATASET_NAME", "EITHER", "DatasetVersion", "Versions", "version_tag"]

DATASET_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,62}\Z", re.ASCII)
"""Names of datasets."""

EITHER = ""
"""For `replaces`: whatever is served, or nothing."""


@dataclass(frozen=True, slots=True)
class DatasetVersion:
    """One version of a dataset: its file as JSON, its snapshot, and whether it is the one that is served.

    `document` is None where what is stored is not a JSON object: one damaged row hides no other dataset.
    """

    name: str
    policy_version: int
    data_version: str
    snapshot: str
    document: Mapping[str, object] | None
    current: bool
    created: str
    actor: str

    @property
    def unit_space(self) -> str:
        """The unit space that it declares; its own name where it declares none, or cannot be read."""
        declared = (self.document or {}).get("unit_space")
        return declared if isinstance(declared, str) else self.name

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of its tables; none where the document cannot be read."""
        tables = (self.document or {}).get("tables")
        return tuple(map(str, tables)) if isinstance(tables, dict) else ()


class Versions(Transactions):
    """The versions of every dataset. Stored ones never change."""

    def register_dataset(
        self,
        *,
        name: str,
        policy_version: int,
        data_version: str,
        snapshot: str,
        document: Mapping[str, object],
        actor: str,
        replaces: str | None = EITHER,
    ) -> DatasetVersion:
        """Stores a version and makes it the one that is served. The same version again changes nothing.

        `replaces` is what must be served now: the tag of a version, "*" for any version, None for none, EITHER for no
        matter what.
        Errors: VersionConflict when the version is stored with other contents; NotReplaced when something else is
        served than `replaces` says; ValueError for a bad name.
        """
        if DATASET_NAME.match(name) is None:
            raise ValueError("a dataset's name starts with a letter and has letters, digits, _ . - only")
        # In the order of the file: analysts see tables and columns as their owner wrote them.
        stored = json.dumps(document, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        table = dataset_versions
        same = (
            (table.c.name == name) & (table.c.policy_version == policy_version) & (table.c.data_version == data_version)
        )
        with self._acting() as connection:
            _require_replaced(connection, name, replaces)
            row = connection.execute(select(table).where(same)).first()
            if row is not None and (_document(row.document) != json.loads(stored) or row.snapshot != snapshot):
                raise VersionConflict("this version of the dataset is stored with other contents")
            if row is None or not row.current:
                were = _current(connection, name)
                connection.execute(update(table).where(table.c.name == name).values(current=False))
                if row is None:
                    connection.execute(
                        insert(table).values(
                            name=name,
                            policy_version=policy_version,
                            data_version=data_version,
                            snapshot=snapshot,
                            document=stored,
                            current=True,
                            created=self._now(),
                            actor=actor,
                        )
                    )
                else:
                    connection.execute(update(table).where(same).values(current=True))
                row = connection.execute(select(table).where(same)).one()
                told = {"data_version": data_version, "document": hashlib.sha256(stored.encode()).hexdigest()}
                rows = {"dataset_versions": [*were, row.sequence]}
                subject = f"{name}/{policy_version}"
                self._log(
                    connection, actor=actor, action="dataset_registered", subject=subject, details=told, rows=rows
                )
            self._commit(connection)
        return _version(row)

    def require_replaced(self, name: str, replaces: str | None) -> None:
        """Errors: NotReplaced, as `register_dataset` would raise it now."""
        with self._engine.connect() as connection:
            _require_replaced(connection, name, replaces)

    def datasets(self) -> tuple[DatasetVersion, ...]:
        """The versions that are served, in order of names."""
        query = select(dataset_versions).where(dataset_versions.c.current).order_by(dataset_versions.c.name)
        with self._engine.connect() as connection:
            return tuple(_version(row) for row in connection.execute(query))

    def dataset_versions(self, name: str) -> tuple[DatasetVersion, ...]:
        """Every version of a dataset, oldest first."""
        query = select(dataset_versions).where(dataset_versions.c.name == name).order_by(dataset_versions.c.sequence)
        with self._engine.connect() as connection:
            return tuple(_version(row) for row in connection.execute(query))

    def remove_dataset(self, name: str, *, actor: str, replaces: str = EITHER) -> None:
        """Stops serving a dataset. Its accounts, entries and releases stay in the ledger.

        `replaces` is what must be served now: the tag of a version, "*" for any version, EITHER for no matter what.
        Errors: NotThere when nothing is served under the name; NotReplaced when something else is than `replaces` says.
        """
        table = dataset_versions
        with self._acting() as connection:
            served = (table.c.name == name) & table.c.current
            if connection.execute(select(table.c.name).where(served)).first() is None:
                raise NotThere("there is no such dataset")
            _require_replaced(connection, name, replaces)
            were = _current(connection, name)
            if connection.execute(update(table).where(served).values(current=False)).rowcount == 0:
                raise NotThere("there is no such dataset")
            rows = {"dataset_versions": were}
            self._log(connection, actor=actor, action="dataset_removed", subject=name, rows=rows)
            self._commit(connection)


def _current(connection: Connection, name: str) -> list[int]:
    """The row of the version that is served under a name, where one is."""
    table = dataset_versions.c
    served = select(table.sequence).where(table.name == name, table.current).with_for_update()
    return list(connection.execute(served).scalars())


def version_tag(policy_version: int, data_version: str) -> str:
    """The tag of a version of a dataset: equal for equal policy and data."""
    return f"{policy_version}-{data_version}"


def _require_replaced(connection: Connection, name: str, replaces: str | None) -> None:
    if replaces == EITHER:
        return
    table = dataset_versions
    served = connection.execute(select(table).where((table.c.name == name) & table.c.current)).first()
    tag = None if served is None else version_tag(served.policy_version, served.data_version)
    if tag is None if replaces == "*" else tag != replaces:
        raise NotReplaced(name, tag)


def _document(stored: str) -> Mapping[str, Json] | None:
    """A stored dataset file, or None where it is not a JSON object."""
    try:
        document = json.loads(stored)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _version(row: Row[tuple[object, ...]]) -> DatasetVersion:
    return DatasetVersion(
        name=row.name,
        policy_version=row.policy_version,
        data_version=row.data_version,
        snapshot=row.snapshot,
        document=_document(row.document),
        current=row.current,
        created=row.created,
        actor=row.actor,
    )
