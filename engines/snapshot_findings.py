"""What can be wrong with the sources of a snapshot: words, declared names and counts, never a value.

Exception
  SnapshotRefused     what is wrong with the sources or the declaration
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["SNAPSHOT_CODES", "SnapshotFinding", "SnapshotRefused"]

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
"""Every finding about sources with its meaning, in one sentence each."""


@dataclass(frozen=True, slots=True)
class SnapshotFinding:
    """One thing that is wrong with the sources; `count` is a number of rows, for administrators only."""

    code: str
    table: str | None = None
    column: str | None = None
    count: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.code not in SNAPSHOT_CODES:
            raise ValueError(self.code)

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
