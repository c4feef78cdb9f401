"""What to do about a finding in the data, with the lines of the dataset file that it is about. Never values of rows."""

from __future__ import annotations

import json

from engines.snapshot_findings import SnapshotFinding
from server.datasets.model import SourceFile, TableFile, UnitFile

__all__ = ["CONTRIBUTION_EXAMPLE", "advice"]

CONTRIBUTION_EXAMPLE = "contribution: {rows_per_unit: 40, groups_per_unit: 4, rows_per_unit_and_group: 15}"
"""A line to start from. The numbers are fixed: they come from no data."""

_NUMBERS = "Choose numbers that most units stay within, from what you know, not from the rows."

_FILE = "Check the path, and that the file is complete and what its name says; export it again if it is damaged."

_ADVICE: dict[str, tuple[str, ...]] = {
    "text_too_long": ("Declare a larger length_max for the column.",),
    "source_missing": ("Add the source: source: {file: people.csv}.",),
    "source_unknown": ("Give each table one source.",),
    "file_missing": ("Check the path: it is relative to the dataset file.",),
    "file_unreadable": ("Mend the permissions of the file.",),
    "file_is_directory": ("Name one file: source: {file: people.csv}.",),
    "file_empty": ("Export the data again: a CSV file has a header and rows.",),
    "path_unsupported": ("Rename the file or its folder: no * ? [ ] { } in its path.",),
    "not_csv": ("Save the file as CSV, or give it the suffix of what it is (.parquet, .duckdb).",),
    "not_text": (
        "Add to the source of the table its encoding, for instance: encoding: windows-1252 (or utf-16, latin-1).",
    ),
    "not_encoded": ("Correct encoding in the source of the table, or save the file as UTF-8.",),
    "parts_differ": ("Give each table files with the same columns, or name one file.",),
    "zone_missing": (
        "Add to the source of the table the zone that is meant, for instance: zone: UTC (or Europe/Berlin).",
    ),
    "zone_unknown": ("Write a zone of the IANA list, such as UTC, Europe/Berlin or America/New_York.",),
    "not_parquet": (_FILE,),
    "not_duckdb": (_FILE,),
    "malformed_csv": (
        "Check that every row has as many fields as the header, and that quotes are closed.",
        "Where letters are wrong, add to the source of the table its encoding, for instance: encoding: windows-1252",
    ),
    "source_damaged": (_FILE,),
    "source_locked": ("Close the program that has the database open, or copy the file and name the copy.",),
    "source_version": ("Export the tables as Parquet, or write the database with a version that this server reads.",),
    "source_table_missing": ("Name the table in the database: source: {file: ..., table: NAME}.",),
    "source_changed": ("Attach it again when nothing writes to the file.",),
    "too_many_rows": ("Split the data into several datasets.",),
    "no_rows": ("Export the data again: the file has a header and nothing below it.",),
    "unit_type": ("Declare these columns with the same type: integer, text, date or timestamp.",),
    "reserved_name": ("Give the column another name, and its own one as source_name.",),
    "not_completed": ("Make room on the disk or in memory and attach it again; see: noisegate doctor.",),
    "reference_unknown": ("Correct references: {COLUMN: TABLE.KEY}.",),
    "unit_unknown": ("Correct unit: {table: TABLE, key: COLUMN}.",),
}


