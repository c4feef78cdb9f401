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


def test_an_administrator_asks_about_all_accounts(stand: Stand) -> None:
    """A line for each budget, and what was asked for in the address."""
    named = {"budget": "b_1", "dataset": "d", "principal": "ann\x1b", "name": "ann", "limit": {}}
    spent = {"month": "2026-10", "budgets": [{**named, "share": "0.25", "epsilon": "2.5"}]}
    soon = {**named, "used_share": "0.9", "pace": {"share_per_day": "0.01", "days": 30}, "projected": "2026-11-20"}
    counts = {**named, "questions_left": {"laplace": 3, "gaussian": 40}, "standard_error": 2.8284}
    stand.replies = [
        (200, spent),
        (200, {"within_days": 90, "budgets": [soon]}),
        (200, {"within_days": 30, "budgets": []}),
        (200, {"budgets": [{**counts, "principal": None}]}),
    ]
    out = stand.ask("team", "spent", "--month", "2026-10", "--dataset", "d").out
    assert ("25 %" in out, "2.5" in out, "\x1b" in out) == (True, True, False)
    assert "2026-11-20" in stand.ask("team", "running-out", "--within-days", "90").out
    assert "Nothing runs out within 30 days." in stand.ask("team", "running-out").out
    left = stand.ask("team", "left").out
    assert ("3 laplace, 40 gaussian" in left, "(ann)" in left, "2.83" in left) == (True, True, True)
    assert [request[1] for request in stand.requests] == [
        "/v1/team/spending?month=2026-10&dataset=d",
        "/v1/team/running-out?within_days=90",
        "/v1/team/running-out",
        "/v1/team/questions-left",
    ]
