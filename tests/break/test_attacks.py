"""The attacks that textbooks begin with, over HTTP and on a real budget: averaging, differencing and linkage.

Two towns differ by one person. Attackers know everybody else, the question and the law of the noise, and have an
account each. Whatever they ask, with even odds before, they are right with a chance of at most

    e^epsilon / (1 + e^epsilon)

where epsilon is what their account has (`privacy/membership.md`; the budget itself shows it). Of n guesses k are right:
Clopper and Pearson's exact lower bound of k out of n is above that chance less than once in a million runs of a server
that keeps its promise. Nothing is seeded.
"""

from __future__ import annotations

import asyncio
import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pytest
from scipy.stats import beta

from accountant.account import FilterKind, Limit
from mechanisms.measurements.laplace import LaplaceMeasurement
from migrations.upgrade import upgrade
from server.app import create_app
from server.build import build_services
from server.services import Services
from server.settings import Settings
from tests.audit.worlds import without_waiting
from tests.kept_workers import kept_workers

pytestmark = pytest.mark.slow

ALPHA = 1e-6
EPSILON = 2
"""What each attacker's account has. The chance to be right is 0.88 at most: an attack that works shows up."""

ATTACKERS = 60
TARGET = {"person_id": 400, "age": 93, "town": "ferry", "ill": 1}
"""The only one of that age in that town."""

DATASET = """\
version: 2
dataset: {name}
unit: {{table: people, key: person_id}}
tables:
  people:
    source: {{file: {name}.csv}}
    key: person_id
    columns:
      person_id: {{type: integer, nullable: false}}
      age: {{type: integer, bounds: [0, 100], nullable: false}}
      town: {{type: text, nullable: false}}
      ill: {{type: integer, bounds: [0, 1], keys: [0, 1], nullable: false}}
policy: {{epsilon_max: "10", delta_per_query: "1e-8"}}
"""


@dataclass(frozen=True, slots=True)
class Towns:
    """A server with the datasets `here`, with the target, and `there`, without."""

    services: Services
    keys: tuple[str, ...]
    """One for each attacker, whose accounts are used up by one attack each."""


def _write(folder: Path, name: str, *, target: bool) -> Path:
    with (folder / f"{name}.csv").open("w", newline="") as file:
        rows = csv.DictWriter(file, TARGET)
        rows.writeheader()
        for person in range(400):
            town = ("mill", "ferry", "moor", "ford")[person % 4]
            rows.writerow({"person_id": person, "age": 20 + person % 60, "town": town, "ill": int(person % 5 == 0)})
        if target:
            rows.writerow(TARGET)
    path = folder / f"{name}.yaml"
    path.write_text(DATASET.format(name=name))
    return path


@pytest.fixture(scope="module")
def towns(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Towns]:
    """Both towns, and attackers whose accounts in each have pure epsilon."""
    home = tmp_path_factory.mktemp("towns") / "home"
    (home / "sources").mkdir(parents=True)
    settings = Settings(home=home, answer_tick_ms=1, requests_per_minute=1_000_000, requests_burst=1_000_000)
    upgrade(settings.database())
    with kept_workers():
        services = build_services(settings)
    try:
        names = [f"attacker{i}" for i in range(3 * ATTACKERS + 35)]
        for name in names:
            services.registry.create_principal(name, "analyst", actor="test")
        for dataset, target in (("here", True), ("there", False)):
            services.registrar.attach_path(_write(home / "sources", dataset, target=target), actor="test")  # type: ignore[attr-defined]
            _open_accounts(services, dataset, names)
        keys = [services.registry.create_key(name, label="", days=1, actor="test").text for name in names]
        without_waiting(services)
        yield Towns(services, tuple(keys))
    finally:
        services.jobs.close(seconds=5)
        for close in services.closing:
            close()


def _open_accounts(services: Services, dataset: str, names: Sequence[str]) -> None:
    limit = Limit(Fraction(EPSILON * len(names)), Fraction(1, 1000))
    root = services.ledger.create_account(
        dataset=dataset, parent=None, principal=None, name="root", limit=limit, filter=FilterKind.APPROXIMATE,
        actor="test",
    )  # fmt: skip
    for name in names:
        services.ledger.create_account(
            dataset=dataset, parent=root.id, principal=name, name=name, limit=Limit(Fraction(EPSILON), Fraction(0)),
            filter=FilterKind.PURE, actor="test",
        )  # fmt: skip


