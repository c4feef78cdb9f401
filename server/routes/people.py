"""Principals and their API keys: for administrators. A key's text is in one answer and nowhere else."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from server.administration.people import ChangePrincipal, CreateKey, CreatePrincipal, People, RotateKey
from server.administration.stopping import Stopping
from server.auth import Caller, roles, services_of
from server.once import ONCE_TEXT, once
from server.roles import Role
from server.routes.common import body_of, describe, identifier, in_thread, json_response, not_found, page_response
from server.services import Services
from server.stopping import cancel_waiting
from server.store.people import Principal, StoredKey
from server.wire.answers import KeyAnswer, KeyList, MeAnswer, NewKeyAnswer, PrincipalAnswer, PrincipalList, StopAnswer
from server.wire.requests import NAME_PATTERN, KeyBody, PrincipalBody, PrincipalChangeBody, RotateKeyBody, StopBody

__all__ = ["router"]

router = APIRouter()

_EXAMPLE_PRINCIPAL = {
    "name": "analyst",
    "role": "analyst",
    "created": "2026-01-01T00:00:00Z",
    "disabled": None,
}
_EXAMPLE_KEY = {
    "id": "5f0c1d2e3a4b",
    "principal": "analyst",
    "label": "notebook",
    "created": "2026-01-01T00:00:00Z",
    "expires": "2027-01-01T00:00:00Z",
    "last_used_day": "2026-01-02",
    "revoked": None,
    "scopes": ["read", "ask"],
    "previous_until": None,
}
_After = Annotated[str, Query(pattern=r"^[A-Za-z0-9_.-]{0,80}$", description="`next` of the page before.")]
_Count = Annotated[int, Query(ge=1, le=500, description="Members per page.")]


def _people(services: Services) -> People:
    return People(services.registry, services.settings.key_days)


def _body(value: Principal | StoredKey) -> dict[str, object]:
    return dataclasses.asdict(value)


@router.get(
    "/v1/me",
    **describe(
        "getMe",
        "Report who the caller is",
        "Name, role and key of the request.",
        tag="Principals",
        answers={200: (MeAnswer, None)},
    ),
)
async def get_me(caller: Annotated[Caller, Depends(roles(*Role, every_key=True))]) -> Response:
    """GET /v1/me."""
    shown = {"name": caller.name, "role": caller.role, "key": caller.key or None, "expires": caller.expires}
    return json_response({**shown, "scopes": caller.scopes, "actor": caller.actor})


@router.get(
    "/v1/principals",
    **describe(
        "listPrincipals",
        "List principals",
        "Everybody who may call, in order of names.",
        tag="Principals",
        answers={200: (PrincipalList, {"principals": [_EXAMPLE_PRINCIPAL], "next": None})},
    ),
)
async def list_principals(
    request: Request,
    caller: Annotated[Caller, Depends(roles(Role.ADMIN))],
    count: _Count = 100,
    after: _After = "",
) -> Response:
    """GET /v1/principals."""
    registry = services_of(request).registry
    found = await in_thread(lambda: registry.principals(after=after, count=count + 1))
    return page_response("principals", found, count, body=_body, after=lambda principal: principal.name)


@router.post(
    "/v1/principals",
    **describe(
        "createPrincipal",
        "Create a principal",
        "A person, a group or a program with one role. Its name is kept forever: the ledger refers to it. " + ONCE_TEXT,
        tag="Principals",
        body=PrincipalBody,
        body_examples={"analyst": {"name": "analyst", "role": "analyst"}},
        answers={201: (PrincipalAnswer, _EXAMPLE_PRINCIPAL)},
        headers={"Location": "Address of the principal."},
        problems=("conflict", "idempotency_conflict"),
    ),
)
async def create_principal(request: Request, caller: Annotated[Caller, Depends(roles(Role.ADMIN))]) -> Response:
    """POST /v1/principals."""
    services = services_of(request)
    body, raw = await body_of(request, PrincipalBody)
    wanted = CreatePrincipal(body.name, body.role)

    def create() -> Response:
        created = _people(services).create_principal(wanted, actor=caller.name)
        return json_response(_body(created), status=201, headers={"Location": f"/v1/principals/{created.name}"})

    return await once(request, caller, raw, create)


@router.get(
    "/v1/principals/{name}",
    **describe(
        "getPrincipal",
        "Read a principal",
        "Its role, and since when it is disabled.",
        tag="Principals",
        answers={200: (PrincipalAnswer, _EXAMPLE_PRINCIPAL)},
        problems=("not_found",),
    ),
)
async def get_principal(request: Request, name: str, caller: Annotated[Caller, Depends(roles(Role.ADMIN))]) -> Response:
    """GET /v1/principals/{name}."""
    registry = services_of(request).registry
    found = await in_thread(lambda: registry.principal(identifier(name, "principal")))
    if found is None:
        raise not_found("principal")
    return json_response(_body(found))


@router.patch(
    "/v1/principals/{name}",
    **describe(
        "changePrincipal",
        "Change a principal",
        "Another role, or disabled: its keys stop working with the next request. The last administrator stays.",
        tag="Principals",
        body=PrincipalChangeBody,
        body_examples={"disable": {"disabled": True}},
        answers={200: (PrincipalAnswer, _EXAMPLE_PRINCIPAL)},
        problems=("not_found", "conflict"),
    ),
)
async def change_principal(
    request: Request, name: str, caller: Annotated[Caller, Depends(roles(Role.ADMIN))]
) -> Response:
    """PATCH /v1/principals/{name}."""
    services = services_of(request)
    wanted = identifier(name, "principal")
    body, _ = await body_of(request, PrincipalChangeBody)
    change = ChangePrincipal(wanted, body.role, body.disabled)
    return json_response(_body(await in_thread(lambda: _people(services).change_principal(change, actor=caller.name))))


@router.post(
    "/v1/principals/{name}:stop",
    **describe(
        "stopPrincipal",
        "Stop a principal",
        "At once and in one audited act: every budget of it is frozen, and no key of it works. What it asked and was "
        "not started yet is cancelled, in other server processes within a second; what has started stays charged and "
        "ends. Stopping twice changes nothing more.",
        tag="Principals",
        body=StopBody,
        body_examples={"stop": {"reason": "A key was published"}},
        answers={200: (StopAnswer, None)},
        problems=("not_found", "conflict"),
    ),
)
async def stop_principal(
    request: Request, name: str, caller: Annotated[Caller, Depends(roles(Role.ADMIN))]
) -> Response:
    """POST /v1/principals/{name}:stop."""
    services = services_of(request)
    wanted = identifier(name, "principal")
    body, _ = await body_of(request, StopBody)

    def stop() -> dict[str, object]:
        done = Stopping(services.ledger, services.registry).stop(wanted, actor=caller.name, reason=body.reason)
        cancelled = cancel_waiting(services, frozenset({wanted}))
        return {"principal": wanted, "stopped": True, "budgets": list(done.accounts), "cancelled": cancelled}

    return json_response(await in_thread(stop))


@router.post(
    "/v1/principals/{name}:resume",
    **describe(
        "resumePrincipal",
        "Let a stopped principal go on",
        "Takes a stop back, in one audited act: the budgets that it froze pay again, but for those that another one "
        "replaced, and the keys that it suspended work. What was cancelled is not asked again.",
        tag="Principals",
        body=StopBody,
        body_examples={"resume": {"reason": "The key is revoked"}},
        answers={200: (StopAnswer, None)},
        problems=("not_found", "conflict"),
    ),
)
async def resume_principal(
    request: Request, name: str, caller: Annotated[Caller, Depends(roles(Role.ADMIN))]
) -> Response:
    """POST /v1/principals/{name}:resume."""
    services = services_of(request)
    wanted = identifier(name, "principal")
    body, _ = await body_of(request, StopBody)

    def resume() -> dict[str, object]:
        done = Stopping(services.ledger, services.registry).resume(wanted, actor=caller.name, reason=body.reason)
        return {"principal": wanted, "stopped": False, "budgets": list(done.accounts), "cancelled": 0}

    return json_response(await in_thread(resume))


@router.get(
    "/v1/keys",
    **describe(
        "listKeys",
        "List API keys",
        "Without their texts, which are not stored.",
        tag="Keys",
        answers={200: (KeyList, {"keys": [_EXAMPLE_KEY], "next": None})},
    ),
)
async def list_keys(
    request: Request,
    caller: Annotated[Caller, Depends(roles(Role.ADMIN))],
    principal: Annotated[str | None, Query(pattern=NAME_PATTERN, description="Of this principal only.")] = None,
    count: _Count = 100,
    after: _After = "",
) -> Response:
    """GET /v1/keys."""
    registry = services_of(request).registry
    found = await in_thread(lambda: registry.keys(principal=principal, after=after, count=count + 1))
    return page_response("keys", found, count, body=_body, after=lambda key: key.id)


@router.post(
    "/v1/keys",
    **describe(
        "createKey",
        "Create an API key",
        "The answer holds the key's text. It is shown here and never again; the server keeps a salted hash. "
        + ONCE_TEXT
        + " "
        "The text is not stored, so a retry has null in its place: revoke that key and create another.",
        tag="Keys",
        body=KeyBody,
        body_examples={
            "key": {"principal": "analyst", "label": "notebook", "days": 90},
            "reading": {"principal": "analyst", "label": "report", "scopes": ["read"]},
        },
        answers={201: (NewKeyAnswer, None)},
        headers={"Location": "Address of the key."},
        problems=("not_found", "conflict", "idempotency_conflict"),
    ),
)
async def create_key(request: Request, caller: Annotated[Caller, Depends(roles(Role.ADMIN))]) -> Response:
    """POST /v1/keys."""
    services = services_of(request)
    body, raw = await body_of(request, KeyBody)
    wanted = CreateKey(body.principal, body.label, body.days, None if body.scopes is None else tuple(body.scopes))

    def create() -> Response:
        created = _people(services).create_key(wanted, actor=caller.name)
        shown = {**_body(created.key), "key": created.text}
        return json_response(shown, status=201, headers={"Location": f"/v1/keys/{created.key.id}"})

    return await once(request, caller, raw, create, unkept=("key",))


@router.get(
    "/v1/keys/{key_id}",
    **describe(
        "getKey",
        "Read an API key's state",
        "Expiry, day of last use, and when it was revoked.",
        tag="Keys",
        answers={200: (KeyAnswer, _EXAMPLE_KEY)},
        problems=("not_found",),
    ),
)
async def get_key(request: Request, key_id: str, caller: Annotated[Caller, Depends(roles(Role.ADMIN))]) -> Response:
    """GET /v1/keys/{key_id}."""
    registry = services_of(request).registry
    found = await in_thread(lambda: registry.key(identifier(key_id, "key")))
    if found is None:
        raise not_found("key")
    return json_response(_body(found))


@router.delete(
    "/v1/keys/{key_id}",
    **describe(
        "revokeKey",
        "Revoke an API key",
        "It stops working with the next request. Its line stays, so that the log of acts keeps its meaning.",
        tag="Keys",
        answers={200: (KeyAnswer, {**_EXAMPLE_KEY, "revoked": "2026-02-01T00:00:00Z"})},
        problems=("not_found",),
    ),
)
async def revoke_key(request: Request, key_id: str, caller: Annotated[Caller, Depends(roles(Role.ADMIN))]) -> Response:
    """DELETE /v1/keys/{key_id}."""
    services = services_of(request)
    wanted = identifier(key_id, "key")
    return json_response(_body(await in_thread(lambda: _people(services).revoke_key(wanted, actor=caller.name))))


@router.post(
    "/v1/keys/{key_id}:rotate",
    **describe(
        "rotateKey",
        "Give an API key a new secret",
        "The same key, with its scopes and its identifier, under a new text, shown once as for a new key. The text "
        "before works for `grace_minutes` more, at most until it would have expired; the one before that stops. "
        + ONCE_TEXT
        + " The text is not stored, so a retry has null in its place: rotate again.",
        tag="Keys",
        body=RotateKeyBody,
        body_examples={"an hour": {"grace_minutes": 60}, "at once": {}, "another quarter": {"days": 90}},
        answers={200: (NewKeyAnswer, None)},
        problems=("not_found", "conflict", "idempotency_conflict"),
    ),
)
async def rotate_key(request: Request, key_id: str, caller: Annotated[Caller, Depends(roles(Role.ADMIN))]) -> Response:
    """POST /v1/keys/{key_id}:rotate."""
    services = services_of(request)
    body, raw = await body_of(request, RotateKeyBody)
    wanted = RotateKey(identifier(key_id, "key"), body.grace_minutes, body.days)

    def rotate() -> Response:
        rotated = _people(services).rotate_key(wanted, actor=caller.name)
        return json_response({**_body(rotated.key), "key": rotated.text})

    return await once(request, caller, raw, rotate, unkept=("key",))
