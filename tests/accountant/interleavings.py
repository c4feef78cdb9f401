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
import functools
import hashlib
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any
from unittest.mock import patch

from sqlalchemy import create_engine

from accountant import faults
from accountant.account import FilterKind, Limit
from accountant.entry import Amounts, to_micros
from accountant.errors import (
    AccountFrozen,
    BudgetExhausted,
    IdempotencyConflict,
    IllegalTransition,
    LedgerUnavailable,
)
from accountant.filter import Branches, Sums, fits, split_limit
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
from tests.accountant.making import core, sha256
from tests.clocks import Clock

__all__ = ["Book", "Killed", "World"]

PICO, ATTO = Fraction(1, 10**12), Fraction(1, 10**18)
LEASE_SECONDS = 3600.0
START = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)
AMOUNTS = Amounts._fields
SPENT = ("spent_pure", "spent_delta", "spent_rho", "spent_mu_squared", "unbounded_pure", "unbounded_rho")
SPENT_ALL = (*SPENT, "unbounded_mu_squared", "spent_mixed_pure", "spent_mixed_mu_squared", "unbounded_mixed")
CLOSING = {"post": "settled", "fail": "failed_charged", "void": "failed_void"}


class Killed(BaseException):
    """The process ends here."""


@dataclass
class Kept:
    """An account as the entries say it is."""

    parent: str | None
    principal: str | None
    kind: FilterKind
    shares: Any
    limit: Limit
    spent: Amounts = field(default_factory=Amounts)
    count: int = 0
    hash: str = "0" * 64
    frozen: bool = False
    window: Any = None
    """The rule of its window, as its entry has it: of days, and of pure accounts only."""
    day: int = 0
    """The day whose charges `today` has, by query, in picos."""
    today: dict[str, int] = field(default_factory=dict)

    def unlocked(self, amount: int, day: int) -> bool:
        """Whether the window lets that many picos through on a day."""
        if self.window is None:
            return True
        first = _day_of(self.window["first"])
        if day < first:
            return False
        if self.window["mode"] == "slices":
            slices = self.window["slices"]
            open_now = min(day - first + 1, slices)
            return (self.spent.pure + amount) * slices * PICO <= open_now * self.limit.epsilon
        used = sum(self.today.values()) if day <= self.day else 0
        return (used + amount) * PICO <= Fraction(self.window["limit"]["epsilon"])

    def turn(self, day: int) -> None:
        """Begins a new day, where it is one."""
        if day > self.day:
            self.day, self.today = day, {}

    @property
    def branches(self) -> Branches:
        """Its budgets by now."""
        return _branches(self.limit, self.kind, self.shares)


def _day_of(date: str) -> int:
    return (datetime.date.fromisoformat(date) - datetime.date(1970, 1, 1)).days


def _day(micros: int) -> int:
    return micros // 86_400_000_000


_branches = functools.lru_cache(maxsize=512)(split_limit)


