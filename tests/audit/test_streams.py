"""Streams on neighbours: what one unit does to everything of a stream that meets noise, and wrong versions refuted."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mechanisms import gateway
from mechanisms.measurement import Integers, Measurement, Perturbed
from mechanisms.measurements.laplace import LaplaceMeasurement
from mechanisms.randomness import BitSource
from mechanisms.samplers.threshold import NoisyThreshold
from mechanisms.sparse_vector import Hit, SparseRun
from mechanisms.streams import asking
from mechanisms.streams.asking import StreamState, answer_queries, summed_cells
from mechanisms.streams.price import StreamNoise
from privacy.bounds import AskedContribution
from privacy.events import LaplaceEvent
from sql_rewrite.bound import BoundedCore, bound
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower
from tests.audit.generate import Scene
from tests.audit.harness import Store
from tests.audit.test_choices import world
from tests.audit.violation import Violation, require
from tests.mechanisms.support import SeededBits

QUERIES = (
    "SELECT k, COUNT(*) FROM people GROUP BY k",
    "SELECT k, COUNT(*) FROM visits GROUP BY k",
    "SELECT k, COUNT(x) FROM visits WHERE y > 0 GROUP BY k",
    "SELECT k, SUM(x) FROM visits GROUP BY k",
    "SELECT people.k, COUNT(*) FROM visits JOIN people USING (person_id) GROUP BY people.k",
)
ASKED = ((True, True, False), (True, False, False), (True, True, True))
UPDATES = 2

Met = tuple[list[int], list[tuple[LaplaceMeasurement, Integers]], StreamNoise]
"""Distances that were compared, and vectors that met noise."""


def _noise(core: BoundedCore) -> StreamNoise:
    statistic = summed_cells(core.described)
    require(statistic is not None, "no cells")
    assert statistic is not None
    return StreamNoise.for_epsilon(Fraction(1), change=statistic.sensitivity.l1, updates=UPDATES)


def met(scene_: Scene, core: BoundedCore, units: frozenset[Any], *, seed: int) -> Met:
    """What meets noise of a stream whose second query is a hit, with the outcomes fixed: read at the gateway."""
    noise, distances, vectors = _noise(core), list[int](), list[tuple[LaplaceMeasurement, Integers]]()

    def compare(run: SparseRun, given: Integers, bits: BitSource) -> tuple[Hit, ...]:
        distances.append(int(given[0]))
        if len(distances) != 3:
            return ()
        run.left -= 1
        return (Hit(0, 0),)

    def perturb(measurement: Measurement, matrix: Integers, bits: BitSource) -> Perturbed:
        assert isinstance(measurement, LaplaceMeasurement)
        vectors.append((measurement, matrix))
        return Perturbed(values=np.full_like(matrix, 7))

    with closing(Store(scene_, units, seed=seed)) as store, pytest.MonkeyPatch.context() as patch:
        patch.setattr(gateway, "compare", compare)
        patch.setattr(gateway, "perturb", perturb)
        bits = SeededBits(1)
        state = StreamState(NoisyThreshold.drawn(noise.threshold_scale, bits), UPDATES, None)
        exact = store.exact(lower(core))
        asked = [np.array(cells) for cells in ASKED]
        answer_queries(core.described, noise, state, exact, asked, tolerance=5, version="1", bits=bits)
    return distances, vectors, noise


def audited(scene_: Scene, sql: str, bounds: AskedContribution | None = None) -> Fraction:
    """Compares each neighbour without one unit. How much of the change that is charged was seen."""
    (core,) = bound(lift(sql, scene_.dataset.bounded_by(bounds)))
    every, greatest = frozenset(scene_.units), Fraction(0)
    ways = set[bool]()
    for unit in scene_.units:
        more, vectors, noise = met(scene_, core, every, seed=1)
        less, others, _ = met(scene_, core, every - {unit}, seed=2)
        gate, first, *updates = noise.events()
        require(len(more) == len(less) == 5, "other comparisons")
        for one, other in zip(more, less, strict=True):
            require(abs(one - other) <= gate.sensitivity, "a distance changed by more")  # type: ignore[union-attr]
            greatest = max(greatest, abs(one - other) / noise.change)
            ways |= {one > other} if one != other else set()
        require(len(vectors) == len(others) == 2, "other measurements")
        for (measurement, one), (_, other), event in zip(vectors, others, (first, updates[0]), strict=True):
            moved = int(np.abs(one - other).sum())
            require(isinstance(event, LaplaceEvent), "not Laplace")
            assert isinstance(event, LaplaceEvent)
            require(moved <= event.l1_sensitivity, f"a vector changed by {moved}")
            require(measurement.event() == event, "noise that was not charged")
        require(len(updates) == UPDATES, "updates that were not charged")
    require(gate.moves == 2 or len(ways) < 2, "distances moved in both directions")  # type: ignore[union-attr]
    return greatest


@pytest.mark.sparse(3)
@pytest.mark.parametrize("sql", QUERIES)
def test_one_unit_moves_what_meets_noise_by_no_more_than_is_charged(sql: str) -> None:
    """Shows for cells, comparisons and pieces that their changes are within the events, with units of 0 to 50 rows, and
    that the bound is nearly reached."""
    seen = audited(world(), sql)
    assert Fraction(1, 2) <= seen <= 1 or "SUM" in sql


def test_units_that_are_scaled_move_it_by_no_more_than_is_charged() -> None:
    """Shows the same where a unit counts in as many cells as it has rows, and units beyond that in parts of a row."""
    bounds = AskedContribution(rows_per_unit=4, groups_per_unit=4, rows_per_unit_and_group=4)
    assert Fraction(9, 10) <= audited(world(), QUERIES[1], bounds) <= 1


def largest_cell(patch: pytest.MonkeyPatch) -> None:
    """The change of one cell stands for that of all."""
    genuine = asking.summed_cells

    def planted(core: Any) -> Any:
        found = genuine(core)
        assert found is not None
        return replace(found, sensitivity=replace(found.sensitivity, l1=found.sensitivity.linf, l2_squared=found.sensitivity.linf**2))  # fmt: skip # noqa: E501

    patch.setattr("tests.audit.test_streams.summed_cells", planted)
    patch.setattr(asking, "summed_cells", planted)


def one_direction(patch: pytest.MonkeyPatch) -> None:
    """Comparisons are charged as if a unit moved all of them one way."""
    genuine = StreamNoise.events

    def events(noise: StreamNoise) -> tuple[Any, ...]:
        gate, *others = genuine(noise)
        return replace(gate, moves=Fraction(1)), *others  # type: ignore[type-var,call-arg]

    patch.setattr(StreamNoise, "events", events)


def one_update(patch: pytest.MonkeyPatch) -> None:
    """Every update has the noise of all of them together."""
    genuine = StreamNoise.pieces

    def pieces(noise: StreamNoise, core: str, statistic: Any) -> LaplaceMeasurement:
        found = genuine(noise, core, statistic)
        return replace(found, scale=found.scale / UPDATES)

    patch.setattr(StreamNoise, "pieces", pieces)


def overlapping(patch: pytest.MonkeyPatch) -> None:
    """The pieces of an update are the query and everything."""
    genuine = asking.integers

    def planted(values: list[int]) -> Integers:
        return genuine(values if len(values) == 1 else [values[0], sum(values)])

    patch.setattr(asking, "integers", planted)


@pytest.mark.sparse(2)
@pytest.mark.parametrize(
    ("plant", "sql", "says"),
    [
        (largest_cell, QUERIES[1], "changed by"),
        (one_direction, QUERIES[1], "both directions"),
        (one_update, QUERIES[0], "not charged"),
        (overlapping, QUERIES[4], "a vector changed by"),
    ],
)
def test_planted_bugs_are_seen(
    plant: Callable[[pytest.MonkeyPatch], None], sql: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that the change of one cell, one direction, noise of one update and overlapping pieces are caught."""
    plant(monkeypatch)
    with pytest.raises(Violation, match=says):
        audited(world(), sql)


