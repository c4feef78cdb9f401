"""Which totals of units a snapshot keeps (privacy/stored_norms.py), and how a question's sum is known by them.

A total is kept of what a SUM without a filter adds for each row. Both are written here, by the same function: the
snapshot is made with the texts of `kept_totals`, and keeps them, and a norm is known by a total if and only if its own
argument and encoding are written as the same texts. So a change of bounds, of limits or of how values are written makes
no total wrong, only useless.

Beside them stand numbers of values: of a column that may be NULL, how many rows of the unit have one.

Kept are totals that no arithmetic can leave: no value is negative, and a unit of all rows that are stored stays within
the greatest norm (squares: within 62 bits).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from privacy.norms import NORM_MAX
from privacy.policy import Column, ColumnType, Dataset, Table
from privacy.statistic import Encoding
from privacy.stored_norms import TOTALS_MAX, KeptTotal
from sql_rewrite.dialects.duckdb import DUCKDB
from sql_rewrite.encodings import normed_sum_encoding
from sql_rewrite.expressions import Call, ColumnRef, Expression, Interval, interval_of
from sql_rewrite.functions import clip_columns
from sql_rewrite.layer_values import HeldSteps, NearestSteps, Steps
from sql_rewrite.lower_expression import ParameterList
from sql_rewrite.lower_steps import steps_of
from sql_rewrite.scalars import Case, IsNull, Named, Whole
from sql_rewrite.scalars import Column as StoredColumn

__all__ = ["kept_totals", "total_of", "values_of"]

_ROW = "t"
_NARROW = 2**62


def kept_totals(dataset: Dataset) -> Mapping[str, tuple[KeptTotal, ...]]:
    """For each protected table with several rows of a unit the totals that a new snapshot keeps."""
    return {
        table.name: found
        for table in dataset.tables
        if table.protected and not table.one_row and (found := _totals(table))
    }


def _totals(table: Table) -> tuple[KeptTotal, ...]:
    found = [total for column in table.columns if (total := _kept(table, column)) is not None]
    bounded = [column for column in table.columns if _is_bounded(column) and column.name.isidentifier()]
    values = [values_of(column.name) for column in bounded if column.nullable]
    return (*found[:TOTALS_MAX], *values[:TOTALS_MAX])


def _is_bounded(column: Column) -> bool:
    return column.bounds is not None and column.type in (ColumnType.INTEGER, ColumnType.NUMBER)


def values_of(column: str) -> KeptTotal:
    """The number of values of a column."""
    total = KeptTotal(column, "", "", squares=False, values=True)
    there = IsNull(StoredColumn(_ROW, column), negated=True)
    nearest = DUCKDB.write(Case(((there, Whole(1)),)))
    return replace(total, nearest=nearest, held=DUCKDB.write(Named(total.placed)))


def _kept(table: Table, column: Column) -> KeptTotal | None:
    if column.bounds is None or not _is_bounded(column):
        return None
    declared = Interval(Fraction(column.bounds.lower), Fraction(column.bounds.upper))
    argument = clip_columns(ColumnRef(_ROW, column.name, column.type, nullable=column.nullable, declared=declared))
    limits = interval_of(argument)
    if limits.lower is None or limits.upper is None:
        return None
    whole = column.type is ColumnType.INTEGER
    encoding = normed_sum_encoding(limits.lower, limits.upper, integer=whole, rows=table.rows_stored)
    return total_of(argument, encoding, table.rows_stored)


def total_of(argument: Expression | None, encoding: Encoding | None, rows: int) -> KeptTotal | None:
    """The total of a column's values in an encoding, over at most so many rows of a unit; None where none is kept."""
    inner = argument.arguments[0] if isinstance(argument, Call) and argument.operator == "clip" else argument
    if not isinstance(inner, ColumnRef) or argument is None or encoding is None or not inner.name.isidentifier():
        return None
    if encoding.lowest < 0 or rows * encoding.largest > NORM_MAX:
        return None
    stored = replace(inner, relation=_ROW)
    moved = replace(argument, arguments=(stored, *argument.arguments[1:])) if isinstance(argument, Call) else stored
    parameters = ParameterList()
    value = steps_of(moved, encoding, parameters, layered=True)
    if parameters.values:
        return None
    placed = Named(KeptTotal(inner.name, "", "", squares=False).placed)
    nearest, held = DUCKDB.write(value), DUCKDB.write(placed)
    if isinstance(value, Steps):
        nearest = DUCKDB.write(NearestSteps(value.value, value.offset, value.step))
        held = DUCKDB.write(HeldSteps(placed, value.lowest, value.highest))
    return KeptTotal(inner.name, nearest, held, squares=(rows * encoding.largest) ** 2 < _NARROW)
