"""How time passes for the journey: one clock, one sleep, and the visible moments of this machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from mechanisms.randomness import BitSource
from privacy.refusal import ExecutionFailed
from server.journey.moments import Moments, moments_of
from sql_rewrite.cost import Work

__all__ = ["Pace", "VisibleRun"]


@dataclass(slots=True)
class Pace:
    """How time passes: the server's tick, how much slower than the reference machine this one is, its threads."""

    tick_seconds: float = 0.004
    engine_threads: int = 1
    slowness: Callable[[], float] = lambda: 1.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def moments(self, work: Work) -> Moments:
        """The visible moments of that work on this machine: a function of plans and declarations."""
        slowness = max(1.0, self.slowness())
        rows = work.row_nanoseconds / self.engine_threads
        return moments_of(
            unit_seconds=work.unit_nanoseconds * slowness * 1e-9,
            expected_seconds=(rows + work.plan_nanoseconds) * slowness * 1e-9,
            tick_seconds=self.tick_seconds,
        )

    def begun(self, started: float) -> float:
        """The moment from which visible moments are counted: that of the question, and the whole ticks it waited.

        A thread waits with its query and becomes free at a visible moment, so how long others waited for it is no
        secret. Counted from the question, every query that waits in line would wait that long once more, with its
        thread: the line would take twice as long with each one.
        """
        return started + self.tick_seconds * max(0.0, (self.clock() - started) // self.tick_seconds)

    def visible(self, work: Work, started: float, bits: BitSource) -> VisibleRun:
        """The visible moments of a run that begins now, of a question that was asked then, with a draw of its own."""
        part = (int(bits.words(1)[0]) >> 11) * 2.0**-53
        begun = self.begun(started)
        return VisibleRun(self.moments(work), part, begun, clock=self.clock, sleep=self.sleep)


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
