"""Bearer tokens of an OpenID Connect provider: JSON Web Tokens, checked with PyJWT under the provider's public keys.

What is accepted is said in the settings and nowhere else: one issuer, one audience, a list of signature algorithms with
public keys. A token names neither its keys nor its algorithm: `kid` and `alg` of its header only choose among the keys
that the provider publishes and the algorithms that fit them, so that neither "none" nor an HMAC under a public key can
be chosen. (RFC 7515, RFC 7517, RFC 7519, RFC 8725 sections 3.1, 3.2, 3.8, 3.9 and 3.11; OpenID Connect Core 3.1.3.7.)

A token says who somebody is. What that principal may do here is the registry's to say: the token may only agree.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import jwt

from server.roles import Role
from server.store.errors import KeyFault, KeyRefused, NameTaken
from server.store.people import NAME, Principal
from server.store.transactions import iso
from server.token_keys import ProviderKeys

if TYPE_CHECKING:
    from server.settings import Settings

__all__ = ["TOKEN", "TokenTerms", "Tokens", "open_tokens"]

TOKEN = re.compile(r"[A-Za-z0-9_-]{2,4000}\.[A-Za-z0-9_-]{2,12000}\.[A-Za-z0-9_-]{2,2000}\Z", re.ASCII)
"""The form of a signed token. Unsigned ones, with nothing behind the last dot, have another."""

_TYPES = frozenset({"jwt", "at+jwt", "application/at+jwt"})
_HEADER = frozenset({"alg", "kid", "typ", "x5t", "x5t#S256", "cty"})
"""Members of a header. Any other one, `crit` or a key of its own among them, may change what the token means."""


class Directory(Protocol):
    """Where principals are."""

    def principal(self, name: str) -> Principal | None:
        """The principal of that name."""

    def create_principal(self, name: str, role: Role, *, actor: str) -> Principal:
        """A new principal. Errors: NameTaken."""


@dataclass(frozen=True, slots=True)
class TokenTerms:
    """What the settings say of tokens. `roles` maps values of `roles_claim`; without that claim it is empty."""

    issuer: str
    audience: str
    algorithms: tuple[str, ...]
    leeway_seconds: int
    principal_claim: str
    principal_prefix: str
    roles_claim: str | None
    roles: Mapping[str, Role]


class Tokens:
    """Tokens of one provider, each verified anew at every request. Safe to use from many threads."""

    __slots__ = ("_directory", "_keys", "_terms")

    def __init__(self, terms: TokenTerms, keys: ProviderKeys, directory: Directory) -> None:
        self._terms = terms
        self._keys = keys
        self._directory = directory

    def verify(self, text: str) -> tuple[Principal, str]:
        """The principal that a token stands for, and until when it does, as ISO 8601 text in UTC.

        Errors: KeyRefused: "expired" and "not_yet" only of a token whose signature, issuer and audience are right,
        "stranger" of one that names nobody who may call here; KeysUnavailable without keys of the provider.
        """
        claims = self._claims(text)
        moment = datetime.datetime.fromtimestamp(_whole(claims["exp"]), datetime.UTC)
        return self._principal(claims), iso(moment)

    def _claims(self, text: str) -> Mapping[str, object]:
        if TOKEN.match(text) is None:
            raise KeyRefused(KeyFault.INVALID)
        try:
            header = jwt.get_unverified_header(text)
        except jwt.PyJWTError:
            raise KeyRefused(KeyFault.INVALID) from None
        algorithm, key_id = header.get("alg"), header.get("kid")
        typed = str(header.get("typ", "JWT")).lower() in _TYPES
        if not typed or not header.keys() <= _HEADER or algorithm not in self._terms.algorithms:
            raise KeyRefused(KeyFault.INVALID)
        for key in self._keys.fitting(key_id, str(algorithm)):
            try:
                return self._decoded(text, key, str(algorithm))
            except (jwt.InvalidSignatureError, jwt.InvalidKeyError):
                continue
            except jwt.ExpiredSignatureError:
                raise KeyRefused(self._untimely(text, key, str(algorithm), KeyFault.EXPIRED)) from None
            except jwt.ImmatureSignatureError:
                raise KeyRefused(self._untimely(text, key, str(algorithm), KeyFault.NOT_YET)) from None
            except (jwt.PyJWTError, ValueError, TypeError, OverflowError):
                break
        raise KeyRefused(KeyFault.INVALID)

    def _decoded(self, text: str, key: jwt.PyJWK, algorithm: str, *, timed: bool = True) -> Mapping[str, object]:
        terms = self._terms
        required = ["exp", "iat", "iss", "aud", terms.principal_claim]
        claims: Mapping[str, object] = jwt.decode(
            text,
            key,
            algorithms=[algorithm],
            audience=terms.audience,
            issuer=terms.issuer,
            leeway=terms.leeway_seconds,
            options={
                "require": required,
                "verify_exp": timed,
                "verify_nbf": timed,
                "verify_iat": timed,
                "enforce_minimum_key_length": True,
            },
        )
        _whole(claims["exp"])
        return claims

    def _untimely(self, text: str, key: jwt.PyJWK, algorithm: str, reason: KeyFault) -> KeyFault:
        """The reason, where all but the time is right; "invalid" for anybody else."""
        try:
            self._decoded(text, key, algorithm, timed=False)
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError):
            return KeyFault.INVALID
        return reason

    def _principal(self, claims: Mapping[str, object]) -> Principal:
        """The principal that the claims name. One that is unknown is made where they name one role for it.

        Claim: a token never gives a role that the registry does not have for that name, and never an administrator's
        to a name that is new. For the principal that is returned is the registry's, or was made with a role that is
        not `admin`; and where roles are claimed, that role is among them.
        """
        terms = self._terms
        subject, claimed = claims[terms.principal_claim], self._roles(claims)
        name = f"{terms.principal_prefix}{subject}"
        if not isinstance(subject, str) or NAME.match(name) is None or claimed == frozenset():
            raise KeyRefused(KeyFault.STRANGER)
        found = self._directory.principal(name)
        if found is None and claimed is not None and len(claimed) == 1 and Role.ADMIN not in claimed:
            try:
                found = self._directory.create_principal(name, next(iter(claimed)), actor="oidc")
            except NameTaken:
                found = self._directory.principal(name)
        if found is None or (claimed is not None and found.role not in claimed):
            raise KeyRefused(KeyFault.STRANGER)
        if found.disabled is not None:
            raise KeyRefused(KeyFault.DISABLED)
        return found

    def _roles(self, claims: Mapping[str, object]) -> frozenset[Role] | None:
        """The roles that the claims name; None where the settings ask for none."""
        if self._terms.roles_claim is None:
            return None
        value = claims.get(self._terms.roles_claim)
        words: Sequence[object] = value if isinstance(value, list) else [value]
        return frozenset(
            self._terms.roles[word] for word in words if isinstance(word, str) and word in self._terms.roles
        )


def _whole(value: object) -> int:
    """A moment of a claim. Errors: ValueError for what is no date."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 253_402_300_800:
        raise ValueError("a moment is a number of seconds")
    return int(value)


def open_tokens(settings: Settings, directory: Directory, *, clock: Callable[[], float]) -> Tokens | None:
    """What the settings say of tokens; None where they name no issuer. `clock` counts seconds."""
    if settings.oidc_issuer is None or settings.oidc_audience is None:
        return None
    source = settings.oidc_keys_file or settings.oidc_keys_url
    assert source is not None
    keys = ProviderKeys(source, fresh_seconds=settings.oidc_keys_minutes * 60, clock=clock)
    terms = TokenTerms(
        issuer=settings.oidc_issuer,
        audience=settings.oidc_audience,
        algorithms=settings.oidc_algorithms,
        leeway_seconds=settings.oidc_leeway_seconds,
        principal_claim=settings.oidc_principal_claim,
        principal_prefix=settings.oidc_principal_prefix,
        roles_claim=settings.oidc_roles_claim,
        roles=settings.oidc_roles,
    )
    return Tokens(terms, keys, directory)
