"""Public keys as they are written in a file, as typed values."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from fractions import Fraction

from privacy.bounds import number_of_date, number_of_timestamp
from privacy.policy import ColumnType, KeyValue, Other
from server.datasets.model import ColumnFile, KeysList, KeysRange

__all__ = ["GATHERED_MAX", "KEYS_MAX", "gathered_in", "key_values", "parse_key", "range_values"]

KEYS_MAX = 100_000
"""Most public keys of one column."""

GATHERED_MAX = 4_000
"""Most keys beside an `other` that are not a range: each row is compared with all of them."""

_KEY_LENGTH_MAX = 1_000


def parse_key(value: object, kind: ColumnType) -> KeyValue:
    """A key as written in a file, as a value of the column's type.

    Errors: ValueError with what it must be.
    """
    if value is None:
        return None
    if kind is ColumnType.INTEGER:
        if isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63:
            return value
        raise ValueError("a whole number of 64 bits")
    if kind is ColumnType.BOOLEAN:
        if not isinstance(value, bool):
            raise ValueError("true or false")
        return value
    if kind is ColumnType.TEXT:
        if isinstance(value, str) and len(value) <= _KEY_LENGTH_MAX and "\0" not in value and value.isprintable():
            return value
        raise ValueError(f"a text (in quotes when it looks like a number), {_KEY_LENGTH_MAX} characters at most")
    if kind is ColumnType.DATE:
        try:
            return datetime.date.fromisoformat(_iso(value, 10))
        except ValueError:
            raise ValueError('a day such as "2024-12-31"') from None
    if kind is ColumnType.TIMESTAMP:
        try:
            moment = datetime.datetime.fromisoformat(_iso(value, 26))
        except ValueError:
            moment = None
        if moment is None or moment.tzinfo is not None:
            raise ValueError('a moment without a zone such as "2024-12-31 13:00:00"')
        return moment
    raise ValueError("of a type that can be counted exactly: integer, text, boolean, date or timestamp")


def _iso(value: object, longest: int) -> str:
    if not isinstance(value, str) or not 10 <= len(value) <= longest or value[4:5] != "-":
        raise ValueError
    return value


def range_values(bounds: Sequence[object], kind: ColumnType) -> tuple[KeyValue, ...]:
    """All keys of a range. Errors: ValueError with what is wrong with it."""
    if kind not in (ColumnType.INTEGER, ColumnType.DATE):
        raise ValueError("a range of keys is for columns of type integer or date")
    try:
        first, last = (parse_key(value, kind) for value in bounds)
    except ValueError as error:
        raise ValueError(f"each end must be {error}") from None
    if isinstance(first, datetime.date) and isinstance(last, datetime.date):
        low, high = first.toordinal(), last.toordinal()
    elif isinstance(first, int) and isinstance(last, int):
        low, high = first, last
    else:
        raise ValueError("each end must be a value")  # noqa: TRY004  (null is a value problem here)
    if low > high:
        raise ValueError("the first value is above the last one")
    if high - low >= KEYS_MAX:
        raise ValueError(f"it has {high - low + 1} values, and the limit is {KEYS_MAX}")
    numbers = range(low, high + 1)
    return tuple(map(datetime.date.fromordinal, numbers)) if kind is ColumnType.DATE else tuple(numbers)


def key_values(column: ColumnFile) -> tuple[KeyValue, ...] | None:
    """The declared keys of a column as typed values; None without keys or when a public table holds them."""
    kind = ColumnType(column.type)
    if isinstance(column.keys, list | KeysList):
        listed = column.keys if isinstance(column.keys, list) else column.keys.values
        return tuple(parse_key(value, kind) for value in listed)
    if isinstance(column.keys, KeysRange):
        return range_values(column.keys.range, kind)
    return None


def gathered_in(column: ColumnFile, version: int) -> Other | None:
    """Where values outside the keys count; None when there are none, which is verified when data is attached.

    In files of version 1 only listed texts were verified. Rows with other values were left out of every group; they
    count as NULL now, because no row is ever left out silently.
    """
    keys = column.keys
    if keys is None:
        return None
    if not isinstance(keys, list) and "other" in keys.model_fields_set:
        return Other(parse_key(keys.other, ColumnType(column.type)))
    verified = version > 1 or (isinstance(keys, list) and column.type == ColumnType.TEXT.value)
    return None if verified else Other(None)


def moment_bounds(column: ColumnFile) -> tuple[Fraction, Fraction]:
    """Declared bounds of a date or timestamp column as numbers. Errors: ValueError with what an end must be."""
    assert column.bounds is not None
    kind = ColumnType(column.type)
    ends = [parse_key(_midnight(value) if kind is ColumnType.TIMESTAMP else value, kind) for value in column.bounds]
    numbers = [
        number_of_timestamp(end) if isinstance(end, datetime.datetime) else number_of_date(end)
        for end in ends
        if isinstance(end, datetime.date)
    ]
    if len(numbers) != 2:
        raise ValueError("a value")
    return numbers[0], numbers[1]


def _midnight(value: object) -> object:
    """A day as the first moment of it."""
    return f"{value} 00:00:00" if isinstance(value, str) and len(value) == 10 else value
