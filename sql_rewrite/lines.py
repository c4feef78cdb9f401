"""Lines: the values of a number, a date or a timestamp as whole numbers, in the same order and with nothing between.

    5                        whole numbers: themselves
    5.5                      numbers: the bits of a double, 4617878467915022336, of negative ones with a minus sign
    1970-01-01               dates: days, as Python counts them
    1970-01-01 00:00:00      timestamps: microseconds since the year 1

**Claim.** `place_of` is a bijection between the finite values of a type and some whole numbers in a row, and keeps the
order. So what compares a column with constants has one value on each constant, and one on each gap between two of them.
**Proof.** Of positive doubles exponent and fraction, read as one number, grow with the value by one from each double to
the next one (IEEE 754-2008, 3.4); zero is 0 with either sign, for both are equal; negative ones mirror them. Days and
microseconds are what the types hold (`ColumnType`). Comparisons are exact for all four. QED.

A number that is no finite one reads as NULL where a condition reads it, so a number may always lack its value.
"""

from __future__ import annotations

import datetime
import struct
from fractions import Fraction

from privacy.bounds import number_of_timestamp, timestamp_at
from privacy.policy import ColumnType
from sql_rewrite.expressions import ColumnRef, Value

__all__ = ["LINES", "may_lack", "place_of", "value_at"]

LINES = frozenset({ColumnType.INTEGER, ColumnType.NUMBER, ColumnType.DATE, ColumnType.TIMESTAMP})
"""The types whose values are in order, one after another."""

_FAR = 2**62
_SIGN = 2**63
_MOST = struct.unpack("<q", struct.pack("<d", 1.7976931348623157e308))[0]
"""The place of the greatest double."""


def may_lack(column: ColumnRef) -> bool:
    """Whether a condition on a column may read NULL."""
    return column.nullable or column.type is ColumnType.NUMBER


def place_of(value: Value, kind: ColumnType) -> int | None:
    """The place of a value of a type among all; None for another value, or one with no room beside it."""
    if kind is ColumnType.INTEGER and isinstance(value, int):
        return int(value) if abs(value) < _FAR else None
    if kind is ColumnType.NUMBER and type(value) is float:
        place = _order(value)
        return place if abs(place) < _MOST else None
    if kind is ColumnType.DATE and type(value) is datetime.date:
        return value.toordinal() if datetime.date.min < value < datetime.date.max else None
    if kind is ColumnType.TIMESTAMP and type(value) is datetime.datetime:
        inside = datetime.datetime.min < value < datetime.datetime.max
        return int(number_of_timestamp(value)) if inside else None
    return None


def value_at(place: int, kind: ColumnType) -> Value:
    """The value of a type at a place."""
    if kind is ColumnType.NUMBER:
        bits = place if place >= 0 else -place | _SIGN
        found: float = struct.unpack("<d", struct.pack("<Q", bits))[0]
        return found
    if kind is ColumnType.DATE:
        return datetime.date.fromordinal(max(place, 1))
    if kind is ColumnType.TIMESTAMP:
        return timestamp_at(Fraction(place))
    assert kind is ColumnType.INTEGER
    return place


def _order(value: float) -> int:
    """The place of a double."""
    bits: int = struct.unpack("<Q", struct.pack("<d", value))[0]
    return bits if bits < _SIGN else -(bits - _SIGN)
