"""Models: fitted for a price, free to read."""

from __future__ import annotations

import json
import time
from fractions import Fraction
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from accountant.request import QueryRecord
from accountant.states import QueryStatus
from mechanisms.private_descent import Method
from privacy.numbers import decimal_text
from privacy.refusal import CODES
from server.auth import Caller, roles, services_of
from server.body import canonical_hash
from server.errors import Problem
from server.models.terms import TrainModel
from server.once import idempotency_key
from server.roles import ASKING, READING
from server.routes.common import body_of, describe, identifier, in_thread, json_response, not_found, page_response
from server.routes.paying import answer_by, explained
from server.routes.sight import visible_model
from server.services import Services
from server.store.models import ModelRow
from server.wire.answers import CancelAnswer
from server.wire.model_answers import ModelAnswer, ModelEstimateAnswer, ModelList
from server.wire.model_requests import ModelBody
from server.wire.requests import ACCOUNT_PATTERN
from server.wire.words import State

__all__ = ["router"]

router = APIRouter()

_REFUSALS = tuple(code for code in CODES if code != "execution_failed")
_GRADIENT_CLIP = Fraction(1, 2)

_EXAMPLE = {
    "dataset": "demo",
    "sql": "SELECT age, sex, smoker AS label FROM patients",
    "spend": {"own_epsilon": "0.5"},
}


def _asked(caller: Caller, body: ModelBody, raw: dict[str, object], *, key: str | None) -> TrainModel:
    """A request as the models read it."""
    asked = {name: value for name, value in raw.items() if name != "wait_ms" and value is not None}
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
        body_hash=canonical_hash(asked | {"as": "model"}),
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
        problems=_REFUSALS,
    ),
)
async def estimate_model(request: Request, caller: Annotated[Caller, Depends(roles(*ASKING))]) -> Response:
    """POST /v1/models:estimate."""
    services = services_of(request)
    body, raw = await body_of(request, ModelBody)
    asked = _asked(caller, body, raw, key=None)
    async with explained(services, caller, asked.dataset):
        return json_response(await services.jobs.call(partial(services.models.estimate, asked), owner=caller.name))


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
        problems=(*_REFUSALS, "idempotency_conflict", "conflict", "execution_failed", "charge_unknown"),
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
    # From here on a failure that nobody foresaw counts as charged.
    request.state.spending = True
    async with explained(services, caller, asked.dataset):
        started = await services.jobs.start(
            partial(models.admit, asked), models.complete, models.abandon, owner=caller.name
        )
    model_id = started.query.query_id
    request.state.query_id = model_id
    await answer_by(request, started, deadline=deadline)
    row = await in_thread(lambda: services.registry.model(model_id))
    if row is None:
        raise Problem(
            "conflict",
            what="the model of this Idempotency-Key is not there yet",
            why="It is being admitted at this moment.",
            instead=("Send the request again in a moment.",),
        )
    shown = await in_thread(lambda: _shown(services, row, caller, whole=True))
    done = shown["status"] != State.RUNNING
    headers = {"Location": f"/v1/models/{model_id}"} | ({} if done else {"Retry-After": "1"})
    return json_response(shown, status=201 if done else 202, headers=headers)


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
    count: Annotated[int, Query(ge=1, le=100, description="Models per page.")] = 20,
    after: Annotated[str | None, Query(pattern=ACCOUNT_PATTERN, description="`next` of the page before.")] = None,
) -> Response:
    """GET /v1/models."""
    services = services_of(request)
    whose = None if caller.oversees else caller.name
    if after is not None:
        # A position in the list of others would reveal when they asked.
        last = await in_thread(lambda: services.registry.model(identifier(after, "model")))
        if last is None or not (caller.oversees or last.principal == caller.name):
            raise not_found("model")
    rows = await in_thread(lambda: services.registry.models(whose, after=after, count=count + 1))
    shown = await in_thread(lambda: {row.id: _shown(services, row, caller, whole=False) for row in rows[:count]})
    return page_response("models", rows, count, body=lambda row: shown[row.id], after=lambda row: row.id)


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
    row: Annotated[ModelRow, Depends(visible_model)],
) -> Response:
    """GET /v1/models/{model_id}."""
    services = services_of(request)
    return json_response(await in_thread(lambda: _shown(services, row, caller, whole=True)))


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
    row: Annotated[ModelRow, Depends(visible_model)],
) -> Response:
    """POST /v1/models/{model_id}:cancel."""
    services = services_of(request)
    if row.principal != caller.name:
        # Overseers see it; whether it goes on is its owner's to say.
        raise not_found("model")
    state = await in_thread(lambda: services.models.cancel(row))
    charged = state is not QueryStatus.FAILED_VOID
    return json_response({"id": row.id, "status": "unknown" if state is None else State.of(state), "charged": charged})


def _shown(services: Services, row: ModelRow, caller: Caller, *, whole: bool) -> dict[str, object]:
    """A model, as this caller may read it; with `whole` with what was fitted."""
    record = services.ledger.query(row.id)
    terms = json.loads(row.terms)
    settled = whole and record is not None and record.state is QueryStatus.SETTLED and record.answer is not None
    return {
        "id": row.id,
        "dataset": row.dataset,
        "principal": row.principal,
        "budget": row.account,
        "created": row.created,
        "status": State.RUNNING if record is None else State.of(record.state),
        "method": terms["method"],
        "iterations": terms["iterations"],
        "held_out": terms["held_out"],
        "charged": [] if record is None else _charged(record, caller),
        "model": json.loads(record.answer or b"") if settled and record is not None else None,
        "links": {
            "self": f"/v1/models/{row.id}",
            "cancel": f"/v1/models/{row.id}:cancel",
            "budget": f"/v1/budgets/{row.account}",
        },
    }


def _charged(record: QueryRecord, caller: Caller) -> list[dict[str, str]]:
    # What an account above paid is a share of its use, which reveals what others asked.
    return [
        {
            "budget": part.account,
            "epsilon": decimal_text(part.epsilon, places=12),
            "delta": decimal_text(part.delta),
        }
        for part in record.charged
        if caller.oversees or part.account == record.account
    ]
