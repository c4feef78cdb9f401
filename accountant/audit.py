"""The audit: what the entries say, recomputed from nothing, against what the rest of the ledger says.

It reads one consistent moment and changes nothing. Whoever can write to the database can write a whole new chain; the
audit finds accidents, bugs and edits by hand, and a head that was noted elsewhere (the high-water mark, an export)
finds a forged chain as well.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from accountant.acts import WATCHED, Act, chain, link_at, missing_tables, row_hashes
from accountant.auditor import Auditor, Finding
from accountant.checkpoint import Checkpoint
from accountant.entry import (
    Amounts,
)
from accountant.reading import paid_for
from accountant.rows import AccountState
from accountant.statements import ACCOUNT_COLUMNS
from accountant.states import EntryKind, QueryStatus
from accountant.tables import entries, ledger_meta, queries, readings, releases
from privacy.values import Json

__all__ = ["AuditReport", "Finding", "audit_ledger", "audit_since"]

_META = select(*(ledger_meta.c[name] for name in ("ledger", "sequence", "hash", "epoch", "timed_from")))

_REST_EVERY = 500
"""Entries between two rests of an audit."""

_AT_ONCE = 500
"""Queries that are looked up together."""


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What was read and what did not agree; `sequence` and `hash` are the head, to be noted elsewhere."""

    entries: int
    acts: int
    accounts: int
    queries: int
    releases: int
    sequence: int
    hash: str
    findings: tuple[Finding, ...]
    checkpoint: Checkpoint

    @property
    def ok(self) -> bool:
        """Whether everything agrees."""
        return not self.findings


def audit_ledger(connection: Connection, *, rest: Callable[[], object] | None = None) -> AuditReport:
    """Audits the ledger of a connection whose transaction sees one moment.

    `rest` is called again and again while it works; what it raises ends the audit.
    """
    ledger, head, digest, epoch, timed_from = connection.execute(_META).one()
    auditor = Auditor(timed_from=timed_from)
    count = 0
    act_count = 0
    for one in chain(connection):
        if isinstance(one, Act):
            auditor.act(one)
            act_count += 1
        else:
            auditor.entry(one)
            count += 1
        if rest is not None and (count + act_count) % _REST_EVERY == 0:
            rest()
    auditor.ends(head, digest, epoch)
    _registered(connection, auditor)
    states = {row[0]: AccountState.from_row(row) for row in connection.execute(select(*ACCOUNT_COLUMNS))}
    for state in states.values():
        auditor.account(state, states)
    auditor.forest(states)
    auditor.tree(states)
    _answers(connection, auditor)
    standing: dict[str, set[str]] = {}
    raised: list[tuple[str, str, Json]] = []
    bases: dict[tuple[str, str], str] = {}
    query_count = 0
    chosen = select(queries.c.id, queries.c.account, queries.c.dataset, queries.c.state, queries.c.cores).order_by(
        queries.c.id
    )
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
        acts=act_count,
        accounts=len(states),
        queries=query_count,
        releases=release_count,
        sequence=head,
        hash=digest,
        findings=tuple(auditor.findings),
        checkpoint=auditor.checkpoint(ledger),
    )


def audit_since(connection: Connection, checkpoint: Checkpoint) -> AuditReport | None:
    """Audits what came after a checkpoint, and every balance; None where the checkpoint is of another history.

    What came before it, and the answers and releases of then, are left to a whole audit. An older copy of the ledger
    that was put back and acknowledged is another history: whether one was put back is the high-water mark's to say.
    """
    ledger, head, digest, epoch, timed_from = connection.execute(_META).one()
    there = link_at(connection, checkpoint.sequence)
    if there is None or (ledger, there.hash) != (checkpoint.ledger, checkpoint.hash):
        return None
    auditor = Auditor(lambda query: _reserved(connection, query), timed_from=timed_from)
    auditor.resume(checkpoint)
    auditor.moment = there.created
    count = 0
    act_count = 0
    for one in chain(connection, after=checkpoint.sequence):
        if isinstance(one, Act):
            auditor.act(one)
            act_count += 1
        else:
            auditor.entry(one)
            count += 1
    auditor.ends(head, digest, epoch)
    _registered(connection, auditor)
    states = {row[0]: AccountState.from_row(row) for row in connection.execute(select(*ACCOUNT_COLUMNS))}
    for state in states.values():
        auditor.account(state, states)
    auditor.forest(states)
    touched = sorted({*auditor.reserved, *auditor.closed})
    kept_releases = 0
    for start in range(0, len(touched), _AT_ONCE):
        some = touched[start : start + _AT_ONCE]
        for row in connection.execute(select(queries).where(queries.c.id.in_(some))):
            auditor.query(row, states)
            auditor.posted(row)
        for row in connection.execute(select(releases).where(releases.c.query_id.in_(some))):
            auditor.released(row)
            kept_releases += 1
    return AuditReport(
        entries=count,
        acts=act_count,
        accounts=len(states),
        queries=len(touched),
        releases=kept_releases,
        sequence=head,
        hash=digest,
        findings=tuple(auditor.findings),
        checkpoint=auditor.checkpoint(ledger),
    )


def _reserved(connection: Connection, query: str) -> dict[str, tuple[Amounts, int]]:
    """What a query reserved, by account, and with which entry of it."""
    names = (entries.c[name] for name in Amounts._fields)
    chosen = select(entries.c.account, entries.c.account_sequence, *names).where(
        entries.c.query_id == query, entries.c.kind == EntryKind.RESERVE.value
    )
    return {row[0]: (Amounts(*row[2:]), row[1]) for row in connection.execute(chosen)}


def _releases(connection: Connection, auditor: Auditor, standing: Mapping[str, set[str]]) -> int:
    """Every release belongs to a charge that stands, with the bytes that its end named; returns how many there are."""
    promised = {release: digest for kept in auditor.kept.values() for release, digest in kept.releases.items()}
    count = 0
    seen: set[tuple[str, str]] = set()
    for row in connection.execution_options(yield_per=200).execute(select(releases)):
        count += 1
        if (row.query_id, row.core_key) in seen:
            auditor.find("uncharged_release", row.id, "its query released this twice, and was charged for it once")
        seen.add((row.query_id, row.core_key))
        if row.core_key not in standing.get(row.query_id, set()):
            auditor.find("uncharged_release", row.id, "the release belongs to no charge that stands")
        auditor.released(row)
        promised.pop(row.id, None)
    for release_id in promised:
        auditor.find("wrong_release", release_id, "the query released it, and it is not there")
    return count


def _posted(connection: Connection, auditor: Auditor) -> None:
    """Every answer has the bytes, and every query the owner, that its end named."""
    chosen = select(queries.c.id, queries.c.principal, queries.c.answer, queries.c.answer_of)
    for row in connection.execution_options(yield_per=200).execute(chosen):
        auditor.posted(row)


def _raised(connection: Connection, auditor: Auditor, raised: list[tuple[str, str, Json]]) -> None:
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


def _answers(connection: Connection, auditor: Auditor) -> None:
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
    auditor: Auditor,
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


def _registered(connection: Connection, auditor: Auditor) -> None:
    """Every row that acts vouch for is as the last of them left it, and no other row is there."""
    lacking = missing_tables(connection)
    for table in sorted(WATCHED):
        there = {} if table in lacking else dict(row_hashes(connection, table))
        auditor.registered(table, there)
