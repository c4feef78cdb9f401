"""Errors of other libraries with the same knowledge, beside ours with nothing declared.

    python -m benchmarks.peers --peer-python VENV/bin/python [--peer-python ...] [--runs 5] [--peer-runs 1]

The questions and data of `benchmarks.chosen_norms`. Each answer is a tenth of an account (10, 1e-6), as each library
accounts for it: an epsilon of 1 and a delta of 1e-7 for SmartNoise SQL, a tenth of the zero-concentrated loss of the
account for OpenDP, an epsilon of 1 of 10 here. Libraries are asked by interpreters of environments of their own (`pip
install smartnoise-sql`; `pip install "opendp[polars]"`); which is in none of them is "not installed".

Each peer is asked with what it does when nothing is declared, with the counts of rows that were proposed for own data
(20 of a person) and that the demo declared (200), and with the best of several counts in hindsight, which nobody knows
beforehand. Groups are public for all. Error: root of the mean square over cells and runs; `ratio` is that to the best
norm in hindsight. Peers take seconds for an answer. Prints a JSON object a line: versions, questions.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.chosen_norms import QUESTIONS, measure, truth_of, write_zipf
from server.demo import write_demo
from tests.journey.clinic import attach, services_of

PEERS = ("smartnoise-sql", "opendp")
PROPOSED, DECLARED = 20, 200
TRIED = (5, 20, 50, 200)
"""Rows of a person: the best one in hindsight is one of these."""

ROWS = {
    "visits by month": "SELECT patient_id, strftime(date_trunc('month', visit_date), '%Y-%m-%d'), 0 FROM visits",
    "visits by month and department": "SELECT patient_id, "
    "strftime(date_trunc('month', visit_date), '%Y-%m-%d') || '/' || left(department, 10), 0 FROM visits",
    "visits by department": "SELECT patient_id, left(department, 10), 0 FROM visits",
    "all visits": "SELECT patient_id, '', 0 FROM visits",
    "Zipf 0.8, SUM": "SELECT person, '', amount FROM buys",
}
"""The rows of each question: person, group, number."""


@dataclass(frozen=True, slots=True)
class Case:
    """A question to peers: its rows in a file, and the true numbers by group."""

    file: Path
    truth: Mapping[str, float]
    summed: bool


def written(folder: Path, name: str) -> Case:
    """The question's rows, as peers read them."""
    dataset, sql = QUESTIONS[name]
    file = folder / f"peers_{len(list(folder.glob('peers_*')))}.csv"
    connection = duckdb.connect()
    for table, source in (("visits", "visits.csv"), ("buys", "zipf_buys.csv")):
        connection.execute(f"CREATE VIEW {table} AS SELECT * FROM read_csv('{folder / source}')")
    with file.open("w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["person", "k", "v"])
        rows.writerows(connection.execute(ROWS[name]).fetchall())
    truth, _ = truth_of(folder, dataset, sql)
    return Case(file, {"/".join(key): value for key, value in truth.items()}, "SUM" in sql)


def errors_of(python: Path, peer: str, case: Case, *, best: float, runs: int) -> dict[str, Any]:
    """What a peer answers with nothing declared, with counts that somebody declared, and with the best of them."""
    asked = {
        "peer": peer, "file": str(case.file), "summed": case.summed, "grouped": len(case.truth) > 1,
        "rows": [None, *TRIED], "runs": runs,
    }  # fmt: skip
    told = _run(python, asked)
    found = {one["rows"]: _error(one, case) for one in told["told"]}
    errors = {rows: error for rows, error in found.items() if rows is not None and not isinstance(error, str)}
    wanted: dict[str, int | None] = {"nothing_declared": None, "proposed_20": PROPOSED, "declared_200": DECLARED}
    if errors:
        rows = min(errors, key=lambda one: errors[one])
        wanted[f"in_hindsight_{rows}"] = rows
    return {name: _beside(found[rows], best) for name, rows in wanted.items()}


def _error(told: Mapping[str, Any], case: Case) -> float | str:
    """The root-mean-square error of a peer's answers, or why it does not answer."""
    if "refused" in told:
        return str(told["refused"])
    squares = [(answer.get(key, 0.0) - true) ** 2 for answer in told["answers"] for key, true in case.truth.items()]
    return math.sqrt(sum(squares) / len(squares))


def _beside(error: float | str, best: float) -> dict[str, Any]:
    if isinstance(error, str):
        return {"refused": error}
    return {"error": round(error, 1), "ratio": round(error / best, 2)}


def _run(python: Path, asked: Mapping[str, Any]) -> dict[str, Any]:
    script = Path(__file__).with_name("peer_answers.py")
    done = subprocess.run(
        [str(python), "-I", str(script)], input=json.dumps(asked), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{python}: {done.stderr}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def installed(pythons: Sequence[Path]) -> dict[str, tuple[Path, str]]:
    """The first interpreter that has each peer, and the peer's version."""
    found: dict[str, tuple[Path, str]] = {}
    for python in pythons:
        for peer, version in _run(python, {}).items():
            found.setdefault(peer, (python, str(version)))
    return found


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer-python", type=Path, action="append", default=[], help="an interpreter that has a peer")
    parser.add_argument("--runs", type=int, default=5, help="of ours")
    parser.add_argument("--peer-runs", type=int, default=1, help="of peers, with each bound")
    parser.add_argument("--only", choices=list(QUESTIONS), help="one question")
    options = parser.parse_args()
    peers = installed(options.peer_python)
    print(json.dumps({name: peers[name][1] if name in peers else "not installed" for name in PEERS}), flush=True)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "sources"
        folder.mkdir()
        paths = (write_demo(folder).dataset_file, write_zipf(folder))
        with services_of(Path(place)) as services:
            for path in paths:
                attach(services, path)
            for name, (dataset, sql) in QUESTIONS.items():
                if options.only not in (None, name):
                    continue
                found: dict[str, Any] = {"noisegate": measure(services, folder, dataset, sql, options.runs)}
                case, best = written(folder, name), found["noisegate"]["in_hindsight"]
                for peer, (python, _) in peers.items():
                    found[peer] = errors_of(python, peer, case, best=best, runs=options.peer_runs)
                print(json.dumps({name: found}), flush=True)


if __name__ == "__main__":
    main()
