"""Attaching data: source files become one immutable snapshot per version of the data and of its declared shape.

    Exception
      SnapshotRefused     what is wrong with the sources or the declaration: words, declared names and counts only

The work is done in a worker process of its own. A snapshot is a read-only DuckDB file: every declared table under
its declared name with the declared columns, and in protected tables "unit$id" (dense, from 0) and "unit$draw" (a
keyed hash of the unit's key that no other unit can change; where each row is a unit, of the row's own contents).
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import hmac
import json
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from engines.frames import Frame, FrameFault, columns_of, decode_values
from engines.pool import Failure, LoneWorker, WorkerOptions
from privacy.policy import Column, ColumnType, Dataset, KeyValue, Reference, Table

__all__ = [
    "SNAPSHOT_CODES",
    "DateOrder",
    "DecimalMark",
    "Encoding",
    "Snapshot",
    "SnapshotFinding",
    "SnapshotRefused",
    "SnapshotReport",
    "TableReport",
    "TableSource",
    "ThousandsMark",
    "attach_options",
    "build_snapshot",
    "described_column",
    "open_snapshot",
    "public_values",
]

DecimalMark = Literal[".", ","]
ThousandsMark = Literal[",", ".", " ", "'", "_"]
Encoding = Literal["utf-8", "utf-16", "latin-1", "windows-1250", "windows-1251", "windows-1252", "windows-1254"]
DateOrder = Literal["YYYY-MM-DD", "DD.MM.YYYY", "DD/MM/YYYY", "MM/DD/YYYY", "DD-MM-YYYY"]

_FORMAT: Final = 1
_BUILD_SECONDS: Final = 6 * 3600.0
_READ_SECONDS: Final = 60.0
_STALE_SECONDS: Final = 3600.0
_DRAW_KEY_BYTES_MIN: Final = 16
_KEY_KINDS: Final = ("integer", "text", "boolean", "date", "timestamp")

SNAPSHOT_CODES: dict[str, str] = {
    "source_missing": "No source was given for the table.",
    "source_unknown": "The source is for a table that is not declared, or the table has two sources.",
    "file_missing": "The source file does not exist.",
    "file_unreadable": "The source file cannot be read by the server.",
    "file_is_directory": "The source is a directory; give one file.",
    "file_empty": "The source file is empty.",
    "path_unsupported": "The path has characters that would make it a pattern; rename the file.",
    "not_csv": "The file is not CSV text.",
    "not_text": "The file is not text in UTF-8; it may be in another encoding.",
    "not_encoded": "The file is not text in the declared encoding.",
    "parts_differ": "The files of the table have different columns.",
    "zone_missing": "The column holds moments with a time zone; which zone's days and clock are meant is not declared.",
    "zone_unknown": "The declared time zone is not known.",
    "not_parquet": "The file is not a complete Parquet file.",
    "not_duckdb": "The file is not a DuckDB database.",
    "malformed_csv": "The file could not be read as CSV: rows of different length, bad quotes or bad encoding.",
    "source_damaged": "The file could not be read to its end.",
    "source_locked": "Another process has the database open for writing; close it or give a copy.",
    "source_version": "The database was written by a version that this server cannot read.",
    "source_table_missing": "The database has no table of that name.",
    "source_changed": "A source file changed while it was read; try again when it is at rest.",
    "duplicate_columns": "Several columns of the source have that name (upper and lower case count as the same).",
    "column_missing": "The source has no column of that name.",
    "column_repeated": "Two declared columns would be read from the same column of the source.",
    "type_mismatch": "The source column's type cannot become the declared type.",
    "value_not_of_type": "Values do not convert to the declared type.",
    "value_outside_keys": "Values are not in the declared keys.",
    "null_in_column": "The column is declared to be never NULL, and is NULL in some rows.",
    "no_rows": "The source has no rows.",
    "too_many_rows": "The source has more rows than sums are proved for (2^40).",
    "key_null": "The declared key is NULL in some rows.",
    "key_not_unique": "The declared key repeats.",
    "value_not_unique": "The column is declared unique, and some values repeat.",
    "unit_unknown": "The privacy unit's table, key or path is not declared as it is used.",
    "unit_type": "The columns that lead to the privacy unit have different types, or a type that cannot be a key.",
    "unit_key_null": "The privacy unit's key is NULL in some rows.",
    "unit_not_one_row": "The table is declared to have one row per privacy unit, and has more.",
    "no_rows_of_units": "No row of the table leads to a privacy unit.",
    "reference_unknown": "A reference uses a table or column that is not declared.",
    "reserved_name": "The name is reserved for the snapshot itself.",
    "text_too_long": "Texts that name units or rows are longer than length_max; they cannot be cut.",
    "not_completed": "The snapshot could not be completed: memory, disk or time ran out, or the work was stopped.",
}
"""Every finding about sources with its meaning, one sentence each."""


@dataclass(frozen=True, slots=True)
class TableSource:
    """Where the rows of one declared table come from. `source_table` names the table inside a database file.

    `parts` are the files of a folder or a pattern in any order; none for one file, which is `path`.
    `source_names` are pairs of a declared column and the exact name that it has in the source, where the two differ.
    `decimal`, `thousands`, `dates`, `true` and `false` say how numbers, days and truth values are written in columns of
    text, `encoding` and `nulls` how a CSV file is written and which of its cells are missing besides empty ones.
    `zone` is the time zone whose days and clock moments with a zone get.
    """

    table: str
    path: Path
    format: Literal["csv", "parquet", "duckdb"]
    source_table: str | None = None
    source_names: tuple[tuple[str, str], ...] = ()
    decimal: DecimalMark = "."
    dates: DateOrder = "YYYY-MM-DD"
    parts: tuple[Path, ...] = ()
    encoding: Encoding = "utf-8"
    nulls: tuple[str, ...] = ()
    thousands: ThousandsMark | None = None
    true: tuple[str, ...] = ()
    false: tuple[str, ...] = ()
    zone: str | None = None

    def located(self) -> dict[str, Any]:
        """Where the rows are, as workers read it."""
        if not self.parts:
            return {"path": str(self.path.absolute())}
        paths = sorted(str(part.absolute()) for part in self.parts)
        return {"path": paths[0], "paths": paths}

    def written(self) -> dict[str, Any]:
        """How the values are written. Only what is declared: the versions of data without it stay what they were."""
        usual = {
            "decimal": ".", "dates": "YYYY-MM-DD", "encoding": "utf-8", "nulls": (), "thousands": None, "true": (),
            "false": (), "zone": None,
        }  # fmt: skip
        values = {name: getattr(self, name) for name in usual}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
            if value != usual[name]
        }


@dataclass(frozen=True, slots=True)
class SnapshotFinding:
    """One thing that is wrong with the sources; `count` is a number of rows, for administrators only."""

    code: str
    table: str | None = None
    column: str | None = None
    count: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        assert self.code in SNAPSHOT_CODES, self.code

    @property
    def text(self) -> str:
        """The finding in a sentence, without values."""
        return SNAPSHOT_CODES[self.code]


class SnapshotRefused(Exception):
    """The snapshot was not built. Carries every finding of the stage that failed."""

    def __init__(self, findings: Sequence[SnapshotFinding]) -> None:
        self.findings: tuple[SnapshotFinding, ...] = tuple(findings)
        assert self.findings, "a refusal needs at least one finding"
        super().__init__(self.findings[0].text)


@dataclass(frozen=True, slots=True, repr=False)
class TableReport:
    """Counts of one table, true values: for administrators only. `non_finite` counts NaN and infinities by column.

    `rows_beyond` are rows that were left out because their unit has more than `rows_stored_per_unit`, `texts_cut`
    counts by column the texts that were longer than `length_max`.
    """

    name: str
    rows_read: int
    rows_stored: int
    rows_without_unit: int
    non_finite: tuple[tuple[str, int], ...]
    rows_beyond: int = 0
    texts_cut: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class SnapshotReport:
    """What was read, true counts: for administrators only."""

    units: int
    tables: tuple[TableReport, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One immutable version of a dataset's data."""

    path: Path
    data_version: str
    report: SnapshotReport


