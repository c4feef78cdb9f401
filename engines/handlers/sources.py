"""What a source file is and how its rows are read: CSV, Parquet and DuckDB files, in one part or in several.

Findings are words, declared names and counts. No value of a cell and no text of the engine is ever part of one.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import hashlib
import os
import stat
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import duckdb

from engines.described import Fingerprint, SourceFile
from engines.handlers.connection import identifier, literal
from engines.snapshot_findings import SnapshotFinding
from engines.table_source import Encoding

__all__ = [
    "INTERNAL",
    "UNREADABLE",
    "Refused",
    "csv_relation",
    "encoding_of",
    "file_fault",
    "fingerprint",
    "identities",
    "open_fault",
    "open_sources",
    "packed",
    "parquet_required",
    "read_as_utf8",
    "relation_of",
    "source_fault",
]

_Source = TypeVar("_Source", bound=SourceFile)

UNREADABLE = (UnicodeDecodeError, csv.Error, gzip.BadGzipFile, zlib.error, EOFError)
INTERNAL = (duckdb.OutOfMemoryException, duckdb.InternalException, duckdb.FatalException)
_SNIFF_BYTES = 1 << 16
_HEAD_BYTES = 1 << 20
_GZIP = b"\x1f\x8b"
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Refused(Exception):
    """Findings of one stage."""

    def __init__(self, *findings: SnapshotFinding) -> None:
        self.findings = findings
        super().__init__("refused")


def source_fault(source: SourceFile) -> str | None:
    """The code of what shows that a file of the source is not of its declared kind, or None."""
    faults = (file_fault(path) or _content_fault(path, source.format, source.encoding) for path in source.files)
    return next(filter(None, faults), None)


def fingerprint(sources: Sequence[SourceFile]) -> list[Fingerprint]:
    """The fingerprint of each source. Errors: Refused."""
    answers: list[Fingerprint] = []
    findings: list[SnapshotFinding] = []
    for source in sources:
        code = source_fault(source)
        if code is not None:
            findings.append(SnapshotFinding(code, source.name))
            continue
        identity = identities(source.files)
        # The order of parts means nothing, nor do their names.
        digests = sorted(_digest(path, source.format) for path in source.files)
        whole = digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
        answers.append(Fingerprint(source.files, whole, identity))
    if findings:
        raise Refused(*findings)
    return answers


def _digest(path: str, kind: str) -> str:
    digest = hashlib.sha256()
    for part in (path, path + ".wal"):
        # A database that was not checkpointed keeps rows in its log: they belong to the content.
        if part == path or (kind == "duckdb" and os.path.exists(part)):
            with open(part, "rb") as handle:
                digest.update(hashlib.file_digest(handle, "sha256").digest())
    return digest.hexdigest()


def identities(paths: Sequence[str]) -> tuple[int, ...]:
    """Sizes, times and numbers of the files and of their logs."""
    facts: list[int] = []
    for part in (part for path in paths for part in (path, path + ".wal")):
        try:
            status = os.stat(part)
        except OSError:
            facts += [0, 0, 0]
        else:
            facts += [status.st_size, status.st_mtime_ns, status.st_ino]
    return tuple(facts)


def file_fault(path: str) -> str | None:
    """The code of what keeps a path from being a file that can be read, or None."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return "file_missing"
    except OSError:
        return "file_unreadable"
    if stat.S_ISDIR(mode):
        return "file_is_directory"
    if not stat.S_ISREG(mode):
        return "file_unreadable"
    if any(character in path for character in "*?[]{}\n\0"):
        return "path_unsupported"
    try:
        with open(path, "rb"):
            return None
    except OSError:
        return "file_unreadable"


def _content_fault(path: str, kind: str, encoding: str = "utf-8") -> str | None:
    """The code of what shows at the ends of a file that it is not of its kind, or None."""
    with open(path, "rb") as handle:
        head = handle.read(_SNIFF_BYTES)
        if kind == "csv" and head.startswith(_GZIP):
            try:
                with gzip.open(path) as inside:
                    head = inside.read(_SNIFF_BYTES)
            except (OSError, EOFError, zlib.error):
                return "not_csv"
        if kind == "parquet" and len(head) >= 4:
            handle.seek(-4, os.SEEK_END)
            tail = handle.read(4)
    if not head:
        return "file_empty"
    if kind == "parquet":
        whole = len(head) >= 12 and head[:4] == b"PAR1" and tail == b"PAR1"
        return None if whole else "not_parquet"
    if kind == "duckdb":
        return None if head[8:12] == b"DUCK" else "not_duckdb"
    known = (b"PAR1", b"\x89PNG", b"PK\x03\x04", b"\x1f\x8b", b"%PDF", b"\xff\xd8\xff", b"\x28\xb5\x2f\xfd")
    wide = encoding == "utf-16"
    if head.startswith(known) or (b"\0" in head and not wide) or head[8:12] == b"DUCK":
        return "not_text" if head.startswith(_UTF16) else "not_csv"
    return None if _decodes(head, encoding) else "not_text" if encoding == "utf-8" else "not_encoded"


