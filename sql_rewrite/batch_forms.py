"""The texts by which a batch can be answered: each query by itself, disjoint ones as groups, or cells that add up.

    one by one   SELECT COUNT(*) FILTER (WHERE age < 30) AS q0, COUNT(*) FILTER (WHERE age < 40) AS q1 FROM people
    disjoint     SELECT k0, COUNT(*) AS n FROM (SELECT CASE WHEN age < 30 THEN 0 ... END AS k0 FROM people) GROUP BY k0
    cells        SELECT k0, k1, COUNT(*) AS n FROM (SELECT ... AS k0, ... AS k1 FROM people) GROUP BY ROLLUP (k0, k1)

Each is a text like any that an analyst could write, and goes the whole way of a question. What is proved of questions
(sensitivity, totality, outcomes) holds of it; nothing here is trusted with anything but what the numbers mean, which
tests compare with each query by itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sql_rewrite.batch_axes import PLACE, Axis, Digit
from sql_rewrite.batch_text import Counted, Listed, Spans

__all__ = ["DIRECT_MAX", "Cells", "Runs", "cells_of", "disjoint", "disjoint_text", "ones_text"]

DIRECT_MAX = 32
"""Most counts in one question."""

LEVELS_MAX = 16

Runs = tuple[tuple[int, int], ...]
"""Numbers from one up to before another, several times."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Cells that add up to the answers: the text, the digits of their keys, and of which cells each query is the sum.

    `members`: for each query and axis the numbers of its pieces.
    """

    text: str
    digits: tuple[Digit, ...]
    members: tuple[tuple[Runs, ...], ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many numbers each axis has."""
        count = 1 + max((digit.axis for digit in self.digits), default=-1)
        return tuple(
            max(digit.divisor * digit.base for digit in self.digits if digit.axis == axis) for axis in range(count)
        )

    def numbers(self, keys: Sequence[object]) -> tuple[int, ...]:
        """The number on each axis that the keys of a group say, in whatever order. Errors: ValueError for others."""
        found = [0] * len(self.sizes)
        if len(keys) != len(self.digits):
            raise ValueError("a group has a key for each digit")
        for key in keys:
            assert isinstance(key, int), "digits are whole numbers"
            place = -(-key // PLACE)
            digit = self.digits[place - 1]
            found[digit.axis] += (place * PLACE - key) * digit.divisor
        return tuple(found)


def ones_text(source: str, queries: Sequence[Counted]) -> str:
    """Each query by itself, in one question. Requires: at most `DIRECT_MAX` of them."""
    assert len(queries) <= DIRECT_MAX
    shared = [one for one in queries[0].written if all(one in query.written for query in queries)]
    counts = []
    for number, query in enumerate(queries):
        own = [one for one in query.written if one not in shared]
        condition = f" FILTER (WHERE {_all(own)})" if own else ""
        counts.append(f"COUNT(*){condition} AS q{number}")
    return f"SELECT {', '.join(counts)} FROM {source}{_where(shared)}"


def disjoint(queries: Sequence[Counted]) -> bool:
    """Whether no row can be counted by two of the queries: each two differ in the spans or values of some column."""
    seen: list[Mapping[str, Spans | Listed]] = []
    for query in queries:
        own = {part.column: part for part in query.parts if isinstance(part, Spans | Listed)}
        if not all(any(_apart(own[name], other[name]) for name in own.keys() & other.keys()) for other in seen):
            return False
        seen.append(own)
    return True


def _apart(one: Spans | Listed, other: Spans | Listed) -> bool:
    if isinstance(one, Listed) and isinstance(other, Listed):
        return not one.values & other.values
    if isinstance(one, Spans) and isinstance(other, Spans):
        return all(a.within(b).empty for a in one.spans for b in other.spans)
    return False


def disjoint_text(source: str, queries: Sequence[Counted]) -> tuple[str, tuple[Digit, ...]]:
    """Disjoint queries as the groups of one key, and all other rows as one more. Group `i` answers query `i`."""
    shared = [one for one in queries[0].written if all(one in query.written for query in queries)]
    branches = []
    for number, query in enumerate(queries):
        own = [one for one in query.written if one not in shared]
        branches.append(f"WHEN {_all(own)} THEN {PLACE - number}")
    case = f"CASE {' '.join(branches)} ELSE {PLACE - len(queries)} END"
    text = f"SELECT k0, COUNT(*) AS n FROM (SELECT {case} AS k0 FROM {source}{_where(shared)}) AS t GROUP BY k0"
    return text, (Digit(0, 1, len(queries) + 1),)


def cells_of(
    source: str,
    axes: Sequence[Axis],
    common: Sequence[str],
    *,
    bases: Sequence[int] | None = None,
    layout: Sequence[int] | None = None,
) -> Cells:
    """The cells of all pieces of all axes, with the levels that the queries ask for measured with them.

    `bases` writes the one axis in digits, the coarsest first, with every level of them; `layout` gives its pieces
    their numbers.
    """
    digits: list[Digit] = []
    layouts = [range(axis.pieces) for axis in axes] if layout is None else [layout]
    if bases is None:
        digits = [Digit(number, 1, axis.pieces) for number, axis in enumerate(axes)]
    else:
        assert len(axes) == 1
        digits = [Digit(0, math.prod(bases[place + 1 :]), base) for place, base in enumerate(bases)]
    keys = [
        f"{axes[digit.axis].key(digit, layouts[digit.axis], place=place)} AS k{place}"
        for place, digit in enumerate(digits)
    ]
    names = [f"k{place}" for place in range(len(digits))]
    text = (
        f"SELECT {', '.join(names)}, COUNT(*) AS n FROM (SELECT {', '.join(keys)} FROM {source}{_where(common)}) AS t "
        f"GROUP BY {_groups(names, axes, rolled=bases is not None)}"
    )
    sizes = [max(one.divisor * one.base for one in digits if one.axis == axis) for axis in range(len(axes))]
    count = len(axes[0].members)
    members = tuple(
        tuple(_runs(axis.members[query], layouts[number], sizes[number]) for number, axis in enumerate(axes))
        for query in range(count)
    )
    return Cells(text, tuple(digits), members)


def _groups(names: Sequence[str], axes: Sequence[Axis], *, rolled: bool) -> str:
    if rolled:
        return f"ROLLUP ({', '.join(names)})" if len(names) > 1 else names[0]
    asked = dict.fromkeys(
        tuple(number for number, axis in enumerate(axes) if axis.members[query] is not None)
        for query in range(len(axes[0].members))
    )
    finest = tuple(range(len(axes)))
    levels = [finest, *(level for level in asked if level != finest)]
    if len(axes) < 2 or len(levels) == 1 or len(levels) > LEVELS_MAX:
        return ", ".join(names)
    return f"GROUPING SETS ({', '.join('(' + ', '.join(names[one] for one in level) + ')' for level in levels)})"


def _runs(members: frozenset[int] | None, layout: Sequence[int], size: int) -> Runs:
    """The numbers of pieces, and those behind each that no piece has: nobody can be there, so they add noise alone."""
    if members is None:
        return ((0, size),)
    numbers = sorted((number, piece) for piece, number in enumerate(layout))
    taken: list[list[int]] = []
    for place, (number, piece) in enumerate(numbers):
        if piece not in members:
            continue
        after = numbers[place + 1][0] if place + 1 < len(numbers) else size
        if taken and taken[-1][1] == number:
            taken[-1][1] = after
        else:
            taken.append([number, after])
    return tuple((low, high) for low, high in taken)


def _all(conditions: Sequence[str]) -> str:
    return " AND ".join(f"({one})" for one in conditions)


def _where(conditions: Sequence[str]) -> str:
    return f" WHERE {_all(conditions)}" if conditions else ""
