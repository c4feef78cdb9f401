"""Quantiles from noisy trees: ranks are least-squares estimates, their errors as stated, intervals hold the truth."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from mechanisms.calibrate import Price, calibrate
from mechanisms.estimates import ESTIMATORS
from mechanisms.families import NoiseFamily
from mechanisms.ranks import WEIGHT_MAX, consistent, nodes_of, spread
from mechanisms.release import release
from mechanisms.released_table import ReleasedTable
from mechanisms.replicates import simulate
from privacy.aggregate import AggregateFunction
from privacy.exact import Exact
from privacy.rank_tree import RankTree, shape_of
from privacy.refusal import ExecutionFailed
from privacy.statistic import CoreStatistics, Encoding, Estimate, Sensitivity, Statistic, StatisticKind
from privacy.unit import Neighbouring
from tests.mechanisms.support import SeededBits, cells_core

CELLS = 2_000
ROOM = 6 * (0.95 * 0.05 / CELLS) ** 0.5
"""Six standard deviations of a share of so many cells: red by chance less than once in a hundred million."""

ESTIMATES = (
    Estimate("median", AggregateFunction.QUANTILE, "r", fraction=Fraction(1, 2)),
    Estimate("tenth", AggregateFunction.QUANTILE, "r", fraction=Fraction(1, 10)),
    Estimate("row", AggregateFunction.QUANTILE_DISCRETE, "r", integer=True, fraction=Fraction(3, 4)),
    Estimate("first", AggregateFunction.QUANTILE_DISCRETE, "r", integer=True, fraction=Fraction(0)),
    Estimate("least", AggregateFunction.LEAST, "r", integer=True),
    Estimate("greatest", AggregateFunction.GREATEST, "r", integer=True),
)
PRICES = {
    "laplace": Price(NoiseFamily.LAPLACE, Fraction(1), Fraction(0)),
    "gaussian": Price(NoiseFamily.GAUSSIAN, Fraction(1, 4), Fraction(0)),
    "gaussian, little noise": Price(NoiseFamily.GAUSSIAN, Fraction(60), Fraction(0)),
}


def ranked(most: int, *, width: int = 1, worth: int = 1, fractional: bool = False) -> Statistic:
    """Whole numbers from 0 to `most`, so many in a place."""
    places = -(-(most + 1) // width)
    tree = RankTree(*shape_of(places), Fraction(0), Fraction(most), True, worth)
    one = Fraction(worth)
    return Statistic(
        name="r",
        kind=StatisticKind.RANKS,
        sensitivity=Sensitivity(Neighbouring.ADD_REMOVE, tree.levels, tree.levels * one, tree.levels * one**2, one),
        coordinates=tree.nodes,
        encoding=Encoding(Fraction(width - 1, 2), Fraction(width), 0, places - 1),
        tree=tree,
        fractional=fractional,
    )


def released(
    statistic: Statistic, values: np.ndarray, price: Price, cells: int = CELLS, *, weights: np.ndarray | None = None
) -> ReleasedTable:
    """The same values in every cell, each of one row, or of as many units of one."""
    tree, encoding = statistic.tree, statistic.encoding
    assert tree is not None
    assert encoding is not None
    core = cells_core([statistic], ESTIMATES, cells)
    counts = np.bincount(values // int(encoding.step), weights, minlength=tree.places).astype(np.int64)
    exact = Exact(keys={"k": list(range(cells))}, sums={"r": np.tile(counts, (cells, 1))}, rows=cells)
    return release(core, calibrate([core], price), exact, bits=SeededBits(5), confidence=Fraction(95, 100))


def truths(values: np.ndarray) -> dict[str, float | None]:
    """The definitions."""
    return {e.name: ESTIMATORS[e.kind].at(e.fraction).truth(values.astype(np.float64), nulls=0) for e in ESTIMATES}


@pytest.mark.parametrize(("branching", "levels"), [(2, 1), (2, 3), (3, 2), (4, 3), (8, 2), (5, 1)])
def test_ranks_are_least_squares(branching: int, levels: int) -> None:
    """Two passes are the pseudo-inverse of the tree, and the norms of ranks are those of its rows."""
    tree = RankTree(branching, levels, Fraction(0), Fraction(1), whole=False)
    sums = nodes_of(tree, np.eye(tree.places, dtype=np.int64)).T.astype(np.float64)
    found = consistent(tree, np.eye(tree.nodes)).T
    assert found == pytest.approx(np.linalg.pinv(sums), abs=1e-9)
    below = np.vstack([np.zeros(tree.places), np.tril(np.ones((tree.places, tree.places)))])
    for fraction in (Fraction(0), Fraction(1, 2), Fraction(1, 10), Fraction(1)):
        weights = (below - float(fraction)) @ found
        assert np.sqrt((weights**2).sum(axis=1)) == pytest.approx(spread(branching, levels, fraction), abs=1e-9)
        assert np.abs(weights).max() <= WEIGHT_MAX


def test_shapes_hold_all_places_and_stay_as_they_are() -> None:
    """Releases are stored by them."""
    assert [shape_of(n) for n in (1, 2, 10, 64, 121, 256, 1024, 4096)] == [
        (2, 1), (2, 1), (10, 1), (8, 2), (11, 2), (7, 3), (6, 4), (8, 4),
    ]  # fmt: skip
    assert all(b**h >= n for n in range(1, 4097) for b, h in [shape_of(n)])


@pytest.mark.sparse(4)
@pytest.mark.parametrize("rows", [1, 2, 7, 400])
@pytest.mark.parametrize("price", PRICES)
def test_intervals_hold_the_truth(price: str, rows: int) -> None:
    """Every quantile, of few rows and of many: at least 95 per cent."""
    values = (SeededBits(rows).words(rows) % np.uint64(50)).astype(np.int64)
    table = released(ranked(59), values, PRICES[price])
    for column in table.columns[1:]:
        truth = truths(values)[column.name]
        assert truth is not None
        lows, highs = np.array(column.lows, dtype=float), np.array(column.highs, dtype=float)
        share = float(((lows <= truth + 1e-9) & (truth - 1e-9 <= highs)).mean())
        assert share >= 0.95 - ROOM, column.name
        shown = [value for value in column.values if value is not None]
        assert all(0 <= value <= 59 for value in shown)


def weighted(values: np.ndarray, weights: np.ndarray, estimate: Estimate) -> float:
    """The definition where rows weigh a part of one: row k is the first with a weight of k + 1/2 up to it."""
    order = np.argsort(values, kind="stable")
    upto, sorted_values = np.cumsum(weights[order]), values[order]

    def row(k: float) -> float:
        return float(sorted_values[min(int(np.searchsorted(upto, k + 0.5 - 1e-9)), len(values) - 1)])

    if estimate.fraction is None:
        return float(values.min() if estimate.kind is AggregateFunction.LEAST else values.max())
    whole, part = float(upto[-1]), float(estimate.fraction)
    if estimate.kind is AggregateFunction.QUANTILE_DISCRETE:
        return row(max(np.ceil(part * round(whole)) - 1, 0))
    rank = part * (whole - 1)
    low, high = row(np.floor(rank)), row(min(np.floor(rank) + 1, round(whole) - 1))
    return low + (rank - np.floor(rank)) * (high - low)


@pytest.mark.parametrize("price", PRICES)
def test_intervals_hold_the_truth_of_weighted_rows(price: str) -> None:
    """Rows that weigh a part of one, as those of units beyond their bounds do."""
    draws = SeededBits(17).words(600)
    values = (draws[:300] % np.uint64(50)).astype(np.int64)
    weights = (draws[300:] % np.uint64(2**20)).astype(np.int64) + 1
    weights[values < 20] = 2**20
    statistic = ranked(59, worth=2**20, fractional=True)
    table = released(statistic, values, PRICES[price], weights=weights)
    for column, estimate in zip(table.columns[1:], ESTIMATES, strict=True):
        truth = weighted(values, weights / 2**20, estimate)
        lows, highs = np.array(column.lows, dtype=float), np.array(column.highs, dtype=float)
        share = float(((lows <= truth + 1e-9) & (truth - 1e-9 <= highs)).mean())
        assert share >= 0.95 - ROOM, column.name
    without = released(
        statistic, values, Price(NoiseFamily.GAUSSIAN, Fraction(10**12), Fraction(0)), 1, weights=weights
    )
    for column, estimate in zip(without.columns[1:], ESTIMATES, strict=True):
        assert column.values[0] == pytest.approx(weighted(values, weights / 2**20, estimate), abs=1e-3), column.name


def test_without_noise_it_is_the_definition() -> None:
    """Of whole numbers with a place each; and within a place where several share one."""
    price = Price(NoiseFamily.GAUSSIAN, Fraction(10**12), Fraction(0))
    for seed in range(20):
        values = (SeededBits(seed).words(1 + 3 * seed) % np.uint64(60)).astype(np.int64)
        for width, worth in ((1, 1), (1, 1024), (4, 1)):
            table = released(ranked(59, width=width, worth=worth), values, price, cells=1)
            for column in table.columns[1:]:
                truth = truths(values)[column.name]
                assert column.values[0] == pytest.approx(truth, abs=1e-3 if width == 1 else width), column.name


def test_nobody_has_no_quantile_and_no_interval() -> None:
    """Groups of nobody are NULL where the noisy number of rows is below one, and never certain of anything."""
    table = released(ranked(59), np.array([], dtype=np.int64), PRICES["gaussian"])
    column = table.columns[1]
    nothing = np.array([value is None for value in column.values])
    assert 0.3 < nothing.mean() < 0.7
    widest = [(low, high) for low, high, none in zip(column.lows, column.highs, nothing, strict=True) if none]
    assert set(widest) == {(0.0, 59.0)}


def test_extremes_are_not_those_of_one_row() -> None:
    """One row far away from a thousand moves neither MIN nor MAX of them, and their intervals reach to the bounds."""
    values = np.concatenate([np.full(1_000, 30), [0, 59]])
    table = released(ranked(59), values, PRICES["gaussian"])
    columns = {column.name: column for column in table.columns}
    for name, end in (("least", 0), ("greatest", 59)):
        shown = np.array(columns[name].values, dtype=float)
        assert (shown == 30).mean() > 0.9
        ends = columns[name].lows if end == 0 else columns[name].highs
        assert (np.array(ends, dtype=float) == end).mean() > 0.95


def test_simulated_values_spread_as_the_errors_say() -> None:
    """Fresh noise on released counts moves the median about by its standard error, of many rows."""
    values = (SeededBits(3).words(20_000) % np.uint64(4_000)).astype(np.int64)
    table = released(ranked(3_999), values, PRICES["gaussian"], cells=2)
    assert table.sums is not None
    draws = simulate(table.sums, 200, bits=SeededBits(9))["median"]
    error = table.columns[1].standard_errors[0]
    assert error is not None
    assert 0.5 < float(np.nanstd(draws[:, 0])) / (error * np.sqrt(2)) < 2


@pytest.mark.parametrize("bad", [np.zeros((1, 5), dtype=np.int64), np.full((1, 11), 2**60), [[1] * 11]])
def test_counts_that_the_plan_rules_out_are_refused(bad: object) -> None:
    """Other shapes and types, and more rows than there can be."""
    core: CoreStatistics = cells_core([ranked(10)], ESTIMATES, 1)
    exact = Exact(keys={"k": [0]}, sums={"r": bad}, rows=1)  # type: ignore[dict-item]
    with pytest.raises(ExecutionFailed):
        release(core, calibrate([core], PRICES["gaussian"]), exact, bits=SeededBits(1), confidence=Fraction(95, 100))
