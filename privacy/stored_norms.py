"""What a snapshot keeps of each unit beside its rows, so that no question has to group all rows by their unit.

Every row of a protected table with several rows of a unit has, of the unit that owns it:

    unit$rows            how many rows of the table it has: the L1 norm of its counts, whatever the groups
    unit$squares$COLUMN  the sum of the squares of its rows for each value of that column (NULL is one of them): the
                         square of the L2 norm of its counts by the column
    unit$first           true in exactly one row of each unit: one row for each unit without grouping

They are made when the data is attached, of the rows that are stored, and are functions of the unit's own rows alone.
"""

from __future__ import annotations

__all__ = ["FIRST", "ROWS", "SQUARES_MAX", "squares_name"]

ROWS, FIRST = "unit$rows", "unit$first"

SQUARES_MAX = 8
"""Most columns of a table for which squares are kept, the first in the order of the declaration."""


def squares_name(column: str) -> str:
    """The column of the squares by a declared column."""
    return f"unit$squares${column}"
