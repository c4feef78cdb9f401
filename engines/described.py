"""Sources and declared tables as workers read them. `declaration.py` describes them for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from engines.table_source import DateOrder, DecimalMark, Encoding, SourceFormat, ThousandsMark
from privacy.stored_norms import KeptTotal

__all__ = [
    "AllowedKeys",
    "BuildRequest",
    "BuildTable",
    "DescribedColumn",
    "DescribedReference",
    "DescribedUnit",
    "Fingerprint",
    "SourceFile",
    "TwinTable",
    "Written",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """How values of a source are written.

    `decimal` is the decimal mark of numbers in text, `thousands` the mark between groups of three digits (None where
    there is none), `dates` the order of a day's parts, `true` and `false` the words of truth values (none for the usual
    ones), `zone` the zone whose days and clock a moment has.
    """

    decimal: DecimalMark = "."
    thousands: ThousandsMark | None = None
    dates: DateOrder = "YYYY-MM-DD"
    true: tuple[str, ...] = ()
    false: tuple[str, ...] = ()
    zone: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile(Written):
    """The files of a source and how they are written; `name` is the table's, empty where none is declared yet.

    `paths` are the parts in order; none for one file, which is `path`. `source_table` is the table inside a database.
    """

    name: str = ""
    path: str
    paths: tuple[str, ...] = ()
    format: SourceFormat
    source_table: str | None = None
    encoding: Encoding = "utf-8"
    nulls: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """Every file of the source."""
        return self.paths or (self.path,)


@dataclass(frozen=True, slots=True)
class AllowedKeys:
    """The values that a column may have, as strings: all from the first to the last of `range`, or `values`."""

    range: tuple[str, str] | None = None
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedColumn:
    """A declared column.

    `keys` are listed strings in declared order, `keys_from` is the table and the column that hold the keys. `names`
    says that the column's strings identify units or rows.
    """

    name: str
    type: Literal["integer", "number", "text", "boolean", "date", "timestamp"]
    nullable: bool
    keys: tuple[str, ...] | None
    source_name: str | None = None
    allowed: AllowedKeys | None = None
    keys_from: tuple[str, str] | None = None
    unique: bool = False
    length_max: int | None = None
    names: bool = False


@dataclass(frozen=True, slots=True)
class TwinTable:
    """A declared table without its rows and where they are."""

    name: str
    protected: bool
    columns: tuple[DescribedColumn, ...]
    norms: tuple[str, ...] | None = None
    """The columns by which the squares of units' rows are kept, None where no norms are."""
    totals: tuple[KeptTotal, ...] = ()
    units: bool = False
    """Whether the tables of its units stand beside it."""


@dataclass(frozen=True, slots=True)
class DescribedReference:
    """A column whose values are the key of another table."""

    column: str
    table: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildTable(SourceFile):
    """A declared table and where its rows are."""

    protected: bool
    key: str | None
    references: tuple[DescribedReference, ...]
    unit_path: tuple[DescribedReference, ...]
    unit_column: str | None
    one_row: bool
    rows_stored: int | None
    columns: tuple[DescribedColumn, ...]
    norms: tuple[str, ...] | None = None
    totals: tuple[KeptTotal, ...] = ()
    units: bool = False


@dataclass(frozen=True, slots=True)
class DescribedUnit:
    """The table of the privacy unit and its key, None where each row is a unit."""

    table: str
    key: str | None


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What the files of a source are: a digest of their contents, and facts that change when they are written."""

    paths: tuple[str, ...]
    digest: str
    identity: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """Everything that a snapshot is made from."""

    unit: DescribedUnit
    draw_key: str = field(repr=False)
    tables: tuple[BuildTable, ...]
    sources: tuple[Fingerprint, ...]

    def place(self, table: str) -> int:
        """Where a declared table stands among all."""
        return [other.name for other in self.tables].index(table)
