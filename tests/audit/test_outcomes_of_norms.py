"""Outcomes of questions that choose norms and value bounds: no statement of theirs fails on any data, at any number.

A question has histograms of values, histograms of norms, and sums at whatever bounds and norms were chosen. Only the
statements at nominal ones are planned on the empty twin, so here all of them are, over the whole grid. Worlds differ in
one person, who has as many visits as a snapshot keeps, with the greatest values, the least, both in turn, or only NULL.
20,000 expressions at night, and 500 of them in every whole run; more with NOISEGATE_FOLDS.
"""

from __future__ import annotations

import itertools
import os
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from fractions import Fraction
from typing import Any

import duckdb
import pytest

from engines import private as private_engine
from engines.encoding import encode_statement
from engines.frames import Frame, FrameFault
from engines.handlers.connection import lock_down, private_settings
from engines.handlers.plan import open_twin
from engines.handlers.private import run_statement
from engines.twin import twin_of
from privacy.bounds import AutomaticContribution, ValueBounds
from privacy.norms import BINS, BINS_PER_OCTAVE, NORM_GRAIN, NORM_MAX, NormPower
from privacy.policy import Dataset
from privacy.refusal import Refused
from privacy.statement import Statement
from server.journey.value_stage import at_nominal_bounds, value_stage
from sql_rewrite.automatic_bounds import Place, bound_with
from sql_rewrite.bound import BoundedCore, bound
from sql_rewrite.contribution import NormedContribution
from sql_rewrite.cost import work_of
from sql_rewrite.dialects.duckdb import DUCKDB
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower
from sql_rewrite.norms import at_norms, lower_norms, shares_tables
from tests.audit.folds import CROWDS, DATASET, make_normed_question, write_crowded_world, write_world

EXPRESSIONS = int(os.environ.get("NOISEGATE_FOLDS", "20000"))
PARTS = 10
SAMPLE = EXPRESSIONS // 40
ROWS_STORED = 1_000
EACH_BASE = 4
"""One statement in so many runs in the base world too."""

