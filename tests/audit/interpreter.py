"""A second meaning of the bounded core, in plain Python on plain rows: what the engine's exact sums must be.

Written from the description of statistics, not from the lowered SQL. Scalar expressions use the reference evaluator.
Groups of a unit are chosen by the rank of a hash that only the engine can compute, so it is asked for those hashes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from privacy.policy import ColumnType
from privacy.statistic import StatisticKind
from sql_rewrite.bound import BoundedCore, BoundedStatistic
from sql_rewrite.evaluate import evaluate
from sql_rewrite.plan import Core
from tests.audit.violation import require

__all__ = ["Contributions", "Hasher", "contributions", "encoded", "summed"]

Key = tuple[Any, ...]
Vector = tuple[int, ...]
Contributions = dict[Any, dict[Key, dict[str, Vector]]]
"""For each unit, for each of its groups, what it adds to each statistic."""

Hasher = Callable[[Sequence[tuple[Any, Key]]], list[int]]
"""Hashes of (unit, group) pairs."""

KEY_CHARACTERS = 256
_BIGINT = range(-(2**63), 2**63)


def contributions(
    bounded: BoundedCore,
    rows: Mapping[str, Sequence[Mapping[str, Any]]],
    owners: Mapping[str, Sequence[Any]],
    hasher: Hasher,
) -> Contributions:
    """What every unit adds to the sums of a core."""
    texts = sum(key.type is ColumnType.TEXT for _, key in bounded.core.keys)
    hidden = any(domain is None for domain in bounded.domains)
    longest = KEY_CHARACTERS // texts if hidden and texts else None
    grouped: dict[Any, dict[Key, list[Mapping[tuple[str, str], Any]]]] = defaultdict(lambda: defaultdict(list))
    for row, unit in _joined(bounded.core, rows, owners):
        if bounded.core.where is not None and evaluate(bounded.core.where, row) is not True:
            continue
        key = tuple(
            _key(evaluate(expression, row), expression.type, longest=longest) for _, expression in bounded.core.keys
        )
        if all(domain is None or part in domain for part, domain in zip(key, bounded.domains, strict=True)):
            grouped[unit][key].append(row)
    if bounded.contribution.choose_groups:
        _choose(grouped, bounded.contribution.groups, hasher)
    return {
        unit: {
            key: {b.statistic.name: _vector(b, members) for b in bounded.statistics} for key, members in groups.items()
        }
        for unit, groups in grouped.items()
    }


def summed(parts: Contributions, units: frozenset[Any]) -> dict[Key, dict[str, Vector]]:
    """The sums of some units."""
    total: dict[Key, dict[str, Vector]] = {}
    for unit in units & parts.keys():
        for key, vectors in parts[unit].items():
            cell = total.setdefault(key, {name: (0,) * len(vector) for name, vector in vectors.items()})
            for name, vector in vectors.items():
                cell[name] = tuple(a + b for a, b in zip(cell[name], vector, strict=True))
    return total


def _joined(
    core: Core, rows: Mapping[str, Sequence[Mapping[str, Any]]], owners: Mapping[str, Sequence[Any]]
) -> list[tuple[Mapping[tuple[str, str], Any], Any]]:
    """Rows of the first table that belong to a unit, with the columns of their parents."""
    root = core.sources[0]
    result: list[tuple[dict[tuple[str, str], Any], Any]] = []
    for row, unit in zip(rows[root.table.name], owners[root.table.name], strict=True):
        if unit is not None:
            result.append(({(root.relation, name): stored(value) for name, value in row.items()}, unit))
    for source in core.sources[1:]:
        join = source.join
        assert join is not None
        parents: dict[Any, Mapping[str, Any]] = {}
        for parent, owner in zip(rows[source.table.name], owners[source.table.name], strict=True):
            if (owner is not None or not source.table.protected) and parent[join.parent.name] is not None:
                require(parent[join.parent.name] not in parents, "a join to a key that is not unique")
                parents[parent[join.parent.name]] = parent
        missing = {column.name: None for column in source.table.columns}
        joined = []
        for values, unit in result:
            parent = parents.get(values[join.child.relation, join.child.name])
            if parent is None and not join.outer:
                continue
            found = missing if parent is None else parent
            joined.append(({**values, **{(source.relation, n): stored(v) for n, v in found.items()}}, unit))
        result = joined
    return [(values, unit) for values, unit in result]


def stored(value: Any) -> Any:
    """A value as a snapshot holds it: a double that is not finite is NULL."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _key(value: Any, kind: ColumnType, *, longest: int | None) -> Any:
    """A key as it is grouped: hidden texts are cut to a public length, integers beyond 64 bits are NULL."""
    if isinstance(value, str):
        return value[:longest]
    if kind is ColumnType.INTEGER and value is not None and value not in _BIGINT:
        return None
    return value