Asked = tuple[str, str]
"""A question and its epsilon."""

Told = list[float | None]
"""The number that each question told, or nothing where it was refused."""


def attack(towns: Towns, which: range, questions: Sequence[Asked], *, reuse: str = "none") -> dict[str, list[Told]]:
    """What some attackers are told in each town: all of the questions, in turn."""

    async def one(http: httpx.AsyncClient, dataset: str, key: str) -> Told:
        told: Told = []
        for sql, epsilon in questions:
            body = {"dataset": dataset, "sql": sql, "spend": {"epsilon": epsilon}, "reuse": reuse}
            answer = await http.post("/v1/queries", json=body, headers={"Authorization": f"Bearer {key}"})
            document = answer.json()
            if answer.status_code == 200:
                told.append(document["rows"][0][0])
            else:
                assert (answer.status_code, document["code"]) == (403, "budget_exhausted"), document
                told.append(None)
        return told

    async def all_of_them() -> dict[str, list[Told]]:
        transport = httpx.ASGITransport(app=create_app(towns.services.settings, services=towns.services))
        found: dict[str, list[Told]] = {"here": [], "there": []}
        async with httpx.AsyncClient(transport=transport, base_url="http://test", timeout=60) as http:
            for start in range(which.start, which.stop, 6):
                few = [towns.keys[i] for i in range(start, min(start + 6, which.stop))]
                for dataset, told in found.items():
                    told.extend(await asyncio.gather(*(one(http, dataset, key) for key in few)))
        return found

    return asyncio.run(all_of_them())


def guesses_right(told: dict[str, list[Told]], without: Sequence[int], least: float) -> tuple[int, int]:
    """How many of how many attackers are right, by the likelihood of what they were told: the best there is.

    `without` are the true numbers of the town without the target, to each of which the target adds one; `least` is the
    epsilon of each answer. An answer x says how much likelier it is with the target: epsilon (|x - n| - |x - n - 1|).
    """

    def weight(values: Told) -> float:
        pairs = [(x, n) for x, n in zip(values, without, strict=True) if x is not None]
        return sum(least * (abs(x - n) - abs(x - n - 1)) for x, n in pairs)

    right = sum(weight(values) > 0 for values in told["here"]) + sum(weight(values) < 0 for values in told["there"])
    return right, len(told["here"]) + len(told["there"])


def beats(right: int, of: int, chance: float) -> bool:
    """Whether so many right guesses refute that each is right with at most this chance."""
    return right > 0 and float(beta.ppf(ALPHA, right, of - right + 1)) > chance


BOUND = math.exp(EPSILON) / (1 + math.exp(EPSILON))
EVERYBODY = "SELECT COUNT(*) FROM people"
OTHERS = "SELECT COUNT(*) FROM people WHERE NOT (age = 93 AND town = 'ferry')"
TARGET_ALONE = "SELECT COUNT(*) FROM people WHERE age = 93 AND town = 'ferry' AND ill = 1"


def test_a_repeat_has_nothing_to_average(towns: Towns) -> None:
    """Averaging, as it is meant: the same question again and again is one number and one charge."""
    attackers = range(3 * ATTACKERS, 3 * ATTACKERS + 4)
    told = attack(towns, attackers, [(EVERYBODY, "0.5")] * 40, reuse="own")
    for values in (*told["here"], *told["there"]):
        assert len({*values}) == 1
        assert values[0] is not None
    assert _left(towns, attackers.start) == {EPSILON - Fraction(1, 2)}


def _budgets(towns: Towns, attacker: int) -> list[dict[str, Any]]:
    async def read() -> Any:
        transport = httpx.ASGITransport(app=create_app(towns.services.settings, services=towns.services))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as http:
            headers = {"Authorization": f"Bearer {towns.keys[attacker]}"}
            return (await http.get("/v1/budgets", headers=headers)).json()["budgets"]

    budgets: list[dict[str, Any]] = asyncio.run(read())
    return budgets


