"""The steps of the ledger as decisions on a locked working set: no I/O, no waiting, no clock of their own.

Every operation says what it needs and then either changes the batch as a whole or raises and changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from accountant.account import Account
from accountant.batch import Batch, Needs
from accountant.beside import Agreed, Beside
from accountant.calendar import number_at
from accountant.entry import EMPTY, GENESIS, ZERO, Kept, body_hash, canonical_json, limit_json, shares_json
from accountant.errors import (
    AccountChanged,
    AccountExists,
    AccountExpired,
    AccountFrozen,
)
from accountant.filter import DEFAULT_SHARES, DeltaShares, FilterKind, Limit, forgets_charges, split_limit
from accountant.request import StoredRelease
from accountant.rows import AccountState, QueryState, ReleaseRow, release_hash
from accountant.states import EntryKind, QueryStatus
from accountant.window import Turn, WindowWish
from privacy.events import event_to_json
from privacy.numbers import PICO, units_down
from privacy.values import Json

__all__ = ["Abandon", "Acknowledge", "ChangeLimit", "CreateAccount", "Fail", "Post", "Recover", "Touch", "Void"]

DEPTH_MAX = 8
"""Most accounts on one path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateAccount:
    """Opens an account below `parent`, or a dataset's root."""

    id: str
    dataset: str
    parent: str | None
    principal: str | None
    account_name: str
    limit: Limit
    filter: FilterKind
    actor: str
    shares: DeltaShares = DEFAULT_SHARES
    window: WindowWish | None = None
    request: str | None = None
    beside: Beside | None = None
    space: str | None = None
    expires: int | None = None
    name: str = "create_account"
    query_ids: tuple[str, ...] = ()

    def needs(self, needs: Needs) -> None:
        """The parent, or all roots; and an account of the dataset, which says in which unit space it is."""
        needs.datasets.add(self.dataset)
        if self.parent is None:
            needs.roots = True
        else:
            needs.accounts.add(self.parent)
            if self.principal is not None:
                needs.siblings.add((self.parent, self.principal))

    def apply(self, batch: Batch) -> Account:
        """Adds the account and its grant."""
        space, depth = self._place(batch)
        state = AccountState(
            id=self.id,
            dataset=self.dataset,
            parent=self.parent,
            depth=depth,
            principal=self.principal,
            name=self.account_name,
            filter=self.filter,
            shares=self.shares,
            limit=self.limit,
            branches=split_limit(self.limit, self.filter, self.shares),
            spent=ZERO,
            entries=0,
            hash=GENESIS,
            created=batch.now,
            greatest=self.limit,
            space=space,
            expires=self.expires,
        )
        if self.window is not None:
            state.window = self.window.at(batch.now)
            state.window.check(self.limit, self.filter, self.shares)
            state.turn = Turn(number_at(state.window.kind, batch.now), 1)
        details: dict[str, Json] = {
            "actor": self.actor,
            "dataset": self.dataset,
            "filter": self.filter.value,
            "limit": limit_json(self.limit),
            "name": self.account_name,
            "parent": self.parent,
            "principal": self.principal,
        }
        if self.filter is not FilterKind.PURE:
            details["delta_shares"] = shares_json(self.shares)
        if state.window is not None:
            details["window"] = state.window.json()
        if self.window is not None and self.window.acknowledge is not None:
            details["acknowledge"] = self.window.acknowledge
        if self.request is not None:
            details["request"] = self.request
        batch.write_beside(self.beside)
        if space != self.dataset:
            details["space"] = space
        if self.expires is not None:
            details["expires"] = self.expires
        batch.add_account(state)
        batch.add_entry(state, EntryKind.GRANT, query_id=None, details=canonical_json(details))
        return state.account(batch.now)

    def _place(self, batch: Batch) -> tuple[str, int]:
        """The unit space and the depth. Errors: UnknownAccount, AccountExists, AccountFrozen, ValueError."""
        elsewhere = {account.space for account in batch.accounts() if account.dataset == self.dataset}
        if self.parent is None:
            space = self.space or self.dataset
            if self.principal is not None or self.expires is not None:
                raise ValueError("a root account belongs to nobody and never ends")
            if any(root.space == space for root in batch.roots()):
                raise ValueError("the dataset has a root account; a second one would double the budget of its people")
            depth = 0
        else:
            parent = batch.account(self.parent)
            space, depth = parent.space, parent.depth + 1
            if self.space not in (None, space):
                raise ValueError("an account belongs to the unit space of its parent")
            if self.space is None and parent.dataset != self.dataset:
                raise ValueError("an account belongs to the dataset of its parent")
            if any(above.frozen for above in batch.path(parent.id)):
                raise AccountFrozen(parent.id)
            if depth >= DEPTH_MAX:
                raise ValueError(f"accounts are nested at most {DEPTH_MAX} deep")
            if any(above.expires is not None and above.expires <= batch.now for above in batch.path(parent.id)):
                raise AccountExpired(parent.id)
            if self.expires is not None and self.expires <= batch.now:
                raise ValueError("an account cannot end before it begins")
            other = None
            if self.principal is not None and self.expires is None:
                other = batch.sibling(self.parent, self.principal, self.dataset)
            if other is not None:
                raise AccountExists(other.id)
        if elsewhere - {space}:
            raise ValueError("the dataset was opened in another unit space, and stays there with what was spent")
        return space, depth


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeLimit:
    """Raises or lowers an account's limit. What was spent stays spent."""

    account: str
    limit: Limit
    actor: str
    reason: str
    expected: int | None = None
    request: str | None = None
    beside: Beside | None = None
    agreed: Agreed | None = None
    name: str = "change_limit"
    query_ids: tuple[str, ...] = ()

    def needs(self, needs: Needs) -> None:
        """The account."""
        needs.accounts.add(self.account)

    def apply(self, batch: Batch) -> Account:
        """Sets the limit and the budgets that follow from it."""
        state = batch.account(self.account)
        if self.expected is not None and state.revision != self.expected:
            raise AccountChanged(state.id, revision=state.revision)
        if state.frozen:
            raise AccountFrozen(state.id)
        branches = split_limit(self.limit, state.filter, state.shares)
        if state.window is not None:
            state.window.check(self.limit, state.filter, state.shares)
        if state.filter is FilterKind.APPROXIMATE and forgets_charges(
            state.spent.sums(), state.branches, branches, mixed=state.shares.mixed
        ):
            raise ValueError(
                "the account has charged under a limit that is too small for noise of both kinds, so its limit stays "
                "that small: open another account"
            )
        details: dict[str, Json] = {
            "action": "limit",
            "actor": self.actor,
            "from": limit_json(state.limit),
            "reason": self.reason,
            "to": limit_json(self.limit),
        }
        if self.request is not None:
            details["request"] = self.request
        if self.agreed is not None:
            details["agreed"] = self.agreed.told()
            batch.write_beside(self.agreed.beside)
        batch.write_beside(self.beside)
        batch.set_limit(state, self.limit, branches)
        batch.add_entry(state, EntryKind.ADJUST, query_id=None, details=canonical_json(details))
        return state.account(batch.now)


