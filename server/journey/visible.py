"""One run under its visible moments: how long it may take, and when what came of it shows (moments.py)."""

from __future__ import annotations

from collections.abc import Callable

from privacy.refusal import ExecutionFailed
from server.journey.moments import Moments

__all__ = ["VisibleRun"]


class VisibleRun:
    """The visible moments of one run: how long it may take, and when what came of it shows."""

    def __init__(
        self,
        moments: Moments,
        part: float,
        started: float,
        *,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        self._moments = moments
        self._part = part
        self._started = started
        self._clock = clock
        self._sleep = sleep
        self._ends: float | None = None

    def seconds_left(self, timeout_seconds: float) -> float:
        """What is left to the statements of a question, which have one limit together; counted from the first call.

        Errors: ExecutionFailed when nothing is left.
        """
        now = self._clock()
        if self._ends is None:
            self._ends = now + self._moments.limit(timeout_seconds, self._part)
        if now >= self._ends:
            raise ExecutionFailed
        return self._ends - now

    def outlasted(self) -> bool:
        """Whether the statements have reached their limit: what failed then failed by its time."""
        return self._ends is not None and self._clock() >= self._ends

    def wait(self) -> None:
        """Waits for the next visible moment (server/journey/moments.py)."""
        moment = self._moments.next(self._clock() - self._started, self._part)
        self._sleep(max(0.0, self._started + moment - self._clock()))
