"""Deny by default: every route with every role and with none; what belongs to others is not there."""

from __future__ import annotations

import datetime
import re
from typing import Annotated

import pytest
from fastapi import APIRouter, Depends, FastAPI
from fastapi.routing import APIRoute

from server.app import create_app
from server.auth import PUBLIC, Caller, access_of, roles, undeclared_routes
from server.roles import Role
from server.routes import queries
from tests.server.conftest import World

PRINCIPALS = {
    "admin": "admin",
    "owner": "owner",
    "analyst": "analyst",
    "dashboard": "dashboard",
    "auditor": "auditor",
}

TABLE = """
GET    /                                         public
GET    /docs                                     public
GET    /docs/docs.css                            public
GET    /docs/docs.js                             public
GET    /healthz                                  public
GET    /metrics                                  admin auditor
GET    /openapi.json                             public
GET    /problems/{code}                          public
GET    /readyz                                   public
GET    /v1/accounting/simulate                   admin analyst auditor dashboard owner
GET    /v1/acts                                  admin auditor
GET    /v1/audit-exports                         admin auditor
GET    /v1/batches                               admin analyst auditor owner
POST   /v1/batches                               admin analyst owner
GET    /v1/batches/{batch_id}                    admin analyst auditor owner
POST   /v1/batches/{batch_id}:cancel             admin analyst owner
POST   /v1/batches:estimate                      admin analyst owner
GET    /v1/budget-requests                       admin analyst auditor owner
POST   /v1/budget-requests                       admin analyst owner
GET    /v1/budget-requests/{request_id}          admin analyst auditor owner
PATCH  /v1/budget-requests/{request_id}          admin analyst owner
GET    /v1/budgets                               admin analyst auditor dashboard owner
POST   /v1/budgets                               admin
GET    /v1/budgets/{budget_id}                   admin analyst auditor dashboard owner
PATCH  /v1/budgets/{budget_id}                   admin
GET    /v1/budgets/{budget_id}/entries           admin analyst auditor dashboard owner
POST   /v1/budgets/{budget_id}:adjust            admin
POST   /v1/budgets/{budget_id}:lend              admin analyst owner
POST   /v1/budgets/{budget_id}:recall            admin analyst owner
GET    /v1/capabilities                          admin analyst auditor dashboard owner
GET    /v1/collectors                            admin analyst auditor dashboard owner
POST   /v1/collectors                            admin
DELETE /v1/collectors/{collector_id}             admin
GET    /v1/collectors/{collector_id}             admin analyst auditor dashboard owner
GET    /v1/collectors/{collector_id}/estimates   admin analyst auditor dashboard owner
GET    /v1/collectors/{collector_id}/question    public
POST   /v1/collectors/{collector_id}/reports     public
POST   /v1/collectors/{collector_id}/tokens      admin
GET    /v1/dashboards                            admin analyst auditor dashboard owner
POST   /v1/dashboards                            admin analyst owner
DELETE /v1/dashboards/{dashboard_id}             admin analyst owner
GET    /v1/dashboards/{dashboard_id}             admin analyst auditor dashboard owner
PUT    /v1/dashboards/{dashboard_id}             admin analyst owner
POST   /v1/dashboards/{dashboard_id}:pause       admin analyst owner
POST   /v1/dashboards/{dashboard_id}:resume      admin analyst owner
GET    /v1/dashboards/{dashboard_id}/links       admin analyst auditor owner
POST   /v1/dashboards/{dashboard_id}/links       admin analyst owner
DELETE /v1/dashboards/{dashboard_id}/links/{link_id} admin analyst owner
GET    /v1/dashboards/{dashboard_id}/tiles/{tile} admin analyst auditor dashboard owner
GET    /v1/dashboards/{dashboard_id}/tiles/{tile}/history admin analyst auditor dashboard owner
POST   /v1/dashboards/{dashboard_id}/tiles/{tile}:refresh admin analyst owner
GET    /v1/datasets                              admin analyst auditor dashboard owner
POST   /v1/datasets                              admin
DELETE /v1/datasets/{dataset}                    admin
GET    /v1/datasets/{dataset}                    admin analyst auditor dashboard owner
PUT    /v1/datasets/{dataset}                    admin
POST   /v1/datasets/{dataset}/profile            admin
GET    /v1/datasets/{dataset}/statistics         admin analyst auditor owner
GET    /v1/datasets/{dataset}/tables/{table}     admin analyst auditor dashboard owner
GET    /v1/datasets/{dataset}/versions           admin auditor
POST   /v1/estimates                             admin analyst owner
GET    /v1/keys                                  admin
POST   /v1/keys                                  admin
DELETE /v1/keys/{key_id}                         admin
GET    /v1/keys/{key_id}                         admin
POST   /v1/keys/{key_id}:rotate                  admin
GET    /v1/me                                    admin analyst auditor dashboard owner
GET    /v1/models                                admin analyst auditor owner
POST   /v1/models                                admin analyst owner
GET    /v1/models/{model_id}                     admin analyst auditor owner
POST   /v1/models/{model_id}:cancel              admin analyst owner
POST   /v1/models:estimate                       admin analyst owner
GET    /v1/monitors                              admin analyst auditor owner
POST   /v1/monitors                              admin analyst owner
GET    /v1/monitors/{monitor_id}                 admin analyst auditor owner
DELETE /v1/monitors/{monitor_id}                 admin analyst owner
POST   /v1/monitors/{monitor_id}/evaluations     admin analyst owner
POST   /v1/monitors:estimate                     admin analyst owner
POST   /v1/statistics                            admin analyst owner
POST   /v1/statistics:estimate                   admin analyst owner
GET    /v1/streams                               admin analyst auditor owner
POST   /v1/streams                               admin analyst owner
DELETE /v1/streams/{stream_id}                   admin analyst owner
GET    /v1/streams/{stream_id}                   admin analyst auditor owner
POST   /v1/streams/{stream_id}/queries           admin analyst owner
POST   /v1/streams:estimate                      admin analyst owner
GET    /v1/synthetic                             admin analyst auditor owner
POST   /v1/synthetic                             admin analyst owner
POST   /v1/synthetic:estimate                    admin analyst owner
GET    /v1/synthetic/{synthetic_id}              admin analyst auditor owner
DELETE /v1/synthetic/{synthetic_id}              admin analyst owner
POST   /v1/synthetic/{synthetic_id}:cancel       admin analyst owner
GET    /v1/principals                            admin
POST   /v1/principals                            admin
POST   /v1/ledger:acknowledge-restore            admin
GET    /v1/proposals                             admin auditor
GET    /v1/proposals/{proposal_id}               admin auditor
PATCH  /v1/proposals/{proposal_id}               admin
POST   /v1/principals/{name}:resume              admin
POST   /v1/principals/{name}:stop                admin
GET    /v1/principals/{name}                     admin
PATCH  /v1/principals/{name}                     admin
GET    /v1/team/questions-left                   admin auditor
GET    /v1/team/running-out                      admin auditor
GET    /v1/team/spending                         admin auditor
GET    /v1/webhooks                              admin analyst auditor owner
POST   /v1/webhooks                              admin analyst owner
DELETE /v1/webhooks/{webhook_id}                 admin analyst owner
GET    /v1/webhooks/{webhook_id}                 admin analyst auditor owner
GET    /v1/webhooks/{webhook_id}/deliveries      admin analyst auditor owner
POST   /v1/webhooks/{webhook_id}:test            admin analyst owner
GET    /v1/queries                               admin analyst auditor owner
POST   /v1/queries                               admin analyst owner
GET    /v1/queries/{query_id}                    admin analyst auditor owner
POST   /v1/queries/{query_id}:cancel             admin analyst owner
POST   /v1/queries/{query_id}:sharpen            admin analyst owner
GET    /v1/releases/{release_id}                 admin analyst auditor dashboard owner
"""
"""The whole surface. A route that is added or opened to another role is a change of this table."""

