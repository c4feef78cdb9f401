"""Working copies of rows under the lock: what a batch reads, changes and writes back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, NotRequired, Self, TypedDict

from accountant.account import Account
from accountant.calendar import number_at
from accountant.entry import Amounts, from_micros
from accountant.filter import Branches, DeltaShares, FilterKind, Limit, Sums, fits, least_share
from accountant.request import SharedAnswer
from accountant.statements import SPENT_COLUMNS, AccountRow, Columns, Values
from accountant.states import QueryStatus
from accountant.window import Turn, View, Window, read_window
from privacy.numbers import ATTO, PICO
from privacy.values import Json

__all__ = [
    "AccountState",
    "AnswerRow",
    "Candidate",
    "CandidateRow",
    "ChargeRow",
    "EarlierRow",
    "HeadRow",
    "ParentRow",
    "QueryState",
    "ReadingRow",
    "ReleaseHead",
    "ReleaseRow",
    "StoredCores",
    "release_hash",
]


@dataclass(slots=True)
class AccountState:
    """An account under the lock. Mutable: it is the working copy of one row."""

    id: str
    dataset: str
    parent: str | None
    depth: int
    principal: str | None
    name: str
    filter: FilterKind
    shares: DeltaShares
    limit: Limit
    branches: Branches
    spent: Amounts
    entries: int
    hash: str
    created: int
    greatest: Limit
    frozen: bool = False
    revision: int = 1
    window: Window | None = None
    turn: Turn | None = None
    changed: bool = False
    new: bool = False
    _sums: Sums | None = None
    """Those of `spent`, where they were asked for."""

    @property
    def sums(self) -> Sums:
        """What was spent, as sums of the filter."""
        if self._sums is None:
            self._sums = self.spent.sums()
        return self._sums

    def add(self, amounts: Amounts) -> None:
        """Moves what is spent."""
        self.spent = self.spent.plus(amounts)
        self._sums = None

    space: str = ""
    expires: int | None = None

    def account(self, now: int, *, reserved: Sums | None = None) -> Account:
        """The account as the rest of the program knows it, at a moment."""
        return Account(
            id=self.id,
            dataset=self.dataset,
            parent=self.parent,
            principal=self.principal,
            name=self.name,
            limit=self.limit,
            filter=self.filter,
            shares=self.shares,
            branches=self.branches,
            created=from_micros(self.created),
            space=self.space,
            expires=None if self.expires is None else from_micros(self.expires),
            greatest=self.greatest,
            frozen=self.frozen,
            revision=self.revision,
            spent=self.sums,
            reserved=Sums() if reserved is None else reserved,
            window=self.view(now),
            moment=now,
        )

    def view(self, now: int) -> View | None:
        """What the window says at a moment."""
        if self.window is None or self.turn is None:
            return None
        return View.of(self.window, self.turn, now, self.filter, self.shares)

    def admits(self, charge: Sums, now: int) -> bool:
        """Whether the filter, and the window at this moment of the ledger, let the charge through."""
        after = self.sums.plus(charge, self.branches)
        if not fits(after, self.branches):
            return False
        view = self.view(now)
        if view is None:
            return True
        placed = Amounts.of_charge(charge, spent=self.spent, branches=self.branches).sums()
        return view.admits(after, placed, self.branches)

    def count(self, amounts: Amounts, now: int) -> None:
        """Adds a charge, with the account's next entry, to what was spent."""
        self.add(amounts)
        if self.window is not None and self.turn is not None:
            number = number_at(self.window.kind, now)
            self.turn = self.turn.at(number, self.entries + 1).plus(amounts)

    def take_back(self, amounts: Amounts, entry: int) -> None:
        """Takes back a charge; of the window's it is a part only where that charge, an entry of the account, is."""
        self.add(amounts)
        if self.turn is not None and entry >= self.turn.since:
            self.turn = self.turn.plus(amounts)

    def used_share(self) -> tuple[int, int]:
        """`Account.used_share` as numerator and denominator."""
        return least_share(self.sums, self.branches)

    def cost(self, charge: Sums) -> Fraction:
        """As `Account.cost`, of a charge that is counted already."""
        before, before_of = self.used_share()
        after, after_of = least_share(self.sums.plus(charge, self.branches), self.branches)
        return self.limit.epsilon * Fraction(after * before_of - before * after_of, before_of * after_of)

    def place_columns(self) -> Values:
        """Where it is in the tree, as the parameters of a change."""
        return {"key": self.id, "new_parent": self.parent, "new_depth": self.depth, "new_space": self.space}

    def spent_columns(self) -> dict[str, int]:
        """What was spent, by column."""
        return dict(zip(SPENT_COLUMNS, self.spent, strict=True))

    @classmethod
    def from_row(cls, row: Iterable[object]) -> AccountState:
        """Reads the columns `ACCOUNT_COLUMNS`."""
        read = AccountRow._make(row)
        return cls(
            id=read.id,
            dataset=read.dataset,
            parent=read.parent,
            depth=read.depth,
            principal=read.principal,
            name=read.name,
            filter=FilterKind(read.filter),
            shares=_shares(read.share_gaussian, read.share_concentrated, read.share_mixed),
            limit=_limit(read.limit_epsilon, read.limit_delta),
            branches=_branches(
                read.budget_pure,
                read.budget_mu_squared,
                read.budget_rho,
                read.budget_delta,
                read.budget_gaussian_delta,
                read.budget_concentrated_delta,
                read.budget_mixed_pure,
                read.budget_mixed_mu_squared,
                read.budget_mixed_delta,
            ),
            spent=Amounts._make(read[-len(SPENT_COLUMNS) :]),
            entries=read.entries,
            hash=read.hash,
            created=read.created,
            greatest=_limit(read.greatest_epsilon, read.greatest_delta),
            frozen=bool(read.frozen),
            revision=read.revision,
            space=read.space,
            expires=read.expires,
            window=None if read.window_rule is None else read_window(read.window_rule),
            turn=None if read.window_spent is None else Turn.read(read.window_spent),
        )

    def row(self) -> Values:
        """All columns."""
        return {
            "id": self.id,
            "dataset": self.dataset,
            "parent": self.parent,
            "depth": self.depth,
            "principal": self.principal,
            "name": self.name,
            "filter": self.filter.value,
            "share_gaussian": self.shares.gaussian,
            "share_concentrated": self.shares.concentrated,
            "share_mixed": self.shares.mixed,
            "limit_epsilon": int(self.limit.epsilon / PICO),
            "limit_delta": int(self.limit.delta / ATTO),
            "budget_pure": self.branches.pure,
            "budget_delta": self.branches.delta,
            "budget_rho": self.branches.rho,
            "budget_mu_squared": self.branches.mu_squared,
            "budget_gaussian_delta": self.branches.gaussian_delta,
            "budget_concentrated_delta": self.branches.concentrated_delta,
            "budget_mixed_pure": self.branches.mixed_pure,
            "budget_mixed_mu_squared": self.branches.mixed_mu_squared,
            "budget_mixed_delta": self.branches.mixed_delta,
            **self.spent_columns(),
            "entries": self.entries,
            "hash": self.hash,
            "created": self.created,
            "frozen": int(self.frozen),
            "revision": self.revision,
            "greatest_epsilon": int(self.greatest.epsilon / PICO),
            "greatest_delta": int(self.greatest.delta / ATTO),
            "window_rule": None if self.window is None else self.window.text(),
            "window_spent": None if self.turn is None else self.turn.text(),
            "space": self.space,
            "expires": self.expires,
        }


