"""From a data file to the text of a dataset file: names and types only, never values of rows."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from server.cli.failure import CommandFailed, explained, usage_error
from server.cli.options import absolute
from server.cli.output import printable

if TYPE_CHECKING:
    from engines.inspect import InspectedTable
    from privacy.bounds import ContributionBound

__all__ = ["EACH_ROW", "column_list", "inspect_data", "proposal", "renamed_lines", "stem"]


EACH_ROW = "Where each row is one person and no column names them: --each-row"

_VALUE = re.compile(r"\s*[-+]?[0-9][0-9.,]*\s*|\s*[0-9]{1,4}[-./][0-9]{1,2}[-./][0-9]{1,4}([ T].*)?")
"""A cell that is a number or a date."""


def stem(path: Path) -> str:
    """The name of a data file without its suffixes."""
    name = path.name
    for suffix in (".gz", ".csv", ".tsv", ".parquet", ".pq", ".duckdb", ".db"):
        if name.lower().endswith(suffix) and len(name) > len(suffix):
            name = name[: -len(suffix)]
    return name


def inspect_data(path: Path) -> tuple[InspectedTable, ...]:
    """Tables and columns of a data file, a folder or a pattern; a table without a name gets the file's.

    The files of a pattern are the parts of one table; those of a folder too when all have the same columns, else
    each of them is a table. Errors: CommandFailed.
    """
    with explained():
        if path.is_dir():
            return _folder(path)
        if not path.exists() and any(sign in str(path) for sign in "*?["):
            return _pattern(path)
    return _one_file(path)


_TABLES_MAX = 64
"""Most files of a folder that are taken for tables of their own."""


def _folder(path: Path) -> tuple[InspectedTable, ...]:
    from server.datasets.files import file_format

    kinds = {kind for item in path.iterdir() if item.is_file() and (kind := file_format(item.name)) is not None}
    files = sorted(
        item for item in path.iterdir() if file_format(item.name) is not None and not item.name.startswith((".", "_"))
    )
    if not files:
        raise CommandFailed(
            f'could not use the folder "{path}"',
            why="It has no CSV, Parquet or DuckDB file.",
            instead="Give a data file, a folder of them, or a pattern such as 'visits/*.parquet'.",
        )
    found = [_one_file(file) for file in files[:_TABLES_MAX]]
    columns = [tuple((column.name, column.type) for column in tables[0].columns) for tables in found]
    if len(kinds) == 1 and "duckdb" not in kinds and len(set(columns)) == 1 and len(files) > 1:
        return _parts(path, files, kinds.pop())
    if len(files) > _TABLES_MAX:
        raise CommandFailed(
            f'could not use the folder "{path}"',
            why=f"It has {len(files):,} files with different columns: too many to be tables of their own.",
            instead="Give the parts of one table: a pattern such as 'visits/*.parquet'.",
        )
    return tuple(
        replace(table, file=str(absolute(file))) for file, tables in zip(files, found, strict=True) for table in tables
    )


def _pattern(path: Path) -> tuple[InspectedTable, ...]:
    from server.datasets.files import file_format
    from server.datasets.source import parts_of

    kind = file_format(path.name)
    files = parts_of(path, kind or "csv")
    if kind is None or kind == "duckdb" or not files:
        raise CommandFailed(
            f'could not use the pattern "{path}"',
            why="No CSV or Parquet file fits it." if kind else "It does not end with a suffix of CSV or Parquet files.",
            instead="For instance: 'visits/*.parquet', in quotes, so that the shell leaves it alone.",
        )
    return _parts(path, list(files), kind)


def _parts(path: Path, files: list[Path], kind: str) -> tuple[InspectedTable, ...]:
    from engines.inspect import inspect_source

    tables = inspect_source(path, source_format=kind, parts=files).tables  # type: ignore[arg-type]
    whole = path.name if path.is_dir() else path.parent.name or path.name
    name = stem(Path(re.sub(r"[*?\[\]]+", "", whole)))
    return tuple(replace(table, name=name or "table") for table in tables)


def _one_file(path: Path) -> tuple[InspectedTable, ...]:
    from engines.inspect import inspect_source
    from server.datasets.files import SUFFIXES, file_format, looks_like

    with explained():
        if not path.exists():
            raise CommandFailed(
                f'could not find the data file "{path}"', why="There is no such file.", instead="Check the path."
            )
        if not path.is_file():
            raise CommandFailed(
                f'could not use "{path}"', why="It is not a file.",
                instead="Give one CSV, Parquet or DuckDB file, a folder of them, or a pattern.",
            )  # fmt: skip
        kind = file_format(path.name)
        if kind is None:
            raise CommandFailed(
                f'could not use the data file "{path.name}"',
                why=f"Its kind is told from its suffix, and this one is not among {', '.join(SUFFIXES)}.",
                instead="Rename it, or export the data as CSV or Parquet.",
            )
        if path.stat().st_size == 0:
            raise CommandFailed(
                f'could not use the data file "{path.name}"', why="It is empty.", instead="Export the data again."
            )
        if kind not in looks_like(path):
            raise CommandFailed(
                f'could not use the data file "{path.name}"',
                why=f"It is not what its name says: its first bytes are not those of a {kind} file.",
                instead=(
                    *(("Save it as CSV (not as a spreadsheet).",) if kind == "csv" else ()),
                    "Give it the suffix of what it is, or export it again if it is damaged.",
                ),
            )
        tables = inspect_source(path, source_format=kind).tables  # type: ignore[arg-type]
        if kind == "csv" and any(_VALUE.fullmatch(column.name) for table in tables for column in table.columns):
            # Names of columns are public: a first row that is taken for names would tell about a person.
            raise CommandFailed(
                f'could not use the data file "{path.name}"',
                why="Its first line looks like a row of data: a name in it is a number or a date.",
                instead="Add a first line with the names of the columns, or give that column a name in words.",
            )
    return tuple(table if table.name else replace(table, name=stem(path)) for table in tables)


def column_list(tables: tuple[InspectedTable, ...]) -> str:
    """The names of all columns, for a message."""
    names = [
        printable(f"{table.name}.{column.name}" if len(tables) > 1 else column.name)
        for table in tables
        for column in table.columns
    ]
    return ", ".join(names[:60]) + (f" and {len(names) - 60} more" if len(names) > 60 else "")


def renamed_lines(tables: tuple[InspectedTable, ...]) -> list[str]:
    """Says which columns SQL knows by another name than the file, which are left out, and how it is written."""
    from server.datasets.propose import named_columns

    items = [item for table in tables for item in named_columns(table)]
    renamed = [f'"{printable(item.column.name)}" is {item.name}' for item in items if item.renamed]
    left_out = [f'"{printable(item.column.name)}" ({item.refused})' for item in items if item.refused]
    lines = []
    for what, listed in (("names for SQL: ", renamed), ("left out: ", left_out)):
        if listed:
            more = f" and {len(listed) - 20} more" if len(listed) > 20 else ""
            lines.append(what + ", ".join(listed[:20]) + more)
    for table in tables:
        written = [f'numbers with decimal "{table.decimal}"'] if table.decimal != "." else []
        written += [f"days as {table.dates}"] if table.dates != "YYYY-MM-DD" else []
        if written:
            lines.append(f"read in {printable(table.name)}: {', '.join(written)}")
    return lines


def proposal(
    tables: tuple[InspectedTable, ...],
    *,
    unit: str | None,
    file: str,
    dataset: str,
    unit_table: str | None = None,
    contribution: ContributionBound | None = None,
    rows_are_units: bool = False,
) -> str:
    """The text of a dataset file. Errors: CommandFailed (wrong usage) for a column or table that is not there."""
    from privacy.wording import nearest
    from server.datasets import propose

    try:
        return propose(
            tables,
            unit=unit,
            file=file,
            dataset=dataset,
            unit_table=unit_table,
            contribution=contribution,
            rows_are_units=rows_are_units,
        )
    except ValueError as error:
        names = [column.name for table in tables for column in table.columns]
        near = nearest(unit or "", names)
        advice = ["Choose another column with --unit COLUMN, or another table with --table NAME."]
        if near and unit not in names:
            advice = [f'Did you mean --unit "{printable(near)}"?']
        if unit is not None and unit not in names:
            advice.append(EACH_ROW)
        raise usage_error("could not propose a dataset file", why=f"{error}.", instead=advice) from None