ROWS = [re.split(r"\s+", line, maxsplit=2) for line in TABLE.strip().splitlines()]


def declared(app: FastAPI) -> set[tuple[str, str, str]]:
    """Method, path and roles of every route."""
    rows = set()
    for route in app.routes:
        assert isinstance(route, APIRoute)
        access = access_of(route)
        assert access is not None
        for method in route.methods:
            rows.add((method, route.path, " ".join(sorted(access.allowed)) or "public"))
    return rows


def test_the_surface_is_the_table(world: World) -> None:
    """Routes and roles are exactly those of the table."""
    assert {tuple(row) for row in ROWS} == declared(world.api.app)


@pytest.mark.parametrize(("method", "path", "allowed"), ROWS, ids=[f"{row[0]} {row[1]}" for row in ROWS])
@pytest.mark.sparse(8)
def test_every_route_with_every_role_and_with_none(world: World, method: str, path: str, allowed: str) -> None:
    """Without a key 401, with another role 403, with a right one neither; public routes need no key."""
    address = re.sub(r"\{[a-z_]+\}", "absent", path)
    nobody = world.api.call(method, address, who=None)
    if allowed == "public":
        assert nobody.status_code not in (401, 403)
        return
    assert (nobody.status_code, nobody.json()["code"]) == (401, "unauthenticated")
    assert nobody.headers["www-authenticate"].startswith("Bearer")
    for who, role in PRINCIPALS.items():
        response = world.api.call(method, address, who=who)
        if role in allowed.split():
            assert response.status_code not in (401, 403), (who, response.text)
        else:
            assert (response.status_code, response.json()["code"]) == (403, "forbidden"), who


