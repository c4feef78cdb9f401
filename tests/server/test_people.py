"""Principals and keys over HTTP: shown once, revoked at once, never the last administrator."""

from __future__ import annotations

from typing import Any

import pytest

from tests.server.conftest import World


def test_a_key_is_shown_once_and_works(world: World) -> None:
    """POST shows the text; lists and reads do not; the key identifies its principal."""
    world.api.post("/v1/principals", json={"name": "ina", "role": "analyst"}, who="admin")
    made = world.api.post("/v1/keys", json={"principal": "ina", "label": "notebook", "days": 2}, who="admin")
    assert made.status_code == 201
    text = made.json()["key"]
    assert text.startswith(f"ngk_{made.json()['id']}_")
    assert made.json()["expires"] == "2026-03-03T12:00:00Z"
    me = world.api.get("/v1/me", who=None, headers={"Authorization": f"Bearer {text}"})
    named = {"name": "ina", "role": "analyst", "key": made.json()["id"], "expires": "2026-03-03T12:00:00Z"}
    assert me.json() == {**named, "scopes": None, "actor": None}
    secret = text.split("_")[2]
    for path in (made.headers["location"], "/v1/keys", "/v1/keys?principal=ina", "/v1/principals"):
        response = world.api.get(path, who="admin")
        assert response.status_code == 200
        assert secret not in response.text
    assert world.api.get(made.headers["location"], who="admin").json()["last_used_day"] == "2026-03-01"


def test_revoking_is_seen_and_can_be_repeated(world: World) -> None:
    """DELETE marks the key with the moment; a second DELETE changes nothing; an absent one is 404."""
    key_id = world.api.keys["other"].split("_")[1]
    first = world.api.call("DELETE", f"/v1/keys/{key_id}", who="admin")
    assert first.json()["revoked"] == "2026-03-01T12:00:00Z"
    assert world.api.call("DELETE", f"/v1/keys/{key_id}", who="admin").json() == first.json()
    assert world.api.call("DELETE", "/v1/keys/000000000000", who="admin").status_code == 404


def test_principals_are_created_changed_and_paged(world: World) -> None:
    """A new principal has its role; a taken name is 409; changes show; pages show everybody once."""
    made = world.api.post("/v1/principals", json={"name": "ina", "role": "dashboard"}, who="admin")
    assert (made.status_code, made.headers["location"]) == (201, "/v1/principals/ina")
    assert world.api.post("/v1/principals", json={"name": "ina", "role": "admin"}, who="admin").status_code == 409
    changed = world.api.call("PATCH", "/v1/principals/ina", json={"role": "analyst"}, who="admin")
    assert changed.json()["role"] == "analyst"
    assert world.api.get("/v1/principals/ina", who="admin").json() == changed.json()
    names: list[str] = []
    after: str | None = ""
    while after is not None:
        page = world.api.get(f"/v1/principals?count=3&after={after}", who="admin").json()
        names += [principal["name"] for principal in page["principals"]]
        after = page["next"]
    assert names == sorted(["admin", "analyst", "auditor", "dashboard", "ina", "other", "owner"])


def test_the_last_administrator_stays(world: World) -> None:
    """The only enabled administrator can be neither disabled nor moved; with a second one it can."""
    for body in ({"disabled": True}, {"role": "analyst"}):
        response = world.api.call("PATCH", "/v1/principals/admin", json=body, who="admin")
        assert (response.status_code, response.json()["code"]) == (409, "conflict")
    world.api.call("PATCH", "/v1/principals/owner", json={"role": "admin"}, who="admin")
    assert world.api.call("PATCH", "/v1/principals/admin", json={"disabled": True}, who="admin").status_code == 200
    assert world.api.get("/v1/me", who="admin").status_code == 401


@pytest.mark.sparse(4)
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/principals", {"name": "Ina", "role": "analyst"}),
        ("/v1/principals", {"name": "", "role": "analyst"}),
        ("/v1/principals", {"name": "x" * 64, "role": "analyst"}),
        ("/v1/principals", {"name": "ina\u0131", "role": "analyst"}),
        ("/v1/principals", {"name": "ina", "role": "root"}),
        ("/v1/principals", {"name": "ina", "role": ["admin"]}),
        ("/v1/principals", {"name": "ina"}),
        ("/v1/principals", {"name": "ina", "role": "analyst", "admin": True}),
        ("/v1/keys", {"principal": "analyst", "days": 0}),
        ("/v1/keys", {"principal": "analyst", "days": 3651}),
        ("/v1/keys", {"principal": "analyst", "days": "5"}),
        ("/v1/keys", {"principal": "analyst", "label": "a\u0007"}),
        ("/v1/keys", {"principal": "analyst", "role": "admin"}),
        ("/v1/keys", {"principal": "analyst", "expires": "2999-01-01"}),
    ],
)
def test_people_that_make_no_sense_are_422(world: World, path: str, body: dict[str, Any]) -> None:
    """Bad names, roles, lives and unknown fields are refused, and nothing appears."""
    assert world.api.post(path, json=body, who="admin").status_code == 422
    assert len(world.registry.principals()) == 6
    assert len(world.registry.keys()) == 6


def test_what_is_not_there_is_404(world: World) -> None:
    """Keys for nobody, unknown principals, and addresses that cannot be identifiers."""
    assert world.api.post("/v1/keys", json={"principal": "absent"}, who="admin").status_code == 404
    assert world.api.call("PATCH", "/v1/principals/absent", json={"disabled": True}, who="admin").status_code == 404
    for address in ("/v1/principals/%00", "/v1/principals/a%20b", "/v1/keys/..%2f..", "/v1/keys/" + "x" * 81):
        assert world.api.get(address, who="admin").status_code == 404
