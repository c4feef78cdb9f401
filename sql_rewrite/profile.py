"""The profile of a table: histograms in each of which a unit is counted once, and the statement that counts them.

From declarations alone follows which histograms a table has and which bins. A unit's place in each of them is a
function of its own rows and its secret draw (mechanisms/profile.md has the proof): the number of its rows, of its
different keys or months, or the place of one of its values. Which row gives that value is decided by a hash that is
keyed with the draw, over the places of the whole row, so that mostly one row gives all of a unit's values.

One core for each table: its keys are the number of the histogram (k0) and the bin (k1), all of them public, and its one
statistic counts units. Noise, price and storing are those of any core. The layers:

    rows        places b0, b1, ... of the row in the histograms of columns, g0, g1, ... for numbers of different values
    unit        per unit: n rows, the places of the row that comes first, how many different places
    list        one row for each unit and histogram -> group by histogram and bin
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

from privacy.aggregate import AggregateFunction
from privacy.bounds import date_at, timestamp_at
from privacy.histogram import Grid, GridScale, Histogram, HistogramOf
from privacy.policy import Column, ColumnType, Dataset, KeyValue, Table
from privacy.statement import Statement, StatementKey, StatementSum
from privacy.statistic import CoreStatistics, Estimate, KeyColumn, Keys, Sensitivity, Statistic, StatisticKind
from privacy.unit import Neighbouring
from sql_rewrite.cost import ROWS_ASSUMED, SAFETY, USUAL_SHARE, Work
from sql_rewrite.date_scalars import DatePart
from sql_rewrite.dialects.costs import EngineCosts
from sql_rewrite.dialects.dialect import Dialect
from sql_rewrite.dialects.duckdb import DUCKDB
from sql_rewrite.layer_values import Count, Distinct, KeyedOrder, LeastPlace, Steps
from sql_rewrite.lower import UNITS_MAX
from sql_rewrite.lower_expression import ParameterList
from sql_rewrite.relations import Extended, Grouped, Listed, Output, Projected, Relation, TableRows, TableSource
from sql_rewrite.scalars import (
    Arithmetic,
    Case,
    Cast,
    Clip,
    Coalesce,
    Comparison,
    EngineType,
    Guarded,
    IsNull,
    KeyPlace,
    Named,
    Negate,
    Null,
    Parameter,
    Scalar,
    Whole,
)
from sql_rewrite.scalars import Column as StoredColumn

__all__ = ["COUNTED", "ProfiledTable", "lower_profile", "profile_key", "profile_work", "profiled_tables"]

COUNTED = "n"
"""The name of a profile's estimate."""

_VERSION = 1
"""Of the identity of a profile's release: raised when the same declarations are profiled in another way."""

_NUMBER_PLACES = 64
_KEYS_STORED_MAX = 1_000
"""Most keys whose sizes are released where they are stored as keys."""
_KEYS_COMPARED_MAX = 250
"""The same where a value is compared with one after the other."""
_DISTINCT_MAX = 248
_MONTHS_MAX = 248
_YEARS = (1900, 200)
"""The first year and the number of years of a grid for dates without bounds."""
_OCTAVES = {ColumnType.INTEGER: (0, 40), ColumnType.NUMBER: (-20, 60)}
"""Of a logarithmic grid: the exponent of the least size, and the octaves from there on, for each sign."""
_EXACT_COUNT = 8
_PLACE_NANOSECONDS = 400.0
"""Most time for the place of one value of one row, beside comparisons with keys: a logarithm, guards and casts."""


@dataclass(frozen=True, slots=True)
class ProfiledTable:
    """A table with its histograms, and the core that they are for noise and price."""

    table: Table
    histograms: tuple[Histogram, ...]
    described: CoreStatistics


def profiled_tables(dataset: Dataset) -> tuple[ProfiledTable, ...]:
    """The histograms of every protected table. A function of declarations: no row decides what is asked."""
    return tuple(_profiled(table, f"p{place}") for place, table in enumerate(t for t in dataset.tables if t.protected))


def profile_key(dataset: Dataset, profiled: ProfiledTable) -> str:
    """The identity of the release of one table's profile: SHA-256 (hex)."""
    body = json.dumps(
        {
            "data": dataset.data_version,
            "dataset": dataset.name,
            "profile": repr(profiled.histograms),
            "relation": dataset.neighbouring.value,
            "table": profiled.table.name.lower(),
            "unit": [dataset.unit.table, dataset.unit.key],
            "version": _VERSION,
        },
        sort_keys=True,
        separators=(",", ":"),
    )
    return hashlib.sha256(body.encode()).hexdigest()


