"""Reserving a query, or settling one again: which release serves which core, and what the others are charged."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

from accountant.batch import Batch, Needs
from accountant.entry import Amounts, canonical_json, from_micros
from accountant.errors import (
    AccountExpired,
    AccountFrozen,
    BudgetExhausted,
    IdempotencyConflict,
    PriceMoved,
    UnknownAccount,
)
from accountant.filter import Sums
from accountant.reading import Read, choose_candidate
from accountant.request import Base, CoreCharge, ReserveRequest, Reuse, SharedAnswer
from accountant.rows import AccountState, QueryState, ReleaseHead, StoredCores
from accountant.states import EntryKind, QueryStatus
from privacy.composition import compose
from privacy.events import event_to_json
from privacy.events.event import fraction_to_text
from privacy.loss import ZERO_LOSS, Loss
from privacy.numbers import ATTO, PICO, units_down
from privacy.values import Json

__all__ = ["Repeat", "Reserve", "ReserveOutcome", "serving_of"]


@dataclass(frozen=True, slots=True)
class PreparedCore:
    """A core whose loss was computed from its events, before the transaction and by the ledger itself."""

    core_key: str
    serving: tuple[tuple[str, int], ...]
    loss: Loss
    stored: str
    lent: bool
    base: Base | None = None
    joined: tuple[tuple[str, int], ...] = ()


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
    acted: tuple[str, str] | None = None
    """Who asked on whose behalf; None where the principal asked."""

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

    def _json(self, read: Json) -> str:
        charged = ",".join(core.stored for core in self.charged)
        named = f'"read":{canonical_json(read)},' if read else ""
        actor, principal = "", ""
        if self.acted is not None:
            service, person = self.acted
            actor, principal = f'"actor":{canonical_json(service)},', f'"principal":{canonical_json(person)},'
        return f'{{{actor}"charged":[{charged}],{principal}{named}"reused":{canonical_json(self.reused)}}}'

    def loss(self, account: str) -> Loss | None:
        """What one account is charged, None when it is charged nothing."""
        losses = [core.loss for core in self.charged]
        losses += [read.loss for read in self.read if account in read.accounts]
        return None if not losses else losses[0] if len(losses) == 1 else sum(losses, ZERO_LOSS)

    def serving(self) -> dict[str, str]:
        """The release that serves each core which is not measured anew."""
        return {**self.reused, **{read.core_key: read.release for read in self.read}}


@dataclass(slots=True, kw_only=True)
class _Request(ABC):
    """Shared by the steps that a request begins with: what it was earlier, and which release serves which core."""

    request: ReserveRequest
    query_ids: tuple[str, ...] = field(init=False)
    description: str = field(init=False)
    cores: tuple[PreparedCore, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.query_ids = (self.request.query_id,)
        self.description = canonical_json(dict(self.request.description))
        self.cores = tuple(self._prepare(core) for core in self.request.cores)

    @abstractmethod
    def _prepare(self, core: CoreCharge) -> PreparedCore:
        """What the decision looks at of a core."""

    def needs(self, needs: Needs) -> None:
        """The path, the query by identifier and by key, and releases of the cores."""
        needs.accounts.add(self.request.account)
        needs.queries.add(self.request.query_id)
        if self.request.idempotency_key is not None:
            needs.keys.add((self.request.principal, self.request.idempotency_key))
        if self.request.reuse != Reuse.NONE:
            owner = "" if self.request.reuse == Reuse.ANY else self.request.principal
            needs.cores.update((owner, key) for core in self.cores for key, _ in (*core.serving, *core.joined))
            bases = [key for core in self.cores if core.base is not None for key in core.base.keys]
            needs.cores.update((owner, key) for key in bases)
        if self.request.reuse == Reuse.CHARGED:
            lent = [core for core in self.cores if core.lent]
            needs.shared.update(
                (self.request.account, *serving) for core in lent for serving in (*core.serving, *core.joined)
            )
            of_lent = [key for core in lent if core.base is not None for key in core.base.keys]
            needs.shared.update((self.request.account, key, 1) for key in of_lent)

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
        """The accounts that pay, root first.

        Errors: UnknownAccount, also for somebody else's; AccountFrozen and AccountExpired, also of one above.
        """
        path = batch.path(self.request.account)
        if path[-1].principal is not None and path[-1].principal != self.request.principal:
            raise UnknownAccount(self.request.account)
        if any(account.frozen for account in path):
            raise AccountFrozen(self.request.account)
        if any(account.expires is not None and account.expires <= batch.now for account in path):
            raise AccountExpired(self.request.account)
        return path

    def _choose(self, batch: Batch, path: list[AccountState]) -> Chosen:
        """Which release serves which core for free or for a charge, and the cores that none serves."""
        reused: dict[str, str] = {}
        read: list[Read] = []
        charged: list[PreparedCore] = []
        for core in self.cores:
            release = self._free(batch, core, path[-1])
            if release is not None:
                reused[core.core_key] = release.id
                continue
            if together := self._together(batch, core, path[-1]):
                reused |= together
                continue
            other = None
            if self.request.reuse == Reuse.CHARGED and core.lent:
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
                    now=batch.now,
                )
            if other is None:
                charged.append(core)
            elif other.accounts:
                read.append(other)
            else:
                reused[core.core_key] = other.release
        acting = self.request.actor
        acted = None if acting is None else (acting, self.request.principal)
        return Chosen(reused, tuple(read), tuple(charged), acted)

    def _free(self, batch: Batch, core: PreparedCore, leaf: AccountState) -> ReleaseHead | None:
        """The release that serves for free: the best of the first key that has one which is good enough."""
        if self.request.reuse == Reuse.NONE:
            return None
        for key, least in core.serving:
            known = self._known(batch, core, leaf, key, least)
            if known:
                return max(known, key=_rank)
        return None

    def _together(self, batch: Batch, core: PreparedCore, leaf: AccountState) -> dict[str, str]:
        """The releases that serve a core together for free, by the keys they are kept under; none where one is missing.

        Each is one that would serve by itself: the principal's own, everybody's, or one that was charged for reading.
        """
        found: dict[str, str] = {}
        if self.request.reuse == Reuse.NONE:
            return found
        for place, (key, least) in enumerate(core.joined):
            known = self._known(batch, core, leaf, key, least)
            if not known:
                return {}
            found[key if place else core.core_key] = max(known, key=_rank).id
        return found

    def _known(self, batch: Batch, core: PreparedCore, leaf: AccountState, key: str, least: int) -> list[ReleaseHead]:
        """The best releases of a key: one's own, or everybody's, and one that was charged for reading before."""
        owner = None if self.request.reuse == Reuse.ANY else self.request.principal
        best = batch.best_release(key, dataset=leaf.dataset, quality=least, principal=owner)
        # The batch knows what the account read whenever one of its requests may use that: this one must, too.
        charged = self.request.reuse == Reuse.CHARGED and core.lent
        read = batch.best_read(leaf.id, key, dataset=leaf.dataset, quality=least) if charged else None
        return [release for release in (best, read) if release is not None]

    def _check_bases(self, batch: Batch, leaf: AccountState, charged: Sequence[PreparedCore]) -> None:
        """Errors: PriceMoved where another release is the best by now than the one that a core's price rests on."""
        for core in charged:
            if core.base is None:
                continue
            known = []
            if self.request.reuse != Reuse.NONE:
                known = [one for key in core.base.keys for one in self._known(batch, core, leaf, key, 1)]
            if not known or max(known, key=_rank).id != core.base.release:
                raise PriceMoved(leaf.id)

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
            created=batch.clock,
        )
        batch.add_query(query)
        return query


