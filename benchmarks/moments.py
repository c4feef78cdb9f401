"""The first visible moment of answers: how many of them show at it, and how far it is beyond the usual run.

    python -m benchmarks.moments [--rounds 7] [--data demo|shop]

Asks the demo's questions, or those of `benchmarks.questions` of a shop of 5,000 customers, with fresh
noise and no stored histogram at every round, through the whole journey in this process with the usual tick. `run` is
the time from the question to the end of its last statement, the least of the rounds (what others do on the machine
makes runs longer, and no plan shorter); `first` the first moment of the plan, of which `tick` is at least 4 ms;
`at_first` the part of the rounds that showed at it. `beyond` is the first moment less the plan's tick, which hides one
unit, as a ratio to the run. Prints one JSON object: milliseconds by question, and the parts of all questions.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.questions import CATEGORIES, shop
from benchmarks.questions import QUESTIONS as OF_SHOP
from privacy.refusal import Refused
from server.demo import write_demo
from server.journey.pace import VisibleRun
from server.services import Services
from tests.journey.clinic import attach, open_account, question, services_of, told

OF_DEMO = [
    "SELECT COUNT(*) AS n FROM patients",
    "SELECT region, COUNT(*) AS n, AVG(age) AS age FROM patients GROUP BY region",
    "SELECT department, COUNT(*) AS n, AVG(cost) AS cost FROM visits GROUP BY department",
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT SUM(cost) AS s FROM visits",
    "SELECT department, COUNT(*) AS n FROM visits GROUP BY department",
    "SELECT department, SUM(cost) AS s FROM visits GROUP BY department",
    "SELECT date_trunc('month', visit_date) AS m, COUNT(*) AS n FROM visits GROUP BY m",
    "SELECT date_trunc('month', visit_date) AS m, department, COUNT(*) AS n FROM visits GROUP BY m, department",
    "SELECT COUNT(*) AS n FROM visits WHERE cost > 100",
    "SELECT department, COUNT(*) AS n FROM visits WHERE cost > 100 GROUP BY department",
    "SELECT p.region, COUNT(*) AS n FROM visits v JOIN patients p USING (patient_id) GROUP BY p.region",
    "SELECT COUNT(DISTINCT patient_id) AS n FROM visits",
    "SELECT department, MEDIAN(cost) AS m FROM visits GROUP BY department",
    "SELECT AVG(n) AS a FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id)",
]


SHOP = """\
version: 2
dataset: shop
unit: {table: customers, key: customer_id}
tables:
  customers:
    source: {file: customers.csv}
    key: customer_id
    columns:
      customer_id: {type: integer, nullable: false}
      region: {type: text, keys: [north, south, east, west]}
      age: {type: integer, bounds: [0, 110], keys: {range: [0, 110]}}
      joined: {type: date, bounds: ["2015-01-01", "2021-12-31"], keys: {range: ["2015-01-01", "2021-12-31"]}}
  lines:
    source: {file: lines.csv}
    references: {customer_id: customers.customer_id}
    contribution: auto
    rows_expected: 100000
    columns:
      line_id: {type: integer, nullable: false}
      customer_id: {type: integer, nullable: false}
      ordered_on: {type: date, bounds: ["2022-01-01", "2024-12-31"], keys: {range: ["2022-01-01", "2024-12-31"]}}
      category: {type: text, keys: [%s]}
      quantity: {type: integer, bounds: [0, 100]}
      price: {type: number, bounds: [0, 300]}
      discount: {type: number, bounds: [0, 0.3]}
      channel: {type: text, keys: [web, shop, phone]}
policy: {epsilon_max: "10"}
"""


def write_shop(folder: Path) -> Path:
    """The shop with what an owner who knows it could declare, without bounds on contributions."""
    shop(folder, 5_000, 100_000, 0.8, 8)
    path = folder / "shop.yaml"
    path.write_text(SHOP % ", ".join(CATEGORIES))
    return path


@dataclass
class Seen:
    """What the runs of one question showed."""

    runs: list[float] = field(default_factory=list)
    first: float = 0.0
    tick: float = 0.0
    at_first: int = 0


@contextlib.contextmanager
def watched(seen: Seen) -> Iterator[None]:
    """Looks at each run that comes to its moment, before it waits."""
    plain = VisibleRun.wait

    def wait(run: Any) -> None:
        elapsed = run._clock() - run._started
        seen.runs.append(elapsed)
        seen.first, seen.tick = run._moments.first, run._moments.tick
        seen.at_first += run._moments.next(elapsed, run._part) == run._moments.first
        plain(run)

    VisibleRun.wait = wait  # type: ignore[method-assign]
    try:
        yield
    finally:
        VisibleRun.wait = plain  # type: ignore[method-assign]


def measure(services: Services, dataset: str, sql: str, rounds: int) -> Seen | None:
    """One question, each time by somebody who has no stored histogram; None where it is refused."""
    seen = Seen()
    for turn in range(rounds + 1):
        who = f"bench{next(_NAMES)}"
        open_account(services.ledger, who, dataset=dataset, epsilon="10")
        with watched(seen if turn else Seen()):
            try:
                told(services.journey, question(sql, who, dataset=dataset, epsilon="0.5"))
            except Refused:
                return None
    return seen


_NAMES = iter(range(10**9))


def figures(seen: Seen) -> dict[str, float]:
    """Milliseconds, and ratios to the run."""
    run = min(seen.runs)
    return {
        "run": round(1000 * run, 1),
        "first": round(1000 * seen.first, 1),
        "tick": round(1000 * seen.tick, 1),
        "ratio": round(seen.first / run, 2),
        "beyond": round((seen.first - seen.tick) / run, 2),
        "at_first": round(seen.at_first / len(seen.runs), 2),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--data", choices=("demo", "shop"), default="demo")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "sources"
        folder.mkdir()
        with services_of(Path(place)) as services:
            questions = OF_DEMO if given.data == "demo" else OF_SHOP
            attach(services, write_demo(folder).dataset_file if given.data == "demo" else write_shop(folder))
            seen = {sql: measure(services, given.data, sql, given.rounds) for sql in questions}
    answered = {sql: figures(one) for sql, one in seen.items() if one is not None}
    found = list(answered.values())
    longer = [one["ratio"] for one in found if one["run"] > 40]
    print(json.dumps({
        "questions": answered,
        "refused": [sql for sql, one in seen.items() if one is None],
        "at_first": round(statistics.fmean(one["at_first"] for one in found), 3),
        "median ratio": statistics.median(one["ratio"] for one in found),
        "median ratio of runs beyond 40 ms": statistics.median(longer) if longer else None,
        "median beyond": statistics.median(one["beyond"] for one in found),
    }, indent=1))  # fmt: skip


if __name__ == "__main__":
    main()
