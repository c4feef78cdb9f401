"""The ledger: charges before answers, in one transaction each, durable before anybody is told.

The order of a query is reserve, post. `reserve` recomputes the price from the privacy events, asks the
filter of every account on the path and debits all of them; `post` stores releases and answer together with the
entries that say so. A reservation whose fate is unknown counts as spent. See README.md of this room.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, bindparam, func, insert, inspect, literal_column, or_, select, tuple_
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from accountant.account import Account, FilterKind, Limit
from accountant.audit import AuditReport, audit_ledger
from accountant.batch import AccountState
from accountant.connection import open_engine, parse_url, sqlite_path
from accountant.continuity import Continuity, Head, OpenedFile
from accountant.entry import GENESIS, Amounts, Entry, from_micros, read_entry, to_micros
from accountant.errors import (
    IdempotencyConflict,
    LedgerBehind,
    LedgerUnavailable,
    NotMigrated,
    SchemaTooNew,
    UnknownAccount,
)
from accountant.filter import Sums
from accountant.highwater import HighWater, Mark
from accountant.instance import OwnerLock
from accountant.operations import (
    Acknowledge,
    ChangeLimit,
    CreateAccount,
    Fail,
    Operation,
    Post,
    Recover,
    Repeat,
    Reserve,
    ReserveOutcome,
    Touch,
    Void,
    serving_of,
)
from accountant.request import (
    Charged,
    QueryRecord,
    Reserved,
    ReserveRequest,
    SharedAnswer,
    StoredRelease,
    storable,
)
from accountant.statements import ACCOUNT_COLUMNS
from accountant.states import EntryKind, QueryStatus
from accountant.tables import SCHEMA, accounts, entries, instances, ledger_meta, queries, readings
from accountant.tables import releases as release_table
from accountant.writer import Writer
from privacy.events import event_from_json
from privacy.events.event import fraction_from_text
from privacy.numbers import PICO, units_down

__all__ = ["ENTRIES_MAX", "Ledger", "utc_now"]

ENTRIES_MAX = 1000
"""Most rows of one page."""

TEXT_MAX = 1000
"""Longest name, actor or reason."""


# Built once: making a statement costs more than running it.
_SPENDABLE = (
    select(*ACCOUNT_COLUMNS)
    .where(
        accounts.c.dataset == bindparam("dataset"),
        or_(accounts.c.principal == bindparam("principal"), accounts.c.principal.is_(None)),
    )
    .order_by(accounts.c.depth, accounts.c.created, accounts.c.id)
)
_STANDING = select(*ACCOUNT_COLUMNS).where(accounts.c.id == bindparam("account"))
_ANSWER_COLUMNS = (
    queries.c.answer,
    queries.c.answer_of,
    queries.c.answer_at,
    queries.c.answer_from,
    queries.c.answer_to,
)
_ANSWER = select(*_ANSWER_COLUMNS).where(queries.c.id == bindparam("query"))
_EARLIER = select(queries.c.id, queries.c.state, queries.c.body_hash, queries.c.charged, *_ANSWER_COLUMNS).where(
    queries.c.principal == bindparam("principal"), queries.c.idempotency_key == bindparam("key")
)
_RELEASE = select(release_table).where(release_table.c.id == bindparam("release"))
_RELEASES_OF = (
    select(release_table)
    .where(release_table.c.query_id == bindparam("query"))
    .order_by(release_table.c.quality.desc(), release_table.c.id.desc())
)
_BEST = (
    select(release_table)
    .where(release_table.c.core_key == bindparam("core_key"), release_table.c.quality >= bindparam("least"))
    .order_by(release_table.c.quality.desc(), release_table.c.created.desc(), release_table.c.id.desc())
    .limit(literal_column("1"))
)
_BEST_OWN = _BEST.where(release_table.c.principal == bindparam("principal"))


def utc_now() -> datetime.datetime:
    """The system's clock in UTC."""
    return datetime.datetime.now(datetime.UTC)


