"""Error of random ranges that come one by one: from a stream, asked by themselves, and known beforehand.

    python -m benchmarks.streams [--ranges 1000] [--runs 10] [--epsilon 1] [--cells 365 1000] [--updates 5]

Counts of 100,000 made-up units by a column with so many values, most of them few and some many (weights by Zipf's law
in a random order); random ranges with both ends uniform. All ways are at one price; each unit is in one cell. Gaussian
noise is at the mu with which an answer is (epsilon, 10^-6)-DP. Root-mean-square error of a range:

    stream       this project's: what it answered, whether from the synopsis or measured
    greatest     of all answers of all runs, beside `within`, which holds for those of the synopsis
    multiplicative_weights   the exercise of the textbooks: comparisons and answers with half each, a flat start of the
                 true size, which it gets for nothing, and steps of a tenth; the best of several numbers of updates
    laplace, gaussian        each range by itself, with its part of the price
    tree         known beforehand: the tree of a batch (mechanisms/trees.py), with Laplace noise

And how long a stored answer takes, and one that the synopsis gives: of processor time, without HTTP. Prints one JSON
object.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np

from accountant.account import FilterKind, Limit
from benchmarks.batches import chosen, padded
from mechanisms.families import FAMILIES, NoiseFamily
from mechanisms.interval import Floats
from mechanisms.randomness import SystemBits
from mechanisms.samplers import rounded_laplace
from mechanisms.samplers.threshold import NoisyThreshold
from mechanisms.sparse_vector import SparseVector
from mechanisms.streams.asking import StreamState, answer_queries
from mechanisms.streams.price import StreamNoise
from mechanisms.streams.synopsis import Cells, mask_of
from mechanisms.trees import tree_error, tree_of
from migrations.upgrade import upgrade
from privacy.aggregate import AggregateFunction
from privacy.conversions import gaussian_mu_squared_near
from privacy.exact import Exact
from privacy.numbers import dyadic_up
from privacy.policy import ColumnType
from privacy.statistic import CoreStatistics, Estimate, KeyColumn, Keys, Sensitivity, Statistic, StatisticKind
from privacy.unit import Neighbouring
from server.build import build_services
from server.demo import write_demo
from server.settings import Settings
from server.store.resources import STREAMS
from server.streams.streams import StreamQuestion, Streams
from server.streams.terms import OpenStream, Within
from sql_rewrite.stream_text import StreamColumn

UNITS = 100_000
BITS = SystemBits()
DELTA = Fraction(1, 10**6)
TEXTBOOK = (5, 20, 50, 100, 200)
"""Numbers of updates that the textbook's way is tried with."""


def core_of(cells: int) -> CoreStatistics:
    """Counts of so many public cells, of which a unit is in one."""
    one = Sensitivity(Neighbouring.ADD_REMOVE, 1, Fraction(1), Fraction(1), Fraction(1))
    keys = Keys((KeyColumn("k0", ColumnType.INTEGER),), tuple((cell,) for cell in range(cells)), 1)
    statistic = Statistic("s0", StatisticKind.COUNT, one)
    return CoreStatistics("c0", keys, (statistic,), (Estimate("a0", AggregateFunction.ROWS, "s0", integer=True),))


def streamed(counts: Floats, asked: Sequence[Cells], noise: StreamNoise) -> tuple[Floats, int]:
    """Errors of a stream, and how many updates it made."""
    tolerance = noise.usual_tolerance(queries=len(asked), cells=len(counts))
    keys = {"k0": list(range(len(counts)))}
    state = StreamState(NoisyThreshold.drawn(noise.threshold_scale, BITS), noise.updates, None)
    exact = Exact(keys=keys, sums={"s0_0": [int(one) for one in counts]}, rows=len(counts))
    told, after = answer_queries(
        core_of(len(counts)), noise, state, exact, asked, tolerance=tolerance, version="1", bits=BITS
    )
    errors = [one.value - counts[cells].sum() for one, cells in zip(told, asked, strict=True)]
    return np.array(errors), noise.updates - after.left


def weighted(counts: Floats, asked: Sequence[Cells], epsilon: Fraction, updates: int) -> Floats:
    """Errors of multiplicative weights from a flat start, as the exercise has it."""
    gate = SparseVector.for_epsilon(epsilon / 2, sensitivity=Fraction(1), hits=updates, one_way=False, interactive=True)
    scale = dyadic_up(2 * updates / epsilon, bits=96)
    run, weights, errors = gate.start(BITS), np.full(len(counts), counts.sum() / len(counts)), []
    tolerance = math.ceil(float(gate.query_scale) * math.log(2 * len(asked) / (updates / 10)))
    for cells in asked:
        truth, told = int(counts[cells].sum()), round(float(weights[cells].sum()))
        sides = [side - tolerance + gate.correction for side in (truth - told, told - truth)]
        if run.left and any(run.ask(np.array([side]), BITS) for side in sides):
            answer = truth + int(rounded_laplace(scale=scale, count=1, bits=BITS)[0])
            weights[cells] *= math.exp(0.1 * (1 if answer > told else -1))
            weights *= counts.sum() / weights.sum()
            told = answer
        errors.append(told - truth)
    return np.array(errors, dtype=np.float64)


