"""Random interleavings of everything that happens to a ledger, with a book of its own that knows what must hold.

Two servers share one ledger. A seed chooses what happens next: a request, a retry, an answer, a failure, a void,
several of them in one batch, a commit whose outcome nobody learns, a process that dies at a named point and starts
again, a clock that jumps either way and with it the windows of accounts, a recovery, an administrator's edit. After
every step the book reads the entries that are new, and the accounts and queries that they are about, with SQL of its
own. `Book.read` says what it checks.
"""

from __future__ import annotations

import contextlib
import datetime
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any
from unittest.mock import patch

from accountant import faults
from accountant.account import FilterKind, Limit
from accountant.entry import Amounts, to_micros
from accountant.errors import (
    AccountExpired,
    AccountFrozen,
    BudgetExhausted,
    IdempotencyConflict,
    IllegalTransition,
    LedgerUnavailable,
)
from accountant.filter import Sums
from accountant.freezing import Freeze, Unfreeze
from accountant.ledger import Ledger
from accountant.operation import Operation
from accountant.operations import ChangeLimit, CreateAccount, Fail, Post, Recover, Touch, Void
from accountant.request import ReserveRequest, StoredRelease
from accountant.reserving import Reserve
from accountant.states import QueryStatus
from accountant.window import ACKNOWLEDGEMENT, WindowKind, WindowMode, WindowWish
from accountant.window_step import ChangeWindow
from accountant.writer import Writer, _Job
from privacy.composition import compose
from privacy.events import Event, GaussianEvent, LaplaceEvent
from tests.accountant.book import CLOSING, PICO, Book, Kept, day_of
from tests.accountant.making import core, sha256
from tests.clocks import Clock

__all__ = ["Killed", "World"]

LEASE_SECONDS = 3600.0
START = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)


class Killed(BaseException):
    """The process ends here."""


@dataclass
class Asked:
    """A request that some client made, and what it was told of it."""

    request: ReserveRequest
    server: int
    told: QueryStatus | None = None


class Server:
    """One process with the ledger open: its steps are decided in this thread, in the order that the seed chooses."""

    def __init__(self, url: str, name: str, clock: Clock[datetime.datetime]) -> None:
        self.clock, self._url, self._name = clock, url, name
        self.steps = 0
        self.ledger = self._open()

    def _open(self) -> Ledger:
        with inline():
            return Ledger(
                self._url, instance=self._name, clock=self.clock, lease_seconds=LEASE_SECONDS, patience_seconds=0
            )

    def run(self, operations: Sequence[Operation[Any]]) -> list[Any]:
        """Results or errors of operations that share a batch."""
        writer = self.ledger._writer
        assert writer is not None
        self.steps += len(operations)
        jobs: list[_Job[Any]] = [_Job(operation) for operation in operations]
        writer._run(jobs)
        for job in jobs:
            faults.reach(f"{job.operation.name}.answered")
        return [job.results[0] if job.error is None else job.error for job in jobs]

    def die(self) -> None:
        """What the end of a process leaves: nothing is committed, and its locks are gone."""
        faults.install(None)
        writer, ledger = self.ledger._writer, self.ledger
        assert writer is not None
        writer._disconnect()
        writer._instance = "nobody"
        writer._closed = True
        writer._queue.put(None)
        ledger._engine.dispose()
        if ledger._owner is not None:
            ledger._owner.close()

    def start(self) -> None:
        """Another process in its place."""
        self.ledger = self._open()


@contextlib.contextmanager
def inline() -> Iterator[None]:
    """Steps inside run in the caller's thread."""

    def submit(self: Writer, operation: Operation[Any]) -> Any:
        job: _Job[Any] = _Job(operation)
        self._run([job])
        if job.error is not None:
            raise job.error
        return job.results[0]

    with patch.object(Writer, "submit", submit):
        yield


