"""Budgets: accounts of the ledger, set by administrators, read by their owners."""

from __future__ import annotations

import json
from fractions import Fraction
from functools import lru_cache
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from accountant.account import Account, Limit, tree_order
from accountant.entry import Entry
from privacy import conversions
from privacy.numbers import ATTO, PICO, decimal_text
from privacy.policy import Dataset, Sharing
from server.administration.budgets import Budgets, ChangeBudget, OpenBudget, account_body, budget_tag
from server.administration.windows import ChangeWindow, Windows
from server.auth import Caller, roles, services_of
from server.once import ONCE_TEXT, once
from server.preconditions import if_match
from server.roles import Role
from server.routes.common import (
    body_of,
    describe,
    in_thread,
    json_response,
    moment_text,
    page_response,
)
from server.routes.sight import visible_account
from server.services import Services
from server.wire.account_requests import BudgetBody, BudgetChangeBody, WindowBody
from server.wire.answers import BudgetAnswer, BudgetList, EntryList
from server.wire.requests import DATASET_PATTERN

__all__ = ["EXAMPLE_BUDGET", "budget_body", "membership_guess", "router"]

router = APIRouter()

_ETAG_TEXT = "Strong tag of the limit: send it as If-Match with a change. What is spent does not change it."
_EXAMPLE_BODY = {
    "dataset": "demo",
    "principal": "analyst",
    "limit": {"epsilon": "10", "delta": "0.000001"},
    "filter": "approximate",
    "delta_shares": {"gaussian": 70, "concentrated": 7, "mixed": 8, "groups": 15},
}
EXAMPLE_BUDGET = {
    "id": "b_2c9a",
    "dataset": "demo",
    "unit_space": "demo",
    "parent": "b_0001",
    "principal": "analyst",
    "name": "analyst",
    "filter": "approximate",
    "delta_shares": {"gaussian": 70, "concentrated": 10, "groups": 20},
    "limit": {"epsilon": "10", "delta": "0.000001"},
    "used_share": "0.05",
    "remaining": {"epsilon": "9.5", "delta": "0.00000015"},
    "reserved": False,
    "queries_left": 95,
    "membership_guess": "1",
    "lifetime": {
        "loss": {"epsilon": "0.5", "delta": "0"},
        "remaining": {"epsilon": "9.5", "delta": "0.00000015"},
    },
    "window": None,
    "projection": {
        "in_a_year": "6.083333333334",
        "exhausted_on": "2027-07-24",
        "grounds": {"days": 30, "loss": "0.5"},
    },
    "frozen": False,
    "expires": None,
    "created": "2026-01-01T00:00:00+00:00",
    "links": {"self": "/v1/budgets/b_2c9a", "entries": "/v1/budgets/b_2c9a/entries"},
}


@lru_cache(maxsize=1024)
def membership_guess(limit: Limit) -> str:
    """Greatest chance to guess right, from even odds, whether one unit is in the data, up to the next ten-thousandth.

    For a limit as an account's guarantee: the greatest epsilon and delta that it ever had. privacy/membership.md.
    """
    return decimal_text(conversions.membership_guess(limit.epsilon, limit.delta), places=4)


def _quoted(account: Account) -> str:
    return f'"{budget_tag(account)}"'


def _budgets(services: Services) -> Budgets:
    two = services.settings.raises_need_two
    return Budgets(services.ledger, services.registry, services.served, raises_need_two=two)


def _guarantee(services: Services, account: Account, dataset: Dataset | None) -> Limit:
    """What bounds everything that the account's people read: the root's limit where releases are shared for free."""
    if dataset is not None and dataset.limits.releases_shared is Sharing.FREE and account.parent is not None:
        return services.ledger.path(account.id)[-1].guarantee
    return account.guarantee


