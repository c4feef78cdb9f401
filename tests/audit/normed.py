"""Units that are scaled to norms, once more and in rational numbers: what each unit adds, and in which bin it counts.

Written from mechanisms/norms.md, not from the lowered SQL. A unit's factor is a whole number of 2^-b; where the engine
takes a root of a double, it may be one less than the exact one, so what is expected is an interval.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

from engines.declaration import norms_stored
from mechanisms.norm_choice import bin_of, edge
from privacy.bounds import AutomaticContribution, ValueBounds
from privacy.norms import NORM_GRAIN, NORM_MAX, NormOf, NormPower
from privacy.refusal import Refused
from privacy.statement import Statement
from privacy.statistic import StatisticKind
from sql_rewrite import lower as lowering
from sql_rewrite import norms as norming
from sql_rewrite.bounded import BoundedCore, BoundedNorm, BoundedStatistic
from sql_rewrite.contribution import NormedContribution
from sql_rewrite.evaluate import evaluate
from sql_rewrite.kept_totals import kept_totals
from sql_rewrite.norm_shapes import shares_tables
from sql_rewrite.normed import WEIGHT_PARTS
from sql_rewrite.statement_columns import UNITS_MAX
from tests.audit.generate import Query, Scene, make_query, make_scene, owner_of
from tests.audit.harness import Side, Store, Tally, check_noise, check_pair, neighbours_of, run
from tests.audit.interpreter import bernstein_vectors, encoder, grouped_rows, on_nodes, row_vector, taken_rows
from tests.audit.violation import Violation, require

__all__ = [
    "NormedReference",
    "Seen",
    "at_some_norms",
    "audit_norms",
    "automatic",
    "check_normed_side",
    "check_stores",
    "with_norms",
    "without_negatives",
]

Key = tuple[Any, ...]
Interval = tuple[int, int]
_NORMS = [Fraction(1), Fraction(7, 2), Fraction(1, 3), Fraction(6), Fraction(40), Fraction(1000), Fraction(10**9)]

CLOSE = 1e-9
"""A norm so near to an edge may be in the bin to either side of it."""


@dataclass
class Seen:
    """What an audit of norms saw."""

    triples: int = 0
    cores: int = 0
    cut: int = 0
    """Units that were scaled down."""


def automatic(scene: Scene) -> Scene:
    """The scene where questions choose how much a unit may take part."""
    tables = tuple(
        replace(table, contribution=AutomaticContribution()) if table.name in ("visits", "items") else table
        for table in scene.dataset.tables
    )
    return replace(scene, dataset=replace(scene.dataset, tables=tables))


def with_norms(scene: Scene, *, units: bool = True) -> Scene:
    """The scene whose snapshot keeps the norms and totals of units (privacy/stored_norms.py), and tables of these."""
    totals = kept_totals(scene.dataset)
    kept = [(table, norms_stored(table)) for table in scene.dataset.tables]
    tables = tuple(
        replace(
            table,
            stored_norms=norms,
            stored_totals=totals.get(table.name, ()),
            stored_units=units and norms is not None,
        )
        for table, norms in kept
    )
    return replace(scene, dataset=replace(scene.dataset, tables=tables))


def without_negatives(scene: Scene) -> Scene:
    """The scene whose bounds of numbers begin at zero, so that totals of them can be kept; values may lie below."""
    tables = tuple(
        replace(
            table,
            columns=tuple(
                column
                if column.bounds is None
                else replace(column, bounds=ValueBounds(Fraction(0), max(column.bounds.upper, Fraction(7, 3))))
                for column in table.columns
            ),
        )
        for table in scene.dataset.tables
    )
    return replace(scene, dataset=replace(scene.dataset, tables=tables))


def audit_norms(seed: int, *, queries: int, neighbours: int, seen: Seen) -> None:
    """Many triples over one scene, by both powers. Errors: Violation."""
    scene = automatic(make_scene(seed))
    scene = with_norms(scene, units=bool(seed % 4 - 1)) if seed % 2 else scene
    sides = neighbours_of(scene, seed, neighbours)
    texts = [make_query(scene, seed * 1_000 + number) for number in range(queries)]
    with ExitStack() as stack:
        stores = [stack.enter_context(closing(Store(scene, frozenset(scene.units), seed=seed)))]
        stores += [stack.enter_context(closing(Store(scene, units, seed=seed + 1))) for units in sides]
        for number, query in enumerate(texts):
            for power in NormPower:
                check_stores(scene, stores, query, power=power, seed=seed * 1_000 + number, seen=seen)


def at_some_norms(core: BoundedCore, *, seed: int) -> BoundedCore:
    """A core at norms that a question might have chosen: the same ones for a seed, whatever the data are."""
    r = random.Random(f"{seed} {core.described.name}")
    return norming.at_norms(core, {item.norm.name: r.choice(_NORMS) for item in core.norms})


def check_stores(
    scene: Scene, stores: Sequence[Store], query: Query, *, power: NormPower, seed: int, seen: Seen
) -> None:
    """One query on data (first) and on neighbours: sums, histograms, and how far one unit moves them."""

    settled = partial(at_some_norms, seed=seed)

    def of(store: Store) -> Side:
        gaussian = power is NormPower.L2 and seed % 3 != 0
        return run(store, scene, query, gaussian=gaussian, epsilon=Fraction(1), power=power, settled=settled)

    try:
        base = of(stores[0])
    except Refused:
        return
    if not any(isinstance(core.contribution, NormedContribution) for core in base.cores):
        return
    seen.cores += len(base.cores)
    owners = {table.name: owner_of(scene, table.name) for table in scene.dataset.tables}
    every = [NormedReference(core, scene.rows, owners) for core in base.cores]
    try:
        check_normed_side(base, every, stores[0], seen)
        for store in stores[1:]:
            other = of(store)
            check_pair(base, other, Tally())
            check_normed_side(other, every, store, seen)
            for core in base.cores:
                if core.norms:
                    _check_moved(core, stores[0], store)
            seen.triples += 1
    except Violation as violation:
        raise Violation(f"{violation}\n{query.sql} {dict(query.parameters)}, {power}, scene {scene.seed}") from None


class NormedReference:
    """What every unit adds to one core, and the bins that it is in: computed once for each unit, on whichever sides."""

    def __init__(
        self, core: BoundedCore, rows: Mapping[str, Sequence[Mapping[str, Any]]], owners: Mapping[str, Sequence[Any]]
    ) -> None:
        self.core = core
        self.units: dict[Any, dict[Key, list[Mapping[tuple[str, str], Any]]]] = grouped_rows(core, rows, owners)
        self._vectors: dict[Any, dict[Key, dict[str, list[Interval]]]] = {}
        self._squares: dict[tuple[Any, str], int] = {}

    def cells(self, units: frozenset[Any]) -> dict[Key, dict[str, list[Interval]]]:
        """The ends of each sum over some units."""
        total: dict[Key, dict[str, list[Interval]]] = {}
        for unit in units & self.units.keys():
            if unit not in self._vectors:
                self._vectors[unit] = self._scaled(unit)
            for key, vectors in self._vectors[unit].items():
                cell = total.setdefault(key, {})
                for name, vector in vectors.items():
                    before = cell.get(name, [(0, 0)] * len(vector))
                    cell[name] = [(a + c, b + d) for (a, b), (c, d) in zip(before, vector, strict=True)]
        return total

    def scaled_down(self, units: frozenset[Any]) -> int:
        """How many units are beyond a norm."""
        contribution = self.core.contribution
        assert isinstance(contribution, NormedContribution)
        return sum(
            self.square(unit, item) > contribution.norm(item.norm.name) ** 2
            for unit in units & self.units.keys()
            for item in self.core.norms
        )

    def square(self, unit: Any, item: BoundedNorm) -> int:
        """The square of a unit's norm."""
        known = self._squares.get((unit, item.norm.name))
        if known is None:
            known = self._squares[unit, item.norm.name] = self._square(unit, item)
        return known

    def _square(self, unit: Any, item: BoundedNorm) -> int:
        owner = next(s for s in self.core.statistics if s.statistic.norm == item.norm.name)
        values = [self._number(item, owner, members) for members in self.units[unit].values()]
        if item.norm.power is NormPower.L1:
            return int(sum(map(abs, values))) ** 2
        return sum(value**2 for value in values)

    def _number(self, item: BoundedNorm, owner: BoundedStatistic, members: Sequence[Mapping[Any, Any]]) -> int:
        taken = taken_rows(owner, members)
        match item.norm.of:
            case NormOf.ROWS:
                return len(taken)
            case NormOf.UNITS:
                return min(1, len(taken))
            case NormOf.SUM:
                return self._held_sum(owner, taken)

    @staticmethod
    def _held_sum(owner: BoundedStatistic, taken: Sequence[Mapping[Any, Any]]) -> int:
        one = replace(owner, statistic=replace(owner.statistic, encoding=owner.row_encoding))
        total = sum(step for step in map(encoder(one), taken) if step is not None)
        return max(-NORM_MAX, min(NORM_MAX, total))

    def _scaled(self, unit: Any) -> dict[Key, dict[str, list[Interval]]]:
        factors: dict[str, Interval] = {}
        weight = _factors(len(self.units[unit]), Fraction(1), WEIGHT_PARTS)
        norms = {item.norm.name: item for item in self.core.norms}
        contribution = self.core.contribution
        assert isinstance(contribution, NormedContribution)
        for s in self.core.statistics:
            name, factors[s.statistic.name] = s.statistic.norm, (1, 1)
            if name is not None:
                square = self.square(unit, norms[name])
                factors[s.statistic.name] = _factors(square, contribution.norm(name), s.parts)
        return {
            key: {
                s.statistic.name: [
                    _times(value, weight if s.statistic.kind is StatisticKind.WEIGHTS else factors[s.statistic.name])
                    for value in self._unscaled(s, members)
                ]
                for s in self.core.statistics
            }
            for key, members in self.units[unit].items()
        }

    def _unscaled(self, s: BoundedStatistic, members: Sequence[Mapping[Any, Any]]) -> list[int]:
        taken = taken_rows(s, members)
        if s.statistic.kind in (StatisticKind.UNITS, StatisticKind.WEIGHTS):
            return [1]
        if s.statistic.argument == "privacy units":
            return [min(1, len(taken))]
        if s.statistic.kind is StatisticKind.COUNT:
            return [sum(s.present is None or evaluate(s.present, row) is True for row in taken)]
        if s.statistic.kind is StatisticKind.SUM:
            return [self._held_sum(s, taken)]
        encoding = s.row_encoding
        assert encoding is not None
        one = replace(s, statistic=replace(s.statistic, encoding=encoding))
        if bernstein_vectors(s.statistic):
            rows = [row_vector(one, row) for row in taken]
            vectors = [row for row in rows if row is not None]
            count = s.statistic.coordinates - s.statistic.counts_nulls
            added = [sum(vector[place] for vector in vectors) for place in range(count)]
            return [*added, *([(len(rows) - len(vectors)) * s.row_units] if s.statistic.counts_nulls else [])]
        steps = list(map(encoder(one), taken))
        there = [step for step in steps if step is not None]
        if s.statistic.tree is not None:
            return list(on_nodes(s, there, 1))
        width = encoding.highest
        if s.statistic.degree == 1:
            vector = [sum(width - step for step in there), sum(there)]
        else:
            vector = [
                sum((width - step) ** 2 for step in there),
                sum(2 * step * (width - step) for step in there),
                sum(step**2 for step in there),
            ]
        if s.statistic.counts_nulls:
            vector.append((len(steps) - len(there)) * width**s.statistic.degree)
        return vector


