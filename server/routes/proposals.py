"""What takes two administrators: proposals, and their confirmation by another one."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from accountant.account import Account
from server.administration.proposals import Adjust, Caps, Proposals, proposal_body
from server.auth import Caller, roles, services_of
from server.once import ONCE_TEXT, once
from server.roles import OVERSEEING, Role
from server.routes.common import body_of, describe, identifier, in_thread, json_response, not_found, page_response
from server.routes.resources import After
from server.routes.sight import visible_account
from server.services import Services
from server.store.proposals import ProposalRow, ProposalState
from server.wire.proposals import AcknowledgeBody, AdjustBody, ProposalAnswer, ProposalChangeBody, ProposalList
from server.wire.words import ProposalStateWord

__all__ = ["router"]

router = APIRouter()

_WHO = "Another administrator confirms it, with a key of their own, within a week; nothing is done before. "


def _proposals(services: Services) -> Proposals:
    settings = services.settings
    caps = Caps(Fraction(settings.adjust_max_epsilon), Fraction(settings.adjust_max_delta))
    return Proposals(services.ledger, services.registry, caps)


def _made(row: ProposalRow) -> Response:
    return json_response(proposal_body(row), status=201, headers={"Location": f"/v1/proposals/{row.id}"})


@router.post(
    "/v1/budgets/{budget_id}:adjust",
    **describe(
        "adjustBudget",
        "Propose to adjust a budget",
        "Raises or lowers a limit by an amount that the settings bound (`adjust_max_epsilon`, `adjust_max_delta`). "
        + _WHO
        + "What was spent is never lowered: a query that may have run has revealed what it revealed. "
        + ONCE_TEXT,
        tag="Proposals",
        body=AdjustBody,
        body_examples={
            "raise": {"direction": "raise", "epsilon": "0.5", "delta": "0", "reason": "A node failed under a query"}
        },
        answers={201: (ProposalAnswer, None)},
        headers={"Location": "Address of the proposal."},
        problems=("not_found", "conflict", "idempotency_conflict"),
    ),
)
async def adjust_budget(
    request: Request,
    caller: Annotated[Caller, Depends(roles(Role.ADMIN))],
    account: Annotated[Account, Depends(visible_account)],
) -> Response:
    """POST /v1/budgets/{budget_id}:adjust."""
    services, name = services_of(request), caller.name
    body, raw = await body_of(request, AdjustBody)
    sign = 1 if body.direction == "raise" else -1
    wanted = Adjust(account=account.id, epsilon=sign * body.epsilon, delta=sign * body.delta, reason=body.reason)
    return await once(request, caller, raw, lambda: _made(_proposals(services).adjust(wanted, actor=name)))


@router.post(
    "/v1/ledger:acknowledge-restore",
    **describe(
        "acknowledgeRestore",
        "Propose to go on with a restored ledger",
        "For a ledger that is older than its high-water mark: it has forgotten charges, and spends nothing. "
        + _WHO
        + "Every root budget gets an entry that says who accepted it, and why. "
        + ONCE_TEXT,
        tag="Proposals",
        body=AcknowledgeBody,
        body_examples={"restored": {"reason": "The disk failed; the backup of last night was put back"}},
        answers={201: (ProposalAnswer, None)},
        headers={"Location": "Address of the proposal."},
        problems=("conflict", "idempotency_conflict"),
    ),
)
async def acknowledge_restore(request: Request, caller: Annotated[Caller, Depends(roles(Role.ADMIN))]) -> Response:
    """POST /v1/ledger:acknowledge-restore."""
    services, name = services_of(request), caller.name
    body, raw = await body_of(request, AcknowledgeBody)
    return await once(request, caller, raw, lambda: _made(_proposals(services).acknowledge(body.reason, actor=name)))


@router.get(
    "/v1/proposals",
    **describe(
        "listProposals",
        "List proposals",
        "What administrators proposed, newest first, and who decided it.",
        tag="Proposals",
        answers={200: (ProposalList, None)},
        problems=("not_found",),
    ),
)
async def list_proposals(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*OVERSEEING))],
    state: Annotated[ProposalStateWord | None, Query(description="Of this state only.")] = None,
    count: Annotated[int, Query(ge=1, le=100, description="Members per page.")] = 20,
    after: After = None,
) -> Response:
    """GET /v1/proposals."""
    registry = services_of(request).registry
    wanted = None if state is None else state.value
    if after is not None:
        await _found(services_of(request), after)
    rows = await in_thread(lambda: registry.proposals(state=wanted, after=after, count=count + 1))
    return page_response("proposals", rows, count, body=proposal_body, after=lambda row: row.id)


@router.get(
    "/v1/proposals/{proposal_id}",
    **describe(
        "getProposal",
        "Read a proposal",
        "What is proposed, by whom and why, until when it can be confirmed, and the decision.",
        tag="Proposals",
        answers={200: (ProposalAnswer, None)},
        problems=("not_found",),
    ),
)
async def get_proposal(
    request: Request, caller: Annotated[Caller, Depends(roles(*OVERSEEING))], proposal_id: str
) -> Response:
    """GET /v1/proposals/{proposal_id}."""
    return json_response(proposal_body(await _found(services_of(request), proposal_id)))


@router.patch(
    "/v1/proposals/{proposal_id}",
    **describe(
        "decideProposal",
        "Decide a proposal",
        "Another administrator than the one who proposed confirms or rejects; who proposed may withdraw. A "
        "confirmation does what was proposed, in one transaction with the end of the proposal: whoever comes second "
        "gets 409, and so does one whose budget was changed in between. A sole administrator confirms on the server's "
        "machine (`noisegate proposal confirm ID --local`), and the ledger says so.",
        tag="Proposals",
        body=ProposalChangeBody,
        body_examples={"confirm": {"state": "confirmed"}},
        answers={200: (ProposalAnswer, None)},
        problems=("not_found", "conflict", "precondition_failed"),
    ),
)
async def decide_proposal(
    request: Request, caller: Annotated[Caller, Depends(roles(Role.ADMIN))], proposal_id: str
) -> Response:
    """PATCH /v1/proposals/{proposal_id}."""
    services, name = services_of(request), caller.name
    body, _ = await body_of(request, ProposalChangeBody)
    row = await _found(services, proposal_id)

    def decide() -> ProposalRow:
        if body.state is ProposalState.CONFIRMED:
            return _proposals(services).confirm(row.id, actor=name)
        return _proposals(services).end(row.id, body.state, actor=name)

    return json_response(proposal_body(await in_thread(decide)))


async def _found(services: Services, proposal_id: str) -> ProposalRow:
    row = await in_thread(lambda: services.registry.proposal(identifier(proposal_id, "proposal")))
    if row is None:
        raise not_found("proposal")
    return row
