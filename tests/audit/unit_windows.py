"""A second meaning of windows within each unit, in plain Python: what the engine's rows must be."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from sql_rewrite.evaluate import evaluate
from sql_rewrite.plan import GROUPS, Placement, UnitPlace, UnitRows, UnitWindow
from sql_rewrite.unit_facts import content_keys

__all__ = ["window_rows"]

Row = dict[tuple[str, str], Any]


def window_rows(
    computed: UnitRows, rows: Mapping[str, Sequence[Mapping[str, Any]]], owners: Mapping[str, Sequence[Any]]
) -> list[tuple[Mapping[str, Any], Any]]:
    """The rows of each unit with its windows, with their units."""
    from tests.audit import interpreter

    units: dict[Any, list[Row]] = defaultdict(list)
    for row, unit in interpreter._joined(computed.sources, rows, owners):
        if computed.where is None or evaluate(computed.where, row) is True:
            units[unit].append({(GROUPS, name): _one_zero(evaluate(cell, row)) for name, cell in computed.cells})
    result: list[tuple[Mapping[str, Any], Any]] = []
    for unit, members in units.items():
        for name in reversed(content_keys(computed)):
            members = _sorted(members, [row[GROUPS, name] for row in members], descending=False, first=False)
        values = {window.name: _window(window, members) for window in computed.windows}
        for place, row in enumerate(members):
            row |= {(GROUPS, name): found[place] for name, found in values.items()}
            result.append(({name: evaluate(column, row) for name, column in computed.columns}, unit))
    return result


def _one_zero(value: Any) -> Any:
    return 0.0 if isinstance(value, float) and value == 0 else value


def _sorted(items: Sequence[Any], keys: Sequence[Any], *, descending: bool, first: bool) -> list[Any]:
    """The items by their keys; those of equal keys stay in order."""
    there = sorted((i for i, key in enumerate(keys) if key is not None), key=lambda i: keys[i], reverse=descending)
    missing = [i for i, key in enumerate(keys) if key is None]
    return [items[i] for i in ([*missing, *there] if first else [*there, *missing])]


def _window(window: UnitWindow, rows: Sequence[Row]) -> list[Any]:
    """The window's value of each row; of equal ones the first comes first."""
    parts: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        parts[tuple(_one_zero(evaluate(key, row)) for key in window.partition)].append(place)
    found: list[Any] = [None] * len(rows)
    for members in parts.values():
        ordered = members
        keys = {i: [_one_zero(evaluate(term.expression, rows[i])) for term in window.order] for i in members}
        for number, term in reversed(list(enumerate(window.order))):
            ordered = _sorted(
                ordered, [keys[i][number] for i in ordered], descending=term.descending, first=term.nulls_first
            )
        made = _values(window, [rows[i] for i in ordered], [keys[i] for i in ordered])
        for i, value in zip(ordered, made, strict=True):
            found[i] = value
    return found


def _values(window: UnitWindow, rows: Sequence[Row], keys: Sequence[Any]) -> list[Any]:
    from tests.audit.unit_rows import value_of

    count = len(rows)
    first = [next(j for j in range(count) if keys[j] == keys[i]) for i in range(count)]
    last = [next(j for j in reversed(range(count)) if keys[j] == keys[i]) for i in range(count)]
    frames = [_inside(window, i, keys, first, last) for i in range(count)]
    value = window.value
    if not isinstance(value, UnitPlace):
        return [value_of(value, [rows[j] for j in inside]) for inside in frames]
    read = [None if value.argument is None else _one_zero(evaluate(value.argument, row)) for row in rows]
    made: list[Any] = []
    for i in range(count):
        inside = [read[j] for j in frames[i] if not (value.ignores_null and read[j] is None)]
        match value.function:
            case Placement.ROW_NUMBER:
                made.append(i + 1)
            case Placement.RANK:
                made.append(first[i] + 1)
            case Placement.DENSE_RANK:
                made.append(len({first[j] for j in range(i + 1)}))
            case Placement.PERCENT_RANK:
                made.append(first[i] / (count - 1) if count > 1 else 0.0)
            case Placement.CUME_DIST:
                made.append((last[i] + 1) / count)
            case Placement.NTILE:
                size, more = divmod(count, value.number)
                made.append(next(part for part in range(1, count + 1) if i < part * size + min(part, more)))
            case Placement.LAG | Placement.LEAD:
                after = [i, *(range(i - 1, -1, -1) if value.function is Placement.LAG else range(i + 1, count))]
                there = [i, *(j for j in after[1:] if not (value.ignores_null and read[j] is None))]
                otherwise = None if value.otherwise is None else evaluate(value.otherwise, {})
                made.append(read[there[value.number]] if value.number < len(there) else otherwise)
            case Placement.FIRST_VALUE:
                made.append(inside[0] if inside else None)
            case Placement.LAST_VALUE:
                made.append(inside[-1] if inside else None)
            case Placement.NTH_VALUE:
                made.append(inside[value.number - 1] if value.number <= len(inside) else None)
    return made


def _inside(window: UnitWindow, i: int, keys: Sequence[Any], first: Sequence[int], last: Sequence[int]) -> list[int]:
    """The places of the rows that a window reads for the row at one."""
    count, frame = len(keys), window.frame
    if frame is None:
        return list(range((last[i] if window.order else count - 1) + 1))
    low, high = frame.start, frame.end
    if frame.rows:
        inside = [j for j in range(count) if (low is None or j >= i + low) and (high is None or j <= i + high)]
    elif frame.by == "groups":
        group = [sorted(set(first)).index(first[j]) - sorted(set(first)).index(first[i]) for j in range(count)]
        inside = [j for j in range(count) if (low is None or group[j] >= low) and (high is None or group[j] <= high)]
    elif frame.by:
        inside = [j for j in range(count) if _near(window, keys, i, j)]
    else:
        inside = list(range(0 if low is None else first[i], count if high is None else last[i] + 1))
    equals = set(range(first[i], last[i] + 1))
    left_out = {"": set(), "current row": {i}, "group": equals, "ties": equals - {i}}[frame.exclude]
    return [j for j in inside if j not in left_out]


def _near(window: UnitWindow, keys: Sequence[Any], i: int, j: int) -> bool:
    """Whether a row is within the distances of a row's frame in the one value of the order."""
    frame, (term,) = window.frame, window.order
    assert frame is not None
    (mine,), (other,) = keys[i], keys[j]
    if mine is None or other is None:
        # A row without a value has its equals; an end that is not bounded reaches all rows on that side.
        before = frame.start is None and j < i
        after = frame.end is None and j > i
        return (mine is None and other is None) or before or after
    away = (other - mine) * (-1 if term.descending else 1)
    if frame.by == "clock":
        away = away // datetime.timedelta(microseconds=1)
    return (frame.start is None or away >= frame.start) and (frame.end is None or away <= frame.end)
