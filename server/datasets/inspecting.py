"""What is in a data file, a folder or a pattern of them: names and types, never values of rows.

Exception
  DataRefused    a path that holds no usable data
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from engines.inspect import inspect_source
from engines.inspected import InspectedTable
from engines.table_source import SUFFIXES, SourceFormat, file_format
from privacy.refusal import Finding
from server.datasets.finding import ERROR
from server.datasets.first_bytes import looks_like
from server.datasets.source import parts_of

__all__ = ["DataRefused", "inspect_data", "stem", "subfolders"]

_TABLES_MAX = 64
"""The most files of a folder that are taken as tables of their own."""
_VALUE = re.compile(r"\s*[-+]?[0-9][0-9.,]*\s*|\s*[0-9]{1,4}[-./][0-9]{1,2}[-./][0-9]{1,4}([ T].*)?")
"""A cell that is a number or a date."""
_SUFFIXES = re.compile(r"(?<=.)(\.(csv|tsv|parquet|pq|duckdb|db))?(\.gz)?$", re.IGNORECASE)


class DataRefused(Exception):
    """A path that holds no usable data: what, why, and what to do instead (lines)."""

    def __init__(self, what: str, why: str, *instead: str) -> None:
        super().__init__(what)
        self.finding = Finding(ERROR, what, why, instead)


def stem(path: Path) -> str:
    """The name of a data file without its suffixes."""
    return _SUFFIXES.sub("", path.name, count=1)


def inspect_data(path: Path) -> tuple[InspectedTable, ...]:
    """Tables and columns of an absolute path: a data file, a folder or a pattern.

    A table without a name gets the file's. The files of a pattern are the parts of one table; those of a folder too
    when all have the same columns, else each of them is a table. Errors: DataRefused, SnapshotRefused, OSError.
    """
    if path.is_dir():
        return _folder(path)
    if not path.exists() and any(sign in str(path) for sign in "*?["):
        return _pattern(path)
    return _one_file(path)


def subfolders(path: Path) -> str:
    """How many folders a folder has, in words; they are not read. Empty where there is none."""
    shown = path.iterdir() if path.is_dir() else ()
    count = sum(item.is_dir() and not item.name.startswith((".", "_")) for item in shown)
    return f"{count:,} folder{'s' if count > 1 else ''}" if count else ""


def _folder(path: Path) -> tuple[InspectedTable, ...]:
    what = f'could not use the folder "{path}"'
    shown = (item for item in sorted(path.iterdir()) if not item.name.startswith((".", "_")))
    files = {item: kind for item in shown if (kind := file_format(item.name)) is not None}
    if not files:
        inside = subfolders(path)
        why = "It has no CSV, Parquet or DuckDB file" + (f", only {inside}." if inside else ".")
        advice = "Give a data file, a folder of them, or a pattern such as 'visits/*.parquet'."
        raise DataRefused(what, why, advice)
    found = [_one_file(file) for file in list(files)[:_TABLES_MAX]]
    columns = {tuple((column.name, column.type) for column in tables[0].columns) for tables in found}
    kinds = set(files.values())
    if len(kinds) == len(columns) == 1 and "duckdb" not in kinds and len(files) > 1:
        return _parts(path, list(files), kinds.pop())
    if len(files) > _TABLES_MAX:
        why = f"It has {len(files):,} files with different columns: too many to be tables of their own."
        raise DataRefused(what, why, "Give the parts of one table: a pattern such as 'visits/*.parquet'.")
    named = zip(files, found, strict=True)
    return tuple(replace(table, file=str(file)) for file, tables in named for table in tables)


def _pattern(path: Path) -> tuple[InspectedTable, ...]:
    kind = file_format(path.name)
    files = parts_of(path, kind or "csv")
    if kind is None or kind == "duckdb" or not files:
        raise DataRefused(
            f'could not use the pattern "{path}"',
            "No CSV or Parquet file fits it." if kind else "It does not end with a suffix of CSV or Parquet files.",
            "For instance: 'visits/*.parquet', in quotes, so that the shell leaves it alone.",
        )
    return _parts(path, list(files), kind)


def _parts(path: Path, files: list[Path], kind: SourceFormat) -> tuple[InspectedTable, ...]:
    tables = inspect_source(path, source_format=kind, parts=files).tables
    whole = path.name if path.is_dir() else path.parent.name or path.name
    name = stem(Path(re.sub(r"[*?\[\]]+", "", whole)))
    return tuple(replace(table, name=name or "table") for table in tables)


def _one_file(path: Path) -> tuple[InspectedTable, ...]:
    what = f'could not use the data file "{path.name}"'
    if not path.exists():
        raise DataRefused(f'could not find the data file "{path}"', "There is no such file.", "Check the path.")
    if not path.is_file():
        advice = "Give one CSV, Parquet or DuckDB file, a folder of them, or a pattern."
        raise DataRefused(what, "It is not a file.", advice)
    kind = file_format(path.name)
    if kind is None:
        why = f"Its kind follows from its suffix, and this one is not among {', '.join(SUFFIXES)}."
        raise DataRefused(what, why, "Rename it, or export the data as CSV or Parquet.")
    if path.stat().st_size == 0:
        raise DataRefused(what, "It is empty.", "Export the data again.")
    if kind not in looks_like(path):
        raise DataRefused(
            what,
            f"It is not what its name says: its first bytes are not those of a {kind} file.",
            *(["Save it as CSV (not as a spreadsheet)."] if kind == "csv" else []),
            "Give it the suffix of what it is, or export it again if it is damaged.",
        )
    tables = inspect_source(path, source_format=kind).tables
    if kind == "csv" and any(_VALUE.fullmatch(column.name) for table in tables for column in table.columns):
        # Names of columns are public: a first row that is taken for names would reveal a person's values.
        raise DataRefused(
            what,
            "Its first line looks like a row of data: a name in it is a number or a date.",
            "Add a first line with the names of the columns, or give that column a name in words.",
        )
    return tuple(table if table.name else replace(table, name=stem(path)) for table in tables)
