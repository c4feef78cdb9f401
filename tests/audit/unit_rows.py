"""A second meaning of rows that are computed within each unit, in plain Python: what the engine's rows must be."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sql_rewrite.evaluate import evaluate
from sql_rewrite.plan import GROUPS, UnitFunction, UnitGroups, UnitValue

__all__ = ["unit_rows", "value_of"]

Row = Mapping[tuple[str, str], Any]


def unit_rows(
    groups: UnitGroups, rows: Mapping[str, Sequence[Mapping[str, Any]]], owners: Mapping[str, Sequence[Any]]
) -> list[tuple[Mapping[str, Any], Any]]:
    """The rows that are computed within each unit, with their units."""
    from tests.audit import interpreter

    members: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row, unit in interpreter._joined(groups.sources, rows, owners):
        if groups.where is not None and evaluate(groups.where, row) is not True:
            continue
        members[unit, *(_one_zero(evaluate(key, row)) for _, key in groups.keys)].append(row)
    result: list[tuple[Mapping[str, Any], Any]] = []
    for (unit, *keys), inside in members.items():
        made = {(GROUPS, name): key for (name, _), key in zip(groups.keys, keys, strict=True)}
        made |= {(GROUPS, value.name): value_of(value, inside) for value in groups.values}
        if groups.having is None or evaluate(groups.having, made) is True:
            result.append(({name: evaluate(column, made) for name, column in groups.columns}, unit))
    return result


def _one_zero(value: Any) -> Any:
    return 0.0 if isinstance(value, float) and value == 0 else value


def value_of(value: UnitValue, rows: Sequence[Row]) -> Any:
    """A value of some rows of one unit."""
    taken = [row for row in rows if value.filter is None or evaluate(value.filter, row) is True]
    if value.argument is None:
        return len(taken)
    argument = value.argument
    if value.by is not None:
        pairs = [tuple(_one_zero(evaluate(part, row)) for part in (value.by, argument)) for row in taken]
        known = [pair for pair in pairs if None not in pair]
        end = min if value.function is UnitFunction.AT_LEAST else max
        return end(known)[1] if known else None
    found = [x for x in (_one_zero(evaluate(argument, row)) for row in taken) if x is not None]
    counts: dict[UnitFunction, Callable[[], int]] = {
        UnitFunction.VALUES: lambda: len(found),
        UnitFunction.DISTINCT: lambda: len(set(found)),
    }
    if value.function in counts:
        return counts[value.function]()
    if not found:
        return None
    match value.function:
        case UnitFunction.LEAST:
            return min(found)
        case UnitFunction.GREATEST:
            return max(found)
        case UnitFunction.QUANTILE | UnitFunction.DEVIATION:
            middle = _between(found, 0.5 if value.fraction is None else float(value.fraction))
            if value.function is UnitFunction.DEVIATION:
                middle = _between([abs(x - middle) for x in map(float, found)], 0.5)
            return middle if math.isfinite(middle) else None
        case UnitFunction.QUANTILE_DISCRETE:
            assert value.fraction is not None
            return sorted(found)[max(1, math.ceil(len(found) * value.fraction)) - 1]
        case UnitFunction.MODE:
            return min(found, key=lambda one: (-found.count(one), one))
        case UnitFunction.ANY_TRUE:
            return any(found)
        case UnitFunction.ALL_TRUE:
            return all(found)
        case _:
            total = _sum(value, found)
            return total / float(len(found)) if value.function is UnitFunction.AVERAGE else total


def _between(found: Sequence[Any], part: float) -> float:
    """The value at a part of the values in their order, between two of them."""
    place, ordered = (len(found) - 1) * part, sorted(map(float, found))
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    weight = place - math.floor(place)
    return low if low == high else low * (1 - weight) + high * weight


def _sum(value: UnitValue, found: Sequence[Any]) -> int | float:
    if value.encoding is None:
        total = sum(found)
        return float(total) if value.function is UnitFunction.AVERAGE else total
    step = float(value.encoding.step)
    whole = 0
    for x in found:
        size = min(abs(x) / step, float(value.encoding.highest))  # beyond the greatest double it is that, too
        rounded = math.floor(size)
        rounded += size - rounded >= 0.5
        whole += min(rounded, value.encoding.highest) * (1 if x >= 0 else -1)
    size = float(abs(whole) % 2**64) + float(abs(whole) >> 64) * 2.0**64
    return (size if whole >= 0 else -size) * step
