"""Means of Gaussian releases: their arithmetic, what they cost, and intervals that hold at every look.

The analyst of these tests is greedy: sharpens each of 10,000 counts again and again, and is content when an interval
misses the truth. Intervals of a single look and two ways to sell precision too cheaply are planted, and caught.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest

from mechanisms import sharpening
from mechanisms.calibrate import Calibration, Price, calibrate
from mechanisms.confidence_sequence import constant, factor, missed, narrower_from
from mechanisms.families import NoiseFamily
from mechanisms.interval import Floats, gaussian_two_sided
from mechanisms.measurement import Integers
from mechanisms.measurements.gaussian import GaussianMeasurement
from mechanisms.measurements.gaussian_combined import GUARD_BITS, CombinedGaussian, as_kept, means
from mechanisms.measurements.gaussian_moments import GaussianMoments
from mechanisms.noisy_sums import sums_from_plain, sums_to_plain
from mechanisms.randomness import BitSource
from mechanisms.release import release
from mechanisms.released_table import ReleasedTable
from mechanisms.sharpening import difference, mean_of, sharpenable
from mechanisms.summed import added_up
from privacy.aggregate import AggregateFunction
from privacy.composition import compose
from privacy.numbers import PICO
from privacy.refusal import ExecutionFailed
from privacy.statistic import CoreStatistics, Estimate
from tests.mechanisms.support import (
    MOMENT_ESTIMATES,
    SeededBits,
    bernstein,
    cells_core,
    count,
    held,
    moments,
    plain_sum,
    same_cells,
    selected_core,
)

CELLS = 10_000
CONFIDENCE = Fraction(95, 100)
ROOM = 5 * (0.95 * 0.05 / CELLS) ** 0.5


def counts() -> CoreStatistics:
    """A count of 10,000 public cells."""
    return cells_core([count()], [Estimate("rows", AggregateFunction.ROWS, "n", integer=True)], CELLS)


def at(core: CoreStatistics, mu_squared: Fraction) -> Calibration:
    """Gaussian noise of this price."""
    return calibrate([core], Price(NoiseFamily.GAUSSIAN, mu_squared, Fraction(0)))


def sharpened(
    core: CoreStatistics,
    sums: dict[str, int],
    prices: Sequence[Fraction],
    bits: BitSource,
    looked: Callable[[ReleasedTable], None] = lambda table: None,
) -> ReleasedTable:
    """A release at the first of these prices, made as precise as each of the others in turn."""
    cells = len(core.keys.domain or ())
    exact = same_cells(core, sums, cells)
    table = release(core, at(core, prices[0]), exact, bits=bits, confidence=CONFIDENCE)
    for price in prices[1:]:
        stored = sharpenable(core, table)
        assert stored is not None
        bought = difference(core, at(core, price), stored)
        assert bought is not None
        fresh = release(core, bought.drawn, exact, bits=bits, confidence=CONFIDENCE)
        table = mean_of(core, table, fresh, CONFIDENCE)
        looked(table)
    return table


def test_the_constant_is_that_of_robbins() -> None:
    """2 (1 - Phi(a) + a phi(a)) = alpha, and a single look at the first precision needs less."""
    for alpha in (0.5, 0.05, 0.001, 1e-9):
        assert missed(constant(alpha)) <= alpha
        assert missed(constant(alpha) * (1 - 1e-6)) > alpha
        assert factor(alpha, 1.0) > 1
    assert constant(0.05) == pytest.approx(2.79548348, abs=1e-7)
    assert [round(factor(0.05, grown), 3) for grown in (1, 2, 4, 10, 100)] == [1.426, 1.488, 1.548, 1.623, 1.798]


@pytest.mark.parametrize("alpha", [0.5, 0.05, 0.001])
def test_intervals_become_narrower_from_a_precision_on(alpha: float) -> None:
    """Below it those of the first release are as narrow, above it never again."""
    least = narrower_from(alpha)
    for grown in (1.0, least * 0.99, least * 1.01, 10 * least):
        assert (factor(alpha, grown) >= math.sqrt(grown)) is (grown < least)
    assert narrower_from(0.05) == pytest.approx(2.245, abs=1e-3)


def picos(calibration: Calibration) -> int:
    """What the ledger charges for it: each charge rounded up."""
    lost = compose(calibration.events_of("core")).mu_squared
    assert lost is not None
    return math.ceil(lost / PICO)


def test_parts_in_whole_picos_cost_no_more_than_the_whole() -> None:
    """The ledger rounds up each of both charges. Of a few picos nothing is left away: less than one would be none."""
    core = counts()
    for first, wish in ((Fraction(1, 7), Fraction(k, 11)) for k in range(2, 20)):
        stored = at(core, first).measurements_of("core")
        bought = difference(core, at(core, wish), stored)  # type: ignore[arg-type] # all are Gaussian
        assert bought is not None
        assert picos(at(core, first)) + picos(bought.drawn) <= picos(at(core, wish))
    before, wanted = at(core, Fraction(1, 10)), at(core, Fraction(1, 10) + Fraction(3, 2) * PICO)
    bought = difference(core, wanted, before.measurements_of("core"))  # type: ignore[arg-type]
    assert bought is not None
    assert picos(bought.drawn) >= 1


@pytest.mark.parametrize("core", [counts(), cells_core([moments(), plain_sum()], (), 50)], ids=["counts", "moments"])
def test_a_difference_costs_what_is_missing_and_gives_what_was_wished(core: CoreStatistics) -> None:
    """Together no more than the wish, and at most two picos less for each statistic; as precise as a fresh release."""
    first, wish = Fraction(1, 10), Fraction(7, 20)
    sums = {f"{one.name}_{i}": 100_000 for one in core.statistics for i in range(one.coordinates)}
    bits = SeededBits(3)
    before = release(core, at(core, first), same_cells(core, sums, 50), bits=bits, confidence=CONFIDENCE)
    stored = sharpenable(core, before)
    assert stored is not None
    bought = difference(core, at(core, wish), stored)
    assert bought is not None
    spent = compose([*at(core, first).events_of("core"), *bought.drawn.events_of("core")]).mu_squared
    assert spent is not None
    assert 0 <= wish - spent <= Fraction(2 * len(core.statistics) + 1, 10**12)
    for mean, fresh in zip(bought.mean.measurements, at(core, wish).measurements, strict=True):
        assert isinstance(mean, CombinedGaussian)
        assert float(mean.scale_of_sums) == pytest.approx(float(fresh.scale_of_sums), rel=1e-3)
        told = compose([mean.event()]).mu_squared
        assert told is not None
        assert told >= (spent / len(core.statistics)) * (1 - Fraction(1, 10**9))


def test_means_are_exact_but_for_their_last_rounding() -> None:
    """Kept sums are the weighted mean in integers; shown ones are off by at most what the law says, in a long chain."""
    statistic = count()
    measurement: GaussianMeasurement = GaussianMeasurement.for_mu_squared(
        core="core", statistic=statistic, share=Fraction(1), mu_squared=Fraction(1, 50)
    )
    bits, parts, shown = SeededBits(5), list[tuple[Fraction, Fraction]](), None
    values = measurement.noise(1, bits).reshape(1, 1)
    parts.append((Fraction(int(values[0, 0])), 1 / measurement.scale_of_sums**2))
    kept: Integers = as_kept(measurement, values, None)
    for _ in range(40):
        added = GaussianMeasurement.for_mu_squared(
            core="core", statistic=statistic, share=Fraction(1), mu_squared=Fraction(1, 2000)
        )
        fresh = added.noise(1, bits).reshape(1, 1)
        parts.append((Fraction(int(fresh[0, 0])), 1 / added.scale_of_sums**2))
        measurement, shown, kept = means(measurement, kept, added, fresh)
    whole = sum((weight for _, weight in parts), Fraction(0))
    mean = sum((value * weight for value, weight in parts), Fraction(0)) / whole
    assert abs(Fraction(int(kept[0, 0]), 1 << GUARD_BITS) - mean) < Fraction(1, 1000)
    assert shown is not None
    assert abs(int(shown[0, 0]) - mean) <= Fraction(1, 2) + Fraction(1, 1000)
    assert float(measurement.scale_of_sums**-2) == pytest.approx(float(whole), rel=1e-9)
    assert isinstance(measurement, CombinedGaussian)
    assert measurement.looks == 41
    assert 1.0 <= measurement.rounding <= 1.001


@pytest.mark.parametrize("price", ["0.01", "4"], ids=["wide noise", "noise of less than one"])
def test_a_greedy_analyst_is_told_the_truth_and_catches_intervals_of_a_single_look(price: str) -> None:
    """All intervals of 10,000 chains hold together in 95 %; those of a single look in far fewer."""
    truth, core = 5_000, counts()
    good, narrow = np.ones(CELLS, dtype=bool), np.ones(CELLS, dtype=bool)

    def looked(table: ReleasedTable) -> None:
        (column,), (sums,) = table.columns[1:], table.sums or ()
        lows, highs = np.array(column.lows, dtype=float), np.array(column.highs, dtype=float)
        good[(lows > truth) | (highs < truth)] = False
        once = gaussian_two_sided(0.05) * float(sums.measurement.scale_of_sums) + sums.measurement.rounding
        narrow[np.abs(np.array(column.values, dtype=float) - truth) > math.floor(once)] = False

    prices = [Fraction(price) * Fraction(7, 5) ** look for look in range(15)]
    sharpened(core, {"n_0": truth}, prices, SeededBits(9), looked)
    assert good.mean() >= 0.95 - ROOM
    if price == "0.01":
        assert narrow.mean() < 0.9


def test_a_greedy_analyst_who_chooses_each_step_by_what_was_seen() -> None:
    """Steps as large as hides most, by the error itself: the bound is Ville's, and holds for any choice."""
    bits = np.random.Generator(np.random.Philox(21))
    precision, error = np.ones(CELLS), bits.standard_normal(CELLS)
    good, narrow = np.ones(CELLS, dtype=bool), np.ones(CELLS, dtype=bool)
    for _ in range(60):
        near = np.abs(error) * np.sqrt(precision)
        step = precision * np.where(near > 1.5, 0.02, 1.0)
        later = bits.standard_normal(CELLS) / np.sqrt(step)
        error = (error * precision + later * step) / (precision + step)
        precision = np.minimum(precision + step, 1e12)
        size = np.abs(error) * np.sqrt(precision)
        reach = gaussian_two_sided(0.05) * np.array([factor(0.05, one) for one in precision])
        good &= size <= reach
        narrow &= size <= gaussian_two_sided(0.05)
    assert good.mean() >= 0.95 - ROOM
    assert narrow.mean() < 0.7