class Ledger:
    """One ledger, opened for writing by one process. Safe to share between threads; not across a fork.

    Requires: the database was migrated (`migrations.upgrade`). `instance` is a name for people; every start gets an
    identity of its own. `clock` gives moments with a zone. `high_water` is the file of the high-water mark, best kept
    on another disk than the ledger; None switches that check off. `lease_seconds` is after how long without a
    sign of life a process counts as dead, `patience_seconds` how long a step tries to reach the database.
    Errors: NotMigrated, SchemaTooNew or WeakDurability when it must not be used; ValueError for an address that is not
    a SQLite file or PostgreSQL; LedgerUnavailable. All steps raise LedgerUnavailable when the database stays away,
    and all steps that write raise LedgerBehind until `acknowledge_restore` when the ledger is older than its mark.
    """

    def __init__(
        self,
        url: str,
        *,
        instance: str,
        clock: Callable[[], datetime.datetime] = utc_now,
        high_water: Path | None = None,
        lease_seconds: float = 30.0,
        patience_seconds: float = 10.0,
    ) -> None:
        path = sqlite_path(parse_url(url))
        if path is not None and not path.exists():
            raise NotMigrated("there is no ledger at this address; run the migrations first")
        self._clock = clock
        self._engine = open_engine(url)
        # Both are read for every question: as text they take half the time.
        self._spendable = str(_SPENDABLE.compile(dialect=self._engine.dialect))
        self._standing = str(_STANDING.compile(dialect=self._engine.dialect))
        self._owner: OwnerLock | None = None
        self._writer: Writer | None = None
        self._high_water = HighWater(high_water) if high_water is not None else None
        try:
            opened = OpenedFile(path)
            with self._read() as connection:
                self.identity, head = _checked_identity(connection)
            self._owner = OwnerLock(path) if path is not None else None
            self._behind: dict[str, Any] | None = self._compare_with_mark()
            lease_micros = int(lease_seconds * 1_000_000)
            self.instance = f"{instance}-{secrets.token_hex(8)}"
            self._name, self._lease_micros = instance, lease_micros
            self._announce()
            self._writer = Writer(
                self._engine,
                instance=self.instance,
                now=self._now,
                lease_micros=lease_micros,
                patience_seconds=patience_seconds,
                continuity=Continuity(head, opened),
                committed=self._remember_head,
                lost=self._lose,
                may_recover=lambda: self._behind is None,
            )
            if self._behind is None:
                self.recovered_at_start = self._recover(all_others=self._owner is not None and self._owner.exclusive)
            else:
                self.recovered_at_start = 0
            if self._owner is not None:
                self._owner.share()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Finishes the steps that were asked for and lets the database go."""
        if self._writer is not None:
            self._writer.close()
        if self._high_water is not None:
            self._high_water.close()
        if self._owner is not None:
            self._owner.close()
        self._engine.dispose()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Accounts

    def create_account(
        self,
        *,
        dataset: str,
        parent: str | None,
        principal: str | None,
        name: str,
        limit: Limit,
        filter: FilterKind,
        actor: str,
    ) -> Account:
        """Opens an account and writes its grant. A dataset has one root (`parent` None), which every charge reaches.

        Errors: ValueError for a second root, a parent of another dataset, too deep a tree, an empty name, or a limit
        that does not suit the filter; UnknownAccount for the parent; AccountExists when the principal has an account
        below this parent that is not frozen.
        """
        for text in (dataset, name, actor):
            _require_text(text)
        account: Account = self._write(
            CreateAccount(
                id=f"b_{secrets.token_hex(10)}",
                dataset=dataset,
                parent=parent,
                principal=principal,
                account_name=name,
                limit=limit,
                filter=filter,
                actor=actor,
            )
        )
        return account

    def change_limit(
        self, account: str, limit: Limit, *, actor: str, reason: str, expected: int | None = None
    ) -> Account:
        """Raises or lowers a limit, with an `adjust` entry; the budgets of the branches follow from the new limit.

        What was spent stays. An account that has spent more than a lowered limit admits nothing. The guarantee of an
        account is that of its greatest epsilon and its greatest delta ever, because each branch's budget grows with
        both (README.md of this room). `expected` is the revision that the caller has seen. Errors: UnknownAccount;
        AccountChanged when the revision is another one, AccountFrozen; ValueError for an unsuitable limit or an empty
        reason.
        """
        _require_text(actor)
        _require_text(reason)
        changed: Account = self._write(
            ChangeLimit(account=account, limit=limit, actor=actor, reason=reason, expected=expected)
        )
        return changed

    def account(self, account: str) -> Account:
        """The account at this moment. Errors: UnknownAccount."""
        with self._read() as connection:
            found = self._accounts(connection, accounts.c.id == account)
        if not found:
            raise UnknownAccount(account)
        return found[0]

    def accounts(self, *, dataset: str | None = None, principal: str | None = None) -> list[Account]:
        """All accounts, or those of a dataset or of a principal; roots first."""
        conditions = []
        if dataset is not None:
            conditions.append(accounts.c.dataset == dataset)
        if principal is not None:
            conditions.append(accounts.c.principal == principal)
        with self._read() as connection:
            return self._accounts(connection, *conditions)

    def path(self, account: str) -> tuple[Account, ...]:
        """The account, the one above it, and so on to the root. Errors: UnknownAccount."""
        path: list[Account] = []
        with self._read() as connection:
            identifier: str | None = account
            while identifier is not None:
                found = self._accounts(connection, accounts.c.id == identifier)
                if not found:
                    raise UnknownAccount(account)
                path.append(found[0])
                identifier = found[0].parent
        return tuple(path)

    def spendable(self, dataset: str, principal: str) -> list[tuple[Account, ...]]:
        """The paths (account first, root last) of every account of a dataset that a principal may spend from.

        Frozen ones are not among them.

        One statement: this is read for every question. `reserved` of these accounts is not filled in.
        """
        with self._read() as connection:
            rows = connection.exec_driver_sql(self._spendable, {"dataset": dataset, "principal": principal}).all()
        known = {state.id: state.account() for state in map(AccountState.from_row, rows)}
        paths = []
        for own in known.values():
            if own.principal != principal or own.frozen:
                continue
            path = [own]
            while path[-1].parent in known:
                path.append(known[path[-1].parent or ""])
            paths.append(tuple(path) if path[-1].parent is None else self.path(own.id))
        return paths

    def standing(self, account: str) -> Account:
        """The account at this moment, without its `reserved` amounts. Errors: UnknownAccount."""
        with self._read() as connection:
            row = connection.exec_driver_sql(self._standing, {"account": account}).one_or_none()
        if row is None:
            raise UnknownAccount(account)
        return AccountState.from_row(row).account()

    def entries(self, account: str, *, after: int = 0, count: int = 100) -> list[Entry]:
        """A page of an account's entries: those with an `account_sequence` above `after`, oldest first.

        The next page begins after the last one's `account_sequence`. `count` is at most `ENTRIES_MAX`.
        """
        chosen = (
            select(entries)
            .where(entries.c.account == account, entries.c.account_sequence > after)
            .order_by(entries.c.account_sequence)
            .limit(_page(count))
        )
        with self._read() as connection:
            return [read_entry(row) for row in connection.execute(chosen)]

    # Queries

    def reserve(self, request: ReserveRequest) -> Reserved:
        """Charges a query, or finds it charged or answered before. Nothing may touch rows before this has returned.

        One transaction: an earlier request with the principal's idempotency key is returned as it is; otherwise each
        core is served by a stored release if there is one that is good enough, and the events of all other cores are
        charged on every account from the root down. When everything is reused, nothing is charged, and the query is
        settled by `post` without releases. Two equal queries that run at the same time are both charged: the
        second does not wait for the first, whose success nobody knows yet.
        Errors: BudgetExhausted, IdempotencyConflict, UnknownAccount; ValueError for a query id that was used before.
        """
        return self._reserved(self._write(Reserve(request=request)))

    def earlier(self, principal: str, idempotency_key: str, body_hash: str) -> Reserved | None:
        """What a principal's idempotency key stands for already, None when it is new. Writes nothing.

        For a retry, which is owed its answer whatever has become of dataset, policy and limits since. `reserve` asks
        again under the lock. Errors: IdempotencyConflict when the key stands for another body.
        """
        with self._read() as connection:
            row = connection.execute(_EARLIER, {"principal": principal, "key": idempotency_key}).one_or_none()
            if row is None:
                return None
            if row.body_hash != body_hash:
                raise IdempotencyConflict(row.id)
            answer = _whole_answer(connection, row)
        return Reserved(
            query_id=row.id,
            state=QueryStatus(row.state),
            fresh=False,
            answer=answer,
            reused={},
            charged=_charged(row.charged),
        )

    def repeat(
        self,
        request: ReserveRequest,
        releases: Mapping[str, str],
        answer: bytes,
        *,
        shared: SharedAnswer | None = None,
        again: str | None = None,
    ) -> Reserved | None:
        """Settles a query at once with an answer made of stored releases (by core key), and charges nothing.

        For an answer that is known before the query is asked. One transaction, like `reserve` and `post` together: an
        earlier request with the idempotency key is returned as it is; otherwise the query is settled when exactly
        these releases serve all of its cores, and the answer may be told. None, with nothing changed, when they do
        not: another release is better, none is good enough, or there is no core at all. What the answer has in common
        with another one is stored once (`shared`). With `again`, an earlier repeat whose answer is the same to the
        letter, nothing is stored and that query is returned; only for a request without an idempotency key.
        Errors: IdempotencyConflict, UnknownAccount; ValueError for a query id that was used before.
        """
        if again is not None and request.idempotency_key is not None:
            raise ValueError("a request with an idempotency key is stored under it")
        outcome: ReserveOutcome | None = self._write(
            Repeat(request=request, releases=dict(releases), answer=answer, shared=shared, again=again)
        )
        if outcome is None:
            return None
        return self._reserved(outcome, answer=answer if outcome.fresh else None)

    def _reserved(self, outcome: ReserveOutcome, *, answer: bytes | None = None) -> Reserved:
        reused: dict[str, StoredRelease] = {}
        if outcome.state is QueryStatus.SETTLED:
            if answer is None:
                with self._read() as connection:
                    answer = _whole_answer(connection, connection.execute(_ANSWER, {"query": outcome.query_id}).one())
        elif outcome.fresh and outcome.reused:
            with self._read() as connection:
                reused = {
                    key: _release(connection.execute(_RELEASE, {"release": name}).one())
                    for key, name in outcome.reused.items()
                }
        return Reserved(
            query_id=outcome.query_id,
            state=outcome.state,
            fresh=outcome.fresh,
            answer=answer,
            reused=reused,
            charged=_charged(outcome.charged),
            read=outcome.read,
        )

    def post(self, query_id: str, releases: Sequence[StoredRelease], answer: bytes) -> None:
        """Settles a reserved query: releases, answer, state and entries in one transaction.

        The answer may be told only after this has returned. Errors: UnknownQuery; IllegalTransition when it is settled
        or failed (also when its process was taken for dead); ValueError for a release that was not charged.
        """
        self._write(Post(query_id, tuple(releases), answer))

    def fail(self, query_id: str, releases: Sequence[StoredRelease] = ()) -> None:
        """Ends a query without an answer; it stays charged. What it had released until then may be reused.

        Errors: UnknownQuery, IllegalTransition; ValueError for a release that was not charged.
        """
        self._write(Fail(query_id, tuple(releases)))

    def void(self, query_id: str) -> None:
        """Ends a query whose engine provably never started, and gives the charge back on the whole path.

        Errors: UnknownQuery, IllegalTransition.
        """
        self._write(Void(query_id))

    def query(self, query_id: str) -> QueryRecord | None:
        """The query with its stored answer, None when there is none."""
        with self._read() as connection:
            row = connection.execute(select(queries).where(queries.c.id == query_id)).one_or_none()
            answer = None if row is None else _whole_answer(connection, row)
        return None if row is None else _query_record(row, answer=answer)

    def queries(
        self, principal: str | None, *, dataset: str | None = None, after: str | None = None, count: int = 50
    ) -> list[QueryRecord]:
        """A page of queries without their answers, newest first; of every principal when `principal` is None.

        `after` is the id of the last query of the page before; a page after an unknown query is empty.
        """
        columns = [column for column in queries.c if not column.name.startswith("answer")]
        chosen = select(*columns).order_by(queries.c.created.desc(), queries.c.id.desc()).limit(_page(count))
        if principal is not None:
            chosen = chosen.where(queries.c.principal == principal)
        if dataset is not None:
            chosen = chosen.where(queries.c.dataset == dataset)
        with self._read() as connection:
            if after is not None:
                last = connection.execute(select(queries.c.created).where(queries.c.id == after)).scalar_one_or_none()
                if last is None:
                    return []
                chosen = chosen.where(tuple_(queries.c.created, queries.c.id) < tuple_(last, after))
            return [_query_record(row) for row in connection.execute(chosen)]

    # Releases

    def release(self, release_id: str) -> StoredRelease | None:
        """A stored release, None when there is none. Who may see it is the caller's question."""
        with self._read() as connection:
            row = connection.execute(_RELEASE, {"release": release_id}).one_or_none()
        return None if row is None else _release(row)

    def has_read(self, principal: str, release_id: str) -> bool:
        """Whether an account of the principal was charged for reading a release that somebody else paid for."""
        chosen = (
            select(readings.c.release)
            .join(accounts, accounts.c.id == readings.c.account)
            .where(readings.c.release == release_id, accounts.c.principal == principal)
            .limit(1)
        )
        with self._read() as connection:
            return connection.execute(chosen).one_or_none() is not None

    def find_read(self, account: str, core_key: str, *, quality: Fraction = Fraction(0)) -> StoredRelease | None:
        """The best release of a core that an account was charged for reading, of at least that quality."""
        chosen = (
            select(release_table)
            .join(readings, readings.c.release == release_table.c.id)
            .where(
                readings.c.account == account,
                readings.c.core_key == core_key,
                release_table.c.quality >= units_down(quality, PICO),
            )
            .order_by(release_table.c.quality.desc(), release_table.c.created.desc(), release_table.c.id.desc())
            .limit(1)
        )
        with self._read() as connection:
            row = connection.execute(chosen).one_or_none()
        return None if row is None else _release(row)

    def find_release(
        self, core_key: str, *, quality: Fraction = Fraction(0), principal: str | None = None
    ) -> StoredRelease | None:
        """The stored release that would serve: the best (then newest) one of at least that quality.

        Of that principal, where one is given.
        """
        chosen, values = _BEST, {"core_key": core_key, "least": units_down(quality, PICO)}
        if principal is not None:
            chosen, values = _BEST_OWN, {**values, "principal": principal}
        with self._read() as connection:
            row = connection.execute(chosen, values).one_or_none()
        return None if row is None else _release(row)

    def releases_of(self, query_id: str) -> list[StoredRelease]:
        """The releases that a query made itself, best first."""
        with self._read() as connection:
            return [_release(row) for row in connection.execute(_RELEASES_OF, {"query": query_id})]

    # Care

    def recover(self) -> int:
        """Fails the open queries of processes whose lease is over; they stay charged. Returns how many.

        An open ledger does this by itself as well, at its start and once in every `lease_seconds`.
        """
        return self._recover(all_others=False)

    def check_writable(self) -> None:
        """Commits a sign of life. Errors: LedgerUnavailable, LedgerBehind."""
        self._write(Touch())

    def audit(self) -> AuditReport:
        """Recomputes every balance from the entries, and both chains; changes nothing."""
        with self._read(snapshot=True) as connection:
            return audit_ledger(connection)

    @property
    def behind(self) -> bool:
        """Whether the ledger is older than its high-water mark, or than it was while open, and refuses to write."""
        return self._behind is not None

    @property
    def high_water_failed(self) -> bool:
        """Whether the last writing of the mark did not succeed: a restored backup might go unnoticed."""
        return self._high_water is not None and self._high_water.failed

    def acknowledge_restore(self, *, actor: str, reason: str) -> None:
        """Accepts that charges were forgotten, and records who said so and why in every root account.

        Nothing is given back by this; whoever knows what was spent lowers the limits as well.
        Errors: ValueError when the ledger is not behind or a text is missing.
        """
        _require_text(actor)
        _require_text(reason)
        if self._behind is None or self._writer is None:
            raise ValueError("the ledger is not behind its high-water mark")
        if "file" in self._behind:
            raise ValueError("the ledger's file was exchanged while it was open: start again on the right one first")
        if self._without_row():
            self._announce()
        # Past the check of `_write`: the ledger is behind for everybody else until this is durable.
        self._writer.submit(Acknowledge(actor=actor, reason=reason, lost=self._behind))
        self._behind = None
        with self._read() as connection:
            sequence, digest = connection.execute(select(ledger_meta.c.sequence, ledger_meta.c.hash)).one()
        self._remember_head(sequence, digest, lower=True)
        self._recover(all_others=False)

    def _lose(self, lost: dict[str, Any]) -> None:
        """The ledger went back while it was open: nothing is written until somebody acknowledges it."""
        if self._behind is None:
            self._behind = lost

    def _without_row(self) -> bool:
        """Whether this process's own row was lost together with the entries."""
        with self._read() as connection:
            found = connection.execute(select(instances.c.id).where(instances.c.id == self.instance))
            return found.one_or_none() is None

    def _recover(self, *, all_others: bool) -> int:
        count: int = self._write(Recover(all_others=all_others))
        return count

    def _write(self, operation: Operation) -> Any:
        if self._writer is None:
            raise LedgerUnavailable("the ledger is closed in this process")
        if self._behind is not None:
            raise LedgerBehind(
                "the ledger is older than it was: a backup was restored or its database went back, and charges are "
                "missing; nothing is spent until an administrator acknowledges it"
            )
        return self._writer.submit(operation)

    def _now(self) -> int:
        return to_micros(self._clock())

    @contextlib.contextmanager
    def _read(self, *, snapshot: bool = False) -> Iterator[Connection]:
        """A read transaction; with `snapshot` all statements see one moment."""
        engine = self._engine
        if snapshot and engine.dialect.name == "postgresql":
            engine = engine.execution_options(isolation_level="REPEATABLE READ")
        try:
            with engine.connect() as connection:
                yield connection
        except (OperationalError, InterfaceError, PoolTimeoutError) as error:
            raise LedgerUnavailable("the ledger's database could not be read") from error

    def _announce(self) -> None:
        now = self._now()
        row = {
            "id": self.instance,
            "name": self._name,
            "batch": 0,
            "started": now,
            "expires": now + self._lease_micros,
        }
        try:
            with self._engine.connect().execution_options(immediate=True) as connection:
                connection.execute(insert(instances).values(**row))
                connection.commit()
        except DBAPIError as error:
            raise LedgerUnavailable("the ledger's database cannot be written") from error

    def _compare_with_mark(self) -> dict[str, Any] | None:
        """What is missing compared with the mark, None when nothing is."""
        if self._high_water is None:
            return None
        # The mark first: other processes may be spending, and what they commit between the two readings must not make
        # the ledger look older than the mark.
        mark: Mark | None = None
        readable = True
        try:
            mark = self._high_water.read()
        except ValueError:
            readable = False
        with self._read() as connection:
            sequence, digest = connection.execute(select(ledger_meta.c.sequence, ledger_meta.c.hash)).one()
            if not readable:
                return {"ledger_sequence": sequence, "mark": "unreadable"}
            if mark is None:
                self._high_water.write(Mark(ledger=self.identity, sequence=sequence, hash=digest))
                return None
            there: str | None = GENESIS
            if mark.sequence:
                there = connection.execute(
                    select(entries.c.hash).where(entries.c.sequence == mark.sequence)
                ).scalar_one_or_none()
        if mark.ledger == self.identity and there == mark.hash:
            return None
        return {
            "ledger_sequence": sequence,
            "mark": {"hash": mark.hash, "ledger": mark.ledger, "sequence": mark.sequence},
        }

    def _remember_head(self, sequence: int, digest: str, *, lower: bool = False) -> None:
        if self._high_water is not None and self._behind is None:
            self._high_water.write(Mark(ledger=self.identity, sequence=sequence, hash=digest), lower=lower)

    def _accounts(self, connection: Connection, *conditions: Any) -> list[Account]:
        chosen = (
            select(*ACCOUNT_COLUMNS).where(*conditions).order_by(accounts.c.depth, accounts.c.created, accounts.c.id)
        )
        states = [AccountState.from_row(row) for row in connection.execute(chosen)]
        outstanding = (
            select(entries.c.account, *(func.sum(entries.c[name]) for name in Amounts._fields))
            .join(queries, queries.c.id == entries.c.query_id)
            .where(
                entries.c.kind == EntryKind.RESERVE.value,
                queries.c.state == QueryStatus.RESERVED.value,
                entries.c.account.in_([state.id for state in states]),
            )
            .group_by(entries.c.account)
        )
        reserved: dict[str, Sums] = {}
        if states:
            for row in connection.execute(outstanding):
                reserved[row[0]] = Amounts(*(int(amount) for amount in row[1:])).sums()
        return [state.account(reserved=reserved.get(state.id)) for state in states]


