"""The columns of a core whose values are clipped to their declared bounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from privacy.policy import ColumnType
from sql_rewrite.expressions import Call, ColumnRef, Expression, Literal, Value, describe, walk

__all__ = ["clipped_columns"]


def clipped_columns(arguments: Sequence[Expression | None]) -> Iterator[tuple[str, Value, Value]]:
    """Columns that the arguments clip, with the bounds; except those whose values are all known to lie within."""
    for argument in arguments:
        for node in () if argument is None else walk(argument):
            # LEAST and GREATEST of the analyst are other operators.
            if not isinstance(node, Call) or node.operator != "clip":
                continue
            column, *ends = node.arguments
            lower, upper = (end.value if isinstance(end, Literal) else None for end in ends)
            if isinstance(column, ColumnRef) and not _within(column, lower, upper):
                yield describe(column), lower, upper


def _within(column: ColumnRef, lower: Value, upper: Value) -> bool:
    """Whether every value of the column is known to lie within: verified keys, and no group for other values."""
    if column.domain is None or column.other is not None or column.type is not ColumnType.INTEGER:
        return False
    return (
        isinstance(lower, int)
        and isinstance(upper, int)
        and all(value is None or (isinstance(value, int) and lower <= value <= upper) for value in column.domain)
    )
