"""Streams of range queries: opened once for a price, free to ask."""

from __future__ import annotations

import asyncio
import time
from fractions import Fraction
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from mechanisms.streams.asking import Found
from privacy.numbers import decimal_text
from server.auth import Caller, roles, services_of
from server.body import request_hash
from server.errors import Problem
from server.once import idempotency_key
from server.resources.kinds import ResourceKind
from server.roles import ASKING, READING, Role
from server.routes.common import body_of, describe, in_thread, json_response
from server.routes.paying import REFUSALS, called, open_charged
from server.routes.resources import ADMITTED_SECONDS, After, Count, OfDataset, Seen, Shown, owned
from server.routes.sight import visible_stream
from server.services import Services
from server.store.resources import STREAMS, StreamRow
from server.streams.estimating import left_out, promised
from server.streams.refusals import Comparing
from server.streams.showing import keys_of
from server.streams.terms import AskStream, OpenStream, Terms, Told
from server.wire.streams import (
    StreamAnswer,
    StreamBody,
    StreamEstimate,
    StreamList,
    StreamQueriesAnswer,
    StreamQueriesBody,
)

__all__ = ["router"]

router = APIRouter()

_LOOK_SECONDS = 0.25
"""How often queries look whether it is their turn."""
_TURN_SECONDS = 60.0
"""How long queries wait while others of the same stream are compared."""

_SHARING = (Role.ADMIN, Role.OWNER)
"""Who may open streams for others."""

_EXAMPLE = {
    "dataset": "demo",
    "table": "patients",
    "columns": [{"name": "birth_year", "low": 1930, "high": 2009}, {"name": "sex"}],
    "epsilon": "1",
    "updates": 5,
    "queries": 1000,
}
_OTHER = {
    "dataset": "demo",
    "sql": "SELECT department, SUM(cost) FROM visits GROUP BY department",
    "contribution": {"rows_per_unit": 20, "groups_per_unit": 20, "rows_per_unit_and_group": 20},
    "epsilon": "1",
}
_QUERIES = {"queries": [{"where": [{"key": "birth_year", "low": 1950, "high": 1979}]}, {"where": []}]}


async def _wanted(request: Request, caller: Caller, *, key: str | None) -> OpenStream:
    """A request as the streams read it."""
    body, raw = await body_of(request, StreamBody)
    if body.shared and caller.role not in _SHARING:
        raise Problem(
            "forbidden",
            what="your role opens no streams for others",
            why="What everybody asks for nothing is opened by owners and administrators.",
            instead=('Leave "shared": true out: the stream is then your own.', "Ask an administrator to open it."),
        )
    return OpenStream(
        principal=caller.name,
        dataset=body.dataset,
        sql=body.sql,
        table=body.table,
        columns=tuple(one.asked() for one in body.columns or ()),
        epsilon=body.epsilon,
        updates=body.updates,
        queries=body.queries,
        tolerance=body.tolerance,
        account=body.budget,
        contribution=None if body.contribution is None else body.contribution.asked(),
        shared=body.shared,
        administers=caller.role is Role.ADMIN,
        idempotency_key=key,
        body_hash=request_hash(raw, "stream"),
    )


@router.post(
    "/v1/streams:estimate",
    **describe(
        "estimateStream",
        "Report what a stream would promise",
        "The same body as a stream. Says how exact its answers would be, and what it would cost. Computed from the "
        "text and public metadata only: it touches no private row and costs nothing.",
        tag="Streams",
        body=StreamBody,
        body_examples={"years": _EXAMPLE, "cells": _OTHER},
        answers={200: (StreamEstimate, None)},
        problems=(*REFUSALS, "forbidden"),
    ),
)
async def estimate_stream(request: Request, caller: Annotated[Caller, Depends(roles(*ASKING))]) -> Response:
    """POST /v1/streams:estimate."""
    services = services_of(request)
    wanted = await _wanted(request, caller, key=None)
    return json_response(await called(services, caller, wanted.dataset, partial(services.streams.estimate, wanted)))


