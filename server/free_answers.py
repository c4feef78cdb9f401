"""How much one principal may have stored for free: answers that are charged are bounded by budgets, others by this.

Every answer is kept for as long as the ledger exists, also one made of stored releases or of no rows at all, which
costs nothing. So each principal has an allowance of bytes that fills up again with time. An answer may overdraw it,
since its size is known only when it is made; the next free answer then waits.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

__all__ = ["ROW_BYTES", "Allowances", "FreeAnswers", "SharedFreeAnswers"]

BURST_BYTES = 32 * 1024 * 1024
"""What a principal may have stored at once: about a day of the steady rate below in half an hour."""

BYTES_PER_SECOND = 16 * 1024
"""What comes back every second: 1.4 GB a day, or eight repeats a second with their own Idempotency-Keys."""

ROW_BYTES = 2 * 1024
"""What a query's row takes beside its answer."""

_PRINCIPALS_MAX = 10_000


class Allowances(Protocol):
    """The allowances of principals. Safe to use from many threads."""

    def wait_seconds(self, principal: str) -> int:
        """After how many seconds the principal may have another free answer stored; 0 for now."""

    def take(self, principal: str, size: int) -> None:
        """Counts a free answer of that many bytes, and its row."""


class Buckets(Protocol):
    """Where several processes keep allowances together (server/store/shares.py)."""

    def seconds_to_full(self, name: str) -> float:
        """Until the bucket of that name is full again."""

    def drain(self, name: str, seconds: float) -> None:
        """Takes out of it what comes back in so many seconds, also where less is left."""


class SharedFreeAnswers:
    """The allowances of all processes that serve from one database: by the same arithmetic as `FreeAnswers`."""

    def __init__(
        self, buckets: Buckets, *, burst_bytes: int = BURST_BYTES, bytes_per_second: int = BYTES_PER_SECOND
    ) -> None:
        self._buckets = buckets
        self._burst = burst_bytes
        self._rate = bytes_per_second

    def wait_seconds(self, principal: str) -> int:
        """As `Allowances.wait_seconds`. Errors: those of the database."""
        left = self._burst - self._buckets.seconds_to_full(_named(principal)) * self._rate
        return 0 if left > 0 else max(1, math.ceil((1 - left) / self._rate))

    def take(self, principal: str, size: int) -> None:
        """As `Allowances.take`. Errors: those of the database."""
        self._buckets.drain(_named(principal), (size + ROW_BYTES) / self._rate)


def _named(principal: str) -> str:
    """The bucket's name, which no principal has: theirs are the rates of requests."""
    return f"free {principal}"


class FreeAnswers:
    """The allowances of a process that serves alone, in memory."""

    def __init__(
        self,
        *,
        burst_bytes: int = BURST_BYTES,
        bytes_per_second: int = BYTES_PER_SECOND,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._burst = burst_bytes
        self._rate = bytes_per_second
        self._clock = clock
        self._lock = threading.Lock()
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_seconds(self, principal: str) -> int:
        """After how many seconds the principal may have another free answer stored; 0 for now."""
        with self._lock:
            left = self._now(principal)
        return 0 if left > 0 else max(1, math.ceil((1 - left) / self._rate))

    def take(self, principal: str, size: int) -> None:
        """Counts a free answer of that many bytes, and its row."""
        with self._lock:
            self._left[principal] = (self._now(principal) - size - ROW_BYTES, self._clock())
            self._left.move_to_end(principal)
            while len(self._left) > _PRINCIPALS_MAX:
                self._left.popitem(last=False)

    def _now(self, principal: str) -> float:
        left, at = self._left.get(principal, (float(self._burst), self._clock()))
        return min(float(self._burst), left + (self._clock() - at) * self._rate)
