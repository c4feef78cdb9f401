"""A set of values as a condition on the expression that has them: one text for each set, the one that is written most.

A list is IN or NOT IN, whole numbers in a row are a range; a range of whole numbers with two ends names both (BETWEEN),
with one end the rounder of the two numbers that say it: `age > 50` for `age >= 51`, `age < 18` for `age <= 17`. Dates
are from a day on or before one; from one to another, where that is not before the first day of a month.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from privacy.policy import ColumnType
from sql_rewrite.expressions import WIDE, ColumnRef, Expression, Literal, Value
from sql_rewrite.functions import build
from sql_rewrite.value_sets import Cut, Piece, Point, ValueSet

__all__ = ["number_of", "spelled", "states"]

BOOLEAN, INTEGER, DATE = ColumnType.BOOLEAN, ColumnType.INTEGER, ColumnType.DATE

LISTED_MAX = 1_000
"""Most values of one list."""

KEYS_LISTED_MAX = 64
"""Most whole numbers in a row that are listed where some of a column's values are keys and all others are gathered: a
list of keys says that it is none of the others, a range does not (`reachable`)."""

_FEW = 16
"""Fewer whole numbers than these are listed where they are not all in a row."""


def number_of(value: Value) -> int:
    """The whole number that counts a whole number or a date."""
    if isinstance(value, datetime.date):
        return value.toordinal()
    assert isinstance(value, int)
    return value


def states(operand: Expression, values: ValueSet) -> bool | None:
    """Whether a set holds everything that the expression can be (True), nothing (False), or some of it."""
    if operand.type is not BOOLEAN:
        return True if values.every else False if values.none else None
    held = [*_truths(values), values.null]
    return True if all(held) else None if any(held) else False


def spelled(operand: Expression, values: ValueSet) -> Expression:
    """The condition. Requires: it is neither always TRUE nor never (`states`)."""
    if operand.type is BOOLEAN:
        return _of_truths(operand, values)
    if not values.begins and not values.cuts:
        return build("is_null", (operand,))
    if values.begins and not values.cuts:
        return _is_present(operand)
    if not values.null:
        return _present(operand, values)
    holes = values.holes()
    if len(holes) == 1 and _count(operand, holes[0]) == 1:
        return build("is_distinct_from", (operand, _literal(operand, _first(holes[0]))))
    return build("or", (build("is_null", (operand,)), _present(operand, values)))


def _is_present(operand: Expression) -> Expression:
    return build("not", (build("is_null", (operand,)),))


def _truths(values: ValueSet) -> tuple[bool, bool]:
    """Whether FALSE and TRUE are in a set."""
    found = []
    for value in (False, True):
        passed = sum(1 for cut in values.cuts if cut <= (value, 0))
        found.append(values.begins is (passed % 2 == 0))
    return found[0], found[1]


def _of_truths(operand: Expression, values: ValueSet) -> Expression:
    without, with_ = _truths(values)
    if without and with_:
        return _is_present(operand)
    if not (without or with_):
        return build("is_null", (operand,))
    if values.null:
        return build("is_distinct_from", (operand, Literal(not with_, BOOLEAN)))
    return operand if with_ else build("not", (operand,))


def _present(operand: Expression, values: ValueSet) -> Expression:
    """The condition on values that are not NULL."""
    pieces, holes = values.pieces(), values.holes()
    if _is_list(operand, pieces):
        return _list(operand, pieces)
    if _is_list(operand, holes):
        return _none_of(operand, holes)
    if len(pieces) == 1:
        return build("and", ends) if len(ends := _range(operand, pieces[0])) > 1 else ends[0]
    inner = [hole for hole in holes if hole[0] is not None and hole[1] is not None]
    if _is_list(operand, inner):
        hull = _range(operand, (pieces[0][0], pieces[-1][1]))
        return build("and", (*hull, _none_of(operand, inner)))
    alone = [piece for piece in pieces if _count(operand, piece) in (1, 2)]
    parts = [_list(operand, alone)] if alone else []
    for piece in pieces:
        if piece not in alone:
            ends = _range(operand, piece)
            parts.append(build("and", ends) if len(ends) > 1 else ends[0])
    return build("or", parts) if len(parts) > 1 else parts[0]


def _is_whole(operand: Expression) -> bool:
    return operand.type is INTEGER or operand.type is DATE


def _count(operand: Expression, piece: Piece) -> int | None:
    """How many values a piece has; None where they are not counted."""
    start, end = piece
    if start is None or end is None:
        return None
    if _is_whole(operand):
        return _number(end) - _number(start)
    return 1 if start[0] == end[0] else None


def _is_list(operand: Expression, pieces: Sequence[Piece]) -> bool:
    """Whether pieces are written as their values."""
    counts = [_count(operand, piece) for piece in pieces]
    known = [count for count in counts if count is not None]
    if not known or len(known) < len(counts):
        return False
    total = sum(known)
    if isinstance(operand, ColumnRef) and operand.other is not None and total <= KEYS_LISTED_MAX:
        return True
    return total <= 2 * len(known) or (len(known) > 1 and total <= _FEW)


def _listed(operand: Expression, pieces: Sequence[Piece]) -> list[Expression]:
    found: list[Point] = []
    for piece in pieces:
        count, first = _count(operand, piece), _first(piece)
        assert count is not None
        found += range(first, first + count) if _is_whole(operand) and isinstance(first, int) else [first]
    return [_literal(operand, value) for value in found]


def _first(piece: Piece) -> Point:
    assert piece[0] is not None
    return piece[0][0]


def _number(cut: Cut) -> int:
    """The whole number that a cut lies before."""
    assert isinstance(cut[0], int)
    return cut[0]


def _list(operand: Expression, pieces: Sequence[Piece]) -> Expression:
    values = _listed(operand, pieces)
    if len(values) == 1:
        return build("=", (operand, values[0]))
    lists = [build("in", (operand, *values[start : start + LISTED_MAX])) for start in range(0, len(values), LISTED_MAX)]
    return lists[0] if len(lists) == 1 else build("or", lists)


def _none_of(operand: Expression, holes: Sequence[Piece]) -> Expression:
    found = _list(operand, holes)
    values = _listed(operand, holes)
    return build("<>", (operand, values[0])) if len(values) == 1 else build("not", (found,))


def _range(operand: Expression, piece: Piece) -> list[Expression]:
    """The comparisons of a range with its ends."""
    start, end = piece
    ends: list[tuple[str, Point]]
    if not _is_whole(operand):
        ends = [] if start is None else [(">" if start[1] else ">=", start[0])]
        ends += [] if end is None else [("<=" if end[1] else "<", end[0])]
    else:
        ends = [] if start is None else [_from(operand, start, alone=end is None)]
        ends += [] if end is None else [_until(operand, end, alone=start is None)]
    return [build(symbol, (operand, _literal(operand, value))) for symbol, value in ends]


def _from(operand: Expression, cut: Cut, *, alone: bool) -> tuple[str, int]:
    first = _number(cut)
    if not _is_value(operand, first) or (operand.type is INTEGER and alone and _rounder(first - 1, first)):
        return ">", first - 1
    return ">=", first


def _until(operand: Expression, cut: Cut, *, alone: bool) -> tuple[str, int]:
    after = _number(cut)
    if not _is_value(operand, after):
        return "<=", after - 1
    if operand.type is DATE:
        return ("<", after) if alone or datetime.date.fromordinal(after).day == 1 else ("<=", after - 1)
    if not _is_value(operand, after - 1) or (alone and _rounder(after, after - 1)):
        return "<", after
    return "<=", after - 1


def _is_value(operand: Expression, number: int) -> bool:
    """Whether a constant can be it."""
    if operand.type is DATE:
        return 1 <= number <= datetime.date.max.toordinal()
    return WIDE.contains(number)


def _rounder(number: int, other: int) -> bool:
    """Whether people would sooner write that number than its neighbour."""
    return _roundness(number) > _roundness(other)


def _roundness(number: int) -> tuple[int, bool, bool]:
    if number in (0, 1):
        return (1 - number) * 99, True, True
    text = str(number)
    return len(text) - len(text.rstrip("0")), number % 5 == 0, number % 2 == 0


def _literal(operand: Expression, value: Point) -> Literal:
    if operand.type is DATE and isinstance(value, int):
        return Literal(datetime.date.fromordinal(value), DATE)
    return Literal(value, operand.type)
