"""Queries over HTTP: one charge, the same bytes, 202, cancel, and nobody else's business."""

from __future__ import annotations

import time
from fractions import Fraction

import httpx
import pytest

from accountant.account import Limit
from accountant.errors import LedgerBehind, LedgerUnavailable
from tests.server.conftest import World
from tests.server.fakes import SECRET_LITERAL, clinic, query


def settle(world: World, query_id: str, who: str = "analyst") -> httpx.Response:
    """The query's response once it has ended."""
    for _ in range(2_000):
        response = world.api.get(f"/v1/queries/{query_id}", who=who)
        if response.status_code != 202:
            return response
        time.sleep(0.02)
    raise AssertionError("the query does not end")


def test_a_query_is_answered_and_charged_once(world: World) -> None:
    """A query within wait_ms gets 200 with its stored bytes, and costs what it said."""
    response = world.api.post("/v1/queries", json=query())
    assert response.status_code == 200
    body = response.json()
    assert body["status"] == "settled"
    assert response.headers["content-location"] == f"/v1/queries/{body['id']}"
    assert response.headers["cache-control"] == "no-store"
    assert world.spent() == Fraction(1, 2)


def test_reading_an_answer_again_is_free_and_the_same_bytes(world: World) -> None:
    """GET returns the bytes of the POST, with a strong ETag that gives 304, and spends nothing."""
    first = world.api.post("/v1/queries", json=query())
    again = world.api.get(first.headers["content-location"])
    assert again.content == first.content
    assert again.headers["cache-control"] == "private, max-age=31536000, immutable"
    tag = again.headers["etag"]
    assert tag.startswith('"')
    for sent in (tag, f'"x", {tag}', f"W/{tag}", "*"):
        unchanged = world.api.get(first.headers["content-location"], headers={"If-None-Match": sent})
        assert unchanged.status_code == 304
        assert unchanged.content == b""
        assert unchanged.headers["etag"] == tag
    assert world.api.get(first.headers["content-location"], headers={"If-None-Match": '"x"'}).status_code == 200
    assert world.spent() == Fraction(1, 2)


def test_the_same_idempotency_key_is_charged_once(world: World) -> None:
    """A retry with the key gets the same bytes without a charge, also with another layout and another wait_ms."""
    headers = {"Idempotency-Key": "6f1c"}
    first = world.api.post("/v1/queries", json=query(), headers=headers)
    text = '{ "spend":{"epsilon":"0.5"},"wait_ms":50,\n"sql":"SELECT COUNT(*) FROM patients","dataset":"clinic"}'
    retry = world.api.post(
        "/v1/queries", content=text, headers={**headers, "Content-Type": "application/json; charset=utf-8"}
    )
    assert (retry.status_code, retry.content) == (200, first.content)
    assert world.spent() == Fraction(1, 2)
    assert world.journey.completed == 1


def test_an_idempotency_key_with_another_body_is_a_conflict(world: World) -> None:
    """409 and no charge when the key comes with another question."""
    headers = {"Idempotency-Key": "6f1c"}
    world.api.post("/v1/queries", json=query(), headers=headers)
    other = world.api.post("/v1/queries", json=query("SELECT COUNT(age) FROM patients"), headers=headers)
    assert other.status_code == 409
    assert other.json()["code"] == "idempotency_conflict"
    assert other.json()["charged"] is False
    assert world.spent() == Fraction(1, 2)


def test_an_idempotency_key_belongs_to_its_principal(world: World) -> None:
    """Another principal's equal key neither conflicts nor gives away the answer."""
    world.ledger.create_account(
        dataset="clinic",
        parent=world.root.id,
        principal="other",
        name="other",
        limit=world.account.limit,
        filter=world.account.filter,
        actor="test",
    )
    headers = {"Idempotency-Key": "6f1c"}
    first = world.api.post("/v1/queries", json=query(), headers=headers)
    second = world.api.post("/v1/queries", json=query("SELECT 2"), headers=headers, who="other")
    assert second.status_code == 200
    assert second.json()["id"] != first.json()["id"]