def build_snapshot(dataset: Dataset, sources: Sequence[TableSource], *, directory: Path, draw_key: bytes) -> Snapshot:
    """Build, or find, the snapshot of these sources under this declaration.

    Requires: `draw_key` is the dataset's secret, at least 16 random bytes, the same for every version.
    Ensures: the same contents, declared shape and draw key give the same `data_version`, and then the existing
    file is used; the version says nothing about the contents to who lacks the key. What the declaration says
    (types, keys, one row per unit, declared text keys) was verified on every row. No unit has more rows of a table than
    `Table.rows_stored`, and no text more characters than its column's `length_max`: which rows are kept is a function
    of the unit's own rows and the draw key alone.
    Errors: SnapshotRefused with findings.
    """
    if len(draw_key) < _DRAW_KEY_BYTES_MIN:
        raise ValueError("the draw key needs at least 16 bytes")
    findings = _declaration_findings(dataset, sources)
    if findings:
        raise SnapshotRefused(findings)
    directory.mkdir(parents=True, exist_ok=True)
    _sweep(directory)
    by_table = {source.table.lower(): source for source in sources}
    ordered = [by_table[table.name.lower()] for table in dataset.tables]
    with LoneWorker(attach_options(), directory=directory) as worker:
        request = {
            "operation": "fingerprint",
            "sources": [
                {"table": table.name, "format": source.format, "encoding": source.encoding, **source.located()}
                for table, source in zip(dataset.tables, ordered, strict=True)
            ],
        }
        fingerprints = _completed(worker.call(request, timeout_seconds=_BUILD_SECONDS, parse=_fingerprints))
        version = _data_version(dataset, ordered, [item["digest"] for item in fingerprints], draw_key)
        path = directory / f"{version}.duckdb"
        existing = open_snapshot(path)
        if existing is not None:
            return existing
        build = {
            "operation": "build",
            "unit": {"table": _unit_table(dataset).name, "key": _unit_key(dataset)},
            "draw_key": draw_key.hex(),
            "tables": [
                _described_table(dataset, table, source) for table, source in zip(dataset.tables, ordered, strict=True)
            ],
            "sources": fingerprints,
        }
        report = _completed(worker.call(build, timeout_seconds=_BUILD_SECONDS, parse=_report))
        _publish(worker.directory / "snapshot.duckdb", path, version, dataset, report)
    return Snapshot(path, version, report)


