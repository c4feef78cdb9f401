"""Budgets: accounts of the ledger, set by administrators, read by whom they belong to."""

from __future__ import annotations

import datetime
import json
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from accountant.account import Account, FilterKind, Limit
from accountant.entry import Entry
from accountant.errors import AccountChanged, AccountExists, AccountFrozen, UnknownAccount
from privacy import conversions
from privacy.numbers import ATTO, PICO, decimal_text
from privacy.policy import Dataset, Sharing
from server.auth import Caller, roles, services_of
from server.errors import Problem
from server.once import ONCE_TEXT, once
from server.preconditions import ANY, changed_meanwhile, if_match
from server.routes.common import ALL_ROLES, body_of, describe, identifier, in_thread, json_response, not_found
from server.services import Services
from server.wire import BudgetAnswer, BudgetBody, BudgetChangeBody, BudgetList, EntryList

__all__ = ["router"]

router = APIRouter()

_ETAG_TEXT = "Strong tag of the limit: send it as If-Match with a change. What is spent does not change it."
_EXAMPLE_BODY = {
    "dataset": "demo",
    "principal": "analyst",
    "limit": {"epsilon": "10", "delta": "0.000001"},
    "filter": "approximate",
}
_EXAMPLE_BUDGET = {
    "id": "b_2c9a",
    "dataset": "demo",
    "parent": "b_0001",
    "principal": "analyst",
    "name": "analyst",
    "filter": "approximate",
    "limit": {"epsilon": "10", "delta": "0.000001"},
    "used_share": "0.05",
    "remaining": {"epsilon": "9.5", "delta": "0.0000005"},
    "reserved": False,
    "queries_left": 95,
    "membership_guess": "1",
    "frozen": False,
    "created": "2026-01-01T00:00:00+00:00",
    "links": {"self": "/v1/budgets/b_2c9a", "entries": "/v1/budgets/b_2c9a/entries"},
}


@lru_cache(maxsize=1024)
def membership_guess(limit: Limit) -> str:
    """Greatest chance to guess right, from even odds, whether one unit is in the data, up to the next ten-thousandth.

    For a limit as an account's guarantee: the greatest epsilon and delta that it ever had. privacy/membership.md.
    """
    return decimal_text(conversions.membership_guess(limit.epsilon, limit.delta), places=4)


def _tag(account: Account) -> str:
    """The entity tag, without quotes, of what administrators decide about an account: spending does not change it."""
    return f"{account.id}-{account.revision}"


def _quoted(account: Account) -> str:
    return f'"{_tag(account)}"'


def _expected(request: Request, account: Account) -> int | None:
    """The revision that the caller means to change, None where any will do.

    Errors: Problem precondition_failed when If-Match names another one.
    """
    wanted = if_match(request)
    if wanted in (None, ANY):
        return None
    if wanted != _tag(account):
        raise changed_meanwhile("budget", f"/v1/budgets/{account.id}")
    return account.revision


def _guarantee(services: Services, account: Account, dataset: Dataset | None) -> Limit:
    """What bounds everything that the account's people read: the root's limit where releases are shared for nothing."""
    if dataset is not None and dataset.limits.releases_shared is Sharing.FREE and account.parent is not None:
        return services.ledger.path(account.id)[-1].guarantee
    return account.guarantee


def _budget(services: Services, account: Account) -> dict[str, Any]:
    dataset = services.catalogue.get(account.dataset)
    remaining = account.remaining_epsilon()
    reserved = account.reserved
    return {
        "id": account.id,
        "dataset": account.dataset,
        "parent": account.parent,
        "principal": account.principal,
        "name": account.name,
        "filter": account.filter.value,
        "limit": {"epsilon": decimal_text(account.limit.epsilon), "delta": decimal_text(account.limit.delta)},
        "used_share": decimal_text(min(account.used_share(), Fraction(1)), places=6),
        "remaining": {
            "epsilon": decimal_text(max(remaining, Fraction(0)), places=12, up=False),
            "delta": decimal_text(account.remaining_delta(), up=False),
        },
        "reserved": any((reserved.pure != 0, reserved.rho != 0, reserved.mu_squared != 0, reserved.delta != 0)),
        "queries_left": None if dataset is None else int(max(remaining, Fraction(0)) / dataset.limits.epsilon_default),
        "membership_guess": membership_guess(_guarantee(services, account, dataset)),
        "frozen": account.frozen,
        "created": account.created.astimezone(datetime.UTC).isoformat(timespec="seconds"),
        "links": {"self": f"/v1/budgets/{account.id}", "entries": f"/v1/budgets/{account.id}/entries"},
    }


async def _visible_account(services: Services, caller: Caller, budget_id: str) -> Account:
    """The account, if it is the caller's or the caller oversees. Errors: Problem not_found for both reasons."""
    try:
        account = await in_thread(lambda: services.ledger.account(identifier(budget_id, "budget")))
    except UnknownAccount:
        raise not_found("budget") from None
    if not (caller.oversees or account.principal == caller.name):
        raise not_found("budget")
    return account


