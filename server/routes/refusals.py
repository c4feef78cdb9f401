"""Refused administrative acts as problem documents."""

from __future__ import annotations

from server.administration.profile_refusals import ProfileFailed, UnpricedProfile
from server.administration.refusal import Absent, FaultyDataset, Refusal
from server.errors import Problem
from server.routes.common import not_found

__all__ = ["problem_of_act"]

_REREAD = "Read it again: GET {0}. Then decide, and send its new ETag in If-Match."
_ROUTES = {
    "account": "its identifier",
    "adjust": "POST /v1/budgets/{it.account}:adjust",
    "proposals": "GET /v1/proposals",
    "approximate": 'the filter "approximate"',
    "attach": "POST /v1/datasets",
    "budgets": "GET /v1/budgets",
    "budgets_of": "GET /v1/budgets",
    "change_account": "PATCH /v1/budgets/{it.account}",
    "change_other": "GET /v1/budgets lists it",
    "change_root_of": "PATCH the one that GET /v1/budgets lists without principal",
    "change_root": "PATCH the one that GET /v1/budgets lists, or name a principal or a parent",
    "create_admin": "POST /v1/principals",
    "create_key": "POST /v1/principals, then POST /v1/keys",
    "delta": 'field "limit.delta"',
    "describe": "GET /v1/datasets/{it.dataset}",
    "delta_shares": '"delta_shares"',
    "filter": '"filter"',
    "idempotency_key": "Idempotency-Key",
    "keys": "GET /v1/keys",
    "less": '"epsilon"',
    "new_key": "POST /v1/keys",
    "open_below": "POST /v1/budgets with parent",
    "open_root": "POST /v1/budgets without principal",
    "open_root_of": "POST /v1/budgets without principal",
    "pure": 'the filter "pure"',
    "reason": '"reason": "why it changes"',
    "replace_dataset": "To replace it: PUT /v1/datasets/{it.name},\n"
    'or send the header If-Match: "{it.tag}", the ETag of GET /v1/datasets/{it.name}.',
    "request": "request",
    "reread_account": _REREAD.format("/v1/budgets/{it.account}"),
    "reread_dataset": _REREAD.format("/v1/datasets/{it.name}"),
    "role": '"role"',
    "windows": 'docs/accounting.md, "Windows"',
    "small_delta": '"0.000001"',
}
"""What the words of refusals call fields and routes."""


def problem_of_act(refusal: Refusal) -> Problem:
    """The problem document of a refused act. Nothing was changed."""
    if isinstance(refusal, Absent):
        return not_found(refusal.thing)
    if isinstance(refusal, FaultyDataset | UnpricedProfile):
        return Problem.of(refusal.findings)
    found = refusal.finding(_ROUTES)
    charged = isinstance(refusal, ProfileFailed) and refusal.charged
    return Problem(found.code, found.what, found.why, found.instead, charged=charged)
