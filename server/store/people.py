"""Principals and their API keys."""

from __future__ import annotations

import datetime
import hmac
import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, Row, bindparam, func, insert, select, update
from sqlalchemy.exc import OperationalError

from accountant.direct import read
from privacy.values import Json
from server.roles import Role
from server.scopes import Scopes, scopes_text, stored_scopes
from server.store.api_keys import EarlierSecret, digest_of, make_key, split_key
from server.store.errors import KeyEnded, KeyFault, KeyRefused, LastAdministrator, NameTaken, NotThere
from server.store.tables import api_keys, principals
from server.store.transactions import Transactions, iso

__all__ = ["GRACE_MINUTES_MAX", "NAME", "NewKey", "People", "Principal", "StoredKey", "check_new_key"]

NAME = re.compile(r"[a-z][a-z0-9_.-]{0,62}\Z", re.ASCII)
"""Names of principals. A principal keeps its name forever: the ledger refers to it."""

_KEYS_PER_PRINCIPAL = 100
GRACE_MINUTES_MAX = 30 * 24 * 60
"""Longest time for which the secret before a rotation still works."""
_NO_SECRET = (bytes(16), bytes(32))


class _Verified(NamedTuple):
    """A key with its principal, in the order of the columns that are read."""

    id: str
    principal: str
    label: str
    salt: bytes
    digest: bytes
    created: str
    expires: str
    last_used_day: str | None
    revoked: str | None
    scopes: str | None
    previous_salt: bytes | None
    previous_digest: bytes | None
    previous_until: str | None
    role: str
    since: str
    disabled: str | None


