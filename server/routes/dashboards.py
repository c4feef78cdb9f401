"""Dashboards: tiles that their schedule refreshes, and that anybody with a key or a link reads for free."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.responses import Response

from server.auth import ON_BEHALF_OF, Caller, roles, services_of
from server.dashboards.content import TILE_HEADERS, Body, format_of
from server.dashboards.reading import Seen
from server.once import ONCE_TEXT, once
from server.roles import ASKING, READING, Role
from server.routes.common import (
    OTHER_FORMATS,
    asked_format,
    body_of,
    describe,
    in_thread,
    json_response,
    not_found,
    page_response,
)
from server.routes.paying import REFUSALS, called
from server.routes.resources import After
from server.routes.sight import may_read, visible_dashboard
from server.services import Services
from server.store.dashboards import DashboardRow, LinkRow, TileRow
from server.store.errors import NotThere
from server.wire.dashboards import (
    DashboardAnswer,
    DashboardBody,
    DashboardChangeBody,
    DashboardList,
    LinkAnswer,
    LinkBody,
    LinkList,
    NewLinkAnswer,
    TileHistory,
    TileTable,
)

__all__ = ["router"]

router = APIRouter()

_SEES = (*READING, Role.DASHBOARD)
_TILE = {
    "name": "patients",
    "title": "Patients by sex",
    "sql": "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex",
    "spend": {"epsilon": "0.05"},
    "schedule": {"times": ["06:00"], "days": ["mon", "tue", "wed", "thu", "fri"]},
}
_EXAMPLE = {"dataset": "demo", "title": "The clinic", "envelope": {"epsilon": "2"}, "tiles": [_TILE]}
_WAIT_PATTERN = r"^(0|[1-9]|[12][0-9]|30)s?$"
_PROBLEMS = (*REFUSALS, "conflict")
_Count = Annotated[int, Query(ge=1, le=100, description="Members per page.")]
_TileName = Annotated[
    str, Path(description="Its name, with .json, .csv, .arrow, .arrows or .parquet where the format is named by it.")
]
_Link = Annotated[str | None, Query(description="The token of a read-only link, in place of a key.", max_length=200)]
_HEADERS = {"ETag": "Strong tag of the tile in this format.", **TILE_HEADERS}


@router.post(
    "/v1/dashboards",
    **describe(
        "createDashboard",
        "Make a dashboard",
        "Opens an envelope below the caller's budget, and refreshes tiles from it, by their schedules. Each tile is "
        "checked as an estimate is; nothing is charged by this request. " + ONCE_TEXT,
        tag="Dashboards",
        body=DashboardBody,
        body_examples={"clinic": _EXAMPLE},
        answers={201: (DashboardAnswer, None)},
        headers={"Location": "Address of the dashboard."},
        problems=(*_PROBLEMS, "idempotency_conflict"),
    ),
)
async def create_dashboard(request: Request, caller: Annotated[Caller, Depends(roles(*ASKING))]) -> Response:
    """POST /v1/dashboards."""
    services = services_of(request)
    body, raw = await body_of(request, DashboardBody)
    wanted = body.asked(caller.name, body.dataset)
    # Texts are read on threads that have the stack for it.
    await called(services, caller, body.dataset, partial(services.dashboards.check, wanted))

    def make() -> Response:
        row = services.dashboards.make(wanted)
        return _answer(services, row, caller, status=201)

    return await once(request, caller, raw, make)


@router.get(
    "/v1/dashboards",
    **describe(
        "listDashboards",
        "List dashboards",
        "The caller's dashboards, newest first; for the role dashboard those that it may read; everybody's for "
        "administrators and auditors.",
        tag="Dashboards",
        answers={200: (DashboardList, None)},
        problems=("not_found",),
    ),
)
async def list_dashboards(
    request: Request, caller: Annotated[Caller, Depends(roles(*_SEES))], count: _Count = 20, after: After = None
) -> Response:
    """GET /v1/dashboards."""
    services = services_of(request)
    reader = caller.name if caller.role is Role.DASHBOARD else None
    whose = None if caller.oversees else caller.name
    if after is not None:
        # A position in the list of others would reveal when they made theirs.
        await visible_dashboard(request, after)
    registry = services.registry
    rows = await in_thread(lambda: registry.dashboards(whose, reader=reader, after=after, count=count + 1))
    shown = await in_thread(lambda: [(row, body) for row in rows if (body := _body(services, row.id, caller))])
    return page_response("dashboards", shown, count, body=lambda one: one[1], after=lambda one: one[0].id)


@router.get(
    "/v1/dashboards/{dashboard_id}",
    **describe(
        "getDashboard",
        "Read a dashboard",
        "Its tiles with their states and addresses; for its owner texts, envelope and the day on which it is used up.",
        tag="Dashboards",
        answers={200: (DashboardAnswer, None)},
        problems=("not_found",),
    ),
)
async def get_dashboard(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*_SEES))],
    seen: Annotated[Seen, Depends(visible_dashboard)],
) -> Response:
    """GET /v1/dashboards/{dashboard_id}."""
    services = services_of(request)
    return await in_thread(lambda: _answer(services, seen.row, caller))


@router.put(
    "/v1/dashboards/{dashboard_id}",
    **describe(
        "replaceDashboard",
        "Change a dashboard",
        "Title, envelope, readers and tiles, as they shall be. A tile whose text, spend or bounds change begins anew, "
        "and is refreshed at once; others keep their answers and their history.",
        tag="Dashboards",
        body=DashboardChangeBody,
        body_examples={"clinic": {name: value for name, value in _EXAMPLE.items() if name != "dataset"}},
        answers={200: (DashboardAnswer, None)},
        problems=(*_PROBLEMS, "not_found"),
    ),
)
async def replace_dashboard(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*ASKING))],
    seen: Annotated[Seen, Depends(visible_dashboard)],
) -> Response:
    """PUT /v1/dashboards/{dashboard_id}."""
    services, row = services_of(request), _own(caller, seen)
    body, _ = await body_of(request, DashboardChangeBody)
    wanted = body.asked(caller.name, row.dataset)
    await called(services, caller, row.dataset, partial(services.dashboards.check, wanted))
    await _there(lambda: services.dashboards.change(row, wanted))
    return await in_thread(lambda: _answer(services, row, caller))


@router.delete(
    "/v1/dashboards/{dashboard_id}",
    **describe(
        "deleteDashboard",
        "Remove a dashboard",
        "Ends its schedule, its links and its envelope. What was charged stays. An administrator may remove "
        "everybody's.",
        tag="Dashboards",
        answers={200: (DashboardAnswer, None)},
        problems=("not_found",),
    ),
)
async def delete_dashboard(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*ASKING))],
    seen: Annotated[Seen, Depends(visible_dashboard)],
) -> Response:
    """DELETE /v1/dashboards/{dashboard_id}."""
    services = services_of(request)
    last = await in_thread(lambda: _answer(services, seen.row, caller))
    await _there(lambda: services.dashboards.close(seen.row, actor=caller.name))
    return last


@router.post(
    "/v1/dashboards/{dashboard_id}:pause",
    **describe(
        "pauseDashboard",
        "Pause a dashboard",
        "No refresh is due until it goes on; tiles keep their answers. An administrator may pause everybody's.",
        tag="Dashboards",
        answers={200: (DashboardAnswer, None)},
        problems=("not_found",),
    ),
)
async def pause_dashboard(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*ASKING))],
    seen: Annotated[Seen, Depends(visible_dashboard)],
) -> Response:
    """POST /v1/dashboards/{dashboard_id}:pause."""
    return await _rested(request, caller, seen.row, paused=True)


@router.post(
    "/v1/dashboards/{dashboard_id}:resume",
    **describe(
        "resumeDashboard",
        "Go on with a dashboard",
        "Its schedule goes on. What was due in the meantime is made up for by one refresh.",
        tag="Dashboards",
        answers={200: (DashboardAnswer, None)},
        problems=("not_found",),
    ),
)
async def resume_dashboard(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*ASKING))],
    seen: Annotated[Seen, Depends(visible_dashboard)],
) -> Response:
    """POST /v1/dashboards/{dashboard_id}:resume."""
    return await _rested(request, caller, _own(caller, seen), paused=False)


# Tiles


@router.get(
    "/v1/dashboards/{dashboard_id}/tiles/{tile}",
    **describe(
        "getTile",
        "Read a tile",
        "Its last answer under the names that the query gave, each number x with x_low and x_high. An extension names "
        "the format, else the header `Accept` does. Never spends: only the schedule does. With `after` and `wait` it "
        "is answered once the tile has another ETag, or is 304 when the time is over.",
        tag="Dashboards",
        answers={200: (TileTable, None), 304: ("", None)},
        headers=_HEADERS,
        formats=OTHER_FORMATS,
        problems=("not_acceptable", "not_found"),
    ),
)
async def get_tile(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*_SEES, links=True))],
    seen: Annotated[Seen, Depends(visible_dashboard)],
    tile: _TileName,
    after: Annotated[str | None, Query(description="An ETag: wait while the tile has it.", max_length=80)] = None,
    wait: Annotated[str, Query(pattern=_WAIT_PATTERN, description="For how long at most, such as 20s.")] = "0",
    link: _Link = None,
) -> Response:
    """GET /v1/dashboards/{dashboard_id}/tiles/{tile}."""
    services = services_of(request)
    name, named = format_of(tile)
    sent_as = await asked_format(request) if named is None else named
    reader, known = services.dashboards.reader, f'"{(after or "").strip(chr(34))}"'
    if after is None:
        body = await reader.tile(seen.row.id, name, sent_as)
    else:
        body = await reader.changed_tile(
            *(seen.row.id, name, sent_as),
            after=known,
            seconds=float(wait.rstrip("s")),
            stopping=lambda: services.jobs.stopping,
        )
    if body is None:
        raise not_found("tile")
    return _sent(request, body, waited=None if after is None else known)


@router.get(
    "/v1/dashboards/{dashboard_id}/tiles/{tile}/history",
    **describe(
        "getTileHistory",
        "Read a tile's history",
        "Its last answers one after the other, the oldest first: a time series, with the moment and the version of "
        "the data in each row. Never spends.",
        tag="Dashboards",
        answers={200: (TileHistory, None), 304: ("", None)},
        headers={"ETag": "Strong tag of the history in this format."},
        formats=OTHER_FORMATS,
        problems=("not_acceptable", "not_found"),
    ),
)
async def get_history(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*_SEES, links=True))],
    seen: Annotated[Seen, Depends(visible_dashboard)],
    tile: _TileName,
    count: Annotated[int, Query(ge=1, le=400, description="The last so many refreshes.")] = 100,
    link: _Link = None,
) -> Response:
    """GET /v1/dashboards/{dashboard_id}/tiles/{tile}/history."""
    services = services_of(request)
    name, named = format_of(tile)
    sent_as = await asked_format(request) if named is None else named
    row = _tile(seen, name)
    reader = services.dashboards.reader
    return _sent(request, await in_thread(lambda: reader.history(seen, row, sent_as, count=count)))


@router.post(
    "/v1/dashboards/{dashboard_id}/tiles/{tile}:refresh",
    **describe(
        "refreshTile",
        "Refresh a tile now",
        "Makes a refresh due, beside the schedule: within seconds, in the queue of queries, and charged to the "
        "envelope like every other one. Nothing is asked where the data are those of its answer.",
        tag="Dashboards",
        answers={202: (DashboardAnswer, None)},
        problems=("not_found",),
    ),
)
async def refresh_tile(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*ASKING))],
    seen: Annotated[Seen, Depends(visible_dashboard)],
    tile: Annotated[str, Path(description="Its name.")],
) -> Response:
    """POST /v1/dashboards/{dashboard_id}/tiles/{tile}:refresh."""
    services, row = services_of(request), _own(caller, seen)
    found = _tile(seen, tile)
    await in_thread(lambda: services.registry.want_refresh(found.id))
    return await in_thread(lambda: _answer(services, row, caller, status=202))


# Links


@router.post(
    "/v1/dashboards/{dashboard_id}/links",
    **describe(
        "createLink",
        "Make a read-only link",
        "A signed token that opens the tiles of this dashboard without a key, until it expires or is revoked. It is "
        "shown in this answer alone. " + ONCE_TEXT,
        tag="Dashboards",
        body=LinkBody,
        body_examples={"wall": {"label": "the screen in the hall", "days": 30}},
        answers={201: (NewLinkAnswer, None)},
        problems=("not_found", "conflict", "idempotency_conflict"),
    ),
)
async def create_link(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*ASKING))],
    seen: Annotated[Seen, Depends(visible_dashboard)],
) -> Response:
    """POST /v1/dashboards/{dashboard_id}/links."""
    services, row = services_of(request), _own(caller, seen)
    body, raw = await body_of(request, LinkBody)

    def make() -> Response:
        link, token = services.dashboards.add_link(row.id, label=body.label, days=body.days, actor=caller.name)
        urls = {name: f"/v1/dashboards/{row.id}/tiles/{name}.csv?link={token}" for name in seen.tiles}
        return json_response({**_link(link), "token": token, "urls": urls}, status=201)

    return await once(request, caller, raw, make, unkept=("token", "urls"))


@router.get(
    "/v1/dashboards/{dashboard_id}/links",
    **describe(
        "listLinks",
        "List a dashboard's links",
        "Without their tokens, which are not stored. Newest first.",
        tag="Dashboards",
        answers={200: (LinkList, None)},
        problems=("not_found",),
    ),
)
async def list_links(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*READING))],
    seen: Annotated[Seen, Depends(visible_dashboard)],
) -> Response:
    """GET /v1/dashboards/{dashboard_id}/links."""
    registry = services_of(request).registry
    return json_response({"links": [_link(link) for link in await in_thread(lambda: registry.links(seen.row.id))]})


@router.delete(
    "/v1/dashboards/{dashboard_id}/links/{link_id}",
    **describe(
        "revokeLink",
        "Revoke a link",
        "It opens nothing any more. An administrator may revoke everybody's.",
        tag="Dashboards",
        answers={200: (LinkAnswer, None)},
        problems=("not_found",),
    ),
)
async def revoke_link(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*ASKING))],
    seen: Annotated[Seen, Depends(visible_dashboard)],
    link_id: Annotated[str, Path(description="The link, as the list names it.")],
) -> Response:
    """DELETE /v1/dashboards/{dashboard_id}/links/{link_id}."""
    services, dashboard = services_of(request), seen.row.id
    await _there(lambda: services.registry.revoke_link(dashboard, link_id, actor=caller.name), "link")
    services.dashboards.reader.forget(dashboard)
    links = await in_thread(lambda: services.registry.links(dashboard))
    return json_response(_link(next(link for link in links if link.id == link_id)))


async def _rested(request: Request, caller: Caller, row: DashboardRow, *, paused: bool) -> Response:
    """A dashboard whose schedule rests or goes on."""
    services = services_of(request)
    await _there(lambda: services.registry.pause_dashboard(row.id, paused=paused, actor=caller.name))
    services.dashboards.reader.forget(row.id)
    return await in_thread(lambda: _answer(services, row, caller))


async def _there(act: Callable[[], None], word: str = "dashboard") -> None:
    """Carries out an act on what may have been removed in between. Errors: Problem not_found."""
    try:
        await in_thread(act)
    except NotThere:
        raise not_found(word) from None


def _own(caller: Caller, seen: Seen) -> DashboardRow:
    """Overseers see a dashboard; it is its owner's to change. Errors: Problem not_found."""
    if caller.name != seen.row.principal:
        raise not_found("dashboard")
    return seen.row


