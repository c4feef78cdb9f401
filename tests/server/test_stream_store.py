"""Streams in the registry, on SQLite and PostgreSQL: comparisons are counted once, and of two outcomes one is kept."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from server.store.registry import Registry
from server.store.resources import STREAMS, StreamRow
from server.store.streams import Turn
from tests.clocks import Clock
from tests.server.conftest import NOW, SECRET

ROW = StreamRow(
    id="st_1",
    principal="ann",
    dataset="clinic",
    account="b_1",
    price=None,
    terms="{}",
    frame=b"\x00frame",
    sealed=b"\x00secret",
    left=2,
)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def registry(request: pytest.FixtureRequest) -> Iterator[Registry]:
    """A registry on a fresh, migrated database: every test runs on both."""
    made = Registry(request.getfixturevalue(f"{request.param}_url"), secret=SECRET, clock=Clock(NOW))
    yield made
    made.close()


def begun(registry: Registry, row: StreamRow, wanted: int = 1, *, most: int = 9) -> Turn:
    """A turn of a stream, which is free."""
    turn = registry.begin_comparisons(row, wanted, most=most, instance="i_1")
    assert turn is not None
    return turn


def test_of_two_outcomes_at_once_one_is_kept(registry: Registry) -> None:
    """Shows that a state of before changes nothing, nor an answer that is there already, nor one of a closed stream."""
    row = registry.add_resource(STREAMS, ROW)
    assert registry.resource(STREAMS, "st_1") == row == replace(ROW, created="2026-03-01T12:00:00Z")
    turn = begun(registry, row)
    assert registry.end_comparisons(row, turn, {"a": "1", "b": "2"}, sealed=b"new", left=1)
    assert not registry.end_comparisons(row, turn, {"c": "3"}, sealed=b"old", left=1)
    assert registry.begin_comparisons(row, 1, most=9, instance="i_1") is None, "it would go on from a state of before"
    kept = registry.resource(STREAMS, "st_1")
    assert kept is not None
    assert (kept.sealed, kept.left, kept.revision) == (b"new", 1, 1)
    turn = begun(registry, kept)
    assert not registry.end_comparisons(kept, turn, {"a": "4"}, sealed=b"other", left=0)
    assert registry.resource(STREAMS, "st_1") == replace(kept, made=2, instance="i_1")
    registry.end_turn(turn)
    assert registry.resource(STREAMS, "st_1") == replace(kept, made=2)
    turn = begun(registry, kept)
    assert registry.stream_answers("st_1", ["a", "b", "c"]) == {"a": "1", "b": "2"}
    registry.close_stream("st_1", actor="ann")
    assert not registry.end_comparisons(kept, turn, {"d": "5"}, sealed=b"other", left=0)
    closed = registry.resource(STREAMS, "st_1")
    assert closed is not None
    assert (closed.sealed, closed.frame, closed.closed) == (b"", b"", "2026-03-01T12:00:00Z")
    assert registry.stream_answers("st_1", ["a"]) == {}


def test_comparisons_are_counted_up_to_the_most(registry: Registry) -> None:
    """Shows that as many are allowed as are left, and that those of another stream are its own."""
    row = registry.add_resource(STREAMS, ROW)
    other = registry.add_resource(STREAMS, replace(ROW, id="st_2", principal="bob"))
    assert begun(registry, other, most=5).allowed == 1
    for allowed in (3, 2, 0):
        turn = begun(registry, row, 3, most=5)
        assert turn.allowed == allowed
        registry.end_turn(turn)
    assert [row.id for row in registry.resources(STREAMS, "ann", dataset=None, after=None, count=9)] == ["st_1"]
    assert [row.id for row in registry.resources(STREAMS, None, dataset=None, after="st_2", count=9)] == ["st_1"]


def test_a_stream_has_one_turn_at_a_time(registry: Registry) -> None:
    """Shows two registries, as of two processes, whose threads begin at the same moment: one counts; and that a turn
    that was ended as one of a process that died stores nothing, also beside the next turn."""
    other = Registry(registry._engine.url.render_as_string(hide_password=False), secret=SECRET, clock=Clock(NOW))
    row = registry.add_resource(STREAMS, ROW)
    try:
        with ThreadPoolExecutor(4) as pool:
            turns = pool.map(lambda one: one.begin_comparisons(row, 2, most=9, instance="i_1"), [registry, other] * 2)
            (turn,) = [one for one in turns if one is not None]
        found = other.resource(STREAMS, "st_1")
        assert found is not None
        assert (found.made, found.instance) == (2, "i_1")
        assert other.comparing() == {"i_1"}
        assert (other.end_turns_of({"i_2"}), other.end_turns_of({"i_1"}), other.comparing()) == (0, 1, frozenset())
        second = begun(other, row)
        assert not registry.end_comparisons(row, turn, {"a": "1"}, sealed=b"old", left=1)
        registry.end_turn(turn)
        assert other.comparing() == {"i_1"}, "the second turn is not the first one's to end"
        assert other.end_comparisons(row, second, {"a": "2"}, sealed=b"new", left=1)
        assert (other.comparing(), other.stream_answers("st_1", ["a"])) == (frozenset(), {"a": "2"})
    finally:
        other.close()
