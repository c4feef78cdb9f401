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

__all__ = ["ROW_BYTES", "FreeAnswers"]

BURST_BYTES = 32 * 1024 * 1024
"""What a principal may have stored at once: about a day of the steady rate below in half an hour."""

BYTES_PER_SECOND = 16 * 1024
"""What comes back every second: 1.4 GB a day, or eight repeats a second with their own Idempotency-Keys."""

ROW_BYTES = 2 * 1024
"""What a query's row takes beside its answer."""

_PRINCIPALS_MAX = 10_000


class FreeAnswers:
    """The allowances of this process. Safe to use from many threads."""

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
