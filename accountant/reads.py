"""Reading a ledger: accounts, entries, queries and releases. Nothing here writes."""

from __future__ import annotations

import contextlib
import datetime
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import NoReturn

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    func,
    select,
    tuple_,
)
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from accountant.account import Account
from accountant.audit import AuditReport, audit_ledger, audit_since
from accountant.checkpoint import Checkpoint
from accountant.connection import unhurried
from accountant.direct import Parameters, Row, read
from accountant.entry import Amounts, Entry, Kept, as_bytes, body_hash, from_micros, read_entry, to_micros
from accountant.errors import IdempotencyConflict, LedgerRejected, LedgerUnavailable, UnknownAccount
from accountant.export import export_lines
from accountant.filter import Sums
from accountant.read_statements import (
    ANSWER,
    BEST,
    BEST_OF,
    BEST_OF_OWN,
    BEST_OWN,
    EARLIER,
    FRAMES,
    FRAMES_MAX,
    RELEASE,
    RELEASE_COLUMNS,
    RELEASES_OF,
    SPENDABLE,
    STANDING,
    held_by,
    held_by_read,
    kept_of,
)
from accountant.request import HeldRelease, QueryRecord, Reserved, SharedAnswer, StoredRelease, charges_of
from accountant.reserving import serving_of
from accountant.rows import AccountState, AnswerRow, EarlierRow, ReleaseRow, release_hash
from accountant.statements import ACCOUNT_COLUMNS, Columns, DialectKind, text_of
from accountant.states import EntryKind, QueryStatus
from accountant.tables import accounts, entries, queries, readings
from accountant.tables import releases as release_table
from privacy.events import event_from_json
from privacy.numbers import PICO, units_down

__all__ = ["ENTRIES_MAX", "FRAMES_MAX", "HELD_MAX", "Reads", "utc_now"]

ENTRIES_MAX = 1000
"""Most rows of one page."""

HELD_MAX = 16
"""Most stored releases whose sums are looked at for one question."""

_UNREACHABLE = (OperationalError, InterfaceError, PoolTimeoutError)
_UNREACHABLE_TEXT = "the ledger's database could not be read"


def utc_now() -> datetime.datetime:
    """The system's clock in UTC."""
    return datetime.datetime.now(datetime.UTC)


def _padded(frames: Sequence[str]) -> dict[str, str]:
    """One statement for any number of frames: the last one again."""
    return {name: frames[min(place, len(frames) - 1)] for place, name in enumerate(FRAMES)}


