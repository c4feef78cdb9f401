"""Which places the values of a column have, from declarations alone, and the place of one row's value in a statement.

Keys have a place each, numbers and dates lie on a grid, and NULL has the last place. Used by profiles of data
(profile.py) and by the marginals of synthetic tables (marginals.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import assert_never

from privacy.bounds import date_at, timestamp_at
from privacy.histogram import Grid, GridScale, Histogram, HistogramOf
from privacy.policy import Column, ColumnType, KeyValue, Table
from sql_rewrite.date_scalars import DatePart
from sql_rewrite.layer_values import Steps
from sql_rewrite.lower_expression import ParameterList
from sql_rewrite.relations import TableSource
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
    Negate,
    Null,
    Parameter,
    Scalar,
    Whole,
)
from sql_rewrite.scalars import Column as StoredColumn

__all__ = ["RowPlaces", "column_histogram", "grid_place", "names_units", "stored_as_key"]

_NUMBER_PLACES = 64
_KEYS_STORED_MAX = 1_000
"""Most keys whose sizes are released where they are stored as keys."""
_KEYS_COMPARED_MAX = 250
"""The same where a value is compared with one after the other."""
_MONTHS_MAX = 248
_YEARS = (1900, 200)
"""The first year and the number of years of a grid for dates without bounds."""
_OCTAVES = {ColumnType.INTEGER: (0, 40), ColumnType.NUMBER: (-20, 60)}
"""Of a logarithmic grid: the exponent of the least size, and the octaves from there on, for each sign."""


def names_units(table: Table, column: Column) -> bool:
    """Whether a column names the units of a table, or its rows: rows without it are in no snapshot."""
    return _named(column, {table.key, table.unit_column, *(reference.column for reference in table.unit_path[:1])})


def column_histogram(table: Table, column: Column, *, places: int | None = None) -> Histogram | None:
    """The histogram of a column's values; of one that names units or rows only whether it is NULL.

    `places` is about how many there are of numbers and dates with bounds, where another number is wanted.
    """
    if names_units(table, column):
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
        grid = None if keys else _grid(column, places)
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


def _grid(column: Column, places: int | None) -> Grid | None:
    numbers, most_months = places or _NUMBER_PLACES, places or _MONTHS_MAX
    bounds = column.bounds
    match column.type:
        case ColumnType.INTEGER | ColumnType.NUMBER:
            if bounds is None:
                first, octaves = _OCTAVES[column.type]
                return Grid(GridScale.LOGARITHMIC, Fraction(first), Fraction(1, 2), 2 * octaves)
            width = bounds.upper - bounds.lower
            if column.type is ColumnType.INTEGER:
                step = max(1, -(-math.floor(width + 1) // numbers))
                lower = Fraction(math.floor(bounds.lower))
                return Grid(GridScale.LINEAR, lower, Fraction(step), math.floor(width) // step + 1)
            if width == 0:
                return None
            return Grid(GridScale.LINEAR, bounds.lower, width / numbers, numbers)
        case ColumnType.DATE | ColumnType.TIMESTAMP:
            if bounds is None:
                return Grid(GridScale.MONTHS, Fraction(12 * _YEARS[0]), Fraction(12), _YEARS[1])
            at = date_at if column.type is ColumnType.DATE else timestamp_at
            low, high = at(bounds.lower), at(bounds.upper)
            first, last = 12 * low.year + low.month - 1, 12 * high.year + high.month - 1
            step = -(-(last - first + 1) // most_months)
            return Grid(GridScale.MONTHS, Fraction(first), Fraction(step), (last - first) // step + 1)
        case ColumnType.TEXT | ColumnType.BOOLEAN:
            return None
        case _:
            assert_never(column.type)


class RowPlaces:
    """Writes places of the values of one table's rows; `parameters` are the values that they are compared with."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.parameters = ParameterList()

    def source(self) -> tuple[TableSource, ...]:
        """The table, under the name that places refer to it by."""
        return (TableSource(self.table.name, "t", None),)

    def whole_place(self, histogram: Histogram) -> Scalar:
        """The bin of a row's value, that of NULL for NULL. Never NULL, and never beyond the bins."""
        return Coalesce((self.place(histogram), Whole(histogram.bins - 1 if histogram.null else 0)))

    def place(self, histogram: Histogram) -> Scalar:
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
        return grid_place(value, column.type, histogram.grid)

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


def grid_place(value: Scalar, kind: ColumnType, grid: Grid) -> Scalar:
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