@router.get(
    "/v1/budgets",
    **describe(
        "listBudgets",
        "List budgets",
        "The caller's own; every budget for administrators and auditors.",
        tag="Budgets",
        answers={200: (BudgetList, {"budgets": [_EXAMPLE_BUDGET]})},
    ),
)
async def list_budgets(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*ALL_ROLES))],
    dataset: Annotated[
        str | None, Query(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]{0,62}$", description="Of this dataset only.")
    ] = None,
) -> Response:
    """GET /v1/budgets."""
    services = services_of(request)
    whose = None if caller.oversees else caller.name
    accounts = await in_thread(lambda: services.ledger.accounts(dataset=dataset, principal=whose))
    return json_response({"budgets": [_budget(services, account) for account in accounts]})


@router.get(
    "/v1/budgets/{budget_id}",
    **describe(
        "getBudget",
        "Read a budget",
        "Limit, what is used, what remains, how many queries at the default price still fit, and what the limit means.",
        tag="Budgets",
        answers={200: (BudgetAnswer, _EXAMPLE_BUDGET)},
        headers={"ETag": _ETAG_TEXT},
        problems=("not_found",),
    ),
)
async def get_budget(
    request: Request, budget_id: str, caller: Annotated[Caller, Depends(roles(*ALL_ROLES))]
) -> Response:
    """GET /v1/budgets/{budget_id}."""
    services = services_of(request)
    account = await _visible_account(services, caller, budget_id)
    return json_response(_budget(services, account), headers={"ETag": _quoted(account)})


@router.post(
    "/v1/budgets",
    **describe(
        "createBudget",
        "Open a budget",
        "Without `principal` and `parent` it is the dataset's root: the one limit that holds when analysts put their "
        "answers together. A budget of a principal hangs below the root. `filter` cannot be changed later. "
        + ONCE_TEXT,
        tag="Budgets",
        body=BudgetBody,
        body_examples={
            "root": {"dataset": "demo", "limit": {"epsilon": "20", "delta": "0.000001"}},
            "analyst": _EXAMPLE_BODY,
        },
        answers={201: (BudgetAnswer, _EXAMPLE_BUDGET)},
        headers={"Location": "Address of the budget.", "ETag": _ETAG_TEXT},
        problems=("conflict", "idempotency_conflict", "not_found"),
    ),
)
async def create_budget(request: Request, caller: Annotated[Caller, Depends(roles("admin"))]) -> Response:
    """POST /v1/budgets."""
    services = services_of(request)
    body, raw = await body_of(request, BudgetBody)
    return await once(request, caller, raw, lambda: _create(services, caller, body))


async def _create(services: Services, caller: Caller, body: BudgetBody) -> Response:
    limit = _limit(body.limit.epsilon, body.limit.delta, pure=body.filter == "pure")

    def create() -> Account:
        ledger = services.ledger
        if services.catalogue.get(body.dataset) is None:
            raise not_found("dataset")
        if body.principal is not None and services.registry.principal(body.principal) is None:
            raise not_found("principal")
        existing = ledger.accounts(dataset=body.dataset)
        root = next((account for account in existing if account.parent is None), None)
        parent = body.parent
        if parent is None and root is not None:
            if body.principal is None:
                raise Problem(
                    "conflict",
                    what="the dataset has a root budget",
                    why="A second root would double what may be disclosed about the same people.",
                    instead=("Change the limit of the root with PATCH.", "Name a principal or a parent."),
                )
            parent = root.id
        elif parent is None and body.principal is not None:
            raise Problem(
                "conflict",
                what="the dataset has no root budget",
                why="Only the root bounds what all analysts learn together, so it comes first.",
                instead=("Create it first: the same request without principal.",),
            )
        elif parent is not None and parent not in {account.id for account in existing}:
            raise not_found("parent budget of this dataset")
        return ledger.create_account(
            dataset=body.dataset,
            parent=parent,
            principal=body.principal,
            name=body.name or body.principal or ("root" if parent is None else "group"),
            limit=limit,
            filter=FilterKind(body.filter),
            actor=caller.name,
        )

    try:
        account = await in_thread(create)
    except AccountExists as exists:
        raise Problem(
            "conflict",
            what="the principal has a budget below this parent",
            why="A second one would be a second limit for the same person.",
            instead=(f"Change its limit: PATCH /v1/budgets/{exists.account}.",),
        ) from None
    except ValueError:
        raise Problem(
            "conflict",
            what="the ledger does not accept this budget",
            why="The limit does not suit the filter, or the accounts are nested too deeply.",
        ) from None
    headers = {"Location": f"/v1/budgets/{account.id}", "ETag": _quoted(account)}
    return json_response(_budget(services, account), status=201, headers=headers)


