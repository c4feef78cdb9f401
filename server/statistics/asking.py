"""Asking registered statistics: charged in whole before the first row is read, in one slot, at a visible moment.

One event covers the test, the noise and the refusal. The answer is stored with the entry of the ledger, as a query's
is. The same question of somebody is answered from there for free, unless another Idempotency-Key asks for a new draw.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from accountant.request import Charged, CoreCharge, Reserved, ReserveRequest, Reuse
from accountant.states import QueryStatus
from engines.protocol import EngineLease
from mechanisms import gateway
from mechanisms.release import counts_by_place
from privacy.events.event import fraction_to_text
from privacy.numbers import decimal_text
from privacy.policy import Dataset
from privacy.refusal import Refused
from privacy.values import Json
from server.admitted import InFlight, Settled, retried
from server.journey.admission import Served
from server.journey.agreed_price import at_agreed_price, moved
from server.journey.pace import VisibleRun
from server.journey.wire_amounts import share_text
from server.journey.wire_estimate import Verdict
from server.published import STATISTIC
from server.resources.resources import Resources
from server.statistics.answer import outcome_body, test_body
from server.statistics.quoting import Quoted, StatisticQuotes, allowed
from server.statistics.terms import AskStatistic
from sql_rewrite.dialects.dialect import Dialect
from sql_rewrite.own_statistics import OwnKind, lift_statistic
from sql_rewrite.plan_key import core_key

__all__ = ["Statistics", "ToAsk", "again"]

_DRAWS_MAX = 16
"""Draws of one question under keys of its own; later ones are found by their identifiers alone."""


@dataclass(frozen=True, slots=True)
class ToAsk:
    """A statistic that is charged and has read no row."""

    query_id: str
    request: AskStatistic
    quoted: Quoted
    charged: tuple[Charged, ...]
    started: float

    @property
    def owner(self) -> str:
        """Who asks."""
        return self.request.principal


@dataclass(slots=True)
class Statistics:
    """The registered statistics of a server. Safe to use from many threads."""

    resources: Resources
    quotes: StatisticQuotes
    served: Served

    def listed(self, dataset: Dataset, *, trusted: bool) -> list[dict[str, Json]]:
        """The statistics of a dataset that a caller may ask, with what a proposal may be."""
        return [_listed(one.name, dataset, self.quotes.dialect) for one in allowed(dataset, trusted=trusted)]

    def estimate(self, request: AskStatistic) -> dict[str, object]:
        """What it would cost, test and promise. Reads no row, charges nothing. Errors: Refused."""
        quoted = self.quotes.quote(request)
        moments = self.resources.pace.moments(quoted.form.work)
        verdict, price = quoted.offer.verdict, {**quoted.offer.price(), "own": _own(quoted)}
        if self._stored(request, quoted):
            verdict, price = (
                Verdict.FREE,
                price | {"epsilon": "0", "delta": "0", "share": share_text(Fraction(0), quoted.path[0])},
            )
        return {
            "verdict": verdict.value,
            "price": price,
            **test_body(quoted, request.confidence),
            "first_moment_seconds": round(moments.first, 3),
            "tick_seconds": round(moments.tick, 4),
        }

    def _stored(self, request: AskStatistic, quoted: Quoted) -> bool:
        """Whether the question, asked without a key, has a stored outcome."""
        identity = _identity(quoted, request)
        key = self._key(request.principal, identity)
        earlier = None if key is None else self.resources.ledger.earlier(request.principal, key, identity)
        return earlier is not None and earlier.state is QueryStatus.SETTLED

    def admit(self, request: AskStatistic) -> Settled | InFlight | ToAsk:
        """Charges it. Errors: Refused, and the ledger's; ExecutionFailed for an earlier request that failed."""
        started = self.resources.pace.clock()
        if request.idempotency_key is not None:
            earlier = self.resources.ledger.earlier(request.principal, request.idempotency_key, request.body_hash)
            if earlier is not None:
                return retried(earlier)
        query_id = f"q_{secrets.token_hex(12)}"
        quoted, reserved = at_agreed_price(
            lambda: self._reserved(query_id, request), refused=lambda: moved("the statistic")
        )
        if not reserved.fresh:
            return retried(reserved)
        self.resources.wait(reserved.query_id)
        return ToAsk(reserved.query_id, request, quoted, tuple(reserved.charged), started)

    def _reserved(self, query_id: str, request: AskStatistic) -> tuple[Quoted, Reserved]:
        """The price on the accounts as they are now, and its reservation. Errors: as of `admit`, and PriceMoved."""
        quoted = self.quotes.quote(request)
        offer = quoted.offer
        key, body_hash = request.idempotency_key, request.body_hash
        identity = _identity(quoted, request)
        if key is None:
            key, body_hash = self._key(request.principal, identity), identity
        # Each draw is a release of its own.
        drawn = hashlib.sha256(f"{identity} {query_id}".encode()).hexdigest()
        return quoted, self.resources.ledger.reserve(
            ReserveRequest(
                query_id=query_id,
                principal=request.principal,
                account=offer.account.id,
                body_hash=body_hash,
                cores=(CoreCharge(core_key=drawn, quality=Fraction(1), events=offer.events, lent=False),),
                idempotency_key=key,
                reuse=Reuse.NONE,
                most=offer.cost,
                description={STATISTIC: quoted.own.name, "cores": [], "noise": offer.noise},
            )
        )

    def _key(self, principal: str, identity: str) -> str | None:
        """Under which a question has its stored outcome: another one after each draw that failed, up to a number."""
        for number in range(1, _DRAWS_MAX + 1):
            key = f"{STATISTIC} {identity} {number}"
            earlier = self.resources.ledger.earlier(principal, key, identity)
            if earlier is None or earlier.state in (QueryStatus.SETTLED, QueryStatus.RESERVED):
                return key
        return None

    def complete(self, asked: ToAsk) -> bytes:
        """Counts, tests and releases in one slot, until a visible moment. Errors: ExecutionFailed."""
        timeout = asked.quoted.dataset.limits.timeout_seconds

        def read(lease: EngineLease, visible: VisibleRun) -> dict[str, Json]:
            return self._outcome(asked, lease, visible.seconds_left(timeout))

        def made(body: dict[str, Json]) -> bytes:
            return _written(body)

        return self.resources.make(asked, asked.quoted.form.work, read, made)

    def _outcome(self, asked: ToAsk, lease: EngineLease, seconds: float) -> dict[str, Json]:
        """The answer: a function of the outcome at the gateway, and of public facts. Errors: ExecutionFailed."""
        quoted, form = asked.quoted, asked.quoted.form
        exact = self.resources.private.run(
            self.served.snapshot(quoted.dataset), form.statement, timeout_seconds=seconds, lease=lease
        )
        counts = counts_by_place(form.bounded.described, exact)
        counts = counts if form.places is None else counts[: form.places.highest + 1]
        found = gateway.test(quoted.tested, counts, self.resources.bits)
        return {
            "id": asked.query_id,
            "status": QueryStatus.SETTLED.value,
            "dataset": quoted.dataset.name,
            "statistic": quoted.own.name,
            **outcome_body(quoted, found, asked.request.confidence),
            **test_body(quoted, asked.request.confidence),
            "mechanism": "propose_test_release",
            "accounting": {
                "charged": [
                    {
                        "budget": part.account,
                        "epsilon": decimal_text(part.epsilon, places=12),
                        "delta": decimal_text(part.delta),
                    }
                    for part in asked.charged
                    if part.account == quoted.path[0].id
                ],
                "own": _own(quoted),
                "reused": False,
            },
            "policy_version": quoted.dataset.policy_version,
            "data_version": quoted.dataset.data_version,
            "links": {"self": f"/v1/queries/{asked.query_id}", "budget": f"/v1/budgets/{quoted.path[0].id}"},
        }