def _factors(square: int, norm: Fraction, parts: int) -> Interval:
    """The least and the greatest factor that a unit may have: exact ones, but for a root of a double."""
    if square <= norm**2:
        return 2**parts, 2**parts
    most = (2**parts * norm) ** 2 / square
    exact = math.isqrt(math.floor(most))
    return math.isqrt(math.floor(most * (1 - Fraction(1, 2**46)))), exact


def _times(value: int, factors: Interval) -> Interval:
    ends = value * factors[0], value * factors[1]
    return min(ends), max(ends)


def check_normed_side(side: Side, references: Sequence[NormedReference], store: Store, seen: Seen) -> None:
    """Sums as the reference has them, within the statement's bounds, with the noise that is charged."""
    for core, statement, found, reference in zip(side.cores, side.statements, side.sides, references, strict=True):
        if not isinstance(core.contribution, NormedContribution):
            continue
        require(all(n % NORM_GRAIN == 0 for _, n in core.contribution.norms), "a norm between two grains")
        expected = reference.cells(store.units)
        bounds = {item.name: item.bound for item in statement.sums}
        for call in found.calls:
            zero = [(0, 0)] * call.measurement.statistic.summed
            for key, row in zip(found.keys, call.exact, strict=True):
                wanted = expected.get(key, {}).get(call.statistic, zero)
                for place, (value, (low, high)) in enumerate(zip(row, wanted, strict=True)):
                    kind = call.measurement.statistic.kind.value
                    require(low <= value <= high, f"{kind} {call.statistic} of {key}: expected {low}, got {value}")
                    most = bounds.get(f"{call.statistic}_{place}", UNITS_MAX * call.measurement.statistic.of_one_row[1])
                    require(abs(value) <= most, "a sum beyond the statement's bound")
            check_noise(call)
        if core.norms and shares_tables(core):
            _check_shared(core, statement, store)
        seen.cut += reference.scaled_down(store.units)
        if core.norms:
            _check_histogram(core, reference, store)