def _checked_identity(connection: Connection) -> tuple[str, Head]:
    """The ledger's name and its head, when this program may write it."""
    if not inspect(connection).has_table(ledger_meta.name):
        raise NotMigrated("the database holds no ledger; run the migrations first")
    identity, schema, sequence, digest = connection.execute(
        select(ledger_meta.c.ledger, ledger_meta.c.schema, ledger_meta.c.sequence, ledger_meta.c.hash)
    ).one()
    if schema > SCHEMA:
        raise SchemaTooNew(
            f"the ledger has schema {schema} and this program knows {SCHEMA}: it was written by a newer version"
        )
    if schema < SCHEMA:
        raise NotMigrated(f"the ledger has schema {schema} and this program needs {SCHEMA}; run the migrations first")
    return str(identity), Head(sequence, digest)


def _require_text(text: str) -> None:
    if not isinstance(text, str) or not text.strip() or len(text) > TEXT_MAX or not storable(text):
        raise ValueError(f"a name, an actor or a reason has between 1 and {TEXT_MAX} characters and no NUL")


def _page(count: int) -> int:
    if not 1 <= count <= ENTRIES_MAX:
        raise ValueError(f"a page has between 1 and {ENTRIES_MAX} rows")
    return count


def _charged(stored: str) -> tuple[Charged, ...]:
    return tuple(
        Charged(account=account, epsilon=fraction_from_text(epsilon), delta=fraction_from_text(delta))
        for account, epsilon, delta in json.loads(stored)
    )


