"""Limits that processes share: the same answers as in memory, and never more than a bucket holds."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Sequence
from dataclasses import replace

import httpx
import pytest
from fastapi import FastAPI

from server.app import create_app
from server.free_answers import FreeAnswers, SharedFreeAnswers
from server.limits import RateLimit, SharedRateLimit
from server.store import shares
from server.store.registry import Registry
from tests.clocks import Clock
from tests.server.conftest import NOW, SECRET, World

BODY = {"dataset": "clinic", "sql": "SELECT slow FROM patients", "spend": {"epsilon": "0.1"}, "wait_ms": 0}


def test_the_database_answers_as_memory_does(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over moments that go on, stand still and go back, both take and refuse the same, and name the same wait."""
    clock, generator = Clock(1_000_000.0), random.Random(7)
    memory = RateLimit(per_minute=90, burst=4, clock=clock)
    shared = SharedRateLimit(registry, per_minute=90, burst=4)
    answers = []
    for _ in range(120):
        clock.now += generator.choice((0.0, 0.0, 0.1, 0.25, 1.0, 5.0, -2.0))
        words = {**shares._WORDS["sqlite"], "now": f"CAST({clock.now!r} AS REAL)"}
        monkeypatch.setitem(shares._WORDS, "sqlite", words)
        name = generator.choice("ab")
        answers.append((memory.take(name), shared.take(name)))
    assert {one == other for one, other in answers} == {True}
    assert {one > 0 for one, _ in answers} == {True, False}


def test_allowances_of_bytes_are_the_same_too(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    """What may be stored for free waits as long in the database as in memory, overdrafts included."""
    clock, generator = Clock(1_000_000.0), random.Random(8)
    memory = FreeAnswers(burst_bytes=20_000, bytes_per_second=1_000, clock=clock)
    shared = SharedFreeAnswers(registry, burst_bytes=20_000, bytes_per_second=1_000)
    waits = []
    for _ in range(60):
        clock.now += generator.choice((0.0, 0.5, 2.0, 9.0))
        words = {**shares._WORDS["sqlite"], "now": f"CAST({clock.now!r} AS REAL)"}
        monkeypatch.setitem(shares._WORDS, "sqlite", words)
        size = generator.choice((100, 3_000, 15_000))
        waits.append((memory.wait_seconds("ina"), shared.wait_seconds("ina")))
        for each in (memory, shared):
            each.take("ina", size)
    assert max(abs(one - other) for one, other in waits) == 0
    assert {one > 0 for one, _ in waits} == {True, False}
    assert shared.wait_seconds("berta") == 0


@pytest.mark.postgresql
def test_processes_share_one_bucket(world: World, postgresql_url: str) -> None:
    """Four threads of two registries take a burst of fifty together, and not one more."""
    both = [Registry(postgresql_url, secret=SECRET, clock=Clock(NOW)) for _ in range(2)]
    taken: list[int] = []

    def take(registry: Registry) -> None:
        shared = SharedRateLimit(registry, per_minute=1, burst=50)
        taken.extend(shared.take("somebody") for _ in range(20))

    threads = [threading.Thread(target=take, args=(registry,)) for registry in both * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(registry.shared for registry in both)
    assert taken.count(0) == 50
    assert all(1 <= wait <= 60 for wait in taken if wait)
    assert both[0].open_queries("ina", "clinic") == (0, 0)
    free = [SharedFreeAnswers(registry, burst_bytes=10_000, bytes_per_second=1) for registry in both]
    free[0].take("ina", 20_000)
    assert free[1].wait_seconds("ina") > 10_000
    both[0].create_principal("ina", "analyst", actor="test")
    headers = {"Authorization": f"Bearer {both[0].create_key('ina', label='x', days=1, actor='test').text}"}
    settings = world.settings.model_copy(update={"requests_burst": 2, "requests_per_minute": 1})
    served = [replace(world.services, registry=registry, settings=settings) for registry in both]
    taken = asyncio.run(_asked([create_app(settings, services=services) for services in served * 2], headers))
    assert taken == [200, 200, 429, 429], "the processes count together"
    for registry in both:
        registry.close()


async def _asked(apps: Sequence[FastAPI], headers: dict[str, str]) -> list[int]:
    """The status of one request to each application."""
    statuses = []
    for app in apps:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            statuses.append((await client.get("/v1/me", headers=headers)).status_code)
    return statuses


@pytest.mark.parametrize("limit", ["open_queries_per_principal", "open_queries_per_dataset"])
def test_open_queries_are_limited(world: World, limit: str) -> None:
    """One more than allowed is 429 with Retry-After, charged nothing, for those who may see the dataset."""
    services = world.services
    services.settings = services.settings.model_copy(update={limit: 1})
    world.journey.gate.clear()
    first = world.api.post("/v1/queries", json=BODY)
    assert first.status_code == 202, first.text
    spent = world.spent()
    second = world.api.post("/v1/queries", json={**BODY, "sql": "SELECT age, slow FROM patients"})
    assert (second.status_code, second.json()["code"], second.json()["charged"]) == (429, "rate_limited", False)
    assert int(second.headers["retry-after"]) >= 1
    assert world.spent() == spent
    stranger = world.api.post("/v1/queries", json=BODY, who="other")
    assert stranger.json()["code"] == "unknown_dataset", "who may not see the dataset does not learn that it is busy"
    world.journey.gate.set()
