"""Groups merged by their noisy numbers: rows are a partition, and their intervals hold whatever was merged."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from mechanisms.calibrate import calibrate
from mechanisms.families import NoiseFamily, Price
from mechanisms.measurement import Measurement
from mechanisms.merging import Merger, Node, Row, nodes_of, rows_shown
from mechanisms.noisy_sums import NoisySums
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

COUNT = Estimate("a0", AggregateFunction.UNITS, "rows", integer=True)
AMOUNTS = {NoiseFamily.GAUSSIAN: Fraction(1, 4), NoiseFamily.LAPLACE: Fraction(3, 2)}
ALPHA = 0.1


def runs(count: int) -> Node:
    """Neighbours in twos, fours, ... as nodes."""
    nodes = [Node((cell,)) for cell in range(count)]
    while len(nodes) > 1:
        pairs = [nodes[place : place + 2] for place in range(0, len(nodes), 2)]
        nodes = [Node(a.cells + b.cells, "run", (a, b)) for a, b in pairs]
    return nodes[0]


def others(count: int) -> Node:
    """Single groups, of which the small ones are one row."""
    return Node(tuple(range(count)), "other", tuple(Node((cell,)) for cell in range(count)), rest=True)


def measured(count: int, family: NoiseFamily, *, tree: bool) -> Measurement:
    """Noise on counts of so many groups."""
    bound = Sensitivity(Neighbouring.ADD_REMOVE, 1, Fraction(1), Fraction(1), Fraction(1))
    keys = Keys((KeyColumn("k0", ColumnType.INTEGER),), tuple((cell,) for cell in range(count)), 1)
    core = CoreStatistics("c0", keys, (Statistic("rows", StatisticKind.UNITS, bound),), (COUNT,))
    ends = tuple((node.cells[0], node.cells[-1] + 1) for node in nodes_of([runs(count)]) if node.children)
    core = replace(core, running=RunningSums(0, ends, cells=True) if tree else None)
    (measurement,) = calibrate([core], Price(family, AMOUNTS[family], Fraction(0))).measurements
    return measurement


WORLDS = {
    "runs": (runs(32), NoiseFamily.GAUSSIAN, True, Fraction(1, 4)),
    "others": (others(32), NoiseFamily.GAUSSIAN, False, Fraction(1, 3)),
    "laplace": (runs(32), NoiseFamily.LAPLACE, False, Fraction(1, 4)),
}
TRUTH = np.concatenate([np.arange(8) * 4, np.full(12, 21), np.full(12, 30)]).astype(np.int64)
"""Groups about as large as what is shown alone: noise decides what is merged."""


def missed(name: str, draws: int, *, apart: bool = False) -> tuple[float, set[int]]:
    """How often some interval of an answer misses, and how many rows answers have; `apart`: the planted bug, of
    intervals that hold one by one."""
    root, family, tree, relative = WORLDS[name]
    measurement = measured(32, family, tree=tree)
    exact, bits = TRUTH[:, None], SeededBits(6)
    alpha = ALPHA * (len(nodes_of([root])) if apart else 1)
    fixed = Merger(NoisySums(measurement, exact, (COUNT,)), COUNT, [root], alpha)
    misses, sizes = 0, set()
    for _ in range(draws):
        one = NoisySums(measurement, measurement.perturb(exact, bits).sums, (COUNT,))
        merger = Merger(one, COUNT, [root], alpha)
        merger.__dict__["_noise"] = fixed._noise  # the same law: reaches do not depend on numbers
        rows = rows_shown([root], merger, relative)
        assert sorted(cell for row in rows for cell in row.cells) == list(range(32))
        sizes.add(len(rows))
        misses += any(
            abs(merger.value(row.cells) - int(TRUTH[list(row.cells)].sum())) > merger.reach(row) for row in rows
        )
    return misses / draws, sizes


@pytest.mark.parametrize("name", WORLDS)
def test_intervals_of_all_rows_hold_at_once(name: str) -> None:
    """Shows that answers with a wrong interval are rarer than said, where the noise decides which rows there are."""
    rate, sizes = missed(name, 300)
    assert rate <= ALPHA
    assert len(sizes) > 2


def test_intervals_that_hold_one_by_one_are_caught() -> None:
    """Shows that without the number of nodes some interval of most answers is wrong."""
    assert missed("runs", 100, apart=True)[0] > 2 * ALPHA


@pytest.mark.nightly
@pytest.mark.parametrize("name", WORLDS)
def test_intervals_of_all_rows_hold_at_once_in_many_answers(name: str) -> None:
    """The same of 10,000 answers."""
    assert missed(name, 10_000)[0] <= ALPHA


def merger_of(numbers: list[int], root: Node) -> Merger:
    """Numbers as they are, with the law of Gaussian noise."""
    measurement = measured(len(numbers), NoiseFamily.GAUSSIAN, tree=False)
    return Merger(NoisySums(measurement, np.array(numbers)[:, None], (COUNT,)), COUNT, [root], ALPHA)


def test_neighbours_are_merged_as_far_as_needed() -> None:
    """Shows single rows, one run, a row that is merged no further, and sums that stay."""
    numbers = [500, 600, 3, 700, 900, 800, 40, 45]
    merger = merger_of(numbers, runs(8))
    rows = rows_shown([runs(8)], merger, Fraction(1, 10))
    assert [row.cells for row in rows] == [(0,), (1,), (2, 3), (4,), (5,), (6, 7)]
    assert all(row.met for row in rows)
    assert sum(merger.value(row.cells) for row in rows) == sum(numbers)
    (least,) = rows_shown([runs(4)], merger_of([1, 2, 0, -9], runs(4)), Fraction(1, 10))
    assert least == Row((0, 1, 2, 3), "run", met=False)
    everything = rows_shown([runs(4)], merger_of([900, 950, 800, 700], runs(4)), Fraction(1, 10))
    assert [row.cells for row in everything] == [(0,), (1,), (2,), (3,)]


def test_the_rest_is_one_row_whose_interval_is_that_of_its_parts() -> None:
    """Shows what joins the rest, and both ways to its interval: of its parts, and of all less those beside it."""
    merger = merger_of([900, 20, 950, 700, 10, 30, 15, 500], others(8))
    rows = rows_shown([others(8)], merger, Fraction(1, 4))
    assert [row.cells for row in rows] == [(0,), (2,), (1, 3, 4, 5, 6, 7)] or rows[-1].cells[0] == 1
    rest = rows[-1]
    alone = merger.reach(Row((0,), "", met=True))
    whole = merger.reach(Row(tuple(range(8)), "other", met=True))
    beside = 8 - len(rest.cells)
    assert merger.reach(rest) == min(len(rest.cells) * alone, whole + beside * alone)
    assert merger.error(rest) is None
    assert rest.met
    # One that is small by itself is merged with the smallest of the others.
    few = rows_shown([others(4)], merger_of([5_000, 2, 6_000, 4_000], others(4)), Fraction(1, 10))
    assert [row.cells for row in few] == [(0,), (2,), (1, 3)]