def _groups(store: Store, statement: Statement) -> dict[tuple[Any, ...], dict[str, int]]:
    """What a statement says of each group."""
    columns, sums, count = store.exact(statement).reveal()
    keys = list(zip(*columns.values(), strict=True)) if columns else [()] * count
    require(len(set(keys)) == count, "a group comes twice")
    return {key: {name: int(values[place]) for name, values in sums.items()} for place, key in enumerate(keys)}


def _check_shared(core: BoundedCore, statement: Statement, store: Store) -> None:
    """The statements that share tables share the same ones, whatever the norms, and say what the others say."""
    sums, histogram = lowering.lower(core, shared=True), norming.lower_norms(core, shared=True)
    nominal = norming.at_norms(core, {item.norm.name: NORM_GRAIN for item in core.norms})
    made = {one.tables for one in (sums.shared, histogram.shared, lowering.lower(nominal, shared=True).shared) if one}
    require(len(made) == 1, "tables that depend on norms")
    require(_groups(store, sums) == _groups(store, statement), "other sums from shared tables")
    alone = norming.lower_norms(core)
    require(_groups(store, histogram) == _groups(store, alone), "another histogram from shared tables")


def _histogram(core: BoundedCore, store: Store) -> dict[int, dict[str, int]]:
    """What the statement of the histograms says: numbers of units by bin and norm."""
    columns, sums, count = store.exact(norming.lower_norms(core)).reveal()
    names = [item.norm.name for item in core.norms]
    rows = [{name: int(sums[f"{name}_0"][place]) for name in names} for place in range(count)]
    bins = [int(value) for value in columns["bin"]]  # type: ignore[call-overload]
    require(len(set(bins)) == len(bins), "a bin comes twice")
    return dict(zip(bins, rows, strict=True))


