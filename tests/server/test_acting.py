"""Services that act on behalf of people: the person pays, is limited and sees; the ledger names both."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from server import auth
from server.auth import ON_BEHALF_OF, Caller
from server.roles import Role
from server.scopes import Scope
from tests.server.conftest import World
from tests.server.test_dashboards import BODY as DASHBOARD

BODY = {"dataset": "clinic", "sql": "SELECT COUNT(*) AS n FROM patients", "spend": {"epsilon": "0.5"}, "wait_ms": 5000}


def service(world: World, role: str = "analyst", *scopes: str) -> None:
    """The client has the key of a service that may impersonate, ask and read, or what is named."""
    if world.registry.principal("portal") is None:
        world.registry.create_principal("portal", Role(role), actor="test")
    named = tuple(Scope(scope) for scope in scopes or ("read", "ask", "impersonate"))
    made = world.registry.create_key("portal", label="x", days=1, actor="test", scopes=named)
    world.api.keys["portal"] = made.text


def on_behalf(world: World, method: str, path: str, name: str, **more: Any) -> httpx.Response:
    return world.api.call(method, path, who="portal", headers={ON_BEHALF_OF: name}, **more)


def test_the_person_pays_and_the_ledger_names_both(world: World) -> None:
    """The charge is on the person's account, its entries name service and person, and the next request names nobody."""
    service(world)
    world.journey.gate.set()
    asked = on_behalf(world, "POST", "/v1/queries", "analyst", json=BODY)
    assert asked.status_code == 200, asked.text
    assert world.spent() > 0
    reserved = [entry for entry in world.ledger.entries(world.account.id) if entry.kind == "reserve"]
    details = json.loads(reserved[0].details)
    assert (details["actor"], details["principal"]) == ("portal", "analyst")
    record = world.ledger.query(asked.json()["id"])
    assert record is not None
    assert record.principal == "analyst"
    for who in ("analyst", "admin"):
        assert world.api.get(f"/v1/queries/{record.id}", who=who).status_code == 200
    assert world.api.get(f"/v1/queries/{record.id}", who="portal").status_code == 404, "it is the person's"
    assert on_behalf(world, "GET", f"/v1/queries/{record.id}", "analyst").status_code == 200
    assert on_behalf(world, "GET", f"/v1/queries/{record.id}", "other").status_code == 404
    world.api.post("/v1/queries", json={**BODY, "sql": "SELECT COUNT(age) AS n FROM patients"})
    own = [entry for entry in world.ledger.entries(world.account.id) if entry.kind == "reserve"][-1]
    assert "actor" not in json.loads(own.details)
    me = on_behalf(world, "GET", "/v1/me", "analyst").json()
    assert (me["name"], me["role"], me["actor"]) == ("analyst", "analyst", "portal")


@pytest.mark.parametrize("scopes", [("read", "ask"), ("administer",), None])
def test_a_key_without_the_scope_speaks_for_itself(world: World, scopes: tuple[str, ...] | None) -> None:
    """Keys of a whole role and keys of other scopes get the same refusal for people who exist and who do not."""
    service(world, "analyst", *(scopes or ()))
    if scopes is None:
        made = world.registry.create_key("portal", label="x", days=1, actor="test")
        world.api.keys["portal"] = made.text
    found = [on_behalf(world, "GET", "/v1/me", name) for name in ("analyst", "absent", "admin")]
    assert {(one.status_code, one.json()["code"], one.json()["what"]) for one in found} == {
        (403, "missing_scope", "your key lacks the scope impersonate")
    }


def test_whom_a_service_may_not_name_is_not_told_from_whom_there_is_not(world: World) -> None:
    """Administrators, auditors, disabled and absent principals: the same words; more than one name is refused."""
    service(world)
    world.registry.change_principal("other", actor="test", disabled=True)
    texts = set()
    for name in ("admin", "auditor", "other", "absent"):
        found = on_behalf(world, "GET", "/v1/budgets", name)
        assert (found.status_code, found.json()["code"]) == (403, "forbidden"), name
        texts.add((found.json()["what"], found.json()["why"]))
    assert len(texts) == 1
    for name in ("", "Ana", "analyst, other", "analyst\t", "x" * 64, "analyst/.."):
        assert on_behalf(world, "GET", "/v1/budgets", name).status_code in (403, 422), name


