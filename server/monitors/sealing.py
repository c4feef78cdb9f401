"""The secret state of a monitor, encrypted for the database.

The noise of a threshold has to outlast the process: drawn anew at each start it would be another session, which was
not charged. Whoever knows it sees through every comparison of the monitor, so the database has it encrypted and
authenticated (AES-256-GCM, a fresh nonce for each writing, bound to the monitor), under a key that is derived from
`key_secret`, which servers that share a database share and no dump of the database has. The text and the threshold of
a monitor, whose literals may be somebody's, are encrypted with it.

A database that is restored without its key cannot continue its monitors, and says so. A state that was copied to
another monitor, or damaged, does not decrypt.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

__all__ = ["Seal", "SealBroken", "SecretState"]

_NONCE = 12


class SealBroken(Exception):
    """The state cannot be read: the key is another one, or the state was damaged or moved."""


@dataclass(frozen=True, slots=True, repr=False)
class SecretState:
    """What a monitor is for, and the noise of its threshold: the leading `length` bits of a uniform."""

    sql: str
    threshold: str
    noise: int
    length: int


class Seal:
    """Encrypts and decrypts the states of one server's monitors, or, for another `purpose`, texts of another resource.

    Safe to use from many threads.
    """

    def __init__(self, secret: bytes, purpose: bytes = b"noisegate monitors 1") -> None:
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

    def sealed(self, state: SecretState, *, monitor: str) -> bytes:
        """The state of that monitor, for the database."""
        plain = {"sql": state.sql, "threshold": state.threshold, "noise": f"{state.noise:x}", "length": state.length}
        return self.encrypted(json.dumps(plain).encode(), bound_to=monitor)

    def opened(self, sealed: bytes, *, monitor: str) -> SecretState:
        """The state that was sealed for that monitor. Errors: SealBroken."""
        plain = json.loads(self.decrypted(sealed, bound_to=monitor))
        return SecretState(plain["sql"], plain["threshold"], int(plain["noise"], 16), plain["length"])