def _check_histogram(core: BoundedCore, reference: NormedReference, store: Store) -> None:
    """Each unit is in one bin of each histogram, that of its norm; only on an edge in the one beside it."""
    found = _histogram(core, store)
    described = norming.norm_core(core)
    assert described is not None
    require({(place,) for place in found} <= set(described.keys.domain or ()), "a bin that is not there")
    for item in core.norms:
        exact: dict[int, int] = defaultdict(int)
        unsure = 0
        for unit in store.units & reference.units.keys():
            square = reference.square(unit, item)
            if square:
                place = bin_of(square)
                exact[place] += 1
                unsure += any(abs(square / edge(near) ** 2 - 1) < CLOSE for near in (place - 1, place, place + 1))
        got = {place: row[item.norm.name] for place, row in found.items() if row[item.norm.name]}
        moved = sum(abs(got.get(place, 0) - exact[place]) for place in {*got, *exact})
        require(sum(got.values()) == sum(exact.values()), f"bins of {item.norm.name} hold another number of units")
        require(moved <= 2 * unsure, f"bins of {item.norm.name}: expected {dict(exact)}, got {got}")


def _check_moved(core: BoundedCore, one: Store, two: Store) -> None:
    """One unit changes one entry of each histogram, by one."""
    left, right = _histogram(core, one), _histogram(core, two)
    for item in core.norms:
        name = item.norm.name
        changes = [
            abs(left.get(place, {}).get(name, 0) - right.get(place, {}).get(name, 0)) for place in {*left, *right}
        ]
        require(sum(changes) <= 1, f"histogram {name} changed by {sum(changes)}, declared 1")
