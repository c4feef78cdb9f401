"""What one audit knows while it reads the entries, and what it finds."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from accountant.acts import Act, rows_of
from accountant.audited_windows import AuditedWindows
from accountant.checkpoint import AccountMark, Checkpoint
from accountant.entry import (
    EMPTY,
    ENDS,
    GENESIS,
    ZERO,
    Amounts,
    Entry,
    Kept,
    body_hash,
    limit_json,
    read_shares,
    shares_json,
)
from accountant.filter import FIRST_SHARES, Branches, FilterKind, Limit, Sums, forgets_charges, split_limit
from accountant.rows import AccountState, release_hash
from accountant.statements import Columns
from accountant.states import EntryKind, QueryStatus
from privacy.composition import compose
from privacy.events import event_from_json

__all__ = ["Auditor", "Finding"]

_CLOSING = {
    QueryStatus.SETTLED: EntryKind.POST,
    QueryStatus.FAILED_CHARGED: EntryKind.FAIL,
    QueryStatus.FAILED_VOID: EntryKind.VOID,
}


_FIRST = shares_json(FIRST_SHARES)


_GRANTED = ("dataset", "parent", "principal", "name")
"""What a grant says of its account besides the limit, its unit space and its end."""


@dataclass(frozen=True, slots=True)
class _Joining:
    """A root that was put below another one: the next entry debits that one."""

    lower: str
    upper: object
    spent: Amounts
    mixed: bool
    sequence: int


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that does not agree.

    `code` is one of sequence_gap, broken_chain, wrong_hash, wrong_head, wrong_amounts, wrong_balance, wrong_limit,
    wrong_tree, wrong_time, wrong_window, over_window, wrong_state, wrong_answer, wrong_release, wrong_owner,
    uncharged_release, uncharged_reading, wrong_act, wrong_row. `subject` is an account, the sequence of an entry or
    act, a query, a release, or a table and a row's key.
    """

    code: str
    subject: str
    text: str


@lru_cache(maxsize=1024)
def _charge(details: str) -> Sums:
    """The sums of a reserve entry's events."""
    stored = json.loads(details)
    cores = [*stored["charged"], *stored.get("read", ())]
    return Sums.of(compose([event_from_json(event) for core in cores for event in core["events"]]))


@lru_cache(maxsize=1024)
def _budgets(epsilon: str, delta: str, kind: str, shares: tuple[tuple[str, int], ...]) -> Branches:
    """The budgets that entries give an account. Errors: ValueError, TypeError for what none can say."""
    return split_limit(Limit(Fraction(epsilon), Fraction(delta)), FilterKind(kind), read_shares(dict(shares)))


