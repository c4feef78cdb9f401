"""A small home with real services: a clinic of 3,000 people with visits, attached through the catalogue."""

from __future__ import annotations

import atexit
import csv
import functools
import hashlib
import json
import random
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

from accountant.account import FilterKind, Limit
from accountant.ledger import Ledger
from accountant.request import Reuse
from migrations.upgrade import upgrade
from server.admitted import Settled
from server.build import build_services
from server.question import Question
from server.services import JourneySteps, Services
from server.settings import Settings
from tests.kept_workers import kept_workers

PEOPLE = 3_000

DATASET = """\
version: 2
dataset: clinic
unit: {table: people, key: person_id}
tables:
  people:
    source: {file: people.csv}
    key: person_id
    columns:
      person_id: {type: integer, nullable: false}
      age: {type: integer, bounds: [0, 100], nullable: false}
      sex: {type: text, keys: [female, male]}
      town: {type: text}
      salary: {type: number, bounds: [0, 100000]}
      income: {type: number}
  visits:
    source: {file: visits.csv}
    key: visit_id
    references: {person_id: people.person_id}
    contribution: {rows_per_unit: 20, groups_per_unit: 2, rows_per_unit_and_group: 10}
    columns:
      visit_id: {type: integer, nullable: false}
      person_id: {type: integer, nullable: false}
      ward: {type: text}
      cost: {type: number, bounds: [0, 1000]}
policy: {epsilon_default: "0.1", epsilon_max: "100", delta_per_query: "1e-8"}
"""


def write_files(folder: Path) -> Path:
    """Writes the source files and the dataset file; returns the latter. Synthetic, from a fixed seed."""
    folder.mkdir(parents=True, exist_ok=True)
    source = random.Random(11)
    with (folder / "people.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["person_id", "age", "sex", "town", "salary", "income"])
        for person in range(PEOPLE):
            age = source.randrange(18, 90)
            rows.writerow([person, age, source.choice(["female", "male"]), f"town{person % 7}", age * 500, age * 7])
    with (folder / "visits.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["visit_id", "person_id", "ward", "cost"])
        visit = 0
        for person in range(PEOPLE):
            for _ in range(1 + person % 4):
                rows.writerow([visit, person, source.choice("abcd"), source.randrange(10, 900)])
                visit += 1
    path = folder / "clinic.yaml"
    path.write_text(DATASET)
    return path


@contextmanager
def services_of(home: Path) -> Iterator[Services]:
    """The services of a home, migrated and started, closed in order."""
    # Each worker is a process to start, and hardly a test asks two questions at once.
    settings = Settings(home=home, engine_workers=1)
    upgrade(settings.database())
    with kept_workers():
        services = build_services(settings)
    try:
        yield services
    finally:
        services.jobs.close(seconds=5)
        for close in services.closing:
            close()


def attach(services: Services, path: Path) -> None:
    """Attaches the dataset of a file, in the test's name."""
    services.registrar.attach_path(path, actor="test")


@contextmanager
def clinic_in(home: Path) -> Iterator[tuple[Services, Path]]:
    """The services of a home with the clinic attached, and the clinic's dataset file.

    A new home is a copy, secrets included, of one that each process makes once: to migrate and to attach takes a
    second. A home that is there already is opened as it is.
    """
    if not (home / "secrets").exists():
        shutil.copytree(_attached(), home, dirs_exist_ok=True)
    with services_of(home) as services:
        yield services, home / "sources" / "clinic.yaml"


@functools.cache
def _attached() -> Path:
    """A home with the clinic attached and nobody at work in it, which goes with the process."""
    home = Path(tempfile.mkdtemp(prefix="clinic-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    path = write_files(home / "sources")
    with services_of(home) as services:
        attach(services, path)
    return home


def open_account(
    ledger: Any,
    principal: str,
    *,
    epsilon: str = "1000",
    kind: FilterKind = FilterKind.APPROXIMATE,
    dataset: str = "clinic",
) -> str:
    """An account of a principal under the dataset's root, which is opened when it is absent."""
    assert isinstance(ledger, Ledger)
    delta = Fraction(1, 10**6) if kind is FilterKind.APPROXIMATE else Fraction(0)
    roots = [account for account in ledger.accounts(dataset=dataset) if account.parent is None]
    root = roots[0] if roots else ledger.create_account(
        dataset=dataset, parent=None, principal=None, name="root",
        limit=Limit(Fraction(100_000), Fraction(1, 10**5)), filter=FilterKind.APPROXIMATE, actor="test",
    )  # fmt: skip
    return ledger.create_account(
        dataset=dataset, parent=root.id, principal=principal, name=principal,
        limit=Limit(Fraction(epsilon), delta), filter=kind, actor="test",
    ).id  # fmt: skip


def stored(admitted: object) -> bytes | None:
    """The answer of a query that has one already."""
    return admitted.answer if isinstance(admitted, Settled) else None


def told(journey: JourneySteps, asked: Question) -> bytes:
    """The answer of a question, stored or made now."""
    admitted = journey.admit(asked)
    return admitted.answer if isinstance(admitted, Settled) else journey.complete(admitted)


def question(sql: str, principal: str, **options: Any) -> Question:
    """A question of a principal to the clinic."""
    epsilon, reuse = options.pop("epsilon", "1"), options.pop("reuse", None)
    values: dict[str, Any] = {
        "principal": principal,
        "dataset": "clinic",
        "sql": sql,
        "parameters": {},
        "epsilon": None if epsilon is None else Fraction(epsilon),
        "half_width": None,
        "confidence": Fraction(95, 100),
        "reuse": None if reuse is None else Reuse(reuse),
        "max_staleness_s": None,
        "account": None,
        "idempotency_key": None,
        "body_hash": hashlib.sha256(sql.encode()).hexdigest(),
    }
    return Question(**{**values, **options})


def answer_to(services: Services, asked: Question) -> dict[str, Any]:
    """The answer of a question, read."""
    return dict(json.loads(told(services.journey, asked)))