def tree_known(asked: Sequence[Cells], epsilon: Fraction) -> float:
    """Stated error of the tree that a batch of these ranges would take."""
    weights = np.array(asked, dtype=np.float64)
    some = weights[:: max(1, len(weights) // 96)]
    bases, power = chosen(some, NoiseFamily.LAPLACE), FAMILIES[NoiseFamily.LAPLACE].power
    assert power is not None
    lattice = tree_of(bases, power=power, groups=1)
    assert lattice is not None
    return tree_error(lattice, padded(weights, bases), power=power, groups=1) * math.sqrt(2) / float(epsilon)


def errors(cells: int, ranges: int, runs: int, epsilon: Fraction, updates: int) -> dict[str, object]:
    """Errors on a column with so many values."""
    source = np.random.default_rng(cells)
    weights = source.permutation(1 / np.arange(1, cells + 1))
    counts = source.multinomial(UNITS, weights / weights.sum()).astype(np.float64)
    ends = np.sort(source.integers(0, cells + 1, size=(ranges, 2)), axis=1)
    asked = [mask_of([(int(low), int(high) if high > low else int(low) + 1)], cells) for low, high in ends]
    asked = [one if one.any() else mask_of([(cells - 1, cells)], cells) for one in asked]
    noise = StreamNoise.for_epsilon(epsilon, change=Fraction(1), updates=updates)
    tolerance = noise.usual_tolerance(queries=ranges, cells=cells)
    found = [streamed(counts, asked, noise) for _ in range(runs)]
    every = np.concatenate([one for one, _ in found])
    textbook = min(
        root(np.concatenate([weighted(counts, asked, epsilon, most) for _ in range(runs)])) for most in TEXTBOOK
    )
    mu_squared = gaussian_mu_squared_near(epsilon=epsilon, delta=DELTA)
    return {
        "cells": cells,
        "stream": round(root(every), 1),
        "greatest": round(float(np.abs(every).max()), 1),
        "within": round(noise.within(tolerance=tolerance, beta=0.05), 1),
        "updates": sum(made for _, made in found) / runs,
        "multiplicative_weights": round(textbook, 1),
        "laplace": round(math.sqrt(2) * ranges / float(epsilon), 1),
        "gaussian": round(math.sqrt(ranges / float(mu_squared)), 1),
        "tree": round(tree_known(asked, epsilon), 1),
    }


def root(values: Floats) -> float:
    """Root mean square."""
    return math.sqrt(float((values**2).mean()))


def times(asked: int) -> dict[str, float]:
    """Milliseconds of processor time that answers take which read no rows, on the demo's patients."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        demo = write_demo(home / "sources")
        settings = Settings(home=home, engine_workers=1)
        upgrade(settings.database())
        services = build_services(settings)
        try:
            services.registrar.attach_path(demo.dataset_file, actor="benchmark")
            limit = Limit(Fraction(100), DELTA)
            parent: str | None = None
            for principal in (None, "ann"):
                parent = services.ledger.create_account(
                    dataset="demo",
                    parent=parent,
                    principal=principal,
                    name="benchmark",
                    limit=limit,
                    filter=FilterKind.APPROXIMATE,
                    actor="benchmark",
                ).id
            streams = services.streams
            assert isinstance(streams, Streams)
            return _times(streams, asked)
        finally:
            services.jobs.close(seconds=5)
            for close in services.closing:
                close()


def _times(streams: Streams, asked: int) -> dict[str, float]:
    request = OpenStream(
        principal="ann",
        dataset="demo",
        table="patients",
        columns=(StreamColumn(name="income", low=0, high=99_900, step=100),),
        epsilon=Fraction(1),
        updates=5,
        queries=asked,
        tolerance=None,
        account=None,
        body_hash="0" * 64,
    )
    row = streams.registry.resource(STREAMS, streams.open(request).query_id)
    assert row is not None
    queries = [((Within(key="income", low=100 * place, high=99_900),),) for place in range(2 * asked)]
    for query in queries[:asked]:
        begun = streams.begin(row, query, by="ann")
        assert isinstance(begun, StreamQuestion)
        streams.complete(begun)
    again = streams.registry.resource(STREAMS, row.id)
    assert again is not None
    found = {}
    for name, some in (("stored_ms", queries[:asked]), ("synopsis_ms", queries[asked:])):
        streams.begin(again, some[0], by="ann")
        begun_at = time.process_time()
        for query in some:
            assert isinstance(streams.begin(again, query, by="ann"), tuple)
        found[name] = round((time.process_time() - begun_at) * 1000 / len(some), 2)
    return found


def main() -> None:
    """Prints the errors and the times."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ranges", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--cells", type=int, nargs="+", default=[365, 1000])
    parser.add_argument("--updates", type=int, default=5)
    given = parser.parse_args()
    epsilon = Fraction(given.epsilon)
    tables = [errors(cells, given.ranges, given.runs, epsilon, given.updates) for cells in given.cells]
    print(json.dumps({"errors": tables, "times": times(10)}, indent=1))


if __name__ == "__main__":
    main()
