"""What a profile says of its noisy histograms: intervals cover as often as they say, and nothing is said of nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mechanisms.interval import Floats
from mechanisms.measurement import Law
from mechanisms.profile import (
    NoisyCounts,
    Range,
    count_range,
    difference_range,
    quantile_place,
    rows_range,
    share_range,
)

ALPHA = 0.05
RUNS = 400
MISSES_MOST = 38
"""Of 400 runs at 5 %: more happen with probability 2e-4."""

TRUE = np.array([0, 0, 40, 300, 900, 1_400, 700, 0, 0, 650, 200, 90, 0, 0, 0, 0, 30, 0, 0, 0], float)


def _noisy(law: Law, scale: float, source: np.random.Generator, true: Floats = TRUE) -> NoisyCounts:
    noise = source.normal(0, scale, len(true)) if law is Law.NORMAL else source.laplace(0, scale, len(true))
    return NoisyCounts(np.rint(true + noise), law, scale, 0.5)


LAWS = [(Law.NORMAL, 25.0), (Law.LAPLACE, 25.0)]


def _quantile_misses(law: Law, scale: float, told_scale: float, level: float) -> int:
    source = np.random.default_rng(7)
    total = float(TRUE.sum())
    units = Range(total, total - 10, total + 10)
    place = int(np.searchsorted(np.cumsum(TRUE), level * total))
    misses = 0
    for _ in range(RUNS):
        counts = replace(_noisy(law, scale, source), scale=told_scale)
        found = quantile_place(counts, level, ALPHA, units=units)
        assert found is not None
        misses += not found.first <= place <= found.last
    return misses


@pytest.mark.slow
@pytest.mark.parametrize(("law", "scale"), LAWS)
@pytest.mark.parametrize("level", [0.05, 0.5, 0.95])
def test_a_quantile_lies_in_its_set(law: Law, scale: float, level: float) -> None:
    """The true place is between the first and the last one at least as often as was said."""
    assert _quantile_misses(law, scale, scale, level) <= MISSES_MOST


def test_a_set_for_less_noise_is_noticed() -> None:
    """A planted bug: intervals of a tenth of the noise miss more often than that."""
    assert _quantile_misses(Law.NORMAL, 60.0, 6.0, 0.05) > MISSES_MOST


@pytest.mark.slow
@pytest.mark.parametrize(("law", "scale"), LAWS)
def test_counts_differences_and_shares_cover(law: Law, scale: float) -> None:
    """Each range has its true value at least as often as was said."""
    source = np.random.default_rng(11)
    misses = {"count": 0, "difference": 0, "share": 0}
    for _ in range(RUNS):
        whole = _noisy(law, scale, source, np.array([5_000.0]))
        part = _noisy(law, scale, source, np.array([700.0]))
        counted = count_range(whole, ALPHA)
        misses["count"] += not counted.low <= 5_000 <= counted.high
        left = difference_range(whole, part, ALPHA)
        misses["difference"] += not left.low <= 4_300 <= left.high
        share = share_range(count_range(part, ALPHA / 2), count_range(whole, ALPHA / 2))
        assert share is not None
        misses["share"] += not share.low <= 700 / 5_000 <= share.high
    assert max(misses.values()) <= MISSES_MOST


@pytest.mark.slow
@pytest.mark.parametrize(("law", "scale"), LAWS)
def test_rows_cover(law: Law, scale: float) -> None:
    """All rows lie within their ends, and the lower end is not far below."""
    source = np.random.default_rng(13)
    least = np.array([1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91, 128, 182, 256, 363, 512], float)
    greatest = np.array([*(least[1:] - 1), 724.0])
    rows = float(TRUE @ ((least + greatest) / 2))
    total = float(TRUE.sum())
    misses, lows = 0, []
    for _ in range(RUNS):
        counts = _noisy(law, scale, source)
        found = rows_range(counts, least, greatest, ALPHA, units=Range(total, total, total))
        assert found is not None
        misses += not found.low <= rows <= found.high
        lows.append(found.low)
    assert misses <= MISSES_MOST
    assert np.median(lows) > 0.6 * rows


def test_nothing_is_said_of_nobody() -> None:
    """Where there may be no unit there is no quantile, no share and no number of rows; a count is not negative."""
    none = Range(0.0, 0.0, 60.0)
    counts = NoisyCounts(np.array([-30.0, 12.0, 5.0]), Law.NORMAL, 25.0, 0.5)
    assert quantile_place(counts, 0.5, ALPHA, units=none) is None
    assert share_range(none, none) is None
    assert rows_range(counts, np.array([1.0, 2, 3]), np.array([1.0, 2, 9]), ALPHA, units=none) is None
    told = count_range(counts, ALPHA)
    assert told.low == 0
    assert told.value >= 0
    assert difference_range(counts, counts, ALPHA).low == 0


def test_noise_of_unknown_law_is_no_profile() -> None:
    """Sums of it have no known quantile."""
    counts = NoisyCounts(np.array([1.0]), Law.OTHER, 1.0, 0.5)
    with pytest.raises(ValueError, match="known law"):
        count_range(counts, ALPHA)
