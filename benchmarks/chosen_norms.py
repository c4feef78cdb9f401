"""Errors of the whole journey with nothing declared: chosen norms against the best one in hindsight and counts.

    python -m benchmarks.chosen_norms [--runs 20]

The demo's visits by month, by month and department, by department, and in all; and a SUM over 5,000 units whose rows
follow Zipf's law. Each question costs a tenth of an account (10, 1e-6), with fresh noise at every run. Error: root of
the mean square over cells and runs. `in_hindsight` is the least that any one norm would have had with the whole price
for its sums; `declared` is the same question with the counts that the demo declared before (rows_per_unit 200,
groups_per_unit 36, rows_per_unit_and_group 40), or with those that were proposed for own data (20, 4, 20).
`covered` is the part of cells whose truth lies within the interval and the stated cut with twice its error.
Prints one JSON object.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from privacy.bounds import AskedContribution
from server.demo import write_demo
from server.services import Services
from tests.journey.clinic import attach, open_account, question, services_of, told

ZIPF_UNITS, ZIPF_ROWS = 5_000, 100_000

ZIPF = """\
version: 2
dataset: zipf
unit: {{table: people, key: person}}
tables:
  people: {{source: {{file: zipf_people.csv}}, key: person, columns: {{person: {{type: integer}}}}}}
  buys:
    source: {{file: zipf_buys.csv}}
    references: {{person: people.person}}
    contribution: auto
    rows_stored_per_unit: 5000
    columns: {{person: {{type: integer}}, amount: {{type: integer, bounds: [0, 10], nullable: false}}}}
policy: {{epsilon_max: "10"}}
"""

QUESTIONS: Mapping[str, tuple[str, str]] = {
    "visits by month": ("demo", "SELECT date_trunc('month', visit_date) AS k, COUNT(*) AS n FROM visits GROUP BY k"),
    "visits by month and department": (
        "demo",
        "SELECT date_trunc('month', visit_date) AS k, department, COUNT(*) AS n FROM visits GROUP BY k, department",
    ),
    "visits by department": ("demo", "SELECT department AS k, COUNT(*) AS n FROM visits GROUP BY k"),
    "all visits": ("demo", "SELECT COUNT(*) AS n FROM visits"),
    "Zipf 0.8, SUM": ("zipf", "SELECT SUM(amount) AS n FROM buys"),
}

BEFORE = AskedContribution(rows_per_unit=200, groups_per_unit=36, rows_per_unit_and_group=40)
PROPOSED = AskedContribution(rows_per_unit=20, groups_per_unit=4, rows_per_unit_and_group=20)


def write_zipf(folder: Path) -> Path:
    """Units whose numbers of rows fall with the power 0.8 of their rank, each row worth 1 to 9."""
    weights = np.arange(1, ZIPF_UNITS + 1) ** -0.8
    counts = np.maximum(1, np.round(ZIPF_ROWS * weights / weights.sum())).astype(int)
    draw = np.random.Generator(np.random.PCG64(3))
    with (folder / "zipf_people.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["person"], *([unit] for unit in range(ZIPF_UNITS))])
    with (folder / "zipf_buys.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["person", "amount"])
        for unit, count in enumerate(counts.tolist()):
            rows.writerows([unit, amount] for amount in draw.integers(1, 10, count).tolist())
    path = folder / "zipf.yaml"
    path.write_text(ZIPF.format())
    return path


def truth_of(folder: Path, dataset: str, sql: str) -> tuple[dict[tuple[str, ...], float], list[list[float]]]:
    """The true numbers by group, and the vectors of all units over the groups: from DuckDB on the files themselves."""
    table = {"demo": ("visits", "visits.csv", "patient_id"), "zipf": ("buys", "zipf_buys.csv", "person")}[dataset]
    name, file, unit = table
    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_csv('{folder / file}')")
    rows = connection.execute(sql).fetchall()
    keys = {tuple(str(part)[:10] for part in row[:-1]): float(row[-1]) for row in rows}
    grouped = sql.replace("SELECT ", f"SELECT {unit} AS unit, ", 1)
    grouped = f"{grouped}, unit" if "GROUP BY" in sql else f"{grouped} GROUP BY unit"
    by_unit: dict[Any, list[float]] = {}
    places = {key: place for place, key in enumerate(keys)}
    entries = [
        (row[0], places[tuple(str(part)[:10] for part in row[1:-1])], float(row[-1]))
        for row in connection.execute(grouped).fetchall()
    ]
    for who, place, value in entries:
        by_unit.setdefault(who, [0.0] * len(places))[place] += value
    return keys, list(by_unit.values())


def in_hindsight(vectors: Sequence[Sequence[float]], mu_squared: float) -> float:
    """The least root-mean-square error of any norm, with the whole price for the sums."""
    matrix = np.asarray(vectors, dtype=np.float64)
    lengths, whole = np.sqrt((matrix**2).sum(1)), matrix.sum(0)
    errors = []
    for norm in 2.0 ** np.arange(0, 20, 0.25):
        kept = (matrix * np.minimum(1, norm / np.maximum(lengths, 1e-9))[:, None]).sum(0)
        errors.append(math.sqrt(float(((whole - kept) ** 2).mean()) + norm**2 / mu_squared))
    return min(errors)


def measure(services: Services, folder: Path, dataset: str, sql: str, runs: int) -> dict[str, float]:
    """The errors of one question."""
    truth, vectors = truth_of(folder, dataset, sql)
    mu_squared = 0.0

    def error(contribution: AskedContribution | None) -> tuple[float, float, list[float]]:
        nonlocal mu_squared
        squares, covered, norms = [], [], []
        for _ in range(runs):
            who = f"bench{next(_NAMES)}"
            open_account(services.ledger, who, dataset=dataset, epsilon="10")
            asked = question(sql, who, dataset=dataset, epsilon="1", contribution=contribution)
            answer = json.loads(told(services.journey, asked))
            (account,) = services.ledger.accounts(dataset=dataset, principal=who)
            mu_squared = float(account.spent.mu_squared or 0) / 1e12
            chosen = answer["provenance"]["norms"]
            norms += [float(one["norm"]) for one in chosen]
            cut = chosen[0]["cut"] if chosen else None
            for row, low, high in zip(answer["rows"], answer["lows"], answer["highs"], strict=True):
                key = tuple(str(part)[:10] for part in row[:-1])
                true = truth.get(key, 0.0)
                squares.append((row[-1] - true) ** 2)
                more = 0.0 if cut is None else (cut["share"] + 2 * cut["error"]) * abs(row[-1])
                covered.append(low[-1] <= true <= high[-1] + more)
        return math.sqrt(sum(squares) / len(squares)), sum(covered) / len(covered), norms

    chosen, covered, norms = error(None)
    best = in_hindsight(vectors, mu_squared)
    before, _, _ = error(BEFORE)
    proposed, _, _ = error(PROPOSED)
    return {
        "error": round(chosen, 1),
        "in_hindsight": round(best, 1),
        "ratio": round(chosen / best, 2),
        "declared_before": round(before, 1),
        "proposed_before": round(proposed, 1),
        "covered": round(covered, 3),
        "median_norm": round(float(np.median(norms)), 1),
    }


_NAMES = iter(range(10**9))


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "sources"
        folder.mkdir()
        paths = (write_demo(folder).dataset_file, write_zipf(folder))
        with services_of(Path(place)) as services:
            for path in paths:
                attach(services, path)
            found = {name: measure(services, folder, dataset, sql, runs) for name, (dataset, sql) in QUESTIONS.items()}
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
