"""Rows of released tables chosen, sorted and cut as DuckDB does it: what most outer queries ask, without an engine.

DuckDB sorts texts by the bytes of their UTF-8, which is the order of their characters' numbers; a released number that
is NaN is NULL to it; NULL comes last unless the query says otherwise, in both directions. Rows that are equal in every
term stay in the order of the released table, where DuckDB promises none.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from mechanisms.released_table import ReleasedTable
from privacy.values import Cell
from sql_rewrite.plan import Arrangement, FilteredArrangement, Kept, SortTerm
from sql_rewrite.released import ROW

__all__ = ["arranged"]


def arranged(table: ReleasedTable, arrangement: Arrangement) -> list[tuple[Cell, ...]]:
    """The rows of the table that the arrangement shows, in its order and with its columns."""
    values: dict[str, Sequence[Cell]] = {column.name: _numbers(column.values) for column in table.columns}
    values[ROW] = range(table.rows)
    rows = list(range(table.rows))
    if isinstance(arrangement, FilteredArrangement):
        rows = [row for row in rows if all(_is_kept(values[one.column][row], one) for one in arrangement.kept)]
    # Sorts are stable, so the last term comes first.
    for term in reversed(arrangement.order):
        rows = _sorted(rows, values[term.column], term)
    end = None if arrangement.limit is None else arrangement.offset + arrangement.limit
    shown = rows[arrangement.offset : end]
    return [tuple(values[name][row] for name in arrangement.columns) for row in shown]


_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _is_kept(value: Cell, condition: Kept) -> bool:
    """Whether a number fulfils a comparison; NULL fulfils none."""
    return value is not None and _COMPARED[condition.operator](value, condition.number)


def _sorted(rows: list[int], values: Sequence[Any], term: SortTerm) -> list[int]:
    nulls = [row for row in rows if values[row] is None]
    known = [row for row in rows if values[row] is not None]
    known.sort(key=lambda row: values[row], reverse=term.descending)
    return nulls + known if term.nulls_first else known + nulls


def _numbers(values: Sequence[Cell]) -> Sequence[Cell]:
    """The values with NULL in place of NaN."""
    if any(isinstance(value, float) and math.isnan(value) for value in values):
        return [None if isinstance(value, float) and math.isnan(value) else value for value in values]
    return values
