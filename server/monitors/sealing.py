"""The secret state of a monitor, encrypted for the database (server/sealing.py).

The noise of a threshold has to outlast the process: drawn anew at each start it would be another session, which was
not charged. Whoever knows it sees through every comparison of the monitor. The text and the threshold of a monitor,
whose literals may be somebody's, are encrypted with it. A database that is restored without its key cannot continue
its monitors, and says so.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Self

from server.sealing import Seal

__all__ = ["SecretState"]


@dataclass(frozen=True, slots=True, repr=False)
class SecretState:
    """What a monitor is for, and the noise of its threshold: the leading `length` bits of a uniform."""

    sql: str
    threshold: str
    noise: int
    length: int

    def sealed(self, seal: Seal, *, monitor: str) -> bytes:
        """The state of that monitor, for the database."""
        plain = {"sql": self.sql, "threshold": self.threshold, "noise": f"{self.noise:x}", "length": self.length}
        return seal.encrypted(json.dumps(plain).encode(), bound_to=monitor)

    @classmethod
    def opened(cls, sealed: bytes, seal: Seal, *, monitor: str) -> Self:
        """The state that was sealed for that monitor. Errors: SealBroken."""
        plain = json.loads(seal.decrypted(sealed, bound_to=monitor))
        return cls(plain["sql"], plain["threshold"], int(plain["noise"], 16), plain["length"])
