"""Time of the pure steps 2 to 4 (text to price) of a ten-line query, cold and from the plan cache.

    python -m benchmarks.plan [--rounds 300]

Prints one JSON object with medians in milliseconds. No engine and no ledger take part.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from fractions import Fraction
from typing import Any

from mechanisms.calibrate import LaplacePrice, calibrate
from privacy.loss import compose
from privacy.policy import Dataset
from sql_rewrite.bound import bound
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower
from sql_rewrite.plan_key import core_key
from sql_rewrite.syntax import parse
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


def steps(sql: str, dataset: Dataset) -> tuple[Any, ...]:
    """Steps 2 and 3, and the statement and identity that follow from them."""
    plan = lift(sql, dataset, {})
    cores = bound(plan)
    return plan, cores, [lower(core) for core in cores], [core_key(core.core, dataset) for core in cores]


def price(cores: Any) -> Any:
    """Step 4."""
    calibration = calibrate([core.described for core in cores], LaplacePrice(Fraction(1, 10), Fraction(1, 10**8)))
    return compose(calibration.events())


def median_ms(work: Any, rounds: int) -> float:
    """Median wall time of one call in milliseconds."""
    work()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=300)
    rounds = parser.parse_args().rounds
    _, cores, _, _ = steps(QUERY, CLINIC)
    figures = {
        "parse_ms": median_ms(lambda: parse(QUERY), rounds),
        "cold_steps_2_to_4_ms": median_ms(lambda: price(steps(QUERY, CLINIC)[1]), rounds),
        "from_plan_cache_ms": median_ms(lambda: price(cores), rounds),
    }
    print(json.dumps({name: round(value, 3) for name, value in figures.items()}, indent=2))


if __name__ == "__main__":
    main()
