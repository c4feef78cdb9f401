"""Local collection: questions of administrators, reports of people without a key, estimates for everybody with one."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from privacy.numbers import decimal_text, parse_decimal
from server.administration.collector_refusals import RefusedToken
from server.administration.collectors import Collectors, OpenCollector, Report, encoder_for
from server.administration.refusal import ActRefused
from server.auth import PUBLIC, Caller, roles, services_of
from server.errors import Problem
from server.formats import Column, Table
from server.once import ONCE_TEXT, once
from server.resources.kinds import ResourceState
from server.roles import Role
from server.routes.common import (
    OTHER_FORMATS,
    asked_format,
    body_of,
    describe,
    identifier,
    in_thread,
    json_response,
    page_response,
    sent,
)
from server.routes.resources import After, Count
from server.routes.sight import visible_collector
from server.services import Services
from server.store.collectors import StoredCollector
from server.wire.collectors import (
    CollectorAnswer,
    CollectorBody,
    CollectorEstimatesAnswer,
    CollectorList,
    CollectorQuestionAnswer,
    ReportsAnswer,
    ReportsBody,
    TokensAnswer,
    TokensBody,
)

if TYPE_CHECKING:
    from mechanisms.local.estimates import Estimates

__all__ = ["router"]

router = APIRouter()

_NOBODY = ""
"""Whose turn it is for requests without a key: all of them together are one caller of the threads that read texts, so
that however many there are, those who have a key do not wait for them."""

_LAW = {"encoding": "randomised_response", "size": 3, "ratio": "11674931554"}
_EXAMPLE = {
    "id": "c_5f0c1d2e3a4b5f0c1d2e",
    "question": "Do you smoke?",
    "status": "settled",
    "size": 3,
    "missing": "(no answer)",
    "encoding": "randomised_response",
    "epsilon": "1",
    "report_bits": 2,
    "variance_of_one_report": 1.453,
    "expected_standard_error": 0.027,
    "tokens": 5000,
    "reports": 2000,
    "budget": "b_5f0c1d2e3a4b5f0c1d2e",
    "created": "2026-01-01T00:00:00Z",
    "closed": None,
    "links": {
        "self": "/v1/collectors/c_5f0c1d2e3a4b5f0c1d2e",
        "question": "/v1/collectors/c_5f0c1d2e3a4b5f0c1d2e/question",
        "estimates": "/v1/collectors/c_5f0c1d2e3a4b5f0c1d2e/estimates",
        "budget": "/v1/budgets/b_5f0c1d2e3a4b5f0c1d2e",
    },
}


def _acts(services: Services) -> Collectors:
    return Collectors(services.ledger, services.registry)


def _status(collector: StoredCollector) -> str:
    """As of every resource: a collector is there once it is charged."""
    return (ResourceState.SETTLED if collector.closed is None else ResourceState.CLOSED).value


def _body(collector: StoredCollector) -> dict[str, object]:
    encoder = encoder_for(collector)
    address = f"/v1/collectors/{collector.id}"
    variance = encoder.mean_variance()
    spread = (variance / collector.reports) ** 0.5 if collector.reports else None
    return {
        "id": collector.id,
        "question": collector.question,
        "status": _status(collector),
        "size": len(collector.domain),
        "missing": collector.missing,
        "encoding": collector.encoding,
        "epsilon": decimal_text(collector.epsilon),
        "report_bits": encoder.report_bits,
        "variance_of_one_report": variance,
        "expected_standard_error": spread,
        "tokens": collector.tokens,
        "reports": collector.reports,
        "budget": collector.account,
        "created": collector.created,
        "closed": collector.closed,
        "links": {
            "self": address,
            "question": f"{address}/question",
            "estimates": f"{address}/estimates",
            "budget": f"/v1/budgets/{collector.account}",
        },
    }


@router.get(
    "/v1/collectors",
    **describe(
        "listCollectors",
        "List collectors",
        "Questions whose answers people randomise themselves, newest first.",
        tag="Collectors",
        answers={200: (CollectorList, {"collectors": [_EXAMPLE], "next": None})},
        problems=("not_found",),
    ),
)
async def list_collectors(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*Role))],
    count: Count = 20,
    after: After = None,
) -> Response:
    """GET /v1/collectors."""
    registry = services_of(request).registry
    if after is not None:
        await visible_collector(request, after)
    found = await in_thread(lambda: registry.collectors(after=after, count=count + 1))
    return await in_thread(
        lambda: page_response("collectors", found, count, body=_body, after=lambda collector: collector.id)
    )


@router.post(
    "/v1/collectors",
    **describe(
        "openCollector",
        "Open a collector",
        "A question with its public domain. What one report costs its owner is charged now, once, to a root account of "
        "the collector's own; the domain and the law of the reports never change. " + ONCE_TEXT,
        tag="Collectors",
        body=CollectorBody,
        body_examples={"smoking": {"question": "Do you smoke?", "domain": ["yes", "no"], "epsilon": "1"}},
        answers={201: (CollectorAnswer, {**_EXAMPLE, "tokens": 0, "reports": 0, "expected_standard_error": None})},
        headers={"Location": "Address of the collector."},
        problems=("conflict", "idempotency_conflict", "charge_unknown"),
    ),
)
async def open_collector(request: Request, caller: Annotated[Caller, Depends(roles(Role.ADMIN))]) -> Response:
    """POST /v1/collectors."""
    services = services_of(request)
    body, raw = await body_of(request, CollectorBody, large=True)
    wanted = OpenCollector(
        question=body.question,
        domain=tuple(body.domain),
        epsilon=body.epsilon,
        missing=body.missing,
        encoding=body.encoding,
    )

    def open_one() -> Response:
        made = _acts(services).open(wanted, actor=caller.name)
        return json_response(_body(made), status=201, headers={"Location": f"/v1/collectors/{made.id}"})

    return await once(request, caller, raw, open_one)


@router.get(
    "/v1/collectors/{collector_id}",
    **describe(
        "getCollector",
        "Read a collector",
        "Its law, its price, and how many reports it has.",
        tag="Collectors",
        answers={200: (CollectorAnswer, _EXAMPLE)},
        problems=("not_found",),
    ),
)
async def get_collector(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*Role))],
    collector: Annotated[StoredCollector, Depends(visible_collector)],
) -> Response:
    """GET /v1/collectors/{collector_id}."""
    return json_response(await in_thread(lambda: _body(collector)))


@router.get(
    "/v1/collectors/{collector_id}/question",
    **describe(
        "getCollectorQuestion",
        "Read what a client needs",
        "The question, its domain and the law of its reports, without a key: people who are asked have none.",
        tag="Collectors",
        answers={
            200: (
                CollectorQuestionAnswer,
                {
                    "id": _EXAMPLE["id"],
                    "question": "Do you smoke?",
                    "status": "settled",
                    "domain": ["yes", "no", "(no answer)"],
                    "missing": "(no answer)",
                    "epsilon": "1",
                    "law": _LAW,
                },
            )
        },
        problems=("not_found", "unavailable"),
        public=True,
    ),
)
async def get_question(request: Request, collector_id: str, caller: Annotated[Caller, Depends(PUBLIC)]) -> Response:
    """GET /v1/collectors/{collector_id}/question."""
    services = services_of(request)
    wanted = identifier(collector_id, "collector")

    def find() -> Response:
        found = _acts(services).one(wanted)
        return json_response(
            {
                "id": found.id,
                "question": found.question,
                "status": _status(found),
                "domain": list(found.domain),
                "missing": found.missing,
                "epsilon": decimal_text(found.epsilon),
                "law": encoder_for(found).law(),
            }
        )

    return await services.jobs.call(find, owner=_NOBODY)


@router.post(
    "/v1/collectors/{collector_id}/tokens",
    **describe(
        "createCollectorTokens",
        "Make single-use tokens",
        "One for each person who is asked. The texts are shown here and never again; the server keeps their hashes. "
        + ONCE_TEXT
        + " The texts are not stored, so a retry has null in their place.",
        tag="Collectors",
        body=TokensBody,
        body_examples={"hundred": {"count": 100}},
        answers={201: (TokensAnswer, None)},
        problems=("not_found", "conflict", "idempotency_conflict"),
    ),
)
async def create_tokens(
    request: Request, collector_id: str, caller: Annotated[Caller, Depends(roles(Role.ADMIN))]
) -> Response:
    """POST /v1/collectors/{collector_id}/tokens."""
    services = services_of(request)
    wanted = identifier(collector_id, "collector")
    body, raw = await body_of(request, TokensBody)

    def make() -> Response:
        tokens = _acts(services).make_tokens(wanted, body.count, actor=caller.name)
        return json_response({"collector": wanted, "tokens": list(tokens)}, status=201)

    return await once(request, caller, raw, make, unkept=("tokens",))


@router.post(
    "/v1/collectors/{collector_id}/reports",
    **describe(
        "sendReports",
        "Send randomised reports",
        "Each under a token that was not used, without a key. All of a request are counted, or none. The server sees "
        "reports only: their owners randomised them.",
        tag="Collectors",
        body=ReportsBody,
        body_examples={"one": {"reports": [{"token": "ngt_" + "A" * 32, "report": [1]}]}},
        answers={200: (ReportsAnswer, {"accepted": 1})},
        problems=("not_found", "conflict", "token_refused", "rate_limited", "unavailable"),
        public=True,
    ),
)
async def send_reports(request: Request, collector_id: str, caller: Annotated[Caller, Depends(PUBLIC)]) -> Response:
    """POST /v1/collectors/{collector_id}/reports."""
    services = services_of(request)
    wanted = identifier(collector_id, "collector")
    body, _ = await body_of(request, ReportsBody)
    reports = [Report(one.token, tuple(one.report)) for one in body.reports]
    try:
        await services.jobs.call(lambda: _acts(services).accept(wanted, reports), owner=_NOBODY)
    except ActRefused as refused:
        if isinstance(refused.refusal, RefusedToken):
            _slow_down(request)
        raise
    return json_response({"accepted": len(reports)})


def _slow_down(request: Request) -> None:
    """Wrong tokens are limited as wrong keys are. Errors: Problem rate_limited."""
    address = request.client.host if request.client is not None else ""
    wait = request.app.state.limits.failed_keys.take(address)
    if wait:
        raise Problem(
            "rate_limited",
            what="too many wrong tokens from this address",
            why="Their number in a minute is limited. No report was counted.",
            instead=(f"Wait {wait} seconds, then send the right token.",),
            headers={"Retry-After": str(wait)},
        )


@router.delete(
    "/v1/collectors/{collector_id}",
    **describe(
        "closeCollector",
        "Close a collector",
        "It takes no more reports. Its charge and its estimates stay. Closing twice changes nothing.",
        tag="Collectors",
        answers={200: (CollectorAnswer, {**_EXAMPLE, "status": "closed", "closed": "2026-02-01T00:00:00Z"})},
        problems=("not_found",),
    ),
)
async def close_collector(
    request: Request, collector_id: str, caller: Annotated[Caller, Depends(roles(Role.ADMIN))]
) -> Response:
    """DELETE /v1/collectors/{collector_id}."""
    services = services_of(request)
    wanted = identifier(collector_id, "collector")
    return json_response(await in_thread(lambda: _body(_acts(services).close(wanted, actor=caller.name))))


_Way = Literal["auto", "none", "normalised", "projection", "empirical_bayes"]


@router.get(
    "/v1/collectors/{collector_id}/estimates",
    **describe(
        "getCollectorEstimates",
        "Read estimates of shares",
        "The share of each value among the reports so far, with error bars. Computed from randomised reports, so it "
        "costs nothing. As CSV or Parquet it is a public table that a dataset file can name (docs/collectors.md).",
        tag="Collectors",
        answers={200: (CollectorEstimatesAnswer, None)},
        formats=OTHER_FORMATS,
        problems=("not_found", "conflict", "not_acceptable"),
    ),
)
async def get_estimates(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*Role))],
    collector: Annotated[StoredCollector, Depends(visible_collector)],
    postprocess: Annotated[_Way, Query(description="How raw estimates become shares.")] = "auto",
    confidence: Annotated[
        str, Query(pattern=r"^0\.[0-9]{1,6}$", description="Chance with which each interval covers, from 0.5.")
    ] = "0.95",
) -> Response:
    """GET /v1/collectors/{collector_id}/estimates."""
    from mechanisms.local.postprocess import Postprocess

    services = services_of(request)
    sent_as = await asked_format(request)
    wanted = _confidence(confidence)
    way = Postprocess(postprocess)
    found, estimates = await services.jobs.call(
        lambda: _acts(services).estimates(collector.id, way=way, confidence=wanted), owner=caller.name
    )
    rows = list(_rows(found, estimates))
    answer = json_response(
        {
            "collector": found.id,
            "status": _status(found),
            "reports": estimates.reports,
            "confidence": decimal_text(wanted),
            "postprocess": estimates.way.value,
            "risks": {one.value: risk for one, risk in estimates.risks.items()},
            "rows": rows,
        }
    )
    name = found.id
    body = await sent(sent_as, bytes(answer.body), lambda _: _table(rows), name)
    return Response(
        body.content, media_type=body.media_type, headers={"Cache-Control": "no-store", **(body.headers or {})}
    )


def _confidence(text: str) -> Fraction:
    found = parse_decimal(text, name="confidence", maximum=Fraction(1), unit=Fraction(1, 10**6), zero_allowed=True)
    if found < Fraction(1, 2):
        raise Problem(
            "invalid_request",
            what="the query string is not accepted",
            why="The confidence is at least 0.5 and below 1.",
            instead=("Write confidence=0.95.",),
        )
    return found


def _rows(collector: StoredCollector, estimates: Estimates) -> Iterator[dict[str, str | float | None]]:
    for place, value in enumerate(collector.domain):
        yield {
            "value": value,
            "share": float(estimates.shares[place]),
            "raw_share": float(estimates.raw[place]),
            "standard_error": float(estimates.standard_errors[place]),
            "low": None if estimates.lows is None else float(estimates.lows[place]),
            "high": None if estimates.highs is None else float(estimates.highs[place]),
        }


def _table(rows: list[dict[str, str | float | None]]) -> Table:
    """The rows as columns, for formats that are not JSON."""
    names = ("value", "share", "raw_share", "standard_error", "low", "high")
    columns = tuple(
        Column(
            name,
            "key" if place == 0 else "released",
            place,
            "VARCHAR" if place == 0 else "DOUBLE",
            tuple(row[name] for row in rows),
        )
        for place, name in enumerate(names)
    )
    return Table(columns, {}, {})