def _release(row: Any) -> StoredRelease:
    return StoredRelease(
        id=row.id,
        core_key=row.core_key,
        quality=row.quality * PICO,
        principal=row.principal,
        dataset=row.dataset,
        query_id=row.query_id,
        events=tuple(event_from_json(event) for event in json.loads(row.events)),
        body=row.body,
        created=from_micros(row.created),
    )


def _whole_answer(connection: Connection, row: Any) -> bytes | None:
    """The answer of a row, together with what it shares with another query's."""
    if row.answer is None or row.answer_of is None:
        return None if row.answer is None else bytes(row.answer)
    shared = SharedAnswer(query_id=row.answer_of, start=row.answer_from, end=row.answer_to, at=row.answer_at)
    other = connection.execute(_ANSWER, {"query": row.answer_of}).one()
    assert other.answer_of is None, "an answer refers to one that is whole"
    return shared.whole(row.answer, other.answer)


def _query_record(row: Any, *, answer: bytes | None = None) -> QueryRecord:
    cores = json.loads(row.cores)
    return QueryRecord(
        id=row.id,
        principal=row.principal,
        dataset=row.dataset,
        account=row.account,
        idempotency_key=row.idempotency_key,
        body_hash=row.body_hash,
        state=QueryStatus(row.state),
        description=json.loads(row.description),
        charged=_charged(row.charged),
        core_keys=tuple(core["core_key"] for core in cores["charged"]),
        reused=serving_of(cores),
        answer=answer,
        instance=row.instance,
        created=from_micros(row.created),
        finished=None if row.finished is None else from_micros(row.finished),
    )
