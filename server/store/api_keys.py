"""API keys as text: readable prefix, identifier, 256 secret bits, checksum. Pure functions.

    ngk_<12 hexadecimal digits>_<43 letters and digits of the secret><6 of the checksum>

The checksum lets a scanner (and this server, before it asks the database) tell a key from junk; it protects nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import zlib
from dataclasses import dataclass

__all__ = ["EarlierSecret", "digest_of", "make_key", "split_key"]

_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_KEY = re.compile(r"ngk_([0-9a-f]{12})_([0-9A-Za-z]{43})([0-9A-Za-z]{6})\Z", re.ASCII)


@dataclass(frozen=True, slots=True, repr=False)
class EarlierSecret:
    """A secret of the server under which keys are still accepted, and until when (ISO 8601 text in UTC)."""

    secret: bytes
    until: str


def _base62(number: int, *, length: int) -> str:
    digits = []
    for _ in range(length):
        number, rest = divmod(number, 62)
        digits.append(_ALPHABET[rest])
    return "".join(reversed(digits))


def _checksum(text: str) -> str:
    return _base62(zlib.crc32(text.encode("ascii")), length=6)


def make_key(identifier: str | None = None) -> tuple[str, str, str]:
    """A new key, or a new secret of one: its identifier, its secret, and the whole text."""
    identifier = secrets.token_hex(6) if identifier is None else identifier
    secret = _base62(int.from_bytes(secrets.token_bytes(32), "big"), length=43)
    body = f"ngk_{identifier}_{secret}"
    return identifier, secret, body + _checksum(body)


def split_key(text: str) -> tuple[str, str] | None:
    """Identifier and secret of a well-formed key, else None."""
    match = _KEY.match(text)
    if match is None:
        return None
    identifier, secret, checksum = match.groups()
    return (identifier, secret) if checksum == _checksum(text[:-6]) else None


def digest_of(secret: str, *, salt: bytes, pepper: bytes) -> bytes:
    """What is stored of a key: HMAC-SHA-256 under the server's secret of salt and key.

    A slow hash would add nothing: the secret has 256 random bits, there is not a dictionary to try.
    """
    return hmac.new(pepper, salt + secret.encode("ascii"), hashlib.sha256).digest()
