"""Monitors in the registry, on SQLite and PostgreSQL: evaluations are counted once, and of two outcomes one is kept."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy.exc import DBAPIError

from server.store.monitors import NotBegun
from server.store.outbox import Notice
from server.store.registry import Registry
from server.store.resources import MONITORS, MonitorRow
from tests.clocks import Clock
from tests.server.conftest import NOW, SECRET

ROW = MonitorRow(
    id="m_1", principal="ann", dataset="clinic", account="b_1", price=None, terms="{}", sealed=b"\x00secret", left=2
)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def registry(request: pytest.FixtureRequest) -> Iterator[Registry]:
    """A registry on a fresh, migrated database: every test runs on both."""
    made = Registry(request.getfixturevalue(f"{request.param}_url"), secret=SECRET, clock=Clock(NOW))
    yield made
    made.close()


NOTICE = Notice(principal="ann", event="monitor.passed", subject="m_1", body="{}")


def _begun(
    registry: Registry,
    *,
    revision: int = 0,
    version: str = "1:d",
    most: int = 5,
    standing: bool = False,
    again: bool = True,
) -> int | NotBegun:
    begun = registry.begin_evaluation(
        "m_1", revision=revision, version=version, most=most, instance="i_1", standing=standing, again=again
    )
    return begun if isinstance(begun, NotBegun) else begun.number


def test_a_monitor_is_read_back_as_it_was_stored(registry: Registry) -> None:
    """Shows the row, its moment, and that an identifier stands for one monitor."""
    made = registry.add_resource(MONITORS, ROW)
    assert made == replace(ROW, created="2026-03-01T12:00:00Z")
    assert registry.resource(MONITORS, "m_1") == made
    assert registry.resource(MONITORS, "m_2") is None
    with pytest.raises(DBAPIError):
        registry.add_resource(MONITORS, ROW)
    assert registry.resource(MONITORS, "m_1") == made


def test_lists_are_the_newest_first_and_one_persons(registry: Registry) -> None:
    """Shows pages, by moment and then by identifier."""
    clock = registry._clock
    assert isinstance(clock, Clock)
    for number in range(5):
        clock.now = NOW + datetime.timedelta(seconds=number // 2)
        registry.add_resource(MONITORS, replace(ROW, id=f"m_{number}", principal="ann" if number != 3 else "bob"))
    assert [row.id for row in registry.resources(MONITORS, "ann", dataset=None, after=None, count=9)] == [
        "m_4",
        "m_2",
        "m_1",
        "m_0",
    ]
    assert [row.id for row in registry.resources(MONITORS, "ann", dataset=None, after="m_2", count=1)] == ["m_1"]
    assert [row.id for row in registry.resources(MONITORS, None, dataset=None, after=None, count=2)] == ["m_4", "m_3"]


def test_of_two_outcomes_at_once_one_is_kept(registry: Registry) -> None:
    """Shows that an outcome of an older state changes nothing, and that a failure leaves the state alone."""
    row = registry.add_resource(MONITORS, ROW)
    assert _begun(registry, standing=True) == 1
    assert _begun(registry, standing=True, version="1:e") == 2
    assert registry.end_evaluation(row, 2, outcome="passed", detail='{"gap": 1}', sealed=b"new", left=1, notice=NOTICE)
    assert not registry.end_evaluation(
        row, 1, outcome="passed", detail='{"gap": 2}', sealed=b"old", left=1, notice=NOTICE
    )
    kept = registry.resource(MONITORS, "m_1")
    assert kept is not None
    assert (kept.sealed, kept.left, kept.revision) == (b"new", 1, 1)
    registry.note_evaluation("m_1", 1, outcome="failed", detail=None, notice=NOTICE)
    assert registry.resource(MONITORS, "m_1") == kept
    assert [(one.number, one.outcome) for one in registry.evaluations("m_1", count=9)] == [(2, "passed"), (1, "failed")]
    assert [one.number for one in registry.hits("m_1")] == [2]
    assert registry.evaluation("m_1", 1).outcome == "failed"


def test_what_was_said_last_is_not_what_failed_last(registry: Registry) -> None:
    """Shows that failures, and evaluations under way, say nothing."""
    row = registry.add_resource(MONITORS, ROW)
    assert registry.last_said("m_1") is None
    numbers = [_begun(registry, standing=True, version=version) for version in ("1:c", "1:d", "1:e")]
    assert registry.end_evaluation(row, 1, outcome="not_passed", detail=None, sealed=b"new", left=2, notice=NOTICE)
    registry.note_evaluation("m_1", 2, outcome="failed", detail=None, notice=NOTICE)
    found = registry.last_said("m_1")
    assert found is not None
    assert (numbers, found.number, found.outcome) == ([1, 2, 3], 1, "not_passed")


def test_the_database_refuses_more_hits_than_there_are(registry: Registry) -> None:
    """Shows that no number of hits below zero can be stored."""
    row = registry.add_resource(MONITORS, ROW)
    number = _begun(registry)
    assert number == 1
    with pytest.raises(DBAPIError):
        registry.end_evaluation(row, number, outcome="passed", detail=None, sealed=b"", left=-1, notice=NOTICE)
    assert registry.resource(MONITORS, "m_1") == row


def test_evaluations_are_counted_once_each_and_no_more_than_stated(registry: Registry) -> None:
    """Shows eight threads that begin evaluations at the same time: each gets a number of its own, up to the most."""
    registry.add_resource(MONITORS, ROW)
    numbers: list[int | NotBegun] = []

    def begin(thread: int) -> None:
        versions = [f"{thread}:{number}" for number in range(4)]
        numbers.extend(_begun(registry, most=20, standing=True, version=version) for version in versions)

    threads = [threading.Thread(target=begin, args=(thread,)) for thread in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(number for number in numbers if isinstance(number, int)) == list(range(1, 21))
    assert numbers.count(NotBegun.USED_UP) == 12


def test_one_version_is_evaluated_once_at_a_time(registry: Registry) -> None:
    """Shows that a standing question waits for another evaluation of its version, and not for those of others; and
    that what the server does by itself is done once for each version."""
    row = registry.add_resource(MONITORS, ROW)
    assert _begun(registry, standing=True) == 1
    assert _begun(registry, standing=True) is NotBegun.UNDER_WAY
    assert registry.under_way("m_1", version="1:d")
    assert not registry.under_way("m_1", version="1:e")
    assert registry.note_evaluation("m_1", 1, outcome="failed", detail=None, notice=NOTICE)
    assert _begun(registry, standing=True, again=False) is NotBegun.MADE
    assert _begun(registry, standing=True) == 2
    assert _begun(registry, standing=True, again=False, version="1:e") == 3
    assert registry.end_evaluation(row, 2, outcome="passed", detail="{}", sealed=b"new", left=1, notice=None)
    assert registry.last_said("m_1") is None, "its answer is to come"
    assert registry.under_way("m_1", version="1:d")
    assert registry.note_evaluation("m_1", 2, outcome="passed", detail='{"beyond": 1}', notice=NOTICE)
    said = registry.last_said("m_1")
    assert said is not None
    assert (said.number, said.detail) == (2, '{"beyond": 1}')


def test_a_stream_has_one_evaluation_at_a_time(registry: Registry) -> None:
    """Shows two registries, as of two processes, whose threads begin at the same moment: one number is used up, and
    the next one is begun when it is over, whatever its version; but not from a state of before."""
    url = registry._engine.url.render_as_string(hide_password=False)
    other = Registry(url, secret=SECRET, clock=Clock(NOW))
    row = registry.add_resource(MONITORS, ROW)
    try:
        with ThreadPoolExecutor(4) as pool:
            begun = list(pool.map(_begun, [registry, other] * 2))
        assert sorted(map(str, begun)) == sorted(map(str, [1, *[NotBegun.UNDER_WAY] * 3]))
        assert other.under_way("m_1", version=None)
        assert _begun(other, version="1:e") is NotBegun.UNDER_WAY
        assert registry.end_evaluation(row, 1, outcome="passed", detail="{}", sealed=b"new", left=1, notice=NOTICE)
        assert not other.under_way("m_1", version=None)
        assert _begun(other) is NotBegun.UNDER_WAY, "it would go on from a state that is over"
        assert _begun(other, revision=1) == 2
    finally:
        other.close()
    assert [one.number for one in registry.evaluations("m_1", count=9)] == [2, 1]


def test_what_the_server_evaluates_by_itself(registry: Registry) -> None:
    """Shows open monitors without an evaluation of a version, the oldest first, of principals who are not disabled."""
    registry.create_principal("ann", "analyst", actor="test")
    registry.add_resource(MONITORS, ROW)
    for number in (2, 3, 4):
        row = registry.add_resource(MONITORS, replace(ROW, id=f"m_{number}", background=True))
    last = registry.begin_evaluation("m_4", revision=0, version="1:c", most=5, instance="i_1", standing=True)
    assert not isinstance(last, NotBegun)
    assert registry.end_evaluation(row, 1, outcome="passed", detail="{}", sealed=b"", left=0, notice=NOTICE)
    assert registry.watched_datasets() == ("clinic",)
    assert [row.id for row in registry.unevaluated("clinic", version="1:d")] == ["m_2", "m_3"]
    assert registry.unevaluated("other", version="1:d") == ()
    begun = registry.begin_evaluation(
        "m_2", revision=0, version="1:d", most=5, instance="i_1", standing=True, again=False
    )
    assert not isinstance(begun, NotBegun)
    assert [row.id for row in registry.unevaluated("clinic", version="1:d")] == ["m_3"]
    assert len(registry.unevaluated("clinic", version="1:e")) == 2
    registry.change_principal("ann", disabled=True, actor="test")
    assert registry.unevaluated("clinic", version="1:d") == ()


def test_what_is_over_stays_as_it_is(registry: Registry) -> None:
    """Shows that an evaluation that was ended as one of a process that died takes no outcome any more."""
    row = registry.add_resource(MONITORS, ROW)
    assert _begun(registry) == 1
    assert registry.evaluating() == {"i_1"}
    assert [one.number for one in registry.evaluations_of({"i_1"})] == [1]
    assert registry.evaluations_of({"i_2"}) == ()
    assert registry.note_evaluation("m_1", 1, outcome="failed", detail=None, notice=NOTICE)
    assert registry.evaluating() == frozenset()
    assert not registry.end_evaluation(row, 1, outcome="passed", detail="{}", sealed=b"new", left=1, notice=NOTICE)
    assert not registry.note_evaluation("m_1", 1, outcome="passed", detail="{}", notice=NOTICE)
    assert registry.resource(MONITORS, "m_1") == row
    assert registry.evaluation("m_1", 1).outcome == "failed"
