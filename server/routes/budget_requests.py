"""Budget requests: asked for by whoever asks questions, decided by administrators and owners."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from server.administration.budget_requests import AskBudget, Decide, request_body, request_tag
from server.auth import Caller, require_scope, roles, services_of
from server.once import ONCE_TEXT, once
from server.preconditions import if_match
from server.roles import ASKING, READING, Role
from server.routes.common import body_of, describe, in_thread, json_response, page_response
from server.routes.paying import REFUSALS, called
from server.routes.queries import question_of
from server.routes.resources import After
from server.routes.sight import datasets_decided_by, seen_request, visible_request
from server.scopes import Scope
from server.services import Services
from server.store.budget_requests import BudgetRequestRow, RequestState
from server.wire.budget_requests import (
    BudgetRequestAnswer,
    BudgetRequestBody,
    BudgetRequestChangeBody,
    BudgetRequestList,
)
from server.wire.words import RequestStateWord

__all__ = ["router"]

router = APIRouter()

_ETAG_TEXT = "Strong tag of the request's state: send it as If-Match with a decision."
_EXAMPLE = {
    "dataset": "demo",
    "reason": "Monthly report on wards",
    "question": {"dataset": "demo", "sql": "SELECT COUNT(*) AS n FROM patients", "accuracy": {"half_width": "20"}},
}


def _body(services: Services, row: BudgetRequestRow) -> dict[str, object]:
    return request_body(row, services.requests.content(row))


def _quoted(row: BudgetRequestRow) -> dict[str, str]:
    return {"ETag": f'"{request_tag(row)}"'}


@router.post(
    "/v1/budget-requests",
    **describe(
        "createBudgetRequest",
        "Ask for a budget",
        "Asks for a limit: of the caller's own budget, or of a new one where the caller has none of the dataset. With "
        "a question its estimate is kept beside it, and without a limit what is missing for it is asked for. Those "
        "who may decide are notified by their webhooks, without the question. Whether there is a dataset of which the "
        "caller has no budget is not said. Never spends. " + ONCE_TEXT,
        tag="Budget requests",
        body=BudgetRequestBody,
        body_examples={
            "question": _EXAMPLE,
            "limit": {"dataset": "demo", "reason": "A first study", "limit": {"epsilon": "2", "delta": "0.000001"}},
        },
        answers={201: (BudgetRequestAnswer, None)},
        headers={"Location": "Address of the request.", "ETag": _ETAG_TEXT},
        problems=("conflict", "idempotency_conflict", "not_found", *REFUSALS),
    ),
)
async def create_request(request: Request, caller: Annotated[Caller, Depends(roles(*ASKING))]) -> Response:
    """POST /v1/budget-requests."""
    services = services_of(request)
    body, raw = await body_of(request, BudgetRequestBody)
    estimate = await _estimate(services, caller, body, raw)
    question = raw.get("question")
    named = body.budget or (None if body.question is None else body.question.budget)
    wanted = AskBudget(
        principal=caller.name,
        dataset=body.dataset,
        reason=body.reason,
        account=named,
        epsilon=None if body.limit is None else body.limit.epsilon,
        delta=None if body.limit is None else body.limit.delta,
        question=question if isinstance(question, dict) else None,
        estimate=estimate,
    )

    def ask() -> Response:
        row = services.requests.ask(wanted)
        headers = {"Location": f"/v1/budget-requests/{row.id}", **_quoted(row)}
        return json_response(_body(services, row), status=201, headers=headers)

    return await once(request, caller, raw, ask)


async def _estimate(
    services: Services, caller: Caller, body: BudgetRequestBody, raw: Mapping[str, object]
) -> Mapping[str, object] | None:
    """What the question would cost; None without one, and for a caller who has no budget of the dataset."""
    asked = raw.get("question")
    if body.question is None or not isinstance(asked, dict):
        return None
    own = await in_thread(lambda: services.ledger.accounts(dataset=body.dataset, principal=caller.name))
    if all(account.expires is not None for account in own):
        return None
    question = question_of(caller, body.question, {**asked, "budget": body.budget or body.question.budget}, key=None)
    return await called(services, caller, body.dataset, partial(services.journey.estimate, question))


@router.get(
    "/v1/budget-requests",
    **describe(
        "listBudgetRequests",
        "List budget requests",
        "The caller's own, newest first; for owners those of the datasets of which they have a budget too, and "
        "everybody's for administrators and auditors.",
        tag="Budget requests",
        answers={200: (BudgetRequestList, None)},
        problems=("not_found",),
    ),
)
async def list_requests(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*READING))],
    state: Annotated[RequestStateWord | None, Query(description="Of this state only.")] = None,
    count: Annotated[int, Query(ge=1, le=100, description="Members per page.")] = 20,
    after: After = None,
) -> Response:
    """GET /v1/budget-requests."""
    services = services_of(request)
    if after is not None:
        # A position in the list of others would reveal when they asked.
        await seen_request(services, caller, after)
    whose = None if caller.oversees else caller.name
    wanted = None if state is None else state.value

    def find() -> tuple[BudgetRequestRow, ...]:
        also = datasets_decided_by(services, caller)
        return services.registry.requests(whose, also=also, state=wanted, after=after, count=count + 1)

    rows = await in_thread(find)
    return page_response("requests", rows, count, body=lambda row: _body(services, row), after=lambda row: row.id)


@router.get(
    "/v1/budget-requests/{request_id}",
    **describe(
        "getBudgetRequest",
        "Read a budget request",
        "The limit, the question with its price and what was missing, and the decision with its reason.",
        tag="Budget requests",
        answers={200: (BudgetRequestAnswer, None)},
        headers={"ETag": _ETAG_TEXT},
        problems=("not_found",),
    ),
)
async def get_request(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*READING))],
    row: Annotated[BudgetRequestRow, Depends(visible_request)],
) -> Response:
    """GET /v1/budget-requests/{request_id}."""
    return json_response(_body(services_of(request), row), headers=_quoted(row))


@router.patch(
    "/v1/budget-requests/{request_id}",
    **describe(
        "decideBudgetRequest",
        "Decide a budget request",
        "Approves or rejects what somebody else asked for (administrators, and owners with a budget of the dataset), "
        "or withdraws what the caller asked for. An approval changes the limit, or opens the budget, in one "
        "transaction with the request, and the ledger's entry names the request, who approved and why. A request is "
        "decided once: whoever comes second gets 409, or 412 with `If-Match`.",
        tag="Budget requests",
        body=BudgetRequestChangeBody,
        body_examples={
            "approve": {"state": "approved", "reason": "Agreed for the report"},
            "reject": {"state": "rejected", "reason": "Use the histogram that is released already"},
        },
        answers={200: (BudgetRequestAnswer, None)},
        headers={"ETag": _ETAG_TEXT},
        problems=("not_found", "conflict", "precondition_failed"),
    ),
)
async def decide_request(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*ASKING, in_person=True))],
    row: Annotated[BudgetRequestRow, Depends(visible_request)],
) -> Response:
    """PATCH /v1/budget-requests/{request_id}."""
    services = services_of(request)
    body, _ = await body_of(request, BudgetRequestChangeBody)
    if body.state is not RequestState.WITHDRAWN:
        # What changes somebody's limit is no asking, whoever may do it.
        require_scope(caller, Scope.ADMINISTER)
    wanted = Decide(
        state=body.state,
        actor=caller.name,
        role=caller.role or Role.ANALYST,
        reason=body.reason,
        epsilon=None if body.limit is None else body.limit.epsilon,
        delta=None if body.limit is None else body.limit.delta,
        expected=if_match(request),
    )
    decided = await in_thread(lambda: services.requests.decide(row, wanted))
    return json_response(_body(services, decided), headers=_quoted(decided))
