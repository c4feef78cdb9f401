"""Questions: estimates, queries and their states. Of these only POST /v1/queries spends."""

from __future__ import annotations

import datetime
import time
from dataclasses import replace
from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from accountant.request import QueryRecord
from accountant.states import QueryStatus
from privacy.bounds import AskedContribution
from privacy.numbers import decimal_text
from privacy.refusal import ExecutionFailed, Refused
from server.auth import Caller, roles, services_of
from server.body import canonical_hash
from server.cancelling import cancelled_anywhere
from server.errors import Problem, problem_of_execution
from server.formats import JSON, RESULT_HEADERS, Format, answer_table
from server.journey.sharpening import NOT_SHARPENED
from server.once import idempotency_key
from server.published import PROFILE, STATISTIC
from server.question import Question
from server.resources.kinds import ResourceKind
from server.roles import ASKING, READING
from server.routes.common import (
    OTHER_FORMATS,
    asked_format,
    body_of,
    cached_response,
    describe,
    in_thread,
    json_response,
    moment_text,
    not_found,
    page_response,
    running_response,
    sent,
)
from server.routes.paying import REFUSALS, answer_by, called, start_charged
from server.routes.sight import seen_query, visible_query
from server.wire.answers import CancelAnswer, EstimateAnswer, QueryAnswer, QueryList, RunningAnswer
from server.wire.requests import (
    ACCOUNT_PATTERN,
    CONFIDENCE_DEFAULT,
    ContributionBody,
    EstimateBody,
    QueryBody,
    SharpenBody,
)
from server.wire.words import State
from sql_rewrite.lift_clock import started

__all__ = ["question_of", "router"]

router = APIRouter()

_EXAMPLE_QUERY = {
    "dataset": "demo",
    "sql": "SELECT COUNT(*) AS n FROM patients",
    "spend": {"epsilon": "0.5"},
}
_EXAMPLE_ANSWER = {
    "id": "q_7d1f",
    "status": "settled",
    "columns": [{"name": "n", "type": "BIGINT", "kind": "released", "interval": "noise"}],
    "rows": [[20013]],
    "standard_errors": [[2.8]],
    "lows": [[20007]],
    "highs": [[20019]],
    "interval_reasons": [],
    "confidence": 0.95,
    "warnings": [],
    "accounting": {
        "charged": [{"budget": "b_2c9a", "epsilon": "0.5", "delta": "0"}],
        "reused": False,
        "share": "0.05",
        "of": {"epsilon": "10", "delta": "0"},
        "own": {"epsilon": "0.5", "delta": "0"},
        "saved": {"epsilon": "0"},
        "remaining": {"epsilon": "9.5", "delta": "0"},
    },
    "provenance": {
        "releases": ["r_51aa"],
        "noise": "laplace",
        "mechanisms": [
            {
                "columns": ["COUNT(*)"],
                "mechanism": "laplace",
                "scale": "2",
                "sensitivity": "l1 1",
                "argument": "privacy units",
                "share": "1",
                "groups_per_unit": 1,
                "rows_per_unit_and_group": 1,
                "rows_per_unit": 1,
                "estimands": ["plain: each unit has one row"],
            }
        ],
        "policy_version": 1,
        "data_version": "d_83f0",
        "cut": [],
        "intervals": "noise only; clipping and contribution bounds may bias an answer beside it",
    },
    "links": {"self": "/v1/queries/q_7d1f", "releases": ["/v1/releases/r_51aa"], "budget": "/v1/budgets/b_2c9a"},
}
_EXAMPLE_RUNNING = {"id": "q_7d1f", "status": "running", "links": {"self": "/v1/queries/q_7d1f"}}

_REFUSED = (*REFUSALS, "not_acceptable", "idempotency_conflict", "execution_failed", "charge_unknown")

_ANSWER_HEADERS = {name: text for name, text in RESULT_HEADERS.items() if name != "Noisegate-Release"}


def _asked(raw: dict[str, object]) -> dict[str, object]:
    """What a body asks: without how long the client waits, and without nulls, which are absent.

    A parameter's value may be null, and then it is one.
    """
    asked = {name: value for name, value in raw.items() if name != "wait_ms" and value is not None}
    for name, value in asked.items():
        if name != "parameters" and isinstance(value, dict):
            asked[name] = {inner: part for inner, part in value.items() if part is not None}
    return asked