@dataclass(slots=True, kw_only=True)
class Reserve(_Request):
    """Charges a query on every account of its path, or finds that it was charged before."""

    name: str = "reserve"

    def _prepare(self, core: CoreCharge) -> PreparedCore:
        quality = units_down(core.quality, PICO)
        stored: dict[str, Json] = {
            "core_key": core.core_key,
            "events": [event_to_json(event) for event in core.events],
            "quality": quality,
        }
        if core.base is not None:
            events: Json = [event_to_json(event) for event in core.base.events]
            stored["base"] = {"events": events, "release": core.base.release}
        return PreparedCore(
            core.core_key,
            _in_picos(core.served_by),
            core.events[0].loss() if len(core.events) == 1 else compose(core.events),
            canonical_json(stored),
            core.lent,
            core.base,
            _in_picos(core.joined),
        )

    def apply(self, batch: Batch) -> ReserveOutcome:
        """Decides: a retry, a reuse, a refusal or a charge."""
        earlier = self._earlier(batch)
        if earlier is not None:
            return earlier
        path = self._path(batch)
        chosen = self._choose(batch, path)
        self._check_bases(batch, path[-1], chosen.charged)
        serving = chosen.serving()
        if any(serving.get(key) != release for key, release in self.request.inputs.items()):
            raise PriceMoved(path[-1].id)
        cores = chosen.stored()
        shares = self._debit(batch, path, chosen, cores)
        query = self._record(batch, path[-1], cores=cores, charged=canonical_json(shares))
        return ReserveOutcome(
            query.id,
            query.state,
            fresh=True,
            reused=serving,
            charged=query.charged,
            read=frozenset(read.core_key for read in chosen.read),
        )

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
            if not account.admits(charge, batch.now):
                raise _exhausted(account, loss, now=batch.now, clock=batch.clock)
            debits.append((account, charge))
        self._check_price(path[-1], chosen)
        shares = []
        for account, charge in debits:
            before, before_of = account.used_share()
            batch.add_entry(
                account,
                EntryKind.RESERVE,
                query_id=self.request.query_id,
                details=chosen.details(account.id) if chosen.read else cores,
                amounts=Amounts.of_charge(charge, spent=account.spent, branches=account.branches, sums=account.sums),
            )
            after, after_of = account.used_share()
            limit = account.limit.epsilon
            epsilon = _ratio_text(
                max(after * before_of - before * after_of, 0) * limit.numerator,
                before_of * after_of * limit.denominator,
            )
            shares.append((account.id, epsilon, _attos_text(charge.delta)))
        shares.reverse()
        return shares

    def _check_price(self, leaf: AccountState, chosen: Chosen) -> None:
        """Errors: PriceMoved. What is read for a charge was compared with what it would cost anew, as it is now."""
        if self.request.charges and not chosen.charged and not chosen.read:
            raise PriceMoved(leaf.id)
        most = self.request.most
        if most is not None and chosen.charged:
            fresh = sum((core.loss for core in chosen.charged), ZERO_LOSS)
            if leaf.cost(Sums.of(fresh)) > most:
                raise PriceMoved(leaf.id)