@dataclass(frozen=True, slots=True)
class _QueryStep:
    """Shared by the steps that move one query on."""

    query_id: str

    @property
    def query_ids(self) -> tuple[str, ...]:
        """The query."""
        return (self.query_id,)

    def needs(self, needs: Needs) -> None:
        """The query and, through it, its accounts."""
        needs.queries.add(self.query_id)


def _charged_accounts(batch: Batch, query: QueryState) -> list[AccountState]:
    """The accounts that a query was charged to, root first."""
    cores = query.stored_cores
    path = batch.path(query.account)
    if cores["charged"]:
        return path
    reading = {account for item in cores.get("read", {}).values() for account in item["accounts"]}
    return [account for account in path if account.id in reading]


def _close(
    batch: Batch, query: QueryState, kind: EntryKind, *, answer: str | None, releases: Mapping[str, str]
) -> None:
    """Writes the closing entry on every account that was charged, root first; what was read is paid for from now on.

    The first of them says what is kept: `answer` and `releases` are hashes.
    """
    details = Kept(query.principal, answer, releases).details()
    for account in _charged_accounts(batch, query):
        batch.add_entry(account, kind, query_id=query.id, details=details)
        details = EMPTY
    for item in query.stored_cores.get("read", {}).values():
        for account_id in item["accounts"]:
            batch.add_reading(account_id, release=item["release"], core_key=item["key"], query_id=query.id)


