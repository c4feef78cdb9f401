"""The OpenAPI document is kept: drawn requests get no answer that it does not describe.

The client of these tests compares status, media type and shape of each answer with the document (fakes.py).
"""

from __future__ import annotations

import asyncio
import random
from fractions import Fraction
from pathlib import Path

import pytest

from accountant.account import FilterKind, Limit
from server.app import create_app
from server.demo import write_demo
from server.openapi import openapi_document
from server.roles import Role
from tests.journey.clinic import attach, services_of
from tests.server.conftest import World
from tests.server.drawn_requests import Drawing, faults
from tests.server.fakes import Api


def drawn(api: Api, *, seed: int, count: int, known: list[str]) -> list[str]:
    """What is wrong with the answers to so many requests."""
    document = openapi_document(api.app)
    drawing = Drawing(document, random.Random(seed), known)
    wrong = []
    for request in drawing.requests(count):
        try:
            response = request.send(api)
        except Exception as error:
            said = f"{request.method} {request.path[:80]} {request.who} {request.headers} {request.content!r:.300}"
            wrong.append(f"{said}: {error!r:.300}")
            continue
        wrong += faults(document, request, response)
        if response.status_code in (201, 202) and response.headers.get("location"):
            drawing.known = [*drawing.known[-20:], response.headers["location"].rsplit("/", 1)[1]]
    return wrong


def test_no_answer_is_undocumented(world: World) -> None:
    """Six hundred requests, the same ones each time."""
    world.journey.gate.set()
    found = drawn(world.api, seed=15, count=600, known=[world.root.id, world.account.id])
    assert not found, "\n".join(found)


def test_an_answer_that_is_not_described_is_found(world: World) -> None:
    """Where the document lacked the refusals of a question, the same requests would say so."""
    world.journey.gate.set()
    described = world.api._document["paths"]["/v1/queries"]["post"]["responses"]
    refused = described.pop("422")
    try:
        assert any("POST /v1/queries" in one for one in drawn(world.api, seed=15, count=400, known=[]))
    finally:
        described["422"] = refused


def _tonight(part: int) -> int:
    """A seed that no other night has. It is no parameter: tests have the same names in every process that runs them."""
    return random.SystemRandom().randrange(10**9) * 10 + part


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(4))
def test_no_answer_is_undocumented_in_many(world: World, part: int) -> None:
    """Forty thousand others, new ones each night; what fails says its seed."""
    seed = _tonight(part)
    world.journey.gate.set()
    found = drawn(world.api, seed=seed, count=10_000, known=[world.root.id, world.account.id])
    assert not found, "\n".join([f"seed {seed}", *found])


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(2))
def test_no_answer_of_real_parts_is_undocumented(tmp_path: Path, part: int) -> None:
    """Six thousand to a whole server with the demo's data, whose examples are answered; new ones each night."""
    seed = _tonight(part)
    write_demo(tmp_path / "datasets")
    with services_of(tmp_path) as services, asyncio.Runner() as runner:
        attach(services, tmp_path / "datasets" / "demo.yaml")
        keys: dict[str, str] = {}
        known: list[str] = []
        for name in ("admin", "owner", "analyst", "other", "dashboard", "auditor"):
            services.registry.create_principal(name, Role("analyst" if name == "other" else name), actor="test")
            keys[name] = services.registry.create_key(name, label="test", days=30, actor="test").text
        for who in (None, "admin", "owner", "analyst"):
            made = services.ledger.create_account(
                dataset="demo",
                parent=known[0] if known else None,
                principal=who,
                name=who or "root",
                limit=Limit(Fraction(500), Fraction(1, 10**4)),
                filter=FilterKind.APPROXIMATE,
                actor="test",
            )
            known.append(made.id)
        api = Api(create_app(services.settings, services=services), runner, keys)
        found = drawn(api, seed=seed, count=3_000, known=known)
        api.close()
    assert not found, "\n".join([f"seed {seed}", *found])
