"""A second meaning of the bounded core, in plain Python on plain rows: what the engine's exact sums must be.

Written from the description of statistics, not from the lowered SQL. Scalar expressions use the reference evaluator.
Groups of a unit are chosen by the rank of a hash that only the engine can compute, so it is asked for those hashes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any

from privacy.policy import ColumnType
from privacy.statistic import Statistic, StatisticKind
from sql_rewrite.bound import BoundedCore, BoundedStatistic
from sql_rewrite.contribution import Bounding, Contribution
from sql_rewrite.evaluate import evaluate
from sql_rewrite.expressions import Expression
from sql_rewrite.plan import Source
from tests.audit.unit_rows import unit_rows
from tests.audit.unit_windows import window_rows
from tests.audit.violation import require

__all__ = [
    "Contributions",
    "Hasher",
    "bernstein_vectors",
    "choose_groups",
    "contributions",
    "encoder",
    "grouped_rows",
    "on_nodes",
    "row_vector",
    "source_rows",
    "summed",
    "taken_rows",
]

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
    """What every unit adds to the sums of a core whose units are held to counts."""
    contribution = bounded.contribution
    assert isinstance(contribution, Contribution)
    grouped = grouped_rows(bounded, rows, owners)
    if contribution.choose_groups:
        choose_groups(grouped, contribution.groups, hasher)
    result: Contributions = {}
    for unit, groups in grouped.items():
        result[unit] = {key: {} for key in groups}
        for statistic in bounded.statistics:
            if statistic.distinct is not None:
                continue  # what units share does not add up: tests/audit/different.py
            allotted = _allotments(contribution, statistic, groups)
            for key, members in groups.items():
                result[unit][key][statistic.statistic.name] = _vector(statistic, members, allotted[key])
    return result


def grouped_rows(
    bounded: BoundedCore,
    rows: Mapping[str, Sequence[Mapping[str, Any]]],
    owners: Mapping[str, Sequence[Any]],
) -> dict[Any, dict[Key, list[Mapping[tuple[str, str], Any]]]]:
    """The rows of every unit by group, with the columns of their parents."""
    texts = sum(key.type is ColumnType.TEXT for _, key in bounded.core.keys)
    hidden = any(domain is None for domain in bounded.domains)
    longest = KEY_CHARACTERS // texts if hidden and texts else None
    grouped: dict[Any, dict[Key, list[Mapping[tuple[str, str], Any]]]] = defaultdict(lambda: defaultdict(list))
    for row, unit in _joined(bounded.core.sources, rows, owners):
        if bounded.core.where is not None and evaluate(bounded.core.where, row) is not True:
            continue
        key = tuple(
            _key(evaluate(expression, row), expression.type, longest=longest) for _, expression in bounded.core.keys
        )
        grouped[unit][key].append(row)  # whatever the plan says of its cells: no row is left out for its key
    return grouped


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
    sources: Sequence[Source], rows: Mapping[str, Sequence[Mapping[str, Any]]], owners: Mapping[str, Sequence[Any]]
) -> list[tuple[Mapping[tuple[str, str], Any], Any]]:
    """Rows of the first source that belong to a unit, with the columns of what they are joined to."""
    root = sources[0]
    result: list[tuple[dict[tuple[str, str], Any], Any]] = [
        ({(root.relation, name): value for name, value in row.items()}, unit)
        for row, unit in source_rows(root, rows, owners)
    ]
    for source in sources[1:]:
        join = source.join
        if source.constants is not None:
            beside = source_rows(source, rows, owners)
            result = [
                ({**values, **{(source.relation, n): v for n, v in row.items()}}, unit)
                for values, unit in result
                for row, _ in beside
            ]
            continue
        assert join is not None
        there = source_rows(source, rows, owners)
        missing = {column.name: None for column in source.table.columns}
        partners: dict[Any, list[Mapping[str, Any]]] = defaultdict(list)
        for row, owner in there:
            if join.on_unit:
                partners[owner].append(row)
            elif row[join.parent.name] is not None:
                partners[row[join.parent.name]].append(row)
                alone = len(partners[row[join.parent.name]]) == 1
                require(alone or join.tried > 1 or bool(join.also), "a join to a key that is not unique")
        joined = []
        for values, unit in result:
            # Of an outer join's missing row the unit is missing too.
            mine = unit if values[join.child.relation, join.child.name] is not None else None
            found = partners.get(mine if join.on_unit else values[join.child.relation, join.child.name], [])
            found = [row for row in found if all(_equal(values[a.relation, a.name], row[b.name]) for a, b in join.also)]
            found = [row for row in found if _met(join.when, values, source.relation, row)]
            require(join.on_unit or len(found) <= join.tried, "a row meets more rows of a public table than it may")
            if not found and join.outer:
                found = [missing]
            joined += [({**values, **{(source.relation, n): v for n, v in row.items()}}, unit) for row in found]
        result = joined
    return [(values, unit) for values, unit in result]


def _met(when: Expression | None, values: Mapping[tuple[str, str], Any], relation: str, row: Mapping[str, Any]) -> bool:
    """Whether the condition of a join is true of a row of earlier sources and one of the joined source."""
    beside = {(relation, name): value for name, value in row.items()}
    return when is None or evaluate(when, {**values, **beside}) is True


def _equal(one: Any, other: Any) -> bool:
    return one is not None and one == other


def source_rows(
    source: Source, rows: Mapping[str, Sequence[Mapping[str, Any]]], owners: Mapping[str, Sequence[Any]]
) -> list[tuple[Mapping[str, Any], Any]]:
    """The rows of one source that an engine sees, each with its unit (None: of a public table)."""
    if source.only is not None:
        whole = source_rows(replace(source, only=None), rows, owners)
        only = source.only
        return [
            (row, unit)
            for row, unit in whole
            if evaluate(only, {(source.relation, name): value for name, value in row.items()}) is True
        ]
    if source.constants is not None:
        listed = [ref.name for ref in source.constants.columns]
        return [(dict(zip(listed, row, strict=True)), None) for row in source.constants.rows]
    if source.union is not None:
        names = [name for name, _ in source.union.columns]
        return [
            (dict(zip(names, (evaluate(column, row) for column in branch.columns), strict=True)), unit)
            for branch in source.union.branches
            for row, unit in _joined(branch.sources, rows, owners)
            if branch.where is None or evaluate(branch.where, row) is True
        ]
    if source.windows is not None:
        return window_rows(source.windows, rows, owners)
    if source.groups is not None:
        return unit_rows(source.groups, rows, owners)
    name = source.table.name
    return [
        ({column: stored(value) for column, value in row.items()}, unit)
        for row, unit in zip(rows[name], owners[name], strict=True)
        if unit is not None or not source.table.protected
    ]


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


def choose_groups(grouped: Mapping[Any, dict[Key, Any]], groups: int, hasher: Hasher) -> None:
    """Leaves each unit its groups that come first by their hashes."""
    pairs = [(unit, key) for unit, members in grouped.items() if len(members) > groups for key in members]
    ranked: dict[Any, list[tuple[int, Key]]] = defaultdict(list)
    for (unit, key), digest in zip(pairs, hasher(pairs) if pairs else [], strict=True):
        ranked[unit].append((digest, key))
    for unit, listed in ranked.items():
        require(len({digest for digest, _ in listed}) == len(listed), "two groups of a unit have one hash")
        for _, key in sorted(listed, key=lambda pair: pair[0])[groups:]:
            del grouped[unit][key]


def taken_rows(bounded: BoundedStatistic, rows: Sequence[Mapping[Any, Any]]) -> list[Mapping[Any, Any]]:
    """The rows under the filter of a statistic."""
    return [row for row in rows if bounded.filter is None or evaluate(bounded.filter, row) is True]


def _allotments(
    core: Contribution, bounded: BoundedStatistic, groups: Mapping[Key, Sequence[Mapping[tuple[str, str], Any]]]
) -> dict[Key, Fraction]:
    """The rows that a unit is allotted in each of its groups: at most `rows`, and `total` over all of them."""
    rows = {key: Fraction(min(len(taken_rows(bounded, members)), bounded.rows)) for key, members in groups.items()}
    together = sum(rows.values())
    if not bounded.scaled or together <= core.total:
        return rows
    return {key: count * core.total / together for key, count in rows.items()}


def _vector(bounded: BoundedStatistic, rows: Sequence[Mapping[tuple[str, str], Any]], allotted: Fraction) -> Vector:
    """What one unit adds in one of its groups, held to the worth of its allotted rows there."""
    statistic, encoding = bounded.statistic, bounded.statistic.encoding
    if statistic.kind is StatisticKind.UNITS:
        return (1,)
    taken = taken_rows(bounded, rows)
    if statistic.kind is StatisticKind.COUNT:
        there = [row for row in taken if bounded.present is None or evaluate(bounded.present, row) is True]
        size = 1 if encoding is None else encoding.highest
        return (math.floor(min(allotted, len(there)) * size),)
    assert encoding is not None
    if bernstein_vectors(statistic):
        vectors = [vector for vector in map(partial(row_vector, bounded), taken) if vector is not None]
        counted = min(allotted, len(vectors))
        worth = math.floor(counted * statistic.row_units)
        tails = [
            _scaled(sum(sum(vector[place:]) for vector in vectors), len(vectors), bounded, counted)
            for place in range(1, statistic.coordinates - statistic.counts_nulls)
        ]
        nulls = (math.floor(allotted * statistic.row_units) - worth,) if statistic.counts_nulls else ()
        return (*(more - less for more, less in pairwise([worth, *tails])), tails[-1], *nulls)
    steps = [value for value in map(encoder(bounded), taken) if value is not None]
    if statistic.kind is StatisticKind.RANKS:
        assert statistic.tree is not None
        worth = math.floor(min(allotted, len(steps)) * statistic.tree.worth)
        return on_nodes(bounded, steps, worth // max(1, len(steps)))
    if statistic.kind is StatisticKind.SUM:
        return (_held(sum(steps), encoding.lowest, encoding.highest, allotted),)
    size = encoding.highest**statistic.degree
    counted = min(allotted, len(steps))
    worth = math.floor(counted * size)
    nulls = (math.floor(allotted * size) - worth,) if statistic.counts_nulls else ()
    if statistic.degree == 2:
        square, both = sum(step**2 for step in steps), sum(2 * step * encoding.highest - step**2 for step in steps)
        top, middle = (_scaled(part, len(steps), bounded, counted) for part in (square, both))
        return (worth - middle, middle - top, top, *nulls)
    scaled = _scaled(sum(steps), len(steps), bounded, counted)
    if bounded.bounding is Bounding.SCALED:
        return (worth - scaled, scaled, *nulls)
    lowest = encoding.offset / encoding.step
    assert lowest.denominator == 1
    whole = sum(steps) + int(lowest) * len(steps)
    held = _held(whole, int(lowest), int(lowest) + encoding.highest, allotted)
    away = abs(int(lowest)) * worth // encoding.highest
    clipped = held - away if lowest > 0 else held + away
    if bounded.bounding is Bounding.BOTH:
        clipped = clipped if statistic.lowered else max(clipped, scaled)
        clipped = clipped if statistic.raised else min(clipped, scaled)
    clipped = max(0, min(clipped, worth))
    if bounded.bounding is Bounding.CLIPPED:
        return (worth - clipped, clipped, *nulls)
    up = (max(0, clipped - scaled),) if statistic.raised else ()
    down = (max(0, scaled - clipped),) if statistic.lowered else ()
    return (worth - max(clipped, scaled), min(clipped, scaled), *up, *down, *nulls)


def bernstein_vectors(statistic: Statistic) -> bool:
    """Whether the reference makes each row's vector by itself: of two values, or of a value of degree 3 or 4."""
    return statistic.kind is StatisticKind.PRODUCTS or statistic.degree > 2