def _tile(seen: Seen, name: str) -> TileRow:
    """The tile of that name. Errors: Problem not_found."""
    found = seen.tiles.get(name)
    if found is None:
        raise not_found("tile")
    return found


def _body(services: Services, dashboard: str, caller: Caller) -> dict[str, object] | None:
    """A dashboard as this caller may read it; None where it was removed."""
    seen = services.dashboards.reader.look(dashboard)
    if seen is None or not may_read(caller, seen):
        return None
    owner = caller.name == seen.row.principal
    return services.dashboards.describe(seen, owner=owner, trusted=owner or caller.oversees)


def _answer(services: Services, row: DashboardRow, caller: Caller, *, status: int = 200) -> Response:
    body = _body(services, row.id, caller)
    if body is None:
        raise not_found("dashboard")
    return json_response(body, status=status, headers={"Location": f"/v1/dashboards/{row.id}"} if status == 201 else {})


def _link(row: LinkRow) -> dict[str, object]:
    return {
        "id": row.id,
        "label": row.label,
        "created": row.created,
        "expires": row.expires,
        "revoked": row.revoked,
    }


def _sent(request: Request, body: Body, *, waited: str | None = None) -> Response:
    """A tile, or 304 when the caller has these bytes. A cache may keep them, and has to ask whether they are newest."""
    common = {
        "ETag": body.etag,
        "Cache-Control": "private, no-cache",
        "Vary": f"Authorization, Accept, {ON_BEHALF_OF}",
        **body.headers,
    }
    known = [part.strip().removeprefix("W/") for part in request.headers.get("if-none-match", "").split(",")]
    if body.etag in (*known, waited) or "*" in known:
        return Response(status_code=304, headers=common)
    return Response(body.content, media_type=body.media_type, headers=common)
