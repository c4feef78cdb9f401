"""The columns of a core whose values are clipped to their declared bounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from privacy.policy import ColumnType
from sql_rewrite.expressions import Call, ColumnRef, Expression, Interval, Literal, Value, describe, walk
from sql_rewrite.plan import Source

__all__ = ["clipped_columns"]


def clipped_columns(
    arguments: Sequence[Expression | None], sources: Sequence[Source]
) -> Iterator[tuple[str, Value, Value]]:
    """Columns that the arguments clip, with the bounds; except those whose values are all known to lie within."""
    for argument in arguments:
        for node in () if argument is None else walk(argument):
            # LEAST and GREATEST of the analyst are other operators.
            if not isinstance(node, Call) or node.operator != "clip":
                continue
            column, *ends = node.arguments
            lower, upper = (end.value if isinstance(end, Literal) else None for end in ends)
            if isinstance(column, ColumnRef) and not _within(column, lower, upper) and _cut(column, sources):
                yield describe(column), lower, upper


def _cut(column: ColumnRef, sources: Sequence[Source]) -> bool:
    """Whether an end is declared: conditions prove every other one of the rows that are read (narrowed_values.py)."""
    declared = _declared(column, sources)
    if declared is None:
        return True
    own = column.declared or declared
    return own.lower == declared.lower is not None or own.upper == declared.upper is not None


def _declared(column: ColumnRef, sources: Sequence[Source]) -> Interval | None:
    """What is declared of a column before conditions narrow it; None where that is not known."""
    source = next((one for one in sources if one.relation == column.relation), None)
    if source is None:
        return None
    if not source.stored:
        made = source.made.get(column.name)
        # A column without bounds has those that the question chose, which answers show by themselves.
        return (made.declared or Interval(None, None)) if isinstance(made, ColumnRef) else None
    found = next((one for one in source.table.columns if one.name == column.name), None)
    if found is None or found.bounds is None:
        return None if found is None else Interval(None, None)
    return Interval(found.bounds.lower, found.bounds.upper)


def _within(column: ColumnRef, lower: Value, upper: Value) -> bool:
    """Whether every value of the column is known to lie within: verified keys, and no group for other values."""
    if column.domain is None or column.other is not None or column.type is not ColumnType.INTEGER:
        return False
    return (
        isinstance(lower, int)
        and isinstance(upper, int)
        and all(value is None or (isinstance(value, int) and lower <= value <= upper) for value in column.domain)
    )
