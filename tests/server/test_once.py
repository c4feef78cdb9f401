"""Administrative POSTs are carried out once under an Idempotency-Key."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import text

from accountant.connection import open_engine
from server.store.replies import ClaimedAlready
from tests.server.conftest import World
from tests.server.fakes import clinic

LIMIT = {"epsilon": "5", "delta": "0.000001"}
ACTS: dict[str, dict[str, Any]] = {
    "/v1/budgets": {"dataset": "clinic", "principal": "other", "limit": LIMIT},
    "/v1/principals": {"name": "newcomer", "role": "analyst"},
    "/v1/keys": {"principal": "other", "label": "notebook"},
    "/v1/datasets": {"path": "school.yaml"},
}


def post(world: World, path: str, body: dict[str, Any], key: str, who: str = "admin") -> Any:
    """One administrative POST under a key."""
    return world.api.post(path, json=body, who=who, headers={"Idempotency-Key": key})


def counts(world: World) -> tuple[int, int, int]:
    """How many accounts, principals and keys there are."""
    return len(world.ledger.accounts()), len(world.services.registry.principals()), len(world.services.registry.keys())


@pytest.mark.parametrize("path", list(ACTS))
def test_a_repeated_administrative_request_is_carried_out_once(world: World, path: str) -> None:
    """The retry has status, body and address of the first answer, and nothing is made twice."""
    first = post(world, path, ACTS[path], "key-1")
    assert first.status_code == 201, first.text
    before = counts(world)
    again = post(world, path, ACTS[path], "key-1")
    assert again.status_code == 201
    assert again.headers["location"] == first.headers["location"]
    assert again.headers.get("etag") == first.headers.get("etag")
    shown = first.json()
    if path == "/v1/keys":
        assert again.json() == {**shown, "key": None}
        assert shown["key"].startswith("ngk_")
    else:
        assert again.content == first.content
    assert counts(world) == before


def test_the_text_of_a_key_is_not_stored(world: World) -> None:
    """Nothing of a key's text is in the row that keeps the reply."""
    whole = post(world, "/v1/keys", ACTS["/v1/keys"], "key-2").json()["key"]
    engine = open_engine(world.services.settings.database())
    with engine.connect() as connection:
        (body,) = connection.execute(text("SELECT body FROM replies")).scalars()
    engine.dispose()
    assert whole not in body
    assert whole.split("_")[-1] not in body


def test_another_request_under_the_same_key_is_409(world: World) -> None:
    """Another body or address is a conflict; the key of another administrator is their own; layout does not matter."""
    body = ACTS["/v1/principals"]
    assert post(world, "/v1/principals", body, "key-3").status_code == 201
    for path, other in (("/v1/principals", {**body, "name": "second"}), ("/v1/keys", ACTS["/v1/keys"])):
        answer = post(world, path, other, "key-3")
        assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_conflict")
    reordered = dict(reversed(body.items()))
    assert post(world, "/v1/principals", reordered, "key-3").status_code == 201
    assert post(world, "/v1/principals", body, "key 3").status_code == 422


def test_a_refusal_gives_the_key_back(world: World) -> None:
    """What was refused was not done, so the corrected circumstances may use the same key and body."""
    body = {"dataset": "school", "limit": LIMIT}
    assert post(world, "/v1/budgets", body, "key-4").status_code == 404
    world.catalogue.datasets["school"] = clinic("school")
    assert post(world, "/v1/budgets", body, "key-4").status_code == 201


def test_an_act_whose_outcome_is_not_known_is_not_repeated(world: World) -> None:
    """A claim that a dead process left behind is 409 and is never carried out a second time under that key."""
    registry = world.services.registry
    body = ACTS["/v1/principals"]
    kept = registry.keep_reply
    registry.keep_reply = lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)  # type: ignore[method-assign]
    try:
        with pytest.raises(KeyboardInterrupt):
            post(world, "/v1/principals", body, "key-5")
    finally:
        registry.keep_reply = kept  # type: ignore[method-assign]
    answer = post(world, "/v1/principals", body, "key-5")
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    assert "outcome is not known" in answer.json()["what"]


def test_two_at_once_are_one(world: World) -> None:
    """The second claim of a key that is under way is refused by the database."""
    registry = world.services.registry
    assert registry.claim_reply("admin", "key-6", request_hash="a" * 64) is None
    with pytest.raises(ClaimedAlready):
        registry.claim_reply("admin", "key-6", request_hash="a" * 64)