class Book:
    """What the entries say, added up by other code than the ledger's."""

    def __init__(self, url: str) -> None:
        self._engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
        self._connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        self._connection.exec_driver_sql("SELECT 1").close()
        self.sequence, self.head, self.time = 0, "0" * 64, 0
        self.accounts: dict[str, Kept] = {}
        self.charges: dict[str, dict[str, Amounts]] = {}
        self.states: dict[str, str] = {}
        self.counts: Counter[str] = Counter()
        self.locked = 0
        """Requests that a window alone refused."""

    def close(self) -> None:
        """Ends its connection."""
        self._connection.close()
        self._engine.dispose()

    def rows(self, statement: str) -> list[dict[str, Any]]:
        """Rows by name."""
        cursor = self._connection.connection.cursor()
        cursor.execute(statement)
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def path(self, account: str) -> list[str]:
        """The account and all above it."""
        path = [account]
        while (parent := self.accounts[path[-1]].parent) is not None:
            path.append(parent)
        return path

    def admits(self, account: str, events: Sequence[Event], now: int) -> bool:
        """Whether the charge fits everywhere, by the entries until now, at this moment of the ledger."""
        charge = Sums.of(compose(tuple(events)))
        for name in self.path(account):
            kept = self.accounts[name]
            if not fits(kept.spent.sums().plus(charge, kept.branches), kept.branches):
                return False
            if not kept.unlocked(charge.pure or 0, _day(now)):
                self.locked += 1
                return False
        return True

    def read(self) -> list[Any]:
        """Reads the entries that are new and returns them. Fails where an invariant does not hold:

        chains without gaps, every hash recomputed with an encoder of its own; time never falls; a query is charged
        once on each account of one whole path, and ended once on each; a void takes back what was charged, nothing
        else does; nothing is charged beyond a limit, or what a window has unlocked, on any account; balances, heads
        and states of queries are what the entries add up to.
        """
        new = self.rows(f"SELECT * FROM entries WHERE sequence > {self.sequence} ORDER BY sequence")
        touched: set[str] = set()
        for row in new:
            self._entry(row)
            if row["query_id"] is not None:
                touched.add(row["query_id"])
        for query in touched:
            self._whole(query)
        self._balances()
        for row in self.rows(f"SELECT id, state FROM queries WHERE id IN ({_listed(touched)})") if touched else []:
            assert row["state"] == self.states[row["id"]], "a query is in another state than its entries say"
        return new

    def _entry(self, row: Any) -> None:
        assert row["sequence"] == self.sequence + 1, "an entry is missing"
        assert row["previous"] == self.head, "the ledger's chain is broken"
        assert row["created"] >= self.time, "the ledger's time fell"
        account = self.accounts.get(row["account"])
        amounts = Amounts(*(row[name] for name in AMOUNTS))
        kind, query, details = row["kind"], row["query_id"], row["details"]
        keeps = details != "{}" and kind in ("post", "fail")
        mixed = keeps or any(amounts[7:])
        fields = [
            "entry/3" if keeps else "entry/2" if mixed else "entry/1",
            *(row["sequence"], row["account"], row["account_sequence"], kind, query),
            list(amounts if mixed else amounts[:7]),
            *(details, row["created"], row["account_previous"], row["previous"]),
        ]
        digest = hashlib.sha256(json.dumps(fields, separators=(",", ":")).encode()).hexdigest()
        assert row["hash"] == digest, "an entry's hash is not that of its fields"
        if kind == "grant":
            account = self.accounts[row["account"]] = self._granted(json.loads(details))
        assert account is not None, "an account has an entry before its grant"
        assert row["account_sequence"] == account.count + 1, "an entry of the account is missing"
        assert row["account_previous"] == account.hash, "the account's chain is broken"
        before = account.spent
        if kind == "reserve":
            self._charged(row["account"], account, query, amounts, _day(row["created"]))
        elif kind in CLOSING:
            self._ended(row["account"], query, kind, amounts)
            if kind == "void":
                account.today.pop(query, None)
        else:
            assert amounts == Amounts(), "an edit moved an amount"
            if kind == "adjust":
                _adjust(account, json.loads(details), _day(row["created"]))
        account.spent = Amounts(*(mine + more for mine, more in zip(before, amounts, strict=True)))
        account.count, account.hash = row["account_sequence"], digest
        self.sequence, self.head, self.time = row["sequence"], digest, row["created"]
        self.counts[kind] += 1

    @staticmethod
    def _granted(details: Any) -> Kept:
        from accountant.entry import read_shares
        from accountant.filter import DEFAULT_SHARES

        shares = read_shares(details["delta_shares"]) if "delta_shares" in details else DEFAULT_SHARES
        limit = Limit(Fraction(details["limit"]["epsilon"]), Fraction(details["limit"]["delta"]))
        return Kept(details["parent"], details["principal"], FilterKind(details["filter"]), shares, limit)

    def _charged(self, name: str, account: Kept, query: str, amounts: Amounts, day: int) -> None:
        of_query = self.charges.setdefault(query, {})
        assert name not in of_query, "a query is charged twice on one account"
        assert query not in self.states or self.states[query] == "reserved", "a query is charged after its end"
        assert all(amount >= 0 for amount in amounts), "a charge gives something back"
        of_query[name] = amounts
        self.states[query] = "reserved"
        total = Amounts(*(mine + more for mine, more in zip(account.spent, amounts, strict=True)))
        assert fits(total.sums(), account.branches), "an account spent more than it was granted"
        assert not account.frozen, "a frozen account was charged"
        assert account.unlocked(amounts.pure, day), "an account spent what its window had not unlocked"
        account.turn(day)
        account.today[query] = amounts.pure
        if account.kind is FilterKind.PURE:
            # Without the filter's help.
            assert total.pure * PICO <= account.limit.epsilon, "a pure account spent more than its epsilon"
            assert total.unbounded_pure == 0, "a pure account was charged without a bound"

    def _ended(self, name: str, query: str, kind: str, amounts: Amounts) -> None:
        assert name in self.charges.get(query, {}), "a query ends on an account that it was not charged on"
        wanted = [-amount for amount in self.charges[query][name]] if kind == "void" else [0] * len(amounts)
        assert list(amounts) == wanted, "an end moves another amount than it must"
        ended = self.states.get(f"{query} {name}")
        assert ended is None, "a query ended twice"
        self.states[f"{query} {name}"] = CLOSING[kind]
        assert self.states[query] in ("reserved", CLOSING[kind]), "a query ended in two ways"
        self.states[query] = CLOSING[kind]

    def _whole(self, query: str) -> None:
        charged = self.charges[query]
        leaf = max(charged, key=lambda name: len(self.path(name)))
        assert set(charged) == set(self.path(leaf)), "a query is not charged on its whole path"
        ends = {self.states.get(f"{query} {name}") for name in charged}
        assert len(ends) == 1, "a query ended on a part of its path"

    def _balances(self) -> None:
        (head,) = self.rows("SELECT sequence, hash FROM ledger_meta")
        assert (head["sequence"], head["hash"]) == (self.sequence, self.head), "the ledger's head is another entry"
        rows = self.rows("SELECT * FROM accounts")
        assert {row["id"] for row in rows} == set(self.accounts), "there are accounts without a grant, or the reverse"
        for row in rows:
            kept = self.accounts[row["id"]]
            assert tuple(row[name] for name in SPENT_ALL) == tuple(kept.spent), (
                "a balance is not the sum of its entries"
            )
            assert (row["entries"], row["hash"]) == (kept.count, kept.hash), "an account's head is another entry"
            assert (row["limit_epsilon"], row["limit_delta"]) == (kept.limit.epsilon / PICO, kept.limit.delta / ATTO)
            assert bool(row["frozen"]) is kept.frozen, "an account is frozen without an entry, or the reverse"

    def add_up(self, order: random.Random) -> None:
        """Totals in another order: whatever order the charges that stand are added in, the sums are those balances."""
        standing = [query for query in self.charges if self.states[query] != "failed_void"]
        order.shuffle(standing)
        totals: dict[str, list[int]] = {name: [0] * len(AMOUNTS) for name in self.accounts}
        for query in standing:
            for name, amounts in self.charges[query].items():
                totals[name] = [mine + more for mine, more in zip(totals[name], amounts, strict=True)]
        for name, kept in self.accounts.items():
            assert tuple(totals[name]) == tuple(kept.spent), "the total depends on the order of charges"


