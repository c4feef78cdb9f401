"""Tables: their names, keys and references, and what their columns are called."""

from __future__ import annotations

from server.datasets.finding import WARNING, Path
from server.datasets.identifiers import RESERVED, column_name_for, is_identifier
from server.datasets.meaning.bounds import judge_bounds
from server.datasets.meaning.judged import Judged
from server.datasets.meaning.keys import judge_keys
from server.datasets.meaning.sources import judge_source, quoted
from server.datasets.meaning.units import holds_units_often, table_of_units
from server.datasets.model import ColumnFile, TableFile
from server.datasets.shape import shown

__all__ = ["judge_table"]


def judge_table(judged: Judged, name: str, table: TableFile) -> None:
    """Finds what is wrong with one table: its source, key, references and columns."""
    path: Path = ("tables", name)
    judged.same_names(path, "columns", judged.raw_columns(name))
    judge_source(judged, path, name, table)
    if table.key is not None:
        judged.known_column((*path, "key"), name, table.key)
        judged.key_type((*path, "key"), name, table.key)
    for column, target in table.references.items():
        _reference(judged, name, table, column, target)
    if table.public:
        for part in ("contribution", "unit_via"):
            if getattr(table, part) is not None:
                judged.problem(
                    (*path, part),
                    what=f'"{part}" has no meaning in the public table "{name}"',
                    why="Rows of a public table belong to no privacy unit.",
                    instead=f"Remove {part}, or remove public: true when the rows are about people.",
                )
    wanted: dict[str, str] = {}
    for column_name, declared in table.columns.items():
        judge_bounds(judged, name, table, column_name, declared)
        judge_keys(judged, name, column_name, declared)
        _names(judged, name, column_name, declared, wanted)


def _names(judged: Judged, table: str, name: str, column: ColumnFile, wanted: dict[str, str]) -> None:
    """What the column is called in SQL and in the data file; `wanted` has the columns of the file up to here."""
    path: Path = ("tables", table, "columns", name)
    source = name if column.source_name is None else column.source_name
    first = wanted.setdefault(source, name)
    if first != name:
        judged.problem(
            (*path, "source_name") if column.source_name is not None else path,
            what=f'columns "{first}" and "{name}" of table "{table}" are read from one column of the data file',
            why=f'Both are called "{shown(source, bare=True)}" there, and one of them is most likely a mistake.',
            instead="Correct one source_name, or remove one of the columns.",
        )
    if name.lower() in RESERVED:
        judged.problem(
            path,
            code=WARNING,
            what=f'column "{table}.{name}" has a word of SQL as its name',
            why=f'Queries must write it in quotes, "{name}", each time.',
            instead=f"Give it another name: {column_name_for(name)}: {{source_name: {quoted(source)}, ...}}.",
        )


def _reference(judged: Judged, name: str, table: TableFile, column: str, target: str) -> None:
    path: Path = ("tables", name, "references", column)
    judged.known_column(path, name, column)
    pieces = target.split(".")
    if len(pieces) != 2 or not all(is_identifier(piece) for piece in pieces):
        judged.problem(
            path,
            what=f'"{target}" is not a reference',
            why="A reference names a table and its key column.",
            instead=f"Write {column}: table.key_column.",
        )
        return
    other, key = pieces
    if not judged.known_table(path, other) or not judged.known_column(path, other, key):
        return
    part = judged.tables.get(other)
    if part is None:
        return
    if part.key is None or part.key != key:
        declared = f'its key is "{part.key}"' if part.key else "it declares no key"
        judged.problem(
            path,
            what=f'"{target}" is not the key of table "{other}"',
            why=f"A reference must find one row at most, so it holds the unique key of the table; {declared}.",
            instead=table_of_units(judged, name, column, other, key)
            if holds_units_often(judged, other, key)
            else f"Declare key: {key} in table {other}" + (f", or refer to {other}.{part.key}." if part.key else "."),
        )
    mine, theirs = judged.column(name, column), part.columns.get(key)
    if mine is not None and theirs is not None and mine.type != theirs.type:
        judged.problem(
            path,
            what=f'"{name}.{column}" is of type {mine.type}, and "{target}" of type {theirs.type}',
            why="Values of different types are not equal, so the reference would find nothing.",
            instead="Declare both with the same type.",
        )
    if table.public and not part.public:
        judged.problem(
            path,
            what=f'the public table "{name}" refers to the protected table "{other}"',
            why="Rows that name people are not public.",
            instead=f"Remove the reference, or remove public: true from {name}.",
        )