def budget_body(services: Services, account: Account) -> dict[str, object]:
    """An account as JSON, with what its limit means."""
    dataset = services.catalogue.get(account.dataset)
    remaining = max(account.remaining_epsilon(), Fraction(0))
    reserved = account.reserved
    stopped = account.frozen or (account.expires is not None and account.expires <= services.ledger.time())
    return {
        **account_body(account),
        "reserved": any((reserved.pure != 0, reserved.rho != 0, reserved.mu_squared != 0, reserved.delta != 0)),
        "queries_left": None if dataset is None else 0 if stopped else int(remaining / dataset.limits.epsilon_default),
        "membership_guess": membership_guess(_guarantee(services, account, dataset)),
        "created": moment_text(account.created),
        "links": {"self": f"/v1/budgets/{account.id}", "entries": f"/v1/budgets/{account.id}/entries"},
    }


@router.get(
    "/v1/budgets",
    **describe(
        "listBudgets",
        "List budgets",
        "The caller's own and what hangs below it, such as what was lent; every budget for administrators and "
        "auditors. In the order of the tree: each is followed by those below it (`parent`).",
        tag="Budgets",
        answers={200: (BudgetList, {"budgets": [EXAMPLE_BUDGET]})},
    ),
)
async def list_budgets(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*Role))],
    dataset: Annotated[str | None, Query(pattern=DATASET_PATTERN, description="Of this dataset only.")] = None,
) -> Response:
    """GET /v1/budgets."""
    services = services_of(request)
    ledger = services.ledger

    def find() -> list[dict[str, object]]:
        every = ledger.accounts(dataset=dataset) if caller.oversees else ledger.seen_by(caller.name, dataset=dataset)
        return [budget_body(services, account) for account in tree_order(every)]

    return json_response({"budgets": await in_thread(find)})


@router.get(
    "/v1/budgets/{budget_id}",
    **describe(
        "getBudget",
        "Read a budget",
        "Limit, what is used, what remains, how many queries at the default price still fit, and what the limit means.",
        tag="Budgets",
        answers={200: (BudgetAnswer, EXAMPLE_BUDGET)},
        headers={"ETag": _ETAG_TEXT},
        problems=("not_found",),
    ),
)
async def get_budget(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*Role))],
    account: Annotated[Account, Depends(visible_account)],
) -> Response:
    """GET /v1/budgets/{budget_id}."""
    return json_response(budget_body(services_of(request), account), headers={"ETag": _quoted(account)})


@router.post(
    "/v1/budgets",
    **describe(
        "createBudget",
        "Open a budget",
        "Without `principal` and `parent` it is the dataset's root: the one limit that holds when analysts put their "
        "answers together. A budget of a principal hangs below the root. `filter` and `delta_shares` cannot be "
        "changed later. " + ONCE_TEXT,
        tag="Budgets",
        body=BudgetBody,
        body_examples={
            "root": {"dataset": "demo", "limit": {"epsilon": "20", "delta": "0.000001"}},
            "analyst": _EXAMPLE_BODY,
        },
        answers={201: (BudgetAnswer, EXAMPLE_BUDGET)},
        headers={"Location": "Address of the budget.", "ETag": _ETAG_TEXT},
        problems=("conflict", "idempotency_conflict", "not_found"),
    ),
)
async def create_budget(request: Request, caller: Annotated[Caller, Depends(roles(Role.ADMIN))]) -> Response:
    """POST /v1/budgets."""
    services = services_of(request)
    body, raw = await body_of(request, BudgetBody)
    wanted = OpenBudget(
        dataset=body.dataset,
        epsilon=body.limit.epsilon,
        delta=body.limit.delta,
        filter=body.filter,
        shares=None if body.delta_shares is None else body.delta_shares.shares(),
        principal=body.principal,
        parent=body.parent,
        name=body.name,
        window=None if body.window is None else body.window.wish(),
    )

    def create() -> Response:
        account = _budgets(services).open(wanted, actor=caller.name)
        headers = {"Location": f"/v1/budgets/{account.id}", "ETag": _quoted(account)}
        return json_response(budget_body(services, account), status=201, headers=headers)

    return await once(request, caller, raw, create)


