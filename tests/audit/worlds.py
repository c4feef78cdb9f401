"""Two worlds that differ by one person, attached to one server, and the question which of them answered.

The attack is the definition: whoever knows everything but one person asks the same question again and again and decides
which world it is. An event with probability q in one world has at most probability F(q) in the other, where the charged
privacy events of the answer give F:

    (epsilon, delta)    F(q) = e^epsilon q + delta
    Gaussian, mu        F(q) = Phi(Phi^-1(q) + mu)           Dong, Roth and Su 2022, Definition 2.6
    both                F1(F2(q))                            change one measurement after the other; F is concave

From counts, k of n answers in one world and j of m in the other, Clopper and Pearson's exact bounds low(k, n) and
high(j, m) hold together except with probability ALPHA. So low(k, n) > F(high(j, m)) says that the server has told more
than it charged.
"""

from __future__ import annotations

import asyncio
import csv
import itertools
import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest
from scipy.stats import beta, norm

from accountant.account import FilterKind, Limit
from mechanisms.calibrate import at_chosen_norms
from migrations.upgrade import upgrade
from privacy.loss import Loss
from server.app import create_app
from server.build import build_services
from server.journey import running
from server.services import Services
from server.settings import Settings
from tests.kept_workers import kept_workers

__all__ = [
    "ALPHA",
    "OTHERS",
    "Answer",
    "Event",
    "ask",
    "charged_for",
    "half_line",
    "learned",
    "less_noise",
    "most_likely",
    "told_too_much",
    "two_worlds",
    "without_waiting",
]

ALPHA = 1e-8
"""Probability that one event accuses a server that keeps its promise; a run of the audit looks at about fifty."""

TOGETHER = 8

_DATASET = """\
version: 2
dataset: {name}
unit: {{table: people, key: person_id}}
tables:
  people:
    source: {{file: {name}_people.csv}}
    key: person_id
    columns:
      person_id: {{type: integer, nullable: false}}
      age: {{type: integer, bounds: [0, 100], nullable: false}}
      town: {{type: text, nullable: false}}
  visits:
    source: {{file: {name}_visits.csv}}
    key: visit_id
    references: {{person_id: people.person_id}}
    contribution: {{rows_per_unit: 4, groups_per_unit: 1, rows_per_unit_and_group: 4}}
    columns:
      visit_id: {{type: integer, nullable: false}}
      person_id: {{type: integer, nullable: false}}
      ward: {{type: text}}
      cost: {{type: integer, bounds: [0, 100]}}
policy: {{epsilon_max: "100", delta_per_query: "1e-8"}}
"""

OTHERS = 18
"""People who are in both worlds: as many as a hidden group needs for an even chance to be shown."""

ROWS_OF_ONE = 5_000
"""Visits of the person who is in one world only; all of them cost the most that is possible."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What an analyst receives: the status and, of an answer, its rows."""

    status: int
    rows: tuple[tuple[Any, ...], ...]
    columns: int = 0
    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    releases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Event:
    """A set of answers."""

    name: str
    holds: Callable[[Answer], bool]


def most_likely(q: float, charged: Sequence[Loss]) -> float:
    """F(q): the greatest probability that an event of probability q may have in the other world."""
    for loss in charged:
        if loss.pure is not None:
            q = min(1.0, math.exp(loss.pure) * q + float(loss.delta))
    gaussian = [loss for loss in charged if loss.pure is None]
    # Corollary 3.3 there: Gaussian measurements together are one, whose mu squared is the sum.
    mu = math.sqrt(sum(loss.mu_squared or math.inf for loss in gaussian))
    return min(1.0, float(norm.cdf(norm.ppf(q) + mu)) + float(sum(loss.delta for loss in gaussian)))


def told_too_much(
    event: Event, here: Sequence[Answer], there: Sequence[Answer], charged: Sequence[Loss], *, alpha: float = ALPHA
) -> bool:
    """Whether the event's counts refute the price, in either direction; each of both errs with `alpha`."""
    return max(_gaps(event, here, there, charged, alpha)) > 0


