"""Scopes narrow a role and never widen it; keys are rotated with a grace or at once."""

from __future__ import annotations

import datetime
import json
import re

import pytest
from fastapi.routing import APIRoute
from sqlalchemy import select

from accountant.tables import acts
from server.auth import Access, access_of
from server.roles import Role
from server.scopes import Scope, read_scopes, scope_of, stored_scopes
from server.store.errors import KeyEnded, KeyRefused
from server.store.people import GRACE_MINUTES_MAX
from server.store.registry import Registry
from tests.clocks import Clock
from tests.server.conftest import NOW, World

OWN_SCOPES = {"/metrics": "metrics", "/v1/audit-exports": "audit", "/v1/acts": "audit"}


def scope_at(route: APIRoute, method: str) -> str | None:
    """The scope that docs/api.md states for a route, said again."""
    access = access_of(route)
    assert access is not None
    if not access.allowed or route.path == "/v1/me":
        return None
    if method == "GET":
        return OWN_SCOPES.get(route.path, "read")
    if route.path.endswith(":estimate") or route.path == "/v1/estimates":
        return "estimate"
    return "administer" if access.allowed == {Role.ADMIN} else "ask"


def widening(access: Access, method: str, path: str) -> Scope | None:
    """A twin with an error: what changes something needs no more than reading."""
    return Scope.READ


def walk(world: World) -> list[str]:
    """Every route with keys of two roles and few scopes: where the answer is not the documented one."""
    api, registry, wrong = world.api, world.registry, []
    held = {("analyst", "read"), ("admin", "ask"), ("admin", "administer")}
    for role, scope in held:
        made = registry.create_key(role, label="x", days=1, actor="test", scopes=(Scope(scope),))
        api.keys[f"{role} {scope}"] = made.text
    for route in api.app.routes:
        assert isinstance(route, APIRoute)
        access = access_of(route)
        assert access is not None
        if not access.allowed:
            continue
        address = re.sub(r"\{[a-z_]+\}", "absent", route.path)
        for method in route.methods:
            for role, scope in held:
                found = api.call(method, address, who=f"{role} {scope}")
                code = found.json().get("code", "") if found.status_code >= 400 else ""
                needed = scope_at(route, method)
                if role not in access.allowed:
                    fits = (found.status_code, code) == (403, "forbidden")
                elif needed in (None, scope):
                    fits = code not in ("forbidden", "missing_scope", "unauthenticated")
                else:
                    fits = (found.status_code, code) == (403, "missing_scope")
                if not fits:
                    wrong.append(f"{method} {route.path} {role} {scope}: {found.status_code} {code}")
    return wrong


def test_every_route_with_narrow_keys(world: World) -> None:
    """A role that is not served stays out whatever the scope; a role that is served needs the scope of the route."""
    assert walk(world) == []


