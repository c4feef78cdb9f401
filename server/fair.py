"""A pool of threads whose work is taken in turn by owner (engines/turns.py), not in the order of its arrival alone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from engines.turns import STEP_SECONDS, Turns

__all__ = ["FairThreads"]

T = TypeVar("T")
P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class _Work:
    """One call that waits for its turn: what runs it, and what cancels it."""

    owner: str
    run: Callable[[], None]
    cancel: Callable[[], object]


class FairThreads:
    """The `threads` of an executor. Safe to use from many threads."""

    def __init__(self, executor: ThreadPoolExecutor, threads: int) -> None:
        self._executor = executor
        self._turns = Turns(threads)
        self._changed = threading.Condition()
        self._waiting: list[_Work] = []
        self._closing = False

    def submit(self, owner: str, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Calls the function on a thread when it is the owner's turn."""
        future: Future[T] = Future()

        def run() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    result = function(*args, **kwargs)
                except BaseException as error:  # noqa: BLE001 - passed on to whoever waits for the future
                    future.set_exception(error)
                else:
                    future.set_result(result)

        with self._changed:
            # One token for each piece of work; which piece a token stands for is decided when it comes up.
            self._executor.submit(self._serve)
            self._turns.arrive(owner)
            self._waiting.append(_Work(owner, run, future.cancel))
            self._changed.notify_all()
        return future

    def close(self, *, cancel: bool, wait: bool | None = None) -> None:
        """Takes no more work. Finishes what waits, or with `cancel` leaves it, and does not wait for what runs.

        `wait` is whether to return only when everything has ended: without `cancel` yes, unless said otherwise.
        """
        with self._changed:
            self._closing = True
            if cancel:
                for work in self._waiting:
                    work.cancel()
            self._changed.notify_all()
        self._executor.shutdown(wait=not cancel if wait is None else wait)

    def _serve(self) -> None:
        work = self._next()
        try:
            work.run()
        finally:
            with self._changed:
                self._turns.end(work.owner)
                self._changed.notify_all()

    def _next(self) -> _Work:
        """The work whose turn it is. There is some for every token."""
        with self._changed:
            while True:
                chosen = 0 if self._closing else self._turns.choose([work.owner for work in self._waiting])
                if chosen is not None:
                    work = self._waiting.pop(chosen)
                    self._turns.begin(work.owner)
                    return work
                self._changed.wait(STEP_SECONDS)