def test_a_service_has_nothing_that_neither_of_both_has(world: World) -> None:
    """A dashboard's key does not ask for an analyst; its scopes hold; nobody's administration is served."""
    service(world, "dashboard", "impersonate", "ask", "read", "administer", "audit")
    assert on_behalf(world, "POST", "/v1/queries", "analyst", json=BODY).json().get("code") == "forbidden"
    assert on_behalf(world, "GET", "/v1/budgets", "analyst").status_code == 200
    for path in ("/v1/keys", "/v1/principals", "/v1/audit-exports"):
        assert on_behalf(world, "GET", path, "owner").json()["code"] == "forbidden"
    service(world, "dashboard", "impersonate")
    assert on_behalf(world, "GET", "/v1/budgets", "analyst").json()["code"] == "missing_scope"
    world.registry.change_principal("portal", actor="test", role=Role.ADMIN)
    assert on_behalf(world, "GET", "/v1/budgets", "analyst").json()["code"] == "forbidden", "a key made before"


def test_requests_for_budgets_are_decided_in_person(world: World) -> None:
    """A portal that acts for an owner approves nothing for the owner; without the header the owner's key may try."""
    service(world, "owner")
    decided = {"state": "approved", "reason": "x"}
    found = on_behalf(world, "PATCH", "/v1/budget-requests/absent", "owner", json=decided)
    assert (found.status_code, found.json()["why"]) == (403, "Who decides about budgets does so in person.")
    assert world.api.call("PATCH", "/v1/budget-requests/absent", who="owner", json=decided).status_code == 404


def test_nobody_s_budget_is_lent_by_a_service(world: World) -> None:
    """A portal opens no envelope for itself below a person's budget, and ends none."""
    service(world)
    lent = {"principal": "portal", "limit": {"epsilon": "1", "delta": "0.0000001"}, "expires": "2027-01-01"}
    for act, body in (("lend", lent), ("recall", {"reason": "x"})):
        found = on_behalf(world, "POST", f"/v1/budgets/{world.account.id}:{act}", "analyst", json=body)
        assert (found.status_code, found.json()["why"]) == (403, "Who decides about budgets does so in person.")
    assert world.ledger.below(world.account.id) == []


def test_an_act_in_a_person_s_name_names_the_service(world: World) -> None:
    """The chain says which service did what the person did not do; what persons do themselves names nobody else."""
    service(world)
    assert on_behalf(world, "POST", "/v1/dashboards", "analyst", json=DASHBOARD).status_code == 201
    assert world.api.post("/v1/dashboards", json=DASHBOARD).status_code == 201
    found = [act for act in world.api.get("/v1/acts", who="admin").json()["acts"] if act["action"] == "dashboard_add"]
    assert [(act["actor"], act["details"].get("service")) for act in found] == [
        ("analyst", "portal"),
        ("analyst", None),
    ]


def test_a_twin_that_asks_the_person_only_is_caught(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the service's own role were not asked, a dashboard's key would ask for an analyst."""
    monkeypatch.setattr(Caller, "served_by", lambda caller, allowed: caller.role in allowed)
    service(world, "dashboard")
    with pytest.raises(AssertionError):
        test_a_service_has_nothing_that_neither_of_both_has(world)


def test_the_person_s_rate_is_used(world: World) -> None:
    """Requests on behalf of a person are the person's; refused ones are the service's own."""
    limits = world.api.app.state.limits
    limits.requests = type(limits.requests)(per_minute=60, burst=2, clock=lambda: 0.0)
    service(world)
    assert [on_behalf(world, "GET", "/v1/me", "analyst").status_code for _ in range(3)] == [200, 200, 429]
    assert world.api.get("/v1/me").status_code == 429
    assert on_behalf(world, "GET", "/v1/me", "owner").status_code == 200
    assert [on_behalf(world, "GET", "/v1/me", "absent").status_code for _ in range(3)] == [403, 403, 429]
    assert auth.ON_BEHALF_OF == "Noisegate-On-Behalf-Of"
