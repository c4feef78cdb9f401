"""Value bounds that noisy histograms choose: near those of the values, robust against noise, honest about nothing."""

from __future__ import annotations

import bisect
import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks.value_bounds import ratios
from mechanisms.value_bounds import BoundsChoice, _evidence, _Noise, choose_bounds
from privacy.policy import ColumnType
from privacy.value_grid import GRIDDED, YEARS, ValueGrid, grid_of

Floats = npt.NDArray[np.float64]
INTEGER, NUMBER, DATE = ColumnType.INTEGER, ColumnType.NUMBER, ColumnType.DATE
RUNS = 40


def histogram(values: Floats, grid: ValueGrid) -> Floats:
    """Units by bin: the last bin that begins at or below the value, which is near enough to the statement's."""
    starts = [float(low) for low in grid.lows]
    counts = np.zeros(len(starts))
    for value in values:
        counts[max(bisect.bisect_right(starts, float(value)) - 1, 0)] += 1
    return counts


def choices(values: Floats, kind: ColumnType, epsilon: float, runs: int = RUNS) -> list[BoundsChoice]:
    """Bounds from a quarter of the epsilon, Laplace noise."""
    draw = np.random.Generator(np.random.PCG64(7))
    grid = grid_of(kind)
    counts = histogram(values, grid)
    found = []
    for _ in range(runs):
        noisy = list(counts + draw.laplace(0, 4 / epsilon, len(counts)))
        found.append(
            choose_bounds(
                noisy,
                noisy,
                grid,
                deviation=math.sqrt(2) * 4 / epsilon,
                cells=1,
                noise=math.sqrt(2) / (0.75 * epsilon),
                from_zero=False,
            )
        )
    return found


def error(values: Floats, lower: float, upper: float, epsilon: float) -> float:
    """Root-mean-square error of the sum with these bounds."""
    bias = float((np.clip(values, lower, upper) - values).sum())
    return math.hypot(bias, math.sqrt(2) * (upper - lower) / (0.75 * epsilon))


def best(values: Floats, epsilon: float) -> float:
    """The least error in hindsight."""
    lowers = {0.0, *np.quantile(values, [0, 0.001, 0.01, 0.05])}
    uppers = set(np.quantile(values, [0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 1]))
    return min(error(values, low, high, epsilon) for low in lowers for high in uppers if low < high)


DRAW = np.random.Generator(np.random.PCG64(5))


@pytest.mark.sparse(4)
@pytest.mark.parametrize(
    ("values", "kind", "epsilon", "most"),
    [
        (np.round(np.exp(DRAW.normal(8, 1.0, 5_000))), INTEGER, 0.5, 2.0),
        (np.exp(DRAW.normal(0, 1.0, 20_000)), NUMBER, 0.5, 2.0),
        (np.round(1_000 * (1 + DRAW.pareto(1.5, 20_000))), INTEGER, 0.5, 2.5),
        (np.round(DRAW.uniform(0, 1_000, 2_000)), INTEGER, 0.5, 2.5),
        (DRAW.normal(0, 100, 2_000), NUMBER, 1.0, 3.0),
        (DRAW.normal(-5_000, 50, 2_000), NUMBER, 1.0, 18.0),
    ],
    ids=["log-normal", "small log-normal", "Pareto", "uniform", "around zero", "far from zero"],
)
def test_chosen_bounds_are_nearly_as_good_as_the_best_in_hindsight(
    values: Floats, kind: ColumnType, epsilon: float, most: float
) -> None:
    """Root-mean-square error of a sum, over the noise of histograms, to that of the best bounds.

    Far from zero a bin is much wider than the values.
    """
    errors = [error(values, float(c.lower), float(c.upper), epsilon) for c in choices(values, kind, epsilon)]
    assert math.sqrt(sum(e * e for e in errors) / len(errors)) <= most * best(values, epsilon)


def test_bounds_of_dates_are_quarters() -> None:
    """Shows bounds of dates within a year around the true ones."""
    days = np.round(DRAW.uniform(738_000, 738_600, 3_000))
    for choice in choices(days, DATE, 1.0):
        assert choice.certain
        assert 737_600 <= choice.lower <= 738_100
        assert 738_500 <= choice.upper <= 739_000


@pytest.mark.parametrize("kind", GRIDDED, ids=lambda kind: kind.value)
def test_a_histogram_of_nobody_is_not_certain(kind: ColumnType) -> None:
    """Shows that noise alone does not pass for units, and that there are bounds all the same."""
    found = choices(np.array([]), kind, 1.0, runs=30)
    assert not any(choice.certain for choice in found)
    assert all(choice.lower <= choice.upper for choice in found)