def _decodes(head: bytes, encoding: str) -> bool:
    """Whether the first bytes of a file are text in that encoding; the end of them may split a character."""
    decoder = codecs.getincrementaldecoder("utf-8-sig" if encoding == "utf-8" else encoding)()
    try:
        decoder.decode(head)
    except UnicodeDecodeError:
        return False
    return True


def encoding_of(path: str) -> Encoding:
    """The encoding that the first bytes of a CSV file show: UTF-16 by its mark, else UTF-8, else that of Windows."""
    opened = gzip.open if packed(path) == "gzip" else open
    with opened(path, "rb") as handle:
        head = handle.read(_SNIFF_BYTES)
    if head.startswith(_UTF16):
        return "utf-16"
    return "utf-8" if _decodes(head, "utf-8") else "windows-1252"


def read_as_utf8(source: _Source, folder: Path, *, head_only: bool = False) -> _Source:
    """The source with its CSV files as UTF-8: copies in the folder where they are written in another encoding.

    `head_only` copies whole lines of the beginning, enough for the names of the columns.
    Errors: Refused (not_encoded) when a file is not text in the declared encoding.
    """
    if source.format != "csv" or source.encoding == "utf-8":
        return source
    copies = []
    for path in source.files:
        copy = folder / f"utf8-{hashlib.sha256(path.encode()).hexdigest()[:24]}.csv"
        opened = gzip.open if packed(path) == "gzip" else open
        try:
            with (
                opened(path, "rt", encoding=source.encoding, newline="") as reader,
                open(copy, "w", encoding="utf-8", newline="") as writer,
            ):
                if head_only:
                    text = reader.read(_HEAD_BYTES)
                    whole = text.rpartition("\n")[0]
                    writer.write(whole or text)
                else:
                    while text := reader.read(_HEAD_BYTES):
                        writer.write(text)
        except (UnicodeError, *UNREADABLE):
            raise Refused(SnapshotFinding("not_encoded", source.name)) from None
        copies.append(str(copy))
    return replace(source, path=copies[0], paths=tuple(copies))


def open_fault(error: duckdb.Error) -> str:
    """Which of a few causes an engine error stands for; its message is dropped."""
    if isinstance(error, INTERNAL):
        raise error
    text = str(error).lower()
    if "set lock" in text or "conflicting lock" in text:
        return "source_locked"
    if "version" in text or "newer" in text or "storage" in text:
        return "source_version"
    return "source_damaged"


def open_sources(connection: duckdb.DuckDBPyConnection, sources: Sequence[SourceFile]) -> list[str]:
    """Attach database files and give each table's relation as SQL (CSV files get theirs when they are staged)."""
    attached: dict[str, str] = {}
    relations: list[str] = []
    findings: list[SnapshotFinding] = []
    for source in sources:
        path = source.path
        if source.format != "duckdb":
            relations.append("")
            continue
        if path not in attached:
            alias = f"source{len(attached)}"
            try:
                connection.execute(f"ATTACH {literal(path)} AS {alias} (READ_ONLY)")
            except duckdb.Error as error:
                findings.append(SnapshotFinding(open_fault(error), source.name))
                continue
            attached[path] = alias
        schema, _, inner = (source.source_table or source.name).rpartition(".")
        relations.append(f"{attached[path]}.{identifier(schema or 'main')}.{identifier(inner)}")
    if findings:
        raise Refused(*findings)
    return relations


def packed(path: str) -> str:
    """The engine's word for how a CSV file is compressed."""
    with open(path, "rb") as handle:
        return "gzip" if handle.read(len(_GZIP)) == _GZIP else "none"


def _header(path: str, delimiter: str, quote: str) -> list[str]:
    """The cells of a CSV file's first row."""
    open_text = gzip.open if packed(path) == "gzip" else open
    with open_text(path, "rt", newline="", encoding="utf-8-sig") as handle:
        return next(csv.reader(handle, delimiter=delimiter, quotechar=quote), [])


