"""The second meaning of DISTINCT, in plain Python: which values a unit brings in, and what their union adds up to.

Written from mechanisms/distinct.md. Values are ranked by a hash that only the engine can compute, so it is asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from privacy.policy import ColumnType
from privacy.statistic import StatisticKind
from sql_rewrite.bound import BoundedCore, BoundedStatistic
from sql_rewrite.contribution import Contribution
from sql_rewrite.evaluate import evaluate
from tests.audit.interpreter import Hasher, Key, Vector, choose_groups, encoder, grouped_rows, taken_rows
from tests.audit.violation import require

__all__ = ["Kept", "kept_values", "summed_values"]

Kept = dict[Any, dict[str, dict[tuple[Key, Any], Vector]]]
"""For each unit and statistic, the (group, value) pairs that it brings in, with what each adds."""

_BIGINT = range(-(2**63), 2**63)


def kept_values(
    bounded: BoundedCore,
    rows: Mapping[str, Sequence[Mapping[str, Any]]],
    owners: Mapping[str, Sequence[Any]],
    hashes: Callable[[BoundedCore, ColumnType | None], Hasher],
) -> Kept:
    """What every unit brings in to the statistics of different values."""
    statistics = [item for item in bounded.statistics if item.distinct is not None]
    contribution = bounded.contribution
    if not statistics:
        return {}
    assert isinstance(contribution, Contribution), "only counts bound different values"
    grouped = grouped_rows(bounded, rows, owners)
    if contribution.choose_groups:
        choose_groups(grouped, contribution.groups, hashes(bounded, None))
    found: Kept = {}
    for unit, groups in grouped.items():
        found[unit] = {}
        for item in statistics:
            pairs = {
                (key, value): vector
                for key, members in groups.items()
                for value, vector in _values(item, members).items()
            }
            assert item.distinct is not None
            limit = contribution.total if contribution.groups * item.rows > contribution.total else None
            hasher = hashes(bounded, item.distinct.type)
            found[unit][item.statistic.name] = _chosen(pairs, unit, item.rows, limit, hasher)
    return found


def summed_values(bounded: BoundedCore, kept: Kept, units: frozenset[Any]) -> dict[Key, dict[str, Vector]]:
    """The sums over the union of what some units bring in."""
    total: dict[Key, dict[str, Vector]] = {}
    for item in bounded.statistics:
        name = item.statistic.name
        union: dict[tuple[Key, Any], Vector] = {}
        for unit in sorted(units & kept.keys(), key=repr):
            for pair, vector in kept[unit].get(name, {}).items():
                require(union.setdefault(pair, vector) == vector, "a value that does not decide what it adds")
        for (key, _), vector in union.items():
            cell = total.setdefault(key, {})
            before = cell.get(name, (0,) * len(vector))
            cell[name] = tuple(a + b for a, b in zip(before, vector, strict=True))
    return total


def _values(item: BoundedStatistic, rows: Sequence[Mapping[Any, Any]]) -> dict[Any, Vector]:
    """The different values of one unit in one group, with what each adds."""
    assert item.distinct is not None
    found: dict[Any, Vector] = {}
    encoded = None if item.argument is None else encoder(item)
    for row in taken_rows(item, rows):
        value = evaluate(item.distinct, row)
        if value is None or (item.distinct.type is ColumnType.INTEGER and value not in _BIGINT):
            continue
        if isinstance(value, float):
            value += 0.0
        vector = _vector(item, None if encoded is None else encoded(row))
        require(found.setdefault(value, vector) == vector, "a value that does not decide what it adds")
    return found


def _vector(item: BoundedStatistic, step: int | None) -> Vector:
    statistic, encoding = item.statistic, item.statistic.encoding
    if statistic.kind is StatisticKind.COUNT:
        return (1,)
    assert step is not None
    assert encoding is not None
    if statistic.kind is StatisticKind.SUM:
        return (step,)
    left = encoding.highest - step
    return (left, step) if statistic.degree == 1 else (left * left, 2 * left * step, step * step)


def _chosen(
    pairs: dict[tuple[Key, Any], Vector], unit: Any, rows: int, total: int | None, hasher: Hasher
) -> dict[tuple[Key, Any], Vector]:
    """The first pairs of each group by their hashes, and of those the first of all."""
    listed = list(pairs)
    if not listed:
        return {}
    digests = dict(zip(listed, hasher([(unit, (*key, value)) for key, value in listed]), strict=True))
    require(len(set(digests.values())) == len(listed), "two values of a unit have one hash")
    groups: dict[Key, list[tuple[Key, Any]]] = defaultdict(list)
    for pair in sorted(listed, key=lambda pair: digests[pair]):
        groups[pair[0]].append(pair)
    left = sorted((pair for own in groups.values() for pair in own[:rows]), key=lambda pair: digests[pair])
    return {pair: pairs[pair] for pair in left[:total]}
