"""Noise on Bernstein sums by coordinate: no row's vector is too long, the price is met, stored laws stay."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from mechanisms.calibrate import Price, calibrate
from mechanisms.estimates import estimate_column, linear_form, linear_standard_error, simulate_column
from mechanisms.families import NoiseFamily
from mechanisms.measurement import narrow
from mechanisms.measurements.gaussian import GaussianMeasurement
from mechanisms.measurements.gaussian_moments import GaussianMoments
from mechanisms.moment_weights import SQUARES, squares_of
from mechanisms.noisy_sums import NoisySums, sums_from_plain, sums_to_plain
from privacy.aggregate import AggregateFunction
from privacy.events import GaussianEvent
from privacy.statistic import Estimate, Statistic
from tests.mechanisms.support import MOMENT_ESTIMATES, SeededBits, bernstein, moments, scalar_core, sensitivity, truths

MU_SQUARED = Fraction(1, 4)


def made(statistic: Statistic, mu_squared: Fraction = MU_SQUARED) -> GaussianMoments:
    core = scalar_core([statistic], [])
    (measurement,) = calibrate([core], Price(NoiseFamily.GAUSSIAN, mu_squared, Fraction(0))).measurements
    assert isinstance(measurement, GaussianMoments)
    return measurement


def longest(squares: tuple[Fraction, ...]) -> Fraction | None:
    """A point of [0, 1] at which a row's vector is longer than 1 in exact arithmetic, None where there is none.

    By the control points of the squared length on halves of halves (de Casteljau): all at most 1 proves an interval.
    """
    degree = len(squares) - 1
    points = [Fraction(0)] * (2 * degree + 1)
    for i, square in enumerate(squares):
        points[2 * i] = square * math.comb(degree, i) ** 2 / Fraction(math.comb(2 * degree, 2 * i))
    left = [(points, Fraction(0), Fraction(1))]
    while left:
        points, low, high = left.pop()
        if max(points) <= 1:
            continue
        if points[0] > 1 or high - low < Fraction(1, 2**20):
            return low
        sides: tuple[list[Fraction], list[Fraction]] = [points[0]], [points[-1]]
        while len(points) > 1:
            points = [(a + b) / 2 for a, b in itertools.pairwise(points)]
            sides[0].append(points[0])
            sides[1].append(points[-1])
        middle = (low + high) / 2
        left += [(sides[0], low, middle), (sides[1][::-1], middle, high)]
    return None


@pytest.mark.parametrize("degree", SQUARES)
def test_no_vector_of_a_row_is_longer_than_one(degree: int) -> None:
    """Exactly, over all of [0, 1]; and a factor of the middle that is greater by a millionth is found too great."""
    squares = SQUARES[degree]
    assert longest(squares) is None
    for place in range(degree + 1):
        more = [square * (1 + Fraction(1, 10**6)) if i == place else square for i, square in enumerate(squares)]
        assert longest(tuple(more)) is not None


@pytest.mark.parametrize(("degree", "width"), [(2, 1), (2, 2), (2, 7), (2, 100), (3, 8), (4, 8)])
def test_the_event_holds_for_every_value(degree: int, width: int) -> None:
    """Each T in 0..W, alone: its integer vector, times the factors that are drawn with, is within the event's bound."""
    measurement = made(moments(degree=degree, width=width))
    event = measurement.event()
    assert isinstance(event, GaussianEvent)
    used = [(measurement.sigma / sigma) ** 2 for sigma in measurement.sigmas]
    assert all(square <= most for square, most in zip(used, measurement.squares, strict=True))
    for t in range(width + 1):
        vector = [math.comb(degree, i) * t**i * (width - t) ** (degree - i) for i in range(degree + 1)]
        assert sum(square * entry**2 for square, entry in zip(used, vector, strict=True)) <= event.l2_squared
    assert event.l2_squared <= width ** (2 * degree) * Fraction(1001, 1000)
    assert event.variance == measurement.scale_of_sums**2


def test_rounded_units_are_in_the_event() -> None:
    """A unit that is scaled has sums that are rounded: two integer units in each coordinate are in the sensitivity."""
    measurement = made(moments(width=1024))
    middle = [256 * 1024, 512 * 1024, 256 * 1024]
    off = [entry + 2 for entry in middle]
    assert sum(s * entry**2 for s, entry in zip(measurement.squares, off, strict=True)) > 1024**4
    exact = replace(measurement, grid=1)
    assert sum(s * entry**2 for s, entry in zip(measurement.squares, off, strict=True)) <= exact.l2_squared


def test_the_price_is_met() -> None:
    """The event is the price, to a pico; nothing else about a question's price is other than without factors."""
    for statistic in (moments(), moments(width=2**20), moments(degree=4, width=50), moments(nulls=True)):
        loss = made(statistic).event().loss()
        assert loss.mu_squared is not None
        assert MU_SQUARED * (1 - Fraction(1, 10**12)) <= loss.mu_squared <= MU_SQUARED


