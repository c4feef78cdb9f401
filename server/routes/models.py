"""Models: fitted for a price, free to read."""

from __future__ import annotations

import json
import time
from fractions import Fraction
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from mechanisms.private_descent import Method
from server.auth import Caller, roles, services_of
from server.body import request_hash
from server.models.terms import TrainModel
from server.once import idempotency_key
from server.roles import ASKING, READING
from server.routes.common import body_of, describe, json_response
from server.routes.paying import REFUSALS, called, start_charged
from server.routes.resources import After, Count, OfDataset, Seen, Shown
from server.routes.sight import visible_model
from server.store.resources import MODELS, ResourceRow
from server.wire.answers import CancelAnswer
from server.wire.model_answers import ModelAnswer, ModelEstimateAnswer, ModelList
from server.wire.model_requests import ModelBody

__all__ = ["router"]

router = APIRouter()

_GRADIENT_CLIP = Fraction(1, 2)

_EXAMPLE = {
    "dataset": "demo",
    "sql": "SELECT age, sex, smoker AS label FROM patients",
    "spend": {"own_epsilon": "0.5"},
}


def _asked(caller: Caller, body: ModelBody, raw: dict[str, object], *, key: str | None) -> TrainModel:
    """A request as the models read it."""
    default = _GRADIENT_CLIP if body.method is Method.GRADIENT_CLIPPING else Fraction(1)
    return TrainModel(
        principal=caller.name,
        dataset=body.dataset,
        sql=body.sql,
        method=body.method,
        iterations=body.iterations,
        held_out=body.held_out,
        clip=default if body.clip is None else body.clip,
        epsilon=body.spend.epsilon,
        own_epsilon=body.spend.own_epsilon,
        confidence=body.confidence,
        account=body.budget,
        idempotency_key=key,
        body_hash=request_hash(raw, "model"),
    )


@router.post(
    "/v1/models:estimate",
    **describe(
        "estimateModel",
        "Report what a model would cost",
        "The same body as a model. Says what it would cost, what would be measured, and how its features become "
        "columns. Computed from the text and public metadata only: it touches no private row and costs nothing.",
        tag="Models",
        body=ModelBody,
        body_examples={"logistic": _EXAMPLE},
        answers={200: (ModelEstimateAnswer, None)},
        problems=REFUSALS,
    ),
)
async def estimate_model(request: Request, caller: Annotated[Caller, Depends(roles(*ASKING))]) -> Response:
    """POST /v1/models:estimate."""
    services = services_of(request)
    body, raw = await body_of(request, ModelBody)
    asked = _asked(caller, body, raw, key=None)
    return json_response(await called(services, caller, asked.dataset, partial(services.models.estimate, asked)))


@router.post(
    "/v1/models",
    **describe(
        "createModel",
        "Fit a model and pay for it",
        "Logistic regression by gradient descent with noise, or linear regression from noisy second moments, of rows "
        "that a SELECT of features and a label names. Charges the caller's budget once, before a row is read, and "
        "answers with weights, intervals and figures of held-out units. With the header `Idempotency-Key` the same "
        "request fits one model.",
        tag="Models",
        body=ModelBody,
        body_examples={"logistic": _EXAMPLE},
        answers={201: (ModelAnswer, None), 202: (ModelAnswer, None)},
        headers={"Location": "Address of the model.", "Retry-After": "With 202: seconds until the next poll."},
        problems=(*REFUSALS, "idempotency_conflict", "conflict", "execution_failed", "charge_unknown"),
    ),
)
async def create_model(request: Request, caller: Annotated[Caller, Depends(roles(*ASKING))]) -> Response:
    """POST /v1/models."""
    deadline = time.monotonic()
    services = services_of(request)
    key = idempotency_key(request)
    body, raw = await body_of(request, ModelBody)
    deadline += body.wait_ms / 1000
    asked = _asked(caller, body, raw, key=key)
    models = services.models
    started = await start_charged(
        request, caller, asked.dataset, partial(models.admit, asked), models.complete, services.resources.abandon
    )
    return await _SHOWN.made(request, caller, started, deadline=deadline)


@router.get(
    "/v1/models",
    **describe(
        "listModels",
        "List models",
        "The caller's models, newest first; everybody's for administrators and auditors. The text of their rows is "
        "not kept.",
        tag="Models",
        answers={200: (ModelList, None)},
        problems=("not_found",),
    ),
)
async def list_models(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*READING))],
    count: Count = 20,
    after: After = None,
    dataset: OfDataset = None,
) -> Response:
    """GET /v1/models."""
    return await _SHOWN.page(request, caller, dataset=dataset, after=after, count=count)


@router.get(
    "/v1/models/{model_id}",
    **describe(
        "getModel",
        "Read a model",
        "Its state, and once it is settled its weights. Reads no rows and costs nothing.",
        tag="Models",
        answers={200: (ModelAnswer, None)},
        problems=("not_found",),
    ),
)
async def get_model(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*READING))],
    row: Annotated[ResourceRow, Depends(visible_model)],
) -> Response:
    """GET /v1/models/{model_id}."""
    return await _SHOWN.read(request, row, caller)


@router.post(
    "/v1/models/{model_id}:cancel",
    **describe(
        "cancelModel",
        "Cancel a model",
        "A model that did not start is voided and costs nothing. One that started stays charged: an early end would "
        "reveal something about rows for free.",
        tag="Models",
        answers={200: (CancelAnswer, {"id": "t_7d1f", "status": "failed_void", "charged": False})},
        problems=("not_found", "conflict"),
    ),
)
async def cancel_model(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*ASKING))],
    row: Annotated[ResourceRow, Depends(visible_model)],
) -> Response:
    """POST /v1/models/{model_id}:cancel."""
    return await _SHOWN.cancelled(request, row, caller, partial(services_of(request).resources.cancel, row.id))


def _own(seen: Seen[ResourceRow]) -> dict[str, object]:
    """What a model has besides; of a whole one with what was fitted."""
    terms, answer = json.loads(seen.row.terms), seen.answer if seen.whole else None
    return {
        "method": terms["method"],
        "iterations": terms["iterations"],
        "held_out": terms["held_out"],
        "model": None if answer is None else json.loads(answer),
    }


_SHOWN = Shown(MODELS, _own, (":cancel",))
