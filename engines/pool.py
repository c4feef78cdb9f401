"""A warm pool of worker processes that may be killed at any moment.

    lease    = wait for a slot and take a worker into it; nobody else sees either before `release`
    failure  = kill the worker; another one is started at `release`

One more worker than may be busy is kept warm, so that no request waits for a replacement. All workers are started
by one thread that lives as long as the pool: the kernel ends a child when the *thread* that started it ends.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Self, TypeVar

from engines.folders import PrivateFolder
from engines.frames import Frame
from engines.process import START_SECONDS, Failure, Fault, Worker, WorkerOptions, log_failure
from engines.turns import Slots
from privacy.values import Json

__all__ = ["Pool", "Pooled", "WorkerLease"]

_Value = TypeVar("_Value")

_LOOK_SECONDS: Final = 1.0


class WorkerLease:
    """A slot and the worker in it, for one caller and one thread at a time, until `release`.

    Everything that others can notice of a call's end is put off to `release`: the slot and the worker come back, use is
    accounted, a worker that failed or served enough is replaced. A caller whose running time is a secret releases at
    a moment that does not depend on it. Only a pool that closes does not wait.
    """

    def __init__(self, pool: Pool, slots: Slots, owner: str, worker: Worker) -> None:
        """Called by the pool, which has taken both."""
        self._pool = pool
        self._slots = slots
        self._owner = owner
        self._worker = worker
        self._failure: Failure | None = None
        self._held = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def call(
        self,
        header: Mapping[str, Json],
        buffers: Sequence[bytes] = (),
        *,
        timeout_seconds: float,
        parse: Callable[[Frame], _Value],
    ) -> _Value | Failure:
        """One request. After a failure the worker is killed, and every later call of this lease fails unsent."""
        usable = self._held and self._failure is None
        if not (usable and math.isfinite(timeout_seconds) and timeout_seconds > 0):
            return Failure.UNAVAILABLE
        value = self._pool._use(self._worker, header, buffers, time.monotonic() + timeout_seconds, parse)
        if isinstance(value, Failure) and value is not Failure.INVALID:
            self._failure = value
        return value

    def release(self, *, reuse: bool = True) -> None:
        """Gives the worker and the slot back; without `reuse` the worker ends. The second time nothing happens."""
        if self._held:
            self._held = False
            if self._failure is not None:
                self._pool._note(self._failure)
            self._pool._release(self._worker, healthy=reuse and self._failure is None)
            self._slots.give(self._owner)


class Pool:
    """Up to `size` requests at a time, each alone in a warm worker. Safe to use from many threads."""

    def __init__(self, options: WorkerOptions, *, size: int, recycle_after: int, directory: Path | None = None) -> None:
        """Start the workers in the background; a call waits for the first one that is ready."""
        assert size >= 1
        assert recycle_after >= 1
        self._options = options
        self._size = size
        self._recycle_after = recycle_after
        self._folder = PrivateFolder(directory)
        # Requests share `size` slots; a brief one may also have the spare worker, so it never waits for long ones.
        self._slots = Slots(size)
        self._brief = Slots(1)
        self._changed = threading.Condition()
        self._idle: deque[Worker] = deque()
        self._all: set[Worker] = set()
        # Workers of leases, between their calls: whoever closes the pool ends them.
        self._parked: set[Worker] = set()
        # Workers that ended with their lease, for the starter to reap and replace.
        self._ended: list[Worker] = []
        self._closed = False
        self._failed_starts = 0
        self._served_once = False
        self._filled = False
        self._warm: OrderedDict[str, Mapping[str, Json]] = OrderedDict()
        self._starter = threading.Thread(target=self._keep_started, name=f"start-{options.kind}", daemon=True)
        self._starter.start()

    def call(
        self,
        header: Mapping[str, Json],
        buffers: Sequence[bytes] = (),
        *,
        timeout_seconds: float,
        parse: Callable[[Frame], _Value],
        owner: str = "",
        patience_seconds: float | None = None,
        brief: bool = False,
    ) -> _Value | Failure:
        """One request in one worker, whose end shows at once: for what is not secret.

        Waits for its `owner`'s turn at most `patience_seconds` (`timeout_seconds` when None, forever when infinite),
        then gives the request `timeout_seconds` before the worker is killed. A `brief` request waits for other brief
        ones only. `parse` turns the answer into a value and may raise what malformed data makes it raise.
        Ensures: never raises for what happens in or to a worker.
        """
        if not (math.isfinite(timeout_seconds) and timeout_seconds > 0):
            return Failure.UNAVAILABLE
        patience = timeout_seconds if patience_seconds is None else patience_seconds
        lease = self.lease(owner=owner, patience_seconds=patience, start_seconds=timeout_seconds, brief=brief)
        if isinstance(lease, Failure):
            return lease
        with lease:
            return lease.call(header, buffers, timeout_seconds=timeout_seconds, parse=parse)

    def lease(
        self,
        *,
        owner: str = "",
        patience_seconds: float = math.inf,
        start_seconds: float = START_SECONDS,
        brief: bool = False,
    ) -> WorkerLease | Failure:
        """A slot and a worker, or UNAVAILABLE.

        Waits for the `owner`'s turn at most `patience_seconds`, then for a worker to start: for the remainder of
        that, and at least `start_seconds`.
        """
        deadline = time.monotonic() + patience_seconds
        slots = self._brief if brief else self._slots
        if not slots.take(owner, seconds=patience_seconds):
            return self._note(Failure.UNAVAILABLE)
        worker = None
        try:
            # Whoever has a slot gets a worker as soon as one has started: only that takes time from here on.
            left = max(deadline - time.monotonic(), start_seconds)
            worker = self._take(time.monotonic() + min(left, START_SECONDS))
        finally:
            if worker is None:
                slots.give(owner)
        return self._note(Failure.UNAVAILABLE) if worker is None else WorkerLease(self, slots, owner, worker)

    def warm(self, name: str, header: Mapping[str, Json], *, keep: int) -> None:
        """Send a preparing request to every worker, now and when one is started later (the last `keep` names)."""
        with self._changed:
            self._warm[name] = header
            self._warm.move_to_end(name)
            while len(self._warm) > keep:
                self._warm.popitem(last=False)
            idle = list(self._idle)
            self._idle.clear()
        for worker in idle:
            self._finish(worker, healthy=self._prepare(worker, [header]))

    def wait_ready(self, *, timeout_seconds: float) -> bool:
        """Waits until every worker has started and is idle. Returns whether all are."""

        def ready() -> bool:
            return sum(worker.alive for worker in self._idle) > self._size

        with self._changed:
            return self._changed.wait_for(lambda: self._closed or ready(), timeout_seconds) and not self._closed

    def usable(self) -> bool:
        """Whether workers start and live, busy or not. Takes none and waits for none: it reveals no running time."""
        with self._changed:
            return self._served_once and not self._closed and self._failed_starts == 0 and bool(self._all)

    def process_ids(self) -> list[int]:
        """The children's process numbers."""
        with self._changed:
            return sorted(worker.process_id for worker in self._all)

    def close(self) -> None:
        """Kill and reap every worker. Calls that are running fail; later calls are unavailable."""
        self._slots.close()
        self._brief.close()
        with self._changed:
            self._closed = True
            idle = [*self._idle, *self._parked, *self._ended]
            self._idle.clear()
            self._parked.clear()
            self._ended.clear()
            # A worker in use is only ended here: the thread that reads from its socket closes it.
            for worker in self._all:
                worker.end()
            self._changed.notify_all()
        for worker in idle:
            self._finish(worker, healthy=False)
        self._starter.join()
        with self._changed:
            self._changed.wait_for(lambda: not self._all, START_SECONDS)
        self._folder.remove()

    # ------------------------------------------------------------------------------------------------ inside

    def _use(
        self,
        worker: Worker,
        header: Mapping[str, Json],
        buffers: Sequence[bytes],
        deadline: float,
        parse: Callable[[Frame], _Value],
    ) -> _Value | Failure:
        with self._changed:
            if self._closed:
                return Failure.UNAVAILABLE
            self._parked.remove(worker)
        healthy = False
        try:
            value = worker.request(header, buffers, deadline=deadline, parse=parse)
            healthy = True
            return value
        except Fault as fault:
            healthy = fault.failure is Failure.INVALID
            return fault.failure
        finally:
            # Also when the caller's thread is interrupted: a worker in an unknown state is never used again.
            self._park(worker, healthy=healthy)

    def _park(self, worker: Worker, *, healthy: bool) -> None:
        """Keeps a leased worker between calls. A killed one still counts: its successor starts at the release."""
        if not healthy:
            worker.kill()
        with self._changed:
            if not self._closed:
                self._parked.add(worker)
                return
        self._finish(worker, healthy=False)

    def _release(self, worker: Worker, *, healthy: bool) -> None:
        """Takes a worker back at the end of its lease."""
        with self._changed:
            if worker not in self._parked:
                return  # the pool is closed and has ended it
            self._parked.remove(worker)
            if healthy and worker.alive and worker.served < self._recycle_after:
                self._idle.append(worker)
            else:
                # Reaping takes longer the larger the worker was: the starter does it, and no caller waits for it.
                self._ended.append(worker)
            self._changed.notify_all()

    def _take(self, deadline: float) -> Worker | None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._idle or self._closed, max(deadline - time.monotonic(), 0))
                if self._closed or not self._idle:
                    return None
                worker = self._idle.popleft()
                # Under the lock, as when the starter looks: of two that poll at once only one learns that it lives.
                alive = worker.alive
                if alive:
                    self._parked.add(worker)
            if alive:
                return worker
            self._finish(worker, healthy=False)

    def _finish(self, worker: Worker, *, healthy: bool) -> None:
        if healthy and worker.served < self._recycle_after:
            with self._changed:
                if not self._closed:
                    self._idle.append(worker)
                    self._changed.notify_all()
                    return
        worker.kill()
        with self._changed:
            self._all.discard(worker)
            self._changed.notify_all()

    def _keep_started(self) -> None:
        """The starter's life: replace what is missing, remove what died while nobody used it."""
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._closed or self._ended or len(self._all) <= self._size, _LOOK_SECONDS
                )
                if self._closed:
                    return
                dead = [worker for worker in self._idle if not worker.alive]
                for worker in dead:
                    self._idle.remove(worker)
                dead += self._ended
                self._ended.clear()
                missing = self._size + 1 - len(self._all) + len(dead)
                self._filled = self._filled or missing <= 0
            for worker in dead:
                self._finish(worker, healthy=False)
            # One after another until all are there, so that loading them does not hold up the process that starts;
            # later all that are missing at once: their engines load side by side.
            started = [self._start() for _ in range(missing if self._filled else 1)]
            healthy = [self._admit(worker) for worker in started]
            if all(healthy):
                self._failed_starts = 0
            else:
                self._start_failed()

    def _admit(self, worker: Worker | None) -> bool:
        """Waits for a started worker, prepares it and lets it work. Returns whether it may."""
        if worker is None:
            return False
        with self._changed:
            headers = list(self._warm.values())
        ready = worker.wait_ready() and self._prepare(worker, headers)
        if ready:
            with self._changed:
                self._served_once = True
        self._finish(worker, healthy=ready)
        return ready

    def _start(self) -> Worker | None:
        try:
            worker = Worker(self._options, parent_directory=self._folder.path)
        except OSError:
            return None
        with self._changed:
            self._all.add(worker)
            closed = self._closed
        if closed:
            self._finish(worker, healthy=False)
            return None
        return worker

    def _prepare(self, worker: Worker, headers: Sequence[Mapping[str, Json]]) -> bool:
        """Sends preparing requests. Returns whether the worker may be used."""
        for header in headers:
            try:
                worker.request(header, (), deadline=time.monotonic() + START_SECONDS, parse=lambda _: None)
            except Fault as fault:
                if fault.failure is not Failure.REFUSED:
                    return False
                # What cannot be prepared is not asked again: it must not keep new workers from starting.
                with self._changed:
                    for name in [name for name, known in self._warm.items() if known is header]:
                        del self._warm[name]
            worker.served -= 1
        return True

    def _start_failed(self) -> None:
        """Wait a little longer after each start that fails, so that a broken machine is not made worse."""
        with self._changed:
            if self._closed:
                return
            self._failed_starts += 1
            self._note(Failure.CRASHED)
            self._changed.wait_for(lambda: self._closed, min(0.1 * 2**self._failed_starts, 5.0))

    def _note(self, failure: Failure) -> Failure:
        return log_failure(self._options.kind, failure)


class Pooled:
    """What every engine on a pool of workers says of itself, and how it ends."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def wait_ready(self, *, timeout_seconds: float = 10.0) -> bool:
        """Waits until every worker has started. Returns whether all have."""
        return self._pool.wait_ready(timeout_seconds=timeout_seconds)

    def usable(self) -> bool:
        """Whether workers start and live. Does not wait, and does not reveal whether they are busy."""
        return self._pool.usable()

    def process_ids(self) -> list[int]:
        """The workers' process numbers, for operators."""
        return self._pool.process_ids()

    def close(self) -> None:
        """Kills and reaps every worker."""
        self._pool.close()
