"""Principals and their API keys. The registry's log of acts gets one line for every change."""

from __future__ import annotations

from dataclasses import dataclass

from server.administration.refusal import (
    ActRefused,
    DisabledPrincipal,
    EndedKey,
    LastAdmin,
    NameInUse,
    NoKey,
    NoPrincipal,
    OtherRole,
    UnsuitableKey,
    UnsuitablePrincipal,
)
from server.roles import Role
from server.scopes import Scopes, read_scopes
from server.store.errors import KeyEnded, LastAdministrator, NameTaken, NotThere
from server.store.people import NewKey, Principal, StoredKey, check_new_key
from server.store.registry import Registry

__all__ = ["ChangePrincipal", "CreateKey", "CreatePrincipal", "GrantKey", "Granted", "People", "RotateKey"]


@dataclass(frozen=True, slots=True)
class CreatePrincipal:
    """A new principal with one role."""

    name: str
    role: Role


@dataclass(frozen=True, slots=True)
class ChangePrincipal:
    """Another role, or disabled or enabled again; None leaves it as it is."""

    name: str
    role: Role | None = None
    disabled: bool | None = None


@dataclass(frozen=True, slots=True)
class CreateKey:
    """A new key of a principal. `days` is its lifetime, the server's default when None.

    `scopes` narrow what it may be used for (server/scopes.py); None for all that the principal's role serves.
    """

    principal: str
    label: str = ""
    days: int | None = None
    scopes: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class GrantKey:
    """A new key, and its principal when there is none of that name.

    `role` is the role that the principal must have; for a new one None means analyst.
    """

    name: str
    role: Role | None = None
    label: str = ""
    days: int | None = None
    scopes: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class RotateKey:
    """A new secret of a key. The one before works for `grace_minutes` more; `days` is a new life, None for the old."""

    id: str
    grace_minutes: int = 0
    days: int | None = None


@dataclass(frozen=True, slots=True)
class Granted:
    """A new key with its principal."""

    principal: Principal
    made: NewKey


@dataclass(frozen=True, slots=True)
class People:
    """The acts on principals and keys. `key_days` is how long a key lives by default. Raises ActRefused."""

    registry: Registry
    key_days: int

    def create_principal(self, request: CreatePrincipal, *, actor: str) -> Principal:
        """A new principal; its name is kept forever. Refused: NameInUse, UnsuitablePrincipal."""
        try:
            return self.registry.create_principal(request.name, request.role, actor=actor)
        except NameTaken:
            raise ActRefused(NameInUse(request.name)) from None
        except ValueError as error:
            raise ActRefused(UnsuitablePrincipal(str(error))) from None

    def change_principal(self, request: ChangePrincipal, *, actor: str) -> Principal:
        """Another role, or disabled: its keys stop working with the next request.

        Refused: NoPrincipal, LastAdmin, UnsuitablePrincipal.
        """
        try:
            return self.registry.change_principal(
                request.name, actor=actor, role=request.role, disabled=request.disabled
            )
        except NotThere:
            raise ActRefused(NoPrincipal(request.name)) from None
        except LastAdministrator:
            raise ActRefused(LastAdmin()) from None
        except ValueError as error:
            raise ActRefused(UnsuitablePrincipal(str(error))) from None

    def create_key(self, request: CreateKey, *, actor: str) -> NewKey:
        """A new key of a principal that is enabled. Refused: NoPrincipal, DisabledPrincipal, UnsuitableKey."""
        days = self._days(request.days)
        found = self.registry.principal(request.principal)
        if found is None:
            raise ActRefused(NoPrincipal(request.principal))
        if found.disabled is not None:
            raise ActRefused(DisabledPrincipal(found.name))
        try:
            scopes = _scopes(request.scopes, found.role)
            return self.registry.create_key(
                request.principal, label=request.label, days=days, actor=actor, scopes=scopes
            )
        except NotThere:
            raise ActRefused(NoPrincipal(request.principal)) from None
        except ValueError as error:
            raise ActRefused(UnsuitableKey(str(error))) from None

    def grant_key(self, request: GrantKey, *, actor: str) -> Granted:
        """A new key, with its principal when there is none of that name. A refusal makes neither.

        Refused: OtherRole; as `create_principal` and `create_key`.
        """
        try:
            check_new_key(label=request.label, days=self._days(request.days))
            _scopes(request.scopes, request.role or Role.ANALYST)
        except ValueError as error:
            raise ActRefused(UnsuitableKey(str(error))) from None
        found = self.registry.principal(request.name)
        if found is not None and request.role is not None and request.role is not found.role:
            raise ActRefused(OtherRole(found.name, role=found.role, wanted=request.role))
        if found is None:
            found = self.create_principal(CreatePrincipal(request.name, request.role or Role.ANALYST), actor=actor)
        made = self.create_key(CreateKey(request.name, request.label, request.days, request.scopes), actor=actor)
        return Granted(found, made)

    def keys(self, principal: str | None = None) -> list[tuple[StoredKey, str]]:
        """Every key, or those of one principal, each with its principal's role; by principal, the oldest first."""
        found: list[StoredKey] = []
        while page := self.registry.keys(principal=principal, after=found[-1].id if found else "", count=500):
            found += page
        owners = {name: self.registry.principal(name) for name in {key.principal for key in found}}
        roles = {name: "" if owner is None else owner.role.value for name, owner in owners.items()}
        return [(key, roles[key.principal]) for key in sorted(found, key=lambda key: (key.principal, key.created))]

    def revoke_key(self, identifier: str, *, actor: str) -> StoredKey:
        """Revokes a key; it stops working with the next request. Revoking twice changes nothing. Refused: NoKey."""
        try:
            return self.registry.revoke_key(identifier, actor=actor)
        except NotThere:
            raise ActRefused(NoKey(identifier)) from None

    def rotate_key(self, request: RotateKey, *, actor: str) -> NewKey:
        """A new secret of a key that works. Refused: NoKey, EndedKey, UnsuitableKey."""
        try:
            return self.registry.rotate_key(
                request.id, grace_minutes=request.grace_minutes, days=request.days, actor=actor
            )
        except NotThere:
            raise ActRefused(NoKey(request.id)) from None
        except KeyEnded:
            raise ActRefused(EndedKey(request.id)) from None
        except ValueError as error:
            raise ActRefused(UnsuitableKey(str(error))) from None

    def _days(self, given: int | None) -> int:
        return self.key_days if given is None else given


def _scopes(words: tuple[str, ...] | None, role: Role) -> Scopes | None:
    return None if words is None else read_scopes(words, role)