class _Kept(NamedTuple):
    """A release as it will be stored: made in the caller's thread, for the writer's is shared by all."""

    release: StoredRelease
    quality: int
    events: list[Json]
    stored: str
    hash: str

    @classmethod
    def of(cls, release: StoredRelease) -> _Kept:
        """With its quality in picos, its events as JSON and as the text that is stored, and its hash."""
        events: list[Json] = [event_to_json(event) for event in release.events]
        quality, stored = units_down(release.quality, PICO), canonical_json(events)
        row = ReleaseRow(
            id=release.id,
            core_key=release.core_key,
            quality=quality,
            principal=release.principal,
            dataset=release.dataset,
            query_id=release.query_id,
            events=stored,
            body=release.body,
            created=0,
            frame=release.frame,
            coarse=release.coarse,
            held=release.held,
            kept=None,
        )
        return cls(release, quality, events, stored, release_hash(row))


def _keep(batch: Batch, query: QueryState, releases: Sequence[_Kept]) -> None:
    """Stores what the query released. ValueError, and nothing changed, for a release that it was not charged for."""
    charged = {core["core_key"]: core for core in query.stored_cores["charged"]}
    for kept in releases:
        release = kept.release
        core = charged.pop(release.core_key, None)
        if core is None:
            raise ValueError("a release must belong to a core that the query was charged for, and to it once")
        if (release.principal, release.dataset, release.query_id) != (query.principal, query.dataset, query.id):
            raise ValueError("a release must belong to the principal, the dataset and the query that post it")
        whole = [*(core["base"]["events"] if "base" in core else ()), *core["events"]]
        if core["quality"] != kept.quality or whole != kept.events:
            raise ValueError("a release must have the quality and the privacy events that were charged")
    for kept in releases:
        batch.add_release(kept.release, quality=kept.quality, events=kept.stored)


@dataclass(frozen=True, slots=True)
class Post(_QueryStep):
    """Settles a query: its releases and its answer become durable together with the entries that say so."""

    releases: tuple[StoredRelease, ...]
    answer: bytes
    name: str = "post"
    kept: tuple[_Kept, ...] = field(init=False)
    answer_hash: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kept", tuple(map(_Kept.of, self.releases)))
        object.__setattr__(self, "answer_hash", body_hash(self.answer))

    def apply(self, batch: Batch) -> None:
        """reserved to settled."""
        query = batch.open_query(self.query_id, step="post")
        _keep(batch, query, self.kept)
        hashes = {kept.release.id: kept.hash for kept in self.kept}
        _close(batch, query, EntryKind.POST, answer=self.answer_hash, releases=hashes)
        batch.move(query, QueryStatus.SETTLED, answer=self.answer)


