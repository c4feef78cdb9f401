"""Batches: counting queries that are answered together, for one charge."""

from __future__ import annotations

import datetime
import json
import math
import time
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from accountant.request import QueryRecord
from mechanisms.families import FAMILIES
from privacy.currency import MU_SQUARED
from privacy.refusal import CODES, Finding
from server.auth import Caller, roles, services_of
from server.batches.batches import Choice
from server.batches.strategies import Way
from server.batches.terms import AskedBatch, Terms
from server.body import canonical_hash
from server.errors import finding_body
from server.once import idempotency_key
from server.roles import ASKING, READING
from server.routes.common import body_of, describe, identifier, in_thread, json_response, not_found, page_response
from server.routes.paying import answer_by, explained
from server.routes.sight import visible_batch
from server.services import Services
from server.store.batches import BatchRow
from server.wire.batches import BatchAnswer, BatchBody, BatchEstimate, BatchList
from server.wire.requests import ACCOUNT_PATTERN
from server.wire.words import State

__all__ = ["router"]

router = APIRouter()

_REFUSALS = tuple(code for code in CODES if code != "execution_failed")

_EXAMPLE = {
    "dataset": "demo",
    "queries": [
        "SELECT COUNT(*) FROM patients WHERE birth_year BETWEEN 1940 AND 1959",
        "SELECT COUNT(*) FROM patients WHERE birth_year BETWEEN 1950 AND 1979",
        "SELECT COUNT(*) FROM patients WHERE birth_year BETWEEN 1980 AND 1999",
    ],
    "spend": {"epsilon": "0.5"},
}


def _asked(caller: Caller, body: BatchBody, raw: dict[str, object], *, key: str | None) -> AskedBatch:
    kept = {name: value for name, value in raw.items() if value is not None and name != "wait_ms"}
    return AskedBatch(
        principal=caller.name,
        dataset=body.dataset,
        queries=tuple(body.queries),
        epsilon=None if body.spend is None else body.spend.epsilon,
        own_epsilon=None if body.spend is None else body.spend.own_epsilon,
        noise=body.noise,
        confidence=body.confidence,
        contribution=None if body.contribution is None else body.contribution.asked(),
        reuse=body.reuse,
        account=body.budget,
        idempotency_key=key,
        body_hash=canonical_hash(kept | {"as": "batch"}),
        moment=datetime.datetime.now(datetime.UTC),
    )


@router.post(
    "/v1/batches:estimate",
    **describe(
        "estimateBatch",
        "Report how a batch would be answered",
        "The same body as a batch. Says which ways there are to answer it, what error each would have at the price, "
        "and which is taken. Computed from the texts and public metadata only: it touches no private row and costs "
        "nothing.",
        tag="Batches",
        body=BatchBody,
        body_examples={"ranges": _EXAMPLE},
        answers={200: (BatchEstimate, None)},
        problems=_REFUSALS,
    ),
)
async def estimate_batch(request: Request, caller: Annotated[Caller, Depends(roles(*ASKING))]) -> Response:
    """POST /v1/batches:estimate."""
    services = services_of(request)
    body, raw = await body_of(request, BatchBody)
    wanted = _asked(caller, body, raw, key=None)
    async with explained(services, caller, wanted.dataset):
        choice, estimate = await services.jobs.call(partial(services.batches.estimate, wanted), owner=caller.name)
    return json_response(
        {
            "queries": len(choice.places),
            "different": 1 + max(choice.places),
            "strategy": choice.chosen.strategy.value,
            "strategies": [_way(way, choice) for way in choice.ways],
            **{name: estimate[name] for name in ("price", "noise", "warnings", "remaining_after")},
        }
    )


def _way(way: Way, choice: Choice) -> dict[str, object]:
    """One way to answer a batch, as an estimate shows it."""
    errors = way.errors
    told = {"strategy": way.strategy.value, "chosen": way is choice.chosen}
    if errors is None or way.priced is None or choice.chosen.priced is None:
        findings = () if way.refused is None else way.refused.findings
        nothing = dict.fromkeys(("sums", "error", "greatest_error", "price_ratio"))
        return {**told, **nothing, "refused": [_refusal(finding) for finding in findings]}
    same = way.priced.family == choice.chosen.priced.family
    power = 2 if FAMILIES[way.priced.family].currency is MU_SQUARED else 1
    ratio = (way.error / choice.chosen.error) ** power if same and choice.chosen.error > 0 else math.inf
    return {
        **told,
        "sums": way.measured,
        "error": way.error,
        "greatest_error": float(errors.max()),
        "price_ratio": ratio if math.isfinite(ratio) else None,
        "refused": [],
    }


def _refusal(finding: Finding) -> dict[str, object]:
    """A finding without its place, which is in a text that nobody wrote."""
    return {**finding_body(finding), "position": None}


