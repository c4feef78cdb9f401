"""Quantiles by name on neighbouring data: one person changes one row, or one answer of a block, and bugs are caught."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from engines.handlers import private
from mechanisms import release as releasing
from mechanisms import smooth_sensitivity as smooth
from mechanisms.calibrate import Price, calibrate
from mechanisms.families import NoiseFamily
from mechanisms.measurement import Measurement
from mechanisms.measurements import drawn_ranks
from mechanisms.measurements.named_ranks import LaplaceBlocks, LaplaceSmooth
from mechanisms.randomness import BitSource
from mechanisms.smooth_sensitivity import SmoothStudent
from privacy.bounds import ContributionBound
from privacy.rank_tree import BLOCKS, QuantileMechanism
from sql_rewrite import ranks
from sql_rewrite.bound import bound
from sql_rewrite.dialects.duckdb import DUCKDB, DuckDB
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower
from sql_rewrite.named_ranks import by_mechanism
from sql_rewrite.relations import Blocked, SharedRows
from tests.audit.generate import Scene
from tests.audit.harness import Store
from tests.audit.recorder import FixedBits, recorded
from tests.audit.smallest import scene
from tests.audit.violation import Violation, require
from tests.mechanisms.support import SeededBits

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "local_sensitivity.json").read_text())
EPSILON = Fraction(2)
PEOPLE: list[dict[str, Any]] = [{"y": float(value), "k": "ab"[value % 2]} for value in range(12)]


def seen(world: Scene, sql: str, method: QuantileMechanism, without: int | None) -> tuple[Measurement, list[Any]]:
    """The measurement of the quantiles, and the true sums that it got, by group."""
    (core,) = bound(by_mechanism(lift(sql, world.dataset, {}), method))
    calibration = calibrate([core.described], Price(NoiseFamily.LAPLACE, EPSILON, Fraction(0)))
    with closing(Store(world, frozenset(world.units) - {without}, seed=1)) as store:
        exact = store.exact(lower(core))
    with recorded(noise=True) as recorder:
        releasing.release(core.described, calibration, exact, bits=FixedBits(0), confidence=Fraction(95, 100))
    (call,) = [call for call in recorder.calls if call.measurement.statistic.drawn is not None]
    return call.measurement, [list(row) for row in call.exact]


def _scales(measurement: LaplaceSmooth, exact: list[Any]) -> list[float]:
    """The sensitivities that noise was scaled to: the mechanism draws again, and they are written down."""
    found: list[float] = []
    statistic = measurement.statistic
    assert statistic.tree is not None

    def noise(self: SmoothStudent, sensitivity: float, bits: BitSource) -> int:
        found.append(sensitivity)
        return 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SmoothStudent, "noise", noise)
        measurement.drawn(np.array(exact)[:, statistic.tree.nodes :], FixedBits(0))
    return found


def moved_by(measurement: LaplaceBlocks, one: Any, two: Any, *, draw: drawn_ranks.Draw) -> Fraction:
    """The range within which the law of a draw changes between two lists of all blocks' answers by place."""
    half = draw.blocks / 2
    below = [np.cumsum(side) for side in (one, two)]
    away = [np.maximum(np.maximum(np.r_[0, c[:-1]] - half, half - c), 0) for c in below]
    scores = 4 * (away[0] - away[1])
    return Fraction(int(scores.max() - scores.min())) / measurement.scale_of(draw)


