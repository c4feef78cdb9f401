"""A book of a ledger's entries, added up by other code than the ledger's: what must hold after every step."""

from __future__ import annotations

import datetime
import functools
import hashlib
import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from sqlalchemy import create_engine

from accountant.account import FilterKind, Limit
from accountant.entry import Amounts, read_shares
from accountant.filter import DEFAULT_SHARES, Branches, Sums, fits, split_limit
from privacy.composition import compose
from privacy.events import Event

__all__ = ["CLOSING", "PICO", "Book", "Kept", "day_of"]

PICO, ATTO = Fraction(1, 10**12), Fraction(1, 10**18)
AMOUNTS = Amounts._fields
SPENT = ("spent_pure", "spent_delta", "spent_rho", "spent_mu_squared", "unbounded_pure", "unbounded_rho")
SPENT_ALL = (*SPENT, "unbounded_mu_squared", "spent_mixed_pure", "spent_mixed_mu_squared", "unbounded_mixed")
CLOSING = {"post": "settled", "fail": "failed_charged", "void": "failed_void"}


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
    expires: int | None = None
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


def day_of(micros: int) -> int:
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

    def ended(self, account: str, now: int) -> bool:
        """Whether the account, or one above it, has ended."""
        ends = [self.accounts[name].expires for name in self.path(account)]
        return any(end is not None and end <= now for end in ends)

    def admits(self, account: str, events: Sequence[Event], now: int) -> bool:
        """Whether the charge fits everywhere, by the entries until now, at this moment of the ledger."""
        charge = Sums.of(compose(tuple(events)))
        for name in self.path(account):
            kept = self.accounts[name]
            if not fits(kept.spent.sums().plus(charge, kept.branches), kept.branches):
                return False
            if not kept.unlocked(charge.pure or 0, day_of(now)):
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
            self._charged(row["account"], account, query, amounts, row["created"])
        elif kind in CLOSING:
            self._ended(row["account"], query, kind, amounts)
            if kind == "void":
                account.today.pop(query, None)
        else:
            assert amounts == Amounts(), "an edit moved an amount"
            if kind == "adjust":
                _adjust(account, json.loads(details), day_of(row["created"]))
        account.spent = Amounts(*(mine + more for mine, more in zip(before, amounts, strict=True)))
        account.count, account.hash = row["account_sequence"], digest
        self.sequence, self.head, self.time = row["sequence"], digest, row["created"]
        self.counts[kind] += 1

    @staticmethod
    def _granted(details: Any) -> Kept:
        shares = read_shares(details["delta_shares"]) if "delta_shares" in details else DEFAULT_SHARES
        limit = Limit(Fraction(details["limit"]["epsilon"]), Fraction(details["limit"]["delta"]))
        kind = FilterKind(details["filter"])
        return Kept(details["parent"], details["principal"], kind, shares, limit, expires=details.get("expires"))

    def _charged(self, name: str, account: Kept, query: str, amounts: Amounts, now: int) -> None:
        of_query = self.charges.setdefault(query, {})
        assert name not in of_query, "a query is charged twice on one account"
        assert query not in self.states or self.states[query] == "reserved", "a query is charged after its end"
        assert all(amount >= 0 for amount in amounts), "a charge gives something back"
        of_query[name] = amounts
        self.states[query] = "reserved"
        total = Amounts(*(mine + more for mine, more in zip(account.spent, amounts, strict=True)))
        assert fits(total.sums(), account.branches), "an account spent more than it was granted"
        assert not account.frozen, "a frozen account was charged"
        assert account.expires is None or account.expires > now, "an account that has ended was charged"
        assert account.unlocked(amounts.pure, day_of(now)), "an account spent what its window had not unlocked"
        account.turn(day_of(now))
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