def _choose(grouped: Mapping[Any, dict[Key, Any]], groups: int, hasher: Hasher) -> None:
    pairs = [(unit, key) for unit, members in grouped.items() if len(members) > groups for key in members]
    ranked: dict[Any, list[tuple[int, Key]]] = defaultdict(list)
    for (unit, key), digest in zip(pairs, hasher(pairs) if pairs else [], strict=True):
        ranked[unit].append((digest, key))
    for unit, listed in ranked.items():
        require(len({digest for digest, _ in listed}) == len(listed), "two groups of a unit have one hash")
        for _, key in sorted(listed, key=lambda pair: pair[0])[groups:]:
            del grouped[unit][key]


def _vector(bounded: BoundedStatistic, rows: Sequence[Mapping[tuple[str, str], Any]]) -> Vector:
    """What one unit adds in one of its groups, bounded."""
    statistic, limit = bounded.statistic, bounded.rows
    if statistic.kind is StatisticKind.UNITS:
        return (1,)
    taken = [row for row in rows if bounded.filter is None or evaluate(bounded.filter, row) is True]
    if statistic.kind is StatisticKind.COUNT:
        return (min(len(taken), limit),)
    assert statistic.encoding is not None
    values = [encoded(bounded, row) for row in taken]
    lowest, highest = statistic.encoding.lowest, statistic.encoding.highest
    if statistic.kind is StatisticKind.SUM:
        total = sum(value for value in values if value is not None)
        return (max(limit * min(lowest, 0), min(total, limit * max(highest, 0))),)
    vectors = []
    for value in values:
        if value is not None:
            parts = (
                [highest - value, value]
                if statistic.degree == 1
                else [
                    (highest - value) ** 2,
                    2 * value * (highest - value),
                    value**2,
                ]
            )
            vectors.append([*parts, 0] if statistic.counts_nulls else parts)
        elif statistic.counts_nulls:
            vectors.append([0] * (statistic.degree + 1) + [highest**statistic.degree])
    count = len(vectors)
    totals = [sum(parts) for parts in zip(*vectors, strict=True)] if vectors else [0] * statistic.coordinates
    return tuple(total * limit // count for total in totals) if count > limit else tuple(totals)


def encoded(bounded: BoundedStatistic, row: Mapping[tuple[str, str], Any]) -> int | None:
    """The integer T of a statistic's argument for one row."""
    encoding, argument = bounded.statistic.encoding, bounded.argument
    assert encoding is not None
    assert argument is not None
    value = evaluate(argument, row)
    if value is None:
        return None
    if isinstance(value, int) and encoding.step == 1 and encoding.offset.denominator == 1:
        return max(encoding.lowest, min(value - int(encoding.offset), encoding.highest))
    assert isinstance(value, int | float)
    low, high = (float(encoding.offset + encoding.step * bound) for bound in (encoding.lowest, encoding.highest))
    clipped = max(low, min(float(value), high))
    steps = (clipped - float(encoding.offset)) / float(encoding.step)
    whole = math.floor(abs(steps))
    whole += abs(steps) - whole >= 0.5
    return max(encoding.lowest, min(whole if steps >= 0 else -whole, encoding.highest))
