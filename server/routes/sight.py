"""What a path names, for a caller who may see it: one dependency for each parameter of a path.

A route whose path has one of these parameters declares the dependency, after `roles(...)`; it gets what the path names,
and what belongs to others is not there. `unseen_routes` finds routes that do not, and the application does not start
with one. Routes for overseers alone need none: they see everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Protocol, TypeVar

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from accountant.account import Account
from accountant.errors import UnknownAccount
from accountant.request import QueryRecord, StoredRelease
from privacy.policy import Dataset, Sharing
from server.auth import Access, Caller, access_of, caller_of, services_of
from server.dashboards.reading import Seen
from server.errors import Problem
from server.roles import OVERSEEING, Role
from server.routes.common import identifier, in_thread, not_found
from server.services import Services
from server.store.budget_requests import BudgetRequestRow
from server.store.collectors import StoredCollector
from server.store.resources import (
    BATCHES,
    MODELS,
    MONITORS,
    STREAMS,
    SYNTHETICS,
    BatchRow,
    Kept,
    MonitorRow,
    ResourceRow,
    StreamRow,
    SyntheticRow,
)
from server.store.webhooks import WebhookRow

__all__ = [
    "SIGHTS",
    "SeenRelease",
    "absent_dataset",
    "account_visible",
    "datasets_decided_by",
    "may_read",
    "own",
    "seen_query",
    "seen_request",
    "unseen_routes",
    "visible_account",
    "visible_batch",
    "visible_collector",
    "visible_dashboard",
    "visible_dataset",
    "visible_model",
    "visible_monitor",
    "visible_query",
    "visible_release",
    "visible_request",
    "visible_stream",
    "visible_synthetic",
    "visible_webhook",
]

R = TypeVar("R", bound=ResourceRow)


class Owned(Protocol):
    """What belongs to somebody."""

    @property
    def principal(self) -> str:
        """Whose it is."""


T = TypeVar("T", bound=Owned)


def account_visible(services: Services, caller: Caller, dataset: str) -> bool:
    """Whether the caller may know of the dataset: by overseeing, or by an account of its own."""
    accounts = services.ledger.accounts(dataset=dataset, principal=caller.name)
    # What was lent lets nobody in who has no budget of the dataset.
    return caller.oversees or any(account.expires is None for account in accounts)


def absent_dataset(services: Services, name: str) -> Problem:
    """Why a dataset is not served, for a caller who may know of it: attached and broken, or not attached."""
    if name not in services.catalogue.unavailable():
        return not_found("dataset")
    return Problem(
        "unavailable",
        what=f'dataset "{name}" is not available',
        why="What the server keeps of it cannot be read. Nothing was charged, and nothing that was spent is lost.",
        instead=("Tell the operator: noisegate doctor says what is wrong, and what to do.",),
        headers={"Retry-After": "60"},
    )


async def visible_dataset(request: Request, dataset: str) -> Dataset:
    """The dataset, if the caller may know of it.

    Errors: Problem not_found when there is none, or not for the caller; unavailable when it cannot be served.
    """
    services, caller = services_of(request), caller_of(request)
    found = services.catalogue.get(identifier(dataset, "dataset"))
    # The account is looked up in either case, so that the time does not reveal which reason it was.
    visible = await in_thread(lambda: account_visible(services, caller, dataset))
    if not visible:
        raise not_found("dataset")
    if found is None:
        raise absent_dataset(services, dataset)
    return found


async def visible_account(request: Request, budget_id: str) -> Account:
    """The account, if it is the caller's, hangs below one that is, or the caller oversees.

    Errors: Problem not_found for all reasons.
    """
    services, caller = services_of(request), caller_of(request)
    try:
        path = await in_thread(lambda: services.ledger.path(identifier(budget_id, "budget")))
    except UnknownAccount:
        raise not_found("budget") from None
    if not (caller.oversees or any(account.principal == caller.name for account in path)):
        raise not_found("budget")
    return path[0]


async def visible_collector(request: Request, collector_id: str) -> StoredCollector:
    """The collector: its question and its estimates are public to everybody with a key. Errors: Problem not_found."""
    services = services_of(request)
    found = await in_thread(lambda: services.registry.collector(identifier(collector_id, "collector")))
    if found is None:
        raise not_found("collector")
    return found


async def visible_query(request: Request, query_id: str) -> QueryRecord:
    """The query of the path, as `seen_query`."""
    return await seen_query(services_of(request), caller_of(request), query_id)


async def seen_query(services: Services, caller: Caller, query_id: str) -> QueryRecord:
    """The query, as `own`."""
    return await own(caller, "query", query_id, services.ledger.query)


async def own(caller: Caller, word: str, name: str, read: Callable[[str], T | None]) -> T:
    """What `read` has by a name, if it is the caller's or the caller oversees.

    Errors: Problem not_found of that word for both reasons.
    """
    found = await in_thread(lambda: read(identifier(name, word)))
    if found is None or not (caller.oversees or found.principal == caller.name):
        raise not_found(word)
    return found


async def _own(request: Request, kept: Kept[R], resource_id: str) -> R:
    """The resource, as `own`."""
    registry = services_of(request).registry
    return await own(caller_of(request), kept.kind.word, resource_id, partial(registry.resource, kept))


async def visible_model(request: Request, model_id: str) -> ResourceRow:
    """The model of the path, as `_own`."""
    return await _own(request, MODELS, model_id)


async def visible_monitor(request: Request, monitor_id: str) -> MonitorRow:
    """The monitor of the path, as `_own`."""
    return await _own(request, MONITORS, monitor_id)


async def visible_batch(request: Request, batch_id: str) -> BatchRow:
    """The batch of the path, as `_own`."""
    return await _own(request, BATCHES, batch_id)


async def visible_stream(request: Request, stream_id: str) -> StreamRow:
    """The stream of the path, as `_own_or_shared`."""
    return await _own_or_shared(request, STREAMS, stream_id, services_of(request).streams.open_to)


async def visible_synthetic(request: Request, synthetic_id: str) -> SyntheticRow:
    """The synthetic table of the path, as `_own_or_shared`."""
    services, name = services_of(request), caller_of(request).name
    return await _own_or_shared(
        request, SYNTHETICS, synthetic_id, lambda row, dataset: services.synthetic.readable(row, dataset, name)
    )


async def _own_or_shared(request: Request, kept: Kept[R], resource_id: str, shared: Callable[[R, Dataset], bool]) -> R:
    """The resource, if the caller may read it: its own, one that its dataset shares, or as an overseer.

    Errors: Problem not_found for all reasons.
    """
    services, caller = services_of(request), caller_of(request)

    def find() -> R | None:
        row = services.registry.resource(kept, identifier(resource_id, kept.kind.word))
        if row is None or caller.oversees or row.principal == caller.name:
            return row
        dataset = services.catalogue.get(row.dataset)
        if dataset is None or not account_visible(services, caller, row.dataset):
            return None
        return row if shared(row, dataset) else None

    found = await in_thread(find)
    if found is None:
        raise not_found(kept.kind.word)
    return found


def datasets_decided_by(services: Services, caller: Caller) -> tuple[str, ...]:
    """The datasets whose budget requests an owner decides: those of which it has a budget, which is no lent one."""
    if caller.role is not Role.OWNER:
        return ()
    own = services.ledger.accounts(principal=caller.name)
    return tuple(sorted({account.dataset for account in own if account.expires is None}))


async def visible_request(request: Request, request_id: str) -> BudgetRequestRow:
    """The budget request of the path, as `seen_request`."""
    return await seen_request(services_of(request), caller_of(request), request_id)


async def seen_request(services: Services, caller: Caller, request_id: str) -> BudgetRequestRow:
    """The request: the caller's own, of a dataset whose requests it decides, or as an overseer.

    Errors: Problem not_found when there is none, or not for the caller.
    """

    def find() -> BudgetRequestRow | None:
        row = services.registry.request(identifier(request_id, "budget request"))
        decided = datasets_decided_by(services, caller)
        if row is None or caller.oversees or row.principal == caller.name or row.dataset in decided:
            return row
        return None

    found = await in_thread(find)
    if found is None:
        raise not_found("budget request")
    return found


async def visible_webhook(request: Request, webhook_id: str) -> WebhookRow:
    """The webhook of the path, as `own`."""
    return await own(caller_of(request), "webhook", webhook_id, services_of(request).registry.webhook)


async def visible_dashboard(request: Request, dashboard_id: str) -> Seen:
    """The dashboard: the caller's own, one that names the caller as a reader, one whose link the caller has.

    Errors: Problem not_found when there is none, it is closed, or not for the caller.
    """
    caller = caller_of(request)
    seen = await services_of(request).dashboards.reader.seen(identifier(dashboard_id, "dashboard"))
    if seen is None or not may_read(caller, seen):
        raise not_found("dashboard")
    return seen


def may_read(caller: Caller, seen: Seen) -> bool:
    """Whether a caller may read a dashboard."""
    if caller.link:
        return caller.link == seen.row.id
    if caller.oversees or caller.name == seen.row.principal:
        return True
    return caller.role is Role.DASHBOARD and caller.name in seen.readers


@dataclass(frozen=True, slots=True)
class SeenRelease:
    """A stored release that the caller may read."""

    release: StoredRelease
    own: bool
    """Whether the caller's query paid for it, or the caller oversees."""


