"""What the routes of all resources share: how one is made and waited for, listed, shown, cancelled and closed.

Each kind has routes of its own, which add what it was asked for and what it says; these functions are the one home of
everything else (docs/api.md, "Resources").
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Generic, TypeVar

from fastapi import Query, Request
from starlette.responses import Response

from accountant.request import QueryRecord
from accountant.states import QueryStatus
from privacy.numbers import decimal_text
from privacy.refusal import ExecutionFailed
from server.auth import Caller, services_of
from server.cancelling import cancelled_anywhere
from server.errors import Problem, problem_of_execution
from server.jobs import AdmittedQuery, Started
from server.resources.kinds import ResourceKind, ResourceState
from server.routes.common import in_thread, json_response, not_found, page_response
from server.routes.paying import answer_by
from server.routes.sight import own
from server.services import Services
from server.store.resources import Kept, ResourceRow
from server.store.transactions import iso
from server.wire.requests import ACCOUNT_PATTERN, DATASET_PATTERN

__all__ = ["ADMITTED_SECONDS", "After", "Count", "OfDataset", "Seen", "Shown", "owned"]

ADMITTED_SECONDS = 5.0
"""How long a request waits at least for another one with its key to store the row of what it was charged for."""

_LOOK_SECONDS = 0.05

R = TypeVar("R", bound=ResourceRow)
A = TypeVar("A", bound=AdmittedQuery)

Count = Annotated[int, Query(ge=1, le=100, description="Resources per page.")]
After = Annotated[str | None, Query(pattern=ACCOUNT_PATTERN, description="`next` of the page before.")]
OfDataset = Annotated[str | None, Query(pattern=DATASET_PATTERN, description="Of this dataset alone.")]


def owned(row: R, caller: Caller, kind: ResourceKind) -> R:
    """The resource, for its owner alone. Errors: Problem not_found: others may read it, but not act on it."""
    if row.principal != caller.name:
        raise not_found(kind.word)
    return row


@dataclass(frozen=True, slots=True)
class Seen(Generic[R]):
    """A resource, what the ledger has of it, and who reads it: as a `whole`, or in a list."""

    services: Services
    row: R
    record: QueryRecord | None
    caller: Caller
    whole: bool

    @property
    def answer(self) -> bytes | None:
        """What the ledger keeps of it once it is settled."""
        settled = self.record is not None and self.record.state is QueryStatus.SETTLED
        return self.record.answer if settled and self.record is not None else None


@dataclass(frozen=True, slots=True)
class Shown(Generic[R]):
    """How a kind is shown. `own` says what is the kind's own."""

    kept: Kept[R]
    own: Callable[[Seen[R]], Mapping[str, object]]
    links: tuple[str, ...] = ()
    """What its address has below itself, such as `:cancel`, `/evaluations`."""

    @property
    def kind(self) -> ResourceKind:
        """The kind."""
        return self.kept.kind

    def body(self, services: Services, row: R, caller: Caller, *, whole: bool = True) -> dict[str, object]:
        """A resource, as this caller may read it. Blocks."""
        record = services.ledger.query(row.id)
        state = ResourceState.of(None if record is None else record.state, closed=row.closed is not None)
        address = f"{self.kind.path}/{row.id}"
        # Others read what a dataset shares; what it cost says what its owner has left.
        private = caller.oversees or row.principal == caller.name
        return {
            "id": row.id,
            "dataset": row.dataset,
            "principal": row.principal,
            "budget": row.account or None,
            "created": row.created,
            "finished": None if record is None or record.finished is None else iso(record.finished),
            "closed": row.closed,
            "status": state.value,
            "error": _error(record, state),
            "price": None if row.price is None or not private else json.loads(row.price),
            "charged": [] if record is None or not private else _charged(record, caller),
            **self.own(Seen(services, row, record, caller, whole)),
            "links": {
                "self": address,
                **{link.strip(":/"): f"{address}{link}" for link in self.links},
                "query": f"/v1/queries/{row.id}",
                **({"budget": f"/v1/budgets/{row.account}"} if row.account else {}),
            },
        }

    async def made(self, request: Request, caller: Caller, started: Started[A], *, deadline: float) -> Response:
        """What was admitted, once it is there: 201; or 202 where it is not by a moment of the monotonic clock.

        Errors: ExecutionFailed; Problem.
        """
        services = services_of(request)
        name = started.query.query_id
        # Between the charge and the row of another request with this key there is a moment, however short the wait.
        there = max(deadline, time.monotonic() + ADMITTED_SECONDS)
        await answer_by(request, started, deadline=deadline)
        while (row := await in_thread(lambda: services.registry.resource(self.kept, name))) is None:
            if time.monotonic() > there or services.jobs.stopping:
                raise Problem(
                    "conflict",
                    what=f"the {self.kind.word} of this Idempotency-Key is not there yet",
                    why="Another request with this key is being admitted. It is charged once.",
                    instead=("Send the request again in a moment.",),
                    headers={"Retry-After": "1"},
                )
            await asyncio.sleep(_LOOK_SECONDS)
            await answer_by(request, started, deadline=deadline)  # raises where the other one failed
        shown = await in_thread(lambda: self.body(services, row, caller))
        running = shown["status"] == ResourceState.RUNNING
        headers = {"Location": f"{self.kind.path}/{name}"} | ({"Retry-After": "1"} if running else {})
        return json_response(shown, status=202 if running else 201, headers=headers)

    async def read(self, request: Request, row: R, caller: Caller) -> Response:
        """One resource. While it is not there yet, with the seconds until the next poll."""
        shown = await in_thread(lambda: self.body(services_of(request), row, caller))
        running = shown["status"] == ResourceState.RUNNING
        return json_response(shown, headers={"Retry-After": "1"} if running else {})

    async def page(
        self, request: Request, caller: Caller, *, dataset: str | None, after: str | None, count: int
    ) -> Response:
        """A page of the caller's, or for overseers of everybody's, the newest first. Errors: Problem not_found."""
        services = services_of(request)
        if after is not None:
            # A position in the list of others would reveal when they asked.
            await own(caller, self.kind.word, after, partial(services.registry.resource, self.kept))
        whose = None if caller.oversees else caller.name

        def found() -> tuple[tuple[R, ...], dict[str, dict[str, object]]]:
            rows = services.registry.resources(self.kept, whose, dataset=dataset, after=after, count=count + 1)
            return rows, {row.id: self.body(services, row, caller, whole=False) for row in rows[:count]}

        rows, shown = await in_thread(found)
        return page_response(self.kind.plural, rows, count, body=lambda row: shown[row.id], after=lambda row: row.id)

    async def cancelled(
        self, request: Request, row: R, caller: Caller, cancel: Callable[[], QueryStatus | None]
    ) -> Response:
        """Its state after what has not begun to read rows was voided. Errors: Problem not_found."""
        owned(row, caller, self.kind)
        status = await cancelled_anywhere(services_of(request), row.id, await in_thread(cancel))
        state = ResourceState.of(status, closed=row.closed is not None)
        return json_response({"id": row.id, "status": state.value, "charged": state is not ResourceState.FAILED_VOID})

    async def closed(
        self, request: Request, row: R, caller: Caller, close: Callable[[], object], *, others: bool = False
    ) -> Response:
        """The resource, closed by its owner, or by `others`; closing twice changes nothing.

        Errors: Problem not_found; conflict where it is not there yet, or never was.
        """
        if not others:
            owned(row, caller, self.kind)
        services = services_of(request)
        shown = await in_thread(lambda: self.body(services, row, caller))
        if shown["status"] not in (ResourceState.SETTLED, ResourceState.CLOSED):
            raise Problem(
                "conflict",
                what=f"a {self.kind.word} that is not there is not closed",
                why="It is being made at this moment, or that failed.",
                instead=(f"POST {self.kind.path}/{row.id}:cancel before it begins.", "Close it when it is settled."),
            )
        await in_thread(close)
        now = await in_thread(lambda: services.registry.resource(self.kept, row.id))
        assert now is not None, "resources are never removed"
        return await self.read(request, now, caller)


def _error(record: QueryRecord | None, state: ResourceState) -> dict[str, object] | None:
    """Why a resource is not there: one of two outcomes, whatever went wrong."""
    if state not in (ResourceState.FAILED_CHARGED, ResourceState.FAILED_VOID):
        return None
    started = state is ResourceState.FAILED_CHARGED and (record is None or bool(record.charged))
    problem = problem_of_execution(ExecutionFailed(started=started))
    return {"code": problem.finding.code, "why": problem.finding.why, "charged": problem.charged}


def _charged(record: QueryRecord, caller: Caller) -> list[dict[str, str]]:
    # What an account above paid is a share of its use, which reveals what others asked.
    return [
        {"budget": part.account, "epsilon": decimal_text(part.epsilon, places=12), "delta": decimal_text(part.delta)}
        for part in record.charged
        if caller.oversees or part.account == record.account
    ]
