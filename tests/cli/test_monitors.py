"""`noisegate monitor` and `noisegate webhook`, against a server that answers what the test says."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.support import refused
from tests.cli.test_asking import Stand, stand

__all__ = ["stand"]

SQL = "SELECT COUNT(*) FROM people"
SAID: dict[str, Any] = {
    "number": 2,
    "outcome": "passed",
    "at": "2026-03-01T12:00:00Z",
    "gap": 214.0,
    "beyond": None,
    "combined": None,
}
MONITOR: dict[str, Any] = {
    "id": "m_1",
    "status": "open",
    "dataset": "d",
    "hits": 3,
    "hits_left": 2,
    "evaluations": 9,
    "evaluations_made": 2,
    "within": 41.25,
    "background": True,
    "passed": [SAID],
    "last": SAID,
}
HOOK: dict[str, Any] = {
    "id": "w_1",
    "url": "https://h.test/in\x1b[31m",
    "host": "h.test",
    "events": ["monitor.passed"],
    "subjects": None,
    "waiting": 1,
    "secret": "whsec_x",
}
TERMS = ("--dataset", "d", "--threshold", "40", "--epsilon", "0.5", "--evaluations", "9")


def test_a_monitor_is_opened_and_shown(stand: Stand) -> None:
    """What is sent, once under a key, and what it says: each evaluation once."""
    stand.replies = [(201, MONITOR)]
    ran = stand.ask("monitor", "open", SQL, *TERMS, "--hits", "3", "--rows-per-unit", "20", "--when-asked")
    assert ran.code == 0, ran.err
    assert "2 of 3 hits left, 2 of 9 evaluations made, within 41.2" in ran.out
    assert ran.out.count("gap 214.0") == 1
    method, path, headers, body = stand.requests[0]
    assert (method, path, len(headers["Idempotency-Key"]) >= 16) == ("POST", "/v1/monitors", True)
    asked = {"dataset": "d", "sql": SQL, "threshold": "40", "epsilon": "0.5", "evaluations": 9, "hits": 3}
    assert body == {**asked, "contribution": {"rows_per_unit": 20}, "background": False}


def test_an_estimate_opens_nothing(stand: Stand) -> None:
    """The same body at another address: price, error, and the bound in print."""
    answer = {"verdict": "affordable", "price": {"epsilon": "0.1"}, "within": 41.0, "textbook_within": 130.0}
    stand.replies = [(200, {**answer, "answer": {"epsilon": "0.2", "standard_error": 7.07}})]
    ran = stand.ask("monitor", "open", SQL, *TERMS, "--estimate")
    for text in ("affordable: epsilon 0.1", "wrong by more than 41.0", "130.0", "epsilon 0.2, standard error 7.1"):
        assert text in ran.out
    assert [request[1] for request in stand.requests] == ["/v1/monitors:estimate"]


def test_a_check_says_the_outcome(stand: Stand) -> None:
    """A stream's question, a wait in milliseconds, and a failure as one."""
    stand.replies = [(200, SAID), (200, {**SAID, "outcome": "failed"})]
    ran = stand.ask("monitor", "check", "m_1", SQL, "--threshold", "5", "--after", "1", "--wait", "2.5")
    assert ran.out.split() == ["2", "passed", "2026-03-01T12:00:00Z", "gap", "214.0"]
    assert stand.requests[0][1] == "/v1/monitors/m_1/evaluations"
    assert stand.requests[0][3] == {"sql": SQL, "threshold": "5", "after": 1, "wait_ms": 2500}
    failed = stand.ask("monitor", "check", "m_1")
    assert (failed.code, "the evaluation failed" in failed.err) == (1, True)


def test_monitors_are_listed_and_read(stand: Stand) -> None:
    """A line for each."""
    stand.replies = [(200, {"monitors": [MONITOR], "next": None}), (200, MONITOR), (200, {"monitors": []})]
    assert "m_1  open  d  1 of 3 hits" in stand.ask("monitor", "list").out
    assert "compared on each version of the data" in stand.ask("monitor", "show", "m_1").out
    assert "no monitors" in stand.ask("monitor", "list").out


@pytest.mark.parametrize("options", [("--threshold", "-1"), ("--epsilon", "x"), ("--answer-epsilon", "0")])
def test_amounts_are_checked_before_anything_is_sent(stand: Stand, options: tuple[str, str]) -> None:
    """No request for what is no amount."""
    refused(stand.ask("monitor", "open", SQL, *TERMS, *options), code=2)
    assert stand.requests == []


def test_a_webhook_is_added_tested_and_removed(stand: Stand) -> None:
    """The secret is shown, once; deliveries say why they failed; no control character is printed."""
    sent = {"created": "2026-03-01T12:00:00Z", "event": "monitor.passed", "subject": "m_1", "state": "waiting"}
    deliveries = {"deliveries": [{**sent, "attempts": 2, "failure": "timed_out"}], "next": None}
    stand.replies = [(201, HOOK), (200, HOOK), (200, HOOK), (200, deliveries), (200, {"webhooks": [HOOK]}), (200, HOOK)]
    added = stand.ask("webhook", "add", "https://h.test/in", "--event", "monitor.passed", "--subject", "m_1")
    assert "secret: whsec_x" in added.out
    assert "\x1b" not in added.out
    assert stand.requests[0][3] == {"url": "https://h.test/in", "events": ["monitor.passed"], "subjects": ["m_1"]}
    assert "1 waiting" in stand.ask("webhook", "test", "w_1").out
    shown = stand.ask("webhook", "show", "w_1").out
    assert "waiting  attempt 2  timed_out" in shown
    assert "whsec" not in shown
    assert "w_1  h.test  monitor.passed" in stand.ask("webhook", "list").out
    assert "w_1  removed" in stand.ask("webhook", "remove", "w_1").out
    assert [request[:2] for request in stand.requests[1:]] == [
        ("POST", "/v1/webhooks/w_1:test"),
        ("GET", "/v1/webhooks/w_1"),
        ("GET", "/v1/webhooks/w_1/deliveries?count=20"),
        ("GET", "/v1/webhooks?count=100"),
        ("DELETE", "/v1/webhooks/w_1"),
    ]
