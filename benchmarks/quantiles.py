"""Error of three quantiles of a column from one noisy tree, against the exponential mechanism at the same epsilon.

    python -m benchmarks.quantiles DATA.csv [--runs 100]

DATA.csv has the columns age, hours_per_week and fnlwgt, one row of each unit. The 0.1, 0.5 and 0.9 quantile of a whole
column together: Laplace noise on a tree at epsilon, and three selections at a third of it each, whose utility is the
distance of a value's ranks from the one that is asked for. Root-mean-square errors over the runs. Prints one JSON
object.
"""

from __future__ import annotations

import argparse
import csv
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mechanisms.calibrate import Price, calibrate
from mechanisms.families import NoiseFamily
from mechanisms.randomness import SystemBits
from mechanisms.release import release
from privacy.aggregate import AggregateFunction
from privacy.exact import Exact
from privacy.rank_tree import PLACES, RankTree, shape_of
from privacy.statistic import CoreStatistics, Encoding, Estimate, Keys, Sensitivity, Statistic, StatisticKind
from privacy.unit import Neighbouring

GREATEST = {"age": 100, "hours_per_week": 100, "fnlwgt": 1_500_000}
PARTS = (Fraction(1, 10), Fraction(1, 2), Fraction(9, 10))

Integers = npt.NDArray[np.int64]


def read(path: Path) -> dict[str, Integers]:
    """The columns by name."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: np.array([int(row[name]) for row in rows]) for name in GREATEST}


def from_tree(values: Integers, most: int, epsilon: str, runs: int) -> list[list[float]]:
    """Values of the quantiles in every run."""
    width = -(-(most + 1) // PLACES[0])
    places = -(-(most + 1) // width)
    tree = RankTree(*shape_of(places), Fraction(0), Fraction(most), whole=True)
    one = Fraction(1)
    bound = Sensitivity(Neighbouring.ADD_REMOVE, tree.levels, tree.levels * one, tree.levels * one, one)
    encoding = Encoding(Fraction(width - 1, 2), Fraction(width), 0, places - 1)
    statistic = Statistic("s0", StatisticKind.RANKS, bound, tree.nodes, encoding, tree=tree)
    estimates = [
        Estimate(f"a{place}", AggregateFunction.QUANTILE, "s0", fraction=part) for place, part in enumerate(PARTS)
    ]
    core = CoreStatistics("c0", Keys((), ((),), 1), (statistic,), tuple(estimates))
    calibration = calibrate([core], Price(NoiseFamily.LAPLACE, Fraction(epsilon), Fraction(0)))
    counts = np.bincount(np.clip(values, 0, most) // width, minlength=tree.places)[None, :]
    found = []
    for _ in range(runs):
        exact = Exact(keys={}, sums={"s0": counts}, rows=1)
        table = release(core, calibration, exact, bits=SystemBits(), confidence=Fraction(95, 100))
        found.append([float(column.numbers[0] or 0) for column in table.columns])
    return found


def selected(values: Integers, most: int, epsilon: float, draw: np.random.Generator) -> list[float]:
    """The quantiles by the exponential mechanism, each with a third of epsilon. Simulated in floats: for comparison."""
    ordered = np.sort(values)
    ends = np.unique(np.concatenate([[0], ordered, [most]]))
    below, upto = np.searchsorted(ordered, ends, "left"), np.searchsorted(ordered, ends, "right")
    widths = np.diff(np.concatenate([ends, [most + 1]]))
    found = []
    for part in map(float, PARTS):
        goal = part * len(values)
        utility = -np.maximum(np.maximum(below - goal, goal - upto), 0)
        scores = epsilon / 3 * utility / (2 * max(part, 1 - part)) + np.log(widths)
        found.append(float(ends[int(np.argmax(scores + draw.gumbel(size=len(ends))))]))
    return found


def main() -> None:
    """Runs all questions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--runs", type=int, default=100)
    given = parser.parse_args()
    draw = np.random.default_rng(7)
    result = {}
    for name, values in read(given.data).items():
        truth = np.quantile(values, [float(part) for part in PARTS])
        for epsilon in ("0.1", "1"):
            ways = {
                "tree": from_tree(values, GREATEST[name], epsilon, given.runs),
                "selections": [selected(values, GREATEST[name], float(epsilon), draw) for _ in range(given.runs)],
            }
            result[f"{name} at {epsilon}"] = {
                way: [round(float(e), 3) for e in np.sqrt(((np.array(found) - truth) ** 2).mean(axis=0))]
                for way, found in ways.items()
            }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
