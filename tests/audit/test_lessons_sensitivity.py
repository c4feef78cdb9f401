"""Lessons about sensitivity (C15 to C23) and about components that disagree (B8 to B14), by their numbers; and E2, E8.

What random neighbours show in general is shown here once more on the smallest data that would go wrong.
"""

from __future__ import annotations

import datetime
import math
from contextlib import closing
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mechanisms.calibrate import Calibration, Price, calibrate
from mechanisms.families import NoiseFamily
from mechanisms.measurements.gaussian_threshold import GaussianThresholdMeasurement
from mechanisms.release import release
from privacy.bounds import ContributionBound, ValueBounds
from privacy.policy import Column, ColumnType, Dataset, Table
from privacy.refusal import Refused
from privacy.statistic import StatisticKind
from privacy.unit import PrivacyUnit
from sql_rewrite.bound import BoundedCore, bound
from sql_rewrite.lift import lift
from tests.audit.generate import Query, Scene
from tests.audit.harness import Store, run
from tests.audit.recorder import FixedBits, recorded
from tests.audit.smallest import audited, beyond_64_bits, scene

T = ColumnType


def bounded(world: Scene, sql: str) -> BoundedCore:
    """The only core of a query."""
    (core,) = bound(lift(sql, world.dataset))
    return core


def exact(world: Scene, sql: str, *, seed: int = 0) -> dict[tuple[Any, ...], list[tuple[int, ...]]]:
    """The true sums of every cell, statistic by statistic."""
    with closing(Store(world, frozenset(world.units), seed=seed)) as store:
        side = run(store, world, Query(sql, {}), gaussian=True, epsilon=Fraction(1))
    (core,) = side.sides
    return {key: [call.exact[place] for call in core.calls] for place, key in enumerate(core.keys)}


def codes(world: Scene, sql: str) -> list[str]:
    """The codes with which a text is refused."""
    with pytest.raises(Refused) as caught:
        bound(lift(sql, world.dataset))
    return [finding.code for finding in caught.value.findings]


# A. Errors as an oracle


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT x, COUNT(*) FROM people GROUP BY x",
        "SELECT x % 5 AS r, SUM(y) FROM people GROUP BY r",
        "SELECT x, k, AVG(y) FROM visits GROUP BY x, k",
        "SELECT x, COUNT(*) FROM visits GROUP BY x",
        "SELECT DATE '2020-01-01' AS d, COUNT(*) FROM visits GROUP BY d",
        "SELECT COUNT(*), STDDEV(x), STDDEV(y), SUM(x * 2) FROM visits",
    ],
)
def test_a5_an_extreme_key_does_not_decide_about_memory(sql: str) -> None:
    """Groups are hashed: no array with one entry per value between the extremes, whose size one person would decide."""
    world = scene([{"x": 0}, {"x": 4_000_000}], [{"person_id": 0, "x": 0}, {"person_id": 1, "x": 4_000_000}])
    with closing(Store(world, frozenset(world.units), seed=0)) as store:
        side = run(store, world, Query(sql, {}), gaussian=True, epsilon=Fraction(1))
        (statement,) = side.statements
        explained = store.connection.execute(
            f"EXPLAIN (FORMAT json) {statement.sql}", list(statement.parameters)
        ).fetchall()
    assert "HASH_GROUP_BY" in explained[0][1]
    assert "PERFECT_HASH_GROUP_BY" not in explained[0][1]


# C. Sensitivity


@pytest.mark.parametrize(
    ("low", "high", "expected"), [("50", "60", 60), ("-60", "-50", 60), ("-3", "4", 4), ("0", "10", 10)]
)
def test_c15_e2_a_clipped_sum_moves_by_its_larger_bound(low: str, high: str, expected: int) -> None:
    """Adding a person moves a sum by max(|lower|, |upper|), which is declared, and not by upper minus lower."""
    sum_ = "SELECT SUM(x) FROM people"
    far = -(10**9) if abs(int(low)) > abs(int(high)) else 10**9
    world = scene([{"x": far}, {"x": 1}], bounds=(low, high))
    (statistic,) = bounded(world, sum_).described.statistics
    assert (expected, expected**2) == (statistic.sensitivity.l1, statistic.sensitivity.l2_squared)
    assert {"sum": Fraction(1)} == audited(world, sum_, 0).tightest


