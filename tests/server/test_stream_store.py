"""Streams in the registry, on SQLite and PostgreSQL: comparisons are counted once, and of two outcomes one is kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from server.store.registry import Registry
from server.store.streams import StreamRow
from tests.clocks import Clock
from tests.databases import (  # noqa: F401 - fixtures are found by their names
    empty_postgresql_url,
    postgresql_server,
    postgresql_template,
    postgresql_url,
    sqlite_template,
    sqlite_url,
)
from tests.server.conftest import NOW, SECRET

ROW = StreamRow(
    id="st_1",
    principal="ann",
    dataset="clinic",
    account="b_1",
    created="",
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


def test_of_two_outcomes_at_once_one_is_kept(registry: Registry) -> None:
    """Shows that a state of before changes nothing, nor an answer that is there already, nor one of a closed stream."""
    row = registry.add_stream(ROW)
    assert registry.stream("st_1") == row == replace(ROW, created="2026-03-01T12:00:00Z")
    assert registry.end_comparisons(row, {"a": "1", "b": "2"}, sealed=b"new", left=1)
    assert not registry.end_comparisons(row, {"c": "3"}, sealed=b"old", left=1)
    kept = registry.stream("st_1")
    assert kept is not None
    assert (kept.sealed, kept.left, kept.revision) == (b"new", 1, 1)
    assert not registry.end_comparisons(kept, {"a": "4"}, sealed=b"other", left=0)
    assert registry.stream("st_1") == kept
    assert registry.stream_answers("st_1", ["a", "b", "c"]) == {"a": "1", "b": "2"}
    registry.close_stream("st_1", actor="ann")
    assert not registry.end_comparisons(kept, {"d": "5"}, sealed=b"other", left=0)
    closed = registry.stream("st_1")
    assert closed is not None
    assert (closed.sealed, closed.frame, closed.closed) == (b"", b"", "2026-03-01T12:00:00Z")
    assert registry.stream_answers("st_1", ["a"]) == {}


def test_comparisons_are_counted_up_to_the_most(registry: Registry) -> None:
    """Shows that as many are allowed as are left, and that those of another stream are its own."""
    registry.add_stream(ROW)
    registry.add_stream(replace(ROW, id="st_2", principal="bob"))
    assert [registry.count_comparisons("st_1", 3, most=5) for _ in range(3)] == [3, 2, 0]
    assert registry.count_comparisons("st_2", 1, most=5) == 1
    assert [row.id for row in registry.streams("ann", after=None, count=9)] == ["st_1"]
    assert [row.id for row in registry.streams(None, after="st_2", count=9)] == ["st_1"]
