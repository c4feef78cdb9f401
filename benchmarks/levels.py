"""Error of the levels of a ROLLUP that are measured together, against the levels asked one by one.

    python -m benchmarks.levels [--runs 500] [--epsilon 0.1] [--noise laplace]

Counts of the demo's patients, each of whom is in one cell. One by one, each level gets its part of the price and noise
of its own; from the finest, that gets all of it and the others are its sums; together, the levels that the server would
measure share it and are made consistent by least squares (mechanisms/consistency.md). Root-mean-square error of a cell,
by level, and the geometric mean of the levels. Gaussian noise is at the mu of that number. Noise is drawn by the
measurements themselves. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mechanisms.calibrate import Price, calibrate
from mechanisms.families import NoiseFamily
from mechanisms.measurement import Measurement
from mechanisms.randomness import SystemBits
from privacy.policy import ColumnType
from privacy.statistic import CoreStatistics, KeyColumn, Keys, Sensitivity, Statistic, StatisticKind
from privacy.unit import Neighbouring
from server.demo import generate

Integers = npt.NDArray[np.int64]

BITS = SystemBits()


def questions() -> Iterator[tuple[str, list[Integers], list[tuple[int, ...]]]]:
    """Keys of the patients, and the levels that group by some of them, the finest one first."""
    table = generate()["patients"]
    columns = dict(zip(table.names, map(np.asarray, table.columns), strict=True))

    def coded(values: npt.NDArray[np.generic]) -> Integers:
        return np.unique(values, return_inverse=True)[1].astype(np.int64)

    region, sex = coded(columns["region"]), coded(columns["sex"])
    band = coded((2025 - columns["birth_year"].astype(np.int64)) // 10)
    yield "ROLLUP(region)", [region], [(0,), ()]
    yield "ROLLUP(region, sex)", [region, sex], [(0, 1), (0,), ()]
    yield "CUBE(region, sex)", [region, sex], [(0, 1), (0,), (1,), ()]
    yield (
        "CUBE(region, sex, age // 10)",
        [region, sex, band],
        [level for length in (3, 2, 1, 0) for level in itertools.combinations(range(3), length)],
    )
    yield "GROUPING SETS ((region), (age // 10))", [region, band], [(0,), (1,)]
    yield "ROLLUP(region, sex, age // 10)", [region, sex, band], [(0, 1, 2), (0, 1), (0,), ()]


def measured(
    sizes: Sequence[int], levels: Sequence[tuple[int, ...]], family: NoiseFamily, amount: Fraction
) -> Measurement:
    """The measurement of counts of all cells of which these levels are read, at a price."""
    domain = tuple(itertools.product(*map(range, sizes)))
    columns = tuple(KeyColumn(f"k{place}", ColumnType.INTEGER) for place in range(len(sizes)))
    keys = Keys(columns, domain or ((),), groups_per_unit=1)
    one = Sensitivity(Neighbouring.ADD_REMOVE, 1, Fraction(1), Fraction(1), Fraction(1))
    core = CoreStatistics("c0", keys, (Statistic("s0", StatisticKind.COUNT, one),), (), levels=tuple(levels))
    return calibrate([core], Price(family, amount, Fraction(0))).measurements[0]


def errors(
    keys: Sequence[Integers], levels: Sequence[tuple[int, ...]], family: NoiseFamily, epsilon: Fraction, runs: int
) -> dict[str, list[float]]:
    """The error of a cell by level: of the levels one by one, of sums of the finest, and of those made consistent."""
    sizes = [int(key.max()) + 1 for key in keys]
    exact = np.zeros(sizes, dtype=np.int64)
    np.add.at(exact, tuple(keys), 1)
    amount = epsilon if family is NoiseFamily.LAPLACE else epsilon**2
    finest = tuple(range(len(sizes)))
    whole = {
        "from the finest": measured(sizes, (), family, amount),
        "together": measured(sizes, levels, family, amount),
    }
    part = measured(sizes, (), family, amount / len(levels))
    found: dict[str, list[float]] = {}
    for level in levels:
        away = tuple(place for place in finest if place not in level)
        truth = exact.sum(axis=away).reshape(-1, 1)
        squares = [np.mean((part.perturb(truth, BITS).sums - truth) ** 2) for _ in range(runs)]
        found.setdefault("one by one", []).append(float(np.sqrt(np.mean(squares))))
    for name, measurement in whole.items():
        squared = np.zeros(len(levels))
        for _ in range(runs):
            error = (measurement.perturb(exact.reshape(-1, 1), BITS).sums - exact.reshape(-1, 1)).reshape(sizes)
            for place, level in enumerate(levels):
                away = tuple(axis for axis in finest if axis not in level)
                squared[place] += float(np.mean(error.sum(axis=away) ** 2))
        found[name] = np.sqrt(squared / runs).tolist()
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--epsilon", type=Fraction, default=Fraction(1, 10))
    parser.add_argument("--noise", type=NoiseFamily, default=None)
    options = parser.parse_args(arguments)
    found: dict[str, dict[str, list[float]]] = {}
    for name, keys, levels in questions():
        for family in NoiseFamily if options.noise is None else (options.noise,):
            by_way = errors(keys, levels, family, options.epsilon, options.runs)
            found[f"{name}, {family.value}"] = {
                way: [*(round(error, 1) for error in by_level), round(float(np.exp(np.log(by_level).mean())), 1)]
                for way, by_level in by_way.items()
            }
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
