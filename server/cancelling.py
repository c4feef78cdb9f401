"""Cancelling what waits in another process of the same ledger.

Only the process in which a query waits knows whether it has begun to read rows, so only that one may void it. Any other
leaves a wish in the database; the process looks for wishes several times a second, does with each what it does with
one of its own callers, and removes it. Whoever wished waits for that, and says what the ledger says then: of a query
that began meanwhile that it goes on, as ever. Nothing but the outcome is said, and it is the same wherever one asks.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

from accountant.errors import LedgerError
from accountant.ledger import Ledger
from accountant.states import QueryStatus
from server.log import logger
from server.rounds import Rounds
from server.routes.common import in_thread
from server.services import Services

__all__ = ["Cancelling", "cancelled_anywhere"]

_LOOK_SECONDS = 0.25
_WAIT_SECONDS = 3.0
_PAUSE_SECONDS = 0.05


@dataclass(slots=True)
class Cancelling:
    """Answers the wishes of other processes."""

    services: Services
    rounds: Rounds = field(init=False)

    def __post_init__(self) -> None:
        self.rounds = Rounds("cancelling", self._look, seconds=_LOOK_SECONDS)

    async def _look(self) -> None:
        self.look()

    def look(self) -> int:
        """Cancels what other processes were asked to cancel here. Returns how many wishes there were."""
        services = self.services
        wished = services.registry.wished_cancelled(services.ledger.instance)
        for query in wished:
            try:
                if services.resources.cancel(query) is QueryStatus.RESERVED:
                    record = services.ledger.query(query)
                    if record is not None:
                        services.journey.cancel(query, record.principal)
            except LedgerError as error:
                logger().warning("not_cancelled", query_id=query, exception=type(error).__name__)
            services.registry.forget_wish(query)
        return len(wished)


async def cancelled_anywhere(services: Services, query: str, state: QueryStatus | None) -> QueryStatus | None:
    """The state of a query after its process was asked to cancel it, where that is another one than this.

    `state` is what this process made of it. Waits at most some seconds for the other process; one that is taken for
    dead is not asked: what it left is failed, charged, when its lease is over.
    """
    if state is not QueryStatus.RESERVED:
        return state
    instance = await in_thread(lambda: _elsewhere(services.ledger, query))
    if instance is None:
        return state
    await in_thread(lambda: services.registry.wish_cancelled(query, instance=instance))
    deadline = time.monotonic() + _WAIT_SECONDS
    while time.monotonic() < deadline and await in_thread(lambda: services.registry.wish_waits(query)):
        await asyncio.sleep(_PAUSE_SECONDS)
    record = await in_thread(lambda: services.ledger.query(query))
    return None if record is None else record.state


def _elsewhere(ledger: Ledger, query: str) -> str | None:
    """The other process that runs a query, None where this one does or none will end it."""
    record = ledger.query(query)
    if record is None or record.state is not QueryStatus.RESERVED or record.instance == ledger.instance:
        return None
    return None if ledger.gone([record.instance]) else record.instance
