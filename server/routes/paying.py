"""How what is charged is started and waited for, and what a caller reads where it is not: the same for all of it.

Queries, statistics, batches, monitors, streams, models and synthetic tables are refused by the same ledger and the same
journey; none of them knows whose an exhausted account is, nor that a dataset is attached which cannot be served.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from fastapi import Request

from accountant.errors import BudgetExhausted, LedgerError
from accountant.states import QueryStatus
from privacy.refusal import CODES, ExecutionFailed, Refused
from server.admitted import InFlight, Settled
from server.auth import Caller, services_of
from server.errors import Problem, problem_of_execution, problem_of_ledger
from server.jobs import AdmittedQuery, Started
from server.routes.common import in_thread
from server.routes.sight import absent_dataset, account_visible
from server.services import Services

__all__ = ["REFUSALS", "answer_by", "called", "open_charged", "start_charged"]

A = TypeVar("A", bound=AdmittedQuery)
T = TypeVar("T")

REFUSALS = tuple(code for code in CODES if code != "execution_failed")
"""What may be refused before anything is charged."""

_LOOK_SECONDS, _LOOK_SECONDS_MOST = 0.02, 0.5
"""How often it is looked whether what another request began is there: at first, and after a while."""


@asynccontextmanager
async def _explained(services: Services, caller: Caller, dataset: str) -> AsyncIterator[None]:
    """Around what prices or charges something of a dataset: its refusals, as this caller may read them.

    Errors: Problem for an exhausted budget, which names the account where it is the caller's own, and for a dataset
    that cannot be served; whatever else is raised goes through.
    """
    try:
        yield
    except BudgetExhausted as error:
        exhausted = error.account
        # What hangs below the caller's own budget is theirs to see too.
        path = await in_thread(lambda: services.ledger.path(exhausted))
        own = any(account.principal == caller.name for account in path)
        raise problem_of_ledger(error, spending=True, own_account=own) from None
    except Refused as refused:
        raise await _broken_or(refused, services, caller, dataset) from None


async def called(services: Services, caller: Caller, dataset: str, act: Callable[[], T]) -> T:
    """Carries out an act on the threads of questions. Errors: Problem, as of `_explained`."""
    async with _explained(services, caller, dataset):
        return await services.jobs.call(act, owner=caller.name)


async def start_charged(
    request: Request,
    caller: Caller,
    dataset: str,
    admit: Callable[[], Settled | InFlight | A],
    complete: Callable[[A], bytes],
    abandon: Callable[[A], object],
) -> Started[A]:
    """Admits, in the queue of queries, what is charged before it reads rows, and starts it.

    Errors: Problem, as of `_explained`; those of `JobPool.start`.
    """
    services = services_of(request)
    await _require_room(services, caller, dataset)
    # From here on a failure that nobody foresaw counts as charged.
    request.state.spending = True
    async with _explained(services, caller, dataset):
        started = await services.jobs.start(admit, complete, abandon, owner=caller.name)
    request.state.query_id = started.query.query_id
    return started


async def _require_room(services: Services, caller: Caller, dataset: str) -> None:
    """Errors: Problem rate_limited where the principal, or the dataset that it may see, has too many open queries.

    How many there are is a function of what was asked and of visible moments: a query is open until its moment.
    """
    settings = services.settings
    of_principal, of_dataset = settings.open_queries_per_principal, settings.open_queries_per_dataset
    if not services.registry.shared and services.jobs.in_flight < min(of_principal, of_dataset):
        # Every open query has a place in the queue of the one process.
        return

    def full() -> str | None:
        found = services.registry.open_queries(caller.name, dataset)
        if found.of_principal >= of_principal:
            return "too many of your queries wait or run"
        if found.of_dataset >= of_dataset and account_visible(services, caller, dataset):
            return "too many queries of this dataset wait or run"
        return None

    what = await in_thread(full)
    if what is not None:
        raise Problem(
            "rate_limited",
            what=what,
            why="How many may do so at the same time is limited. Nothing was charged.",
            instead=("Send the query again when an earlier one has ended.",),
            headers={"Retry-After": "2"},
        )


async def open_charged(
    request: Request, caller: Caller, dataset: str, open_: Callable[[], Settled | InFlight]
) -> Started[AdmittedQuery]:
    """Opens a session, which is charged and reads no row, on the threads of questions. Errors: Problem."""
    # As above.
    request.state.spending = True
    opened = await called(services_of(request), caller, dataset, open_)
    request.state.query_id = opened.query_id
    return Started(opened, None)


async def answer_by(request: Request, started: Started[A], *, deadline: float) -> bytes | None:
    """The answer of what was admitted, by a moment of the monotonic clock; None while it runs.

    What an earlier request of the same key began is waited for like one's own, also where it is being admitted at this
    moment, or by another process.
    Errors: ExecutionFailed; Problem, the same outcome, for an answer that could not be stored.
    """
    services = services_of(request)
    if isinstance(started.query, Settled):
        request.app.state.metrics.queries.labels("stored").inc()
        return started.query.answer
    try:
        if started.answer is None:
            return await _of_earlier(services, started.query.query_id, deadline=deadline)
        return await services.jobs.wait(started.answer, seconds=deadline - time.monotonic())
    except LedgerError:
        # The answer was computed and could not be stored, so nobody may see it; the charge stays.
        raise problem_of_execution(ExecutionFailed()) from None


async def _of_earlier(services: Services, query_id: str, *, deadline: float) -> bytes | None:
    """The answer of what another request began, looked for until a moment of the monotonic clock; None while it runs.

    Errors: as what runs it raises; ExecutionFailed where it ended without an answer.
    """
    pause = _LOOK_SECONDS
    while True:
        running = services.jobs.running(query_id)
        if running is not None:
            return await services.jobs.wait(running, seconds=deadline - time.monotonic())
        record = await in_thread(lambda: services.ledger.query(query_id))
        if record is not None and record.state is QueryStatus.SETTLED:
            return record.answer
        if record is None or record.state is not QueryStatus.RESERVED:
            charged = record is not None and record.state is not QueryStatus.FAILED_VOID and bool(record.charged)
            raise ExecutionFailed(started=charged)
        left = deadline - time.monotonic()
        if left <= 0 or services.jobs.stopping:
            return None
        await asyncio.sleep(min(pause, left))
        pause = min(2 * pause, _LOOK_SECONDS_MOST)


async def _broken_or(refused: Refused, services: Services, caller: Caller, dataset: str) -> Exception:
    """The refusal; or, where an account of the caller is for a dataset that cannot be served, that it is not available.

    The journey knows the datasets that are served, and refuses all others as unknown.
    """
    if all(finding.code != "unknown_dataset" for finding in refused.findings):
        return refused
    # Looked up in either case, as the journey does: the time must not reveal to a stranger whether the dataset exists.
    visible = await in_thread(lambda: account_visible(services, caller, dataset))
    if visible and dataset in services.catalogue.unavailable():
        return absent_dataset(services, dataset)
    return refused