def again(answer: bytes) -> bytes:
    """A stored outcome for a question that was asked again without a key: it costs nothing, and says so."""
    body = json.loads(answer)
    body["accounting"] |= {"charged": [], "reused": True}
    return _written(body)


def _written(body: Mapping[str, Json]) -> bytes:
    """An outcome as it is stored and sent."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def _listed(name: str, dataset: Dataset, dialect: Dialect) -> dict[str, Json]:
    own = dataset.statistic(name)
    assert own is not None
    body: dict[str, Json] = {"name": own.name, "description": own.description, "sql": own.sql, "analysts": own.analysts}
    try:
        form = lift_statistic(own, dataset, dialect)
    except Refused:
        # What an earlier version of this server accepted, and this one does not.
        return {**body, "kind": None, "step": None, "low": None, "high": None}
    if form.kind is OwnKind.MODE:
        return {**body, "kind": form.kind.value, "step": None, "low": None, "high": None}
    low, high = (float(end) for end in form.range)
    return {**body, "kind": form.kind.value, "step": float(form.step), "low": low, "high": high}


def _own(quoted: Quoted) -> dict[str, Json]:
    return {"epsilon": decimal_text(quoted.tested.epsilon, places=12), "delta": decimal_text(quoted.tested.delta)}


def _identity(quoted: Quoted, request: AskStatistic) -> str:
    """What makes two questions of one caller the same: data, statistic, proposal, price as it was named, account."""
    asked = request.epsilon if request.own_epsilon is None else request.own_epsilon
    assert asked is not None
    body = {
        "core": core_key(quoted.form.bounded, quoted.dataset),
        "terms": [[fraction_to_text(part), sign] for part, sign in quoted.form.terms],
        "delta": fraction_to_text(quoted.tested.delta),
        "width": None if request.width is None else fraction_to_text(request.width),
        "spend": [request.own_epsilon is None, fraction_to_text(asked)],
        "confidence": fraction_to_text(request.confidence),
        "account": quoted.path[0].id,
        "version": 1,
    }
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
