"""Principals, API keys and dataset versions. Every change is one transaction with a line in the log of acts.

RegistryError
├── NameTaken        the name exists
├── NotThere         no such principal, key or dataset
├── LastAdministrator  the change would leave nobody who can administrate
├── VersionConflict  the dataset version exists with another document or snapshot
└── KeyRefused       the text is no valid key
"""

from __future__ import annotations

import datetime
import hmac
import json
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sqlalchemy import Connection, Row, Select, bindparam, func, insert, inspect, select, text, update
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from accountant.connection import open_engine
from privacy.values import Json
from server.roles import Role
from server.store import replies
from server.store.keys import digest_of, make_key, split_key
from server.store.tables import api_keys, dataset_versions, principals, registry_events

__all__ = [
    "DATASET_NAME",
    "EITHER",
    "NAME",
    "UNAVAILABLE",
    "DatasetVersion",
    "KeyFault",
    "KeyRefused",
    "LastAdministrator",
    "NameTaken",
    "NewKey",
    "NotReplaced",
    "NotThere",
    "Principal",
    "Registry",
    "RegistryError",
    "StoredKey",
    "VersionConflict",
    "check_new_key",
    "version_tag",
]

NAME = re.compile(r"[a-z][a-z0-9_.-]{0,62}\Z", re.ASCII)
"""Names of principals. A principal keeps its name forever: the ledger refers to it."""

DATASET_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,62}\Z", re.ASCII)
"""Names of datasets."""

UNAVAILABLE: tuple[type[Exception], ...] = (OperationalError, PoolTimeout)
"""What is raised when the database cannot be reached in time."""

_KEYS_PER_PRINCIPAL = 100

_VERIFY = (
    select(api_keys, principals.c.role, principals.c.created.label("since"), principals.c.disabled)
    .join(principals, principals.c.name == api_keys.c.principal)
    .where(api_keys.c.id == bindparam("key"))
)


EITHER = ""
"""For `replaces`: whatever is served, or nothing."""


class RegistryError(Exception):
    """Every error of the registry. Texts name things, never secrets."""


class NameTaken(RegistryError):
    """The name exists already."""


class NotThere(RegistryError):
    """There is no such principal, key or dataset."""


class LastAdministrator(RegistryError):
    """The change would leave no principal that is an enabled administrator."""


class VersionConflict(RegistryError):
    """The version of the dataset is stored with other contents; versions never change."""


class NotReplaced(RegistryError):
    """Something else is served under the name than was to be replaced: `tag`, None for nothing."""

    def __init__(self, name: str, tag: str | None) -> None:
        self.name = name
        self.tag = tag
        super().__init__(name)


class KeyFault(StrEnum):
    """Why a request has no key that works."""

    MISSING = "missing"
    SCHEME = "scheme"
    INVALID = "invalid"
    REVOKED = "revoked"
    EXPIRED = "expired"
    DISABLED = "disabled"


class KeyRefused(RegistryError):
    """The text is not a key that works now. `reason` is told only to a caller who proved to hold the secret."""

    def __init__(self, reason: KeyFault) -> None:
        self.reason = reason
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody or something that calls: a name, one role, times as ISO 8601 text in UTC."""

    name: str
    role: Role
    created: str
    disabled: str | None = None


@dataclass(frozen=True, slots=True)
class StoredKey:
    """What may be shown of a key. `last_used_day` is a date, so that keys do not tell when people work."""

    id: str
    principal: str
    label: str
    created: str
    expires: str
    last_used_day: str | None = None
    revoked: str | None = None


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key at its creation: the only moment at which its text exists on the server."""

    key: StoredKey
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class DatasetVersion:
    """One version of a dataset: its file as JSON, its snapshot, and whether it is the one that is served.

    `document` is None where what is stored is not a JSON object: one damaged row hides no other dataset.
    """

    name: str
    policy_version: int
    data_version: str
    snapshot: str
    document: Mapping[str, object] | None
    current: bool
    created: str
    actor: str


