"""A query between the steps of the journey, and what follows from it alone: its wish, keys, charges and work.

Pure functions of frozen values. The journey (server/answer.py) makes the values and does the steps.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from accountant.account import Account
from accountant.request import CoreCharge, Reserved, ReserveRequest, Reuse
from privacy.policy import Dataset, Sharing
from privacy.statement import Statement
from privacy.statistic import CoreStatistics
from privacy.warning import AnswerWarning
from server import pricing
from server.calibrations import Calibrations
from server.pure_noise import counting_key
from server.question import Question
from server.release_key import quality_of, release_key
from sql_rewrite.bound import BoundedCore
from sql_rewrite.cost import Work, work_of
from sql_rewrite.plan import Plan

__all__ = [
    "Admitted",
    "Prepared",
    "charges_of",
    "fresh_work",
    "reads_rows",
    "repeat_key",
    "request_of",
    "reuse_of",
    "text_key",
    "wish_of",
]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A query after steps 2 and 3: everything that follows from the text and public metadata."""

    plan: Plan
    cores: tuple[BoundedCore, ...]
    statements: tuple[Statement, ...]
    keys: tuple[str, ...]
    """What each core asks: with family and delta of the noise it is the key of a release (server/release_key.py)."""
    types: tuple[tuple[str, str], ...] | None
    work: Work
    """What the engine does for all of it."""
    warnings: tuple[AnswerWarning, ...] = ()
    calibrations: Calibrations = field(default_factory=Calibrations)
    """Calibrations of this plan by price."""
    _counting_keys: dict[str, str] = field(default_factory=dict)

    @property
    def described(self) -> tuple[CoreStatistics, ...]:
        """The statistics of all cores."""
        return tuple(core.described for core in self.cores)

    def counting_key(self, core: BoundedCore) -> str:
        """The key of a count of the same rows in the same groups as one of the cores. Kept, as the plan is."""
        name = core.core.name
        known = self._counting_keys.get(name)
        if known is None:
            known = self._counting_keys[name] = counting_key(core, self.plan.dataset)
        return known


@dataclass(frozen=True, slots=True)
class Admitted:
    """A query after step 5. `stored` is the answer of an earlier, equal request; `running` says that one runs."""

    query_id: str
    stored: bytes | None = None
    running: bool = False
    question: Question | None = None
    prepared: Prepared | None = None
    priced: pricing.Priced | None = None
    charges: tuple[CoreCharge, ...] = ()
    """In the order of the plan's cores."""
    reserved: Reserved | None = None
    path: tuple[Account, ...] = ()
    started: float = 0.0


def fresh_work(admitted: Admitted) -> Work:
    """What the engine does for a query: the cores that no stored release serves."""
    assert admitted.prepared is not None
    assert admitted.reserved is not None
    if not admitted.reserved.reused:
        return admitted.prepared.work
    charged = zip(admitted.prepared.cores, admitted.charges, strict=True)
    return work_of([core for core, charge in charged if charge.core_key not in admitted.reserved.reused])


def reads_rows(admitted: Admitted) -> bool:
    """Whether the engine is needed: some core is not served by a stored release."""
    assert admitted.reserved is not None
    return not all(charge.core_key in admitted.reserved.reused for charge in admitted.charges)


def reuse_of(question: Question, dataset: Dataset) -> Reuse:
    """Which stored releases may serve, as the policy lets others' ones do."""
    if question.reuse in ("own", "none"):
        return "own" if question.reuse == "own" else "none"
    shared: dict[Sharing, Reuse] = {Sharing.NO: "own", Sharing.CHARGED: "charged", Sharing.FREE: "any"}
    asked = shared[dataset.limits.releases_shared]
    # How old a release is that nobody chose yet is not known: one's own can be looked at. Said here for all who ask:
    # what the ledger does not reuse must not pass the floor as reusable.
    return "own" if asked == "charged" and question.max_staleness_s is not None else asked


def text_key(question: Question, dataset: Dataset) -> Hashable:
    """What decides steps 2 and 3: the text, its parameters with their types, policy and data."""
    parameters = tuple(sorted((k, type(v).__name__, v) for k, v in question.parameters.items()))
    bounds = question.contribution
    return (
        question.sql,
        parameters,
        dataset.name,
        dataset.policy_version,
        dataset.data_version,
        bounds,
        question.nonempty,
    )


def repeat_key(question: Question, prepared: Prepared, leaf: Account) -> Hashable:
    """What decides an answer, given its releases. By principal, because releases may be one's own.

    The limit of the account is a part of it: what a spend buys there decides which releases are good enough.
    """
    account = (question.principal, leaf.id, leaf.limit, leaf.filter)
    return (text_key(question, prepared.plan.dataset), wish_of(question), account)


def wish_of(question: Question) -> pricing.Wish:
    """What decides the price of a question, given its plan and accounts."""
    return pricing.Wish(
        epsilon=question.epsilon,
        own_epsilon=question.own_epsilon,
        half_width=question.half_width,
        confidence=question.confidence,
        noise=question.noise,
        delta=question.delta,
    )


def request_of(
    question: Question,
    prepared: Prepared,
    priced: pricing.Priced | None,
    charges: tuple[CoreCharge, ...],
    path: Sequence[Account],
    query_id: str,
    reuse: Reuse,
) -> ReserveRequest:
    """What the ledger is asked."""
    return ReserveRequest(
        query_id=query_id,
        principal=question.principal,
        account=path[0].id,
        body_hash=question.body_hash,
        cores=charges,
        idempotency_key=question.idempotency_key,
        reuse=reuse,
        description=_description(prepared, priced),
    )


def charges_of(prepared: Prepared, priced: pricing.Priced | None) -> tuple[CoreCharge, ...]:
    """What the ledger is asked to charge: per core its events, and which stored releases serve instead."""
    if priced is None:
        return ()
    weights = [sum(statistic.weight for statistic in core.statistics) for core in prepared.described]
    selecting = sum(core.keys.selection is not None for core in prepared.described)
    policy = prepared.plan.dataset.limits.delta_per_query
    charges = []
    for core, key, weight in zip(prepared.described, prepared.keys, weights, strict=True):
        part = Fraction(weight, sum(weights))
        deltas = [Fraction(0)]
        if core.keys.selection is not None:
            asked = priced.price.delta / selecting
            deltas = [asked, *([policy] if policy > asked else [])]
        charges.append(
            CoreCharge(
                core_key=release_key(key, priced.price, delta=deltas[0]),
                quality=quality_of(priced.price, part),
                events=priced.calibration.events_of(core.name),
                serving=tuple(
                    (release_key(key, price, delta=delta), quality_of(price, part))
                    for price in sorted(priced.enough, key=lambda one: type(one) is not type(priced.price))
                    for delta in deltas
                ),
            )
        )
    return tuple(charges)


def _description(prepared: Prepared, priced: pricing.Priced | None) -> Mapping[str, Any]:
    """What the ledger keeps about a query beside its price: shapes, never literals."""
    return {
        "cores": [
            {
                "tables": [source.table.name for source in core.core.sources],
                "keys": len(core.core.keys),
                "aggregates": [aggregate.function.value for aggregate in core.core.aggregates],
            }
            for core in prepared.cores
        ],
        "noise": None if priced is None else priced.family,
    }
