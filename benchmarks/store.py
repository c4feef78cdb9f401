"""Time of finding stored statistics for other questions, with few in store and with 100,000.

    python -m benchmarks.store [--statistics 100000] [--rounds 200]

Processor time in milliseconds, medians, of what a question pays beside its plan and price (server/journey/held.py): the
look-ups and what is compared, or combined, of at most 16 releases. Cold, so that no digest of the question is kept;
`kept` is the same again. Questions: one that a stored release answers, one that 16 releases do not answer, one whose
rows nobody asked about, one that several releases answer together, and one that they do not. `plan` is steps 2 to 4,
cold, in the same run. Few are as the journey made them; the others are copies of one release under other keys, a
thousandth of them in the frames of the questions.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from server.journey.charges import charges_of
from server.journey.held import with_derived
from server.journey.quoting import Quoting
from server.journey.reuse import Reusable
from server.services import Services
from tests.journey.clinic import clinic_in, open_account, question, told

STORED = "SELECT sex, age < 40 AS young, COUNT(*), AVG(age), VARIANCE(age) FROM people GROUP BY sex, young"
QUESTIONS = {
    "answered": "SELECT sex, AVG(age) FROM people GROUP BY sex",
    "not answered": "SELECT sex, AVG(salary) FROM people GROUP BY sex",
    "nothing there": "SELECT COUNT(*) FROM people WHERE salary > 20000",
    "together": "SELECT COUNT(*) FROM people WHERE sex IS DISTINCT FROM 'male'",
    "not together": "SELECT SUM(salary) FROM people WHERE sex IS DISTINCT FROM 'male'",
}
PARTS = ("SELECT COUNT(*) FROM people", "SELECT COUNT(*) FROM people WHERE sex = 'male'")

_COPY = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :many)
INSERT INTO releases
SELECT 'r_copy' || i, printf('%064x', i), quality, principal, dataset, query_id, events, body, created - i,
  CASE WHEN i % 1000 = 0 THEN frame ELSE printf('%064x', i) END,
  CASE WHEN i % 1000 = 0 THEN coarse ELSE printf('%064x', i) END,
  CASE WHEN i % 1000 = 0 THEN replace(held, 'moments:', 'others:') ELSE held END
FROM n, (SELECT * FROM releases WHERE held IS NOT NULL LIMIT 1)
"""


def median(rounds: int, prepare: Callable[[], Any], timed: Callable[[Any], object]) -> float:
    """The median of a step's processor time in milliseconds."""
    times = []
    for _ in range(rounds):
        given = prepare()
        began = time.thread_time()
        timed(given)
        times.append(time.thread_time() - began)
    return round(1000 * statistics.median(times), 3)


def figures(services: Services, rounds: int) -> dict[str, dict[str, float]]:
    """The times of each question."""
    admission: Any = services.journey.admission
    stored = admission._stored
    found = {}
    for name, sql in QUESTIONS.items():
        asked = question(sql, "anna", epsilon="0.05")
        dataset, path = admission.paying(asked)

        def planned(asked: Any = asked, dataset: Any = dataset, path: Any = path) -> Any:
            admission._preparing.forget()
            _, prepared, _ = admission._choices.prepared(asked, dataset, path)
            priced = Quoting(asked, prepared, path).price()
            charges = charges_of(prepared, priced)
            return asked, prepared, priced, charges, path[0]

        def offered(given: Any, dataset: Any = dataset) -> Any:
            asked, prepared, priced, charges, leaf = given
            reusable = Reusable(stored, asked, dataset, charges, leaf, cores=len(prepared.cores))
            return with_derived(charges, reusable, stored, asked, prepared, priced, leaf)

        given = planned()
        found[name] = {
            "offers": sum(bool(charge.derived or charge.joined) for charge in offered(given).charges),
            "plan": median(rounds, lambda: None, lambda _: planned()),
            "cold": median(rounds, planned, offered),
            "kept": median(rounds, lambda given=given: given, offered),
        }
    return found


def main() -> None:
    """Prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--statistics", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=200)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, clinic_in(Path(folder) / "home") as (services, _):
        open_account(services.ledger, "anna")
        told(services.journey, question(STORED, "anna"))
        for text in PARTS:
            told(services.journey, question(text, "anna", epsilon="0.2"))
        few = figures(services, arguments.rounds)
        with sqlite3.connect(Path(folder) / "home" / "ledger.sqlite", timeout=60) as database:
            database.execute(_COPY, {"many": arguments.statistics})
        print(json.dumps({"few": few, str(arguments.statistics): figures(services, arguments.rounds)}, indent=1))


if __name__ == "__main__":
    main()
