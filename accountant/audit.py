"""The audit: what the entries say, recomputed from nothing, against what the rest of the ledger says.

It reads one consistent moment and changes nothing. Whoever can write to the database can write a whole new chain; the
audit finds accidents, bugs and edits by hand, and a head that was noted elsewhere (the high-water mark, an export)
finds a forged chain as well.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from sqlalchemy import Connection, func, select

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
    read_entry,
    read_shares,
    shares_json,
)
from accountant.filter import FIRST_SHARES, Branches, FilterKind, Limit, Sums, split_limit
from accountant.reading import paid_for
from accountant.rows import AccountState
from accountant.statements import ACCOUNT_COLUMNS, Columns
from accountant.states import EntryKind, QueryStatus
from accountant.tables import entries, ledger_meta, queries, readings, releases
from privacy.composition import compose
from privacy.events import event_from_json
from privacy.values import Json

__all__ = ["AuditReport", "Finding", "audit_ledger"]

_CLOSING = {
    QueryStatus.SETTLED: EntryKind.POST,
    QueryStatus.FAILED_CHARGED: EntryKind.FAIL,
    QueryStatus.FAILED_VOID: EntryKind.VOID,
}


_FIRST = shares_json(FIRST_SHARES)

_GRANTED = ("dataset", "parent", "principal", "name")
"""What a grant says of its account besides the limit."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that does not agree.

    `code` is one of sequence_gap, broken_chain, wrong_hash, wrong_head, wrong_amounts, wrong_balance, wrong_limit,
    wrong_tree, wrong_state, wrong_answer, wrong_release, wrong_owner, uncharged_release, uncharged_reading.
    `subject` is an account, an entry's sequence, a query or a release.
    """

    code: str
    subject: str
    text: str


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What was read and what did not agree; `sequence` and `hash` are the head, to be noted elsewhere."""

    entries: int
    accounts: int
    queries: int
    releases: int
    sequence: int
    hash: str
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether everything agrees."""
        return not self.findings


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


class _Auditor:
    """The running state of one audit."""

    def __init__(self) -> None:
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
        self.reserved: dict[str, dict[str, Amounts]] = defaultdict(dict)
        self.closed: dict[str, dict[str, EntryKind]] = defaultdict(dict)
        self.kept: dict[str, Kept] = {}
        self.grants: dict[str, tuple[object, ...]] = {}

    def find(self, code: str, subject: object, text: str) -> None:
        self.findings.append(Finding(code, str(subject), text))

    def entry(self, entry: Entry) -> None:
        """One entry, in the order of the ledger."""
        if entry.sequence != self.sequence + 1:
            self.find("sequence_gap", entry.sequence, f"entry {self.sequence + 1} is missing")
        if entry.account_sequence != self.counts[entry.account] + 1:
            self.find("sequence_gap", entry.sequence, "an earlier entry of the same account is missing")
        if entry.previous != self.head or entry.account_previous != self.hashes[entry.account]:
            self.find("broken_chain", entry.sequence, "the entry does not follow the one before it")
        if entry.digest() != entry.hash:
            self.find("wrong_hash", entry.sequence, "the entry was changed after it was written")
        self.sequence = entry.sequence
        self.head = entry.hash
        self.counts[entry.account] = entry.account_sequence
        self.hashes[entry.account] = entry.hash
        if not self._amounts_agree(entry):
            self.find("wrong_amounts", entry.sequence, f"the amounts are not those of this {entry.kind}")
        self.spent[entry.account] = self.spent[entry.account].plus(entry.amounts)

    def _amounts_agree(self, entry: Entry) -> bool:
        query = entry.query_id
        if entry.kind is EntryKind.RESERVE and query is not None:
            again = entry.account in self.reserved[query]
            self.reserved[query][entry.account] = entry.amounts
            try:
                branches = self._branches(entry.account)
            except (KeyError, TypeError, ValueError):
                return False
            # With the budgets of then: into which sum of the mixed branch a charge went was decided by them.
            spent = self.spent[entry.account]
            expected = Amounts.of_charge(_charge(entry.details), spent=spent, branches=branches)
            return not again and entry.amounts == expected
        if entry.kind in _CLOSING.values() and query is not None:
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
            self.grants[entry.account] = tuple(details.get(name) for name in _GRANTED)
        elif details.get("action") == "limit":
            self.limits[entry.account] = details["to"]
            self.granted[entry.account].append(details["to"])
        elif details.get("action") == "freeze":
            self.frozen.add(entry.account)
        return entry.amounts == ZERO

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
        if state.frozen != (state.id in self.frozen):
            self.find("wrong_state", state.id, "the account is frozen without an entry that says so, or the reverse")
        if self.grants.get(state.id) != (state.dataset, state.parent, state.principal, state.name):
            self.find("wrong_owner", state.id, "dataset, place, owner or name are not those of the account's grant")
        parent = states.get(state.parent) if state.parent is not None else None
        if state.parent is not None and (
            parent is None or parent.dataset != state.dataset or parent.depth != state.depth - 1
        ):
            self.find("wrong_tree", state.id, "the account is not below an account of the same dataset")

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
        path: set[str] = set()
        identifier: str | None = row.account
        while identifier is not None and identifier in states:
            path.add(identifier)
            identifier = states[identifier].parent
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


def audit_ledger(connection: Connection) -> AuditReport:
    """Audits the ledger of a connection whose transaction sees one moment."""
    auditor = _Auditor()
    head, digest = connection.execute(select(ledger_meta.c.sequence, ledger_meta.c.hash)).one()
    count = 0
    for entry in _entries(connection):
        auditor.entry(entry)
        count += 1
    if auditor.sequence != head or auditor.head != digest:
        auditor.find("wrong_head", head, "the last entry is not the one that the ledger names")
    states = {row[0]: AccountState.from_row(row) for row in connection.execute(select(*ACCOUNT_COLUMNS))}
    for state in states.values():
        auditor.account(state, states)
    auditor.tree(states)
    _answers(connection, auditor)
    standing: dict[str, set[str]] = {}
    raised: list[tuple[str, str, Json]] = []
    bases: dict[tuple[str, str], str] = {}
    query_count = 0
    chosen = select(queries.c.id, queries.c.account, queries.c.state, queries.c.cores).order_by(queries.c.id)
    for row in connection.execution_options(yield_per=1000).execute(chosen):
        auditor.query(row, states)
        query_count += 1
        if row.state in (QueryStatus.SETTLED, QueryStatus.FAILED_CHARGED):
            charged = json.loads(row.cores)["charged"]
            standing[row.id] = {core["core_key"] for core in charged}
            raised += [(row.id, core["core_key"], core) for core in charged if "base" in core]
            bases |= {(row.id, core["core_key"]): core["base"]["release"] for core in charged if "base" in core}
    _raised(connection, auditor, raised)
    _readings(connection, auditor, states, bases)
    release_count = _releases(connection, auditor, standing)
    _posted(connection, auditor)
    return AuditReport(
        entries=count,
        accounts=len(states),
        queries=query_count,
        releases=release_count,
        sequence=head,
        hash=digest,
        findings=tuple(auditor.findings),
    )


def _releases(connection: Connection, auditor: _Auditor, standing: Mapping[str, set[str]]) -> int:
    """Every release belongs to a charge that stands, with the bytes that its end named; returns how many there are."""
    promised = {release: digest for kept in auditor.kept.values() for release, digest in kept.releases.items()}
    count = 0
    chosen = select(releases.c.id, releases.c.query_id, releases.c.core_key, releases.c.body)
    for release_id, query_id, core_key, body in connection.execution_options(yield_per=200).execute(chosen):
        count += 1
        if core_key not in standing.get(query_id, set()):
            auditor.find("uncharged_release", release_id, "the release belongs to no charge that stands")
        kept = auditor.kept.get(query_id)
        if kept is not None and kept.releases.get(release_id) != body_hash(body):
            auditor.find("wrong_release", release_id, "it is not what the query released")
        promised.pop(release_id, None)
    for release_id in promised:
        auditor.find("wrong_release", release_id, "the query released it, and it is not there")
    return count


def _posted(connection: Connection, auditor: _Auditor) -> None:
    """Every answer has the bytes, and every query the owner, that its end named."""
    chosen = select(queries.c.id, queries.c.principal, queries.c.answer, queries.c.answer_of)
    for query_id, principal, answer, other in connection.execution_options(yield_per=200).execute(chosen):
        kept = auditor.kept.get(query_id)
        if kept is None:
            continue
        if principal != kept.owner:
            auditor.find("wrong_owner", query_id, "the query belongs to somebody else than when it ended")
        if kept.answer is not None and (answer is None or other is not None or body_hash(answer) != kept.answer):
            auditor.find("wrong_answer", query_id, "the stored answer is not the one that was posted")


def _raised(connection: Connection, auditor: _Auditor, raised: list[tuple[str, str, Json]]) -> None:
    """A release that was measured in addition to another one has the events of both, and that one is of this dataset.

    Only what was measured in addition was charged (`_charge`), so what it rests on must have been charged before.
    """
    row = releases.c
    for query_id, core_key, core in raised:
        assert isinstance(core, dict)
        base = core["base"]
        found = connection.execute(
            select(row.id, row.events, row.dataset).where(row.query_id == query_id, row.core_key == core_key)
        ).one_or_none()
        if found is None:
            continue  # what failed released nothing
        before = connection.execute(select(row.events, row.dataset).where(row.id == base["release"])).one_or_none()
        if (
            before is None
            or before.dataset != found.dataset
            or json.loads(before.events) != base["events"]
            or json.loads(found.events) != [*base["events"], *core["events"]]
        ):
            auditor.find("uncharged_release", found.id, "it does not have the events of what it was made from")


def _answers(connection: Connection, auditor: _Auditor) -> None:
    """Answers that refer to another one: that is whole, and long enough."""
    other = queries.alias("other")
    chosen = (
        select(queries.c.id, queries.c.answer_to, other.c.id, other.c.answer_of, func.length(other.c.answer))
        .outerjoin(other, other.c.id == queries.c.answer_of)
        .where(queries.c.answer_of.is_not(None))
        .order_by(queries.c.id)
    )
    for identifier, end, found, further, length in connection.execution_options(yield_per=1000).execute(chosen):
        if found is None or further is not None or length is None or length < end:
            auditor.find("wrong_answer", identifier, "the answer that this one shares its rows with is not there")


def _readings(
    connection: Connection,
    auditor: _Auditor,
    states: dict[str, AccountState],
    bases: Mapping[tuple[str, str], str],
) -> None:
    """Every account that a settled query served with somebody else's release has paid for it, or paid before.

    `bases` are the releases that others were measured in addition to, by the query and the key of these.
    """
    measured: dict[str, list[str]] = {}
    rests_on: dict[str, str | None] = {}
    read: dict[str, set[str]] = defaultdict(set)
    payer = queries.alias("payer")
    chosen = select(releases.c.id, releases.c.query_id, releases.c.core_key, payer.c.account)
    for release, query_id, core_key, account in connection.execute(
        chosen.join(payer, payer.c.id == releases.c.query_id)
    ):
        measured[release] = _path(account, states)
        rests_on[release] = bases.get((query_id, core_key))
    for account, release, query_id in connection.execute(
        select(readings.c.account, readings.c.release, readings.c.query_id)
    ):
        read[release].add(account)
        if (
            account not in auditor.reserved.get(query_id, {})
            or auditor.closed.get(query_id, {}).get(account) is EntryKind.VOID
        ):
            auditor.find("uncharged_reading", release, f"account {account} was not charged for reading it")
    served = select(queries.c.id, queries.c.account, queries.c.cores).where(
        queries.c.state == QueryStatus.SETTLED.value
    )
    for query_id, account, cores in connection.execution_options(yield_per=1000).execute(served):
        for item in json.loads(cores).get("read", {}).values():
            paid = paid_for(item["release"], measured=measured, bases=rests_on, readings=read)
            if not set(_path(account, states)) <= paid:
                auditor.find("uncharged_reading", query_id, "an account of the path did not pay for what it read")


def _path(account: str, states: dict[str, AccountState]) -> list[str]:
    path = []
    identifier: str | None = account
    while identifier is not None and identifier in states:
        path.append(identifier)
        identifier = states[identifier].parent
    return path


def _entries(connection: Connection) -> Iterator[Entry]:
    chosen = select(entries).order_by(entries.c.sequence)
    for row in connection.execution_options(yield_per=1000).execute(chosen):
        yield read_entry(row)