class World:
    """Servers, clients and administrators of one ledger, moved by a seed."""

    def __init__(self, url: str, seed: int) -> None:
        self.chance = random.Random(seed)
        self.book = Book(url)
        self.servers = [Server(url, name, Clock(START)) for name in ("a", "b")]
        self.asked: list[Asked] = []
        self.kinds: Counter[str] = Counter()
        self._number = 0
        for dataset, pure in (("pure", True), ("mixed", False)):
            (top,) = self._do(0, [self._account(dataset, None, None, pure=pure)])
            (group,) = self._do(0, [self._account(dataset, top.id, None, pure=pure)])
            for principal in ("ana", "ben"):
                (leaf,) = self._do(0, [self._account(dataset, group.id, principal, pure=pure)])
                if pure and principal == "ana":
                    wish = WindowWish(kind=WindowKind.DAILY, slices=3)
                    self._do(0, [ChangeWindow(account=leaf.id, wish=wish, actor="admin", reason="drill")])
        self.book.read()

    @property
    def steps(self) -> int:
        """How many operations were asked of the ledger."""
        return sum(server.steps for server in self.servers)

    def close(self) -> None:
        """Ends everything, the book last."""
        with inline():
            for server in self.servers:
                server.die()
        self.book.close()

    def step(self) -> None:
        """One thing that happens, of one operation or of a batch of them, and then the book is read."""
        kinds: list[tuple[Callable[[], None], int]] = [
            (self._requests, 40),
            (self._end, 30),
            (self._retry, 8),
            (self._edit, 8),
            (self._crash, 1),
            (self._unknown, 1),
            (self._clock, 3),
            (self._recover, 3),
            (self._again, 2),
        ]
        (what,) = self.chance.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])
        self.kinds[what.__name__] += 1
        what()

    # What happens

    def _requests(self) -> None:
        """Between one and five new requests in one batch."""
        place = self._place()
        asked = [self._new(place) for _ in range(self.chance.choice((1, 1, 1, 2, 5)))]
        now = max(to_micros(self.servers[place].clock.now), self.book.time)
        results = self._do(place, [Reserve(request=one.request) for one in asked])
        self._judge(asked, results, now)

    def _judge(self, asked: Sequence[Asked], results: Sequence[Any], now: int) -> None:
        """Each is admitted exactly where it fits what stood before it, in the order of the batch."""
        before = {name: (kept.spent, kept.day, dict(kept.today)) for name, kept in self.book.accounts.items()}
        fitting: list[bool] = []
        for one in asked:
            events = [event for charge in one.request.cores for event in charge.events]
            fits_now = self.book.admits(one.request.account, events, now)
            fitting.append(fits_now)
            paying = not (self.book.accounts[one.request.account].frozen or self.book.ended(one.request.account, now))
            if fits_now and paying:
                self._pretend(one, day_of(now))
        for name, (spent, day, today) in before.items():
            kept = self.book.accounts[name]
            kept.spent, kept.day, kept.today = spent, day, today
        self.book.read()
        for one, result, fits_now in zip(asked, results, fitting, strict=True):
            identifier = one.request.query_id
            if self.book.ended(one.request.account, now):
                # Ended and frozen: either reason is one.
                assert isinstance(result, (AccountExpired, AccountFrozen)), f"it had ended: {result!r}"
            elif self.book.accounts[one.request.account].frozen:
                assert isinstance(result, AccountFrozen), f"a frozen account was not refused: {result!r}"
            elif fits_now:
                assert not isinstance(result, BaseException), f"refused for a reason other than budget: {result!r}"
                assert result.fresh
                assert set(self.book.charges[identifier]) == set(self.book.path(one.request.account))
                one.told = QueryStatus.RESERVED
                self.asked.append(one)
            else:
                assert isinstance(result, BudgetExhausted), f"admitted beyond the budget: {result!r}"
                assert identifier not in self.book.charges

    def _pretend(self, one: Asked, day: int) -> None:
        charge = Sums.of(compose(tuple(e for c in one.request.cores for e in c.events)))
        for name in self.book.path(one.request.account):
            kept = self.book.accounts[name]
            more = Amounts.of_charge(charge, spent=kept.spent, branches=kept.branches)
            kept.spent = kept.spent.plus(more)
            kept.turn(day)
            kept.today[one.request.query_id] = more.pure

    def _end(self) -> None:
        """Some open requests come to their ends, on the servers that run them."""
        open_ones = self._open_ones()
        self.chance.shuffle(open_ones)
        place = self._place()
        mine = [one for one in open_ones if one.server == place][: self.chance.choice((1, 1, 2, 6))]
        operations = [self._ending(one) for one in mine]
        for one, operation, result in zip(mine, operations, self._do(place, operations), strict=True):
            assert result is None, f"an open query could not be ended: {result!r}"
            one.told = QueryStatus(CLOSING[operation.name])
        self.book.read()
        for one in mine:
            assert self.book.states[one.request.query_id] == one.told

    def _ending(self, one: Asked) -> Operation[None]:
        identifier = one.request.query_id
        kind = self.chance.choices(("post", "fail", "void"), (7, 2, 1))[0]
        if kind == "void":
            return Void(identifier)
        releases = self._releases(one) if kind == "post" else ()
        return Post(identifier, releases, b"answer of " + identifier.encode()) if kind == "post" else Fail(identifier)

    def _retry(self) -> None:
        """A client that asks again, anywhere: the same query and never a second charge; or another body."""
        keyed = [one for one in self.asked if one.request.idempotency_key is not None]
        if not keyed:
            return
        one = self.chance.choice(keyed[-60:])
        other = self.chance.random() < 0.2
        changes = {"query_id": self._identifier(), "body_hash": sha256("other" if other else "body")}
        again = replace(one.request, **changes)
        before = self.book.sequence
        (result,) = self._do(self._place(), [Reserve(request=again)])
        self.book.read()
        assert self.book.sequence == before, "a retry was charged"
        if other:
            assert isinstance(result, IdempotencyConflict)
        else:
            assert (result.query_id, result.fresh) == (one.request.query_id, False)
            assert result.state == self.book.states[one.request.query_id]

    def _again(self) -> None:
        """An end after the end: refused, and nothing moves."""
        ended = [one for one in self.asked[-80:] if self.book.states[one.request.query_id] != "reserved"]
        if not ended:
            return
        before = self.book.sequence
        (result,) = self._do(self._place(), [self._ending(self.chance.choice(ended))])
        self.book.read()
        assert isinstance(result, IllegalTransition), "an end after the end was not refused"
        assert self.book.sequence == before

    def _edit(self) -> None:
        """An administrator's act."""
        (result,) = self._do(self._place(), [self._an_edit()])
        moved = self.book.read()
        if isinstance(result, BaseException):
            # A frozen account, a limit below the amount of a window, or an end that has come already.
            assert isinstance(result, (AccountFrozen, AccountExpired, ValueError)), result
            assert not moved, "what was refused changed something"

    def _an_edit(self) -> Operation[Any]:
        """Another limit, window or person, or an account that is frozen or free again."""
        name = self.chance.choice(list(self.book.accounts))
        kept = self.book.accounts[name]
        kind = self.chance.choice(("limit", "limit", "limit", "freeze", "account", "window"))
        operation: Operation[Any]
        if kind == "account" and len(self.book.accounts) < 24:
            top = next(one for one in self.book.accounts if self.book.accounts[one].parent is None)
            pure = self.book.accounts[top].kind is FilterKind.PURE
            operation = self._account("pure", top, f"person {len(self.book.accounts)}", pure=pure)
            if self.chance.random() < 0.5:
                # An envelope, as one person lends it to another.
                hours = self.chance.choice((1, 30, 24 * 20))
                operation = replace(operation, expires=self.book.time + hours * 3_600_000_000)
        elif kind == "window" and kept.kind is FilterKind.PURE:
            operation = ChangeWindow(account=name, wish=self._wish(kept), actor="admin", reason="drill")
        elif kind == "freeze" and kept.principal is not None:
            edit = Unfreeze(
                principal=kept.principal,
                accounts=tuple(one for one, other in self.book.accounts.items() if other.principal == kept.principal),
                actor="admin",
                reason="drill",
                beside=lambda *_: None,
            )
            frozen = any(other.frozen for other in self.book.accounts.values() if other.principal == kept.principal)
            operation = (
                edit
                if frozen
                else Freeze(principal=kept.principal, actor="admin", reason="drill", beside=lambda *_: None)
            )
        else:
            grown = kept.limit.epsilon * self.chance.choice((Fraction(3, 4), Fraction(9, 8), 2))
            epsilon = max(Fraction(1, 2), min(Fraction(4000), grown)) // PICO * PICO
            operation = ChangeLimit(account=name, limit=Limit(epsilon, kept.limit.delta), actor="admin", reason="drill")
        return operation

    def _wish(self, kept: Kept) -> WindowWish | None:
        """None for an account that has a window."""
        if kept.window is not None:
            return None
        if self.chance.random() < 0.5:
            return WindowWish(kind=WindowKind.DAILY, slices=self.chance.choice((2, 3, 10)))
        amount = kept.limit.epsilon / 4 // PICO * PICO
        return WindowWish(
            kind=WindowKind.DAILY,
            mode=WindowMode.RESET,
            limit=Limit(amount, Fraction(0)),
            acknowledge=ACKNOWLEDGEMENT,
        )

    def _crash(self) -> None:
        """A process dies at a point of a batch of requests, ends and an edit; another one takes its place."""
        place = self._place()
        asked = [self._new(place) for _ in range(self.chance.choice((1, 3)))]
        open_ones = [one for one in self._open_ones() if one.server == place][:2]
        operations: list[Operation[Any]] = [Reserve(request=one.request) for one in asked]
        operations += [self._ending(one) for one in open_ones]
        edited = self.chance.random() < 0.5
        if edited:
            operations.append(self._an_edit())
        name = self.chance.choice([operation.name for operation in operations])
        point = f"{name}.{self.chance.choice(('decided', 'written', 'before_commit', 'after_commit', 'answered'))}"

        def killer(reached: str) -> None:
            if reached == point:
                raise Killed

        server = self.servers[place]
        faults.install(killer)
        killed = True
        try:
            server.run(operations)
            killed = False
        except Killed:
            pass
        finally:
            faults.install(None)
        # A batch in which nothing is written ends early, and with it a point may not be passed.
        if killed:
            server.die()
            server.start()
        moved = self.book.read()
        # A limit that is lowered below what the same batch charges makes each of its steps run alone.
        durable = point.endswith(("after_commit", "answered")) or edited or not killed
        assert durable or not [row for row in moved if row["query_id"] in {one.request.query_id for one in asked}]
        self._learn(asked)

    def _unknown(self) -> None:
        """The link breaks at a commit, before or after it happens: the client is served, or told that nobody knows."""
        place = self._place()
        asked = [self._new(place) for _ in range(2)]
        server = self.servers[place]
        dialect: Any = server.ledger._engine.dialect
        happens = self.chance.random() < 0.5
        original, left = dialect.do_commit, [self.chance.choice((1, 2))]

        def commit(connection: Any) -> None:
            if not left[0]:
                original(connection)
                return
            left[0] -= 1
            if happens:
                original(connection)
            else:
                connection.rollback()
            raise dialect.loaded_dbapi.OperationalError("the connection is gone")

        dialect.do_commit = commit
        try:
            results = server.run([Reserve(request=one.request) for one in asked])
        finally:
            del dialect.do_commit
        self.book.read()
        for one, result in zip(asked, results, strict=True):
            if isinstance(result, LedgerUnavailable):
                continue
            charged = one.request.query_id in self.book.charges
            assert charged is not isinstance(result, (BudgetExhausted, AccountFrozen, AccountExpired)), result
        self._learn(asked)
        # What was left of callers that were told nothing is failed, and charged, by the next batch.
        unanswered = [one for one, result in zip(asked, results, strict=True) if isinstance(result, LedgerUnavailable)]
        if unanswered:
            self._do(place, [Touch()])
            self.book.read()
            for one in unanswered:
                assert self.book.states.get(one.request.query_id) in (None, "failed_charged")

    def _learn(self, asked: Sequence[Asked]) -> None:
        """What is known of requests whose clients heard nothing: the ledger says."""
        self.asked += [one for one in asked if one.request.query_id in self.book.charges]

    def _clock(self) -> None:
        """A clock jumps, by minutes or by days, either way."""
        hours = self.chance.choice((-48, -1, 0.1, 0.5, 2, 30))
        self.servers[self._place()].clock.now += datetime.timedelta(hours=hours)

    def _recover(self) -> None:
        """Open queries of processes that are taken for dead are failed, and stay charged."""
        place, before = self._place(), {one.request.query_id for one in self._open_ones()}
        spent = {name: kept.spent for name, kept in self.book.accounts.items()}
        (count,) = self._do(place, [Recover()])
        self.book.read()
        gone = {identifier for identifier in before if self.book.states[identifier] != "reserved"}
        assert len(gone) == count
        assert all(self.book.states[identifier] == "failed_charged" for identifier in gone)
        assert spent == {name: kept.spent for name, kept in self.book.accounts.items()}, "a recovery gave back"

    # What it is made of

    def _do(self, place: int, operations: Sequence[Operation[Any]]) -> list[Any]:
        return self.servers[place].run(operations) if operations else []

    def _place(self) -> int:
        return self.chance.randrange(len(self.servers))

    def _identifier(self) -> str:
        self._number += 1
        return f"q_{self._number:08d}"

    def _open_ones(self) -> list[Asked]:
        return [one for one in self.asked[-400:] if self.book.states[one.request.query_id] == "reserved"]

    def _account(self, dataset: str, parent: str | None, principal: str | None, *, pure: bool) -> CreateAccount:
        self._number += 1
        epsilon = Fraction(24 if parent is None else 30 if principal is None else 15)
        return CreateAccount(
            id=f"b_{self._number:08d}",
            dataset=dataset,
            parent=parent,
            principal=principal,
            account_name=principal or "shared",
            limit=Limit(epsilon, Fraction(0) if pure else Fraction(1, 10**5)),
            filter=FilterKind.PURE if pure else FilterKind.APPROXIMATE,
            actor="admin",
        )

    def _new(self, place: int) -> Asked:
        leaves = [name for name, kept in self.book.accounts.items() if kept.principal is not None]
        account = self.chance.choice(leaves)
        kept = self.book.accounts[account]
        size = self.chance.choice((Fraction(1, 10), Fraction(1, 7), Fraction(1), Fraction(3)))
        event: Event = LaplaceEvent(l1_sensitivity=size, scale=Fraction(1))
        if kept.kind is not FilterKind.PURE and self.chance.random() < 0.5:
            event = GaussianEvent(l2_squared=size / 10, variance=Fraction(1))
        identifier = self._identifier()
        request = ReserveRequest(
            query_id=identifier,
            principal=str(kept.principal),
            account=account,
            body_hash=sha256("body"),
            cores=(core(identifier, event),),
            idempotency_key=f"key {identifier}" if self.chance.random() < 0.7 else None,
            reuse="none",  # type: ignore[arg-type]
        )
        return Asked(request, place)

    def _releases(self, one: Asked) -> tuple[StoredRelease, ...]:
        dataset = next(
            row["dataset"] for row in self.book.rows(f"SELECT dataset FROM accounts WHERE id = '{one.request.account}'")
        )
        return tuple(
            StoredRelease(
                id=f"r_{one.request.query_id}_{place}",
                core_key=charge.core_key,
                quality=charge.quality,
                principal=one.request.principal,
                dataset=dataset,
                query_id=one.request.query_id,
                events=charge.released,
                body=b"noisy",
            )
            for place, charge in enumerate(one.request.cores)
        )