@pytest.mark.parametrize("limits", [("0", "0"), ("7", "7"), ("-1", "0"), ("0", "1"), ("0", "7"), ("0.5", "0.5")])
@pytest.mark.parametrize(
    "call", ["SUM(x)", "SUM(y)", "AVG(x)", "AVG(y)", "STDDEV(x)", "VAR_POP(y)", "COUNT(*), AVG(y)"]
)
def test_c16_noise_is_never_zero(limits: tuple[str, str], call: str) -> None:
    """Equal bounds, bounds (0, 0), odd and tiny ranges: there is always noise for at least one whole step."""
    world = scene([{"x": 0, "y": 0.5}], bounds=limits)
    core = bounded(world, f"SELECT {call} FROM people").described
    for price in (
        Price(NoiseFamily.LAPLACE, Fraction(1), Fraction(0)),
        Price(NoiseFamily.GAUSSIAN, Fraction(1), Fraction(0)),
    ):
        for measurement in calibrate([core], price).measurements:
            assert measurement.statistic.sensitivity.linf >= 1
            assert measurement.scale_of_sums >= 1
            assert len(set(measurement.noise(200, FixedBits(1)).tolist())) > 1


@pytest.mark.sparse(4)
@pytest.mark.parametrize("rows", [1, 5, 50])
@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("COUNT(*)", "count"),
        ("COUNT(x)", "count"),
        ("COUNT(DISTINCT person_id)", "units"),
        ("SUM(x)", "sum"),
        ("SUM(y)", "sum"),
        ("AVG(x)", "moments1"),
        ("STDDEV(y)", "moments2"),
        ("AVG(y), COUNT(*)", "moments1n"),
    ],
)
def test_c17_several_rows_of_a_unit_in_every_aggregate(call: str, kind: str, rows: int) -> None:
    """A unit with 1, 5 or 50 rows moves each aggregate by at most its bound, and by the whole of it from 3 rows on."""
    mine = [{"person_id": 0, "x": 10, "y": 10.0, "k": "a"} for _ in range(rows)]
    world = scene([{}, {}], [*mine, {"person_id": 1, "x": 3, "y": 4.5, "k": "a"}])
    tally = audited(world, f"SELECT {call} FROM visits", 0)
    expected = Fraction(1) if kind == "units" else Fraction(min(rows, 3), 3)
    assert {kind: expected} == tally.tightest


@pytest.mark.parametrize("groups", [1, 3, 10])
def test_c18_a_lone_persons_groups_are_released_with_probability_delta(groups: int) -> None:
    """All groups of one person together pass the threshold in at most delta of the draws."""
    world = scene([{}], contribution=ContributionBound(10, groups, 1))
    core = bounded(world, "SELECT w, COUNT(*) FROM visits GROUP BY w").described
    delta, draws = Fraction(1, 50), 40_000
    calibration = calibrate([core], Price(NoiseFamily.GAUSSIAN, Fraction(1, 100), delta))
    measurement = calibration.measurement("c0", core.keys.selection or "")
    assert isinstance(measurement, GaussianThresholdMeasurement)
    kept = measurement.perturb(np.ones((draws * groups, 1), dtype=np.int64), FixedBits(3)).kept
    assert kept is not None
    frequency = float(kept.reshape(draws, groups).any(axis=1).mean())
    assert frequency <= float(delta) + 4 * math.sqrt(float(delta) / draws)
    assert frequency >= float(delta) / 2  # the threshold is not wastefully high


def test_c18_a_person_with_one_group_is_released_with_probability_delta() -> None:
    """The same for the geometric selection, which pays with epsilon."""
    core = bounded(scene([{}]), "SELECT w, COUNT(*) FROM people GROUP BY w").described
    delta, draws = Fraction(1, 50), 40_000
    measurement = calibrate([core], Price(NoiseFamily.LAPLACE, Fraction(1), delta)).measurements[0]
    kept = measurement.perturb(np.ones((draws, 1), dtype=np.int64), FixedBits(3)).kept
    assert kept is not None
    assert abs(float(kept.mean()) - float(delta)) <= 5 * math.sqrt(float(delta) / draws)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT COUNT(*) FROM people p JOIN visits v ON p.x = v.x", "join_not_on_key"),
        ("SELECT COUNT(*) FROM people a JOIN people b ON a.k = b.k", "join_not_on_key"),
        ("SELECT COUNT(*) FROM people, visits", "join_not_on_key"),
        ("SELECT COUNT(*) FROM visits v FULL JOIN people p ON v.x = p.x", "join_not_on_key"),
        ("SELECT COUNT(*) FROM (SELECT * FROM people ORDER BY x LIMIT 10)", "private_row_limit"),
        ("SELECT COUNT(*) FROM people USING SAMPLE 10", "unsupported_sql"),
    ],
)
def test_c19_shapes_in_which_one_unit_moves_rows_of_others_are_refused(sql: str, expected: str) -> None:
    """Joins that multiply, self-joins, outer joins that lose the unit, limits and samples of rows."""
    assert expected in codes(scene([{}]), sql)


