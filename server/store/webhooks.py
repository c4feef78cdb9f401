"""Webhooks as they are stored, and their deliveries: claimed before each attempt, by one process at a time."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from sqlalchemy import delete, func, insert, select, update

from privacy.values import Json
from server.store.errors import NotThere
from server.store.outbox import Notice, Outbox
from server.store.tables import principals, webhook_deliveries, webhooks
from server.store.transactions import iso

__all__ = ["DeliveryRow", "DueDelivery", "WebhookRow", "WebhookRows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookRow:
    """One webhook. `events` and `subjects` are JSON; `sealed` has its address and its secret, encrypted."""

    id: str
    principal: str
    host: str
    events: str
    subjects: str | None
    sealed: bytes
    created: str = ""
    removed: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryRow:
    """One delivery. `state` is "waiting", "delivered" or "failed"; `due` is when it is tried next."""

    id: str
    webhook: str
    event: str
    subject: str
    created: str
    state: str
    due: str
    attempts: int
    status: int | None
    failure: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DueDelivery:
    """A delivery that is tried now, with its webhook. `attempts` counts this one."""

    id: str
    webhook: str
    body: str
    created: str
    attempts: int
    sealed: bytes


_COLUMNS = ("id", "principal", "host", "events", "subjects", "sealed", "created", "removed")
_DELIVERY = ("id", "webhook", "event", "subject", "created", "state", "due", "attempts", "status", "failure")


class WebhookRows(Outbox):
    """The rows of webhooks. Thread-safe; every method is one transaction."""

    def add_webhook(self, row: WebhookRow, *, most: int) -> WebhookRow | None:
        """Stores a new webhook, with the moment of its creation; None where the principal has `most` already."""
        values = {name: getattr(row, name) for name in _COLUMNS} | {"created": self._now()}
        with self._acting() as connection:
            # One principal's are counted one after the other.
            connection.execute(select(principals.c.name).where(principals.c.name == row.principal).with_for_update())
            mine = select(func.count()).where(webhooks.c.principal == row.principal, webhooks.c.removed.is_(None))
            if connection.execute(mine).scalar_one() >= most:
                connection.rollback()
                return None
            connection.execute(insert(webhooks).values(**values))
            told: dict[str, Json] = {"host": row.host}
            rows = {"webhooks": [row.id]}
            self._log(connection, actor=row.principal, action="webhook_add", subject=row.id, details=told, rows=rows)
            self._commit(connection)
        return WebhookRow(**values)

    def webhook(self, webhook_id: str) -> WebhookRow | None:
        """The webhook of that identifier, removed or not."""
        with self._engine.connect() as connection:
            found = connection.execute(select(webhooks).where(webhooks.c.id == webhook_id)).one_or_none()
        return None if found is None else WebhookRow(**{name: getattr(found, name) for name in _COLUMNS})

    def webhooks(self, principal: str | None, *, after: str | None, count: int) -> tuple[WebhookRow, ...]:
        """Webhooks of a principal, or of everybody, that were not removed, the newest first."""
        query = select(webhooks).where(webhooks.c.removed.is_(None))
        if principal is not None:
            query = query.where(webhooks.c.principal == principal)
        found = self._page(query, webhooks, after=after, count=count)
        return tuple(WebhookRow(**{name: getattr(row, name) for name in _COLUMNS}) for row in found)

    def remove_webhook(self, webhook_id: str, *, actor: str) -> None:
        """Ends a webhook and what waits for it. Errors: NotThere for one that is removed already."""
        table = webhook_deliveries
        with self._acting() as connection:
            gone = connection.execute(
                update(webhooks)
                .where(webhooks.c.id == webhook_id, webhooks.c.removed.is_(None))
                .values(removed=self._now())
            )
            if gone.rowcount != 1:
                connection.rollback()
                raise NotThere(webhook_id)
            connection.execute(
                update(table)
                .where(table.c.webhook == webhook_id, table.c.state == "waiting")
                .values(state="failed", failure="removed")
            )
            rows = {"webhooks": [webhook_id]}
            self._log(connection, actor=actor, action="webhook_remove", subject=webhook_id, rows=rows)
            self._commit(connection)

    def send_to(self, webhook_id: str, notice: Notice) -> bool:
        """Stores one event for one webhook, whatever it subscribed to. False while one of this kind waits there."""
        table = webhook_deliveries
        same = select(table.c.id).where(
            table.c.webhook == webhook_id, table.c.event == notice.event, table.c.state == "waiting"
        )
        with self._writing() as connection:
            if connection.execute(same.limit(1)).one_or_none() is not None:
                connection.rollback()
                return False
            self._put(connection, webhook_id, notice)
            connection.commit()
        return True

    def deliveries(self, webhook_id: str, *, after: str | None, count: int) -> tuple[DeliveryRow, ...]:
        """The deliveries of a webhook, the newest first."""
        table = webhook_deliveries
        query = select(table).where(table.c.webhook == webhook_id).order_by(table.c.sequence.desc())
        if after is not None:
            last = select(table.c.sequence).where(table.c.id == after, table.c.webhook == webhook_id).scalar_subquery()
            query = query.where(table.c.sequence < last)
        with self._engine.connect() as connection:
            found = connection.execute(query.limit(count)).all()
        return tuple(DeliveryRow(**{name: getattr(row, name) for name in _DELIVERY}) for row in found)

    def waiting(self, webhook_id: str | None) -> int:
        """How many deliveries wait for a webhook, or for all."""
        table = webhook_deliveries
        mine = select(func.count()).where(table.c.state == "waiting")
        if webhook_id is not None:
            mine = mine.where(table.c.webhook == webhook_id)
        with self._engine.connect() as connection:
            return int(connection.execute(mine).scalar_one())

    # Sending

    def claim_deliveries(self, *, count: int, lease_seconds: int) -> tuple[DueDelivery, ...]:
        """What is to be tried now: of each webhook the first delivery that waits, where it is due.

        Each is counted as an attempt, and is nobody else's for the lease: a process that dies in it leaves it waiting.
        Those of principals who are disabled wait.
        """
        table, now = webhook_deliveries, self._now()
        first = func.min(table.c.sequence).label("sequence")
        heads = select(first).where(table.c.state == "waiting").group_by(table.c.webhook).subquery()
        due = (
            select(table.c.id, table.c.webhook, table.c.body, table.c.created, table.c.attempts, webhooks.c.sealed)
            .join(heads, heads.c.sequence == table.c.sequence)
            .join(webhooks, webhooks.c.id == table.c.webhook)
            .join(principals, principals.c.name == webhooks.c.principal)
            .where(table.c.due <= now, webhooks.c.removed.is_(None), principals.c.disabled.is_(None))
            .order_by(table.c.due, table.c.sequence)
            .limit(count)
        )
        with self._engine.connect() as connection:
            found = connection.execute(due).all()
        if not found:
            return ()
        until = iso(self._clock() + datetime.timedelta(seconds=lease_seconds))
        claimed = []
        with self._writing() as connection:
            for row in found:
                mine = connection.execute(
                    update(table)
                    .where(
                        *(table.c.id == row.id, table.c.state == "waiting"),
                        *(table.c.attempts == row.attempts, table.c.due <= now),
                    )
                    .values(attempts=row.attempts + 1, due=until)
                )
                if mine.rowcount == 1:
                    claimed.append(
                        DueDelivery(
                            id=row.id,
                            webhook=row.webhook,
                            body=row.body,
                            created=row.created,
                            attempts=row.attempts + 1,
                            sealed=row.sealed,
                        )
                    )
            connection.commit()
        return tuple(claimed)

    def end_attempt(
        self, delivery: DueDelivery, *, state: str, status: int | None, failure: str | None, wait_seconds: int = 0
    ) -> bool:
        """Stores what came of an attempt. False, and nothing changed, when another one was made since its claim."""
        table = webhook_deliveries
        due = iso(self._clock() + datetime.timedelta(seconds=wait_seconds))
        with self._writing() as connection:
            changed = connection.execute(
                update(table)
                .where(
                    *(table.c.id == delivery.id, table.c.state == "waiting"),
                    table.c.attempts == delivery.attempts,
                )
                .values(state=state, status=status, failure=failure, due=due)
            )
            connection.commit()
        return changed.rowcount == 1

    def forget_deliveries(self, *, before: str) -> int:
        """Deletes deliveries that ended and were made before a moment. Returns how many."""
        table = webhook_deliveries
        with self._writing() as connection:
            gone = connection.execute(delete(table).where(table.c.created < before, table.c.state != "waiting"))
            connection.commit()
        return gone.rowcount
