"""Data files: whether they are there and begin as their formats do, and whether they have the declared columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path as FilePath

from engines.columns import column_fault, matching_columns
from engines.snapshot_findings import SnapshotFinding
from engines.table_source import SUFFIXES, SourceFormat, TableSource
from privacy.wording import nearest
from server.datasets.advice import advice
from server.datasets.finding import Path
from server.datasets.first_bytes import looks_like
from server.datasets.identifiers import column_name_for
from server.datasets.meaning.judged import Judged
from server.datasets.model import ColumnFile, TableFile
from server.datasets.shape import PLACEHOLDER, shown
from server.datasets.source import format_of, parts_of, source_of

__all__ = ["Headers", "judge_source", "judge_source_columns", "quoted"]


Headers = Callable[[Sequence[TableSource]], Sequence[tuple[str, ...] | SnapshotFinding]]
"""Reports for each source the names of its columns, or what is wrong with it."""


def judge_source(judged: Judged, path: Path, name: str, table: TableFile) -> None:
    """Finds what is wrong with the data file of a table, without reading its rows."""
    source = table.source
    if source.file == PLACEHOLDER or not judged.sources:
        return
    allowed = "\0" not in source.file and (not judged.confined or _inside(judged, source.file))
    kind = format_of(source, judged.directory if allowed else None)
    # Without a directory nothing is looked for, and a name without a suffix may be a folder's.
    if kind is None and (judged.directory is not None or FilePath(source.file).suffix):
        judged.problem(
            (*path, "source", "file"),
            what=f'the format of "{source.file}" is not known',
            why="Its suffix (or that of every file in the folder) is none of " + ", ".join(SUFFIXES) + ".",
            instead="Add format: csv, parquet or duckdb.",
        )
    if source.table is not None and kind not in (None, "duckdb"):
        judged.problem(
            (*path, "source", "table"),
            what=f'"source.table" of table "{name}" has no meaning for a {kind} file',
            why="Only DuckDB files hold several tables.",
            instead="Remove it.",
        )
    if "\0" in source.file:
        judged.problem(
            (*path, "source", "file"),
            what=f'the file name of table "{name}" has a zero byte in it',
            why="No file can have such a name.",
            instead="Write the path of the data file.",
        )
    elif judged.confined and not _inside(judged, source.file):
        judged.problem(
            (*path, "source", "file"),
            what=f'the data file of table "{name}" is outside the folder of datasets',
            why="Files elsewhere on the server are not for this way of attaching data.",
            instead="Put the file into the folder and give its name.",
        )
    elif judged.directory is not None and kind is not None:
        _files(judged, name, (*path, "source", "file"), judged.directory / source.file, kind)


def _inside(judged: Judged, name: str) -> bool:
    if judged.directory is None:
        return not FilePath(name).is_absolute() and ".." not in FilePath(name).parts
    return (judged.directory / name).resolve().is_relative_to(judged.directory.resolve())


def _files(judged: Judged, table: str, path: Path, file: FilePath, kind: SourceFormat) -> None:
    parts = parts_of(file, kind)
    if parts is None:
        _file(judged, table, path, file, kind)
        return
    if not parts:
        judged.problem(
            path,
            what=f'no data file is in "{file.name}"',
            why=f'The folder or pattern of table "{table}" has no {kind} file.',
            instead="Check the path: it is relative to the dataset file.",
        )
        return
    sound = len(judged.sound)
    if judged.confined and not all(_inside(judged, str(part)) for part in parts):
        judged.problem(
            path,
            what=f'a data file of table "{table}" is outside the folder of datasets',
            why="Files elsewhere on the server are not for this way of attaching data.",
            instead="Put the files themselves into the folder, not links to them.",
        )
        return
    for part in parts:
        del judged.sound[sound:]
        _file(judged, table, path, part, kind)
        if len(judged.sound) == sound:
            return


def _file(judged: Judged, table: str, path: Path, file: FilePath, kind: SourceFormat) -> None:
    """Whether the data file is there and begins as its format does. Looks at no values."""
    try:
        formats = looks_like(file)
    except OSError as error:
        judged.problem(
            path,
            what=f'could not read the data file "{file.name}"',
            why=f"The system says: {error.strerror or 'it cannot be opened'}.",
            instead="Paths are relative to the dataset file; check the path and its permissions.",
        )
        return
    if kind not in formats:
        judged.problem(
            path,
            what=f'"{file.name}" is not a {kind} file',
            why="It is empty, or its first bytes are not those of the format"
            + (f"; it looks like {formats[0]}." if formats else "."),
            instead="Check the file, or correct source.format.",
        )
    else:
        judged.sound.append(table)


def judge_source_columns(judged: Judged, headers: Headers, directory: FilePath) -> None:
    """Whether every declared column is in its data file, by the names alone."""
    places = [
        source_of(name, judged.tables[name], directory)
        for name in judged.sound
        if judged.tables[name].source.file != PLACEHOLDER
    ]
    for source, found in zip(places, headers(places) if places else (), strict=True):
        path: Path = ("tables", source.table)
        if isinstance(found, SnapshotFinding):
            judged.problem(
                (*path, "source"),
                what=f'the data file of table "{source.table}" cannot be used',
                why=found.text,
                instead=advice(found, judged.tables[source.table], judged.unit)[0],
            )
            continue
        for name, column in judged.tables[source.table].columns.items():
            _source_column(judged, (*path, "columns", name), source.table, name, column, found)


def _source_column(
    judged: Judged, path: Path, table: str, name: str, column: ColumnFile, present: tuple[str, ...]
) -> None:
    places = matching_columns(present, name, column.source_name)
    code = column_fault(places)
    if code is None:
        return
    wanted = column.source_name if column.source_name is not None else name
    called = f'column "{table}.{name}"'
    if code == "duplicate_columns":
        listed = " and ".join(f'"{shown(present[place], bare=True)}"' for place in places[:3])
        exact = len({present[place] for place in places}) == len(places)
        judged.problem(
            path,
            what=f"{called} could be one of several columns of the data file",
            why=f"The file has {listed}, and upper and lower case do not distinguish names.",
            instead=f"Choose one by its exact name: source_name: {quoted(present[places[0]])}."
            if exact
            else "Rename one of them in the data file.",
        )
        return
    near = nearest(wanted, present) or next(
        (item for item in present if column_name_for(item.strip()).lower() == name.lower()), None
    )
    known = ", ".join(shown(item, bare=True) for item in present[:30] if item)
    judged.problem(
        (*path, "source_name") if column.source_name is not None else path,
        what=f"{called} is not in the data file",
        why=f'The file has no column "{shown(wanted, bare=True)}"; it has {known}.',
        instead=(f"Did you mean source_name: {quoted(near)}? " if near else "")
        + "Write source_name with the name that the file has, or remove the column here.",
    )


def quoted(text: str) -> str:
    """The text in quotes, on one line: JSON is YAML too."""
    return json.dumps(text, ensure_ascii=False)
