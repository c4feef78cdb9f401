"""Synthetic tables: made once for a price, free to query."""

from __future__ import annotations

import json
import time
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from server.auth import Caller, roles, services_of
from server.body import request_hash
from server.once import idempotency_key
from server.roles import ASKING, READING
from server.routes.common import body_of, describe, json_response
from server.routes.paying import REFUSALS, called, start_charged
from server.routes.resources import After, Count, OfDataset, Seen, Shown
from server.routes.sight import visible_synthetic
from server.store.resources import SYNTHETICS, SyntheticRow
from server.synthetic.terms import ColumnWish, MakeSynthetic
from server.wire.answers import CancelAnswer
from server.wire.synthetic_answers import SyntheticAnswer, SyntheticEstimate, SyntheticList
from server.wire.synthetic_requests import SyntheticBody

__all__ = ["router"]

router = APIRouter()

_EXAMPLE = {
    "dataset": "demo",
    "table": "patients",
    "name": "synthetic_patients",
    "epsilon": "1",
}


async def _wanted(request: Request, caller: Caller) -> tuple[MakeSynthetic, int]:
    """A request as the synthetic tables read it, and how many milliseconds its answer is waited for."""
    body, raw = await body_of(request, SyntheticBody)
    columns = None
    if body.columns is not None:
        columns = tuple(ColumnWish(name=one.name, bins=one.bins, low=one.low, high=one.high) for one in body.columns)
    wanted = MakeSynthetic(
        principal=caller.name,
        dataset=body.dataset,
        table=body.table,
        name=body.name,
        columns=columns,
        epsilon=body.epsilon,
        rows_per_unit=body.rows_per_unit,
        account=body.budget,
        idempotency_key=idempotency_key(request),
        body_hash=request_hash(raw, "synthetic"),
    )
    return wanted, body.wait_ms


@router.post(
    "/v1/synthetic",
    **describe(
        "createSynthetic",
        "Make a synthetic table",
        "Measures marginals of a table about people with noise, and draws a table from a model of them, which queries "
        "then read for free under its name. Charges the caller's budget once, before rows are read. With the header "
        "`Idempotency-Key` the same request makes one table.",
        tag="Synthetic tables",
        body=SyntheticBody,
        body_examples={"all columns": _EXAMPLE},
        answers={201: (SyntheticAnswer, None), 202: (SyntheticAnswer, None)},
        headers={
            "Location": "Address of the synthetic table.",
            "Retry-After": "With 202: seconds until the next poll.",
        },
        problems=(*REFUSALS, "idempotency_conflict", "conflict", "charge_unknown", "execution_failed"),
    ),
)
async def create_synthetic(request: Request, caller: Annotated[Caller, Depends(roles(*ASKING))]) -> Response:
    """POST /v1/synthetic."""
    deadline = time.monotonic()
    services = services_of(request)
    wanted, wait_ms = await _wanted(request, caller)
    deadline += wait_ms / 1000
    tables = services.synthetic
    started = await start_charged(
        request, caller, wanted.dataset, partial(tables.admit, wanted), tables.complete, services.resources.abandon
    )
    return await _SHOWN.made(request, caller, started, deadline=deadline)


@router.post(
    "/v1/synthetic:estimate",
    **describe(
        "estimateSynthetic",
        "Estimate a synthetic table",
        "The same body as to make one: its columns and bins, how much noise its marginals would have, and what it "
        "would cost. Reads no rows and costs nothing.",
        tag="Synthetic tables",
        body=SyntheticBody,
        body_examples={"all columns": _EXAMPLE},
        answers={200: (SyntheticEstimate, None)},
        problems=(*REFUSALS, "conflict"),
    ),
)
async def estimate_synthetic(request: Request, caller: Annotated[Caller, Depends(roles(*ASKING))]) -> Response:
    """POST /v1/synthetic:estimate."""
    services = services_of(request)
    wanted, _ = await _wanted(request, caller)
    return json_response(await called(services, caller, wanted.dataset, partial(services.synthetic.estimate, wanted)))


@router.get(
    "/v1/synthetic",
    **describe(
        "listSynthetic",
        "List synthetic tables",
        "The caller's synthetic tables, newest first; everybody's for administrators and auditors.",
        tag="Synthetic tables",
        answers={200: (SyntheticList, None)},
        problems=("not_found",),
    ),
)
async def list_synthetic(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*READING))],
    count: Count = 20,
    after: After = None,
    dataset: OfDataset = None,
) -> Response:
    """GET /v1/synthetic."""
    return await _SHOWN.page(request, caller, dataset=dataset, after=after, count=count)


@router.get(
    "/v1/synthetic/{synthetic_id}",
    **describe(
        "getSynthetic",
        "Read a synthetic table's report",
        "What was measured, with which error, what the model depends on, and warnings. Costs nothing.",
        tag="Synthetic tables",
        answers={200: (SyntheticAnswer, None)},
        problems=("not_found",),
    ),
)
async def get_synthetic(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*READING))],
    row: Annotated[SyntheticRow, Depends(visible_synthetic)],
) -> Response:
    """GET /v1/synthetic/{synthetic_id}."""
    return await _SHOWN.read(request, row, caller)


@router.post(
    "/v1/synthetic/{synthetic_id}:cancel",
    **describe(
        "cancelSynthetic",
        "Cancel a synthetic table",
        "A table that did not start is voided, costs nothing and frees its name. One that started stays charged: an "
        "early end would reveal something about rows for free.",
        tag="Synthetic tables",
        answers={200: (CancelAnswer, {"id": "s_7d1f", "status": "failed_void", "charged": False})},
        problems=("not_found", "conflict"),
    ),
)
async def cancel_synthetic(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*ASKING))],
    row: Annotated[SyntheticRow, Depends(visible_synthetic)],
) -> Response:
    """POST /v1/synthetic/{synthetic_id}:cancel."""
    return await _SHOWN.cancelled(request, row, caller, partial(services_of(request).synthetic.cancel, row))


@router.delete(
    "/v1/synthetic/{synthetic_id}",
    **describe(
        "deleteSynthetic",
        "Delete a synthetic table",
        "Deletes its rows and frees its name. The report and the charge stay.",
        tag="Synthetic tables",
        answers={200: (SyntheticAnswer, None)},
        problems=("not_found", "conflict"),
    ),
)
async def delete_synthetic(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*ASKING))],
    row: Annotated[SyntheticRow, Depends(visible_synthetic)],
) -> Response:
    """DELETE /v1/synthetic/{synthetic_id}."""
    close = partial(services_of(request).synthetic.close, row, actor=caller.name)
    return await _SHOWN.closed(request, row, caller, close)


def _own(seen: Seen[SyntheticRow]) -> dict[str, object]:
    """What a synthetic table has besides: what was asked for, and once it is settled its report."""
    row, terms = seen.row, json.loads(seen.row.terms)
    report = {} if row.report is None or seen.answer is None else json.loads(row.report)
    return {
        "name": row.name,
        "table": terms["table"],
        "data_version": row.data_version,
        "epsilon": terms["epsilon"],
        "rows_per_unit": terms["rows_per_unit"],
        "left_out": terms["left_out"],
        **{name: report.get(name) for name in _REPORTED},
    }


_REPORTED = ("columns", "rows", "rows_estimated", "measured", "model", "warnings")
_SHOWN = Shown(SYNTHETICS, _own, (":cancel",))
