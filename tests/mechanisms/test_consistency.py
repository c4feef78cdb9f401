"""Levels that are measured together: the estimates of consistency.md, their error, and how they are stored."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest

from mechanisms.calibrate import calibrate
from mechanisms.consistency import Lattice, Level, chosen_lattice, of_one_cell, sizes_of
from mechanisms.families import FAMILIES, NoiseFamily, Price
from mechanisms.interval import Floats
from mechanisms.measurement import Measurement
from mechanisms.measurements.levels import GaussianLevels, LaplaceLevels
from mechanisms.noisy_sums import NoisySums, sums_from_plain, sums_to_plain
from privacy.aggregate import AggregateFunction
from privacy.policy import ColumnType
from privacy.statistic import CoreStatistics, Estimate, KeyColumn, Keys, Sensitivity, Statistic, StatisticKind
from privacy.unit import Neighbouring
from tests.mechanisms.support import SeededBits

ROLLUP = Lattice((3, 2, 4), (((0, 1, 2), 2), ((0, 1), 3), ((), 1)))
CUBE = Lattice((4, 3), (((0, 1), 1), ((0,), 2), ((1,), 1), ((), 3)))
LATTICES = {"rollup": ROLLUP, "cube": CUBE, "total": Lattice((12,), (((0,), 1), ((), 1)))}
ALPHA = 0.05
DRAWS = 20_000


def matrix(lattice: Lattice) -> Floats:
    """The weighted sums of the nodes as a matrix: nodes x cells."""
    cells = list(itertools.product(*map(range, lattice.sizes)))
    rows = []
    for level, weight in lattice.weights:
        for node in itertools.product(*(range(lattice.sizes[place]) for place in level)):
            rows.append([weight * (tuple(cell[place] for place in level) == node) for cell in cells])
    return np.array(rows, dtype=np.float64)


def groups(lattice: Lattice, level: Level) -> Floats:
    """The cells of each group of a level: groups x cells."""
    return matrix(Lattice(lattice.sizes, ((level, 1), *_finest(lattice, level))))[: lattice.cells_of(level)]


def _finest(lattice: Lattice, level: Level) -> tuple[tuple[Level, int], ...]:
    every = tuple(range(len(lattice.sizes)))
    return () if level == every else ((every, 1),)


@pytest.mark.parametrize("name", LATTICES)
def test_estimates_are_least_squares(name: str) -> None:
    """Shows the closed form against the pseudoinverse: estimates, weights of the noise, and variances of all levels."""
    lattice = LATTICES[name]
    design = matrix(lattice)
    inverse = np.linalg.pinv(design)
    noise = np.random.Generator(np.random.PCG64(1)).integers(-50, 50, (lattice.nodes, 2))
    exact = np.arange(2 * lattice.cells).reshape(-1, 2)
    assert (lattice.stacked(exact) == design @ exact).all()
    assert (lattice.consistent(lattice.stacked(exact)) == exact).all()
    wanted = inverse @ (design @ exact + noise)
    found = lattice.consistent(lattice.stacked(exact) + noise)
    assert np.abs(np.cumsum(found, axis=0).astype(float) - np.cumsum(wanted, axis=0)).max() <= 0.5 + 1e-9
    assert lattice.gathered(noise[None].astype(float))[0] == pytest.approx(inverse @ noise)
    assert lattice.spread(np.eye(lattice.cells)[:, :, None])[..., 0] == pytest.approx(inverse)
    for level in itertools.chain.from_iterable(
        itertools.combinations(range(len(lattice.sizes)), length) for length in range(len(lattice.sizes) + 1)
    ):
        errors = ((groups(lattice, level) @ inverse) ** 2).sum(axis=1)
        assert errors == pytest.approx(lattice.variance_of(level))
    scales, times = of_one_cell(lattice)
    assert (times * scales**2).sum() == pytest.approx(lattice.variance_of(tuple(range(len(lattice.sizes)))))


@pytest.mark.parametrize("name", LATTICES)
def test_no_variance_is_larger_than_without_the_other_levels(name: str) -> None:
    """Shows Proposition 2: no group is worse than its own measurement, nor than the sum of the finest level's."""
    lattice = LATTICES[name]
    finest = lattice.weights[0][1]
    for level, weight in lattice.weights:
        own = min(1 / weight**2, lattice.merged(level) / finest**2)
        assert lattice.variance_of(level) < own


