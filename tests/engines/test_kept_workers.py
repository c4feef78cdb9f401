"""Workers that tests keep serve one engine after another, and none that is closed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from threading import Thread

import pytest

from engines.process import LoneWorker, WorkerOptions
from engines.shell import ShellEngine
from engines.snapshot import attach_options
from privacy.refusal import ExecutionFailed
from tests import kept_workers as kept
from tests.kept_workers import kept_workers

MEMORY_MB = 257
"""A size of its own, so that no other test has these workers."""


def process_of(worker: LoneWorker) -> int:
    """The number of the process behind."""
    assert worker._worker is not None
    return worker._worker.process_id


def of_a_thread(options: WorkerOptions) -> int:
    """The process of a worker that a thread of its own starts and leaves."""
    with kept.KeptLone(options) as worker:
        return process_of(worker)


def engine() -> ShellEngine:
    """An engine with kept workers."""
    with kept_workers():
        return ShellEngine(workers=1, memory_limit_mb=MEMORY_MB)


@pytest.fixture(autouse=True)
def ended() -> Iterator[None]:
    """No other test has use for these."""
    yield
    for kind, pools in kept._waiting.items():
        while f"memory_limit_mb={MEMORY_MB}" in kind and pools:
            pools.pop().close()
    for kind, workers in kept._lone.items():
        while f"memory_limit_mb={MEMORY_MB}" in kind and workers:
            folder, worker = workers.pop()
            worker.kill()
            folder.remove()


def test_a_closed_engine_answers_nothing_and_its_workers_serve_the_next() -> None:
    """The processes are the same ones, the engines are not."""
    with closing(engine()) as first:
        assert first.wait_ready(timeout_seconds=30)
        assert first.check((), "SELECT 1 AS n") == (("n", "INTEGER"),)
        processes = first.process_ids()
    with pytest.raises(ExecutionFailed):
        first.check((), "SELECT 1 AS n")
    assert not first.usable()
    assert not first.process_ids()
    with closing(engine()) as second, closing(engine()) as third:
        assert second.process_ids() == processes
        assert second.check((), "SELECT 2 AS n") == (("n", "INTEGER"),)
        assert not {*processes} & {*third.process_ids()}, "two that are open share none"


def test_workers_in_use_end_with_their_engine() -> None:
    """As when served: what is asked at that moment gets no answer, and nobody has the worker afterwards."""
    first = engine()
    lease = first._pool.lease()
    assert not isinstance(lease, kept.Failure)
    processes = first.process_ids()
    first.close()
    assert lease.call({}, timeout_seconds=1, parse=lambda frame: frame) is kept.Failure.UNAVAILABLE
    lease.release()
    with closing(engine()) as second:
        assert not {*processes} & {*second.process_ids()}


def test_a_worker_for_one_task_goes_on_to_the_next_unless_it_failed() -> None:
    """In an emptied folder; what a task leaves behind is not there for the next one."""
    options = replace(attach_options(), memory_limit_mb=MEMORY_MB)
    with kept.KeptLone(options) as worker:
        (worker.directory / "left").write_text("left")
        first = process_of(worker)
    with kept.KeptLone(options) as worker:
        assert process_of(worker) == first
        assert not list(worker.directory.iterdir())
        failed = worker.call({"operation": "build"}, timeout_seconds=30, parse=lambda frame: frame)
        assert failed is kept.Failure.REFUSED
    with kept.KeptLone(options) as worker:
        second = process_of(worker)
        assert second != first
        aside: list[int] = []
        thread = Thread(target=lambda: aside.append(of_a_thread(options)))
        thread.start()
        thread.join()
    with kept.KeptLone(options) as worker, kept.KeptLone(options) as other:
        assert process_of(worker) == second
        assert process_of(other) != aside[0], "it ended with its thread"
