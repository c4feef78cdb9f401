"""The steps of the ledger as decisions on a locked working set: no I/O, no waiting, no clock of their own.

Every operation says what it needs and then either changes the batch as a whole or raises and changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

from accountant.account import Account
from accountant.batch import DEPTH_MAX, AccountState, Batch, Needs, QueryState, ReleaseHead
from accountant.entry import GENESIS, ZERO, Amounts, canonical_json, limit_json
from accountant.errors import (
    AccountChanged,
    AccountExists,
    AccountFrozen,
    BudgetExhausted,
    IdempotencyConflict,
    UnknownAccount,
)
from accountant.filter import FilterKind, Limit, Sums, split_limit
from accountant.reading import Read, choose_candidate
from accountant.request import CoreCharge, ReserveRequest, Reuse, SharedAnswer, StoredRelease
from accountant.states import EntryKind, QueryStatus
from privacy.events import event_to_json
from privacy.events.event import fraction_to_text
from privacy.loss import ZERO_LOSS, Loss, compose
from privacy.numbers import ATTO, PICO, units_down

__all__ = [
    "Abandon",
    "Acknowledge",
    "ChangeLimit",
    "CreateAccount",
    "Fail",
    "Operation",
    "Post",
    "Recover",
    "Repeat",
    "Reserve",
    "ReserveOutcome",
    "Touch",
    "Void",
    "serving_of",
]


class Operation(Protocol):
    """One step. `name` is how fault points call it; `query_ids` are the queries whose fate it decides."""

    @property
    def name(self) -> str:
        """The step's name."""
        ...

    @property
    def query_ids(self) -> tuple[str, ...]:
        """Queries that end failed when nobody can tell the caller how this step went."""
        ...

    def needs(self, needs: Needs) -> None:
        """Adds what must be loaded."""
        ...

    def apply(self, batch: Batch) -> Any:
        """Decides and changes the batch; returns what the caller gets once it is durable."""
        ...


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
    name: str = "create_account"
    query_ids: tuple[str, ...] = ()

    def needs(self, needs: Needs) -> None:
        """The parent, or all roots."""
        if self.parent is None:
            needs.roots = True
        else:
            needs.accounts.add(self.parent)
            if self.principal is not None:
                needs.siblings.add((self.parent, self.principal))

    def apply(self, batch: Batch) -> Account:
        """Adds the account and its grant."""
        depth = 0
        if self.parent is None:
            if any(root.dataset == self.dataset for root in batch.roots()):
                raise ValueError("the dataset has a root account; a second one would double the budget of its people")
        else:
            parent = batch.account(self.parent)
            if parent.dataset != self.dataset:
                raise ValueError("an account belongs to the dataset of its parent")
            depth = parent.depth + 1
            if depth >= DEPTH_MAX:
                raise ValueError(f"accounts are nested at most {DEPTH_MAX} deep")
            other = None if self.principal is None else batch.sibling(self.parent, self.principal)
            if other is not None:
                raise AccountExists(other.id)
        state = AccountState(
            id=self.id,
            dataset=self.dataset,
            parent=self.parent,
            depth=depth,
            principal=self.principal,
            name=self.account_name,
            filter=self.filter,
            limit=self.limit,
            branches=split_limit(self.limit, self.filter),
            spent=ZERO,
            entries=0,
            hash=GENESIS,
            created=batch.now,
            greatest=self.limit,
        )
        details = {
            "actor": self.actor,
            "dataset": self.dataset,
            "filter": self.filter.value,
            "limit": limit_json(self.limit),
            "name": self.account_name,
            "parent": self.parent,
            "principal": self.principal,
        }
        batch.add_account(state)
        batch.add_entry(state, EntryKind.GRANT, query_id=None, details=canonical_json(details))
        return state.account()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeLimit:
    """Raises or lowers an account's limit. What was spent stays spent."""

    account: str
    limit: Limit
    actor: str
    reason: str
    expected: int | None = None
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
        branches = split_limit(self.limit, state.filter)
        details = {
            "action": "limit",
            "actor": self.actor,
            "from": limit_json(state.limit),
            "reason": self.reason,
            "to": limit_json(self.limit),
        }
        batch.set_limit(state, self.limit, branches)
        batch.add_entry(state, EntryKind.ADJUST, query_id=None, details=canonical_json(details))
        return state.account()


@dataclass(frozen=True, slots=True)
class PreparedCore:
    """A core whose loss was computed from its events, before the transaction and by the ledger itself."""

    core_key: str
    serving: tuple[tuple[str, int], ...]
    loss: Loss
    stored: str


