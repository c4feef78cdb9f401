"""How every resource is charged, made, cancelled and found again: the steps that do not depend on what it is.

The order is that of a query (server/answer.py). A retry is looked up first, whatever became of dataset, policy and
limits since. Then the resource is priced and its charge reserved until both see one account (agreed_price.py), and its
row is stored. From then on it waits for its turn, and may be cancelled; where it reads rows, it does so in one slot of
the engine until its visible moment, and what comes of it is stored with the ledger's entry before anybody reads it. A
process that dies leaves a reservation, which the next start ends: failed, and charged.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Generic, Protocol, TypeVar

from accountant.errors import LedgerError
from accountant.ledger import Ledger
from accountant.request import Charged, CoreCharge, Reserved, ReserveRequest, StoredRelease
from accountant.states import QueryStatus
from engines.protocol import EngineLease, StatementEngine
from mechanisms.randomness import BitSource
from privacy.events import Event
from privacy.refusal import ExecutionFailed
from server.admitted import InFlight, Settled, retried
from server.jobs import AdmittedQuery
from server.journey.agreed_price import at_agreed_price, moved
from server.journey.pace import Pace, VisibleRun
from server.log import logger
from server.resources.kinds import ResourceKind
from server.resources.offer import Offer
from server.store.resources import ResourceRow
from sql_rewrite.cost import Work

__all__ = ["Begun", "Offered", "Order", "Resources", "charge_of"]

T = TypeVar("T")


class Order(Protocol):
    """A request for a resource."""

    @property
    def principal(self) -> str:
        """Whose it will be."""

    @property
    def idempotency_key(self) -> str | None:
        """Under which the same request is one resource."""

    @property
    def body_hash(self) -> str:
        """SHA-256 of what the client sent."""


class Offered(Protocol):
    """A resource that is planned and priced."""

    @property
    def offer(self) -> Offer:
        """Its charge."""

    @property
    def terms(self) -> str:
        """What is kept of the request, as JSON that its owner and overseers may read: no text of SQL."""


P = TypeVar("P", bound=Offered)
R = TypeVar("R", bound=ResourceRow)


class Charging(AdmittedQuery, Protocol):
    """What is charged, and waits for its turn to read rows."""

    @property
    def owner(self) -> str:
        """Whose it is."""

    @property
    def started(self) -> float:
        """When it was asked for."""


@dataclass(frozen=True, slots=True)
class Begun(Generic[P, R]):
    """A resource that is charged and stored, and has read no row. `started` is when it was asked for.

    `reused` are stored releases that serve for what was charged beside it.
    """

    row: R
    planned: P
    charged: tuple[Charged, ...]
    reused: Mapping[str, StoredRelease]
    started: float

    @property
    def query_id(self) -> str:
        """Its identifier, which is that of its query."""
        return self.row.id

    @property
    def owner(self) -> str:
        """Whose it is."""
        return self.row.principal


@dataclass(slots=True)
class Resources:
    """The resources of a server: one object for all kinds. Safe to use from many threads."""

    ledger: Ledger
    private: StatementEngine
    pace: Pace
    bits: BitSource
    _waiting: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    # The charge

    def charge(
        self, kind: ResourceKind, order: Order, plan: Callable[[], P], *, store: Callable[[ResourceRow, P], R]
    ) -> Settled | InFlight | Begun[P, R]:
        """Charges a resource and stores its row, or finds that of an earlier request under the same key.

        `plan` reads no row, and is called again where the account paid for something else in between; `store` puts
        what all resources have, and what this one has besides, into the registry.
        Errors: Refused, Problem and the ledger's, and nothing is charged then; what `store` raises, with the charge
        given back; ExecutionFailed for an earlier request that failed.
        """
        started = self.pace.clock()
        if order.idempotency_key is not None:
            earlier = self.ledger.earlier(order.principal, order.idempotency_key, order.body_hash)
            if earlier is not None:
                return retried(earlier)
        identifier = f"{_PREFIXES[kind]}_{secrets.token_hex(12)}"

        def attempt() -> tuple[P, Reserved]:
            planned = plan()
            offer = planned.offer
            # A session answers while others of its account are asked, which is proved without rho alone.
            assert not kind.session or offer.loss.rho is None, "a session that stays open has no rho"
            return planned, self.ledger.reserve(_reservation(kind, identifier, order, offer))

        planned, reserved = at_agreed_price(attempt, refused=lambda: moved(f"the {kind.word}"))
        if not reserved.fresh:
            return retried(reserved)
        row = ResourceRow(
            id=identifier,
            principal=order.principal,
            dataset=planned.offer.dataset.name,
            account=planned.offer.account.id,
            price=planned.offer.price_text(),
            terms=planned.terms,
        )
        try:
            stored = store(row, planned)
        except Exception:
            # No row was read, and nothing will be: the charge goes back.
            self.end(identifier, void=True)
            raise
        self.wait(identifier)
        return Begun(stored, planned, tuple(reserved.charged), reserved.reused, started)

    def wait(self, identifier: str) -> None:
        """From here on a query that is charged waits for its turn, and may be cancelled."""
        with self._lock:
            self._waiting.add(identifier)

    # What is done for it

    def make(
        self,
        begun: Charging,
        work: Work,
        read: Callable[[EngineLease, VisibleRun], T],
        made: Callable[[T], bytes],
        releases: Sequence[StoredRelease] = (),
    ) -> bytes:
        """Reads rows at a visible moment and stores what `made` makes of it, with `releases`, which `read` may fill.

        Errors: ExecutionFailed.
        """
        self._require_turn(begun.query_id)
        try:
            found = self.read(read, name=begun.query_id, owner=begun.owner, work=work, started=begun.started)
        except ExecutionFailed as failed:
            ended = self.end(begun.query_id, void=not failed.started)
            raise ExecutionFailed(started=failed.started or not ended) from None
        return self._settled(begun, lambda: made(found), releases)

    def settle(self, begun: Charging, made: Callable[[], bytes]) -> bytes:
        """Stores what becomes of a resource that reads no rows to be there. Errors: ExecutionFailed."""
        self._require_turn(begun.query_id)
        return self._settled(begun, made, ())

    def _settled(self, begun: Charging, made: Callable[[], bytes], releases: Sequence[StoredRelease]) -> bytes:
        try:
            content = made()
            self.ledger.post(begun.query_id, tuple(releases), content)
        except Exception as error:  # noqa: BLE001 - rows were read: the charge stays, and there is one outcome
            logger().error("query_unsettled", query_id=begun.query_id, exception=type(error).__name__)
            self.end(begun.query_id, void=False)
            raise ExecutionFailed from None
        return content

    def read(
        self,
        read: Callable[[EngineLease, VisibleRun], T],
        *,
        name: str,
        owner: str,
        work: Work,
        started: float,
    ) -> T:
        """What `read` finds in rows: in one slot, which is free again at the visible moment that this returns at.

        Errors: ExecutionFailed, started=False where no row was read, and else at a visible moment too, whatever failed.
        """
        failed: str | None = None
        with ExitStack() as slot:
            try:
                lease = slot.enter_context(self.private.lease(owner=owner))
            except ExecutionFailed:
                # The engine closes, or cannot start a worker: no visible moment is needed.
                raise ExecutionFailed(started=False) from None
            visible = self.pace.visible(work, started, self.bits)
            try:
                found = read(lease, visible)
            except Exception as error:  # noqa: BLE001 - whatever it is, nothing of it may travel further
                failed = type(error).__name__
            visible.wait()
        if failed is not None:
            logger().warning("query_failed", query_id=name, exception=failed)
            raise ExecutionFailed
        return found

    # How it ends otherwise

    def cancel(self, identifier: str) -> QueryStatus | None:
        """Voids a resource that did not begin to read rows. Returns its state afterwards."""
        if self._take(identifier):
            return QueryStatus.FAILED_VOID if self.end(identifier, void=True) else QueryStatus.RESERVED
        record = self.ledger.query(identifier)
        return None if record is None else record.state

    def cancel_all(self, principals: Collection[str]) -> int:
        """As `cancel`, of everything that these principals have waiting. Returns how many were voided."""
        with self._lock:
            waiting = tuple(self._waiting)
        records = (self.ledger.query(identifier) for identifier in waiting)
        mine = [record.id for record in records if record is not None and record.principal in principals]
        return sum(self.cancel(identifier) is QueryStatus.FAILED_VOID for identifier in mine)

    def abandon(self, begun: AdmittedQuery) -> None:
        """Voids a resource whose turn never came (shutdown), cancelled or not."""
        if self._take(begun.query_id):
            self.end(begun.query_id, void=True)

    def end(self, identifier: str, *, void: bool) -> bool:
        """Ends a charge without an answer: given back, or kept. Returns whether the ledger has that."""
        try:
            if void:
                self.ledger.void(identifier)
            else:
                self.ledger.fail(identifier)
        except LedgerError as error:
            # The reservation counts as spent until a restart ends it.
            logger().error("query_unsettled", query_id=identifier, exception=type(error).__name__)
            return False
        return True

    def _take(self, identifier: str) -> bool:
        """Ends a resource's waiting, for one caller only."""
        with self._lock:
            waited = identifier in self._waiting
            self._waiting.discard(identifier)
        return waited

    def _require_turn(self, identifier: str) -> None:
        """Errors: ExecutionFailed for a resource that was cancelled."""
        if not self._take(identifier):
            record = self.ledger.query(identifier)
            raise ExecutionFailed(started=record is None or record.state is not QueryStatus.FAILED_VOID)


_PREFIXES = {
    ResourceKind.MONITOR: "m",
    ResourceKind.STREAM: "st",
    ResourceKind.MODEL: "t",
    ResourceKind.SYNTHETIC: "s",
    ResourceKind.BATCH: "q",
}
"""What identifiers begin with. A batch has that of its query, which the journey of questions makes."""


def charge_of(kind: ResourceKind, name: str, events: tuple[Event, ...]) -> CoreCharge:
    """Events of a resource on the ledger, under a key that nothing else has: no stored release serves it."""
    key = hashlib.sha256(f"{kind.value} {name}".encode()).hexdigest()
    return CoreCharge(core_key=key, quality=Fraction(1), events=events, lent=False)


def _reservation(kind: ResourceKind, identifier: str, order: Order, offer: Offer) -> ReserveRequest:
    return ReserveRequest(
        query_id=identifier,
        principal=order.principal,
        account=offer.account.id,
        body_hash=order.body_hash,
        cores=(charge_of(kind, identifier, offer.events), *offer.beside),
        idempotency_key=order.idempotency_key,
        reuse=offer.reuse,
        most=offer.cost,
        description={kind.value: identifier, "cores": [], "noise": offer.noise},
    )
