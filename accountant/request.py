"""What is asked of the ledger and what it hands back."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import NamedTuple

from accountant.states import QueryStatus
from privacy.events import Event
from privacy.events.event import fraction_from_text
from privacy.values import Json

__all__ = [
    "ACTING",
    "Base",
    "Charged",
    "CoreCharge",
    "HeldRelease",
    "QueryRecord",
    "ReserveRequest",
    "Reserved",
    "Reuse",
    "SharedAnswer",
    "StoredRelease",
    "charges_of",
    "storable",
]

ACTING: ContextVar[str | None] = ContextVar("noisegate_acting", default=None)
"""Who acts on somebody else's behalf in the request under way: every charge that is made during it names this."""


class Reuse(StrEnum):
    """Which stored releases may serve a query in place of fresh ones."""

    ANY = "any"
    """Everybody's, for free."""

    CHARGED = "charged"
    """Everybody's: those of others for a charge to the reader's own accounts."""

    OWN = "own"
    NONE = "none"


_CORE_KEY = re.compile(r"[0-9a-f]{64}\Z")
_BODY_HASH = re.compile(r"[0-9a-f]{64}\Z")
_CORES_MAX = 64
_KEY_LENGTH_MAX = 255


def storable(text: str) -> bool:
    """Whether both databases can hold the text: no NUL, no half of a surrogate pair."""
    return _NOT_STORABLE.search(text) is None


