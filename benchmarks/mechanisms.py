"""Speed of mechanisms where their user meets them, on the UCI Adult table (32,561 rows, one of each person).

    NOISEGATE_ADULT_CSV=adult.csv python -m benchmarks.mechanisms [--rounds 200]

bounds      what choosing value bounds costs beyond a plain scan: the statement on a private connection, noise, and the
            choice; milliseconds of processor time, medians of rounds in turn with a plain AVG on that connection. Once
            by the histogram of a column without bounds, where any pair of bins may be chosen, and once by a drawn
            quantile, where every whole number below 30,000 is one.
selections  how many a second, among 1,000 candidates whose scores are equal, nearly so, spread or won by one: processor
            time, in turn, ten at a time; by the measurement as it is used, and by the draw in it alone.
            `slowest_to_fastest`, of medians, is how much the time depends on scores, and `largest_t` whether that is
            more than chance: Welch's t of the two kinds of scores that differ most in their times, a tenth of which,
            the slowest, is left out. Below 4.5 no difference is seen; a thousand rounds see one of 0.3 %.
reads       a monitor's poll, and stored answers, batches and models, over HTTP within this process: milliseconds of
            wall time, median and 90th percentile. `healthz` is what client and framework take themselves.

Prints one JSON object; `load` is the machine's when it began. Synthetic tables of Adult: `benchmarks.synthetic`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from fractions import Fraction
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import duckdb
import httpx
import numpy as np

from benchmarks.choices import cores
from benchmarks.synthetic import adult_services
from engines.handlers.connection import private_settings
from engines.private import PrivateEngine
from mechanisms.calibrate import calibrate
from mechanisms.families import NoiseFamily, Price
from mechanisms.measurement import Integers, Measurement, integers
from mechanisms.randomness import SystemBits
from mechanisms.release import release
from mechanisms.samplers.selection import Race, best
from mechanisms.value_bounds import choose_bounds
from privacy.policy import Dataset
from privacy.statement import Statement
from privacy.statistic import CoreStatistics
from server.app import create_app
from server.services import Services
from sql_rewrite.bound import bound
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower
from sql_rewrite.value_histogram import lower_histogram, value_histogram
from tests.journey.clinic import open_account

EPSILON, CONFIDENCE = Fraction(1), Fraction(95, 100)
COLUMN, CANDIDATES = "capital_gain", 1_000
PLAIN = f"SELECT AVG({COLUMN}) FROM people"
QUANTILE = f"SELECT QUANTILE_CONT(GREATEST(0, LEAST(29999, {COLUMN})), 0.99) FROM people"
COUNT = "SELECT COUNT(*) FROM people"
WHO = "reader"


def in_turn(calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Milliseconds of processor time of each call, ascending, of rounds in which all have their turn, in any order."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    order = np.random.default_rng()
    for number in range(rounds + 1):
        for name in order.permutation(list(calls)):
            call = calls[name]
            start = time.process_time()
            call()
            if number:
                taken[name].append(1000 * (time.process_time() - start))
    return {name: sorted(times) for name, times in taken.items()}


def bounds(snapshot: Path, dataset: Dataset, rounds: int) -> dict[str, object]:
    """Both ways to choose what values are clipped to."""
    histogram = value_histogram("b0", "people", COLUMN, dataset)
    (ranks,) = bound(lift(QUANTILE, dataset, {}))
    bits, bins = SystemBits(), len(histogram.grid.bins)
    pairs = bins * (bins + 1) // 2

    def chosen(released: list[float]) -> None:
        deviation, noise = math.sqrt(2), math.sqrt(2) / 3
        choose_bounds(released, released, histogram.grid, deviation=deviation, cells=1, noise=noise, from_zero=False)

    ways: tuple[tuple[str, int, CoreStatistics, Statement], ...] = (
        ("histogram", pairs, histogram.bounded.described, lower_histogram(histogram)),
        ("drawn", ranks.described.statistics[0].places, ranks.described, lower(ranks)),
    )
    found: dict[str, object] = {}
    with (
        closing(
            duckdb.connect(str(snapshot), read_only=True, config=private_settings(threads=2, memory_limit_mb=2048))
        ) as private,
        closing(PrivateEngine(workers=1)) as engine,
    ):
        for name, candidates, core, statement in ways:
            calibration = calibrate([core], Price(NoiseFamily.LAPLACE, EPSILON, Fraction(0)))
            exact = engine.run(snapshot, statement, timeout_seconds=60)

            def choice(core: CoreStatistics = core, calibration: Any = calibration, exact: Any = exact) -> None:
                table = release(core, calibration, exact, bits=bits, confidence=CONFIDENCE)
                if core is histogram.bounded.described:
                    assert table.sums is not None
                    chosen([float(count) for count in table.sums[0].values[:, 0]])

            def scan(statement: Statement = statement) -> None:
                private.execute(statement.sql, list(statement.parameters)).fetchall()

            calls = {"plain": lambda: private.execute(PLAIN).fetchall(), "scan": scan, "choice": choice}
            times = {part: statistics.median(taken) for part, taken in in_turn(calls, rounds).items()}
            found[name] = {
                "candidates": candidates,
                **{f"{part}_ms": round(milliseconds, 2) for part, milliseconds in times.items()},
                "beyond_plain_ms": round(times["scan"] + times["choice"] - times["plain"], 2),
            }
    return found


def selections(rounds: int) -> dict[str, object]:
    """Selections a second by family of noise and by what the scores are."""
    # The best of uneven scores is in the middle: finding a place takes time by where it is, which is what is released.
    bits, places = SystemBits(), (np.arange(CANDIDATES) + CANDIDATES // 2) % CANDIDATES
    shapes = {
        "equal": np.full(CANDIDATES, 5_000),
        "nearly": 5_000 + places % 3,
        "spread": 10_000 // (places + 1),
        "one ahead": np.where(places == 0, 10**9, 0),
    }
    found: dict[str, object] = {}
    for family, race in ((NoiseFamily.LAPLACE, Race.EXPONENTIAL), (NoiseFamily.GAUSSIAN, Race.GUMBEL)):
        _, core = cores(1, 1, 1, keys=CANDIDATES)
        (measurement,) = calibrate([core], Price(family, EPSILON, Fraction(0))).measurements

        def perturb(scores: Integers, measurement: Measurement = measurement) -> None:
            for _ in range(10):
                measurement.perturb(scores, bits)

        def draw(scores: Integers, race: Race = race) -> None:
            for _ in range(10):
                best(scores[:, 0], count=1, scale=Fraction(2), race=race, bits=bits)

        for part, ten in (("measurement", perturb), ("draw alone", draw)):
            calls = {name: partial(ten, integers([[int(one)] for one in scores])) for name, scores in shapes.items()}
            times = in_turn(calls, rounds)
            medians = [statistics.median(taken) for taken in times.values()]
            found[f"{family.value}, {part}"] = {
                "a_second": {name: round(10_000 / statistics.median(taken)) for name, taken in times.items()},
                "a_second_fastest_tenth": {name: round(10_000 / taken[rounds // 10]) for name, taken in times.items()},
                "slowest_to_fastest": round(max(medians) / min(medians), 3),
                "largest_t": round(max(welch(one, other) for one, other in combinations(times.values(), 2)), 1),
            }
    return found


def welch(one: list[float], other: list[float]) -> float:
    """The absolute t of the difference of two means of ascending times, without the slowest tenth of each."""
    kept = [np.array(times[: 9 * len(times) // 10]) for times in (one, other)]
    error = math.sqrt(sum(float(times.var(ddof=1)) / times.size for times in kept))
    return abs(float(kept[0].mean() - kept[1].mean())) / error


async def reads(services: Services, rounds: int) -> dict[str, dict[str, float]]:
    """Polls and reads of what was paid before. The application is called in this process, without a socket."""
    services.registry.create_principal(WHO, "analyst", actor="benchmark")
    key = services.registry.create_key(WHO, label="benchmark", days=1, actor="benchmark").text
    open_account(services.ledger, WHO, dataset="adult")
    # One principal asks faster than anybody may by default.
    settings = services.settings.model_copy(update={"requests_per_minute": 1_000_000, "requests_burst": 1_000_000})
    transport = httpx.ASGITransport(app=create_app(settings, services=services))
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://test", headers=headers, timeout=60) as client:

        async def paid(path: str, **body: Any) -> Any:
            made = await client.post(path, json=body)
            if made.status_code not in (200, 201):
                raise SystemExit(made.text)
            return made.json()

        question = {"dataset": "adult", "sql": COUNT, "spend": {"epsilon": "0.1"}, "reuse": "own", "wait_ms": 30_000}
        label = "SELECT age, education_num, hours_per_week, sex, income = '>50K' AS label FROM people"
        ranges = [f"{COUNT} WHERE age >= {age}" for age in range(20, 70)]
        monitor = await paid("/v1/monitors", dataset="adult", sql=COUNT, threshold="50000", epsilon="1", evaluations=50)
        batch = await paid("/v1/batches", dataset="adult", queries=ranges, spend={"epsilon": "1"}, wait_ms=30_000)
        model = await paid("/v1/models", dataset="adult", sql=label, spend={"own_epsilon": "1"}, wait_ms=30_000)
        answer = await paid("/v1/queries", **question)
        evaluations = f"/v1/monitors/{monitor['id']}/evaluations"
        await paid(evaluations)
        asked: dict[str, tuple[str, str, Any]] = {
            "healthz": ("GET", "/healthz", None),
            "monitor, polled": ("POST", evaluations, {}),
            "monitor, read": ("GET", f"/v1/monitors/{monitor['id']}", None),
            "answer, asked again": ("POST", "/v1/queries", question),
            "answer, read": ("GET", f"/v1/queries/{answer['id']}", None),
            "batch, read": ("GET", f"/v1/batches/{batch['id']}", None),
            "model, read": ("GET", f"/v1/models/{model['id']}", None),
        }
        taken: dict[str, list[float]] = {name: [] for name in asked}
        for number in range(rounds + 1):
            for name, (method, path, body) in asked.items():
                start = time.perf_counter()
                told = await client.request(method, path, json=body)
                if told.status_code != 200:
                    raise SystemExit(told.text)
                if number:
                    taken[name].append(1000 * (time.perf_counter() - start))
    return {
        name: {"median": round(statistics.median(times), 2), "p90": round(sorted(times)[9 * len(times) // 10], 2)}
        for name, times in taken.items()
    }


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    rounds = parser.parse_args().rounds
    figures: dict[str, object] = {"load": round(os.getloadavg()[0], 1), "selections": selections(rounds)}
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        with adult_services(Path(os.environ["NOISEGATE_ADULT_CSV"]), home) as services:
            dataset = services.catalogue.get("adult")
            assert dataset is not None
            snapshot = next((home / "snapshots").rglob(f"{dataset.data_version}.duckdb"))
            figures["bounds"] = bounds(snapshot, dataset, rounds)
            figures["reads"] = asyncio.run(reads(services, rounds))
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
