"""By how much what a norm cuts may move a column: the bounds hold for units as they come, and warnings name columns."""

from __future__ import annotations

import numpy as np
import pytest

from server.journey.column_cut import NOTABLE, Cut


@pytest.mark.parametrize("seed", range(40))
def test_an_average_moves_no_further_than_the_part_of_the_rows_that_is_cut(seed: int) -> None:
    """Shows the claim on units with any rows, values and weights; the bound is attained, so a smaller one is wrong."""
    random = np.random.default_rng(seed)
    counts = random.integers(1, 50, 30).astype(float)
    values = np.where(random.random(30) < 0.5, 0.0, random.uniform(0, 100, 30))
    weights = np.minimum(1, random.uniform(1, 30) / counts)
    if seed % 2:  # all that is cut lies at one end
        values = np.where(weights < 1, 100.0, 0.0)
    part = float(((1 - weights) * counts).sum() / counts.sum())
    kept = float((weights * counts * values).sum() / (weights * counts).sum())
    true = float((counts * values).sum() / counts.sum())
    low, high = Cut(part, either=True, held=(0.0, 100.0)).widened(kept, kept)
    assert low - 1e-9 <= true <= high + 1e-9
    if seed % 2 and part > 0.01 and kept < 99:
        tighter = Cut(part * 0.9, either=True, held=(0.0, 100.0)).widened(kept, kept)
        assert not tighter[0] <= true <= tighter[1]


@pytest.mark.parametrize("part", [0.0, 0.01, 0.3, 0.99])
def test_a_count_and_a_sum_hold_what_was_cut_of_them(part: float) -> None:
    """Shows that the whole lies within the widened interval, of a count above, of a sum on either side."""
    whole = 1_000.0
    kept = whole * (1 - part)
    low, high = Cut(part, either=False).widened(kept, kept)
    assert low == kept
    assert high >= whole - 1e-6
    low, high = Cut(part, either=True).widened(-kept, -kept)
    assert low <= -whole + 1e-6


def test_what_is_notable_costs_an_interval_some_of_its_confidence() -> None:
    """Shows the figures of the threshold: at half of the half width 95 % are 83 %, and at all of it 50 %."""
    from math import erf, sqrt

    def held(moved: float) -> float:
        below, above = (1.96 * (1 - moved)) / sqrt(2), (1.96 * (1 + moved)) / sqrt(2)
        return (erf(below) + erf(above)) / 2

    assert held(NOTABLE) == pytest.approx(0.835, abs=0.005)
    assert held(1.0) == pytest.approx(0.5, abs=0.005)
    assert Cut(0.01, either=False).moves(990, 1010) == pytest.approx(1.02, abs=0.01)
    assert Cut(0.01, either=False, held=None).moves(5, 5) == 0
    assert Cut(0.011, either=False, likely=0.001).notable(990, 1010)
    assert Cut(0.009, either=False, likely=0.006).notable(990, 1010)
    assert not Cut(0.009, either=False, likely=0.004).notable(990, 1010)
