"""Principals, API keys, dataset versions, and what is opened. Every act is one transaction, logged."""

from __future__ import annotations

import datetime

from sqlalchemy import inspect, select, text

from accountant.acts import Act, read_act
from accountant.entry import from_micros
from accountant.tables import acts
from server.store import replies
from server.store.account_days import AccountDays
from server.store.budget_requests import BudgetRequestRows
from server.store.cancellations import Cancellations
from server.store.collectors import Collections
from server.store.dashboards import DashboardRows
from server.store.monitors import MonitorRows
from server.store.people import People
from server.store.proposals import ProposalRows
from server.store.rotation import Rotations
from server.store.shares import Shares
from server.store.stops import StopRows
from server.store.streams import StreamRows
from server.store.synthetic import SyntheticRows
from server.store.transactions import iso
from server.store.versions import Versions
from server.store.webhooks import WebhookRows

__all__ = ["Registry"]


class Registry(
    People,
    Versions,
    Collections,
    MonitorRows,
    SyntheticRows,
    StreamRows,
    WebhookRows,
    BudgetRequestRows,
    DashboardRows,
    Rotations,
    ProposalRows,
    Shares,
    Cancellations,
    StopRows,
    AccountDays,
):
    """The registry on SQLite or PostgreSQL. Thread-safe; every method is one transaction.

    The schema must have been migrated.
    """

    def acts(self, *, after: int = 0, count: int = 100) -> tuple[tuple[int, str, str, str, str], ...]:
        """Acts in order: their numbers in the ledger, time, actor, action, subject."""
        query = select(acts).where(acts.c.sequence > after).order_by(acts.c.sequence).limit(count)
        with self._engine.connect() as connection:
            return tuple(
                (row.sequence, iso(from_micros(row.created)), row.actor, row.action, row.subject)
                for row in connection.execute(query)
            )

    def acts_of(self, *, actor: str | None, subject: str | None, after: int, count: int) -> tuple[Act, ...]:
        """A page of acts in their order, beginning after a number; of one actor or about one subject, or all."""
        query = select(acts).where(acts.c.sequence > after).order_by(acts.c.sequence).limit(count)
        if actor is not None:
            query = query.where(acts.c.actor == actor)
        if subject is not None:
            query = query.where(acts.c.subject == subject)
        with self._engine.connect() as connection:
            return tuple(map(read_act, connection.execute(query)))

    def check_writable(self) -> None:
        """Opens a writing transaction on the ledger's database, writes, and takes it back.

        Errors: SQLAlchemyError when it cannot be written.
        """
        with self._writing() as connection:
            self._log(connection, actor="readiness", action="readiness", subject="readiness")
            connection.rollback()

    def claim_reply(self, principal: str, key: str, *, request_hash: str) -> replies.Reply | None:
        """Claims an idempotency key for a request, or returns the reply that there is.

        Errors: replies.OtherRequest, replies.ClaimedAlready.
        """
        now = self._clock()
        with self._writing() as connection:
            return replies.claim(
                connection,
                principal,
                key,
                request_hash=request_hash,
                now=iso(now),
                forget_before=iso(now - datetime.timedelta(days=replies.KEPT_DAYS)),
            )

    def keep_reply(self, principal: str, key: str, reply: replies.Reply) -> None:
        """Keeps the reply to a claimed request."""
        with self._writing() as connection:
            replies.keep(connection, principal, key, reply)

    def drop_reply(self, principal: str, key: str) -> None:
        """Gives a claim back under which nothing was done."""
        with self._writing() as connection:
            replies.drop(connection, principal, key)

    def schema_revision(self) -> str | None:
        """The revision of the schema that the database has, None when it has none yet."""
        with self._engine.connect() as connection:
            if not inspect(connection).has_table("alembic_version"):
                return None
            return connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()
