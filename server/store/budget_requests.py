"""Requests for a budget as they are stored, and their decision, which is made once."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Connection, Row, func, insert, or_, select, update

from accountant.beside import Beside
from accountant.tables import accounts
from server.roles import Role
from server.store.errors import RequestDecided
from server.store.outbox import Notice, Outbox
from server.store.tables import budget_requests, principals, webhooks

__all__ = ["BudgetRequestRow", "BudgetRequestRows", "RequestState"]


class RequestState(StrEnum):
    """Where a request is. Every state but the first one is final."""

    OPEN = "open"
    APPROVED = "approved"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRequestRow:
    """One request. `epsilon` and `delta` are exact decimal texts; `sealed` has question, estimate and reason."""

    id: str
    principal: str
    dataset: str
    account: str | None
    epsilon: str
    delta: str
    sealed: bytes
    state: RequestState = RequestState.OPEN
    created: str = ""
    decided: str | None = None
    decider: str | None = None
    reason: str | None = None


_COLUMNS = tuple(field.name for field in dataclasses.fields(BudgetRequestRow))


class BudgetRequestRows(Outbox):
    """The rows of requests. Thread-safe; every method is one transaction."""

    def add_request(self, row: BudgetRequestRow, notice: Notice, *, most: int) -> BudgetRequestRow | None:
        """Stores a new request; None where the principal has `most` open ones. Whoever may decide gets the notice."""
        stored = dataclasses.replace(row, created=self._now())
        table = budget_requests
        with self._acting() as connection:
            # One principal's are counted one after the other.
            connection.execute(select(principals.c.name).where(principals.c.name == row.principal).with_for_update())
            mine = select(func.count()).where(
                table.c.principal == row.principal, table.c.state == RequestState.OPEN.value
            )
            if connection.execute(mine).scalar_one() >= most:
                connection.rollback()
                return None
            connection.execute(insert(table).values(**{**dataclasses.asdict(stored), "state": stored.state.value}))
            self._log(connection, actor=row.principal, action="budget_request", subject=row.id)
            for name in self._deciders(connection, row):
                self._send(connection, dataclasses.replace(notice, principal=name))
            self._commit(connection)
        return stored

    @staticmethod
    def _deciders(connection: Connection, row: BudgetRequestRow) -> list[str]:
        """Who may decide a request and has a webhook: administrators, and owners with a budget of the dataset."""
        own = select(accounts.c.principal).where(
            accounts.c.dataset == row.dataset,
            accounts.c.principal == principals.c.name,
            accounts.c.expires.is_(None),  # whoever lends makes nobody decide
        )
        chosen = (
            select(principals.c.name)
            .join(webhooks, webhooks.c.principal == principals.c.name)
            .where(
                principals.c.disabled.is_(None),
                principals.c.name != row.principal,
                webhooks.c.removed.is_(None),
                or_(principals.c.role == Role.ADMIN.value, (principals.c.role == Role.OWNER.value) & own.exists()),
            )
            .distinct()
            .order_by(principals.c.name)
        )
        return list(connection.execute(chosen).scalars())

    def open_requests(self) -> int:
        """How many requests wait for a decision."""
        chosen = select(func.count()).where(budget_requests.c.state == RequestState.OPEN.value)
        with self._engine.connect() as connection:
            return int(connection.execute(chosen).scalar_one())

    def request(self, request_id: str) -> BudgetRequestRow | None:
        """The request of that identifier."""
        with self._engine.connect() as connection:
            found = connection.execute(select(budget_requests).where(budget_requests.c.id == request_id)).one_or_none()
        return None if found is None else _row(found)

    def requests(
        self, principal: str | None, *, also: tuple[str, ...] = (), state: str | None, after: str | None, count: int
    ) -> tuple[BudgetRequestRow, ...]:
        """Requests of a principal, or of everybody, the newest first; those of the datasets in `also` besides."""
        query = select(budget_requests)
        if principal is not None:
            seen = budget_requests.c.principal == principal
            query = query.where(or_(seen, budget_requests.c.dataset.in_(also)) if also else seen)
        if state is not None:
            query = query.where(budget_requests.c.state == state)
        return tuple(map(_row, self._page(query, budget_requests, after=after, count=count)))

    def decision(self, row: BudgetRequestRow, notice: Notice | None) -> Beside:
        """Stores the decision that `row` has, in the transaction of somebody else. Errors: RequestDecided."""
        table = budget_requests

        def decide(connection: Connection) -> None:
            values = {
                "state": row.state.value,
                "decided": self._now(),
                "decider": row.decider,
                "reason": row.reason,
                "account": row.account,
                "epsilon": row.epsilon,
                "delta": row.delta,
            }
            chosen = update(table).where(table.c.id == row.id, table.c.state == RequestState.OPEN.value)
            if connection.execute(chosen.values(**values)).rowcount != 1:
                raise RequestDecided(row.id)
            self._log(connection, actor=row.decider or "", action=f"budget_request_{row.state}", subject=row.id)
            if notice is not None:
                self._send(connection, notice)

        return decide

    def decide_request(self, row: BudgetRequestRow, notice: Notice | None) -> None:
        """Stores a decision that changes no account. Errors: RequestDecided."""
        with self._acting() as connection:
            self.decision(row, notice)(connection)
            self._commit(connection)


def _row(found: Row[tuple[object, ...]]) -> BudgetRequestRow:
    values = {name: getattr(found, name) for name in _COLUMNS}
    return BudgetRequestRow(**{**values, "state": RequestState(found.state)})