@router.patch(
    "/v1/budgets/{budget_id}",
    **describe(
        "changeBudget",
        "Change a budget's limit",
        "Audited with actor and reason. What was spent stays spent; a limit below it admits nothing more. With the "
        "header `If-Match` and the `ETag` of the budget that you read, a change that somebody else made in between is "
        "412 and not lost.",
        tag="Budgets",
        body=BudgetChangeBody,
        body_examples={"raise": {"limit": {"epsilon": "12", "delta": "0.000001"}, "reason": "Second study phase"}},
        answers={200: (BudgetAnswer, _EXAMPLE_BUDGET)},
        headers={"ETag": _ETAG_TEXT},
        problems=("not_found", "conflict", "precondition_failed"),
    ),
)
async def change_budget(
    request: Request, budget_id: str, caller: Annotated[Caller, Depends(roles("admin"))]
) -> Response:
    """PATCH /v1/budgets/{budget_id}."""
    services = services_of(request)
    account = await _visible_account(services, caller, budget_id)
    body, _ = await body_of(request, BudgetChangeBody)
    limit = _limit(body.limit.epsilon, body.limit.delta, pure=account.filter is FilterKind.PURE)
    expected = _expected(request, account)
    try:
        changed = await in_thread(
            lambda: services.ledger.change_limit(
                account.id, limit, actor=caller.name, reason=body.reason, expected=expected
            )
        )
    except AccountChanged:
        raise changed_meanwhile("budget", f"/v1/budgets/{account.id}") from None
    except AccountFrozen:
        raise Problem(
            "conflict",
            what="the budget is frozen",
            why="Its principal has another one below the same parent, which is the one that pays.",
            instead=("Change the limit of that one: GET /v1/budgets lists it.",),
        ) from None
    except ValueError:
        raise Problem("conflict", what="the ledger does not accept this limit") from None
    return json_response(_budget(services, changed), headers={"ETag": _quoted(changed)})


def _limit(epsilon: Fraction, delta: Fraction, *, pure: bool) -> Limit:
    if pure and delta != 0:
        raise Problem(
            "invalid_request",
            what='field "limit.delta" is not accepted',
            why="A pure account has no delta.",
            instead=('Leave limit.delta away, or choose the filter "approximate".',),
        )
    if not pure and delta == 0:
        raise Problem(
            "invalid_request",
            what='field "limit.delta" is not accepted',
            why="An approximate account needs a delta above zero.",
            instead=('Set limit.delta, for instance "0.000001", or choose the filter "pure".',),
        )
    return Limit(epsilon, delta)


@router.get(
    "/v1/budgets/{budget_id}/entries",
    **describe(
        "listEntries",
        "Read a budget's entries",
        "The account's movements, oldest first, each chained to the one before it by its hash. Places in the whole "
        "ledger are shown to overseers only: they would tell how much others ask.",
        tag="Budgets",
        answers={200: (EntryList, None)},
        problems=("not_found",),
    ),
)
async def list_entries(
    request: Request,
    budget_id: str,
    caller: Annotated[Caller, Depends(roles(*ALL_ROLES))],
    count: Annotated[int, Query(ge=1, le=500, description="Entries per page.")] = 100,
    after: Annotated[int, Query(ge=0, le=2**62, description="`next` of the page before.")] = 0,
) -> Response:
    """GET /v1/budgets/{budget_id}/entries."""
    services = services_of(request)
    account = await _visible_account(services, caller, budget_id)
    entries = await in_thread(lambda: services.ledger.entries(account.id, after=after, count=count + 1))
    page = list(entries[:count])
    return json_response(
        {
            "entries": [_entry(entry, overseen=caller.oversees) for entry in page],
            "next": page[-1].account_sequence if len(entries) > count else None,
        }
    )


def _entry(entry: Entry, *, overseen: bool) -> dict[str, Any]:
    amounts = entry.amounts
    body: dict[str, Any] = {
        "sequence": entry.account_sequence,
        "kind": entry.kind,
        "query": entry.query_id,
        "amounts": {
            "epsilon": decimal_text(amounts.pure * PICO),
            "delta": decimal_text(amounts.delta * ATTO),
            "rho": decimal_text(amounts.rho * PICO),
            "mu_squared": decimal_text(amounts.mu_squared * PICO),
            "unbounded": {
                "epsilon": amounts.unbounded_pure,
                "rho": amounts.unbounded_rho,
                "mu_squared": amounts.unbounded_mu_squared,
            },
        },
        "details": json.loads(entry.details),
        "created": entry.moment.isoformat(),
        "previous": entry.account_previous,
        "hash": entry.hash,
    }
    if overseen:
        body["ledger_sequence"] = entry.sequence
        body["ledger_previous"] = entry.previous
    return body