def test_a_route_without_a_declaration_is_found(monkeypatch: pytest.MonkeyPatch, world: World) -> None:
    """Routes without access, or with two, are undeclared, and the application refuses to start with one."""
    router = APIRouter()

    @router.get("/none")
    async def none() -> None: ...

    @router.get("/two")
    async def two(a: Annotated[Caller, Depends(roles("admin"))], b: Annotated[Caller, Depends(PUBLIC)]) -> None: ...

    @router.get("/one")
    async def one(a: Annotated[Caller, Depends(roles("admin"))]) -> None: ...

    assert undeclared_routes(list(router.routes)) == ["/none", "/two"]
    monkeypatch.setattr(queries, "router", router)
    with pytest.raises(RuntimeError, match="/none"):
        create_app(world.settings, services=world.services)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        "Basic YWRtaW46YWRtaW4=",
        "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.",
        "Bearer ngk_",
        "Bearer ngk_000000000000_" + "A" * 49,
        "ngk_000000000000_" + "A" * 49,
    ],
)
def test_other_credentials_are_refused(world: World, header: str) -> None:
    """Unsigned tokens, other schemes, malformed and unknown keys are all 401."""
    response = world.api.get("/v1/me", who=None, headers={"Authorization": header})
    assert (response.status_code, response.json()["code"]) == (401, "unauthenticated")
    assert response.headers["cache-control"] == "no-store"


