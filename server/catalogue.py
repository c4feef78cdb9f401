"""Datasets in memory: what is served now, where its snapshot is, and how a new version comes in.

Attaching a dataset checks its file, builds an immutable snapshot in a worker process, reads the version as every
later start will read it, stores it in the registry, and only then swaps the pointer that queries read. A policy version
is a number that grows with every different file; a data version is a hash of the sources and their declared shape.

Each stored version is read by itself. One that cannot be read is a `Broken` entry under its own name, and can neither
stop a start nor hide another dataset.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import hmac
import json
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from engines.snapshot import build_snapshot, public_values
from engines.snapshot_findings import SnapshotFinding, SnapshotRefused
from engines.stored import open_snapshot, snapshot_file, stored_norms, stored_totals, stored_units
from privacy.policy import ColumnType, Dataset, KeyValue, PublicKeys
from privacy.refusal import Finding
from server.datasets import (
    DatasetFile,
    DatasetFileRefused,
    load,
    load_stored,
    load_text,
    public_columns,
    sources,
    to_dataset,
)
from server.datasets.advice import advice
from server.datasets.finding import ERROR
from server.datasets.keys import parse_key
from server.datasets.own_statistics import judge_statistics
from server.log import logger, where
from server.public_rows import SnapshotRows
from server.services import DatasetRefused, OtherName
from server.store.registry import Registry
from server.store.versions import EITHER, DatasetVersion, version_tag
from sql_rewrite.kept_totals import kept_totals

__all__ = ["Broken", "ServedDatasets"]


_PUBLIC_KEYS_MAX = 1_000
"""Most values of a public text column that become its keys by themselves; longer lists would make answers of noise."""


EARLIER_MAX = 4
"""Versions of data before the one that is served whose histograms of norms may still choose one."""


@dataclass(frozen=True, slots=True)
class _Entry:
    dataset: Dataset
    snapshot: Path

    @property
    def tag(self) -> str:
        return version_tag(self.dataset.policy_version, self.dataset.data_version)


SettleSpace = Callable[[Dataset, str], None]
"""Puts the accounts of a dataset into the unit space that it declares, for an actor. Errors: DatasetRefused."""


class SnapshotLost(Exception):
    """The snapshot of an attached version is missing, or is not as large as it was stored."""


@dataclass(frozen=True, slots=True)
class Broken:
    """An attached version that cannot be served: its tag, and why, in words for the operator without values of rows."""

    tag: str
    why: str


@dataclass(frozen=True, slots=True)
class _Stored:
    """What is read of a version: what the registry keeps of it, or will keep."""

    policy_version: int
    data_version: str
    snapshot: str
    document: Mapping[str, object]


class ServedDatasets:
    """The catalogue and the registrar of one server process. Thread-safe.

    `draw_secret` is this server's secret from which every dataset's key for choosing groups is derived. `settle` puts
    the accounts of a dataset into the unit space that it declares, or refuses; without it a version that declares
    another one is attached, and not answered (`Admission.paying`).
    """

    def __init__(
        self,
        registry: Registry,
        *,
        datasets_directory: Path,
        snapshots_directory: Path,
        draw_secret: bytes,
        settle: SettleSpace | None = None,
    ) -> None:
        self._registry = registry
        self._datasets_directory = datasets_directory
        self._snapshots_directory = snapshots_directory
        self._draw_secret = draw_secret
        self._settle = settle
        self._lock = threading.Lock()
        self._entries: dict[str, _Entry | Broken] = {}
        self.reload()

    def reload(self) -> None:
        """Reads the attached versions from the registry again; those that are served already are kept.

        Errors: those of the registry's database. A version that cannot be read is broken, and the others are served.
        """
        known = self._entries
        entries: dict[str, _Entry | Broken] = {}
        for version in self._registry.datasets():
            entry = known.get(version.name)
            tag = version_tag(version.policy_version, version.data_version)
            entries[version.name] = entry if isinstance(entry, _Entry) and entry.tag == tag else self._read(version)
        with self._lock:
            self._entries = entries

    def get(self, name: str) -> Dataset | None:
        """The dataset of that name at its current version; None when it is not attached, or broken."""
        entry = self._entries.get(name)
        return entry.dataset if isinstance(entry, _Entry) else None

    def all(self) -> Sequence[Dataset]:
        """Every dataset that is served, in order of names."""
        return [entry.dataset for _, entry in sorted(self._entries.items()) if isinstance(entry, _Entry)]

    def broken(self) -> Mapping[str, Broken]:
        """The attached datasets that cannot be served, by name, in order of names."""
        return {name: entry for name, entry in sorted(self._entries.items()) if isinstance(entry, Broken)}

    def unavailable(self) -> Sequence[str]:
        """Names of the datasets that are attached and cannot be served, in order."""
        return list(self.broken())

    def tags(self) -> Mapping[str, str]:
        """The tag of each attached version, served or broken, by name."""
        return {name: entry.tag for name, entry in self._entries.items()}

    def require_readable(self) -> None:
        """Errors: LookupError when an attached dataset cannot be served."""
        if self.broken():
            raise LookupError("an attached dataset cannot be read")

    def snapshot(self, dataset: Dataset) -> Path:
        """The snapshot of exactly this version of the data."""
        return snapshot_file(self._snapshots_directory / dataset.name, dataset.data_version)

    def earlier_data(self, dataset: Dataset) -> Sequence[str]:
        """Versions of its data before this one, the latest first: at most `EARLIER_MAX`."""
        known = dict.fromkeys(
            version.data_version for version in reversed(self._registry.dataset_versions(dataset.name))
        )
        return [version for version in known if version != dataset.data_version][:EARLIER_MAX]

    def require_snapshots(self) -> None:
        """Errors: LookupError when the snapshot of a served dataset is missing, or is not as large as it was stored."""
        if any(open_snapshot(self.snapshot(dataset)) is None for dataset in self.all()):
            raise LookupError("a snapshot is lost")

    def register(
        self, document: Mapping[str, object], *, actor: str, name: str | None = None, replaces: str | None = EITHER
    ) -> Dataset:
        """Attaches a dataset file given as JSON; sources are files of the home's folder of datasets.

        Errors: DatasetRefused, NotReplaced, OtherName.
        """
        try:
            file = load_text(json.dumps(document), directory=self._datasets_directory, confined=True)
        except DatasetFileRefused as refused:
            raise _refused(refused) from None
        return self._attach(file, self._datasets_directory, actor=actor, name=name, replaces=replaces)

    def register_file(
        self, path: str, *, actor: str, name: str | None = None, replaces: str | None = EITHER
    ) -> Dataset:
        """Attaches the file of that name in the home's folder of datasets. Errors: as `register`."""
        whole = (self._datasets_directory / path).resolve()
        if not whole.is_relative_to(self._datasets_directory.resolve()):
            raise DatasetRefused(
                [
                    Finding(
                        code="dataset_refused",
                        what="the path is refused",
                        why="Dataset files are taken from the server's folder of datasets only.",
                        instead=("Put the file there and give its name.",),
                    )
                ]
            )
        try:
            return self._attach_path(whole, actor=actor, confined=True, name=name, replaces=replaces)
        except OSError as error:
            raise DatasetRefused(
                [
                    Finding(
                        code="dataset_refused",
                        what="the dataset file could not be read",
                        why=f"In the server's folder of datasets: {error.strerror or 'it cannot be read'}.",
                        instead=("Put the file there, readable by the server, and send its name again.",),
                        field="path",
                    )
                ]
            ) from None

    def attach_path(self, path: Path, *, actor: str, name: str | None = None, replaces: str | None = EITHER) -> Dataset:
        """Attaches a dataset file from anywhere: for the operator's own command line. Errors: as `register`."""
        return self._attach_path(path, actor=actor, confined=False, name=name, replaces=replaces)

    def _attach_path(
        self, path: Path, *, actor: str, confined: bool, name: str | None = None, replaces: str | None = EITHER
    ) -> Dataset:
        """`confined` keeps the sources inside the folder of the dataset file: what HTTP may name."""
        try:
            file = load(path, confined=confined)
        except DatasetFileRefused as refused:
            raise _refused(refused) from None
        return self._attach(file, path.parent, actor=actor, name=name, replaces=replaces)

    def remove(self, name: str, *, actor: str, replaces: str = EITHER) -> None:
        """Stops serving a dataset; its accounts and releases stay. Errors: NotThere, NotReplaced."""
        self._registry.remove_dataset(name, actor=actor, replaces=replaces)
        with self._lock:
            self._entries = {other: entry for other, entry in self._entries.items() if other != name}

    def _attach(
        self,
        file: DatasetFile,
        directory: Path,
        *,
        actor: str,
        name: str | None = None,
        replaces: str | None = EITHER,
    ) -> Dataset:
        if name is not None and file.dataset != name:
            raise OtherName(file.dataset)
        # Before the snapshot is built, which takes its time; for certain in the registry's transaction.
        self._registry.require_replaced(file.dataset, replaces)
        document = file.model_dump(mode="json", by_alias=True, exclude_unset=True)
        # What is registered is read again by every server of the ledger, without the data files.
        try:
            load_stored(document)
        except DatasetFileRefused as refused:
            raise _refused(refused) from None
        # Keys that come from public tables are read from the snapshot, so its own declaration goes without them.
        draft = to_dataset(file, policy_version=1, data_version="draft", public_values=None)
        try:
            snapshot = build_snapshot(
                draft,
                sources(file, directory),
                directory=self._snapshots_directory / file.dataset,
                draw_key=self._draw_key(file.dataset),
                totals=kept_totals(draft),
            )
        except SnapshotRefused as refused:
            raise DatasetRefused([_snapshot_finding(finding, file) for finding in refused.findings]) from None
        stored = _Stored(
            policy_version=self._policy_version(file.dataset, document),
            data_version=snapshot.data_version,
            # Relative, so that a home that was moved still finds them.
            snapshot=snapshot.path.relative_to(self._snapshots_directory).as_posix(),
            document=document,
        )
        try:
            # As every later start reads it, and before it is registered: what cannot be read is never stored.
            entry = self._entry(stored)
        except DatasetFileRefused as refused:
            raise _refused(refused) from None
        except SnapshotRefused as refused:
            raise DatasetRefused([_snapshot_finding(finding, file) for finding in refused.findings]) from None
        # Not at later starts: what a later version no longer answers is refused when it is asked.
        wrong = judge_statistics(entry.dataset)
        if wrong:
            raise DatasetRefused(wrong)
        if self._settle is not None:
            self._settle(entry.dataset, actor)
        self._registry.register_dataset(
            name=file.dataset,
            policy_version=stored.policy_version,
            data_version=stored.data_version,
            snapshot=stored.snapshot,
            document=document,
            actor=actor,
            replaces=replaces,
        )
        with self._lock:
            # A new dictionary: whoever reads the old one goes on without the lock.
            self._entries = {**self._entries, file.dataset: entry}
        return entry.dataset

    def _read(self, version: DatasetVersion) -> _Entry | Broken:
        """The version as it is served, or why it cannot be. Never raises: what is wrong with one is its own matter."""
        tag = version_tag(version.policy_version, version.data_version)
        try:
            if version.document is None:
                raise DatasetFileRefused([_not_json()])
            stored = _Stored(version.policy_version, version.data_version, version.snapshot, version.document)
            return self._entry(stored)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one dataset, the others are served
            logger().error(
                "dataset_unavailable",
                dataset=version.name,
                version=tag,
                exception=type(error).__name__,
                where=where(error),
            )
            return Broken(tag, _why_broken(error))

    def _entry(self, version: _Stored) -> _Entry:
        """Errors: DatasetFileRefused, SnapshotLost; LookupError, SnapshotRefused when public values cannot be read."""
        file = load_stored(version.document)
        snapshot = self._snapshots_directory / version.snapshot
        if open_snapshot(snapshot) is None:
            raise SnapshotLost
        values = {
            (table, column): _public_values(
                snapshot, table, column, ColumnType(file.tables[table].columns[column].type)
            )
            for table, column in public_columns(file)
        }
        dataset = to_dataset(
            file,
            policy_version=version.policy_version,
            data_version=version.data_version,
            public_values=values,
        )
        known = replace(_with_public_keys(dataset, snapshot), public=SnapshotRows(snapshot))
        known = _with_stored_norms(known, snapshot)
        return _Entry(known, snapshot)

    def _policy_version(self, name: str, document: Mapping[str, object]) -> int:
        """The version number of an equal earlier file, else the next one."""
        versions = self._registry.dataset_versions(name)
        for version in versions:
            if version.document == document:
                return version.policy_version
        return 1 + max((version.policy_version for version in versions), default=0)

    def _draw_key(self, name: str) -> bytes:
        """The secret key of one dataset; the same for all its versions, so that repeats choose the same groups."""
        return hmac.new(self._draw_secret, name.encode(), hashlib.sha256).digest()


