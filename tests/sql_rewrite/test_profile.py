"""Profiles: each unit is counted once in each histogram, in bins that follow from its own rows alone."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import random
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import duckdb
import pytest

from privacy.bounds import ContributionBound, ValueBounds, number_of_date
from privacy.histogram import Histogram, HistogramOf
from privacy.policy import Column, ColumnType, Dataset, Other, PublicKeys, Reference, Table
from privacy.unit import PrivacyUnit
from sql_rewrite.dialects.dialect import Dialect, writes
from sql_rewrite.dialects.duckdb import DUCKDB, DuckDB
from sql_rewrite.dialects.duckdb_costs import DUCKDB_COSTS
from sql_rewrite.layer_values import LeastPlace
from sql_rewrite.profile import ProfiledTable, lower_profile, profile_key, profile_work, profiled_tables
from sql_rewrite.relations import Grouped, Listed

MONDAY, LAST = datetime.date(2020, 1, 6), datetime.date(2021, 12, 31)
WHOLE = (0, 1, -1, 2**62, -(2**62), 7, 8)
NUMBERS = (0.0, 1e-300, -1e-300, 1.7e308, -1.7e308, 2.5, -3.0, 1024.0)


def _bounds(lower: object, upper: object) -> ValueBounds:
    ends = [number_of_date(end) if isinstance(end, datetime.date) else Fraction(str(end)) for end in (lower, upper)]
    return ValueBounds(*ends)


COLUMNS = (
    Column("visit", ColumnType.INTEGER, nullable=False),
    Column("person", ColumnType.INTEGER, nullable=False),
    Column("place", ColumnType.INTEGER),
    Column("ward", ColumnType.TEXT, keys=PublicKeys(("north", "south", None))),
    Column("town", ColumnType.TEXT, keys=PublicKeys(("a", "b", "rest"), Other("rest"))),
    Column("lost", ColumnType.TEXT, keys=PublicKeys(("a", "b"), Other(None)), nullable=False),
    Column("kind", ColumnType.INTEGER, keys=PublicKeys((3, 1, 2))),
    Column("age", ColumnType.INTEGER, bounds=_bounds(0, 110)),
    Column("score", ColumnType.NUMBER, bounds=_bounds("-1.5", "2.5")),
    Column("count", ColumnType.INTEGER),
    Column("cost", ColumnType.NUMBER),
    Column("day", ColumnType.DATE, bounds=_bounds(MONDAY, LAST)),
    Column("moment", ColumnType.TIMESTAMP),
    Column("smoker", ColumnType.BOOLEAN),
    Column("note", ColumnType.TEXT),
    Column("said", ColumnType.TEXT, nullable=False),
)
BOUND = ContributionBound(rows_per_unit=5, groups_per_unit=2, rows_per_unit_and_group=3)


def _table(*, one_row: bool) -> Table:
    return Table(
        name="visits",
        columns=COLUMNS,
        protected=True,
        key="person" if one_row else "visit",
        references=(Reference("place", "places", "place"),),
        unit_column="person",
        contribution=BOUND,
        rows_stored_per_unit=6_000,
    )


def _dataset(table: Table, data_version: str = "d1") -> Dataset:
    return Dataset("clinic", PrivacyUnit("visits", "person"), (table,), 1, data_version)


EXAMPLE = _dataset(_table(one_row=False))
"""A dataset of which the profile has every kind of histogram."""


def _profiled(*, one_row: bool) -> ProfiledTable:
    (found,) = profiled_tables(_dataset(_table(one_row=one_row)))
    return found


def _row(source: random.Random) -> tuple[Any, ...]:
    """The columns of a row behind visit and person."""

    def maybe(value: object) -> object:
        return None if source.random() < 0.2 else value

    return (
        maybe(source.randrange(5)),
        maybe(source.choice(["north", "south"])),
        maybe(source.choice(["a", "b", "c", "rest", ""])),
        maybe(source.choice(["a", "b", "c"])),
        maybe(source.choice([1, 2, 3])),
        maybe(source.choice([0, 1, 110, 55, -4, 10**9])),
        maybe(source.choice([-1.5, 2.5, 0.1, -1e300, 1e300])),
        maybe(source.choice(WHOLE)),
        maybe(source.choice(NUMBERS)),
        maybe(MONDAY + datetime.timedelta(days=source.randrange(-400, 1_100))),
        maybe(datetime.datetime(source.choice([1, 1899, 1950, 2024, 9999]), 5, 6, 7)),
        maybe(source.random() < 0.5),
        maybe(source.choice(["x", ""])),
        "said",
    )


Rows = dict[int, list[tuple[Any, ...]]]


def _rows(source: random.Random, sizes: list[int]) -> Rows:
    return {unit: [_row(source) for _ in range(size)] for unit, size in enumerate(sizes)}


class _Engine:
    """Tables as a snapshot stores them."""

    def __init__(self) -> None:
        self.connection = duckdb.connect(":memory:")
        types = {column.name: column.type.sql for column in COLUMNS} | {"ward": "ENUM('north', 'south')"}
        self.types = [*types.values(), "INTEGER", "UBIGINT"]
        listed = ", ".join(f'"{name}" {kind}' for name, kind in types.items())
        self.connection.execute(f'CREATE TABLE visits ({listed}, "unit$id" INTEGER, "unit$draw" UBIGINT)')

    def counts(
        self, profiled: ProfiledTable, rows: Rows, dialect: Dialect = DUCKDB, *, order: int = 0, threads: int = 1
    ) -> Counter[tuple[int, int]]:
        """The units of each bin of each histogram, with rows and numbers of units in some order."""
        self.connection.execute(f"SET threads = {threads}")
        self.connection.execute("DELETE FROM visits")
        # Numbers of units depend on which units there are; draws do not.
        numbers = {unit: number for number, unit in enumerate(sorted(rows))}
        stored = [
            (visit, unit, *row, numbers[unit], int.from_bytes(hashlib.sha256(b"%d" % unit).digest()[:8], "big"))
            for unit, own in rows.items()
            for visit, row in enumerate(own)
        ]
        random.Random(order).shuffle(stored)
        if stored:
            # One list for each column: row by row takes a hundred times as long.
            lists = ", ".join(f"unnest(CAST(? AS {kind}[]))" for kind in self.types)
            self.connection.execute(f"INSERT INTO visits SELECT {lists}", [list(c) for c in zip(*stored, strict=True)])
        statement = lower_profile(profiled, dialect)
        found = self.connection.execute(statement.sql, list(statement.parameters)).fetchall()
        assert all(high == 0 for _, _, high, _ in found)
        return Counter({(place, number): low for place, number, _, low in found})


@pytest.fixture(scope="module")
def engine() -> Iterator[_Engine]:
    """One engine for all tests."""
    made = _Engine()
    yield made
    made.connection.close()


def _require_one_bin_each(profiled: ProfiledTable, changed: Counter[tuple[int, int]], *, present: bool) -> None:
    """What one unit changes: one bin of each histogram, by one, within the public cells."""
    assert set(changed) <= set(profiled.described.keys.domain or ())
    for place, _ in enumerate(profiled.histograms):
        bins = {number: count for (of, number), count in changed.items() if of == place and count}
        assert sorted(bins.values()) == [1] * present, (profiled.histograms[place], bins)


def _difference(more: Counter[tuple[int, int]], less: Counter[tuple[int, int]]) -> Counter[tuple[int, int]]:
    return Counter({cell: more[cell] - less[cell] for cell in {*more, *less} if more[cell] != less[cell]})


SIZES = (0, 1, 5, 50, 5_000)


@pytest.mark.sparse(3)
@pytest.mark.parametrize("size", SIZES)
def test_one_unit_changes_one_bin_of_each_histogram(engine: _Engine, size: int) -> None:
    """Neighbours with 0, 1, 5, 50 and 5,000 rows of the unit, in other orders, with other numbers and threads."""
    profiled, source = _profiled(one_row=False), random.Random(size)
    rows = _rows(source, [3, 1, 40, 2, 7])
    unit = {1_000 if size % 2 else -1: [_row(source) for _ in range(size)]} if size else {}
    less = engine.counts(profiled, rows, order=1)
    more = engine.counts(profiled, {**rows, **unit}, order=2, threads=4)
    _require_one_bin_each(profiled, _difference(more, less), present=bool(size))


def test_one_unit_of_a_table_with_one_row_each(engine: _Engine) -> None:
    """Nothing is chosen there, and the same holds."""
    profiled, source = _profiled(one_row=True), random.Random(3)
    rows = _rows(source, [1] * 8)
    for unit in rows:
        less = engine.counts(profiled, {other: own for other, own in rows.items() if other != unit}, order=1)
        _require_one_bin_each(profiled, _difference(engine.counts(profiled, rows), less), present=True)


def test_no_rows_are_an_empty_profile(engine: _Engine) -> None:
    """A table without a unit has no bin with anything in it."""
    for one_row in (False, True):
        assert not engine.counts(_profiled(one_row=one_row), {})


class _Arrival(DuckDB):
    """A planted bug: of a unit's rows the one that is read first gives its place."""

    @writes(LeastPlace)
    def _least_place(self, node: LeastPlace) -> str:
        return f"CAST(first({self.write(node.place)}) AS BIGINT)"


