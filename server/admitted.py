"""The results of admission when there is nothing to run: the two outcomes that every kind of query has."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["InFlight", "Settled"]


@dataclass(frozen=True, slots=True)
class Settled:
    """A query whose answer is stored: it was asked before, or repeats an earlier answer."""

    query_id: str
    answer: bytes


@dataclass(frozen=True, slots=True)
class InFlight:
    """A query that an earlier request with the same idempotency key started, and that has not ended."""

    query_id: str
