"""Error of quantiles of a column: as answered, from a noisy tree, and by OpenDP at the same pure epsilon.

    python -m benchmarks.quantiles DATA.csv [--runs 60] [--opendp-runs 10]

DATA.csv has the columns age, hours_per_week and fnlwgt, one row of each unit. The median of a whole column alone, and
the 0.1, 0.5 and 0.9 quantile together, by

    answered     as a question is answered: an eighth of epsilon on a tree of counts, the remainder on drawn quantiles
                 of columns with many values; the tree alone where there are few
    expected     the same over all draws, from the law of the draw, where quantiles are drawn: few runs say it badly
    tree         Laplace noise on a tree of counts at epsilon: one release, whatever is asked of it
    selections   the exponential mechanism over all values (the form of earlier systems): utility is the distance of a
                 value's ranks from the one that is asked for, and each quantile has an equal part of epsilon
    opendp       `make_private_quantile` with an equal part of epsilon each, over whole numbers, or 4,096 candidates of
                 one width: the root mean square over ranges of five lengths, for where candidates lie decides; "not
                 installed" where OpenDP is not (`pip install opendp`, beside what we require)
    opendp fine  the same with 65,536 candidates

Root-mean-square errors over the runs, one number for each quantile. Prints one JSON object, after a minute or two: most
of that is OpenDP with many candidates. mechanisms/quantiles.md has the figures for UCI Adult.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mechanisms.calibrate import Calibration, Price, calibrate
from mechanisms.families import NoiseFamily
from mechanisms.measurements.drawn_ranks import LaplaceRanks, draws_of
from mechanisms.randomness import SystemBits
from mechanisms.release import release
from privacy.aggregate import AggregateFunction
from privacy.exact import Exact
from privacy.rank_tree import PLACES, Drawn, RankTree, shape_of
from privacy.statistic import CoreStatistics, Encoding, Estimate, Keys, Sensitivity, Statistic, StatisticKind
from privacy.unit import Neighbouring

GREATEST = {"age": 100, "hours_per_week": 100, "fnlwgt": 1_500_000}
FINER = 16
"""Drawn places in each of a tree's, of one group."""
SHIFTS = (0, 2, -2, 3, -3)
"""Lengths of OpenDP's ranges, in hundredths more than the column's."""
ASKED = {
    "median": (Fraction(1, 2),),
    "0.1, 0.5 and 0.9": (Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)),
}

Parts = tuple[Fraction, ...]

Integers = npt.NDArray[np.int64]