@pytest.mark.parametrize("sql", ["SELECT COUNT(DISTINCT w) FROM visits", "SELECT SUM(DISTINCT x) FROM visits"])
def test_c19_a_shared_value_counts_once_and_moves_for_nobody_who_shares_it(sql: str) -> None:
    """Without the one who has a value beside others nothing changes; without the only one who has it, it goes."""
    mine = [{"person_id": 0, "x": 7, "w": "a"}, {"person_id": 1, "x": 7, "w": "a"}, {"person_id": 1, "x": 9, "w": "b"}]
    world = scene([{}, {}], mine)
    tightest = [dict(audited(world, sql, unit).tightest) for unit in (0, 1)]
    assert [set(found.values()) for found in tightest] == [
        {Fraction(0)},
        {Fraction(1 if "COUNT" in sql else 9, 3 if "COUNT" in sql else 30)},
    ]


def test_c19_a_join_to_a_parent_never_repeats_a_row() -> None:
    """Rows of a unit are as many with the join as without it."""
    world = scene([{"x": 1}, {"x": 2}], [{"person_id": 0}, {"person_id": 0}, {"person_id": 1}])
    joined = "SELECT COUNT(*) FROM visits v LEFT JOIN people p ON v.person_id = p.person_id"
    assert {(): [(3,)]} == exact(world, joined) == exact(world, "SELECT COUNT(*) FROM visits")


def test_c20_each_contribution_is_clipped_not_the_sum() -> None:
    """Values of 1000 and -1000 within [0, 10] are 10 and 0; clipping their sum would give 0."""
    world = scene([{}], [{"person_id": 0, "x": 1000}, {"person_id": 0, "x": -1000}])
    assert {(): [(10,)]} == exact(world, "SELECT SUM(x) FROM visits")
    assert {(): [(10,)]} == exact(scene([{"x": 1000}]), "SELECT SUM(x) FROM people")


def test_c20_a_vector_has_one_noise_for_all_its_coordinates_together() -> None:
    """COUNT, SUM, AVG and STDDEV of a column are one statistic: one call, one event, calibrated to the whole vector."""
    world = scene([{"y": 3.0}])
    core = bounded(world, "SELECT COUNT(*), SUM(y), AVG(y), STDDEV(y) FROM people").described
    (statistic,) = core.statistics
    assert (StatisticKind.MOMENTS, 4) == (statistic.kind, statistic.coordinates)
    assert statistic.encoding is not None
    assert statistic.encoding.highest**2 == statistic.sensitivity.l1
    (event,) = calibrate([core], Price(NoiseFamily.LAPLACE, Fraction(1), Fraction(0))).events()
    assert event.loss().pure is not None
    assert Fraction(999, 1000) <= event.loss().pure <= 1  # type: ignore[operator]


def test_c21_a_top_group_is_read_off_released_counts() -> None:
    """ORDER BY COUNT(*) DESC LIMIT 1 is no noisy maximum of its own: every count is released with its own noise."""
    world = scene([{"k": "a"}])
    plain = bounded(world, "SELECT k, COUNT(*) FROM people GROUP BY k")
    top = bounded(world, "SELECT k, COUNT(*) FROM people GROUP BY k ORDER BY COUNT(*) DESC LIMIT 1")
    assert plain == top


def test_c22_sums_beyond_64_bits_and_extremes_of_every_type_are_exact() -> None:
    """Sums of squares leave 64 bits without wrapping; extreme integers and doubles are clipped, not overflowed."""
    world = beyond_64_bits()
    for call in ("VAR_POP(y)", "STDDEV(x)", "SUM(y)", "AVG(x)", "SUM(x * x)"):
        audited(world, f"SELECT {call} FROM visits", 1)
    sums = exact(world, "SELECT VAR_POP(y) FROM visits")[()][0]
    # 400 rows and those of the first person at the upper bound.
    assert sums[2] == (400 + 10) * 2**58 > 2**62


def test_c23_the_position_of_a_row_means_nothing() -> None:
    """The same rows in another order, with other unit numbers, give the same sums."""
    visits = [{"person_id": i % 3, "x": i % 11, "w": "abcdefg"[i % 7]} for i in range(60)]
    world = scene([{}, {}, {}], visits)
    sql = "SELECT w, COUNT(*), SUM(x) FROM visits GROUP BY w"
    assert exact(world, sql, seed=1) == exact(world, sql, seed=2) == exact(world, sql, seed=3)


