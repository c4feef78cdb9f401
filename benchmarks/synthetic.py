"""Synthetic tables of Adult: time from the request to the table, and the error of all pairs of columns.

    NOISEGATE_ADULT_CSV=adult.csv python -m benchmarks.synthetic [--epsilon 0.3,1,10] [--runs 3]

The whole way of a server, on an account of (10, 1e-6): charge, statements in the worker, visible moment, rows. Prints a
JSON object: for each epsilon of the account the seconds of one table, and the mean and the greatest total variation
distance of a pair of columns, of the table and of independent columns (each drawn by its true distribution).
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import os
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

from privacy.values import Cell
from server.resources.resources import Begun
from server.services import Services
from server.synthetic.content import unpacked
from server.synthetic.making import Synthetics
from server.synthetic.terms import MakeSynthetic
from tests.journey.clinic import attach, open_account, services_of

__all__ = ["BOUNDS", "adult_services", "distances", "made_table"]

BOUNDS = {
    "age": (0, 125),
    "fnlwgt": (0, 1_500_000),
    "education_num": (1, 16),
    "capital_gain": (0, 99_999),
    "capital_loss": (0, 5_000),
    "hours_per_week": (0, 100),
}
"""Of the columns of numbers; all others are texts with their values as keys."""

_BINS = 32


def read(source: Path) -> dict[str, list[str]]:
    """The columns of the file, without the number of the person."""
    with source.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in rows[0] if name != "person_id"}


@contextmanager
def adult_services(source: Path, home: Path) -> Iterator[Services]:
    """A server's services with Adult attached, all columns declared."""
    folder = home / "sources"
    folder.mkdir()
    (folder / "adult.csv").symlink_to(source.resolve())
    declared = ["      person_id: {type: integer, nullable: false}"]
    for name, values in read(source).items():
        if name in BOUNDS:
            declared.append(f"      {name}: {{type: integer, bounds: [{BOUNDS[name][0]}, {BOUNDS[name][1]}]}}")
        else:
            declared.append(f"      {name}: {{type: text, keys: {json.dumps(sorted(set(values) - {''}))}}}")
    text = "version: 2\ndataset: adult\nunit: {table: people, key: person_id}\ntables:\n  people:\n"
    text += "    source: {file: adult.csv}\n    key: person_id\n    columns:\n" + "\n".join(declared) + "\n"
    (folder / "adult.yaml").write_text(text + 'policy: {epsilon_default: "1", epsilon_max: "10"}\n')
    with services_of(home) as services:
        attach(services, folder / "adult.yaml")
        yield services


def made_table(services: Services, epsilon: str, name: str) -> tuple[dict[str, Sequence[Cell]], float]:
    """The columns of a fresh table, on an account of its own, and the seconds that it took."""
    synthetic = services.synthetic
    assert isinstance(synthetic, Synthetics)
    account = open_account(services.ledger, name, epsilon="10", dataset="adult")
    request = MakeSynthetic(
        principal=name,
        dataset="adult",
        table="people",
        name=name,
        columns=None,
        epsilon=Fraction(epsilon),
        rows_per_unit=None,
        account=account,
        body_hash="0" * 64,
    )
    began = time.monotonic()
    table = synthetic.admit(request)
    assert isinstance(table, Begun)
    synthetic.complete(table)
    seconds = time.monotonic() - began
    content = services.registry.synthetic_content(table.query_id)
    assert content is not None
    return {column.name: column.values for column in unpacked(name, content).columns}, seconds


def _binned(name: str, values: Sequence[Cell]) -> list[str]:
    if name not in BOUNDS:
        return ["" if value is None else str(value) for value in values]
    low, high = BOUNDS[name]
    step = max(1, -(-(high - low + 1) // _BINS))
    return [str((int(str(value)) - low) // step) if str(value).lstrip("-").isdigit() else "" for value in values]


def distances(true: Mapping[str, Sequence[Cell]], drawn: Mapping[str, Sequence[Cell]] | None) -> dict[str, float]:
    """Mean and greatest total variation distance over all pairs of columns. None: of independent columns."""
    found = []
    rows = {name: _binned(name, values) for name, values in true.items()}
    others = None if drawn is None else {name: _binned(name, values) for name, values in drawn.items()}
    for one, other in itertools.combinations(rows, 2):
        here = Counter(zip(rows[one], rows[other], strict=True))
        count = len(rows[one])
        if others is None:
            first, second = Counter(rows[one]), Counter(rows[other])
            there = {(a, b): first[a] * second[b] / count**2 for a in first for b in second}
        else:
            pairs = Counter(zip(others[one], others[other], strict=True))
            there = {pair: number / len(others[one]) for pair, number in pairs.items()}
        cells = set(here) | set(there)
        found.append(sum(abs(here[cell] / count - there.get(cell, 0.0)) for cell in cells) / 2)
    return {"mean": round(statistics.fmean(found), 4), "greatest": round(max(found), 4)}


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--epsilon", default="0.3,1,10")
    parser.add_argument("--runs", type=int, default=3)
    asked = parser.parse_args()
    source = Path(os.environ["NOISEGATE_ADULT_CSV"])
    true = read(source)
    figures: dict[str, object] = {"independent columns": distances(true, None)}
    with tempfile.TemporaryDirectory() as home, adult_services(source, Path(home)) as services:
        for epsilon in asked.epsilon.split(","):
            runs = []
            for run in range(asked.runs):
                drawn, seconds = made_table(services, epsilon, f"a{epsilon.replace('.', 'p')}r{run}")
                runs.append({"seconds": round(seconds, 2), **distances(true, drawn)})
            figures[f"epsilon {epsilon}"] = runs
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
