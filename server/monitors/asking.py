"""What a monitor asks of the journey: its questions."""

from __future__ import annotations

import datetime
from fractions import Fraction

from accountant.request import Reuse
from privacy.bounds import AskedContribution
from server.question import Question
from sql_rewrite.lift_clock import started as clock_of

__all__ = ["question_of_monitor"]


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
