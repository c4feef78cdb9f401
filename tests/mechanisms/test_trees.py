"""Trees over one axis: the error that trees.md states, how far one unit moves nodes, and what is read off a release."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from mechanisms.consistency import Lattice
from mechanisms.families import FAMILIES, NoiseFamily
from mechanisms.interval import Floats
from mechanisms.measurement import Measurement
from mechanisms.measurements.gaussian import GaussianMeasurement
from mechanisms.noisy_sums import NoisySums
from mechanisms.trees import bases_of, flat_error, prefixes, tree_error, tree_of
from mechanisms.weighted_cells import standard_errors, weighted_sums
from privacy.aggregate import AggregateFunction
from privacy.policy import ColumnType
from privacy.statistic import CoreStatistics, Estimate, KeyColumn, Keys, Sensitivity, Statistic, StatisticKind
from privacy.unit import Neighbouring
from tests.mechanisms.support import SeededBits

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "range_query_variance.json").read_text(encoding="utf-8"))[
    "vectors"
]
COUNT = Estimate("a0", AggregateFunction.UNITS, "rows", integer=True)


def every_range(count: int) -> Floats:
    """All ranges of an axis, as weights of its cells."""
    ends = [(low, high) for low in range(count) for high in range(low + 1, count + 1)]
    weights = np.zeros((len(ends), count))
    for row, (low, high) in zip(weights, ends, strict=True):
        row[low:high] = 1.0
    return weights


def tree(bases: tuple[int, ...], *, root: bool = True) -> Lattice:
    """A tree whose levels all have the same weight."""
    return Lattice(bases, tuple((level, 1) for level in prefixes(len(bases)) if level or root))


@pytest.mark.sparse(3)
@pytest.mark.parametrize("base", [16, 8, 4])
def test_the_mean_error_of_all_ranges_is_that_of_the_literature(base: int) -> None:
    """Compares with the variances of Hay et al. and Qardaji et al. over 128 cells, computed elsewhere."""
    (known,) = [vector for vector in VECTORS if vector["D"] == 128]
    levels = known[f"levels_b{base}"]
    bases = (base,) * levels
    weights = np.zeros((128 * 129 // 2, base**levels))
    weights[:, :128] = every_range(128)
    lattice = tree(bases, root=False)
    laplace = 2 * tree_error(lattice, weights, power=1, groups=1) ** 2
    gaussian = tree_error(lattice, weights, power=2, groups=1) ** 2
    assert laplace == pytest.approx(known[f"tree_b{base}_consistent_laplace"], rel=1e-10)
    assert gaussian == pytest.approx(known[f"tree_b{base}_consistent_gauss_rho0.5"], rel=1e-10)
    assert 2 * flat_error(every_range(128)) ** 2 == pytest.approx(known["flat_laplace"])


def nodes(lattice: Lattice, vector: np.ndarray) -> np.ndarray:
    """What a change of the cells does to all nodes: counted cell by cell, without the code of lattices."""
    found = []
    for level, weight in lattice.weights:
        size = math.prod(lattice.sizes[len(level) :])
        found += [weight * int(vector[low : low + size].sum()) for low in range(0, len(vector), size)]
    return np.array(found)


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("groups", [1, 3])
def test_no_unit_moves_the_nodes_by_more_than_is_charged(power: int, groups: int) -> None:
    """Tries units in up to so many leaves, near and far: the price of the tree is never exceeded, and attained; a price
    of one level for all of them, and one for units of a single leaf, are."""
    lattice = tree_of((5, 3, 2), power=power, groups=groups) or tree((5, 3, 2))
    alone = sum(weight**power for _, weight in lattice.weights[:1])
    single = lattice.change(power, 1)
    ratios = []
    source = np.random.default_rng(5)
    for _ in range(400):
        vector = np.zeros(30, dtype=np.int64)
        low = int(source.integers(0, 30))
        close = (low + np.arange(groups)) % 30
        vector[close if source.random() < 0.5 else source.choice(30, groups, replace=False)] = source.integers(1, 4)
        moved = nodes(lattice, vector)
        norm = np.abs(moved).sum() / np.abs(vector).sum() if power == 1 else (moved**2).sum() / (vector**2).sum()
        ratios.append(float(norm))
    assert max(ratios) <= lattice.change(power, groups) + 1e-9
    # The planted bugs: levels priced once, and a unit in several leaves priced as in one.
    assert max(ratios) > alone
    assert groups == 1 or power == 1 or max(ratios) > single
    if groups == 1 or power == 1:
        assert max(ratios) == pytest.approx(lattice.change(power, groups))


def measured(
    bases: tuple[int, ...], family: NoiseFamily, groups: int = 1, amount: Fraction = Fraction(1, 4)
) -> Measurement:
    """Noise on a tree over counts of units, as the server would draw it."""
    cells = math.prod(bases)
    statistic = Statistic(
        "rows",
        StatisticKind.UNITS,
        Sensitivity(Neighbouring.ADD_REMOVE, groups, Fraction(groups), Fraction(groups), Fraction(1)),
    )
    names = tuple(KeyColumn(f"k{i}", ColumnType.INTEGER) for i in range(len(bases)))
    domain = tuple(tuple(int(one) for one in np.unravel_index(cell, bases)) for cell in range(cells))
    core = CoreStatistics("c0", Keys(names, domain, groups), (statistic,), (COUNT,), levels=prefixes(len(bases)))
    lattice = FAMILIES[family].lattice(core)
    assert lattice is not None
    return FAMILIES[family].measurement_of_levels(core, statistic, lattice, share=Fraction(1), amount=amount)


@pytest.mark.parametrize("family", NoiseFamily)
def test_errors_and_intervals_are_those_of_what_is_drawn(family: NoiseFamily) -> None:
    """Draws a tree many times: the standard errors are exact, intervals cover, and they are what the choice assumed."""
    bases = (9, 12) if family is NoiseFamily.LAPLACE else (6, 3, 3)
    measurement = measured(bases, family)
    cells, bits = math.prod(bases), SeededBits(11)
    ranges = every_range(cells)[:: 97 if family is NoiseFamily.GAUSSIAN else 331]
    # And every second cell: as many runs, each of which is made whole.
    weights = np.vstack([ranges, np.arange(cells) % 2])
    truth = np.arange(cells, dtype=np.int64)
    errors = standard_errors(measurement, COUNT, weights)
    one = NoisySums(measurement, measurement.perturb(truth[:, None], bits).sums, (COUNT,))
    told = weighted_sums(one, COUNT, weights, 0.1)
    assert [float(value) for value in told.values] == (weights @ one.values[:, 0]).tolist()
    drawn, covered = [], []
    for _ in range(600):
        off = weights @ (measurement.perturb(truth[:, None], bits).sums[:, 0] - truth)
        drawn.append(off)
        covered.append(np.abs(off) <= told.reaches)
    ratios = np.sqrt((np.array(drawn) ** 2).mean(axis=0)) / errors
    assert 0.85 < ratios.min() < ratios.max() < 1.15
    assert float(np.mean(covered)) > 0.9
    power = FAMILIES[family].power
    lattice = tree_of(bases, power=power or 0, groups=1)
    assert lattice is not None
    alone = FAMILIES[family].measurement("c0", measurement.statistic, share=Fraction(1), amount=Fraction(1, 4))
    unit = float(standard_errors(alone, COUNT, np.ones((1, 1)))[0])
    stated = unit * tree_error(lattice, ranges, power=power or 0, groups=1)
    assert math.sqrt(float((errors[:-1] ** 2).mean())) == pytest.approx(stated, rel=0.02)


def test_sums_of_many_separate_cells_are_off_by_their_whole_numbers() -> None:
    """Draws a tree at a high price, where roundings are most of what every second cell together is off by."""
    measurement = measured((9, 12), NoiseFamily.GAUSSIAN, amount=Fraction(16))
    truth, bits, weights = np.arange(108, dtype=np.int64), SeededBits(3), (np.arange(108) % 2)[None, :].astype(float)
    off = [weights @ (measurement.perturb(truth[:, None], bits).sums[:, 0] - truth) for _ in range(600)]
    (error,) = standard_errors(measurement, COUNT, weights)
    assert 0.85 < math.sqrt(float(np.mean(np.square(off)))) / error < 1.15


def test_parts_add_up_and_a_release_of_cells_is_read_too() -> None:
    """Shows exact sums for a tree and for cells with noise of their own."""
    bits = SeededBits(3)
    statistic = measured((6, 3, 3), NoiseFamily.GAUSSIAN).statistic
    flat = GaussianMeasurement.for_mu_squared(
        core="c0", statistic=statistic, share=Fraction(1), mu_squared=Fraction(1, 4)
    )
    for measurement in (measured((6, 3, 3), NoiseFamily.GAUSSIAN), flat):
        one = NoisySums(measurement, measurement.perturb(np.zeros((54, 1), dtype=np.int64), bits).sums, (COUNT,))
        weights = every_range(54)
        told = weighted_sums(one, COUNT, weights, 0.05)
        values = {tuple(np.flatnonzero(row)[[0, -1]]): value for row, value in zip(weights, told.values, strict=True)}
        assert all(values[0, high] == values[0, low] + values[low + 1, high] for low, high in ((3, 9), (20, 53)))
        assert all(value.denominator == 1 for value in told.values)


@pytest.mark.parametrize("count", [2, 7, 100, 999, 1_000])
def test_trees_have_room_for_all_cells(count: int) -> None:
    """Shows that every tree has the cells, no more than are measured, and that its levels are a lattice."""
    for bases in bases_of(count):
        assert count <= math.prod(bases) <= 1_000
        assert min(bases) >= 2
