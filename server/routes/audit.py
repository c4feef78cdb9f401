"""The ledger as a file, for whoever checks it without trusting this server (docs/auditing.md)."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response, StreamingResponse

from accountant.acts import Act
from accountant.entry import from_micros, to_micros
from accountant.ledger import Ledger, utc_now
from server.auth import Caller, roles, services_of
from server.errors import Problem
from server.roles import OVERSEEING
from server.routes.common import describe, in_thread, page_response
from server.scopes import Scope
from server.wire.acts import ActList

__all__ = ["router"]

router = APIRouter()

NDJSON = "application/x-ndjson"
_CHUNK = 64 * 1024
_AT_ONCE = threading.BoundedSemaphore(2)
"""Exports that a process makes at the same time: each keeps a moment of the database open."""


@router.get(
    "/v1/audit-exports",
    **describe(
        "exportLedger",
        "Export the ledger",
        "One moment of the whole ledger as NDJSON: accounts, entries with both chains of hashes, queries without their "
        "texts, hashes of answers and releases, who read what. The last line has the number of lines and the head: an "
        "export without it was cut. `noisegate verify`, or `clients/verify.py` without Noisegate, recomputes it all.",
        tag="Budgets",
        answers={200: (NDJSON, None)},
        headers={"Content-Disposition": "A name for the file."},
    ),
)
async def export_ledger(
    request: Request, caller: Annotated[Caller, Depends(roles(*OVERSEEING, scope=Scope.AUDIT))]
) -> Response:
    """GET /v1/audit-exports."""
    chunks = _chunks(services_of(request).ledger)
    # The first one before the status is sent: a database that cannot be read is a problem, not half an export.
    first = await in_thread(lambda: next(chunks))
    return StreamingResponse(
        itertools.chain((first,), chunks),
        media_type=NDJSON,
        headers={"Cache-Control": "no-store", "Content-Disposition": 'attachment; filename="ledger.ndjson"'},
    )


@router.get(
    "/v1/acts",
    **describe(
        "listActs",
        "List acts",
        "What administrators did, and what others opened and closed, oldest first: who, what, about whom or what, "
        "when, and hashes of the rows that the act left. Each has a number of the ledger's own sequence, and its place "
        "in the chain between the entries.",
        tag="Budgets",
        answers={200: (ActList, None)},
    ),
)
async def list_acts(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*OVERSEEING, scope=Scope.AUDIT))],
    actor: Annotated[str | None, Query(max_length=64, description="Of this one only.")] = None,
    subject: Annotated[str | None, Query(max_length=128, description="About this one only.")] = None,
    count: Annotated[int, Query(ge=1, le=500, description="Acts per page.")] = 100,
    after: Annotated[int, Query(ge=0, le=2**62, description="`next` of the page before.")] = 0,
) -> Response:
    """GET /v1/acts."""
    registry = services_of(request).registry
    found = await in_thread(lambda: registry.acts_of(actor=actor, subject=subject, after=after, count=count + 1))
    return page_response("acts", found, count, body=_act, after=lambda act: act.sequence)


def _act(act: Act) -> dict[str, object]:
    return {
        "sequence": act.sequence,
        "actor": act.actor,
        "action": act.action,
        "subject": act.subject,
        "details": json.loads(act.details),
        "created": from_micros(act.created).isoformat(),
        "previous": act.previous,
        "hash": act.hash,
    }


def _chunks(ledger: Ledger) -> Iterator[bytes]:
    """The lines, many at once. Errors: Problem unavailable; LedgerUnavailable."""
    if not _AT_ONCE.acquire(blocking=False):
        raise Problem(
            "unavailable",
            what="other exports are running",
            why="Each keeps a moment of the database open. Nothing was charged.",
            instead=("Try again when they are done.",),
            headers={"Retry-After": "5"},
        )
    try:
        waiting: list[bytes] = []
        size = 0
        for line in ledger.export(now=to_micros(utc_now())):
            waiting.append(line)
            size += len(line)
            if size >= _CHUNK:
                yield b"".join(waiting)
                waiting, size = [], 0
        yield b"".join(waiting)
    finally:
        _AT_ONCE.release()
