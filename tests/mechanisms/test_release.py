"""Releases: order, completeness, what is refused after the engine ran, and that all noise passes one gateway."""

from __future__ import annotations

import ast
import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mechanisms
from mechanisms.calibrate import Price, calibrate
from mechanisms.estimates import linear_form
from mechanisms.families import NoiseFamily
from mechanisms.measurement import Integers, Measurement, Perturbed, plain_text
from mechanisms.randomness import BitSource
from mechanisms.release import release
from mechanisms.released_table import ReleasedTable
from mechanisms.replicates import simulate
from privacy.aggregate import AggregateFunction
from privacy.exact import Exact
from privacy.policy import ColumnType
from privacy.refusal import ExecutionFailed
from privacy.statistic import (
    CoreStatistics,
    Encoding,
    Estimate,
    KeyColumn,
    Keys,
    Statistic,
    StatisticKind,
)
from tests.mechanisms.support import (
    MOMENT_ESTIMATES,
    SeededBits,
    bernstein,
    cells_core,
    count,
    moments,
    plain_sum,
    recorded,
    same_cells,
    scalar_core,
    selected_core,
    sensitivity,
    truths,
    units,
)

CONFIDENCE = Fraction(95, 100)
COUNT_ESTIMATE = Estimate("n", AggregateFunction.ROWS, "n", integer=True)
HUGE = Price(NoiseFamily.LAPLACE, Fraction(10**6), Fraction(1, 10**6))
ONE = Price(NoiseFamily.LAPLACE, Fraction(1), Fraction(1, 10**6))


def values(table: ReleasedTable) -> dict[str, list[Any]]:
    return {column.name: list(column.values) for column in table.columns}


def released(core: CoreStatistics, exact: Exact, price: Price = ONE, seed: int = 71) -> ReleasedTable:
    return release(core, calibrate([core], price), exact, bits=SeededBits(seed), confidence=CONFIDENCE)


def public_core(*, nulls: bool = True) -> CoreStatistics:
    domain = (("b",), ("a",), (None,)) if nulls else (("b",), ("a",))
    return CoreStatistics("core", Keys((KeyColumn("k", ColumnType.TEXT),), domain, 1), (count(),), (COUNT_ESTIMATE,))


def public_exact(keys: list[Any], counts: list[Any]) -> Exact:
    return Exact(keys={"k": keys}, sums={"n_0": counts}, rows=len(keys))


def test_public_keys_come_in_the_order_of_their_domain() -> None:
    """Whatever the order and completeness of the engine's groups: all keys, NULL included, each with noise."""
    exact = public_exact([None, "b"], [20, 10])
    assert values(released(public_core(), exact, HUGE)) == {"k": ["b", "a", None], "n": [10, 0, 20]}
    missing = [values(released(public_core(), public_exact([], []), ONE, seed))["n"] for seed in range(30)]
    assert all(len(set(column)) > 1 for column in zip(*missing, strict=True)), "empty groups are noisy as well"


def test_a_scalar_of_nothing_is_a_noisy_zero() -> None:
    """Without rows there is still one row of answer, with noise; given as one group or as none."""
    core = scalar_core([count()], [COUNT_ESTIMATE])
    for exact in (lambda: Exact(keys={}, sums={"n_0": []}, rows=0), lambda: Exact(keys={}, sums={"n_0": [0]}, rows=1)):
        seen = {released(core, exact(), ONE, seed).columns[0].values for seed in range(30)}
        assert len(seen) > 2
        assert all(len(row) == 1 for row in seen)