@dataclass(frozen=True, slots=True)
class Fail(_QueryStep):
    """Ends a query without an answer; the charge stays, and so does what was released before it failed."""

    releases: tuple[StoredRelease, ...] = ()
    name: str = "fail"
    kept: tuple[_Kept, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kept", tuple(map(_Kept.of, self.releases)))

    def apply(self, batch: Batch) -> None:
        """reserved to failed_charged."""
        query = batch.open_query(self.query_id, step="fail")
        _keep(batch, query, self.kept)
        hashes = {kept.release.id: kept.hash for kept in self.kept}
        _close(batch, query, EntryKind.FAIL, answer=None, releases=hashes)
        batch.move(query, QueryStatus.FAILED_CHARGED)


@dataclass(frozen=True, slots=True)
class Void(_QueryStep):
    """Gives the charge back on every account; only for a query whose engine provably never started."""

    name: str = "void"

    def needs(self, needs: Needs) -> None:
        """The query, its accounts and what its reservation added to each."""
        needs.queries.add(self.query_id)
        needs.charges.add(self.query_id)

    def apply(self, batch: Batch) -> None:
        """reserved to failed_void."""
        query = batch.open_query(self.query_id, step="void")
        charges = {charge.account: charge for charge in batch.charges(query.id)}
        path = _charged_accounts(batch, query)
        if charges.keys() != {account.id for account in path}:
            raise ValueError("a reservation is on all its accounts, or nothing of it is given back")
        for account in path:
            amounts, entry = charges[account.id].amounts.reversed_sign(), charges[account.id].entry
            batch.add_entry(account, EntryKind.VOID, query_id=query.id, details=EMPTY, amounts=amounts, voids=entry)
        batch.move(query, QueryStatus.FAILED_VOID)


@dataclass(frozen=True, slots=True)
class Recover:
    """Fails every open query of an instance that is gone. The charges stay: what was computed is unknown."""

    all_others: bool = False
    name: str = "recover"
    query_ids: tuple[str, ...] = ()

    def needs(self, needs: Needs) -> None:
        """The open queries of instances whose lease is over (or of all others)."""
        needs.expired = True
        needs.others = needs.others or self.all_others

    def apply(self, batch: Batch) -> int:
        """How many were failed."""
        count = 0
        for identifier in batch.recoverable:
            query = batch.find_query(identifier)
            if query is not None and query.state is QueryStatus.RESERVED:
                _close(batch, query, EntryKind.FAIL, answer=None, releases={})
                batch.move(query, QueryStatus.FAILED_CHARGED)
                count += 1
        return count


@dataclass(frozen=True, slots=True)
class Abandon:
    """Fails queries whose callers were told that the ledger could not be reached, where they are still open."""

    query_ids: tuple[str, ...]
    name: str = "fail"

    def needs(self, needs: Needs) -> None:
        """The queries."""
        needs.queries.update(self.query_ids)

    def apply(self, batch: Batch) -> None:
        """Open ones to failed_charged; unknown ones were never reserved."""
        for identifier in self.query_ids:
            query = batch.find_query(identifier)
            if query is not None and query.state is QueryStatus.RESERVED:
                _close(batch, query, EntryKind.FAIL, answer=None, releases={})
                batch.move(query, QueryStatus.FAILED_CHARGED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledge:
    """Records in every root that an older copy of the ledger was put back."""

    actor: str
    reason: str
    lost: dict[str, Json]
    agreed: Agreed | None = None
    epoch: int = 0
    """The ledger's time as it was known before: what comes after is not earlier."""
    name: str = "acknowledge"
    query_ids: tuple[str, ...] = ()

    def needs(self, needs: Needs) -> None:
        """All roots, of whatever is left."""
        needs.roots = True
        needs.accepts_loss = True

    def apply(self, batch: Batch) -> None:
        """One adjust entry in every root."""
        batch.now = max(batch.now, self.epoch)
        details: dict[str, Json] = {
            "action": "acknowledge_restore",
            "actor": self.actor,
            "lost": self.lost,
            "reason": self.reason,
        }
        if self.agreed is not None:
            details["agreed"] = self.agreed.told()
            batch.write_beside(self.agreed.beside)
        for root in sorted(batch.roots(), key=lambda account: account.id):
            batch.add_entry(root, EntryKind.ADJUST, query_id=None, details=canonical_json(details))


@dataclass(frozen=True, slots=True)
class Touch:
    """Writes nothing but the instance's lease: proves that the ledger can be written."""

    name: str = "touch"
    query_ids: tuple[str, ...] = ()

    def needs(self, needs: Needs) -> None:
        """Nothing."""

    def apply(self, batch: Batch) -> None:
        """Nothing."""
        batch.touched = True