def _listed(names: set[str]) -> str:
    return ", ".join(f"'{name}'" for name in sorted(names))


def _adjust(account: Kept, details: Any, day: int) -> None:
    action = details["action"]
    if action == "limit":
        account.limit = Limit(Fraction(details["to"]["epsilon"]), Fraction(details["to"]["delta"]))
    elif action in ("freeze", "unfreeze"):
        account.frozen = action == "freeze"
    elif action == "window":
        account.window, account.day, account.today = details["to"], day, {}


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
                self._do(0, [self._account(dataset, group.id, principal, pure=pure)])
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
            if fits_now and not self.book.accounts[one.request.account].frozen:
                self._pretend(one, _day(now))
        for name, (spent, day, today) in before.items():
            kept = self.book.accounts[name]
            kept.spent, kept.day, kept.today = spent, day, today
        self.book.read()
        for one, result, fits_now in zip(asked, results, fitting, strict=True):
            identifier = one.request.query_id
            if self.book.accounts[one.request.account].frozen:
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
        again = _changed(one.request, **changes)
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
        """An administrator's act: another limit, another person, or an account that is frozen or free again."""
        name = self.chance.choice(list(self.book.accounts))
        kept = self.book.accounts[name]
        kind = self.chance.choice(("limit", "limit", "limit", "freeze", "account", "window"))
        operation: Operation[Any]
        if kind == "account" and len(self.book.accounts) < 24:
            top = next(one for one in self.book.accounts if self.book.accounts[one].parent is None)
            pure = self.book.accounts[top].kind is FilterKind.PURE
            operation = self._account("pure", top, f"person {len(self.book.accounts)}", pure=pure)
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
        (result,) = self._do(self._place(), [operation])
        moved = self.book.read()
        if isinstance(result, BaseException):
            # A frozen account, or a limit below the amount of a window.
            assert isinstance(result, (AccountFrozen, ValueError)), result
            assert not moved, "what was refused changed something"

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
        """A process dies at a point of a batch of requests and ends, and another one takes its place."""
        place = self._place()
        asked = [self._new(place) for _ in range(self.chance.choice((1, 3)))]
        open_ones = [one for one in self._open_ones() if one.server == place][:2]
        operations: list[Operation[Any]] = [Reserve(request=one.request) for one in asked]
        operations += [self._ending(one) for one in open_ones]
        name = self.chance.choice([operation.name for operation in operations])
        point = f"{name}.{self.chance.choice(('decided', 'written', 'before_commit', 'after_commit', 'answered'))}"
        before = self.book.sequence

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
        durable = point.endswith(("after_commit", "answered")) or not killed
        assert durable or not [row for row in moved if row["query_id"] in {one.request.query_id for one in asked}]
        self._learn(asked)
        assert self.book.sequence >= before

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
            assert charged is not isinstance(result, (BudgetExhausted, AccountFrozen)), result
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
        place = self._place()
        before = {one.request.query_id for one in self._open_ones()}
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


def _changed(request: ReserveRequest, **changes: Any) -> ReserveRequest:
    from dataclasses import replace

    return replace(request, **changes)
