"""Histograms of columns' values: what a question releases first where an argument has no declared bounds.

A histogram is of a whole column of one protected table: no condition, no join, so that every question about the column
finds it stored. It is an ordinary core with public groups, the bins of the column's type (`privacy/value_grid.py`),
that counts units:

    one row per unit      rows -> bin of the value -> group by bin
    several rows          rows -> group by unit: least and greatest value -> the bins of both -> group by bin

A unit is in one bin of each end, so in at most two cells: mechanisms/value_bounds.md. The bins of the greatest values
follow on those of the least ones, moved by `moved`. Rows in which the column is NULL are not there.

Integers and numbers, SELECT of the second shape, with x the column:

    SELECT "bin", COUNT(*) FROM (
      SELECT unnest([bin of "least", bin of "greatest" + moved]) AS "bin" FROM (
        SELECT "u", MIN(x) AS "least", MAX(x) AS "greatest" FROM ... WHERE x IS NOT NULL GROUP BY "u")) GROUP BY "bin"
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from privacy.aggregate import AggregateFunction
from privacy.policy import ColumnType, Dataset
from privacy.statement import Statement, StatementKey, StatementSum
from privacy.statistic import (
    CoreStatistics,
    Estimate,
    KeyColumn,
    Keys,
    Sensitivity,
    Statistic,
    StatisticKind,
)
from privacy.value_grid import BINS_PER_OCTAVE, GRIDDED, OCTAVES, YEARS, ValueGrid, grid_of
from sql_rewrite.bound import BoundedCore, BoundedStatistic
from sql_rewrite.contribution import Contribution
from sql_rewrite.date_scalars import DatePart
from sql_rewrite.dialects.dialect import Dialect
from sql_rewrite.dialects.duckdb import DUCKDB
from sql_rewrite.expressions import ColumnRef, Expression
from sql_rewrite.functions import build
from sql_rewrite.layer_values import Count, EndOf
from sql_rewrite.plan import Aggregate, Core, Source
from sql_rewrite.references import reference
from sql_rewrite.relations import Grouped, Output, Projected, Relation, TableRows, TableSource, Unfolded
from sql_rewrite.scalars import (
    Arithmetic,
    Case,
    Cast,
    Clip,
    Column,
    Comparison,
    EngineType,
    Extreme,
    ExtremeName,
    Function,
    Guarded,
    IsNull,
    Named,
    Negate,
    Scalar,
    Whole,
)
from sql_rewrite.statement_columns import UNITS_MAX

__all__ = ["BIN", "ValueHistogram", "lower_histogram", "value_histogram"]

BIN = "bin"
"""The key of a histogram's cells."""

_RELATION = "r0"
INTEGER, NUMBER = EngineType.INTEGER, EngineType.NUMBER


@dataclass(frozen=True, slots=True)
class ValueHistogram:
    """The histogram of one column, and the bounded core that it is.

    `moved` is what the bins of greatest values are moved by; None where each unit has one row, so that its least value
    is its greatest.
    """

    table: str
    column: ColumnRef
    bounded: BoundedCore
    moved: int | None

    @property
    def grid(self) -> ValueGrid:
        """The bins."""
        return grid_of(self.column.type)

    def ends(self, counts: Mapping[int, float]) -> tuple[list[float], list[float]]:
        """Counts of cells as those of least and of greatest values, each in the order of bins."""
        lows = [counts[place] for place in self.grid.bins]
        return lows, lows if self.moved is None else [counts[place + self.moved] for place in self.grid.bins]


def value_histogram(name: str, table: str, column: str, dataset: Dataset) -> ValueHistogram:
    """The histogram of a column under the name of a core.

    Requires: the table is protected, and the column of one of the types in `GRIDDED`.
    """
    found = dataset.table(table)
    assert found is not None
    assert found.protected
    of = found.column(column)
    assert of is not None
    assert of.type in GRIDDED
    source = Source(_RELATION, found)
    ref = replace(reference(source, of, dataset), declared=None)
    grid = grid_of(of.type)
    moved = None if found.one_row else len(grid.bins)
    cells = (*grid.bins, *([] if moved is None else [place + moved for place in grid.bins]))
    ends = 1 if moved is None else 2
    statistic = Statistic(
        name="s0",
        kind=StatisticKind.UNITS,
        sensitivity=Sensitivity(
            relation=dataset.neighbouring, l0=ends, l1=Fraction(ends), l2_squared=Fraction(ends), linf=Fraction(1)
        ),
        argument=f"privacy units by the bin of {ref.name}",
    )
    core = Core(
        name=name,
        sources=(source,),
        where=build("is_not_null", (ref,)),
        keys=((BIN, _described(ref)),),
        aggregates=(Aggregate("a0", AggregateFunction.UNITS, None, None, None, f"units by the bin of {ref.name}"),),
    )
    bounded = BoundedCore(
        core=core,
        contribution=Contribution(groups=ends, rows=1, total=ends, one_row=found.one_row, choose_groups=False),
        statistics=(BoundedStatistic(statistic, argument=None, filter=None, rows=1),),
        domains=(cells,),
        described=CoreStatistics(
            name=name,
            keys=Keys(
                columns=(KeyColumn(BIN, ColumnType.INTEGER),),
                domain=tuple((cell,) for cell in cells),
                groups_per_unit=ends,
            ),
            statistics=(statistic,),
            estimates=(Estimate("a0", AggregateFunction.UNITS, "s0", integer=True),),
        ),
    )
    return ValueHistogram(found.name, ref, bounded, moved)


