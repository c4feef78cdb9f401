"""Questions to begin with, from what a dataset file declares: never from a value of a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from privacy.policy import Column, Dataset, Table

__all__ = ["first_question", "next_question"]

_GROUPS_MAX = 60
"""Most groups of a proposed question: an answer that fits on a screen."""


def first_question(dataset: Dataset) -> str:
    """A question that every dataset can answer: how many units there are."""
    table = _units(dataset)
    if dataset.unit.key is None or table.one_row:
        return f"SELECT COUNT(*) AS number\nFROM {table.name}"
    return f"SELECT COUNT(DISTINCT {dataset.unit.key}) AS number\nFROM {table.name}"


def next_question(dataset: Dataset) -> str:
    """A question that shows more, as far as the declarations allow: groups that are few, averages that have bounds.

    A text column without declared keys is never a group: it may be free text, and each value rare.
    """
    table = _units(dataset)
    columns = [column for column in table.columns if not _names_rows(dataset, table, column)]
    group = min((column for column in columns if _rank(column) is not None), key=lambda c: _rank(c) or 0, default=None)
    value = next((c for c in columns if c.bounds is not None and c is not group), None)
    mean = "" if value is None else f"AVG({value.name}) AS mean_{value.name}"
    if group is not None:
        more = f", {mean}" if mean else ""
        return f"SELECT {group.name}, COUNT(*) AS number{more} FROM {table.name} GROUP BY {group.name}"
    if mean:
        return f"SELECT {mean} FROM {table.name}"
    if table.contribution is not None and not table.one_row:
        return f"SELECT COUNT(*) AS number FROM {table.name}"
    given = next((column for column in columns if column.nullable), None)
    counted = "*" if given is None else given.name
    return f"SELECT COUNT({counted}) AS {'number' if given is None else 'given'} FROM {table.name}"


def _units(dataset: Dataset) -> Table:
    table = dataset.table(dataset.unit.table)
    assert table is not None
    return table


def _names_rows(dataset: Dataset, table: Table, column: Column) -> bool:
    """Whether the column names units or rows, or is one that SQL reads in quotes only."""
    from server.datasets.identifiers import RESERVED

    keys = {dataset.unit.key, table.key, table.unit_column, *(reference.column for reference in table.references)}
    return column.name in keys or column.name.lower() in RESERVED


def _rank(column: Column) -> int | None:
    """How good the column is as a group, the least being the best; None for a column that cannot be a group."""
    from privacy.policy import ColumnType

    if column.keys is not None:
        return 0 if 2 <= len(column.keys.values) <= _GROUPS_MAX else None
    if column.type is ColumnType.BOOLEAN:
        return 1
    if column.type is ColumnType.INTEGER and column.bounds is not None:
        return 2 if column.bounds.upper - column.bounds.lower < _GROUPS_MAX else None
    return None