@pytest.mark.parametrize(("value", "lower", "upper"), [(0, 0, 0), (42, 39, 45), (-42, -45, -39), (1, 1, 1)])
def test_equal_values_have_their_own_bin(value: int, lower: int, upper: int) -> None:
    """Shows that a column in which all values are equal gets narrow bounds around them."""
    values = np.full(3_000, float(value))
    found = choices(values, INTEGER, 1.0)
    assert sorted(c.lower for c in found)[RUNS // 2] == lower
    assert sorted(c.upper for c in found)[RUNS // 2] == upper


def test_values_beyond_the_grid_are_clipped_to_its_ends() -> None:
    """Shows the ends of the grid where everything lies beyond, on both sides."""
    grid = grid_of(INTEGER)
    for choice in choices(np.concatenate([np.full(2_000, 1e17), np.full(2_000, -1e17)]), INTEGER, 1.0, runs=5):
        assert (choice.lower, choice.upper) == (grid.lows[0], grid.highs[-1])
        assert choice.certain


def test_one_extreme_value_does_not_move_the_bounds() -> None:
    """Shows that one unit's value, far away from all others, is clipped."""
    values = np.concatenate([np.full(2_000, 50.0), [1e12]])
    assert all(choice.upper < 10_000 for choice in choices(values, INTEGER, 1.0))


@pytest.mark.parametrize("kind", GRIDDED, ids=lambda kind: kind.value)
def test_grids_have_no_gaps(kind: ColumnType) -> None:
    """Ends rise from bin to bin, and no value between the outermost ones lies far from a bin."""
    grid = grid_of(kind)
    assert len(grid.bins) == len(grid.lows) == len(grid.highs)
    for low, high in zip(grid.lows, grid.highs, strict=True):
        assert low <= high
    assert list(grid.lows) == sorted(grid.lows)
    assert list(grid.highs) == sorted(grid.highs)
    for high, low in zip(grid.highs, grid.lows[1:], strict=False):
        assert low <= high + max(Fraction(1), abs(high) / 50)


def test_grids_of_numbers_are_symmetric() -> None:
    """Shows that the negative bins mirror the positive ones."""
    for kind in (INTEGER, NUMBER):
        grid = grid_of(kind)
        assert grid.first == -grid.last
        assert grid.lows == tuple(-high for high in reversed(grid.highs))
    assert len(grid_of(DATE).bins) == 4 * (YEARS[1] - YEARS[0]) + 2


@pytest.mark.parametrize("laplace", [True, False], ids=["Laplace", "Gaussian"])
@pytest.mark.parametrize(
    ("shape", "units", "most"),
    [("years", 500, 9.0), ("far from zero", 500, 8.0), ("around zero", 500, 2.5), ("log-normal", 1_000, 2.5)],
)
def test_small_columns_have_bounds_near_the_best(shape: str, units: int, most: float, laplace: bool) -> None:
    """Shows the error of a sum of few units to that within the best bounds.

    For years it was 38 to 84 times on average: after a single full bin nothing steep enough was thought of, and bounds
    reached an octave further. A bin itself is 5 to 8 times as wide as such values.
    """
    assert ratios(shape, units, 1.0, 15, laplace=laplace)[0] <= most


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("laplace", [True, False], ids=["Laplace", "Gaussian"])
def test_evidence_is_at_most_what_noise_leaves(width: int, laplace: bool) -> None:
    """Shows that noise alone reaches a count no more often than its evidence says, and not far less often."""
    draw = np.random.Generator(np.random.PCG64(3))
    size = (200_000, width)
    noise = draw.laplace(0, math.sqrt(0.5), size) if laplace else draw.normal(0, 1, size)
    sums = np.sort(noise.sum(axis=1))[::-1]
    for rank in (50, 500, 5_000):
        reached = float(sums[rank])
        said = float(_evidence(np.array([reached]), _Noise(1.0, laplace), width)[0])
        assert said <= -math.log((rank + 1) / len(sums)) + 0.3
        assert said >= -math.log((rank + 1) / len(sums)) - 3.5


@pytest.mark.sparse(8)
@pytest.mark.parametrize("laplace", [True, False], ids=["Laplace", "Gaussian"])
@pytest.mark.parametrize("scale", [0.08, 0.2, 0.4, 1.0])
def test_small_rounded_noise_does_not_look_like_units(scale: float, laplace: bool) -> None:
    """Shows bounds around the values where the noise is rounded to a few ones among zeros, as at a large epsilon."""
    draw = np.random.Generator(np.random.PCG64(11))
    grid = grid_of(INTEGER)
    counts = histogram(np.round(draw.uniform(100, 1_000, 2_000)), grid)
    for _ in range(100):
        noise = np.round(draw.laplace(0, scale, len(counts)) if laplace else draw.normal(0, scale, len(counts)))
        deviation = max(float(noise.std()), 1e-3)
        found = choose_bounds(
            list(counts + noise),
            list(counts + noise),
            grid,
            deviation=deviation,
            cells=1,
            noise=0.2,
            from_zero=False,
            laplace=laplace,
        )
        assert found.certain
        assert 0 <= found.lower <= found.upper <= 4_000


def test_units_that_no_bin_shows_are_stated_as_cut() -> None:
    """Shows the stated part where nine of ten values are zero, and the others far away in bins that noise hides.

    Bounds are those of zero alone. In 36 of 40 choices it was stated that nobody lies beyond them; now in 8.
    """
    draw = np.random.Generator(np.random.PCG64(9))
    values = np.where(draw.random(1_500) < 0.9, 0.0, np.round(np.exp(draw.normal(8.5, 1, 1_500))))
    silent = 0
    for choice in choices(values, INTEGER, 1.0):
        assert choice.share is not None
        assert choice.share_error is not None
        beyond = float(((values < choice.lower) | (values > choice.upper)).mean())
        silent += choice.share + 3 * choice.share_error < beyond
    assert silent <= 12
    plain = choices(np.round(draw.uniform(1, 100, 2_000)), INTEGER, 1.0)
    assert sum((choice.share or 0) > 0.05 for choice in plain) <= RUNS // 8


def test_bounds_of_hardly_anybody_are_of_everyday_size() -> None:
    """Shows that noise alone hardly ever chooses bounds in the billions: nobody is certain, and all bins look alike."""
    uppers = [max(abs(float(c.lower)), abs(float(c.upper))) for c in choices(np.array([]), INTEGER, 1.0, runs=100)]
    assert sorted(uppers)[95] <= 2.0**27