_VERIFY = (
    select(*api_keys.c, principals.c.role, principals.c.created, principals.c.disabled)
    .join(principals, principals.c.name == api_keys.c.principal)
    .where(api_keys.c.id == bindparam("key"))
)


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody or something that calls: a name, one role, times as ISO 8601 text in UTC."""

    name: str
    role: Role
    created: str
    disabled: str | None = None


@dataclass(frozen=True, slots=True)
class StoredKey:
    """What may be shown of a key. `last_used_day` is a date, so that keys do not reveal when people work."""

    id: str
    principal: str
    label: str
    created: str
    expires: str
    last_used_day: str | None = None
    revoked: str | None = None
    scopes: Scopes | None = None
    """What it may be used for; None for all of its principal's role."""
    previous_until: str | None = None
    """Until when the secret before the last rotation works too."""


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key at its creation: the only moment at which its text exists on the server."""

    key: StoredKey
    text: str = field(repr=False)


class People(Transactions):
    """Who may call, and with which keys. `secret` is the server's part of the hash of keys."""

    def __init__(
        self, url: str, *, secret: bytes, clock: Callable[[], datetime.datetime], high_water: Path | None = None
    ) -> None:
        assert len(secret) >= 32, "the secret for key hashes is too short"
        super().__init__(url, clock=clock, high_water=high_water)
        # Every request runs it.
        self._verify = str(_VERIFY.compile(dialect=self._engine.dialect))
        self._secret = secret
        self._earlier: tuple[EarlierSecret, ...] = ()

    def accept_earlier(self, earlier: Sequence[EarlierSecret]) -> None:
        """Accepts keys that were hashed with these secrets too, and hashes them with the newest one when they come."""
        self._earlier = tuple(earlier)

    # Principals

    def create_principal(self, name: str, role: Role, *, actor: str) -> Principal:
        """A new principal. Errors: NameTaken; ValueError for a name or role that is not allowed."""
        if NAME.match(name) is None:
            raise ValueError("a principal's name starts with a small letter and has small letters, digits, _ . - only")
        known = _role(role)
        with self._acting() as connection:
            if self._find_principal(connection, name) is not None:
                raise NameTaken("there is a principal of this name")
            made = Principal(name=name, role=known, created=self._now())
            values = {"name": name, "role": known.value, "created": made.created, "disabled": None}
            connection.execute(insert(principals).values(**values))
            told = {"role": known.value}
            rows = {"principals": [name]}
            self._log(connection, actor=actor, action="principal_created", subject=name, details=told, rows=rows)
            self._commit(connection)
        return made

    def principal(self, name: str) -> Principal | None:
        """The principal of that name."""
        with self._engine.connect() as connection:
            return self._find_principal(connection, name)

    def principals(self, *, after: str = "", count: int = 100) -> tuple[Principal, ...]:
        """Principals in order of their names, beginning after `after`."""
        query = select(principals).where(principals.c.name > after).order_by(principals.c.name).limit(count)
        with self._engine.connect() as connection:
            return tuple(_principal(row) for row in connection.execute(query))

    def change_principal(
        self, name: str, *, actor: str, role: Role | None = None, disabled: bool | None = None
    ) -> Principal:
        """Another role, or disabled (its keys stop working at once) or enabled again.

        Errors: NotThere, LastAdministrator, ValueError.
        """
        wanted = None if role is None else _role(role)
        with self._acting() as connection:
            # PostgreSQL: two administrators who disable each other at the same time wait for one another here.
            administrators = select(principals).where(principals.c.role == Role.ADMIN.value).with_for_update()
            others = [
                row.name for row in connection.execute(administrators) if row.disabled is None and row.name != name
            ]
            before = self._find_principal(connection, name)
            if before is None:
                raise NotThere("there is no such principal")
            now = self._now()
            after = Principal(
                name=name,
                role=before.role if wanted is None else wanted,
                created=before.created,
                disabled=before.disabled if disabled is None else (before.disabled or now if disabled else None),
            )
            was_administrator = before.role is Role.ADMIN and before.disabled is None
            stays_administrator = after.role is Role.ADMIN and after.disabled is None
            if was_administrator and not stays_administrator and not others:
                raise LastAdministrator("no other enabled administrator would be left")
            values = {"role": after.role.value, "disabled": after.disabled}
            connection.execute(update(principals).where(principals.c.name == name).values(**values))
            rows = {"principals": [name]}
            if after.role != before.role:
                told = {"before": before.role.value}
                self._log(connection, actor=actor, action=f"role_{after.role}", subject=name, details=told, rows=rows)
            if after.disabled != before.disabled:
                action = "principal_enabled" if after.disabled is None else "principal_disabled"
                self._log(connection, actor=actor, action=action, subject=name, rows=rows)
            self._commit(connection)
        return after

    # Keys

    def create_key(self, principal: str, *, label: str, days: int, actor: str, scopes: Scopes | None = None) -> NewKey:
        """A new key that expires after `days`. Errors: NotThere; ValueError for label, days or too many keys."""
        check_new_key(label=label, days=days)
        identifier, secret, whole = make_key()
        salt = secrets.token_bytes(16)
        now = self._clock()
        with self._acting() as connection:
            if self._find_principal(connection, principal) is None:
                raise NotThere("there is no such principal")
            held = select(func.count()).select_from(api_keys).where(api_keys.c.principal == principal)
            if connection.execute(held.where(api_keys.c.revoked.is_(None))).scalar_one() >= _KEYS_PER_PRINCIPAL:
                raise ValueError(f"a principal has at most {_KEYS_PER_PRINCIPAL} keys that are not revoked")
            key = StoredKey(
                id=identifier,
                principal=principal,
                label=label,
                created=iso(now),
                expires=iso(now + datetime.timedelta(days=days)),
                scopes=scopes,
            )
            connection.execute(
                insert(api_keys).values(
                    id=key.id,
                    principal=key.principal,
                    label=key.label,
                    salt=salt,
                    digest=digest_of(secret, salt=salt, pepper=self._secret),
                    created=key.created,
                    expires=key.expires,
                    scopes=scopes_text(scopes),
                )
            )
            subject = f"{principal}/{identifier}"
            told: dict[str, Json] = {"expires": key.expires}
            if scopes is not None:
                told["scopes"] = scopes_text(scopes)
            rows = {"api_keys": [identifier]}
            self._log(connection, actor=actor, action="key_created", subject=subject, details=told, rows=rows)
            self._commit(connection)
        return NewKey(key=key, text=whole)

    def key(self, identifier: str) -> StoredKey | None:
        """The key of that identifier, without its secret."""
        with self._engine.connect() as connection:
            row = connection.execute(select(api_keys).where(api_keys.c.id == identifier)).first()
        return None if row is None else _key(row)

    def keys(self, *, principal: str | None = None, after: str = "", count: int = 100) -> tuple[StoredKey, ...]:
        """Keys in order of their identifiers, beginning after `after`; of one principal or of all."""
        query = select(api_keys).where(api_keys.c.id > after).order_by(api_keys.c.id).limit(count)
        if principal is not None:
            query = query.where(api_keys.c.principal == principal)
        with self._engine.connect() as connection:
            return tuple(_key(row) for row in connection.execute(query))

    def revoke_key(self, identifier: str, *, actor: str) -> StoredKey:
        """Revokes a key; it stops working with the next request. Revoking twice changes nothing. Errors: NotThere."""
        with self._acting() as connection:
            row = connection.execute(select(api_keys).where(api_keys.c.id == identifier)).first()
            if row is None:
                raise NotThere("there is no such key")
            if row.revoked is None:
                values = {"revoked": self._now()}
                connection.execute(update(api_keys).where(api_keys.c.id == identifier).values(**values))
                subject, changed = f"{row.principal}/{identifier}", {"api_keys": [identifier]}
                self._log(connection, actor=actor, action="key_revoked", subject=subject, rows=changed)
                row = connection.execute(select(api_keys).where(api_keys.c.id == identifier)).one()
            self._commit(connection)
        return _key(row)

    def rotate_key(self, identifier: str, *, grace_minutes: int, days: int | None, actor: str) -> NewKey:
        """A new secret of the same key; the one before works for `grace_minutes` more, and not beyond its expiry.

        `days` is a new life from now on, None leaves the expiry. A secret before the one before stops at once.
        Errors: NotThere; KeyEnded for a key that is revoked or expired; ValueError for minutes or days.
        """
        if not 0 <= grace_minutes <= GRACE_MINUTES_MAX:
            raise ValueError(f"the earlier secret works for 0 to {GRACE_MINUTES_MAX} minutes more")
        check_new_key(label="", days=1 if days is None else days)
        salt, now = secrets.token_bytes(16), self._clock()
        with self._acting() as connection:
            row = connection.execute(select(api_keys).where(api_keys.c.id == identifier)).first()
            if row is None:
                raise NotThere("there is no such key")
            if row.revoked is not None or row.expires <= iso(now):
                raise KeyEnded("the key is revoked or has expired")
            _, secret, whole = make_key(identifier)
            kept = grace_minutes > 0
            until = min(iso(now + datetime.timedelta(minutes=grace_minutes)), row.expires)
            expires = row.expires if days is None else iso(now + datetime.timedelta(days=days))
            values: dict[str, object] = {
                "salt": salt,
                "digest": digest_of(secret, salt=salt, pepper=self._secret),
                "previous_salt": row.salt if kept else None,
                "previous_digest": row.digest if kept else None,
                "previous_until": until if kept else None,
                "expires": expires,
            }
            connection.execute(update(api_keys).where(api_keys.c.id == identifier).values(**values))
            subject, rows = f"{row.principal}/{identifier}", {"api_keys": [identifier]}
            told: dict[str, Json] = {"expires": expires, "previous_until": until if kept else None}
            self._log(connection, actor=actor, action="key_rotated", subject=subject, details=told, rows=rows)
            row = connection.execute(select(api_keys).where(api_keys.c.id == identifier)).one()
            self._commit(connection)
        return NewKey(key=_key(row), text=whole)

    def verify_key(self, whole: str) -> tuple[Principal, StoredKey]:
        """The principal and the key that a text stands for, now.

        Errors: KeyRefused. Its reason is "invalid" unless the secret was right: a guesser learns nothing.
        """
        parts = split_key(whole)
        if parts is None:
            raise KeyRefused(KeyFault.INVALID)
        identifier, secret = parts
        found = read(self._engine, self._verify, {"key": identifier})
        row = _Verified._make(found[0]) if found else None
        # An unknown identifier and a key that was never rotated cost as many hashes as any, so that the time does not
        # reveal which it is.
        salt, expected = _NO_SECRET if row is None else (row.salt, row.digest)
        earlier_salt, earlier_digest = _NO_SECRET
        now = self._now()
        if row is not None and row.previous_salt is not None and row.previous_digest is not None:
            earlier_salt, earlier_digest = row.previous_salt, row.previous_digest
        newest = earlier = False
        used = self._secret
        for pepper in (self._secret, *(one.secret for one in self._earlier if one.until > now)):
            is_newest = hmac.compare_digest(digest_of(secret, salt=salt, pepper=pepper), expected)
            is_earlier = hmac.compare_digest(digest_of(secret, salt=earlier_salt, pepper=pepper), earlier_digest)
            if is_newest or is_earlier:
                newest, earlier, used = is_newest, is_earlier, pepper
        if row is None or not (newest or earlier):
            raise KeyRefused(KeyFault.INVALID)
        if not newest and (row.previous_until is None or row.previous_until <= now):
            raise KeyRefused(KeyFault.ROTATED)
        if row.revoked is not None:
            raise KeyRefused(KeyFault.REVOKED)
        if row.expires <= now:
            raise KeyRefused(KeyFault.EXPIRED)
        if row.disabled is not None:
            raise KeyRefused(KeyFault.DISABLED)
        if used is not self._secret:
            self._hash_anew(row, secret, newest=newest)
        key = _key(row)
        if key.last_used_day != now[:10]:
            self._note_use(identifier, now[:10])
        return Principal(name=row.principal, role=Role(row.role), created=row.since), key

    def _hash_anew(self, row: _Verified, secret: str, *, newest: bool) -> None:
        """Hashes a key with the newest secret of this server: after a rotation nothing else can."""
        column, salt = ("digest", row.salt) if newest else ("previous_digest", row.previous_salt)
        assert salt is not None
        same = (api_keys.c.id == row.id) & (api_keys.c[column] == getattr(row, column))
        try:
            with self._acting() as connection:
                values = {column: digest_of(secret, salt=salt, pepper=self._secret)}
                if connection.execute(update(api_keys).where(same).values(**values)).rowcount:
                    subject, rows = f"{row.principal}/{row.id}", {"api_keys": [row.id]}
                    self._log(connection, actor="server", action="key_hashed_anew", subject=subject, rows=rows)
                self._commit(connection)
        except OperationalError:
            return  # with the next use

    def _note_use(self, identifier: str, day: str) -> None:
        try:
            with self._writing() as connection:
                connection.execute(update(api_keys).where(api_keys.c.id == identifier).values(last_used_day=day))
                connection.commit()
        except OperationalError:
            # The day of last use is a convenience: a busy or read-only database must not lock people out of reads.
            return

    def _find_principal(self, connection: Connection, name: str) -> Principal | None:
        row = connection.execute(select(principals).where(principals.c.name == name)).first()
        return None if row is None else _principal(row)


def _role(role: Role) -> Role:
    """The role, also where somebody passes its value. Errors: ValueError."""
    try:
        return Role(role)
    except ValueError:
        raise ValueError(f"a role is one of {', '.join(Role)}") from None


def _principal(row: Row[tuple[object, ...]]) -> Principal:
    return Principal(name=row.name, role=Role(row.role), created=row.created, disabled=row.disabled)


def _key(row: Row[tuple[object, ...]] | _Verified) -> StoredKey:
    return StoredKey(
        id=row.id,
        principal=row.principal,
        label=row.label,
        created=row.created,
        expires=row.expires,
        last_used_day=row.last_used_day,
        revoked=row.revoked,
        scopes=stored_scopes(row.scopes),
        previous_until=row.previous_until,
    )


def check_new_key(*, label: str, days: int) -> None:
    """Errors: ValueError for a label or a life that no key may have."""
    if not 1 <= days <= 3650:
        raise ValueError("a key lives from 1 to 3650 days")
    if len(label) > 100 or not label.isprintable():
        raise ValueError("a label has at most 100 printable characters")
