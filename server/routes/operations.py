"""What operators and programs ask: capabilities, health, readiness, metrics; and the pages of documentation."""

from __future__ import annotations

import asyncio
import contextlib
import html
import shutil
import time
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import anyio
import anyio.to_thread
from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from accountant.errors import LedgerError
from mechanisms.families import MEASUREMENTS
from mechanisms.local.encodings import ENCODINGS
from privacy.policy import Sharing
from privacy.refusal import CODES
from privacy.warning import WARNINGS
from server import formats
from server.auth import PUBLIC, Access, Caller, roles, services_of
from server.body import DEPTH_MAX
from server.floor import RUNS
from server.installed import program_version
from server.log import logger
from server.metrics import CONTENT_TYPE_LATEST, USED_SHARES, Standing
from server.problem_kinds import PROBLEMS
from server.roles import OVERSEEING, Role
from server.routes.common import Description, describe, in_thread, json_response, not_found
from server.scopes import Scope
from server.services import Check, Services
from server.store.errors import UNAVAILABLE
from server.wire.answers import CapabilitiesAnswer, HealthAnswer, ReadinessAnswer
from server.wire.requests import SQL_LENGTH_MAX, WAIT_MS_DEFAULT, WAIT_MS_MAX
from server.wire.words import Outcome

__all__ = ["router"]

router = APIRouter()

_STATIC = Path(__file__).resolve().parent.parent / "static"
_READY_SECONDS = 2.0
_NOT_READY_SECONDS = 0.1
_CHECK_SECONDS = 10.0
_PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
METRICS = Access(frozenset(OVERSEEING), open_setting="metrics_open", scope=Scope.METRICS)
"""Administrators and auditors; everybody only when the server listens on loopback and the setting says so."""


@router.get(
    "/v1/capabilities",
    **describe(
        "getCapabilities",
        "Report what this server can do",
        "The SQL it answers, mechanisms, encodings of local collection, every problem code with its meaning, limits, "
        "formats of results, versions.",
        tag="Operation",
        answers={200: (CapabilitiesAnswer, None)},
    ),
)
async def get_capabilities(request: Request, caller: Annotated[Caller, Depends(roles(*Role))]) -> Response:
    """GET /v1/capabilities."""
    services = services_of(request)
    settings = services.settings
    return json_response(
        {
            "version": program_version(),
            "api": "v1",
            "sql": dict(services.sql_matrix),
            "mechanisms": [{"name": kind.name, "loss": kind.loss, "use": kind.use} for kind in MEASUREMENTS.values()],
            "local_encodings": [{"name": kind.name, "use": kind.use} for kind in ENCODINGS],
            "problems": [
                {
                    "code": kind.code,
                    "status": kind.status,
                    "meaning": kind.meaning,
                    "retryable": kind.retryable,
                    "refusal": kind.code in CODES,
                }
                for kind in PROBLEMS.values()
            ],
            "warnings": [{"code": code, "meaning": meaning} for code, meaning in WARNINGS.items()],
            "limits": {
                "body_bytes": settings.body_max_bytes,
                "json_depth": DEPTH_MAX,
                "sql_characters": SQL_LENGTH_MAX,
                "wait_ms_default": WAIT_MS_DEFAULT,
                "wait_ms_max": WAIT_MS_MAX,
                "requests_per_minute": settings.requests_per_minute,
                "requests_burst": settings.requests_burst,
                "fresh_runs_of_a_root": RUNS,
            },
            "releases_shared": {way.value: way.said for way in Sharing},
            "formats": await in_thread(formats.available),
            "roles": [role.value for role in Role],
        }
    )


@router.get(
    "/healthz",
    **describe(
        "getHealth",
        "Report that the process answers",
        "No key, no detail.",
        tag="Operation",
        answers={200: (HealthAnswer, {"status": "ok"})},
        public=True,
    ),
)
async def get_health(access: Annotated[Caller, Depends(PUBLIC)]) -> Response:
    """GET /healthz."""
    return json_response({"status": "ok"})