def check(world: Scene, sql: str, method: QuantileMechanism, without: int) -> None:
    """One triple: what a person changes is within what is charged. Errors: Violation."""
    measurement, full = seen(world, sql, method, None)
    _, less = seen(world, sql, method, without)
    statistic, event = measurement.statistic, measurement.event()
    assert statistic.tree is not None
    assert statistic.drawn is not None
    require(event.loss().pure is not None and event.loss().pure <= EPSILON, "more than the price")
    pairs = [(one, two) for one, two in zip(full, less, strict=True) if one != two]
    wide, places = statistic.tree.nodes, statistic.places
    moved = sum(abs(a - b) for one, two in pairs for a, b in zip(one[:wide], two[:wide], strict=True))
    require(moved <= statistic.sensitivity.l1, "the tree moves by more than its sensitivity")
    if isinstance(measurement, LaplaceSmooth):
        worth, noise = statistic.tree.worth, measurement.noise_of_quantile
        rows = [sum(abs(a - b) for a, b in zip(one[wide:], two[wide:], strict=True)) for one, two in pairs]
        require(sum(rows) <= worth, "a person is in more than one place")
        scaled = _scales(measurement, full), _scales(measurement, less)
        for one_scale, other in zip(*scaled, strict=True):
            require(abs(math.log(one_scale / other)) <= float(noise.beta), "the sensitivity is not smooth")
        return
    assert isinstance(measurement, LaplaceBlocks)
    assert statistic.encoding is not None
    total, blocks = Fraction(0), statistic.drawn.blocks
    used = (statistic.encoding.highest + 1) * statistic.drawn.finer
    for one, two in pairs:
        for place in range(statistic.drawn.count):
            start = wide + places * (1 + place)
            answers = [np.array(side[start : start + used]) for side in (one, two)]
            apart = int(np.abs(answers[0] - answers[1]).sum())
            require(apart <= 2, "more than one answer of a block changes")
            for side in answers:
                require(int(side.sum()) <= blocks, "more answers than blocks")
                side[used // 2] += blocks - int(side.sum())
            total += moved_by(measurement, *answers, draw=drawn_ranks.draws_of(statistic)[place])
    require(total <= measurement.ranges()[0], "the draws move by more than their ranges")


@pytest.fixture(autouse=True)
def _one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sides of a triple have one key of blocks: the proof is of each key by itself. Few blocks have few people."""
    monkeypatch.setattr(ranks, "BLOCKS", 5)
    monkeypatch.setattr(private.secrets, "randbits", lambda bits: 12_345)


SMOOTH, SAMPLED = QuantileMechanism.SMOOTH, QuantileMechanism.SAMPLE_AND_AGGREGATE
ONE_EACH = "SELECT MEDIAN(y) FROM people"


@pytest.mark.sparse(2)
@pytest.mark.parametrize(
    ("sql", "method"),
    [(ONE_EACH, SMOOTH), ("SELECT k, MEDIAN(y) FROM people GROUP BY k", SMOOTH), (ONE_EACH, SAMPLED),
     ("SELECT k, QUANTILE_DISC(y, [0.25, 0.5]) FROM people GROUP BY k", SAMPLED)],
)  # fmt: skip
def test_one_person_is_in_one_place_and_one_block(sql: str, method: QuantileMechanism) -> None:
    """Whoever is left out."""
    world = scene(PEOPLE, bounds=("0", "12"))
    for without in (0, 5, 11):
        check(world, sql, method, without)


def several() -> Scene:
    """One person with many rows, and others with one."""
    visits = [{"person_id": 0, "y": float(value % 12)} for value in range(20)]
    visits += [{"person_id": person, "y": float(person * 5 % 13)} for person in range(1, 30)]
    return scene([{}] * 30, visits, contribution=ContributionBound(20, 1, 20), bounds=("0", "12"))


def test_a_person_with_many_rows_is_in_one_block() -> None:
    """All rows of a person are hashed together."""
    for without in (0, 3):
        check(several(), "SELECT MEDIAN(y) FROM visits", SAMPLED, without)


def ends(low: int, high: int) -> Scene:
    """People with one row each, at both ends of 13 places."""
    return scene([{"x": 0}] * low + [{"x": 12}] * high, bounds=("0", "12"))


def _by_row(patch: pytest.MonkeyPatch) -> None:
    """A planted bug: rows, not people, are put into blocks, so that one person is in several."""

    def written(self: DuckDB, node: Blocked) -> str:
        rows = self.write(node.rows)
        return f'SELECT *, CAST(row_number() OVER () % {node.blocks} AS INTEGER) AS "{node.name}" FROM ({rows}) AS "h"'

    patch.setitem(DuckDB._writers, Blocked, written)


def _half(patch: pytest.MonkeyPatch) -> None:
    """A planted bug: a block's answer is taken to move a rank by half of what it does."""
    genuine = drawn_ranks._draw

    def draw(statistic: Any, fraction: Fraction, *, discrete: bool) -> Any:
        found = genuine(statistic, fraction, discrete=discrete)
        return drawn_ranks.Draw(found.fraction, found.discrete, found.change // 2, found.grid, found.blocks)

    patch.setattr(drawn_ranks, "_draw", draw)


def _in_two_blocks(patch: pytest.MonkeyPatch) -> None:
    """A planted bug: each row is in the block of its person, and in the next one as well."""
    genuine = DuckDB._writers[Blocked]

    def written(self: DuckDB, node: Blocked) -> str:
        once = genuine(self, node)
        return f'{once} UNION ALL SELECT * REPLACE (("{node.name}" + 1) % {node.blocks} AS "{node.name}") FROM ({once})'

    patch.setitem(DuckDB._writers, Blocked, written)


def _two_places(patch: pytest.MonkeyPatch) -> None:
    """A planted bug: the sensitivity of one table, and not of those around it, scales the noise."""
    patch.setattr(smooth, "reached_at_distance", lambda counts, fraction, distances: np.where(
        distances == 0, genuine_reach(counts, fraction, distances), 0))  # fmt: skip


genuine_reach = smooth.reached_at_distance
genuine_sensitivity = smooth.smooth_sensitivity


def _parts_of_rows(patch: pytest.MonkeyPatch) -> None:
    """A planted bug: rows are counted in the parts that a tree counts them in, so that everything looks far away."""
    patch.setattr(
        smooth, "smooth_sensitivity", lambda counts, fraction, beta: genuine_sensitivity(1024 * counts, fraction, beta)
    )


@pytest.mark.parametrize(
    ("plant", "method", "message"),
    [
        (_by_row, SAMPLED, "more than one answer"),
        (_in_two_blocks, SAMPLED, "more than one answer"),
        (_two_places, SMOOTH, "not smooth"),
        (_parts_of_rows, SMOOTH, "not smooth"),
    ],
)
def test_planted_bugs_are_caught(
    monkeypatch: pytest.MonkeyPatch,
    plant: Callable[[pytest.MonkeyPatch], None],
    method: QuantileMechanism,
    message: str,
) -> None:
    """Whoever is left out, some triple shows it."""
    plant(monkeypatch)
    sql, most = ("SELECT MEDIAN(x) FROM people", 1) if method is SMOOTH else ("SELECT MEDIAN(y) FROM visits", 30)

    def every() -> None:
        for world in (ends(5, 3), ends(4, 4)) if method is SMOOTH else (several(),):
            for without in range(most):
                check(world, sql, method, without)

    with pytest.raises(Violation, match=message):
        every()


def told_apart(runs: int) -> float:
    """A lower bound of the epsilon of one smooth quantile, from its answers on two neighbours: a black box.

    Each chance is known to within a radius that all 26 of them keep but once in a thousand times (Hoeffding).
    """
    radius, chances = math.sqrt(math.log(52_000) / 2 / runs), []
    bits = SeededBits(31)
    for without in (None, 0):
        measurement, exact = seen(ends(5, 3), "SELECT MEDIAN(x) FROM people", SMOOTH, without)
        assert isinstance(measurement, LaplaceSmooth)
        assert measurement.statistic.tree is not None
        places = np.repeat(np.array(exact)[:, measurement.statistic.tree.nodes :], runs, axis=0)
        drawn = measurement.drawn(places, bits)[:, 0]
        chances.append(np.cumsum(np.bincount(drawn, minlength=13)) / runs)
    found = 0.0
    for one, two in (chances, chances[::-1]):
        for p, q in (*zip(one, two, strict=True), *zip(1 - one, 1 - two, strict=True)):
            found = max(found, math.log(max(p - radius, 1e-9) / (q + radius)))
    return found


@pytest.mark.slow
def test_a_black_box_is_within_its_epsilon_and_local_sensitivity_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of answers on two neighbours: what they prove is below the price, and above it where a bug is."""
    assert told_apart(3_000) <= float(EPSILON)
    _two_places(monkeypatch)
    assert told_apart(3_000) > float(EPSILON)


def test_the_range_is_attained(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block that answers the middle place instead of a low one moves the law by all that is charged."""
    measurement, _ = seen(scene(PEOPLE, bounds=("0", "12")), ONE_EACH, SAMPLED, None)
    assert isinstance(measurement, LaplaceBlocks)
    full, less = (np.bincount(answers, minlength=13) for answers in ([0, 1, 2, 3, 5], [6, 1, 2, 3, 5]))
    (draw,) = drawn_ranks.draws_of(measurement.statistic)
    reached = moved_by(measurement, full, less, draw=draw)
    assert reached == measurement.greatest == measurement.ranges()[0]
    _half(monkeypatch)
    (half,) = drawn_ranks.draws_of(measurement.statistic)
    assert moved_by(measurement, full, less, draw=half) > measurement.ranges()[0]


def test_another_key_makes_other_blocks() -> None:
    """People who share a block under one key rarely share one under another, and one block has about its part."""
    found = []
    for key in (1, 2):
        with duckdb.connect() as connection:
            connection.execute(f"SET VARIABLE seed = {key}")
            connection.execute("CREATE TEMP TABLE people AS SELECT hash(range) AS d FROM range(20000)")
            sql = DUCKDB.write(Blocked(SharedRows("people"), BLOCKS, "block"))
            found.append(np.array(connection.execute(sql).fetchnumpy()["block"]))
    first, second = found
    assert np.bincount(first, minlength=BLOCKS).min() > 30
    shared = [len(np.unique(second[first == block])) for block in range(20)]
    assert min(shared) > 50, "the second key only gives the same blocks other numbers"


def test_chunks_of_rows_are_not_as_many_as_was_claimed() -> None:
    """A textbook error: chunks of ceil(n / k) rows are fewer than k, so the noise for k is too little."""
    for known in VECTORS["sample_and_aggregate"]:
        chunks = -(-32_561 // known["chunk"])
        assert chunks == known["chunks_actual"]
        assert known["scale_needed"] / known["scale_used"] == pytest.approx(known["k"] / chunks)
        assert known["true_eps_over_claimed"] == pytest.approx(known["k"] / chunks)
