"""What answers that share noise, precision or an account tell is within what was charged for all of them together.

An attacker who knows everybody but one person asks as each new analyst a whole series of questions over HTTP, and makes
numbers of all that came back. Looked at are half-lines of these numbers that were learned on other answers. A series is
charged as its releases are, or at most as its account allows. By day noise is the same in every run, so that few series
do; at night it is fresh, and a server that keeps its promise is accused less than once in a million runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import httpx
import pytest

from accountant import entry
from accountant import filter as filters
from accountant.account import FilterKind, Limit
from accountant.filter import Branches, Sums
from accountant.ledger import Ledger
from mechanisms import gateway, sharpening
from mechanisms.measurement import Integers, Measurement, Perturbed
from mechanisms.measurements.gaussian import GaussianMeasurement
from mechanisms.noisy_sums import NoisySums, sums_to_plain
from mechanisms.randomness import BitSource
from privacy.loss import Loss
from server import answer_rows
from server.app import create_app
from server.roles import Role
from server.services import Services
from tests.audit.planted import BUGS
from tests.audit.worlds import ALPHA, OTHERS, Answer, learned, told_too_much, two_worlds

pytestmark = pytest.mark.slow

Document = dict[str, Any]
Ask = Callable[..., Awaitable[Document]]
Told = tuple[tuple[float, ...], tuple[Loss, ...]]
"""The numbers that an attacker makes of a series, and what bounds them."""

OTHERS_AGES = sum(range(20, 20 + OTHERS))
"""Of everybody else; the person who is in one world only is 100."""


@dataclass
class Audit:
    """A server with both worlds, and how sure a comparison is to be."""

    services: Services
    fresh: bool
    asked: int = 0

    @property
    def alpha(self) -> float:
        """The chance that an event accuses a server that keeps its promise."""
        return ALPHA if self.fresh else 1e-3

    def analyst(self, limit: Limit) -> str:
        """A key of somebody new with an account of each world."""
        self.asked += 1
        name, ledger, registry = f"series{self.asked}", self.services.ledger, self.services.registry
        assert isinstance(ledger, Ledger)
        registry.create_principal(name, Role.ANALYST, actor="test")
        for world in ("here", "there"):
            (root,) = [one for one in ledger.accounts(dataset=world) if one.parent is None]
            ledger.create_account(
                dataset=world, parent=root.id, principal=name, name=name, limit=limit, filter=FilterKind.APPROXIMATE,
                actor="test",
            )  # fmt: skip
        return registry.create_key(name, label="", days=1, actor="test").text

    def findings(self, series: Series, *, times: int) -> list[str]:
        """The events that so many series tell apart better than their charges allow."""
        self.services.journey.preparing.forget()  # type: ignore[attr-defined]
        told: dict[str, list[Answer]] = {"here": [], "there": []}
        charged: set[tuple[Loss, ...]] = set()

        async def all_of_them() -> None:
            transport = httpx.ASGITransport(app=create_app(self.services.settings, services=self.services))
            async with httpx.AsyncClient(transport=transport, base_url="http://test", timeout=60) as http:
                for _ in range(times):
                    key = self.analyst(series.limit)
                    for world, answers in told.items():

                        async def ask(sql: str, *, world: str = world, key: str = key, **body: Any) -> Document:
                            whole = {"dataset": world, "sql": sql, **body}
                            headers = {"Authorization": f"Bearer {key}"}
                            response = await http.post("/v1/queries", json=whole, headers=headers)
                            document: Document = response.json()
                            return document

                        row, losses = await series.run(self, ask)
                        answers.append(Answer(200, (row,)))
                        charged.add(losses)

        asyncio.run(all_of_them())
        (losses,) = charged  # what is charged is the same in both worlds
        first = times // 4
        here, there = told["here"], told["there"]
        return [
            event.name
            for event in learned(here[:first], there[:first], losses)
            if told_too_much(event, here[first:], there[first:], losses, alpha=self.alpha)
        ]

    def losses(self, document: Document) -> tuple[Loss, ...]:
        """Of all events of an answer's releases."""
        releases = [self.services.ledger.release(name) for name in document["provenance"]["releases"]]
        return tuple(event.loss() for release in releases if release is not None for event in release.events)


WIDE = Limit(Fraction(40), Fraction(1, 20_000))


