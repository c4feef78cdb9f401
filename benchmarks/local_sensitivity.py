"""Error of medians by each mechanism that a question can name, and by smooth sensitivity with a delta.

    python -m benchmarks.local_sensitivity ADULT.csv [--runs 200]

ADULT.csv has the columns age, capital_gain and fnlwgt, one row of each unit. The median and the 0.9 quantile of each:

    exponential     drawn by ranks                                      (mechanisms/quantiles.md)
    smooth          Student's noise, pure epsilon                       (mechanisms/smooth_sensitivity.md)
    smooth laplace  Laplace noise at the same epsilon and delta 1e-6
    smooth normal   Gaussian noise at the same
    blocks          a private median of the answers of 256 blocks, hashed anew in each run (sample_and_aggregate.md)
    tested          propose-test-release of the same answers at delta 1e-6, and how often it refuses; the proposal is a
                    hundredth of the range

All of epsilon buys the quantile: where the server answers, an eighth goes to the tree beside it, for all three alike.
Root-mean-square errors, and the median of their absolute values: Student's noise has no variance, and is held to the
range as answers are. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mechanisms.propose_test_release import ProposeTestRelease
from mechanisms.randomness import SystemBits
from mechanisms.samplers.selection import Race, best
from mechanisms.smooth_sensitivity import (
    SmoothGaussian,
    SmoothLaplace,
    SmoothStudent,
    quantile_place,
    smooth_sensitivity,
)
from privacy.numbers import dyadic_up
from privacy.rank_tree import BLOCKS

RANGES = {"age": 100, "capital_gain": 100_000, "fnlwgt": 1_500_000}
PLACES = 65_536
DELTA = Fraction(1, 10**6)

Counts = npt.NDArray[np.int64]


def read(path: Path) -> dict[str, Counts]:
    """The columns by name."""
    with path.open(newline="") as file:
        rows = [
            {key.strip().lower().replace("-", "_"): value for key, value in row.items()} for row in csv.DictReader(file)
        ]
    return {name: np.array([int(row[name]) for row in rows]) for name in RANGES}


def selected(counts: Counts, fraction: Fraction, epsilon: Fraction, bits: SystemBits) -> int:
    """A place by the exponential mechanism with the distance of its ranks."""
    top, bottom = fraction.numerator, fraction.denominator
    below = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
    ranks = 2 * bottom * below - 2 * top * below[-1]
    away = np.maximum(np.maximum(ranks[:-1], -ranks[1:]), 0)
    scale = dyadic_up(Fraction(2 * 2 * max(top, bottom - top)) / epsilon)
    return best(-away, count=1, scale=scale, race=Race.GUMBEL, bits=bits)[0]


def block_answers(places: Counts, fraction: Fraction, used: int) -> Counts:
    """How often each place is the quantile of a block: blocks are drawn anew."""
    blocks = np.random.default_rng().integers(0, BLOCKS, places.size)
    order = np.lexsort((places, blocks))
    starts = np.searchsorted(blocks[order], np.arange(BLOCKS + 1))
    sizes = np.diff(starts)
    part = np.maximum(np.ceil(sizes * float(fraction)).astype(int) - 1, 0)
    found = np.where(sizes > 0, places[order][np.minimum(starts[:-1] + part, places.size - 1)], used // 2)
    return np.bincount(found, minlength=used)


def errors(draw: Callable[[], int | None], truth: float, width: float, used: int, runs: int) -> dict[str, float]:
    """Errors of so many runs, in the unit of the column."""
    drawn = [draw() for _ in range(runs)]
    known = np.array([min(max(one, 0), used - 1) for one in drawn if one is not None], dtype=np.float64)
    away = np.abs(known * width + (width - 1) / 2 - truth)
    found = {"rms": float(np.sqrt((away**2).mean())), "half_within": float(np.median(away))} if known.size else {}
    return {name: round(value, 3) for name, value in found.items()} | {"refused": 1 - known.size / runs}


def compared(values: Counts, most: int, fraction: Fraction, epsilon: Fraction, runs: int) -> dict[str, object]:
    """One quantile of one column by all mechanisms."""
    bits, step = SystemBits(), -(-(most + 1) // PLACES)
    used = -(-(most + 1) // step)
    places = values // step
    counts = np.bincount(places, minlength=used)
    truth, width = float(np.quantile(values, float(fraction), method="inverted_cdf")), float(step)
    centre = quantile_place(counts, fraction)
    told: dict[str, object] = {}

    def report(name: str, draw: Callable[[], int | None]) -> None:
        told[name] = errors(draw, truth, width, used, runs)

    report("exponential", lambda: selected(counts, fraction, epsilon, bits))
    noises = {
        "smooth": SmoothStudent(epsilon=epsilon),
        "smooth laplace": SmoothLaplace(epsilon=epsilon, delta=DELTA),
        "smooth normal": SmoothGaussian(epsilon=epsilon, delta=DELTA),
    }
    for name, noise in noises.items():
        sensitivity = smooth_sensitivity(counts, fraction, noise.beta)
        report(name, lambda noise=noise, sensitivity=sensitivity: centre + noise.noise(sensitivity, bits))  # type: ignore[misc]
    report("blocks", lambda: selected(block_answers(places, fraction, used), Fraction(1, 2), epsilon, bits))
    proposal = ProposeTestRelease(epsilon=epsilon, delta=DELTA, width=max(1, used // 100))
    report("tested", lambda: proposal.answer(block_answers(places, fraction, used), bits))
    return told


def main() -> None:
    """Prints the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--runs", type=int, default=200)
    given = parser.parse_args()
    columns = read(given.data)
    print(
        json.dumps(
            {
                f"{name}, {fraction}, epsilon {epsilon}": compared(columns[name], most, fraction, epsilon, given.runs)
                for name, most in RANGES.items()
                for fraction in (Fraction(1, 2), Fraction(9, 10))
                for epsilon in (Fraction(1, 10), Fraction(1))
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
