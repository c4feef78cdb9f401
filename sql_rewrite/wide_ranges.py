"""The warnings of numbers computed within each unit, and of differences of moments, whose range nobody narrowed.

Where questions choose contribution bounds, a unit's own count may be as large as all rows that are stored of it, and no
histogram chooses a range for what is computed. The text can: `AVG(LEAST(n, 40))`, `AVG(LEAST(n * 2, 80))`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from privacy.bounds import AutomaticContribution
from privacy.policy import ColumnType
from privacy.refusal import Finding
from privacy.statistic_kind import StatisticKind
from sql_rewrite.apart_facts import DIFFERENCES
from sql_rewrite.bound import BoundedCore
from sql_rewrite.expressions import (
    Call,
    ColumnRef,
    Expression,
    Interval,
    columns_of,
    describe,
    interval_of,
    number_text,
    walk,
)
from sql_rewrite.functions import build, clip_columns
from sql_rewrite.plan import GROUPS, Aggregate, Plan, Source, UnitGroups, UnitRows
from sql_rewrite.quantile_moments import number_written
from sql_rewrite.unit_facts import contribution_bound
from sql_rewrite.value_bounds import written_argument

__all__ = ["NARROWER", "SUMMED", "WIDE", "clipped", "ends_of", "wide_differences", "wide_ranges"]

WIDE = 100
"""Ranges up to here are not warned of."""

NARROWER = 25
"""By how much the range that is suggested is narrower, about."""

SUMMED = (StatisticKind.MOMENTS, StatisticKind.SUM)
_NUMBERS = (ColumnType.INTEGER, ColumnType.NUMBER)

_Columns = frozenset[tuple[str, str]]
"""Relations and names of columns."""


def wide_ranges(_: Plan, cores: tuple[BoundedCore, ...]) -> Iterator[Finding]:
    """One warning for each sum or average of such a number, or of something computed from it."""
    for core in cores:
        computed = _computed(core.core.sources)
        for aggregate in core.core.aggregates if computed else ():
            yield from _of_aggregate(aggregate, computed)


def _computed(sources: Sequence[Source]) -> _Columns:
    """The columns that are computed within units of which nobody declared how many rows count."""
    found: set[tuple[str, str]] = set()
    for source in sources:
        within = source.groups or source.windows
        if within is not None and isinstance(contribution_bound(within.sources), AutomaticContribution):
            made = _made(within)
            names = [name for name, column in source.made.items() if _reads(column, made)]
        elif source.union is not None:
            below = [(branch, _computed(branch.sources)) for branch in source.union.branches]
            names = [
                name
                for place, (name, _) in enumerate(source.union.columns)
                if any(_reads(branch.columns[place], of_branch) for branch, of_branch in below)
            ]
        else:
            continue
        found.update((source.relation, name) for name in names)
    return frozenset(found)


def _made(within: UnitGroups | UnitRows) -> _Columns:
    """What is computed of several rows: not the keys of groups, and not the cells of rows, unless they are computed."""
    below = _computed(within.sources)
    if isinstance(within, UnitGroups):
        names = [*(value.name for value in within.values), *(name for name, key in within.keys if _reads(key, below))]
    else:
        names = [
            *(window.name for window in within.windows),
            *(name for name, cell in within.cells if _reads(cell, below)),
        ]
    return frozenset((GROUPS, name) for name in names)


def _reads(expression: Expression, columns: Collection[tuple[str, str]]) -> bool:
    return any((column.relation, column.name) in columns for column in columns_of(expression))


def _of_aggregate(aggregate: Aggregate, computed: _Columns) -> Iterator[Finding]:
    argument = aggregate.argument
    if aggregate.function.statistic not in SUMMED or argument is None or argument.type not in _NUMBERS:
        return
    wide = [column for column in columns_of(argument) if (column.relation, column.name) in computed]
    ends, narrow = ends_of(argument), ends_of(_narrowed(argument, computed))
    if not wide or ends is None or narrow is None or ends[1] - ends[0] < WIDE:
        return
    if 2 * (narrow[1] - narrow[0]) > ends[1] - ends[0]:
        return  # something else makes it wide, or the text narrows it already
    name = aggregate.text.partition("(")[0]
    distinct = "DISTINCT " if aggregate.distinct else ""
    yield Finding(
        code="range_not_narrowed",
        what=f"the noise of {aggregate.text} is that of values {_said(*ends)}",
        why=f'"{describe(wide[0])}" is computed within each unit, from as many rows as are stored, and nobody declared '
        "how large it gets. The noise follows from the range, not from the values.",
        instead=(
            f"{name}({distinct}{clipped(written_argument(aggregate), *ends)}) where hardly any unit has more",
            "ask an administrator to declare how many rows of one unit count",
        ),
        position=aggregate.position,
    )


def ends_of(expression: Expression) -> tuple[Fraction, Fraction] | None:
    """The range of an expression, None without ends."""
    found = interval_of(clip_columns(expression))
    return None if found.lower is None or found.upper is None else (found.lower, found.upper)


def _narrowed(node: Expression, computed: _Columns) -> Expression:
    """The expression, were these columns so much smaller as is suggested."""
    if isinstance(node, ColumnRef):
        declared = node.declared
        if (node.relation, node.name) not in computed or declared is None:
            return node
        lower, upper = (None if end is None else end / NARROWER for end in (declared.lower, declared.upper))
        if node.type is ColumnType.INTEGER:
            lower = None if lower is None else Fraction(math.floor(lower))
            upper = None if upper is None else Fraction(math.ceil(upper))
        return replace(node, declared=Interval(lower, upper), interval=None)
    if isinstance(node, Call):
        return build(node.operator, tuple(_narrowed(argument, computed) for argument in node.arguments))
    return node


def _said(lower: Fraction, upper: Fraction) -> str:
    return f"up to {number_text(upper)}" if lower >= 0 else f"from {number_text(lower)} to {number_text(upper)}"


def clipped(written: str, lower: Fraction, upper: Fraction) -> str:
    """The argument as it is written, clipped at ends that are far away: not at one that adds next to nothing."""
    far = max(Fraction(WIDE // 2), upper / NARROWER, -lower / NARROWER)
    if upper >= far:
        written = f"LEAST({written}, {_rounded(float(upper) / NARROWER)})"
    return f"GREATEST({written}, -{_rounded(-float(lower) / NARROWER)})" if lower <= -far else written


def _rounded(number: float) -> str:
    """The next number of one digit that is not less."""
    step = 10.0 ** math.floor(math.log10(number))
    return f"{math.ceil(number / step) * step:.0f}"


_MOMENTS = (ColumnType.DATE, ColumnType.TIMESTAMP)


def wide_differences(_: Plan, cores: tuple[BoundedCore, ...]) -> Iterator[Finding]:
    """One warning for each sum or average of a difference of two moments whose range nobody narrowed.

        SELECT AVG(date_diff('minute', began, ended)) FROM visits     a visit takes hours, the bounds of both years

    Bounds of a column, declared or chosen, say when something may be, not how long it takes.
    """
    for core in cores:
        for aggregate in core.core.aggregates:
            yield from _of_difference(aggregate)


def _of_difference(aggregate: Aggregate) -> Iterator[Finding]:
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
