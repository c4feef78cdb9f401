"""A clinic whose contribution bounds nobody declared: a few units have most of the rows."""

from __future__ import annotations

import csv
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from server.services import Services
from tests.journey.clinic import attach, services_of

__all__ = ["HEAVY", "PEOPLE", "WARDS", "auto_clinic", "write_auto_clinic"]

PEOPLE, HEAVY, WARDS = 2_000, 20, "abcd"

DATASET = """\
version: 2
dataset: wards
unit: {table: people, key: person_id}
tables:
  people:
    source: {file: people.csv}
    key: person_id
    columns:
      person_id: {type: integer, nullable: false}
      sex: {type: text, keys: [female, male], nullable: false}
  visits:
    source: {file: visits.csv}
    references: {person_id: people.person_id}
    contribution: auto
    columns:
      person_id: {type: integer, nullable: false}
      ward: {type: text, keys: [a, b, c, d], nullable: false}
      cost: {type: integer, bounds: [0, 1000], nullable: false}
      town: {type: text}
policy: {epsilon_default: "1", epsilon_max: "100", delta_per_query: "1e-8", releases_shared: "%s"}
"""


def write_auto_clinic(folder: Path, *, extra: int = 0, shared: str = "no", people: int = PEOPLE) -> Path:
    """Writes the files: person p has 1 to 4 visits, the last `HEAVY` 150 each, and one more unit `extra` visits."""
    folder.mkdir(parents=True, exist_ok=True)
    source = random.Random(5)
    with (folder / "people.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["person_id", "sex"])
        rows.writerows([person, source.choice(["female", "male"])] for person in range(people + (extra > 0)))
    with (folder / "visits.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["person_id", "ward", "cost", "town"])
        for person in range(people):
            for _ in range(150 if person >= people - HEAVY else 1 + person % 4):
                rows.writerow([person, source.choice(WARDS), source.randrange(1, 900), f"town{person % 3}"])
        rows.writerows([people, WARDS[place % 4], 500, "town0"] for place in range(extra))
    path = folder / "wards.yaml"
    path.write_text(DATASET % shared)
    return path


@contextmanager
def auto_clinic(home: Path, *, shared: str = "no") -> Iterator[tuple[Services, Path]]:
    """The services of a home with it attached, and its dataset file."""
    path = write_auto_clinic(home / "sources", shared=shared)
    with services_of(home) as services:
        attach(services, path)
        yield services, path
