"""The marginals of a synthetic table: which columns have places, and the statements that count their rows.

A statement counts, for each of several lists of columns, the rows of each combination of places. Of each unit so many
rows count in all of them; which ones follows from the unit's own rows and its secret draw
(mechanisms/synthetic_marginals.md). Its cells follow from declarations, and later ones from what was released before.

    rows        b0, b1, ... the places of a row
    unit        of each unit the first rows, in an order that is keyed with its draw
    list        one row for each row and marginal -> group by marginal (k0) and cell (k1)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from privacy.binned import BinnedColumn, Marginal, cells_of
from privacy.bounds import ValueBounds
from privacy.histogram import HistogramOf
from privacy.policy import Column, ColumnType, Table
from privacy.statement import Statement, StatementKey, StatementSum
from sql_rewrite.cost import ROWS_ASSUMED, SAFETY, Work
from sql_rewrite.cost_usual import USUAL_SHARE
from sql_rewrite.dialects.costs import EngineCosts
from sql_rewrite.dialects.dialect import Dialect
from sql_rewrite.dialects.duckdb import DUCKDB
from sql_rewrite.layer_values import Count, KeyedOrder
from sql_rewrite.relations import (
    Extended,
    Grouped,
    Kept,
    Listed,
    OrderedBy,
    Output,
    Placed,
    Projected,
    Relation,
    TableRows,
    WithinUnit,
)
from sql_rewrite.row_places import RowPlaces, column_histogram, names_units
from sql_rewrite.scalars import Arithmetic, Cast, Clip, Coalesce, Comparison, EngineType, Named, Scalar, Whole
from sql_rewrite.scalars import Column as StoredColumn

__all__ = ["BINS_DEFAULT", "WITHOUT_KEYS", "binned_column", "binned_reason", "lower_marginals", "marginals_work"]

BINS_DEFAULT = 32
"""Places of a column of numbers or dates with bounds."""

WITHOUT_KEYS = "it is a text without declared keys, so its values are not known without looking at rows"
"""The one reason of `binned_reason` that the owner of a dataset ends by a declaration."""

_ROWS_MAX = 2**52
"""A bound on the rows of one cell: 2^40 rows of a table, with room."""

_PLACE_NANOSECONDS = 400.0
_LISTED_NANOSECONDS = 60.0
"""Most time for the cell of one row in one marginal: its number, a row of a list, a place in a hash table."""


def binned_reason(table: Table, column: Column) -> str | None:
    """Why a column has no places, in words; None where it has some."""
    if names_units(table, column) or column.unique:
        return "its values name a person or a row, so there is no distribution that a table could follow"
    if any(reference.column.lower() == column.name.lower() for reference in table.references):
        return "it refers to rows of another table"
    found = column_histogram(table, column)
    if found is not None and found.of in (HistogramOf.KEYS, HistogramOf.VALUES):
        return None
    if column.type is ColumnType.TEXT and column.keys is not None:
        return "it declares more keys than can be counted"
    if column.type is ColumnType.TEXT:
        return WITHOUT_KEYS
    return "its bounds leave one value"


def binned_column(
    table: Table, column: Column, *, bins: int | None = None, bounds: ValueBounds | None = None
) -> BinnedColumn:
    """A column with its places: about so many of numbers and dates, within these bounds or those that it declares.

    Requires: `binned_reason` has no objection. Without any bounds its places cover all sizes, and are narrowed later.
    """
    if bounds is not None:
        column = Column(column.name, column.type, bounds=bounds, keys=column.keys, nullable=column.nullable)
    histogram = column_histogram(table, column, places=bins or BINS_DEFAULT)
    assert histogram is not None
    open_ended = histogram.of is HistogramOf.VALUES and column.bounds is None
    return BinnedColumn.of(column.name, histogram, chosen=open_ended)


@dataclass(frozen=True, slots=True)
class _Asked:
    columns: tuple[BinnedColumn, ...]
    marginals: tuple[Marginal, ...]
    rows_per_unit: int


def lower_marginals(
    table: Table,
    columns: Sequence[BinnedColumn],
    marginals: Sequence[Marginal],
    *,
    rows_per_unit: int,
    dialect: Dialect = DUCKDB,
) -> Statement:
    """The statement that counts rows in the cells of marginals: its keys are the marginal's number and the cell's.

    At most `rows_per_unit` rows of a unit count, the same ones in every marginal. Cells without rows are not there.
    """
    assert marginals
    assert rows_per_unit >= 1
    lowering = _Lowering(table, _Asked(tuple(columns), tuple(marginals), rows_per_unit))
    tree = lowering.tree()
    return Statement(
        sql=dialect.write(tree),
        parameters=tuple(lowering.parameters.values),
        keys=(StatementKey("k0", ColumnType.INTEGER), StatementKey("k1", ColumnType.INTEGER)),
        sums=(StatementSum("c0_0", _ROWS_MAX),),
    )


def marginals_work(table: Table, columns: Sequence[BinnedColumn], *, listed: int, costs: EngineCosts) -> Work:
    """What the statements of a synthetic table do, at worst for one unit: places, and so many cells for each row."""
    compared = sum(len(one.histogram.keys) for one in columns)
    row = costs.scan + costs.unit + 3 * (len(columns) * _PLACE_NANOSECONDS + compared * 30.0)
    row += listed * _LISTED_NANOSECONDS
    vectors = 1 + -(-(table.rows_stored - 1) // costs.vector_rows)
    unit = table.rows_stored * row + vectors * (len(columns) + listed) * costs.core_vector + listed * costs.scattered
    operators = 3 * costs.plan_core + 90 * len(columns) + 9 * (compared + listed)
    return Work(
        unit_nanoseconds=unit * SAFETY,
        row_nanoseconds=(table.rows_expected or ROWS_ASSUMED) * row * USUAL_SHARE,
        operators=operators,
        plan_nanoseconds=operators * costs.plan,
        costliest=None,
        costs=costs,
    )


class _Lowering(RowPlaces):
    def __init__(self, table: Table, asked: _Asked) -> None:
        super().__init__(table)
        self.asked = asked

    def tree(self) -> Relation:
        rows = self._rows()
        cells = tuple(Output(self._cell(one), f"h{number}") for number, one in enumerate(self.asked.marginals))
        listed = Listed(Extended(rows, "e", cells), "l", tuple(output.name for output in cells))
        counted = Grouped(listed, "c", ("k0", "k1"), ("k0", "k1"), (Output(Count(), "c0_0"),))
        halves = (
            Output(Cast(Whole(0), EngineType.INTEGER), "c0_0_high"),
            Output(StoredColumn("g", "c0_0"), "c0_0_low"),
        )
        keys = tuple(Output(StoredColumn("g", name), name) for name in ("k0", "k1"))
        return Projected(counted, "g", (*keys, *halves))

    def _rows(self) -> Relation:
        """The rows that count, with their places."""
        places = [Output(self._place_of(one), f"b{number}") for number, one in enumerate(self.asked.columns)]
        if self.table.one_row:
            return TableRows(tuple(places), self.source(), None)
        unit = (Output(StoredColumn("t", "unit$id"), "u"), Output(StoredColumn("t", "unit$draw"), "d"))
        names = tuple(output.name for output in places)
        rows: Relation = TableRows((*unit, *places), self.source(), None)
        order = KeyedOrder((Named("d"), *(Named(name) for name in names)))
        rows = Extended(rows, "o", (Output(order, "o"),))
        # Rows of one order have the same places almost always; where they do not, the places decide.
        terms = tuple(OrderedBy(name, descending=False, nulls_first=False) for name in ("o", *names))
        rows = Extended(rows, "w", (Output(WithinUnit(Placed("row_number", ()), (), terms), "n"),))
        first = Comparison("<=", Named("n"), Whole(self.asked.rows_per_unit), closed=False)
        return Kept(rows, "r", first, tuple(Output(Named(name), name) for name in names))

    def _place_of(self, column: BinnedColumn) -> Scalar:
        """The kept place of a row's value, that of NULL for NULL. Never NULL, and never beyond the places."""
        histogram = column.histogram
        place = self.place(histogram)
        if column.last - column.first + 1 + column.null < histogram.bins:
            moved = Arithmetic("-", place, Whole(column.first), EngineType.INTEGER)
            place = Clip(moved, Whole(0), Whole(column.last - column.first))
        return Coalesce((place, Whole(column.size - 1 if column.null else 0)))

    def _cell(self, marginal: Marginal) -> Scalar:
        """The cell of a row, in row-major order of the places."""
        cell: Scalar = Named(f"b{marginal[0]}")
        for one in marginal[1:]:
            scaled = Arithmetic("*", cell, Whole(cells_of(self.asked.columns, (one,))), EngineType.INTEGER)
            cell = Arithmetic("+", scaled, Named(f"b{one}"), EngineType.INTEGER)
        return cell
