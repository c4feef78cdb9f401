"""The ledger: charges before answers, in one transaction each, durable before anybody is answered.

The order of a query is reserve, post. `reserve` recomputes the price from the privacy events, asks the
filter of every account on the path and debits all of them; `post` stores releases and answer together with the
entries that say so. A reservation whose fate is unknown counts as spent. See README.md of this room.
"""

from __future__ import annotations

import datetime
import secrets
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import NoReturn, TypeVar

from sqlalchemy import Connection, insert, inspect, select
from sqlalchemy.exc import DBAPIError

from accountant.accounts import Accounts, new_account_id, require_text
from accountant.acts import hash_at
from accountant.beside import Agreed
from accountant.connection import open_engine, parse_url, sqlite_path
from accountant.continuity import Continuity, Head, OpenedFile
from accountant.entry import from_micros
from accountant.errors import LedgerBehind, LedgerRejected, LedgerUnavailable, NotMigrated, SchemaTooNew
from accountant.highwater import HighWater, Mark
from accountant.history import History
from accountant.instance import OwnerLock
from accountant.operation import Operation
from accountant.operations import Acknowledge, Fail, Post, Recover, Touch, Void
from accountant.reads import utc_now
from accountant.request import Reserved, ReserveRequest, SharedAnswer, StoredRelease, charges_of
from accountant.reserving import Repeat, Reserve, ReserveOutcome
from accountant.states import QueryStatus
from accountant.tables import SCHEMA, entries, instances, ledger_meta
from accountant.watching import Watching
from accountant.writer import Writer
from privacy.values import Json

__all__ = ["Ledger", "checked_identity", "new_account_id", "utc_now"]

Written = TypeVar("Written")