def _not_json() -> Finding:
    return Finding(
        ERROR,
        what="the stored description is not a JSON object",
        why="The row of the database was damaged or edited.",
        instead=("Attach the dataset again: noisegate dataset add FILE.",),
    )


def _why_broken(error: Exception) -> str:
    """Why a stored version cannot be served, in words: declared names at most, and no text of a foreign error."""
    if isinstance(error, DatasetFileRefused):
        first = error.errors[0]
        return f"Its stored description is refused by this version: {first.what}. {first.why}"
    if isinstance(error, SnapshotLost):
        return "Its snapshot is missing or is not what was stored."
    if isinstance(error, SnapshotRefused) or type(error) is LookupError:
        return "The values of its public tables could not be read from its snapshot."
    return f"Its stored description could not be read ({type(error).__name__})."


def _refused(refused: DatasetFileRefused) -> DatasetRefused:
    # Without their lines: what the caller sent or named is not the text that was checked.
    return DatasetRefused([replace(finding, position=None) for finding in refused.errors])


def _snapshot_finding(finding: SnapshotFinding, file: DatasetFile) -> Finding:
    place = ".".join(part for part in ("tables", finding.table, finding.column) if part)
    count = "" if finding.count is None else f" Rows: {finding.count}."
    table = file.tables.get(finding.table or "")
    # As the dataset file names it, which its author wrote.
    source = "" if table is None else f" ({table.source.file})"
    return Finding(
        code="dataset_refused",
        what=f"the data of {place}{source} is refused" if finding.table else "the data is refused",
        why=finding.text + count,
        instead=advice(finding, table, file.unit),
        field=place,
    )


