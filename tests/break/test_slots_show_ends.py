"""Slots that came back when a statement ended: a third analyst's waiting measured another query's running time.

Time is a clock that the test moves. A statement "runs" until its time has come, then really runs; a thread that
sleeps waits for the same clock; the clock moves only when every thread waits for it or for a slot.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from engines.private import PrivateEngine
from engines.process import Failure, Fault, Worker
from engines.turns import Slots
from mechanisms.randomness import SystemBits
from privacy.refusal import ExecutionFailed
from privacy.statement import Statement, StatementSum
from server.answer import Journey
from server.journey.pace import Pace
from server.services import Services
from tests.clocks import Clock
from tests.journey.clinic import question

TICK = 1.0
STEP = 0.05
ONE_CORE = "SELECT COUNT(*) AS n FROM people WHERE age < 40"
TWO_CORES = (
    "WITH a AS (SELECT COUNT(*) AS n FROM people WHERE age < 41), b AS (SELECT COUNT(*) AS m FROM visits) "
    "SELECT n, m FROM a CROSS JOIN b"
)
PROBE = "SELECT COUNT(*) AS n FROM people WHERE age < 42"


class Stage:
    """The clock, and who waits for it."""

    def __init__(self, places: Slots) -> None:
        self._changed = threading.Condition()
        self._places = places
        self._targets: list[float] = []
        self._threads: list[threading.Thread] = []
        self.now = 0.0

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.wait_until(self.now + seconds)

    def wait_until(self, moment: float) -> None:
        with self._changed:
            self._targets.append(moment)
            assert self._changed.wait_for(lambda: self.now >= moment - 1e-9, 60)
            self._targets.remove(moment)

    def start(self, work: Callable[[], object]) -> None:
        thread = threading.Thread(target=work)
        self._threads.append(thread)
        thread.start()
        self._settle()

    def run(self) -> None:
        """Moves the clock until every thread has ended."""
        while any(thread.is_alive() for thread in self._threads):
            with self._changed:
                self.now = round(self.now + STEP, 9)
                self._changed.notify_all()
            assert self.now < 64 * TICK
            self._settle()

    def _settle(self) -> None:
        deadline = time.monotonic() + 60
        while not self._still():
            assert time.monotonic() < deadline
            time.sleep(0.002)

    def _still(self) -> bool:
        """Whether every thread has ended, waits for a later moment, or waits for a slot that is not to be had."""
        with self._changed, self._places._changed:
            waiting = [owner for _, owner in self._places._waiting]
            if waiting and self._places._turns.choose(waiting) is not None:
                return False
            later = sum(target > self.now + 1e-9 for target in self._targets)
            return later + len(waiting) == sum(thread.is_alive() for thread in self._threads)


@contextmanager
def two_slots(*, recycle_after: int = 500) -> Iterator[PrivateEngine]:
    """An engine with two slots."""
    engine = PrivateEngine(workers=2, threads=1, memory_limit_mb=256, recycle_after=recycle_after)
    try:
        assert engine.wait_ready(timeout_seconds=60)
        yield engine
    finally:
        engine.close()


def probe_of(
    services: Services,
    attacker: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    *,
    text: str,
    seconds: list[float],
    failure: Failure | None = None,
    recycle_after: int = 500,
) -> list[tuple[str, float]]:
    """What a probe sees while two others hold the slots: when its statement was sent and when it was answered.

    The first colluder's statement runs 0.9 ticks; those of the second one run `seconds`, and the last one may fail.
    """
    with two_slots(recycle_after=recycle_after) as engine, monkeypatch.context() as patch:
        stage = Stage(engine._pool._slots)
        journey = Journey(
            ledger=services.ledger,
            private=engine,
            shell=services.journey.running._shell,  # type: ignore[attr-defined]
            served=services.catalogue,  # type: ignore[arg-type]
            bits=SystemBits(),
            pace=Pace(tick_seconds=TICK, clock=stage.clock, sleep=stage.sleep),
        )
        seen: list[tuple[str, float]] = []
        lengths = {"first": [0.9], "second": list(seconds), "probe": [0.1]}
        request = Worker.request

        def slow(self: Worker, *arguments: Any, **named: Any) -> Any:
            who = threading.current_thread().name
            if not lengths.get(who):
                return request(self, *arguments, **named)
            if who == "probe":
                seen.append(("sent", stage.now))
            stage.wait_until(stage.now + lengths[who].pop(0))
            if who == "second" and failure is not None and not lengths[who]:
                raise Fault(failure)
            return request(self, *arguments, **named)

        patch.setattr(Worker, "request", slow)

        def ask(who: str, sql: str) -> Callable[[], None]:
            admitted = journey.admit(question(sql, attacker(), reuse="none"))

            def complete() -> None:
                threading.current_thread().name = who
                try:
                    journey.complete(admitted)
                except ExecutionFailed:
                    assert failure is not None
                if who == "probe":
                    seen.append(("answered", stage.now))

            return complete

        stage.start(ask("first", ONE_CORE))
        stage.start(ask("second", text))
        stage.start(ask("probe", PROBE))
        stage.run()
        return seen


@pytest.mark.slow
@pytest.mark.sparse(7)
@pytest.mark.parametrize(
    ("text", "short", "long", "failure", "recycle_after"),
    [
        (ONE_CORE, [0.1], [0.8], None, 500),
        (ONE_CORE, [1.1], [1.8], None, 500),
        (TWO_CORES, [0.1, 0.1], [0.1, 0.6], None, 500),
        (TWO_CORES, [0.1, 0.1], [0.1, 0.6], Failure.CRASHED, 500),
        (ONE_CORE, [0.1], [0.8], Failure.TIMEOUT, 500),
        (ONE_CORE, [0.1], [0.8], Failure.GARBLED, 500),
        (ONE_CORE, [0.1], [0.8], None, 1),
    ],
    ids=["answer", "later answer", "two cores", "two cores crash", "timeout", "garbled", "recycled"],
)
def test_a_probe_does_not_see_when_the_statement_of_another_query_ends(
    services: Services,
    attacker: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    short: list[float],
    long: list[float],
    failure: Failure | None,
    recycle_after: int,
) -> None:
    """Two colluders hold both slots; the probe's times are the same whatever the second one's running time is."""
    worlds = [
        probe_of(
            services,
            attacker,
            monkeypatch,
            text=text,
            seconds=seconds,
            failure=failure,
            recycle_after=recycle_after,
        )
        for seconds in (short, long)
    ]
    assert worlds[0] == worlds[1]
    (_, sent), (_, answered) = worlds[0]
    # The slot came back at a whole tick, and the probe's own visible moment is counted from there.
    assert (sent / TICK).is_integer()
    assert (answered / TICK).is_integer()


@pytest.mark.slow
def test_a_worker_that_failed_is_not_replaced_before_its_slot_comes_back(tmp_path: Path) -> None:
    """A new process, with its start-up load, told when a statement had been killed."""
    snapshot = tmp_path / "none.duckdb"
    snapshot.write_bytes(b"not a database")
    statement = Statement(sql="SELECT 1", parameters=(), keys=(), sums=(StatementSum("s", bound=1),))
    with two_slots() as engine:
        before = engine.process_ids()
        lease = engine.lease(owner="a")
        with pytest.raises(ExecutionFailed):
            engine.run(snapshot, statement, timeout_seconds=10, lease=lease)
        time.sleep(1.5)  # longer than the starter looks away
        assert engine.process_ids() == before
        # The count of incidents is in the metrics.
        assert sum(engine._incidents.counts().values()) == 0
        lease.release()
        lease.release()
        assert sum(engine._incidents.counts().values()) == 1
        assert engine.wait_ready(timeout_seconds=60)
        assert len(set(engine.process_ids()) - set(before)) == 1


def test_use_is_not_accounted_by_when_a_statement_ends() -> None:
    """What an owner used decides who goes first, so it must not hold a true running time."""
    with two_slots() as engine:
        clock = Clock(0.0)
        engine._pool._slots = Slots(2, clock=clock)
        lease = engine.lease(owner="a")
        clock.now = 0.3
        assert lease._worker.call(
            {"operation": "open", "snapshot": "nowhere"}, timeout_seconds=10, parse=lambda _: 1
        ) is (Failure.REFUSED)
        clock.now = 2.0
        lease.release()
        assert engine._pool._slots._turns._used("a") == pytest.approx(2.0)


@pytest.mark.slow
def test_a_closing_engine_waits_for_no_slot() -> None:
    """Leases that wait for their visible moment, and callers that wait for a slot, do not hold up the end."""
    with two_slots() as engine:
        leases = [engine.lease(owner="a"), engine.lease(owner="b")]
        refused = threading.Event()

        def wait() -> None:
            with pytest.raises(ExecutionFailed) as failed:
                engine.lease(owner="c")
            assert not failed.value.started
            refused.set()

        waiter = threading.Thread(target=wait)
        waiter.start()
        time.sleep(0.1)
        engine.close()
        assert refused.wait(60)
        waiter.join()
        for lease in leases:
            lease.release()
        assert engine.process_ids() == []
