"""Stopping an analyst: one act freezes, suspends and cancels; and the way back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from server.stopping import StopWatch
from tests.server.conftest import World
from tests.server.fakes import query

WHY = {"reason": "a leaked key"}


def act(world: World, verb: str, name: str = "analyst", **arguments: Any) -> Any:
    """POST as the administrator."""
    return world.api.post(f"/v1/principals/{name}:{verb}", json=WHY, **{"who": "admin", **arguments})


def acts(world: World) -> list[tuple[str, str, Any]]:
    """Action, actor and details of every act about the analyst."""
    with world.registry._engine.connect() as connection:
        text = "SELECT action, actor, details FROM acts WHERE subject = 'analyst' ORDER BY sequence"
        return [(row[0], row[1], json.loads(row[2])) for row in connection.exec_driver_sql(text)]


def test_somebody_is_stopped_at_once_and_goes_on(world: World) -> None:
    """Keys, accounts and what waits, in one act that names the accounts; the way back gives all of it back."""
    assert world.api.post("/v1/queries", json=query()).status_code == 200
    stopped = act(world, "stop")
    assert stopped.json() == {
        "principal": "analyst",
        "stopped": True,
        "budgets": [world.account.id],
        "cancelled": 1,
    }
    assert world.journey.cancelled == {"analyst"}
    assert world.api.get("/v1/me").status_code == 401
    assert world.ledger.account(world.account.id).frozen
    (made,) = (one for one in acts(world) if one[0] == "principal_stopped")
    assert (made[1], made[2]["accounts"], made[2]["reason"]) == ("admin", [world.account.id], WHY["reason"])
    assert world.ledger.audit().ok
    assert act(world, "stop").json()["budgets"] == [], "again: nothing more, and it can still be taken back"
    world.journey.cancelled.clear()
    assert StopWatch(world.services).look() == 1, "another process finds it by itself"
    assert act(world, "resume").json()["budgets"] == [world.account.id]
    assert world.api.post("/v1/queries", json=query()).status_code == 200
    assert act(world, "resume").status_code == 409
    assert StopWatch(world.services).look() == 0
    assert [action for action, *_ in acts(world)][-3:] == ["principal_stopped"] * 2 + ["principal_resumed"]
    assert world.ledger.audit().ok


def test_a_stop_takes_back_no_more_than_it_did(world: World) -> None:
    """Who was disabled before stays so."""
    world.api.call("PATCH", "/v1/principals/analyst", json={"disabled": True}, who="admin")
    act(world, "stop")
    act(world, "resume")
    assert world.api.get("/v1/me").status_code == 401
    assert not world.ledger.account(world.account.id).frozen


@pytest.mark.parametrize(("name", "status"), [("absent", 404), ("admin", 409), ("a:b", 404)])
def test_some_are_not_stopped(world: World, name: str, status: int) -> None:
    """Nobody of that name, and the last administrator: nothing is changed."""
    before = len(acts(world))
    assert act(world, "stop", name).status_code == status
    assert act(world, "resume", name).status_code in (404, 409)
    assert (len(acts(world)), world.registry.stopped()) == (before, ())
    assert act(world, "stop", who="auditor").status_code == 403
    assert act(world, "stop", who="analyst").status_code == 403
