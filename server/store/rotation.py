"""Another `key_secret` in place of the one before: everything that was encrypted with it is encrypted anew, at once.

Hashes of API keys cannot be made anew without the keys' texts, which are not stored. So for a stated time a key is
accepted under the secret before too, and is hashed with the new one when it is used. Until then the database keeps the
secret before, encrypted with the new one: whoever has only the database has neither. When the time is over it is
deleted, and keys that were not used in between are refused.
"""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, inspect, select, text
from sqlalchemy.exc import OperationalError

from accountant import faults
from accountant.entry import to_micros
from accountant.tables import instances
from privacy.values import Json
from server.sealing import BATCHES, DASHBOARDS, MONITORS, REQUESTS, SECRETS, STREAMS, WEBHOOKS, Seal, SealBroken
from server.store.api_keys import EarlierSecret
from server.store.errors import NotAlone, TooManySecrets
from server.store.known_secret import KnownSecret, fingerprint
from server.store.tables import earlier_secrets
from server.store.transactions import iso

__all__ = ["EARLIER_MAX", "SEALED", "Counted", "Rotations", "Sealed"]

EARLIER_MAX = 3
"""Most secrets under which keys are still accepted besides the newest one."""


@dataclass(frozen=True, slots=True)
class Sealed:
    """A column that is encrypted: its purpose, and what its rows are bound to besides their identifier."""

    table: str
    column: str
    purpose: bytes
    suffix: str = ""


SEALED = (
    Sealed("monitors", "sealed", MONITORS),
    Sealed("batches", "sealed", BATCHES),
    Sealed("streams", "frame", STREAMS, " frame"),
    Sealed("streams", "sealed", STREAMS, " state"),
    Sealed("webhooks", "sealed", WEBHOOKS),
    Sealed("budget_requests", "sealed", REQUESTS),
    Sealed("dashboards", "sealed", DASHBOARDS),
    Sealed("dashboard_tiles", "sealed", DASHBOARDS),
)
"""Everything that the database has encrypted under a key that is derived from `key_secret`."""


@dataclass(frozen=True, slots=True)
class Counted:
    """How much was encrypted anew, and how much could not be read under the secret before, and was left."""

    sealed: int
    unreadable: int


class Rotations(KnownSecret):
    """The secret of a database, and those before it."""

    def rotate_secret(
        self, before: bytes, after: bytes, *, until: datetime.datetime, actor: str, reason: str, alone: bool = True
    ) -> Counted:
        """Encrypts everything anew under `after`, and accepts keys under `before` until a moment. One transaction.

        `alone` refuses while another process has the database open. Errors: NotAlone, TooManySecrets; ValueError where
        `before` is not the secret of this database, or `after` is.
        """
        with self._acting() as connection:
            if self._newest(connection) != fingerprint(before) or before == after:
                raise ValueError("the secret is not the one that this database knows, or the new one is no other")
            if alone:
                _require_alone(connection, to_micros(self._clock()))
            kept = _kept(connection, before, now=self._now())
            if len(kept) >= EARLIER_MAX:
                raise TooManySecrets(min(one.until for one in kept))
            counts = [_sealed_anew(connection, one, before, after) for one in SEALED]
            connection.execute(delete(earlier_secrets))
            for one in (*kept, EarlierSecret(before, iso(until))):
                _keep(connection, one, after)
            counted = Counted(sum(done for done, _ in counts), sum(left for _, left in counts))
            told: dict[str, Json] = {
                "before": fingerprint(before),
                "reason": reason,
                "sealed": counted.sealed,
                "unreadable": counted.unreadable,
                "until": iso(until),
            }
            self._know(connection, after, actor=actor)
            self._log(connection, actor=actor, action="key_secret_rotated", subject=fingerprint(after), details=told)
            faults.reach("rotate_secret.before_commit")
            self._commit(connection)
        faults.reach("rotate_secret.after_commit")
        return counted

    def earlier_secrets(self, secret: bytes) -> tuple[EarlierSecret, ...]:
        """Those under which keys are still accepted, read with the newest one; those whose time is over are deleted."""
        now = self._now()
        with self._engine.connect() as connection:
            if not inspect(connection).has_table(earlier_secrets.name):
                return ()
            kept = _kept(connection, secret, now=now)
            over = connection.execute(select(earlier_secrets.c.fingerprint).where(earlier_secrets.c.until <= now)).all()
        if over:
            with contextlib.suppress(OperationalError):  # a database that cannot be written: at the next start
                self._forget(now)
        return kept

    def _forget(self, now: str) -> None:
        gone = earlier_secrets.c.until <= now
        with self._acting() as connection:
            for name in connection.execute(select(earlier_secrets.c.fingerprint).where(gone)).scalars().all():
                connection.execute(delete(earlier_secrets).where(earlier_secrets.c.fingerprint == name))
                self._log(connection, actor="server", action="key_secret_forgotten", subject=name)
            self._commit(connection)


def _require_alone(connection: Connection, now: int) -> None:
    found = connection.execute(select(instances.c.name).where(instances.c.expires >= now).limit(1)).scalar_one_or_none()
    if found is not None:
        raise NotAlone(found)


def _kept(connection: Connection, secret: bytes, *, now: str) -> tuple[EarlierSecret, ...]:
    """Earlier secrets whose time is not over. One that was damaged, or whose time was changed, is not among them."""
    seal, found = Seal(secret, SECRETS), []
    rows = connection.execute(select(earlier_secrets).where(earlier_secrets.c.until > now))
    for row in rows.all():
        try:
            plain = seal.decrypted(row.sealed, bound_to=f"{row.fingerprint} {row.until}")
        except SealBroken:
            continue
        found.append(EarlierSecret(plain, row.until))
    return tuple(sorted(found, key=lambda one: one.until))


def _keep(connection: Connection, one: EarlierSecret, after: bytes) -> None:
    known = fingerprint(one.secret)
    sealed = Seal(after, SECRETS).encrypted(one.secret, bound_to=f"{known} {one.until}")
    connection.execute(insert(earlier_secrets).values(fingerprint=known, until=one.until, sealed=sealed))


def _sealed_anew(connection: Connection, what: Sealed, before: bytes, after: bytes) -> tuple[int, int]:
    """How many rows were encrypted anew, and how many could not be read."""
    old, new = Seal(before, what.purpose), Seal(after, what.purpose)
    names = f"{what.table} SET {what.column} = :sealed WHERE id = :id"
    change = text(f"UPDATE {names}")
    rows: Sequence[tuple[str, bytes]] = [
        (row[0], bytes(row[1])) for row in connection.execute(text(f"SELECT id, {what.column} FROM {what.table}"))
    ]
    done = left = 0
    for identifier, sealed in rows:
        if not sealed:
            continue  # a stream that was closed
        bound = f"{identifier}{what.suffix}"
        try:
            plain = old.decrypted(sealed, bound_to=bound)
        except SealBroken:
            left += 1
            continue
        connection.execute(change, {"id": identifier, "sealed": new.encrypted(plain, bound_to=bound)})
        done += 1
    return done, left
