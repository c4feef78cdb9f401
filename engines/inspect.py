"""Reading the schema of a source file for an administrator who writes a policy: names and types, never values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from engines.frames import Frame, FrameFault
from engines.pool import Failure, LoneWorker
from engines.snapshot import SNAPSHOT_CODES, SnapshotFinding, SnapshotRefused, attach_options
from privacy.policy import ColumnType

__all__ = ["InspectedColumn", "InspectedSource", "InspectedTable", "inspect_source"]

_INSPECT_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class InspectedColumn:
    """A source column: `type` is proposed from the schema (for CSV guessed from text), None when none fits."""

    name: str
    type: ColumnType | None
    source_type: str


@dataclass(frozen=True, slots=True)
class InspectedTable:
    """A table of a source; `name` is empty for files that hold one table without a name.

    `rows` is a true count: for administrators only.
    """

    name: str
    columns: tuple[InspectedColumn, ...]
    rows: int


@dataclass(frozen=True, slots=True)
class InspectedSource:
    """What a file holds. Nothing about values: no bounds, no examples, no candidates for keys."""

    format: Literal["csv", "parquet", "duckdb"]
    tables: tuple[InspectedTable, ...]


def inspect_source(path: Path, *, source_format: Literal["csv", "parquet", "duckdb"] | None = None) -> InspectedSource:
    """Tables, columns and proposed types of a source file, read in a worker of its own.

    `source_format` is told from the file's name when it is not given.
    Errors: SnapshotRefused with a finding when the file is not what it should be.
    """
    kind = source_format or _format_of(path)
    request = {"operation": "inspect", "path": str(path.absolute()), "format": kind}
    with LoneWorker(attach_options()) as worker:
        answer = worker.call(request, timeout_seconds=_INSPECT_SECONDS, parse=_parse)
    if isinstance(answer, Failure):
        raise SnapshotRefused([SnapshotFinding("not_completed")])
    if isinstance(answer, str):
        raise SnapshotRefused([SnapshotFinding(answer)])
    return InspectedSource(kind, answer)


def _format_of(path: Path) -> Literal["csv", "parquet", "duckdb"]:
    suffix = path.suffix.lower()
    if suffix in (".parquet", ".pq"):
        return "parquet"
    if suffix in (".duckdb", ".db", ".ddb"):
        return "duckdb"
    return "csv"


def _parse(frame: Frame) -> tuple[InspectedTable, ...] | str:
    """The tables, or the code of the finding."""
    findings = frame.header.get("findings")
    if findings is not None:
        code = findings[0]["code"]
        if code not in SNAPSHOT_CODES:
            raise FrameFault
        return str(code)
    return tuple(
        InspectedTable(str(table["name"]), tuple(_column(*column) for column in table["columns"]), int(table["rows"]))
        for table in frame.header["tables"]
    )


def _column(name: Any, proposed: Any, source_type: Any) -> InspectedColumn:
    return InspectedColumn(str(name), None if proposed is None else ColumnType(proposed), str(source_type))