def row_vector(bounded: BoundedStatistic, row: Mapping[tuple[str, str], Any]) -> Vector | None:
    """What one row adds without the coordinate of NULL: products of Bernstein terms. None where a value is NULL."""
    statistic = bounded.statistic
    found: list[int] = [1]
    whole = [(encoder(bounded), statistic.encoding, statistic.degree)]
    if statistic.second is not None:
        second = replace(bounded, argument=bounded.second, statistic=_single(statistic))
        whole.append((encoder(second), statistic.second, statistic.second_degree))
    for encode, encoding, degree in whole:
        assert encoding is not None
        step = encode(row)
        if step is None:
            return None
        terms = [math.comb(degree, i) * step**i * (encoding.highest - step) ** (degree - i) for i in range(degree + 1)]
        found = [before * term for before in found for term in terms]
    return tuple(found)


def _single(statistic: Statistic) -> Statistic:
    """Moments of the second value of products: its encoding is what an encoder reads."""
    assert statistic.second is not None
    return replace(
        statistic, kind=StatisticKind.MOMENTS, encoding=statistic.second, degree=statistic.second_degree,
        coordinates=statistic.second_degree + 1, counts_nulls=False, second=None, second_degree=0,
    )  # fmt: skip


def on_nodes(bounded: BoundedStatistic, places: Sequence[int], weight: int) -> Vector:
    """The interval of each level in which each of the unit's values lies, each with the same weight."""
    tree = bounded.statistic.tree
    assert tree is not None
    drawn = bounded.statistic.drawn
    finer = 1 if drawn is None else drawn.finer
    found: list[int] = []
    for level in range(1, tree.levels + 1):
        width = finer * tree.branching ** (tree.levels - level)
        counts = [0] * tree.branching**level
        for place in places:
            counts[place // width] += weight
        found += counts
    if drawn is not None:
        # The places among which quantiles are drawn.
        counts = [0] * (finer * tree.places)
        for place in places:
            counts[place] += weight
        found += counts
    return tuple(found)


def _scaled(total: int, count: int, bounded: BoundedStatistic, counted: Fraction) -> int:
    """A sum over `count` rows, as if there were `rows` of them, and then as if there were `counted`."""
    kept = min(count, bounded.rows)
    if count > kept:
        total = total * kept // count
    return math.floor(total * counted / kept) if counted < kept else total


def _held(total: int, lowest: int, highest: int, allotted: Fraction) -> int:
    """A unit's sum held to what its allotted rows can be worth, towards zero."""
    low, high = -math.floor(allotted * max(-lowest, 0)), math.floor(allotted * max(highest, 0))
    return max(low, min(total, high))


def encoder(bounded: BoundedStatistic) -> Callable[[Mapping[tuple[str, str], Any]], int | None]:
    """The integer T of a statistic's argument, as a function of one row."""
    encoding, argument = bounded.statistic.encoding, bounded.argument
    if bounded.statistic.drawn is not None:
        encoding = bounded.row_encoding  # of the finer places
    assert encoding is not None
    assert argument is not None
    offset, step, lowest, highest = encoding.offset, encoding.step, encoding.lowest, encoding.highest
    ends = [offset, *(offset + end * step for end in (lowest, highest))]
    whole = step.numerator == 1 and all(end.denominator == 1 for end in ends)
    low, high = (float(end) for end in ends[1:])

    def encode(row: Mapping[tuple[str, str], Any]) -> int | None:
        value = evaluate(argument, row)
        if value is None:
            return None
        if whole and isinstance(value, int):
            first, least, greatest = map(int, ends)
            return (max(least, min(int(value), greatest)) - first) * step.denominator
        assert isinstance(value, int | float)
        clipped = max(low, min(float(value), high))
        steps = (clipped - float(offset)) / float(step)
        rounded = math.floor(abs(steps))
        rounded += abs(steps) - rounded >= 0.5
        return max(lowest, min(rounded if steps >= 0 else -rounded, highest))

    return encode
