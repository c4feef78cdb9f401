"""What is proposed for a source: names and types of columns, how a CSV file is written, and what a file declares.

What a file declares (keys, references, columns that are never NULL) is taken over as it stands. What follows from the
values of a CSV file is proposed only where every value agrees with it: no value, no count of values and no bound of
them leaves the worker, only words of closed lists (types, marks, orders of days). Whether a column of a CSV file is
never NULL is not proposed: nothing declares it, so it would be a fact about rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import duckdb

from engines.described import SourceFile, Written
from engines.handlers.connection import identifier, literal, one_number, one_row
from engines.handlers.conversion import DATE_ORDERS, THOUSANDS, WHOLE_TYPES, conversion
from engines.handlers.sources import (
    INTERNAL,
    UNREADABLE,
    Refused,
    csv_relation,
    packed,
    parquet_required,
    relation_of,
)
from engines.inspected import InspectedColumn, InspectedTable
from engines.snapshot_findings import SnapshotFinding
from engines.table_source import DateOrder, DecimalMark, ThousandsMark
from privacy.policy import ColumnType

__all__ = ["declared_constraints", "inspect_table"]

_PART_ROWS = 2_048
_MISSING = ("NA", "N/A", "n/a", "NULL", "null", "None", "#N/A", "\\N", "-", "--", ".", "?")
"""Cells that may stand for missing values. The list is closed: no other word of a file is ever proposed."""

_DECIMAL_COMMA = "[+-]?([0-9]{4,}|0[0-9]*),[0-9]*|[+-]?[0-9]+,([0-9]{0,2}|[0-9]{4,})"
_THOUSANDS_POINT = "[+-]?[1-9][0-9]{0,2}[.][0-9]{3}"
_LIKE_NUMBERS = "[+-]?[0-9][0-9.,'_ \u2019\u00a0\u202f]*"
_PROPOSED = {
    ColumnType.INTEGER: list(WHOLE_TYPES),
    ColumnType.NUMBER: ["FLOAT", "DOUBLE", "DECIMAL"],
    ColumnType.TEXT: ["VARCHAR", "ENUM", "UUID"],
    ColumnType.BOOLEAN: ["BOOLEAN"],
    ColumnType.DATE: ["DATE"],
    ColumnType.TIMESTAMP: ["TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE"],
}


def inspect_table(connection: duckdb.DuckDBPyConnection, source: SourceFile, name: str | None) -> InspectedTable:
    """What is proposed for a table of a source. Errors: Refused when it cannot be read."""
    try:
        if source.format == "csv":
            columns, found = _inspect_csv(connection, source)
            required = [False] * len(columns)
        else:
            schema, _, inner = (name or "").rpartition(".")
            known = f"s0.{identifier(schema or 'main')}.{identifier(inner)}" if source.format == "duckdb" else ""
            relation, columns = relation_of(connection, source, known)
            types = [_proposed(type_name) for _, _, type_name in columns]
            found = _Found(one_number(connection, f"SELECT count(*) FROM {relation}"), types)
            required = _required(connection, source, name, [original for original, _, _ in columns])
    except INTERNAL:
        raise
    except (duckdb.Error, *UNREADABLE):
        raise Refused(SnapshotFinding("malformed_csv" if source.format == "csv" else "source_damaged")) from None
    return InspectedTable(
        name or "",
        tuple(
            # Without what is in brackets: the words of a dictionary type are values.
            InspectedColumn(original, kind, type_name.split("(", maxsplit=1)[0], never_null)
            for (original, _, type_name), kind, never_null in zip(columns, found.types, required, strict=True)
        ),
        found.rows,
        decimal=found.decimal,
        dates=found.dates,
        encoding=source.encoding,
        thousands=found.thousands,
        nulls=found.nulls,
    )


def declared_constraints(
    connection: duckdb.DuckDBPyConnection, tables: Sequence[InspectedTable]
) -> list[InspectedTable]:
    """The tables with their primary key, foreign keys and unique columns, of one column each: what is declared."""
    rows = connection.execute(
        "SELECT schema_name, table_name, constraint_type, constraint_column_names, referenced_table, "
        "referenced_column_names FROM duckdb_constraints() WHERE database_name = 's0' "
        "AND constraint_type IN ('PRIMARY KEY', 'FOREIGN KEY', 'UNIQUE') AND len(constraint_column_names) = 1 "
        "ORDER BY table_oid, constraint_index"
    ).fetchall()
    keys: dict[str, str] = {}
    unique: dict[str, list[str]] = {}
    references: dict[str, list[tuple[str, str, str]]] = {}
    for schema, name, kind, columns, target, target_columns in rows:
        above = "" if schema == "main" else f"{schema}."
        if kind == "PRIMARY KEY":
            keys[above + name] = columns[0]
        elif kind == "UNIQUE":
            unique.setdefault(above + name, []).append(columns[0])
        elif target:
            references.setdefault(above + name, []).append((columns[0], above + target, target_columns[0]))
    return [
        replace(
            table,
            key=keys.get(table.name),
            references=tuple(references.get(table.name, ())),
            unique=tuple(unique.get(table.name, ())),
        )
        for table in tables
    ]


def _required(
    connection: duckdb.DuckDBPyConnection, source: SourceFile, name: str | None, columns: Sequence[str]
) -> list[bool]:
    """Whether the file declares each column as never NULL: NOT NULL of a database, REQUIRED of a Parquet file."""
    if source.format == "parquet":
        return parquet_required(connection, source.files, len(columns))
    schema, _, inner = (name or "").rpartition(".")
    rows = connection.execute(
        "SELECT column_name FROM duckdb_columns() WHERE database_name = 's0' AND schema_name = $1 "
        "AND table_name = $2 AND NOT is_nullable",
        [schema or "main", inner],
    ).fetchall()
    declared = {str(row[0]) for row in rows}
    return [column in declared for column in columns]


# ---------------------------------------------------------------------------------------------------- CSV files


@dataclass(frozen=True, slots=True)
class _Found:
    """What is proposed for a table: rows, the type of each column (None where none fits), and how it is written.

    `marks` has for each column the words of `_MISSING` that are in it, `filled` the columns with any other value.
    """

    rows: int
    types: Sequence[ColumnType | None]
    decimal: DecimalMark = "."
    thousands: ThousandsMark | None = None
    dates: DateOrder = "YYYY-MM-DD"
    nulls: tuple[str, ...] = ()
    marks: Sequence[frozenset[str]] = ()
    filled: Collection[int] = ()


@dataclass(frozen=True, slots=True)
class _Reading:
    """One way to read a column of text: as a type, with a decimal mark, a mark of thousands and an order of days."""

    kind: ColumnType
    decimal: DecimalMark = "."
    thousands: ThousandsMark | None = None
    dates: DateOrder = "YYYY-MM-DD"


_COMMA = _Reading(ColumnType.NUMBER, ",")
_DAYS = tuple(_Reading(kind, dates=order) for kind in (ColumnType.DATE, ColumnType.TIMESTAMP) for order in DATE_ORDERS)
_PLAIN = tuple(_Reading(kind) for kind in (ColumnType.INTEGER, ColumnType.NUMBER, ColumnType.BOOLEAN))
_GROUPED = tuple(
    _Reading(kind, decimal, thousands)
    for thousands in THOUSANDS
    for decimal in (".", ",")
    if thousands != decimal and {thousands, decimal} != {"_", ","}
    for kind in (ColumnType.INTEGER, ColumnType.NUMBER)
    # A point and a comma are the two marks of a number: where one separates thousands the other is the decimal mark.
    if thousands not in ".," or decimal == {",": ".", ".": ","}[thousands]
)


@dataclass(frozen=True, slots=True)
class _Readings:
    """Under which readings every value of a column converts, and whether some value shows that it is meant so."""

    rows: int
    shown: Mapping[tuple[int, _Reading], bool]
    filled: Collection[int]
    marks: Sequence[frozenset[str]]

    def holds(self, place: int, reading: _Reading) -> bool:
        """Whether every value converts, and one of them shows the reading."""
        return self.shown.get((place, reading), False)

    def converts(self, place: int, reading: _Reading) -> bool:
        """Whether every value converts, and there is one."""
        return place in self.filled and (place, reading) in self.shown


def _inspect_csv(
    connection: duckdb.DuckDBPyConnection, source: SourceFile
) -> tuple[list[tuple[str, str, str]], _Found]:
    """Columns (source name, engine name, guessed type), and what is proposed for them.

    Words that stand for missing values are proposed where columns get another type than text by them, and no column
    that stays text has them too: there they may be values.
    """
    relation, columns = csv_relation(connection, source)
    types = _guessed_types(connection, source, len(columns))
    # Where commas are decimal marks, semicolons separate the columns and points may separate thousands.
    points_part = f"delim={literal(';')}" in relation
    first = _read_as(connection, relation, types, marked=frozenset(), points_part=points_part)
    found = first
    marked = frozenset(place for place, marks in enumerate(first.marks) if marks)
    texts = {place for place in marked if first.types[place] is ColumnType.TEXT}
    nulls = _in_order({mark for place in texts for mark in first.marks[place]})
    while nulls:
        relation, _ = csv_relation(connection, replace(source, nulls=nulls))
        again = _read_as(connection, relation, types, marked=marked, points_part=points_part)
        pairs = zip(first.types, again.types, strict=True)
        if any(old is not ColumnType.TEXT and new is ColumnType.TEXT for old, new in pairs):
            break
        texts = {place for place in marked if again.types[place] is ColumnType.TEXT}
        doubtful = {mark for place in texts.intersection(again.filled) for mark in first.marks[place]}
        needed = {mark for place in marked - texts for mark in first.marks[place]}
        kept = _in_order(needed.intersection(nulls) - doubtful)
        if kept == nulls:
            found = replace(again, nulls=nulls)
            break
        nulls = kept
    return [(name, engine, kind) for (name, engine, _), kind in zip(columns, types, strict=True)], found


def _in_order(marks: Collection[str]) -> tuple[str, ...]:
    return tuple(mark for mark in _MISSING if mark in marks)


def _guessed_types(connection: duckdb.DuckDBPyConnection, source: SourceFile, count: int) -> list[str]:
    """The engine's guess for each column, from a part of the first file."""
    path = source.files[0]
    sniffed = connection.execute(
        f"SELECT Columns FROM sniff_csv({literal(path)}, compression='{packed(path)}')"
    ).fetchone()
    types = [str(column["type"]) for column in sniffed[0]] if sniffed else []
    return types if len(types) == count else ["VARCHAR"] * count