def open_snapshot(path: Path) -> Snapshot | None:
    """The complete snapshot at that path with its report, or None."""
    try:
        manifest = json.loads(_manifest_path(path).read_text())
        if manifest["format"] != _FORMAT or manifest["bytes"] != path.stat().st_size:
            return None
        if manifest["data_version"] != path.stem:
            return None
        return Snapshot(path, path.stem, _read_report(manifest))
    except (OSError, ValueError, LookupError, TypeError, FrameFault):
        return None


def public_values(snapshot: Snapshot | Path, table: str, column: str) -> list[KeyValue]:
    """The distinct values of a column of a public table, in order (NULL last): public keys that come from a table.

    Errors: LookupError unless the table was declared public and has the column; SnapshotRefused when the values
    cannot be read or are more than a million.
    """
    path = snapshot.path if isinstance(snapshot, Snapshot) else snapshot
    try:
        manifest = json.loads(_manifest_path(path).read_text())
        public = {str(name).lower(): (name, columns) for name, columns in manifest["public"].items()}
    except (OSError, ValueError, LookupError):
        public = {}
    name, columns = public.get(table.lower(), (None, {}))
    stored = next((stored for stored in columns if stored.lower() == column.lower()), None)
    if name is None or stored is None or columns[stored] not in _KEY_KINDS:
        raise LookupError("the snapshot has no such column in a public table")
    request = {"operation": "public", "snapshot": str(path.absolute()), "table": name, "column": stored}
    with LoneWorker(attach_options()) as worker:
        values = worker.call(request, timeout_seconds=_READ_SECONDS, parse=_single_column)
    return list(_completed(values))


def attach_options() -> WorkerOptions:
    """Limits of a worker that reads source files."""
    return WorkerOptions(
        kind="attach", threads=2, memory_limit_mb=4096, address_space_mb=4096 * 3 + 2048, file_mb=1 << 24
    )


# --------------------------------------------------------------------------------------------------- declaration


def _unit_table(dataset: Dataset) -> Table:
    table = dataset.table(dataset.unit.table)
    assert table is not None
    return table


def _unit_key(dataset: Dataset) -> str | None:
    """The unit's key as its table spells it; None where each row is a unit."""
    return None if dataset.unit.key is None else _spelled(_unit_table(dataset), dataset.unit.key)