class _TwoBins(DuckDB):
    """A planted bug: a unit is listed twice."""

    @writes(Listed)
    def _listed(self, node: Listed) -> str:
        once_more = f"SELECT CAST(0 AS BIGINT), CAST(0 AS BIGINT) FROM ({self.write(node.rows)}) AS z"
        return f"{super()._listed(node)} UNION ALL {once_more}"


class _RowsCounted(DuckDB):
    """A planted bug: each different row is counted, not each unit."""

    @writes(Grouped)
    def _grouped(self, node: Grouped) -> str:
        rows = dataclasses.replace(node, by=("u", "o")) if node.by == ("u",) else node
        return super()._grouped(rows)


class _Unkeyed(DuckDB):
    """A planted bug: a column without a place for NULL, so that such units are beyond the bins."""

    @writes(LeastPlace)
    def _least_place(self, node: LeastPlace) -> str:
        return f"{super()._least_place(node)} + 1"


@pytest.mark.parametrize("dialect", [_TwoBins, _RowsCounted, _Unkeyed])
def test_planted_bugs_change_more_than_one_bin_each(engine: _Engine, dialect: Callable[[], Dialect]) -> None:
    """A unit in two bins, or beyond the bins of a histogram, is noticed by the same test."""
    profiled, source = _profiled(one_row=False), random.Random(8)
    rows = _rows(source, [3, 1, 40, 2, 7])
    more = {**rows, 99: [_row(source) for _ in range(9)]}
    changed = _difference(engine.counts(profiled, more, dialect()), engine.counts(profiled, rows, dialect()))
    with pytest.raises(AssertionError):
        _require_one_bin_each(profiled, changed, present=True)


