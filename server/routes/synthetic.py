"""Synthetic tables: made once for a price, free to query."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Annotated, TypeVar

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from privacy.refusal import CODES
from server.auth import Caller, roles, services_of
from server.body import canonical_hash
from server.once import idempotency_key
from server.roles import ASKING, READING
from server.routes.common import body_of, describe, identifier, in_thread, json_response, not_found, page_response
from server.routes.paying import explained
from server.routes.sight import visible_synthetic
from server.services import Services
from server.store.synthetic import SyntheticRow
from server.synthetic.terms import ColumnWish, MakeSynthetic
from server.wire.requests import ACCOUNT_PATTERN
from server.wire.synthetic_answers import SyntheticAnswer, SyntheticEstimate, SyntheticList
from server.wire.synthetic_requests import SyntheticBody

__all__ = ["router"]

router = APIRouter()

T = TypeVar("T")

_REFUSALS = tuple(code for code in CODES if code != "execution_failed")

_EXAMPLE = {
    "dataset": "demo",
    "table": "patients",
    "name": "synthetic_patients",
    "epsilon": "1",
}


async def _called(services: Services, caller: Caller, act: Callable[[], T]) -> T:
    """Carries out a step that reads no rows on the threads of questions."""
    return await services.jobs.call(act, owner=caller.name)


async def _wanted(request: Request, caller: Caller) -> MakeSynthetic:
    body, raw = await body_of(request, SyntheticBody)
    columns = None
    if body.columns is not None:
        columns = tuple(ColumnWish(name=one.name, bins=one.bins, low=one.low, high=one.high) for one in body.columns)
    return MakeSynthetic(
        principal=caller.name,
        dataset=body.dataset,
        table=body.table,
        name=body.name,
        columns=columns,
        epsilon=body.epsilon,
        rows_per_unit=body.rows_per_unit,
        account=body.budget,
        idempotency_key=idempotency_key(request),
        body_hash=canonical_hash(
            {name: value for name, value in raw.items() if value is not None} | {"as": "synthetic"}
        ),
    )


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
        answers={201: (SyntheticAnswer, None)},
        headers={"Location": "Address of the synthetic table."},
        problems=(*_REFUSALS, "idempotency_conflict", "conflict", "charge_unknown", "execution_failed"),
    ),
)
async def create_synthetic(request: Request, caller: Annotated[Caller, Depends(roles(*ASKING))]) -> Response:
    """POST /v1/synthetic."""
    services = services_of(request)
    wanted = await _wanted(request, caller)
    # From here on a failure that nobody foresaw counts as charged.
    request.state.spending = True
    async with explained(services, caller, wanted.dataset):
        row = await _called(services, caller, partial(services.synthetic.earlier, wanted))
        if row is None:
            planned = await _called(services, caller, partial(services.synthetic.plan, wanted))
            row = await services.jobs.run(partial(services.synthetic.make, planned), owner=caller.name)
    made = row
    shown = await in_thread(lambda: _body(services, made))
    return json_response(shown, status=201, headers={"Location": f"/v1/synthetic/{made.id}"})


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
        problems=(*_REFUSALS, "conflict"),
    ),
)
async def estimate_synthetic(request: Request, caller: Annotated[Caller, Depends(roles(*ASKING))]) -> Response:
    """POST /v1/synthetic:estimate."""
    services = services_of(request)
    wanted = await _wanted(request, caller)
    async with explained(services, caller, wanted.dataset):
        return json_response(await _called(services, caller, partial(services.synthetic.estimate, wanted)))


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
    count: Annotated[int, Query(ge=1, le=100, description="Synthetic tables per page.")] = 20,
    after: Annotated[str | None, Query(pattern=ACCOUNT_PATTERN, description="`next` of the page before.")] = None,
) -> Response:
    """GET /v1/synthetic."""
    services = services_of(request)
    whose = None if caller.oversees else caller.name
    if after is not None:
        # A position in the list of others would reveal when they made theirs.
        last = await in_thread(lambda: services.registry.synthetic(identifier(after, "synthetic table")))
        if last is None or not (caller.oversees or last.principal == caller.name):
            raise not_found("synthetic table")
    rows = await in_thread(lambda: services.registry.synthetics(whose, after=after, count=count + 1))
    shown = await in_thread(lambda: {row.id: _body(services, row) for row in rows[:count]})
    return page_response("synthetic", rows, count, body=lambda row: shown[row.id], after=lambda row: row.id)


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
    services = services_of(request)
    return json_response(await in_thread(lambda: _body(services, row)))


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
    services = services_of(request)
    if row.principal != caller.name:
        # Others read it; it is its owner's to delete.
        raise not_found("synthetic table")
    gone = await in_thread(lambda: services.synthetic.archive(row, actor=caller.name))
    return json_response(await in_thread(lambda: _body(services, gone)))


def _body(services: Services, row: SyntheticRow) -> dict[str, object]:
    """A synthetic table, as it is shown."""
    terms = json.loads(row.terms)
    status = services.synthetic.status(row)
    report = json.loads(row.report) if row.report is not None and status in ("ready", "archived") else {}
    return {
        "id": row.id,
        "dataset": row.dataset,
        "principal": row.principal,
        "budget": row.account,
        "created": row.created,
        "status": status,
        "name": row.name,
        "table": terms["table"],
        "data_version": row.data_version,
        "epsilon": terms["epsilon"],
        "rows_per_unit": terms["rows_per_unit"],
        "left_out": terms["left_out"],
        **{name: report.get(name) for name in _REPORTED},
        "links": {"self": f"/v1/synthetic/{row.id}", "budget": f"/v1/budgets/{row.account}"},
    }


_REPORTED = ("columns", "rows", "rows_estimated", "measured", "model", "warnings")
