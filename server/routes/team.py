"""An administrator's questions about all accounts at once."""

from __future__ import annotations

import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from server.administration.overview import Overview
from server.auth import Caller, roles, services_of
from server.roles import OVERSEEING
from server.routes.common import describe, in_thread, json_response
from server.wire.requests import DATASET_PATTERN
from server.wire.team import QuestionsLeftList, RunningOutList, SpendingList

__all__ = ["router"]

router = APIRouter()

_Overseer = Annotated[Caller, Depends(roles(*OVERSEEING))]
_Dataset = Annotated[str | None, Query(pattern=DATASET_PATTERN, description="Of this dataset only.")]


def _overview(request: Request) -> Overview:
    services = services_of(request)
    return Overview(services.ledger, services.registry, services.catalogue.get)


@router.get(
    "/v1/team/spending",
    **describe(
        "getSpending",
        "Read who spent what in a month",
        "Of every budget the share of its present limit that was spent in a month, the present one by default, in UTC. "
        "Constant time in the length of the ledger once a day is remembered.",
        tag="Budgets",
        answers={200: (SpendingList, None)},
    ),
)
async def get_spending(
    request: Request,
    caller: _Overseer,
    month: Annotated[
        str | None, Query(pattern=r"^2[0-9]{3}-(0[1-9]|1[0-2])$", description="For instance 2026-11.")
    ] = None,
    dataset: _Dataset = None,
) -> Response:
    """GET /v1/team/spending."""
    begin = None if month is None else datetime.date.fromisoformat(f"{month}-01")
    overview = _overview(request)
    return json_response(await in_thread(lambda: overview.spending(begin, dataset=dataset)))


@router.get(
    "/v1/team/running-out",
    **describe(
        "getRunningOut",
        "Read which budgets are about to run out",
        "Budgets of which nine tenths are used, or that are used up within some days at the pace of the last thirty, "
        "with that pace and the projected day.",
        tag="Budgets",
        answers={200: (RunningOutList, None)},
    ),
)
async def get_running_out(
    request: Request,
    caller: _Overseer,
    within_days: Annotated[int, Query(ge=1, le=3_650, description="How far to look.")] = 30,
    dataset: _Dataset = None,
) -> Response:
    """GET /v1/team/running-out."""
    overview = _overview(request)
    return json_response(await in_thread(lambda: overview.running_out(within_days=within_days, dataset=dataset)))


@router.get(
    "/v1/team/questions-left",
    **describe(
        "getQuestionsLeft",
        "Read what the team could still ask",
        "Of every budget of somebody how many counts at the dataset's default spend still fit, by their noise, with "
        "all budgets above it, and how exact such a count is.",
        tag="Budgets",
        answers={200: (QuestionsLeftList, None)},
    ),
)
async def get_questions_left(request: Request, caller: _Overseer, dataset: _Dataset = None) -> Response:
    """GET /v1/team/questions-left."""
    overview = _overview(request)
    return json_response(await in_thread(lambda: overview.questions_left(dataset=dataset)))