def learned(here: Sequence[Answer], there: Sequence[Answer], charged: Sequence[Loss]) -> list[Event]:
    """For each number of the first row, the half-line that tells these answers apart best. To be tested on others."""
    columns = max((len(answer.rows[0]) for answer in (*here, *there) if answer.rows), default=0)
    events = []
    for place in range(columns):
        found = {answer.rows[0][place] for answer in (*here, *there) if answer.rows}
        numbers = sorted(number for number in found if isinstance(number, int | float))
        # Between two numbers: an event that ends at one of them would miss the next one just beyond it.
        candidates = [
            half_line(place, (one + next_one) / 2, above=above)
            for one, next_one in itertools.pairwise(numbers)
            for above in (True, False)
        ]
        if candidates:
            events.append(max(candidates, key=lambda event: max(_gaps(event, here, there, charged, 0.1))))
    return events


def half_line(place: int, number: float, *, above: bool) -> Event:
    """The first row's value is at least (or at most) a number. NULL is neither."""

    def holds(answer: Answer) -> bool:
        value = answer.rows[0][place] if answer.rows else None
        return value is not None and (value >= number if above else value <= number)

    return Event(f"column {place} {'>=' if above else '<='} {number}", holds)


def _gaps(
    event: Event, here: Sequence[Answer], there: Sequence[Answer], charged: Sequence[Loss], alpha: float
) -> list[float]:
    gaps = []
    for more, less in ((here, there), (there, here)):
        k, n = sum(map(event.holds, more)), len(more)
        j, m = sum(map(event.holds, less)), len(less)
        low = 0.0 if k == 0 else float(beta.ppf(alpha / 2, k, n - k + 1))
        high = 1.0 if j == m else float(beta.ppf(1 - alpha / 2, j + 1, m - j))
        gaps.append(low - most_likely(high, charged))
    return gaps


def charged_for(services: Services, answers: Sequence[Answer]) -> tuple[Loss, ...]:
    """The losses of the events that the ledger charged for these answers, which must be the same for all of them."""
    prices = set()
    for answer in answers:
        if answer.status == 200:
            releases = [services.ledger.release(one) for one in answer.releases]
            events = [event for release in releases if release is not None for event in release.events]
            assert None not in releases
            prices.add((answer.columns, answer.epsilon, answer.delta, tuple(events)))
    assert len(prices) == 1, f"price and shape of an answer depend on the world: {prices}"
    ((_, _, _, events),) = prices
    return tuple(event.loss() for event in events)


