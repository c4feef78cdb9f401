"""`noisegate request`, against a server that answers what the test says."""

from __future__ import annotations

from tests.cli.support import refused
from tests.cli.test_asking import Stand, stand

__all__ = ["stand"]

REQUEST = {
    "id": "br_1",
    "dataset": "d",
    "principal": "ann",
    "budget": "b_1",
    "state": "open",
    "limit": {"epsilon": "10.5", "delta": "0.000001"},
    "reason": "a report\x1b[2J",
    "question": {"sql": "SELECT COUNT(*) FROM t"},
    "estimate": {"price": {"epsilon": "1.5", "delta": "0"}, "missing": {"epsilon": "0.5", "delta": "0"}},
    "created": "2026-03-01T12:00:00Z",
    "decision": None,
    "links": {},
}
DECIDED = {
    **REQUEST,
    "state": "approved",
    "decision": {"at": "2026-03-02T12:00:00Z", "by": "adm", "reason": "agreed"},
}


def test_a_request_is_made_read_and_decided(stand: Stand) -> None:
    """The question with its wishes, the limit that is named, and the decision; no control character is printed."""
    stand.replies = [(201, REQUEST), (201, REQUEST), (200, DECIDED), (200, DECIDED), (200, {"requests": [REQUEST]})]
    made = stand.ask("request", "make", "SELECT 1", "--dataset", "d", "--half-width", "5", "--reason", "a report")
    assert "missing: epsilon 0.5, delta 0" in made.out
    assert "\x1b" not in made.out
    asked = {"dataset": "d", "sql": "SELECT 1", "accuracy": {"half_width": "5"}}
    assert stand.requests[0][3] == {"dataset": "d", "reason": "a report", "question": asked}
    limit = ("--limit-epsilon", "2", "--limit-delta", "0.000001")
    stand.ask("request", "make", "--dataset", "d", "--reason", "first", "--budget", "b_1", *limit)
    wanted = {"epsilon": "2", "delta": "0.000001"}
    assert stand.requests[1][3] == {"dataset": "d", "reason": "first", "budget": "b_1", "limit": wanted}
    assert "approved by adm, 2026-03-02T12:00:00Z: agreed" in stand.ask("request", "approve", "br_1", *limit).out
    assert stand.requests[2][3] == {"state": "approved", "limit": wanted}
    stand.ask("request", "reject", "br_1", "--reason", "no")
    assert "br_1  2026-03-01T12:00:00Z  open  d  ann  epsilon 10.5" in stand.ask("request", "list").out
    assert [request[:2] for request in stand.requests[2:]] == [
        ("PATCH", "/v1/budget-requests/br_1"),
        ("PATCH", "/v1/budget-requests/br_1"),
        ("GET", "/v1/budget-requests?count=100"),
    ]
    refused(stand.ask("request", "make", "SELECT 1", "--reason", "x", "--limit-delta", "0"), code=2)


def test_somebody_is_stopped_and_goes_on(stand: Stand) -> None:
    """The reason is sent, and what was frozen is shown."""
    done = {"principal": "ann", "stopped": True, "budgets": ["b_1"], "cancelled": 2}
    stand.replies = [(200, done), (200, {**done, "stopped": False})]
    out = stand.ask("team", "stop", "ann", "--reason", "leaked").out
    assert ("ann is stopped" in out, "b_1  frozen" in out, "2 cancelled" in out) == (True, True, True)
    assert "ann is not stopped any more" in stand.ask("team", "resume", "ann", "--reason", "new key").out
    paths = [(request[1], request[3]["reason"]) for request in stand.requests]
    assert paths == [("/v1/principals/ann:stop", "leaked"), ("/v1/principals/ann:resume", "new key")]