def _with_public_keys(dataset: Dataset, snapshot: Path) -> Dataset:
    """The dataset with the values of public text columns as their keys: everybody may know them."""
    tables = []
    for table in dataset.tables:
        columns = []
        for column in table.columns:
            if not table.protected and column.type is ColumnType.TEXT and column.keys is None:
                values = _public_values(snapshot, table.name, column.name, column.type)
                distinct = sorted({value for value in values if isinstance(value, str)})
                if 0 < len(distinct) <= _PUBLIC_KEYS_MAX:
                    # The rows are public, and so is whether one of them has no value.
                    column = replace(column, keys=PublicKeys(tuple(distinct)), nullable=None in values)
            columns.append(column)
        tables.append(replace(table, columns=tuple(columns)))
    return replace(dataset, tables=tuple(tables))


def _with_stored_norms(dataset: Dataset, snapshot: Path) -> Dataset:
    """The dataset with the norms of units that its snapshot keeps: those of earlier versions keep none."""
    norms, totals, units = stored_norms(snapshot), stored_totals(snapshot), stored_units(snapshot)
    tables = tuple(
        replace(
            table,
            stored_norms=norms.get(table.name),
            stored_totals=totals.get(table.name, ()),
            stored_units=table.name in units,
        )
        for table in dataset.tables
    )
    return replace(dataset, tables=tables)


def _public_values(snapshot: Path, table: str, column: str, kind: ColumnType) -> list[KeyValue]:
    """The values of a public table's column, kept beside the snapshot: a start should not open it for them."""
    kept = snapshot.with_suffix(".public.json")
    place = f"{table}.{column}"
    known: dict[str, list[object]] = {}
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        known = dict(json.loads(kept.read_text("utf-8")))
        return [parse_key(value, kind) for value in known[place]]
    values = public_values(snapshot, table, column)
    known[place] = [value.isoformat() if isinstance(value, datetime.date) else value for value in values]
    with contextlib.suppress(OSError):
        fresh = kept.with_suffix(f".{secrets.token_hex(4)}")
        fresh.write_text(json.dumps(known), "utf-8")
        fresh.replace(kept)
    return list(values)