def _left(towns: Towns, attacker: int) -> set[Fraction]:
    """The epsilon that the attacker's accounts have left."""
    return {Fraction(budget["remaining"]["epsilon"]) for budget in _budgets(towns, attacker)}


def test_averaging_ends_with_the_budget(towns: Towns) -> None:
    """Fresh answers cost, so an attacker gets four of a half, and the fifth is refused; the mean says little."""
    told = attack(towns, range(ATTACKERS), [(EVERYBODY, "0.5")] * 5)
    for values in (*told["here"], *told["there"]):
        assert [value is not None for value in values] == [True] * 4 + [False]
    right, of = guesses_right(told, [400] * 5, 0.5)
    assert not beats(right, of, BOUND)
    # What the budget shows is what the attack is held to.
    assert {Fraction(budget["membership_guess"]) for budget in _budgets(towns, 0)} == {
        Fraction(math.ceil(BOUND * 10_000), 10_000)
    }


def test_differencing_is_no_better_than_the_budget(towns: Towns) -> None:
    """Everybody, less everybody else, is the target: a number under two noises."""
    told = attack(towns, range(ATTACKERS, 2 * ATTACKERS), [(EVERYBODY, "1"), (OTHERS, "1")])
    differences: dict[str, list[Told]] = {
        town: [[a - b] for a, b in values if a is not None and b is not None]  # type: ignore[misc]
        for town, values in told.items()
    }
    right, of = guesses_right(differences, [0], 1)
    assert of == 2 * ATTACKERS
    assert not beats(right, of, BOUND)


def test_linkage_finds_no_more_than_the_budget(towns: Towns) -> None:
    """Who knows the age and the town of the target, which nobody shares, asks about nobody else."""
    told = attack(towns, range(2 * ATTACKERS, 3 * ATTACKERS), [(TARGET_ALONE, str(EPSILON))])
    right, of = guesses_right(told, [0], EPSILON)
    assert not beats(right, of, BOUND)
    # And the attack is a good one: it is right with a chance of 0.8, and so few happen once in a billion runs.
    assert right > 0.6 * of


@pytest.mark.parametrize(
    "sql",
    ["SELECT * FROM people WHERE age = 93", "SELECT ill FROM people WHERE age = 93 AND town = 'ferry'"],
)
def test_rows_are_never_told(towns: Towns, sql: str) -> None:
    """Linkage of rows needs rows: they are refused, in both towns alike, and nothing is charged."""

    async def ask() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app=create_app(towns.services.settings, services=towns.services))
        headers = {"Authorization": f"Bearer {towns.keys[-1]}"}
        async with httpx.AsyncClient(transport=transport, base_url="http://test", headers=headers) as http:
            return [await http.post("/v1/queries", json={"dataset": name, "sql": sql}) for name in ("here", "there")]

    here, there = asyncio.run(ask())
    assert here.status_code == there.status_code == 422
    assert here.json()["code"] == there.json()["code"]
    assert _left(towns, len(towns.keys) - 1) == {Fraction(EPSILON)}


def test_noise_that_is_too_small_is_noticed(towns: Towns, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same attack on a server that draws a 64th of its noise is right nearly always, and the test says so.

    An answer is on the wrong side with a chance of e^-16 each, and 55 right guesses of 60 are enough.
    """
    towns.services.journey.preparing.forget()  # type: ignore[attr-defined]
    genuine = LaplaceMeasurement.noise
    monkeypatch.setattr(
        LaplaceMeasurement,
        "noise",
        lambda self, count, bits: genuine(replace(self, scale=self.scale / 64), count, bits),
    )
    attackers = range(3 * ATTACKERS + 4, len(towns.keys) - 1)
    told = attack(towns, attackers, [(TARGET_ALONE, "0.5")])
    monkeypatch.undo()
    towns.services.journey.preparing.forget()  # type: ignore[attr-defined]
    assert beats(*guesses_right(told, [0], 0.5), math.exp(0.5) / (1 + math.exp(0.5)))
