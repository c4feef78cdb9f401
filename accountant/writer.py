"""One writer per process: operations that wait at the same time share one durable commit.

A caller hands over an operation and sleeps until the transaction that holds it is durable. The writer takes whatever
has arrived, decides it as one batch and commits once, so the rate is bound by work and not by the disk's fsync, and no
caller waits for the database's own lock queue (SQLite's starves some callers for seconds).

An operation that raises has changed nothing and does not disturb the others. When the database refuses the rows of a
batch, the batch is rolled back and every operation runs again in a transaction of its own: the one that was at fault
fails, the others do not.

A connection that breaks before COMMIT has done nothing: the batch is decided again. When it breaks during COMMIT,
nobody knows. Each batch writes its number into the instance's own row, so the writer connects again and reads there
whether the batch is in; the row's lock makes it wait for a transaction that is still ending. Only if the database
stays away do callers get LedgerUnavailable; their queries are then failed (and stay charged) by the next batch that
succeeds.

A ledger that lost what was durable (accountant/continuity.py) takes no further batch: every step gets LedgerBehind.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from sqlalchemy import Connection, Engine, select
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from accountant import faults
from accountant.batch import Batch, Needs
from accountant.continuity import Continuity, Head
from accountant.errors import LedgerBehind, LedgerError, LedgerUnavailable
from accountant.operation import Operation, Result
from accountant.operations import Abandon, Recover, Touch
from accountant.statements import DialectKind, statements_of
from accountant.tables import instances
from privacy.values import Json

__all__ = ["BATCH_MAX", "Writer"]

BATCH_MAX = 512
"""Most operations in one transaction."""

_DISCONNECTED = (OperationalError, InterfaceError, PoolTimeoutError)
_PAUSE_SECONDS = 0.05

T = TypeVar("T")


class _Job(Generic[Result]):
    """One operation on its way through the writer. `results` has one result once it is decided."""

    __slots__ = ("done", "error", "operation", "results")

    def __init__(self, operation: Operation[Result]) -> None:
        self.operation = operation
        self.results: list[Result] = []
        self.error: BaseException | None = None
        # A bare lock is the cheapest thing a thread can sleep on.
        self.done = threading.Lock()
        self.done.acquire()

    def decide(self, batch: Batch) -> None:
        """The result, or the error, in this attempt."""
        self.results.clear()
        self.error = None
        try:
            self.results.append(self.operation.apply(batch))
        except (LedgerError, ValueError) as error:
            self.error = error

    def refuse(self, error: BaseException) -> None:
        """An error, whatever was decided."""
        self.results.clear()
        self.error = error


class Writer:
    """The writing side of one ledger in one process.

    `now` gives microseconds by the ledger's clock; `lease_micros` is how long the instance's row lasts without a batch;
    `committed` gets the head after each durable batch. `patience_seconds` is how long a batch tries to reach the
    database. Three times in a lease the writer also fails what dead processes left open, while `may_recover` says so.
    `continuity` knows what was durable when the ledger was opened; `lost` gets what a ledger that went back has
    lost.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        instance: str,
        now: Callable[[], int],
        lease_micros: int,
        patience_seconds: float,
        continuity: Continuity,
        committed: Callable[[Head], None],
        lost: Callable[[dict[str, Json]], None],
        may_recover: Callable[[], bool],
    ) -> None:
        self._engine = engine
        self._statements = statements_of(DialectKind.of(engine.dialect))
        self._instance = instance
        self._now = now
        self._lease_micros = lease_micros
        self._patience_seconds = patience_seconds
        self._continuity = continuity
        self._committed = committed
        self._lost = lost
        self._may_recover = may_recover
        self._recover_at = time.monotonic() + lease_micros / 3e6
        self._connection: Connection | None = None
        self._parents: dict[str, str | None] = {}
        self._batch_number = 0
        self._pending: tuple[Head, int] | None = None
        self._abandoned: set[str] = set()
        self.recovered = 0
        """How many queries of dead processes the writer has failed by itself."""
        self._queue: queue.SimpleQueue[_Job[object] | None] = queue.SimpleQueue()
        self._gate = threading.Lock()
        self._closed = False
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._serve, name="ledger-writer", daemon=True)
        self._thread.start()

    def submit(self, operation: Operation[T]) -> T:
        """Runs the operation and returns its result once it is durable. Raises what it raises, or LedgerUnavailable."""
        job = _Job(operation)
        with self._gate:
            if self._closed or os.getpid() != self._pid:
                raise LedgerUnavailable("the ledger is closed in this process")
            self._queue.put(job)
        job.done.acquire()
        if job.error is not None:
            raise job.error
        faults.reach(f"{operation.name}.answered")
        (result,) = job.results
        return result

    def close(self) -> None:
        """Finishes what has arrived and ends the writer; its lease ends now."""
        with self._gate:
            if self._closed:
                return
            self._closed = True
            self._queue.put(None)
        if os.getpid() == self._pid:
            self._thread.join()

    def _serve(self) -> None:
        idle = self._lease_micros / 3e6
        running = True
        while running:
            jobs: list[_Job[object]] = []
            with contextlib.suppress(queue.Empty):
                first = self._queue.get(timeout=idle)
                running = first is not None
                if first is not None:
                    jobs.append(first)
                while len(jobs) < BATCH_MAX:
                    another = self._queue.get_nowait()
                    if another is None:
                        running = False
                    else:
                        jobs.append(another)
            recovering: _Job[int] | None = None
            if running and time.monotonic() >= self._recover_at and self._may_recover():
                self._recover_at = time.monotonic() + idle
                # With a sign of life: a recovery that finds nothing writes nothing.
                recovering = _Job(Recover())
                jobs += [recovering, _Job(Touch())]
            try:
                self._run(jobs, last=not running)
                self.recovered += 0 if recovering is None else sum(recovering.results)
            except BaseException as error:  # noqa: BLE001 - nobody may be left asleep, whatever happened
                for job in jobs:
                    job.error = job.error or error
            for job in jobs:
                job.done.release()
        self._disconnect()

    def _run(self, jobs: Sequence[_Job[object]], *, last: bool = False) -> None:
        """Brings every job to a result or an error."""
        deadline = time.monotonic() + self._patience_seconds
        while True:
            try:
                outcome = self._attempt(jobs, last=last)
                if outcome is None:
                    outcome = self._resolve(deadline)
                if outcome:
                    return self._finish(jobs)
            except LedgerBehind as error:
                self._disconnect()
                for job in jobs:
                    job.refuse(error)
                if self._continuity.lost is not None:
                    self._lost(self._continuity.lost)
                return None
            except _DISCONNECTED as error:
                self._disconnect()
                if time.monotonic() >= deadline:
                    return self._give_up(jobs, error)
                time.sleep(_PAUSE_SECONDS)
                continue
            except Exception as error:  # noqa: BLE001 - a fault of one operation is handed to its caller only
                self._disconnect()
                if len(jobs) <= 1:
                    for job in jobs:
                        job.error = error
                    return None
                for job in jobs:
                    self._run([job])
                return None
            if outcome is None or time.monotonic() >= deadline:
                return self._give_up(jobs, None)

    def _finish(self, jobs: Sequence[_Job[object]]) -> None:
        """The batch is durable."""
        for job in jobs:
            faults.reach(f"{job.operation.name}.after_commit")
        pending, self._pending = self._pending, None
        if pending is not None:
            # A file that was removed takes commits like any other, and nobody will find them again.
            self._continuity.check_file()
            self._continuity.durable(*pending)
            self._abandoned.clear()
            self._committed(pending[0])

    def _give_up(self, jobs: Sequence[_Job[object]], cause: BaseException | None) -> None:
        for job in jobs:
            error = LedgerUnavailable("the ledger's database could not be reached; a charge may have been made")
            error.__cause__ = cause
            job.refuse(error)
            self._abandoned.update(job.operation.query_ids)

    def _attempt(self, jobs: Sequence[_Job[object]], *, last: bool) -> bool | None:
        """One transaction: True when it is durable, None when it may be. Errors: LedgerBehind and the database's."""
        self._continuity.check_file()
        connection = self._connect()
        abandoned = Abandon(tuple(sorted(self._abandoned))) if self._abandoned else None
        now = self._now()
        needs = Needs()
        for operation in (job.operation for job in jobs):
            operation.needs(needs)
        if abandoned is not None:
            abandoned.needs(needs)
        with connection.begin() as transaction:
            if self._pending is not None and not self._number_is_in(connection):
                self._pending = None
            batch = Batch(connection, self._statements, now=now, instance=self._instance, continuity=self._continuity)
            batch.load(needs, self._parents)
            if abandoned is not None:
                abandoned.apply(batch)
            for job in jobs:
                job.decide(batch)
            names = [job.operation.name for job in jobs]
            for name in names:
                faults.reach(f"{name}.decided")
            if jobs and batch.empty and abandoned is None and not last:
                transaction.rollback()
                return True
            self._batch_number += 1
            batch.store(names, batch=self._batch_number, expires=0 if last else now + self._lease_micros)
            for name in names:
                faults.reach(f"{name}.before_commit")
            self._continuity.file.log_is_open()
            self._pending = (Head(batch.sequence, batch.hash, batch.now), self._batch_number)
            try:
                transaction.commit()
            except DBAPIError:
                self._disconnect()
                return None
        return True

    def _resolve(self, deadline: float) -> bool | None:
        """Whether the last batch is in: True, False, or None when the database could not be asked in time.

        Errors: LedgerBehind when the database knows neither this batch nor the one before it.
        """
        while True:
            try:
                connection = self._connect()
                with connection.begin():
                    there = self._number_is_in(connection)
                if not there:
                    self._pending = None
                return there
            except DBAPIError:
                self._disconnect()
                if time.monotonic() >= deadline:
                    return None
                time.sleep(_PAUSE_SECONDS)

    def _number_is_in(self, connection: Connection) -> bool:
        """Whether the batch whose commit was not answered is in. Errors: LedgerBehind."""
        assert self._pending is not None
        head, number = self._pending
        row = select(instances.c.batch).where(instances.c.id == self._instance).with_for_update()
        there = connection.execute(row).scalar_one_or_none()
        if there == number:
            self._continuity.durable(head, number)
            return True
        if there != self._continuity.batch:
            self._continuity.lose_batches()
        return False

    def _connect(self) -> Connection:
        if self._connection is None:
            self._connection = self._engine.connect().execution_options(immediate=True)
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        self._continuity.file.log_may_change()
        if connection is not None:
            with contextlib.suppress(DBAPIError):
                connection.invalidate()
            with contextlib.suppress(DBAPIError):
                connection.close()
