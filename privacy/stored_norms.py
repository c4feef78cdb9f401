"""What a snapshot keeps of each unit beside its rows, so that no question has to group all rows by their unit.

Every row of a protected table with several rows of a unit has, of the unit that owns it:

    unit$rows            how many rows of the table it has: the L1 norm of its counts, whatever the groups
    unit$squares$COLUMN  the sum of the squares of its rows for each value of that column (NULL is one of them): the
                         square of the L2 norm of its counts by the column
    unit$total$COLUMN    the sum of that column's values over its rows, each as the whole number of steps that a SUM
                         adds for it, none of them negative: the L1 norm of its sums, whatever the groups
    unit$values$COLUMN   how many of its rows have a value there, for a column that may be NULL
    unit$total$COLUMN$BY the sum of the squares of these sums for each value of the column BY: the square of the L2 norm
    unit$first           true in exactly one row of each unit: one row for each unit without grouping

Beside the table stand two more, for what needs no row of a unit but only its norms:

    TABLE$units  one row for each unit that has a row, with its norms as they are beside its rows
    TABLE$sizes  one row for each number of rows that some unit has, `unit$rows`, with how many units have as many,
                 `unit$units`

All are made when the data is attached, of the rows that are stored, and are functions of the unit's own rows alone.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "FIRST",
    "ROWS",
    "SQUARES_MAX",
    "TOTALS_MAX",
    "UNITS",
    "KeptTotal",
    "sizes_table",
    "squares_name",
    "total_name",
    "units_table",
]

ROWS, FIRST = "unit$rows", "unit$first"

UNITS = "unit$units"
"""How many units have a number of rows."""

SQUARES_MAX = 8
"""Most columns of a table for which squares are kept, the first in the order of the declaration."""


TOTALS_MAX = 4
"""Most columns of a table of which totals, or numbers of values, are kept: the first with bounds that are declared."""


@dataclass(frozen=True, slots=True)
class KeptTotal:
    """What is added up of a column: two expressions of an engine, `nearest` of a stored row `t`, and `held` of that.

    They say what was added up, so that no other sum is taken for it; `squares` says that sums of squares by
    the columns of the table's squares are kept too, and `values` that what is added up is 1 for each value.
    """

    column: str
    nearest: str
    held: str
    squares: bool
    values: bool = False

    @property
    def name(self) -> str:
        """The column that has it."""
        return f"unit$values${self.column}" if self.values else total_name(self.column)

    @property
    def placed(self) -> str:
        """The name of `nearest` in `held`."""
        return f"{'n' if self.values else 'q'}${self.column}"


def units_table(table: str) -> str:
    """The table of the units of a table: no declared table can have such a name."""
    return f"{table}$units"


def sizes_table(table: str) -> str:
    """The table of the numbers of rows that units of a table have."""
    return f"{table}$sizes"


def squares_name(column: str) -> str:
    """The column of the squares by a declared column."""
    return f"unit$squares${column}"


def total_name(column: str, by: str | None = None) -> str:
    """The column of the totals of a declared column, or of their squares by another one."""
    return f"unit$total${column}" if by is None else f"unit$total${column}${by}"
