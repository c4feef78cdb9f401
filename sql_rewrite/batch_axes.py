"""The axes of a batch: each column or condition that its queries compare, cut into pieces that no query divides.

    age BETWEEN 20 AND 29,  age BETWEEN 25 AND 39     pieces: [20, 25), [25, 30), [30, 40);  queries: {0, 1}, {1, 2}

Claim. A row that satisfies what all queries ask is in exactly one piece of every axis, and a query counts the rows
whose pieces are all among its own. Proof: the ends of all spans are among the cuts, so that a piece is inside a span or
outside it, and a list has each of its values or none; a value that is NULL satisfies no comparison, and is in the
piece of what is left, which belongs to those queries alone that do not ask of the axis.

Pieces are numbered by CASE with a branch each, or, where whole numbers or days make too many, as steps of one size. The
number is written in digits, each a key of GROUP BY of its own, taken from a number that says which place it has, so
that a group is recognised whatever the order of the columns: 9,997 and 19,993 are 3 in the first place and 7 in the
second.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

from privacy.bounds import date_at
from privacy.policy import ColumnType
from sql_rewrite.batch_text import Counted, Cut, Listed, Other, Part, Span, Spans

__all__ = ["PLACE", "Axis", "Digit", "axes_of"]

PLACE = 10_000
"""What a digit of the first place is taken from, one of the second from twice as much."""

BRANCHES_MAX = 160
"""Most pieces that are numbered by CASE: the engine's statement has some operators for each."""

BRANCHES_PREFERRED = 24
"""Up to so many pieces are numbered by CASE also where steps of one size would do: there are fewer of them."""

STEPS_MAX = 1_000
"""Most steps of one size."""


@dataclass(frozen=True, slots=True)
class Digit:
    """One digit of the number of a piece: `number // divisor`, and of that the remainder of `base`."""

    axis: int
    divisor: int
    base: int


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis: how many pieces it has, which of them each query counts (None: all), and how they are numbered.

    `branches` are the conditions of CASE with their pieces, tried in order; `ordered` says that each is tried only
    where those before it failed. `rest` is the piece of everything else, None where there is nothing else.
    `steps` says in place of them that pieces are steps of one size: the column's SQL, the lowest number and the size.
    `where` is what every query asks of it.
    """

    pieces: int
    members: tuple[frozenset[int] | None, ...]
    branches: tuple[tuple[str, int], ...] = ()
    ordered: bool = False
    rest: int | None = None
    steps: tuple[str, str, int] | None = None
    where: str | None = None

    def key(self, digit: Digit, layout: Sequence[int], *, place: int) -> str:
        """The digit of a row's piece as SQL, taken from what its place has in front. `layout` numbers the pieces.

        The plan puts keys in the order of what they say. Of a difference that is the number in front, so that digits
        stay in the order of the tree, and neighbours neighbours: sums of these are whole with the least error.
        """
        front = PLACE * (place + 1)
        if self.steps is not None:
            column, lowest, size = self.steps
            top = -(-self.pieces // digit.divisor) - 1
            number = f"COALESCE(LEAST(GREATEST(({column} - {lowest}) // {size * digit.divisor}, 0), {top}), 0)"
            return f"{front} - {number if top < digit.base else f'({number}) % {digit.base}'}"
        branches = [(condition, layout[piece] // digit.divisor % digit.base) for condition, piece in self.branches]
        rest = None if self.rest is None else layout[self.rest] // digit.divisor % digit.base
        return f"{front} - {_case(_merged(branches) if self.ordered else _gathered(branches), rest)}"


def _case(branches: list[tuple[str, int]], rest: int | None) -> str:
    if rest is None:
        *branches, (_, rest) = branches
    while branches and branches[-1][1] == rest:
        branches.pop()
    if not branches:
        return f"CASE WHEN TRUE THEN {rest} ELSE {rest} END"
    return f"CASE {' '.join(f'WHEN {condition} THEN {value}' for condition, value in branches)} ELSE {rest} END"


def _merged(branches: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Of branches that follow one another and have one value the last: it is true where any of them is."""
    return [one for one, after in zip(branches, (*branches[1:], (None, None)), strict=True) if one[1] != after[1]]


