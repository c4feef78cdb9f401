"""Reading the schema of a source file for an administrator who writes a policy: names and types, never values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engines.frames import Frame, FrameFault
from engines.inspected import InspectedTable
from engines.process import Failure, LoneWorker
from engines.records import read_records
from engines.snapshot import Refused, attach_options, read_refused
from engines.snapshot_findings import SNAPSHOT_CODES, SnapshotFinding, SnapshotRefused
from engines.table_source import SourceFormat, TableSource, file_format
from privacy.values import Json

__all__ = ["InspectedSource", "inspect_source", "source_columns"]

_INSPECT_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class InspectedSource:
    """What a file holds. Nothing about values: no bounds, no examples, no candidates for keys."""

    format: SourceFormat
    tables: tuple[InspectedTable, ...]


@dataclass(frozen=True, slots=True)
class _Names:
    """The names of a source's columns, or the code of what is wrong with it."""

    names: tuple[str, ...] = ()
    code: str | None = None


def inspect_source(
    path: Path, *, source_format: SourceFormat | None = None, parts: Sequence[Path] = ()
) -> InspectedSource:
    """Tables, columns and proposed types of a source file (or of the `parts` of one), read in a worker of its own.

    `source_format` follows from the file's name when it is not given, and is CSV where that does not say.
    Errors: SnapshotRefused with a finding when the file is not what it should be.
    """
    source = TableSource("", path, source_format or file_format(path.name) or "csv", parts=tuple(parts))
    request: dict[str, Json] = {"operation": "inspect", "source": source.described()}
    with LoneWorker(attach_options()) as worker:
        answer = worker.call(request, timeout_seconds=_INSPECT_SECONDS, parse=_tables)
    if isinstance(answer, Failure):
        raise SnapshotRefused([SnapshotFinding("not_completed")])
    if isinstance(answer, Refused):
        raise SnapshotRefused([SnapshotFinding(answer.findings[0].code)])
    return InspectedSource(source.format, answer)


def source_columns(sources: Sequence[TableSource]) -> list[tuple[str, ...] | SnapshotFinding]:
    """For each source the names of its columns as the source has them, or what is wrong with it. Reads no rows."""
    request: dict[str, Json] = {"operation": "columns", "sources": [source.described() for source in sources]}
    with LoneWorker(attach_options()) as worker:
        answer = worker.call(request, timeout_seconds=_INSPECT_SECONDS, parse=_names)
    if isinstance(answer, Failure) or len(answer) != len(sources):
        return [SnapshotFinding("not_completed", source.table) for source in sources]
    return [
        found.names if found.code is None else SnapshotFinding(found.code, source.table)
        for source, found in zip(sources, answer, strict=True)
    ]


def _names(frame: Frame) -> list[_Names]:
    answers = read_records(_Names, frame.header["sources"])
    if not all(found.code is None or found.code in SNAPSHOT_CODES for found in answers):
        raise FrameFault
    return answers


def _tables(frame: Frame) -> tuple[InspectedTable, ...] | Refused:
    return read_refused(frame) or tuple(read_records(InspectedTable, frame.header["tables"]))