def test_a_choice_by_arrival_is_noticed(engine: _Engine) -> None:
    """The order of the rows of others decides nothing; where it does, other orders give other counts."""
    profiled, source = _profiled(one_row=False), random.Random(9)
    rows = _rows(source, [20] * 20)
    assert engine.counts(profiled, rows, order=1) == engine.counts(profiled, rows, order=2, threads=4)
    assert engine.counts(profiled, rows, _Arrival(), order=1) != engine.counts(profiled, rows, _Arrival(), order=2)


def _places(engine: _Engine, name: str, values: list[object], *, one_row: bool = True) -> list[int]:
    """The bins of these values of a column, one unit for each."""
    profiled = _profiled(one_row=one_row)
    at = [column.name for column in COLUMNS].index(name) - 2
    place = next(i for i, h in enumerate(profiled.histograms) if h.column == name)
    found = []
    for value in values:
        row = list(_row(random.Random(0)))
        row[at] = value
        counts = engine.counts(profiled, {0: [tuple(row)]})
        (number,) = [number for of, number in counts if of == place]
        found.append(number)
    return found


def _histogram(name: str) -> Histogram:
    return next(h for h in _profiled(one_row=True).histograms if h.column == name)


@pytest.mark.sparse(3)
@pytest.mark.parametrize(
    ("name", "values", "bins"),
    [
        ("ward", ["north", "south", None], [0, 1, 2]),
        ("town", ["a", "b", "rest", "c", "", None], [0, 1, 2, 2, 2, 3]),
        ("lost", ["a", "b", "c", None], [0, 1, 2, 2]),
        ("kind", [3, 1, 2, None], [0, 1, 2, 3]),
        ("smoker", [False, True, None], [0, 1, 2]),
        ("note", ["x", "", None], [0, 0, 1]),
        ("age", [-4, 0, 1, 2, 3, 110, 10**9, None], [0, 0, 0, 1, 1, 55, 55, 56]),
        ("score", [-9.0, -1.5, 2.5, 9.0, None], [0, 0, 63, 63, 64]),
        ("count", [-(2**62), -1, 0, 1, 2, 2**62, None], [0, 79, 80, 81, 83, 160, 161]),
        ("cost", [-1.7e308, 0.0, 1e-300, 1.7e308, None], [0, 120, 121, 240, 241]),
        ("day", [datetime.date(1, 1, 1), MONDAY, datetime.date(2020, 2, 1), LAST, None], [0, 0, 1, 23, 24]),
        ("moment", [datetime.datetime(1, 1, 1), datetime.datetime(1901, 1, 1), None], [0, 1, 200]),
    ],
)
def test_values_and_their_bins(engine: _Engine, name: str, values: list[object], bins: list[int]) -> None:
    """Ends of grids, both sides of them, all keys, all others, and NULL, which has the last bin."""
    assert bins == _places(engine, name, values)
    assert max(bins) == _histogram(name).bins - 1