def test_sums_of_cells_of_a_mean_hold_at_every_look() -> None:
    """Ranges of 5 cells of 2,000 histograms, sharpened 15 times: all in 95 %, those of single looks in far fewer."""
    width, truth, core = 5, 5_000, counts()
    groups = np.arange(CELLS).reshape(-1, width)
    good, narrow = (np.ones(len(groups), dtype=bool) for _ in range(2))
    estimate = Estimate("rows", AggregateFunction.ROWS, "n", integer=True)

    def looked(table: ReleasedTable) -> None:
        (kept,) = table.sums or ()
        added = added_up(kept, groups.tolist())
        column = added.column(estimate, 0.05)
        lows, highs = np.array(column.lows, dtype=float), np.array(column.highs, dtype=float)
        good[(lows > width * truth) | (highs < width * truth)] = False
        once = gaussian_two_sided(0.05) * float(added.measurement.scale_of_sums)
        narrow[np.abs(np.array(column.values, dtype=float) - width * truth) > once] = False
        assert kept.fine is not None
        assert added.fine is not None
        assert added.fine[:, 0].tolist() == kept.fine[:, 0].reshape(-1, width).sum(axis=1).tolist()
        once_rounded = width * kept.measurement.variance() - (width - 1) / 12
        assert next(error for error in column.standard_errors if error) == pytest.approx(once_rounded**0.5, rel=1e-3)

    sharpened(core, {"n_0": truth}, [Fraction(7, 5) ** look / 100 for look in range(15)], SeededBits(9), looked)
    assert good.mean() >= 0.95 - 5 * (0.95 * 0.05 / len(groups)) ** 0.5
    assert narrow.mean() < 0.85


