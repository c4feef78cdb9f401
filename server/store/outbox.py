"""The outbox: events for webhooks, stored in the transaction of what they are about, so that neither is without the
other."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection, func, insert, select
from sqlalchemy.exc import IntegrityError

from server.roles import Role
from server.store.tables import principals, told, webhook_deliveries, webhooks
from server.store.transactions import Transactions

__all__ = ["WAITING_MAX", "Notice", "Outbox"]

WAITING_MAX = 1_000
"""Most deliveries that wait for one webhook; what comes beyond is kept as one that failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One event of a principal: its kind, what it is about, and the body that is sent."""

    principal: str
    event: str
    subject: str
    body: str


class Outbox(Transactions):
    """What stores events. Thread-safe."""

    def tell_once(self, notice: Notice, occasions: Sequence[str]) -> bool:
        """Stores a notice for its principal, if it has one, and for every administrator, where the first of these
        occasions of its subject is new; the others count as reported with it. False, and nothing stored, where it was.
        """
        with self._writing() as connection:
            known = select(told.c.occasion).where(told.c.subject == notice.subject, told.c.occasion.in_(occasions))
            there = set(connection.execute(known).scalars())
            if occasions[0] in there:
                connection.rollback()
                return False
            rows = [
                {"subject": notice.subject, "occasion": occasion, "at": self._now()}
                for occasion in occasions
                if occasion not in there
            ]
            try:
                connection.execute(insert(told), rows)
            except IntegrityError:
                # Another process told it at this moment.
                connection.rollback()
                return False
            for name in self._told(connection, notice):
                self._send(connection, replace(notice, principal=name))
            connection.commit()
        return True

    @staticmethod
    def _told(connection: Connection, notice: Notice) -> list[str]:
        """The principal of a notice, and the administrators who have webhooks."""
        chosen = (
            select(principals.c.name)
            .join(webhooks, webhooks.c.principal == principals.c.name)
            .where(principals.c.role == Role.ADMIN.value, principals.c.disabled.is_(None), webhooks.c.removed.is_(None))
            .distinct()
        )
        names = set(connection.execute(chosen).scalars()) | ({notice.principal} - {""})
        return sorted(names)

    def _send(self, connection: Connection, notice: Notice) -> None:
        """Stores a delivery for each webhook of the principal that wants this event, in this transaction."""
        mine = select(webhooks.c.id, webhooks.c.events, webhooks.c.subjects).where(
            webhooks.c.principal == notice.principal, webhooks.c.removed.is_(None)
        )
        for row in connection.execute(mine.order_by(webhooks.c.created, webhooks.c.id)).all():
            about = row.subjects is None or notice.subject in json.loads(row.subjects)
            if about and notice.event in json.loads(row.events):
                self._put(connection, row.id, notice)

    def _put(self, connection: Connection, webhook: str, notice: Notice) -> None:
        """Stores one delivery, due now."""
        table = webhook_deliveries
        waiting = select(func.count()).where(table.c.webhook == webhook, table.c.state == "waiting")
        full = connection.execute(waiting).scalar_one() >= WAITING_MAX
        now = self._now()
        connection.execute(
            insert(table).values(
                id=f"d_{secrets.token_hex(12)}",
                webhook=webhook,
                event=notice.event,
                subject=notice.subject,
                body=notice.body,
                created=now,
                state="failed" if full else "waiting",
                due=now,
                attempts=0,
                failure="too_many_waiting" if full else None,
            )
        )