@pytest.mark.parametrize("key", ["", "a b", "x" * 201, "\x7f", "ä".encode().decode("latin-1")])
def test_bad_idempotency_keys_are_refused(world: World, key: str) -> None:
    """A key that is not 1 to 200 visible ASCII characters is refused before anything is charged."""
    response = world.api.post("/v1/queries", json=query(), headers={"Idempotency-Key": key.encode("latin-1")})
    assert response.status_code == 422
    assert world.journey.asked == []


def test_a_slow_query_is_202_and_can_be_polled(world: World) -> None:
    """Past wait_ms: 202 with Location and Retry-After; polling is 202 until it is settled, and the charge is one."""
    response = world.api.post("/v1/queries", json=query("SELECT slow", wait_ms=0))
    assert response.status_code == 202
    body = response.json()
    assert response.headers["location"] == body["links"]["self"] == f"/v1/queries/{body['id']}"
    assert response.headers["retry-after"] == "1"
    assert body["status"] == "running"
    polled = world.api.get(response.headers["location"])
    listed = world.api.get("/v1/queries").json()["queries"]
    assert (polled.status_code, polled.json()["status"]) == (202, "running")
    assert [(query["id"], query["status"]) for query in listed] == [(body["id"], "running")]
    world.journey.gate.set()
    settled = settle(world, body["id"])
    assert settled.status_code == 200
    assert settled.json()["id"] == body["id"]
    assert world.spent() == Fraction(1, 2)


def test_a_retry_joins_the_query_in_flight(world: World) -> None:
    """The same key while the query runs: the same id, no second charge; a retry that waits gets the answer."""
    headers = {"Idempotency-Key": "join"}
    first = world.api.post("/v1/queries", json=query("SELECT slow", wait_ms=0), headers=headers)
    second = world.api.post("/v1/queries", json=query("SELECT slow", wait_ms=10), headers=headers)
    assert (second.status_code, second.json()["id"]) == (202, first.json()["id"])
    world.journey.gate.set()
    third = world.api.post("/v1/queries", json=query("SELECT slow", wait_ms=10_000), headers=headers)
    assert (third.status_code, third.json()["id"]) == (200, first.json()["id"])
    assert world.spent() == Fraction(1, 2)


def test_parallel_retries_are_one_charge(world: World) -> None:
    """Eight requests with one key at the same time make one charge and give one id."""
    request = ("POST", "/v1/queries", "analyst", {"json": query(), "headers": {"Idempotency-Key": "8"}})
    responses = world.api.calls(*((request[0], request[1], request[2], dict(request[3])) for _ in range(8)))
    assert {response.status_code for response in responses} <= {200, 202}
    assert len({response.json()["id"] for response in responses}) == 1
    assert world.spent() == Fraction(1, 2)


def test_a_failed_query_is_charged_and_says_nothing(world: World) -> None:
    """execution_failed: 500, charged, one constant text; the same when it is read again or retried."""
    headers = {"Idempotency-Key": "fail"}
    first = world.api.post("/v1/queries", json=query("SELECT broken"), headers=headers)
    assert first.status_code == 500
    assert (first.json()["code"], first.json()["charged"]) == ("execution_failed", True)
    assert "costs nothing while that part stays the same" in first.json()["instead"][0]
    listed = world.api.get("/v1/queries").json()["queries"][0]
    assert listed["status"] == "failed_charged"
    again = world.api.get(listed["links"]["self"])
    retry = world.api.post("/v1/queries", json=query("SELECT broken"), headers=headers)
    for response in (again, retry):
        assert response.status_code == 500
        assert {**response.json(), "request_id": ""} == {**first.json(), "request_id": ""}
    assert world.spent() == Fraction(1, 2)


def test_an_unforeseen_failure_counts_as_charged(world: World) -> None:
    """An exception that nobody foresaw: 500 with charged true, and no word of the exception."""
    response = world.api.post("/v1/queries", json=query("SELECT crash"))
    assert response.status_code == 500
    assert (response.json()["code"], response.json()["charged"]) == ("internal_error", True)
    assert SECRET_LITERAL not in response.text


@pytest.mark.parametrize(
    ("error", "status", "code", "charged"),
    [
        (LedgerUnavailable("no"), 500, "charge_unknown", True),
        (LedgerBehind("old"), 503, "unavailable", False),
        (RuntimeError(SECRET_LITERAL), 500, "internal_error", True),
    ],
)
def test_what_the_ledger_says_before_the_start(
    world: World, error: Exception, status: int, code: str, charged: bool
) -> None:
    """An unknown fate counts as charged; 503 is said only when nothing can have been reserved."""
    world.journey.admit_error = error
    response = world.api.post("/v1/queries", json=query())
    assert response.status_code == status
    assert (response.json()["code"], response.json()["charged"]) == (code, charged)
    assert SECRET_LITERAL not in response.text