def test_averages_and_variances_hold_at_every_look() -> None:
    """Ratios of combined sums: the same noise, smaller, at the factor of every look."""
    cells = 1_200
    ages = (17 + (SeededBits(61).words(4_000) % np.uint64(74))).astype(np.int64)
    sums = {f"m_{i}": value for i, value in enumerate(bernstein(ages, width=100, degree=2))}
    core = cells_core([moments()], MOMENT_ESTIMATES[2], cells)
    truths = {"average": float(ages.mean()), "variance_population": float(ages.var())}
    missing = {name: np.zeros(cells, dtype=bool) for name in truths}

    def looked(table: ReleasedTable) -> None:
        for column in table.columns:
            if column.name in truths:
                lows, highs = np.array(column.lows, dtype=float), np.array(column.highs, dtype=float)
                missing[column.name] |= (lows > truths[column.name]) | (highs < truths[column.name])

    assert {estimate.name for estimate in held(moments())} >= truths.keys()
    sharpened(core, sums, [Fraction(1, 20) * Fraction(2) ** look for look in range(6)], SeededBits(4), looked)
    for name, ever in missing.items():
        assert ever.mean() <= 0.05 + 5 * (0.95 * 0.05 / cells) ** 0.5, name


def test_a_mean_is_kept_and_read_back_with_its_law() -> None:
    """A stored mean has the same intervals, and can be sharpened as if it had never been stored."""
    core = cells_core([count()], [Estimate("rows", AggregateFunction.ROWS, "n", integer=True)], 3)
    table = sharpened(core, {"n_0": 500}, [Fraction(1, 9), Fraction(1, 3)], SeededBits(1))
    assert table.sums is not None
    (one,), (again,) = table.sums, sums_from_plain(sums_to_plain(table.sums))  # type: ignore[arg-type]
    assert again.measurement == one.measurement
    assert again.values.tolist() == one.values.tolist()
    assert one.fine is not None
    assert again.fine is not None
    assert again.fine.tolist() == one.fine.tolist()
    with pytest.raises(ExecutionFailed):
        one.measurement.perturb(one.values, SeededBits(2))