@pytest.mark.parametrize("name", LATTICES)
def test_whole_numbers_stay_near_their_estimates(name: str) -> None:
    """Shows Proposition 4 for random weights, and less than one away for the groups of prefixes of the keys."""
    lattice = LATTICES[name]
    draw = np.random.Generator(np.random.PCG64(2))
    noise = draw.integers(-50, 50, (lattice.nodes, 1))
    away = (lattice.consistent(noise) - lattice.gathered(noise[None].astype(float))[0])[:, 0].astype(float)
    weights = draw.normal(size=(50, lattice.cells))
    most = np.abs(np.diff(weights, axis=1, prepend=0, append=0)).sum(axis=1) / 2
    assert (np.abs(weights @ away) <= most + 1e-9).all()
    for length in range(len(lattice.sizes) + 1):
        assert np.abs(groups(lattice, tuple(range(length))) @ away).max() < 1


@pytest.mark.parametrize("text", ["6", "6x2 1*0", "6 0*0", "6 1*1", "6x 1*0", "", "6 1*0 1*0"])
def test_only_lattices_are_read(text: str) -> None:
    """Shows that a lattice reads its own text, and no other."""
    for lattice in LATTICES.values():
        assert Lattice.of(lattice.text) == lattice
    with pytest.raises(ValueError, match=r".+"):
        Lattice.of(text)


def test_only_products_are_lattices() -> None:
    """Shows the sizes of a product in row-major order, and None for other domains."""
    product = tuple(itertools.product(("a", "b", None), (1, 2)))
    assert sizes_of(product) == (3, 2)
    assert sizes_of(product[:-1]) is None
    assert sizes_of((*product[1:], product[0])) is None
    assert sizes_of(((),)) is None


def test_the_finest_level_alone_where_that_is_nearly_as_good() -> None:
    """Shows which levels are measured: by norm and number of groups, and None for one level, few groups, too many."""

    def text(sizes: tuple[int, ...], *asked: Level, power: int) -> str | None:
        found = chosen_lattice(sizes, asked, power=power, groups=1)
        return None if found is None else found.text

    assert text((6, 2), (0, 1), (0,), (), power=2) == "6x2 4*0,1 3*0 3*"
    assert text((6, 2, 11), (0, 1, 2), (0, 1), (0,), (), power=1) == "6x2x11 1*0,1,2 1*0,1"
    assert text((6, 2), (0, 1), (0,), (), power=1) is None
    assert text((100,), (0,), (), power=1) == "100 1*0 1*"
    assert text((50, 12), (0,), (1,), power=1) == "50x12 1*0,1 8*0 8*1"
    assert text((2,), (0,), (), power=2) is None
    assert text((100,), (0,), power=2) is None
    assert text((40, 40), (0, 1), (), power=2) is None
    # A unit with many groups adds up in a total, so noise on that costs more.
    several = chosen_lattice((12,), ((0,), ()), power=2, groups=12)
    assert several is None or several.weights[0][1] > several.weights[1][1]


def counted(sizes: tuple[int, ...], *levels: Level) -> CoreStatistics:
    """A core of counts, one group to the unit, whose levels are read."""
    domain = tuple(itertools.product(*map(range, sizes)))
    columns = tuple(KeyColumn(f"k{place}", ColumnType.INTEGER) for place in range(len(sizes)))
    bound = Sensitivity(Neighbouring.ADD_REMOVE, 1, Fraction(1), Fraction(1), Fraction(1))
    return CoreStatistics(
        "c0",
        Keys(columns, domain, groups_per_unit=1),
        (Statistic("s0", StatisticKind.COUNT, bound),),
        (Estimate("a0", AggregateFunction.ROWS, "s0", integer=True),),
        levels=levels,
    )


def measured(family: NoiseFamily) -> Measurement:
    """Counts of fifty by four groups, of the groups of the first key, and of all."""
    core = counted((50, 4), (0, 1), (0,), ())
    (measurement,) = calibrate([core], Price(family, Fraction(1, 400), Fraction(0))).measurements
    assert isinstance(measurement, LaplaceLevels | GaussianLevels)
    return measurement


