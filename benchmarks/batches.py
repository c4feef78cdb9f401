"""Error of random ranges of one column, answered together: by a tree, from a histogram, and one by one.

    python -m benchmarks.batches [--ranges 300] [--runs 100] [--epsilon 0.1] [--cells 64 365 1000]

Counts of 100,000 made-up units by a column with so many values, most of them few and some many (weights by Zipf's law
in a random order); random ranges with both ends uniform. All ways are at one price, and each unit is in one cell.
Gaussian noise is at the mu of that number. The tree is the one that a batch would choose for these ranges
(mechanisms/trees.py). Noise is drawn by the measurements themselves. Root-mean-square error of a range, beside what is
stated of it. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mechanisms.calibrate import Price, calibrate
from mechanisms.families import FAMILIES, NoiseFamily
from mechanisms.interval import Floats
from mechanisms.measurement import Measurement
from mechanisms.randomness import SystemBits
from mechanisms.trees import bases_of, prefixes, tree_error, tree_of
from mechanisms.weighted_cells import standard_errors
from privacy.aggregate import AggregateFunction
from privacy.policy import ColumnType
from privacy.statistic import CoreStatistics, Estimate, KeyColumn, Keys, Sensitivity, Statistic, StatisticKind
from privacy.unit import Neighbouring

Integers = npt.NDArray[np.int64]

UNITS = 100_000
BITS = SystemBits()
COUNT = Estimate("a0", AggregateFunction.ROWS, "s0", integer=True)


def measured(bases: Sequence[int], family: NoiseFamily, amount: Fraction, *, tree: bool) -> Measurement:
    """Noise on the cells of a product of digits, with all levels of the tree or without."""
    domain = tuple(tuple(int(one) for one in np.unravel_index(cell, bases)) for cell in range(math.prod(bases)))
    columns = tuple(KeyColumn(f"k{place}", ColumnType.INTEGER) for place in range(len(bases)))
    one = Sensitivity(Neighbouring.ADD_REMOVE, 1, Fraction(1), Fraction(1), Fraction(1))
    statistics = (Statistic("s0", StatisticKind.COUNT, one),)
    levels = prefixes(len(bases)) if tree else ()
    core = CoreStatistics("c0", Keys(columns, domain, 1), statistics, (COUNT,), levels=levels)
    return calibrate([core], Price(family, amount, Fraction(0))).measurements[0]


def chosen(weights: Floats, family: NoiseFamily) -> tuple[int, ...]:
    """The tree with the least error for these ranges."""
    power = FAMILIES[family].power
    assert power is not None
    found = []
    for bases in bases_of(weights.shape[1]):
        lattice = tree_of(bases, power=power, groups=1)
        if lattice is not None:
            found.append((tree_error(lattice, padded(weights, bases), power=power, groups=1), bases))
    return min(found)[1]


def padded(weights: Floats, bases: Sequence[int]) -> Floats:
    """The weights with those of the cells behind the last one, which are empty: as of the last one."""
    more = math.prod(bases) - weights.shape[1]
    return np.concatenate([weights, np.repeat(weights[:, -1:], more, axis=1)], axis=1)


def error(measurement: Measurement, weights: Floats, counts: Integers, runs: int) -> tuple[float, float]:
    """Root-mean-square error of sums of noisy cells, and what is stated of it."""
    exact = np.concatenate([counts, np.zeros(weights.shape[1] - len(counts), dtype=np.int64)])[:, None]
    squares = [float(np.mean((weights @ (measurement.perturb(exact, BITS).sums - exact)) ** 2)) for _ in range(runs)]
    stated = float(np.sqrt((standard_errors(measurement, COUNT, weights) ** 2).mean()))
    return round(math.sqrt(sum(squares) / runs), 2), round(stated, 2)


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranges", type=int, default=300)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--epsilon", type=Fraction, default=Fraction(1, 10))
    parser.add_argument("--cells", type=int, nargs="+", default=[64, 365, 1000])
    options = parser.parse_args(arguments)
    source = np.random.default_rng(7)
    found: dict[str, dict[str, object]] = {}
    for cells in options.cells:
        shares = 1.0 / source.permutation(np.arange(1, cells + 1))
        counts = source.multinomial(UNITS, shares / shares.sum()).astype(np.int64)
        weights = np.zeros((options.ranges, cells))
        for row in weights:
            low, high = sorted(source.choice(cells + 1, 2, replace=False).tolist())
            row[low:high] = 1.0
        for family in NoiseFamily:
            amount = options.epsilon if family is NoiseFamily.LAPLACE else options.epsilon**2
            bases = chosen(weights, family)
            alone = measured((1,), family, amount / options.ranges, tree=False)
            one = error(alone, np.ones((1, 1)), np.zeros(1, dtype=np.int64), options.runs * 20)
            found[f"{cells} cells, {family.value}"] = {
                "one by one": one,
                "histogram": error(measured((cells,), family, amount, tree=False), weights, counts, options.runs),
                "tree": error(measured(bases, family, amount, tree=True), padded(weights, bases), counts, options.runs),
                "children": bases,
            }
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
