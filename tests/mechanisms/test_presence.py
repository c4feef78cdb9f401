"""What BOOL_OR says of a noisy count: how often it is wrong of nobody, of few and of many, and what an answer says."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from mechanisms.calibrate import Price, calibrate
from mechanisms.estimates import estimate_column, expected_errors, held_to, of_nobody, simulate_column
from mechanisms.estimators.sums import ROWS
from mechanisms.families import NoiseFamily
from privacy.aggregate import AggregateFunction
from privacy.statistic import Estimate
from tests.mechanisms.support import SeededBits, count, moments, scalar_core

PRESENT = Estimate("e", AggregateFunction.PRESENT, "n", integer=True)
COUNTED = Estimate("e", AggregateFunction.ROWS, "n", integer=True)
DRAWS = 20_000
ALPHA = 0.05
PRICES = (
    Price(NoiseFamily.LAPLACE, Fraction(1, 10), Fraction(0)),
    Price(NoiseFamily.GAUSSIAN, Fraction(1, 200), Fraction(0)),
)


@pytest.mark.parametrize("price", PRICES, ids=lambda price: price.family.name)
def test_it_is_wrong_as_seldom_as_the_interval(price: Price) -> None:
    """Of no row it is true with at most alpha; of two half-widths of rows with at least 1 - alpha; a row is as none."""
    (measurement,) = calibrate([scalar_core([count()], [PRESENT])], price).measurements
    noise = measurement.noise(DRAWS, SeededBits(11)).reshape(DRAWS, 1)
    room = 6 * math.sqrt(ALPHA * (1 - ALPHA) / DRAWS)

    def share(rows: int) -> float:
        column = estimate_column(measurement, PRESENT, rows // measurement.grid + noise, alpha=ALPHA)
        cells = zip(column.lows, column.values, column.highs, strict=True)
        assert all(low <= value <= high for low, value, high in cells)
        covered = [low <= (rows > 0) <= high for low, high in zip(column.lows, column.highs, strict=True)]
        assert np.mean(covered) >= 1 - ALPHA - room
        return float(np.mean(column.values))

    counts = estimate_column(measurement, COUNTED, np.zeros((1, 1), dtype=np.int64), alpha=ALPHA)
    width = counts.highs[0] - counts.lows[0]
    assert share(0) <= ALPHA + room
    assert share(0) > 0
    assert share(1) <= ALPHA + 2 * room + 0.05
    assert share(width + 1) >= 1 - ALPHA - room


def test_a_threshold_of_nothing_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that the test can fail: a presence that forgets the noise is true of nobody half of the time."""
    genuine = type(ROWS).column

    def narrow(self: object, *arguments: object, alpha: float, **named: object) -> object:
        return genuine(self, *arguments, alpha=0.999, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(type(ROWS), "column", narrow)
    with pytest.raises(AssertionError):
        test_it_is_wrong_as_seldom_as_the_interval(PRICES[0])


def test_what_it_says_beside_its_value() -> None:
    """It is within [0, 1], simulated likewise, never that of nobody, and has no error in advance."""
    (measurement,) = calibrate([scalar_core([count()], [PRESENT])], PRICES[0]).measurements
    noisy = np.array([[-10_000], [0], [10_000]], dtype=np.int64)
    column = estimate_column(measurement, PRESENT, noisy, alpha=ALPHA)
    assert (column.values, column.lows, column.highs) == ((0, 0, 1), (0, 0, 1), (0, 1, 1))
    assert held_to(measurement, PRESENT) == (0.0, 1.0)
    assert of_nobody(measurement, PRESENT, noisy, alpha=ALPHA) == (False,) * 3
    assert simulate_column(measurement, PRESENT, noisy.astype(np.float64)).tolist() == [0, 0, 1]
    assert expected_errors(measurement, PRESENT, alpha=ALPHA) == ()


def test_other_sums_do_not_hold_it() -> None:
    """It is read from counts alone."""
    counted = Estimate("e", AggregateFunction.ROWS, "m", integer=True)
    (measurement,) = calibrate([scalar_core([moments()], [counted])], PRICES[0]).measurements
    with pytest.raises(ValueError, match="does not hold"):
        estimate_column(measurement, PRESENT, np.zeros((1, 3), dtype=np.int64), alpha=ALPHA)
