"""The proved range of what an aggregate sums, or a refusal that explains why there is none and what may help."""

from __future__ import annotations

import re
from fractions import Fraction

from privacy.aggregate import AggregateFunction
from privacy.policy import ColumnType
from sql_rewrite.calendar_ranges import without_calendar
from sql_rewrite.expressions import Call, ColumnRef, Expression, Literal, columns_of, describe, interval_of
from sql_rewrite.functions import clip_columns
from sql_rewrite.functions.moments import has_calendar_range
from sql_rewrite.plan import Aggregate
from sql_rewrite.quantile_moments import number_written
from sql_rewrite.refuse import refuse

__all__ = ["proved_range", "written_argument"]

MAGNITUDE_MAX = Fraction(10**15)
"""Largest absolute value bound that is accepted; beyond it doubles lose whole units."""

_SORTED_BY = re.compile(r"\bWITHIN\s+GROUP\s*\(\s*ORDER\s+BY\s", re.IGNORECASE)
_DIRECTION = re.compile(r"\s(ASC|DESC|NULLS)\b", re.IGNORECASE)

_LIMITLESS = "so one person could change it without limit."


def proved_range(aggregate: Aggregate, argument: Expression, *, second: bool = False) -> tuple[Fraction, Fraction]:
    """The range of an aggregate's argument, whose columns are clipped in `argument`; or of its second one.

    Errors: Refused (column_without_bounds) with the ways out.
    """
    read = aggregate.second if second else aggregate.argument
    assert read is not None
    interval = interval_of(without_calendar(argument))
    lower, upper = interval.lower, interval.upper
    if (
        lower is None
        or upper is None
        or (argument.type is ColumnType.INTEGER and max(abs(lower), abs(upper)) > MAGNITUDE_MAX)
    ):
        why, instead = _unbounded(read)
        raise refuse(
            "column_without_bounds",
            f"{aggregate.text} is refused",
            why,
            _clipped_call(aggregate, second=second),
            *instead,
            "use COUNT(*), which needs no bounds",
            position=aggregate.position,
        )
    if max(abs(lower), abs(upper)) > MAGNITUDE_MAX:
        raise refuse(
            "column_without_bounds",
            f"{aggregate.text} is refused",
            "The bounds of its argument are larger than 1e15, so the answer would be all noise.",
            "declare tighter bounds, or clip the argument with GREATEST and LEAST",
            position=aggregate.position,
        )
    return lower, upper


def _clipped_call(aggregate: Aggregate, *, second: bool) -> str:
    """The call with the argument that has no bounds clipped."""
    name = aggregate.text.split("(", 1)[0].strip().upper() or "SUM"
    clipped = _clipped(aggregate, second=second)
    if aggregate.fraction is None or name in ("MEDIAN", "MAD"):
        return f"{name}({clipped})"
    name = "QUANTILE_CONT" if aggregate.function is AggregateFunction.QUANTILE else "QUANTILE_DISC"
    return f"{name}({clipped}, {float(aggregate.fraction):.12g})"


def _clipped(aggregate: Aggregate, *, second: bool) -> str:
    """The arguments of a call with the one that has no bounds clipped."""
    if aggregate.second is None:
        written = written_argument(aggregate)
        written = number_written(aggregate, written) or written
        return f"{'DISTINCT ' * aggregate.distinct}GREATEST(<lowest>, LEAST({written}, <highest>))"
    texts = [describe(value) for value in aggregate.values]
    texts[second] = f"GREATEST(<lowest>, LEAST({texts[second]}, <highest>))"
    return ", ".join(texts)


def written_argument(aggregate: Aggregate) -> str:
    """The argument as the analyst wrote it, with the tables of its columns, where it stands whole in the text."""
    assert aggregate.argument is not None
    depth, inside = 0, aggregate.text.partition("(")[2]
    inside = re.sub(r"^\s*DISTINCT\b\s*", "", inside, flags=re.IGNORECASE)
    ranked = aggregate.fraction is not None
    if ranked and (sorted_by := _SORTED_BY.search(inside)):
        inside = inside[sorted_by.end() :]
    within = ""
    for place, sign in enumerate(inside):
        if within or sign in ("'", '"'):
            within = "" if sign == within else within or sign
            continue
        depth += (sign == "(") - (sign == ")")
        # What a quantile is of ends before the part of the rows, and before the direction in which they are sorted.
        ends = depth == 0 and ranked and (sign == "," or _DIRECTION.match(inside, place))
        if depth < 0 or ends:
            whole = inside[:place]
            return whole.strip() if {"'", '"'} & set(whole) else " ".join(whole.split())
    return describe(aggregate.argument)


def _unbounded(argument: Expression) -> tuple[str, tuple[str, ...]]:
    """Why an argument has no range, and what may help: the columns, or the operator, that lack one."""
    columns: dict[str, None] = {}
    stack: list[Expression] = [argument]
    while stack:
        node = stack.pop()
        if isinstance(node, ColumnRef):
            columns[f'"{describe(node)}"'] = None
        if not isinstance(node, Call):
            continue
        if has_calendar_range(node):
            dates = [column for column in columns_of(node) if column.declared is None]
            columns.update(dict.fromkeys(f'"{describe(column)}"' for column in dates))
            if dates:
                continue
        if node.operator in ("cast_integer", "cast_number") and node.arguments[0].type is ColumnType.TEXT:
            return f"{describe(node)} reads text as a number, and a text can hold any number, {_LIMITLESS}", ()
        culprits = [part for part in node.arguments if not _has_range(part)]
        if not culprits:
            return f"{describe(node)} has no range below 1e15 that could be proved, {_LIMITLESS}", ()
        stack.extend(reversed(culprits))
    names = ", ".join(columns) or "its columns"
    many = "the columns" if len(columns) > 1 else "the column"
    return f"No value bounds are declared for {names}, {_LIMITLESS}", (
        f"ask an administrator to declare bounds for {many}",
    )


def _has_range(expression: Expression) -> bool:
    """Whether a number's range is known and small enough for a sum; true for constants and for what is non-numeric."""
    if expression.type not in (ColumnType.INTEGER, ColumnType.NUMBER) or isinstance(expression, Literal):
        return True
    interval = interval_of(without_calendar(clip_columns(expression)))
    return (
        interval.lower is not None
        and interval.upper is not None
        and max(abs(interval.lower), abs(interval.upper)) <= MAGNITUDE_MAX
    )