def _contribution(body: ContributionBody | Literal["auto"] | None) -> AskedContribution | None:
    """As the journey reads it."""
    if body is None:
        return None
    return AskedContribution(automatic=True) if body == "auto" else body.asked()


def question_of(caller: Caller, body: QueryBody, raw: dict[str, object], *, key: str | None) -> Question:
    """A body as the journey reads it; `raw` is what it was read from."""
    accuracy = body.accuracy
    return Question(
        principal=caller.name,
        dataset=body.dataset,
        sql=body.sql,
        parameters=body.parameters,
        epsilon=None if body.spend is None else body.spend.epsilon,
        own_epsilon=None if body.spend is None else body.spend.own_epsilon,
        noise=body.noise,
        mechanism=body.mechanism,
        delta=body.delta,
        half_width=None if accuracy is None else accuracy.half_width,
        relative=None if accuracy is None or accuracy.merge else accuracy.relative,
        merge=accuracy.relative if accuracy is not None and accuracy.merge else None,
        at_most=None if accuracy is None else accuracy.at_most,
        confidence=CONFIDENCE_DEFAULT if accuracy is None else accuracy.confidence,
        reuse=body.reuse,
        max_staleness_s=body.max_staleness_s,
        account=body.budget,
        contribution=_contribution(body.contribution),
        accept_noise=body.accept_noise,
        nonempty=body.nonempty,
        with_cut=body.with_cut,
        nonnegative=body.nonnegative,
        max_cost=body.max_cost,
        started=started(body.sql, datetime.datetime.now(datetime.UTC)),
        idempotency_key=key,
        body_hash=canonical_hash(_asked(raw)),
    )


def _better(
    caller: Caller, record: QueryRecord, body: SharpenBody, raw: dict[str, object], *, key: str | None
) -> Question:
    """A better wish for a query, without its text."""
    accuracy, spend = body.accuracy, body.spend
    return Question(
        principal=caller.name,
        dataset=record.dataset,
        sql="",
        parameters={},
        epsilon=None if spend is None else spend.epsilon,
        own_epsilon=None if spend is None else spend.own_epsilon,
        half_width=None if accuracy is None else accuracy.half_width,
        relative=None if accuracy is None else accuracy.relative,
        at_most=None if accuracy is None else accuracy.at_most,
        confidence=CONFIDENCE_DEFAULT if accuracy is None else accuracy.confidence,
        reuse=None,
        max_staleness_s=None,
        account=None,
        max_cost=body.max_cost,
        idempotency_key=key,
        body_hash=canonical_hash({"sharpen": record.id, **_asked(raw)}),
    )


@router.post(
    "/v1/estimates",
    **describe(
        "createEstimate",
        "Report what a query would cost",
        "The same body as a query. Says whether the query is answered, its plan, price, error bars and what would "
        'remain; with `detail: "plan"` the whole report, also as text. Computed from the text and public metadata '
        "only: it touches no private row and costs nothing.",
        tag="Queries",
        body=EstimateBody,
        body_examples={"count": _EXAMPLE_QUERY, "plan": {**_EXAMPLE_QUERY, "detail": "plan"}},
        answers={200: (EstimateAnswer, None)},
        problems=REFUSALS,
    ),
)
async def create_estimate(request: Request, caller: Annotated[Caller, Depends(roles(*ASKING))]) -> Response:
    """POST /v1/estimates."""
    services = services_of(request)
    body, raw = await body_of(request, EstimateBody)
    question = replace(question_of(caller, body, raw, key=None), report=body.detail == "plan")
    return json_response(await called(services, caller, question.dataset, partial(services.journey.estimate, question)))


