"""The attaching worker: reads source files, verifies what was declared, writes one snapshot file. Started per task.

Findings are words, declared names and counts. No value of a cell and no text of the engine is ever part of one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb

from engines.described import BuildRequest, SourceFile
from engines.frames import Frame
from engines.handler import Answer
from engines.handlers.classes import ClassesRequest, sizes_of, spreads_of
from engines.handlers.connection import KINDS, identifier, literal, lock_down, one_number, one_row, settings
from engines.handlers.layout import PLAIN_TYPES
from engines.handlers.propose import declared_constraints, inspect_table
from engines.handlers.sources import (
    INTERNAL,
    UNREADABLE,
    Refused,
    encoding_of,
    file_fault,
    fingerprint,
    identities,
    open_fault,
    open_sources,
    read_as_utf8,
    relation_of,
    source_fault,
)
from engines.handlers.stage import stage_tables, verify_keys
from engines.handlers.units import make_units, store_table, verify_units
from engines.inspected import InspectedTable
from engines.records import read_record, read_records, write_record
from engines.snapshot_findings import SnapshotFinding
from engines.stored import SnapshotReport
from privacy.values import Json

__all__ = ["AttachHandler"]

_PUBLIC_VALUES_MAX = 1_000_000
_PUBLIC_BYTES_MAX = 64 << 20
"""Most bytes of text in a public table that is read whole."""
_UNIT_COLUMNS = ("unit$id", "unit$draw")


@dataclass(frozen=True, slots=True)
class _PublicTable:
    """A public table of a snapshot, its columns with their types, and the most cells that are read."""

    snapshot: str
    table: str
    columns: tuple[tuple[str, str], ...]
    cells_max: int


@dataclass(frozen=True, slots=True)
class _Options:
    threads: int
    memory_limit_mb: int
    temporary: str


class AttachHandler:
    """Fingerprints, builds, inspects; one task per worker."""

    def __init__(self, options: Mapping[str, object]) -> None:
        read = read_record(_Options, options)
        self._settings = settings(threads=read.threads, memory_limit_mb=read.memory_limit_mb)
        self._temporary = Path(read.temporary)

    def between(self) -> None:
        """Nothing waits to be done."""

    def handle(self, frame: Frame) -> Answer:
        """One task by its name."""
        header = frame.header
        try:
            match header["operation"]:
                case "fingerprint":
                    found = fingerprint(read_records(SourceFile, header["sources"]))
                    return {"sources": [write_record(item) for item in found]}, ()
                case "build":
                    return write_record(self._build(read_record(BuildRequest, header))), ()
                case "columns":
                    return {"sources": [self._columns(s) for s in read_records(SourceFile, header["sources"])]}, ()
                case "inspect":
                    tables = self._inspect(read_record(SourceFile, header["source"]))
                    return {"tables": [write_record(table) for table in tables]}, ()
                case "class_sizes":
                    return {"sizes": [list(pair) for pair in sizes_of(self._classes(header), self._settings)]}, ()
                case "spreads":
                    found_spreads = spreads_of(self._classes(header), self._settings)
                    return {"spreads": [write_record(spread) for spread in found_spreads]}, ()
                case "public_table":
                    return self._public_table(header)
                case _:
                    return self._public(header)
        except Refused as refused:
            return {"findings": [write_record(finding) for finding in refused.findings]}, ()

    @staticmethod
    def _classes(header: Mapping[str, object]) -> ClassesRequest:
        return read_record(ClassesRequest, header)

    # --------------------------------------------------------------------------------------------- connections

    def _connect(self, path: str) -> duckdb.DuckDBPyConnection:
        spill = {"temp_directory": str(self._temporary)}
        connection = duckdb.connect(path, config={**self._settings, **spill})
        connection.execute("SET TimeZone='UTC'")
        return connection

    # -------------------------------------------------------------------------------------------------- build

    def _build(self, request: BuildRequest) -> SnapshotReport:
        folder = self._temporary.parent
        request = replace(request, tables=tuple(read_as_utf8(table, folder) for table in request.tables))
        with contextlib.closing(self._connect(str(folder / "snapshot.duckdb"))) as connection:
            relations = open_sources(connection, request.tables)
            connection.execute(f"ATTACH {literal(str(folder / 'staging.duckdb'))} AS staging")
            files = [path for table in request.tables if table.format != "duckdb" for path in table.files]
            _lock_down(connection, *files)
            staged = stage_tables(connection, request, relations)
            verify_keys(connection, request.tables)
            units = make_units(connection, request)
            reports = tuple(
                store_table(connection, request, position, units, table) for position, table in enumerate(staged)
            )
            verify_units(connection, request.tables, reports)
            connection.execute("CHECKPOINT")
        for source in request.sources:
            if identities(source.paths) != source.identity:
                raise Refused(SnapshotFinding("source_changed"))
        return SnapshotReport(units, reports)

    # ------------------------------------------------------------------------------------------------ inspect

    def _inspect(self, source: SourceFile) -> list[InspectedTable]:
        """Tables, columns and proposed types of a source; of a database also the keys and references it declares."""
        if source.format == "csv":
            shown = {encoding_of(path) for path in source.files if file_fault(path) is None}
            source = replace(source, encoding=shown.pop() if len(shown) == 1 else "utf-8")
        code = source_fault(source)
        if code is not None:
            raise Refused(SnapshotFinding(code))
        source = read_as_utf8(source, self._temporary.parent)
        with contextlib.closing(self._connect(":memory:")) as connection:
            if source.format != "duckdb":
                _lock_down(connection, *source.files)
                return [inspect_table(connection, source, None)]
            try:
                connection.execute(f"ATTACH {literal(source.path)} AS s0 (READ_ONLY)")
            except duckdb.Error as error:
                raise Refused(SnapshotFinding(open_fault(error))) from None
            found = connection.execute(
                "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 's0' ORDER BY 1, 2"
            ).fetchall()
            names = [name if schema == "main" else f"{schema}.{name}" for schema, name in found]
            _lock_down(connection)
            return declared_constraints(connection, [inspect_table(connection, source, name) for name in names])

    def _columns(self, source: SourceFile) -> Mapping[str, Json]:
        """The names of a source's columns, or the code of what is wrong with it. Counts and reads nothing."""
        code = source_fault(source)
        if code is not None:
            return {"code": code}
        try:
            source = read_as_utf8(source, self._temporary.parent, head_only=True)
            with contextlib.closing(self._connect(":memory:")) as connection:
                relations = open_sources(connection, [source])
                _lock_down(connection, *(source.files if source.format != "duckdb" else ()))
                _, columns = relation_of(connection, source, relations[0])
        except INTERNAL:
            raise
        except Refused as refused:
            return {"code": refused.findings[0].code}
        except duckdb.CatalogException:
            return {"code": "source_table_missing"}
        except (duckdb.Error, *UNREADABLE):
            return {"code": "malformed_csv" if source.format == "csv" else "source_damaged"}
        return {"names": [name for name, _, _ in columns]}

    def _public_table(self, request: Mapping[str, object]) -> Answer:
        """Every row of a public table, its columns in the types that analysts see; too many is a finding."""
        wanted = read_record(_PublicTable, request)
        with self._public_stored(wanted.snapshot, wanted.table) as (connection, table, stored):
            names = [name for name, _ in wanted.columns]
            if not set(names) <= set(stored):
                raise ValueError
            rows = one_number(connection, f"SELECT count(*) FROM main.{table}")
            if rows * len(names) > wanted.cells_max:
                raise Refused(SnapshotFinding("too_many_rows", wanted.table))
            values = [f"CAST({identifier(name)} AS {PLAIN_TYPES[kind]})" for name, kind in wanted.columns]
            lengths = [
                f"coalesce(sum(strlen({value})), 0)"
                for value, (_, kind) in zip(values, wanted.columns, strict=True)
                if kind == "text"
            ]
            sizes = one_row(connection, f"SELECT {', '.join([*lengths, '0'])} FROM main.{table}")
            if sum(sizes) > _PUBLIC_BYTES_MAX:
                raise Refused(SnapshotFinding("too_many_rows", wanted.table))
            listed = [f"{value} AS c{place}" for place, value in enumerate(values)]
            cursor = connection.execute(f"SELECT {', '.join(listed)} FROM main.{table}")
            described = [(str(column[0]), str(column[1])) for column in cursor.description or []]
            from engines.handlers.results import columns_result

            kinds = [KINDS[type_name] for _, type_name in described]
            return columns_result(cursor, [name for name, _ in described], [kind for _, kind in described], kinds)

    @contextlib.contextmanager
    def _public_stored(self, path: str, name: str) -> Iterator[tuple[duckdb.DuckDBPyConnection, str, list[str]]]:
        """A locked connection to a snapshot, a table of it that belongs to nobody, and the names of its columns."""
        table = identifier(name)
        with contextlib.closing(duckdb.connect(path, read_only=True, config=self._settings)) as connection:
            lock_down(connection, local_files=False)
            stored = [str(row[0]) for row in connection.execute(f"DESCRIBE main.{table}").fetchall()]
            if set(_UNIT_COLUMNS) & set(stored):
                raise ValueError
            yield connection, table, stored

    def _public(self, request: Mapping[str, object]) -> Answer:
        column = str(request["column"])
        with self._public_stored(str(request["snapshot"]), str(request["table"])) as (connection, table, stored):
            if column not in stored:
                raise ValueError
            quoted = identifier(column)
            # An ENUM has no array form, and its order is the declared one: compare and sort it as text.
            probe = connection.execute(f"SELECT typeof({quoted}) FROM main.{table} LIMIT 1").fetchone()
            base = "VARCHAR" if probe is None else str(probe[0]).split("(", maxsplit=1)[0]
            kind = "text" if base == "ENUM" else KINDS[base]
            value = f"CAST({quoted} AS VARCHAR)" if kind == "text" else quoted
            most = _PUBLIC_VALUES_MAX + 1
            cursor = connection.execute(
                f"SELECT DISTINCT {value} AS value FROM main.{table} ORDER BY 1 NULLS LAST LIMIT {most}"
            )
            types = [str(column[1]) for column in cursor.description or []]
            # Loaded when it is needed: with the library of arrays it takes a third of the worker's start.
            from engines.handlers.results import columns_result

            return columns_result(cursor, ["value"], types, [kind], rows_max=_PUBLIC_VALUES_MAX)


def _lock_down(connection: duckdb.DuckDBPyConnection, *files: str) -> None:
    """Close what can be closed, but for reading these files and what is attached already."""
    if files:
        connection.execute(f"SET allowed_paths=[{', '.join(map(literal, files))}]")
    lock_down(connection, local_files=True)