_NOT_STORABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """The stored release that a core is measured in addition to, and that its own release will contain.

    `release` must be the best one under any of the `keys` that the reader has for free when the charge is made. Its
    `events` are no part of that charge: it was paid for.
    Errors: ValueError without a key or an event, or when a key is not a SHA-256.
    """

    release: str
    keys: tuple[str, ...]
    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        if not self.keys or any(_CORE_KEY.match(key) is None for key in self.keys):
            raise ValueError("a core key is a SHA-256 in lower-case hex")
        if not self.events:
            raise ValueError("a release has privacy events")


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreCharge:
    """One private core that will be measured: its identity, its quality and its price as privacy events.

    `core_key` is the SHA-256 (lower-case hex) of everything that decides what is measured, data and policy version
    included. `quality` is how exact its release will be among the releases of that key, in whole picos (it is about
    accuracy, not about privacy). `serving` are the keys and least qualities of stored releases that serve instead, the
    first that is found; without any it is the core's own key at its own quality. `lent` says that releases of others
    serve for a charge: not where their meaning was chosen by other releases, which are not among their events.
    `derived` are the keys and least qualities of releases of other questions from which this one's answer follows: they
    serve after all others. `joined` are those of several releases of other questions that serve together, where none
    does alone: all of them or none, and for free only. The first is kept under the core's key, the others under theirs.
    With a `base` only the `events` of what is measured in addition are charged; the release's own are those of both.
    Errors: ValueError when a key is not a SHA-256, a quality is not positive or there is no event (a free
    measurement of rows does not exist).
    """

    core_key: str
    quality: Fraction
    events: tuple[Event, ...]
    serving: tuple[tuple[str, Fraction], ...] = ()
    lent: bool = True
    derived: tuple[tuple[str, Fraction], ...] = ()
    joined: tuple[tuple[str, Fraction], ...] = ()
    base: Base | None = None

    def __post_init__(self) -> None:
        for key, quality in ((self.core_key, self.quality), *self.serving, *self.derived, *self.joined):
            if _CORE_KEY.match(key) is None:
                raise ValueError("a core key is a SHA-256 in lower-case hex")
            if not isinstance(quality, Fraction) or quality <= 0 or quality > 10**6:
                raise ValueError("the quality of a core is a positive Fraction of at most 1000000")
        if len({self.core_key, *[key for key, _ in self.joined[1:]]}) != max(len(self.joined), 1):
            raise ValueError("releases that serve together have keys of their own")
        if not self.events:
            raise ValueError("a core without privacy events cannot be charged")

    @property
    def served_by(self) -> tuple[tuple[str, Fraction], ...]:
        """Keys and least qualities of the releases that serve in place of a charge."""
        return (*(self.serving or ((self.core_key, self.quality),)), *self.derived)

    @property
    def released(self) -> tuple[Event, ...]:
        """The events of its release: all of what it is made of."""
        return self.events if self.base is None else (*self.base.events, *self.events)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReserveRequest:
    """A charge before the engine starts. `account` is where it begins; every account above it is charged as well.

    `body_hash` is the SHA-256 of what the client sent, compared when the `idempotency_key` comes again. `description`
    is stored as JSON and shown to auditors: it must not hold literals of the query. `most` is the nominal epsilon that
    fresh measurements may take of the account: what they take depends on what it paid for until then. `charges` says
    that the request was priced because no stored release serves it for free; where by now they all do, it has moved.
    `inputs` names cores, and the stored release that must serve each of them (None where it is measured anew), because
    other cores are asked for on condition of it; where the ledger would decide otherwise, the request has moved.
    Errors: ValueError for repeated cores, more than 64 cores, or malformed identifiers.
    """

    query_id: str
    principal: str
    account: str
    body_hash: str
    cores: tuple[CoreCharge, ...]
    idempotency_key: str | None = None
    reuse: Reuse = Reuse.OWN
    most: Fraction | None = None
    charges: bool = False
    inputs: Mapping[str, str | None] = field(default_factory=dict)
    description: Mapping[str, Json] = field(default_factory=dict)
    actor: str | None = field(default_factory=ACTING.get)
    """The service that asks on the principal's behalf, for the entries; by default that of the request under way."""

    def __post_init__(self) -> None:
        if not self.query_id or not self.principal or not self.account:
            raise ValueError("a reservation names its query, its principal and its account")
        if _BODY_HASH.match(self.body_hash) is None:
            raise ValueError("a body hash is a SHA-256 in lower-case hex")
        if self.idempotency_key is not None and not 1 <= len(self.idempotency_key) <= _KEY_LENGTH_MAX:
            raise ValueError(f"an idempotency key has between 1 and {_KEY_LENGTH_MAX} characters")
        for text in (self.query_id, self.principal, self.account, self.idempotency_key or "", self.actor or ""):
            if not storable(text):
                raise ValueError("a text cannot hold NUL or half of a surrogate pair")
        if self.reuse not in tuple(Reuse):
            raise ValueError('reuse is "any", "charged", "own" or "none"')
        if len(self.cores) > _CORES_MAX:
            raise ValueError(f"one query has at most {_CORES_MAX} cores")
        if len({core.core_key for core in self.cores}) != len(self.cores):
            raise ValueError("a query names each core once")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRelease:
    """A release that is kept: the noisy table of one core, ready to be returned again for free.

    `held` says what its sums measure and with which noise, for other questions of the same rows: those of the same
    `frame`, which is a frame of rows and groups, or of the same frame without the groups, `coarse`. They are None where
    no other question may use the sums. When it is handed to `Ledger.post`, `core_key`, `quality` and `events` must be
    those of a core that the query was charged for (the events after those of its base, where it has one), and
    `principal`, `dataset` and `query_id` those of the query; `created` is set by the ledger.
    """

    id: str
    core_key: str
    quality: Fraction
    principal: str
    dataset: str
    query_id: str
    events: tuple[Event, ...]
    body: bytes
    created: datetime.datetime | None = None
    frame: str | None = None
    coarse: str | None = None
    held: str | None = None

    def columns(self, *, quality: int, events: str, created: int) -> dict[str, int | str | bytes | None]:
        """All columns of its row."""
        return {
            "id": self.id,
            "core_key": self.core_key,
            "quality": quality,
            "principal": self.principal,
            "dataset": self.dataset,
            "query_id": self.query_id,
            "events": events,
            "body": self.body,
            "created": created,
            "frame": self.frame,
            "coarse": self.coarse,
            "held": self.held,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRelease:
    """What a stored release holds, without its numbers: `StoredRelease` says what the fields are."""

    id: str
    core_key: str
    quality: Fraction
    coarse: str | None
    held: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedAnswer:
    """The part of an answer that is the same bytes as in the stored answer of another query.

    The bytes from `start` to `end` of the whole answer of `query_id` are the bytes from `at` on here.
    Errors: ValueError for positions that are not a part.
    """

    query_id: str
    start: int
    end: int
    at: int

    def __post_init__(self) -> None:
        if not (0 <= self.start < self.end and self.at >= 0):
            raise ValueError("a shared part has a beginning and an end")

    def own_part(self, answer: bytes) -> bytes:
        """What is left of an answer without the shared part."""
        return answer[: self.at] + answer[self.at + self.end - self.start :]

    def whole(self, own: bytes, other: bytes) -> bytes:
        """The answer again, from its own part and the whole answer of the other query."""
        return own[: self.at] + other[self.start : self.end] + own[self.at :]


class Charged(NamedTuple):
    """What one account paid: nominal epsilon (how much less of its limit remains) and delta of thresholds, exact."""

    account: str
    epsilon: Fraction
    delta: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserved:
    """The outcome of a reservation.

    `fresh` is True only for the call that made the reservation: that caller, and no other, runs the query. Otherwise
    it is the record of an earlier request with the same idempotency key, and `answer` holds its stored bytes once it
    is settled. `reused` are the releases that serve some of the cores, by core key; `charged` is the leaf's share
    first, the root's last, and empty when nothing was charged. `read` are the cores among the reused ones whose
    release somebody else had paid for, and for which accounts of the reader were charged now.
    """

    query_id: str
    state: QueryStatus
    fresh: bool
    answer: bytes | None
    reused: Mapping[str, StoredRelease]
    charged: tuple[Charged, ...]
    read: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRecord:
    """A query as the ledger knows it.

    `core_keys` are the cores that it was charged for; `reused` maps the keys of its other cores to the releases that
    served them; `answer` is None unless it is settled and was asked for (`Ledger.query`).
    """

    id: str
    principal: str
    dataset: str
    account: str
    idempotency_key: str | None
    body_hash: str
    state: QueryStatus
    description: Mapping[str, Json]
    charged: tuple[Charged, ...]
    core_keys: Sequence[str]
    reused: Mapping[str, str]
    answer: bytes | None
    instance: str
    created: datetime.datetime
    finished: datetime.datetime | None


def charges_of(stored: str) -> tuple[Charged, ...]:
    """What each account was charged, as a query's row keeps it."""
    return tuple(
        Charged(account=account, epsilon=fraction_from_text(epsilon), delta=fraction_from_text(delta))
        for account, epsilon, delta in json.loads(stored)
    )
