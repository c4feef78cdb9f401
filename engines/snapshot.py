"""Attaching data: source files become one immutable snapshot per version of the data and of its declared shape.

The work is done in a worker process of its own. A snapshot is a read-only DuckDB file: every declared table under
its declared name with the declared columns, and in protected tables "unit$id" (dense, from 0) and "unit$draw" (a
keyed hash of the unit's key that no other unit can change; where each row is a unit, of the row's own contents).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeVar

from engines.arrays import columns_of, decode_values
from engines.declaration import data_version, declaration_findings, described_table, described_unit, norms_stored
from engines.described import Fingerprint
from engines.frames import Frame, FrameFault
from engines.process import Failure, LoneWorker, WorkerOptions
from engines.records import read_record, read_records, write_record
from engines.snapshot_findings import SnapshotFinding, SnapshotRefused
from engines.stored import Snapshot, SnapshotReport, open_snapshot, public_columns, publish, snapshot_file, sweep
from engines.table_source import TableSource
from privacy.policy import Dataset, KeyValue
from privacy.stored_norms import KeptTotal
from privacy.values import Cell, Json

__all__ = ["Refused", "attach_options", "build_snapshot", "public_values", "read_refused"]

_BUILD_SECONDS: Final = 6 * 3600.0
_READ_SECONDS: Final = 60.0
NO_TOTALS: Final[Mapping[str, Sequence[KeptTotal]]] = MappingProxyType({})
_DRAW_KEY_BYTES_MIN: Final = 16
_Answer = TypeVar("_Answer")
_KEY_KINDS: Final = ("integer", "text", "boolean", "date", "timestamp")


def build_snapshot(
    dataset: Dataset,
    sources: Sequence[TableSource],
    *,
    directory: Path,
    draw_key: bytes,
    totals: Mapping[str, Sequence[KeptTotal]] = NO_TOTALS,
) -> Snapshot:
    """Build, or find, the snapshot of these sources under this declaration, which keeps these totals by table.

    Requires: `draw_key` is the dataset's secret, at least 16 random bytes, the same for every version.
    Ensures: the same contents, declared shape and draw key give the same `data_version`, and then the existing
    file is used; the version says nothing about the contents without the key. What the declaration says
    (types, keys, one row per unit, declared text keys) was verified on every row. No unit has more rows of a table than
    `Table.rows_stored`, and no text more characters than its column's `length_max`: which rows are kept is a function
    of the unit's own rows and the draw key alone.
    Errors: SnapshotRefused with findings.
    """
    if len(draw_key) < _DRAW_KEY_BYTES_MIN:
        raise ValueError("the draw key needs at least 16 bytes")
    findings = declaration_findings(dataset, sources)
    if findings:
        raise SnapshotRefused(findings)
    directory.mkdir(parents=True, exist_ok=True)
    sweep(directory)
    by_table = {source.table.lower(): source for source in sources}
    ordered = [by_table[table.name.lower()] for table in dataset.tables]
    with LoneWorker(attach_options(), directory=directory) as worker:
        request: dict[str, Json] = {"operation": "fingerprint", "sources": [source.described() for source in ordered]}
        fingerprints = _completed(worker.call(request, timeout_seconds=_BUILD_SECONDS, parse=_fingerprints))
        version = data_version(dataset, ordered, [item.digest for item in fingerprints], draw_key, totals=totals)
        path = snapshot_file(directory, version)
        existing = open_snapshot(path)
        if existing is not None:
            # In use again from now on: what removes old copies goes by their age.
            os.utime(path)
            return existing
        build: dict[str, Json] = {
            "operation": "build",
            "unit": described_unit(dataset),
            "draw_key": draw_key.hex(),
            "tables": [
                described_table(dataset, table, source, totals.get(table.name, ()))
                for table, source in zip(dataset.tables, ordered, strict=True)
            ],
            "sources": [write_record(item) for item in fingerprints],
        }
        report = _completed(worker.call(build, timeout_seconds=_BUILD_SECONDS, parse=_report))
        publish(
                worker.directory / "snapshot.duckdb", path, dataset, report,
                norms={table.name: norms for table in dataset.tables if (norms := norms_stored(table)) is not None},
                totals=totals,
            )  # fmt: skip
    return Snapshot(path, version, report)


def public_values(snapshot: Snapshot | Path, table: str, column: str) -> list[KeyValue]:
    """The distinct values of a column of a public table, in order (NULL last): public keys that come from a table.

    Errors: LookupError unless the table was declared public and has the column; SnapshotRefused when the values
    cannot be read or are more than a million.
    """
    path = snapshot.path if isinstance(snapshot, Snapshot) else snapshot
    public = {name.lower(): (name, columns) for name, columns in public_columns(path).items()}
    name, columns = public.get(table.lower(), ("", {}))
    stored = next((stored for stored in columns if stored.lower() == column.lower()), None)
    if stored is None or columns[stored] not in _KEY_KINDS:
        raise LookupError("the snapshot has no such column in a public table")
    request = {"operation": "public", "snapshot": str(path.absolute()), "table": name, "column": stored}
    with LoneWorker(attach_options()) as worker:
        return _completed(worker.call(request, timeout_seconds=_READ_SECONDS, parse=_single_column))


def attach_options() -> WorkerOptions:
    """Limits of a worker that reads source files."""
    return WorkerOptions(
        kind="attach", threads=2, memory_limit_mb=4096, address_space_mb=4096 * 3 + 2048, file_mb=1 << 24
    )


# -------------------------------------------------------------------------------------------------------- answers


@dataclass(frozen=True, slots=True)
class Refused:
    """What a worker found wrong with the sources, in place of what it was asked for."""

    findings: tuple[SnapshotFinding, ...]


def _completed(answer: _Answer | Refused | Failure) -> _Answer:
    """The answer, or SnapshotRefused with its findings."""
    if isinstance(answer, Failure):
        raise SnapshotRefused([SnapshotFinding("not_completed")])
    if isinstance(answer, Refused):
        raise SnapshotRefused(answer.findings)
    return answer


def read_refused(frame: Frame) -> Refused | None:
    """The findings of a worker's answer, None where it has none."""
    listed = frame.header.get("findings")
    if listed is None:
        return None
    findings = tuple(read_records(SnapshotFinding, listed))
    if not findings:
        raise FrameFault
    return Refused(findings)


def _fingerprints(frame: Frame) -> list[Fingerprint] | Refused:
    refused = read_refused(frame)
    if refused is not None:
        return refused
    fingerprints = read_records(Fingerprint, frame.header["sources"])
    if not all(len(item.digest) == 64 for item in fingerprints):
        raise FrameFault
    return fingerprints


def _report(frame: Frame) -> SnapshotReport | Refused:
    return read_refused(frame) or read_record(SnapshotReport, frame.header)


def _single_column(frame: Frame) -> list[KeyValue]:
    rows, columns = frame.header["rows"], columns_of(frame)
    if type(rows) is not int or rows < 0 or len(columns) != 1:
        raise FrameFault
    return [_key(value) for value in decode_values(*columns[0], rows)]


def _key(value: Cell) -> KeyValue:
    if isinstance(value, float | Decimal):
        raise FrameFault
    return value