@router.patch(
    "/v1/budgets/{budget_id}",
    **describe(
        "changeBudget",
        "Change a budget's limit or window",
        "Audited with actor and reason. What was spent stays spent; a limit below it admits nothing more. A window "
        "says when how much of the limit may be spent; a request changes one of the two. With the "
        "header `If-Match` and the `ETag` of the budget that you read, a change that somebody else made in between is "
        "412 and not lost.",
        tag="Budgets",
        body=BudgetChangeBody,
        body_examples={
            "raise": {"limit": {"epsilon": "12", "delta": "0.000001"}, "reason": "Second study phase"},
            "slices": {"window": {"kind": "monthly", "slices": 12}, "reason": "One part each month"},
            "no window": {"window": "none", "reason": "The study ends"},
        },
        answers={200: (BudgetAnswer, EXAMPLE_BUDGET)},
        headers={"ETag": _ETAG_TEXT},
        problems=("not_found", "conflict", "precondition_failed"),
    ),
)
async def change_budget(
    request: Request,
    caller: Annotated[Caller, Depends(roles(Role.ADMIN))],
    account: Annotated[Account, Depends(visible_account)],
) -> Response:
    """PATCH /v1/budgets/{budget_id}."""
    services = services_of(request)
    body, _ = await body_of(request, BudgetChangeBody)
    budgets, expected = _budgets(services), if_match(request)

    def change() -> Account:
        if body.limit is None:
            wish = body.window.wish() if isinstance(body.window, WindowBody) else None
            window = ChangeWindow(account=account.id, wish=wish, reason=body.reason, expected=expected)
            return Windows(budgets).change(window, actor=caller.name)
        limit = ChangeBudget(
            account=account.id,
            epsilon=body.limit.epsilon,
            delta=body.limit.delta,
            reason=body.reason,
            expected=expected,
        )
        return budgets.change(limit, actor=caller.name)

    changed = await in_thread(change)
    return json_response(budget_body(services, changed), headers={"ETag": _quoted(changed)})


@router.get(
    "/v1/budgets/{budget_id}/entries",
    **describe(
        "listEntries",
        "Read a budget's entries",
        "The account's movements, oldest first, each chained to the one before it by its hash. Places in the whole "
        "ledger are shown to overseers only: they would reveal how much others ask.",
        tag="Budgets",
        answers={200: (EntryList, None)},
        problems=("not_found",),
    ),
)
async def list_entries(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*Role))],
    account: Annotated[Account, Depends(visible_account)],
    count: Annotated[int, Query(ge=1, le=500, description="Entries per page.")] = 100,
    after: Annotated[int, Query(ge=0, le=2**62, description="`next` of the page before.")] = 0,
) -> Response:
    """GET /v1/budgets/{budget_id}/entries."""
    services = services_of(request)
    entries = await in_thread(lambda: services.ledger.entries(account.id, after=after, count=count + 1))
    return page_response(
        "entries",
        entries,
        count,
        body=lambda entry: _entry(entry, overseen=caller.oversees),
        after=lambda entry: entry.account_sequence,
    )


def _entry(entry: Entry, *, overseen: bool) -> dict[str, object]:
    amounts = entry.amounts
    body: dict[str, object] = {
        "sequence": entry.account_sequence,
        "kind": entry.kind,
        "query": entry.query_id,
        "amounts": {
            "epsilon": decimal_text(amounts.pure * PICO),
            "delta": decimal_text(amounts.delta * ATTO),
            "rho": decimal_text(amounts.rho * PICO),
            "mu_squared": decimal_text(amounts.mu_squared * PICO),
            "mixed": {
                "epsilon": decimal_text(amounts.mixed_pure * PICO),
                "mu_squared": decimal_text(amounts.mixed_mu_squared * PICO),
            },
            "unbounded": {
                "epsilon": amounts.unbounded_pure,
                "rho": amounts.unbounded_rho,
                "mu_squared": amounts.unbounded_mu_squared,
                "mixed": amounts.unbounded_mixed,
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
