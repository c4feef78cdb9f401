"""Where the rows of a declared table are."""

from __future__ import annotations

import glob
from pathlib import Path

from engines.table_source import SUFFIXES, SourceFormat, TableSource, file_format
from server.datasets.model import SourceFile, TableFile

__all__ = ["format_of", "parts_of", "source_of"]


def source_of(name: str, table: TableFile, directory: Path) -> TableSource:
    """The source of one table; a relative path is taken from `directory`. Requires: its format is known."""
    source = table.source
    kind = format_of(source, directory)
    assert kind is not None, "the file was checked"
    return TableSource(
        table=name,
        path=directory / source.file,
        format=kind,
        source_table=(source.table or name) if kind == "duckdb" else None,
        parts=parts_of(directory / source.file, kind) or (),
        decimal=source.decimal,
        thousands=source.thousands,
        dates=source.dates,
        encoding=source.encoding,
        nulls=tuple(source.nulls),
        true=tuple(source.true_words),
        false=tuple(source.false_words),
        zone=source.zone,
        source_names=tuple(
            (column, declared.source_name)
            for column, declared in table.columns.items()
            if declared.source_name is not None
        ),
    )


def format_of(source: SourceFile, directory: Path | None) -> SourceFormat | None:
    """The declared format, or that of the suffix: the file's, the pattern's, or of the files in the folder."""
    if source.format is not None:
        return source.format
    kind = file_format(source.file)
    if kind is None and directory is not None and (directory / source.file).is_dir():
        kinds = {file_format(item.name) for item in _files(directory / source.file)} - {None}
        return kinds.pop() if len(kinds) == 1 else None
    return kind


def parts_of(path: Path, kind: SourceFormat) -> tuple[Path, ...] | None:
    """The files of a folder or a pattern, in order; None for a plain file. Hidden files are left out.

    A file that exists under a name with such signs is itself.
    """
    if path.is_file() or kind == "duckdb":
        return None
    if path.is_dir():
        return tuple(item for item in _files(path) if file_format(item.name) == kind)
    if not any(sign in str(path) for sign in "*?["):
        return None
    found = (Path(item) for item in glob.iglob(str(path), recursive=True))
    return tuple(sorted(item for item in found if item.is_file() and not item.name.startswith((".", "_"))))


def _files(folder: Path) -> list[Path]:
    inside = (item for item in folder.iterdir() if item.is_file() and not item.name.startswith((".", "_")))
    return sorted(item for item in inside if any(item.name.lower().endswith(suffix) for suffix in SUFFIXES))
