"""The end of a server: one deadline, set when the signal comes, for everything that must have ended by then.

signal            intake closes; queries run on, and their requests wait on
deadline - rest   requests that still wait are answered with 202 and their query
deadline          engines are killed; what still ran keeps its reservation, which counts as spent
"""

from __future__ import annotations

import asyncio
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Closing", "Deadline", "Pause", "noticing_signals", "rest_of"]

SIGNALS = (signal.SIGTERM, signal.SIGINT)
_Handler = Callable[[int, FrameType | None], object] | int | None
"""What a signal does; a number is one of the defaults."""


def rest_of(seconds: float) -> float:
    """The part at the end of a shutdown's time in which answers leave and engines close."""
    return min(1.0, seconds / 4)


class Deadline:
    """The moment by which everything has ended. Infinitely far away until `begin`; the first call counts."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives seconds."""
        self._clock = clock
        self._moment: float | None = None
        self._rest = 0.0

    @property
    def begun(self) -> bool:
        """Whether the end has begun."""
        return self._moment is not None

    def begin(self, seconds: float) -> bool:
        """Sets the moment. Returns False when it was set before, which stays."""
        if self._moment is not None:
            return False
        self._rest = rest_of(seconds)
        self._moment = self._clock() + seconds
        return True

    def left(self) -> float:
        """Seconds until the deadline, at least 0."""
        return math.inf if self._moment is None else max(0.0, self._moment - self._clock())

    def left_to_wait(self) -> float:
        """Seconds until requests stop waiting for their queries, at least 0."""
        return math.inf if self._moment is None else max(0.0, self._moment - self._rest - self._clock())


class Closing(BaseException):
    """Ends a query that waits for its visible moment in a server that closes. It is neither posted nor failed."""


class Pause:
    """Sleep that ends with the server: `Closing` instead of an early return.

    Returning early would post an answer before its visible moment, and would so reveal that it had been there.
    """

    def __init__(self) -> None:
        """Open."""
        self._closed = threading.Event()

    def sleep(self, seconds: float) -> None:
        """Sleeps. Errors: Closing."""
        if self._closed.wait(seconds):
            raise Closing

    def close(self) -> None:
        """Ends all sleep, now and later."""
        self._closed.set()


@contextmanager
def noticing_signals(begin: Callable[[], object]) -> Iterator[None]:
    """Calls `begin` on the running event loop when a signal asks this process to end, before the web server reacts.

    The web server closes connections first and ends its application last; by then the time would be over. Does
    nothing on other threads than the main one, where no signals arrive.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    before: dict[signal.Signals, _Handler] = {}

    def notice(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(begin)
        handler = before[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)

    for name in SIGNALS:
        before[name] = signal.getsignal(name)
        # A signal that would simply end the process, or is ignored, stays as it is.
        if callable(before[name]):
            signal.signal(name, notice)
    try:
        yield
    finally:
        for name in SIGNALS:
            if signal.getsignal(name) is notice:
                signal.signal(name, before[name])
