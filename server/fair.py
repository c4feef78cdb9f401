"""A pool of threads whose work is taken in turn by owner (engines/turns.py), not in the order of its arrival alone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from engines.turns import STEP_SECONDS, Turns

__all__ = ["FairThreads"]

T = TypeVar("T")
P = ParamSpec("P")


class _Work:
    """One call that waits for its turn."""

    __slots__ = ("call", "future", "owner")

    def __init__(self, owner: str, call: Callable[[], Any]) -> None:
        self.owner = owner
        self.call = call
        self.future: Future[Any] = Future()


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
        work = _Work(owner, lambda: function(*args, **kwargs))
        with self._changed:
            # One token for each piece of work; which piece a token stands for is decided when it comes up.
            self._executor.submit(self._serve)
            self._turns.arrive(owner)
            self._waiting.append(work)
            self._changed.notify_all()
        return work.future

    def close(self, *, cancel: bool, wait: bool | None = None) -> None:
        """Takes no more work. Finishes what waits, or with `cancel` leaves it, and does not wait for what runs.

        `wait` is whether to return only when everything has ended: without `cancel` yes, unless said otherwise.
        """
        with self._changed:
            self._closing = True
            if cancel:
                for work in self._waiting:
                    work.future.cancel()
            self._changed.notify_all()
        self._executor.shutdown(wait=not cancel if wait is None else wait)

    def _serve(self) -> None:
        work = self._next()
        try:
            if work.future.set_running_or_notify_cancel():
                try:
                    result = work.call()
                except BaseException as error:  # noqa: BLE001 - whoever waits for the future is told
                    work.future.set_exception(error)
                else:
                    work.future.set_result(result)
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
