"""Webhooks: where events of one's own resources are sent, signed."""

from __future__ import annotations

import datetime
import json
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from server.auth import Caller, roles, services_of
from server.once import ONCE_TEXT, once
from server.roles import ASKING, READING
from server.routes.common import (
    body_of,
    describe,
    in_thread,
    json_response,
    moment_text,
    not_found,
    page_response,
)
from server.routes.resources import After
from server.routes.sight import own, visible_webhook
from server.services import Services
from server.store.errors import NotThere
from server.store.webhooks import DeliveryRow, WebhookRow
from server.webhooks.webhooks import AddWebhook
from server.wire.webhook_answers import DeliveryList, NewWebhookAnswer, WebhookAnswer, WebhookList
from server.wire.webhook_requests import WebhookBody

__all__ = ["router"]

router = APIRouter()

_EXAMPLE = {
    "url": "https://hooks.example.com/noisegate",
    "events": ["monitor.passed", "monitor.failed"],
    "subjects": ["m_5f0c1d2e3a4b"],
}
_Count = Annotated[int, Query(ge=1, le=100, description="Members per page.")]


@router.post(
    "/v1/webhooks",
    **describe(
        "createWebhook",
        "Add a webhook",
        "Sends events of the caller's own resources to an address that an administrator allows, signed under a secret "
        "that this answer alone shows, in order, until they are received. Never spends. " + ONCE_TEXT,
        tag="Webhooks",
        body=WebhookBody,
        body_examples={"monitor": _EXAMPLE},
        answers={201: (NewWebhookAnswer, None)},
        headers={"Location": "Address of the webhook."},
        problems=("policy_forbids", "conflict", "idempotency_conflict"),
    ),
)
async def create_webhook(request: Request, caller: Annotated[Caller, Depends(roles(*ASKING))]) -> Response:
    """POST /v1/webhooks."""
    services = services_of(request)
    body, raw = await body_of(request, WebhookBody)
    wanted = AddWebhook(principal=caller.name, url=body.url, events=body.events, subjects=body.subjects)

    def add() -> Response:
        row, secret = services.webhooks.add(wanted)
        shown = {**_body(services, row, caller), "secret": secret}
        return json_response(shown, status=201, headers={"Location": f"/v1/webhooks/{row.id}"})

    return await once(request, caller, raw, add, unkept=("secret", "url"))


@router.get(
    "/v1/webhooks",
    **describe(
        "listWebhooks",
        "List webhooks",
        "The caller's webhooks, newest first; everybody's, with their hosts alone, for administrators and auditors.",
        tag="Webhooks",
        answers={200: (WebhookList, None)},
        problems=("not_found",),
    ),
)
async def list_webhooks(
    request: Request, caller: Annotated[Caller, Depends(roles(*READING))], count: _Count = 20, after: After = None
) -> Response:
    """GET /v1/webhooks."""
    services = services_of(request)
    whose = None if caller.oversees else caller.name
    if after is not None:
        # A position in the list of others would reveal when they added theirs.
        await own(caller, "webhook", after, services.registry.webhook)
    rows = await in_thread(lambda: services.registry.webhooks(whose, after=after, count=count + 1))
    shown = await in_thread(lambda: {row.id: _body(services, row, caller) for row in rows[:count]})
    return page_response("webhooks", rows, count, body=lambda row: shown[row.id], after=lambda row: row.id)


@router.get(
    "/v1/webhooks/{webhook_id}",
    **describe(
        "getWebhook",
        "Read a webhook",
        "What it is for, what waits for it, and what came of the newest event.",
        tag="Webhooks",
        answers={200: (WebhookAnswer, None)},
        problems=("not_found",),
    ),
)
async def get_webhook(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*READING))],
    row: Annotated[WebhookRow, Depends(visible_webhook)],
) -> Response:
    """GET /v1/webhooks/{webhook_id}."""
    services = services_of(request)
    return json_response(await in_thread(lambda: _body(services, row, caller)))


@router.get(
    "/v1/webhooks/{webhook_id}/deliveries",
    **describe(
        "listDeliveries",
        "List a webhook's deliveries",
        "Its events, newest first: how often each was tried, and what the receiver answered. Kept for 30 days.",
        tag="Webhooks",
        answers={200: (DeliveryList, None)},
        problems=("not_found",),
    ),
)
async def list_deliveries(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*READING))],
    row: Annotated[WebhookRow, Depends(visible_webhook)],
    count: _Count = 20,
    after: After = None,
) -> Response:
    """GET /v1/webhooks/{webhook_id}/deliveries."""
    registry = services_of(request).registry
    found = await in_thread(lambda: registry.deliveries(row.id, after=after, count=count + 1))
    return page_response("deliveries", found, count, body=_delivery, after=lambda one: one.id)


@router.post(
    "/v1/webhooks/{webhook_id}:test",
    **describe(
        "testWebhook",
        "Test a webhook",
        "Sends an event `webhook.test` without content, whatever the webhook subscribes to. One at a time.",
        tag="Webhooks",
        answers={200: (WebhookAnswer, None)},
        problems=("not_found", "conflict"),
    ),
)
async def check_webhook(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*ASKING))],
    row: Annotated[WebhookRow, Depends(visible_webhook)],
) -> Response:
    """POST /v1/webhooks/{webhook_id}:test."""
    services = services_of(request)
    if row.principal != caller.name or row.removed is not None:
        # Overseers see it; it is its owner's to use.
        raise not_found("webhook")
    at = moment_text(datetime.datetime.now(datetime.UTC))
    await in_thread(lambda: services.webhooks.test(row, at=at))
    return json_response(await in_thread(lambda: _body(services, row, caller)))


@router.delete(
    "/v1/webhooks/{webhook_id}",
    **describe(
        "deleteWebhook",
        "Remove a webhook",
        "Sends nothing more, not even what waits. An administrator may remove everybody's.",
        tag="Webhooks",
        answers={200: (WebhookAnswer, None)},
        problems=("not_found",),
    ),
)
async def delete_webhook(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*ASKING))],
    row: Annotated[WebhookRow, Depends(visible_webhook)],
) -> Response:
    """DELETE /v1/webhooks/{webhook_id}."""
    services = services_of(request)
    try:
        await in_thread(lambda: services.registry.remove_webhook(row.id, actor=caller.name))
    except NotThere:
        raise not_found("webhook") from None
    gone = await visible_webhook(request, row.id)
    return json_response(await in_thread(lambda: _body(services, gone, caller)))


def _body(services: Services, row: WebhookRow, caller: Caller) -> dict[str, object]:
    """A webhook, as this caller may read it."""
    last = services.registry.deliveries(row.id, after=None, count=1)
    return {
        "id": row.id,
        "principal": row.principal,
        "url": services.webhooks.url_of(row) if row.principal == caller.name else None,
        "host": row.host,
        "events": json.loads(row.events),
        "subjects": None if row.subjects is None else json.loads(row.subjects),
        "created": row.created,
        "removed": row.removed,
        "waiting": services.registry.waiting(row.id),
        "last": _delivery(last[0]) if last else None,
        "links": {"self": f"/v1/webhooks/{row.id}", "deliveries": f"/v1/webhooks/{row.id}/deliveries"},
    }


def _delivery(row: DeliveryRow) -> dict[str, object]:
    return {
        "id": row.id,
        "event": row.event,
        "subject": row.subject,
        "created": row.created,
        "state": row.state,
        "attempts": row.attempts,
        "status": row.status,
        "failure": row.failure,
        "next_attempt": row.due if row.state == "waiting" else None,
    }
