"""An evaluation as it is shown and as it is sent: one body, so that a webhook says what a poll says and no more."""

from __future__ import annotations

import json

from server.monitors.terms import Evaluated
from server.store.monitors import EvaluationRow
from server.store.outbox import Notice
from server.store.resources import MonitorRow
from server.webhooks.events import EventType, event_body

__all__ = ["evaluation_body", "evaluation_of_row", "notice_of"]

_DETAILS = ("gap", "beyond", "beyond_standard_error", "combined", "answer_refused", "query")
_RUNNING = "running"
_EVENTS = {
    "passed": EventType.MONITOR_PASSED,
    "not_passed": EventType.MONITOR_NOT_PASSED,
    "failed": EventType.MONITOR_FAILED,
}


def evaluation_body(said: Evaluated) -> dict[str, object]:
    """An evaluation, as it is shown."""
    return {
        "number": said.number,
        "data_version": said.version,
        "at": said.at,
        "outcome": said.outcome,
        "repeated": said.repeated,
        **{name: said.detail.get(name) for name in _DETAILS},
        "hits_left": said.left,
    }


def evaluation_of_row(found: EvaluationRow, left: int) -> dict[str, object]:
    """A stored evaluation, as it is shown."""
    return evaluation_body(
        Evaluated(
            number=found.number,
            version=found.version,
            at=found.at,
            outcome=found.outcome or _RUNNING,
            detail=json.loads(found.detail or "{}"),
            left=left,
            repeated=False,
        )
    )


def notice_of(
    row: MonitorRow, found: EvaluationRow, *, outcome: str, detail: str | None, left: int | None = None
) -> Notice:
    """What webhooks of a monitor's owner get of an evaluation that ends so; `left` where it used up a hit.

    Its moment is `at`, when the evaluation began: no text tells when it ended.
    """
    ended = EvaluationRow(
        monitor=found.monitor, number=found.number, version=found.version, at=found.at, outcome=outcome, detail=detail
    )
    said = evaluation_of_row(ended, row.left if left is None else left)
    kind = _EVENTS[outcome]
    body = event_body(kind, at=found.at, data={"monitor": row.id, "dataset": row.dataset, **said})
    return Notice(principal=row.principal, event=kind, subject=row.id, body=body)
