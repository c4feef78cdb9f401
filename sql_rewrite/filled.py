"""Forms of SQL in advice, with the analyst's own operands in place of their letters.

A form writes {x} and {y} for numbers, {i} and {j} for whole ones, {d} for a date or timestamp, {t} for a text, {p} for
a condition and {v} for any value: `STRFTIME({d}, '%Y-%m')`. Where the refused call has an operand of that type the form
is filled with it, so that it can be pasted; elsewhere it says what the letters are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from privacy.policy import ColumnType

__all__ = ["Operand", "fill"]

_NUMBERS = (ColumnType.INTEGER, ColumnType.NUMBER)
_KINDS = {
    "x": _NUMBERS,
    "y": _NUMBERS,
    "i": (ColumnType.INTEGER,),
    "j": (ColumnType.INTEGER,),
    "d": (ColumnType.DATE, ColumnType.TIMESTAMP),
    "t": (ColumnType.TEXT,),
    "p": (ColumnType.BOOLEAN,),
    "v": tuple(ColumnType),
}
_SAID = {
    "x": "a number x",
    "y": "a number y",
    "i": "a whole number i",
    "j": "a whole number j",
    "d": "a date d",
    "t": "a text t",
    "p": "a condition p",
    "v": "a value v",
}
_LETTER = re.compile(r"\{([xyijdtpv])\}")


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand as the analyst wrote it, with its type, and as it can be summed: clipped where it has no bounds.

    `reads` says whether it reads a column: forms are not filled with constants alone.
    """

    sql: str
    type: ColumnType
    summed: str
    reads: bool


def fill(form: str, given: Sequence[Operand], *, summed: bool = False) -> str:
    """The form with operands of its letters' types, else with its letters, after words that say what they are.

    `summed`: the form is an aggregate, whose argument needs bounds.
    """
    left = list(given) if any(one.reads for one in given) else []
    values: dict[str, str] = {}
    letters = dict.fromkeys(_LETTER.findall(form))
    for letter in letters:
        operand = next((one for one in left if one.type in _KINDS[letter]), None)
        if operand is None:
            words = " and ".join(_SAID[one] for one in letters)
            return f"for {words}: {_LETTER.sub(lambda found: found[1], form)}"
        left.remove(operand)
        values[letter] = operand.summed if summed else operand.sql
    return _LETTER.sub(lambda found: values[found[1]], form)
