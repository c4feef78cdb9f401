"""The application: routes, the edge around them, and the beginning and end of everything they use."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TypedDict

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.datastructures import State
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from accountant.errors import LedgerError
from privacy.refusal import ExecutionFailed, Refused
from server.administration.refusal import ActRefused
from server.auth import undeclared_routes
from server.body import findings_of
from server.cross_origin import CrossOrigin
from server.errors import Problem, problem_of_execution, problem_of_ledger, problem_of_refusal, problem_response
from server.installed import program_version
from server.limits import RateLimit, Rates, SharedRateLimit
from server.log import coarse_seconds, configure_logs, duration_bucket, logger, where
from server.methods import allowed_methods, as_get, without_body
from server.metrics import Metrics
from server.openapi import cached_document
from server.routes import (
    accounting,
    audit,
    batches,
    budget_requests,
    budgets,
    collectors,
    dashboards,
    datasets,
    lending,
    models,
    monitors,
    operations,
    people,
    proposals,
    queries,
    releases,
    statistics,
    streams,
    synthetic,
    team,
    webhooks,
)
from server.routes.common import running_response
from server.routes.refusals import problem_of_act
from server.routes.sight import unseen_routes
from server.services import Services
from server.settings import Settings
from server.shutdown import noticing_signals
from server.store.errors import UNAVAILABLE

__all__ = ["ServiceFactory", "create_app"]

ServiceFactory = Callable[[Settings], Services]
_PROBES = ("/healthz", "/readyz")
"""What is answered on every connection, however many there are."""

_FORESEEN = (
    Problem, ActRefused, Refused, ExecutionFailed, LedgerError, RequestValidationError, HTTPException, *UNAVAILABLE,
)  # fmt: skip
"""What becomes a problem with words of its own; everything else is an unforeseen failure."""

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}\Z", re.ASCII)

_DESCRIPTION = """\
Noisegate answers SQL questions about people with noise, and keeps an account of what has been revealed.

Amounts of epsilon and delta are decimal strings. Problems are RFC 9457 documents with `code`, `what`, `why`, `instead`
and `charged`. `POST /v1/queries`, `POST /v1/batches`, `POST /v1/monitors`, `POST /v1/streams`, `POST /v1/models`,
`POST /v1/statistics` and `POST /v1/synthetic` spend; a GET never does.

