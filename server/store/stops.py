"""Principals who were stopped, and go on: what the registry stores in the transaction that freezes their accounts."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Row, insert, select, update

from accountant.freezing import BesideFrozen
from server.roles import Role
from server.store.errors import NotStopped
from server.store.tables import principals, stops
from server.store.transactions import Transactions

__all__ = ["StopRow", "StopRows"]


@dataclass(frozen=True, slots=True)
class StopRow:
    """One stop: the accounts that it froze, and whether it disabled the principal."""

    id: str
    principal: str
    accounts: tuple[str, ...]
    disabled: bool
    created: str


class StopRows(Transactions):
    """The rows of stops. Thread-safe."""

    def stopped(self, principal: str | None = None) -> tuple[StopRow, ...]:
        """Whoever is stopped now, or this one."""
        query = select(stops).where(stops.c.ended.is_(None)).order_by(stops.c.created, stops.c.id)
        if principal is not None:
            query = query.where(stops.c.principal == principal)
        with self._engine.connect() as connection:
            return tuple(map(_row, connection.execute(query)))

    def stop(self, principal: str, *, actor: str, reason: str) -> BesideFrozen:
        """Disables a principal, so that no key of it works, with the freezing of its accounts.

        A second stop adds to the first one. Errors: NotStopped for one who is not there, and for the last
        administrator.
        """

        def beside(accounts: Sequence[str], connection: Connection) -> None:
            found = connection.execute(select(principals).where(principals.c.name == principal)).one_or_none()
            if found is None or (found.disabled is None and self._is_last_administrator(connection, principal)):
                raise NotStopped(principal, last=found is not None)
            if found.disabled is None:
                connection.execute(
                    update(principals).where(principals.c.name == principal).values(disabled=self._now())
                )
            self._remember(connection, principal, accounts, disabled=found.disabled is None)
            told = {"accounts": list(accounts), "reason": reason}
            rows = {"principals": [principal]}
            self._log(connection, actor=actor, action="principal_stopped", subject=principal, details=told, rows=rows)

        return beside

    def resume(self, row: StopRow, *, actor: str, reason: str) -> BesideFrozen:
        """Ends a stop, and enables the principal where the stop disabled it. Errors: NotStopped for one that ended."""

        def beside(accounts: Sequence[str], connection: Connection) -> None:
            ended = update(stops).where(stops.c.id == row.id, stops.c.ended.is_(None)).values(ended=self._now())
            if connection.execute(ended).rowcount != 1:
                raise NotStopped(row.principal, last=False)
            if row.disabled:
                connection.execute(update(principals).where(principals.c.name == row.principal).values(disabled=None))
            told = {"accounts": list(accounts), "reason": reason}
            rows = {"principals": [row.principal]}
            subject = row.principal
            self._log(connection, actor=actor, action="principal_resumed", subject=subject, details=told, rows=rows)

        return beside

    @staticmethod
    def _is_last_administrator(connection: Connection, principal: str) -> bool:
        chosen = select(principals.c.name).where(principals.c.role == Role.ADMIN.value, principals.c.disabled.is_(None))
        return list(connection.execute(chosen.with_for_update()).scalars()) == [principal]

    def _remember(self, connection: Connection, principal: str, accounts: Sequence[str], *, disabled: bool) -> None:
        mine = select(stops).where(stops.c.principal == principal, stops.c.ended.is_(None))
        before = connection.execute(mine).first()
        if before is None:
            values = {"principal": principal, "accounts": json.dumps(list(accounts)), "disabled": disabled}
            connection.execute(insert(stops).values(id=f"s_{secrets.token_hex(12)}", created=self._now(), **values))
            return
        together = json.dumps(sorted({*json.loads(before.accounts), *accounts}))
        merged = {"accounts": together, "disabled": bool(before.disabled) or disabled}
        connection.execute(update(stops).where(stops.c.id == before.id).values(**merged))


def _row(found: Row[tuple[object, ...]]) -> StopRow:
    return StopRow(
        id=found.id,
        principal=found.principal,
        accounts=tuple(json.loads(found.accounts)),
        disabled=bool(found.disabled),
        created=found.created,
    )