def _declaration_findings(dataset: Dataset, sources: Sequence[TableSource]) -> list[SnapshotFinding]:
    """What can be said before any file is opened."""
    given = [source.table.lower() for source in sources]
    findings = [
        SnapshotFinding("source_unknown", source.table)
        for source in sources
        if dataset.table(source.table) is None or given.count(source.table.lower()) > 1
    ]
    for table in dataset.tables:
        if table.name.lower() not in given:
            findings.append(SnapshotFinding("source_missing", table.name))
        findings += [
            SnapshotFinding("reserved_name", table.name, column.name)
            for column in table.columns
            if column.name.lower().startswith("unit$")
        ]
        findings += [
            SnapshotFinding("reference_unknown", table.name, reference.column)
            for reference in table.references
            if table.column(reference.column) is None or _target(dataset, reference) is None
        ]
        if table.key is not None and table.column(table.key) is None:
            findings.append(SnapshotFinding("column_missing", table.name, table.key))
    unit_table = dataset.table(dataset.unit.table)
    if unit_table is None or not unit_table.protected:
        return [*findings, SnapshotFinding("unit_unknown", dataset.unit.table, dataset.unit.key)]
    if dataset.unit.key is None:
        return findings + [
            SnapshotFinding("unit_unknown", table.name)
            for table in dataset.tables
            if table.protected and not _rows_are_units(dataset, table)
        ]
    unit_key = unit_table.column(dataset.unit.key)
    if unit_key is None:
        return [*findings, SnapshotFinding("unit_unknown", dataset.unit.table, dataset.unit.key)]
    if unit_key.type is ColumnType.NUMBER:
        findings.append(SnapshotFinding("unit_type", unit_table.name, unit_key.name))
    for table in dataset.tables:
        if table.protected:
            findings += _path_findings(dataset, table, unit_key)
    return findings


def _rows_are_units(dataset: Dataset, table: Table) -> bool:
    """Whether a protected table is declared soundly where each row is a unit: no other table has rows of units."""
    whole = table.unit_column is None and not table.unit_path
    return table.name.lower() == dataset.unit.table.lower() and whole


def _path_findings(dataset: Dataset, table: Table, unit_key: Column) -> list[SnapshotFinding]:
    current = table
    for reference in table.unit_path:
        column, target = current.column(reference.column), _target(dataset, reference)
        following = dataset.table(reference.table)
        if column is None or target is None or following is None:
            return [SnapshotFinding("unit_unknown", table.name, reference.column)]
        if column.type is not target.type or column.type is ColumnType.NUMBER:
            return [SnapshotFinding("unit_type", table.name, reference.column)]
        current = following
    holder = _unit_column(dataset, current)
    if holder is None:
        return [SnapshotFinding("unit_unknown", table.name)]
    if holder.type is not unit_key.type:
        return [SnapshotFinding("unit_type", table.name, holder.name)]
    return []


def _unit_column(dataset: Dataset, table: Table) -> Column | None:
    """The column of a table that holds the unit's key itself."""
    if table.unit_column is not None:
        return table.column(table.unit_column)
    if table.name.lower() == dataset.unit.table.lower() and dataset.unit.key is not None:
        return table.column(dataset.unit.key)
    return None


def _target(dataset: Dataset, reference: Reference) -> Column | None:
    table = dataset.table(reference.table)
    return None if table is None else table.column(reference.key)


def _described_table(dataset: Dataset, table: Table, source: TableSource) -> dict[str, Any]:
    last = table
    for reference in table.unit_path:
        following = dataset.table(reference.table)
        assert following is not None
        last = following
    holder = _unit_column(dataset, last) if table.protected else None
    naming = _naming_columns(dataset, table)
    return source.written() | {
        "name": table.name,
        **source.located(),
        "format": source.format,
        "source_table": source.source_table,
        "protected": table.protected,
        "key": None if table.key is None else _spelled(table, table.key),
        "references": [_described_reference(dataset, table, reference) for reference in table.references]
        + _described_path(dataset, table),
        "unit_path": _described_path(dataset, table),
        "unit_column": None if holder is None else holder.name,
        "one_row": table.one_row,
        "rows_stored": table.rows_stored if table.protected else None,
        "columns": [
            {
                **described_column(column, dict(source.source_names).get(column.name)),
                **_described_length(column, names=column.name.lower() in naming),
            }
            for column in table.columns
        ],
    }


