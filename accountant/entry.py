"""Entries: the stored movements of the ledger, each chained to the one before it.

An entry's hash is the SHA-256 of a canonical JSON array that begins with its form, "entry/1" to "entry/3", and holds
every other field in the order of `Entry`, two earlier hashes among them: that of the previous entry of the same
account, so that one account's statement can be checked alone, and that of the previous entry of the whole ledger, so
that nothing can be cut off an account's end unnoticed. Both chains begin with 64 zeros. The array of an entry that
moves nothing in the mixed branch is "entry/1" and leaves that branch's amounts away: such are all entries that were
written before it. That of the end of a query which says what was kept of it (`Kept`) is "entry/3": before there were
such, ends said nothing, and what was kept then is in no chain.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from operator import add
from typing import NamedTuple

from sqlalchemy import Row

from accountant.filter import AMOUNT_MAX, Branches, DeltaShares, Limit, Sums, place
from accountant.states import EntryKind
from privacy.numbers import decimal_text
from privacy.values import Json

__all__ = [
    "EMPTY",
    "ENDS",
    "GENESIS",
    "ZERO",
    "Amounts",
    "Entry",
    "Kept",
    "as_bytes",
    "body_hash",
    "canonical_json",
    "entry_hash",
    "from_micros",
    "limit_json",
    "read_entry",
    "read_shares",
    "shares_json",
    "to_micros",
]

GENESIS = "0" * 64
"""What the first entry of a chain names as the hash before it."""

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)


def to_micros(moment: datetime.datetime) -> int:
    """Whole microseconds since 1970; the moment must have a zone."""
    return (moment - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime.datetime:
    """The moment in UTC."""
    return _EPOCH + micros * _MICROSECOND


def canonical_json(value: Json) -> str:
    """The one text of a JSON value: sorted keys, no spaces, ASCII. NaN and infinity raise ValueError."""
    return _CANONICAL.encode(value)


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


class Amounts(NamedTuple):
    """What one movement changes, signed, in whole units; or what an account has spent.

    The first four are the finite parts; the next three count the charges without a finite bound in that measure, so
    that taking a charge back is plain subtraction. The last three are the same of the mixed branch: a charge is in one
    of its two sums, or without a bound in both.
    """

    pure: int = 0
    delta: int = 0
    rho: int = 0
    mu_squared: int = 0
    unbounded_pure: int = 0
    unbounded_rho: int = 0
    unbounded_mu_squared: int = 0
    mixed_pure: int = 0
    mixed_mu_squared: int = 0
    unbounded_mixed: int = 0

    @classmethod
    def of_charge(cls, charge: Sums, *, spent: Amounts, branches: Branches, sums: Sums | None = None) -> Amounts:
        """What a charge adds to an account with these budgets that has spent so much; `sums` are those of `spent`.

        A measure whose sum could no longer be stored counts as unbounded from then on, which never understates it.
        """
        pure, unbounded_pure = _split(charge.pure, spent.pure)
        rho, unbounded_rho = _split(charge.rho, spent.rho)
        mu_squared, unbounded_mu_squared = _split(charge.mu_squared, spent.mu_squared)
        placed = place(charge, spent.sums() if sums is None else sums, branches)
        in_pure, beyond_pure = _split(None if placed is None else placed[0], spent.mixed_pure)
        in_noise, beyond_noise = _split(None if placed is None else placed[1], spent.mixed_mu_squared)
        return cls(
            *(pure, charge.delta, rho, mu_squared),
            *(unbounded_pure, unbounded_rho, unbounded_mu_squared),
            *(in_pure, in_noise, int(beyond_pure or beyond_noise)),
        )

    def sums(self) -> Sums:
        """The same as sums of a filter, which knows a number or infinity."""
        return Sums(
            pure=None if self.unbounded_pure else self.pure,
            rho=None if self.unbounded_rho else self.rho,
            mu_squared=None if self.unbounded_mu_squared else self.mu_squared,
            delta=self.delta,
            mixed_pure=None if self.unbounded_mixed else self.mixed_pure,
            mixed_mu_squared=None if self.unbounded_mixed else self.mixed_mu_squared,
        )

    def plus(self, other: Amounts) -> Amounts:
        """Both together."""
        return Amounts._make(map(add, self, other))

    def carried(self, *, mixed_there: bool, mixed_here: bool) -> Amounts:
        """What a root is debited with for another one that has spent this and is put below it (spaces.md).

        Each sum as it is. Where charges were put into neither sum of a mixed branch, since that account has none, the
        branch of this one no longer covers them: it becomes infinite.
        """
        if self == ZERO or mixed_there or not mixed_here:
            return self
        return self._replace(unbounded_mixed=self.unbounded_mixed + 1)

    def reversed_sign(self) -> Amounts:
        """The movement that reverses this one."""
        return Amounts(*(-amount for amount in self))


ZERO = Amounts()
"""A movement that changes no amount."""

EMPTY = "{}"
"""Details of an entry that says nothing besides."""

ENDS = (EntryKind.POST, EntryKind.FAIL)
"""The ends of a query that stays charged."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What was kept of a query at its end: hashes of its answer and of its releases, and whose it is.

    In the entry of the uppermost account that was charged, so that the chain of the ledger covers answers, releases and
    owners too. `answer` is None where it failed.
    """

    owner: str
    answer: str | None
    releases: Mapping[str, str]

    def details(self) -> str:
        """As the entry keeps it."""
        answer = {} if self.answer is None else {"answer": self.answer}
        return canonical_json({**answer, "owner": self.owner, "releases": dict(self.releases)})

    @classmethod
    def read(cls, details: str) -> Kept | None:
        """What the end of a query says; None of one that was written before ends said anything.

        Errors: ValueError, TypeError, KeyError for details that no end has.
        """
        if details == EMPTY:
            return None
        stored = json.loads(details)
        return cls(owner=str(stored["owner"]), answer=stored.get("answer"), releases=dict(stored["releases"]))


def as_bytes(stored: object) -> bytes:
    """What a column of bytes gives back, also where somebody put something else into it by hand."""
    return bytes(stored) if isinstance(stored, (bytes, bytearray, memoryview)) else str(stored).encode()


def body_hash(body: object) -> str:
    """SHA-256 of an answer in hex; of what is no bytes no hash at all.

    SQLite gives back what somebody put into a column by hand, a text among bytes too.
    """
    return hashlib.sha256(body).hexdigest() if isinstance(body, (bytes, bytearray, memoryview)) else ""


_FIRST = len(ZERO) - 3
"""How many amounts an entry has without those of the mixed branch."""


def _split(amount: int | None, spent: int) -> tuple[int, int]:
    if amount is None or spent + amount > AMOUNT_MAX:
        return 0, 1
    return amount, 0


@dataclass(frozen=True, slots=True)
class Entry:
    """One movement.

    `sequence` counts through the whole ledger and `account_sequence` through the account, both from 1 without gaps.
    `details` is canonical JSON: the limit of a grant, the cores and privacy events of a reserve, actor and reason of an
    adjustment. `created` is in microseconds.
    """

    sequence: int
    account: str
    account_sequence: int
    kind: EntryKind
    query_id: str | None
    amounts: Amounts
    details: str
    created: int
    account_previous: str
    previous: str
    hash: str

    def digest(self) -> str:
        """What `hash` must be."""
        return entry_hash(
            self.sequence,
            self.account,
            self.account_sequence,
            self.kind,
            self.query_id,
            self.amounts,
            self.details,
            self.created,
            self.account_previous,
            self.previous,
        )

    @property
    def moment(self) -> datetime.datetime:
        """When it was written, by the ledger's clock, in UTC."""
        return from_micros(self.created)