def loss_of(answers: Callable[[int, int], bool], *, runs: int) -> float:
    """A lower bound on the loss that an outcome shows between two neighbouring counts, with luck of 4 deviations."""
    hits = [sum(answers(count, seed) for seed in range(runs)) for count in (50, 51)]
    low, high = ((one + sign * 4 * (one + 1) ** 0.5) / runs for one, sign in zip(sorted(hits), (1, -1), strict=True))
    return float(np.log(max(high, 1e-9) / low))


def test_what_a_stream_says_shows_no_more_than_it_charges(monkeypatch: pytest.MonkeyPatch) -> None:
    """A black box: how often the first of a hundred queries is measured, between neighbours. A stream that compares
    without noise, which some print, shows far more."""
    from tests.mechanisms.test_streams import core, exact, fresh, noise_of, span

    noise = noise_of("1", 1)

    def answers(count: int, seed: int) -> bool:
        bits = SeededBits(seed)
        state = fresh(noise, bits)
        state.synopsis = asking.Synopsis("1", np.array([0.0, 0.0]), noise.cell_variance, noise.piece_variance)
        said, _ = answer_queries(
            core(2), noise, state, exact(np.array([count, 0])), [span(0, 1, 2)], tolerance=50, version="1", bits=bits
        )
        return said[0].found is asking.Found.MEASURED

    assert loss_of(answers, runs=700) <= 1
    monkeypatch.setattr(asking, "_is_off", lambda distance, run, tolerance, bits: distance > tolerance)
    assert loss_of(answers, runs=100) > 1