def _read_as(
    connection: duckdb.DuckDBPyConnection,
    relation: str,
    types: Sequence[str],
    *,
    marked: Collection[int],
    points_part: bool,
) -> _Found:
    """Rows of a CSV file, the type to propose for each column, and how its numbers and days are written.

    A guessed type is proposed when every value of the column converts to it under our own rules: what is proposed
    can be attached. One way of writing holds for the file; where it is not certain which one, the columns are
    text: "03/04/2024" is a day in March or in April, and "1,250" a little more than one or than a thousand. So is
    "1.250" where `points_part` says that points may separate thousands. `marked` are columns whose guess was misled by
    words that are taken for missing values now.
    """
    guessed = [_proposed(type_name) or ColumnType.TEXT for type_name in types]
    part = f"(SELECT * FROM {relation} LIMIT {_PART_ROWS})"
    numeric = _like_numbers(connection, part, [place for place, word in enumerate(guessed) if word is ColumnType.TEXT])
    tried = [
        (place, reading)
        for place, word in enumerate(guessed)
        for reading in _ways(word, numeric=place in numeric, misled=place in marked)
    ]
    # First on a part: a wide file has many readings, and most are wrong at once.
    left = list(_conversions(connection, part, tried, count=len(types), points_part=points_part).shown)
    read = _conversions(connection, relation, left, count=len(types), points_part=points_part)
    decimal, thousands = _marks_of_numbers(read, guessed, marked)
    orders: list[DateOrder] = [
        order
        for order in DATE_ORDERS
        if any(read.holds(place, way) for place in range(len(types)) for way in _DAYS if way.dates == order)
    ]
    order: DateOrder = orders[0] if len(orders) == 1 else "YYYY-MM-DD"
    return _Found(
        rows=read.rows,
        types=[
            _type_of(read, place, word, decimal=decimal, thousands=thousands, dates=order, misled=place in marked)
            for place, word in enumerate(guessed)
        ],
        decimal=decimal,
        thousands=thousands,
        dates=order,
        marks=read.marks,
        filled=read.filled,
    )