def entry_hash(
    sequence: int,
    account: str,
    account_sequence: int,
    kind: EntryKind,
    query_id: str | None,
    amounts: Amounts,
    details: str,
    created: int,
    account_previous: str,
    previous: str,
) -> str:
    """SHA-256, in hex, of an entry's JSON array (README.md of this room).

    The array is put together here, which takes a third of the time that an encoder of any value takes: it is made
    several times for every charge, and once for every entry of an audit. What is no whole number where one belongs, in
    a row that somebody edited, has another text than any number. Errors: TypeError where a text should be and is none.
    """
    keeps = details != EMPTY and kind in ENDS
    if keeps or any(amounts[_FIRST:]):
        version = "entry/3" if keeps else "entry/2"
        shown = _NOTHING if amounts is ZERO else ",".join(map(ascii, amounts))
    else:
        version, shown = "entry/1", _NOTHING_FIRST if amounts is ZERO else ",".join(map(ascii, amounts[:_FIRST]))
    query = "null" if query_id is None else _quoted(query_id)
    text = (
        f'["{version}",{sequence!a},{_quoted(account)},{account_sequence!a},{_quoted(kind)},{query},[{shown}],'
        f"{_quoted(details)},{created!a},{_quoted(account_previous)},{_quoted(previous)}]"
    )
    return hashlib.sha256(text.encode("ascii")).hexdigest()


_quoted = json.encoder.encode_basestring_ascii
"""A text as JSON has it."""

_NOTHING, _NOTHING_FIRST = ",".join(map(ascii, ZERO)), ",".join(map(ascii, ZERO[:_FIRST]))


def limit_json(limit: Limit) -> dict[str, str]:
    """A limit as entries keep it: exact decimal texts."""
    return {"epsilon": decimal_text(limit.epsilon), "delta": decimal_text(limit.delta)}


def shares_json(shares: DeltaShares) -> dict[str, int]:
    """The shares of an account's delta as its grant keeps them: whole percents, without a mixed branch it lacks."""
    mixed = {"mixed": shares.mixed} if shares.mixed else {}
    return {"gaussian": shares.gaussian, "concentrated": shares.concentrated, **mixed, "groups": shares.groups}


def read_shares(stored: Mapping[str, int]) -> DeltaShares:
    """The shares that a grant keeps. Errors: ValueError, TypeError for what none can have."""
    return DeltaShares(**stored)


def read_entry(row: Row[*tuple[object, ...]]) -> Entry:
    """An entry from a row that has all its columns by name."""
    return Entry(
        sequence=row.sequence,
        account=row.account,
        account_sequence=row.account_sequence,
        kind=EntryKind(row.kind),
        query_id=row.query_id,
        amounts=Amounts(*(getattr(row, name) for name in Amounts._fields)),
        details=row.details,
        created=row.created,
        account_previous=row.account_previous,
        previous=row.previous,
        hash=row.hash,
    )