def test_selected_keys_are_sorted_and_null_is_last() -> None:
    """Released groups come in the order of their keys, not of the engine; a group of NULL is one like any other."""
    core = selected_core()
    for order in ([2, 0, 1, 3], [3, 1, 0, 2]):
        keys, counts = ["a", "m", "z", None], [100, 200, 300, 400]
        exact = Exact(keys={"k": [keys[i] for i in order]}, sums={"u_0": [counts[i] for i in order]}, rows=4)
        assert values(released(core, exact, HUGE)) == {"k": keys, "rows": counts}


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        (ColumnType.INTEGER, [-5, 3, 20, None]),
        (ColumnType.BOOLEAN, [False, True, None]),
        (ColumnType.DATE, [datetime.date(1, 1, 1), datetime.date(2020, 2, 29), None]),
        (ColumnType.TIMESTAMP, [datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 1, 1), None]),
    ],
)
def test_keys_of_every_type_are_sorted(kind: ColumnType, keys: list[Any]) -> None:
    """Integers, truth values, dates and times sort by value, NULL last."""
    exact = Exact(keys={"k": keys[::-1]}, sums={"u_0": [1000] * len(keys)}, rows=len(keys))
    assert values(released(selected_core(kind=kind), exact, HUGE))["k"] == keys


@pytest.mark.parametrize(
    "price", [ONE, Price(NoiseFamily.GAUSSIAN, Fraction(1), Fraction(1, 10**6))], ids=["laplace", "gaussian"]
)
def test_small_groups_are_not_shown(price: Price) -> None:
    """E8: of 3,000 groups of one unit none is released, while all of 300 groups of a hundred units are."""
    keys = [f"{'big' if i % 11 == 0 else 'small'} {i:05d}" for i in range(3300)]
    exact = Exact(keys={"k": keys}, sums={"u_0": [100 if key[0] == "b" else 1 for key in keys]}, rows=3300)
    shown = values(released(selected_core(), exact, price))["k"]
    assert shown == [key for key in keys if key[0] == "b"]


def test_the_noisy_user_count_is_reused() -> None:
    """The count of a selection is the selection's own noisy number: one call of the gateway for both."""
    core = selected_core(
        count(), estimates=(COUNT_ESTIMATE, Estimate("people", AggregateFunction.UNITS, "u", integer=True))
    )
    exact = Exact(keys={"k": ["a", "b"]}, sums={"u_0": [500, 1], "n_0": [500, 1]}, rows=2)
    with recorded() as calls:
        table = released(core, exact)
    assert [call.measurement.statistic.name for call in calls] == ["u", "n"]
    assert [call.exact.tolist() for call in calls] == [[[500], [1]], [[500]]], "noise is drawn for shown groups only"
    found = values(table)
    assert found["rows"] == found["people"]
    assert found["k"] == ["a"]


def test_every_statistic_passes_the_gateway_once() -> None:
    """Each measurement is drawn once with its own exact matrix; replacing the gateway's function replaces all noise."""
    statistics = [count(), plain_sum(), moments()]
    core = cells_core(statistics, [COUNT_ESTIMATE, Estimate("s", AggregateFunction.SUM, "s"), *MOMENT_ESTIMATES[2]], 3)
    x = np.array([10, 20, 60])
    sums = {"n_0": 3, "s_0": 90} | {f"m_{i}": part for i, part in enumerate(bernstein(x, width=100, degree=2))}
    with recorded(noiseless=True) as calls:
        first = released(core, same_cells(core, sums, 3), seed=1)
        again = released(core, same_cells(core, sums, 3), seed=2)
    assert [call.measurement.statistic.name for call in calls] == ["n", "s", "m"] * 2
    assert values(first) == values(again)
    assert values(first)["average"] == [30.0] * 3
    assert values(first)["n"] == [3] * 3


def test_nothing_but_the_gateway_sees_true_sums() -> None:
    """With the noisy matrices fixed, the whole table is the same for other true sums: all else is post-processing."""
    core = cells_core([moments(nulls=True), count()], [COUNT_ESTIMATE, *MOMENT_ESTIMATES[2]], 4)
    calibration = calibrate([core], ONE)

    def fixed(measurement: Any, exact: Any, bits: Any) -> Any:
        return measurement.perturb(np.full_like(exact, 123456), SeededBits(72))

    tables = []
    for seed in (1, 2):
        x = (SeededBits(seed).words(50 * seed) % np.uint64(101)).astype(np.int64)
        sums = {"n_0": len(x)} | {f"m_{i}": p for i, p in enumerate(bernstein(x, width=100, degree=2, nulls=seed))}
        with recorded(perturb=fixed):
            table = release(core, calibration, same_cells(core, sums, 4), bits=SeededBits(73), confidence=CONFIDENCE)
        tables.append(table)
    assert tables[0] == tables[1]
    left, right = (simulate(table.sums, 40, bits=SeededBits(74)) for table in tables)
    assert left.keys() == right.keys() != set()
    for name, matrix in left.items():
        np.testing.assert_array_equal(matrix, right[name])


