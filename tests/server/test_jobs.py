"""The pool: what was admitted is completed, whatever happens to the request; an orderly end."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from server.admitted import Settled
from server.errors import Problem
from server.jobs import JobPool


@dataclass(frozen=True)
class Admitted:
    """An admitted query."""

    query_id: str


def test_a_request_that_goes_away_stops_nothing() -> None:
    """Cancelling the request between admission and answer leaves the query to its end, and its place is given back."""
    pool = JobPool(threads=1, queue=0)
    admitting, go, done = threading.Event(), threading.Event(), threading.Event()

    def admit() -> Admitted:
        admitting.set()
        go.wait(60)
        return Admitted("q_1")

    def complete(_: Admitted) -> bytes:
        done.set()
        return b"answer"

    async def run() -> None:
        task = asyncio.create_task(pool.start(admit, complete, lambda _: None))
        await asyncio.to_thread(admitting.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go.set()
        assert await asyncio.to_thread(done.wait, 10)

    asyncio.run(run())
    for _ in range(3_000):
        if pool.in_flight == 0:
            break
        time.sleep(0.01)
    assert pool.in_flight == 0
    pool.close(seconds=1)


def test_refusals_and_stored_answers_give_their_place_back() -> None:
    """An admission that raises, or finds a stored answer, leaves the pool empty."""
    pool = JobPool(threads=1, queue=0)

    def refuse() -> Admitted:
        raise Problem("not_found", what="no")

    async def run() -> None:
        for _ in range(3):
            with pytest.raises(Problem):
                await pool.start(refuse, lambda _: b"", lambda _: None)
            started = await pool.start(lambda: Settled("q", b"x"), lambda _: b"", lambda _: None)
            assert started.answer is None

    asyncio.run(run())
    assert pool.in_flight == 0
    pool.close(seconds=1)


def test_the_shutdown_waits_then_abandons_what_never_started() -> None:
    """Running queries get their time; those whose turn did not come are abandoned, so they can be voided."""
    pool = JobPool(threads=1, queue=2)
    gate, begun = threading.Event(), threading.Event()
    abandoned: list[str] = []

    def complete(_: Admitted) -> bytes:
        begun.set()
        gate.wait(60)
        return b"answer"

    async def run() -> None:
        for name in ("a", "b", "c"):
            await pool.start(lambda name=name: Admitted(name), complete, lambda one: abandoned.append(one.query_id))

    asyncio.run(run())
    assert begun.wait(10)
    assert pool.close(seconds=0.05) == 1
    assert sorted(abandoned) == ["b", "c"]
    gate.set()
    with pytest.raises(Problem) as caught:
        asyncio.run(pool.start(lambda: Admitted("d"), complete, lambda _: None))
    assert caught.value.code == "unavailable"


def test_a_shutdown_with_time_lets_running_queries_end() -> None:
    """A query that ends within the time is completed, not abandoned."""
    pool = JobPool(threads=1, queue=2)
    completed: list[str] = []

    def complete(one: Admitted) -> bytes:
        time.sleep(0.05)
        completed.append(one.query_id)
        return b"answer"

    async def run() -> None:
        for name in ("a", "b"):
            await pool.start(lambda name=name: Admitted(name), complete, lambda _: None)

    asyncio.run(run())
    assert pool.close(seconds=10) == 0
    assert completed == ["a", "b"]


_DEEP = """
import asyncio, sys, threading
from sqlglot.dialects.duckdb import DuckDB
from server.jobs import JobPool
from sql_rewrite import metered

def read():
    text = "SELECT " + "NOT " * 20_000 + "a"
    metered.read(DuckDB().tokenize(text), text, steps=10**7)
    print("read", flush=True)

sys.setrecursionlimit(10**8)
pool = JobPool(threads=1, queue=0)
if sys.argv[1] == "pool":
    asyncio.run(pool.call(read))
else:
    threading.stack_size(2**21)
    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
pool.close(seconds=1)
"""


@pytest.mark.parametrize(("thread", "expected"), [("pool", (0, "read\n")), ("other", (-signal.SIGSEGV, ""))])
def test_threads_that_read_texts_have_a_large_stack(thread: str, expected: tuple[int, str]) -> None:
    """Four times the words of the longest text, nested, are read on the pool's threads; another thread crashes."""
    done = subprocess.run(
        [sys.executable, "-c", _DEEP, thread],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert expected == (done.returncode, done.stdout), done.stderr


def test_the_stack_of_other_threads_stays_as_it_was() -> None:
    """The size is a setting of the process: the pool gives it back, and its reading threads are there already."""
    before = threading.stack_size()
    pool = JobPool(threads=1, queue=0)
    assert before == threading.stack_size()
    assert sum(thread.name.startswith("admit") for thread in threading.enumerate()) >= 4
    pool.close(seconds=1)


def test_steps_that_read_rows_leave_the_threads_that_read_texts_free() -> None:
    """Shows that steps which wait for a slot of the engine hold up no estimate, and are as many as the queue has room
    for. Evaluations of monitors took all threads that read texts, and estimates of others waited until rows were read.
    """
    pool = JobPool(threads=1, queue=7)
    go = threading.Event()

    async def run() -> None:
        steps = [asyncio.create_task(pool.run(lambda: go.wait(60), owner="ann")) for _ in range(6)]
        await asyncio.sleep(0)
        assert await asyncio.wait_for(pool.call(lambda: "estimate", owner="bob"), 60) == "estimate"
        with pytest.raises(Problem) as full:
            await pool.run(lambda: True, owner="ann")
        assert full.value.finding.code == "rate_limited"
        away = steps.pop()
        away.cancel()
        with pytest.raises(asyncio.CancelledError):
            await away
        go.set()
        assert await asyncio.gather(*steps) == [True] * 5

    asyncio.run(run())
    for _ in range(3_000):
        if pool.in_flight == 0:
            break
        time.sleep(0.01)
    assert pool.in_flight == 0
    pool.close(seconds=1)


def test_a_step_whose_turn_never_came_says_that_the_server_stops() -> None:
    """Shows the refusal of a step that waits while the server shuts down, and that it is never run."""
    pool = JobPool(threads=1, queue=7)
    go, begun, ran = threading.Event(), threading.Event(), []

    async def run() -> None:
        first = asyncio.create_task(pool.run(lambda: begun.set() or go.wait(60), owner="ann"))
        assert await asyncio.to_thread(begun.wait, 60)
        second = asyncio.create_task(pool.run(lambda: ran.append(1), owner="ann"))
        await asyncio.sleep(0)
        await asyncio.to_thread(pool.close, seconds=0.2)
        with pytest.raises(Problem) as stopping:
            await second
        assert stopping.value.finding.code == "unavailable"
        go.set()
        assert await first is True

    asyncio.run(run())
    assert ran == []
