"""Drawn quantiles: their law is that of the exponential mechanism, their price is what was asked, intervals hold."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from mechanisms.calibrate import Price, at_chosen_norms, calibrate
from mechanisms.families import NoiseFamily
from mechanisms.measurements.drawn_ranks import GaussianRanks, LaplaceRanks, draws_of, rank_error
from mechanisms.noisy_sums import sums_from_plain, sums_to_plain
from mechanisms.release import release
from mechanisms.replicates import simulate
from privacy.aggregate import AggregateFunction
from privacy.composition import compose
from privacy.exact import Exact
from privacy.rank_tree import Drawn, RankTree, shape_of
from privacy.statistic import CoreStatistics, Encoding, Estimate, Keys, Sensitivity, Statistic, StatisticKind
from privacy.unit import Neighbouring
from tests.mechanisms.support import SeededBits

HALF, TENTH = Fraction(1, 2), Fraction(1, 10)
PRICES = {
    LaplaceRanks: Price(NoiseFamily.LAPLACE, Fraction(1), Fraction(0)),
    GaussianRanks: Price(NoiseFamily.GAUSSIAN, Fraction(1, 4), Fraction(0)),
}


def core_of(most: int, *, finer: int, groups: int = 1, fractional: bool = False) -> CoreStatistics:
    """Whole numbers from 0 to `most`, the median and the row of the tenth, of units in so many groups."""
    places = -(-(most + 1) // finer)
    tree = RankTree(*shape_of(places), Fraction(0), Fraction(most), True, 2**10)
    one, coordinates = Fraction(2**10), tree.nodes + 2
    bound = Sensitivity(
        Neighbouring.ADD_REMOVE,
        groups * (coordinates if fractional else tree.levels),
        groups * tree.levels * one,
        groups * tree.levels * one**2,
        one,
    )
    encoding = Encoding(Fraction(finer - 1, 2), Fraction(finer), 0, places - 1)
    drawn = Drawn((HALF,), (TENTH,), finer)
    statistic = Statistic(
        "r", StatisticKind.RANKS, bound, coordinates, encoding, tree=tree, drawn=drawn, fractional=fractional
    )
    estimates = (
        Estimate("median", AggregateFunction.QUANTILE, "r", fraction=HALF),
        Estimate("tenth", AggregateFunction.QUANTILE_DISCRETE, "r", integer=True, fraction=TENTH),
    )
    return CoreStatistics("c", Keys((), ((),), groups), (statistic,), estimates)


def counted(core: CoreStatistics, values: list[int]) -> Exact:
    """The rows of these values."""
    places = np.bincount(values, minlength=core.statistics[0].places)[None, :].astype(np.int64)
    return Exact(keys={}, sums={"r": places}, rows=1)


@pytest.mark.parametrize("kind", PRICES)
def test_places_are_drawn_by_the_exponential_mechanism(kind: type[LaplaceRanks | GaussianRanks]) -> None:
    """The chance of each place is the exponential of its rank's distance, over the scale, and over the sum of all."""
    core = core_of(31, finer=2)
    measurement = calibrate([core], replace(PRICES[kind], amount=Fraction(2))).measurements[0]
    assert isinstance(measurement, kind)
    values = [3, 4, 4, 9, 10, 11, 11, 30]
    counts = np.bincount(values, minlength=core.statistics[0].places)
    draws, bits = 4_000, SeededBits(5)
    found = np.concatenate([measurement.drawn(counts[None, :] * 2**10, bits) for _ in range(draws)])
    below = np.concatenate([[0], np.cumsum(counts)])
    for column, (goal, draw) in enumerate(
        zip((0.5 * 7 + 0.5, 0.1 * 8 - 0.05), draws_of(core.statistics[0]), strict=True)
    ):
        away = np.maximum(np.maximum(below[:-1] - goal, goal - below[1:]), 0)
        greater = 2 * float(max(draw.fraction, 1 - draw.fraction))
        chances = np.exp(-away * float(measurement.greatest) / greater)
        chances /= chances.sum()
        seen = np.bincount(found[:, column], minlength=len(chances))
        wanted = draws * chances
        # Pearson's sum over 32 to 36 places, whose normal form is below 7 but once in a million million runs.
        degrees = len(chances) - 1
        assert (((seen - wanted) ** 2 / wanted).sum() - degrees) / (2 * degrees) ** 0.5 < 9