def _gathered(branches: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Branches of one value together."""
    found: dict[int, list[str]] = {}
    for condition, value in branches:
        found.setdefault(value, []).append(condition)
    return [(" OR ".join(conditions), value) for value, conditions in found.items()]


def axes_of(queries: Sequence[Counted]) -> tuple[tuple[Axis, ...], tuple[str, ...]] | None:
    """The axes on which the queries differ, and the conditions that all of them have.

    None where an axis has more pieces than can be numbered.
    """
    asked: dict[str, list[Part | None]] = {}
    for number, query in enumerate(queries):
        for part in query.parts:
            asked.setdefault(_name(part), [None] * len(queries))[number] = part
    axes: list[Axis] = []
    common: list[str] = []
    for parts in asked.values():
        first = next(part for part in parts if part is not None)
        if all(part == first for part in parts):
            common.append(_condition(first))
            continue
        axis = _axis(first, parts)
        if axis is None:
            return None
        axes.append(axis)
        if axis.where is not None:
            common.append(axis.where)
    return tuple(axes), tuple(common)


def _name(part: Part) -> str:
    return f"condition {part.condition}" if isinstance(part, Other) else f"column {part.column}"


def _axis(first: Part, parts: Sequence[Part | None]) -> Axis | None:
    match first:
        case Spans():
            return _ordered(first, [part if isinstance(part, Spans) else None for part in parts])
        case Listed():
            return _listed(first.column, [part if isinstance(part, Listed) else None for part in parts])
        case Other():
            members = tuple(None if part is None else frozenset({0}) for part in parts)
            # A row that does not satisfy it is in the other piece, also where it is NULL.
            return Axis(2, members, ((f"({first.condition})", 0),), rest=1)
        case _:
            assert_never(first)


def _listed(column: str, parts: Sequence[Listed | None]) -> Axis | None:
    signatures: dict[tuple[int, ...], list[str]] = {}
    values = dict.fromkeys(value for part in parts if part is not None for value in sorted(part.values))
    for value in values:
        signature = tuple(place for place, part in enumerate(parts) if part is not None and value in part.values)
        signatures.setdefault(signature, []).append(value)
    if len(signatures) > BRANCHES_MAX:
        return None
    branches = tuple((_among(column, found), piece) for piece, found in enumerate(signatures.values()))
    members = tuple(
        None if part is None else frozenset(piece for piece, asked in enumerate(signatures) if place in asked)
        for place, part in enumerate(parts)
    )
    if all(part is not None for part in parts):
        return Axis(len(signatures), members, branches, where=_among(column, list(values)))
    return Axis(len(signatures) + 1, members, branches, rest=len(signatures))


def _among(column: str, values: Sequence[str]) -> str:
    return f"{column} = {values[0]}" if len(values) == 1 else f"{column} IN ({', '.join(values)})"


def _ordered(first: Spans, parts: Sequence[Spans | None]) -> Axis | None:
    spans = [() if part is None else part.spans for part in parts]
    cuts = sorted({cut for found in spans for span in found for cut in (span.low, span.high) if cut is not None})
    places = {cut: place for place, cut in enumerate(cuts)}
    inside = [
        frozenset(piece for span in found for piece in range(*_pieces(span, places, len(cuts)))) for found in spans
    ]
    every = all(part is not None for part in parts)
    if every and len(cuts) > BRANCHES_PREFERRED:
        steps = _steps(first, cuts, spans)
        if steps is not None:
            return steps
    signatures: dict[tuple[int, ...], int] = {}
    numbered: list[int] = []
    for piece in range(len(cuts) + 1):
        signature = tuple(place for place, pieces in enumerate(inside) if piece in pieces)
        edge = every and not signature and piece in (0, len(cuts))
        numbered.append(-1 if edge else signatures.setdefault(signature, len(signatures)))
    if len(numbered) > BRANCHES_MAX:
        return None
    members = tuple(
        None if part is None else frozenset(numbered[piece] for piece in pieces)
        for part, pieces in zip(parts, inside, strict=True)
    )
    low = cuts[0] if numbered[0] == -1 else None
    high = cuts[-1] if numbered[-1] == -1 else None
    branches = [(_below(first, cut), numbered[piece]) for piece, cut in enumerate(cuts) if numbered[piece] != -1]
    if every:
        where = _hull(first, low, high)
        if numbered[-1] != -1:
            branches.append(("TRUE", numbered[-1]))
        return Axis(len(signatures), members, tuple(branches), ordered=True, where=where)
    branches.append((_from(first, cuts[-1]), numbered[-1]))
    return Axis(len(signatures) + 1, members, tuple(branches), ordered=True, rest=len(signatures))


def _pieces(span: Span, places: Mapping[Cut, int], last: int) -> tuple[int, int]:
    low = 0 if span.low is None else places[span.low] + 1
    return low, last + 1 if span.high is None else places[span.high] + 1


def _ends(first: Spans, low: Cut | None, high: Cut | None) -> list[str]:
    return [
        *([] if low is None else [_from(first, low)]),
        *([] if high is None else [_below(first, high)]),
    ]


def _hull(first: Spans, low: Cut | None, high: Cut | None) -> str:
    """That a number lies between two ends, or is not NULL where there are none.

    The upper end of whole numbers and days is written of their distance from the lower one: of a column itself a range
    with two ends lists its values (key_ranges.py), and cells in which none of them is would be missing from the tree.
    """
    if low is None or high is None or first.type is ColumnType.NUMBER:
        return " AND ".join(_ends(first, low, high)) or f"{first.column} IS NOT NULL"
    return f"{_from(first, low)} AND {first.column} - {_constant(first.type, low[0])} < {int(high[0] - low[0])}"


def _steps(first: Spans, cuts: Sequence[Cut], spans: Sequence[Sequence[Span]]) -> Axis | None:
    """Pieces of one size; None for ends that are not just below whole numbers, for no ends, or for too many steps.

    The whole part of a number is at least a whole number exactly where the number is.
    """
    if any(None in (span.low, span.high) for found in spans for span in found):
        return None
    if any(above or number.denominator != 1 for number, above in cuts):
        return None
    column = f"CAST(FLOOR({first.column}) AS BIGINT)" if first.type is ColumnType.NUMBER else first.column
    numbers = [int(number) for number, _ in cuts]
    size = math.gcd(*(number - numbers[0] for number in numbers[1:]))
    count = (numbers[-1] - numbers[0]) // size
    if not 1 < count <= STEPS_MAX:
        return None

    def place(cut: Cut | None) -> int:
        assert cut is not None
        return (int(cut[0]) - numbers[0]) // size

    members = tuple(
        frozenset(piece for span in found for piece in range(place(span.low), place(span.high))) for found in spans
    )
    lowest = _constant(first.type, cuts[0][0])
    return Axis(count, members, steps=(column, lowest, size), where=_hull(first, cuts[0], cuts[-1]))


def _below(first: Spans, cut: Cut) -> str:
    return f"{first.column} {'<=' if cut[1] else '<'} {_constant(first.type, cut[0])}"


def _from(first: Spans, cut: Cut) -> str:
    return f"{first.column} {'>' if cut[1] else '>='} {_constant(first.type, cut[0])}"


def _constant(kind: ColumnType, number: Fraction) -> str:
    """A number or a day as SQL, exactly."""
    if kind is ColumnType.DATE:
        return f"DATE '{date_at(number).isoformat()}'"
    if number.denominator == 1:
        return str(number.numerator) if number >= 0 else f"({number.numerator})"
    places = 1
    while (number * 10**places).denominator != 1:
        places += 1
    digits = f"{abs(int(number * 10**places)):0{places + 1}d}"
    text = f"{digits[:-places]}.{digits[-places:]}"
    return text if number > 0 else f"(-{text})"


def _condition(part: Part) -> str:
    match part:
        case Other():
            return f"({part.condition})"
        case Listed():
            return _among(part.column, sorted(part.values))
        case Spans():
            whole = [" AND ".join(_ends(part, span.low, span.high)) or "TRUE" for span in part.spans]
            return f"({' OR '.join(whole)})"
        case _:
            assert_never(part)
