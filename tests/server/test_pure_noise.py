"""The number of rows below which an answer is noise alone: at it no mean or sum is told, at some times it one is."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from mechanisms.calibrate import Price, calibrate
from mechanisms.estimates import estimate_column, rows_of_noise
from mechanisms.families import NoiseFamily
from mechanisms.interval import two_sided_alpha
from sql_rewrite.bound import bound
from sql_rewrite.lift import lift
from tests.sql_rewrite.datasets import CLINIC

CONFIDENCE = Fraction(95, 100)


@pytest.mark.parametrize(
    "price",
    [
        Price(NoiseFamily.LAPLACE, Fraction(1, 10), Fraction(0)),
        Price(NoiseFamily.GAUSSIAN, Fraction(1, 100), Fraction(0)),
    ],
)
@pytest.mark.parametrize("call", ["AVG(cost)", "AVG(cost), SUM(cost)", "AVG(cost), COUNT(*)", "STDDEV(cost)"])
def test_fewer_rows_than_that_tell_nothing(call: str, price: Price) -> None:
    """The interval of fewer rows is the whole range, whatever their mean; of eight times as many it is not."""
    (core,) = bound(lift(f"SELECT {call} FROM visits", CLINIC))
    calibration = calibrate([core.described], price)
    estimate = next(e for e in core.described.estimates if e.kind.value in ("average", "deviation_sample"))
    measurement = calibration.measurement("c0", estimate.statistic)
    statistic = measurement.statistic
    assert statistic.encoding is not None
    size = statistic.encoding.highest**statistic.degree
    needed = rows_of_noise(measurement, estimate, alpha=two_sided_alpha(CONFIDENCE))
    assert needed is not None

    def width(rows: float, mean: Fraction) -> float:
        shares = [1 - mean, mean] if statistic.degree == 1 else [(1 - mean) ** 2, 2 * mean * (1 - mean), mean**2]
        sums = [round(Fraction(rows) * size * share / measurement.grid) for share in shares]
        noisy = np.array([sums + [0] * (statistic.coordinates - len(sums))], dtype=object)
        column = estimate_column(measurement, estimate, noisy, alpha=two_sided_alpha(CONFIDENCE))
        low, high = column.lows[0], column.highs[0]
        assert low is not None
        assert high is not None
        return float(high - low)

    whole = width(needed / 1000, Fraction(1, 2))
    for mean in (Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(1)):
        assert width(needed * 0.99, mean) == pytest.approx(whole)
    assert width(needed * 8, Fraction(1, 2)) < 0.9 * whole


@pytest.mark.parametrize("call", ["SUM(cost)", "SUM(cost), AVG(cost)", "SUM(cost), STDDEV(cost)"])
@pytest.mark.parametrize(
    "price",
    [
        Price(NoiseFamily.LAPLACE, Fraction(1, 10), Fraction(0)),
        Price(NoiseFamily.GAUSSIAN, Fraction(1, 100), Fraction(0)),
    ],
)
def test_a_sum_of_fewer_rows_than_that_is_within_its_own_noise(call: str, price: Price) -> None:
    """The half-width is so many times the greatest value: of fewer rows every sum is within it of zero."""
    (core,) = bound(lift(f"SELECT {call} FROM visits", CLINIC))
    calibration = calibrate([core.described], price)
    estimate = next(e for e in core.described.estimates if e.kind.value == "sum")
    measurement = calibration.measurement("c0", estimate.statistic)
    nothing = np.array([[0] * measurement.statistic.coordinates], dtype=object)
    column = estimate_column(measurement, estimate, nothing, alpha=two_sided_alpha(CONFIDENCE))
    low, high = column.lows[0], column.highs[0]
    assert low is not None
    assert high is not None
    greatest = 5_000  # of a cost, as declared
    needed = rows_of_noise(measurement, estimate, alpha=two_sided_alpha(CONFIDENCE))
    assert needed is not None
    assert needed * greatest == pytest.approx((high - low) / 2, rel=1e-3)


def test_a_count_always_tells_something() -> None:
    """No number of rows makes a count noise alone: it could be any number, and is near the noisy one."""
    (core,) = bound(lift("SELECT COUNT(*), COUNT(cost), COUNT(DISTINCT person_id) FROM visits", CLINIC))
    calibration = calibrate([core.described], Price(NoiseFamily.LAPLACE, Fraction(1, 10), Fraction(0)))
    for estimate in core.described.estimates:
        assert rows_of_noise(calibration.measurement("c0", estimate.statistic), estimate, alpha=0.05) is None
