"""The rows of small public tables as constants: everybody knows them, and so what is computed of them."""

from __future__ import annotations

import datetime
import math

from privacy.policy import ColumnType, Dataset
from privacy.values import Cell
from sql_rewrite.expressions import TEXT_LITERAL_MAX, Expression, Literal, Value

__all__ = ["is_known", "public_literals"]

_ROWS_MAX = 1_000
_CELLS_MAX = 20_000
"""Most values of a public table that is read so: as many as the ranges of columns are found among."""


def is_known(name: str, dataset: Dataset) -> bool:
    """Whether a name is that of a public table whose rows may be read as constants."""
    table = dataset.table(name)
    return table is not None and not table.protected and _cells(name, dataset) is not None


def public_literals(name: str, dataset: Dataset) -> tuple[list[str], list[tuple[Expression, ...]]]:
    """The names of its columns, and its rows. Requires: `is_known`."""
    table, rows = dataset.table(name), _cells(name, dataset)
    assert table is not None
    assert rows is not None
    kinds = [column.type for column in table.columns]
    found: list[tuple[Expression, ...]] = [
        tuple([Literal(_value(cell, kind), kind) for cell, kind in zip(row, kinds, strict=True)]) for row in rows
    ]
    return [column.name for column in table.columns], found


def _cells(name: str, dataset: Dataset) -> list[tuple[Cell, ...]] | None:
    table = dataset.table(name)
    if table is None or dataset.public is None:
        return None
    names = [column.name for column in table.columns]
    rows = dataset.public.rows(table.name, names, min(_ROWS_MAX, _CELLS_MAX // len(names)))
    long = any(isinstance(cell, str) and len(cell) > TEXT_LITERAL_MAX for row in rows or () for cell in row)
    return None if rows is None or long else [tuple(row) for row in rows]


def _value(cell: Cell, kind: ColumnType) -> Value:
    if kind is ColumnType.NUMBER and isinstance(cell, int | float) and not isinstance(cell, bool):
        return float(cell) if math.isfinite(cell) else None
    assert cell is None or isinstance(cell, bool | int | float | str | datetime.date)
    return cell
