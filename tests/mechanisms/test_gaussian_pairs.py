"""Averages of two columns share one count: no row's forms are too long, the price is met, intervals hold."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import cast

import numpy as np
import pytest

from mechanisms.calibrate import Price, calibrate
from mechanisms.estimates import ESTIMATORS, estimate_column, rows_of_noise, simulate_column
from mechanisms.families import NoiseFamily
from mechanisms.measurement import narrow
from mechanisms.measurements.gaussian import GaussianMeasurement
from mechanisms.measurements.gaussian_combined import CombinedGaussian, as_kept, means
from mechanisms.measurements.gaussian_pairs import GaussianPairs
from mechanisms.moment_weights import PAIR_SQUARES, has_pair_noise
from mechanisms.noisy_sums import NoisySums, Stored, sums_from_plain, sums_to_plain
from mechanisms.pair_forms import FORMS
from privacy.aggregate import AggregateFunction as A
from privacy.events import GaussianEvent
from privacy.statistic import Estimate
from tests.mechanisms.support import SeededBits, scalar_core, two_averages

MU_SQUARED = Fraction(1, 4)
ESTIMATES = (
    Estimate("y", A.REGRESSION_MEAN_Y, "p"),
    Estimate("x", A.REGRESSION_MEAN_X, "p"),
    Estimate("n", A.ROWS, "p", integer=True),
)
FIRST, SECOND = 2**11, 2**10


def made(mu_squared: Fraction = MU_SQUARED) -> GaussianPairs:
    """The measurement of two averages at a price."""
    core = scalar_core([two_averages()], ESTIMATES)
    (measurement,) = calibrate([core], Price(NoiseFamily.GAUSSIAN, mu_squared, Fraction(0))).measurements
    assert isinstance(measurement, GaussianPairs)
    return measurement


def sums_of(s: np.ndarray, t: np.ndarray) -> np.ndarray:
    """The exact sums of pairs of steps, by the definition: one cell."""
    parts = [a * b for a in (FIRST - s, s) for b in (SECOND - t, t)]
    return np.array([[int(part.sum()) for part in parts]], dtype=np.int64)


def length(squares: tuple[Fraction, ...], s: Fraction, t: Fraction) -> Fraction:
    """The squared length of a row's forms, each times its factor, over that of the row's worth."""
    u, v = 2 * s - 1, 2 * t - 1
    return sum(
        (square * form**2 for square, form in zip(squares, (Fraction(1), u, v, u * v), strict=True)), Fraction(0)
    )


def test_no_rows_forms_are_longer_than_one() -> None:
    """Exactly: the squared length is convex in each value, so greatest at the corners; there it is 1, and any more is
    found too great.
    """
    ends = list(itertools.product((Fraction(0), Fraction(1)), repeat=2))
    assert [length(PAIR_SQUARES, s, t) for s, t in ends] == [1] * 4
    for place in range(4):
        more = tuple(square * (1 + Fraction(i == place, 10**6)) for i, square in enumerate(PAIR_SQUARES))
        assert max(length(more, s, t) for s, t in ends) > 1
    assert (FORMS.T @ FORMS == 4 * np.eye(4)).all()


@pytest.mark.parametrize("mu_squared", [Fraction(1, 100), MU_SQUARED, Fraction(10**9)])
def test_the_event_holds_for_every_row(mu_squared: Fraction) -> None:
    """Forms of one row, rounded to the grid beside other rows at every distance from it, with the factors of the draw;
    and of a unit whose four sums are each off by two.
    """
    measurement = made(mu_squared)
    event = measurement.event()
    assert isinstance(event, GaussianEvent)
    used = [(measurement.sigma / 4 / sigma) ** 2 for sigma in measurement.sigmas]
    assert all(square <= most for square, most in zip(used, PAIR_SQUARES, strict=True))
    step = 4 * measurement.grid
    off, near = (
        np.array([*itertools.product(one, repeat=4)]) for one in ((-2, 0, 2), range(0, step, measurement.grid))
    )
    beside = np.array([987_654_321, 123_456_789, 55_555_555, 77_777_777]) + near
    for s, t in itertools.product((0, 1, 1024, FIRST), (0, 7, SECOND)):
        moved = sums_of(np.array([s]), np.array([t])) + off
        sides = [(side @ FORMS.T + step // 2) // step * step for side in (beside, beside + moved[:, None])]
        change = (sides[1] - sides[0]).astype(float)
        assert (change**2 @ np.array(used, dtype=float)).max() <= event.l2_squared
    loss = event.loss()
    assert loss.mu_squared is not None
    assert mu_squared * (1 - Fraction(1, 10**12)) <= loss.mu_squared <= mu_squared
    assert event.l2_squared <= (FIRST * SECOND) ** 2 * Fraction(10_02, 1000)


def test_sums_have_the_noise_of_their_forms() -> None:
    """The variances and covariances of what is drawn (seeded), as sums and as forms, and those that are stated."""
    measurement = made()
    noisy = measurement.perturb(np.zeros((100_000, 4), dtype=np.int64), SeededBits(5)).sums.astype(float)
    forms = noisy @ FORMS.T / 4
    wanted = float(measurement.sigma) / 4 / np.sqrt([float(square) for square in PAIR_SQUARES])
    assert forms.std(axis=0) == pytest.approx(wanted, rel=0.01)
    assert abs(np.corrcoef(forms.T) - np.eye(4)).max() < 0.02
    weights = np.array([[0.3, -0.2, 0.9, 0.1], [1, 1, 1, 1], [1, 0, 0, 0]], dtype=float)
    assert (noisy @ weights.T).var(axis=0) == pytest.approx(measurement.variances(weights), rel=0.02)
    assert measurement.variance() == pytest.approx(float(measurement.variances(weights[2:])[0]))
    simulated = measurement.noise_of_cells(50_000, 1, 4, SeededBits(6)).reshape(-1, 4)
    assert np.cov(simulated.T) == pytest.approx(np.cov(noisy.T), rel=0.05, abs=0.02 * measurement.variance())


def test_no_number_has_more_error_than_with_one_noise() -> None:
    """At every mean, against noise of one size on the four sums at the same price; by what the page says."""
    measurement = made()
    old = GaussianMeasurement.for_mu_squared(
        core="c", statistic=measurement.statistic, share=Fraction(1), mu_squared=MU_SQUARED
    )

    def error(one: GaussianMeasurement, weights: list[float]) -> float:
        return math.sqrt(float(one.variances(np.array([weights]))[0])) * one.grid

    for c in np.linspace(0, 1, 21):
        for weights in ([-c, -c, 1 - c, 1 - c], [-c, 1 - c, -c, 1 - c]):
            ratio = error(old, weights) / error(measurement, weights)
            assert ratio == pytest.approx(
                math.sqrt((1 + 4 * (c - 0.5) ** 2) / (32 / 37 + 32 / 13 * (c - 0.5) ** 2)), rel=1e-3
            )
            assert ratio > 1.07
    assert error(old, [1, 1, 1, 1]) / error(measurement, [1, 1, 1, 1]) == pytest.approx(math.sqrt(13 / 8), rel=1e-3)


def covered(draws: int, rows: int, *, half: bool = False) -> dict[str, float]:
    """How often the intervals of each estimate hold the truth; `half` of each interval alone."""
    measurement = made()
    words = SeededBits(11).words(2 * rows).astype(np.float64).reshape(2, rows) / 2.0**64
    s, t = np.floor(words[0] ** 2 * FIRST).astype(np.int64), np.floor(words[1] * SECOND).astype(np.int64)
    noisy = measurement.perturb(np.tile(sums_of(s, t), (draws, 1)), SeededBits(rows)).sums
    truths = {"y": float(s.mean()) / 2, "x": 7 + 2.0 * float(t.mean()), "n": float(rows)}
    found = {}
    for estimate in ESTIMATES:
        column = estimate_column(measurement, estimate, noisy, alpha=0.05)
        value, low, high = (np.array(part, dtype=float) for part in (column.values, column.lows, column.highs))
        if half:
            low, high = (value + low) / 2, (value + high) / 2
        found[estimate.name] = float(np.mean((low <= truths[estimate.name]) & (truths[estimate.name] <= high)))
        if not half:
            simulated = simulate_column(measurement, estimate, noisy.astype(np.float64))
            assert np.isclose(value, simulated, rtol=1e-6).mean() > 0.9, estimate.name
    return found


@pytest.mark.parametrize("rows", [5, 60, 3_000])
def test_intervals_cover(rows: int) -> None:
    """Of both averages and the number of rows, with few rows and many; halves of them do not."""
    draws = 2_000
    least = 0.95 - 5 * math.sqrt(0.95 * 0.05 / draws)
    assert min(covered(draws, rows).values()) >= least
    if rows > 1_000:
        assert max(covered(draws, rows).values()) <= 0.975
        assert max(covered(draws, rows, half=True).values()) < 0.8


@pytest.mark.nightly
@pytest.mark.parametrize("rows", [5, 60, 3_000, 100_000])
def test_intervals_cover_in_ten_thousand_repetitions(rows: int) -> None:
    """The same, five standard deviations below 95 per cent."""
    assert min(covered(10_000, rows).values()) >= 0.95 - 5 * math.sqrt(0.95 * 0.05 / 10_000)


def test_stored_sums_keep_their_law() -> None:
    """Out and in again; and the mean of two releases has the noise of both, with intervals of every look."""
    measurement = made()
    first, second = (
        measurement.perturb(np.tile([[10**10, 10**9, 10**9, 10**9]], (4_000, 1)), SeededBits(seed)).sums
        for seed in (1, 2)
    )
    sums = NoisySums(measurement, first, ESTIMATES)
    (again,) = sums_from_plain(cast("list[Stored]", sums_to_plain([sums])))
    assert again.measurement == measurement
    mean, values, fine = means(measurement, as_kept(measurement, first, None), measurement, second)
    (kept,) = sums_from_plain(cast("list[Stored]", sums_to_plain([NoisySums(mean, narrow(values), ESTIMATES, fine)])))
    assert kept.measurement == mean
    assert isinstance(mean, CombinedGaussian)
    weights = np.array([[1.0, 1, 1, 1], [-0.3, 0.7, -0.3, 0.7]])
    assert mean.variances(weights) * 2 == pytest.approx(measurement.variances(weights), rel=0.01)
    assert (values.astype(float) @ weights.T).var(axis=0) == pytest.approx(mean.variances(weights), rel=0.1)
    assert (mean.signed_quantile(weights, 0.05) > 1.9 * np.sqrt(mean.variances(weights))).all()


def test_what_has_this_noise() -> None:
    """Two averages alone: covariances beside them need the product, and what is asked for as a pair too."""
    both = two_averages()
    assert has_pair_noise(both)
    for parts in (1, 3):
        assert not has_pair_noise(replace(both, parts=parts))
    measurement = made()
    for estimate in ESTIMATES[:2]:
        needed = rows_of_noise(measurement, estimate, alpha=0.05)
        assert needed is not None
        few = sums_of(np.full(round(needed), FIRST // 2), np.full(round(needed), SECOND // 2)) // measurement.grid
        (low,), (high,) = (
            getattr(estimate_column(measurement, estimate, few, alpha=0.05), end) for end in ("lows", "highs")
        )
        ends = ESTIMATORS[estimate.kind].ends(measurement)
        assert ends is not None
        assert high - low == pytest.approx(ends[1] - ends[0], rel=0.05)