@lru_cache(maxsize=1024)
def _limit(epsilon: int, delta: int) -> Limit:
    return Limit(epsilon=epsilon * PICO, delta=delta * ATTO)


@lru_cache(maxsize=1024)
def _shares(gaussian: int, concentrated: int, mixed: int) -> DeltaShares:
    return DeltaShares(
        gaussian=gaussian, concentrated=concentrated, mixed=mixed, groups=100 - gaussian - concentrated - mixed
    )


_branches = lru_cache(maxsize=1024)(Branches)
"""Budgets by the order of their fields; many accounts have the same."""


class StoredBase(TypedDict):
    """The release that a core was measured in addition to, with its events."""

    events: list[Json]
    release: str


class StoredCharge(TypedDict):
    """One core of a query's row that was charged."""

    core_key: str
    events: list[Json]
    quality: int
    base: NotRequired[StoredBase]


class StoredRead(TypedDict):
    """One core of a query's row that was served by somebody else's release."""

    accounts: list[str]
    key: str
    release: str


class StoredCores(TypedDict):
    """How the cores of a query were served, as its row keeps it."""

    charged: list[StoredCharge]
    read: NotRequired[dict[str, StoredRead]]
    reused: dict[str, str]


@dataclass(slots=True)
class QueryState:
    """A query under the lock: the working copy of one row, without its answer."""

    id: str
    principal: str
    dataset: str
    account: str
    idempotency_key: str | None
    body_hash: str
    state: QueryStatus
    description: str
    cores: str
    charged: str
    instance: str
    created: int
    finished: int | None = None
    answer: bytes | None = None
    shared: SharedAnswer | None = None
    changed: bool = False
    new: bool = False
    _stored: StoredCores | None = None
    """`cores`, where they were read."""

    @property
    def stored_cores(self) -> StoredCores:
        """How its cores are served, as `cores` keeps it. For reading only."""
        if self._stored is None:
            stored: StoredCores = json.loads(self.cores)
            self._stored = stored
        return self._stored

    def __post_init__(self) -> None:
        # A row has its value.
        self.state = QueryStatus(self.state)

    def row(self) -> Values:
        """All columns; of an answer that is shared, what the row has of its own."""
        shared, answer = self.shared, self.answer
        return {
            "id": self.id,
            "principal": self.principal,
            "dataset": self.dataset,
            "account": self.account,
            "idempotency_key": self.idempotency_key,
            "body_hash": self.body_hash,
            "state": self.state.value,
            "description": self.description,
            "cores": self.cores,
            "charged": self.charged,
            "answer": answer if shared is None or answer is None else shared.own_part(answer),
            "instance": self.instance,
            "created": self.created,
            "finished": self.finished,
            "answer_of": None if shared is None else shared.query_id,
            "answer_at": None if shared is None else shared.at,
            "answer_from": None if shared is None else shared.start,
            "answer_to": None if shared is None else shared.end,
        }