def lower_profile(profiled: ProfiledTable, dialect: Dialect = DUCKDB) -> Statement:
    """The statement of one table's profile: its keys are histogram and bin, its sum the units counted there."""
    lowering = _Lowering(profiled)
    tree = lowering.tree()
    return Statement(
        sql=dialect.write(tree),
        parameters=tuple(lowering.parameters.values),
        keys=tuple(StatementKey(key.name, key.type) for key in profiled.described.keys.columns),
        sums=(StatementSum("c0_0", UNITS_MAX),),
    )


def profile_work(profiled: Iterable[ProfiledTable], costs: EngineCosts) -> Work:
    """What the statements of a profile do, at worst for one unit: places for every histogram, and comparisons."""
    unit = rows = 0.0
    operators = 0
    for one in profiled:
        table, histograms = one.table, one.histograms
        compared = sum(len(h.keys) for h in histograms if h.of in (HistogramOf.KEYS, HistogramOf.GROUPS))
        counted = sum(len(h.least) for h in histograms)
        row = costs.scan + costs.unit + 2 * len(histograms) * _PLACE_NANOSECONDS + compared * 30.0
        vectors = 1 + -(-(table.rows_stored - 1) // costs.vector_rows)
        unit += table.rows_stored * row + vectors * len(histograms) * costs.core_vector
        unit += len(histograms) * costs.scattered + counted * 30.0 + costs.core_vector
        rows += (table.rows_expected or ROWS_ASSUMED) * row * USUAL_SHARE
        operators += costs.plan_core + 30 * len(histograms) + 3 * (compared + counted)
    return Work(
        unit_nanoseconds=unit * SAFETY,
        row_nanoseconds=rows,
        operators=operators,
        plan_nanoseconds=operators * costs.plan,
        costliest=None,
        costs=costs,
    )


# Which histograms


def _profiled(table: Table, name: str) -> ProfiledTable:
    histograms = [Histogram(HistogramOf.UNITS)]
    if not table.one_row:
        histograms.append(Histogram(HistogramOf.ROWS, least=_least(1, table.rows_stored)))
    for column in table.columns:
        of_column = _of_column(table, column)
        if of_column is not None:
            histograms.append(of_column)
            groups = None if table.one_row else _groups(of_column, table)
            histograms += [] if groups is None else [groups]
    return ProfiledTable(table, tuple(histograms), _described(name, tuple(histograms)))


def _described(name: str, histograms: tuple[Histogram, ...]) -> CoreStatistics:
    """The core: a unit adds one to one bin of each histogram, so to as many cells as there are histograms."""
    count = len(histograms)
    sensitivity = Sensitivity(
        relation=Neighbouring.ADD_REMOVE,
        l0=count,
        l1=Fraction(count),
        l2_squared=Fraction(count),
        linf=Fraction(1),
    )
    statistic = Statistic(
        name="c0", kind=StatisticKind.COUNT, sensitivity=sensitivity, argument="units, one bin in each histogram"
    )
    cells = tuple((place, number) for place, one in enumerate(histograms) for number in range(one.bins))
    columns = (KeyColumn("k0", ColumnType.INTEGER), KeyColumn("k1", ColumnType.INTEGER))
    return CoreStatistics(
        name=name,
        keys=Keys(columns=columns, domain=cells, groups_per_unit=count),
        statistics=(statistic,),
        estimates=(Estimate(COUNTED, AggregateFunction.ROWS, "c0", integer=True),),
    )


def _of_column(table: Table, column: Column) -> Histogram | None:
    """The histogram of a column's values; of one that names units or rows only whether it is NULL."""
    unit = {table.key, table.unit_column, *(reference.column for reference in table.unit_path[:1])}
    if _named(column, unit):
        # Rows without their key, or without their unit, are in no snapshot.
        return None
    naming = column.unique or _named(column, {reference.column for reference in table.references})
    if not naming:
        keys = _listed(column)
        if 0 < len(keys) <= (_KEYS_STORED_MAX if stored_as_key(column) else _KEYS_COMPARED_MAX):
            other = None if column.keys is None else column.keys.other
            return Histogram(
                HistogramOf.KEYS,
                column=column.name,
                type=column.type,
                keys=keys,
                other=other is not None and other.value is not None and other.value not in keys,
                null=column.nullable or (other is not None and other.value is None),
            )
        grid = None if keys else _grid(column)
        if grid is not None:
            return Histogram(HistogramOf.VALUES, column=column.name, type=column.type, grid=grid, null=column.nullable)
    return Histogram(HistogramOf.NULLS, column=column.name, type=column.type, null=True) if column.nullable else None


def _named(column: Column, names: Iterable[str | None]) -> bool:
    return column.name.lower() in {name.lower() for name in names if name is not None}


def _listed(column: Column) -> tuple[KeyValue, ...]:
    if column.keys is not None:
        return tuple(value for value in column.keys.values if value is not None)
    return (False, True) if column.type is ColumnType.BOOLEAN else ()


def stored_as_key(column: Column) -> bool:
    """Whether a snapshot stores the column as one of its declared keys, in their order (engines/declaration.py)."""
    keys = column.keys
    return column.type is ColumnType.TEXT and keys is not None and keys.other is None and column.keys_from is None


def _groups(of_column: Histogram, table: Table) -> Histogram | None:
    """How many different keys, or months, a unit has in the column; None where a set of them would be too large."""
    if of_column.of is HistogramOf.KEYS:
        places, of = len(of_column.keys) + of_column.other, HistogramOf.GROUPS
    elif of_column.grid is not None and of_column.grid.scale is GridScale.MONTHS and of_column.grid.width == 1:
        places, of = of_column.grid.places, HistogramOf.MONTHS
    else:
        return None
    if not 2 <= places <= _DISTINCT_MAX:
        return None
    least = _least(0, min(places, table.rows_stored))
    return Histogram(of, column=of_column.column, type=of_column.type, least=least)


def _least(first: int, most: int) -> tuple[int, ...]:
    """The least number of each bin: a bin for each small number, then two bins for every doubling."""
    numbers = list(range(first, min(_EXACT_COUNT, most) + 1))
    place = 1
    while (number := math.ceil(_EXACT_COUNT * 2 ** (place / 2))) <= most:
        numbers.append(number)
        place += 1
    return tuple(numbers)


def _grid(column: Column) -> Grid | None:
    bounds = column.bounds
    match column.type:
        case ColumnType.INTEGER | ColumnType.NUMBER:
            if bounds is None:
                first, octaves = _OCTAVES[column.type]
                return Grid(GridScale.LOGARITHMIC, Fraction(first), Fraction(1, 2), 2 * octaves)
            width = bounds.upper - bounds.lower
            if column.type is ColumnType.INTEGER:
                step = max(1, -(-math.floor(width + 1) // _NUMBER_PLACES))
                lower = Fraction(math.floor(bounds.lower))
                return Grid(GridScale.LINEAR, lower, Fraction(step), math.floor(width) // step + 1)
            if width == 0:
                return None
            return Grid(GridScale.LINEAR, bounds.lower, width / _NUMBER_PLACES, _NUMBER_PLACES)
        case ColumnType.DATE | ColumnType.TIMESTAMP:
            if bounds is None:
                return Grid(GridScale.MONTHS, Fraction(12 * _YEARS[0]), Fraction(12), _YEARS[1])
            at = date_at if column.type is ColumnType.DATE else timestamp_at
            low, high = at(bounds.lower), at(bounds.upper)
            first, last = 12 * low.year + low.month - 1, 12 * high.year + high.month - 1
            step = -(-(last - first + 1) // _MONTHS_MAX)
            return Grid(GridScale.MONTHS, Fraction(first), Fraction(step), (last - first) // step + 1)
        case ColumnType.TEXT | ColumnType.BOOLEAN:
            return None
        case _:
            assert_never(column.type)


# The statement


class _Lowering:
    def __init__(self, profiled: ProfiledTable) -> None:
        self.table = profiled.table
        self.histograms = profiled.histograms
        self.parameters = ParameterList()

    def tree(self) -> Relation:
        names = tuple(f"h{place}" for place in range(len(self.histograms)))
        units = self._rows_as_units() if self.table.one_row else self._units()
        counted = Grouped(Listed(units, "l", names), "c", ("k0", "k1"), ("k0", "k1"), (Output(Count(), "c0_0"),))
        halves = (
            Output(Cast(Whole(0), EngineType.INTEGER), "c0_0_high"),
            Output(StoredColumn("g", "c0_0"), "c0_0_low"),
        )
        keys = tuple(Output(StoredColumn("g", name), name) for name in ("k0", "k1"))
        return Projected(counted, "g", (*keys, *halves))

    def _rows_as_units(self) -> Relation:
        """Each row is a unit, whose places are those of the row."""
        outputs = [
            Output(Whole(0) if one.of is HistogramOf.UNITS else self._whole_place(one), f"h{place}")
            for place, one in enumerate(self.histograms)
        ]
        return TableRows(tuple(outputs), self._source(), None)

    def _units(self) -> Relation:
        """One row for each unit, with its place in every histogram."""
        columns = [Output(StoredColumn("t", "unit$id"), "u"), Output(StoredColumn("t", "unit$draw"), "d")]
        places: list[Scalar] = [Named("d")]
        partial: list[Output] = []
        whole: list[Output] = []
        for place, one in enumerate(self.histograms):
            name = f"h{place}"
            match one.of:
                case HistogramOf.UNITS:
                    whole.append(Output(Whole(0), name))
                case HistogramOf.ROWS:
                    partial.append(Output(Count(), f"n{place}"))
                    whole.append(Output(_bin_of(Named(f"n{place}"), one.least), name))
                case HistogramOf.VALUES | HistogramOf.KEYS | HistogramOf.NULLS:
                    columns.append(Output(self._whole_place(one), f"b{place}"))
                    places.append(Named(f"b{place}"))
                    partial.append(Output(LeastPlace(Named("o"), Named(f"b{place}")), name))
                case HistogramOf.GROUPS | HistogramOf.MONTHS:
                    valued = self.histograms[place - 1]
                    columns.append(Output(self._place(valued), f"g{place}"))
                    count = valued.bins - valued.null
                    partial.append(Output(Distinct(Named(f"g{place}"), count), f"n{place}"))
                    whole.append(Output(_bin_of(Named(f"n{place}"), one.least), name))
                case _:
                    assert_never(one.of)
        rows: Relation = TableRows(tuple(columns), self._source(), None)
        rows = Extended(rows, "o", (Output(KeyedOrder(tuple(places)), "o"),))
        units = Grouped(rows, "r", ("u",), ("u",), tuple(partial))
        return Extended(units, "p", tuple(whole))

    def _source(self) -> tuple[TableSource, ...]:
        return (TableSource(self.table.name, "t", None),)

    def _whole_place(self, histogram: Histogram) -> Scalar:
        """The bin of a row's value, that of NULL for NULL. Never NULL, and never beyond the bins."""
        return Coalesce((self._place(histogram), Whole(histogram.bins - 1 if histogram.null else 0)))

    def _place(self, histogram: Histogram) -> Scalar:
        """The place of a row's value; NULL where it has none, or where all others count as NULL."""
        assert histogram.column is not None
        column = self.table.column(histogram.column)
        assert column is not None
        value = StoredColumn("t", column.name)
        if histogram.of is HistogramOf.NULLS:
            return Case(((IsNull(value, negated=True, closed=False), Whole(0)),))
        if histogram.of is HistogramOf.KEYS:
            return self._key_place(value, column, histogram)
        assert histogram.grid is not None
        return _grid_place(value, column.type, histogram.grid)

    def _key_place(self, value: Scalar, column: Column, histogram: Histogram) -> Scalar:
        if stored_as_key(column):
            return KeyPlace(value)
        kind = EngineType(column.type.value)
        pairs: list[tuple[Scalar, Scalar]] = [(IsNull(value, closed=False), Null(EngineType.INTEGER))]
        for place, key in enumerate(histogram.keys):
            literal = Parameter(self.parameters.add(key), kind)
            pairs.append((Comparison("=", value, literal, closed=False), Whole(place)))
        other = None if column.keys is None else column.keys.other
        otherwise: Scalar | None = None
        if histogram.other:
            otherwise = Whole(len(histogram.keys))
        elif other is not None and other.value is not None:
            otherwise = Whole(histogram.keys.index(other.value))
        return Case(tuple(pairs), otherwise)


def _bin_of(number: Scalar, least: tuple[int, ...]) -> Scalar:
    """The last bin whose least number is not above the number."""
    pairs = tuple(
        (Comparison("<", number, Whole(beyond), closed=False), Whole(place)) for place, beyond in enumerate(least[1:])
    )
    return Case(pairs, Whole(len(least) - 1)) if pairs else Whole(0)


def _grid_place(value: Scalar, kind: ColumnType, grid: Grid) -> Scalar:
    """The place on a grid, clipped to its ends; NULL for NULL. Rounding at an edge decides between two neighbours."""
    if grid.scale is GridScale.LINEAR:
        return Steps(value, grid.first + grid.width / 2, grid.width, 0, grid.count - 1)
    if grid.scale is GridScale.MONTHS:
        years = Arithmetic("*", DatePart("year", value), Whole(12), EngineType.INTEGER)
        months = Arithmetic("+", years, DatePart("month", value), EngineType.INTEGER)
        from_first = Arithmetic("-", months, Whole(int(grid.first) + 1), EngineType.INTEGER)
        clipped = Clip(from_first, Whole(0), Whole(grid.count * int(grid.width) - 1))
        return Arithmetic("//", clipped, Whole(int(grid.width)), EngineType.INTEGER)
    number = Cast(value, EngineType.NUMBER)
    zero = Cast(Whole(0), EngineType.NUMBER)

    def size(of: Scalar) -> Scalar:
        logarithm = Guarded("log2", of, guarded=True)
        return Steps(logarithm, grid.first + grid.width / 2, grid.width, 0, grid.count - 1)

    above = Arithmetic("+", Whole(grid.count + 1), size(number), EngineType.INTEGER)
    below = Arithmetic("-", Whole(grid.count - 1), size(Negate(number)), EngineType.INTEGER)
    return Case(
        (
            (IsNull(value, closed=False), Null(EngineType.INTEGER)),
            (Comparison(">", number, zero, closed=False), above),
            (Comparison("<", number, zero, closed=False), below),
        ),
        Whole(grid.count),
    )
