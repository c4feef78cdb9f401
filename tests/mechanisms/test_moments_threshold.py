"""Groups selected by the rows in their own moments: who is shown, what it costs, and intervals of what is shown."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest

from mechanisms.calibrate import Price, calibrate
from mechanisms.estimates import ESTIMATORS, estimate_column
from mechanisms.families import NoiseFamily
from mechanisms.measurement import narrow
from mechanisms.measurements.moments_threshold import (
    GaussianMomentsThreshold,
    GaussianPairsThreshold,
    LaplaceMomentsThreshold,
)
from mechanisms.own_threshold import laplace_tail
from privacy.aggregate import AggregateFunction
from privacy.aggregate import AggregateFunction as A
from privacy.events import GaussianThresholdEvent
from privacy.events.laplace import LaplaceThresholdEvent
from privacy.policy import ColumnType
from privacy.statistic import CoreStatistics, Estimate, KeyColumn, Keys, Statistic
from tests.mechanisms.support import (
    MOMENT_ESTIMATES,
    SeededBits,
    bernstein,
    moments,
    selected_core,
    sensitivity,
    truths,
    two_averages,
)

DELTA = Fraction(1, 10**6)
Selecting = GaussianMomentsThreshold | GaussianPairsThreshold | LaplaceMomentsThreshold


def made(
    family: NoiseFamily, statistic: Statistic, amount: object = 1, *, delta: Fraction = DELTA, groups: int = 1
) -> Selecting:
    keys = Keys((KeyColumn("k", ColumnType.TEXT),), None, groups, statistic.name)
    core = CoreStatistics("core", keys, (statistic,), ())
    (found,) = calibrate([core], Price(family, Fraction(str(amount)), delta)).measurements
    assert isinstance(found, Selecting)
    return found


def alone(measurement: Selecting, rows: int = 1, *, threshold: int | None = None) -> float:
    """The greatest chance that a group of one unit with so many rows is shown, by the real law of the noise."""
    units = rows * measurement.statistic.row_units / measurement.grid
    # Of pairs four times that of one form: a half of it, and a half of its noise.
    pairs = isinstance(measurement, GaussianPairsThreshold)
    rounding = 4 if pairs else float(measurement.fuzz)
    edge = (measurement.threshold if threshold is None else threshold) - units - rounding
    if isinstance(measurement, GaussianMomentsThreshold | GaussianPairsThreshold):
        # Of pairs the sums add up to four times the first form.
        every = [4 * measurement.sigmas[0]] if pairs else measurement.sigmas
        deviation = math.sqrt(sum(float(sigma) ** 2 for sigma in every))
        return math.erfc(edge / deviation / math.sqrt(2)) / 2
    return float(laplace_tail(measurement.statistic.coordinates, float(measurement.scale))(np.array([edge]))[0])


STATISTICS = {
    "degree 1": moments(degree=1),
    "degree 2": moments(),
    "with NULL": moments(degree=1, nulls=True),
    "two averages": two_averages(),
    "three rows of a unit": replace(moments(degree=1), sensitivity=sensitivity(300, l0=2)),
}


@pytest.mark.parametrize("family", NoiseFamily)
@pytest.mark.parametrize("name", STATISTICS)
def test_a_lone_unit_is_shown_with_at_most_delta(family: NoiseFamily, name: str) -> None:
    """With as many rows as it may have; and the threshold is no higher than that needs, but for rounding."""
    statistic = STATISTICS[name]
    measurement = made(family, statistic)
    rows = int(statistic.sensitivity.linf) // statistic.row_units
    assert alone(measurement, rows) <= float(DELTA) * (1 + 1e-9)
    lower = 5 if statistic.second is not None else 2  # what rounding may move
    assert alone(measurement, rows, threshold=measurement.threshold - lower) > float(DELTA)
    event = measurement.event()
    assert isinstance(event, GaussianThresholdEvent | LaplaceThresholdEvent)
    assert event.delta == DELTA


@pytest.mark.parametrize("family", NoiseFamily)
def test_a_threshold_that_starts_from_one_row_is_too_low(family: NoiseFamily) -> None:
    """The planted bug: a unit has three rows in a group, and the threshold starts from one."""
    statistic = STATISTICS["three rows of a unit"]
    measurement = made(family, statistic)
    planted = measurement.threshold - 2 * statistic.row_units // measurement.grid
    assert alone(measurement, 3, threshold=planted) > 1.5 * float(DELTA)


def test_the_groups_of_a_unit_share_delta() -> None:
    """Ten groups of one unit: none of them is shown, but with delta."""
    measurement = made(NoiseFamily.GAUSSIAN, replace(moments(degree=1), sensitivity=_ten_groups()), groups=10)
    assert 1 - (1 - alone(measurement)) ** 10 <= float(DELTA) * (1 + 1e-6)
    assert alone(measurement, threshold=measurement.threshold - 2) > float(DELTA) / 10


def _ten_groups() -> object:
    return sensitivity(1000, l2_squared=10 * 100**2, l0=20, linf=100)


@pytest.mark.parametrize("family", NoiseFamily)
def test_frequency_of_lone_units(family: NoiseFamily) -> None:
    """Drawn: at delta 0.02 about two in a hundred lone units are shown, and one with three rows no more often."""
    for name, rows in (("degree 2", 1), ("three rows of a unit", 3), ("two averages", 1)):
        measurement = made(family, STATISTICS[name], delta=Fraction(2, 100))
        vector = (
            [2**20, 2**20 - 2**10, 2**10, 0]
            if name == "two averages"
            else bernstein(np.full(rows, 37), width=100, degree=measurement.statistic.degree)
        )
        found = measurement.perturb(narrow(np.array([vector] * 40_000)), SeededBits(5)).kept
        assert found is not None
        assert 0.016 < found.mean() < 0.0235


@pytest.mark.parametrize("family", NoiseFamily)
def test_it_gains_what_the_page_says(family: NoiseFamily) -> None:
    """Averages of degree 1 have 1.41 times (Gaussian) or 2 times (Laplace) less noise; no more units are needed."""
    amount, statistic = Fraction(1, 10), moments(degree=1)
    own = made(family, statistic, amount)
    before = calibrate([selected_core(statistic)], Price(family, amount, DELTA))
    apart, units = before.measurement("core", "m"), before.measurement("core", "u")
    gain = float(apart.scale_of_sums / own.scale_of_sums)
    assert gain == pytest.approx(2 if family is NoiseFamily.LAPLACE else math.sqrt(2), rel=1e-3)
    needed = units.half_shown(1)
    assert needed is not None
    assert own.half_shown(1) <= needed + 1


@pytest.mark.parametrize("family", NoiseFamily)
def test_two_averages_gain_what_the_page_says(family: NoiseFamily) -> None:
    """Beside units they had two thirds of the price: 1.22 or 1.5 times the noise, and more units were needed."""
    amount, statistic = Fraction(1, 10) if family is NoiseFamily.GAUSSIAN else Fraction(1), two_averages()
    own = made(family, statistic, amount)
    before = calibrate([selected_core(statistic)], Price(family, amount, DELTA))
    apart, units = before.measurement("core", "p"), before.measurement("core", "u")
    gain = float(apart.scale_of_sums / own.scale_of_sums)
    assert gain == pytest.approx(1.5 if family is NoiseFamily.LAPLACE else math.sqrt(1.5), rel=1e-3)
    needed = units.half_shown(1)
    assert needed is not None
    assert own.half_shown(1) < needed


def test_intervals_of_two_averages_hold_given_that_the_group_is_shown() -> None:
    """Groups of a half of the threshold and of twice as much (drawn); and halves of the intervals do not."""
    measurement = made(NoiseFamily.GAUSSIAN, two_averages(), Fraction(1, 4), delta=Fraction(1, 100))
    for part in (0.5, 2.0):
        rows = round(part * measurement.half_shown(1))
        # All rows at steps 1,024 of 2,048 and 256 of 1,024.
        whole = rows * measurement.statistic.row_units
        vector = np.array([[whole * 3 // 8, whole // 8, whole * 3 // 8, whole // 8]])
        shown = _shown(measurement, vector, wanted=3_000)
        true = {"y": 512.0, "x": 7 + 512.0, "n": float(rows)}
        for name, kind in (("y", A.REGRESSION_MEAN_Y), ("x", A.REGRESSION_MEAN_X), ("n", A.ROWS)):
            column = estimate_column(measurement, Estimate(name, kind, "p", integer=name == "n"), shown, alpha=0.05)
            low, high = (np.array(ends, dtype=float) for ends in (column.lows, column.highs))
            held = (low - 1e-9 <= true[name]) & (true[name] <= high + 1e-9)
            assert held.mean() > 0.95 - 5 * math.sqrt(0.05 * 0.95 / len(shown)), (name, part)


def test_sums_of_laplace_variables_have_their_tails() -> None:
    """One to five of them, beside numerical inversion of the characteristic function."""
    points = (np.arange(200_000) + 0.5) * 2.0**-9
    for several in range(1, 6):
        law = (1 / (1 + points**2)) ** several
        for x in (0.0, 0.7, 3.0, 8.0):
            inverted = 0.5 - float((np.sin(x * points) / points * law).sum()) * 2.0**-9 / math.pi
            both = laplace_tail(several, 2.0)(np.array([2 * x, -2 * x]))
            assert both[0] == pytest.approx(inverted, abs=3e-6)
            assert both.sum() == pytest.approx(1)


@pytest.mark.sparse(3)
@pytest.mark.parametrize("family", NoiseFamily)
@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("part", [0.25, 0.6, 1.0, 1.4, 3.0])
def test_intervals_hold_given_that_the_group_is_shown(family: NoiseFamily, degree: int, part: float) -> None:
    """Groups of a part of the threshold: of those that are shown, each interval holds with 95 per cent (drawn)."""
    measurement = made(family, moments(degree=degree), Fraction(1, 4), delta=Fraction(1, 100))
    rows = max(1, round(part * measurement.half_shown(1)))
    values = np.random.default_rng(rows).integers(60, 100, size=rows)
    vector = np.array([bernstein(values, width=100, degree=degree)])
    shown = _shown(measurement, vector, wanted=3_000)
    true = truths(values)
    for estimate in MOMENT_ESTIMATES[degree]:
        if estimate.name not in true:
            continue
        column = estimate_column(measurement, estimate, shown, alpha=0.05)
        lows = np.array([-np.inf if one is None else one for one in column.lows], dtype=float)
        highs = np.array([np.inf if one is None else one for one in column.highs], dtype=float)
        held = (lows <= true[estimate.name] + 1e-9) & (true[estimate.name] <= highs + 1e-9)
        assert held.mean() > 0.95 - 5 * math.sqrt(0.05 * 0.95 / len(shown)), estimate.name
        if estimate.kind is AggregateFunction.ROWS and part == 0.25:
            # Twin: as if nothing had been selected, the counts of groups below the threshold are never held.
            plain = ESTIMATORS[estimate.kind].column(measurement, shown, integer=True, alpha=0.05)
            assert (np.array(plain.lows, dtype=float) <= rows).mean() < 0.9
        if part == 3.0 and estimate.kind is AggregateFunction.AVERAGE:
            plain = ESTIMATORS[estimate.kind].column(measurement, shown, integer=False, alpha=0.05)
            wide = np.array(plain.highs, dtype=float) - np.array(plain.lows, dtype=float)
            assert (highs - lows).sum() < 1.5 * wide.sum()


def _shown(measurement: Selecting, vector: np.ndarray, *, wanted: int) -> np.ndarray:  # type: ignore[type-arg]
    """Noisy sums of groups of these sums that were shown: rare ones by many draws."""
    found: list[np.ndarray] = []  # type: ignore[type-arg]
    for seed in range(60):
        drawn = measurement.perturb(narrow(np.repeat(vector, 20_000, axis=0)), SeededBits(seed))
        found.append(drawn.sums[drawn.kept])
        if sum(map(len, found)) >= wanted:
            break
    return np.concatenate(found)[:wanted]


def test_normal_reaches_are_those_of_the_normal() -> None:
    """The threshold over the noise of the count is the normal's quantile: 4.75 standard deviations at delta 10^-6."""
    measurement = made(NoiseFamily.GAUSSIAN, moments(degree=1), Fraction(1, 100))
    deviation = math.sqrt(sum(float(sigma) ** 2 for sigma in measurement.sigmas))
    assert float(measurement.reach) / deviation == pytest.approx(-NormalDist().inv_cdf(1e-6), rel=1e-9)