@pytest.mark.parametrize("kind", PRICES)
@pytest.mark.parametrize(("groups", "fractional"), [(1, False), (7, True), (4_000, True)])
def test_the_price_is_what_was_asked(
    kind: type[LaplaceRanks | GaussianRanks], groups: int, *, fractional: bool
) -> None:
    """Events add up to no more than the price, and to nearly all of it; again where norms are chosen after it."""
    core = core_of(5_000, finer=1, groups=groups, fractional=fractional)
    calibration = calibrate([core], PRICES[kind])
    loss = compose(calibration.events())
    spent = loss.pure if kind is LaplaceRanks else loss.mu_squared
    assert spent is not None
    assert 1 - Fraction(1, 10**6) < spent / PRICES[kind].amount <= 1
    (statistic,) = core.statistics
    bound = statistic.sensitivity
    doubled = replace(bound, l1=3 * bound.l1, l2_squared=9 * bound.l2_squared, linf=3 * bound.linf)
    other = replace(core, statistics=(replace(statistic, sensitivity=doubled),))
    again = compose(at_chosen_norms(calibration, other).events())
    assert (again.pure if kind is LaplaceRanks else again.mu_squared or 0) <= spent


@pytest.mark.parametrize("kind", PRICES)
def test_values_intervals_and_errors(kind: type[LaplaceRanks | GaussianRanks]) -> None:
    """Nearer than the tree, covered by its interval, with an error of its size, stored and read back the same."""
    core = core_of(20_000, finer=5)
    values = list(range(4_000, 12_000, 4)) * 2
    calibration = calibrate([core], PRICES[kind])
    error = rank_error(calibration.measurements[0]) * 2
    found = []
    for seed in range(30):
        table = release(core, calibration, counted(core, values), bits=SeededBits(seed),
                        confidence=Fraction(95, 100))  # fmt: skip
        median, tenth = table.columns
        assert median.lows is not None
        assert median.highs is not None
        assert median.lows[0] <= 7_998 <= median.highs[0]
        assert isinstance(tenth.values[0], int)
        found.append(float(median.numbers[0] or 0) - 7_998)
        read = sums_from_plain(sums_to_plain(table.sums))[0]
        assert (read.values == table.sums[0].values).all()
        assert read.measurement == table.sums[0].measurement
    # Ranks have about Laplace's law: its square has five times the variance of its mean squared.
    assert (np.mean(np.square(found)) / (error**2 + 9)) < 1 + 8 * (5 / 30) ** 0.5
    draws = simulate(table.sums, 300, bits=SeededBits(1))["median"]
    assert error / 4 < np.std(draws) < 4 * error + 10


def test_with_very_little_noise_values_are_those_of_the_definition() -> None:
    """The tree then says which rows they are, and what lies between them."""
    core = core_of(4_000, finer=1)
    calibration = calibrate([core], Price(NoiseFamily.LAPLACE, Fraction(10_000), Fraction(0)))
    values = [5, 100, 700, 2_000]
    table = release(core, calibration, counted(core, values), bits=SeededBits(3), confidence=Fraction(95, 100))
    assert [column.values[0] for column in table.columns] == [pytest.approx(400, rel=0.05), 5]
    nobody = release(core, calibration, counted(core, []), bits=SeededBits(3), confidence=Fraction(95, 100))
    assert [column.values[0] for column in nobody.columns] == [None, None]
