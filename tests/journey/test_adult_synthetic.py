"""A synthetic table of the UCI Adult file (NOISEGATE_ADULT_CSV): its time, and its error on every pair of columns."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.synthetic import adult_services, distances, made_table, read

ADULT = os.environ.get("NOISEGATE_ADULT_CSV", "")

pytestmark = [
    pytest.mark.adult,
    pytest.mark.slow,
    pytest.mark.skipif(not ADULT, reason="set NOISEGATE_ADULT_CSV to the path of the UCI Adult file with person_id"),
]


def test_adult_is_made_within_a_minute_and_nearer_than_independent_columns(tmp_path: Path) -> None:
    """Shows fifteen columns in under 60 s, and pairs nearer than independent columns of the true distributions are."""
    true = read(Path(ADULT))
    assert len(true) == 15
    independent = distances(true, None)
    with adult_services(Path(ADULT), tmp_path) as services:
        drawn, seconds = made_table(services, "1", "ann")
    assert seconds < 60
    assert set(drawn) == set(true)
    assert len(drawn["age"]) == pytest.approx(32_561, abs=300)
    found = distances(true, drawn)
    assert found["mean"] < 0.75 * independent["mean"]
    assert found["greatest"] < 0.3 * independent["greatest"]