@router.post(
    "/v1/queries",
    **describe(
        "createQuery",
        "Ask a question and pay for the answer",
        "Charges the caller's budget once, before the query runs, and answers with noisy numbers, error bars and the "
        "price. Give `spend` (a part of the account, or what the answer promises by itself), or `accuracy.half_width`, "
        "or neither for the dataset's default. With the header `Idempotency-Key` (1 to 200 visible ASCII characters) "
        "the same request is never charged twice and gets the same bytes. An exhausted budget is 403, never 429 or "
        "503. The header `Accept` chooses the format of the answer; JSON is the default.",
        tag="Queries",
        body=QueryBody,
        body_examples={
            "count": _EXAMPLE_QUERY,
            "groups": {
                "dataset": "demo",
                "sql": "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex ORDER BY n DESC",
                "accuracy": {"half_width": "25", "confidence": "0.95"},
            },
        },
        answers={200: (QueryAnswer, _EXAMPLE_ANSWER), 202: (RunningAnswer, _EXAMPLE_RUNNING)},
        headers={"Location": "Address of the query.", "Retry-After": "With 202: seconds until the next poll."},
        formats=OTHER_FORMATS,
        format_headers=_ANSWER_HEADERS,
        problems=_REFUSED,
    ),
)
async def create_query(request: Request, caller: Annotated[Caller, Depends(roles(*ASKING))]) -> Response:
    """POST /v1/queries: the only operation on queries that spends."""
    deadline = time.monotonic()
    services = services_of(request)
    # A format that cannot be sent is refused before anything is read or charged.
    sent_as = await asked_format(request)
    key = idempotency_key(request)
    body, raw = await body_of(request, QueryBody)
    deadline += body.wait_ms / 1000
    question = question_of(caller, body, raw, key=key)
    journey = services.journey
    started = await start_charged(
        request, caller, question.dataset, partial(journey.admit, question), journey.complete, journey.abandon
    )
    query_id = started.query.query_id
    answer = await answer_by(request, started, deadline=deadline)
    return running_response(query_id) if answer is None else await _answer(query_id, answer, sent_as)


async def _answer(query_id: str, content: bytes, sent_as: Format) -> Response:
    body = await sent(sent_as, content, answer_table, query_id)
    headers = {"Cache-Control": "no-store", "Content-Location": f"/v1/queries/{query_id}", "Vary": "Accept"}
    return Response(body.content, media_type=body.media_type, headers={**headers, **body.headers})


@router.post(
    "/v1/queries/{query_id}:sharpen",
    **describe(
        "sharpenQuery",
        "Make an answer more precise",
        "Asks a question of the caller's again, by the identifier of its answer, with a better wish for the whole: "
        "what is stored is not bought again, the charge is for what is missing. Where a half width costs less "
        "anew, it is bought anew. With `Idempotency-Key` as for a query; `max_cost` refuses what would cost more. "
        "An answer that precision cannot be added to is `not_sharpened`, and nothing is charged.",
        tag="Queries",
        body=SharpenBody,
        body_examples={"spend": {"spend": {"epsilon": "1"}, "max_cost": "0.5"}},
        answers={200: (QueryAnswer, _EXAMPLE_ANSWER), 202: (RunningAnswer, _EXAMPLE_RUNNING)},
        headers={"Location": "Address of the query.", "Retry-After": "With 202: seconds until the next poll."},
        formats=OTHER_FORMATS,
        format_headers=_ANSWER_HEADERS,
        problems=(*_REFUSED, "not_found"),
    ),
)
async def sharpen_query(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*ASKING))],
    record: Annotated[QueryRecord, Depends(visible_query)],
) -> Response:
    """POST /v1/queries/{query_id}:sharpen."""
    deadline = time.monotonic()
    services = services_of(request)
    sent_as = await asked_format(request)
    key = idempotency_key(request)
    body, raw = await body_of(request, SharpenBody)
    deadline += body.wait_ms / 1000
    if record.principal != caller.name:
        raise not_found("query")
    if PROFILE in record.description or any(kind.value in record.description for kind in ResourceKind):
        raise Refused([NOT_SHARPENED])
    better = _better(caller, record, body, raw, key=key)
    journey = services.journey
    started = await start_charged(
        request, caller, record.dataset, partial(journey.sharpen, record.id, better), journey.complete, journey.abandon
    )
    query_id = started.query.query_id
    answer = await answer_by(request, started, deadline=deadline)
    return running_response(query_id) if answer is None else await _answer(query_id, answer, sent_as)


@router.get(
    "/v1/queries",
    **describe(
        "listQueries",
        "List queries",
        "The caller's queries, newest first; everybody's for administrators and auditors. Their texts are not kept.",
        tag="Queries",
        answers={200: (QueryList, None)},
        problems=("not_found",),
    ),
)
async def list_queries(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*READING))],
    count: Annotated[int, Query(ge=1, le=200, description="Queries per page.")] = 50,
    after: Annotated[str | None, Query(pattern=ACCOUNT_PATTERN, description="`next` of the page before.")] = None,
) -> Response:
    """GET /v1/queries."""
    services = services_of(request)
    whose = None if caller.oversees else caller.name
    if after is not None and not caller.oversees:
        # A position in the list of others would reveal when they asked.
        await seen_query(services, caller, after)
    records = await in_thread(lambda: services.ledger.queries(whose, after=after, count=count + 1))
    return page_response(
        "queries",
        records,
        count,
        body=lambda record: _state(record, overseen=caller.oversees),
        after=lambda record: record.id,
    )