def test_each_coordinate_has_its_own_noise() -> None:
    """The variances of what is drawn (seeded), and which statistics have factors at all."""
    measurement = made(moments(nulls=True))
    drawn = measurement.noise(400_000, SeededBits(3)).reshape(-1, 4).astype(float)
    wanted = float(measurement.sigma) / np.sqrt([1, 3.5, 1, 1])
    assert drawn.std(axis=0) == pytest.approx(wanted, rel=0.01)
    assert abs(np.corrcoef(drawn.T) - np.eye(4)).max() < 0.02
    assert squares_of(moments(degree=1)) is None
    assert squares_of(replace(moments(degree=1), coordinates=3, raised=True)) is None


def test_errors_are_smaller_by_what_the_page_says() -> None:
    """COUNT 1.146 times, the variance of evenly spread values 1.38 times, against one noise at the same price."""
    statistic = moments()
    new = made(statistic)
    old = GaussianMeasurement.for_mu_squared(core="c", statistic=statistic, share=Fraction(1), mu_squared=MU_SQUARED)
    form = linear_form(statistic, AggregateFunction.VALUES)
    assert form is not None
    ratio = linear_standard_error(old, form) / linear_standard_error(new, form)
    assert ratio == pytest.approx(math.sqrt(3 / (2 + 2 / 7)), rel=1e-3)
    even = narrow(np.array([[10**7 // new.grid] * 3]))
    variance = Estimate("v", AggregateFunction.VARIANCE_POPULATION, "m")
    (before,), (after,) = (estimate_column(one, variance, even, alpha=0.05).standard_errors for one in (old, new))
    assert before is not None
    assert after is not None
    assert before / after == pytest.approx(math.sqrt(6 / (2 + 8 / 7)), rel=1e-2)


def test_stored_releases_keep_their_law() -> None:
    """The factors are stored; a release of before has noise of one size, and one without its factors is not read."""
    statistic = moments()
    new = made(statistic)
    old = GaussianMeasurement.for_mu_squared(core="c", statistic=statistic, share=Fraction(1), mu_squared=MU_SQUARED)
    for measurement in (old, new):
        one = NoisySums(measurement, narrow(np.array([[5, 6, 7]])), MOMENT_ESTIMATES[2])
        (read,) = sums_from_plain(sums_to_plain([one]))  # type: ignore[arg-type]
        assert read.measurement == measurement
    (plain,) = sums_to_plain([NoisySums(new, narrow(np.array([[5, 6, 7]])), MOMENT_ESTIMATES[2])])
    assert plain["measurement"]["squares"] == ["1", "7/2", "1"]  # type: ignore[index, call-overload]
    del plain["measurement"]["squares"]  # type: ignore[index, union-attr, arg-type]
    with pytest.raises(TypeError):
        sums_from_plain([plain])  # type: ignore[list-item]


@pytest.mark.parametrize("rows", [40, 1_000])
def test_intervals_and_simulations_follow_the_noise(rows: int) -> None:
    """Each interval holds the truth as often as it says, and simulated errors are the stated ones (seeded)."""
    width, draws, alpha = 100, 4_000, 0.05
    values = np.random.default_rng(rows).integers(20, 90, size=rows)
    measurement = made(moments(width=width), mu_squared=Fraction(4, 10))
    exact = narrow(np.array([bernstein(values, width=width, degree=2)] * draws))
    noisy, true = measurement.perturb(exact, SeededBits(rows)).sums, truths(values)
    for estimate in MOMENT_ESTIMATES[2]:
        column = estimate_column(measurement, estimate, noisy, alpha=alpha)
        lows, highs = np.array(column.lows, dtype=float), np.array(column.highs, dtype=float)
        held = (lows <= true[estimate.name] + 1e-9) & (true[estimate.name] <= highs + 1e-9)
        assert held.mean() > 1 - alpha - 4 * math.sqrt(alpha / draws)
        if rows == 1_000 and estimate.kind is AggregateFunction.VARIANCE_POPULATION:
            stated = float(np.median(np.array(column.standard_errors, dtype=float)))
            assert np.std(np.array(column.values, dtype=float)) == pytest.approx(stated, rel=0.06)
            simulated = simulate_column(measurement, estimate, measurement.replicated(exact[:1], draws, SeededBits(9)))
            assert np.nanstd(simulated) == pytest.approx(stated, rel=0.06)


def test_a_declared_sensitivity_bounds_what_is_priced() -> None:
    """Twice the rows of a unit is twice the noise: factors change no sensitivity."""
    one, two = moments(), replace(moments(), sensitivity=sensitivity(2 * 100**2, l0=3))
    assert made(two).scale_of_sums == pytest.approx(2 * made(one).scale_of_sums, rel=1e-3)
