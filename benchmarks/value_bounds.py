"""Error of averages whose value bounds were chosen from a noisy histogram, against the seeds' `auto_avg`.

    python -m benchmarks.value_bounds DATA.csv VECTORS.json [--runs 500]

DATA.csv has the columns age and capital_gain, one row of each unit; VECTORS.json the errors to compare with. The
average of a whole column at epsilon 0.1 and 1, Laplace noise, a quarter for the histogram. Root-mean-square and median
error over the runs, the same with bounds that are known, and the seeds'. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mechanisms.value_bounds import BoundsChoice, choose_bounds
from privacy.policy import ColumnType
from privacy.value_grid import grid_of

SHARE = 0.25
QUESTIONS = (("age", 0.1), ("age", 1.0), ("capital_gain", 0.1), ("capital_gain", 1.0))
KNOWN = {"age": (17.0, 90.0), "capital_gain": (0.0, 99_999.0)}

Floats = npt.NDArray[np.float64]


def read(path: Path) -> dict[str, Floats]:
    """The columns by name."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: np.array([float(row[name]) for row in rows]) for name in KNOWN}


def average(values: Floats, lower: float, upper: float, epsilon: float, draw: np.random.Generator) -> float:
    """The average of clipped values from two noisy sums, as mechanisms/moments.md has it."""
    upper = max(upper, lower + 1)
    clipped = np.clip(values, lower, upper)
    scale = (upper - lower) / epsilon
    down, up = float((upper - clipped).sum()), float((clipped - lower).sum())
    down, up = down + draw.laplace(0, scale), up + draw.laplace(0, scale)
    part = up / (down + up) if down + up > 0 else 0.5
    return lower + (upper - lower) * min(max(part, 0.0), 1.0)


def chosen(values: Floats, epsilon: float, draw: np.random.Generator) -> BoundsChoice:
    """Bounds from a noisy histogram."""
    grid = grid_of(ColumnType.INTEGER)
    starts = np.array([float(low) for low in grid.lows])
    counts = np.bincount(np.searchsorted(starts, values, side="right") - 1, minlength=len(starts))
    noisy = list(counts + draw.laplace(0, 1 / (SHARE * epsilon), len(counts)))
    deviation = math.sqrt(2) / (SHARE * epsilon)
    noise = math.sqrt(2) / ((1 - SHARE) * epsilon)
    return choose_bounds(noisy, noisy, grid, deviation=deviation, cells=1, noise=noise, from_zero=False)


def errors(answer: Callable[[], float], truth: float, runs: int) -> dict[str, float]:
    """Root-mean-square and median error."""
    off = np.abs(np.array([answer() for _ in range(runs)]) - truth)
    return {"rmse": float(f"{math.sqrt(float((off * off).mean())):.4g}"), "median": float(f"{np.median(off):.4g}")}


def measure(values: Floats, column: str, epsilon: float, runs: int, seed: tuple[float, float]) -> dict[str, object]:
    """The errors of one question."""
    draw = np.random.Generator(np.random.PCG64(1))
    truth = float(values.mean())
    uppers: list[float] = []

    def automatic() -> float:
        choice = chosen(values, epsilon, draw)
        uppers.append(float(choice.upper))
        return average(values, float(choice.lower), float(choice.upper), (1 - SHARE) * epsilon, draw)

    found = errors(automatic, truth, runs)
    return {
        "chosen": found,
        "known": errors(lambda: average(values, *KNOWN[column], epsilon, draw), truth, runs),
        "seed": {"rmse": seed[0], "median": seed[1]},
        "median_upper": float(np.median(uppers)),
        "no_worse": found["rmse"] <= seed[0] and found["median"] <= seed[1],
    }


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("vectors", type=Path)
    parser.add_argument("--runs", type=int, default=500)
    asked = parser.parse_args()
    columns = read(asked.data)
    seeds = {
        (vector["col"].replace("-", "_"), float(vector["eps"])): tuple(vector["rmse_median"]["seed_auto_avg"])
        for vector in json.loads(asked.vectors.read_text())["vectors"]
    }
    print(
        json.dumps(
            {
                f"{column}, epsilon {epsilon}": measure(
                    columns[column], column, epsilon, asked.runs, seeds[column, epsilon]
                )
                for column, epsilon in QUESTIONS
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
