"""What is said of two values of a row: intervals hold as often as they say, errors are the spread of the values.

Thousands of noisy sums of the same rows, few and many, correlated and not, and of degenerate ones. The bound on the
coverage is six standard deviations below the nominal 95 per cent.
"""

from __future__ import annotations

import math
import statistics
from fractions import Fraction

import numpy as np
import pytest

from mechanisms.calibrate import Price, calibrate
from mechanisms.estimates import ESTIMATORS, estimate_column, expected_errors, held_to, rows_of_noise, simulate_column
from mechanisms.families import NoiseFamily
from mechanisms.interval import laplace_sum_quantile, laplace_sum_tail, laplace_sum_tail_inverted
from mechanisms.linear import weighted_quantiles
from mechanisms.measurement import Integers, Measurement, coarsen, narrow
from privacy.aggregate import AggregateFunction as A
from privacy.statistic import Encoding, Estimate, Statistic, StatisticKind
from tests.mechanisms.support import SeededBits, moments, scalar_core, sensitivity

V, W = 200, 100
PRICES = {
    "laplace": Price(NoiseFamily.LAPLACE, Fraction(1), Fraction(0)),
    "gaussian": Price(NoiseFamily.GAUSSIAN, Fraction(1, 2), Fraction(0)),
    "gaussian, little noise": Price(NoiseFamily.GAUSSIAN, Fraction(10_000), Fraction(0)),
}
DRAWS = {"laplace": 200, "gaussian": 4_000, "gaussian, little noise": 1_000}
ESTIMATES = tuple(
    Estimate(kind.value, kind, "p", integer=kind is A.REGRESSION_COUNT)
    for kind in A
    if kind.statistic is StatisticKind.PRODUCTS
)


def products(degree: int = 2, second_degree: int = 2) -> Statistic:
    """Pairs of y in [-3, 97] and x in [7, 207], with rows that lack one."""
    coordinates = (degree + 1) * (second_degree + 1) + 1
    return Statistic(
        name="p",
        kind=StatisticKind.PRODUCTS,
        sensitivity=sensitivity(V**degree * W**second_degree, l0=coordinates),
        coordinates=coordinates,
        encoding=Encoding(Fraction(-3), Fraction(1, 2), 0, V),
        degree=degree,
        counts_nulls=True,
        second=Encoding(Fraction(7), Fraction(2), 0, W),
        second_degree=second_degree,
    )