EDGES = [Fraction(2 ** (place // BINS_PER_OCTAVE)) for place in range(0, BINS, BINS_PER_OCTAVE)]
NORMS = [NORM_GRAIN, Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(2**20 + 1), Fraction(2**31), *EDGES]

World = duckdb.DuckDBPyConnection

AUTO: Dataset = replace(
    DATASET,
    tables=tuple(
        replace(table, key=None, contribution=AutomaticContribution(), rows_stored_per_unit=ROWS_STORED)
        if table.name == "visits"
        else table
        for table in DATASET.tables
    ),
    limits=replace(DATASET.limits, automatic_bounds=True),
)
"""The declarations where questions choose all bounds: people have one row, visits many."""


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, World]]:
    """The base world, and one for each crowd, as a private worker opens them."""
    folder = tmp_path_factory.mktemp("crowds")
    write_world(folder / "base.duckdb", None)
    for crowd in CROWDS:
        write_crowded_world(folder / f"{crowd}.duckdb", crowd, visits=ROWS_STORED)
    with ExitStack() as stack:
        opened: dict[str, World] = {}
        for name in ("base", *CROWDS):
            config = private_settings(threads=1, memory_limit_mb=512)
            path = str(folder / f"{name}.duckdb")
            opened[name] = stack.enter_context(duckdb.connect(path, read_only=True, config=dict(config)))
            lock_down(opened[name], local_files=True)
        yield opened


@pytest.fixture(scope="module")
def twin() -> Iterator[World]:
    with closing(open_twin(twin_of(AUTO).tables, AUTO.name)) as opened:
        yield opened.stored


def cores_of(sql: str, power: NormPower, source: random.Random) -> tuple[list[Statement], list[BoundedCore]]:
    """Histograms of values, and the cores at nominal bounds, at chosen ones and at the widest. Errors: Refused."""
    plan = lift(sql, AUTO, {})
    try:
        return [], list(bound(plan, power=power))
    except Refused:
        stage = value_stage(plan, power, DUCKDB)
        if stage is None:
            raise
    cores = list(bound(at_nominal_bounds(plan, stage), power=power))
    for core in plan.cores:
        places = stage.places.get(core.name, ())
        for ends in _ends(stage.histograms, source):
            if places:
                made, _ = bound_with(core, AUTO, {place: ends[place] for place in places}, power=power)
                cores.append(made)
    return list(stage.statements), cores


def _ends(histograms: Sequence[Any], source: random.Random) -> Iterator[Mapping[Place, ValueBounds]]:
    """The widest bounds, and some that bins have."""
    grids = {(one.table, one.column.name): one.grid for one in histograms}
    yield {place: ValueBounds(grid.lows[0], grid.highs[-1]) for place, grid in grids.items()}
    chosen = {}
    for place, grid in grids.items():
        low = source.randrange(len(grid.lows))
        chosen[place] = ValueBounds(grid.lows[low], grid.highs[source.randrange(low, len(grid.highs))])
    yield chosen


def settled(core: BoundedCore, source: random.Random, times: int) -> Iterator[BoundedCore]:
    """The core at the least and greatest norms, and at random ones, each norm its own."""
    names = [item.norm.name for item in core.norms]
    for norm in (NORM_GRAIN, Fraction(NORM_MAX)):
        yield at_norms(core, dict.fromkeys(names, norm))
    for _ in range(times):
        yield at_norms(core, {name: source.choice(NORMS) for name in names})


def statements_of(sql: str, seed: int) -> list[Statement]:
    """All statements that a question may run, by both powers. Errors: Refused."""
    source = random.Random(seed)
    found: list[Statement] = []
    for power in NormPower:
        first, cores = cores_of(sql, power, source)
        found += first
        for core in cores:
            if isinstance(core.contribution, NormedContribution) and core.norms:
                # With the tables that they share, as most questions run, and without them.
                shared = shares_tables(core) and seed % 2 == 0
                found.append(lower_norms(core, shared=shared))
                found += [lower(end, shared=shared) for end in settled(core, source, 1)]
            else:
                found.append(lower(core))
    return list(dict.fromkeys(found))


def outcome(world: World, statement: Statement) -> str:
    """What anybody could see of a run without noise: whether it is answered, within the bounds of its sums."""
    encoded = encode_statement(statement)
    assert encoded is not None
    try:
        with closing(world.cursor()) as cursor:
            header, buffers = run_statement(cursor, encoded)
        private_engine._parse(Frame(header, tuple(memoryview(buffer) for buffer in buffers)), statement)
    except (duckdb.Error, FrameFault, ValueError) as error:
        return type(error).__name__
    return "answered"


def search(part: int, expressions: float, worlds: Mapping[str, World]) -> Counter[str]:
    """Asks so many expressions in the base world and in one crowd each, and counts what was asked of what."""
    counted: Counter[str] = Counter()
    for seed in itertools.count(part * 1_000_000):
        if counted["expressions"] >= expressions:
            return counted
        question = make_normed_question(seed)
        try:
            statements = statements_of(question.sql, seed)
        except Refused:
            counted["refused"] += 1
            continue
        counted["asked"] += 1
        counted["expressions"] += question.expressions
        crowd = list(CROWDS)[seed % len(CROWDS)]
        for place, statement in enumerate(statements):
            # What is answered for that person is nearly always answered without: the other way round is rarer.
            looked = ("base", crowd) if (seed + place) % EACH_BASE == 0 else (crowd,)
            found = {outcome(worlds[name], statement) for name in looked}
            assert found == {"answered"}, (seed, question.sql, statement.sql, found)
            counted["histograms of values"] += '"least"' in statement.sql
            counted["shared tables"] += statement.shared is not None
            counted["statements"] += 1
    raise AssertionError


@pytest.mark.slow
def test_a_sample_of_outcomes_does_not_depend_on_one_person(worlds: Mapping[str, World]) -> None:
    """The first questions of the search."""
    counted = search(0, SAMPLE, worlds)
    assert counted["refused"] <= counted["asked"], counted
    assert counted["histograms of values"] > 0, counted
    assert counted["shared tables"] > 0, counted


@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(PARTS))
def test_outcomes_do_not_depend_on_one_person(part: int, worlds: Mapping[str, World]) -> None:
    """The same outcome in both worlds, and no statement raises or leaves the bounds of its sums."""
    counted = search(part, EXPRESSIONS / PARTS, worlds)
    print(dict(counted))
    assert counted["refused"] <= counted["asked"], counted


