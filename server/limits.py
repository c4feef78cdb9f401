"""Rates: token buckets, per principal and per address.

They bound load, not knowledge: what may be learned is bounded by the ledger alone. A process that serves alone keeps
them in memory, which is bounded too: the buckets that were idle longest are forgotten first, and a forgotten bucket is
a full one. Processes that serve together keep those of principals in the database (server/store/shares.py). Both keep
one moment for each bucket, when it will be full again, and compare it in the same way.

Nothing here reads rows of people, or how long a query ran: an answer 429 is a function of requests and their times.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

__all__ = ["RateLimit", "Rates", "SharedRateLimit"]

BUCKETS_MAX = 10_000


class Rates(Protocol):
    """Rates by name."""

    def take(self, name: str) -> int:
        """Takes one token. 0 when there was one, else the whole seconds until there will be one (at least 1)."""


class RateLimit:
    """Token buckets in memory, one per name: `burst` requests at once, then `per_minute` steadily."""

    __slots__ = ("_clock", "_full_at", "_lock", "_step", "_whole")

    def __init__(self, *, per_minute: int, burst: int, clock: Callable[[], float]) -> None:
        assert per_minute >= 1
        assert burst >= 1
        self._step = 60 / per_minute
        self._whole = self._step * burst + 1e-6
        self._clock = clock
        self._lock = threading.Lock()
        self._full_at: OrderedDict[str, float] = OrderedDict()

    def take(self, name: str) -> int:
        """As `Rates.take`."""
        now = self._clock()
        with self._lock:
            # Bounded above too: a clock that was set back makes nobody wait for more than an empty bucket.
            full_at = min(max(self._full_at.get(name, now), now), now + self._whole) + self._step
            if full_at > now + self._whole:
                self._full_at.move_to_end(name)
                return _whole_seconds(full_at - now - self._whole)
            self._full_at[name] = full_at
            self._full_at.move_to_end(name)
            if len(self._full_at) > BUCKETS_MAX:
                self._full_at.popitem(last=False)
        return 0


class Buckets(Protocol):
    """Where buckets are shared."""

    def take_token(self, name: str, *, step: float, burst: int) -> float:
        """Takes a token: 0.0, or the seconds until there will be one."""


class SharedRateLimit:
    """Token buckets that all processes share. One transaction each, so never on the event loop."""

    __slots__ = ("_buckets", "_burst", "_step")

    def __init__(self, buckets: Buckets, *, per_minute: int, burst: int) -> None:
        assert per_minute >= 1
        assert burst >= 1
        self._buckets = buckets
        self._step = 60 / per_minute
        self._burst = burst

    def take(self, name: str) -> int:
        """As `Rates.take`. Errors: those of the database."""
        wait = self._buckets.take_token(name, step=self._step, burst=self._burst)
        return _whole_seconds(wait) if wait > 0 else 0


def _whole_seconds(wait: float) -> int:
    return max(1, math.ceil(wait - 1e-3))