@pytest.mark.parametrize("family", [NoiseFamily.LAPLACE, NoiseFamily.GAUSSIAN])
def test_intervals_hold_as_often_as_they_say(family: NoiseFamily) -> None:
    """Shows coverage and standard errors of cells and of sums of cells, over all cells of many simulated releases.

    One miss more than expected in a hundred would be more than six standard deviations of 20,000 independent cells.
    """
    measurement = measured(family)
    assert isinstance(measurement, LaplaceLevels | GaussianLevels)
    lattice = measurement.lattice
    draws = DRAWS // 50
    noise = measurement.noise(draws * lattice.nodes, SeededBits(5)).reshape(draws, lattice.nodes)
    errors = lattice.consistent(noise.T).astype(float).T
    reach = measurement.quantile_single(ALPHA)
    missed = float((np.abs(errors) > reach).mean())
    assert 0.85 * ALPHA <= missed <= ALPHA + 0.01
    assert errors.var() == pytest.approx(measurement.variance(), rel=0.05)
    drawn = measurement.noise_of_cells(draws, lattice.cells, 1, SeededBits(6))
    assert drawn.var() == pytest.approx(measurement.variance(), rel=0.05)
    for level in ((0,), (1,), ()):
        sums = errors @ groups(lattice, level).T
        wanted = measurement.noise_variance() * lattice.variance_of(level)
        # Of one sum in each release there are 400: eight standard deviations of a variance are 8 * sqrt(5 / 400).
        assert sums.var() == pytest.approx(wanted, rel=0.9 if level == () else 0.45)
        weights = measurement.spread(groups(lattice, level)[:1, :, None])
        assert (weights**2).sum() == pytest.approx(lattice.variance_of(level))


@pytest.mark.parametrize("family", [NoiseFamily.LAPLACE, NoiseFamily.GAUSSIAN])
def test_a_stored_release_has_the_same_intervals(family: NoiseFamily) -> None:
    """Shows that levels survive storing, and that the price and quantiles follow from what was stored."""
    measurement = measured(family)
    values = measurement.perturb(np.full((200, 1), 30), SeededBits(7)).sums
    assert values.shape == (200, 1)
    one = NoisySums(measurement, values, (Estimate("a0", AggregateFunction.ROWS, "s0", integer=True),))
    (again,) = sums_from_plain(json.loads(json.dumps(sums_to_plain([one]))))
    assert again.measurement == measurement
    assert again.measurement.event() == measurement.event()
    assert again.column(one.estimates[0], ALPHA) == one.column(one.estimates[0], ALPHA)


@pytest.mark.parametrize("family", [NoiseFamily.LAPLACE, NoiseFamily.GAUSSIAN])
def test_hardly_any_noise_is_said_to_be_none(family: NoiseFamily) -> None:
    """Shows true counts and empty intervals where all noise is almost surely rounded to zero, and tails of little."""
    core = counted((50, 4), (0, 1), (0,), ())
    (measurement,) = calibrate([core], Price(family, Fraction(10**5), Fraction(0))).measurements
    exact = np.arange(200).reshape(-1, 1)
    assert (measurement.perturb(exact, SeededBits(8)).sums == exact).all()
    assert measurement.quantile_single(1e-3) == 0
    (near,) = measured(family).tail(np.ones((1, 1)), 0.0)
    assert near == pytest.approx(1, abs=1e-3)
    reach = float(measured(family).quantile(np.ones((1, 1)), ALPHA)[0]) - 1
    (beyond,) = measured(family).tail(np.ones((1, 1)), reach)
    assert beyond == pytest.approx(ALPHA, rel=0.15)


def test_levels_are_measured_by_the_family_that_pays() -> None:
    """Shows that norms, hidden groups, and one level alone have no lattice, and that both families find theirs."""
    core = counted((50, 4), (0, 1), (0,), ())
    for family in FAMILIES.values():
        assert family.lattice(core) is not None
        assert family.lattice(counted((50, 4))) is None
        assert family.lattice(counted((50, 40), (0, 1), (0,), ())) is None
    assert math.isclose(FAMILIES[NoiseFamily.LAPLACE].power or 0, 1)
