"""Time of the pure steps 2 to 4 (text to price) of a ten-line query, cold and from the plan cache, and of two stages.

    python -m benchmarks.plan [--rounds 300]

Prints one JSON object: medians in milliseconds, what the fastest tenth of the rounds took (on a machine that others use
as well, the nearer figure to one of its own), and the ratio to sqlglot's bare parsing of the same text, in alternation.
No engine and no ledger take part. The garbage collector is set as in a server.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from fractions import Fraction
from typing import Any

import sqlglot

from mechanisms.calibrate import Price, calibrate
from mechanisms.families import NoiseFamily
from privacy.composition import compose
from privacy.policy import Dataset
from server.collecting import settle
from sql_rewrite.bound import bound
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower
from sql_rewrite.plan_key import core_key
from tests.sql_rewrite.datasets import CLINIC

QUERY = """SELECT
  p.sex AS sex,
  COUNT(*) AS visits,
  AVG(v.cost) AS mean_cost,
  SUM(v.cost) AS total
FROM visits v
JOIN people p ON v.person_id = p.person_id
WHERE v.cost > 10 AND p.age BETWEEN 18 AND 65 AND v.ward IN ('a', 'b', 'c')
GROUP BY p.sex
HAVING COUNT(*) > 100
ORDER BY total DESC"""

STAGED = """WITH typical AS (SELECT sex, AVG(age) AS a FROM people GROUP BY sex)
SELECT p.sex, COUNT(*) AS n, SUM(v.cost) AS total
FROM visits v
JOIN people p ON v.person_id = p.person_id
JOIN typical ON p.sex = typical.sex
WHERE p.age > typical.a AND v.cost > 10
GROUP BY p.sex
ORDER BY n DESC"""
"""Four nodes of relations and two stages."""


def steps(sql: str, dataset: Dataset) -> tuple[Any, ...]:
    """Steps 2 and 3, and the statement and identity that follow from them."""
    plan = lift(sql, dataset, {})
    cores = bound(plan)
    return plan, cores, [lower(core) for core in cores], [core_key(core, dataset) for core in cores]


def price(cores: Any) -> Any:
    """Step 4."""
    calibration = calibrate(
        [core.described for core in cores], Price(NoiseFamily.LAPLACE, Fraction(1, 10), Fraction(1, 10**8))
    )
    return compose(calibration.events())


def times_ms(works: dict[str, Any], rounds: int) -> dict[str, list[float]]:
    """Wall times in milliseconds, sorted. The works alternate, so that a busy machine slows all of them alike."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for work in works.values():
        work()
    for _ in range(rounds):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            times[name].append((time.perf_counter() - start) * 1e3)
    return {name: sorted(values) for name, values in times.items()}


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=500)
    rounds = parser.parse_args().rounds
    _, cores, _, _ = steps(QUERY, CLINIC)
    staged = bound(lift(STAGED, CLINIC, {}))
    settle()
    times = times_ms(
        {
            "bare_parse": lambda: sqlglot.parse_one(QUERY, dialect="duckdb"),
            "cold_steps_2_to_4": lambda: price(steps(QUERY, CLINIC)[1]),
            "from_plan_cache": lambda: price(cores),
            "two_stages_cold": lambda: price(steps(STAGED, CLINIC)[1]),
            "two_stages_from_plan_cache": lambda: price(staged),
        },
        rounds,
    )
    figures = {
        name: {"median_ms": round(statistics.median(values), 3), "fastest_tenth_ms": round(values[rounds // 10], 3)}
        for name, values in times.items()
    }
    parse = statistics.median(times["bare_parse"])
    ratios = {
        f"{name}_over_bare_parse": round(statistics.median(times[work]) / parse, 1)
        for name, work in (("cold", "cold_steps_2_to_4"), ("two_stages", "two_stages_cold"))
    }
    print(json.dumps({**figures, **ratios}, indent=2))


if __name__ == "__main__":
    main()
