"""The warning of differences of two moments whose range nobody narrowed: it is that of all moments on either side.

    SELECT AVG(date_diff('minute', began, ended)) FROM visits     a visit takes hours, the bounds of both columns years

Bounds of a column, declared or chosen, say when something may be, not how long it takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from privacy.policy import ColumnType
from privacy.refusal import Finding
from sql_rewrite.apart_facts import DIFFERENCES
from sql_rewrite.bound import BoundedCore
from sql_rewrite.expressions import Call, ColumnRef, Expression, Interval, columns_of, number_text, walk
from sql_rewrite.functions import build
from sql_rewrite.plan import GROUPS, Aggregate, Plan
from sql_rewrite.quantile_moments import number_written
from sql_rewrite.value_bounds import written_argument
from sql_rewrite.wide_ranges import NARROWER, SUMMED, WIDE, clipped, ends_of

__all__ = ["wide_differences"]

_MOMENTS = (ColumnType.DATE, ColumnType.TIMESTAMP)


def wide_differences(_: Plan, cores: tuple[BoundedCore, ...]) -> Iterator[Finding]:
    """One warning for each sum or average of such a difference, or of something computed from it."""
    for core in cores:
        for aggregate in core.core.aggregates:
            yield from _of_aggregate(aggregate)


def _of_aggregate(aggregate: Aggregate) -> Iterator[Finding]:
    argument = aggregate.argument
    if aggregate.function.statistic not in SUMMED or aggregate.second is not None or not isinstance(argument, Call):
        return
    found = next((one for one in walk(argument) if _apart(one)), None)
    ends = None if found is None else ends_of(argument)
    if found is None or ends is None or ends[1] - ends[0] < WIDE:
        return
    narrow = ends_of(_with_narrow(argument, found))
    if narrow is None or 2 * (narrow[1] - narrow[0]) > ends[1] - ends[0]:
        return  # something else makes it wide, or the text narrows it already
    written = written_argument(aggregate)
    number = number_written(aggregate, written) or written
    name = aggregate.text.partition("(")[0]
    distinct = "DISTINCT " if aggregate.distinct else ""
    yield Finding(
        code="range_not_narrowed",
        what=f"the noise of {aggregate.text} is that of values from {number_text(ends[0])} to {number_text(ends[1])}",
        why="It is how far two moments are apart, and only the bounds of each of them are known. The noise follows "
        "from the range, not from the values.",
        instead=(
            f"{name}({distinct}{clipped(number, *ends)}) where hardly any is further apart",
            "say in WHERE how far they are apart, and which of them comes first",
        ),
        position=aggregate.position,
    )


def _apart(node: Expression) -> bool:
    """Whether a value is how far two columns of moments are apart."""
    if not isinstance(node, Call) or node.operator not in DIFFERENCES:
        return False
    moments = [part for part in node.arguments if part.type in _MOMENTS]
    if node.operator == "subtract" and not moments:
        moments = [part for part in node.arguments if isinstance(part, Call) and part.operator == "epoch"]
    return len(moments) == 2 and all(map(columns_of, moments))


def _with_narrow(node: Expression, found: Expression) -> Expression:
    """The expression, were that difference so much smaller as is suggested."""
    if node is found:
        return _held(node, ends_of(node))
    if not isinstance(node, Call):
        return node
    if node.operator == "clip" and node.arguments[0] is found:
        within, ends = ends_of(found), ends_of(node)  # what conditions say of it
        if within is not None and ends is not None:
            return _held(node, (max(within[0] / NARROWER, ends[0]), min(within[1] / NARROWER, ends[1])), by=1)
    arguments = tuple(_with_narrow(argument, found) for argument in node.arguments)
    return build(node.operator, arguments) if arguments != node.arguments else replace(node)


def _held(node: Expression, ends: tuple[Fraction, Fraction] | None, *, by: int = NARROWER) -> ColumnRef:
    held = None if ends is None or ends[0] > ends[1] else Interval(*(Fraction(round(end / by)) for end in ends))
    return ColumnRef(GROUPS, "apart", node.type, nullable=True, declared=held)
