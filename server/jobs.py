"""Queries on threads: admission at once, completion in a bounded pool, and an orderly end.

A query that was admitted is charged. So from its admission on nothing that happens to its HTTP request may stop it:
the thread that admits it also hands it to the pool, and a client that went away changes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for_futures
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, ParamSpec, Protocol, TypeVar

from accountant.states import QueryStatus
from engines.turns import STEP_SECONDS, Turns
from privacy.refusal import ExecutionFailed
from server.admitted import InFlight, Settled
from server.errors import Problem
from server.shutdown import Deadline

__all__ = ["AdmittedQuery", "FairThreads", "JobPool", "Started"]

T = TypeVar("T")
P = ParamSpec("P")
_ADMISSION_THREADS = 4
_SETTLE_SECONDS = 0.5
STACK_BYTES = 64 * 1024 * 1024
"""Stack of the threads that read texts. This is address space, not memory."""


class AdmittedQuery(Protocol):
    """What the pool needs to know of a query that it is to run."""

    @property
    def query_id(self) -> str:
        """The query's identifier."""


A = TypeVar("A", bound=AdmittedQuery)


@dataclass(frozen=True, slots=True)
class Started(Generic[A]):
    """An admitted query and its future answer; None when it does not run in this process."""

    query: Settled | InFlight | A
    answer: Future[bytes] | None


