"""Budgets over HTTP: administrators set, everybody reads their own, nobody counts what others ask."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from accountant.account import Limit
from server.routes.budgets import membership_guess
from tests.server.conftest import World
from tests.server.fakes import clinic, query

LIMIT = {"epsilon": "5", "delta": "0.000001"}


def create(world: World, **more: Any) -> Any:
    """POST /v1/budgets as the administrator."""
    return world.api.post("/v1/budgets", json={"dataset": "clinic", "limit": LIMIT, **more}, who="admin")


def test_an_administrator_opens_a_budget_for_an_analyst(world: World) -> None:
    """A budget of a principal hangs below the root, can be spent from, and shows what remains."""
    response = create(world, principal="other")
    assert response.status_code == 201
    body = response.json()
    assert response.headers["location"] == body["links"]["self"]
    assert (body["parent"], body["principal"], body["limit"]) == (world.root.id, "other", LIMIT)
    assert (body["remaining"]["epsilon"], body["used_share"], body["queries_left"]) == ("5", "0", 50)
    assert world.api.post("/v1/queries", json=query(), who="other").status_code == 200
    after = world.api.get(body["links"]["self"], who="other").json()
    assert (after["remaining"]["epsilon"], after["used_share"], after["queries_left"]) == ("4.5", "0.1", 45)
    assert after["reserved"] is False


def test_the_root_comes_first_and_only_once(world: World) -> None:
    """No budget of a principal without a root; no second root; the first without principal is the root."""
    world.catalogue.datasets["school"] = clinic("school")
    early = create(world, dataset="school", principal="analyst")
    assert (early.status_code, early.json()["code"]) == (409, "conflict")
    root = create(world, dataset="school")
    assert (root.status_code, root.json()["parent"], root.json()["name"]) == (201, None, "root")
    assert create(world, dataset="school").status_code == 409
    assert create(world, dataset="school", principal="analyst").json()["parent"] == root.json()["id"]


@pytest.mark.parametrize(
    "change",
    [{"dataset": "absent"}, {"principal": "absent"}, {"principal": "other", "parent": "b_absent"}],
)
def test_budgets_for_what_is_not_there_are_404(world: World, change: dict[str, str]) -> None:
    """Unknown dataset, principal or parent: 404, and no account appears."""
    assert create(world, **change).status_code == 404
    assert len(world.ledger.accounts()) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"filter": "none"},
        {"filter": "pure"},
        {"limit": {"epsilon": "1"}},
        {"limit": {"epsilon": "1", "delta": "0"}},
        {"spent": {"epsilon": "0"}},
        {"owner": "other"},
        {"id": "b_1"},
        {"name": "a\nb"},
        {"principal": "Other"},
    ],
)
def test_budgets_that_make_no_sense_are_422(world: World, change: dict[str, Any]) -> None:
    """Unknown filters and fields, a pure account with delta and an approximate one without are refused."""
    assert create(world, **{"principal": "other", **change}).status_code == 422
    assert len(world.ledger.accounts()) == 2


def test_a_limit_is_changed_with_a_reason(world: World) -> None:
    """PATCH sets the limit, keeps what was spent, and the ledger names actor and reason."""
    world.api.post("/v1/queries", json=query())
    path = f"/v1/budgets/{world.account.id}"
    body = {"limit": {"epsilon": "2", "delta": "0.000001"}, "reason": "smaller study"}
    changed = world.api.call("PATCH", path, json=body, who="admin")
    assert changed.status_code == 200
    assert changed.json()["limit"]["epsilon"] == "2"
    assert changed.json()["remaining"]["epsilon"] == "1.5"
    entries = world.api.get(f"{path}/entries").json()["entries"]
    assert [entry["kind"] for entry in entries] == ["grant", "reserve", "post", "adjust"]
    assert entries[-1]["details"]["actor"] == "admin"
    assert entries[-1]["details"]["reason"] == "smaller study"
    del body["reason"]
    assert world.api.call("PATCH", path, json=body, who="admin").status_code == 422


def test_an_analyst_sees_own_budgets_only(world: World) -> None:
    """Others' accounts, the root among them, are 404 like absent ones; overseers see all."""
    mine = world.api.get("/v1/budgets").json()["budgets"]
    assert [budget["id"] for budget in mine] == [world.account.id]
    assert world.api.get("/v1/budgets", who="other").json() == {"budgets": []}
    absent = world.api.get("/v1/budgets/b_absent", who="other")
    for path in (f"/v1/budgets/{world.account.id}", f"/v1/budgets/{world.root.id}"):
        for suffix in ("", "/entries"):
            theirs = world.api.get(path + suffix, who="other")
            assert theirs.status_code == 404
            assert {**theirs.json(), "request_id": ""} == {**absent.json(), "request_id": ""}
    for who in ("admin", "auditor"):
        assert len(world.api.get("/v1/budgets", who=who).json()["budgets"]) == 2
    assert world.api.get("/v1/budgets?dataset=school", who="admin").json() == {"budgets": []}


