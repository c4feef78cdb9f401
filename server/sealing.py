"""What the database has encrypted: states of monitors and streams, texts of batches, of dashboards and of requests for
budgets, addresses and secrets of webhooks.

It is encrypted and authenticated (AES-256-GCM, a fresh nonce for each writing, bound to the identifier of what it
belongs to), under a key for each purpose that is derived from `key_secret`, which servers that share a database share
and no dump of the database has. What was copied to another identifier, or damaged, does not decrypt.
"""

from __future__ import annotations

import secrets

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

__all__ = ["BATCHES", "DASHBOARDS", "MONITORS", "REQUESTS", "SECRETS", "STREAMS", "WEBHOOKS", "Seal", "SealBroken"]

MONITORS = b"noisegate monitors 1"
BATCHES = b"noisegate batches 1"
WEBHOOKS = b"noisegate webhooks 1"
STREAMS = b"noisegate streams 1"
REQUESTS = b"noisegate requests 1"
DASHBOARDS = b"noisegate dashboards 1"
SECRETS = b"noisegate earlier secrets 1"

_NONCE = 12


class SealBroken(Exception):
    """It cannot be read: the key is another one, or what was encrypted is damaged or was moved."""


class Seal:
    """Encrypts and decrypts what one server keeps for one purpose. Safe to use from many threads."""

    def __init__(self, secret: bytes, purpose: bytes) -> None:
        self._cipher = AESGCM(HKDF(SHA256(), length=32, salt=None, info=purpose).derive(secret))

    def encrypted(self, plain: bytes, *, bound_to: str) -> bytes:
        """The bytes of what has that identifier, for the database."""
        nonce = secrets.token_bytes(_NONCE)
        return nonce + self._cipher.encrypt(nonce, plain, bound_to.encode())

    def decrypted(self, sealed: bytes, *, bound_to: str) -> bytes:
        """What was encrypted for that identifier. Errors: SealBroken."""
        try:
            return self._cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], bound_to.encode())
        except (InvalidTag, ValueError):
            raise SealBroken from None
