"""Queries on threads: admission at once, completion in a bounded pool, and an orderly end.

A query that was admitted is charged. So from its admission on nothing that happens to its HTTP request may stop it:
the thread that admits it also hands it to the pool, and a client that went away changes nothing.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for_futures
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from server.errors import Problem
from server.fair import FairThreads

__all__ = ["AdmittedQuery", "JobPool", "Started"]

T = TypeVar("T")
_ADMISSION_THREADS = 4
STACK_BYTES = 64 * 1024 * 1024
"""Stack of the threads that read texts. This is address space, not memory."""


class AdmittedQuery(Protocol):
    """What the pool needs to know of an admitted query."""

    @property
    def query_id(self) -> str:
        """The query's identifier."""

    @property
    def stored(self) -> bytes | None:
        """The stored answer when the query is settled already."""

    @property
    def running(self) -> bool:
        """Whether an earlier request with the same idempotency key is in flight."""


A = TypeVar("A", bound=AdmittedQuery)


@dataclass(frozen=True, slots=True)
class Started(Generic[A]):
    """An admitted query and its answer to come; None when it does not run in this process."""

    admitted: A
    answer: Future[bytes] | None


class JobPool:
    """Threads for queries. `threads` run at a time, `queue` more may wait; beyond that the intake says 429.

    Who asks is called the owner: threads are given to owners in turn, and no owner may take the last part of the queue.
    """

    def __init__(self, *, threads: int, queue: int) -> None:
        self._room = threads + queue
        self._room_of_one = self._room - self._room // 4
        self._taken: Counter[str] = Counter()
        self._stopping = False
        self._lock = threading.Lock()
        self._admission = FairThreads(_with_stack(_ADMISSION_THREADS, name="admit"), _ADMISSION_THREADS)
        self._runner = FairThreads(ThreadPoolExecutor(threads, thread_name_prefix="query"), threads)
        self._running: dict[str, Future[bytes]] = {}
        self._abandon: dict[str, Callable[[], object]] = {}

    @property
    def in_flight(self) -> int:
        """Queries that hold a place now."""
        return self._taken.total()

    @property
    def stopping(self) -> bool:
        """Whether the intake is closed."""
        return self._stopping

    async def call(self, function: Callable[[], T], *, owner: str = "") -> T:
        """Runs a pure step (an estimate) on an admission thread."""
        if self._stopping:
            raise _stopping()
        return await asyncio.wrap_future(self._admission.submit(owner, function))

    async def start(
        self,
        admit: Callable[[], A],
        complete: Callable[[A], bytes],
        abandon: Callable[[A], object],
        *,
        owner: str = "",
    ) -> Started[A]:
        """Admits a query and starts it. Whatever `admit` raises is raised here.

        `abandon` is called for a query that was admitted and whose turn did not come before the shutdown.
        Errors: Problem rate_limited when the queue is full (three quarters of it for one owner), unavailable during a
        shutdown; nothing was charged then.
        """
        with self._lock:
            if self._stopping:
                raise _stopping()
            if self._taken.total() >= self._room or self._taken[owner] >= self._room_of_one:
                raise Problem(
                    "rate_limited",
                    what="too many queries are waiting",
                    why="The queue of this server is full. Nothing was charged.",
                    instead=("Send the query again in a moment.",),
                    headers={"Retry-After": "2"},
                )
            self._taken[owner] += 1
        future = self._admission.submit(owner, self._admit, owner, admit, complete, abandon)
        # Shielded: the place is given back by the thread, also when this request is cancelled.
        return await asyncio.shield(_quiet(future))

    def running(self, query_id: str) -> Future[bytes] | None:
        """The answer to come of a query that runs in this process."""
        return self._running.get(query_id)

    @staticmethod
    async def wait(future: Future[bytes], *, seconds: float) -> bytes | None:
        """The answer, or None when it takes longer. Raises what the query raised. Never stops the query."""
        waiting = _quiet(future)
        done, _ = await asyncio.wait({waiting}, timeout=max(0.0, seconds))
        return waiting.result() if done else None

    def close(self, *, seconds: float) -> int:
        """Closes the intake, waits for what runs, abandons what still waits for its turn.

        Returns how many queries are still running; their reservations count as spent.
        """
        with self._lock:
            self._stopping = True
        self._admission.close(cancel=False)
        with self._lock:
            pending = dict(self._running)
        wait_for_futures(pending.values(), timeout=seconds)
        left = 0
        for query_id, future in pending.items():
            if future.done():
                continue
            abandon = self._abandon.get(query_id)
            if future.cancel():
                if abandon is not None:
                    abandon()
            else:
                left += 1
        self._runner.close(cancel=True)
        return left

    def _admit(
        self, owner: str, admit: Callable[[], A], complete: Callable[[A], bytes], abandon: Callable[[A], object]
    ) -> Started[A]:
        handed_over = False
        try:
            admitted = admit()
            if admitted.stored is not None or admitted.running:
                return Started(admitted, self._running.get(admitted.query_id))
            with self._lock:
                future = self._runner.submit(owner, complete, admitted)
                self._running[admitted.query_id] = future
                self._abandon[admitted.query_id] = lambda: abandon(admitted)
            handed_over = True
            future.add_done_callback(lambda _: self._finished(admitted.query_id, owner))
            return Started(admitted, future)
        finally:
            if not handed_over:
                self._give_back(owner)

    def _finished(self, query_id: str, owner: str) -> None:
        with self._lock:
            self._running.pop(query_id, None)
            self._abandon.pop(query_id, None)
        self._give_back(owner)

    def _give_back(self, owner: str) -> None:
        with self._lock:
            self._taken[owner] -= 1
            if not self._taken[owner]:
                del self._taken[owner]


def _with_stack(threads: int, *, name: str) -> ThreadPoolExecutor:
    """A pool whose threads have STACK_BYTES each, whatever the system gives to others.

    The compiled parser recurses on the stack itself and would run over its end, which ends the process. The longest
    text that is read needs less than a quarter of STACK_BYTES (tests/sql_rewrite/test_metered.py). All threads are
    started here, because the size is a setting of the whole process.
    """
    pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
    before = threading.stack_size(STACK_BYTES)
    try:
        all_there = threading.Barrier(threads)
        wait_for_futures([pool.submit(all_there.wait) for _ in range(threads)])
    finally:
        threading.stack_size(before)
    return pool


def _quiet(future: Future[T]) -> asyncio.Future[T]:
    """The future for this event loop. When nobody is left to hear of its failure, nobody is told."""
    wrapped = asyncio.wrap_future(future)
    wrapped.add_done_callback(lambda done: done.cancelled() or done.exception())
    return wrapped


def _stopping() -> Problem:
    return Problem(
        "unavailable",
        what="the server is shutting down",
        why="It takes no new queries. Nothing was charged.",
        instead=("Send the query again in a moment.",),
        headers={"Retry-After": "5"},
    )
