"""Trees of running sums: their error in closed form, keys as digits, what one unit moves, and what is drawn."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from mechanisms.consistency import Lattice
from mechanisms.families import FAMILIES, NoiseFamily
from mechanisms.measurements.levels import GaussianLevels, LaplaceLevels
from mechanisms.noisy_sums import NoisySums
from mechanisms.trees import flat_error, ranges_error, running_tree, running_weights, tree_error
from mechanisms.weighted_cells import standard_errors, weighted_sums
from privacy.aggregate import AggregateFunction
from privacy.policy import ColumnType
from privacy.statistic import (
    CoreStatistics,
    Estimate,
    KeyColumn,
    Keys,
    RunningSums,
    Sensitivity,
    Statistic,
    StatisticKind,
)
from privacy.unit import Neighbouring
from tests.mechanisms.support import SeededBits

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "range_query_variance.json").read_text(encoding="utf-8"))
COUNT = Estimate("a0", AggregateFunction.UNITS, "rows", integer=True)
WIDE = Lattice((2, 3, 2, 2), (((0, 1, 2, 3), 2), ((0, 1, 3), 1), ((0, 3), 3)), ((2, 1), (5, 2), (2, 1)))
"""Two by five by two values, of which the five have two digits with room for six."""


def below(count: int, *, key: int = 0, cells: bool = False) -> RunningSums:
    """The sums from the first value to each."""
    return RunningSums(key, tuple((0, one + 1) for one in range(count)), cells)


def test_the_mean_error_of_all_ranges_of_1024_cells_is_that_of_the_literature() -> None:
    """Compares with values computed elsewhere: 342 for Gaussian noise on cells alone, 20.5 for the binary tree."""
    (known,) = [vector for vector in VECTORS["vectors"] if vector["D"] == 1024]
    digits = known["levels_b2"]
    ends = np.stack(np.triu_indices(1025, 1), axis=1)
    gaussian = ranges_error((2,) * digits, (0, *(1,) * digits), ends, power=2, groups=1) ** 2
    assert gaussian == pytest.approx(known["tree_b2_consistent_gauss_rho0.5"], rel=1e-10)
    lengths = ends[:, 1] - ends[:, 0]
    assert lengths.mean() == pytest.approx(known["flat_gauss_rho0.5"])
    assert gaussian < 20.6 < 341 < lengths.mean()


@pytest.mark.parametrize(("power", "groups"), [(1, 1), (2, 1), (2, 3)])
def test_the_closed_form_is_the_error_of_the_lattice(power: int, groups: int) -> None:
    """Shows one error, by projections of ends of ranges and by weights of all cells, for one key and for two."""
    sums = RunningSums(0, ((0, 1), (2, 9), (3, 11), (0, 11), (4, 5)), cells=False)
    weights = running_weights((11,), sums)
    tree = Lattice((3, 2, 2), (((0, 1, 2), 2), ((0,), 3), ((), 1)), ((11, 3),))
    known = ranges_error((3, 2, 2), (1, 3, 0, 2), sums.ends, power=power, groups=groups)
    assert tree_error(tree, weights, power=power, groups=groups) == pytest.approx(known)
    beside = Lattice((2, 3, 2, 2), (((0, 1, 2, 3), 2), ((0, 1), 3), ((0,), 1)), ((2, 1), (11, 3)))
    weights = running_weights((2, 11), RunningSums(1, sums.ends, cells=False))
    assert tree_error(beside, weights, power=power, groups=groups) == pytest.approx(known)


def test_keys_as_digits_have_least_squares_estimates() -> None:
    """Shows the estimates of the cells against the pseudoinverse, and that no place without a value is released."""
    assert Lattice.of(WIDE.text) == WIDE
    assert (WIDE.cells, WIDE.room, WIDE.nodes) == (20, 24, 24 + 12 + 4)
    places = np.arange(24).reshape(2, 6, 2)[:, :5].reshape(-1)
    whole = Lattice(WIDE.sizes, WIDE.weights)
    design = whole.stacked(np.eye(24, dtype=np.int64))
    noise = np.random.default_rng(2).integers(-40, 40, (WIDE.nodes, 2))
    exact = np.arange(40).reshape(20, 2)
    estimates = (np.linalg.pinv(design.astype(float)) @ (design[:, places] @ exact + noise))[places]
    assert (WIDE.stacked(exact) == design[:, places] @ exact).all()
    found = WIDE.consistent(WIDE.stacked(exact) + noise)
    assert np.abs(np.cumsum(found, axis=0) - np.cumsum(estimates, axis=0)).max() <= 0.5 + 1e-9
    assert WIDE.gathered(noise[None].astype(float))[0] == pytest.approx(estimates - exact)
    gathered = np.einsum("ckx,kx->cx", WIDE.spread(np.eye(20)[:, :, None]), noise[:, :1])
    assert gathered == pytest.approx((estimates - exact)[:, :1])


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("groups", [1, 3])
def test_no_unit_moves_the_nodes_by_more_than_is_charged(power: int, groups: int) -> None:
    """Tries units in up to so many cells; a price of one level alone, and one of places as if no unit had several of a
    node, are exceeded."""
    source, ratios = np.random.default_rng(3), []
    for _ in range(300):
        vector = np.zeros((20, 1), dtype=np.int64)
        vector[source.choice(20, groups, replace=False)] = source.integers(1, 4)
        moved = WIDE.stacked(vector)
        ratios.append(float((np.abs(moved) ** power).sum() / (np.abs(vector) ** power).sum()))
    assert max(ratios) <= WIDE.change(power, groups) + 1e-9
    assert max(ratios) > WIDE.weights[0][1] ** power
    assert groups == 1 or power == 1 or max(ratios) > WIDE.change(2, 1)
    if groups == 1 or power == 1:
        assert max(ratios) == pytest.approx(WIDE.change(power, groups))


def test_trees_are_taken_where_they_err_less() -> None:
    """Shows the gain over cells alone by number of groups, the cap on single groups, and where cells alone are best."""
    gains = {}
    for power in (1, 2):
        for count in (20, 50, 100, 365, 1_000):
            weights = running_weights((count,), below(count))
            tree = running_tree((count,), below(count), power=power, groups=1)
            error = flat_error(weights) if tree is None else tree_error(tree, weights, power=power, groups=1)
            gains[power, count] = (flat_error(weights) / error) ** 2
            shown = running_tree((count,), below(count, cells=True), power=power, groups=1)
            if shown is not None:
                assert tree_error(shown, np.eye(count)[:1], power=power, groups=1) <= 2
    assert [round(gain, 1) for gain in gains.values()] == [1.0, 1.4, 2.1, 4.3, 7.5, 2.6, 4.6, 7.2, 18.0, 38.7]
    assert running_tree((2,), below(2), power=2, groups=1) is None
    assert running_tree((600, 2), below(600), power=2, groups=1) is None
    # Sums of two neighbours are best left to the cells, and a unit in all groups makes every total expensive.
    pairs = RunningSums(0, tuple((one, one + 2) for one in range(30)), cells=True)
    assert running_tree((31,), pairs, power=1, groups=1) is None
    many = running_tree((16,), below(16), power=2, groups=16)
    assert many is None or tree_error(many, running_weights((16,), below(16)), power=2, groups=16) < math.sqrt(8.5)


@pytest.mark.parametrize("family", NoiseFamily)
def test_errors_and_intervals_are_those_of_what_is_drawn(family: NoiseFamily) -> None:
    """Draws a tree of two by sixty groups many times: standard errors are exact, and intervals cover."""
    bound = Sensitivity(Neighbouring.ADD_REMOVE, 1, Fraction(1), Fraction(1), Fraction(1))
    statistic = Statistic("rows", StatisticKind.UNITS, bound)
    domain = tuple((sex, age) for sex in ("f", "m") for age in range(60))
    keys = Keys((KeyColumn("k0", ColumnType.TEXT), KeyColumn("k1", ColumnType.INTEGER)), domain, 1)
    core = CoreStatistics("c0", keys, (statistic,), (COUNT,), running=below(60, key=1))
    lattice = FAMILIES[family].lattice(core)
    assert lattice is not None
    measurement = FAMILIES[family].measurement_of_levels(
        core, statistic, lattice, share=Fraction(1), amount=Fraction(1, 4)
    )
    assert isinstance(measurement, LaplaceLevels | GaussianLevels)
    weights, truth, bits = running_weights((2, 60), below(60, key=1))[::7], np.arange(120)[:, None], SeededBits(4)
    one = NoisySums(measurement, measurement.perturb(truth, bits).sums, (COUNT,))
    reaches = weighted_sums(one, COUNT, weights, 0.1).reaches
    errors = standard_errors(measurement, COUNT, weights)
    off, covered = [], []
    for _ in range(300):
        sums = measurement.perturb(truth, bits).sums
        off.append(weights @ (sums - truth)[:, 0])
        covered.append(np.abs(off[-1]) <= reaches)
    ratios = np.sqrt((np.array(off) ** 2).mean(axis=0)) / errors
    assert 0.8 < ratios.min() < ratios.max() < 1.2
    assert float(np.mean(covered)) > 0.88
