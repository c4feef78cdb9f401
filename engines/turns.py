"""The scheduler: slots for requests, shared fairly between callers.

Requests are served in the order of their arrival as long as no caller has used much time lately. Then the caller who
used least goes first, and nobody who used much takes the last slot while others are active who did not: a quick
question waits for a free slot, never behind somebody's slow ones. Where every active caller used much, no slot is left
idle.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable

__all__ = ["STEP_SECONDS", "Slots", "Turns"]

HALF_LIFE_SECONDS = 10.0
"""After how long used time counts half."""

HEAVY_SECONDS = 1.0
"""From how much used time on a caller leaves the last slot to others."""

STEP_SECONDS = 0.5
"""Used time is compared in steps of this size; within one step the order of arrival decides."""

ACTIVE_SECONDS = 60.0
"""How long a caller who asked counts as active."""

ACTIVE_MAX = 64
"""How many of the last callers are looked at, so that the rule costs the same however many there are."""

OWNERS_MAX = 10_000
"""Most owners that are remembered; the one who has been away longest is forgotten first."""


class _Owner:
    __slots__ = ("at", "seen", "starts", "used")

    def __init__(self, now: float) -> None:
        self.used = 0.0
        self.at = now
        self.seen = now
        self.starts: list[float] = []


class Turns:
    """The rule for a number of slots. Not safe to use from many threads: its user holds a lock."""

    def __init__(self, slots: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        assert slots >= 1
        self._slots = slots
        self._clock = clock
        self._owners: OrderedDict[str, _Owner] = OrderedDict()
        self._running = 0

    @property
    def running(self) -> int:
        """Slots that are taken."""
        return self._running

    def arrive(self, owner: str) -> None:
        """A caller asks for a slot."""
        self._of(owner)

    def choose(self, waiting: Iterable[str]) -> int | None:
        """Which of the waiting (owners in the order of their arrival) may begin now; None when nobody may."""
        if self._running >= self._slots:
            return None
        best: tuple[int, int] | None = None
        seen: set[str] = set()
        for place, owner in enumerate(waiting):
            if owner in seen:
                continue
            seen.add(owner)
            used = self._used(owner)
            if used >= HEAVY_SECONDS and self._is_last_slot() and self._light_others_are_active(owner):
                continue
            rank = (int(used / STEP_SECONDS), place)
            if best is None or rank < best:
                best = rank
        return None if best is None else best[1]

    def begin(self, owner: str) -> None:
        """The owner takes a slot."""
        self._running += 1
        self._of(owner).starts.append(self._clock())

    def end(self, owner: str) -> None:
        """The owner gives a slot back."""
        self._running -= 1
        known, now = self._of(owner), self._clock()
        known.used, known.at = self._decayed(known, now) + now - known.starts.pop(0), now

    def _is_last_slot(self) -> bool:
        return 1 < self._slots <= self._running + 1

    def _light_others_are_active(self, owner: str) -> bool:
        """Whether another caller asked lately, or runs, who did not use much. Looks at the last ACTIVE_MAX callers."""
        since = self._clock() - ACTIVE_SECONDS
        for name, known in itertools.islice(reversed(self._owners.items()), ACTIVE_MAX):
            if name != owner and (known.seen >= since or known.starts) and self._used(name) < HEAVY_SECONDS:
                return True
        return False

    def _used(self, owner: str) -> float:
        """Seconds that the owner used lately, what runs now included."""
        known, now = self._owners.get(owner), self._clock()
        if known is None:
            return 0.0
        return self._decayed(known, now) + sum(now - start for start in known.starts)

    @staticmethod
    def _decayed(known: _Owner, now: float) -> float:
        return known.used * math.exp2(-max(0.0, now - known.at) / HALF_LIFE_SECONDS)

    def _of(self, owner: str) -> _Owner:
        known = self._owners.get(owner)
        if known is None:
            known = self._owners[owner] = _Owner(self._clock())
            if len(self._owners) > OWNERS_MAX:
                away = next((name for name, other in self._owners.items() if not other.starts), None)
                if away is not None:
                    del self._owners[away]
        else:
            self._owners.move_to_end(owner)
            known.seen = self._clock()
        return known


class Slots:
    """Slots that threads wait for in turn. Safe to use from many threads."""

    def __init__(self, slots: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._turns = Turns(slots, clock=clock)
        self._clock = clock
        self._changed = threading.Condition()
        self._waiting: list[tuple[object, str]] = []
        self._closed = False

    def take(self, owner: str, *, seconds: float | None) -> bool:
        """Waits for a slot, forever when `seconds` is None. Returns False on timeout and once they are closed.

        Give it back with `give`.
        """
        deadline = math.inf if seconds is None else self._clock() + seconds
        ticket = (object(), owner)
        with self._changed:
            self._turns.arrive(owner)
            self._waiting.append(ticket)
            try:
                while not self._is_next(ticket):
                    if self._closed:
                        return False
                    left = deadline - self._clock()
                    if left <= 0:
                        return False
                    # Whose turn it is also changes as used time is forgotten, and nothing announces that.
                    self._changed.wait(min(left, STEP_SECONDS))
                self._turns.begin(owner)
                return True
            finally:
                self._waiting.remove(ticket)
                self._changed.notify_all()

    def give(self, owner: str) -> None:
        """Gives a slot back."""
        with self._changed:
            self._turns.end(owner)
            self._changed.notify_all()

    def close(self) -> None:
        """Ends all waiting, now and later: no caller gets a slot any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _is_next(self, ticket: tuple[object, str]) -> bool:
        if self._closed:
            return False
        chosen = self._turns.choose(name for _, name in self._waiting)
        return chosen is not None and self._waiting[chosen] is ticket
