"""How fast the machine is: measured beside the start, assumed to be slow until then."""

from __future__ import annotations

from pathlib import Path

import pytest

from engines.handlers.speed import probe_nanoseconds
from engines.private import SLOW_NANOSECONDS, PrivateEngine


def test_a_worker_measures_the_machine_while_every_slot_is_taken(tmp_path: Path) -> None:
    """Shows that the probe waits for no question, and no question for the probe."""
    engine = PrivateEngine(workers=1, temp_directory=tmp_path)
    try:
        assert engine.probe_nanoseconds() == SLOW_NANOSECONDS
        assert engine.wait_ready()
        with engine.lease(owner="somebody"):
            engine.measure()
        assert 0 < engine.probe_nanoseconds() != SLOW_NANOSECONDS
    finally:
        engine.close()


def test_a_machine_that_was_not_measured_counts_as_slow(tmp_path: Path) -> None:
    """Shows the side on which a failure errs: ticks are too long, never too short."""
    engine = PrivateEngine(workers=1, temp_directory=tmp_path)
    engine.close()
    engine.measure()
    assert engine.probe_nanoseconds() == SLOW_NANOSECONDS


@pytest.mark.nightly
def test_the_probe_is_work_that_does_not_vary_much() -> None:
    """Shows that two measurements of one quiet machine agree within a factor of five."""
    first, second = probe_nanoseconds(), probe_nanoseconds()
    assert 1 / 5 < first / second < 5
