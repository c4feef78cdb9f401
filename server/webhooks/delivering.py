"""What empties the outbox: each webhook for itself, in order, with longer and longer pauses, until it is received or
three days old.

An event is stored with what it is about, so nothing that happens here delays or loses it. Each attempt is claimed in
the database first: of several processes one makes it, and one that dies leaves it to be made again. A receiver may get
the same delivery more than once, under the same identifier and with the same body, and never a later one of the same
webhook before an earlier one was received or given up.

What the time of an attempt tells is when its event was stored, which its owner could have read at that moment, how the
receiver answered before, and how busy this thread is with others.
"""

from __future__ import annotations

import asyncio
import datetime
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from server.log import logger, where
from server.rounds import Rounds
from server.sealing import Seal, SealBroken
from server.store.registry import Registry
from server.store.transactions import iso
from server.store.webhooks import DueDelivery
from server.webhooks.mail import NO_MAIL, SCHEME, Mailbox
from server.webhooks.sending import Attempt, Failure, Sender
from server.webhooks.signing import signed_headers

__all__ = ["Deliveries"]

PAUSES = (5, 30, 120, 600, 1_800, 3_600, 7_200, 14_400)
"""Seconds until the next attempt, after the first one, the second one, ...; the last one for all later ones."""

GIVEN_UP_AFTER = datetime.timedelta(days=3)
KEPT = datetime.timedelta(days=30)
"""How long deliveries that ended can be read."""

_AT_ONCE = 128
"""Most attempts of this process at a time. A webhook has one, and an attempt ends within seconds."""

_LEASE_SECONDS = 60
_FORGET_SECONDS = 3_600.0


@dataclass(slots=True)
class Deliveries:
    """What is sent to webhooks by this process. What it does not send is sent later, or by another one."""

    registry: Registry
    seal: Seal
    sender: Sender
    now: Callable[[], datetime.datetime]
    mailbox: Mailbox = NO_MAIL
    rounds: Rounds = field(init=False)
    _forget: float = 0.0

    def __post_init__(self) -> None:
        self.rounds = Rounds("webhooks", self.look)

    async def look(self) -> int:
        """Begins the attempts that are due now. Returns how many. Errors: the database's."""
        room = _AT_ONCE - len(self.rounds.under_way)
        due: tuple[DueDelivery, ...] = ()
        if room > 0:
            due = await asyncio.to_thread(self.registry.claim_deliveries, count=room, lease_seconds=_LEASE_SECONDS)
        for delivery in due:
            self.rounds.spawn(f"{delivery.id} {delivery.attempts}", self._attempt(delivery))
        if time.monotonic() >= self._forget:
            self._forget = time.monotonic() + _FORGET_SECONDS
            await asyncio.to_thread(self.registry.forget_deliveries, before=iso(self.now() - KEPT))
        return len(due)

    async def _attempt(self, delivery: DueDelivery) -> None:
        """One attempt, and what came of it in the outbox. Where that fails, its lease ends and it is made again."""
        try:
            attempt = await self._sent(delivery)
        except Exception as error:  # noqa: BLE001 - whatever a receiver brings about is an attempt that failed
            logger().warning("webhook_not_sent", exception=type(error).__name__, where=where(error))
            attempt = Attempt(failure=Failure.UNREACHABLE)
        await asyncio.to_thread(self._end, delivery, attempt)

    async def _sent(self, delivery: DueDelivery) -> Attempt:
        try:
            kept = json.loads(self.seal.decrypted(delivery.sealed, bound_to=delivery.webhook))
        except SealBroken:
            return Attempt(failure=Failure.UNREADABLE)
        body, seconds = delivery.body.encode(), int(self.now().timestamp())
        headers = signed_headers(kept["secret"], delivery=delivery.id, seconds=seconds, body=body)
        if kept["url"].startswith(SCHEME):
            return await asyncio.to_thread(self._mailed, kept["url"].removeprefix(SCHEME), body, headers)
        return await self.sender.send(kept["url"], body, headers)

    def _mailed(self, address: str, body: bytes, headers: Mapping[str, str]) -> Attempt:
        if not self.mailbox.allows(address):
            return Attempt(failure=Failure.NOT_ALLOWED)
        try:
            self.mailbox.put(address, body, headers)
        except OSError as error:
            logger().warning("mail_not_written", exception=type(error).__name__)
            return Attempt(failure=Failure.NOT_WRITTEN)
        return Attempt()

    def _end(self, delivery: DueDelivery, attempt: Attempt) -> None:
        pause = PAUSES[min(delivery.attempts, len(PAUSES)) - 1]
        old = iso(self.now() + datetime.timedelta(seconds=pause) - GIVEN_UP_AFTER) > delivery.created
        state = "delivered" if attempt.arrived else "failed" if old else "waiting"
        self.registry.end_attempt(
            delivery, state=state, status=attempt.status, failure=attempt.failure, wait_seconds=pause
        )
        if not attempt.arrived:
            logger().info("webhook_failed", reason=attempt.failure, kind=state, count=delivery.attempts)
