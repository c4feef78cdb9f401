"""The rows of small public tables as constants: everybody knows them, and so what is computed of them."""

from __future__ import annotations

import datetime
import math
from collections.abc import Collection
from typing import Final

from privacy.policy import ColumnType, Dataset
from privacy.values import Cell
from sql_rewrite.expressions import TEXT_LITERAL_MAX, Expression, Literal, Value

__all__ = ["is_known", "is_readable", "public_literals", "public_values"]

_ROWS_MAX = 1_000
_CELLS_MAX = 20_000
"""Most values of a public table that is read so: as many as the ranges of columns are found among."""


_CELLS_READ: Final = 100_000
"""Most values of a public table whose queries are computed beforehand; of them the columns that are named are read."""


def is_readable(name: str, dataset: Dataset) -> bool:
    """Whether a name is that of a public table whose rows a query may be computed from, while a question is planned.

    That of a larger table is none: what it gives would take too long for an estimate, which is free.
    """
    table = dataset.table(name)
    if table is None or table.protected or dataset.public is None:
        return False
    return _read(table.name, [table.columns[0].name], dataset) is not None


def public_values(
    name: str, columns: Collection[str] | None, dataset: Dataset
) -> tuple[list[str], list[tuple[Value, ...]]]:
    """Those of its columns that are named (folded), or all, and their rows. Requires: `is_readable`."""
    table = dataset.table(name)
    assert table is not None
    found = [column for column in table.columns if columns is None or column.name.lower() in columns]
    found = found or list(table.columns[:1])
    names = [column.name for column in found]
    rows = _read(table.name, names, dataset)
    assert rows is not None
    made = [tuple([_value(cell, one.type) for cell, one in zip(row, found, strict=True)]) for row in rows]
    return names, made


def _read(name: str, columns: list[str], dataset: Dataset) -> tuple[tuple[Cell, ...], ...] | None:
    table = dataset.table(name)
    assert table is not None
    assert dataset.public is not None
    return dataset.public.rows(name, columns, max(_ROWS_MAX, _CELLS_READ // len(table.columns)))


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