def _ways(guessed: ColumnType, *, numeric: bool, misled: bool) -> list[_Reading]:
    """The ways to read a column for which the engine guessed that type; `numeric` says that its values begin so."""
    found: list[_Reading] = [] if guessed is ColumnType.TEXT else [_Reading(guessed)]
    if guessed is ColumnType.TEXT:
        found.append(_COMMA)
        found += _GROUPED if numeric else ()
        found += _PLAIN if misled else ()
    if guessed in (ColumnType.DATE, ColumnType.TIMESTAMP, ColumnType.TEXT):
        found += (way for way in _DAYS if way not in found)
    return found


def _marks_of_numbers(
    read: _Readings, guessed: Sequence[ColumnType], marked: Collection[int]
) -> tuple[DecimalMark, ThousandsMark | None]:
    """The decimal mark of the file and its mark of thousands, None where no value shows one for certain."""
    places = range(len(guessed))
    commas = [place for place in places if read.holds(place, _COMMA)]
    points = [
        place
        for place in places
        if read.holds(place, _Reading(ColumnType.NUMBER))
        and (
            guessed[place] is ColumnType.NUMBER
            or (place in marked and not read.converts(place, _Reading(ColumnType.INTEGER)))
        )
    ]
    usual: DecimalMark = "," if commas and not points else "."
    told = [
        way for way in _GROUPED if way.kind is ColumnType.NUMBER and any(read.holds(place, way) for place in places)
    ]
    parting = {way.thousands for way in told}
    if len(parting) != 1:
        return usual, None
    (thousands,) = parting
    needed = {way.decimal for way in told if any(_only(read, place, way) for place in places)}
    decimal = needed.pop() if len(needed) == 1 else usual
    if needed or (decimal == "," and points) or (decimal == "." and commas):
        return usual, None
    return decimal, thousands


