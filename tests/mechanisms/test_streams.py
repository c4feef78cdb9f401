"""Noise and synopsis of streams: the price is what is drawn, bounds hold, and least squares are least squares."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from mechanisms.interval import Floats
from mechanisms.samplers.threshold import NoisyThreshold
from mechanisms.streams.asking import Answer, Found, StreamState, answer_queries, not_compared
from mechanisms.streams.price import PIECES_MAX, StreamNoise
from mechanisms.streams.synopsis import Cells, Measured, Synopsis, labels_of, mask_of, runs_of
from privacy.aggregate import AggregateFunction
from privacy.exact import Exact
from privacy.policy import ColumnType
from privacy.statistic import CoreStatistics, Estimate, KeyColumn, Keys, Sensitivity, Statistic, StatisticKind
from privacy.unit import Neighbouring
from tests.mechanisms.support import SeededBits

CELLS = 60
ONE = Sensitivity(Neighbouring.ADD_REMOVE, 1, Fraction(1), Fraction(1), Fraction(1))


def core(count: int = CELLS) -> CoreStatistics:
    """Counts of so many public cells, of which a unit is in one."""
    keys = Keys((KeyColumn("k0", ColumnType.INTEGER),), tuple((number,) for number in range(count)), 1)
    statistic = Statistic(name="s0", kind=StatisticKind.UNITS, sensitivity=ONE)
    return CoreStatistics("c0", keys, (statistic,), (Estimate("a0", AggregateFunction.ROWS, "s0", integer=True),))


def exact(counts: Floats) -> Exact:
    """The sums of an engine."""
    return Exact(keys={"k0": list(range(len(counts)))}, sums={"s0_0": [int(one) for one in counts]}, rows=len(counts))


def span(low: int, high: int, count: int = CELLS) -> Cells:
    """A range of cells."""
    return mask_of([(low, high)], count)


def noise_of(epsilon: str, updates: int = 5) -> StreamNoise:
    """Noise for counts of which a unit is in one."""
    return StreamNoise.for_epsilon(Fraction(epsilon), change=Fraction(1), updates=updates)


def fresh(noise: StreamNoise, bits: SeededBits) -> StreamState:
    """A stream that was opened just now."""
    return StreamState(NoisyThreshold.drawn(noise.threshold_scale, bits), noise.updates, None)


def asked(
    noise: StreamNoise, state: StreamState, counts: Floats, queries: list[Cells], seed: int, *, version: str = "1"
) -> tuple[list[Answer], StreamState]:
    """Queries of a stream with its usual tolerance."""
    tolerance = noise.usual_tolerance(queries=1000, cells=len(counts))
    bits = SeededBits(seed)
    return answer_queries(
        core(len(counts)), noise, state, exact(counts), queries, tolerance=tolerance, version=version, bits=bits
    )


@pytest.mark.parametrize("updates", [1, 7, 64])
def test_the_events_are_the_noise_and_at_most_what_was_asked(updates: int) -> None:
    """Shows that epsilon is divided among cells, comparisons of both directions and every update, and no part twice."""
    noise = StreamNoise.for_epsilon(Fraction("0.7"), change=Fraction(3), updates=updates)
    gate, first, *others = noise.events()
    losses = [event.loss() for event in noise.events()]
    assert all(loss.pure is not None and loss.delta == 0 for loss in losses)
    total = sum((loss.pure or Fraction(0) for loss in losses), Fraction(0))
    assert Fraction("0.7") * (1 - Fraction(1, 10**9)) < total <= Fraction("0.7")
    assert (losses[0].rho, len(others)) == (None, updates)
    assert gate.parameters()["moves"] == "2/1"
    assert gate.parameters()["hits"] == f"{updates}/1"
    assert first.parameters()["scale"] != others[0].parameters()["scale"] or updates == 1
    assert others[0].loss().pure == Fraction(3) / noise.update_scale


@pytest.mark.parametrize("updates", [0, 65])
def test_a_number_of_updates_out_of_range_is_refused(updates: int) -> None:
    """Shows the limits, and that a price of nothing buys nothing."""
    with pytest.raises(ValueError, match="number of updates"):
        noise_of("1", updates)
    with pytest.raises(ValueError, match="epsilon"):
        noise_of("0")


@pytest.mark.parametrize("cells", [span(0, 60), span(7, 8), span(0, 59), mask_of([(0, 3), (30, 40), (59, 60)], CELLS)])
def test_pieces_part_the_cells(cells: Cells) -> None:
    """Shows that each cell is in exactly one piece, that the query is the first, and that there are at most sixteen."""
    labels = labels_of(cells)
    assert ((labels == 0) == cells).all()
    assert set(labels.tolist()) == set(range(int(labels.max()) + 1))
    assert labels.max() < PIECES_MAX
    assert (mask_of(runs_of(cells), CELLS) == cells).all()


def test_all_answers_that_pass_are_within_the_bound() -> None:
    """Shows Theorem 2 on a synopsis that is far off everywhere: of 100 sessions of 20 queries at most a share b has any
    answer that passed beyond the bound, at a b at which many have one; and that the bound is not far from the truth."""
    noise, beta, wrong, reached = noise_of("4", 60), 0.3, 0, 0.0
    tolerance = 30
    within = noise.within(tolerance=tolerance, beta=beta)
    off = np.full(2, 0.0)
    for seed in range(100):
        bits = SeededBits(seed)
        counts = np.array([1000.0, 1000.0])
        # A synopsis that says too little of one cell and too much of the other, by more and more.
        state = StreamState(NoisyThreshold.drawn(noise.threshold_scale, bits), 60, None)
        greatest = 0.0
        for step in range(20):
            off[:] = (step * 4, -step * 4)
            state.synopsis = Synopsis("1", counts - off, noise.cell_variance, noise.piece_variance)
            (answer,), state = answer_queries(
                core(2), noise, state, exact(counts), [span(step % 2, step % 2 + 1, 2)],
                tolerance=tolerance, version="1", bits=bits,
            )  # fmt: skip
            if answer.found is Found.SYNOPSIS:
                greatest = max(greatest, abs(answer.value - 1000))
        wrong += greatest > within
        reached = max(reached, greatest)
    assert wrong <= 100 * beta + 3 * math.sqrt(100 * beta * (1 - beta))
    assert reached > 0.6 * within


def test_noise_alone_uses_up_as_many_updates_as_stated() -> None:
    """Shows Theorem 3 as an equality: hits of a synopsis without error, by one comparison in each direction."""
    noise = noise_of("1", 64)
    tolerance = int(float(noise.query_scale))
    counts = np.array([500.0, 500.0])
    hits, queries = 0, 0
    for seed in range(120):
        bits = SeededBits(1000 + seed)
        state = fresh(noise, bits)
        for _ in range(5):
            state.synopsis = Synopsis("1", counts, noise.cell_variance, noise.piece_variance)
            (answer,), state = answer_queries(
                core(2), noise, state, exact(counts), [span(0, 1, 2)], tolerance=tolerance, version="1", bits=bits
            )
            hits += answer.found is Found.MEASURED
            queries += 1
    stated = noise.wrong_updates(tolerance=tolerance, queries=queries)
    # A hit ends the two comparisons of its query, so there are a few less.
    assert 0.6 * stated < hits <= stated + 4 * math.sqrt(stated)


def test_the_synopsis_is_the_least_squares_estimate() -> None:
    """Shows cells and standard errors against the normal equations, written out."""
    source = np.random.default_rng(3)
    synopsis = Synopsis("1", source.normal(50, 20, CELLS), 9.0, 400.0)
    rows, told, weights = [np.eye(CELLS)], [synopsis.base], [np.full(CELLS, 1 / 9.0)]
    for low, high in ((3, 40), (20, 21), (0, 60)):
        labels = labels_of(span(low, high))
        pieces = (np.arange(labels.max() + 1)[:, None] == labels).astype(float)
        values = tuple(int(value) for value in source.normal(600, 20, len(pieces)))
        synopsis = synopsis.updated(Measured(((low, high),), values), version="1", size=1)
        rows.append(pieces)
        told.append(np.array(values, dtype=float))
        weights.append(np.full(len(pieces), 1 / 400.0))
    matrix, weight = np.concatenate(rows), np.concatenate(weights)
    covariance = np.linalg.inv((matrix.T * weight) @ matrix)
    cells = covariance @ ((matrix.T * weight) @ np.concatenate(told))
    for query in (span(3, 40), span(0, 60), span(11, 12)):
        assert synopsis.total(query) == pytest.approx(cells[query].sum())
        error = synopsis.standard_error(query)
        assert error == pytest.approx(math.sqrt(query @ covariance @ query))
    again = Synopsis.from_plain(synopsis.to_plain())
    assert again.total(span(3, 40)) == pytest.approx(synopsis.total(span(3, 40)))


def test_cells_of_nobody_are_not_made_somebodys() -> None:
    """Shows that sums over empty cells lean nowhere: error E27, a histogram clipped at zero, leans upwards."""
    noise = noise_of("1")
    sums, clipped = [], []
    for seed in range(60):
        _, state = asked(noise, fresh(noise, SeededBits(seed)), np.zeros(CELLS), [span(0, 60)], seed)
        assert state.synopsis is not None
        sums.append(not_compared(state.synopsis, span(0, 60)).value)
        clipped.append(np.maximum(state.synopsis.base, 0).sum())
    error = math.sqrt(noise.cell_variance * CELLS / 60)
    assert abs(np.mean(sums)) < 4 * error
    assert np.mean(clipped) > 8 * error


def test_data_that_moved_are_found_and_followed() -> None:
    """Shows that a synopsis of an older version is corrected in proportion where queries find it off, that no standard
    error is stated then, and that after the last update answers say that nothing was compared."""
    noise = noise_of("20", 2)
    counts = np.array([100.0] * 30 + [10_000.0] * 30)
    (first,), state = asked(noise, fresh(noise, SeededBits(1)), counts, [span(0, 60)], 2)
    assert (first.found, state.left) == (Found.SYNOPSIS, 2)
    (second,), state = asked(noise, state, counts * 2, [span(30, 60)], 3, version="2")
    assert second.found is Found.MEASURED
    assert abs(second.value - 600_000) < 100
    assert state.synopsis is not None
    assert state.synopsis.total(span(40, 41)) == pytest.approx(20_000, rel=0.02)
    assert state.synopsis.standard_error(span(40, 41)) is None
    (third, fourth), state = asked(noise, state, counts * 4, [span(30, 60), span(30, 60)], 4, version="3")
    assert (third.found, fourth.found) == (Found.MEASURED, Found.NOT_COMPARED)
    assert state.left == 0
    assert fourth.value == pytest.approx(1_200_000, rel=0.01)
    assert "noise" not in repr(state)


def test_how_far_the_data_moved_is_the_most_that_was_found() -> None:
    """Shows that a second update of a newer version raises what cells are taken to have changed, or leaves it."""
    before = Synopsis("1", np.array([10.0, 20.0]), 1.0, 1.0)
    moved = before.updated(Measured(((0, 1),), (50, 30)), version="2", size=40)
    assert moved.drift == 40**2 / 10
    more = moved.updated(Measured(((1, 2),), (90, 50)), version="2", size=70)
    assert more.drift == 70**2 / 20
    assert moved.updated(Measured(((1, 2),), (31, 50)), version="2", size=1).drift == moved.drift
