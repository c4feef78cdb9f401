"""GET /v1/accounting/simulate: figures for everyone, refusals for what cannot be meant."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from server.routes import accounting
from server.wire.accounting import SimulationAnswer
from tests.server.conftest import World


def test_a_simulation(world: World) -> None:
    """Shows the table of ways for a kind of question, and that it matches its model."""
    reply = world.api.get("/v1/accounting/simulate?kind=gaussian&standard_deviation=100&counts=1,10")
    assert reply.status_code == 200
    found = reply.json()
    SimulationAnswer.model_validate(found)
    assert found["counts"] == [1, 10]
    assert found["question"] == {"kind": "gaussian", "epsilon": None, "mu": 0.01, "standard_deviation": 100.0}
    ways = {way["name"]: way for way in found["ways"]}
    assert ways["gaussian"]["questions"] == 560
    assert ways["gaussian"]["here"] is True
    assert "sum" not in ways
    assert world.spent() == 0


def test_its_defaults(world: World) -> None:
    """Shows what is simulated when nothing is said: 564 is the best that can be known of Laplace noise at 0.01."""
    found = world.api.get("/v1/accounting/simulate").json()
    assert found["limit"] == {"epsilon": "1", "delta": "0.000001"}
    assert {way["name"]: way["questions"] for way in found["ways"]}["distribution"] == 564


@pytest.mark.sparse(4)
@pytest.mark.parametrize(
    "text",
    [
        "kind=cauchy",
        "epsilon=0",
        "epsilon=nan",
        "epsilon=1e7",
        "delta=0.5",
        "delta=1e-12",
        "each=0",
        "each=1000",
        "each=0.1&standard_deviation=10",
        "kind=selection&standard_deviation=10",
        "standard_deviation=0",
        "counts=",
        "counts=0",
        "counts=-1",
        "counts=1,x",
        "counts=99999999",
        "counts=" + ",".join(["1"] * 25),
    ],
)
def test_what_cannot_be_meant(world: World, text: str) -> None:
    """Shows a refusal with its reason for each."""
    reply = world.api.get(f"/v1/accounting/simulate?{text}")
    assert reply.status_code == 422
    problem = reply.json()
    assert problem["code"] == "invalid_request"
    assert problem["instead"]
    assert problem["charged"] is False


def test_arithmetic_is_done_in_turn_with_estimates(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that it takes the threads that are given to callers in turn: forty-five requests for large counts took all
    threads of the server, and everybody else waited for twenty seconds."""
    seen = []
    genuine = accounting._simulate

    def simulate(*arguments: Any) -> Any:
        seen.append(threading.current_thread().name)
        return genuine(*arguments)

    monkeypatch.setattr(accounting, "_simulate", simulate)
    assert world.api.get("/v1/accounting/simulate?counts=1").status_code == 200
    assert [name.rpartition("_")[0] for name in seen] == ["admit"]