@dataclass(frozen=True, slots=True)
class ReserveOutcome:
    """What a reservation decided; the stored bytes are read by the caller afterwards."""

    query_id: str
    state: QueryStatus
    fresh: bool
    reused: dict[str, str]
    charged: str
    read: frozenset[str] = frozenset()
    """Cores among the reused ones that were charged for reading."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """How the cores of a query are served: by releases that are free, by releases that are read for a charge, anew."""

    reused: dict[str, str]
    read: tuple[Read, ...]
    charged: tuple[PreparedCore, ...]

    def stored(self) -> str:
        """As the query's row keeps it."""
        return self._json(
            {
                read.core_key: {"accounts": list(read.accounts), "key": read.release_key, "release": read.release}
                for read in self.read
            }
        )

    def details(self, account: str) -> str:
        """As the entry of one account keeps it: with the events of the releases that it is charged for."""
        return self._json([json.loads(read.stored) for read in self.read if account in read.accounts])

    def _json(self, read: Any) -> str:
        charged = ",".join(core.stored for core in self.charged)
        named = f'"read":{canonical_json(read)},' if read else ""
        return f'{{"charged":[{charged}],{named}"reused":{canonical_json(self.reused)}}}'

    def loss(self, account: str) -> Loss | None:
        """What one account is charged, None when it is charged nothing."""
        losses = [core.loss for core in self.charged]
        losses += [read.loss for read in self.read if account in read.accounts]
        return None if not losses else losses[0] if len(losses) == 1 else sum(losses, ZERO_LOSS)

    def serving(self) -> dict[str, str]:
        """The release that serves each core which is not measured anew."""
        return {**self.reused, **{read.core_key: read.release for read in self.read}}


