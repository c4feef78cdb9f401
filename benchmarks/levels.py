"""Error of the levels of a ROLLUP that are computed from the finest one, against the levels asked one by one.

    python -m benchmarks.levels [--runs 2000] [--epsilon 0.1]

Counts of the demo's patients, each of whom is in one cell; Laplace noise. One by one, each level gets its part of
epsilon; together, the finest level gets all of it and the others are sums of it. Root-mean-square error of a cell, by
level and over all of them. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from server.demo import generate

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


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
    yield "ROLLUP(region, sex, age // 10)", [region, sex, band], [(0, 1, 2), (0, 1), (0,), ()]


def errors(
    keys: Sequence[Integers], levels: Sequence[tuple[int, ...]], epsilon: float, runs: int
) -> tuple[list[float], list[float]]:
    """The error of a cell by level: of the levels one by one, and of sums of the finest one."""
    draw = np.random.Generator(np.random.PCG64(5))
    sizes = [int(key.max()) + 1 for key in keys]
    exact = np.zeros(sizes)
    np.add.at(exact, tuple(keys), 1)
    alone: list[float] = []
    together: list[float] = []
    finest = exact + draw.laplace(scale=1 / epsilon, size=(runs, *sizes))
    for level in levels:
        away = tuple(place for place in range(len(keys)) if place not in level)
        truth = exact.sum(axis=away)
        noisy = truth + draw.laplace(scale=len(levels) / epsilon, size=(runs, *truth.shape))
        alone.append(float(np.sqrt(np.mean((noisy - truth) ** 2))))
        summed = finest.sum(axis=tuple(place + 1 for place in away))
        together.append(float(np.sqrt(np.mean((summed - truth) ** 2))))
    return alone, together


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--epsilon", type=float, default=0.1)
    options = parser.parse_args(arguments)
    found = {}
    for name, keys, levels in questions():
        alone, together = errors(keys, levels, options.epsilon, options.runs)
        ratios = [a / b for a, b in itertools.zip_longest(alone, together)]
        found[name] = {
            "one by one": [round(error, 1) for error in alone],
            "together": [round(error, 1) for error in together],
            "times nearer": [round(ratio, 2) for ratio in ratios],
        }
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