def test_true_values_are_opened_in_one_module() -> None:
    """Only release.py reveals true sums, only the gateway perturbs, and no release calls a sampler past it."""
    room = Path(mechanisms.__file__).parent
    reveal = {path.name for path in room.rglob("*.py") if ".reveal(" in path.read_text()}
    assert reveal == {"release.py"}
    perturb: set[str] = set()
    for path in room.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "perturb":
                perturb.add(f"{path.name}:{ast.unparse(node.func)}")
    assert perturb == {
        "gateway.py:measurement.perturb",
        "release.py:gateway.perturb",
        "price.py:gateway.perturb",  # of marginals, whose counts release.py has read
        "asking.py:gateway.perturb",  # of cells and pieces of a stream, whose sums release.py has read
        "gaussian_threshold.py:GaussianMeasurement.perturb",
        "moments_threshold.py:GaussianMoments.perturb",
        "moments_threshold.py:GaussianPairs.perturb",
        "moments_threshold.py:LaplaceMeasurement.perturb",
    }


FAULTS: dict[str, Exact] = {
    "key outside the domain": public_exact(["c"], [1]),
    "key of another type": public_exact([1], [1]),
    "repeated key": public_exact(["a", "a"], [1, 1]),
    "negative count": public_exact(["a"], [-1]),
    "count beyond the row cap": public_exact(["a"], [2**40 + 1]),
    "count beyond 64 bits": public_exact(["a"], [2**70]),
    "float": public_exact(["a"], [1.0]),
    "truth value": public_exact(["a"], [True]),
    "missing value": public_exact(["a"], [None]),
    "float array": public_exact(["a"], np.array([1.0])),  # type: ignore[arg-type]
    "missing sum": Exact(keys={"k": ["a"]}, sums={}, rows=1),
    "missing keys": Exact(keys={}, sums={"n_0": [1]}, rows=1),
    "too few sums": Exact(keys={"k": ["a", "b"]}, sums={"n_0": [1]}, rows=2),
    "too few keys": Exact(keys={"k": ["a"]}, sums={"n_0": [1, 2]}, rows=2),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_fail_closed_and_silently(fault: str) -> None:
    """Whatever the engine gives against the plan: one failure without detail, nothing released or chained."""
    with recorded() as calls, pytest.raises(ExecutionFailed) as caught:
        released(public_core(nulls=False), FAULTS[fault])
    assert str(caught.value) == "the query could not be completed"
    assert caught.value.started
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert calls == []


@pytest.mark.parametrize(
    ("statistic", "sums"),
    [
        (moments(), [-1, 0, 0]),
        (moments(), [0, 0, 10**4 * 2**40 + 1]),
        (moments(), [10**4 * 2**39 + 1, 10**4 * 2**39, 0]),
        (plain_sum(lowest=-5, highest=10), [-5 * 2**40 - 1]),
        (plain_sum(lowest=-5, highest=10), [10 * 2**40 + 1]),
        (plain_sum(lowest=5, highest=10), [-1]),
    ],
    ids=str,
)
def test_sums_beyond_the_plan_fail(statistic: Statistic, sums: list[int]) -> None:
    """Each sum is checked against the bound of its statistic once more outside the engine."""
    core = scalar_core([statistic], [])
    exact = Exact(keys={}, sums={f"{statistic.name}_{i}": [value] for i, value in enumerate(sums)}, rows=1)
    with pytest.raises(ExecutionFailed):
        released(core, exact)
    inside = {f"{statistic.name}_{i}": [max(0, value) // 2] for i, value in enumerate(sums)}
    assert released(core, Exact(keys={}, sums=inside, rows=1)).rows == 1


def test_two_scalars_are_a_fault() -> None:
    """A core without groups has one row at most."""
    with pytest.raises(ExecutionFailed):
        released(scalar_core([count()], [COUNT_ESTIMATE]), Exact(keys={}, sums={"n_0": [1, 2]}, rows=2))


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize(
    ("offset", "step", "width"),
    [
        (Fraction(0), Fraction(1), 100),
        (Fraction(-50), Fraction(1, 4), 400),
        (Fraction(10**6), Fraction(1, 2**20), 2**30),
    ],
    ids=str,
)
def test_a_huge_epsilon_gives_the_plain_answers(degree: int, offset: Fraction, step: Fraction, width: int) -> None:
    """At epsilon 10^6 every estimate is the truth of the same values, also when sums leave 64 bits."""
    x = (SeededBits(74).words(3000) % np.uint64(width + 1)).astype(np.int64)
    real = float(offset) + float(step) * x.astype(float)
    statistic = moments(degree=degree, width=width, offset=offset, step=step, nulls=True)
    core = scalar_core([statistic], MOMENT_ESTIMATES[degree])
    sums = {f"m_{i}": [part] for i, part in enumerate(bernstein(x, width=width, degree=degree, nulls=7))}
    found = {
        name: column[0] for name, column in values(released(core, Exact(keys={}, sums=sums, rows=1), HUGE)).items()
    }
    truth = truths(real, nulls=7)
    assert found == {name: pytest.approx(truth[name], rel=1e-5) for name in found}
    assert (found["rows"], found["values"]) == (3007, 3000)
    assert isinstance(found["rows"], int)


def test_integer_sums_are_exact_whole_numbers() -> None:
    """SUM of integers from moments is a Python int, exact beyond 2^53, with whole interval ends around it."""
    statistic = moments(degree=1, width=2**30, offset=Fraction(-(2**29)))
    core = scalar_core([statistic], [Estimate("s", AggregateFunction.SUM, "m", integer=True)])
    rows = 2**34 + 1
    t = 2**29 + 12345
    sums = {"m_0": [(2**30 - t) * rows], "m_1": [t * rows]}
    column = released(
        core, Exact(keys={}, sums=sums, rows=1), Price(NoiseFamily.LAPLACE, Fraction(10**6), Fraction(0))
    ).columns[0]
    low, value, high = column.lows[0], column.values[0], column.highs[0]
    assert all(isinstance(number, int) for number in (low, value, high))
    # The scale is 2^30 / 10^6, and 2^29 of the offset times its share of the rows come with it.
    assert abs(value - 12345 * rows) < 40_000
    assert low < value < high


def test_edges_of_ratios() -> None:
    """Empty cells: None with the whole range; averages stay within the clip bounds; variances are never negative."""
    core = cells_core([moments(nulls=True)], MOMENT_ESTIMATES[2], 500)
    table = released(core, Exact(keys={"k": []}, sums={f"m_{i}": [] for i in range(4)}, rows=0))
    columns = {column.name: column for column in table.columns}
    greatest = {
        "average": 100.0,
        "variance_population": 2500.0,
        "variance_sample": 5000.0,
        "deviation_population": 50.0,
    }
    for name, most in greatest.items():
        column = columns[name]
        undefined = [value is None for value in column.values]
        assert any(undefined)
        for value, error, low, high in zip(
            column.values, column.standard_errors, column.lows, column.highs, strict=True
        ):
            assert low is not None
            assert high is not None
            assert 0 <= low <= high <= most
            if value is None:
                assert (error, low, high) == (None, 0.0, most)
            else:
                assert low <= value <= high
                assert error is not None
                assert error >= 0
    assert min(columns["values"].values) < 0, "counts are not cut at zero"


def test_notes_tell_what_was_done() -> None:
    """Every statistic has a note: mechanism, scale in its own unit, sensitivity, argument, share, estimates."""
    age = moments(nulls=True)
    core = scalar_core([count(), plain_sum(step=Fraction(1, 2)), age], [COUNT_ESTIMATE, *MOMENT_ESTIMATES[2][:2]])
    zeros = {"n_0": [0], "s_0": [0]} | {f"m_{i}": [0] for i in range(4)}
    table = released(core, Exact(keys={}, sums=zeros, rows=1), Price(NoiseFamily.LAPLACE, Fraction(3, 10), Fraction(0)))
    assert [(note.mechanism, note.scale, note.sensitivity) for note in table.notes] == [
        ("laplace", "10", "l1 1"),
        ("laplace", "500", "l1 50"),
        ("laplace", "10", "l1 1"),
    ]
    assert [note.share for note in table.notes] == ["0.333333333"] * 3
    assert [note.estimates for note in table.notes] == [("n",), (), ("rows", "values")]
    assert table.confidence == "0.95"


def test_amounts_for_people() -> None:
    """Nine significant digits, never an exponent, never zero for what is not."""
    amounts = ["1e-7", "12345678912", "2.5", "1000000", "0.333333333333"]
    assert [plain_text(Fraction(text)) for text in amounts] == [
        "0.0000001",
        "12345678900",
        "2.5",
        "1000000",
        "0.333333333",
    ]


def test_replicates_are_bounded() -> None:
    """As many simulated answers as asked for few cells, fewer for many; the sums they come from are never shown."""
    for cells, wanted in ((3, 400), (20_000, 100)):
        core = cells_core([count()], [COUNT_ESTIMATE], cells)
        table = released(core, same_cells(core, {"n_0": 5}, cells))
        assert simulate(table.sums, 400, bits=SeededBits(75))["n"].shape == (wanted, cells)
    assert "sums" not in repr(table)


@pytest.mark.parametrize(
    ("statistic", "kind"),
    [
        (count(), AggregateFunction.UNITS),
        (count(), AggregateFunction.SUM),
        (units(), AggregateFunction.AVERAGE),
        (plain_sum(), AggregateFunction.ROWS),
        (moments(degree=1), AggregateFunction.VARIANCE_POPULATION),
        (moments(), AggregateFunction.UNITS),
    ],
    ids=str,
)
def test_estimates_that_a_statistic_cannot_give(statistic: Statistic, kind: AggregateFunction) -> None:
    """An estimate without its sums is a ValueError, found when calibrating."""
    with pytest.raises(ValueError, match=r"number of units|does not hold"):
        linear_form(statistic, kind)


def test_a_selection_may_tell_no_numbers() -> None:
    """A selection that only says which groups are shown is enough for other statistics; an estimate of it fails."""
    others = (count(),)
    told = CoreStatistics("core", selected_core().keys, (units(), *others), (COUNT_ESTIMATE,))
    given = Exact(keys={"k": ["a", "b", "c"]}, sums={"u_0": [9, 9, 9], "n_0": [5, 6, 7]}, rows=3)

    def chooses(measurement: Measurement, exact: Integers, bits: BitSource) -> Perturbed:
        if measurement.selects:
            return Perturbed(None, np.array([True, False, True]))
        return Perturbed(exact)

    with recorded(perturb=chooses):
        table = released(told, given)
        assert values(table) == {"k": ["a", "c"], "n": [5, 7]}
        assert [one.measurement.statistic.name for one in table.sums] == ["n"]
        with pytest.raises(ExecutionFailed):
            released(selected_core(*others), given)
    with pytest.raises(AssertionError):
        Perturbed(None)


def test_wide_sums_keep_their_grid() -> None:
    """A coarse statistic is released on its grid (a whole multiple of it), near its true value."""
    statistic = Statistic(
        "s", StatisticKind.SUM, sensitivity(2**40), encoding=Encoding(Fraction(0), Fraction(1), 0, 2**40)
    )
    core = scalar_core([statistic], [Estimate("s", AggregateFunction.SUM, "s", integer=True)])
    calibration = calibrate([core], ONE)
    grid = calibration.measurements[0].grid
    assert grid > 2**20
    table = release(
        core,
        calibration,
        Exact(keys={}, sums={"s_0": [2**75 + 12345]}, rows=1),
        bits=SeededBits(76),
        confidence=CONFIDENCE,
    )
    assert table.columns[0].values[0] % grid == 0
    assert abs(table.columns[0].values[0] - 2**75) < 40 * 2**40
