"""One durable transaction for many operations: load what they need, decide in memory, write all rows at once.

The head of the ledger is locked first, so between loading and committing nobody else writes: decisions in memory are
decisions about the database. A batch costs about ten statements however many operations it carries; that, and the one
commit, is what makes the ledger fast.

Operations (accountant/operations.py) read and change a `Batch` only through its methods. An operation checks everything
before it changes anything, so one that raises has no effect.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import Connection, Table
from sqlalchemy.exc import DBAPIError

from accountant import faults
from accountant.acts import continuing
from accountant.beside import Beside
from accountant.calendar import number_at
from accountant.continuity import Continuity
from accountant.direct import Asked, Direct
from accountant.entry import GENESIS, ZERO, Amounts, entry_hash
from accountant.errors import IllegalTransition, UnknownAccount, UnknownQuery
from accountant.filter import Branches, Limit
from accountant.needs import Needs
from accountant.reading import load_made, paid_for
from accountant.request import StoredRelease
from accountant.rows import (
    AccountState,
    Candidate,
    CandidateRow,
    ChargeRow,
    HeadRow,
    ParentRow,
    QueryState,
    ReadingRow,
    ReleaseHead,
)
from accountant.statements import Statements, Value, Values
from accountant.states import EntryKind, QueryStatus
from accountant.tables import accounts, entries, queries, readings, releases
from accountant.window import Turn, Window

__all__ = ["Batch", "Needs"]


class Batch:
    """The working set of one transaction."""

    def __init__(
        self, connection: Connection, statements: Statements, *, now: int, instance: str, continuity: Continuity
    ) -> None:
        self._connection = connection
        self._direct = Direct(connection)
        self._continuity = continuity
        self._statements = statements
        self.clock = now
        """The machine's clock in microseconds: for leases, and for what is no entry."""
        self.now = now
        """The ledger's time in microseconds, once loaded: the clock's, and never before that of any entry."""
        self.instance = instance
        self.sequence = self._began = 0
        self.hash = GENESIS
        self._accepts_loss = False
        self.touched = False
        self.recoverable: list[str] = []
        self._accounts: dict[str, AccountState] = {}
        self._queries: dict[str, QueryState] = {}
        self._keys: dict[tuple[str, str], QueryState] = {}
        self._releases: dict[str, list[ReleaseHead]] = {}
        self._charges: dict[str, list[ChargeRow]] = {}
        self._candidates: dict[str, list[Candidate]] = {}
        self._readings: dict[str, set[str]] = {}
        self._best_read: dict[tuple[str, str], ReleaseHead] = {}
        self._reading_rows: list[Values] = []
        self._entry_rows: list[tuple[Value, ...]] = []
        self._release_rows: list[Values] = []
        self._limits_changed: list[AccountState] = []
        self._frozen_changed: list[AccountState] = []
        self._moved: list[AccountState] = []
        self._open_beside: set[str] = set()

    def load(self, needs: Needs, parents: dict[str, str | None]) -> None:
        """Locks the head and reads all that the operations need. `parents` remembers the tree, as it was.

        Errors: LedgerBehind when the ledger has lost what was durable, unless an operation accepts that.
        """
        direct, read, statements = self._direct, self._direct.read, self._statements
        with direct.together():
            # The head's lock comes first; what the others find is what they find under it.
            asked = direct.ask(statements.head, {"durable": self._continuity.head.sequence})
            keyed = direct.ask(statements.keys, statements.pairs(needs.keys)) if needs.keys else None
            named = direct.ask(statements.queries, statements.ids(needs.queries)) if needs.queries else None
            held = direct.ask(statements.releases, statements.wanted(needs.cores)) if needs.cores else None
            reserved = direct.ask(statements.charges, statements.ids(needs.charges)) if needs.charges else None
            (head,) = asked.read(HeadRow)
            self.sequence, self.hash = head.sequence, head.hash
            self._began = head.sequence
            self.now = max(self.clock, head.epoch)
            self._accepts_loss = needs.accepts_loss
            if not needs.accepts_loss:
                self._continuity.check_head(self.sequence, head.there)
            for found in (keyed, named):
                for query in [] if found is None else found.read(QueryState):
                    if query.id not in self._queries:
                        self._remember(query)
            for release in [] if held is None else held.read(ReleaseHead):
                self._releases.setdefault(release.core_key, []).append(release)
            for charge in [] if reserved is None else reserved.read(ChargeRow.of):
                self._charges.setdefault(charge.query, []).append(charge)
        self._load_named(needs)
        found_for_charge = [row for need in sorted(needs.shared) for row in self._load_shared(*need)]
        made = load_made(self._direct, statements, found_for_charge) if found_for_charge else {}
        payers = {row.payer for row in made.values()}
        wanted = needs.accounts | {query.account for query in self._queries.values()} | payers
        self._load_accounts(wanted, parents)
        if found_for_charge:
            for told, account in read(ReadingRow, statements.readings, statements.ids(made)):
                self._readings.setdefault(told, set()).add(account)
            paths = {payer: [account.id for account in self.path(payer)] for payer in payers}
            measured = {release: paths[row.payer] for release, row in made.items()}
            bases = {release: row.base for release, row in made.items()}
            for one in found_for_charge:
                paid = paid_for(one.id, measured=measured, bases=bases, readings=self._readings)
                candidate = Candidate(one.id, one.core_key, one.quality, one.dataset, one.events, paid)
                self._candidates.setdefault(one.core_key, []).append(candidate)

    def _load_named(self, needs: Needs) -> None:
        """What few operations need: accounts by their place, and the open queries of processes that are gone."""
        read, statements = self._direct.read, self._statements
        if needs.expired:
            gone = {"me": self.instance, "now": self.clock, "all": 1 if needs.others else 0}
            self.recoverable = sorted(read(str, statements.expired, gone))
            missing = set(self.recoverable) - self._queries.keys()
            for query in read(QueryState, statements.queries, statements.ids(missing)) if missing else []:
                self._remember(query)
        for parent, principal in needs.siblings:
            needs.accounts.update(read(str, statements.sibling, {"parent": parent, "principal": principal}))
        if needs.roots:
            needs.accounts.update(read(str, statements.roots))
        for principal in sorted(needs.owned):
            needs.accounts.update(read(str, statements.owned, {"principal": principal}))
        for dataset in sorted(needs.datasets):
            needs.accounts.update(read(str, statements.of_dataset, {"dataset": dataset}))
        for dataset, space in sorted(needs.moved):
            needs.accounts.update(read(str, statements.in_spaces, {"dataset": dataset, "space": space}))
            self._open_beside.update(read(str, statements.open_beside, {"dataset": dataset}))

    def _load_shared(self, account: str, core_key: str, least: int) -> list[CandidateRow]:
        """Releases of one core that may be read for a charge, with the accounts that paid; and the best one read."""
        read, statements = self._direct.read, self._statements
        for best in read(ReleaseHead, statements.best_read, {"account": account, "core_key": core_key}):
            self._best_read[account, core_key] = best
        return read(CandidateRow, statements.candidates, {"core_key": core_key, "least": least})

    def _load_accounts(self, wanted: set[str], parents: dict[str, str | None]) -> None:
        read, statements = self._direct.read, self._statements
        everything: set[str] = set()
        frontier = wanted
        while frontier:
            unknown = frontier - parents.keys()
            if unknown:
                parents.update(read(ParentRow, statements.parents, statements.ids(unknown)))
            everything |= frontier
            above = {parents.get(identifier) for identifier in frontier}
            frontier = {identifier for identifier in above if identifier is not None} - everything
        if everything:
            for state in map(
                AccountState.from_row, self._direct.select(statements.accounts, statements.ids(everything))
            ):
                self._accounts[state.id] = state
                parents[state.id] = state.parent
        # A root may have been put below another one since: what was read under the lock says so.
        above_all = {state.parent for state in self._accounts.values() if state.parent is not None}
        if above_all - self._accounts.keys():
            self._load_accounts(above_all - self._accounts.keys(), parents)

    def _remember(self, query: QueryState) -> None:
        self._queries[query.id] = query
        if query.idempotency_key is not None:
            self._keys[query.principal, query.idempotency_key] = query

    def account(self, identifier: str) -> AccountState:
        """An account. Raises UnknownAccount."""
        found = self._accounts.get(identifier)
        if found is None:
            raise UnknownAccount(identifier)
        return found

    def path(self, identifier: str) -> list[AccountState]:
        """The accounts from the root down to this one: the fixed order of every debit. Raises UnknownAccount."""
        path = [self.account(identifier)]
        while path[-1].parent is not None:
            path.append(self.account(path[-1].parent))
        path.reverse()
        return path

    def accounts(self) -> list[AccountState]:
        """Every account that was loaded or added."""
        return list(self._accounts.values())

    def is_open(self, accounts: Collection[str]) -> bool:
        """Whether a query is open that one of these accounts pays, as far as `Needs.moved` asked for them."""
        known = self._queries.values()
        ended = {query.id for query in known if query.state is not QueryStatus.RESERVED}
        reserved = any(query.account in accounts and query.id not in ended for query in known)
        return reserved or bool(self._open_beside - ended)

    def move_account(self, account: AccountState, *, parent: str | None, deeper: int, space: str) -> None:
        """Another place in the tree, written at the end."""
        account.parent, account.space = parent, space
        account.depth += deeper
        self._moved.append(account)

    def roots(self) -> list[AccountState]:
        """Every root that was loaded."""
        return [account for account in self._accounts.values() if account.parent is None]

    def owned(self, principal: str) -> list[AccountState]:
        """Every account of a principal, as far as `Needs.owned` asked for it, in the order of identifiers."""
        mine = [account for account in self._accounts.values() if account.principal == principal]
        return sorted(mine, key=lambda account: account.id)

    def sibling(self, parent: str, principal: str, dataset: str) -> AccountState | None:
        """The spendable account of a principal below a parent, as far as `Needs.siblings` asked for it.

        One that ends is none: a principal may have any number of envelopes (README.md of this room).
        """
        return next(
            (
                account
                for account in self._accounts.values()
                if (account.parent, account.principal, account.dataset) == (parent, principal, dataset)
                and not account.frozen
                and account.expires is None
            ),
            None,
        )

    def find_query(self, identifier: str) -> QueryState | None:
        """The query, None when there is none."""
        return self._queries.get(identifier)

    def find_key(self, principal: str, key: str | None) -> QueryState | None:
        """The query that has this idempotency key, None when there is none."""
        return None if key is None else self._keys.get((principal, key))

    def open_query(self, identifier: str, *, step: str) -> QueryState:
        """A reserved query, from which `step` leads on. Raises UnknownQuery or IllegalTransition."""
        query = self._queries.get(identifier)
        if query is None:
            raise UnknownQuery(identifier)
        if query.state is not QueryStatus.RESERVED:
            raise IllegalTransition(identifier, state=query.state, step=step)
        return query

    def best_release(self, core_key: str, *, dataset: str, quality: int, principal: str | None) -> ReleaseHead | None:
        """The stored release of greatest quality, at least the asked one; only the principal's when one is given.

        Of equal ones the newest serves. Looks at what `Needs.cores` asked for, and at what this batch added.
        """
        fitting = [
            release
            for release in self._releases.get(core_key, ())
            if release.quality >= quality
            and release.dataset == dataset
            and (principal is None or release.principal == principal)
        ]
        return max(fitting, key=lambda release: (release.quality, release.created, release.id), default=None)

    def best_read(self, account: str, core_key: str, *, dataset: str, quality: int) -> ReleaseHead | None:
        """The best release of a core that an account was charged for reading before, if it is exact enough."""
        found = self._best_read.get((account, core_key))
        return found if found is not None and found.quality >= quality and found.dataset == dataset else None

    def candidates(self, core_key: str, *, dataset: str, quality: int) -> list[Candidate]:
        """Releases of a core that may be read for a charge, the least exact first."""
        return [
            candidate
            for candidate in self._candidates.get(core_key, ())
            if candidate.dataset == dataset and candidate.quality >= quality
        ]

    @property
    def readings(self) -> Mapping[str, Collection[str]]:
        """The accounts that were charged for reading a candidate before, by release."""
        return self._readings

    def add_reading(self, account: str, *, release: str, core_key: str, query_id: str) -> None:
        """An account that was charged for a release, written at the end; one that was there already stays."""
        self._reading_rows.append(
            {"account": account, "release": release, "core_key": core_key, "query_id": query_id, "created": self.clock}
        )

    def charges(self, query_id: str) -> list[ChargeRow]:
        """What the reservation of a query added to each account."""
        return self._charges.get(query_id, [])

    def add_account(self, account: AccountState) -> None:
        """A new account, written at the end."""
        account.new = True
        self._accounts[account.id] = account

    def add_query(self, query: QueryState) -> None:
        """A new query, written at the end."""
        query.new = True
        self._remember(query)

    def add_release(self, release: StoredRelease, *, quality: int, events: str) -> None:
        """A new release, written at the end; later operations of the same batch find it."""
        head = ReleaseHead(release.id, release.core_key, quality, release.principal, release.dataset, self.clock)
        self._releases.setdefault(release.core_key, []).append(head)
        row = release.columns(quality=quality, events=events, created=self.clock)
        self._release_rows.append(row)

    def set_limit(self, account: AccountState, limit: Limit, branches: Branches) -> None:
        """Another limit for an account, written at the end."""
        account.limit = limit
        account.revision += 1
        account.greatest = Limit(
            epsilon=max(account.greatest.epsilon, limit.epsilon), delta=max(account.greatest.delta, limit.delta)
        )
        account.branches = branches
        self._limits_changed.append(account)

    def set_frozen(self, account: AccountState, *, frozen: bool) -> None:
        """Freezes an account, or lets it pay again; written at the end."""
        account.frozen = frozen
        self._frozen_changed.append(account)

    def end_account(self, account: AccountState) -> None:
        """Ends an account for good; written at the end."""
        account.expires = self.now
        self._frozen_changed.append(account)

    def write_beside(self, beside: Beside | None) -> None:
        """Writes what goes with a step into other tables, at once. Nothing of it is left where it raises."""
        if beside is not None:
            with continuing(self._connection, self), self._connection.begin_nested():
                beside(self._connection)
            self.touched = True

    def set_window(self, account: AccountState, window: Window | None) -> None:
        """Another window for an account, or none, from its next entry on; one of the same kind goes on counting."""
        before, turn = account.window, account.turn
        account.window = window
        account.revision += 1
        if window is None:
            account.turn = None
        elif before is None or turn is None or before.kind is not window.kind:
            account.turn = Turn(number_at(window.kind, self.now), account.entries + 1)
        self._limits_changed.append(account)

    def move(self, query: QueryState, state: QueryStatus, *, answer: bytes | None = None) -> None:
        """The query's final state, reached now."""
        query.state = state
        query.changed = True
        query.finished = self.clock
        query.answer = answer

    def add_entry(
        self,
        account: AccountState,
        kind: EntryKind,
        *,
        query_id: str | None,
        details: str,
        amounts: Amounts = ZERO,
        voids: int | None = None,
    ) -> None:
        """Appends one entry to both chains and applies it to the account. `voids` is the entry that it takes back."""
        self.sequence += 1
        previous, account_sequence = account.hash, account.entries + 1
        digest = entry_hash(
            *(self.sequence, account.id, account_sequence, kind, query_id, amounts, details, self.now),
            *(previous, self.hash),
        )
        # In the order of the table's columns: binding them by name takes half as long as writing the row.
        self._entry_rows.append(
            (
                *(self.sequence, account.id, account_sequence, kind.value, query_id, *amounts, details, self.now),
                *(previous, self.hash, digest),
            )
        )
        if amounts is not ZERO:
            if voids is None:
                account.count(amounts, self.now)
            else:
                account.take_back(amounts, voids)
            if kind is EntryKind.RESERVE:
                assert query_id is not None
                charge = ChargeRow(query_id, account.id, account_sequence, amounts)
                self._charges.setdefault(query_id, []).append(charge)
        account.entries += 1
        account.hash = self.hash = digest
        account.changed = True

    @property
    def empty(self) -> bool:
        """Whether there is nothing to write."""
        return not (
            self._entry_rows
            or self._release_rows
            or self.touched
            or any(query.new or query.changed for query in self._queries.values())
        )

    def store(self, operations: Sequence[str], *, batch: int, expires: int) -> None:
        """Writes the number of this batch, all rows, then the head. `operations` are names for fault points.

        Errors: LedgerBehind when the process's own row is not as its last durable batch left it.
        """
        direct, statements = self._direct, self._statements
        mine = {
            "key": self.instance,
            "last_batch": self._continuity.batch,
            "new_batch": batch,
            "new_expires": expires,
        }
        renewed: Asked | None = None
        try:
            with direct.together():
                # First, for every query refers to this row: when it is gone, that is the news, and no broken reference.
                renewed = direct.ask(
                    statements.renew_instance if self._accepts_loss else statements.update_instance, mine
                )
                self._write_rows(operations)
                if self.sequence != self._began:
                    head = {"new_sequence": self.sequence, "new_hash": self.hash, "new_epoch": self.now}
                    direct.change(statements.update_head, head)
        except DBAPIError:
            if renewed is not None and renewed.changed == 0 and not self._accepts_loss:
                self._continuity.lose_batches()
            raise
        if not self._accepts_loss:
            self._continuity.check_instance(renewed.changed)

    def _write_rows(self, operations: Sequence[str]) -> None:
        """Everything that `store` writes between this process's row and the head."""
        run, statements = self._direct.change, self._statements
        created = sorted((a for a in self._accounts.values() if a.new), key=lambda account: account.depth)
        new: tuple[tuple[Table, list[Values]], ...] = (
            (accounts, [account.row() for account in created]),
            (queries, [query.row() for query in self._queries.values() if query.new]),
            (releases, self._release_rows),
            (readings, self._reading_rows),
        )
        for table, rows in new:
            if rows:
                run(statements.insert[table], statements.rows(rows))
        if self._entry_rows:
            run(statements.insert[entries], statements.entries(self._entry_rows))
        moved = [query for query in self._queries.values() if query.changed and not query.new]
        if moved:
            ends: list[Values] = [
                {
                    "key": query.id,
                    "new_state": query.state.value,
                    "new_answer": query.answer,
                    "new_finished": query.finished,
                }
                for query in moved
            ]
            run(statements.update_queries, statements.rows(ends))
        for name in operations:
            faults.reach(f"{name}.written")
        if self._limits_changed:
            run(
                statements.update_limits,
                [
                    {"key": account.id, **{f"new_{name}": value for name, value in account.row().items()}}
                    for account in self._limits_changed
                ],
            )
        if self._frozen_changed:
            stopped = [
                {"key": a.id, "new_frozen": int(a.frozen), "new_expires": a.expires} for a in self._frozen_changed
            ]
            run(statements.update_frozen, stopped)
        if self._moved:
            run(statements.update_places, [account.place_columns() for account in self._moved])
        changed = [account for account in self._accounts.values() if account.changed and not account.new]
        if changed:
            spent: list[Values] = [
                {
                    "key": account.id,
                    **{f"new_{name}": value for name, value in account.spent_columns().items()},
                    "new_entries": account.entries,
                    "new_hash": account.hash,
                    "new_window_spent": None if account.turn is None else account.turn.text(),
                }
                for account in changed
            ]
            run(statements.update_spent, statements.rows(spent))
