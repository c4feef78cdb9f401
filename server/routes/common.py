"""What routes share: answers as bytes, bodies as models, and their description for the OpenAPI document."""

from __future__ import annotations

import datetime
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, TypedDict, TypeVar

from fastapi import Request
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from server.auth import ON_BEHALF_OF, services_of
from server.body import parse_json, read_body, validate
from server.errors import Problem
from server.formats import FORMATS, JSON, Format, Representation, Table, negotiate, represent
from server.problem_kinds import PROBLEMS
from server.resources.kinds import ResourceKind
from server.wire.words import State

__all__ = [
    "OTHER_FORMATS",
    "Description",
    "asked_format",
    "body_of",
    "cached_response",
    "describe",
    "identifier",
    "in_thread",
    "json_response",
    "moment_text",
    "not_found",
    "page_response",
    "running_response",
    "sent",
]

T = TypeVar("T")
Item = TypeVar("Item")
Model = TypeVar("Model", bound=BaseModel)
_IDENTIFIER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}\Z", re.ASCII)
_IMMUTABLE = "private, max-age=31536000, immutable"
OTHER_FORMATS = tuple(format_.media_type for format_ in FORMATS if format_ is not JSON)
"""Media types of results beside JSON."""


async def in_thread(function: Callable[[], T]) -> T:
    """Runs a blocking call (a database, a file) beside the event loop."""
    return await run_in_threadpool(function)