@dataclass(slots=True, kw_only=True)
class Reserve:
    """Charges a query on every account of its path, or finds that it was charged before."""

    request: ReserveRequest
    name: str = "reserve"
    query_ids: tuple[str, ...] = field(init=False)
    description: str = field(init=False)
    cores: tuple[PreparedCore, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.query_ids = (self.request.query_id,)
        self.description = canonical_json(dict(self.request.description))
        self.cores = tuple(self._prepare(core) for core in self.request.cores)

    def _prepare(self, core: CoreCharge) -> PreparedCore:
        quality = units_down(core.quality, PICO)
        events = [event_to_json(event) for event in core.events]
        return PreparedCore(
            core.core_key,
            _serving(core),
            core.events[0].loss() if len(core.events) == 1 else compose(core.events),
            canonical_json({"core_key": core.core_key, "events": events, "quality": quality}),
        )

    def needs(self, needs: Needs) -> None:
        """The path, the query by identifier and by key, and releases of the cores."""
        needs.accounts.add(self.request.account)
        needs.queries.add(self.request.query_id)
        if self.request.idempotency_key is not None:
            needs.keys.add((self.request.principal, self.request.idempotency_key))
        if self.request.reuse != Reuse.NONE:
            owner = "" if self.request.reuse == Reuse.ANY else self.request.principal
            needs.cores.update((owner, key) for core in self.cores for key, _ in core.serving)
        if self.request.reuse == Reuse.CHARGED:
            needs.shared.update((self.request.account, *serving) for core in self.cores for serving in core.serving)

    def apply(self, batch: Batch) -> ReserveOutcome | None:
        """Decides: a retry, a reuse, a refusal or a charge."""
        earlier = self._earlier(batch)
        if earlier is not None:
            return earlier
        path = self._path(batch)
        chosen = self._choose(batch, path)
        cores = chosen.stored()
        shares = self._debit(batch, path, chosen, cores)
        query = self._record(batch, path[-1], cores=cores, charged=canonical_json(shares))
        return ReserveOutcome(
            query.id,
            query.state,
            fresh=True,
            reused=chosen.serving(),
            charged=query.charged,
            read=frozenset(read.core_key for read in chosen.read),
        )

    def _earlier(self, batch: Batch) -> ReserveOutcome | None:
        """The principal's query with this idempotency key. Errors: IdempotencyConflict; ValueError for a used id."""
        request = self.request
        earlier = batch.find_key(request.principal, request.idempotency_key)
        if earlier is None:
            if batch.find_query(request.query_id) is not None:
                raise ValueError("the query's identifier was used before")
            return None
        if earlier.body_hash != request.body_hash:
            raise IdempotencyConflict(earlier.id)
        return ReserveOutcome(
            earlier.id,
            earlier.state,
            fresh=False,
            reused=serving_of(json.loads(earlier.cores)),
            charged=earlier.charged,
        )

    def _path(self, batch: Batch) -> list[AccountState]:
        """The accounts that pay, root first. Errors: UnknownAccount, also for somebody else's; AccountFrozen."""
        path = batch.path(self.request.account)
        if path[-1].principal is not None and path[-1].principal != self.request.principal:
            raise UnknownAccount(self.request.account)
        if path[-1].frozen:
            raise AccountFrozen(self.request.account)
        return path

    def _choose(self, batch: Batch, path: list[AccountState]) -> Chosen:
        """Which release serves which core for nothing or for a charge, and the cores that none serves."""
        reused: dict[str, str] = {}
        read: list[Read] = []
        charged: list[PreparedCore] = []
        for core in self.cores:
            release = self._free(batch, core, path[-1])
            if release is not None:
                reused[core.core_key] = release.id
                continue
            other = None
            if self.request.reuse == Reuse.CHARGED:
                other = choose_candidate(
                    [
                        candidate
                        for key, least in core.serving
                        for candidate in batch.candidates(key, dataset=path[-1].dataset, quality=least)
                    ],
                    path,
                    core_key=core.core_key,
                    fresh=core.loss,
                    readings=batch.readings,
                )
            if other is None:
                charged.append(core)
            elif other.accounts:
                read.append(other)
            else:
                reused[core.core_key] = other.release
        return Chosen(reused, tuple(read), tuple(charged))

    def _free(self, batch: Batch, core: PreparedCore, leaf: AccountState) -> ReleaseHead | None:
        """The best release that serves for nothing: one's own, everybody's, or one that was charged for before."""
        if self.request.reuse == Reuse.NONE:
            return None
        owner = None if self.request.reuse == Reuse.ANY else self.request.principal
        for key, least in core.serving:
            best = batch.best_release(key, dataset=leaf.dataset, quality=least, principal=owner)
            # The batch knows what the account read whenever one of its requests may use that: this one must, too.
            charged = self.request.reuse == Reuse.CHARGED
            read = batch.best_read(leaf.id, key, dataset=leaf.dataset, quality=least) if charged else None
            known = [release for release in (best, read) if release is not None]
            if known:
                return max(known, key=lambda release: (release.quality, release.created, release.id))
        return None

    def _record(self, batch: Batch, leaf: AccountState, *, cores: str, charged: str) -> QueryState:
        request = self.request
        query = QueryState(
            id=request.query_id,
            principal=request.principal,
            dataset=leaf.dataset,
            account=leaf.id,
            idempotency_key=request.idempotency_key,
            body_hash=request.body_hash,
            state=QueryStatus.RESERVED,
            description=self.description,
            cores=cores,
            charged=charged,
            instance=batch.instance,
            created=batch.now,
        )
        batch.add_query(query)
        return query

    def _debit(self, batch: Batch, path: list[AccountState], chosen: Chosen, cores: str) -> list[tuple[str, str, str]]:
        # All filters are asked before anything is changed, the root first: only the root is a guarantee against
        # analysts who put their answers together.
        debits: list[tuple[AccountState, Sums]] = []
        # Without readings it is the same charge everywhere, and counted once.
        loss = chosen.loss("")
        charge = None if loss is None else Sums.of(loss)
        for account in path:
            if chosen.read:
                loss = chosen.loss(account.id)
                charge = None if loss is None else Sums.of(loss)
            if loss is None or charge is None:
                continue
            if not account.admits(charge):
                shortages = account.account().explain_refusal(loss)
                raise BudgetExhausted(account.id, root=account.parent is None, shortages=shortages)
            debits.append((account, charge))
        shares = []
        for account, charge in debits:
            before, before_of = account.used_share()
            batch.add_entry(
                account,
                EntryKind.RESERVE,
                query_id=self.request.query_id,
                details=chosen.details(account.id) if chosen.read else cores,
                amounts=Amounts.of_charge(charge, spent=account.spent),
            )
            after, after_of = account.used_share()
            limit = account.limit.epsilon
            epsilon = Fraction(
                max(after * before_of - before * after_of, 0) * limit.numerator,
                before_of * after_of * limit.denominator,
            )
            shares.append((account.id, fraction_to_text(epsilon), fraction_to_text(charge.delta * ATTO)))
        shares.reverse()
        return shares


def _serving(core: CoreCharge) -> tuple[tuple[str, int], ...]:
    return tuple((key, units_down(quality, PICO)) for key, quality in core.served_by)


def serving_of(cores: Mapping[str, Any]) -> dict[str, str]:
    """The releases that served the cores of a query's row, by core key."""
    read = {key: str(item["release"]) for key, item in cores.get("read", {}).items()}
    return {**cores["reused"], **read}


@dataclass(slots=True, kw_only=True)
class Repeat(Reserve):
    """Settles a query at once, when exactly these stored releases serve all of its cores: nothing is charged."""

    releases: dict[str, str]
    answer: bytes
    shared: SharedAnswer | None = None
    again: str | None = None
    name: str = "repeat"

    def _prepare(self, core: CoreCharge) -> PreparedCore:
        # Nothing is charged here, so nobody asks for a loss.
        return PreparedCore(core.core_key, _serving(core), ZERO_LOSS, "")

    def apply(self, batch: Batch) -> ReserveOutcome | None:
        """A retry, or settled with the answer; None, and nothing changed, when `Reserve` would decide otherwise."""
        earlier = self._earlier(batch)
        if earlier is not None:
            return earlier
        path = self._path(batch)
        chosen = self._choose(batch, path)
        leaf, reused = path[-1], chosen.reused
        if chosen.charged or chosen.read or not reused or reused != self.releases:
            return None
        if self.again is not None:
            # Told before, to the letter: no row is needed to tell it once more.
            return ReserveOutcome(self.again, QueryStatus.SETTLED, fresh=False, reused=reused, charged="[]")
        query = self._record(batch, leaf, cores=chosen.stored(), charged="[]")
        query.shared = self.shared
        batch.move(query, QueryStatus.SETTLED, answer=self.answer)
        return ReserveOutcome(query.id, query.state, fresh=True, reused=reused, charged=query.charged)


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
    cores = json.loads(query.cores)
    path = batch.path(query.account)
    if cores["charged"]:
        return path
    reading = {account for item in cores.get("read", {}).values() for account in item["accounts"]}
    return [account for account in path if account.id in reading]


def _close(batch: Batch, query: QueryState, kind: EntryKind) -> None:
    """Writes the closing entry on every account that was charged, root first; what was read is paid for from now on."""
    for account in _charged_accounts(batch, query):
        batch.add_entry(account, kind, query_id=query.id, details="{}")
    for item in json.loads(query.cores).get("read", {}).values():
        for account_id in item["accounts"]:
            batch.add_reading(account_id, release=item["release"], core_key=item["key"], query_id=query.id)


def _keep(batch: Batch, query: QueryState, releases: Sequence[StoredRelease]) -> None:
    """Stores what the query released. ValueError, and nothing changed, for a release that it was not charged for."""
    charged = {core["core_key"]: core for core in json.loads(query.cores)["charged"]}
    rows = []
    for release in releases:
        core = charged.pop(release.core_key, None)
        if core is None:
            raise ValueError("a release must belong to a core that the query was charged for, and to it once")
        events = [event_to_json(event) for event in release.events]
        if (release.principal, release.dataset, release.query_id) != (query.principal, query.dataset, query.id):
            raise ValueError("a release must belong to the principal, the dataset and the query that post it")
        if core["quality"] != units_down(release.quality, PICO) or core["events"] != events:
            raise ValueError("a release must have the quality and the privacy events that were charged")
        rows.append(
            {
                "id": release.id,
                "core_key": release.core_key,
                "quality": core["quality"],
                "principal": release.principal,
                "dataset": release.dataset,
                "query_id": release.query_id,
                "events": canonical_json(events),
                "body": release.body,
                "created": batch.now,
            }
        )
    for row in rows:
        batch.add_release(row)


@dataclass(frozen=True, slots=True)
class Post(_QueryStep):
    """Settles a query: its releases and its answer become durable together with the entries that say so."""

    releases: tuple[StoredRelease, ...]
    answer: bytes
    name: str = "post"

    def apply(self, batch: Batch) -> None:
        """reserved to settled."""
        query = batch.open_query(self.query_id, step="post")
        _keep(batch, query, self.releases)
        _close(batch, query, EntryKind.POST)
        batch.move(query, QueryStatus.SETTLED, answer=self.answer)


@dataclass(frozen=True, slots=True)
class Fail(_QueryStep):
    """Ends a query without an answer; the charge stays, and so does what was released before it failed."""

    releases: tuple[StoredRelease, ...] = ()
    name: str = "fail"

    def apply(self, batch: Batch) -> None:
        """reserved to failed_charged."""
        query = batch.open_query(self.query_id, step="fail")
        _keep(batch, query, self.releases)
        _close(batch, query, EntryKind.FAIL)
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
        charges = dict(batch.charges(query.id))
        path = _charged_accounts(batch, query)
        if charges.keys() != {account.id for account in path}:
            raise ValueError("a reservation is on all its accounts, or nothing of it is given back")
        for account in path:
            amounts = charges[account.id].reversed_sign()
            batch.add_entry(account, EntryKind.VOID, query_id=query.id, details="{}", amounts=amounts)
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
                _close(batch, query, EntryKind.FAIL)
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
                _close(batch, query, EntryKind.FAIL)
                batch.move(query, QueryStatus.FAILED_CHARGED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledge:
    """Records in every root that an older copy of the ledger was put back."""

    actor: str
    reason: str
    lost: dict[str, Any]
    name: str = "acknowledge"
    query_ids: tuple[str, ...] = ()

    def needs(self, needs: Needs) -> None:
        """All roots, of whatever is left."""
        needs.roots = True
        needs.accepts_loss = True

    def apply(self, batch: Batch) -> None:
        """One adjust entry in every root."""
        details = {"action": "acknowledge_restore", "actor": self.actor, "lost": self.lost, "reason": self.reason}
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