def test_the_budget_is_exhausted_by_spending(world: World) -> None:
    """After ten of one epsilon each from a budget of ten the eleventh is 403, not charged, and not retryable."""
    body = query(spend={"epsilon": "1"})
    for _ in range(10):
        assert world.api.post("/v1/queries", json=body).status_code == 200
    refused = world.api.post("/v1/queries", json=body)
    assert refused.status_code == 403
    assert refused.json()["code"] == "budget_exhausted"
    assert (refused.json()["charged"], refused.json()["retryable"]) == (False, False)
    assert refused.json()["budget"] is None
    assert refused.json()["short"] == []


def test_an_own_exhausted_budget_says_what_would_fit(world: World) -> None:
    """When the caller's own account is short, the problem names it and tells what remains of it."""
    world.ledger.change_limit(world.root.id, Limit(Fraction(100), Fraction(1, 10**6)), actor="test", reason="test")
    world.api.post("/v1/queries", json=query(spend={"epsilon": "9.75"}))
    refused = world.api.post("/v1/queries", json=query(spend={"epsilon": "1"})).json()
    assert (refused["code"], refused["budget"]) == ("budget_exhausted", world.account.id)
    assert {"measure": "pure", "asked": "1", "remaining": "0.25"} in refused["short"]


def test_refusals_carry_every_finding_and_the_place(world: World) -> None:
    """Statuses 400, 404 and 422 with code, place and all findings; nothing is charged."""
    unreadable = world.api.post("/v1/queries", json=query("unreadable"))
    assert unreadable.status_code == 400
    assert unreadable.json()["position"] == {"line": 1, "column": 8, "text": "unreadable"}
    two = world.api.post("/v1/queries", json=query("secret_column"))
    assert two.status_code == 422
    assert [finding["code"] for finding in two.json()["findings"]] == ["unknown_column", "column_without_bounds"]
    assert two.json()["instead"] == ["use age"]
    absent = world.api.post("/v1/queries", json={**query(), "dataset": "absent"})
    foreign = world.api.post("/v1/queries", json=query(), who="other")
    assert absent.status_code == foreign.status_code == 404
    assert {**absent.json(), "request_id": ""} == {**foreign.json(), "request_id": ""}
    assert world.spent() == 0


def test_other_analysts_learn_nothing_of_a_query(world: World) -> None:
    """Reading, cancelling or paging from another's query is the same 404 as for one that does not exist."""
    query_id = world.api.post("/v1/queries", json=query()).json()["id"]
    for method, path in (
        ("GET", "/v1/queries/{}"),
        ("POST", "/v1/queries/{}:cancel"),
        ("GET", "/v1/queries?after={}"),
    ):
        theirs = world.api.call(method, path.format(query_id), who="other")
        absent = world.api.call(method, path.format("q_0000"), who="other")
        assert theirs.status_code == absent.status_code == 404
        assert {**theirs.json(), "request_id": ""} == {**absent.json(), "request_id": ""}
    assert world.api.get("/v1/queries", who="other").json() == {"queries": [], "next": None}
    for who in ("admin", "auditor"):
        assert world.api.get(f"/v1/queries/{query_id}", who=who).status_code == 200
        assert len(world.api.get("/v1/queries", who=who).json()["queries"]) == 1


def test_the_list_of_queries_is_paged(world: World) -> None:
    """Pages of two show every query once, newest first, without texts."""
    ids = [world.api.post("/v1/queries", json=query(f"SELECT {SECRET_LITERAL} {i}")).json()["id"] for i in range(5)]
    seen: list[str] = []
    after = ""
    for _ in range(3):
        page = world.api.get(f"/v1/queries?count=2{after}")
        assert SECRET_LITERAL not in page.text
        seen += [item["id"] for item in page.json()["queries"]]
        after = f"&after={page.json()['next']}"
    assert seen == ids[::-1]
    assert page.json()["next"] is None


