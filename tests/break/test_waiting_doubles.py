"""Questions that wait in line: they made the line longer, and were charged although they had been cancelled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from server.journey.moments import Moments
from server.journey.pace import VisibleRun
from server.services import Services
from tests.clocks import Clock
from tests.journey.clinic import question

IN_LINE = 12


@pytest.fixture
def waited(services: Services, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The lengths of the waits for visible moments; the journey's clock moves on by them alone, and nobody sleeps."""
    journey: Any = services.journey
    waits: list[float] = []
    clock = Clock(0.0)

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        clock.now += seconds

    monkeypatch.setattr(journey.pace, "clock", clock)
    monkeypatch.setattr(journey.pace, "sleep", sleep)
    # The pace of a busy machine is measured anew, and moments would change between two questions.
    monkeypatch.setattr(journey.pace, "slowness", lambda: 1.0)
    return waits


def test_a_line_of_questions_takes_as_long_as_its_questions(
    services: Services, attacker: Callable[..., str], waited: list[float]
) -> None:
    """Sixty counts of ten milliseconds kept four threads for eleven seconds, and a hundred would have for hours."""
    journey: Any = services.journey
    name = attacker()
    texts = [f"SELECT COUNT(*) AS n FROM people WHERE age < {age}" for age in range(IN_LINE)]
    admitted = [journey.admit(question(text, name, reuse="none")) for text in texts]
    first = [journey.pace.moments(one.work).first for one in admitted]
    for one in admitted:
        journey.complete(one)
    # None of them ran for any time by that clock: each waits for its own first moment at most, whoever was before it.
    assert len(waited) == IN_LINE
    assert all(wait <= moment + 1e-9 for wait, moment in zip(waited, first, strict=True))


def test_a_question_that_waited_in_line_still_hides_how_long_it_ran(
    services: Services, attacker: Callable[..., str], waited: list[float]
) -> None:
    """The end lies whole ticks after the question, and a power of two of first moments after the query's turn."""
    journey: Any = services.journey
    tick = journey.pace.tick_seconds
    moments = Moments(first=2 * tick, tick=tick)
    for line, spent, expected in [(0.0, 0.4, 2), (0.7, 0.2, 2), (5.3, 0.5, 7), (5.3, 2.0, 9), (40.9, 30.0, 72)]:
        journey.pace.clock = clock = Clock(100.0 + line * tick)
        begun = journey.pace.begun(100.0)
        clock.now += spent * tick
        VisibleRun(moments, 0.0, begun, clock=clock, sleep=waited.append).wait()
        assert (clock.now + waited.pop() - 100.0) / tick == pytest.approx(expected)


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