# B. Two components disagree


def test_b8_null_nan_and_infinity_contribute_nothing() -> None:
    """A missing or non-finite value adds nothing to a sum and is not 0; NULL is a group of its own."""
    world = scene(
        [{"y": 4.0}, {"y": math.nan}, {"y": math.inf}, {"y": -math.inf}, {"y": None, "k": "b"}], bounds=("2", "10")
    )
    ((total,),) = exact(world, "SELECT SUM(y) FROM people").values()
    (statistic,) = bounded(world, "SELECT SUM(y) FROM people").described.statistics
    assert statistic.encoding is not None
    assert 4 == total[0] * statistic.encoding.step
    assert {(): [(1,)]} == exact(world, "SELECT COUNT(y) FROM people")
    assert {("a",): [(0,)], ("b",): [(1,)], (None,): [(4,)]} == exact(
        world, "SELECT k, COUNT(*) FROM people GROUP BY k"
    )
    assert {(): [(0,)]} == exact(world, "SELECT COUNT(*) FROM people WHERE y * 1e300 * 1e10 > 0")
    for unit in world.units:
        audited(world, "SELECT k, SUM(y), COUNT(*) FROM people GROUP BY k", unit)


def test_b8_a_cast_that_fails_is_null_and_is_not_counted() -> None:
    """COUNT of a cast is not COUNT(*): texts that are no numbers do not take part."""
    world = scene([{"w": "7"}, {"w": "seven"}, {"w": None}])
    assert {(): [(1,)]} == exact(world, "SELECT COUNT(CAST(w AS BIGINT)) FROM people")


def test_b9_a_bound_belongs_to_an_expression_not_to_a_name() -> None:
    """A multiple of a column, under the column's own name, has the multiple's sensitivity."""
    world = scene([{"x": 10}])
    (plain,) = bounded(world, "SELECT SUM(x) FROM people").described.statistics
    (larger,) = bounded(world, "SELECT SUM(x * 1000) AS x FROM people").described.statistics
    assert plain.sensitivity.l1 * 1000 == larger.sensitivity.l1
    assert {"sum": Fraction(1)} == audited(world, "SELECT SUM(x * 1000) AS x FROM people", 0).tightest
    (nested,) = bounded(world, "SELECT SUM(x) FROM (SELECT x * 1000 AS x FROM people)").described.statistics
    assert nested.sensitivity.l1 == larger.sensitivity.l1


def test_b10_grouping_by_the_summed_column_still_clips_the_sum() -> None:
    """The key shows the stored value, the sum adds the clipped one: T of 10 steps beside the rest of them, and NULL."""
    world = scene([{"x": 1_000_000}, {"x": 3}])
    sql = "SELECT x, SUM(x) FROM people GROUP BY x"
    assert {(3,): [(7, 3, 0)], (1_000_000,): [(0, 10, 0)]} == exact(world, sql)
    audited(world, sql, 0)


def test_b11_a_text_column_is_never_summed() -> None:
    """Types are declared: a column of text has no bounds that its digits could be clipped to."""
    assert ["unsupported_type"] == codes(scene([{"w": "12"}]), "SELECT SUM(w) FROM people")


@pytest.mark.slow
def test_b12_names_of_the_data_cannot_meet_generated_names() -> None:
    """Columns named like every helper column of the generated SQL are read as themselves."""
    names = ["u", "d", "rank", "k0", "a0", "s0", "s0t", "s0f", "s0p0", "s0_0", "g", "r0", "b", "p", "w"]
    columns = tuple(Column(name, T.INTEGER, ValueBounds(Fraction(0), Fraction(9))) for name in names)
    person = Column("person_id", T.INTEGER, nullable=False)
    visits = Table(
        "visits",
        (Column("visit_id", T.INTEGER, nullable=False), person, *columns),
        protected=True,
        key="visit_id",
        unit_column="person_id",
        contribution=ContributionBound(2, 1, 2),
    )
    people = Table(
        "people",
        (person,),
        protected=True,
        key="person_id",
        unit_column="person_id",
        contribution=ContributionBound(1, 1, 1),
    )
    dataset = Dataset("names", PrivacyUnit("people", "person_id"), (people, visits), 1, "v")
    rows = [
        {"visit_id": i, "person_id": i % 3, **{name: (i + place) % 10 for place, name in enumerate(names)}}
        for i in range(20)
    ]
    world = Scene(0, dataset, {"people": [{"person_id": i} for i in range(3)], "visits": rows}, (0, 1, 2), None)
    for place, name in enumerate(names):
        other = names[place - 1]
        sql = (
            f'SELECT "{name}" AS "{other}", SUM("{other}") AS "{name}", AVG("{name}") FILTER (WHERE "{other}" > 2) '
            f'AS n FROM visits WHERE "{name}" <> 4 GROUP BY visits."{name}"'
        )
        audited(world, sql, 0)
    with pytest.raises(AssertionError):
        Table("t", (Column("A", T.TEXT), Column("a", T.TEXT)), protected=False)