class Reads:
    """What can be read of a ledger. Errors: LedgerUnavailable when its database cannot be reached, for every call."""

    def __init__(self, engine: Engine, clock: Callable[[], datetime.datetime] = utc_now) -> None:
        self._engine = engine
        self._clock = clock
        kind = DialectKind.of(engine.dialect)
        # What every question reads.
        self._spendable = text_of(SPENDABLE, kind)
        self._standing = text_of(STANDING, kind)
        self._earlier = text_of(EARLIER, kind)
        self._answer = text_of(ANSWER, kind)
        self._best = f"{text_of(BEST, kind)} LIMIT 1"
        self._best_own = f"{text_of(BEST_OWN, kind)} LIMIT 1"
        self._held = {
            (finer, own): f"{text_of(held_by(finer=finer, own=own), kind)} LIMIT {HELD_MAX}"
            for finer in (False, True)
            for own in (False, True)
        }
        self._held_read = {
            finer: f"{text_of(held_by_read(finer=finer), kind)} LIMIT {HELD_MAX}" for finer in (False, True)
        }
        self._best_of = f"{text_of(BEST_OF, kind)} LIMIT 1"
        self._best_of_own = f"{text_of(BEST_OF_OWN, kind)} LIMIT 1"

    def account(self, account: str) -> Account:
        """The account at this moment. Errors: UnknownAccount."""
        with self._read() as connection:
            found = self._accounts(connection, accounts.c.id == account)
        if not found:
            raise UnknownAccount(account)
        return found[0]

    def accounts(
        self, *, dataset: str | None = None, principal: str | None = None, space: str | None = None
    ) -> list[Account]:
        """All accounts, or those of a dataset, of a principal, of a unit space; roots first."""
        asked = {"dataset": dataset, "principal": principal, "space": space}
        conditions = [accounts.c[name] == value for name, value in asked.items() if value is not None]
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

    def spendable(self, dataset: str, principal: str, *, named: str | None = None) -> list[tuple[Account, ...]]:
        """The paths (account first, root last) of every account of a dataset that a principal may spend from.

        Frozen ones are not among them; an envelope is where it is `named` and there is an account that never ends.

        One statement: this is read for every question. `reserved` of these accounts is not filled in.
        """
        rows = self._rows(self._spendable, {"dataset": dataset, "principal": principal, "named": named or ""})
        known = {state.id: state.account(self._now()) for state in map(AccountState.from_row, rows)}
        mine = [one for one in known.values() if one.principal == principal and not one.frozen]
        paths = []
        for own in sorted(mine, key=_ends) if False in map(_ends, mine) else ():
            path = [own]
            while path[-1].parent in known:
                path.append(known[path[-1].parent or ""])
            paths.append(tuple(path) if path[-1].parent is None else self.path(own.id))
        return paths

    def standing(self, account: str) -> Account:
        """The account at this moment, without its `reserved` amounts. Errors: UnknownAccount."""
        rows = self._rows(self._standing, {"account": account})
        if not rows:
            raise UnknownAccount(account)
        return AccountState.from_row(rows[0]).account(self._now())

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

    def restores(self, account: str) -> int:
        """How often an older copy of the ledger was put back and acknowledged, as a root account has it."""
        told = entries.c.details.contains('"action":"acknowledge_restore"', autoescape=True)
        kind = entries.c.kind == EntryKind.ADJUST.value
        chosen = select(func.count()).where(entries.c.account == account, kind, told)
        with self._read() as connection:
            return int(connection.execute(chosen).scalar_one())

    def earlier(self, principal: str, idempotency_key: str, body_hash: str) -> Reserved | None:
        """What a principal's idempotency key stands for already, None when it is new. Writes nothing.

        For a retry, which is owed its answer whatever has become of dataset, policy and limits since. `reserve` asks
        again under the lock. Errors: IdempotencyConflict when the key stands for another body.
        """
        found = self._rows(self._earlier, {"principal": principal, "key": idempotency_key})
        if not found:
            return None
        earlier = EarlierRow.of(found[0])
        if earlier.body_hash != body_hash:
            raise IdempotencyConflict(earlier.id)
        return Reserved(
            query_id=earlier.id,
            state=QueryStatus(earlier.state),
            fresh=False,
            answer=self._whole(earlier.stored, owner=principal),
            reused={},
            charged=charges_of(earlier.charged),
        )

    def query(self, query_id: str) -> QueryRecord | None:
        """The query with its stored answer, None when there is none."""
        with self._read() as connection:
            chosen = select(queries, kept_of("queries.id")).where(queries.c.id == query_id)
            row = connection.execute(chosen).one_or_none()
        if row is None:
            return None
        kept = None if row.kept is None else self._kept(row.kept)
        if kept is not None and kept.owner != row.principal:
            self._reject("a query belongs to somebody else than when it ended")
        return _query_record(row, answer=self._whole_of(row))

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

    def release(self, release_id: str) -> StoredRelease | None:
        """A stored release, None when there is none. Who may see it is the caller's question."""
        with self._read() as connection:
            row = connection.execute(RELEASE, {"release": release_id}).one_or_none()
        return None if row is None else self._release(row)

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
            select(*RELEASE_COLUMNS)
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
        return None if row is None else self._release(row)

    def find_release(
        self, core_key: str, *, quality: Fraction = Fraction(0), principal: str | None = None
    ) -> StoredRelease | None:
        """The stored release that would serve: the best (then newest) one of at least that quality.

        Of that principal, where one is given.
        """
        chosen, values = self._best, {"core_key": core_key, "least": units_down(quality, PICO)}
        if principal is not None:
            chosen, values = self._best_own, {**values, "principal": principal}
        rows = self._rows(chosen, values)
        return self._release(ReleaseRow._make(rows[0])) if rows else None

    def find_held(self, frame: str, *, principal: str | None = None) -> list[HeldRelease]:
        """What stored releases of a frame hold, the greatest quality first, at most `HELD_MAX` of them.

        Of that principal, where one is given.
        """
        return self._held_of({"frame": frame}, finer=False, principal=principal)

    def find_finer(self, frames: Sequence[str], *, principal: str | None = None) -> list[HeldRelease]:
        """The same of releases of any groups in these frames, which have none; of at most `FRAMES_MAX` frames."""
        assert 1 <= len(frames) <= FRAMES_MAX
        return self._held_of(_padded(frames), finer=True, principal=principal)

    def find_held_read(self, account: str, frame: str) -> list[HeldRelease]:
        """As `find_held`, of releases that an account was charged for reading."""
        return [_held(row) for row in self._rows(self._held_read[False], {"account": account, "frame": frame})]

    def find_finer_read(self, account: str, frames: Sequence[str]) -> list[HeldRelease]:
        """As `find_finer`, of releases that an account was charged for reading."""
        return [_held(row) for row in self._rows(self._held_read[True], {"account": account, **_padded(frames)})]

    def _held_of(self, values: Mapping[str, str], *, finer: bool, principal: str | None) -> list[HeldRelease]:
        if principal is not None:
            values = {**values, "principal": principal}
        return [_held(row) for row in self._rows(self._held[finer, principal is not None], values)]

    def find_best(self, keys: tuple[str, str], *, principal: str | None = None) -> StoredRelease | None:
        """The best stored release under either of two keys, of equal ones the newest. Of that principal, if given."""
        chosen, values = self._best_of, {"one": keys[0], "other": keys[1]}
        if principal is not None:
            chosen, values = self._best_of_own, {**values, "principal": principal}
        rows = self._rows(chosen, values)
        return self._release(ReleaseRow._make(rows[0])) if rows else None

    def releases_of(self, query_id: str) -> list[StoredRelease]:
        """The releases that a query made itself, best first."""
        with self._read() as connection:
            return [self._release(row) for row in connection.execute(RELEASES_OF, {"query": query_id})]

    def audit(self, *, rest: Callable[[], object] | None = None) -> AuditReport:
        """Recomputes every balance from the entries, and both chains; changes nothing. `rest` as in `audit_ledger`."""
        with self._read(snapshot=True) as connection:
            unhurried(connection)
            return audit_ledger(connection, rest=rest)

    def audit_since(self, checkpoint: Checkpoint) -> AuditReport | None:
        """The same of what came after a checkpoint; None where that is of another history."""
        with self._read(snapshot=True) as connection:
            unhurried(connection)
            return audit_since(connection, checkpoint)

    def export(self, *, now: int) -> Iterator[bytes]:
        """The lines of an export of this moment, read as they are asked for (accountant/export.py)."""
        with self._read(snapshot=True) as connection:
            unhurried(connection)
            yield from export_lines(connection, now=now, answer_of=self._whole_of)

    def stored(self, names: Mapping[str, str]) -> dict[str, StoredRelease]:
        """Releases that exist, by the same keys as their names."""
        with self._read() as connection:
            return {
                key: self._release(connection.execute(RELEASE, {"release": name}).one()) for key, name in names.items()
            }

    def answer_of(self, query_id: str) -> bytes | None:
        """The stored answer of a query that exists."""
        return self._whole(self._answer_row(query_id))

    def _now(self) -> int:
        """The machine's clock. What an account shows of its window depends on this and on the account alone."""
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
        except _UNREACHABLE as error:
            raise LedgerUnavailable(_UNREACHABLE_TEXT) from error

    def _whole_of(self, row: Columns) -> bytes | None:
        """The answer of a row that has all columns of its query, as it is stored."""
        parts = (row.answer, row.answer_of, row.answer_at, row.answer_from, row.answer_to)
        return self._whole(AnswerRow(*parts, getattr(row, "kept", None)), checked=hasattr(row, "kept"))

    def _whole(self, row: AnswerRow, *, checked: bool = True, owner: str | None = None) -> bytes | None:
        """The answer of a row, together with what it shares with another query's. Answers never change.

        Errors: LedgerRejected when it is not the one that was posted (by `owner`), unless it is not `checked`.
        """
        if row.answer is None or row.answer_of is None:
            return None if row.answer is None else self._posted(row, checked=checked, owner=owner)
        if checked and row.kept is not None:
            self._reject("an answer that was posted whole is a part of another one")
        assert row.answer_at is not None
        assert row.answer_from is not None
        assert row.answer_to is not None
        shared = SharedAnswer(query_id=row.answer_of, start=row.answer_from, end=row.answer_to, at=row.answer_at)
        other = self._answer_row(row.answer_of)
        assert other.answer is not None, "an answer refers to one that is there"
        assert other.answer_of is None, "an answer refers to one that is whole"
        return shared.whole(row.answer, self._posted(other, checked=checked))

    def _posted(self, row: AnswerRow, *, checked: bool, owner: str | None = None) -> bytes:
        """A stored answer that is whole. Errors: LedgerRejected when it is not the one that was posted."""
        assert row.answer is not None
        kept = None if row.kept is None or not checked else self._kept(row.kept)
        if kept is not None and (kept.answer != body_hash(row.answer) or owner not in (None, kept.owner)):
            self._reject("a stored answer is not the one that was posted")
        return as_bytes(row.answer)

    def _kept(self, details: str) -> Kept | None:
        """What the end of a query says. Errors: LedgerRejected."""
        try:
            return Kept.read(details)
        except (ValueError, TypeError, KeyError):
            self._reject("the end of a query says what no end says")

    def _reject(self, what: str) -> NoReturn:
        """Errors: LedgerRejected, always."""
        raise LedgerRejected(what)

    def _release(self, row: Columns | ReleaseRow) -> StoredRelease:
        """A stored release. Errors: LedgerRejected when it is not the one that was posted."""
        kept = None if row.kept is None else self._kept(row.kept)
        if kept is not None and kept.releases.get(row.id) != release_hash(row):
            self._reject("a stored release is not what its query released")
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
            frame=row.frame,
            coarse=row.coarse,
            held=row.held,
        )

    def _answer_row(self, query_id: str) -> AnswerRow:
        """The stored answer of a query that exists."""
        (row,) = self._rows(self._answer, {"query": query_id})
        return AnswerRow._make(row)

    def _rows(self, statement: str, parameters: Parameters) -> list[Row]:
        """The rows of one compiled statement."""
        try:
            return read(self._engine, statement, parameters)
        except _UNREACHABLE as error:
            raise LedgerUnavailable(_UNREACHABLE_TEXT) from error

    def _accounts(self, connection: Connection, *conditions: ColumnElement[bool]) -> list[Account]:
        chosen = (
            select(*ACCOUNT_COLUMNS).where(*conditions).order_by(accounts.c.depth, accounts.c.created, accounts.c.id)
        )
        states = [AccountState.from_row(row) for row in connection.execute(chosen)]
        # Of all accounts: the open queries are few, and where the accounts are named too, SQLite goes through every
        # entry that they ever had.
        outstanding = (
            select(entries.c.account, *(func.sum(entries.c[name]) for name in Amounts._fields))
            .join(queries, queries.c.id == entries.c.query_id)
            .where(entries.c.kind == EntryKind.RESERVE.value, queries.c.state == QueryStatus.RESERVED.value)
            .group_by(entries.c.account)
        )
        reserved: dict[str, Sums] = {}
        if states:
            for row in connection.execute(outstanding):
                reserved[row[0]] = Amounts(*(int(amount) for amount in row[1:])).sums()
        return [state.account(self._now(), reserved=reserved.get(state.id)) for state in states]


def _ends(account: Account) -> bool:
    return account.expires is not None


def _page(count: int) -> int:
    if not 1 <= count <= ENTRIES_MAX:
        raise ValueError(f"a page has between 1 and {ENTRIES_MAX} rows")
    return count


def _held(row: Row) -> HeldRelease:
    release, core_key, quality, coarse, held = row
    assert isinstance(release, str)
    assert isinstance(core_key, str)
    assert isinstance(quality, int)
    assert coarse is None or isinstance(coarse, str)
    assert isinstance(held, str)
    return HeldRelease(id=release, core_key=core_key, quality=quality * PICO, coarse=coarse, held=held)


def _query_record(row: Columns, *, answer: bytes | None = None) -> QueryRecord:
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
        charged=charges_of(row.charged),
        core_keys=tuple(core["core_key"] for core in cores["charged"]),
        reused=serving_of(cores),
        answer=answer,
        instance=row.instance,
        created=from_micros(row.created),
        finished=None if row.finished is None else from_micros(row.finished),
    )
