"""Rates: token buckets in memory, per principal and per address.

They bound load, not knowledge: what may be learned is bounded by the ledger alone. Memory is bounded too: the
buckets that were idle longest are forgotten first, and a forgotten bucket is a full one.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["RateLimit"]

BUCKETS_MAX = 10_000


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class RateLimit:
    """Token buckets, one per name: `burst` requests at once, then `per_minute` steadily."""

    __slots__ = ("_buckets", "_burst", "_clock", "_lock", "_per_second")

    def __init__(self, *, per_minute: int, burst: int, clock: Callable[[], float]) -> None:
        assert per_minute >= 1
        assert burst >= 1
        self._per_second = per_minute / 60
        self._burst = float(burst)
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, name: str) -> int:
        """Takes one token. 0 when there was one, else the whole seconds until there will be one (at least 1)."""
        now = self._clock()
        with self._lock:
            bucket = self._buckets.get(name)
            if bucket is None:
                bucket = _Bucket(self._burst, now)
                self._buckets[name] = bucket
                if len(self._buckets) > BUCKETS_MAX:
                    self._buckets.popitem(last=False)
            else:
                self._buckets.move_to_end(name)
            bucket.tokens = min(self._burst, bucket.tokens + max(0.0, now - bucket.at) * self._per_second)
            bucket.at = now
            if bucket.tokens >= 1:
                bucket.tokens -= 1
                return 0
            return max(1, math.ceil((1 - bucket.tokens) / self._per_second))
