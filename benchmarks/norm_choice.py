"""Error of sums whose norm was chosen from a noisy histogram, as a ratio to the best norm in hindsight.

    python -m benchmarks.norm_choice [--runs 100]

The visits of the demo by month, department, both, and in all, and sums of one number for each of 5,000 units with heavy
and light tails; Gaussian noise with mu^2 = 0.314 (a tenth of an account (10, 1e-6)), a twentieth of it for the
histogram. Root-mean-square error of a cell, over the runs. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechanisms.norm_choice import BINS, bin_of, choose
from server.demo import generate

MU_SQUARED = 0.314
SHARE = 0.05
FALLBACK = 16.0
"""The norm where the histogram shows no unit."""

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Contributions:
    """What units add to cells: entries (unit, cell, value)."""

    units: Integers
    cells: Integers
    values: Floats

    @property
    def norms(self) -> Floats:
        """The L2 norm of each unit."""
        return np.sqrt(np.bincount(self.units, self.values * self.values))

    def scaled(self, norm: float) -> Floats:
        """The sums by cell with every unit scaled to the norm."""
        norms = self.norms
        factor = np.where(norms > norm, norm / np.maximum(norms, 1e-9), 1.0)
        sums = np.bincount(self.cells, self.values * factor[self.units], int(self.cells.max()) + 1)
        return np.asarray(sums, dtype=np.float64)


def by_cell(units: Integers, cells: Integers) -> Contributions:
    """Rows of units as counts of rows in each cell."""
    width = int(cells.max()) + 1
    places, counts = np.unique(units * width + cells, return_counts=True)
    return Contributions(places // width, places % width, counts.astype(np.float64))


def questions() -> Iterator[tuple[str, Contributions]]:
    """Counts over the demo's visits, and sums of one number of each unit."""
    visits = generate()["visits"]
    columns = dict(zip(visits.names, visits.columns, strict=True))
    units = np.asarray(columns["patient_id"], np.int64)
    months = np.asarray(columns["visit_date"], dtype="M8[M]").astype(np.int64)
    months -= months.min()
    departments = np.unique(np.asarray(columns["department"]), return_inverse=True)[1].astype(np.int64)
    yield "visits by month", by_cell(units, months)
    yield "visits by department", by_cell(units, departments)
    yield "visits by both", by_cell(units, months * (departments.max() + 1) + departments)
    yield "all visits", by_cell(units, np.zeros_like(units))
    draw = np.random.Generator(np.random.PCG64(3))
    ranks = np.arange(1, 5_001)
    for exponent in (0.6, 0.8, 1.1):
        weights = np.asarray(ranks**-exponent, dtype=np.float64)
        yield f"Zipf {exponent}, 100,000 rows", sums(np.maximum(1.0, np.round(100_000 * weights / weights.sum())))
    yield "log-normal", sums(np.exp(draw.normal(2, 1.5, 5_000)))
    yield "Poisson 20", sums(np.asarray(draw.poisson(20, 5_000) + 1, dtype=np.float64))


def sums(values: Floats) -> Contributions:
    """One number of each unit, in one cell."""
    units = np.arange(len(values))
    return Contributions(units, np.zeros_like(units), values)


def histogram(contributions: Contributions) -> Floats:
    """Units by the bin of their norm."""
    squares = np.rint(contributions.norms**2).astype(np.int64)
    return np.bincount([bin_of(int(square)) for square in squares if square], minlength=BINS).astype(np.float64)


def measure(contributions: Contributions, runs: int) -> dict[str, float]:
    """Errors with the chosen norm and with the best one in hindsight."""
    draw = np.random.Generator(np.random.PCG64(1))
    truth = contributions.scaled(math.inf)
    noise = 1 / math.sqrt((1 - SHARE) * MU_SQUARED)
    tried = [
        (math.sqrt(float(((truth - contributions.scaled(norm)) ** 2).mean()) + norm**2 / MU_SQUARED), norm)
        for norm in 2.0 ** np.arange(0, 20, 0.25)
    ]
    best, norm_in_hindsight = min(tried)
    counts, deviation = histogram(contributions), 1 / math.sqrt(SHARE * MU_SQUARED)
    squares, norms = [], []
    for _ in range(runs):
        noisy = counts + deviation * draw.standard_normal(BINS)
        choice = choose(list(noisy), deviation=deviation, cells=len(truth), noise_per_norm=noise)
        norm = FALLBACK if choice is None else choice.norm
        released = contributions.scaled(norm) + noise * norm * draw.standard_normal(len(truth))
        squares.append(float(((released - truth) ** 2).mean()))
        norms.append(norm)
    error = math.sqrt(sum(squares) / runs)
    return {
        "error": round(error, 1),
        "in_hindsight": round(best, 1),
        "ratio": round(error / best, 2),
        "median_norm": round(float(np.median(norms)), 1),
        "norm_in_hindsight": round(float(norm_in_hindsight), 1),
    }


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    runs = parser.parse_args().runs
    print(json.dumps({name: measure(contributions, runs) for name, contributions in questions()}, indent=2))


if __name__ == "__main__":
    main()
