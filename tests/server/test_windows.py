"""Windows of budgets over HTTP: set with a reason, shown beside the lifetime's loss, and a refusal that says when."""

from __future__ import annotations

from fractions import Fraction
from typing import Any
from unittest.mock import Mock

import pytest

from accountant.calendar import ACKNOWLEDGEMENT
from privacy.events import LaplaceEvent
from server.journey.wire_estimate import _exhausted
from tests.clocks import Clock
from tests.server.conftest import World
from tests.server.fakes import query

SLICES = {"kind": "yearly", "slices": 20}
DAILY = {
    "kind": "daily",
    "mode": "reset",
    "limit": {"epsilon": "1", "delta": "0.0000001"},
    "acknowledge": ACKNOWLEDGEMENT,
}


def change(world: World, window: Any, **more: Any) -> Any:
    """PATCH of the analyst's budget as the administrator."""
    body = {"window": window, "reason": "a part each year", **more}
    return world.api.call("PATCH", f"/v1/budgets/{world.account.id}", json=body, who="admin")


def test_slices_of_a_lifetime(world: World) -> None:
    """One slice of twenty: lifetime, window and projection are shown; what does not fit is refused with its moment."""
    world.ledger._clock = Clock(world.account.created)  # else a day or a year may begin meanwhile
    set_ = change(world, SLICES)
    assert set_.status_code == 200, set_.text
    shown = set_.json()
    limit = float(shown["limit"]["epsilon"])
    assert (shown["window"]["unlocked"], shown["window"]["slices"]) == (1, 20)
    assert float(shown["remaining"]["epsilon"]) == pytest.approx(limit / 20)
    assert float(shown["lifetime"]["remaining"]["epsilon"]) == limit
    assert shown["window"]["next"]["at"] == shown["window"]["ends"]
    large = query(spend={"epsilon": str(limit / 4)})
    refused = world.api.post("/v1/queries", json=large)
    assert (refused.status_code, refused.json()["code"]) == (403, "budget_exhausted")
    year = int(shown["window"]["begins"][:4])
    assert refused.json()["available_at"] == f"{year + 4}-01-01T00:00:00+00:00"
    assert refused.json()["turns_at"] == shown["window"]["next"]["at"]
    assert "Wait until" in refused.json()["instead"][0]
    assert world.api.post("/v1/queries", json=query(spend={"epsilon": str(limit / 50)})).status_code == 200
    after = world.api.get(f"/v1/budgets/{world.account.id}").json()
    assert after["window"]["loss"] == after["lifetime"]["loss"]
    assert float(after["projection"]["in_a_year"]) == limit
    assert after["projection"]["grounds"]["days"] == 1
    entry = world.api.get(f"/v1/budgets/{world.account.id}/entries").json()["entries"][1]
    assert (entry["details"]["action"], entry["details"]["actor"]) == ("window", "admin")
    assert change(world, "none").json()["window"] is None


@pytest.mark.parametrize(
    ("window", "status"),
    [
        ({**DAILY, "acknowledge": "yes"}, 422),
        ({**DAILY, "limit": {"epsilon": "0", "delta": "0"}}, 422),
        ({**DAILY, "limit": {"epsilon": "1000", "delta": "0.0000001"}}, 422),
        ({**DAILY, "limit": {"epsilon": "0.000000000001", "delta": "0.0000001"}}, 422),
        ({"kind": "daily", "starts": "2026-05-01", "ends": "2026-04-01"}, 422),
        ({"kind": "daily", "starts": "2026-05-01", "ends": "2026-05-01"}, 422),
        ({"kind": "daily", "starts": "2026-5-1", "slices": 3}, 422),
        ({"kind": "daily", "slices": 1}, 422),
        ({"kind": "hourly", "slices": 3}, 422),
        ({"kind": "daily"}, 422),
        ("none", 422),
    ],
)
def test_windows_that_are_none(world: World, window: Any, status: int) -> None:
    """Reversed, empty, too small, unacknowledged ones are refused, and the account stays as it was."""
    before = world.ledger.account(world.account.id)
    refused = change(world, window)
    assert refused.status_code == status, refused.text
    assert world.ledger.account(world.account.id) == before


def test_a_change_is_of_one_thing_and_of_what_was_read(world: World) -> None:
    """Limit and window together are refused, neither too; a stale tag is 412; analysts set nothing."""
    path = f"/v1/budgets/{world.account.id}"
    tag = {"If-Match": world.api.get(path, who="admin").headers["etag"]}
    limit = {"limit": {"epsilon": "2", "delta": "0.000001"}}
    assert change(world, SLICES, **limit).status_code == 422
    assert world.api.call("PATCH", path, json={"reason": "none"}, who="admin").status_code == 422
    assert change(world, DAILY).status_code == 200
    body = {"window": SLICES, "reason": "too late"}
    assert world.api.call("PATCH", path, json=body, who="admin", headers=tag).status_code == 412
    assert world.api.call("PATCH", path, json=body).status_code == 403


def test_a_shared_window_shows_its_turn_alone(world: World) -> None:
    """Where the root's window refuses, an analyst learns when it turns, which follows from its rule, and no more."""
    world.api.call("PATCH", f"/v1/budgets/{world.root.id}", json={"window": SLICES, "reason": "all"}, who="admin")
    limit = float(world.api.get(f"/v1/budgets/{world.account.id}").json()["limit"]["epsilon"])
    refused = world.api.post("/v1/queries", json=query(spend={"epsilon": str(limit)})).json()
    assert (refused["code"], refused["budget"], refused["available_at"]) == ("budget_exhausted", None, None)
    assert refused["turns_at"].endswith("-01-01T00:00:00+00:00")


def test_an_estimate_says_when(world: World) -> None:
    """In the words of the refusal: when it fits the caller's own window, and of a shared one when it turns."""
    change(world, SLICES)
    loss = LaplaceEvent(l1_sensitivity=world.account.limit.epsilon / 4, scale=Fraction(1)).loss()
    quote = Mock(path=world.ledger.path(world.account.id), priced=Mock(loss=loss))
    said: Any = _exhausted(quote)
    assert "Wait until" in said["instead"][0]
    change(world, "none")
    world.api.call("PATCH", f"/v1/budgets/{world.root.id}", json={"window": SLICES, "reason": "all"}, who="admin")
    quote.path = world.ledger.path(world.account.id)
    said = _exhausted(quote)
    assert "next window of the budget begins" in said["instead"][0]


def test_a_budget_is_opened_with_a_window(world: World) -> None:
    """The grant says so, and a window that no answer fits opens nothing."""
    body = {"dataset": "clinic", "principal": "other", "limit": {"epsilon": "5", "delta": "0.000001"}}
    small = {"kind": "daily", "slices": 10_000}
    tiny = {**body, "limit": {"epsilon": "0.0000001", "delta": "0.000001"}, "window": small}
    assert world.api.post("/v1/budgets", json=tiny, who="admin").status_code == 422
    opened = world.api.post("/v1/budgets", json={**body, "window": DAILY}, who="admin")
    assert opened.status_code == 201, opened.text
    assert opened.json()["window"]["limit"] == DAILY["limit"]
    assert world.ledger.audit().ok