def _only(read: _Readings, place: int, way: _Reading) -> bool:
    """Whether the column shows this reading, and cannot be read with the other decimal mark."""
    mark: DecimalMark = "," if way.decimal == "." else "."
    other = replace(way, decimal=mark)
    return read.holds(place, way) and not read.converts(place, other)


def _type_of(
    read: _Readings,
    place: int,
    guessed: ColumnType,
    *,
    decimal: DecimalMark,
    thousands: ThousandsMark | None,
    dates: DateOrder,
    misled: bool,
) -> ColumnType:
    """The type to propose for a column under the file's way of writing."""
    kinds = [kind for kind in (ColumnType.DATE, ColumnType.TIMESTAMP) if read.holds(place, _Reading(kind, dates=dates))]
    if guessed is ColumnType.TEXT and thousands:
        ways = [_Reading(kind, decimal, thousands) for kind in (ColumnType.INTEGER, ColumnType.NUMBER)]
        kinds += [way.kind for way in ways if read.converts(place, way)]
    if decimal == "," and read.holds(place, _COMMA):
        kinds.append(ColumnType.NUMBER)
    if misled:
        # Text with a point is not a number where the decimal mark is a comma.
        kinds += [
            way.kind
            for way in _PLAIN
            if read.holds(place, way) and (decimal == "." or way.kind is not ColumnType.NUMBER)
        ]
    if guessed not in (ColumnType.DATE, ColumnType.TIMESTAMP, ColumnType.TEXT) and read.holds(place, _Reading(guessed)):
        kinds.append(guessed)
    return kinds[0] if kinds else ColumnType.TEXT


def _like_numbers(connection: duckdb.DuckDBPyConnection, relation: str, places: Sequence[int]) -> frozenset[int]:
    """The columns whose values all look like numbers, whatever their marks."""
    if not places:
        return frozenset()
    others = ", ".join(
        f"count(*) FILTER (WHERE NOT regexp_full_match(trim({identifier(f'c{place}')}), {literal(_LIKE_NUMBERS)}))"
        for place in places
    )
    counts = one_row(connection, f"SELECT {others} FROM {relation}")
    return frozenset(place for place, count in zip(places, counts, strict=True) if count == 0)