def advice(finding: SnapshotFinding, table: TableFile | None, unit: UnitFile | None) -> tuple[str, ...]:
    """One line per thing to do; `table` is the declaration of the finding's table, where it has one."""
    name, column = finding.table or "TABLE", finding.column or "COLUMN"
    place = f"tables.{name}.columns.{column}"
    match finding.code:
        case "key_not_unique" | "unit_not_one_row" if _holds_unit(column, table, unit, name):
            return _several_rows(name, table, unit)
        case "key_not_unique":
            return (
                f"If its rows are right, remove this line from table {name}: key: {column}",
                f"If a row was exported twice, correct the data; every reference to {name}.{column} needs it unique.",
            )
        case "unit_not_one_row":
            return (f"Write in table {name}: contribution: auto", f"Or {CONTRIBUTION_EXAMPLE}", _NUMBERS)
        case "column_missing":
            return (
                f'Write in {place} the name that the column has in the data: source_name: "NAME IN THE HEADER"',
                "Or remove the column from the dataset file.",
            )
        case "duplicate_columns":
            return (
                f'Choose one in {place} by its exact name: source_name: "Name"',
                "Or rename one of them in the data, when both are spelled alike.",
            )
        case "column_repeated":
            return (f"Correct source_name in {place}, or remove the column.",)
        case "type_mismatch":
            return (f"Declare {place} with the type that the data has, or convert the column in the data.",)
        case "value_not_of_type":
            declared = table.columns[column].type if table is not None and column in table.columns else "number"
            return (
                _written(declared, None if table is None else table.source),
                'Fields without a value are empty. For marks such as NA add to the source of the table: nulls: ["NA"]',
                f"Or declare {place} as type: text.",
            )
        case "value_outside_keys":
            return (
                f"Add the missing keys to {place}, if everybody may know them, or correct the data.",
                f"Or gather these rows in a group: add other: to keys of {place}, a value that is none of the keys.",
                "Or remove keys: then a group is shown when enough units are in it.",
            )
        case "value_not_unique":
            return (f"Remove unique: true from {place}, or correct the rows that repeat a value.",)
        case "null_in_column":
            return (f"Remove nullable: false from {place}, or fill in the missing values.",)
        case "key_null":
            return (f"Remove key: {column} from table {name}, or fill in the missing values.",)
        case "unit_key_null":
            return (f"Give every row of {name} a value of {column}, or leave out such rows: they belong to no unit.",)
        case "no_rows_of_units":
            return (
                f"Check references of table {name}: no value of its column is a key of the table that it refers to.",
            )
    return _ADVICE[finding.code]


_WRITTEN = {
    "integer": 'Whole numbers have digits only: 1250. For 1,250 add to the source of the table: thousands: ","',
    "number": 'Numbers have a decimal point: 1250.5. For 1250,5 add to the source of the table: decimal: "," '
    '(and thousands: "." for 1.250,5); for 1,250.5: thousands: ","',
    "boolean": "Truth values are true or false (also yes/no, y/n, t/f, 1/0). For other words add to the source of the "
    "table: true: [ja], false: [nein]",
    "date": "Days are written as 2024-12-31. For other orders add to the source of the table: dates: DD.MM.YYYY",
    "timestamp": "Moments are written as 2024-12-31 13:00:00. For other orders add to the source of the table: "
    "dates: DD.MM.YYYY",
}
_MEMBERS = {
    "integer": ("thousands",),
    "number": ("decimal", "thousands"),
    "boolean": ("true_words", "false_words"),
    "date": ("dates",),
    "timestamp": ("dates",),
}
"""What a source may say about how values of each type are written."""


def _written(kind: str, source: SourceFile | None) -> str:
    """How values of that type are written; what the source declares already is not advised again."""
    members = _MEMBERS.get(kind, ())
    declared = [name for name in members if source is not None and name in source.model_fields_set]
    if not declared:
        return _WRITTEN.get(kind, "Convert these values in the data.")
    said = [f"{_word(name)}: {json.dumps(getattr(source, name), ensure_ascii=False)}" for name in declared]
    missing = [f"; {_word(name)} is not declared" for name in members if name not in declared]
    return (
        f"The source of the table says {', '.join(said)}{''.join(missing)}. Correct it where values differ from that."
    )


def _word(member: str) -> str:
    return member.removesuffix("_words")


def _holds_unit(column: str, table: TableFile | None, unit: UnitFile | None, name: str) -> bool:
    """Whether the column of the table names the privacy unit."""
    if table is None or unit is None or unit.key is None:
        return False
    if name == unit.table and column == unit.key:
        return True
    return table.references.get(column) == f"{unit.table}.{unit.key}"


def _several_rows(name: str, table: TableFile | None, unit: UnitFile | None) -> tuple[str, ...]:
    """The lines for a table in which one unit has several rows."""
    assert unit is not None
    lines = []
    if table is not None and table.key is not None:
        lines.append(f"If one unit may have several rows, remove this line from table {name}: key: {table.key}")
    lines.append(f"{'and write in its place' if lines else 'Write'}: contribution: auto")
    lines.append(f"Or {CONTRIBUTION_EXAMPLE}")
    lines.append(_NUMBERS)
    if name == unit.table:
        lines.append(
            f"If other tables refer to {name}.{unit.key}, they need a table with one row per unit: name that under "
            "unit, or correct rows that were exported twice."
        )
    return tuple(lines)