def test_what_cannot_be_sharpened_is_bought_whole() -> None:
    """Hidden groups, Laplace noise, another statistic than now, and a wish that is no better."""
    core = counts()
    exact = same_cells(core, {"n_0": 10}, CELLS)
    laplace = calibrate([core], Price(NoiseFamily.LAPLACE, Fraction(1), Fraction(0)))
    table = release(core, laplace, exact, bits=SeededBits(1), confidence=CONFIDENCE)
    assert sharpenable(core, table) is None
    normal = release(core, at(core, Fraction(1)), exact, bits=SeededBits(1), confidence=CONFIDENCE)
    assert sharpenable(cells_core([count(rows=2)], core.estimates, CELLS), normal) is None
    assert sharpenable(selected_core(), normal) is None
    stored = sharpenable(core, normal)
    assert stored is not None
    assert difference(core, at(core, Fraction(1)), stored) is None
    assert difference(core, laplace, stored) is None


def test_a_chain_ends_and_other_factors_are_no_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mean of as many releases as one may have, and moments whose coordinates had other noise, are bought whole."""
    core = counts()
    twice = sharpened(core, {"n_0": 10}, [Fraction(1), Fraction(2)], SeededBits(1))
    assert sharpenable(core, twice) is not None
    monkeypatch.setattr(sharpening, "LOOKS_MAX", 2)
    assert sharpenable(core, twice) is None
    of_moments = cells_core([moments(degree=2)], MOMENT_ESTIMATES[2], 4)
    (now,) = at(of_moments, Fraction(1)).measurements
    alike = GaussianMeasurement.for_mu_squared(
        core=now.core, statistic=now.statistic, share=now.share, mu_squared=Fraction(1, 2)
    )
    assert type(now) is GaussianMoments
    assert difference(of_moments, at(of_moments, Fraction(1)), [alike]) is None


# Two worlds: somebody is in the data or not, and an observer of both releases guesses.


def guessed_right(pairs: Callable[[int, BitSource], Floats], bits: BitSource) -> float:
    """How often the best test of the mean of what is seen tells two equally likely worlds apart.

    `pairs` gives CELLS statistics of a world (0 or 1 people), of which a half is the threshold.
    """
    return float(((pairs(0, bits) < 0.5).mean() + (pairs(1, bits) > 0.5).mean()) / 2)


def bound(mu_squared: float) -> float:
    """The greatest chance to guess right under mu-GDP: Phi(mu / 2)."""
    return 0.5 * (1 + math.erf(math.sqrt(mu_squared) / 2 / math.sqrt(2)))


def drawn_twice(world: int, bits: BitSource, *, second: Fraction | None, same: bool = False) -> Floats:
    """Both releases of a count of `world` people, as the number that tells most. `second` is sold anew, if given."""
    core, first, wish = counts(), Fraction(2), Fraction(3)
    exact = same_cells(core, {"n_0": world}, CELLS)
    before = release(core, at(core, first), exact, bits=bits, confidence=CONFIDENCE)
    stored = sharpenable(core, before)
    assert stored is not None
    bought = difference(core, at(core, wish), stored)
    assert bought is not None
    drawn = bought.drawn if second is None else at(core, second)
    fresh = release(core, drawn, exact, bits=bits, confidence=CONFIDENCE)
    (old,), (new,) = before.sums or (), fresh.sums or ()
    one, two = old.values[:, 0].astype(float), new.values[:, 0].astype(float)
    if same:
        # The noise of the first once more, only wider: the two differ by it alone.
        grown = float(drawn.measurements[0].scale_of_sums / at(core, first).measurements[0].scale_of_sums)
        two = world + (one - world) * grown
        result: Floats = (grown * one - two) / (grown - 1)
        return result
    scales = [float(found.measurement.scale_of_sums) ** -2 for found in (old, new)]
    both: Floats = (one * scales[0] + two * scales[1]) / sum(scales)
    return both


def test_two_worlds_refute_precision_that_is_sold_too_cheaply() -> None:
    """What was charged bounds what both tell; not so a whole at the price of a difference, or one noise twice."""
    charged = bound(3.0)
    room = 6 * (0.25 / (2 * CELLS)) ** 0.5
    assert guessed_right(lambda world, bits: drawn_twice(world, bits, second=None), SeededBits(31)) <= charged + room
    anew = guessed_right(lambda world, bits: drawn_twice(world, bits, second=Fraction(3)), SeededBits(31))
    assert anew > charged + room
    again = guessed_right(lambda world, bits: drawn_twice(world, bits, second=None, same=True), SeededBits(31))
    assert again > 0.999
