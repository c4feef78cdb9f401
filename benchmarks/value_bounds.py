"""Error of averages whose value bounds were chosen from a noisy histogram, against the seeds' `auto_avg`.

    python -m benchmarks.value_bounds DATA.csv VECTORS.json [--runs 500]

DATA.csv has the columns age and capital_gain, one row of each unit; VECTORS.json the errors to compare with. The
average of a whole column at epsilon 0.1 and 1, Laplace noise, a quarter for the histogram. Root-mean-square and median
error over the runs, the same with bounds that are known, and the seeds'. Prints one JSON object.

    python -m benchmarks.value_bounds --shapes [--runs 40]

Columns of 200 to 5,000 units of thirteen shapes, at epsilon 0.3 and 1 with Laplace noise, and at the same mu with
Gaussian noise, a quarter for the histogram: the root-mean-square error of a sum within chosen bounds (what clipping
takes on either side, and noise), as a multiple of that within the best bounds in hindsight. Geometric means by shape
and by number of units, where no column counts for more than a factor of 1,000, and the part of the choices that is
certain.
"""

from __future__ import annotations

import argparse
import csv
import itertools
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


def _ages(draw: np.random.Generator, units: int) -> Floats:
    return np.clip(np.round(draw.normal(42, 16, units)), 17, 95)


def _gains(draw: np.random.Generator, units: int) -> Floats:
    found: Floats = np.where(draw.random(units) < 0.9, 0, np.round(np.exp(draw.normal(8.5, 1, units))))
    return found


INTEGER, NUMBER, DATE = ColumnType.INTEGER, ColumnType.NUMBER, ColumnType.DATE
SHAPES: dict[str, tuple[Callable[[np.random.Generator, int], Floats], ColumnType]] = {
    "ages": (_ages, INTEGER),
    "log-normal": (lambda draw, units: np.round(np.exp(draw.normal(8, 1, units))), INTEGER),
    "wide log-normal": (lambda draw, units: np.exp(draw.normal(3, 2, units)), NUMBER),
    "uniform": (lambda draw, units: np.round(draw.uniform(0, 1_000, units)), INTEGER),
    "Pareto": (lambda draw, units: np.round(1_000 * (1 + draw.pareto(1.5, units))), INTEGER),
    "around zero": (lambda draw, units: draw.normal(0, 100, units), NUMBER),
    "far from zero": (lambda draw, units: draw.normal(-5_000, 50, units), NUMBER),
    "years": (lambda draw, units: draw.integers(1960, 2021, units).astype(float), INTEGER),
    "weights": (lambda draw, units: np.round(draw.normal(75, 12, units), 1), NUMBER),
    "nine of ten zero": (_gains, INTEGER),
    "ratings": (lambda draw, units: draw.integers(1, 6, units).astype(float), INTEGER),
    "days": (lambda draw, units: np.round(738_000 + draw.uniform(0, 1_500, units)), DATE),
    "prices": (lambda draw, units: np.minimum(300, np.exp(draw.normal(2.5, 1.1, units))), NUMBER),
}
SIZES = (200, 500, 1_000, 2_000, 5_000)
RATIO_MOST = 1_000.0
_LOW_PARTS = (0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
_HIGH_PARTS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 1)


def error_of_sum(values: Floats, lower: float, upper: float, noise: float, least: float) -> float:
    """Root-mean-square error of a sum: what clipping takes on each side, and noise for each unit of the width."""
    cut = float(np.maximum(lower - values, 0).sum()), float(np.maximum(values - upper, 0).sum())
    return math.hypot(*cut, noise * max(upper - lower, least))


def ratios(shape: str, units: int, epsilon: float, runs: int, *, laplace: bool) -> tuple[float, float]:
    """The error within chosen bounds to that within the best ones, and the part of the choices that is certain."""
    make, kind = SHAPES[shape]
    values, grid = make(np.random.default_rng(5), units), grid_of(kind)
    starts = np.array([float(low) for low in grid.lows])
    counts = np.bincount(np.maximum(np.searchsorted(starts, values, side="right") - 1, 0), minlength=len(starts))
    parts = (SHARE, 1 - SHARE) if laplace else (math.sqrt(SHARE), math.sqrt(1 - SHARE))
    deviation, noise = (math.sqrt(2 if laplace else 1) / (part * epsilon) for part in parts)
    least = 1.0 if kind is not NUMBER else 1e-9
    best = min(
        error_of_sum(values, low, high, noise, least)
        for low in {0.0, *np.quantile(values, _LOW_PARTS)}
        for high in np.quantile(values, _HIGH_PARTS)
        if low <= high
    )
    draw, found, certain = np.random.default_rng(7), [], 0
    for _ in range(runs):
        scale = deviation / math.sqrt(2)
        shown = counts + (draw.laplace(0, scale, len(counts)) if laplace else draw.normal(0, deviation, len(counts)))
        choice = choose_bounds(
            list(shown), list(shown), grid, deviation=deviation, cells=1, noise=noise, from_zero=False, laplace=laplace
        )
        found.append(error_of_sum(values, float(choice.lower), float(choice.upper), noise, least))
        certain += choice.certain
    return math.sqrt(sum(one * one for one in found) / runs) / best, certain / runs


def _mean(found: dict[tuple[str, int], list[float]], place: int, name: str | int) -> float:
    logs = [math.log(min(one, RATIO_MOST)) for key, ones in found.items() if key[place] == name for one in ones]
    return round(math.exp(sum(logs) / len(logs)), 2)


def shapes(runs: int) -> dict[str, object]:
    """The figures of `--shapes`."""
    result: dict[str, object] = {}
    for law, laplace in (("Laplace", True), ("Gaussian", False)):
        found: dict[tuple[str, int], list[float]] = {}
        certain = []
        for shape, units, epsilon in itertools.product(SHAPES, SIZES, (0.3, 1.0)):
            ratio, sure = ratios(shape, units, epsilon, runs, laplace=laplace)
            found.setdefault((shape, units), []).append(ratio)
            certain.append(sure)
        result[law] = {
            "by shape": {shape: _mean(found, 0, shape) for shape in SHAPES},
            "by units": {str(units): _mean(found, 1, units) for units in SIZES},
            "certain": round(sum(certain) / len(certain), 3),
        }
    return result


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("vectors", type=Path, nargs="?")
    parser.add_argument("--shapes", action="store_true")
    parser.add_argument("--runs", type=int)
    asked = parser.parse_args()
    if asked.shapes:
        print(json.dumps(shapes(asked.runs or 40), indent=2))
        return
    if asked.data is None or asked.vectors is None:
        parser.error("name the data and the vectors, or ask for --shapes")
    columns = read(asked.data)
    seeds = {
        (vector["col"].replace("-", "_"), float(vector["eps"])): tuple(vector["rmse_median"]["seed_auto_avg"])
        for vector in json.loads(asked.vectors.read_text())["vectors"]
    }
    print(
        json.dumps(
            {
                f"{column}, epsilon {epsilon}": measure(
                    columns[column], column, epsilon, asked.runs or 500, seeds[column, epsilon]
                )
                for column, epsilon in QUESTIONS
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