@router.get(
    "/readyz",
    **describe(
        "getReadiness",
        "Report whether queries can be served",
        "The ledger and its high-water mark can be written, the engines have workers, every attached dataset can be "
        "read and has its snapshot. "
        "No key, no detail.",
        tag="Operation",
        answers={
            200: (ReadinessAnswer, {"status": "ready", "checks": {"ledger": "ok"}}),
            503: (ReadinessAnswer, {"status": "not_ready", "checks": {"ledger": "failed"}}),
        },
        public=True,
    ),
)
async def get_readiness(request: Request, access: Annotated[Caller, Depends(PUBLIC)]) -> Response:
    """GET /readyz. Remembered for two seconds (a failure for a tenth), so that asking often costs nothing."""
    checks = await _checked(request)
    ready = _all_ok(checks)
    return json_response({"status": "ready" if ready else "not_ready", "checks": checks}, status=200 if ready else 503)


async def _checked(request: Request) -> Mapping[str, Outcome]:
    state = request.app.state
    async with state.readiness_lock:
        at, known = state.readiness
        fresh = _READY_SECONDS if _all_ok(known) else _NOT_READY_SECONDS
        if time.monotonic() - at > fresh:
            checks = await _run_checks(services_of(request))
            state.readiness = (time.monotonic(), checks)
        found: Mapping[str, Outcome] = state.readiness[1]
    return found


def _all_ok(checks: Mapping[str, Outcome]) -> bool:
    return all(outcome is Outcome.OK for outcome in checks.values())


async def _run_checks(services: Services) -> Mapping[str, Outcome]:
    checks = {} if not services.jobs.stopping else {"intake": Outcome.FAILED}
    threads = anyio.CapacityLimiter(1)
    for check in services.checks:
        checks[check.name] = await _run_check(check, threads)
    return checks


async def _run_check(check: Check, threads: anyio.CapacityLimiter) -> Outcome:
    try:
        async with asyncio.timeout(_CHECK_SECONDS):
            # Threads of their own: those that requests share may all be waiting.
            await anyio.to_thread.run_sync(check.run, limiter=threads)
    except Exception as error:  # noqa: BLE001 -- whatever is wrong, the server is not ready; nothing private runs here
        logger().warning("check_failed", check=check.name, exception=type(error).__name__)
        return Outcome.FAILED
    return Outcome.OK


@router.get(
    "/metrics",
    **describe(
        "getMetrics",
        "Read metrics",
        "Counts of requests and outcomes, the checks of /readyz, the state of the ledger and the room that is left, in "
        "Prometheus' text format. No value names a principal, a dataset or a text.",
        tag="Operation",
        answers={200: ("text/plain", None)},
    ),
)
async def get_metrics(request: Request, caller: Annotated[Caller, Depends(METRICS)]) -> Response:
    """GET /metrics."""
    metrics, services = request.app.state.metrics, services_of(request)
    metrics.queries_running.set(services.jobs.in_flight)
    metrics.high_water_failed.set(services.ledger.high_water_failed)
    metrics.ledger_behind.set(services.ledger.behind)
    for check, outcome in (await _checked(request)).items():
        metrics.checks.labels(check).set(outcome is Outcome.OK)
    # Whole GiB: what a query writes while it runs depends on rows.
    metrics.home_free.set(shutil.disk_usage(services.settings.home).free >> 30)
    metrics.count_incidents(services.incidents.counts())
    metrics.count_ended(services.jobs.ended)
    metrics.queries_room.set(services.jobs.room)
    # A database that does not answer is what the checks say; the other numbers are worth having then.
    with contextlib.suppress(LedgerError, *UNAVAILABLE):
        metrics.show(await in_thread(lambda: _standing(services)))
    several = services.settings.workers > 1
    headers = {"Content-Type": CONTENT_TYPE_LATEST, "Cache-Control": "no-store"}
    return Response(metrics.render(several=several), headers=headers)