@dataclass(frozen=True)
class Series:
    """What one analyst asks of a world, from an account of this limit."""

    name: str
    run: Callable[[Audit, Ask], Awaitable[Told]]
    limit: Limit = WIDE


def spend(epsilon: str) -> dict[str, str]:
    """A part of the account."""
    return {"epsilon": epsilon}


async def in_one_account(audit: Audit, ask: Ask) -> Told:
    """Gaussian noise, then Laplace noise as long as the account pays: the whole bounds what all of it tells."""
    sql, score = "SELECT COUNT(*) AS n FROM people WHERE age > 99", 0.0
    for noise, epsilon, most in (("gaussian", "0.1", 1), ("laplace", "0.5", 40)):
        for _ in range(most):
            answer = await ask(sql, noise=noise, spend=spend(epsilon), reuse="none")
            if "rows" not in answer:
                assert answer["code"] == "budget_exhausted"
                break
            value, scale = answer["rows"][0][0], float(answer["provenance"]["mechanisms"][0]["scale"])
            # How much likelier the answer is where somebody is that old.
            score += (abs(value) - abs(value - 1)) / scale if noise == "laplace" else (value - 0.5) / scale**2
    limit = MIXED.limit
    return (score,), (Loss(pure=limit.epsilon, delta=limit.delta, rho=None, mu_squared=None),)


async def sharpened(audit: Audit, ask: Ask) -> Told:
    """A sum that is made more precise twice: its mean, and what was drawn last."""
    precision, last, drawn = 0.0, 0.0, 0.0
    for step, epsilon in enumerate(("0.1", "0.13", "0.17")):
        sql = "SELECT SUM(age) AS s FROM people"
        answer = await ask(sql, noise="gaussian", spend=spend(epsilon), accept_noise=True)
        assert (answer["accounting"]["sharpened"] is not None) is (step > 0)
        value, now = answer["rows"][0][0] - OTHERS_AGES, 1 / answer["standard_errors"][0][0] ** 2
        drawn = (value * now - last * precision) / (now - precision)
        precision, last = now, value
    return (last, drawn), audit.losses(answer)


async def derived(audit: Audit, ask: Ask) -> Told:
    """Moments, and two answers that follow from them for nothing."""
    moments = "SELECT COUNT(*) AS n, AVG(age) AS a, VAR_POP(age) AS v FROM people"
    first = await ask(moments, spend=spend("0.1"), accept_noise=True)
    numbers = [float(value) for value in first["rows"][0]]
    for column in ("SUM(age)", "STDDEV_POP(age)"):
        answer = await ask(f"SELECT {column} AS x FROM people", spend=spend("0.01"), accept_noise=True)
        assert answer["accounting"]["reused"]
        assert answer["provenance"]["releases"] == first["provenance"]["releases"]
        numbers.append(float(answer["rows"][0][0]))
    return tuple(numbers), audit.losses(first)


async def atoms(audit: Audit, ask: Ask) -> Told:
    """Conditions that are measured as groups at one price; the person is in the first, and in the total."""
    sql = "SELECT COUNT_IF(age > 90) AS a, COUNT_IF(age < 50) AS b, COUNT(*) AS n FROM people"
    answer = await ask(sql, spend=spend("0.1"), noise="gaussian", accept_noise=True)
    a, b, n = (float(value) for value in answer["rows"][0])
    return (a, n, a + n - b), audit.losses(answer)


async def own_moments(audit: Audit, ask: Ask) -> Told:
    """A hidden group of one person, which its own moments would have to select."""
    sql = "SELECT town, AVG(age) AS a FROM people WHERE age > 90 GROUP BY town"
    answer = await ask(sql, spend=spend("0.1"), noise="gaussian", accept_noise=True)
    average = answer["rows"][0][1] if answer["rows"] else None
    return (float(len(answer["rows"])), -1.0 if average is None else float(average)), audit.losses(answer)


MIXED = Series("two families in one account", in_one_account, Limit(Fraction(1), Fraction(1, 20_000)))
SHARPENED = Series("sharpened", sharpened)
DERIVED = Series("derived", derived)
ATOMS = Series("atoms", atoms)
OWN_MOMENTS = Series("selected by its own moments", own_moments)


@pytest.fixture(scope="module")
def audit(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audit]:
    """A server with both worlds."""
    with two_worlds(tmp_path_factory.mktemp("sharing") / "home") as (services, _):
        yield Audit(services, fresh=request.param == "at night")


