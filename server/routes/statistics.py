"""Statistics that an owner registered: listed, priced and asked by name."""

from __future__ import annotations

import time
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from privacy.policy import Dataset
from server.auth import Caller, roles, services_of
from server.body import request_hash
from server.once import idempotency_key
from server.roles import ASKING, READING, Role
from server.routes.common import body_of, describe, json_response, running_response
from server.routes.paying import REFUSALS, answer_by, called, start_charged
from server.routes.sight import visible_dataset
from server.statistics.asking import ToAsk, again
from server.statistics.terms import AskStatistic
from server.wire.answers import RunningAnswer
from server.wire.statistic_answers import StatisticAnswer, StatisticEstimateAnswer, StatisticList
from server.wire.statistic_requests import StatisticBody

__all__ = ["router"]

router = APIRouter()

_EXAMPLE = {"dataset": "demo", "statistic": "typical_age", "width": "2", "spend": {"own_epsilon": "1"}}


def _asked(caller: Caller, body: StatisticBody, raw: dict[str, object], *, key: str | None) -> AskStatistic:
    """A request as the statistics read it."""
    return AskStatistic(
        principal=caller.name,
        trusted=_trusted(caller),
        dataset=body.dataset,
        statistic=body.statistic,
        width=body.width,
        epsilon=body.spend.epsilon,
        own_epsilon=body.spend.own_epsilon,
        confidence=body.confidence,
        account=body.budget,
        idempotency_key=key,
        body_hash=request_hash(raw, "statistic"),
    )


def _trusted(caller: Caller) -> bool:
    return caller.role in (Role.ADMIN, Role.OWNER)


@router.get(
    "/v1/datasets/{dataset}/statistics",
    **describe(
        "listStatistics",
        "List registered statistics",
        "What the owner registered in the dataset file, as far as the caller may ask it: its text, its kind, and the "
        "least proposal. Follows from declarations.",
        tag="Statistics",
        answers={200: (StatisticList, None)},
        problems=("not_found", "unavailable"),
    ),
)
async def list_statistics(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*READING))],
    dataset: Annotated[Dataset, Depends(visible_dataset)],
) -> Response:
    """GET /v1/datasets/{dataset}/statistics."""
    services = services_of(request)
    trusted = caller.oversees or _trusted(caller)
    listed = partial(services.statistics.listed, dataset, trusted=trusted)
    return json_response({"statistics": await services.jobs.call(listed, owner=caller.name)})


@router.post(
    "/v1/statistics:estimate",
    **describe(
        "estimateStatistic",
        "Report what a registered statistic would cost",
        "The same body as for asking it. Says price, threshold and interval. Computed from declarations only: it "
        "touches no private row and costs nothing.",
        tag="Statistics",
        body=StatisticBody,
        body_examples={"median": _EXAMPLE},
        answers={200: (StatisticEstimateAnswer, None)},
        problems=REFUSALS,
    ),
)
async def estimate_statistic(request: Request, caller: Annotated[Caller, Depends(roles(*ASKING))]) -> Response:
    """POST /v1/statistics:estimate."""
    services = services_of(request)
    body, raw = await body_of(request, StatisticBody)
    asked = _asked(caller, body, raw, key=None)
    return json_response(await called(services, caller, asked.dataset, partial(services.statistics.estimate, asked)))


@router.post(
    "/v1/statistics",
    **describe(
        "askStatistic",
        "Ask a registered statistic and pay for it",
        "Propose-test-release: whether the statistic is as stable as is proposed is tested with noise, and only then "
        "is it released. The price, a delta in it, is charged before a row is read, and is the same where the outcome "
        "is `no_answer`. The same question again is answered from its stored outcome for free; with another "
        "`Idempotency-Key` it is drawn and charged anew.",
        tag="Statistics",
        body=StatisticBody,
        body_examples={"median": _EXAMPLE},
        answers={200: (StatisticAnswer, None), 202: (RunningAnswer, None)},
        headers={"Content-Location": "Where the outcome is read again.", "Retry-After": "With 202: seconds to wait."},
        problems=(*REFUSALS, "idempotency_conflict", "execution_failed", "query_void", "charge_unknown"),
    ),
)
async def ask_statistic(request: Request, caller: Annotated[Caller, Depends(roles(*ASKING))]) -> Response:
    """POST /v1/statistics."""
    deadline = time.monotonic()
    services = services_of(request)
    key = idempotency_key(request)
    body, raw = await body_of(request, StatisticBody)
    deadline += body.wait_ms / 1000
    asked = _asked(caller, body, raw, key=key)
    statistics = services.statistics
    started = await start_charged(
        request,
        caller,
        asked.dataset,
        partial(statistics.admit, asked),
        statistics.complete,
        services.resources.abandon,
    )
    query_id = started.query.query_id
    answer = await answer_by(request, started, deadline=deadline)
    if answer is None:
        return running_response(query_id)
    if key is None and not isinstance(started.query, ToAsk):
        # With a key it is a retry, which gets the same bytes.
        answer = again(answer)
    headers = {"Cache-Control": "no-store", "Content-Location": f"/v1/queries/{query_id}"}
    return Response(answer, media_type="application/json", headers=headers)
