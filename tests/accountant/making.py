"""Short ways to make accounts, requests and releases for tests of the ledger."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from accountant.account import Account, FilterKind, Limit
from accountant.ledger import Ledger
from accountant.request import CoreCharge, Reserved, ReserveRequest, StoredRelease
from privacy.events import Event, GaussianEvent, LaplaceEvent

__all__ = [
    "analyst",
    "core",
    "gaussian",
    "laplace",
    "limit",
    "releases_for",
    "request",
    "root",
    "sha256",
    "spend",
]


def sha256(text: str) -> str:
    """A SHA-256 in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def limit(epsilon: object = 1, delta: object = 0) -> Limit:
    """A limit from numbers or texts."""
    return Limit(epsilon=Fraction(str(epsilon)), delta=Fraction(str(delta)))


def laplace(epsilon: object = "0.1") -> LaplaceEvent:
    """Laplace noise that costs exactly this pure epsilon."""
    return LaplaceEvent(l1_sensitivity=Fraction(str(epsilon)), scale=Fraction(1))


def gaussian(mu_squared: object = "0.01") -> GaussianEvent:
    """Gaussian noise that costs exactly this mu squared."""
    return GaussianEvent(l2_squared=Fraction(str(mu_squared)), variance=Fraction(1))


def root(
    ledger: Ledger, *, dataset: str = "people", epsilon: object = 1, delta: object = 0, pure: bool = True
) -> Account:
    """A dataset's root account."""
    kind = FilterKind.PURE if pure else FilterKind.APPROXIMATE
    return ledger.create_account(
        dataset=dataset,
        parent=None,
        principal=None,
        name="lifetime",
        limit=limit(epsilon, delta),
        filter=kind,
        actor="admin",
    )


def analyst(
    ledger: Ledger,
    parent: Account,
    *,
    principal: str = "analyst",
    epsilon: object = 1,
    delta: object = 0,
    pure: bool = True,
) -> Account:
    """An analyst's account below a root."""
    return ledger.create_account(
        dataset=parent.dataset,
        parent=parent.id,
        principal=principal,
        name=principal,
        limit=limit(epsilon, delta),
        filter=FilterKind.PURE if pure else FilterKind.APPROXIMATE,
        actor="admin",
    )


def core(name: str, *events: Event, quality: object = "0.1") -> CoreCharge:
    """A core with that name as its identity; Laplace noise of the quality when no event is given."""
    return CoreCharge(core_key=sha256(name), quality=Fraction(str(quality)), events=events or (laplace(quality),))


def request(account: Account | str, *cores: CoreCharge, principal: str = "analyst", **changes: Any) -> ReserveRequest:
    """A request for cores (one new core when none is given)."""
    values: dict[str, Any] = {
        "query_id": f"q_{secrets.token_hex(8)}",
        "principal": principal,
        "account": account if isinstance(account, str) else account.id,
        "body_hash": sha256("body"),
        "cores": cores or (core(secrets.token_hex(8)),),
        "reuse": "none",
    }
    return ReserveRequest(**(values | changes))


def releases_for(
    ledger: Ledger, reserved: Reserved, cores: Sequence[CoreCharge], body: bytes = b"noisy"
) -> list[StoredRelease]:
    """The releases that a reservation's charged cores would make."""
    query = ledger.query(reserved.query_id)
    assert query is not None
    return [
        StoredRelease(
            id=f"r_{secrets.token_hex(8)}",
            core_key=charge.core_key,
            quality=charge.quality,
            principal=query.principal,
            dataset=query.dataset,
            query_id=query.id,
            events=charge.released,
            body=body,
        )
        for charge in cores
        if charge.core_key in query.core_keys
    ]


def spend(ledger: Ledger, asked: ReserveRequest, answer: bytes = b"answer") -> Reserved:
    """Reserves and posts."""
    reserved = ledger.reserve(asked)
    ledger.post(reserved.query_id, releases_for(ledger, reserved, asked.cores), answer)
    return reserved