@pytest.mark.parametrize(
    "table", ["secrets", "unit$", "duckdb_tables", "information_schema.tables", "main.unit$", "other.people"]
)
def test_b13_a_table_that_is_not_declared_is_refused(table: str) -> None:
    """Unknown is not public."""
    assert ["unknown_table"] == codes(scene([{}]), f"SELECT COUNT(*) FROM {table}")


def test_b13_the_default_schema_is_another_spelling_of_the_declared_table() -> None:
    """`main.people` is `people` with the same bounds, and never a table of the engine."""
    world = scene([{}])
    assert bounded(world, "SELECT COUNT(*) FROM people") == bounded(world, "SELECT COUNT(*) FROM main.people")


@pytest.mark.parametrize(
    "price",
    [
        Price(NoiseFamily.LAPLACE, Fraction(1, 10), Fraction(0)),
        Price(NoiseFamily.GAUSSIAN, Fraction(1, 100), Fraction(0)),
    ],
)
def test_b14_a_released_count_is_not_held_to_the_size_of_the_table(price: Price) -> None:
    """Released counts of an all but empty table go below zero and above its size, as their noise does."""
    world = scene([{}, {}])
    core = bounded(world, "SELECT COUNT(*) FROM people")
    counts = []
    with closing(Store(world, frozenset(world.units), seed=0)) as store:
        side = run(store, world, Query("SELECT COUNT(*) FROM people", {}), gaussian=False, epsilon=Fraction(1))
        statement = side.statements[0]
        calibration: Calibration = calibrate([core.described], price)
        for seed in range(40):
            table = release(
                core.described, calibration, store.exact(statement), bits=FixedBits(seed), confidence=Fraction(95, 100)
            )
            counts.append(table.columns[0].values[0])
    assert min(counts) < 0
    assert max(counts) > 2


def test_e8_the_set_of_groups_does_not_tell_who_is_there() -> None:
    """Public groups are all shown whoever is in them; a hidden group of one person is not shown."""
    world = scene([{"k": "a", "w": "alone"}, *[{"k": "a", "w": "many"} for _ in range(60)]])
    assert [("a",), ("b",), (None,)] == list(exact(world, "SELECT k, COUNT(*) FROM people GROUP BY k"))
    sql = "SELECT w, COUNT(*) FROM people GROUP BY w"
    core = bounded(world, sql).described
    calibration = calibrate([core], Price(NoiseFamily.LAPLACE, Fraction(1), Fraction(1, 10**7)))
    with closing(Store(world, frozenset(world.units), seed=0)) as store:
        side = run(store, world, Query(sql, {}), gaussian=False, epsilon=Fraction(1))
        for seed in range(100):
            given = store.exact(side.statements[0])
            shown = release(core, calibration, given, bits=FixedBits(seed), confidence=Fraction(95, 100))
            assert ("many",) == shown.columns[0].values


def test_the_recorder_without_noise_shows_the_true_answer() -> None:
    """Without noise a release is the exact answer, so what the recorder sees is what analysts would be told about."""
    born = datetime.date(2024, 2, 29)
    world = scene([{"x": 3}, {"x": 8}, {"x": 99}])
    core = bounded(world, f"SELECT COUNT(*), SUM(x) FROM people WHERE DATE '{born}' > DATE '1999-01-01'").described
    sql = f"SELECT COUNT(*), SUM(x) FROM people WHERE DATE '{born}' > DATE '1999-01-01'"
    calibration = calibrate([core], Price(NoiseFamily.LAPLACE, Fraction(1), Fraction(0)))
    with closing(Store(world, frozenset(world.units), seed=0)) as store:
        side = run(store, world, Query(sql, {}), gaussian=False, epsilon=Fraction(1))
        given = store.exact(side.statements[0])
        with recorded() as recorder:
            table = release(core, calibration, given, bits=FixedBits(0), confidence=Fraction(95, 100))
    assert {"a0": (3,), "a1": (21,)} == {column.name: column.values for column in table.columns}
    assert [s.name for s in core.statistics] == [call.statistic for call in recorder.calls]
