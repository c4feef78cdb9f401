"""Values that windows have: places among the rows of a unit, and aggregates over the rows around each row."""

from __future__ import annotations

from typing import Literal

from sql_rewrite.scalars import Scalar, node

__all__ = ["OrderedBy", "Placed", "PlacedName", "RowFrame", "WithinUnit"]

PlacedName = Literal[
    "row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile",
    "lag", "lead", "first_value", "last_value", "nth_value",
]  # fmt: skip


@node
class Placed(Scalar):
    """What a row is given by its place among the rows of its unit: a place, or the value of a row at one."""

    function: PlacedName
    arguments: tuple[Scalar, ...]
    ignores_null: bool = False


@node
class OrderedBy:
    """A column that rows are ordered by."""

    name: str
    descending: bool
    nulls_first: bool


@node
class RowFrame:
    """The rows around each row, None for no end: so many of them, or without `rows` all that are equal to it (0).

    Ends `by` groups count groups of equal rows, `whole` numbers and `clock` microseconds are distances in the one
    column of the order, an integer of 128 bits or a number, or a timestamp. Rows of `exclude` are left out.
    """

    rows: bool
    start: int | None
    end: int | None
    by: Literal["", "groups", "whole", "clock"] = ""
    exclude: Literal["", "current row", "group", "ties"] = ""


@node
class WithinUnit(Scalar):
    """A place or an aggregate over the rows of one unit that have one value of each column of `partition`."""

    value: Scalar
    partition: tuple[str, ...]
    order: tuple[OrderedBy, ...]
    frame: RowFrame | None = None
