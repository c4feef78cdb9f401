"""Boxes of lines: ranges of numbers, dates and timestamps are in the same blocks as the rows that satisfy them."""

from __future__ import annotations

import bisect
import datetime
import itertools
import math
import struct

import pytest

from privacy.policy import ColumnType
from sql_rewrite import lines
from sql_rewrite.bound import bound
from sql_rewrite.boxes import Box, aligned, box_of, rows_within
from sql_rewrite.evaluate import evaluate
from sql_rewrite.expressions import Expression, Value, columns_of
from sql_rewrite.lift import lift
from sql_rewrite.lines import place_of, value_at
from tests.sql_rewrite.datasets import CLINIC

CONDITIONS = (
    "income > 5", "income >= 5", "income < -2.5", "income BETWEEN -2.5 AND 5", "income = 0", "income IS NULL",
    "income <> 5 OR income IS NULL", "income IN (0, 5, 7.25)", "NOT income > -0.0", "income IS DISTINCT FROM 0",
    "born < '1950-01-01'", "born >= '1950-01-01'", "born BETWEEN '1949-12-31' AND '1960-02-29'", "born IS NOT NULL",
    "age > 50", "age BETWEEN 20 AND 50",
)  # fmt: skip
NUMBERS = (None, -1e308, -3.0, -2.5, -5e-324, -0.0, 0.0, 5e-324, 4.999, 5.0, math.nextafter(5.0, 6.0), 7.25, 1e308)
DAYS = (None, "0001-01-01", "1949-12-31", "1950-01-01", "1950-01-02", "1960-02-29", "1960-03-01", "9999-12-31")
FAR = 2**80
KINDS = {
    int: ColumnType.INTEGER,
    float: ColumnType.NUMBER,
    datetime.date: ColumnType.DATE,
    datetime.datetime: ColumnType.TIMESTAMP,
}
VALUES: dict[str, tuple[Value, ...]] = {
    "income": NUMBERS,
    "born": tuple(None if day is None else datetime.date.fromisoformat(day) for day in DAYS),
    "age": (0, 19, 20, 21, 50, 51, 100),
}


def boxed(condition: str) -> tuple[Expression, str, Box]:
    """The condition of a count, and its box."""
    (core,) = bound(lift(f"SELECT COUNT(*) FROM people WHERE {condition}", CLINIC))
    found = box_of(core, CLINIC)
    assert found is not None
    assert core.core.where is not None
    return core.core.where, *found


def wrong() -> list[str]:
    """Values of which a box says something else than its condition, when it stands beside another box."""
    known = {condition: boxed(condition) for condition in CONDITIONS}
    assert len({around for _, around, _ in known.values()}) == 1
    found = []
    for (text, (where, _, box)), (beside, (_, _, other)) in itertools.product(known.items(), repeat=2):
        if box.places.keys() != other.places.keys():
            continue
        (column,) = columns_of(where)
        (name,) = box.places
        (blocks, _) = (one.places[name] for one in aligned([box, other]))
        ends = sorted({*box.lines[name], *other.lines[name]})
        for value in VALUES[column.name]:
            number = FAR if value is None else place_of(value, column.type)
            if number is None:  # one with no room beside it
                number = FAR if value == VALUES[column.name][-1] else -FAR
            place = -1 if value is None else _listed(ends, number)
            kept = evaluate(where, {(column.relation, column.name): value}) is True
            if (blocks[place] == 0) is not kept:
                found.append(f"{text} beside {beside}: {value}")
    return found


def _listed(ends: list[int], number: int) -> int:
    """Which value of a line a number has: below all constants, on one, or above one up to the next."""
    listed = sorted({*(end - 1 for end in ends[:1]), *ends, *(end + 1 for end in ends)})
    return max(bisect.bisect_right(listed, number) - 1, 0)


def test_boxes_of_lines_hold_what_the_conditions_hold() -> None:
    """Shows it of pairs of conditions on values around all constants, of zeros of either sign and of NULL."""
    assert wrong() == []


@pytest.mark.parametrize(
    "nobody", ["age > 50 AND age < 20", "age IS NULL", "sex = 'nowhere'", "income > 5 AND income < 0"]
)
def test_conditions_that_no_value_meets_are_no_part_of_others(nobody: str) -> None:
    """The rows of another condition are not those of one that nobody meets; they are those of the same one."""
    for other in ("age > 50", "sex = 'female'", "income = 0"):
        (_, around, box), (_, beside, held) = boxed(nobody), boxed(other)
        assert around == beside
        assert rows_within(box, held) is None
        assert rows_within(held, held) == [[0]]


def test_doubles_that_are_ordered_by_their_bits_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: the bits of negative doubles grow with their size, and there are two zeros."""
    monkeypatch.setattr(lines, "_order", lambda value: struct.unpack("<q", struct.pack("<d", value))[0])
    assert wrong()


@pytest.mark.parametrize(
    "value", [5, -2.5, 0.0, 5e-324, datetime.date(1950, 1, 1), datetime.datetime(1950, 1, 1, 2, 3, 4, 5)]
)
def test_places_are_in_order_with_nothing_between(value: int | float | datetime.date) -> None:
    """Shows the way back, and the values beside."""
    kind = KINDS[type(value)]
    place = place_of(value, kind)
    assert place is not None
    below, same, above = (value_at(place + step, kind) for step in (-1, 0, 1))
    assert same == value
    match value:
        case float():
            assert (below, above) == (math.nextafter(value, -math.inf), math.nextafter(value, math.inf))
        case datetime.datetime():
            step = datetime.timedelta(microseconds=1)
            assert (below, above) == (value - step, value + step)
        case datetime.date():
            assert (below, above) == (value - datetime.timedelta(1), value + datetime.timedelta(1))
        case int():
            assert (below, above) == (value - 1, value + 1)