def test_the_walk_finds_a_scope_that_is_too_wide(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where reading were enough to ask or to administer, the walk says so."""
    monkeypatch.setattr(Access, "needs", widening)
    assert any("POST /v1/queries analyst read" in line for line in walk(world))


def test_scopes_are_read_whole_or_refused() -> None:
    """Unknown words, none at all and overseers who would impersonate are refused; words of later versions are none."""
    assert read_scopes(["ask", "read", "ask"], Role.ANALYST) == (Scope.READ, Scope.ASK)
    for words, role, said in (
        (["raed"], Role.ANALYST, "did you mean read"),
        ([], Role.ANALYST, "at least one"),
        (["impersonate"], Role.ADMIN, "administrators"),
        (["impersonate"], Role.AUDITOR, "auditors"),
    ):
        with pytest.raises(ValueError, match=said):
            read_scopes(words, role)
    assert stored_scopes("read later") == (Scope.READ,)
    assert stored_scopes("later") == ()
    assert stored_scopes(None) is None
    assert scope_of("PATCH", "/v1/x", [Role.ADMIN, Role.OWNER]) is Scope.ASK


def test_keys_with_unknown_scopes_change_nothing(world: World) -> None:
    """Over HTTP an unknown scope is refused with the known ones, and no key is made."""
    before = world.registry.keys(principal="analyst")
    for scopes in (["everything"], [], ["read", 1], "read"):
        made = world.api.post("/v1/keys", json={"principal": "analyst", "scopes": scopes}, who="admin")
        assert (made.status_code, made.json()["code"]) == (422, "invalid_request"), scopes
    made = world.api.post("/v1/keys", json={"principal": "admin", "scopes": ["impersonate"]}, who="admin")
    assert made.status_code in (409, 422)
    assert world.registry.keys(principal="analyst") == before


def test_the_caller_sees_its_scopes(world: World) -> None:
    """GET /v1/me serves a key of any scope, and shows what it is for."""
    made = world.api.post("/v1/keys", json={"principal": "analyst", "scopes": ["ask", "read"]}, who="admin").json()
    assert made["scopes"] == ["read", "ask"]
    me = world.api.get("/v1/me", who=None, headers={"Authorization": f"Bearer {made['key']}"}).json()
    assert (me["scopes"], me["actor"]) == (["read", "ask"], None)
    assert world.api.get("/v1/me").json()["scopes"] is None


def test_a_rotated_secret_works_for_its_grace(registry: Registry, clock: Clock[datetime.datetime]) -> None:
    """The old secret works until the stated moment, the newest all the time, and one before the old one never."""
    registry.create_principal("ina", "analyst", actor="test")
    first = registry.create_key("ina", label="x", days=1, actor="test", scopes=(Scope.READ,))
    second = registry.rotate_key(first.key.id, grace_minutes=60, days=None, actor="test")
    assert (second.key.id, second.key.expires, second.key.scopes) == (first.key.id, first.key.expires, (Scope.READ,))
    assert second.text != first.text
    for text in (first.text, second.text):
        assert registry.verify_key(text)[0].name == "ina"
    clock.now = NOW + datetime.timedelta(minutes=60)
    with pytest.raises(KeyRefused, match="rotated"):
        registry.verify_key(first.text)
    third = registry.rotate_key(first.key.id, grace_minutes=60, days=2, actor="test")
    with pytest.raises(KeyRefused, match="invalid"):
        registry.verify_key(first.text)
    assert registry.verify_key(second.text)[1].id == registry.verify_key(third.text)[1].id
    assert third.key.expires > first.key.expires
    fourth = registry.rotate_key(first.key.id, grace_minutes=0, days=None, actor="test")
    assert fourth.key.previous_until is None
    with pytest.raises(KeyRefused, match="invalid"):
        registry.verify_key(third.text)
    assert ("key_rotated", f"ina/{first.key.id}") in [act[3:] for act in registry.acts()]
    with registry._engine.connect() as connection:
        details = [json.loads(text) for text in connection.execute(select(acts.c.details)).scalars()]
    assert {one["scopes"] for one in details if "scopes" in one} == {"read"}, "the chain says what a key is for"
    assert [one["previous_until"] for one in details if "previous_until" in one][2] is None


def test_a_grace_never_outlives_the_key(registry: Registry, clock: Clock[datetime.datetime]) -> None:
    """The old secret stops at the expiry that it had; ended keys get no new secret; bounds are refused."""
    registry.create_principal("ina", "analyst", actor="test")
    first = registry.create_key("ina", label="x", days=1, actor="test")
    made = registry.rotate_key(first.key.id, grace_minutes=GRACE_MINUTES_MAX, days=90, actor="test")
    assert made.key.previous_until == first.key.expires
    for minutes, days in ((-1, None), (GRACE_MINUTES_MAX + 1, None), (0, 0), (0, 3651)):
        with pytest.raises(ValueError, match=r"minutes|lives"):
            registry.rotate_key(first.key.id, grace_minutes=minutes, days=days, actor="test")
    registry.revoke_key(first.key.id, actor="test")
    with pytest.raises(KeyEnded):
        registry.rotate_key(first.key.id, grace_minutes=0, days=None, actor="test")
    for text in (first.text, made.text):
        with pytest.raises(KeyRefused, match="revoked"):
            registry.verify_key(text)


def test_rotation_over_http(world: World) -> None:
    """A new text once, the old one stopped; a retry changes nothing and shows no text; an absent key is 404."""
    key_id = world.api.keys["other"].split("_")[1]
    headers = {"Idempotency-Key": "rotate-1"}
    first = world.api.post(f"/v1/keys/{key_id}:rotate", json={}, who="admin", headers=headers)
    assert first.status_code == 200
    assert world.api.get("/v1/me", who="other").status_code == 401
    again = world.api.post(f"/v1/keys/{key_id}:rotate", json={}, who="admin", headers=headers)
    assert again.json() == {**first.json(), "key": None}
    world.api.keys["other"] = first.json()["key"]
    assert world.api.get("/v1/me", who="other").json()["key"] == key_id
    assert world.api.post("/v1/keys/absent:rotate", json={}, who="admin").status_code == 404
    world.api.call("DELETE", f"/v1/keys/{key_id}", who="admin")
    assert world.api.post(f"/v1/keys/{key_id}:rotate", json={}, who="admin").status_code == 409