class Ledger(Accounts, History, Watching):
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
        super().__init__(open_engine(url), clock)
        self._rejected: str | None = None
        self._latest = 0
        self._latest_lock = threading.Lock()
        self._owner: OwnerLock | None = None
        self._writer: Writer | None = None
        self._high_water = HighWater(high_water) if high_water is not None else None
        self.mark_made = False
        """Whether there was no mark of a PostgreSQL ledger that has entries, so that one was made: right on a machine
        that is new to the ledger; on another one it means that the mark was lost, and with it what it had seen."""
        try:
            opened = OpenedFile(path)
            with self._read() as connection:
                self.identity, head = checked_identity(connection)
            self._owner = OwnerLock(path) if path is not None else None
            self._behind: dict[str, Json] | None = self._compare_with_mark()
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
            self._alone_since = self._now() if self._owner is not None and self._owner.exclusive else 0
            if self._behind is None:
                self.recovered_at_start = self._recover(all_others=self._alone_since > 0)
            else:
                self.recovered_at_start = 0
            if self._owner is not None:
                self._owner.share()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Finishes the steps that were asked for and closes the database."""
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

    # Queries

    def reserve(self, request: ReserveRequest) -> Reserved:
        """Charges a query, or finds it charged or answered before. Nothing may touch rows before this has returned.

        One transaction: an earlier request with the principal's idempotency key is returned as it is; otherwise each
        core is served by a stored release if there is one that is good enough, and the events of all other cores are
        charged on every account from the root down. When everything is reused, nothing is charged, and the query is
        settled by `post` without releases. Two equal queries that run at the same time are both charged: the
        second does not wait for the first, whose success nobody knows yet.
        Errors: BudgetExhausted, IdempotencyConflict, UnknownAccount; PriceMoved when more than `most` would be charged;
        ValueError for a query id that was used before.
        """
        return self._reserved(self._write(Reserve(request=request)))

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
        these releases serve all of its cores, and the answer may be returned. None, with nothing changed, when they do
        not: another release is better, none is good enough, or there is no core at all. What the answer has in common
        with another one is stored once (`shared`). With `again`, an earlier repeat whose answer is the same to the
        letter, nothing is stored and that query is returned; only for a request without an idempotency key.
        Errors: IdempotencyConflict, UnknownAccount; ValueError for a query id that was used before.
        """
        if again is not None and request.idempotency_key is not None:
            raise ValueError("a request with an idempotency key is stored under it")
        outcome = self._write(
            Repeat(request=request, releases=dict(releases), answer=answer, shared=shared, again=again)
        )
        if outcome is None:
            return None
        return self._reserved(outcome, answer=answer if outcome.fresh else None)

    def _reserved(self, outcome: ReserveOutcome, *, answer: bytes | None = None) -> Reserved:
        reused: dict[str, StoredRelease] = {}
        if outcome.state is QueryStatus.SETTLED:
            if answer is None:
                answer = self.answer_of(outcome.query_id)
        elif outcome.fresh and outcome.reused:
            reused = self.stored(outcome.reused)
        return Reserved(
            query_id=outcome.query_id,
            state=outcome.state,
            fresh=outcome.fresh,
            answer=answer,
            reused=reused,
            charged=charges_of(outcome.charged),
            read=outcome.read,
        )

    def post(self, query_id: str, releases: Sequence[StoredRelease], answer: bytes) -> None:
        """Settles a reserved query: releases, answer, state and entries in one transaction.

        The answer may be returned only after this has. Errors: UnknownQuery; IllegalTransition when it is settled
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

    # Care

    def recover(self) -> int:
        """Fails the open queries of processes whose lease is over; they stay charged. Returns how many.

        An open ledger does this by itself as well, at its start and three times in every `lease_seconds`.
        """
        return self._recover(all_others=False)

    def gone(self, names: Collection[str]) -> frozenset[str]:
        """Which of these instances are not alive: whatever they had under way, none of them will end it.

        An instance is gone as for `recover`: its lease is over, or on SQLite it ended before this process began. As
        there, one that was only slow must find what it had under way ended, and say nothing of it.
        Errors: LedgerUnavailable.
        """
        row = instances.c
        with self._read() as connection:
            found = connection.execute(select(row.id, row.started, row.expires).where(row.id.in_(list(names)))).all()
        now = self._now()
        alive = {one.id for one in found if one.expires >= now and one.started >= self._alone_since}
        return frozenset(names) - alive - {self.instance}

    def check_writable(self) -> None:
        """Commits a sign of life. Errors: LedgerUnavailable, LedgerBehind."""
        self._write(Touch())

    @property
    def behind(self) -> bool:
        """Whether the ledger is older than its high-water mark, or than it was while open, and refuses to write."""
        return self._behind is not None

    @property
    def recovered(self) -> int:
        """How many queries of dead processes this one has failed since it began; they stay charged."""
        return self.recovered_at_start + (0 if self._writer is None else self._writer.recovered)

    @property
    def mark(self) -> int | None:
        """The number of the last entry or act that the high-water mark knows; None without a mark that can be read."""
        try:
            known = None if self._high_water is None else self._high_water.read()
        except ValueError:
            return None
        return None if known is None else known.sequence

    @property
    def high_water_failed(self) -> bool:
        """Whether the last writing of the mark did not succeed: a restored backup might go unnoticed."""
        return self._high_water is not None and self._high_water.failed

    def acknowledge_restore(self, *, actor: str, reason: str, agreed: Agreed | None = None) -> None:
        """Accepts that charges were forgotten, and records who said so and why in every root account.

        Nothing is given back by this; whoever knows what was spent lowers the limits as well. `agreed` is the proposal
        that `actor` confirms, which ends with it.
        Errors: ValueError when the ledger is not behind or a text is missing.
        """
        require_text(actor)
        require_text(reason)
        if self._behind is None or self._writer is None:
            raise ValueError("the ledger is not behind its high-water mark")
        if "file" in self._behind:
            raise ValueError("the ledger's file was exchanged while it was open: start again on the right one first")
        if self._without_row():
            self._announce()
        # Past the check of `_write`: the ledger is behind for everybody else until this is durable.
        known = self._high_water.read_epoch() if self._high_water is not None else 0
        epoch = max(known, self._latest)
        self._writer.submit(Acknowledge(actor=actor, reason=reason, lost=self._behind, agreed=agreed, epoch=epoch))
        self._behind = None
        with self._read() as connection:
            head = _head(connection)
        self._remember_head(head, lower=True)
        self._recover(all_others=False)

    @property
    def rejected(self) -> str | None:
        """What did not agree, where an audit or a reader found the ledger changed: it is not spent from any more."""
        return self._rejected

    def reject(self, what: str) -> None:
        """Stops all spending from this process: an audit found that the ledger does not agree with itself."""
        self._rejected = self._rejected or what

    def accept(self) -> None:
        """Takes back what an earlier start had found: a whole audit finds nothing now."""
        self._rejected = None

    def _reject(self, what: str) -> NoReturn:
        self.reject(what)
        super()._reject(what)

    def _lose(self, lost: dict[str, Json]) -> None:
        """The ledger went backwards while it was open: nothing is written until somebody acknowledges it."""
        if self._behind is None:
            self._behind = lost

    def _without_row(self) -> bool:
        """Whether this process's own row was lost together with the entries."""
        with self._read() as connection:
            found = connection.execute(select(instances.c.id).where(instances.c.id == self.instance))
            return found.one_or_none() is None

    def _recover(self, *, all_others: bool) -> int:
        return self._write(Recover(all_others=all_others))

    def _write(self, operation: Operation[Written]) -> Written:
        if self._writer is None:
            raise LedgerUnavailable("the ledger is closed in this process")
        if self._rejected is not None:
            raise LedgerRejected(self._rejected, before=True)
        if self._behind is not None:
            raise LedgerBehind(
                "the ledger is older than it was: a backup was restored or its database went back, and charges are "
                "missing; nothing is spent until an administrator acknowledges it"
            )
        return self._writer.submit(operation)

    def time(self) -> datetime.datetime:
        """The ledger's time, in UTC: this machine's clock, and never before any entry or what was returned before.

        While clocks differ it may be the moment of somebody's entry: nobody is shown it who does not see every entry.
        Errors: LedgerUnavailable.
        """
        with self._read() as connection:
            epoch = _head(connection).epoch
        return from_micros(self._at_least(max(self._now(), epoch)))

    def _at_least(self, moment: int) -> int:
        with self._latest_lock:
            self._latest = max(self._latest, moment)
            return self._latest

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

    def _compare_with_mark(self) -> dict[str, Json] | None:
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
            head = _head(connection)
            sequence, digest = head.sequence, head.hash
            if not readable:
                return {"ledger_sequence": sequence, "mark": "unreadable"}
            if mark is None:
                charged = connection.execute(select(entries.c.sequence).limit(1)).one_or_none() is not None
                if charged and connection.dialect.name == "sqlite":
                    # On one machine the mark is older than the first entry: somebody removed it, or its disk is gone.
                    return {"ledger_sequence": sequence, "mark": "missing"}
                self.mark_made = charged
                self._high_water.write(Mark(self.identity, sequence, digest, head.epoch))
                return None
            there = hash_at(connection, mark.sequence)
        if mark.ledger == self.identity and there == mark.hash:
            return None
        return {
            "ledger_sequence": sequence,
            "mark": {"hash": mark.hash, "ledger": mark.ledger, "sequence": mark.sequence},
        }

    def _remember_head(self, head: Head, *, lower: bool = False) -> None:
        self._at_least(head.epoch)
        if self._high_water is not None and self._behind is None:
            self._high_water.write(Mark(self.identity, head.sequence, head.hash, head.epoch), lower=lower)


def checked_identity(connection: Connection) -> tuple[str, Head]:
    """The ledger's name and its head, when this program may write it."""
    if not inspect(connection).has_table(ledger_meta.name):
        raise NotMigrated("the database holds no ledger; run the migrations first")
    identity, schema = connection.execute(select(ledger_meta.c.ledger, ledger_meta.c.schema)).one()
    if schema > SCHEMA:
        raise SchemaTooNew(
            f"the ledger has schema {schema} and this program knows {SCHEMA}: it was written by a newer version"
        )
    if schema < SCHEMA:
        raise NotMigrated(f"the ledger has schema {schema} and this program needs {SCHEMA}; run the migrations first")
    return str(identity), _head(connection)


def _head(connection: Connection) -> Head:
    """The last entry and the ledger's time."""
    meta = ledger_meta.c
    return Head(*connection.execute(select(meta.sequence, meta.hash, meta.epoch)).one())