def _state(record: QueryRecord, *, overseen: bool) -> dict[str, object]:
    # What an account above paid is a share of its use, which reveals what others asked.
    return {
        "id": record.id,
        "dataset": record.dataset,
        "principal": record.principal,
        "status": State.of(record.state),
        "charged": [
            {
                "budget": part.account,
                "epsilon": decimal_text(part.epsilon, places=12),
                "delta": decimal_text(part.delta),
            }
            for part in record.charged
            if overseen or part.account == record.account
        ],
        "created": moment_text(record.created),
        "links": {"self": f"/v1/queries/{record.id}"},
    }


@router.get(
    "/v1/queries/{query_id}",
    **describe(
        "getQuery",
        "Read a query's answer or state",
        "The stored answer, the same bytes every time in one format, or 202 while it runs. Never spends. The header "
        "`Accept` chooses the format of the answer; JSON is the default.",
        tag="Queries",
        answers={200: (QueryAnswer, _EXAMPLE_ANSWER), 202: (RunningAnswer, _EXAMPLE_RUNNING), 304: ("", None)},
        headers={
            "ETag": "Strong tag of the answer in this format.",
            "Retry-After": "With 202: seconds until the next poll.",
        },
        formats=OTHER_FORMATS,
        format_headers=_ANSWER_HEADERS,
        problems=("not_acceptable", "not_found", "execution_failed", "query_void"),
    ),
)
async def get_query(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*READING))],
    record: Annotated[QueryRecord, Depends(visible_query)],
) -> Response:
    """GET /v1/queries/{query_id}."""
    sent_as = await asked_format(request)
    if record.state is QueryStatus.SETTLED and record.answer is not None:
        kind = next((kind for kind in ResourceKind if kind.value in record.description), None)
        if kind is not None and sent_as is not JSON:
            raise Problem(
                "not_acceptable",
                what=f"what a {kind.word} was charged for is sent as JSON only",
                why=f"It is no table: the {kind.word} has what there is to read.",
                instead=(f"Read it: GET {kind.path}/{{id}}",),
            )
        if STATISTIC in record.description and sent_as is not JSON:
            raise Problem(
                "not_acceptable",
                what="a registered statistic is sent as JSON only",
                why="It is no table: it has one outcome, and what was tested.",
                instead=(f"Read it as JSON: GET /v1/queries/{record.id}",),
            )
        if PROFILE in record.description and sent_as is not JSON:
            raise Problem(
                "not_acceptable",
                what="a profile is sent as JSON only",
                why="It is no table: it has figures about every table and column of the data.",
                instead=(f"Read it with its dataset: GET /v1/datasets/{record.dataset}",),
            )
        body = await sent(sent_as, record.answer, answer_table, record.id)
        return cached_response(request, body.content, media_type=body.media_type, headers=body.headers)
    if record.state is QueryStatus.RESERVED:
        return running_response(record.id)
    charged = record.state is not QueryStatus.FAILED_VOID and bool(record.charged)
    raise problem_of_execution(ExecutionFailed(started=charged))


@router.post(
    "/v1/queries/{query_id}:cancel",
    **describe(
        "cancelQuery",
        "Cancel a query",
        "A query that did not start is voided and costs nothing. One that started stays charged: an early end would "
        "reveal something about rows for free.",
        tag="Queries",
        answers={200: (CancelAnswer, {"id": "q_7d1f", "status": "failed_void", "charged": False})},
        problems=("not_found", "conflict"),
    ),
)
async def cancel_query(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*ASKING))],
    record: Annotated[QueryRecord, Depends(visible_query)],
) -> Response:
    """POST /v1/queries/{query_id}:cancel."""
    services = services_of(request)
    if STATISTIC in record.description:
        # It waits with what is charged once, and is a query in everything else.
        state = await in_thread(lambda: services.resources.cancel(record.id))
    else:
        state = await in_thread(lambda: services.journey.cancel(record.id, record.principal))
    state = await cancelled_anywhere(services, record.id, state)
    charged = state != QueryStatus.FAILED_VOID and bool(record.charged)
    return json_response(
        {"id": record.id, "status": "unknown" if state is None else State.of(state), "charged": charged}
    )
