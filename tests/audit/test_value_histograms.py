"""Histograms of values: each unit in one bin of each end, whatever its values and the order of rows; planted bugs."""

from __future__ import annotations

import datetime
import itertools
import math
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

import duckdb
import pytest

from engines.handlers.connection import identifier
from privacy.policy import Column, ColumnType, Dataset
from privacy.value_grid import BINS_PER_OCTAVE, GRIDDED, OCTAVES, YEARS, grid_of
from sql_rewrite import value_histogram as histograms
from sql_rewrite.relations import Relation, TableRows, Unfolded
from sql_rewrite.scalars import Named
from sql_rewrite.value_histogram import ValueHistogram, lower_histogram, value_histogram
from tests.audit.generate import Scene, make_scene, owner_of, restricted
from tests.audit.harness import Store
from tests.audit.interpreter import stored
from tests.audit.violation import Violation, require
from tests.sql_rewrite.datasets import CLINIC

SCENES = 12


def bin_of(value: Any, kind: ColumnType) -> int:
    """The definition: the bin of a value."""
    grid = grid_of(kind)
    if kind not in OCTAVES:
        return min(max((value.year - YEARS[0]) * 4 + (value.month - 1) // 3 + 1, grid.first), grid.last)
    least, greatest = OCTAVES[kind]
    size = abs(float(value))
    if size < 2.0**least:
        return 0
    if size >= 2.0**greatest:
        place = grid.last
    else:
        place = math.floor(BINS_PER_OCTAVE * math.log2(size * 2.0**-least)) + 1
    return place if value > 0 else -place


def reference(scene: Scene, histogram: ValueHistogram, units: frozenset[Any]) -> dict[int, int]:
    """Units by cell, from the definition."""
    rows = restricted(scene, units)
    part = replace(scene, rows=rows)
    values: dict[Any, list[Any]] = {}
    owners = owner_of(part, histogram.table)
    for row, owner in zip(rows[histogram.table], owners, strict=True):
        value = stored(row[histogram.column.name])
        if value is not None:
            values.setdefault(owner, []).append(value)
    cells: Counter[int] = Counter()
    for own in values.values():
        cells[bin_of(min(own), histogram.column.type)] += 1
        if histogram.moved is not None:
            cells[bin_of(max(own), histogram.column.type) + histogram.moved] += 1
    return dict(cells)


def measured(store: Store, histogram: ValueHistogram) -> dict[int, int]:
    """Units by cell, as the engine gives them to the mechanism."""
    columns, sums, _ = store.exact(lower_histogram(histogram)).reveal()
    return {int(cell): int(n) for cell, n in zip(columns["bin"], sums["s0_0"], strict=True)}  # type: ignore[call-overload]


def wanted(dataset: Dataset) -> Iterator[ValueHistogram]:
    """A histogram of every column that may have one."""
    for table in dataset.tables:
        for column in table.columns if table.protected else ():
            if column.type in GRIDDED:
                yield value_histogram("b0", table.name, column.name, dataset)


def audit(seed: int, *, exact: bool = True) -> None:
    """One scene and its neighbours: every histogram moves by no more than is declared, and is the one defined."""
    scene = make_scene(seed)
    units = frozenset(scene.units)
    gone = random.Random(seed).choice(sorted(units, key=repr))
    with closing(Store(scene, units, seed=1)) as one, closing(Store(scene, units - {gone}, seed=2)) as two:
        for histogram in wanted(scene.dataset):
            first, second = measured(one, histogram), measured(two, histogram)
            cells = {cell for (cell,) in histogram.bounded.described.keys.domain or ()}
            require(first.keys() | second.keys() <= cells, "a bin outside the grid")
            changes = [abs(first.get(cell, 0) - second.get(cell, 0)) for cell in cells]
            bound = histogram.bounded.described.statistics[0].sensitivity
            require(max(changes) <= bound.linf, "a unit counts more than once in a cell")
            require(sum(changes) <= bound.l1, f"a unit is in {sum(changes)} bins, declared {bound.l1}")
            require(sum(change**2 for change in changes) <= bound.l2_squared, "a change above the L2 bound")
            for found, present in ((first, units), (second, units - {gone})):
                if exact:
                    require(found == reference(scene, histogram, present), "not the histogram that is defined")


@pytest.mark.sparse(8)
@pytest.mark.parametrize("seed", range(SCENES))
def test_a_unit_moves_one_count_of_each_end(seed: int) -> None:
    """Random declarations and rows, joins to the unit included."""
    audit(seed)


EXTREMES: Mapping[ColumnType, list[Any]] = {
    ColumnType.INTEGER: [
        0, 1, -1, 2, 3, 4, -4, 90, -(2**63), 2**63 - 1, 2**45, 2**45 - 1, -(2**45), 2**44, 10**12,
    ],
    ColumnType.NUMBER: [
        0.0, -0.0, 5e-324, -5e-324, 2.0**-30, 2.0**-31, -(2.0**-30), 1.0, -1.0, 0.1, 1e308, -1e308,
        1.7976931348623157e308, 2.0**45, 2.0**44, 123.456,
    ],
    ColumnType.DATE: [
        datetime.date(1, 1, 1), datetime.date(9999, 12, 31), datetime.date(1800, 1, 1), datetime.date(1799, 12, 31),
        datetime.date(2199, 12, 31), datetime.date(2200, 1, 1), datetime.date(2024, 3, 31), datetime.date(2024, 4, 1),
    ],
    ColumnType.TIMESTAMP: [
        datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999),
        datetime.datetime(2024, 3, 31, 23, 59, 59, 999_999), datetime.datetime(2024, 4, 1),
    ],
}  # fmt: skip


def of_type(kind: ColumnType, *, one_row: bool) -> tuple[Dataset, ValueHistogram]:
    """A dataset whose visits, or people, have a column `x` of the type."""
    name = "people" if one_row else "visits"
    table = CLINIC.table(name)
    assert table is not None
    table = replace(table, columns=(*table.columns, Column("x", kind)))
    tables = tuple(table if other.name == name else other for other in CLINIC.tables)
    dataset = replace(CLINIC, tables=tables)
    return dataset, value_histogram("b0", name, "x", dataset)


@pytest.mark.parametrize("one_row", [True, False])
@pytest.mark.parametrize("kind", GRIDDED, ids=lambda kind: kind.value)
def test_nothing_raises_and_every_value_has_its_bin(kind: ColumnType, *, one_row: bool) -> None:
    """Extreme values, one unit each, NULL, and for numbers what a snapshot never has: NaN and infinities."""
    _, histogram = of_type(kind, one_row=one_row)
    values = [*EXTREMES[kind], None]
    expected = Counter(bin_of(value, kind) for value in values if value is not None)
    if kind is ColumnType.NUMBER:
        values += [math.inf, -math.inf, math.nan]
        last = grid_of(kind).last
        expected.update([last, -last, last])
    statement = lower_histogram(histogram)
    with closing(duckdb.connect(":memory:")) as connection:
        connection.execute(
            f'CREATE TABLE {identifier(histogram.table)} AS SELECT unnest($1::{kind.sql}[]) AS "x", '
            'unnest(range(len($1)))::INTEGER AS "unit$id"',
            [values],
        )
        found = {cell: low for cell, high, low in connection.execute(statement.sql).fetchall() if high == 0}
    if histogram.moved is not None:
        expected += Counter({cell + histogram.moved: n for cell, n in expected.items()})
    assert found == dict(expected)


@pytest.mark.slow
def test_the_order_of_rows_changes_nothing() -> None:
    """All orders of one unit's values, of which sums in floating point depend on it, give the same cells."""
    _, histogram = of_type(ColumnType.NUMBER, one_row=False)
    assert len({cells_of(histogram, list(order)) for order in itertools.permutations([1e16, 1.0, -1e16, 3.5])}) == 1


def cells_of(histogram: ValueHistogram, values: list[float]) -> tuple[tuple[int, int], ...]:
    """The cells of one unit with these rows."""
    with closing(duckdb.connect(":memory:")) as connection:
        connection.execute(
            'CREATE TABLE "visits" AS SELECT unnest($1::DOUBLE[]) AS "x", 0::INTEGER AS "unit$id"', [values]
        )
        found = connection.execute(lower_histogram(histogram).sql).fetchall()
    return tuple(sorted((cell, low) for cell, _, low in found))


def test_empty_and_null_columns_have_no_cells() -> None:
    """Shows that a histogram of nobody is empty."""
    _, histogram = of_type(ColumnType.NUMBER, one_row=False)
    assert cells_of(histogram, []) == ()


# Planted bugs


def _rows_counted(tree: Callable[[ValueHistogram], Relation]) -> Callable[[ValueHistogram], Relation]:
    """Each row counts in its own bin: the units are not grouped."""

    def planted(histogram: ValueHistogram) -> Relation:
        found = tree(histogram)
        if histogram.moved is not None:
            unfolded = found.rows.rows  # type: ignore[attr-defined]
            assert isinstance(unfolded, Unfolded)
            rows = unfolded.rows.rows  # type: ignore[attr-defined]
            assert isinstance(rows, TableRows)
            unfolded.rows = rows
            unfolded.values = tuple([histograms._bin(Named("x"), histogram.column.type)] * 2)
        return found

    return planted


def _both_ends_twice(tree: Callable[[ValueHistogram], Relation]) -> Callable[[ValueHistogram], Relation]:
    """A unit is also counted in the bin next to that of its least value."""

    def planted(histogram: ValueHistogram) -> Relation:
        found = tree(histogram)
        if histogram.moved is not None:
            unfolded = found.rows.rows  # type: ignore[attr-defined]
            assert isinstance(unfolded, Unfolded)
            unfolded.values = (*unfolded.values, unfolded.values[0])
        return found

    return planted


BUGS = (
    ("_tree", _rows_counted, "a unit (is in|counts more than once)"),
    ("_tree", _both_ends_twice, "a unit (is in|counts more than once)"),
)


@pytest.mark.parametrize(("where", "plant", "says"), BUGS, ids=[bug[1].__name__.strip("_") for bug in BUGS])
def test_planted_bugs_are_caught(
    where: str, plant: Callable[[Any], Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A unit in several bins is found by the neighbours alone, without the reference."""
    monkeypatch.setattr(histograms, where, plant(getattr(histograms, where)))
    said = []
    for seed in range(40):
        try:
            audit(seed, exact=False)
        except Violation as violation:
            said.append(str(violation))
            break
    assert said
    assert re.search(says, said[0])


def test_a_bin_of_a_sum_in_floating_point_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bin that depends on the order of rows is found by the test of orders."""

    def planted(which: str) -> str:
        return {"least": "SUM", "greatest": "SUM"}[which]

    from sql_rewrite.dialects.duckdb import DuckDB
    from sql_rewrite.layer_values import EndOf

    monkeypatch.setitem(
        DuckDB._writers, EndOf, lambda dialect, node: f"{planted(node.which)}({dialect.write(node.value)})"
    )
    _, histogram = of_type(ColumnType.NUMBER, one_row=False)
    orders = itertools.permutations([1e16, 1.0, -1e16, 3.5])
    assert len({cells_of(histogram, list(order)) for order in orders}) > 1