Credentials are API keys, and tokens of an OpenID Connect provider where the server accepts them. A key may have scopes
(403 `missing_scope`); one with the scope `impersonate` names the person for whom it calls in the header
`Noisegate-On-Behalf-Of`.
"""


class RequestState(TypedDict, total=False):
    """What is known of a request while it is answered. `spending` is set before it may be charged."""

    request_id: str
    in_reserve: bool
    spending: bool
    query_id: str
    problem_code: str


@dataclass(slots=True)
class _Limits:
    requests: Rates
    links: RateLimit
    """By link, in each process: polls of a page are many, and cost no transaction."""
    failed_keys: RateLimit


def create_app(settings: Settings, *, services: Services | None = None, build: ServiceFactory | None = None) -> FastAPI:
    """The application for these settings.

    `services` is used as it is and stays the caller's to close; otherwise `build` makes the services when the server
    starts, and they are closed when it stops.
    """
    assert (services is None) != (build is None), "give services or a way to build them"
    app = FastAPI(
        title="Noisegate",
        version=program_version(),
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        lifespan=_lifespan(settings, services, build),
        # Native telemetry would export messages and traces of exceptions, which may repeat values.
        telemetry={
            "tracing": False,
            "metrics": False,
            "logs": False,
            "operation_spans": False,
            "auto_configure": False,
        },
    )
    paid = (queries, batches, releases, monitors, streams, models, statistics, synthetic)
    spent = (budgets, lending, budget_requests, proposals, team, accounting, audit)
    for module in (*paid, dashboards, webhooks, *spent, datasets, collectors, people, operations):
        for route in module.router.routes:
            app.router.routes.append(route)
    undeclared = undeclared_routes(list(app.router.routes))
    if undeclared:
        raise RuntimeError(f"routes that do not say whom they serve: {', '.join(undeclared)}")
    unseen = unseen_routes(list(app.router.routes))
    if unseen:
        raise RuntimeError(f"routes that do not ask who may see what they name: {', '.join(unseen)}")
    app.state.metrics = Metrics()
    app.state.limits = _Limits(
        requests=RateLimit(
            per_minute=settings.requests_per_minute, burst=settings.requests_burst, clock=time.monotonic
        ),
        links=RateLimit(per_minute=settings.requests_per_minute, burst=settings.requests_burst, clock=time.monotonic),
        failed_keys=RateLimit(
            per_minute=settings.failed_keys_per_minute, burst=settings.failed_keys_per_minute, clock=time.monotonic
        ),
    )
    app.state.readiness = (-1e9, {})
    app.state.readiness_lock = asyncio.Lock()
    if services is not None:
        app.state.services = services
        _share_rates(app, services)
    _add_handlers(app)
    app.add_middleware(CrossOrigin, origins=settings.cors_origins)
    app.add_middleware(_Edge, state=app.state, secure=settings.tls_terminated)
    app.openapi = lambda: cached_document(app)  # type: ignore[method-assign]
    return app


def _lifespan(
    settings: Settings, given: Services | None, build: ServiceFactory | None
) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        if given is not None:
            with noticing_signals(lambda: given.jobs.stop(seconds=settings.shutdown_seconds)):
                yield
            return
        assert build is not None
        configure_logs(level=settings.log_level)
        services = await asyncio.to_thread(build, settings)
        app.state.services = services
        _share_rates(app, services)
        logger().info("started", version=program_version(), instance=settings.instance)
        try:
            with noticing_signals(lambda: services.jobs.stop(seconds=settings.shutdown_seconds)):
                yield
        finally:
            try:
                left = await asyncio.to_thread(services.jobs.close, seconds=settings.shutdown_seconds)
                logger().info("stopped", count=left)
            finally:
                for close in services.closing:
                    await asyncio.to_thread(close)

    return lifespan


def _share_rates(app: FastAPI, services: Services) -> None:
    """Counts requests of principals in the database, where several processes may serve from it."""
    if services.registry.shared:
        settings = services.settings
        app.state.limits.requests = SharedRateLimit(
            services.registry, per_minute=settings.requests_per_minute, burst=settings.requests_burst
        )


# The edge


_SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
_DEFAULT_HEADERS = (
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cache-control", b"no-store"),
)


class _Edge:
    """Around everything: request id, security headers, one log line, metrics, and the last resort for failures."""

    def __init__(self, app: ASGIApp, *, state: State, secure: bool) -> None:
        self._app = app
        self._state = state
        self._secure = secure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.monotonic()
        request_id = _request_id(scope)
        state: RequestState = scope.setdefault("state", {})
        state["request_id"] = request_id
        status = 0
        inner = scope
        if scope["method"] == "HEAD":
            inner, send = as_get(scope), without_body(send)

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = self._headers(message["headers"], request_id)
            await send(message)

        try:
            if "in_reserve" in state and scope["path"] not in _PROBES:
                await _answer(state, _too_many())(scope, receive, send_with_headers)
            else:
                await self._app(inner, receive, send_with_headers)
        except asyncio.CancelledError:
            # The web server's end, in which a request may take longer than its time: it is answered all the same.
            if status != 0:
                raise
            await _cut_short(state)(scope, receive, send_with_headers)
        except Exception as error:  # noqa: BLE001 -- the edge of the process: one constant answer, no text of the cause
            logger().error(
                "request_failed",
                request_id=request_id,
                route=_template(inner),
                exception=type(error).__name__,
                where=where(error),
            )
            if status == 0:
                await _answer(state, _unforeseen(state))(scope, receive, send_with_headers)
        finally:
            seconds = time.monotonic() - begun
            self._record(scope, _template(inner), state, request_id=request_id, status=status, seconds=seconds)

    def _headers(self, headers: list[tuple[bytes, bytes]], request_id: str) -> list[tuple[bytes, bytes]]:
        present = {name.lower() for name, _ in headers}
        added = [(b"x-request-id", request_id.encode("ascii")), *_SECURITY_HEADERS]
        added += [(name, value) for name, value in _DEFAULT_HEADERS if name not in present]
        if self._secure:
            added.append((b"strict-transport-security", b"max-age=31536000"))
        return [*headers, *added]

    def _record(
        self, scope: Scope, route: str, state: RequestState, *, request_id: str, status: int, seconds: float
    ) -> None:
        method = _method(scope)
        metrics: Metrics = self._state.metrics
        metrics.requests.labels(route, method, str(status)).inc()
        # In the log's coarse steps: the sum of exact times would reveal each of them to anyone who reads it twice.
        metrics.request_seconds.labels(route).observe(coarse_seconds(seconds))
        fields = {"request_id": request_id, "method": method, "route": route, "status": status}
        code = state.get("problem_code")
        if code is not None:
            metrics.problems.labels(code).inc()
            fields["code"] = code
        if "query_id" in state:
            fields["query_id"] = state["query_id"]
        logger().info("request", **fields, duration=duration_bucket(seconds))


def _request_id(scope: Scope) -> str:
    given = [value for name, value in scope["headers"] if name == b"x-request-id"]
    if len(given) == 1:
        text: str = given[0].decode("latin-1")
        if _REQUEST_ID.match(text):
            return text
    return secrets.token_hex(12)


def _template(scope: Scope) -> str:
    """The route's pattern; never the address itself, which holds identifiers and whatever a caller wrote there."""
    route = scope.get("route")
    return str(route.path) if isinstance(route, APIRoute) else "unmatched"


