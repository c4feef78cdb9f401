"""What webhooks may be sent for, and how one event is written: the same for everything that sends some."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum

__all__ = ["EventType", "event_body"]


class EventType(StrEnum):
    """The kinds of events. A body never says more than its subject's own address says to its owner."""

    MONITOR_PASSED = "monitor.passed"
    MONITOR_NOT_PASSED = "monitor.not_passed"
    MONITOR_FAILED = "monitor.failed"
    REQUEST_WAITING = "request.waiting"
    """For those who may decide a request for a budget."""

    REQUEST_DECIDED = "request.decided"
    """For whoever asked."""

    BUDGET_RUNNING_OUT = "budget.running_out"
    """For the owner of the account, and for administrators."""

    INCIDENT = "incident"
    """For administrators."""

    WEBHOOK_TEST = "webhook.test"
    """Sent on request, to every webhook: it cannot be subscribed to."""


def event_body(kind: EventType, *, at: str, data: Mapping[str, object]) -> str:
    """The body that is sent: kind, moment of the event and its data, as standardwebhooks.com writes it."""
    return json.dumps({"type": kind.value, "timestamp": at, "data": dict(data)}, separators=(",", ":"))