class JobPool:
    """Threads for queries. `threads` run at a time, `queue` more may wait; beyond that the intake says 429.

    A caller is an owner here: threads are given to owners in turn, and no owner may take the last part of the queue.
    """

    def __init__(self, *, threads: int, queue: int) -> None:
        self._room = threads + queue
        self._room_of_one = self._room - self._room // 4
        self._taken: Counter[str] = Counter()
        self._ended: Counter[str] = Counter()
        self._deadline = Deadline()
        self._leaving: set[asyncio.Future[None]] = set()
        self._admitting: set[Future[Any]] = set()
        self._lock = threading.Lock()
        self._admission = FairThreads(_with_stack(_ADMISSION_THREADS, name="admit"), _ADMISSION_THREADS)
        self._runner = FairThreads(ThreadPoolExecutor(threads, thread_name_prefix="query"), threads)
        self._running: dict[str, Future[Any]] = {}
        self._abandon: dict[str, Callable[[], object]] = {}

    @property
    def room(self) -> int:
        """How many queries run and wait at most."""
        return self._room

    @property
    def in_flight(self) -> int:
        """Queries that hold a slot now."""
        return self._taken.total()

    @property
    def stopping(self) -> bool:
        """Whether the intake is closed."""
        return self._deadline.begun

    async def call(self, function: Callable[[], T], *, owner: str = "") -> T:
        """Runs a pure step (an estimate) on an admission thread."""
        return await asyncio.wrap_future(self._submit(owner, self._unless_stopping, function))

    async def start(
        self,
        admit: Callable[[], Settled | InFlight | A],
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
        self._take(owner)
        try:
            future = self._submit(owner, self._admit, owner, admit, partial(self._counted, complete), abandon)
        except BaseException:
            self._give_back(owner)
            raise
        # Shielded: the thread gives the slot back, also when this request is cancelled.
        return await asyncio.shield(_quiet(future))

    def _counted(self, complete: Callable[[A], bytes], query: A) -> bytes:
        """Completes a query, and counts how it ended: whoever fetches the answer, when, and whether anybody does."""
        ended = QueryStatus.FAILED_CHARGED
        try:
            answer = complete(query)
            ended = QueryStatus.SETTLED
            return answer
        except ExecutionFailed as failed:
            ended = QueryStatus.FAILED_CHARGED if failed.started else QueryStatus.FAILED_VOID
            raise
        finally:
            with self._lock:
                self._ended[ended.value] += 1

    @property
    def ended(self) -> Mapping[str, int]:
        """How many queries that were started here have ended, by their state."""
        with self._lock:
            return dict(self._ended)

    async def run(self, function: Callable[[], T], *, owner: str) -> T:
        """Runs a step that reads rows, and so may wait for a slot of the engine, among the queries: in their queue.

        The text is read before, by `call`: these threads have a common stack.
        Errors: Problem as of `start`; nothing was run then.
        """
        self._take(owner)
        name = f"step {secrets.token_hex(8)}"
        try:
            with self._lock:
                if self.stopping:
                    raise _stopping()
                future = self._runner.submit(owner, function)
                self._running[name] = future
        except BaseException:
            self._give_back(owner)
            raise
        future.add_done_callback(lambda _: self._finished(name, owner))
        waiting = _quiet(future)
        try:
            # Shielded: what reads rows goes on to its end, also when this request is cancelled.
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            if future.cancelled():
                raise _stopping() from None
            raise

    def running(self, query_id: str) -> Future[bytes] | None:
        """The future answer of a query that runs in this process."""
        return self._running.get(query_id)

    async def wait(self, future: Future[bytes], *, seconds: float) -> bytes | None:
        """The answer, or None when it takes longer, or longer than a shutdown leaves time to wait.

        Raises what the query raised. Never stops the query.
        """
        waiting = _quiet(future)
        leaving: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with self._lock:
            self._leaving.add(leaving)
        try:
            seconds = max(0.0, min(seconds, self._deadline.left_to_wait()))
            either: set[asyncio.Future[Any]] = {waiting, leaving}
            await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            with self._lock:
                self._leaving.discard(leaving)
        return waiting.result() if waiting.done() else None

    def stop(self, *, seconds: float) -> None:
        """Closes the intake, and sets the deadline of the shutdown: `seconds` from the first call.

        Requests that wait for a query go on waiting until shortly before it.
        """
        with self._lock:
            self._deadline.begin(seconds)
            leaving = list(self._leaving)
        left = self._deadline.left_to_wait()
        for one in leaving:
            # The event loop of a request that is over may be closed.
            with contextlib.suppress(RuntimeError):
                one.get_loop().call_soon_threadsafe(_leave_after, one, left)

    def close(self, *, seconds: float) -> int:
        """Closes the intake, waits for what runs, abandons what still waits for its turn.

        All of it by the deadline: `seconds` from now, or what `stop` set before.
        Returns how many queries are still running; their reservations count as spent.
        """
        self.stop(seconds=seconds)
        with self._lock:
            admitting = set(self._admitting)
        wait_for_futures(admitting, timeout=self._deadline.left_to_wait())
        self._admission.close(cancel=False, wait=False)
        with self._lock:
            pending = dict(self._running)
        wait_for_futures(pending.values(), timeout=self._deadline.left_to_wait())
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
        self._runner.close(cancel=True, wait=False)
        return left

    def settle(self) -> None:
        """Waits for what ends by itself once its engine is closed: until the deadline, or half a second."""
        with self._lock:
            pending = list(self._running.values())
        left = self._deadline.left() if self.stopping else 0.0
        wait_for_futures(pending, timeout=max(left, _SETTLE_SECONDS))

    def _submit(self, owner: str, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Calls the function on an admission thread. Errors: Problem unavailable once the intake is closed."""
        with self._lock:
            if self.stopping:
                raise _stopping()
            future = self._admission.submit(owner, function, *args, **kwargs)
            self._admitting.add(future)
        future.add_done_callback(self._admission_ended)
        return future

    def _admission_ended(self, future: Future[Any]) -> None:
        with self._lock:
            self._admitting.discard(future)

    def _unless_stopping(self, function: Callable[[], T]) -> T:
        """The function's result, unless the shutdown came before its turn."""
        if self.stopping:
            raise _stopping()
        return function()

    def _admit(
        self,
        owner: str,
        admit: Callable[[], Settled | InFlight | A],
        complete: Callable[[A], bytes],
        abandon: Callable[[A], object],
    ) -> Started[A]:
        handed_over = False
        try:
            query = self._unless_stopping(admit)
            if isinstance(query, (Settled, InFlight)):
                return Started(query, self._running.get(query.query_id))
            to_run, query_id = query, query.query_id
            with self._lock:
                future = self._runner.submit(owner, complete, to_run)
                self._running[query_id] = future
                self._abandon[query_id] = lambda: abandon(to_run)
            handed_over = True
            future.add_done_callback(lambda _: self._finished(query_id, owner))
            return Started(to_run, future)
        finally:
            if not handed_over:
                self._give_back(owner)

    def _finished(self, query_id: str, owner: str) -> None:
        with self._lock:
            self._running.pop(query_id, None)
            self._abandon.pop(query_id, None)
        self._give_back(owner)

    def _take(self, owner: str) -> None:
        """Takes a place in the queue. Errors: Problem rate_limited, unavailable."""
        with self._lock:
            if self.stopping:
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
    """The future for this event loop. A failure that nobody waits for any more is not reported."""
    wrapped = asyncio.wrap_future(future)
    wrapped.add_done_callback(lambda done: done.cancelled() or done.exception())
    return wrapped


def _leave_after(leaving: asyncio.Future[None], seconds: float) -> None:
    """Ends a request's waiting after some time. On its event loop."""

    def leave() -> None:
        if not leaving.done():
            leaving.set_result(None)

    leaving.get_loop().call_later(seconds, leave)


def _stopping() -> Problem:
    return Problem(
        "unavailable",
        what="the server is shutting down",
        why="It takes no new queries. Nothing was charged.",
        instead=("Send the query again in a moment.",),
        headers={"Retry-After": "5"},
    )


@dataclass(frozen=True, slots=True)
class _Work:
    """One call that waits for its turn: what runs it, and what cancels it."""

    owner: str
    run: Callable[[], None]
    cancel: Callable[[], object]


class FairThreads:
    """The `threads` of an executor, whose work is taken in turn by owner (engines/turns.py), not by arrival alone.

    Safe to use from many threads.
    """

    def __init__(self, executor: ThreadPoolExecutor, threads: int) -> None:
        self._executor = executor
        self._turns = Turns(threads)
        self._changed = threading.Condition()
        self._waiting: list[_Work] = []
        self._closing = False

    def submit(self, owner: str, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Calls the function on a thread when it is the owner's turn, with the context variables of this moment."""
        future: Future[T] = Future()
        context = copy_context()

        def run() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    result = context.run(function, *args, **kwargs)
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
