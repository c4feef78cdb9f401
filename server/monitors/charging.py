"""What a monitor asks of the journey and of the ledger: its questions, and the charges of session and answers."""

from __future__ import annotations

import datetime
import hashlib
from fractions import Fraction

from accountant.account import Account
from accountant.request import CoreCharge, ReserveRequest, Reuse
from privacy.bounds import AskedContribution
from privacy.events import Event
from server.monitors.terms import OpenMonitor, Terms
from server.published import MONITOR
from server.question import Question
from sql_rewrite.lift_clock import started as clock_of

__all__ = ["charge_of", "question_of_monitor", "reservation"]


def question_of_monitor(
    *,
    principal: str,
    dataset: str,
    sql: str,
    account: str | None,
    contribution: AskedContribution | None,
    body_hash: str,
) -> Question:
    """A question that a monitor asks, as the journey reads it."""
    return Question(
        principal=principal,
        dataset=dataset,
        sql=sql,
        parameters={},
        epsilon=None,
        half_width=None,
        confidence=Fraction(95, 100),
        reuse=Reuse.NONE,
        max_staleness_s=None,
        account=account,
        contribution=contribution,
        idempotency_key=None,
        body_hash=body_hash,
        started=clock_of(sql, datetime.datetime.now(datetime.UTC)),
    )


def charge_of(name: str, event: Event) -> CoreCharge:
    """One event on the ledger, under a key that nothing else has: no stored release serves it."""
    key = hashlib.sha256(f"{MONITOR} {name}".encode()).hexdigest()
    return CoreCharge(core_key=key, quality=Fraction(1), events=(event,), lent=False)


def reservation(monitor_id: str, request: OpenMonitor, terms: Terms, account: Account) -> ReserveRequest:
    """The whole price of a session."""
    return ReserveRequest(
        query_id=monitor_id,
        principal=request.principal,
        account=account.id,
        body_hash=request.body_hash,
        cores=(charge_of(monitor_id, terms.sparse.event()),),
        idempotency_key=request.idempotency_key,
        reuse=Reuse.NONE,
        description={MONITOR: monitor_id, "cores": [], "noise": "sparse_vector"},
    )
