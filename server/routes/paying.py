"""What a caller reads where something that is charged is not: the same words for all that may be paid for.

Queries, batches, monitors, models and synthetic tables are refused by the same ledger and the same journey; none of
them knows whose an exhausted account is, nor that a dataset is attached which cannot be served.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from accountant.errors import BudgetExhausted
from privacy.refusal import Refused
from server.auth import Caller
from server.errors import problem_of_ledger
from server.routes.common import in_thread
from server.routes.sight import absent_dataset, account_visible
from server.services import Services

__all__ = ["explained"]


@asynccontextmanager
async def explained(services: Services, caller: Caller, dataset: str) -> AsyncIterator[None]:
    """Around what prices or charges something of a dataset: its refusals, as this caller may read them.

    Errors: Problem for an exhausted budget, which names the account where it is the caller's own, and for a dataset
    that cannot be served; whatever else is raised goes through.
    """
    try:
        yield
    except BudgetExhausted as error:
        exhausted = error.account
        own = await in_thread(lambda: services.ledger.account(exhausted).principal == caller.name)
        raise problem_of_ledger(error, spending=True, own_account=own) from None
    except Refused as refused:
        raise await _broken_or(refused, services, caller, dataset) from None


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
