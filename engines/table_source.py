"""Where the rows of a declared table come from, and how they are written there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from privacy.values import Json

__all__ = [
    "SUFFIXES",
    "DateOrder",
    "DecimalMark",
    "Encoding",
    "SourceFormat",
    "TableSource",
    "ThousandsMark",
    "file_format",
]

SourceFormat = Literal["csv", "parquet", "duckdb"]
DecimalMark = Literal[".", ","]
ThousandsMark = Literal[",", ".", " ", "'", "_"]
Encoding = Literal["utf-8", "utf-16", "latin-1", "windows-1250", "windows-1251", "windows-1252", "windows-1254"]
DateOrder = Literal["YYYY-MM-DD", "DD.MM.YYYY", "DD/MM/YYYY", "MM/DD/YYYY", "DD-MM-YYYY"]

SUFFIXES: dict[str, SourceFormat] = {
    ".csv": "csv",
    ".csv.gz": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".duckdb": "duckdb",
    ".db": "duckdb",
}
"""The format that each suffix stands for."""


def file_format(name: str) -> SourceFormat | None:
    """The format that a file's suffix stands for, or None."""
    folded = name.lower()
    return next((kind for suffix, kind in SUFFIXES.items() if folded.endswith(suffix)), None)


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
    format: SourceFormat
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

    def located(self) -> dict[str, Json]:
        """Where the rows are, as workers read it."""
        if not self.parts:
            return {"path": str(self.path.absolute())}
        paths = sorted(str(part.absolute()) for part in self.parts)
        return {"path": paths[0], "paths": paths}

    def described(self) -> dict[str, Json]:
        """What is needed to open the files, as workers read it."""
        return {
            "name": self.table,
            **self.located(),
            "format": self.format,
            "encoding": self.encoding,
            "source_table": self.source_table,
        }

    def written(self) -> dict[str, Json]:
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