def _conversions(
    connection: duckdb.DuckDBPyConnection,
    relation: str,
    readings: Sequence[tuple[int, _Reading]],
    *,
    count: int,
    points_part: bool,
) -> _Readings:
    """The readings under which every value of a column converts, and what else is asked of the `count` columns."""
    asked = ["count(*)"]
    for place in range(count):
        column = identifier(f"c{place}")
        words = " ".join(f"WHEN {literal(mark)} THEN {1 << bit}" for bit, mark in enumerate(_MISSING))
        asked += [f"count({column})", f"coalesce(bit_or(CASE {column} {words} ELSE 0 END), 0)"]
    for place, reading in readings:
        column = identifier(f"c{place}")
        written = Written(decimal=reading.decimal, thousands=reading.thousands, dates=reading.dates)
        rule = conversion(source_type="VARCHAR", declared=reading.kind.value, column=column, written=written)
        assert rule is not None
        failed = rule.failed
        if reading.thousands:
            # Groups of three behind a zero are of an identifier, not of a number.
            zero = literal(f"[+-]?0[0-9]{{0,2}}{THOUSANDS[reading.thousands]}.*")
            failed = f"({failed}) OR regexp_full_match(trim({column}), {zero})"
        asked += [f"count(*) FILTER (WHERE {failed})", _showing(column, reading, points_part=points_part)]
    numbers = one_row(connection, f"SELECT {', '.join(asked)} FROM {relation}")
    facts, counts = numbers[1 : 1 + 2 * count], numbers[1 + 2 * count :]
    return _Readings(
        rows=numbers[0],
        shown={reading: counts[2 * index + 1] > 0 for index, reading in enumerate(readings) if counts[2 * index] == 0},
        filled=frozenset(place for place in range(count) if facts[2 * place]),
        marks=[
            frozenset(mark for bit, mark in enumerate(_MISSING) if facts[2 * place + 1] >> bit & 1)
            for place in range(count)
        ],
    )


def _showing(column: str, reading: _Reading, *, points_part: bool) -> str:
    """SQL that counts the values which show a reading: all, or those that could not be meant in another way."""
    matches = f"count(*) FILTER (WHERE regexp_full_match(trim({column}), {{}}))"
    if reading.thousands:
        return matches.format(literal(_grouped(reading.thousands, reading.decimal)))
    if reading.decimal == ",":
        # One that cannot be a separator of thousands.
        return matches.format(literal(_DECIMAL_COMMA))
    filled = f"count({column})"
    if reading.kind is ColumnType.NUMBER and points_part:
        # Values with a point show nothing when each point might separate thousands.
        points = f"count(*) FILTER (WHERE contains({column}, '.')"
        thousands = f"{points} AND regexp_full_match(trim({column}), '{_THOUSANDS_POINT}'))"
        return f"CASE WHEN {points}) > 0 AND {points}) = {thousands} THEN 0 ELSE {filled} END"
    return filled


def _grouped(thousands: ThousandsMark, decimal: DecimalMark) -> str:
    """The pattern of a number that shows the mark of its thousands.

    Of a point or a comma two have to part groups, or the other one has to follow as decimal mark. With a space the
    first group is shorter than the others: three and three digits may be an identifier.
    """
    mark, fraction = THOUSANDS[thousands], "," if decimal == "," else "[.]"
    first = "[1-9][0-9]?" if thousands == " " else "[1-9][0-9]{0,2}"
    if thousands in ".,":
        several = f"({mark}[0-9]{{3}}){{2,}}({fraction}[0-9]*)?"
        return f"[+-]?{first}({several}|{mark}[0-9]{{3}}{fraction}[0-9]*)"
    return f"[+-]?{first}({mark}[0-9]{{3}})+({fraction}[0-9]*)?"


def _proposed(type_name: str) -> ColumnType | None:
    base = type_name.split("(", maxsplit=1)[0].strip().upper()
    if type_name.endswith("]"):
        return None
    return next((word for word, bases in _PROPOSED.items() if base in bases), None)