@pytest.fixture(autouse=True)
def seeded(request: pytest.FixtureRequest, audit: Audit) -> None:
    """By day noise is the same in every run."""
    if not audit.fresh:
        request.getfixturevalue("own_noise")


def a_hundredth_is_counted(patch: pytest.MonkeyPatch) -> None:
    """In the mixed branch, of each charge."""
    right = filters.place

    def planted(charge: Sums, spent: Sums, branches: Branches) -> tuple[int, int] | None:
        placed = right(charge, spent, branches)
        return None if placed is None else (placed[0] // 100, placed[1] // 100)

    patch.setattr(filters, "place", planted)
    patch.setattr(entry, "place", planted)


def differences_without_noise(patch: pytest.MonkeyPatch) -> None:
    """What is bought beside a stored release is drawn without noise, and charged as a difference."""
    genuine, noise, bought = sharpening.difference, GaussianMeasurement.noise, set[Fraction]()

    def noted(*known: Any, **options: Any) -> sharpening.Difference | None:
        found = genuine(*known, **options)
        if found is not None:
            bought.update(one.sigma for one in found.drawn.measurements if isinstance(one, GaussianMeasurement))
        return found

    def planted(self: GaussianMeasurement, count: int, bits: BitSource) -> Any:
        return noise(self, count, bits) * (self.sigma not in bought)

    patch.setattr("server.journey.sharpening.difference", noted)
    patch.setattr(GaussianMeasurement, "noise", planted)


def exact_sums_are_stored(patch: pytest.MonkeyPatch) -> None:
    """A release keeps the sums of before the noise, from which other answers follow."""
    kept: dict[str, Integers] = {}
    perturb = gateway.perturb

    def remembering(measurement: Measurement, exact: Integers, bits: BitSource) -> Perturbed:
        kept[measurement.statistic.name] = exact // measurement.grid
        return perturb(measurement, exact, bits)

    def planted(sums: Sequence[NoisySums]) -> list[Any]:
        return sums_to_plain([replace(one, values=kept[one.measurement.statistic.name]) for one in sums])

    patch.setattr(gateway, "perturb", remembering)
    patch.setattr(answer_rows, "sums_to_plain", planted)


def a_twentieth_of_the_noise(patch: pytest.MonkeyPatch) -> None:
    """Noise of 400 times the mu squared that is charged."""
    genuine = GaussianMeasurement.noise
    patch.setattr(
        GaussianMeasurement, "noise", lambda self, count, bits: (genuine(self, count, bits) / 20).round().astype(int)
    )


def threshold_off(patch: pytest.MonkeyPatch) -> None:
    """Hidden groups are shown whatever their noisy size."""
    next(bug.plant for bug in BUGS if bug.name == "threshold_off")(patch)


Plant = Callable[[pytest.MonkeyPatch], None]

BY_DAY: tuple[tuple[Series, Plant, int], ...] = (
    (SHARPENED, differences_without_noise, 20),
    (DERIVED, exact_sums_are_stored, 20),
    (ATOMS, a_twentieth_of_the_noise, 20),
    (OWN_MOMENTS, threshold_off, 20),
)
"""With how many series of each world."""

AT_NIGHT: tuple[tuple[Series, Plant, int], ...] = (
    (MIXED, a_hundredth_is_counted, 300),
    (SHARPENED, differences_without_noise, 60),
    (DERIVED, exact_sums_are_stored, 60),
    (ATOMS, a_twentieth_of_the_noise, 60),
    (OWN_MOMENTS, threshold_off, 60),
)


@pytest.mark.parametrize(
    ("audit", "series", "plant", "times"),
    [
        *(pytest.param("by day", *case, id=f"{case[0].name} by day") for case in BY_DAY),
        *(
            pytest.param("at night", *case, id=case[0].name, marks=[pytest.mark.nightly, pytest.mark.timeout(3600)])
            for case in AT_NIGHT
        ),
    ],
    indirect=["audit"],
)
def test_a_series_tells_no_more_than_its_price_and_a_mispricing_is_refuted(
    audit: Audit, monkeypatch: pytest.MonkeyPatch, series: Series, plant: Plant, times: int
) -> None:
    """What two worlds' answers tell apart is within the charge; a server that charges too little is noticed."""
    assert audit.findings(series, times=times) == []
    plant(monkeypatch)
    assert audit.findings(series, times=times) != []
