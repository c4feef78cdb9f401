"""Batches: counting queries that are answered together, for one charge."""

from __future__ import annotations

import datetime
import json
import math
import time
from collections.abc import Mapping
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from mechanisms.families import FAMILIES
from privacy.currency import MU_SQUARED
from privacy.refusal import Finding
from server.auth import Caller, roles, services_of
from server.batches.batches import Choice
from server.batches.strategies import Way
from server.batches.terms import AskedBatch, Terms
from server.body import request_hash
from server.errors import finding_body
from server.once import idempotency_key
from server.roles import ASKING, READING
from server.routes.common import body_of, describe, json_response
from server.routes.paying import REFUSALS, called, start_charged
from server.routes.resources import After, Count, OfDataset, Seen, Shown
from server.routes.sight import visible_batch
from server.store.resources import BATCHES, BatchRow
from server.wire.answers import CancelAnswer
from server.wire.batches import BatchAnswer, BatchBody, BatchEstimate, BatchList

__all__ = ["router"]

router = APIRouter()

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
        body_hash=request_hash(raw, "batch"),
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
        problems=REFUSALS,
    ),
)
async def estimate_batch(request: Request, caller: Annotated[Caller, Depends(roles(*ASKING))]) -> Response:
    """POST /v1/batches:estimate."""
    services = services_of(request)
    body, raw = await body_of(request, BatchBody)
    wanted = _asked(caller, body, raw, key=None)
    choice, estimate = await called(services, caller, wanted.dataset, partial(services.batches.estimate, wanted))
    return json_response(
        {
            "queries": len(choice.places),
            "different": 1 + max(choice.places),
            "strategy": choice.chosen.strategy.value,
            "strategies": [_way(way, choice) for way in choice.ways],
            **{name: estimate[name] for name in ("price", "noise", "warnings", "remaining_after")},
            "cut": _cuts_before(estimate),
        }
    )


def _cuts_before(estimate: Mapping[str, object]) -> list[object]:
    """What an estimate of the text says that bounds may leave out."""
    found = estimate["contribution"]
    assert isinstance(found, list)
    return [one["cut"] for one in found if one["cut"] is not None]


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
        answers={201: (BatchAnswer, None), 202: (BatchAnswer, None)},
        headers={"Location": "Address of the batch.", "Retry-After": "With 202: seconds until the next poll."},
        problems=(*REFUSALS, "idempotency_conflict", "conflict", "execution_failed", "charge_unknown"),
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
    journey = services.journey
    started = await start_charged(
        request, caller, wanted.dataset, partial(services.batches.admit, wanted), journey.complete, journey.abandon
    )
    return await _SHOWN.made(request, caller, started, deadline=deadline)


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
    count: Count = 20,
    after: After = None,
    dataset: OfDataset = None,
) -> Response:
    """GET /v1/batches."""
    return await _SHOWN.page(request, caller, dataset=dataset, after=after, count=count)


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
    return await _SHOWN.read(request, row, caller)


@router.post(
    "/v1/batches/{batch_id}:cancel",
    **describe(
        "cancelBatch",
        "Cancel a batch",
        "A batch that did not start is voided and costs nothing. One that started stays charged: an early end would "
        "reveal something about rows for free.",
        tag="Batches",
        answers={200: (CancelAnswer, {"id": "q_7d1f", "status": "failed_void", "charged": False})},
        problems=("not_found", "conflict"),
    ),
)
async def cancel_batch(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*ASKING))],
    row: Annotated[BatchRow, Depends(visible_batch)],
) -> Response:
    """POST /v1/batches/{batch_id}:cancel."""
    journey = services_of(request).journey
    return await _SHOWN.cancelled(request, row, caller, partial(journey.cancel, row.id, row.principal))


def _own(seen: Seen[BatchRow]) -> dict[str, object]:
    """What a batch has besides; of a whole one with its answers once it is settled."""
    row, record, batches = seen.row, seen.record, seen.services.batches
    terms = Terms.from_json(row.terms)
    told: dict[str, object] = {
        "strategy": terms.strategy.value,
        "queries": len(terms.places),
        "confidence": float(terms.confidence),
    }
    if not seen.whole:
        return told
    counts = None if record is None else batches.rows(row, record)
    answer = {} if seen.answer is None else json.loads(seen.answer)
    provenance = answer.get("provenance", {})
    texts = batches.texts(row) if row.principal == seen.caller.name else None
    return {
        **told,
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
        "cut": provenance.get("cut", []),
        "releases": provenance.get("releases", []),
    }


_SHOWN = Shown(BATCHES, _own, (":cancel",))