class Registry:
    """The registry on SQLite or PostgreSQL. Thread-safe; every method is one transaction.

    `secret` is the server's part of the hash of keys. The schema must have been migrated.
    """

    def __init__(self, url: str, *, secret: bytes, clock: Callable[[], datetime.datetime]) -> None:
        assert len(secret) >= 32, "the secret for key hashes is too short"
        self._engine = open_engine(url, pool_size=4)
        # Every request runs it: as text it takes half the time.
        self._verify = str(_VERIFY.compile(dialect=self._engine.dialect))
        self._secret = secret
        self._clock = clock

    def close(self) -> None:
        """Closes every connection."""
        self._engine.dispose()

    # Principals

    def create_principal(self, name: str, role: Role, *, actor: str) -> Principal:
        """A new principal. Errors: NameTaken; ValueError for a name or role that is not allowed."""
        if NAME.match(name) is None:
            raise ValueError("a principal's name starts with a small letter and has small letters, digits, _ . - only")
        known = _role(role)
        with self._writing() as connection:
            if self._find_principal(connection, name) is not None:
                raise NameTaken("there is a principal of this name")
            made = Principal(name=name, role=known, created=self._now())
            values = {"name": name, "role": known.value, "created": made.created, "disabled": None}
            connection.execute(insert(principals).values(**values))
            self._log(connection, actor=actor, action="principal_created", subject=name)
            connection.commit()
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
        with self._writing() as connection:
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
            if after.role != before.role:
                self._log(connection, actor=actor, action=f"role_{after.role}", subject=name)
            if after.disabled != before.disabled:
                action = "principal_enabled" if after.disabled is None else "principal_disabled"
                self._log(connection, actor=actor, action=action, subject=name)
            connection.commit()
        return after

    # Keys

    def create_key(self, principal: str, *, label: str, days: int, actor: str) -> NewKey:
        """A new key that expires after `days`. Errors: NotThere; ValueError for label, days or too many keys."""
        check_new_key(label=label, days=days)
        identifier, secret, whole = make_key()
        salt = secrets.token_bytes(16)
        now = self._clock()
        with self._writing() as connection:
            if self._find_principal(connection, principal) is None:
                raise NotThere("there is no such principal")
            held = select(func.count()).select_from(api_keys).where(api_keys.c.principal == principal)
            if connection.execute(held.where(api_keys.c.revoked.is_(None))).scalar_one() >= _KEYS_PER_PRINCIPAL:
                raise ValueError(f"a principal has at most {_KEYS_PER_PRINCIPAL} keys that are not revoked")
            key = StoredKey(
                id=identifier,
                principal=principal,
                label=label,
                created=_iso(now),
                expires=_iso(now + datetime.timedelta(days=days)),
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
                )
            )
            self._log(connection, actor=actor, action="key_created", subject=f"{principal}/{identifier}")
            connection.commit()
        return NewKey(key=key, text=whole)

    def key(self, identifier: str) -> StoredKey | None:
        """The key of that identifier, without its secret."""
        with self._engine.connect() as connection:
            row = connection.execute(select(api_keys).where(api_keys.c.id == identifier)).first()
        return None if row is None else _key(row)

    def keys(self, *, principal: str | None = None, after: str = "", count: int = 100) -> tuple[StoredKey, ...]:
        """Keys in order of their identifiers, beginning after `after`; of one principal or of all."""
        query: Select[tuple[object, ...]] = (
            select(api_keys).where(api_keys.c.id > after).order_by(api_keys.c.id).limit(count)
        )
        if principal is not None:
            query = query.where(api_keys.c.principal == principal)
        with self._engine.connect() as connection:
            return tuple(_key(row) for row in connection.execute(query))

    def revoke_key(self, identifier: str, *, actor: str) -> StoredKey:
        """Revokes a key; it stops working with the next request. Revoking twice changes nothing. Errors: NotThere."""
        with self._writing() as connection:
            row = connection.execute(select(api_keys).where(api_keys.c.id == identifier)).first()
            if row is None:
                raise NotThere("there is no such key")
            if row.revoked is None:
                values = {"revoked": self._now()}
                connection.execute(update(api_keys).where(api_keys.c.id == identifier).values(**values))
                self._log(connection, actor=actor, action="key_revoked", subject=f"{row.principal}/{identifier}")
                row = connection.execute(select(api_keys).where(api_keys.c.id == identifier)).one()
            connection.commit()
        return _key(row)

    def verify_key(self, whole: str) -> tuple[Principal, StoredKey]:
        """The principal and the key that a text stands for, now.

        Errors: KeyRefused. Its reason is "invalid" unless the secret was right: a guesser learns nothing.
        """
        parts = split_key(whole)
        if parts is None:
            raise KeyRefused(KeyFault.INVALID)
        identifier, secret = parts
        with self._engine.connect() as connection:
            row = connection.exec_driver_sql(self._verify, {"key": identifier}).first()
        # An unknown identifier costs one hash too, so that the time does not tell whether it exists.
        salt, expected = (bytes(16), bytes(32)) if row is None else (row.salt, row.digest)
        right = hmac.compare_digest(digest_of(secret, salt=salt, pepper=self._secret), expected)
        if row is None or not right:
            raise KeyRefused(KeyFault.INVALID)
        now = self._now()
        if row.revoked is not None:
            raise KeyRefused(KeyFault.REVOKED)
        if row.expires <= now:
            raise KeyRefused(KeyFault.EXPIRED)
        if row.disabled is not None:
            raise KeyRefused(KeyFault.DISABLED)
        key = _key(row)
        if key.last_used_day != now[:10]:
            self._note_use(identifier, now[:10])
        return Principal(name=row.principal, role=Role(row.role), created=row.since), key

    def _note_use(self, identifier: str, day: str) -> None:
        try:
            with self._writing() as connection:
                connection.execute(update(api_keys).where(api_keys.c.id == identifier).values(last_used_day=day))
                connection.commit()
        except OperationalError:
            # The day of last use is a convenience: a busy or read-only database must not lock people out of reads.
            return

    # Datasets

    def register_dataset(
        self,
        *,
        name: str,
        policy_version: int,
        data_version: str,
        snapshot: str,
        document: Mapping[str, object],
        actor: str,
        replaces: str | None = EITHER,
    ) -> DatasetVersion:
        """Stores a version and makes it the one that is served. The same version again changes nothing.

        `replaces` is what must be served now: the tag of a version, "*" for any version, None for none, EITHER for no
        matter what.
        Errors: VersionConflict when the version is stored with other contents; NotReplaced when something else is
        served than `replaces` says; ValueError for a bad name.
        """
        if DATASET_NAME.match(name) is None:
            raise ValueError("a dataset's name starts with a letter and has letters, digits, _ . - only")
        # In the order of the file: analysts see tables and columns as their owner wrote them.
        stored = json.dumps(document, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        table = dataset_versions
        same = (
            (table.c.name == name) & (table.c.policy_version == policy_version) & (table.c.data_version == data_version)
        )
        with self._writing() as connection:
            _require_replaced(connection, name, replaces)
            row = connection.execute(select(table).where(same)).first()
            if row is not None and (_document(row.document) != json.loads(stored) or row.snapshot != snapshot):
                raise VersionConflict("this version of the dataset is stored with other contents")
            if row is None or not row.current:
                connection.execute(update(table).where(table.c.name == name).values(current=False))
                if row is None:
                    connection.execute(
                        insert(table).values(
                            name=name,
                            policy_version=policy_version,
                            data_version=data_version,
                            snapshot=snapshot,
                            document=stored,
                            current=True,
                            created=self._now(),
                            actor=actor,
                        )
                    )
                else:
                    connection.execute(update(table).where(same).values(current=True))
                self._log(connection, actor=actor, action="dataset_registered", subject=f"{name}/{policy_version}")
                row = connection.execute(select(table).where(same)).one()
            connection.commit()
        return _version(row)

    def require_replaced(self, name: str, replaces: str | None) -> None:
        """Errors: NotReplaced, as `register_dataset` would raise it now."""
        with self._engine.connect() as connection:
            _require_replaced(connection, name, replaces)

    def datasets(self) -> tuple[DatasetVersion, ...]:
        """The versions that are served, in order of names."""
        query = select(dataset_versions).where(dataset_versions.c.current).order_by(dataset_versions.c.name)
        with self._engine.connect() as connection:
            return tuple(_version(row) for row in connection.execute(query))

    def dataset_versions(self, name: str) -> tuple[DatasetVersion, ...]:
        """Every version of a dataset, oldest first."""
        query = select(dataset_versions).where(dataset_versions.c.name == name).order_by(dataset_versions.c.sequence)
        with self._engine.connect() as connection:
            return tuple(_version(row) for row in connection.execute(query))

    def remove_dataset(self, name: str, *, actor: str, replaces: str = EITHER) -> None:
        """Stops serving a dataset. Its accounts, entries and releases stay in the ledger.

        `replaces` is what must be served now: the tag of a version, "*" for any version, EITHER for no matter what.
        Errors: NotThere when nothing is served under the name; NotReplaced when something else is than `replaces` says.
        """
        table = dataset_versions
        with self._writing() as connection:
            served = (table.c.name == name) & table.c.current
            if connection.execute(select(table.c.name).where(served)).first() is None:
                raise NotThere("there is no such dataset")
            _require_replaced(connection, name, replaces)
            if connection.execute(update(table).where(served).values(current=False)).rowcount == 0:
                raise NotThere("there is no such dataset")
            self._log(connection, actor=actor, action="dataset_removed", subject=name)
            connection.commit()

    # Operation

    def acts(self, *, after: int = 0, count: int = 100) -> tuple[tuple[int, str, str, str, str], ...]:
        """The log of administrative acts: sequence, time, actor, action, subject."""
        table = registry_events
        query = select(table).where(table.c.sequence > after).order_by(table.c.sequence).limit(count)
        with self._engine.connect() as connection:
            return tuple(
                (row.sequence, row.at, row.actor, row.action, row.subject) for row in connection.execute(query)
            )

    def check_writable(self) -> None:
        """Opens a writing transaction on the ledger's database, writes, and takes it back.

        Errors: SQLAlchemyError when it cannot be written.
        """
        with self._writing() as connection:
            self._log(connection, actor="readiness", action="readiness", subject="readiness")
            connection.rollback()

    # Replies

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
                now=_iso(now),
                forget_before=_iso(now - datetime.timedelta(days=replies.KEPT_DAYS)),
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

    def _writing(self) -> Connection:
        return self._engine.connect().execution_options(immediate=True)

    def _find_principal(self, connection: Connection, name: str) -> Principal | None:
        row = connection.execute(select(principals).where(principals.c.name == name)).first()
        return None if row is None else _principal(row)

    def _log(self, connection: Connection, *, actor: str, action: str, subject: str) -> None:
        values = {"at": self._now(), "actor": actor, "action": action, "subject": subject}
        connection.execute(insert(registry_events).values(**values))

    def _now(self) -> str:
        return _iso(self._clock())


def _iso(moment: datetime.datetime) -> str:
    assert moment.tzinfo is not None
    return moment.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _role(role: Role) -> Role:
    """The role, also where somebody passes its value. Errors: ValueError."""
    try:
        return Role(role)
    except ValueError:
        raise ValueError(f"a role is one of {', '.join(Role)}") from None


def _principal(row: Row[tuple[object, ...]]) -> Principal:
    return Principal(name=row.name, role=Role(row.role), created=row.created, disabled=row.disabled)


def _key(row: Row[tuple[object, ...]]) -> StoredKey:
    return StoredKey(
        id=row.id,
        principal=row.principal,
        label=row.label,
        created=row.created,
        expires=row.expires,
        last_used_day=row.last_used_day,
        revoked=row.revoked,
    )


def check_new_key(*, label: str, days: int) -> None:
    """Errors: ValueError for a label or a life that no key may have."""
    if not 1 <= days <= 3650:
        raise ValueError("a key lives from 1 to 3650 days")
    if len(label) > 100 or not label.isprintable():
        raise ValueError("a label has at most 100 printable characters")


def version_tag(policy_version: int, data_version: str) -> str:
    """The tag of a version of a dataset: equal for equal policy and data."""
    return f"{policy_version}-{data_version}"


def _require_replaced(connection: Connection, name: str, replaces: str | None) -> None:
    if replaces == EITHER:
        return
    table = dataset_versions
    served = connection.execute(select(table).where((table.c.name == name) & table.c.current)).first()
    tag = None if served is None else version_tag(served.policy_version, served.data_version)
    if tag is None if replaces == "*" else tag != replaces:
        raise NotReplaced(name, tag)


def _document(stored: str) -> Mapping[str, Json] | None:
    """A stored dataset file, or None where it is not a JSON object."""
    try:
        document = json.loads(stored)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _version(row: Row[tuple[object, ...]]) -> DatasetVersion:
    return DatasetVersion(
        name=row.name,
        policy_version=row.policy_version,
        data_version=row.data_version,
        snapshot=row.snapshot,
        document=_document(row.document),
        current=row.current,
        created=row.created,
        actor=row.actor,
    )
