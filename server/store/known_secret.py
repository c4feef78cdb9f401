"""Which secret the keys of a database were hashed with: its fingerprint, among the acts.

A secret that was lost and made anew would refuse every key and leave monitors, streams, batches and webhooks
unreadable, one after the other and without a reason. So the first use leaves a fingerprint, which is not a part of
the secret, and every later start compares itself with the newest one.
"""

from __future__ import annotations

import hashlib
import hmac

from sqlalchemy import Connection, func, inspect, select, text

from accountant.acts import lock_head
from accountant.connection import open_engine
from accountant.tables import acts
from privacy.values import Json
from server.store.tables import api_keys
from server.store.transactions import Transactions

__all__ = ["KnownSecret", "fingerprint", "secret_is_known"]

_ACTION = "key_secret_known"
_LABEL = b"noisegate fingerprint of key_secret 1"


def fingerprint(secret: bytes) -> str:
    """A text of 32 hexadecimal digits that tells one secret from another and nothing else of it."""
    return hmac.new(secret, _LABEL, hashlib.sha256).hexdigest()[:32]


def secret_is_known(url: str) -> bool:
    """Whether anything in the database was made with a secret: then none may be made anew in its place."""
    engine = open_engine(url)
    try:
        with engine.connect() as connection:
            if not inspect(connection).has_table(api_keys.name):
                return False
            keys = connection.execute(select(func.count()).select_from(api_keys)).scalar_one()
            return keys > 0 or KnownSecret._newest(connection) is not None
    finally:
        engine.dispose()


class KnownSecret(Transactions):
    """The fingerprint that a database knows."""

    @staticmethod
    def _newest(connection: Connection) -> str | None:
        """The fingerprint that was left last; in a database of an earlier version, in its own log."""
        there = inspect(connection)
        named = {"action": _ACTION}
        for table in (acts.name, "registry_events"):
            if there.has_table(table):
                newest = f"SELECT subject FROM {table} WHERE action = :action ORDER BY sequence DESC LIMIT 1"
                return connection.execute(text(newest), named).scalar_one_or_none()
        return None

    def _know(self, connection: Connection, secret: bytes, *, actor: str) -> None:
        self._log(connection, actor=actor, action=_ACTION, subject=fingerprint(secret))

    def known_secret(self) -> str | None:
        """The newest one, None before the first use."""
        with self._engine.connect() as connection:
            return self._newest(connection)

    def settled_secret(self) -> str | None:
        """The same, after whatever changes it at this moment has ended: for a process that announced itself before."""
        with self._writing() as connection:
            lock_head(connection)
            known = self._newest(connection)
            connection.rollback()
        return known

    def know_secret(self, secret: bytes, *, actor: str, reason: str | None = None) -> None:
        """Leaves its fingerprint, from now on the newest; with `reason` where it takes the place of another one.

        A database of an earlier version learns it after its upgrade.
        """
        with self._writing() as connection:
            if not inspect(connection).has_table(acts.name):
                return
            self._know(connection, secret, actor=actor)
            if reason is not None:
                told: dict[str, Json] = {"reason": reason}
                self._log(connection, actor=actor, action="key_secret_replaced", subject="key_secret", details=told)
            self._commit(connection)
