"""Reading the schema of a source file for an administrator who writes a policy: names and types, never values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from engines.frames import Frame, FrameFault
from engines.pool import Failure, LoneWorker
from engines.snapshot import (
    SNAPSHOT_CODES,
    DateOrder,
    DecimalMark,
    Encoding,
    SnapshotFinding,
    SnapshotRefused,
    TableSource,
    ThousandsMark,
    attach_options,
)
from privacy.policy import ColumnType

__all__ = ["InspectedColumn", "InspectedSource", "InspectedTable", "inspect_source", "source_columns"]

_INSPECT_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class InspectedColumn:
    """A source column: `type` is proposed from the schema, None when none fits.

    For CSV it is guessed from text, and proposed only when every value converts to it; else it is TEXT. `required` says
    that the file declares the column as never NULL; a CSV file declares nothing.
    """

    name: str
    type: ColumnType | None
    source_type: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class InspectedTable:
    """A table of a source; `name` is empty for files that hold one table without a name.

    `rows` is a true count: for administrators only. `decimal`, `thousands`, `dates` and `encoding` are how the numbers,
    days and letters of a CSV file are written, as far as its columns have a type for it, and `nulls` the words of a
    closed list that stand for missing values in it. `key` and `references` (column, table, key) are what a database
    declares: PRIMARY KEY and FOREIGN KEY of one column. `file` is set where tables come from several files.
    """

    name: str
    columns: tuple[InspectedColumn, ...]
    rows: int
    decimal: DecimalMark = "."
    dates: DateOrder = "YYYY-MM-DD"
    encoding: str = "utf-8"
    key: str | None = None
    references: tuple[tuple[str, str, str], ...] = ()
    file: str = ""
    thousands: ThousandsMark | None = None
    nulls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InspectedSource:
    """What a file holds. Nothing about values: no bounds, no examples, no candidates for keys."""

    format: Literal["csv", "parquet", "duckdb"]
    tables: tuple[InspectedTable, ...]


def inspect_source(
    path: Path,
    *,
    source_format: Literal["csv", "parquet", "duckdb"] | None = None,
    parts: Sequence[Path] = (),
) -> InspectedSource:
    """Tables, columns and proposed types of a source file (or of the `parts` of one), read in a worker of its own.

    `source_format` is told from the file's name when it is not given.
    Errors: SnapshotRefused with a finding when the file is not what it should be.
    """
    kind = source_format or _format_of(path)
    request: dict[str, Any] = {"operation": "inspect", "path": str(path.absolute()), "format": kind}
    if parts:
        request["paths"] = sorted(str(part.absolute()) for part in parts)
    with LoneWorker(attach_options()) as worker:
        answer = worker.call(request, timeout_seconds=_INSPECT_SECONDS, parse=_parse)
    if isinstance(answer, Failure):
        raise SnapshotRefused([SnapshotFinding("not_completed")])
    if isinstance(answer, str):
        raise SnapshotRefused([SnapshotFinding(answer)])
    return InspectedSource(kind, answer)


def source_columns(sources: Sequence[TableSource]) -> list[tuple[str, ...] | SnapshotFinding]:
    """For each source the names of its columns as they stand in it, or what is wrong with it. Reads no rows."""
    request = {
        "operation": "columns",
        "sources": [
            {
                "name": source.table,
                **source.located(),
                "format": source.format,
                "encoding": source.encoding,
                "source_table": source.source_table,
            }
            for source in sources
        ],
    }
    with LoneWorker(attach_options()) as worker:
        answer = worker.call(
            request, timeout_seconds=_INSPECT_SECONDS, parse=partial(_parse_columns, count=len(sources))
        )
    if isinstance(answer, Failure):
        return [SnapshotFinding("not_completed", source.table) for source in sources]
    return [
        SnapshotFinding(names, source.table) if isinstance(names, str) else names
        for source, names in zip(sources, answer, strict=True)
    ]


def _parse_columns(frame: Frame, *, count: int) -> list[tuple[str, ...] | str]:
    """For each source its names, or the code of the finding."""
    if len(frame.header["sources"]) != count:
        raise FrameFault
    answers: list[tuple[str, ...] | str] = []
    for item in frame.header["sources"]:
        code = item.get("code")
        if code is not None and code not in SNAPSHOT_CODES:
            raise FrameFault
        answers.append(tuple(str(name) for name in item["names"]) if code is None else str(code))
    return answers


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
        InspectedTable(
            str(table["name"]),
            tuple(_column(*column) for column in table["columns"]),
            int(table["rows"]),
            "," if table["decimal"] == "," else ".",
            next(known for known in get_args(DateOrder) if known == table["dates"]),
            next(known for known in get_args(Encoding) if known == table["encoding"]),
            None if table.get("key") is None else str(table["key"]),
            tuple((str(column), str(target), str(key)) for column, target, key in table.get("references", ())),
            thousands=next((known for known in get_args(ThousandsMark) if known == table["thousands"]), None),
            nulls=tuple(str(word) for word in table["nulls"]),
        )
        for table in frame.header["tables"]
    )


def _column(name: Any, proposed: Any, source_type: Any, required: Any) -> InspectedColumn:
    kind = None if proposed is None else ColumnType(proposed)
    return InspectedColumn(str(name), kind, str(source_type), required=required is True)