async def visible_release(request: Request, release_id: str) -> SeenRelease:
    """The release: the caller's own, one that it was charged for reading, or one that its dataset shares for free.

    Errors: Problem not_found when there is none, or not for the caller.
    """
    services, caller = services_of(request), caller_of(request)

    def find() -> SeenRelease | None:
        release = services.ledger.release(identifier(release_id, "release"))
        if release is None:
            return None
        if caller.oversees or release.principal == caller.name:
            return SeenRelease(release, own=True)
        dataset = services.catalogue.get(release.dataset)
        free = dataset is not None and dataset.limits.releases_shared is Sharing.FREE
        if free and account_visible(services, caller, release.dataset):
            return SeenRelease(release, own=False)
        return SeenRelease(release, own=False) if services.ledger.has_read(caller.name, release.id) else None

    found = await in_thread(find)
    if found is None:
        raise not_found("release")
    return found


SIGHTS: Mapping[str, Callable[..., object]] = MappingProxyType(
    {
        "dataset": visible_dataset,
        # Looked up in the dataset that was found.
        "table": visible_dataset,
        "budget_id": visible_account,
        "collector_id": visible_collector,
        "query_id": visible_query,
        "model_id": visible_model,
        "monitor_id": visible_monitor,
        "batch_id": visible_batch,
        "release_id": visible_release,
        "request_id": visible_request,
        "stream_id": visible_stream,
        "synthetic_id": visible_synthetic,
        "webhook_id": visible_webhook,
        "dashboard_id": visible_dashboard,
        # Looked up in the dashboard that was found.
        "tile": visible_dashboard,
        "link_id": visible_dashboard,
    }
)
"""By a path's parameter, the dependency that finds what it names."""


def _dependencies(dependant: Dependant) -> Iterator[object]:
    """What a route depends on, in the order in which it is called."""
    for inner in dependant.dependencies:
        yield from _dependencies(inner)
        yield inner.call


def unseen_routes(routes: Sequence[object]) -> list[str]:
    """Paths of routes that serve others than overseers and have a parameter which no dependency before them sees."""
    found = []
    for route in routes:
        access = access_of(route) if isinstance(route, APIRoute) else None
        if access is None or not isinstance(route, APIRoute) or access.allowed <= set(OVERSEEING):
            continue
        calls = list(_dependencies(route.dependant))
        place = next(i for i, call in enumerate(calls) if isinstance(call, Access))
        if any(SIGHTS.get(name) not in calls[place + 1 :] for name in route.param_convertors):
            found.append(route.path)
    return found