def test_a_cancel_before_the_start_costs_nothing(world: World) -> None:
    """A query that waits for its turn is voided; the charge comes back and the POST's query reads as void."""
    busy = [world.api.post("/v1/queries", json=query(f"SELECT slow {i}", wait_ms=0)).json()["id"] for i in range(2)]
    waiting = world.api.post("/v1/queries", json=query("SELECT slow 3", wait_ms=0)).json()["id"]
    cancelled = world.api.post(f"/v1/queries/{waiting}:cancel")
    assert cancelled.json() == {"id": waiting, "status": "failed_void", "charged": False}
    world.journey.gate.set()
    for query_id in busy:
        assert settle(world, query_id).status_code == 200
    void = settle(world, waiting)
    assert void.status_code == 409
    assert (void.json()["code"], void.json()["charged"]) == ("query_void", False)
    assert world.spent() == 1


def test_a_full_queue_is_429_and_nothing_is_charged(world: World) -> None:
    """Beyond its part of threads and queue an owner gets 429 with Retry-After before anything is reserved."""
    for i in range(8):
        assert world.api.post("/v1/queries", json=query(f"SELECT slow {i}", wait_ms=0)).status_code == 202
    full = world.api.post("/v1/queries", json=query("SELECT 11"))
    assert (full.status_code, full.json()["code"], full.json()["charged"]) == (429, "rate_limited", False)
    assert full.headers["retry-after"] == "2"
    assert world.spent() == 4


def test_releases_are_read_by_whom_they_belong_to(world: World) -> None:
    """A release is its principal's and the overseers'; others with an account see it only where policy shares."""
    release = world.api.post("/v1/queries", json=query()).json()["provenance"]["releases"][0]
    own = world.api.get(f"/v1/releases/{release}")
    assert own.status_code == 200
    assert own.json()["release"] == {"rows": 1}
    assert own.json()["query"].startswith("q_")
    assert world.api.get(f"/v1/releases/{release}", headers={"If-None-Match": own.headers["etag"]}).status_code == 304
    for who in ("other", "dashboard", "owner"):
        assert world.api.get(f"/v1/releases/{release}", who=who).status_code == 404
    assert world.api.get(f"/v1/releases/{release}", who="auditor").status_code == 200
    world.catalogue.datasets["clinic"] = clinic(shared=True)
    assert world.api.get(f"/v1/releases/{release}", who="dashboard").status_code == 404
    world.ledger.create_account(
        dataset="clinic",
        parent=world.root.id,
        principal="dashboard",
        name="dashboard",
        limit=world.account.limit,
        filter=world.account.filter,
        actor="test",
    )
    shared = world.api.get(f"/v1/releases/{release}", who="dashboard")
    assert shared.status_code == 200
    assert shared.json()["query"] is None


def test_estimates_spend_nothing(world: World) -> None:
    """The body of a query gives a price; no reservation is made."""
    response = world.api.post("/v1/estimates", json=query())
    assert response.status_code == 200
    assert response.json()["price"] == {"epsilon": "0.1", "delta": "0"}
    assert world.spent() == 0
    assert world.api.get("/v1/queries").json()["queries"] == []


def test_the_question_is_what_was_sent(world: World) -> None:
    """Every field reaches the journey as an exact value; the principal comes from the key alone."""
    body = {
        "dataset": "clinic",
        "sql": "SELECT COUNT(*) FROM patients WHERE age > $a AND sex = $s",
        "parameters": {"a": 40, "s": "f", "t": True, "n": None, "x": 1.5},
        "accuracy": {"half_width": "25.5", "confidence": 0.9},
        "reuse": "own",
        "max_staleness_s": 60,
        "budget": world.account.id,
        "wait_ms": 0,
    }
    world.api.post("/v1/queries", json=body, headers={"Idempotency-Key": "k", "X-Principal": "admin"})
    asked = world.journey.asked[0]
    assert asked.principal == "analyst"
    assert dict(asked.parameters) == {"a": 40, "s": "f", "t": True, "n": None, "x": 1.5}
    assert (asked.epsilon, asked.half_width, asked.confidence) == (None, Fraction(51, 2), Fraction(9, 10))
    assert (asked.reuse, asked.max_staleness_s, asked.account) == ("own", 60, world.account.id)
    assert asked.idempotency_key == "k"
    assert len(asked.body_hash) == 64