def rows_of(shape: str, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Fixed steps of both values."""
    words = SeededBits(17).words(3 * rows).astype(np.float64).reshape(3, rows) / 2.0**64
    t = np.floor(20 + 60 * (words[0] + words[1]) / 2)
    match shape:
        case "related":
            s = np.floor(1.2 * t + 60 * words[2])
        case "apart":
            s = np.floor(V * words[2])
        case "a line":
            s = 2 * t
        case _:
            s, t = np.full(rows, 40.0), np.full(rows, 60.0)
    return s.astype(object).astype(int), t.astype(int)


def exact(statistic: Statistic, s: np.ndarray, t: np.ndarray, nulls: int = 3) -> Integers:
    """The sums of the pairs, by the definition."""

    def terms(values: np.ndarray, width: int, degree: int) -> list[np.ndarray]:
        v = values.astype(object)
        return [math.comb(degree, i) * v**i * (width - v) ** (degree - i) for i in range(degree + 1)]

    first, second = terms(s, V, statistic.degree), terms(t, W, statistic.second_degree)
    sums = [int((a * b).sum()) for a in first for b in second]
    return narrow(np.array([[*sums, nulls * statistic.row_units]], dtype=object))


def noisy_of(statistic: Statistic, price: str, shape: str, rows: int) -> tuple[Measurement, Integers, np.ndarray]:
    """Many noisy sums of the same rows, and the pairs themselves."""
    estimates = [e for e in ESTIMATES if held(statistic, e)]
    (measurement,) = calibrate([scalar_core([statistic], estimates)], PRICES[price]).measurements
    s, t = rows_of(shape, rows)
    sums = coarsen(exact(statistic, s, t), measurement.grid)
    draws = DRAWS[price]
    noise = measurement.noise(draws * sums.size, SeededBits(rows + 1)).reshape(draws, sums.size)
    return measurement, narrow(sums + noise), np.stack([-3 + s / 2, 7 + 2.0 * t], axis=1)


def held(statistic: Statistic, estimate: Estimate) -> bool:
    """Whether the statistic holds the estimate."""
    try:
        ESTIMATORS[estimate.kind].form(statistic)
    except ValueError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("price", PRICES)
@pytest.mark.parametrize(
    ("shape", "rows"),
    [("related", 3), ("related", 40), ("related", 5000), ("apart", 400), ("a line", 400), ("one", 60)],
)
@pytest.mark.sparse(6)
def test_intervals_cover(price: str, shape: str, rows: int) -> None:
    """Of every aggregate of pairs, where it is defined; simulations give the same values."""
    measurement, noisy, pairs = noisy_of(products(), price, shape, rows)
    draws = len(noisy)
    least = 0.95 - 6 * math.sqrt(0.95 * 0.05 / draws)
    for estimate in ESTIMATES:
        truth = ESTIMATORS[estimate.kind].truth(pairs, nulls=3)
        if truth is None:
            continue
        column = estimate_column(measurement, estimate, noisy, alpha=0.05)
        hair = 1e-9 * max(1.0, abs(truth))
        covered = sum(
            (low is None or low - hair <= truth) and (high is None or truth <= high + hair)
            for low, high in zip(column.lows, column.highs, strict=True)
        )
        assert covered / draws >= least, estimate.name
        values = np.array([math.nan if value is None else value for value in column.values], dtype=float)
        simulated = simulate_column(measurement, estimate, noisy.astype(np.float64))
        close = np.isclose(values, simulated, rtol=1e-6, atol=1e-7 * max(1.0, abs(truth)), equal_nan=True)
        assert close.mean() > 0.9, estimate.name  # a mean on its bound is held a little differently


@pytest.mark.parametrize("price", ["laplace", "gaussian"])
def test_with_many_rows_errors_and_intervals_are_those_of_the_noise(price: str) -> None:
    """With 5,000 rows: the errors are the spread of the values, and intervals little wider than it asks."""
    measurement, noisy, pairs = noisy_of(products(), price, "related", 5000)
    for estimate in ESTIMATES:
        column = estimate_column(measurement, estimate, noisy, alpha=0.05)
        spread = float(np.std(np.array(column.values, dtype=float)))
        assert statistics.median(column.standard_errors) == pytest.approx(spread, rel=0.2), estimate.name
        width = np.median(np.array(column.highs, dtype=float) - np.array(column.lows, dtype=float))
        factor = 1.8 if estimate.kind is A.REGRESSION_INTERCEPT else 1.4
        assert width < factor * 2 * 1.96 * spread, estimate.name
        truth = ESTIMATORS[estimate.kind].truth(pairs, nulls=3)
        assert truth is not None
        assert abs(float(np.mean(np.array(column.values, dtype=float))) - truth) < spread


def test_half_of_an_interval_does_not_hold() -> None:
    """Twin: the coverage test sees intervals that are too narrow."""
    measurement, noisy, pairs = noisy_of(products(), "gaussian", "related", 5000)
    for kind in (A.CORRELATION, A.REGRESSION_SLOPE, A.COVARIANCE_POPULATION, A.REGRESSION_INTERCEPT):
        truth = ESTIMATORS[kind].truth(pairs, nulls=3)
        assert truth is not None
        column = estimate_column(measurement, Estimate("e", kind, "p"), noisy, alpha=0.05)
        low, value, high = (np.array(part, dtype=float) for part in (column.lows, column.values, column.highs))
        inside = (value - (value - low) / 2 <= truth) & (truth <= value + (high - value) / 2)
        assert inside.mean() < 0.9


@pytest.mark.parametrize(("degree", "second_degree"), [(1, 1), (1, 2), (2, 1), (2, 2)])
def test_each_degree_holds_what_it_says(degree: int, second_degree: int) -> None:
    """The least degrees of each aggregate suffice, and give the same value without noise."""
    statistic = products(degree, second_degree)
    (measurement,) = calibrate(
        [scalar_core([statistic], [e for e in ESTIMATES if held(statistic, e)])],
        Price(NoiseFamily.GAUSSIAN, Fraction(10**12), Fraction(0)),
    ).measurements
    s, t = rows_of("related", 500)
    pairs = np.stack([-3 + s / 2, 7 + 2.0 * t], axis=1)
    sums = coarsen(exact(statistic, s, t), measurement.grid)
    for estimate in ESTIMATES:
        kind = estimate.kind
        assert held(statistic, estimate) is (degree >= kind.degree and second_degree >= kind.second_degree)
        if held(statistic, estimate):
            (value,) = estimate_column(measurement, estimate, sums, alpha=0.05).values
            assert value == pytest.approx(ESTIMATORS[kind].truth(pairs, nulls=3), rel=1e-4)


def test_what_is_said_in_advance() -> None:
    """Errors fall with the rows, noise alone has some rows, and held values have ends."""
    statistic = products()
    (measurement,) = calibrate([scalar_core([statistic], ESTIMATES)], PRICES["gaussian"]).measurements
    for estimate in ESTIMATES:
        told = expected_errors(measurement, estimate, alpha=0.05)
        errors = [one.standard_error for one in told]
        assert all(error is not None and error > 0 for error in errors)
        total = estimate.kind in (A.REGRESSION_SXX, A.REGRESSION_SXY, A.REGRESSION_SYY, A.REGRESSION_COUNT)
        assert total or errors[0] > errors[1] > errors[2]  # type: ignore[operator]
        counted = estimate.kind is A.REGRESSION_COUNT
        assert (rows_of_noise(measurement, estimate, alpha=0.05) is None) is counted
        assert (held_to(measurement, estimate) is None) is total


def test_tails_of_many_laplace_variables() -> None:
    """Inversion agrees with partial fractions where these are exact, and approximations are above it."""
    few = np.array([[1.0, 0.8, 0.5, 0.3]])
    for reach in (0.1, 1.0, 4.0, 9.0):
        assert laplace_sum_tail_inverted(few, reach) == pytest.approx(laplace_sum_tail(few, reach), abs=1e-6)
    many = np.array([[1.0] * 9, [1, 0.5, 0.25, 0.5, 0.25, 0.125, 0.1, 0.2, 0.3], [1, 0.9, 0.8, 0.7, 0.6, 0.5, 0, 0, 0]])
    nothing = np.zeros(3)
    for alpha in (0.5, 0.2, 0.05, 0.001):
        found = weighted_quantiles(many, nothing, nothing[:, None], alpha)
        for weights, quantile in zip(many, found, strict=True):
            (tail,) = laplace_sum_tail_inverted(weights[None], float(quantile))
            assert 0.9 * alpha <= tail <= alpha * (1 + 1e-6)
    assert laplace_sum_quantile(few, 0.05) == pytest.approx(
        weighted_quantiles(few, nothing[:1], nothing[:1, None], 0.05), rel=0.03
    )


HIGHER = (A.SKEWNESS, A.KURTOSIS, A.KURTOSIS_POPULATION, A.AVERAGE, A.VARIANCE_SAMPLE)


@pytest.mark.parametrize("price", PRICES)
@pytest.mark.parametrize("rows", [3, 30, 5000])
@pytest.mark.sparse(6)
def test_intervals_of_higher_moments_cover(price: str, rows: int) -> None:
    """Skewness and kurtosis, and what else their moments hold; with many rows they are little wider than it asks."""
    statistic = moments(degree=4, nulls=True)
    estimates = [Estimate(kind.value, kind, "m") for kind in HIGHER]
    (measurement,) = calibrate([scalar_core([statistic], estimates)], PRICES[price]).measurements
    t = np.floor(100 * (SeededBits(23).words(rows).astype(np.float64) / 2.0**64) ** 2).astype(int)
    whole = t.astype(object)
    terms = [math.comb(4, i) * whole**i * (100 - whole) ** (4 - i) for i in range(5)]
    sums = coarsen(
        narrow(np.array([[*(int(term.sum()) for term in terms), 3 * 100**4]], dtype=object)), measurement.grid
    )
    draws = DRAWS[price]
    noisy = narrow(sums + measurement.noise(draws * 6, SeededBits(rows + 2)).reshape(draws, 6))
    for estimate in estimates:
        truth = ESTIMATORS[estimate.kind].truth(t.astype(np.float64), nulls=3)
        if truth is None:
            continue
        column = estimate_column(measurement, estimate, noisy, alpha=0.05)
        low, high = (np.array(part, dtype=float) for part in (column.lows, column.highs))
        hair = 1e-9 * max(1.0, abs(truth))
        covered = float(((low - hair <= truth) & (truth <= high + hair)).mean())
        assert covered >= 0.95 - 6 * math.sqrt(0.95 * 0.05 / draws), estimate.name
        values = np.array([math.nan if value is None else value for value in column.values], dtype=float)
        simulated = simulate_column(measurement, estimate, noisy.astype(np.float64))
        assert np.isclose(values, simulated, rtol=1e-5, atol=1e-7, equal_nan=True).mean() > 0.9
        if rows == 5000:
            spread = float(values.std())
            assert statistics.median(column.standard_errors) == pytest.approx(spread, rel=0.2)
            assert float(np.median(high - low)) < 1.4 * 2 * 1.96 * spread
