"""Administrative acts at most once under an Idempotency-Key, and the header itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from server.administration.once import KEY_FORM
from server.administration.once import once as carry_out_once
from server.auth import Caller, services_of
from server.body import canonical_hash
from server.errors import Problem
from server.store.replies import Reply

__all__ = ["ONCE_TEXT", "idempotency_key", "once"]

ONCE_TEXT = (
    "With the header `Idempotency-Key` the same request is carried out once: a retry gets the stored answer, for at "
    "least 30 days."
)
"""What the description of an administrative POST says."""

_KEPT_HEADERS = ("location", "etag")


def idempotency_key(request: Request) -> str | None:
    """The header Idempotency-Key, None without it. Errors: Problem invalid_request."""
    values = request.headers.getlist("idempotency-key")
    if not values:
        return None
    if len(values) > 1 or KEY_FORM.match(values[0]) is None:
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
    body: Mapping[str, object],
    act: Callable[[], Response],
    *,
    unkept: Sequence[str] = (),
) -> Response:
    """Carries an act out, or sends the answer that was sent when the same request was carried out under the same key.

    The request is its path, its If-Match and its body. `act` runs on a thread. `unkept` names members of the answer
    that are not kept: they are null in a retry. Errors: Problem; ActRefused, those of `server.administration.once` too.
    """
    key = idempotency_key(request)
    if key is None:
        return await run_in_threadpool(act)
    registry = services_of(request).registry
    identity = {"body": dict(body), "path": request.url.path, "if-match": request.headers.getlist("if-match")}
    done = await run_in_threadpool(
        lambda: carry_out_once(
            registry,
            actor=caller.name,
            key=key,
            request_hash=canonical_hash(identity),
            act=act,
            kept=lambda response: _kept(response, unkept),
        )
    )
    return _sent_again(done) if isinstance(done, Reply) else done


def _sent_again(reply: Reply) -> Response:
    """The earlier answer."""
    return Response(
        reply.body.encode(),
        reply.status,
        media_type="application/json",
        headers={"Cache-Control": "no-store", **reply.headers},
    )


def _kept(response: Response, unkept: Sequence[str]) -> Reply:
    text = bytes(response.body).decode()
    if unkept:
        text = json.dumps({**json.loads(text), **dict.fromkeys(unkept)}, ensure_ascii=False, separators=(",", ":"))
    headers = {name: response.headers[name] for name in _KEPT_HEADERS if name in response.headers}
    return Reply(response.status_code, headers, text)
