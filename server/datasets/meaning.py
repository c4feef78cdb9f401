"""The third stage: what must hold between the parts of a dataset file."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path as FilePath
from typing import Any

from engines.columns import column_fault, matching_columns
from engines.snapshot import SnapshotFinding, TableSource
from privacy.numbers import ATTO, PICO, parse_decimal
from privacy.policy import LENGTH_MAX_DEFAULT, ROWS_STORED_DEFAULT, ColumnType
from privacy.wording import nearest
from server.datasets.advice import advice
from server.datasets.files import SUFFIXES, looks_like
from server.datasets.finding import WARNING, Path
from server.datasets.identifiers import RESERVED, column_name_for, is_identifier
from server.datasets.keys import GATHERED_MAX, KEYS_MAX, moment_bounds, parse_key, range_values
from server.datasets.model import VERSION, ColumnFile, KeysList, KeysOfTable, KeysRange, PolicyFile, TableFile, UnitFile
from server.datasets.reading import Document
from server.datasets.routes import Route, routes_to_unit
from server.datasets.shape import PLACEHOLDER, Parts, shown
from server.datasets.source import format_of, parts_of, source_of
from server.datasets.waiting import text_wait_seconds

__all__ = ["DELTA_MAX", "EPSILON_MAX", "Headers", "check_meaning"]

EPSILON_MAX = Fraction(100)
"""Largest epsilon that a policy may name for one query."""

DELTA_MAX = Fraction(1, 1000)
"""Largest delta that a policy may name for one query."""

_BOUND_LIMIT = 10**18
_WAIT_SECONDS = 0.1
"""A text column whose functions let answers wait as long is warned of."""

_SHORT_TEXT = 50

Headers = Callable[[Sequence[TableSource]], Sequence[tuple[str, ...] | SnapshotFinding]]
"""Tells for each source the names of its columns, or what is wrong with it."""


def check_meaning(
    document: Document,
    parts: Parts,
    directory: FilePath | None,
    *,
    confined: bool,
    headers: Headers | None = None,
    sources: bool = True,
) -> None:
    """Adds every finding about the parts that have the right shape.

    Data files are looked for in `directory` (not at all when it is None), and when `confined` only there. `headers`
    tells the names of the columns in data files; without it they are not opened further than their first bytes.
    Without `sources` nothing is judged that is said of data files.
    """
    _Meaning(document, parts, directory, confined=confined, headers=headers, sources=sources).check()


class _Meaning:
    """The third stage: what must hold between the parts."""

    def __init__(
        self,
        document: Document,
        parts: Parts,
        directory: FilePath | None,
        *,
        confined: bool,
        headers: Headers | None,
        sources: bool,
    ) -> None:
        self.sources = sources
        self.headers = headers
        self.sound: list[str] = []  # tables whose data files begin as their formats do
        self.document = document
        self.unit = parts.unit
        self.tables = parts.tables
        self.policy = parts.policy
        self.directory = directory
        self.confined = confined
        listed = document.data.get("tables")
        self.raw: dict[str, Any] = listed if isinstance(listed, dict) else {}
        self.problem = document.problem

    def check(self) -> None:
        """Adds every finding to the document."""
        self._version()
        self._same_names((), "tables", list(self.raw))
        for name, table in self.tables.items():
            self._table(name, table)
        self._unit()
        for name, table in self.tables.items():
            self._way_to_unit(name, table)
        if self.headers is not None and self.directory is not None:
            self._source_columns(self.headers, self.directory)
        if self.policy is not None:
            self._policy(self.policy)

    def _version_written(self) -> int:
        written = self.document.data.get("version", 1)
        return written if isinstance(written, int) else VERSION

    def _version(self) -> None:
        written = self._version_written()
        if written < VERSION:
            self.problem(
                ("version",) if "version" in self.document.data else (),
                code=WARNING,
                what=f"the file is of version {written}, and {VERSION} is the version of today",
                why="It is read with the meaning that it had; what is new cannot be declared in it.",
                instead="Rewrite it, with the same meaning: noisegate dataset upgrade FILE.",
            )

    # Known names come from the raw data: a column with a wrong shape is reported as that, not as missing.

    def _written(self, path: Path) -> bool:
        """Whether something stands at the path in the file, whatever its shape."""
        return path in self.document.positions

    def _raw_columns(self, table: str) -> list[str]:
        entry = self.raw.get(table)
        columns = entry.get("columns") if isinstance(entry, dict) else None
        return list(columns) if isinstance(columns, dict) else []

    def _column(self, table: str, column: str) -> ColumnFile | None:
        part = self.tables.get(table)
        return part.columns.get(column) if part is not None else None

    def _known_table(self, path: Path, table: str) -> bool:
        if table in self.raw:
            return True
        near = nearest(table, list(self.raw))
        self.problem(
            path,
            what=f'table "{table}" is not in this file',
            why="A table that is not listed does not exist; names are compared letter by letter.",
            instead=f'Did you mean "{near}"?' if near else f"Listed are: {', '.join(self.raw) or 'none'}.",
        )
        return False

    def _known_column(self, path: Path, table: str, column: str) -> bool:
        known = self._raw_columns(table)
        if column in known:
            return True
        if not known:
            return False  # the table has no columns, and that is reported already
        near = nearest(column, known)
        self.problem(
            path,
            what=f'column "{column}" is not in table "{table}"',
            why="A column that is not listed does not exist; names are compared letter by letter.",
            instead=f'Did you mean "{near}"?' if near else f"Listed are: {', '.join(known[:30]) or 'none'}.",
        )
        return False

    def _same_names(self, above: Path, part: str, names: Sequence[str]) -> None:
        seen: dict[str, str] = {}
        for name in names:
            first = seen.setdefault(name.lower(), name)
            if first != name:
                self.problem(
                    (*above, part, name),
                    what=f'"{first}" and "{name}" differ only in upper and lower case',
                    why="SQL does not tell such names apart.",
                    instead="Rename one of them, in the data file too.",
                )

    # --- Tables and columns

    def _table(self, name: str, table: TableFile) -> None:
        path: Path = ("tables", name)
        self._same_names(path, "columns", self._raw_columns(name))
        self._source(path, name, table)
        if table.key is not None:
            self._known_column((*path, "key"), name, table.key)
            self._key_type((*path, "key"), name, table.key)
        for column, target in table.references.items():
            self._reference(name, table, column, target)
        if table.public:
            for part in ("contribution", "unit_via"):
                if getattr(table, part) is not None:
                    self.problem(
                        (*path, part),
                        what=f'"{part}" has no meaning in the public table "{name}"',
                        why="Rows of a public table belong to no privacy unit.",
                        instead=f"Remove {part}, or remove public: true when the rows are about people.",
                    )
        wanted: dict[str, str] = {}
        for column_name, declared in table.columns.items():
            self._bounds(name, table, column_name, declared)
            self._keys(name, column_name, declared)
            self._names(name, column_name, declared, wanted)

    def _names(self, table: str, name: str, column: ColumnFile, wanted: dict[str, str]) -> None:
        """What the column is called in SQL and in the data file; `wanted` has the columns of the file up to here."""
        path: Path = ("tables", table, "columns", name)
        source = name if column.source_name is None else column.source_name
        first = wanted.setdefault(source, name)
        if first != name:
            self.problem(
                (*path, "source_name") if column.source_name is not None else path,
                what=f'columns "{first}" and "{name}" of table "{table}" are read from one column of the data file',
                why=f'Both are called "{shown(source, bare=True)}" there, and one of them is most likely a mistake.',
                instead="Correct one source_name, or remove one of the columns.",
            )
        if name.lower() in RESERVED:
            self.problem(
                path,
                code=WARNING,
                what=f'column "{table}.{name}" has a word of SQL as its name',
                why=f'Queries must write it in quotes, "{name}", each time.',
                instead=f"Give it another name: {column_name_for(name)}: {{source_name: {_yaml(source)}, ...}}.",
            )

    def _key_type(self, path: Path, table: str, column: str) -> None:
        part = self._column(table, column)
        if part is not None and part.type in ("number", "boolean"):
            self.problem(
                path,
                what=f'column "{table}.{column}" of type {part.type} cannot be a key',
                why="Fractions are not compared exactly, and true and false name two rows at most.",
                instead="Use a column of type integer, text, date or timestamp.",
            )

    def _source(self, path: Path, name: str, table: TableFile) -> None:
        source = table.source
        if source.file == PLACEHOLDER or not self.sources:
            return
        allowed = "\0" not in source.file and (not self.confined or self._inside(source.file))
        kind = format_of(source, self.directory if allowed else None)
        # Without a directory nothing is looked for, and a name without a suffix may be a folder's.
        if kind is None and (self.directory is not None or FilePath(source.file).suffix):
            self.problem(
                (*path, "source", "file"),
                what=f'the format of "{source.file}" is not known',
                why="Its suffix (or that of every file in the folder) is none of " + ", ".join(SUFFIXES) + ".",
                instead="Add format: csv, parquet or duckdb.",
            )
        if source.table is not None and kind not in (None, "duckdb"):
            self.problem(
                (*path, "source", "table"),
                what=f'"source.table" of table "{name}" has no meaning for a {kind} file',
                why="Only DuckDB files hold several tables.",
                instead="Remove it.",
            )
        if "\0" in source.file:
            self.problem(
                (*path, "source", "file"),
                what=f'the file name of table "{name}" has a zero byte in it',
                why="No file can have such a name.",
                instead="Write the path of the data file.",
            )
        elif self.confined and not self._inside(source.file):
            self.problem(
                (*path, "source", "file"),
                what=f'the data file of table "{name}" is outside the folder of datasets',
                why="Files elsewhere on the server are not for this way of attaching data.",
                instead="Put the file into the folder and give its name.",
            )
        elif self.directory is not None and kind is not None:
            self._files(name, (*path, "source", "file"), self.directory / source.file, kind)

    def _inside(self, name: str) -> bool:
        if self.directory is None:
            return not FilePath(name).is_absolute() and ".." not in FilePath(name).parts
        return (self.directory / name).resolve().is_relative_to(self.directory.resolve())

    def _files(self, table: str, path: Path, file: FilePath, kind: str) -> None:
        parts = parts_of(file, kind)
        if parts is None:
            self._file(table, path, file, kind)
            return
        if not parts:
            self.problem(
                path,
                what=f'no data file is in "{file.name}"',
                why=f'The folder or pattern of table "{table}" has no {kind} file.',
                instead="Check the path: it is relative to the dataset file.",
            )
            return
        sound = len(self.sound)
        if self.confined and not all(self._inside(str(part)) for part in parts):
            self.problem(
                path,
                what=f'a data file of table "{table}" is outside the folder of datasets',
                why="Files elsewhere on the server are not for this way of attaching data.",
                instead="Put the files themselves into the folder, not links to them.",
            )
            return
        for part in parts:
            del self.sound[sound:]
            self._file(table, path, part, kind)
            if len(self.sound) == sound:
                return

    def _file(self, table: str, path: Path, file: FilePath, kind: str) -> None:
        """Whether the data file is there and begins as its format does. Looks at no values."""
        try:
            formats = looks_like(file)
        except OSError as error:
            self.problem(
                path,
                what=f'could not read the data file "{file.name}"',
                why=f"The system says: {error.strerror or 'it cannot be opened'}.",
                instead="Paths are relative to the dataset file; check the path and its permissions.",
            )
            return
        if kind not in formats:
            self.problem(
                path,
                what=f'"{file.name}" is not a {kind} file',
                why="It is empty, or its first bytes are not those of the format"
                + (f"; it looks like {formats[0]}." if formats else "."),
                instead="Check the file, or correct source.format.",
            )
        else:
            self.sound.append(table)

    def _source_columns(self, headers: Headers, directory: FilePath) -> None:
        """Whether every declared column is in its data file, by the names alone."""
        places = [
            source_of(name, self.tables[name], directory)
            for name in self.sound
            if self.tables[name].source.file != PLACEHOLDER
        ]
        for source, found in zip(places, headers(places) if places else (), strict=True):
            path: Path = ("tables", source.table)
            if isinstance(found, SnapshotFinding):
                self.problem(
                    (*path, "source"),
                    what=f'the data file of table "{source.table}" cannot be used',
                    why=found.text,
                    instead=advice(found, self.tables[source.table], self.unit)[0],
                )
                continue
            for name, column in self.tables[source.table].columns.items():
                self._source_column((*path, "columns", name), source.table, name, column, found)

    def _source_column(self, path: Path, table: str, name: str, column: ColumnFile, present: tuple[str, ...]) -> None:
        places = matching_columns(present, name, column.source_name)
        code = column_fault(places)
        if code is None:
            return
        wanted = column.source_name if column.source_name is not None else name
        called = f'column "{table}.{name}"'
        if code == "duplicate_columns":
            listed = " and ".join(f'"{shown(present[place], bare=True)}"' for place in places[:3])
            exact = len({present[place] for place in places}) == len(places)
            self.problem(
                path,
                what=f"{called} could be one of several columns of the data file",
                why=f"The file has {listed}, and upper and lower case do not tell names apart.",
                instead=f"Choose one by its exact name: source_name: {_yaml(present[places[0]])}."
                if exact
                else "Rename one of them in the data file.",
            )
            return
        near = nearest(wanted, present) or next(
            (item for item in present if column_name_for(item.strip()).lower() == name.lower()), None
        )
        known = ", ".join(shown(item, bare=True) for item in present[:30] if item)
        self.problem(
            (*path, "source_name") if column.source_name is not None else path,
            what=f"{called} is not in the data file",
            why=f'The file has no column "{shown(wanted, bare=True)}"; it has {known}.',
            instead=(f"Did you mean source_name: {_yaml(near)}? " if near else "")
            + "Write source_name with the name that the file has, or remove the column here.",
        )

    def _reference(self, name: str, table: TableFile, column: str, target: str) -> None:
        path: Path = ("tables", name, "references", column)
        self._known_column(path, name, column)
        pieces = target.split(".")
        if len(pieces) != 2 or not all(is_identifier(piece) for piece in pieces):
            self.problem(
                path,
                what=f'"{target}" is not a reference',
                why="A reference names a table and its key column.",
                instead=f"Write {column}: table.key_column.",
            )
            return
        other, key = pieces
        if not self._known_table(path, other) or not self._known_column(path, other, key):
            return
        part = self.tables.get(other)
        if part is None:
            return
        if part.key is None or part.key != key:
            declared = f'its key is "{part.key}"' if part.key else "it declares no key"
            self.problem(
                path,
                what=f'"{target}" is not the key of table "{other}"',
                why=f"A reference must find one row at most, so it holds the unique key of the table; {declared}.",
                instead=self._persons(name, column, other, key)
                if self._holds_units_often(other, key)
                else f"Declare key: {key} in table {other}"
                + (f", or refer to {other}.{part.key}." if part.key else "."),
            )
        mine, theirs = self._column(name, column), part.columns.get(key)
        if mine is not None and theirs is not None and mine.type != theirs.type:
            self.problem(
                path,
                what=f'"{name}.{column}" is of type {mine.type}, and "{target}" of type {theirs.type}',
                why="Values of different types are not equal, so the reference would find nothing.",
                instead="Declare both with the same type.",
            )
        if table.public and not part.public:
            self.problem(
                path,
                what=f'the public table "{name}" refers to the protected table "{other}"',
                why="Rows that name people are not public.",
                instead=f"Remove the reference, or remove public: true from {name}.",
            )

    def _bounds(self, table_name: str, table: TableFile, name: str, column: ColumnFile) -> None:
        path: Path = ("tables", table_name, "columns", name, "bounds")
        called = f'column "{table_name}.{name}"'
        if column.bounds is None:
            if self._asks_for_bounds(table_name, table, name, column) and not self._written(path):
                self.problem(
                    path[:-1],
                    code=WARNING,
                    what=f"{called} has no value bounds",
                    why="COUNT works; SUM, AVG and VAR are refused, as one person could change them without limit.",
                    instead="Add bounds: [lowest, highest plausible value], from what the column means, not from rows.",
                )
            return
        if column.type in ("text", "boolean"):
            self.problem(
                path,
                what=f"{called} of type {column.type} cannot have bounds",
                why="Only numbers, dates and timestamps are clipped.",
                instead="Remove bounds; for groups that are known beforehand use keys.",
            )
            return
        if column.type in ("date", "timestamp"):
            self._moments(path, called, column)
            return
        if any(isinstance(value, str) for value in column.bounds):
            self.problem(
                path,
                what=f"the bounds of {called} are not numbers",
                why=f"The column is of type {column.type}.",
                instead="Write the lowest and the highest plausible number.",
            )
            return
        lower, upper = (Decimal(value) for value in column.bounds)
        if column.type == "integer" and any(value != value.to_integral_value() for value in (lower, upper)):
            self.problem(
                path,
                what=f"{called} is of type integer, and its bounds are not whole numbers",
                why="Bounds are values that the column can have.",
                instead=f"Write bounds: [{math.floor(lower)}, {math.ceil(upper)}].",
            )
        if max(abs(lower), abs(upper)) > _BOUND_LIMIT:
            self.problem(
                path,
                what=f"a bound of {called} is too large",
                why="The noise is proportional to it, and beyond 1e18 every answer would be noise alone.",
                instead="Write the highest plausible value.",
            )
        if lower > upper:
            self.problem(
                path,
                what=f"the bounds of {called} are reversed",
                why=f"The lowest value, {lower}, is above the highest, {upper}.",
                instead=f"Write bounds: [{upper}, {lower}].",
            )
        elif lower == upper:
            self.problem(
                path,
                what=f"the bounds of {called} are equal",
                why="Every value would be clipped to the same number.",
                instead="Write the lowest and the highest plausible value, or leave bounds out.",
            )

    def _moments(self, path: Path, called: str, column: ColumnFile) -> None:
        """Bounds of a column of dates or timestamps."""
        assert column.bounds is not None
        try:
            lower, upper = moment_bounds(column)
        except ValueError as error:
            self.problem(
                path,
                what=f"the bounds of {called} cannot be used",
                why=f"Each end must be {error}.",
                instead='Write bounds: ["2020-01-01", "2025-12-31"], the first and the last plausible one.',
            )
            return
        if lower >= upper:
            self.problem(
                path,
                what=f"the bounds of {called} are {'equal' if lower == upper else 'reversed'}",
                why="Every value would be clipped to one moment, or to none.",
                instead="Write the first and the last plausible moment.",
            )

    def _asks_for_bounds(self, table_name: str, table: TableFile, name: str, column: ColumnFile) -> bool:
        if table.public or column.type not in ("integer", "number"):
            return False
        names_rows = name == table.key or name in table.references
        return not names_rows and (self.unit is None or (table_name, name) != (self.unit.table, self.unit.key))

    def _keys(self, table_name: str, name: str, column: ColumnFile) -> None:
        path: Path = ("tables", table_name, "columns", name, "keys")
        called = f'column "{table_name}.{name}"'
        if column.keys is None:
            return
        kind = ColumnType(column.type)
        if kind is ColumnType.NUMBER:
            self.problem(
                path,
                what=f"{called} of type number cannot have keys",
                why="Numbers with fractions are not compared exactly.",
                instead="Declare the column as integer or text, or group by an expression such as FLOOR(x / 10).",
            )
        elif isinstance(column.keys, KeysRange):
            try:
                range_values(column.keys.range, kind)
            except ValueError as error:
                self.problem(
                    path,
                    what=f"the range of keys of {called} cannot be used",
                    why=f"As given, {error}.",
                    instead='Write {range: [0, 110]} or {range: ["2024-01-01", "2024-12-31"]}.',
                )
        elif isinstance(column.keys, KeysOfTable):
            self._keys_of_table(path, called, column, column.keys)
        elif isinstance(column.keys, KeysList):
            self._keys_list((*path, "values"), called, kind, column.keys.values)
        else:
            self._keys_list(path, called, kind, column.keys)
        if isinstance(column.keys, KeysList | KeysRange | KeysOfTable) and "other" in column.keys.model_fields_set:
            self._other((*path, "other"), called, kind, column.keys)

    def _other(self, path: Path, called: str, kind: ColumnType, keys: KeysList | KeysRange | KeysOfTable) -> None:
        """The group of all values that are no keys."""
        if self._version_written() == 1:
            self.problem(
                path,
                what=f'"other" of {called} is not known in files of version 1',
                why="There, values outside of keys have a meaning of their own.",
                instead=f"Write version: {VERSION} at the top, or see: noisegate dataset upgrade FILE.",
            )
        try:
            value = parse_key(keys.other, kind)
        except ValueError as error:
            self.problem(
                path,
                what=f'"other" of {called} is not of its type',
                why=f"It is a group beside the keys, so it must be {error}, or null.",
                instead="Write a value that is none of the keys, or null to count such rows with the missing values.",
            )
            return
        listed = keys.values if isinstance(keys, KeysList) else []
        if value is not None and any(type(key) is type(keys.other) and key == keys.other for key in listed):
            self.problem(
                path,
                what=f'"other" of {called} is one of its keys',
                why="Rows with that value and rows with unknown values would be one group.",
                instead="Write a value that is none of the keys, or null to count such rows with the missing values.",
            )
        if len(listed) > GATHERED_MAX:
            self.problem(
                path,
                what=f"{called} has too many keys beside another group",
                why=f"Each row is compared with every key; the limit is {GATHERED_MAX}.",
                instead="Leave other out: then values outside of the keys are refused when the data is attached.",
            )

    def _keys_of_table(self, path: Path, called: str, column: ColumnFile, keys: KeysOfTable) -> None:
        place = (*path, "table")
        if not self._known_table(place, keys.table) or not self._known_column(
            (*path, "column"), keys.table, keys.column
        ):
            return
        part = self.tables.get(keys.table)
        if part is None:
            return
        if not part.public:
            self.problem(
                place,
                what=f'the keys of {called} come from the protected table "{keys.table}"',
                why="Which values occur there is a fact about people; only public tables may give keys.",
                instead="List the keys, or declare the table public: true when everybody may know its rows.",
            )
        theirs = part.columns.get(keys.column)
        if theirs is not None and theirs.type != column.type:
            self.problem(
                place,
                what=f'{called} is of type {column.type}, and "{keys.table}.{keys.column}" of type {theirs.type}',
                why="Keys have the type of their column.",
                instead="Declare both with the same type.",
            )

    def _keys_list(self, path: Path, called: str, kind: ColumnType, keys: list[Any]) -> None:
        if len(keys) > KEYS_MAX:
            self.problem(
                path,
                what=f"{called} has too many keys",
                why=f"It lists {len(keys)}, and the limit is {KEYS_MAX}.",
                instead="Leave keys out, so that groups are shown above a threshold.",
            )
            return
        seen: dict[tuple[type, Any], int] = {}
        for index, value in enumerate(keys):
            try:
                parsed = parse_key(value, kind)
            except ValueError as error:
                quoted = f' Write "{value}" in quotes.' if kind is ColumnType.TEXT and isinstance(value, int) else ""
                self.problem(
                    (*path, index),
                    what=f"key {shown(value)} of {called} is not of its type",
                    why=f"Keys of a column of type {kind.value} must each be {error}.",
                    instead=f"Correct the key or the column's type.{quoted}",
                )
                continue
            first = seen.setdefault((type(parsed), parsed), index)
            if first != index:
                self.problem(
                    (*path, index),
                    what=f"key {shown(value)} of {called} is listed twice",
                    why="Each key is one row of the answer.",
                    instead="Remove one of them.",
                )

    # --- The privacy unit

    def _unit(self) -> None:
        unit = self.unit
        if unit is None or not self._known_table(("unit", "table"), unit.table):
            return
        if unit.key is not None:
            self._known_column(("unit", "key"), unit.table, unit.key)
            self._key_type(("unit", "key"), unit.table, unit.key)
        self._key_or_rows(unit)
        table = self.tables.get(unit.table)
        if table is not None and table.public:
            self.problem(
                ("unit", "table"),
                what=f'the table of the privacy unit, "{unit.table}", is public',
                why="Then nobody would be protected.",
                instead=f"Remove public: true from {unit.table}, or name the table of people.",
            )

    def _rows_as_read(self) -> bool:
        """Whether `rows` is absent or has its shape: another one is reported as that."""
        raw = self.document.data.get("unit")
        return not isinstance(raw, dict) or isinstance(raw.get("rows", False), bool)

    def _key_or_rows(self, unit: UnitFile) -> None:
        """Exactly one of the two says what a unit is."""
        if unit.key is not None and unit.rows:
            self.problem(
                ("unit", "rows"),
                what='"unit" has both key and rows: true',
                why="Either a column names the unit, or each row is one.",
                instead="Remove rows where one unit may have several rows; remove key where no column names it.",
            )
        elif unit.key is None and not unit.rows and not self._written(("unit", "key")) and self._rows_as_read():
            self.problem(
                ("unit",),
                what='"key" is missing in "unit"',
                why="Without it nobody knows which rows belong to one unit.",
                instead=f"Name the column that names the unit: unit: {{table: {unit.table}, key: COLUMN}}. Where no "
                f"column does and each row is one person: unit: {{table: {unit.table}, rows: true}}.",
            )
        elif unit.rows:
            self.problem(
                ("unit", "rows"),
                code=WARNING,
                what=f'each row of table "{unit.table}" is a privacy unit of its own',
                why="That is right when each person has one row. A person with several rows is protected one row at a "
                "time: what all of them say together is not hidden.",
                instead="If a column tells which rows belong to one person, name it: "
                f"unit: {{table: {unit.table}, key: COLUMN}}.",
            )

    def _way_to_unit(self, name: str, table: TableFile) -> None:
        if table.public or self.unit is None:
            return
        owner = self.tables.get(self.unit.table)
        if owner is None or owner.public:
            return  # reported where the unit is declared
        path: Path = ("tables", name)
        if table.unit_via is not None and table.unit_via not in table.references:
            near = nearest(table.unit_via, list(table.references))
            self.problem(
                (*path, "unit_via"),
                what=f'"unit_via" of table "{name}" names no reference',
                why=f'"{table.unit_via}" is not among its references ({", ".join(table.references) or "none"}).',
                instead=f'Did you mean "{near}"?' if near else "Name a column that is listed under references.",
            )
            return
        routes = list(routes_to_unit(self.unit, self.tables, name))
        if not routes:
            self._no_way(path, name, table)
        elif len(routes) > 1:
            listed = "; ".join(route.text(name) for route in routes[:5])
            self.problem(
                path,
                what=f'table "{name}" reaches the privacy unit in more than one way',
                why=f"Its rows could belong to different units ({listed}), and only one of them would be protected.",
                instead=f"Choose one with unit_via, for instance unit_via: {_first_step(routes)}.",
            )
        else:
            self._contribution(path, name, table, routes[0])
            if not routes[0].one_row:
                self._text_lengths(path, name, table)

    def _holds_units_often(self, name: str, column: str) -> bool:
        """Whether a table is declared to have several rows of a unit, which a column of it names."""
        table = self.tables.get(name)
        return (
            self.unit is not None
            and (name, column) == (self.unit.table, self.unit.key)
            and table is not None
            and table.key is None
            and table.contribution is not None
        )

    def _persons(self, name: str, column: str, other: str, key: str) -> str:
        """What to do about two tables of events without a table of those whose events they are."""
        tables = [(self.tables[table], part) for table, part in ((other, key), (name, column))]
        ends = [(table.source.file, _source_name(table, part)) for table, part in tables]
        simple = all(file.endswith((".csv", ".parquet")) and "'" not in file for file, _ in ends)
        rows = " UNION ".join(f"SELECT DISTINCT {column} AS {key} FROM '{file}'" for file, column in ends)
        how = f", made for instance by duckdb -c \"COPY ({rows}) TO 'units.parquet'\"" if simple else ""
        return (
            "Both tables may have several rows of one unit. Add a table with one row for each unit "
            f"(columns: {key}{how}), with key: {key}; name it under unit, and let {other} and {name} refer to it: "
            f"references: {{{key}: units.{key}}}."
        )

    def _no_way(self, path: Path, name: str, table: TableFile) -> None:
        assert self.unit is not None
        raw = self.raw.get(name)
        raw_references = raw.get("references") if isinstance(raw, dict) else None
        if isinstance(raw_references, dict) and len(raw_references) > len(table.references):
            return  # a reference with a wrong shape is reported as that
        if self.unit.key is None:
            if self.unit.rows:
                self.problem(
                    path,
                    what=f'table "{name}" does not reach the privacy unit',
                    why=f'The units are the rows of table "{self.unit.table}", and nothing in another table can say '
                    "which of them its rows belong to.",
                    instead=f"Add public: true when everybody may know every row of {name}, describe it in a dataset "
                    f"file of its own, or name a column of {self.unit.table} under unit: key.",
                )
            return
        holds = self.unit.key in table.columns
        example = self.unit.key if holds else f"column_that_holds_{self.unit.key}"[:63]
        self.problem(
            path,
            what=f'table "{name}" does not reach the privacy unit',
            why=f'No chain of references leads from it to "{self.unit.table}.{self.unit.key}", so nobody can say whose '
            "rows these are.",
            instead=self._persons(name, self.unit.key, self.unit.table, self.unit.key)
            if holds and self._holds_units_often(self.unit.table, self.unit.key)
            else f"Add references: {{{example}: {self.unit.table}.{self.unit.key}}}, or public: true when everybody "
            "may know every row.",
        )

    def _contribution(self, path: Path, name: str, table: TableFile, route: Route) -> None:
        bound = table.contribution
        stored = table.rows_stored_per_unit
        if stored is not None and route.one_row:
            self.problem(
                (*path, "rows_stored_per_unit"),
                what=f'"rows_stored_per_unit" of table "{name}" has no use',
                why="Each unit has one row there.",
                instead="Remove rows_stored_per_unit.",
            )
        elif stored is not None and bound is not None and stored < bound.rows_per_unit:
            self.problem(
                (*path, "rows_stored_per_unit"),
                what=f'table "{name}" keeps fewer rows of a unit than may count',
                why=f"rows_per_unit says that {bound.rows_per_unit} rows count, and {stored} are kept.",
                instead=f"Raise rows_stored_per_unit to {bound.rows_per_unit} at least, or lower rows_per_unit.",
            )
        if route.one_row:
            if bound is not None and (bound.rows_per_unit, bound.groups_per_unit, bound.rows_per_unit_and_group) != (
                1,
                1,
                1,
            ):
                self.problem(
                    (*path, "contribution"),
                    what=f'the contribution of table "{name}" is larger than its key allows',
                    why="Its rows are the privacy units, so each unit has one."
                    if route.unit_column is None
                    else "Its key names the privacy unit, so each unit has one row.",
                    instead="Remove contribution."
                    if route.unit_column is None
                    else "Remove contribution, or remove key when a unit may have several rows.",
                )
            return
        if bound is None:
            if not self._written((*path, "contribution")):
                self.problem(
                    path,
                    what=f'table "{name}" has no contribution bounds',
                    why="One unit may have any number of its rows, so the noise would have to be endless; with bounds, "
                    "a unit beyond them is scaled down.",
                    instead="Add contribution: {rows_per_unit: 40, groups_per_unit: 4, rows_per_unit_and_group: 15} "
                    "with numbers that most units stay within; they come from what you know, not from the rows."
                    + (f" Where each unit has one row, add key: {route.unit_column}." if route.unit_column else ""),
                )
            return
        if bound.rows_per_unit_and_group > bound.rows_per_unit or bound.groups_per_unit > bound.rows_per_unit:
            self.problem(
                (*path, "contribution"),
                code=WARNING,
                what=f'the contribution of table "{name}" is wider than its rows_per_unit',
                why="A unit with that many rows cannot be in more groups, or have more rows in one group; the "
                "wider number only adds noise.",
                instead="Lower groups_per_unit and rows_per_unit_and_group to rows_per_unit at most.",
            )
        self._declared_groups(path, name, table, bound.groups_per_unit)

    def _declared_groups(self, path: Path, name: str, table: TableFile, groups: int) -> None:
        """Warns where grouping by one column alone already leaves out groups of a unit."""
        beyond = []
        for column_name, column in table.columns.items():
            count = 0
            if isinstance(column.keys, list):
                count = len(column.keys)
            elif isinstance(column.keys, KeysRange):
                with contextlib.suppress(ValueError):
                    count = len(range_values(column.keys.range, ColumnType(column.type)))
            if count > groups:
                beyond.append((count, column_name))
        if beyond:
            count, column_name = max(beyond)
            self.problem(
                (*path, "contribution"),
                code=WARNING,
                what=f'groups_per_unit of table "{name}" is below the groups of "{column_name}"',
                why=f'"{column_name}" declares {count:,} groups, and one unit counts in at most {groups:,} of them: an '
                "answer by that column is too low for units in more.",
                instead=f"Write groups_per_unit: {count} when units may be in all of them; a question can name its own "
                "bound too.",
            )

    def _text_lengths(self, path: Path, name: str, table: TableFile) -> None:
        """Warns where texts of unknown length make every answer wait that has a function of them."""
        bound = table.contribution
        rows = table.rows_stored_per_unit or max(ROWS_STORED_DEFAULT, 0 if bound is None else bound.rows_per_unit)
        seconds = text_wait_seconds(rows=rows, characters=LENGTH_MAX_DEFAULT)
        short = text_wait_seconds(rows=rows, characters=_SHORT_TEXT)
        if seconds < _WAIT_SECONDS:
            return
        for column_name, column in table.columns.items():
            names_rows = column_name == table.key or column_name in table.references
            if column.type != "text" or column.keys is not None or column.length_max is not None or names_rows:
                continue
            if self.unit is not None and (name, column_name) == (self.unit.table, self.unit.key):
                continue
            self.problem(
                (*path, "columns", column_name),
                code=WARNING,
                what=f'column "{name}.{column_name}" has no length_max',
                why=f"{rows:,} rows of one unit may hold {LENGTH_MAX_DEFAULT:,} characters each, so an answer with a "
                f"function of this text, such as LOWER, is shown after {seconds:.1g} s or more.",
                instead="Add length_max, the most characters that such a text has by its meaning, not by the rows. "
                f"With {_SHORT_TEXT} it is {short:.1g} s. Longer texts are cut.",
            )

    # --- The policy

    def _policy(self, policy: PolicyFile) -> None:
        values: dict[str, Fraction] = {}
        for name, maximum, unit, zero in (
            ("epsilon_default", EPSILON_MAX, PICO, False),
            ("epsilon_max", EPSILON_MAX, PICO, False),
            ("epsilon_min", EPSILON_MAX, PICO, False),
            ("delta_per_query", DELTA_MAX, ATTO, True),
        ):
            if getattr(policy, name) is None:
                continue
            try:
                values[name] = parse_decimal(
                    getattr(policy, name), name=name, maximum=maximum, unit=unit, zero_allowed=zero
                )
            except ValueError as error:
                self.problem(
                    ("policy", name),
                    what=f'"{name}" of the policy cannot be used',
                    why=f"{error}.",
                    instead='Write a decimal in quotes, such as "0.1" for an epsilon or "1e-7" for a delta.',
                )
        if {"epsilon_default", "epsilon_max"} <= values.keys() and values["epsilon_default"] > values["epsilon_max"]:
            self.problem(
                ("policy", "epsilon_default"),
                what='"epsilon_default" of the policy is above "epsilon_max"',
                why="A query that names no spend would always be refused.",
                instead="Lower epsilon_default or raise epsilon_max.",
            )
        if {"epsilon_min", "epsilon_max"} <= values.keys() and values["epsilon_min"] > values["epsilon_max"]:
            self.problem(
                ("policy", "epsilon_min"),
                what='"epsilon_min" of the policy is above "epsilon_max"',
                why="Every query that reads rows would be refused.",
                instead="Lower epsilon_min or raise epsilon_max.",
            )
        if values.get("epsilon_max", Fraction(0)) > 10:
            self.problem(
                ("policy", "epsilon_max"),
                code=WARNING,
                what='"epsilon_max" of the policy is large',
                why="Beyond an epsilon of 10 one answer may tell almost certainly whether a person is in the data.",
                instead="Keep it at 1 or below unless the data is not sensitive.",
            )


def _yaml(text: str) -> str:
    """The text in quotes, on one line: JSON is YAML too."""
    return json.dumps(text, ensure_ascii=False)


def _first_step(routes: Sequence[Route]) -> str:
    return next((route.steps[0].column for route in routes if route.steps), "a_reference")


def _source_name(table: TableFile, column: str) -> str:
    """A column as SQL finds it in the data file."""
    declared = table.columns.get(column)
    name = column if declared is None or declared.source_name is None else declared.source_name
    return name if name.isidentifier() else '"' + name.replace('"', '""') + '"'