def test_a_grid_has_the_value_in_its_bin(engine: _Engine) -> None:
    """The ends of a value's bin enclose it, but for the last digit of a double."""
    source = random.Random(5)
    for name in ("cost", "score", "age", "count"):
        grid = _histogram(name).grid
        assert grid is not None
        edges = grid.edges()
        assert len(edges) == grid.places + 1
        assert list(edges) == sorted(set(edges))
        whole = name in ("age", "count")
        values = [source.uniform(0, 2.4) * 10 ** source.choice([0, 0, 1] if whole else [0]) for _ in range(12)]
        told: list[object] = [int(value * 4) if whole else value for value in values]
        for value, place in zip(told, _places(engine, name, told), strict=True):
            assert float(edges[place]) * 0.999 <= float(str(value)) <= float(edges[place + 1]) * 1.001 + 1e-9


def test_numbers_of_rows_keys_and_months(engine: _Engine) -> None:
    """A unit's rows, different keys and different months, each in the bin that holds the number."""
    profiled = _profiled(one_row=False)
    row = list(_row(random.Random(0)))
    names = [column.name for column in COLUMNS]
    own = []
    for number in range(9):
        row[names.index("ward") - 2] = ["north", None, "south"][number % 3]
        row[names.index("day") - 2] = datetime.date(2020, 1 + number % 4, 7) if number else None
        own.append(tuple(row))
    counts = engine.counts(profiled, {0: own})
    told = {}
    for (place, number), count in counts.items():
        histogram = profiled.histograms[place]
        assert count == 1
        if histogram.least:
            told[histogram.of, histogram.column] = histogram.least[number]
    assert told[HistogramOf.ROWS, None] == 8  # 9 rows, in the bin from 8 to 11
    assert told[HistogramOf.GROUPS, "ward"] == 2
    assert told[HistogramOf.MONTHS, "day"] == 4


def test_what_is_asked_follows_from_declarations() -> None:
    """Columns that name units and rows are not looked at, references only for NULL, and texts without keys as well."""
    of = {(one.column, one.of) for one in _profiled(one_row=False).histograms}
    columns = {column for column, _ in of}
    assert "visit" not in columns
    assert "person" not in columns
    assert "said" not in columns
    assert {("place", HistogramOf.NULLS), ("note", HistogramOf.NULLS)} <= of
    assert {("ward", HistogramOf.KEYS), ("ward", HistogramOf.GROUPS), ("day", HistogramOf.MONTHS)} <= of
    assert {(None, HistogramOf.UNITS), (None, HistogramOf.ROWS)} <= of
    single = {one.of for one in _profiled(one_row=True).histograms}
    assert not single & {HistogramOf.ROWS, HistogramOf.GROUPS, HistogramOf.MONTHS}


def test_sensitivity_is_the_number_of_histograms() -> None:
    """What the noise is calibrated to: as many entries as histograms, each by one."""
    profiled = _profiled(one_row=False)
    count = len(profiled.histograms)
    (statistic,) = profiled.described.statistics
    bound = statistic.sensitivity
    assert (bound.l0, bound.l1, bound.l2_squared, bound.linf) == (count, count, count, 1)
    assert len(profiled.described.keys.domain or ()) == sum(one.bins for one in profiled.histograms)


def test_identity_and_work() -> None:
    """Another version of the data is another release, and the rows of one unit take some time."""
    table = _table(one_row=False)
    one, two = (_dataset(table, version) for version in ("d1", "d2"))
    keys = {profile_key(dataset, profiled) for dataset in (one, two) for profiled in profiled_tables(dataset)}
    assert len(keys) == 2
    work = profile_work(profiled_tables(one), DUCKDB_COSTS)
    assert work.unit_nanoseconds > 6_000 * 1_000
    assert work.row_nanoseconds > 0
