"""Workers that tests keep serve one engine after another, and none that is closed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from engines.shell import ShellEngine
from privacy.refusal import ExecutionFailed
from tests import kept_workers as kept
from tests.kept_workers import kept_workers

MEMORY_MB = 257
"""A size of its own, so that no other test has these workers."""


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