@router.post(
    "/v1/streams",
    **describe(
        "createStream",
        "Open a stream",
        "Answers ranges of some public keys as they come: from a synopsis while that is good enough, and from the "
        "data, a stated number of times, where it is not. Charges the caller's budget once, in whole, before the first "
        "row is read; queries cost nothing afterwards. With `shared` everybody with a budget for the dataset asks it, "
        "where the policy shares releases for free: owners and administrators open these. With the header "
        "`Idempotency-Key` the same request opens one stream.",
        tag="Streams",
        body=StreamBody,
        body_examples={"years": _EXAMPLE, "cells": _OTHER},
        answers={201: (StreamAnswer, None), 202: (StreamAnswer, None)},
        headers={"Location": "Address of the stream.", "Retry-After": "With 202: seconds until the next poll."},
        problems=(*REFUSALS, "forbidden", "idempotency_conflict", "conflict", "execution_failed", "charge_unknown"),
    ),
)
async def create_stream(request: Request, caller: Annotated[Caller, Depends(roles(*ASKING))]) -> Response:
    """POST /v1/streams."""
    services = services_of(request)
    wanted = await _wanted(request, caller, key=idempotency_key(request))
    opened = await open_charged(request, caller, wanted.dataset, partial(services.streams.open, wanted))
    # It reads no row, so it is there at once; one that another request is opening is waited for.
    return await _SHOWN.made(request, caller, opened, deadline=time.monotonic() + ADMITTED_SECONDS)


@router.get(
    "/v1/streams",
    **describe(
        "listStreams",
        "List streams",
        "The caller's streams, newest first; everybody's, without their texts, for administrators and auditors.",
        tag="Streams",
        answers={200: (StreamList, None)},
        problems=("not_found",),
    ),
)
async def list_streams(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*READING))],
    count: Count = 20,
    after: After = None,
    dataset: OfDataset = None,
) -> Response:
    """GET /v1/streams."""
    return await _SHOWN.page(request, caller, dataset=dataset, after=after, count=count)


@router.get(
    "/v1/streams/{stream_id}",
    **describe(
        "getStream",
        "Read a stream",
        "Its terms, its keys, and what is left of it. Reads no rows and costs nothing.",
        tag="Streams",
        answers={200: (StreamAnswer, None)},
        problems=("not_found",),
    ),
)
async def get_stream(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*READING))],
    row: Annotated[StreamRow, Depends(visible_stream)],
) -> Response:
    """GET /v1/streams/{stream_id}."""
    return await _SHOWN.read(request, row, caller)


@router.post(
    "/v1/streams/{stream_id}/queries",
    **describe(
        "askStream",
        "Ask a stream",
        "Sums of cells, each compared privately with the data as they are now: what the synopsis says where it is "
        "good enough, a fresh measurement where it is not. Costs nothing. The same query by the same caller of the "
        "same version of the data has the same answer.",
        tag="Streams",
        body=StreamQueriesBody,
        body_examples={"years": _QUERIES},
        answers={200: (StreamQueriesAnswer, None)},
        problems=(*REFUSALS, "conflict", "execution_failed"),
    ),
)
async def ask_stream(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*ASKING))],
    row: Annotated[StreamRow, Depends(visible_stream)],
) -> Response:
    """POST /v1/streams/{stream_id}/queries."""
    services = services_of(request)
    body, _ = await body_of(request, StreamQueriesBody)
    asked: AskStream = tuple(tuple(one.asked() for one in query.where) for query in body.queries)
    # Plans on the threads that read texts, and reads rows in the queue of queries, so that it holds up no estimate.
    deadline = time.monotonic() + _TURN_SECONDS
    while True:
        _require_asking(services, row, caller)
        try:
            begin = partial(services.streams.begin, row, asked, by=caller.name)
            begun = await called(services, caller, row.dataset, begin)
            if isinstance(begun, tuple):
                told = begun
            else:
                told = await services.jobs.run(partial(services.streams.complete, begun), owner=caller.name)
            break
        except Comparing:
            if time.monotonic() > deadline:
                raise
        # No thread waits with it.
        await asyncio.sleep(_LOOK_SECONDS)
        row = await visible_stream(request, row.id)
    return json_response(await in_thread(lambda: _answered(services, row.id, told)))


