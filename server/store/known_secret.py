"""Which secret the keys of a database were hashed with: its fingerprint, in the log of acts.

A secret that was lost and made anew would refuse every key and leave monitors, streams, batches and webhooks
unreadable, one after the other and without a reason. So the first use leaves a fingerprint, which is not a part of
the secret, and every later start compares itself with the newest one.
"""

from __future__ import annotations

import hashlib
import hmac

from sqlalchemy import func, inspect, select

from accountant.connection import open_engine
from server.store.tables import api_keys, registry_events
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
            if not inspect(connection).has_table(registry_events.name):
                return False
            known = select(func.count()).select_from(registry_events).where(registry_events.c.action == _ACTION)
            keys = select(func.count()).select_from(api_keys)
            return any(connection.execute(count).scalar_one() for count in (known, keys))
    finally:
        engine.dispose()


class KnownSecret(Transactions):
    """The fingerprint that a database knows."""

    def known_secret(self) -> str | None:
        """The newest one, None before the first use."""
        events = registry_events.c
        newest = select(events.subject).where(events.action == _ACTION).order_by(events.sequence.desc()).limit(1)
        with self._engine.connect() as connection:
            if not inspect(connection).has_table(registry_events.name):
                return None
            return connection.execute(newest).scalar_one_or_none()

    def know_secret(self, secret: bytes, *, actor: str, reason: str | None = None) -> None:
        """Leaves its fingerprint, from now on the newest; with `reason` where it takes the place of another one."""
        with self._writing() as connection:
            self._log(connection, actor=actor, action=_ACTION, subject=fingerprint(secret))
            if reason is not None:
                self._log(connection, actor=actor, action="key_secret_replaced", subject=reason)
            connection.commit()
