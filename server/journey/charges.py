"""What the ledger is asked about a query, and the keys under which plans and answers of it are kept. Pure functions."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from fractions import Fraction

from accountant.account import Account
from accountant.request import CoreCharge, ReserveRequest, Reuse
from privacy.policy import Dataset
from privacy.values import Json
from server.journey.query import Asked, Prepared
from server.journey.release_key import quality_of, release_key
from server.pricing import Priced, Wish
from server.question import Question

__all__ = ["charges_of", "repeat_key", "request_of", "text_key", "wish_of"]


def text_key(question: Question, dataset: Dataset) -> Hashable:
    """What decides steps 2 and 3: the text, its parameters with their types, policy and data."""
    # By their written form: 0.0 and -0.0 are equal, and not the same question.
    parameters = tuple(sorted((k, type(v).__name__, repr(v)) for k, v in question.parameters.items()))
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


def wish_of(question: Question) -> Wish:
    """What decides the price of a question, given its plan and accounts."""
    return Wish(
        epsilon=question.epsilon,
        own_epsilon=question.own_epsilon,
        half_width=question.half_width,
        confidence=question.confidence,
        noise=question.noise,
        delta=question.delta,
    )


def request_of(asked: Asked, reuse: Reuse) -> ReserveRequest:
    """What the ledger is asked."""
    question = asked.question
    return ReserveRequest(
        query_id=asked.query_id,
        principal=question.principal,
        account=asked.path[0].id,
        body_hash=question.body_hash,
        cores=asked.charges,
        idempotency_key=question.idempotency_key,
        reuse=reuse,
        description=_description(asked.prepared, asked.priced),
    )


def charges_of(prepared: Prepared, priced: Priced | None) -> tuple[CoreCharge, ...]:
    """What the ledger is asked to charge: per core its events, and which stored releases serve instead."""
    if priced is None:
        return ()
    statistics = sum(len(core.statistics) for core in prepared.described)
    selecting = sum(core.keys.selection is not None for core in prepared.described)
    policy = prepared.plan.dataset.limits.delta_per_query
    charges = []
    for core, key in zip(prepared.described, prepared.keys, strict=True):
        part = Fraction(len(core.statistics), statistics)
        deltas = [Fraction(0)]
        if core.keys.selection is not None:
            asked = priced.price.delta / selecting
            deltas = [asked, *([policy] if policy > asked else [])]
        charges.append(
            CoreCharge(
                core_key=release_key(key, priced.family, delta=deltas[0]),
                quality=quality_of(priced.price, part),
                events=priced.calibration.events_of(core.name),
                serving=tuple(
                    (release_key(key, price.family, delta=delta), quality_of(price, part))
                    for price in sorted(priced.enough, key=lambda one: one.family is not priced.family)
                    for delta in deltas
                ),
            )
        )
    return tuple(charges)


def _description(prepared: Prepared, priced: Priced | None) -> Mapping[str, Json]:
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
