"""What a source file shows of itself before it is declared: names, proposed types and marks, never values."""

from __future__ import annotations

from dataclasses import dataclass

from engines.table_source import DateOrder, DecimalMark, Encoding, ThousandsMark
from privacy.policy import ColumnType

__all__ = ["InspectedColumn", "InspectedTable"]


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
    declares: PRIMARY KEY and FOREIGN KEY of one column, and `unique` its columns that are UNIQUE alone. `file` is set
    where tables come from several files.
    """

    name: str
    columns: tuple[InspectedColumn, ...]
    rows: int
    decimal: DecimalMark = "."
    dates: DateOrder = "YYYY-MM-DD"
    encoding: Encoding = "utf-8"
    key: str | None = None
    references: tuple[tuple[str, str, str], ...] = ()
    file: str = ""
    thousands: ThousandsMark | None = None
    nulls: tuple[str, ...] = ()
    unique: tuple[str, ...] = ()
