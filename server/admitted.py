"""The results of admission when there is nothing to run: the two outcomes that every kind of query has."""

from __future__ import annotations

from dataclasses import dataclass

from accountant.request import Reserved
from accountant.states import QueryStatus
from privacy.refusal import ExecutionFailed

__all__ = ["InFlight", "Settled", "retried"]


@dataclass(frozen=True, slots=True)
class Settled:
    """A query whose answer is stored: it was asked before, or repeats an earlier answer."""

    query_id: str
    answer: bytes


@dataclass(frozen=True, slots=True)
class InFlight:
    """A query that an earlier request with the same idempotency key started, and that has not ended."""

    query_id: str


def retried(earlier: Reserved) -> Settled | InFlight:
    """A query that is settled or runs already. Errors: ExecutionFailed for one that ended without an answer."""
    if earlier.answer is not None:
        return Settled(earlier.query_id, earlier.answer)
    if earlier.state is not QueryStatus.RESERVED:
        raise ExecutionFailed(started=earlier.state is not QueryStatus.FAILED_VOID and bool(earlier.charged))
    return InFlight(earlier.query_id)