def json_response(value: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A value as JSON that no cache keeps."""
    content = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    return Response(
        content, status, media_type="application/json", headers={"Cache-Control": "no-store", **(headers or {})}
    )


def page_response(
    name: str, found: Sequence[Item], count: int, *, body: Callable[[Item], object], after: Callable[[Item], object]
) -> Response:
    """A page of a list. `found` has one more than `count` where there is another page, which begins after `next`."""
    shown = found[:count]
    return json_response(
        {name: [body(item) for item in shown], "next": after(shown[-1]) if len(found) > count else None}
    )


def cached_response(
    request: Request,
    content: bytes,
    *,
    media_type: str = "application/json",
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Bytes that never change: with a strong ETag, or 304 when the caller has them already.

    The tag is that of the bytes, so every format of one result has its own.
    """
    tag = f'"{hashlib.sha256(content).hexdigest()[:40]}"'
    common = {
        "ETag": tag,
        "Cache-Control": _IMMUTABLE,
        "Vary": f"Authorization, Accept, {ON_BEHALF_OF}",
        **(headers or {}),
    }
    known = [part.strip().removeprefix("W/") for part in request.headers.get("if-none-match", "").split(",")]
    if tag in known or "*" in known:
        return Response(status_code=304, headers=common)
    return Response(content, media_type=media_type, headers=common)


async def body_of(request: Request, model: type[Model], *, large: bool = False) -> tuple[Model, dict[str, object]]:
    """The request's body as a checked model, and as the object it was read from."""
    settings = services_of(request).settings
    limit = settings.admin_body_max_bytes if large else settings.body_max_bytes
    raw = await read_body(request, limit=limit, timeout_seconds=settings.body_timeout_seconds)
    value = parse_json(raw)
    return validate(model, value), value


async def asked_format(request: Request) -> Format:
    """The format that the request asks for. Errors: Problem not_acceptable."""
    return await negotiate(request.headers.getlist("accept"))


async def sent(sent_as: Format, content: bytes, read: Callable[[bytes], Table], name: str) -> Representation:
    """Stored JSON as it is sent; every format but JSON is made on a thread."""
    if sent_as is JSON:
        return represent(sent_as, content, read, filename=name)
    return await in_thread(lambda: represent(sent_as, content, read, filename=name))


def moment_text(moment: datetime.datetime) -> str:
    """A moment to the second, in UTC."""
    return moment.astimezone(datetime.UTC).isoformat(timespec="seconds")


def running_response(query_id: str) -> Response:
    """202: the query runs, and this is where its answer will be."""
    address = f"/v1/queries/{query_id}"
    return json_response(
        {"id": query_id, "status": State.RUNNING, "links": {"self": address, "cancel": f"{address}:cancel"}},
        status=202,
        headers={"Location": address, "Retry-After": "1"},
    )


def not_found(what: str) -> Problem:
    """The one answer for what is absent and for what belongs to others."""
    why, listed = "It does not exist, or you may not see it.", _LISTED.get(what)
    instead = () if listed is None else (f"See what there is: {listed}",)
    return Problem("not_found", what=f"there is no such {what}", why=why, instead=instead)


_LISTED = {kind.word: f"GET {kind.path}" for kind in ResourceKind} | {
    "webhook": "GET /v1/webhooks",
    "budget request": "GET /v1/budget-requests",
    "proposal": "GET /v1/proposals",
    "query": "GET /v1/queries",
    "dashboard": "GET /v1/dashboards",
    "tile": "GET /v1/dashboards/{dashboard_id}",
    "link": "GET /v1/dashboards/{dashboard_id}/links",
}
"""What shows whatever a caller could have meant, by the word for it; the kind of problem says it of all others."""


def identifier(text: str, what: str) -> str:
    """A path segment that can be an identifier. Errors: Problem not_found, as for any that does not exist."""
    if _IDENTIFIER.match(text) is None:
        raise not_found(what)
    return text


class Description(TypedDict):
    """The arguments of a route's decorator that describe it."""

    operation_id: str
    summary: str
    description: str
    tags: list[str | Enum]
    responses: dict[int | str, dict[str, Any]]
    openapi_extra: dict[str, Any] | None
    response_class: type[Response]
    response_model: None
    status_code: int


_COMMON_PROBLEMS = ("invalid_request", "internal_error")
_KEY_PROBLEMS = ("unauthenticated", "forbidden", "missing_scope", "rate_limited", "unavailable")
_BODY_PROBLEMS = ("invalid_json", "body_too_large", "unsupported_media_type", "request_timeout")


def describe(
    operation_id: str,
    summary: str,
    description: str,
    *,
    tag: str,
    answers: Mapping[int, tuple[type[BaseModel] | str, object]],
    body: type[BaseModel] | None = None,
    body_examples: Mapping[str, object] | None = None,
    problems: tuple[str, ...] = (),
    public: bool = False,
    headers: Mapping[str, str] | None = None,
    formats: Sequence[str] = (),
    format_headers: Mapping[str, str] | None = None,
) -> Description:
    """Arguments for a router: names, and every answer with its schema and an example.

    `answers` maps a status to a model (or a media type) and an example; `formats` are other media types of the 200,
    and `format_headers` are headers that come with those only. The application adds models and security.
    """
    codes = [*problems, *_COMMON_PROBLEMS]
    if not public:
        codes += _KEY_PROBLEMS
    if body is not None:
        codes += _BODY_PROBLEMS
    responses: dict[int | str, dict[str, object]] = {}
    for status, (model, example) in answers.items():
        response: dict[str, object] = {"description": _STATUS_WORDS.get(status, "Success")}
        if isinstance(model, str):
            if model:
                kind = "object" if model == "application/json" else "string"
                response["content"] = {model: {"schema": {"type": kind}}}
        else:
            media: dict[str, object] = {"schema": {"$ref": f"#/components/schemas/{model.__name__}"}}
            if example is not None:
                media["example"] = example
            others = formats if status == 200 else ()
            response["content"] = {
                "application/json": media,
                **{name: {"schema": {"type": "string"}} for name in others},
            }
        named = {**(headers or {}), **((format_headers or {}) if status == 200 else {})}
        if named and status < 300:
            response["headers"] = {
                name: {"description": text, "schema": {"type": "string"}} for name, text in named.items()
            }
        responses[status] = response
    responses |= _problem_responses(codes)
    extra: dict[str, object] = {}
    if body is not None:
        content: dict[str, object] = {"schema": {"$ref": f"#/components/schemas/{body.__name__}"}}
        if body_examples:
            content["examples"] = {name: {"value": value} for name, value in body_examples.items()}
        extra["requestBody"] = {"required": True, "content": {"application/json": content}}
    return {
        "operation_id": operation_id,
        "summary": summary,
        "description": description,
        "tags": [tag],
        "responses": responses,
        "openapi_extra": extra or None,
        "response_class": Response,
        "response_model": None,
        "status_code": min(answers),
    }


def _problem_responses(codes: Iterable[str]) -> dict[int | str, dict[str, object]]:
    """The descriptions of problems, by their status."""
    by_status: dict[int, list[str]] = {}
    for code in dict.fromkeys(codes):
        by_status.setdefault(PROBLEMS[code].status, []).append(code)
    return {
        status: {
            "description": " ".join(f"`{name}`: {PROBLEMS[name].meaning}" for name in names),
            "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemAnswer"}}},
        }
        for status, names in sorted(by_status.items())
    }


_STATUS_WORDS = {
    200: "The answer.",
    201: "Created.",
    202: "Accepted: poll the address in Location.",
    204: "Done; no body.",
    303: "See there.",
    304: "Unchanged since the ETag that was sent.",
}
