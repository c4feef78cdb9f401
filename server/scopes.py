"""Scopes of API keys: which of the operations of its role a key may use. A scope narrows the role, never widens it.

Every operation needs exactly one scope; approving or rejecting a request for a budget needs `administer` besides. A key
without scopes has all that its role serves, except `impersonate`, which is never had unless it is named: it needs no
operation but the header `Noisegate-On-Behalf-Of`.

Claim: a request with scopes S is let in only if the same request without scopes is. For `Access` (server/auth.py)
refuses a caller whose role is not served before it looks at S, and S only adds a reason to refuse.
tests/server/test_scopes.py walks every route with a key of each role and each scope, and finds a twin that widens.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from privacy.wording import nearest
from server.roles import Role

__all__ = ["SERVICE_ROLES", "Scope", "Scopes", "read_scopes", "scope_of", "scopes_text", "stored_scopes"]


class Scope(StrEnum):
    """What a key may be used for. The values are stored."""

    READ = "read"
    ESTIMATE = "estimate"
    ASK = "ask"
    ADMINISTER = "administer"
    AUDIT = "audit"
    METRICS = "metrics"
    IMPERSONATE = "impersonate"


Scopes = tuple[Scope, ...]
"""Scopes of one key, in the order above."""

SERVICE_ROLES = frozenset({Role.OWNER, Role.ANALYST, Role.DASHBOARD})
"""Whose keys may hold `impersonate`, and on whose behalf they may act: neither administrators nor auditors."""


def scope_of(method: str, path: str, allowed: Iterable[Role]) -> Scope:
    """The scope of an operation that names none: by its method, its path and the roles that it serves."""
    if method in ("GET", "HEAD"):
        return Scope.READ
    if path.endswith((":estimate", "/estimates")):
        return Scope.ESTIMATE
    return Scope.ADMINISTER if set(allowed) <= {Role.ADMIN} else Scope.ASK


def read_scopes(words: Iterable[str], role: Role) -> Scopes:
    """The scopes that somebody names for a key of that role. Errors: ValueError, in words."""
    found = set()
    for word in words:
        if word not in set(Scope):
            near = nearest(word, tuple(Scope))
            meant = "" if near is None else f"; did you mean {near}?"
            raise ValueError(f"scopes are {', '.join(Scope)}{meant}")
        found.add(Scope(word))
    if not found:
        raise ValueError("a key with scopes has at least one; without the field it has all of its role")
    if Scope.IMPERSONATE in found and role not in SERVICE_ROLES:
        raise ValueError("keys of administrators and auditors never act on behalf of others: leave out impersonate")
    return tuple(scope for scope in Scope if scope in found)


def scopes_text(scopes: Scopes | None) -> str | None:
    """Scopes as they are stored: words in order; None where the key has none."""
    return None if scopes is None else " ".join(scopes)


def stored_scopes(text: str | None) -> Scopes | None:
    """Scopes as they were stored. A word that this version does not know gives nothing."""
    return None if text is None else tuple(scope for scope in Scope if scope in text.split())