def csv_relation(connection: duckdb.DuckDBPyConnection, source: SourceFile) -> tuple[str, list[tuple[str, str, str]]]:
    """Relation and columns (source name, engine name, type) of CSV files: every cell is text, nothing is guessed
    beyond the delimiter and the quote.

    Errors: Refused (parts_differ) when the parts have different headers.
    """
    found = [_layout(connection, path) for path in source.files]
    if any(other != found[0] for other in found[1:]):
        raise Refused(SnapshotFinding("parts_differ", source.name))
    (delimiter, quote, escape), compressed, header = found[0]
    names = [cell.strip() for cell in header]
    columns = ", ".join(f"'c{position}': 'VARCHAR'" for position in range(len(names)))
    files = ", ".join(map(literal, source.files))
    nulls = ", ".join(literal(word) for word in ("", *source.nulls))
    relation = (
        f"read_csv([{files}], auto_detect=false, header=true, columns={{{columns}}}, delim={literal(delimiter)}, "
        f"quote={literal(quote)}, escape={literal(escape)}, nullstr=[{nulls}], compression='{compressed}', "
        "hive_partitioning=false)"
    )
    return relation, [(name, f"c{position}", "VARCHAR") for position, name in enumerate(names)]


def _layout(connection: duckdb.DuckDBPyConnection, path: str) -> tuple[tuple[str, str, str], str, list[str]]:
    """The marks of a CSV file (delimiter, quote, escape), its compression and the cells of its first row."""
    delimiter, quote, escape = ",", '"', '"'
    compressed = packed(path)
    with contextlib.suppress(duckdb.Error):
        found = connection.execute(
            f"SELECT Delimiter, Quote, Escape FROM sniff_csv({literal(path)}, compression='{compressed}')"
        ).fetchone()
        if found is not None:
            marks = [mark if isinstance(mark, str) and len(mark) == 1 else '"' for mark in found]
            delimiter, quote, escape = (found[0] if len(str(found[0])) == 1 else ","), marks[1], marks[2]
    header = _header(path, delimiter, quote)
    if len(header) == 1:
        # Rows of different length mislead the guess: a mark that separates the cells of the header is the delimiter,
        # and rows that do not fit are refused.
        parting = [mark for mark in ",;\t|" if mark in header[0]]
        if parting:
            delimiter = max(parting, key=header[0].count)
            header = _header(path, delimiter, quote)
    return (delimiter, quote, escape), compressed, header


def relation_of(
    connection: duckdb.DuckDBPyConnection, source: SourceFile, known: str
) -> tuple[str, list[tuple[str, str, str]]]:
    """Relation and columns (source name, engine name, type) of a table's source.

    Errors: Refused (parts_differ) when its parts have different columns.
    """
    if source.format == "csv":
        return csv_relation(connection, source)
    if known:
        return known, _described(connection, known)
    parts = [_parquet_columns(connection, path) for path in source.files]
    if any(part != parts[0] for part in parts[1:]):
        raise Refused(SnapshotFinding("parts_differ", source.name))
    return f"read_parquet([{', '.join(map(literal, source.files))}], hive_partitioning=false)", parts[0]


def _described(connection: duckdb.DuckDBPyConnection, text: str) -> list[tuple[str, str, str]]:
    rows = connection.execute(f"DESCRIBE SELECT * FROM {text}").fetchall()
    return [(str(row[0]), str(row[0]), str(row[1])) for row in rows]


def _parquet_columns(connection: duckdb.DuckDBPyConnection, path: str) -> list[tuple[str, str, str]]:
    described = _described(connection, f"read_parquet({literal(path)}, hive_partitioning=false)")
    # The engine renames columns whose names differ only in case; the file's own names show it.
    originals = _parquet_fields(connection, path)
    if len(originals) != len(described):
        return described
    return [(original, engine, kind) for (original, _), (_, engine, kind) in zip(originals, described, strict=True)]


def parquet_required(connection: duckdb.DuckDBPyConnection, paths: Sequence[str], count: int) -> list[bool]:
    """Whether each of the `count` top-level columns is declared as never NULL, in all the parts of a table."""
    required = [True] * count
    for path in paths:
        fields = _parquet_fields(connection, path)
        if len(fields) != count:
            return [False] * count
        required = [before and declared for before, (_, declared) in zip(required, fields, strict=True)]
    return required


def _parquet_fields(connection: duckdb.DuckDBPyConnection, path: str) -> list[tuple[str, bool]]:
    """Names of the top-level columns, from the schema tree in depth-first order, and whether each is required."""
    rows = connection.execute(
        f"SELECT name, num_children, repetition_type FROM parquet_schema({literal(path)})"
    ).fetchall()
    names: list[tuple[str, bool]] = []
    position = 1

    def skip(index: int) -> int:
        following = index + 1
        for _ in range(rows[index][1] or 0):
            following = skip(following)
        return following

    while position < len(rows):
        names.append((str(rows[position][0]), str(rows[position][2]) == "REQUIRED"))
        position = skip(position)
    return names