PLANNED = [
    "SELECT v.k, COUNT(*) AS n, SUM(v.n) AS s, AVG(v.m) AS a, COUNT(DISTINCT v.person_id) FROM visits v GROUP BY 1",
    "SELECT v.k, v.j, VARIANCE(v.m) AS v, SUM(v.m) AS s, SUM(-v.n) FILTER (WHERE v.f) AS t FROM visits v GROUP BY 1, 2",
    "SELECT COUNT(*) AS n, SUM(v.n) AS s, STDDEV(v.y) AS d, COUNT(v.x) AS c FROM visits v",
    "SELECT p.k, SUM(v.y) AS s, AVG(v.y) AS a FROM visits v JOIN people p ON v.person_id = p.person_id GROUP BY 1",
    "SELECT v.s, COUNT(*) AS n, SUM(v.n) AS s, AVG(v.m) AS a FROM visits v GROUP BY 1",
    "SELECT v.k, AVG(v.x) AS a, SUM(v.x) AS s FROM visits v GROUP BY 1",
]


def plan(world: World, statement: Statement) -> str:
    """The plan without its numbers: names, operators and types are what is left."""
    with closing(world.cursor()) as cursor:
        rows = cursor.execute(f"EXPLAIN (FORMAT json) {statement.sql}", list(statement.parameters)).fetchall()
    text = re.sub(r'"Estimated Cardinality": "\d+"', "", str(rows[0][1]))
    return re.sub(r"(?<![\w#])-?\d+(\.\d+)?(e[+-]?\d+)?(?!\w)", "0", text)


@pytest.mark.slow
@pytest.mark.sparse(6)
@pytest.mark.parametrize("power", list(NormPower), ids=lambda power: power.value)
@pytest.mark.parametrize("sql", PLANNED)
def test_norms_change_the_numbers_of_a_plan_alone(sql: str, power: NormPower, twin: World) -> None:
    """Only statements at nominal norms are planned before the charge: at every other norm they are planned as well.

    Along the grid of one norm there is no plan, but for its numbers, that is not that of the least, the nominal or the
    greatest norm: they differ in which sums are held in 64 bits and which in 128.
    """
    for core in cores_of(sql, power, random.Random(1))[1]:
        names = [item.norm.name for item in core.norms]
        nominal = dict.fromkeys(names, Fraction(1))
        for name in names:
            plans = {norm: plan(twin, lower(at_norms(core, {**nominal, name: norm}))) for norm in NORMS}
            assert set(plans.values()) == {plans[norm] for norm in (NORM_GRAIN, Fraction(1), NORMS[-1])}
        for corner in itertools.product((NORM_GRAIN, NORMS[-1]), repeat=len(names)):
            assert plan(twin, lower(at_norms(core, dict(zip(names, corner, strict=True)))))
        assert plan(twin, lower(core)) == plan(twin, lower(at_norms(core, nominal)))


def test_plans_are_compared_by_their_types(twin: World) -> None:
    """The comparison above sees more than names: sums of 128 bits have another plan than those of 64."""
    (core,) = cores_of(PLANNED[1], NormPower.L2, random.Random(1))[1]
    least, greatest = (
        lower(at_norms(core, dict.fromkeys([item.norm.name for item in core.norms], norm)))
        for norm in (NORMS[0], NORMS[-1])
    )
    assert plan(twin, least) != plan(twin, greatest)


@pytest.mark.slow
def test_the_tick_does_not_depend_on_what_is_chosen() -> None:
    """The work of a statement is the same at every norm and within all value bounds: moments are set before these."""
    compared = 0
    for seed in range(20):
        source = random.Random(seed)
        for power in NormPower:
            try:
                _, cores = cores_of(make_normed_question(seed).sql, power, source)
            except Refused:
                continue
            works: dict[str, set[float]] = defaultdict(set)
            for core in cores:
                ends = settled(core, source, 1) if core.norms else iter([core])
                works[core.described.name] |= {work_of([one]).unit_nanoseconds for one in (core, *ends)}
                compared += 1
            assert {len(found) for found in works.values()} == {1}, seed
    assert compared > 40