def test_identity_comes_from_the_key_alone(world: World) -> None:
    """Headers that name somebody else change nothing; two credentials in one request are refused."""
    forged = {"X-Forwarded-User": "admin", "X-Principal": "admin", "X-Role": "admin", "Remote-User": "admin"}
    assert world.api.get("/v1/me", headers=forged).json()["name"] == "analyst"
    assert world.api.get(f"/v1/me?key={world.api.keys['admin']}", who=None).status_code in (401, 422)
    twice = [("Authorization", f"Bearer {world.api.keys[who]}") for who in ("analyst", "admin")]
    assert world.api.get("/v1/me", who=None, headers=dict(twice[:1])).status_code == 200
    import httpx

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(world.api.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.get("/v1/me", headers=twice)

    assert world.api._runner.run(send()).status_code == 401


def test_a_mistyped_key_is_not_looked_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checksum refuses a key with one wrong character before the database is asked."""
    key = world.api.keys["analyst"]
    wrong = key[:-7] + ("a" if key[-7] != "a" else "b") + key[-6:]
    monkeypatch.setattr(world.registry, "_engine", None)
    response = world.api.get("/v1/me", who=None, headers={"Authorization": f"Bearer {wrong}"})
    assert response.status_code == 401


def test_expired_revoked_and_disabled_keys_stop_at_once(world: World) -> None:
    """A key stops working with the next request; the reason is told to whoever holds it."""
    key_id = world.api.keys["other"].split("_")[1]
    assert world.api.get("/v1/me", who="other").status_code == 200
    assert world.api.call("DELETE", f"/v1/keys/{key_id}", who="admin").status_code == 200
    revoked = world.api.get("/v1/me", who="other")
    assert revoked.status_code == 401
    assert "revoked" in revoked.json()["why"]
    world.api.call("PATCH", "/v1/principals/owner", who="admin", json={"disabled": True})
    assert "disabled" in world.api.get("/v1/me", who="owner").json()["why"]
    world.clock.now = world.clock.now.replace(year=2027)
    assert "expired" in world.api.get("/v1/me").json()["why"]


def test_every_route_with_keys_that_ended(world: World) -> None:
    """Expired, revoked, rotated, of a disabled principal: 401 everywhere, with the same words whatever the route."""
    registry, texts = world.registry, {}
    for name in ("expired", "revoked", "rotated", "disabled"):
        registry.create_principal(name, Role.ADMIN, actor="test")
        texts[name] = registry.create_key(name, label="x", days=1 if name == "expired" else 9, actor="test").text
    world.clock.now += datetime.timedelta(days=2)
    registry.revoke_key(texts["revoked"].split("_")[1], actor="test")
    registry.rotate_key(texts["rotated"].split("_")[1], grace_minutes=0, days=None, actor="test")
    registry.change_principal("disabled", disabled=True, actor="test")
    said = set()
    for name, text in texts.items():
        for method, path, allowed in ROWS:
            if allowed != "public":
                address, headers = re.sub(r"\{[a-z_]+\}", "absent", path), {"Authorization": f"Bearer {text}"}
                found = world.api.call(method, address, who=None, headers=headers)
                assert (found.status_code, found.json()["code"]) == (401, "unauthenticated"), (name, method, path)
                said.add((name, found.json()["why"]))
    assert len(said) == len(texts)


def test_wrong_keys_are_limited_per_address(world: World) -> None:
    """After the allowed number of wrong keys an address gets 429; a right key still works."""
    world.api.app.state.limits.failed_keys = type(world.api.app.state.limits.requests)(
        per_minute=3, burst=3, clock=lambda: 0.0
    )
    statuses = [world.api.get("/v1/me", who=None).status_code for _ in range(5)]
    assert statuses == [401, 401, 401, 429, 429]
    limited = world.api.get("/v1/me", who=None)
    assert limited.headers["retry-after"] == "20"
    assert world.api.get("/v1/me").status_code == 200


def test_requests_are_limited_per_principal(world: World) -> None:
    """Beyond the burst a principal gets 429 with Retry-After, and others are not touched."""
    limits = world.api.app.state.limits
    limits.requests = type(limits.requests)(per_minute=60, burst=2, clock=lambda: 0.0)
    assert [world.api.get("/v1/me").status_code for _ in range(3)] == [200, 200, 429]
    assert world.api.get("/v1/me").headers["retry-after"] == "1"
    assert world.api.get("/v1/me", who="other").status_code == 200
