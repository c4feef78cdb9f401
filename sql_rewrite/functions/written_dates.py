"""STRFTIME: dates and timestamps as text, with a constant format of specifiers that engines write alike."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence

from privacy.policy import ColumnType
from sql_rewrite.dialects.costs import Cost
from sql_rewrite.expressions import Call, Expression, Literal, Value
from sql_rewrite.functions.date_parts import DAY_NAMES, MONTH_NAMES
from sql_rewrite.functions.operator import (
    Operator,
    Resolved,
    TypeRefused,
    any_nullable,
    arity,
    constant_text,
    expect,
    plain_call,
)
from sql_rewrite.functions.text_size import FORMATTED_MAX
from sql_rewrite.functions.values import day, midnight, text

__all__ = ["OPERATORS"]

DATE, TIMESTAMP, TEXT = ColumnType.DATE, ColumnType.TIMESTAMP, ColumnType.TEXT

FORMAT_MAX = 50

_SPECIFIERS: Mapping[str, Callable[[datetime.datetime], str]] = {
    "Y": lambda t: f"{t.year:04}",
    "y": lambda t: f"{t.year % 100:02}",
    "m": lambda t: f"{t.month:02}",
    "-m": lambda t: str(t.month),
    "d": lambda t: f"{t.day:02}",
    "-d": lambda t: str(t.day),
    "j": lambda t: f"{t.timetuple().tm_yday:03}",
    "H": lambda t: f"{t.hour:02}",
    "-H": lambda t: str(t.hour),
    "I": lambda t: f"{(t.hour + 11) % 12 + 1:02}",
    "M": lambda t: f"{t.minute:02}",
    "S": lambda t: f"{t.second:02}",
    "f": lambda t: f"{t.microsecond:06}",
    "g": lambda t: f"{t.microsecond // 1000:03}",
    "p": lambda t: "AM" if t.hour < 12 else "PM",
    "a": lambda t: DAY_NAMES[t.weekday()][:3],
    "A": lambda t: DAY_NAMES[t.weekday()],
    "b": lambda t: MONTH_NAMES[t.month - 1][:3],
    "B": lambda t: MONTH_NAMES[t.month - 1],
    "u": lambda t: str(t.isoweekday()),
    "w": lambda t: str(t.isoweekday() % 7),
    "G": lambda t: f"{t.isocalendar()[0]:04}",
    "V": lambda t: f"{t.isocalendar()[1]:02}",
    "%": lambda t: "%",
}
"""What each specifier writes. Those of DuckDB that depend on a zone, and %c, %x, %X, %n, %U and %W, are left out."""


def _pieces(written: str) -> list[str] | None:
    """The characters and specifiers of a format in order, specifiers with their sign; None where one is not known."""
    pieces: list[str] = []
    place = 0
    while place < len(written):
        if written[place] != "%":
            pieces.append(written[place])
            place += 1
            continue
        found = next(
            (name for name in (written[place + 1 : place + 3], written[place + 1 : place + 2]) if name in _SPECIFIERS),
            None,
        )
        if not found:
            return None
        pieces.append("%" + found)
        place += 1 + len(found)
    return pieces


def _resolve(arguments: tuple[Expression, ...]) -> Resolved:
    forms = "STRFTIME"
    arity(forms, arguments, 2)
    written = constant_text(forms, arguments[1], "format", most=FORMAT_MAX)
    if not _pieces(written) or "\x00" in written:
        raise TypeRefused(
            "unsupported_function",
            '"STRFTIME" is refused with this format',
            "A format is not empty, and its specifiers are " + ", ".join(f"%{name}" for name in _SPECIFIERS) + ".",
            ("STRFTIME(d, '%Y-%m')",),
        )
    return Resolved((expect(forms, arguments[0], DATE, TIMESTAMP), arguments[1]), TEXT)


def _strftime(call: Call, values: Sequence[Value]) -> str:
    moment = midnight(day(values[0]))
    pieces = _pieces(text(values[1])) or []
    return "".join(_SPECIFIERS[piece[1:]](moment) if len(piece) > 1 else piece for piece in pieces)


def _characters(arguments: Sequence[Expression], lengths: Sequence[int]) -> int:
    written = arguments[1]
    assert isinstance(written, Literal)
    return FORMATTED_MAX * len(text(written.value))


OPERATORS: tuple[Operator, ...] = (
    Operator(
        name="strftime",
        forms="STRFTIME(d, 'format')",
        signature="DATE or TIMESTAMP, constant format of up to 50 characters -> TEXT",
        meaning="The moment as text: "
        + " ".join(f"%{name}" for name in _SPECIFIERS)
        + ", other characters as they are.",
        totality="The format is a constant that was read beforehand, and every moment has all parts.",
        names=("strftime",),
        takes=2,
        resolve=_resolve,
        lower=plain_call("strftime"),
        reference=_strftime,
        characters=_characters,
        cost=Cost(row=1300, vector=16_000),
        nullable=any_nullable,
        strict=True,
        exact=True,
        section="Dates",
    ),
)
"""Entries of the allow-list."""