@router.delete(
    "/v1/streams/{stream_id}",
    **describe(
        "closeStream",
        "Close a stream",
        "Deletes its secret state, its synopsis and its answers. Its terms and the charge stay. A shared one may be "
        "closed by administrators too.",
        tag="Streams",
        answers={200: (StreamAnswer, None)},
        problems=("not_found", "conflict"),
    ),
)
async def close_stream(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*ASKING))],
    row: Annotated[StreamRow, Depends(visible_stream)],
) -> Response:
    """DELETE /v1/streams/{stream_id}."""
    close = partial(services_of(request).streams.close, row, actor=caller.name)
    # What was paid for everybody an administrator may end too.
    others = row.shared and caller.role is Role.ADMIN
    return await _SHOWN.closed(request, row, caller, close, others=others)


def _require_asking(services: Services, row: StreamRow, caller: Caller) -> None:
    """Its owner may ask, and of a shared one everybody who sees it. Errors: Problem not_found.

    Overseers see every stream; the updates of one that is not shared are its owner's to use up.
    """
    dataset = services.catalogue.get(row.dataset)
    if dataset is None or not services.streams.open_to(row, dataset):
        owned(row, caller, ResourceKind.STREAM)


def _answered(services: Services, stream_id: str, told: tuple[Told, ...]) -> dict[str, object]:
    """Answers, as they are shown, with what is left."""
    row = services.registry.resource(STREAMS, stream_id)
    assert row is not None, "streams are never removed"
    terms, frame = Terms.from_json(row.terms), services.streams.frame_for(row)
    counted = None if frame is None else frame.counted
    return {
        "answers": [_answer(one, terms) for one in told],
        "comparing": services.streams.standing(row, terms).comparing,
        "updates_left": row.left,
        "compared": row.made,
        "cut": left_out(counted)["cut"],
    }


def _answer(told: Told, terms: Terms) -> dict[str, object]:
    within = {Found.SYNOPSIS: terms.within, Found.MEASURED: terms.of_updates, Found.NOT_COMPARED: None}
    value = told.value * terms.step
    error = told.standard_error
    return {
        "value": _number(value),
        "found": told.found.value,
        "within": within[told.found],
        "standard_error": None if error is None else error * float(terms.step),
        "data_version": told.version,
        "repeated": told.repeated,
    }


def _number(value: Fraction) -> int | float:
    return value.numerator if value.denominator == 1 else float(value)


def _own(seen: Seen[StreamRow]) -> dict[str, object]:
    """What a stream has besides: its terms, its keys, and what is left of it."""
    row, streams = seen.row, seen.services.streams
    terms = Terms.from_json(row.terms)
    standing = streams.standing(row, terms)
    frame = streams.frame_for(row) if row.shared or row.principal == seen.caller.name else None
    return {
        "comparing": standing.comparing,
        "why": standing.why,
        "shared": row.shared,
        "sql": None if frame is None else frame.sql,
        "keys": None if frame is None else keys_of(frame),
        "epsilon": decimal_text(terms.epsilon),
        "cells": terms.cells,
        **promised(terms),
        "updates": terms.noise.updates,
        "updates_left": row.left,
        "queries": terms.queries,
        "compared": row.made,
        **left_out(None if frame is None else frame.counted),
    }


_SHOWN = Shown(STREAMS, _own, ("/queries",))