def read(path: Path) -> dict[str, Integers]:
    """The columns by name."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: np.array([int(row[name]) for row in rows]) for name in GREATEST}


def errors(distances: npt.NDArray[np.float64]) -> list[float]:
    """Root-mean-square errors of each quantile."""
    return [round(float(error), 3) for error in np.sqrt((distances**2).mean(axis=0))]


def asked_of(
    values: Integers, most: int, epsilon: str, parts: Parts, *, finer: int
) -> tuple[CoreStatistics, Calibration, Integers, int]:
    """The question, its measurement, the exact counts by place, and how wide a place is."""
    width = -(-(most + 1) // PLACES[0])
    width = width if not finer else finer * -(-width // finer)
    places = -(-(most + 1) // width)
    tree = RankTree(*shape_of(places), Fraction(0), Fraction(most), whole=True)
    one = Fraction(1)
    bound = Sensitivity(Neighbouring.ADD_REMOVE, tree.levels, tree.levels * one, tree.levels * one, one)
    encoding = Encoding(Fraction(width - 1, 2), Fraction(width), 0, places - 1)
    drawn = Drawn(parts, (), finer) if finer else None
    coordinates = tree.nodes + len(parts) * (drawn is not None)
    statistic = Statistic("s0", StatisticKind.RANKS, bound, coordinates, encoding, tree=tree, drawn=drawn)
    estimates = [
        Estimate(f"a{place}", AggregateFunction.QUANTILE, "s0", fraction=part) for place, part in enumerate(parts)
    ]
    core = CoreStatistics("c0", Keys((), ((),), 1), (statistic,), tuple(estimates))
    calibration = calibrate([core], Price(NoiseFamily.LAPLACE, Fraction(epsilon), Fraction(0)))
    place = width // max(1, finer)
    counts = np.bincount(np.clip(values, 0, most) // place, minlength=statistic.places)[None, :]
    return core, calibration, counts, place


def expected(values: Integers, most: int, epsilon: str, parts: Parts, *, finer: int) -> list[float]:
    """The root-mean-square error of each drawn quantile, by the law of the exponential mechanism over places."""
    _, calibration, counts, width = asked_of(values, most, epsilon, parts, finer=finer)
    (measurement,) = calibration.measurements
    assert isinstance(measurement, LaplaceRanks)
    middles = np.arange(counts.shape[1]) * width + (width - 1) / 2
    found = []
    for part, draw in zip(parts, draws_of(measurement.statistic), strict=True):
        scores = draw.scores(counts[0], 1).astype(np.float64) / float(measurement.scale_of(draw))
        law = np.exp(scores - scores.max())
        away = np.clip(middles, 0, most) - np.quantile(values, float(part))
        found.append(round(math.sqrt(float((law * away * away).sum() / law.sum())), 3))
    return found


def from_tree(
    values: Integers, most: int, epsilon: str, parts: Parts, runs: int, *, finer: int = 0
) -> list[list[float]]:
    """Values of the quantiles in every run; drawn among places that are so many times finer, if any."""
    core, calibration, counts, _ = asked_of(values, most, epsilon, parts, finer=finer)
    found = []
    for _ in range(runs):
        exact = Exact(keys={}, sums={"s0": counts}, rows=1)
        table = release(core, calibration, exact, bits=SystemBits(), confidence=Fraction(95, 100))
        found.append([float(column.numbers[0] or 0) for column in table.columns])
    return found


def selected(values: Integers, most: int, epsilon: float, parts: Parts, draw: np.random.Generator) -> list[float]:
    """The quantiles by the exponential mechanism, with equal parts of epsilon. Simulated in floats: for comparison."""
    ordered = np.sort(values)
    ends = np.unique(np.concatenate([[0], ordered, [most]]))
    below, upto = np.searchsorted(ordered, ends, "left"), np.searchsorted(ordered, ends, "right")
    widths = np.diff(np.concatenate([ends, [most + 1]]))
    found = []
    for part in map(float, parts):
        goal = part * len(values)
        utility = -np.maximum(np.maximum(below - goal, goal - upto), 0)
        scores = epsilon / len(parts) * utility / (2 * max(part, 1 - part)) + np.log(widths)
        found.append(float(ends[int(np.argmax(scores + draw.gumbel(size=len(ends))))]))
    return found


def by_opendp(
    values: Integers, ends: list[int], epsilon: float, parts: Parts, runs: int, *, places: int = PLACES[0]
) -> list[list[float]] | None:
    """The quantiles by OpenDP's own mechanism, with equal parts of epsilon, as many runs over a range to each end.

    None where it is not installed.
    """
    try:
        dp = importlib.import_module("opendp.prelude")
    except ImportError:
        return None
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance(), dp.max_divergence()
    given = values.astype(float).tolist()

    def made(scale: float, part: Fraction, candidates: list[float]) -> Any:
        return dp.m.make_private_quantile(*space, candidates=candidates, alpha=float(part), scale=scale)

    # A scale does not depend on the candidates, and with many of them a search for it takes seconds.
    scales = [
        dp.binary_search_param(
            lambda scale, part=part: made(scale, part, [0.0, 1.0]), d_in=1, d_out=epsilon / len(parts)
        )
        for part in parts
    ]
    found = []
    for end in ends:
        candidates = np.linspace(0, end, min(end + 1, places)).tolist()
        measurements = [made(scale, part, candidates) for part, scale in zip(parts, scales, strict=True)]
        assert all(measurement.map(1) <= epsilon / len(parts) for measurement in measurements)
        found += [[float(measurement(given)) for measurement in measurements] for _ in range(-(-runs // len(ends)))]
    return found


def main() -> None:
    """Runs all questions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--opendp-runs", type=int, default=10)
    given = parser.parse_args()
    draw = np.random.default_rng(7)
    result = {}
    for name, values in read(given.data).items():
        most, runs = GREATEST[name], given.runs
        for (asked, parts), epsilon in itertools.product(ASKED.items(), ("0.1", "0.5", "1", "2")):
            truth = np.quantile(values, [float(part) for part in parts])
            finer = FINER if most > PLACES[0] else 0
            ends = [most + most * part // 100 for part in SHIFTS] if most > PLACES[0] else [most]
            ways: dict[str, list[list[float]] | None] = {
                "answered": from_tree(values, most, epsilon, parts, runs, finer=finer),
                "tree": from_tree(values, most, epsilon, parts, runs),
                "selections": [selected(values, most, float(epsilon), parts, draw) for _ in range(runs)],
                "opendp": by_opendp(values, ends, float(epsilon), parts, given.opendp_runs),
            }
            exact = {"expected": expected(values, most, epsilon, parts, finer=finer)} if finer else {}
            if finer:
                fine = finer * PLACES[0]
                ways["opendp fine"] = by_opendp(values, ends, float(epsilon), parts, given.opendp_runs, places=fine)
            result[f"{asked} of {name} at {epsilon}"] = exact | {
                way: "not installed" if found is None else errors(np.array(found) - truth)
                for way, found in ways.items()
            }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
