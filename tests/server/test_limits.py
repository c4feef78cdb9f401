"""Token buckets."""

from __future__ import annotations

from server import limits
from server.limits import RateLimit
from tests.clocks import Clock


def test_a_bucket_refills_with_time_and_not_beyond_its_burst() -> None:
    """Three at once, then one per second; an hour of silence gives no more than three."""
    clock = Clock(0.0)
    rate = RateLimit(per_minute=60, burst=3, clock=clock)
    assert [rate.take("a") for _ in range(4)] == [0, 0, 0, 1]
    clock.now = 1.0
    assert [rate.take("a") for _ in range(2)] == [0, 1]
    clock.now = 3600.0
    assert [rate.take("a") for _ in range(4)] == [0, 0, 0, 1]


def test_names_do_not_share_buckets_and_memory_is_bounded(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """Each name has its own tokens; the names that were idle longest are forgotten first."""
    monkeypatch.setattr(limits, "BUCKETS_MAX", 2)
    rate = RateLimit(per_minute=1, burst=1, clock=lambda: 0.0)
    assert [rate.take("a"), rate.take("b"), rate.take("a")] == [0, 0, 60]
    assert rate.take("c") == 0
    assert rate.take("a") == 60
    assert rate.take("b") == 0


def test_a_clock_that_goes_back_gives_nothing() -> None:
    """Time that runs backwards neither refills nor raises."""
    clock = Clock(100.0)
    rate = RateLimit(per_minute=60, burst=1, clock=clock)
    rate.take("a")
    clock.now = 0.0
    assert rate.take("a") == 1