class Auditor:
    """The running state of one audit, from nothing or from a checkpoint.

    `earlier` finds what a query reserved before the checkpoint, by account, and with which entry of it. Until
    `timed_from` entries may be earlier than those before them: the ledger did not keep its time yet.
    """

    def __init__(
        self, earlier: Callable[[str], dict[str, tuple[Amounts, int]]] | None = None, *, timed_from: int = 0
    ) -> None:
        self._earlier = earlier
        self._timed_from = timed_from
        self.windows = AuditedWindows(self.find)
        self._entry_of: dict[tuple[str, str], int] = {}
        self.moment = 0
        self.findings: list[Finding] = []
        self.sequence = 0
        self.head = GENESIS
        self.spent: dict[str, Amounts] = defaultdict(Amounts)
        self.counts: dict[str, int] = defaultdict(int)
        self.hashes: dict[str, str] = defaultdict(lambda: GENESIS)
        self.limits: dict[str, dict[str, str]] = {}
        self.granted: dict[str, list[dict[str, str]]] = defaultdict(list)
        self.shares: dict[str, dict[str, int]] = {}
        self.kinds: dict[str, str] = {}
        self.frozen: set[str] = set()
        self._stopped: set[str] = set()
        """Accounts frozen by people: nothing goes through one. Below one that migration 0004 froze, charges went on."""
        self.reserved: dict[str, dict[str, Amounts]] = defaultdict(dict)
        self.closed: dict[str, dict[str, EntryKind]] = defaultdict(dict)
        self.kept: dict[str, Kept] = {}
        self.grants: dict[str, tuple[object, ...]] = {}
        self.rows: dict[str, dict[str, str]] = defaultdict(dict)
        self.joined: dict[str, frozenset[str]] = {}
        self._joining: _Joining | None = None

    def checkpoint(self, ledger: str) -> Checkpoint:
        """What is known now of every account, so that another audit goes on from here."""
        known = {
            account: AccountMark(
                spent=self.spent[account],
                entries=self.counts[account],
                hash=self.hashes[account],
                granted=self.granted[account],
                shares=self.shares[account],
                kind=self.kinds[account],
                frozen=account in self.frozen,
                grant=self.grants[account],
                window=self.windows.mark(account),
            )
            for account in self.grants
        }
        return Checkpoint(
            ledger, self.sequence, self.head, known, {name: dict(rows) for name, rows in self.rows.items()}
        )

    def resume(self, checkpoint: Checkpoint) -> None:
        """Goes on from a checkpoint."""
        self.sequence, self.head = checkpoint.sequence, checkpoint.hash
        self.rows.update({name: dict(rows) for name, rows in checkpoint.rows.items()})
        for account, mark in checkpoint.accounts.items():
            self.spent[account], self.counts[account], self.hashes[account] = mark.spent, mark.entries, mark.hash
            self.granted[account], self.limits[account] = list(mark.granted), mark.granted[-1]
            self.shares[account], self.kinds[account], self.grants[account] = mark.shares, mark.kind, mark.grant
            if mark.frozen:
                self.frozen.add(account)
            if mark.window is not None:
                self.windows.resume(account, mark.window)

    def ends(self, head: int, digest: str, epoch: int) -> None:
        """What the ledger says of its last entry, and its time."""
        if self.sequence != head or self.head != digest:
            self.find("wrong_head", head, "the last entry is not the one that the ledger names")
        if head > self._timed_from and epoch != self.moment:
            self.find("wrong_time", head, "the ledger's time is not that of its last entry")

    def find(self, code: str, subject: object, text: str) -> None:
        """Notes one thing that does not agree."""
        self.findings.append(Finding(code, str(subject), text))

    def entry(self, entry: Entry) -> None:
        """One entry, in the order of the ledger."""
        self._follows(entry)
        if entry.account_sequence != self.counts[entry.account] + 1:
            self.find("sequence_gap", entry.sequence, "an earlier entry of the same account is missing")
        if entry.account_previous != self.hashes[entry.account]:
            self.find("broken_chain", entry.sequence, "the entry does not follow the one of its account before it")
        joining, self._joining = self._joining, None
        self.counts[entry.account] = entry.account_sequence
        self.hashes[entry.account] = entry.hash
        if joining is not None and not self._debits(entry, joining):
            self.find("wrong_tree", joining.sequence, "a root was put below another one, which was not debited for it")
        if not self._amounts_agree(entry, joining):
            self.find("wrong_amounts", entry.sequence, f"the amounts are not those of this {entry.kind}")
        self.spent[entry.account] = self.spent[entry.account].plus(entry.amounts)
        if any(entry.amounts):
            voids = entry.kind is EntryKind.VOID
            self.windows.moved(entry, self._entry_of.get((entry.query_id or "", entry.account), 0) if voids else None)

    def act(self, act: Act) -> None:
        """One act, in the order of the ledger."""
        self._follows(act)
        try:
            vouched = rows_of(act.details)
        except (ValueError, TypeError, AttributeError):
            self.find("wrong_act", act.sequence, "the act does not say what acts say")
            return
        for table, hashes in vouched.items():
            for key, digest in hashes.items():
                if digest is None:
                    self.rows[table].pop(key, None)
                else:
                    self.rows[table][key] = digest

    def registered(self, table: str, there: Mapping[str, str]) -> None:
        """The rows of a table that acts vouch for, against the last act about each."""
        vouched = self.rows.get(table, {})
        for key in sorted(vouched.keys() | there.keys()):
            if key not in there:
                self.find("wrong_row", f"{table} {key}", "the row is gone, and no act says so")
            elif key not in vouched:
                self.find("wrong_row", f"{table} {key}", "no act made this row")
            elif vouched[key] != there[key]:
                self.find("wrong_row", f"{table} {key}", "the row is not as the last act about it left it")

    def _follows(self, one: Entry | Act) -> None:
        """Number, chain and hash of the next entry or act."""
        what = "act" if isinstance(one, Act) else "entry"
        if one.sequence != self.sequence + 1:
            self.find("sequence_gap", one.sequence, f"entry or act {self.sequence + 1} is missing")
        if one.previous != self.head:
            self.find("broken_chain", one.sequence, f"the {what} does not follow the one before it")
        if one.digest() != one.hash:
            self.find("wrong_hash", one.sequence, f"the {what} was changed after it was written")
        if one.created < self.moment and one.sequence > self._timed_from:
            self.find("wrong_time", one.sequence, "it is earlier than one before it: the ledger's time never falls")
        self.moment = max(self.moment, one.created)
        self.sequence, self.head = one.sequence, one.hash

    def _debits(self, entry: Entry, joining: _Joining) -> bool:
        """Whether an entry debits the upper root for the lower one."""
        if entry.kind is not EntryKind.ADJUST or entry.account != joining.upper:
            return False
        details = json.loads(entry.details)
        return bool((details.get("action"), details.get("account")) == ("join", joining.lower))

    def _ends_before(self, entry: Entry) -> bool:
        """Whether an account ended before the moment of an entry."""
        grant = self.grants.get(entry.account)
        return grant is not None and grant[-1] is not None and int(str(grant[-1])) <= entry.created

    def _amounts_agree(self, entry: Entry, joining: _Joining | None) -> bool:
        query = entry.query_id
        if entry.kind is EntryKind.RESERVE and query is not None:
            if self._ends_before(entry) or entry.account in self._stopped:
                self.find("wrong_state", entry.sequence, "the account was frozen or had ended before it was charged")
            again = entry.account in self.reserved[query]
            self.reserved[query][entry.account] = entry.amounts
            try:
                branches = self._branches(entry.account)
            except (KeyError, TypeError, ValueError):
                return False
            self._entry_of[query, entry.account] = entry.account_sequence
            shares = self.shares.get(entry.account, _FIRST)
            self.windows.charged(entry, self.spent[entry.account], branches, self.kinds[entry.account], shares)
            # With the budgets of then: into which sum of the mixed branch a charge went was decided by them.
            spent = self.spent[entry.account]
            expected = Amounts.of_charge(_charge(entry.details), spent=spent, branches=branches)
            return not again and entry.amounts == expected
        if entry.kind in _CLOSING.values() and query is not None:
            if query not in self.reserved and self._earlier is not None:
                for account, (amounts, number) in self._earlier(query).items():
                    self.reserved[query][account], self._entry_of[query, account] = amounts, number
            again = entry.account in self.closed[query]
            self.closed[query][entry.account] = entry.kind
            if entry.kind in ENDS and entry.details != EMPTY:
                self._keep(entry, query)
            reserved = self.reserved[query].get(entry.account)
            if reserved is None or again:
                return False
            return entry.amounts == (reserved.reversed_sign() if entry.kind is EntryKind.VOID else ZERO)
        details = json.loads(entry.details)
        if entry.kind is EntryKind.GRANT:
            self.limits[entry.account] = details["limit"]
            self.granted[entry.account].append(details["limit"])
            self.shares[entry.account] = details.get("delta_shares", _FIRST)
            self.kinds[entry.account] = details["filter"]
            self.grants[entry.account] = (
                *(details.get(name) for name in _GRANTED),
                details.get("space", details["dataset"]),
                None if details.get("expires") is None else str(details["expires"]),
            )
            self.windows.granted(entry, details)
        elif details.get("action") == "end":
            self._ended(entry, details)
        elif details.get("action") in ("space", "joined"):
            self._moved(entry, details)
        elif details.get("action") == "join":
            return self._debited(entry, details, joining)
        elif details.get("action") == "limit":
            self._limit(entry, details["to"])
            self.limits[entry.account] = details["to"]
            self.granted[entry.account].append(details["to"])
        elif details.get("action") == "window":
            self.windows.changed(entry, details)
            self.granted[entry.account].append(self.limits[entry.account])
        elif details.get("action") == "freeze":
            self.frozen.add(entry.account)
            self._stopped |= set() if "kept" in details else {entry.account}
        elif details.get("action") == "unfreeze":
            self.frozen.discard(entry.account)
            self._stopped.discard(entry.account)
        return entry.amounts == ZERO

    def _limit(self, entry: Entry, to: dict[str, str]) -> None:
        """Another limit: it must not leave charges out of the mixed branch (filter.md, "Raise a limit")."""
        spent, kind = self.spent[entry.account], self.kinds.get(entry.account)
        shares = self.shares.get(entry.account, _FIRST)
        if kind != FilterKind.APPROXIMATE.value or spent == ZERO:
            return
        try:
            before = self._branches(entry.account)
            after = _budgets(to["epsilon"], to["delta"], kind, tuple(sorted(shares.items())))
        except (KeyError, TypeError, ValueError):
            self.find("wrong_limit", entry.sequence, "the limit is none that an account can have")
            return
        if forgets_charges(spent.sums(), before, after, mixed=shares.get("mixed", 0)):
            self.find("wrong_limit", entry.sequence, "the account gets a branch that earlier charges are not in")

    def _ended(self, entry: Entry, details: dict[str, object]) -> None:
        """An account that ends with this entry, and was to end later or never."""
        *said, before = self.grants[entry.account]
        if details["expires"] != entry.created or (before is not None and int(str(before)) <= entry.created):
            self.find("wrong_state", entry.sequence, "the account does not end with this entry")
        self.grants[entry.account] = (*said, str(details["expires"]))

    def _moved(self, entry: Entry, details: dict[str, str]) -> None:
        """A root and all below it are in another space; where it was joined, below the root of that space."""
        *_, before, _ = self.grants[entry.account]
        if self.grants[entry.account][1] is not None:
            self.find("wrong_tree", entry.sequence, "an account that is no root was moved")
        for account, (dataset, parent, principal, name, space, expires) in list(self.grants.items()):
            if space == before:
                self.grants[account] = (dataset, parent, principal, name, details["space"], expires)
        if details["action"] == "joined":
            dataset, _, principal, name, space, expires = self.grants[entry.account]
            self.grants[entry.account] = (dataset, details["parent"], principal, name, space, expires)
            # What was charged before did not reach the root above: that one is debited with the sum of it.
            charged = (query for query, amounts in self.reserved.items() if entry.account in amounts)
            self.joined[entry.account] = frozenset(charged)
            mixed = self._branches(entry.account).mixed_pure is not None
            self._joining = _Joining(entry.account, details["parent"], self.spent[entry.account], mixed, entry.sequence)

    def _debited(self, entry: Entry, details: dict[str, object], joining: _Joining | None) -> bool:
        """Whether a root was debited with what the one below it had spent, and took the stricter limit."""
        to = details["to"]
        assert isinstance(to, dict)
        before, other = self.limits[entry.account], self.limits.get(joining.lower if joining is not None else "")
        self.limits[entry.account] = to
        self.granted[entry.account].append(to)
        if joining is None or other is None or joining.upper != entry.account:
            return False
        for name in ("epsilon", "delta"):
            if Fraction(to[name]) != min(Fraction(before[name]), Fraction(other[name])):
                self.find("wrong_limit", entry.sequence, "the limit of two roots together is not the stricter one")
        mixed = self._branches(entry.account).mixed_pure is not None
        return entry.amounts == joining.spent.carried(mixed_there=joining.mixed, mixed_here=mixed)

    def _keep(self, entry: Entry, query: str) -> None:
        """What the end of a query says was kept of it: once."""
        try:
            kept = Kept.read(entry.details)
        except (ValueError, TypeError, KeyError):
            kept = None
        if kept is None or query in self.kept:
            self.find("wrong_state", entry.sequence, "it says of the query's end what no end says, or says it again")
        else:
            self.kept[query] = kept

    def _branches(self, account: str) -> Branches:
        """The budgets that the entries until here give an account. Errors: KeyError, ValueError, TypeError."""
        limit, shares = self.limits[account], tuple(sorted(self.shares[account].items()))
        return _budgets(limit["epsilon"], limit["delta"], self.kinds[account], shares)

    def account(self, state: AccountState, states: dict[str, AccountState]) -> None:
        """One account's cache against its entries."""
        if state.spent != self.spent[state.id]:
            self.find("wrong_balance", state.id, "what is spent is not the sum of the entries")
        if state.entries != self.counts[state.id] or state.hash != self.hashes[state.id]:
            self.find("wrong_head", state.id, "the account's last entry is not the one that the account names")
        try:
            agrees = state.branches == split_limit(state.limit, state.filter, state.shares)
        except ValueError:
            agrees = False
        granted = self.limits.get(state.id)
        if not agrees or granted is None or granted != limit_json(state.limit):
            self.find("wrong_limit", state.id, "limit or budgets are not those of the last grant or adjustment")
        if state.filter is not FilterKind.PURE and self.shares.get(state.id) != shares_json(state.shares):
            self.find("wrong_limit", state.id, "the shares of delta are not those of the grant")
        every = self.granted[state.id]
        greatest = {name: max((Fraction(limit[name]) for limit in every), default=0) for name in ("epsilon", "delta")}
        if state.revision != len(every) or (state.greatest.epsilon, state.greatest.delta) != tuple(greatest.values()):
            self.find("wrong_limit", state.id, "the greatest limit is not that of the grants and adjustments")
        self.windows.account(state)
        if state.frozen != (state.id in self.frozen):
            self.find("wrong_state", state.id, "the account is frozen without an entry that says so, or the reverse")
        ends = None if state.expires is None else str(state.expires)
        said = (state.dataset, state.parent, state.principal, state.name, state.space, ends)
        if self.grants.get(state.id) != said:
            self.find(
                "wrong_owner", state.id, "dataset, place, owner, name or end are not those of the account's grant"
            )
        parent = states.get(state.parent) if state.parent is not None else None
        if state.parent is not None and (
            parent is None or parent.space != state.space or parent.depth != state.depth - 1
        ):
            self.find("wrong_tree", state.id, "the account is not below an account of the same unit space")

    def _path(self, query: str, account: str, states: dict[str, AccountState]) -> set[str]:
        """The accounts that a query was charged on: up to the root of then."""
        path: set[str] = set()
        identifier: str | None = account
        while identifier is not None and identifier in states and identifier not in path:
            path.add(identifier)
            identifier = None if query in self.joined.get(identifier, ()) else states[identifier].parent
        return path

    def forest(self, states: dict[str, AccountState]) -> None:
        """Every space has one root, and every dataset is in one space."""
        if self._joining is not None:
            self.find("wrong_tree", self._joining.sequence, "a root was put below another one, which was not debited")
        roots: dict[str, str] = {}
        spaces: dict[str, str] = {}
        for state in states.values():
            if state.parent is None and roots.setdefault(state.space, state.id) != state.id:
                self.find("wrong_tree", state.id, "the unit space has a second root: a second budget")
            if spaces.setdefault(state.dataset, state.space) != state.space:
                self.find("wrong_tree", state.id, "the dataset is in two unit spaces: two budgets")

    def tree(self, states: dict[str, AccountState]) -> None:
        """A parent was charged at least what its children were charged together, reading apart.

        What a child is charged for reading, its parent may have paid before: only what one query took from both is
        compared, and that a parent was charged by each query that measured something anew is `query`'s to see.
        """
        below: dict[str, Amounts] = defaultdict(Amounts)
        for query, amounts in self.reserved.items():
            for account, taken in amounts.items():
                state = states.get(account)
                above = None if state is None or state.parent is None else amounts.get(state.parent)
                if above is None or state is None or state.parent is None:
                    continue
                if self.closed.get(query, {}).get(account) is not EntryKind.VOID:
                    common = Amounts(*(min(mine, theirs) for mine, theirs in zip(taken, above, strict=True)))
                    below[state.parent] = below[state.parent].plus(common)
        for identifier, total in below.items():
            parent = states.get(identifier)
            if parent is not None and any(mine < theirs for mine, theirs in zip(parent.spent, total, strict=True)):
                self.find("wrong_tree", identifier, "the accounts below have spent more than this account")

    def query(self, row: Columns, states: dict[str, AccountState]) -> None:
        """One query's state against its entries."""
        path = self._path(row.id, row.account, states)
        if row.account in states and states[row.account].dataset != row.dataset:
            self.find("wrong_state", row.id, "it asked one dataset, and an account of another one pays")
        cores = json.loads(row.cores)
        read = {account for item in cores.get("read", {}).values() for account in item["accounts"]}
        accounts = path if cores["charged"] else read & path
        reserved = self.reserved.get(row.id, {})
        closed = self.closed.get(row.id, {})
        if reserved.keys() != accounts or not read <= path:
            self.find("wrong_state", row.id, "the query is not charged on its whole path")
        expected = _CLOSING.get(QueryStatus(row.state))
        wanted = dict.fromkeys(accounts, expected) if expected is not None else {}
        if closed != wanted:
            self.find("wrong_state", row.id, f"the query is {row.state} and its entries say otherwise")

    def released(self, row: Columns) -> None:
        """A release against what the end of its query says, where that says anything."""
        kept = self.kept.get(row.query_id)
        if kept is not None and kept.releases.get(row.id) != release_hash(row):
            self.find("wrong_release", row.id, "it is not what the query released")

    def posted(self, row: Columns) -> None:
        """A query's answer and owner against what its end says, where that says anything."""
        kept = self.kept.get(row.id)
        if kept is None:
            return
        if row.principal != kept.owner:
            self.find("wrong_owner", row.id, "the query belongs to somebody else than when it ended")
        shared = row.answer_of is not None
        if kept.answer is not None and (row.answer is None or shared or body_hash(row.answer) != kept.answer):
            self.find("wrong_answer", row.id, "the stored answer is not the one that was posted")