@dataclass(slots=True)
class ReleaseHead:
    """A stored release without its body."""

    id: str
    core_key: str
    quality: int
    principal: str
    dataset: str
    created: int


class HeadRow(NamedTuple):
    """The ledger's head and its time, and the hash at the last head that this process made durable."""

    sequence: int
    hash: str
    epoch: int
    there: str | None


class ParentRow(NamedTuple):
    """An account, and the one above it."""

    id: str
    parent: str | None


class ReadingRow(NamedTuple):
    """A release, and an account that was charged for reading it."""

    release: str
    account: str


class ChargeRow(NamedTuple):
    """What a query reserved in one account, with which of its entries: the amounts are the fields of `Amounts`."""

    query: str
    account: str
    entry: int
    amounts: Amounts

    @classmethod
    def of(cls, query: str, account: str, entry: int, *amounts: int) -> Self:
        """Of the columns that are read."""
        return cls(query, account, entry, Amounts(*amounts))


class EarlierRow(NamedTuple):
    """A query that has an idempotency key already, with what its row has of its answer."""

    id: str
    state: str
    body_hash: str
    charged: str
    stored: AnswerRow

    @classmethod
    def of(cls, row: Sequence[object]) -> Self:
        """Of the columns that are read."""
        return cls._make((*row[:4], AnswerRow._make(row[4:])))


class ReleaseRow(NamedTuple):
    """A stored release, in the order of the columns that are read."""

    id: str
    core_key: str
    quality: int
    principal: str
    dataset: str
    query_id: str
    events: str
    body: bytes
    created: int
    frame: str | None
    coarse: str | None
    held: str | None
    kept: str | None
    """What the end of its query says was kept, as the entry has it; None where it was written before ends said so."""


def release_hash(row: ReleaseRow | Columns) -> str:
    """SHA-256, in hex, of a stored release: its numbers, what they are numbers of, and whose they are.

    Of a JSON array of key, dataset, principal, quality, events, frame, frame without groups and what is held, a line
    feed, and the body. So its numbers cannot be moved to another question, reader or quality either. Of what is no
    bytes no hash at all.
    """
    if not isinstance(row.body, (bytes, bytearray, memoryview)):
        return ""
    what = (row.core_key, row.dataset, row.principal, row.quality, row.events, row.frame, row.coarse, row.held)
    return hashlib.sha256(_JSON.encode(what).encode("ascii") + b"\n" + row.body).hexdigest()


_JSON = json.JSONEncoder(separators=(",", ":"))


class AnswerRow(NamedTuple):
    """What the row of a query has of its answer, in the order of the columns that are read."""

    answer: bytes | None
    answer_of: str | None
    answer_at: int | None
    answer_from: int | None
    answer_to: int | None
    kept: str | None
    """As `ReleaseRow.kept`."""


class CandidateRow(NamedTuple):
    """A stored release with the account that paid for it, in the order of the columns that are read."""

    id: str
    core_key: str
    quality: int
    dataset: str
    events: str
    payer: str
    cores: str

    @property
    def base(self) -> str | None:
        """The release that this one was measured in addition to, as its query keeps it; None where there is none."""
        if '"base":' not in self.cores:
            return None
        charged = json.loads(self.cores)["charged"]
        found = [core["base"]["release"] for core in charged if core["core_key"] == self.core_key and "base" in core]
        return str(found[0]) if found else None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A stored release that may be read for a charge: its privacy events as JSON, and the accounts that paid for it."""

    id: str
    core_key: str
    quality: int
    dataset: str
    events: str
    paid: frozenset[str]
