"""Lending: a part of one's own budget for somebody else, until a day, and taking it back."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from accountant.account import Account
from server.administration.lending import LendBudget, Lending
from server.administration.lending_refusals import EndsTooLate, NoLoan
from server.administration.refusal import ActRefused
from server.auth import Caller, roles, services_of
from server.once import ONCE_TEXT, once
from server.roles import ASKING, Role
from server.routes.budgets import EXAMPLE_BUDGET, budget_body
from server.routes.common import body_of, describe, json_response
from server.routes.sight import visible_account
from server.wire.answers import BudgetAnswer
from server.wire.lending import LendBody, ReasonBody

__all__ = ["router"]

router = APIRouter()

_EXAMPLE = {"principal": "student", "limit": {"epsilon": "0.5", "delta": "0.0000001"}, "expires": "2027-01-01"}
_LENT = {
    **EXAMPLE_BUDGET,
    "id": "b_77d1",
    "parent": "b_2c9a",
    "principal": "student",
    "name": "lent to student",
    "expires": "2027-01-01T00:00:00+00:00",
    "links": {"self": "/v1/budgets/b_77d1", "entries": "/v1/budgets/b_77d1/entries"},
}


@router.post(
    "/v1/budgets/{budget_id}:lend",
    **describe(
        "lendBudget",
        "Lend a part of a budget",
        "An envelope below one's own budget that somebody else spends until a day. Each of its charges is charged to "
        "the lender's budget and to all above it too, so nobody has to allow it. It is a cap and sets nothing aside: "
        "who asks first is served first. It lets nobody into a dataset of which they have no budget, and pays only for "
        "queries that name it (`budget`). " + ONCE_TEXT,
        tag="Budgets",
        body=LendBody,
        body_examples={"student": _EXAMPLE},
        answers={201: (BudgetAnswer, _LENT)},
        headers={"Location": "Address of the envelope."},
        problems=("not_found", "conflict", "idempotency_conflict"),
    ),
)
async def lend_budget(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*ASKING, in_person=True))],
    account: Annotated[Account, Depends(visible_account)],
) -> Response:
    """POST /v1/budgets/{budget_id}:lend."""
    services = services_of(request)
    body, raw = await body_of(request, LendBody)

    def lend() -> Response:
        if account.principal != caller.name and caller.role is not Role.ADMIN:
            raise ActRefused(NoLoan(account.id))
        try:
            expires = body.end
        except ValueError:
            raise ActRefused(EndsTooLate("there is no such day")) from None
        wanted = LendBudget(
            account=account.id,
            principal=body.principal,
            epsilon=body.limit.epsilon,
            delta=body.limit.delta,
            expires=expires,
            name=body.name,
        )
        lent = Lending(services.ledger).lend(wanted, actor=caller.name)
        return json_response(budget_body(services, lent), status=201, headers={"Location": f"/v1/budgets/{lent.id}"})

    return await once(request, caller, raw, lend)


@router.post(
    "/v1/budgets/{budget_id}:recall",
    **describe(
        "recallBudget",
        "Take back what was lent",
        "Ends an envelope now, for good: it pays for nothing more. What was spent stays spent; a query that is under "
        "way is finished. Its lender may, whoever holds it, and an administrator, who may end a group too. One that "
        "has ended stays.",
        tag="Budgets",
        body=ReasonBody,
        body_examples={"done": {"reason": "The course is over"}},
        answers={200: (BudgetAnswer, _LENT)},
        problems=("not_found", "conflict", "idempotency_conflict"),
    ),
)
async def recall_budget(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*ASKING, in_person=True))],
    account: Annotated[Account, Depends(visible_account)],
) -> Response:
    """POST /v1/budgets/{budget_id}:recall."""
    services = services_of(request)
    body, raw = await body_of(request, ReasonBody)

    def recall() -> Response:
        # Whoever holds an envelope may give it back; what has no end is an administrator's to end.
        if account.expires is None and caller.role is not Role.ADMIN:
            raise ActRefused(NoLoan(account.id))
        ended = Lending(services.ledger).recall(account.id, actor=caller.name, reason=body.reason)
        return json_response(budget_body(services, ended))

    return await once(request, caller, raw, recall)
