"""A thread with an event loop of its own, for what a server does without being asked: a look every second, and tasks.

Nothing that a request waits for runs here, and a task that hangs holds up no other one.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field

from server.log import logger, where

__all__ = ["Rounds"]

_JOIN_SECONDS = 5.0


@dataclass(slots=True)
class Rounds:
    """Calls `look` again and again. `start` begins, `close` ends it and the tasks that it spawned."""

    name: str
    look: Callable[[], Awaitable[object]]
    seconds: float = 1.0
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _stopping: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _asleep: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None

    def start(self) -> None:
        """Begins to look."""
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name=self.name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the thread; its tasks are cancelled."""
        self._stopping.set()
        if self._asleep is not None:
            loop, woken = self._asleep
            # Its loop may have ended by itself.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(woken.set)
        if self._thread is not None:
            self._thread.join(timeout=_JOIN_SECONDS)

    @property
    def under_way(self) -> frozenset[str]:
        """The names of the tasks that run."""
        return frozenset(self._tasks)

    def spawn(self, name: str, task: Coroutine[object, object, None]) -> None:
        """Starts a task, on this thread's loop. No task of that name runs."""
        started = asyncio.create_task(self._guarded(task))
        self._tasks[name] = started
        started.add_done_callback(lambda _: self._tasks.pop(name, None))

    async def finished(self) -> None:
        """Waits for every task that runs."""
        await asyncio.gather(*self._tasks.values())

    async def _guarded(self, task: Awaitable[object]) -> None:
        try:
            await task
        except Exception as error:  # noqa: BLE001 - the next look goes on: a busy database is not a reason to end
            logger().warning("round_failed", kind=self.name, exception=type(error).__name__, where=where(error))

    async def _run(self) -> None:
        woken = asyncio.Event()
        # Before the first look at `_stopping`: whoever closes either finds this, or is found there.
        self._asleep = asyncio.get_running_loop(), woken
        while not self._stopping.is_set():
            await self._guarded(self.look())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(woken.wait(), self.seconds)
        left = list(self._tasks.values())
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
