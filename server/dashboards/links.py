"""Read-only links: a token that opens the tiles of one dashboard until a moment, or until it is revoked.

A token is `identifier.expiry.code`. The code is HMAC-SHA256 of identifier, dashboard and expiry, under a key that is
derived from `key_secret` for this purpose alone. Nobody without the key makes a token, moves one to another
dashboard, or extends its life; a token that was revoked is found by its identifier. Tokens are not stored: the answer
that made a link shows it once. They are sent in the query string, which this server neither logs nor repeats.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from server.store.api_keys import EarlierSecret
from server.store.transactions import iso

__all__ = ["LinkFault", "LinkRefused", "Signer"]

_PURPOSE = b"noisegate dashboard links 1"
_TOKEN = re.compile(r"(k_[0-9a-f]{16})\.([0-9]{1,12})\.([A-Za-z0-9_-]{43})\Z", re.ASCII)


class LinkFault(StrEnum):
    """Why a token opens nothing."""

    INVALID = "invalid"
    EXPIRED = "expired"
    REVOKED = "revoked"


class LinkRefused(Exception):
    """A token that opens nothing. The reason is shown to those alone who hold one of ours."""

    def __init__(self, reason: LinkFault) -> None:
        self.reason = reason
        super().__init__(reason.value)


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs tokens of links, and checks them. Safe to use from many threads."""

    key: bytes = field(repr=False)
    earlier: tuple[tuple[bytes, str], ...] = field(default=(), repr=False)
    """Keys of secrets before, each with the moment until which what it signed is accepted."""

    @classmethod
    def of(cls, secret: bytes, earlier: Iterable[EarlierSecret] = ()) -> Signer:
        """The signer of a server with this `key_secret`. Links outlive another one as keys of the API do."""
        return cls(_derived(secret), tuple((_derived(one.secret), one.until) for one in earlier))

    def token(self, link: str, dashboard: str, expires: datetime.datetime) -> str:
        """The token of a link."""
        second = int(expires.timestamp())
        return f"{link}.{second}.{_code(self.key, link, dashboard, second)}"

    def link_of(self, token: str, dashboard: str, now: datetime.datetime) -> str:
        """The identifier of the link whose token this is, for that dashboard. Errors: LinkRefused."""
        found = _TOKEN.match(token)
        if found is None:
            raise LinkRefused(LinkFault.INVALID)
        link, second = found[1], int(found[2])
        keys = [self.key, *(key for key, until in self.earlier if until > iso(now))]
        right = [hmac.compare_digest(found[3], _code(key, link, dashboard, second)) for key in keys]
        if not any(right):
            raise LinkRefused(LinkFault.INVALID)
        if now.timestamp() >= second:
            raise LinkRefused(LinkFault.EXPIRED)
        return link


def _derived(secret: bytes) -> bytes:
    return HKDF(SHA256(), length=32, salt=None, info=_PURPOSE).derive(secret)


def _code(key: bytes, link: str, dashboard: str, second: int) -> str:
    code = hmac.new(key, f"{link}|{dashboard}|{second}".encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(code).decode().rstrip("=")