@router.post(
    "/v1/batches",
    **describe(
        "createBatch",
        "Answer counting queries together",
        "Answers many counts of the same rows from one release: ranges by a tree, hierarchies by levels that add up, "
        "disjoint groups at the price of one, others one by one or from one histogram, whichever errs least "
        "at the price. Charges the caller's budget once, before the first row is read. With the header "
        "`Idempotency-Key` the same request is one batch.",
        tag="Batches",
        body=BatchBody,
        body_examples={"ranges": _EXAMPLE},
        answers={200: (BatchAnswer, None), 202: (BatchAnswer, None)},
        headers={"Location": "Address of the batch.", "Retry-After": "With 202: seconds until the next poll."},
        problems=(*_REFUSALS, "idempotency_conflict", "conflict", "execution_failed", "charge_unknown"),
    ),
)
async def create_batch(request: Request, caller: Annotated[Caller, Depends(roles(*ASKING))]) -> Response:
    """POST /v1/batches."""
    deadline = time.monotonic()
    services = services_of(request)
    key = idempotency_key(request)
    body, raw = await body_of(request, BatchBody)
    deadline += body.wait_ms / 1000
    wanted = _asked(caller, body, raw, key=key)
    # From here on a failure that nobody foresaw counts as charged.
    request.state.spending = True
    journey = services.journey
    async with explained(services, caller, wanted.dataset):
        started = await services.jobs.start(
            partial(services.batches.admit, wanted), journey.complete, journey.abandon, owner=caller.name
        )
    query = started.query
    request.state.query_id = query.query_id
    done = await answer_by(request, started, deadline=deadline) is not None
    shown = await in_thread(lambda: _stored(services, query.query_id, caller))
    headers = {"Location": f"/v1/batches/{query.query_id}", "Cache-Control": "no-store"}
    return json_response(
        shown, status=200 if done else 202, headers={**headers, **({} if done else {"Retry-After": "1"})}
    )


@router.get(
    "/v1/batches",
    **describe(
        "listBatches",
        "List batches",
        "The caller's batches, newest first; everybody's for administrators and auditors. Without their answers.",
        tag="Batches",
        answers={200: (BatchList, None)},
        problems=("not_found",),
    ),
)
async def list_batches(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*READING))],
    count: Annotated[int, Query(ge=1, le=100, description="Batches per page.")] = 20,
    after: Annotated[str | None, Query(pattern=ACCOUNT_PATTERN, description="`next` of the page before.")] = None,
) -> Response:
    """GET /v1/batches."""
    services = services_of(request)
    whose = None if caller.oversees else caller.name
    if after is not None:
        # A position in the list of others would reveal when they asked.
        last = await in_thread(lambda: services.registry.batch(identifier(after, "batch")))
        if last is None or not (caller.oversees or last.principal == caller.name):
            raise not_found("batch")

    def found() -> tuple[tuple[BatchRow, ...], dict[str, dict[str, object]]]:
        rows = services.registry.batches(whose, after=after, count=count + 1)
        return rows, {row.id: _state(row, services.ledger.query(row.id)) for row in rows[:count]}

    rows, shown = await in_thread(found)
    return page_response("batches", rows, count, body=lambda row: shown[row.id], after=lambda row: row.id)


@router.get(
    "/v1/batches/{batch_id}",
    **describe(
        "getBatch",
        "Read a batch",
        "Its state, and its answers once it is settled: the same ones every time. Never spends.",
        tag="Batches",
        answers={200: (BatchAnswer, None)},
        problems=("not_found",),
    ),
)
async def get_batch(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*READING))],
    row: Annotated[BatchRow, Depends(visible_batch)],
) -> Response:
    """GET /v1/batches/{batch_id}."""
    services = services_of(request)
    return json_response(await in_thread(lambda: _body(services, row, services.ledger.query(row.id), caller)))


def _stored(services: Services, batch_id: str, caller: Caller) -> dict[str, object]:
    row = services.registry.batch(batch_id)
    assert row is not None, "a batch is stored before it runs"
    return _body(services, row, services.ledger.query(batch_id), caller)


def _state(row: BatchRow, record: QueryRecord | None) -> dict[str, object]:
    terms = Terms.from_json(row.terms)
    return {
        "id": row.id,
        "dataset": row.dataset,
        "principal": row.principal,
        "created": row.created,
        # Stored just before a ledger that was restored from an older copy: what became of its charge is unknown.
        "status": State.FAILED_CHARGED.value if record is None else State.of(record.state),
        "strategy": terms.strategy.value,
        "queries": len(terms.places),
        "confidence": float(terms.confidence),
        "links": {"self": f"/v1/batches/{row.id}", "query": f"/v1/queries/{row.id}"},
    }


def _body(services: Services, row: BatchRow, record: QueryRecord | None, caller: Caller) -> dict[str, object]:
    """A batch, as this caller may read it."""
    counts = None if record is None else services.batches.rows(row, record)
    answer = json.loads(record.answer) if record is not None and record.answer is not None else {}
    texts = services.batches.texts(row) if row.principal == caller.name else None
    return {
        **_state(row, record),
        "rows": None
        if counts is None
        else [
            {
                "number": number + 1,
                "sql": None if texts is None else texts[number],
                "value": one.value,
                "standard_error": one.standard_error,
                "low": one.low,
                "high": one.high,
            }
            for number, one in enumerate(counts)
        ],
        "accounting": answer.get("accounting"),
        "warnings": [{**warning, "position": None} for warning in answer.get("warnings", [])],
        "releases": answer.get("provenance", {}).get("releases", []),
    }
