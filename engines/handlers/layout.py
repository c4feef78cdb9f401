"""How a snapshot stores a declared column: the same for the snapshot itself and for its empty twin."""

from __future__ import annotations

from collections.abc import Sequence

from engines.described import DescribedColumn
from engines.handlers.connection import literal
from privacy.policy import ColumnType
from privacy.stored_norms import FIRST, ROWS, UNITS, KeptTotal, sizes_table, squares_name, total_name, units_table

__all__ = ["PLAIN_TYPES", "enumeration", "norm_types", "stored_type", "unit_tables"]

PLAIN_TYPES = {kind.value: kind.sql for kind in ColumnType}
"""The type of the values of a column: what an analyst sees, however they are stored."""


def enumeration(column: DescribedColumn) -> str | None:
    """The ENUM type of a column with declared text keys, in declared order."""
    return f"ENUM({', '.join(map(literal, column.keys))})" if column.keys else None


def stored_type(column: DescribedColumn) -> str:
    """The engine's type of a described column."""
    return enumeration(column) or PLAIN_TYPES[column.type]


def norm_types(columns: Sequence[str], totals: Sequence[KeptTotal]) -> list[tuple[str, str]]:
    """The columns of kept norms, with squares by these columns, and their types (privacy/stored_norms.py)."""
    names = [ROWS, *map(squares_name, columns), *(total.name for total in totals)]
    names += [total_name(total.column, by) for total in totals if total.squares for by in columns]
    return [*((name, "BIGINT") for name in names), (FIRST, "BOOLEAN")]


def unit_tables(
    table: str, columns: Sequence[str], totals: Sequence[KeptTotal]
) -> list[tuple[str, list[tuple[str, str]]]]:
    """The tables of a table's units (privacy/stored_norms.py), each with its columns and their types."""
    return [
        (units_table(table), norm_types(columns, totals)[:-1]),
        (sizes_table(table), [(ROWS, "BIGINT"), (UNITS, "BIGINT")]),
    ]
