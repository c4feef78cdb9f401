"""Monitors: opened once for a price, free to evaluate and to read."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from privacy.numbers import decimal_text
from server.auth import Caller, roles, services_of
from server.body import request_hash
from server.monitors.estimating import within
from server.monitors.notices import evaluation_body, evaluation_of_row
from server.monitors.refusals import UnderWay, background_stream
from server.monitors.terms import Evaluated, EvaluateMonitor, OpenMonitor, Terms
from server.once import idempotency_key
from server.resources.kinds import ResourceKind
from server.roles import ASKING, READING
from server.routes.common import body_of, describe, json_response
from server.routes.paying import REFUSALS, called, open_charged
from server.routes.resources import ADMITTED_SECONDS, After, Count, OfDataset, Seen, Shown, owned
from server.routes.sight import visible_monitor
from server.services import Services
from server.store.resources import MONITORS, MonitorRow
from server.wire.monitor_answers import EvaluationAnswer, MonitorAnswer, MonitorEstimateAnswer, MonitorList
from server.wire.monitor_requests import EvaluationBody, MonitorBody

__all__ = ["router"]

router = APIRouter()

_LOOK_SECONDS = 0.25
"""How often a long poll looks whether another version of the data is served."""
_UNDER_WAY_SECONDS = 60.0
"""How long an evaluation waits for another one of the same version to be over."""

_EXAMPLE = {
    "dataset": "demo",
    "sql": "SELECT COUNT(*) FROM visits WHERE department = 'Cardiology'",
    "threshold": "40000",
    "epsilon": "0.5",
    "contribution": {"rows_per_unit": 20},
    "hits": 1,
    "evaluations": 365,
}


async def _evaluated(
    services: Services, caller: Caller, row: MonitorRow, asked: EvaluateMonitor, *, deadline: float
) -> Evaluated:
    """What the data say as they are now. Waits for another evaluation of the same version, and says its outcome.

    On a stream it waits for its turn, until the deadline that the caller named. No thread waits with it.
    """
    if not Terms.from_json(row.terms).stream:
        deadline = time.monotonic() + _UNDER_WAY_SECONDS
    while True:
        try:
            return await _compared(services, caller, row, asked)
        except UnderWay:
            left = deadline - time.monotonic()
            if left <= 0:
                raise
        await asyncio.sleep(min(_LOOK_SECONDS, left))


async def _compared(services: Services, caller: Caller, row: MonitorRow, asked: EvaluateMonitor) -> Evaluated:
    """Plans on the threads that read texts, and reads rows in the queue of queries, so that it holds up no estimate."""
    begun = await called(services, caller, row.dataset, partial(services.monitors.begin, row, asked))
    if isinstance(begun, Evaluated):
        return begun
    return await services.jobs.run(partial(services.monitors.complete, begun), owner=caller.name)


@router.post(
    "/v1/monitors",
    **describe(
        "createMonitor",
        "Open a monitor",
        "Says, as the data grow, when a count or a sum passes a threshold. Charges the caller's budget once, in whole, "
        "for all comparisons together; they cost nothing afterwards. With the header `Idempotency-Key` the same "
        "request opens one monitor.",
        tag="Monitors",
        body=MonitorBody,
        body_examples={"count": _EXAMPLE},
        answers={201: (MonitorAnswer, None), 202: (MonitorAnswer, None)},
        headers={"Location": "Address of the monitor.", "Retry-After": "With 202: seconds until the next poll."},
        problems=(*REFUSALS, "idempotency_conflict", "conflict", "execution_failed", "charge_unknown"),
    ),
)
async def create_monitor(request: Request, caller: Annotated[Caller, Depends(roles(*ASKING))]) -> Response:
    """POST /v1/monitors."""
    services = services_of(request)
    wanted = await _wanted(request, caller, key=idempotency_key(request))
    opened = await open_charged(request, caller, wanted.dataset, partial(services.monitors.open, wanted))
    # It reads no row, so it is there at once; one that another request is opening is waited for.
    return await _SHOWN.made(request, caller, opened, deadline=time.monotonic() + ADMITTED_SECONDS)


@router.post(
    "/v1/monitors:estimate",
    **describe(
        "estimateMonitor",
        "Report what a monitor would cost",
        "The same body as a monitor. Says what it would cost, and how exact all of its outcomes would be. Computed "
        "from the text and public metadata only: it touches no private row and costs nothing.",
        tag="Monitors",
        body=MonitorBody,
        body_examples={"count": _EXAMPLE},
        answers={200: (MonitorEstimateAnswer, None)},
        problems=REFUSALS,
    ),
)
async def estimate_monitor(request: Request, caller: Annotated[Caller, Depends(roles(*ASKING))]) -> Response:
    """POST /v1/monitors:estimate."""
    services = services_of(request)
    wanted = await _wanted(request, caller, key=None)
    return json_response(await called(services, caller, wanted.dataset, partial(services.monitors.estimate, wanted)))


async def _wanted(request: Request, caller: Caller, *, key: str | None) -> OpenMonitor:
    """A request as the monitors read it."""
    body, raw = await body_of(request, MonitorBody)
    if body.stream and body.background:
        raise background_stream()
    return OpenMonitor(
        principal=caller.name,
        dataset=body.dataset,
        sql=body.sql,
        threshold=body.threshold,
        direction=body.direction,
        epsilon=body.epsilon,
        hits=body.hits,
        evaluations=body.evaluations,
        stream=body.stream,
        background=not body.stream if body.background is None else body.background,
        answer_epsilon=body.answer_epsilon,
        account=body.budget,
        contribution=None if body.contribution is None else body.contribution.asked(),
        idempotency_key=key,
        body_hash=request_hash(raw, "monitor"),
    )


@router.get(
    "/v1/monitors",
    **describe(
        "listMonitors",
        "List monitors",
        "The caller's monitors, newest first; everybody's, without their questions, for administrators and auditors.",
        tag="Monitors",
        answers={200: (MonitorList, None)},
        problems=("not_found",),
    ),
)
async def list_monitors(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*READING))],
    count: Count = 20,
    after: After = None,
    dataset: OfDataset = None,
) -> Response:
    """GET /v1/monitors."""
    return await _SHOWN.page(request, caller, dataset=dataset, after=after, count=count)


@router.get(
    "/v1/monitors/{monitor_id}",
    **describe(
        "getMonitor",
        "Read a monitor",
        "Its terms, its hits and its last evaluation. Reads no rows and costs nothing.",
        tag="Monitors",
        answers={200: (MonitorAnswer, None)},
        problems=("not_found",),
    ),
)
async def get_monitor(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*READING))],
    row: Annotated[MonitorRow, Depends(visible_monitor)],
) -> Response:
    """GET /v1/monitors/{monitor_id}."""
    return await _SHOWN.read(request, row, caller)


@router.delete(
    "/v1/monitors/{monitor_id}",
    **describe(
        "closeMonitor",
        "Close a monitor",
        "It is evaluated no more. What it said stays, and so does the charge.",
        tag="Monitors",
        answers={200: (MonitorAnswer, None)},
        problems=("not_found", "conflict"),
    ),
)
async def close_monitor(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*ASKING))],
    row: Annotated[MonitorRow, Depends(visible_monitor)],
) -> Response:
    """DELETE /v1/monitors/{monitor_id}."""
    registry = services_of(request).registry
    close = partial(registry.close_resource, MONITORS, row.id, actor=caller.name)
    return await _SHOWN.closed(request, row, caller, close)


@router.post(
    "/v1/monitors/{monitor_id}/evaluations",
    **describe(
        "evaluateMonitor",
        "Evaluate a monitor",
        "Compares the data as they are now with the threshold, with noise. Costs nothing but, of a hit that is "
        "answered, its answer. A standing question is compared once for each version of the data, and the same is said "
        "again until there is another one; `wait_ms` waits for it, or for the one after that which `after` names. "
        "Evaluations of a stream follow one another, and `wait_ms` waits for the turn.",
        tag="Monitors",
        body=EvaluationBody,
        body_examples={"standing": {"wait_ms": 30000}, "stream": {"sql": _EXAMPLE["sql"], "threshold": "500"}},
        answers={200: (EvaluationAnswer, None)},
        problems=(*REFUSALS, "conflict", "execution_failed"),
    ),
)
async def evaluate_monitor(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*ASKING))],
    row: Annotated[MonitorRow, Depends(visible_monitor)],
) -> Response:
    """POST /v1/monitors/{monitor_id}/evaluations."""
    services = services_of(request)
    body, _ = await body_of(request, EvaluationBody)
    owned(row, caller, ResourceKind.MONITOR)
    asked = EvaluateMonitor(sql=body.sql, threshold=body.threshold)
    deadline = time.monotonic() + body.wait_ms / 1000
    # An answer to a hit is charged.
    request.state.spending = True
    said = await _evaluated(services, caller, row, asked, deadline=deadline)
    seen = said.number if body.after is None else body.after
    while _waits(said, seen, asked_after=body.after is not None) and time.monotonic() < deadline:
        await asyncio.sleep(min(_LOOK_SECONDS, max(0.0, deadline - time.monotonic())))
        dataset = services.catalogue.get(row.dataset)
        if dataset is None or dataset.version == said.version:
            continue
        row = await visible_monitor(request, row.id)
        said = await _evaluated(services, caller, row, asked, deadline=deadline)
    return json_response(evaluation_body(said))


def _waits(said: Evaluated, seen: int, *, asked_after: bool) -> bool:
    """Whether a long poll goes on: nothing was said that the caller has not seen, and something may be."""
    return said.repeated and said.number <= seen and (said.outcome == "not_passed" or (asked_after and said.left > 0))


def _own(seen: Seen[MonitorRow]) -> dict[str, object]:
    """What a monitor has besides: its terms, what is left of it, and its hits."""
    row, registry = seen.row, seen.services.registry
    terms = Terms.from_json(row.terms)
    last = registry.evaluations(row.id, count=1)
    question = seen.services.monitors.question_of(row) if row.principal == seen.caller.name else None
    return {
        "sql": None if question is None else question[0],
        "threshold": None if question is None else question[1],
        "direction": terms.direction.value,
        "stream": terms.stream,
        "background": terms.background,
        "epsilon": decimal_text(terms.epsilon),
        "answer_epsilon": None if terms.answer_epsilon is None else decimal_text(terms.answer_epsilon),
        "rows_per_unit": None if terms.contribution is None else terms.contribution.rows_per_unit,
        "hits": terms.hits,
        "hits_left": row.left,
        "evaluations": terms.evaluations,
        "evaluations_made": last[0].number if last else 0,
        "within": within(terms),
        "passed": [evaluation_of_row(found, row.left) for found in registry.hits(row.id)],
        "last": evaluation_of_row(last[0], row.left) if last else None,
    }


_SHOWN = Shown(MONITORS, _own, ("/evaluations",))