def _ratio_text(numerator: int, denominator: int) -> str:
    """As `fraction_to_text`, without the fraction."""
    common = math.gcd(numerator, denominator)
    return f"{numerator // common}/{denominator // common}"


@lru_cache(maxsize=256)
def _attos_text(delta: int) -> str:
    return fraction_to_text(delta * ATTO)


def _exhausted(state: AccountState, loss: Loss, *, now: int, clock: int) -> BudgetExhausted:
    """Why an account does not pay now, and when its window would let the charge through.

    When it turns is computed from the machine's clock: the ledger's time may be the moment of somebody's entry.
    """
    account = state.account(now)
    available = account.available_at(loss)
    turns = None if state.window is None else state.window.turn_after_moment(clock)
    return BudgetExhausted(
        account.id,
        root=account.parent is None,
        shortages=account.explain_refusal(loss),
        available_at=None if available is None else from_micros(available),
        turns_at=None if turns is None else from_micros(turns),
    )


def _rank(release: ReleaseHead) -> tuple[int, int, str]:
    """Of two releases of one core the more exact one serves, of equal ones the newest."""
    return release.quality, release.created, release.id


def _in_picos(served: Sequence[tuple[str, Fraction]]) -> tuple[tuple[str, int], ...]:
    return tuple((key, units_down(quality, PICO)) for key, quality in served)


def serving_of(cores: StoredCores) -> dict[str, str]:
    """The releases that served the cores of a query's row, by core key."""
    read = {key: item["release"] for key, item in cores.get("read", {}).items()}
    return {**cores["reused"], **read}


@dataclass(slots=True, kw_only=True)
class Repeat(_Request):
    """Settles a query at once, when exactly these stored releases serve all of its cores: nothing is charged."""

    releases: dict[str, str]
    answer: bytes
    shared: SharedAnswer | None = None
    again: str | None = None
    name: str = "repeat"

    def _prepare(self, core: CoreCharge) -> PreparedCore:
        # Nothing is charged here, so nobody asks for a loss.
        return PreparedCore(
            core.core_key, _in_picos(core.served_by), ZERO_LOSS, "", core.lent, joined=_in_picos(core.joined)
        )

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
            # Returned before, to the letter: no row is needed to return it once more.
            return ReserveOutcome(self.again, QueryStatus.SETTLED, fresh=False, reused=reused, charged="[]")
        query = self._record(batch, leaf, cores=chosen.stored(), charged="[]")
        query.shared = self.shared
        batch.move(query, QueryStatus.SETTLED, answer=self.answer)
        return ReserveOutcome(query.id, query.state, fresh=True, reused=reused, charged=query.charged)
