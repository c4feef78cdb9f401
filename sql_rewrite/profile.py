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
from privacy.histogram import GridScale, Histogram, HistogramOf
from privacy.policy import ColumnType, Dataset, Table
from privacy.statement import Statement, StatementKey, StatementSum
from privacy.statistic import CoreStatistics, Estimate, KeyColumn, Keys, Sensitivity, Statistic, StatisticKind
from privacy.unit import Neighbouring
from sql_rewrite.cost import ROWS_ASSUMED, SAFETY, Work
from sql_rewrite.cost_usual import USUAL_SHARE
from sql_rewrite.dialects.costs import EngineCosts
from sql_rewrite.dialects.dialect import Dialect
from sql_rewrite.dialects.duckdb import DUCKDB
from sql_rewrite.layer_values import Count, Distinct, KeyedOrder, LeastPlace
from sql_rewrite.relations import Extended, Grouped, Listed, Output, Projected, Relation, TableRows
from sql_rewrite.row_places import RowPlaces, column_histogram
from sql_rewrite.scalars import (
    Case,
    Cast,
    Comparison,
    EngineType,
    Named,
    Scalar,
    Whole,
)
from sql_rewrite.scalars import Column as StoredColumn
from sql_rewrite.statement_columns import UNITS_MAX

__all__ = ["COUNTED", "ProfiledTable", "lower_profile", "profile_key", "profile_work", "profiled_tables"]

COUNTED = "n"
"""The name of a profile's estimate."""

_VERSION = 1
"""Of the identity of a profile's release: raised when the same declarations are profiled in another way."""

_DISTINCT_MAX = 248
_MONTHS_MAX = 248
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
        of_column = column_histogram(table, column)
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


# The statement


class _Lowering(RowPlaces):
    def __init__(self, profiled: ProfiledTable) -> None:
        super().__init__(profiled.table)
        self.histograms = profiled.histograms

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
            Output(Whole(0) if one.of is HistogramOf.UNITS else self.whole_place(one), f"h{place}")
            for place, one in enumerate(self.histograms)
        ]
        return TableRows(tuple(outputs), self.source(), None)

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
                    columns.append(Output(self.whole_place(one), f"b{place}"))
                    places.append(Named(f"b{place}"))
                    partial.append(Output(LeastPlace(Named("o"), Named(f"b{place}")), name))
                case HistogramOf.GROUPS | HistogramOf.MONTHS:
                    valued = self.histograms[place - 1]
                    columns.append(Output(self.place(valued), f"g{place}"))
                    count = valued.bins - valued.null
                    partial.append(Output(Distinct(Named(f"g{place}"), count), f"n{place}"))
                    whole.append(Output(_bin_of(Named(f"n{place}"), one.least), name))
                case _:
                    assert_never(one.of)
        rows: Relation = TableRows(tuple(columns), self.source(), None)
        rows = Extended(rows, "o", (Output(KeyedOrder(tuple(places)), "o"),))
        units = Grouped(rows, "r", ("u",), ("u",), tuple(partial))
        return Extended(units, "p", tuple(whole))


def _bin_of(number: Scalar, least: tuple[int, ...]) -> Scalar:
    """The last bin whose least number is not above the number."""
    pairs = tuple(
        (Comparison("<", number, Whole(beyond), closed=False), Whole(place)) for place, beyond in enumerate(least[1:])
    )
    return Case(pairs, Whole(len(least) - 1)) if pairs else Whole(0)