def _described(column: ColumnRef) -> Expression:
    """What a bin is, as an expression: the statement computes a refinement of it, at about its cost."""
    if column.type in OCTAVES:
        return build("log2", (build("abs", (column,)),))
    return build("quarter", (column,))


# --- the statement ---------------------------------------------------------------------------------------------------


def lower_histogram(histogram: ValueHistogram, dialect: Dialect = DUCKDB) -> Statement:
    """The statement of a histogram. A pure function: the same text for every state of the data."""
    return Statement(
        sql=dialect.write(_tree(histogram)),
        parameters=(),
        keys=(StatementKey(BIN, ColumnType.INTEGER),),
        sums=(StatementSum("s0_0", UNITS_MAX),),
    )


def _tree(histogram: ValueHistogram) -> Relation:
    kind, stored = histogram.column.type, Column(_RELATION, histogram.column.name)
    source = TableSource(histogram.table, _RELATION, None)
    there = IsNull(stored, negated=True)
    binned: Relation
    if histogram.moved is None:
        binned = TableRows((Output(_bin(stored, kind), BIN),), (source,), there)
    else:
        rows = TableRows((Output(Column(_RELATION, "unit$id"), "u"), Output(stored, "x")), (source,), there)
        ends: tuple[ExtremeName, ...] = ("least", "greatest")
        units = Grouped(rows, "b", (), ("u",), tuple([Output(EndOf(end, Named("x")), end) for end in ends]))
        least, greatest = (_bin(Named(end), kind) for end in ends)
        moved = Arithmetic("+", greatest, Whole(histogram.moved), INTEGER)
        binned = Unfolded(units, "p", (least, moved), BIN)
    counted = Grouped(binned, "c", (BIN,), (BIN,), (Output(Count(), "s0_0"),))
    return Projected(
        counted,
        "g",
        (
            Output(Column("g", BIN), BIN),
            Output(Cast(Whole(0), INTEGER), "s0_0_high"),
            Output(Column("g", "s0_0"), "s0_0_low"),
        ),
    )


def _bin(value: Scalar, kind: ColumnType) -> Scalar:
    """The bin of a value that is not NULL: an INTEGER of the grid, whatever the value is."""
    grid = grid_of(kind)
    if kind not in OCTAVES:
        first = 4 * YEARS[0]
        years = Arithmetic("*", DatePart("year", value), Whole(4), INTEGER)
        quarters = Arithmetic("+", years, DatePart("quarter", value), INTEGER)
        return Clip(Arithmetic("-", quarters, Whole(first), INTEGER), Whole(grid.first), Whole(grid.last))
    least, greatest = OCTAVES[kind]
    one = Cast(Whole(1), NUMBER)
    number = Cast(value, NUMBER)
    # As doubles: the magnitude of the least BIGINT is none, and a product beyond the largest double is an infinity.
    scaled = Arithmetic("*", Function("abs", (number,)), Cast(Whole(2**-least), NUMBER), NUMBER)
    held = Extreme(
        "least", (Extreme("greatest", (scaled, one), (False, False)), _power(greatest - least)), (False, False)
    )
    octaves = Arithmetic("*", Guarded("log2", held, guarded=False), Cast(Whole(BINS_PER_OCTAVE), NUMBER), NUMBER)
    place = Arithmetic("+", Cast(Function("floor", (octaves,)), INTEGER), Whole(1), INTEGER)
    zero = Comparison("<", scaled, one)
    negative = Comparison("<", number, Cast(Whole(0), NUMBER))
    return Case(((zero, Cast(Whole(0), INTEGER)), (negative, Negate(place))), place)


def _power(exponent: int) -> Scalar:
    """A power of two as a number."""
    return Cast(Whole(2**exponent), NUMBER)
