"""Administrative acts at most once under an Idempotency-Key, and the header itself."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from server.auth import Caller, services_of
from server.body import canonical_hash
from server.errors import Problem
from server.store.replies import ClaimedAlready, OtherRequest, Reply

__all__ = ["ONCE_TEXT", "idempotency_key", "once"]

ONCE_TEXT = (
    "With the header `Idempotency-Key` the same request is carried out once: a retry gets the stored answer, for at "
    "least 30 days."
)
"""What the description of an administrative POST says."""

_KEY = re.compile(r"[\x21-\x7e]{1,200}\Z")
_KEPT_HEADERS = ("location", "etag")


def idempotency_key(request: Request) -> str | None:
    """The header Idempotency-Key, None without it. Errors: Problem invalid_request."""
    values = request.headers.getlist("idempotency-key")
    if not values:
        return None
    if len(values) > 1 or _KEY.match(values[0]) is None:
        raise Problem(
            "invalid_request",
            what="the header Idempotency-Key is not accepted",
            why="It is one text of 1 to 200 visible ASCII characters.",
            instead=("Send a fresh UUID for every new question.",),
        )
    return values[0]


async def once(
    request: Request,
    caller: Caller,
    body: Mapping[str, Any],
    act: Callable[[], Awaitable[Response]],
    *,
    unkept: str | None = None,
) -> Response:
    """Carries an act out, or answers what was answered when the same request was carried out under the same key.

    The request is its path, its If-Match and its body. `unkept` names a member of the answer that is not kept: it is
    null in a retry. A refusal (a Problem) gives the key back, because nothing was done.
    Errors: Problem idempotency_conflict; conflict while the outcome of an earlier attempt is not known.
    """
    key = idempotency_key(request)
    if key is None:
        return await act()
    registry = services_of(request).registry
    identity = {"body": dict(body), "path": request.url.path, "if-match": request.headers.getlist("if-match")}
    request_hash = canonical_hash(identity)
    try:
        earlier = await run_in_threadpool(lambda: registry.claim_reply(caller.name, key, request_hash=request_hash))
    except OtherRequest:
        raise Problem(
            "idempotency_conflict",
            what="the Idempotency-Key was used before for another request",
            why="A key stands for one request.",
            instead=("Use a new key for a new request.", "Send the same request to get the stored answer."),
        ) from None
    except ClaimedAlready:
        raise Problem(
            "conflict",
            what="the request was sent before, and its outcome is not known",
            why="It is being carried out, or the server stopped in the middle. It is not carried out a second time.",
            instead=("Read what there is now (GET). Then send what is missing with a new Idempotency-Key.",),
        ) from None
    if earlier is not None:
        return Response(
            earlier.body.encode(),
            earlier.status,
            media_type="application/json",
            headers={"Cache-Control": "no-store", **earlier.headers},
        )
    try:
        response = await act()
    except Problem:
        await run_in_threadpool(lambda: registry.drop_reply(caller.name, key))
        raise
    reply = _kept(response, unkept)
    await run_in_threadpool(lambda: registry.keep_reply(caller.name, key, reply))
    return response


def _kept(response: Response, unkept: str | None) -> Reply:
    text = bytes(response.body).decode()
    if unkept is not None:
        text = json.dumps({**json.loads(text), unkept: None}, ensure_ascii=False, separators=(",", ":"))
    headers = {name: response.headers[name] for name in _KEPT_HEADERS if name in response.headers}
    return Reply(response.status_code, headers, text)
