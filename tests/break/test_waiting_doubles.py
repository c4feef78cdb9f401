"""Questions that wait in line: they made the line longer, and were charged although they had been cancelled."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from server.journey.moments import Moments
from server.journey.visible import VisibleRun
from server.services import Services
from tests.journey.clinic import question

IN_LINE = 12


@pytest.fixture
def waited(services: Services) -> Iterator[list[float]]:
    """The lengths of the waits for visible moments; the journey's clock moves on by them, and nobody sleeps."""
    journey: Any = services.journey
    waits: list[float] = []
    clock, sleep = journey.pace.clock, journey.pace.sleep
    journey.pace.clock = lambda: time.monotonic() + sum(waits)
    journey.pace.sleep = waits.append
    try:
        yield waits
    finally:
        journey.pace.clock, journey.pace.sleep = clock, sleep


def test_a_line_of_questions_takes_as_long_as_its_questions(
    services: Services, attacker: Callable[..., str], waited: list[float]
) -> None:
    """Sixty counts of ten milliseconds kept four threads for eleven seconds, and a hundred would have for hours."""
    journey: Any = services.journey
    name = attacker()
    texts = [f"SELECT COUNT(*) AS n FROM people WHERE age < {age}" for age in range(IN_LINE)]
    admitted = [journey.admit(question(text, name, reuse="none")) for text in texts]
    ran = []
    for one in admitted:
        begun = time.monotonic()
        journey.complete(one)
        ran.append(time.monotonic() - begun)
    assert len(waited) == IN_LINE
    for wait, took in zip(waited, ran, strict=True):
        assert wait <= took + 3 * journey.pace.tick_seconds


def test_a_question_that_waited_in_line_still_hides_how_long_it_ran(
    services: Services, attacker: Callable[..., str], waited: list[float]
) -> None:
    """The end lies whole ticks after the question, and a power of two of first moments after the query's turn."""
    journey: Any = services.journey
    tick = journey.pace.tick_seconds
    moments = Moments(first=2 * tick, tick=tick)
    for line, spent, expected in [(0.0, 0.4, 2), (0.7, 0.2, 2), (5.3, 0.5, 7), (5.3, 2.0, 9), (40.9, 30.0, 72)]:
        now = [100.0 + line * tick]
        journey.pace.clock = lambda now=now: now[0]
        begun = journey.pace.begun(100.0)
        now[0] += spent * tick
        VisibleRun(moments, 0.0, begun, clock=lambda now=now: now[0], sleep=waited.append).wait()
        assert (now[0] + waited.pop() - 100.0) / tick == pytest.approx(expected)


def test_a_cancelled_question_costs_nothing_when_the_server_closes_before_its_turn(
    services: Services, attacker: Callable[..., str]
) -> None:
    """The analyst was told that it is void; the shutdown left it reserved, so the next start charged it."""
    journey: Any = services.journey
    name = attacker()
    admitted = journey.admit(question("SELECT COUNT(*) AS n FROM people WHERE age < 77", name, reuse="none"))
    assert journey.cancel(admitted.query_id, name) == "failed_void"
    journey.abandon(admitted)
    record = services.ledger.query(admitted.query_id)
    assert record is not None
    assert record.state == "failed_void"
    (account,) = services.ledger.accounts(dataset="clinic", principal=name)
    assert account.remaining_epsilon() == account.limit.epsilon
