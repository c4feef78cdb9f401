"""The text that counts the cells of a stream: every combination of the places of some columns of one table.

    birth_year from 1930 to 2009, steps of 5, and sex, which declares its keys
    SELECT COALESCE(LEAST(GREATEST(("birth_year" - 1930) // 5, 0), 15), 0) AS p0_0, "sex" AS p1_0, COUNT(*) AS n
    FROM "patients" WHERE "birth_year" BETWEEN 1930 AND 2009 GROUP BY ALL

It is a text like any that an analyst could write, and goes the whole way of a question. A row within the ends of all
columns is in exactly one cell. The number of a place is written in two digits where there are many: keys of few values
are public.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from privacy.bounds import date_at, number_of_date
from privacy.policy import Column, ColumnType, KeyValue, Table
from privacy.refusal import Collector, Finding, Refused
from privacy.wording import nearest

__all__ = ["PLACES_MAX", "ColumnPlaces", "StreamColumn", "StreamText", "stream_text"]

PLACES_MAX = 4_096
"""Most places of one column."""

_RANGED = (ColumnType.INTEGER, ColumnType.NUMBER, ColumnType.DATE)
"""Columns of which a range has ends and steps."""

_BASE = 128
"""Up to so many places are one key; more are two digits, of which the second has so many values."""

_NUMBER_MAX = 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamColumn:
    """A column of a stream's cells: with the ends of its range and the size of its steps, or by its declared keys.

    `low` and `high` are whole numbers, or days, both included; a place has `step` of them.
    """

    name: str
    low: int | str | None = None
    high: int | str | None = None
    step: int | None = None


@dataclass(frozen=True, slots=True)
class ColumnPlaces:
    """The places of one column: numbers from 0 to `top`, of which each has `step` values from `first` on.

    `last` is the last value of the last one. Values are whole numbers, of dates those of their days. `first` is None
    for a column with declared keys, whose places are these.
    """

    name: str
    type: ColumnType
    first: int | None = None
    step: int = 1
    top: int = 0
    last: int = 0

    def value(self, place: int) -> KeyValue:
        """The first value in a place."""
        assert self.first is not None
        number = self.first + self.step * place
        return date_at(Fraction(number)) if self.type is ColumnType.DATE else number


@dataclass(frozen=True, slots=True)
class StreamText:
    """The text, its columns, and what each key of it says: the number of a column, and how many places it counts."""

    sql: str
    columns: tuple[ColumnPlaces, ...]
    digits: Mapping[str, tuple[int, int]]

    def keys(self, names: Sequence[str], group: Sequence[KeyValue]) -> tuple[KeyValue, ...] | None:
        """The values of the columns in a group, whose keys have these names; None for one that no row can be in."""
        places = [0] * len(self.columns)
        found: list[KeyValue] = [None] * len(self.columns)
        for name, key in zip(names, group, strict=True):
            number, worth = self.digits[name]
            if self.columns[number].first is None:
                found[number] = key
            else:
                assert isinstance(key, int)
                places[number] += key * worth
        for number, column in enumerate(self.columns):
            if column.first is not None:
                if places[number] > column.top:
                    return None
                found[number] = column.value(places[number])
        return tuple(found)


def stream_text(table: Table, columns: Sequence[StreamColumn]) -> StreamText:
    """The text. Errors: Refused, with everything that is wrong at once."""
    collected = Collector()
    keys, conditions, places, digits = [], [], [], dict[str, tuple[int, int]]()
    names = [one.name.lower() for one in columns]
    for number, one in enumerate(columns):
        column = table.column(one.name)
        if column is None or names.count(one.name.lower()) > 1:
            collected.add(_unknown(table, one.name, repeated=column is not None))
            continue
        try:
            found = _places(column, one)
        except Refused as refused:
            for finding in refused.findings:
                collected.add(finding)
            continue
        places.append(found)
        for key, (text, worth) in enumerate(_keys(column, found)):
            keys.append(f"{text} AS p{number}_{key}")
            digits[f"p{number}_{key}"] = number, worth
        conditions += [] if found.first is None else [_within(column, found)]
    collected.refuse()
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    sql = f"SELECT {', '.join(keys)}, COUNT(*) AS n FROM {_quoted(table.name)}{where} GROUP BY ALL"
    return StreamText(sql, tuple(places), digits)


def _places(column: Column, asked: StreamColumn) -> ColumnPlaces:
    """The places of a column. Errors: Refused."""
    plain = asked.low is None and asked.high is None and asked.step is None
    if column.keys is not None and plain:
        return ColumnPlaces(column.name, column.type)
    if column.type not in _RANGED:
        if column.keys is None and column.type is not ColumnType.BOOLEAN:
            raise Refused([_no_places(column, "It is neither a number nor a date, and declares no keys.")])
        if not plain:
            raise Refused([_no_places(column, "A range has ends and steps for numbers and dates alone.")])
        return ColumnPlaces(column.name, column.type)
    low, high = _ends(column, asked)
    step = 1 if asked.step is None else asked.step
    if not low <= high or step < 1:
        raise Refused([_no_places(column, "Its range ends before it begins, or its step is not positive.")])
    top = (high - low) // step
    if top >= PLACES_MAX:
        raise Refused([_no_places(column, f"Its range has {top + 1} places, and a stream has {PLACES_MAX} at most.")])
    kind = ColumnType.INTEGER if column.type is ColumnType.NUMBER else column.type
    return ColumnPlaces(column.name, kind, low, step, top, high)


def _keys(column: Column, places: ColumnPlaces) -> list[tuple[str, int]]:
    """The keys of a row as SQL, and how many places one of each is worth."""
    name = _quoted(column.name)
    if places.first is None:
        return [(name, 1)]
    whole = f"CAST(FLOOR({name}) AS BIGINT)" if column.type is ColumnType.NUMBER else name
    distance = f"({whole} - {_constant(column, places.first)})"
    stepped = distance if places.step == 1 else f"{distance} // {places.step}"
    place = f"COALESCE(LEAST(GREATEST({stepped}, 0), {places.top}), 0)"
    if places.top < _BASE:
        return [(place, 1)]
    return [(f"{place} // {_BASE}", _BASE), (f"{place} % {_BASE}", 1)]


def _within(column: Column, places: ColumnPlaces) -> str:
    """That a row has a place. The last one of numbers goes on to the whole number that follows the high end."""
    assert places.first is not None
    name, first = _quoted(column.name), _constant(column, places.first)
    if column.type is ColumnType.NUMBER:
        return f"{name} >= {first} AND {name} < {_constant(column, places.last + 1)}"
    return f"{name} BETWEEN {first} AND {_constant(column, places.last)}"


def _ends(column: Column, asked: StreamColumn) -> tuple[int, int]:
    """Both ends as whole numbers, of dates those of their days. Errors: Refused where nothing names one."""
    if column.bounds is None and (asked.low is None or asked.high is None):
        raise Refused([_no_places(column, "It declares no bounds, and the request names no low and high.")])
    bounds = (None, None) if column.bounds is None else (column.bounds.lower, column.bounds.upper)
    low, high = (
        math.floor(bound or 0) if given is None else _whole(column, given)
        for given, bound in zip((asked.low, asked.high), bounds, strict=True)
    )
    return low, high


def _whole(column: Column, given: int | str) -> int:
    """An end of a range as a whole number. Errors: Refused."""
    if column.type is ColumnType.DATE and isinstance(given, str):
        try:
            return int(number_of_date(datetime.date.fromisoformat(given)))
        except ValueError:
            pass
    if column.type is not ColumnType.DATE and type(given) is int and abs(given) < _NUMBER_MAX:
        return given
    kind = "a date like 2026-01-31, in quotes" if column.type is ColumnType.DATE else "a whole number"
    raise Refused([_no_places(column, f"An end of its range is {kind}.")])


def _constant(column: Column, value: int) -> str:
    if column.type is ColumnType.DATE:
        return f"DATE '{date_at(Fraction(value)).isoformat()}'"
    return str(value) if value >= 0 else f"({value})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _unknown(table: Table, name: str, *, repeated: bool) -> Finding:
    near = nearest(name, [column.name for column in table.columns])
    return Finding(
        code="unknown_column",
        what=f'the column "{name[:63]}" of the stream is refused',
        why="It is named twice." if repeated else f'Table "{table.name}" has no such column.',
        instead=("name each column once",) if repeated or near is None else (f"write {near}",),
        field="columns",
    )


def _no_places(column: Column, why: str) -> Finding:
    return Finding(
        code="unsupported_sql",
        what=f'the column "{column.name}" of the stream is refused',
        why=f"Its cells are not known without looking at rows. {why}",
        instead=(
            *(('name its range: {"name": "age", "low": 18, "high": 89, "step": 1}',) if column.type in _RANGED else ()),
            "write the cells as sql: any GROUP BY of public keys",
        ),
        field="columns",
    )