def _described_length(column: Column, *, names: bool) -> dict[str, Any]:
    """How long the texts of a column may be. Where nothing but listed keys is stored, they are the limit."""
    if column.type is not ColumnType.TEXT or (column.keys is not None and column.keys.other is None):
        return {}
    return {"length_max": column.length_stored, "names": names}


def _naming_columns(dataset: Dataset, table: Table) -> set[str]:
    """Columns whose texts name units or rows: two of them that were cut to one text would become one."""
    found = {reference.column for reference in (*table.references, *table.unit_path)}
    found |= {name for name in (table.key, table.unit_column) if name is not None}
    if dataset.unit.key is not None and table.name.lower() == dataset.unit.table.lower():
        found.add(dataset.unit.key)
    for other in dataset.tables:
        for reference in (*other.references, *other.unit_path):
            if reference.table.lower() == table.name.lower():
                found.add(reference.key)
    return {name.lower() for name in found}


def _described_path(dataset: Dataset, table: Table) -> list[dict[str, str]]:
    described: list[dict[str, str]] = []
    current = table
    for reference in table.unit_path:
        described.append(_described_reference(dataset, current, reference))
        following = dataset.table(reference.table)
        assert following is not None
        current = following
    return described


def _described_reference(dataset: Dataset, table: Table, reference: Reference) -> dict[str, str]:
    target = dataset.table(reference.table)
    assert target is not None
    return {
        "column": _spelled(table, reference.column),
        "table": target.name,
        "key": _spelled(target, reference.key),
    }


def _spelled(table: Table, name: str) -> str:
    column = table.column(name)
    assert column is not None
    return column.name


def described_column(column: Column, source_name: str | None = None) -> dict[str, Any]:
    """A declared column as workers read it."""
    keys: list[KeyValue] | None = None
    # Only where it is declared: the versions of data without it stay what they were.
    more: dict[str, Any] = {} if source_name is None else {"source_name": source_name}
    if column.keys is not None and column.keys.other is None and column.keys_from is None:
        keys = [value for value in column.keys.values if value is not None]
        if column.type is not ColumnType.TEXT:
            more["allowed"] = _allowed(keys)
            keys = None
    if column.keys_from is not None:
        more["keys_from"] = list(column.keys_from)
    if column.unique:
        more["unique"] = True
    return {"name": column.name, "type": column.type.value, "nullable": column.nullable, "keys": keys, **more}


def _allowed(keys: Sequence[KeyValue]) -> dict[str, list[str]]:
    """The values that a column may have, as text: all of a range of whole numbers or days by its ends."""
    values: list[Any] = list(keys)
    plain = values and type(values[0]) in (int, datetime.date)
    one: Any = 1 if values and type(values[0]) is int else datetime.timedelta(days=1)
    if plain and max(values) - min(values) == one * (len(values) - 1):
        return {"range": [str(min(values)), str(max(values))]}
    return {"values": [str(value) for value in values]}


def _data_version(dataset: Dataset, sources: Sequence[TableSource], digests: Sequence[str], draw_key: bytes) -> str:
    """16 hex digits that change with the contents, the declared shape and the draw key.

    Keyed, because the version is public: a plain hash of private files would let anybody confirm a guess of them.
    """
    shape = [_described_table(dataset, table, source) for table, source in zip(dataset.tables, sources, strict=True)]
    for table in shape:
        del table["path"]
        table.pop("paths", None)
    document = {
        "format": _FORMAT,
        "unit": [dataset.unit.table, dataset.unit.key],
        "tables": shape,
        "digests": list(digests),
    }
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hmac.new(draw_key, b"noisegate data version\0" + text.encode(), hashlib.sha256).hexdigest()[:16]


# -------------------------------------------------------------------------------------------------------- answers


def _completed(answer: Any) -> Any:
    """The answer, or SnapshotRefused with its findings."""
    if isinstance(answer, Failure):
        raise SnapshotRefused([SnapshotFinding("not_completed")])
    if isinstance(answer, _Findings):
        raise SnapshotRefused(answer.findings)
    return answer


