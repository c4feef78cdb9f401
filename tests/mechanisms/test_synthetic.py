"""Models of synthetic tables: nearly without noise they give the marginals back, and values keep to their bins."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from mechanisms.synthetic.counts import Noisy
from mechanisms.synthetic.model import Model, narrowed
from mechanisms.synthetic.price import Synthesis
from mechanisms.synthetic.rounds import measured
from mechanisms.synthetic.values import values_of
from privacy.binned import BinnedColumn, Marginal, cells_of
from privacy.bounds import ValueBounds
from privacy.exact import Exact
from privacy.histogram import Grid, GridScale, Histogram, HistogramOf
from privacy.policy import Column, ColumnType, Other, PublicKeys
from privacy.refusal import ExecutionFailed
from tests.mechanisms.support import SeededBits


def keys(name: str, size: int, *, null: bool = False) -> BinnedColumn:
    """A column of so many keys."""
    values = tuple(f"{name}{place}" for place in range(size))
    histogram = Histogram(HistogramOf.KEYS, column=name, type=ColumnType.TEXT, keys=values, null=null)
    return BinnedColumn.of(name, histogram, chosen=False)


class Rows:
    """Rows of places, which are counted as a statement would count them."""

    def __init__(self, places: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> None:
        self.places = places

    def counts(self, columns: Sequence[BinnedColumn], marginal: Marginal) -> list[int]:
        cells = np.zeros(len(self.places), dtype=np.int64)
        for one in marginal:
            cells = cells * columns[one].size + self.places[:, one]
        return [int(count) for count in np.bincount(cells, minlength=cells_of(columns, marginal))]

    def __call__(self, columns: Sequence[BinnedColumn], marginals: Sequence[Marginal]) -> Exact:
        found = [
            (number, cell, count)
            for number, one in enumerate(marginals)
            for cell, count in enumerate(self.counts(columns, one))
            if count
        ]
        number, cell, count = zip(*found, strict=True)
        return Exact(keys={"k0": list(number), "k1": list(cell)}, sums={"c0_0": list(count)}, rows=len(found))


def chain(rows: int = 20_000) -> tuple[list[BinnedColumn], Rows]:
    """Five columns: each follows from the one before, the last one from two."""
    draw = np.random.default_rng(5)
    first = draw.integers(0, 3, rows)
    second = (first + (draw.random(rows) < 0.2)) % 3
    third = (second + (draw.random(rows) < 0.3)) % 3
    fourth = draw.integers(0, 4, rows)
    fifth = (third + second) % 3
    places = np.stack([first, second, third, fourth, fifth], axis=1)
    return [keys(name, size) for name, size in zip("abcde", (3, 3, 3, 4, 3), strict=True)], Rows(places)


def test_almost_without_noise_the_model_is_the_table() -> None:
    """Shows that pairs of a chain of columns come back, and a column of two others, which a tree of pairs misses."""
    columns, rows = chain()
    bits = SeededBits(2)
    noisy, kept = measured(Synthesis(5, 1, Fraction(10**6)), columns, rows, bits)
    assert any(len(one.marginal) == 3 for one in noisy)
    model = Model.of(kept, noisy)
    drawn = Rows(model.drawn(20_000, bits))
    assert round(model.total) == 20_000
    for pair in [*itertools.combinations(range(5), 2), (1, 2, 4)]:
        apart = np.abs(np.array(drawn.counts(columns, pair)) - np.array(rows.counts(columns, pair))).sum() / 40_000
        assert apart < 0.02, pair


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_columns_are_measured_without_a_choice(count: int) -> None:
    """Shows the fixed marginals of tables of one, two and three columns, and that they give the joint table back."""
    columns, rows = chain()
    columns, rows = columns[:count], Rows(rows.places[:, :count])
    noisy, kept = measured(Synthesis(count, 1, Fraction(10**6)), columns, rows, SeededBits(1))
    assert [len(one.marginal) for one in noisy] == [1] * count + [2] * (count - 1) + [3] * (count == 3)
    drawn = Rows(Model.of(kept, noisy).drawn(20_000, SeededBits(3)))
    whole = tuple(range(count))
    apart = np.abs(np.array(drawn.counts(columns, whole)) - np.array(rows.counts(columns, whole))).sum() / 40_000
    assert apart < 0.02


def test_the_model_is_consistent_and_never_negative() -> None:
    """Shows that noisy marginals that contradict each other agree afterwards: one total, one margin of each column."""
    columns = [keys("a", 3), keys("b", 4), keys("c", 2)]
    draw = np.random.default_rng(1)
    noisy = [
        Noisy(one, draw.normal(50, 60, tuple(columns[place].size for place in one)), 60.0)
        for one in [(0,), (1,), (2,), (0, 1), (1, 2)]
    ]
    model = Model.of(columns, noisy)
    assert all((table >= 0).all() for table in model.tables.values())
    for child, parents in model.parents.items():
        assert model.tables[child].sum() == pytest.approx(model.total)
        if parents:
            (parent,) = parents
            above = model.tables[parent].reshape(-1, columns[parent].size).sum(axis=0)
            assert model.tables[child].sum(axis=1) == pytest.approx(above, rel=1e-3, abs=0.1)


def test_what_no_statement_returns_fails() -> None:
    """Shows that cells out of range, repeated or negative are one opaque failure."""
    columns = [keys("a", 3)]
    for number, cell, count in ([0], [3], [1]), ([1], [0], [1]), ([0, 0], [1, 1], [1, 1]), ([0], [0], [-1]):
        exact = Exact(keys={"k0": number, "k1": cell}, sums={"c0_0": count}, rows=len(number))
        with pytest.raises(ExecutionFailed):
            measured(Synthesis(1, 1, Fraction(1)), columns, lambda *_, exact=exact: exact, SeededBits(1))


def grid(kind: ColumnType, of: Grid, bounds: tuple[int, int] | None) -> tuple[Column, BinnedColumn]:
    """A column of numbers or dates on a grid, NULL included."""
    given = None if bounds is None else ValueBounds(Fraction(bounds[0]), Fraction(bounds[1]))
    histogram = Histogram(HistogramOf.VALUES, column="x", type=kind, grid=of, null=True)
    return Column("x", kind, bounds=given), BinnedColumn.of("x", histogram, chosen=bounds is None)


def test_values_lie_in_their_bins() -> None:
    """Shows that whole numbers stay whole and within bounds, dates in their months, and NULL is NULL."""
    column, binned = grid(ColumnType.INTEGER, Grid(GridScale.LINEAR, Fraction(1), Fraction(7), 3), (1, 16))
    places = np.array([0, 1, 2, 3] * 200)
    values = values_of(column, binned, places, SeededBits(4))
    assert {type(value) for value in values} == {int, type(None)}
    assert {value for value in values if value is not None} == set(range(1, 17))
    assert all((value is None) == (place == 3) for value, place in zip(values, places.tolist(), strict=True))
    day, months = grid(ColumnType.DATE, Grid(GridScale.MONTHS, Fraction(12 * 2024), Fraction(1), 12), None)
    found = values_of(day, months, np.array([1] * 300), SeededBits(5))
    assert {value.month for value in found if isinstance(value, datetime.date)} == {2}
    assert max(value.day for value in found if isinstance(value, datetime.date)) == 29
    size, sizes = grid(ColumnType.NUMBER, Grid(GridScale.LOGARITHMIC, Fraction(0), Fraction(1), 4), None)
    numbers = values_of(size, sizes, np.array([0, 3, 4, 5, 8]), SeededBits(6))
    ends = [(-16, -8), (-2, -1), (0, 0), (1, 2), (8, 16)]
    assert all(low <= float(str(value)) <= high for value, (low, high) in zip(numbers, ends, strict=True))
    other = Histogram(HistogramOf.KEYS, column="k", type=ColumnType.TEXT, keys=("a",), other=True)
    text = Column("k", ColumnType.TEXT, keys=PublicKeys(("a",), Other("rest")))
    assert values_of(text, BinnedColumn.of("k", other, chosen=False), np.array([0, 1]), SeededBits(1)) == ("a", "rest")


def test_columns_without_bounds_keep_the_places_that_have_rows() -> None:
    """Shows that the range follows from noisy counts well above their noise, and that NULL stays."""
    _, binned = grid(ColumnType.NUMBER, Grid(GridScale.LOGARITHMIC, Fraction(0), Fraction(1), 4), None)
    counts = np.array([3.0, 900, -2, 0, 800, 5, 0, 0, 0, 77])
    (kept,), (noisy,) = narrowed([binned], [Noisy((0,), counts, 10.0)])
    assert (kept.first, kept.last, kept.size) == (1, 4, 5)
    assert noisy.counts.tolist() == [900, -2, 0, 800, 77]
