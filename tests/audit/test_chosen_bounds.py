"""Value bounds that a question chooses: whatever they are, one unit changes the sums by no more than is declared.

The scenes are those of the neighbour audit without declared value bounds. Bounds are drawn from the bins' edges, as a
noisy histogram might choose them: far from the values, between them, around one of them. Units are held to counts, or
scaled to norms. Sums are compared with references that clip for themselves.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import pytest

from privacy.bounds import ValueBounds
from privacy.norms import NormPower
from privacy.policy import ColumnType, Dataset
from privacy.refusal import Refused
from privacy.value_grid import GRIDDED, grid_of
from sql_rewrite import automatic_bounds
from sql_rewrite.automatic_bounds import Place, nominal_bounds, unbounded_columns
from sql_rewrite.bound import BoundedCore, bound_core
from sql_rewrite.contribution import Contribution, NormedContribution
from sql_rewrite.plan import Core, Plan
from tests.audit.generate import Query, Scene, make_query, make_scene, owner_of
from tests.audit.harness import Side, Store, Tally, check_pair, check_side, neighbours_of, run
from tests.audit.interpreter import contributions
from tests.audit.normed import NormedReference, Seen, at_some_norms, automatic, check_normed_side
from tests.audit.planted import BUGS
from tests.audit.violation import Violation

PARTS = 8


def opened(scene: Scene) -> Scene:
    """The scene where no column has value bounds, and questions choose them."""
    tables = tuple(
        replace(
            table,
            columns=tuple(
                replace(column, bounds=None) if table.protected and column.type in GRIDDED else column
                for column in table.columns
            ),
        )
        for table in scene.dataset.tables
    )
    limits = replace(scene.dataset.limits, automatic_bounds=True)
    return replace(scene, dataset=replace(scene.dataset, tables=tables, limits=limits))


def _type(dataset: Dataset, place: Place) -> ColumnType:
    table = dataset.table(place[0])
    assert table is not None
    column = table.column(place[1])
    assert column is not None
    return column.type


def chosen(plan: Plan, power: NormPower, source: random.Random, counted: Counter[str]) -> Sequence[BoundedCore]:
    """The cores, bound with value bounds that a question might have chosen. Errors: Refused."""
    cores = []
    for core in plan.cores:
        places = unbounded_columns(core, plan.dataset, power=power)
        ends = {}
        for place in places:
            grid = grid_of(_type(plan.dataset, place))
            middle = len(grid.lows) // 2
            low = source.choice([0, middle, source.randrange(len(grid.lows)), source.randrange(middle, middle + 30)])
            last = len(grid.highs) - 1
            high = source.choice([low, last, source.randint(low, last), min(low + 9, last)])
            ends[place] = ValueBounds(grid.lows[low], grid.highs[high])
        if places:
            counted["cores"] += 1
            cores.append(automatic_bounds.bound_with(core, plan.dataset, ends, power=power)[0])
        else:
            cores.append(bound_core(core, plan.dataset, power=power))
    return cores


def check(
    scene: Scene, stores: Sequence[Store], query: Query, power: NormPower, seed: int, counted: Counter[str]
) -> None:
    """One query on data (first) and on neighbours, with the same bounds and norms. Errors: Violation."""

    def of(store: Store) -> Side:
        return run(
            store, scene, query, gaussian=power is NormPower.L2, epsilon=Fraction(1), power=power,
            settled=partial(at_some_norms, seed=seed),
            bound=lambda plan, power: chosen(plan, power, random.Random(seed), counted),
        )  # fmt: skip

    before = counted["cores"]
    try:
        base = of(stores[0])
    except Refused:
        counted["refused"] += 1
        return
    if counted["cores"] == before:
        return
    owners = {table.name: owner_of(scene, table.name) for table in scene.dataset.tables}
    for store in stores[1:]:
        other = of(store)
        check_pair(base, other, Tally())
        for side, at in ((base, stores[0]), (other, store)):
            if all(isinstance(core.contribution, Contribution) for core in side.cores):
                parts = [contributions(core, scene.rows, owners, at.hashes(core)) for core in side.cores]
                check_side(side, parts, at.units)
                counted["counted"] += 1
            elif all(isinstance(core.contribution, NormedContribution) for core in side.cores):
                references = [NormedReference(core, scene.rows, owners) for core in side.cores]
                check_normed_side(side, references, at, Seen())
                counted["scaled"] += 1


def audit(seed: int, counted: Counter[str], *, queries: int = 10) -> None:
    """Many triples over one scene, by counts or by norms. Errors: Violation."""
    declared = make_scene(seed)
    scene = opened(declared)
    scene = automatic(scene) if seed % 2 else scene
    with ExitStack() as stack:
        stores = [stack.enter_context(closing(Store(scene, frozenset(scene.units), seed=seed)))]
        sides = neighbours_of(scene, seed, 2)
        stores += [stack.enter_context(closing(Store(scene, units, seed=seed + 1))) for units in sides]
        for number in range(queries):
            query = make_query(declared, seed * 1_000 + number)
            for power in NormPower:
                try:
                    check(scene, stores, query, power, seed * 1_000 + number, counted)
                except Violation as violation:
                    said = f"{violation}\n{query.sql} {dict(query.parameters)}, {power}, scene {seed}"
                    raise Violation(said) from None


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.sparse(PARTS)
@pytest.mark.parametrize(
    "part", [*range(PARTS // 2), *(pytest.param(part, marks=pytest.mark.nightly) for part in range(PARTS // 2, PARTS))]
)
def test_one_unit_changes_no_more_than_is_declared_within_chosen_bounds(part: int) -> None:
    """Random triples through lift, bound_with, at_norms, lower, calibrate, engine and release, compared exactly."""
    counted: Counter[str] = Counter()
    for seed in range(2 * part, 2 * part + 2):
        audit(seed, counted)
    assert counted["counted"] > 3
    assert counted["scaled"] > 3


def sensitivity_of_nominal_bounds(patch: pytest.MonkeyPatch) -> None:
    """The noise is that of the bounds that a core has before any are chosen."""
    genuine = automatic_bounds.bound_with

    def planted(core: Core, dataset: Dataset, ends: Mapping[Place, ValueBounds], *, power: NormPower) -> Any:
        made, used = genuine(core, dataset, ends, power=power)
        narrow = {place: nominal_bounds(_type(dataset, place)) for place in ends}
        nominal, _ = genuine(core, dataset, narrow, power=power)
        statistics = tuple(
            replace(one, statistic=replace(one.statistic, sensitivity=other.statistic.sensitivity))
            for one, other in zip(made.statistics, nominal.statistics, strict=True)
        )
        described = replace(made.described, statistics=tuple(one.statistic for one in statistics))
        return replace(made, statistics=statistics, described=described), used

    patch.setattr(automatic_bounds, "bound_with", planted)


values_not_clipped = next(bug.plant for bug in BUGS if bug.name == "values_not_clipped")


@pytest.mark.parametrize("plant", [sensitivity_of_nominal_bounds, values_not_clipped], ids=lambda plant: plant.__name__)
def test_planted_bugs_are_caught(plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """One deliberate bug per rule: the audit finds it and says why."""
    plant(monkeypatch)
    with pytest.raises(Violation, match=r"changed by|failed with|raised|expected"):
        every_other_scene()


def every_other_scene() -> None:
    """Scenes whose units are held to counts. Errors: Violation."""
    for seed in range(0, 12, 2):
        audit(seed, Counter())
