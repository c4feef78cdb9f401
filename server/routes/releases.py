"""Stored releases: read for free by those who may."""

from __future__ import annotations

import json
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from server.auth import Caller, roles
from server.formats import RESULT_HEADERS, release_table
from server.roles import Role
from server.routes.common import (
    OTHER_FORMATS,
    asked_format,
    cached_response,
    describe,
    moment_text,
    sent,
)
from server.routes.sight import SeenRelease, visible_release
from server.wire.answers import ReleaseAnswer

__all__ = ["router"]

router = APIRouter()

_RELEASE_HEADERS = ("Noisegate-Release", "Noisegate-Query", "Noisegate-Confidence")


@router.get(
    "/v1/releases/{release_id}",
    **describe(
        "getRelease",
        "Read a stored release",
        "A noisy table that was paid for once: immutable, free to read and to cache. Visible to whom it was released, "
        "to those who were charged for reading it, to overseers, and to everybody with a budget for the dataset where "
        "its policy shares releases for free. The header "
        "`Accept` chooses the format; JSON is the default.",
        tag="Queries",
        answers={200: (ReleaseAnswer, None), 304: ("", None)},
        headers={"ETag": "Strong tag of the release in this format."},
        formats=OTHER_FORMATS,
        format_headers={name: RESULT_HEADERS[name] for name in _RELEASE_HEADERS},
        problems=("not_acceptable", "not_found"),
    ),
)
async def get_release(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*Role))],
    seen: Annotated[SeenRelease, Depends(visible_release)],
) -> Response:
    """GET /v1/releases/{release_id}."""
    sent_as = await asked_format(request)
    release = seen.release
    head = {
        "id": release.id,
        "dataset": release.dataset,
        "created": None if release.created is None else moment_text(release.created),
        # Whose query paid for it is nobody else's business.
        "query": release.query_id if seen.own else None,
    }
    content = json.dumps(head, separators=(",", ":")).encode()[:-1] + b',"release":' + release.body + b"}"
    body = await sent(sent_as, content, release_table, release.id)
    return cached_response(request, body.content, media_type=body.media_type, headers=body.headers)
