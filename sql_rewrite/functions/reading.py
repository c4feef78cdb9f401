"""How values are converted: text to the other types, numbers to numbers."""

from __future__ import annotations

import datetime
import math
import re
from typing import assert_never

from privacy.policy import ColumnType
from sql_rewrite.expressions import BIGINT, Expression, Value, needs_wide

__all__ = ["CHARACTERS_MAX", "PATTERNS", "read_text", "to_integer", "to_number"]

INTEGER, NUMBER, BOOLEAN = ColumnType.INTEGER, ColumnType.NUMBER, ColumnType.BOOLEAN
DATE, TIMESTAMP = ColumnType.DATE, ColumnType.TIMESTAMP

# The engine reads many more spellings, and which ones changes between its versions. Texts outside these patterns
# are NULL; inside them the engine and Python agree. The patterns are ours, linear in time, and hold no capture.
_DATE = "(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])-[0-9]{2}-[0-9]{2}"
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?"
PATTERNS = {
    INTEGER: "[+-]?[0-9]{1,30}",
    NUMBER: r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?",
    BOOLEAN: "[tT][rR][uU][eE]|[fF][aA][lL][sS][eE]|[tT]|[fF]|1|0",
    DATE: _DATE,
    TIMESTAMP: f"{_DATE}(?:[ T]{_CLOCK})?",
}
"""What a text must look like, spaces at its ends aside, to be read as the type."""

CHARACTERS_MAX = {NUMBER: 800}
"""Longest text of a pattern that does not limit the length itself.

Counting in the pattern (`[0-9]{1,400}`) makes an automaton of thousands of states: it took 5 ms to make, for each
conversion of a query, and a slower one ran on long texts. A comparison of the length costs nothing.
"""

_READERS = {kind: re.compile(pattern) for kind, pattern in PATTERNS.items()}


def to_integer(value: float) -> int | None:
    """The number, or truth value, as a stored INTEGER; NULL beyond 64 bits."""
    whole = round(value) if isinstance(value, float) else int(value)  # halves to even, as the engine does
    return whole if BIGINT.contains(whole) else None


def to_number(value: int, source: Expression) -> float:
    """The INTEGER as a double: the nearest one from BIGINT, nearly the nearest one from HUGEINT.

    The engine converts the two halves of a HUGEINT one after the other and rounds more than once; this does the
    same. `ranges.converted` allows for it.
    """
    if not needs_wide(source):
        return float(value)
    high, low = divmod(value, 2**64)
    if high == -1:
        return -float(2**64 - 1 - low) - 1.0
    return float(low) + float(high) * 2.0**64


def read_text(text: str, target: ColumnType) -> Value:
    """A text as a value of the type, NULL when it is not written in one of the accepted ways."""
    bare = text.strip(" ")
    if len(bare) > CHARACTERS_MAX.get(target, len(bare)) or _READERS[target].fullmatch(bare) is None:
        return None
    match target:
        case ColumnType.INTEGER:
            return to_integer(int(bare))
        case ColumnType.NUMBER:
            value = float(bare)
            return value if math.isfinite(value) else None
        case ColumnType.BOOLEAN:
            return bare.lower() in ("true", "t", "1")
        case ColumnType.DATE:
            return _date(bare)
        case ColumnType.TIMESTAMP:
            return _timestamp(bare)
        case ColumnType.TEXT:
            raise AssertionError("a text is not read as a text")
        case _:
            assert_never(target)


def _date(text: str) -> datetime.date | None:
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        return None


def _timestamp(text: str) -> datetime.datetime | None:
    head, dot, fraction = text.partition(".")
    try:
        return datetime.datetime.fromisoformat(head + (dot + fraction.ljust(6, "0") if dot else ""))
    except ValueError:
        return None