def _write(folder: Path, name: str, *, person: bool) -> Path:
    """Ordinary people with one free visit each; in one world also somebody with thousands of dear ones."""
    with (folder / f"{name}_people.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["person_id", "age", "town"])
        rows.writerows([i, 20 + i, "edge"] for i in range(OTHERS))
        if person:
            rows.writerow([OTHERS, 100, "edge"])
    with (folder / f"{name}_visits.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["visit_id", "person_id", "ward", "cost"])
        rows.writerows([i, i, "edge", 0] for i in range(OTHERS))
        if person:
            rows.writerows([OTHERS + i, OTHERS, "edge", 100] for i in range(ROWS_OF_ONE))
    path = folder / f"{name}.yaml"
    path.write_text(_DATASET.format(name=name))
    return path


@contextmanager
def two_worlds(home: Path) -> Iterator[tuple[Services, dict[FilterKind, str]]]:
    """Started services with the datasets `here` (one more person) and `there`, and a key for each kind of account."""
    sources = home / "sources"
    sources.mkdir(parents=True)
    settings = Settings(home=home, answer_tick_ms=1, requests_per_minute=1_000_000, requests_burst=1_000_000)
    upgrade(settings.database())
    with kept_workers():
        services = build_services(settings)
    try:
        for name, person in (("here", True), ("there", False)):
            path = _write(sources, name, person=person)
            services.registrar.attach_path(path, actor="test")  # type: ignore[attr-defined]
            _open_accounts(services, name)
        for kind in FilterKind:
            services.registry.create_principal(kind.value, "analyst", actor="test")
        keys = (services.registry.create_key(kind.value, label="", days=1, actor="test").text for kind in FilterKind)
        without_waiting(services)
        yield services, dict(zip(FilterKind, keys, strict=True))
    finally:
        services.jobs.close(seconds=5)
        for close in services.closing:
            close()


def without_waiting(services: Services) -> None:
    """Answers appear when they are made: what their visible moments tell is audited by tests of its own."""
    services.journey.pace.sleep = lambda _: None  # type: ignore[attr-defined]


def _open_accounts(services: Services, dataset: str) -> None:
    """A root, and an account for each kind: with pure loss and Laplace noise, and with delta, thresholds and Gauss."""
    ledger = services.ledger
    limit = Limit(Fraction(10_000), Fraction(1, 100))
    root = ledger.create_account(
        dataset=dataset, parent=None, principal=None, name="root", limit=limit, filter=FilterKind.APPROXIMATE,
        actor="test",
    )  # fmt: skip
    for kind in FilterKind:
        delta = Fraction(0) if kind is FilterKind.PURE else Fraction(1, 200)
        ledger.create_account(
            dataset=dataset, parent=root.id, principal=kind.value, name=kind.value, limit=Limit(Fraction(4_000), delta),
            filter=kind, actor="test",
        )  # fmt: skip


def ask(
    services: Services, key: str, sql: str, *, epsilon: str, times: int
) -> tuple[tuple[Answer, ...], tuple[Answer, ...]]:
    """The same question `times` times to each world over HTTP, each time with fresh noise."""

    async def all_of_them() -> tuple[tuple[Answer, ...], tuple[Answer, ...]]:
        transport = httpx.ASGITransport(app=create_app(services.settings, services=services))
        headers = {"Authorization": f"Bearer {key}"}
        worlds: dict[str, list[Answer]] = {"here": [], "there": []}
        work = iter([name for _ in range(times) for name in worlds])
        async with httpx.AsyncClient(transport=transport, base_url="http://test", timeout=60, headers=headers) as http:

            async def one_after_another() -> None:
                for name in work:
                    body = {"dataset": name, "sql": sql, "spend": {"epsilon": epsilon}, "reuse": "none"}
                    worlds[name].append(_answer(await http.post("/v1/queries", json=body)))

            await asyncio.gather(*(one_after_another() for _ in range(TOGETHER)))
        return tuple(worlds["here"]), tuple(worlds["there"])

    return asyncio.run(all_of_them())


def _answer(response: httpx.Response) -> Answer:
    if response.status_code != 200:
        return Answer(response.status_code, ())
    document = json.loads(response.content)
    (charged,) = document["accounting"]["charged"]
    return Answer(
        status=200,
        rows=tuple(tuple(row) for row in document["rows"]),
        columns=len(document["columns"]),
        epsilon=Fraction(charged["epsilon"]),
        delta=Fraction(charged["delta"]),
        releases=tuple(document["provenance"]["releases"]),
    )


def less_noise(patch: pytest.MonkeyPatch, *stages: ModuleType, by: int) -> None:
    """The stages draw a part of their noise; the check of what was reserved is gone as well."""
    right = at_chosen_norms

    def planted(calibration: Any, core: Any) -> Any:
        made = right(calibration, core)
        small = []
        for one in made.measurements:
            scales = {name: getattr(one, name) / by for name in ("sigma", "scale") if hasattr(one, name)}
            small.append(replace(one, **scales))
        return replace(made, measurements=tuple(small))

    for stage in stages:
        patch.setattr(stage, "at_chosen_norms", planted)
    patch.setattr(running, "require_reserved", lambda *_: None)