@dataclass(frozen=True, slots=True)
class _Findings:
    findings: tuple[SnapshotFinding, ...]


def _findings(frame: Frame) -> _Findings | None:
    listed = frame.header.get("findings")
    if listed is None:
        return None
    findings: list[SnapshotFinding] = []
    for item in listed:
        code, table, column, count = item["code"], item["table"], item["column"], item["count"]
        if code not in SNAPSHOT_CODES or not (count is None or type(count) is int):
            raise FrameFault
        if not all(name is None or type(name) is str for name in (table, column)):
            raise FrameFault
        findings.append(SnapshotFinding(code, table, column, count))
    if not findings:
        raise FrameFault
    return _Findings(tuple(findings))


def _fingerprints(frame: Frame) -> list[dict[str, Any]] | _Findings:
    refused = _findings(frame)
    if refused is not None:
        return refused
    answers = [
        {"paths": [str(path) for path in item["paths"]], "digest": item["digest"], "identity": item["identity"]}
        for item in frame.header["sources"]
    ]
    if not all(type(answer["digest"]) is str and len(answer["digest"]) == 64 for answer in answers):
        raise FrameFault
    return answers


def _report(frame: Frame) -> SnapshotReport | _Findings:
    return _findings(frame) or _read_report(frame.header)


def _read_report(document: Mapping[str, Any]) -> SnapshotReport:
    tables = tuple(
        TableReport(
            name=str(table["name"]),
            rows_read=int(table["rows_read"]),
            rows_stored=int(table["rows_stored"]),
            rows_without_unit=int(table["rows_without_unit"]),
            non_finite=tuple((str(column), int(count)) for column, count in dict(table["non_finite"]).items()),
            # Snapshots of older servers kept everything.
            rows_beyond=int(table.get("rows_beyond", 0)),
            texts_cut=tuple((str(column), int(count)) for column, count in dict(table.get("texts_cut", {})).items()),
        )
        for table in document["tables"]
    )
    return SnapshotReport(int(document["units"]), tables)


def _single_column(frame: Frame) -> list[Any]:
    rows, columns = frame.header["rows"], columns_of(frame)
    if type(rows) is not int or rows < 0 or len(columns) != 1:
        raise FrameFault
    return decode_values(*columns[0], rows)


# ---------------------------------------------------------------------------------------------------- publishing


def _manifest_path(path: Path) -> Path:
    return path.with_suffix(".json")


def _publish(built: Path, path: Path, version: str, dataset: Dataset, report: SnapshotReport) -> None:
    """Make the finished file visible under its version: durable first, then renamed; the manifest comes last."""
    os.chmod(built, 0o400)
    _sync(built)
    manifest = {
        "format": _FORMAT,
        "data_version": version,
        "bytes": built.stat().st_size,
        "units": report.units,
        "tables": [
            {
                "name": table.name,
                "rows_read": table.rows_read,
                "rows_stored": table.rows_stored,
                "rows_without_unit": table.rows_without_unit,
                "non_finite": dict(table.non_finite),
                "rows_beyond": table.rows_beyond,
                "texts_cut": dict(table.texts_cut),
            }
            for table in report.tables
        ],
        "public": {
            table.name: {column.name: column.type.value for column in table.columns}
            for table in dataset.tables
            if not table.protected
        },
    }
    os.replace(built, path)
    descriptor, name = tempfile.mkstemp(prefix=".manifest-", dir=path.parent)
    with os.fdopen(descriptor, "w") as handle:
        json.dump(manifest, handle, indent=1)
        handle.flush()
        os.fsync(handle.fileno())
    os.replace(name, _manifest_path(path))
    _sync(path.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sweep(directory: Path) -> None:
    """Remove what a killed server left behind: hidden names that are older than an hour and in nobody's use."""
    for pattern in (".open-*/snapshot.duckdb", ".manifest-*"):
        for path in directory.glob(pattern):
            with contextlib.suppress(OSError):
                # A hard link has the age of the snapshot; its folder has its own.
                age_of = path.parent if path.name == "snapshot.duckdb" else path
                if time.time() - age_of.lstat().st_mtime > _STALE_SECONDS:
                    path.unlink()
    for path in directory.glob(".open-*"):
        with contextlib.suppress(OSError):
            path.rmdir()