def _method(scope: Scope) -> str:
    method = scope["method"]
    return method if method in ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS") else "other"


def _answer(state: RequestState, problem: Problem) -> Response:
    state["problem_code"] = problem.code
    return problem_response(problem, request_id=state["request_id"])


def _unforeseen(state: RequestState) -> Problem:
    """An unforeseen failure. A request that may have been charged counts as charged."""
    spending = state.get("spending", False)
    return Problem(
        "internal_error",
        what="the server failed",
        why="The request may have been charged, so it counts as charged." if spending else "Nothing was charged.",
        charged=spending,
    )


def _too_many() -> Problem:
    """A connection beyond the limit (server/connections.py)."""
    return Problem(
        "unavailable",
        what="the server has too many connections",
        why="All of them are busy. Nothing was charged.",
        instead=("Send the request again in a moment, and keep fewer connections open.",),
        headers={"Retry-After": "5"},
    )


def _cut_short(state: RequestState) -> Response:
    """The answer to a request that the shutdown ended. A charge that may have been made is never denied."""
    if "query_id" in state:
        return running_response(state["query_id"])
    if state.get("spending"):
        problem = Problem(
            "charge_unknown",
            what="the server shut down while the query was admitted",
            why="It may have been charged, so it counts as charged.",
            charged=True,
        )
    else:
        problem = Problem(
            "unavailable",
            what="the server shut down before the request was done",
            why="Nothing was charged. A change that was asked for may have been made.",
            instead=("Look whether it was made, and send the request again.",),
            headers={"Retry-After": "5"},
        )
    return _answer(state, problem)


# Problems


def _add_handlers(app: FastAPI) -> None:
    async def on_error(request: Request, error: Exception) -> Response:
        state: RequestState = request.scope["state"]
        if isinstance(error, (LedgerError, *UNAVAILABLE)):
            event = "ledger" if isinstance(error, LedgerError) else "store"
            logger().warning(event, request_id=state["request_id"], exception=type(error).__name__)
        return _answer(state, _problem_of(error, request, state))

    for kind in _FORESEEN:
        app.add_exception_handler(kind, on_error)


def _problem_of(error: Exception, request: Request, state: RequestState) -> Problem:
    if isinstance(error, Problem):
        return error
    if isinstance(error, ActRefused):
        return problem_of_act(error.refusal)
    if isinstance(error, Refused):
        return problem_of_refusal(error)
    if isinstance(error, ExecutionFailed):
        return problem_of_execution(error)
    if isinstance(error, LedgerError):
        return problem_of_ledger(error, spending=state.get("spending", False))
    if isinstance(error, RequestValidationError):
        return Problem.of(findings_of(error.errors(), known=_parameters(request)))
    if isinstance(error, HTTPException):
        return _http_problem(error, request)
    # The registry's database does not answer.
    if state.get("spending"):
        return _unforeseen(state)
    return Problem(
        "unavailable",
        what="the registry cannot be used at the moment",
        why="Nothing was charged.",
        instead=("Try again later.",),
        headers={"Retry-After": "5"},
    )


def _parameters(request: Request) -> set[str]:
    """The names of the parameters of the request's route: the only ones that a message may repeat."""
    route = request.scope.get("route")
    if not isinstance(route, APIRoute):
        return set()
    fields = (*route.dependant.query_params, *route.dependant.path_params)
    return {name for field in fields for name in (field.name, str(field.alias))}


def _http_problem(error: HTTPException, request: Request) -> Problem:
    """Problems that the framework itself finds. Its texts are not passed on."""
    if error.status_code == 404:
        return Problem("not_found", what="there is nothing at this address", instead=("See /docs.",))
    if error.status_code == 405:
        allowed = ", ".join(allowed_methods(request.app.router.routes, request.scope))
        return Problem(
            "method_not_allowed",
            what="this address does not offer the method",
            instead=(f"Use {allowed}.",) if allowed else (),
            headers={"Allow": allowed} if allowed else {},
        )
    if error.status_code == 413:
        return Problem("body_too_large", what="the body is too large")
    if error.status_code == 415:
        return Problem("unsupported_media_type", what="the body's type is not accepted")
    if error.status_code < 500:
        return Problem("invalid_request", what="the request is not accepted")
    return Problem("internal_error", what="the server failed", why="Nothing was charged.")