def _standing(services: Services) -> Standing:
    """What ledger and registry say at this moment. Errors: LedgerUnavailable, the registry's."""
    ledger, registry = services.ledger, services.registry
    used = [account.used_share() for account in ledger.accounts()]
    queries = ledger.open_queries()
    return Standing(
        # The mark first: what is committed between the two readings must not make the ledger look older than it.
        mark=ledger.mark,
        head=ledger.length(),
        rejected=ledger.rejected is not None,
        open_queries=queries.open,
        lost_queries=queries.lost,
        recovered=ledger.recovered,
        budgets_used={share: sum(one >= Fraction(share) for one in used) for share in USED_SHARES},
        requests_waiting=registry.open_requests(),
        deliveries_waiting=registry.waiting(None),
        principals_stopped=len(registry.stopped()),
    )


@router.get(
    "/openapi.json",
    **describe(
        "getOpenapi",
        "Read the description of this API",
        "OpenAPI 3.1. The same document is kept with the program's documentation.",
        tag="Documentation",
        answers={200: ("application/json", None)},
        public=True,
    ),
)
async def get_openapi_document(request: Request, access: Annotated[Caller, Depends(PUBLIC)]) -> Response:
    """GET /openapi.json."""
    return json_response(request.app.openapi())


def _page(request: Request, name: str, media_type: str) -> Response:
    if not services_of(request).settings.docs_enabled:
        raise not_found("page")
    return Response(
        (_STATIC / name).read_bytes(),
        media_type=media_type,
        headers={"Content-Security-Policy": _PAGE_POLICY, "Cache-Control": "no-cache"},
    )


def _describe_page(operation_id: str, summary: str, media_type: str) -> Description:
    return describe(
        operation_id,
        summary,
        "A page of this server; it loads nothing from elsewhere.",
        tag="Documentation",
        answers={200: (media_type, None)},
        problems=("not_found",),
        public=True,
    )


@router.get("/docs", **_describe_page("getDocs", "Read this API's documentation page", "text/html"))
async def get_docs(request: Request, access: Annotated[Caller, Depends(PUBLIC)]) -> Response:
    """GET /docs."""
    return _page(request, "docs.html", "text/html; charset=utf-8")


@router.get("/docs/docs.js", **_describe_page("getDocsScript", "Script of the documentation page", "text/javascript"))
async def get_docs_script(request: Request, access: Annotated[Caller, Depends(PUBLIC)]) -> Response:
    """GET /docs/docs.js."""
    return _page(request, "docs.js", "text/javascript; charset=utf-8")


@router.get("/docs/docs.css", **_describe_page("getDocsStyle", "Style of the documentation page", "text/css"))
async def get_docs_style(request: Request, access: Annotated[Caller, Depends(PUBLIC)]) -> Response:
    """GET /docs/docs.css."""
    return _page(request, "docs.css", "text/css; charset=utf-8")


@router.get(
    "/problems/{code}",
    **describe(
        "getProblem",
        "Read what a problem code means",
        "The page behind the `type` of a problem document.",
        tag="Documentation",
        answers={200: ("text/html", None)},
        problems=("not_found",),
        public=True,
    ),
)
async def get_problem(code: str, access: Annotated[Caller, Depends(PUBLIC)]) -> Response:
    """GET /problems/{code}."""
    kind = PROBLEMS.get(code)
    if kind is None:
        raise not_found("problem code")
    again = "The same request may work later." if kind.retryable else "The same request will not work by itself later."
    text = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(kind.code)}</title>'
        f"<h1><code>{html.escape(kind.code)}</code></h1><p>{html.escape(kind.meaning)}</p>"
        f"<p>HTTP status {kind.status}. {again}</p></html>"
    )
    return Response(text, media_type="text/html", headers={"Content-Security-Policy": _PAGE_POLICY})


@router.get(
    "/",
    **describe(
        "getRoot",
        "Go to the documentation",
        "Sends browsers to the documentation page.",
        tag="Documentation",
        answers={303: ("", None)},
        public=True,
    ),
)
async def get_root(access: Annotated[Caller, Depends(PUBLIC)]) -> Response:
    """GET /."""
    return Response(status_code=303, headers={"Location": "/docs"})