def test_entries_are_paged_and_do_not_count_others(world: World) -> None:
    """Pages show every entry once; the place in the whole ledger is for overseers only."""
    for i in range(3):
        world.api.post("/v1/queries", json=query(f"SELECT {i}"))
    path = f"/v1/budgets/{world.account.id}/entries"
    seen: list[int] = []
    after = 0
    while after is not None:
        page = world.api.get(f"{path}?count=3&after={after}").json()
        seen += [entry["sequence"] for entry in page["entries"]]
        assert all("ledger_sequence" not in entry for entry in page["entries"])
        after = page["next"]
    assert seen == list(range(1, 8))
    assert "ledger_sequence" in world.api.get(path, who="auditor").json()["entries"][0]


@pytest.mark.parametrize(
    ("epsilon", "delta", "expected"),
    [
        ("0.000000000001", "0", "0.5001"),
        ("1", "0", "0.7311"),
        ("1", "0.01", "0.7338"),
        ("5", "0", "0.9934"),
        ("1000000", "0", "1"),
    ],
)
def test_the_membership_guess_is_rounded_up(epsilon: str, delta: str, expected: str) -> None:
    """(e^eps + delta) / (e^eps + 1), up to the next ten-thousandth; 1 for huge limits."""
    assert membership_guess(Limit(Fraction(epsilon), Fraction(delta))) == expected


def test_the_membership_guess_counts_the_greatest_limit(world: World) -> None:
    """A lowered limit shows the guess of the limit before: what was told under it stays told."""
    path = f"/v1/budgets/{world.account.id}"
    before = world.api.get(path).json()["membership_guess"]
    body = {"limit": {"epsilon": "0.5", "delta": "0.000001"}, "reason": "less"}
    assert world.api.call("PATCH", path, json=body, who="admin").json()["membership_guess"] == before
    assert before == membership_guess(world.account.limit) > membership_guess(Limit(Fraction(1, 2), Fraction(1, 10**6)))


def test_a_repeated_request_opens_no_second_budget(world: World) -> None:
    """Five equal requests make one spendable budget; the others are 409 and name it."""
    first = create(world, principal="other")
    for _ in range(4):
        again = create(world, principal="other")
        assert (again.status_code, again.json()["code"]) == (409, "conflict")
        assert first.json()["id"] in again.json()["instead"][0]
    assert len(world.ledger.accounts(principal="other")) == 1


def test_two_administrators_do_not_lose_each_others_changes(world: World) -> None:
    """With If-Match the second change of one reading is 412; a current tag, a star and no header are accepted."""
    path = f"/v1/budgets/{world.account.id}"
    tag = world.api.get(path).headers["etag"]
    body = {"limit": {"epsilon": "6", "delta": "0.000001"}, "reason": "first"}

    def change(**headers: str) -> Any:
        return world.api.call("PATCH", path, json=body, who="admin", headers=headers)

    first = change(**{"If-Match": tag})
    assert (first.status_code, first.headers["etag"] != tag) == (200, True)
    lost = change(**{"If-Match": tag})
    assert (lost.status_code, lost.json()["code"]) == (412, "precondition_failed")
    assert change(**{"If-Match": f"W/{first.headers['etag']}"}).status_code == 422
    world.api.post("/v1/queries", json=query())
    assert world.api.get(path).headers["etag"] == first.headers["etag"], "spending is no change of the limit"
    assert change(**{"If-Match": first.headers["etag"]}).status_code == 200
    assert change(**{"If-Match": "*"}).status_code == 200
    assert change().status_code == 200
