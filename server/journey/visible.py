"""One run under its visible moments: how long it may take, and when what came of it shows (moments.py)."""

from __future__ import annotations

from collections.abc import Callable

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
        self._begun: float | None = None

    def seconds_left(self, timeout_seconds: float) -> float:
        """What is left to the statements of a question, which have one limit together; counted from the first call."""
        if self._begun is None:
            self._begun = self._clock()
        left = self._begun + self._moments.limit(timeout_seconds, self._part) - self._clock()
        return max(left, 1e-3)

    def wait(self) -> None:
        """Waits for the next visible moment (server/journey/moments.py)."""
        moment = self._moments.next(self._clock() - self._started, self._part)
        self._sleep(max(0.0, self._started + moment - self._clock()))
