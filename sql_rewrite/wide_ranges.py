"""The warning of numbers computed within each unit whose range nobody narrowed: the noise follows from that range.

Where questions choose contribution bounds, a unit's own count may be as large as all rows that are stored of it, and no
histogram chooses a range for what is computed. The text can: `AVG(LEAST(n, 40))`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from privacy.bounds import AutomaticContribution
from privacy.refusal import Finding
from privacy.statistic_kind import StatisticKind
from sql_rewrite.bound import BoundedCore
from sql_rewrite.expressions import ColumnRef, describe, number_text
from sql_rewrite.plan import Aggregate, Plan
from sql_rewrite.unit_facts import contribution_bound
from sql_rewrite.value_bounds import written_argument

__all__ = ["wide_ranges"]

_WIDE = 100
"""Ranges up to here are not warned of."""

_NARROWER = 25
"""By how much the range that is suggested is narrower, about."""

_SUMMED = (StatisticKind.MOMENTS, StatisticKind.SUM)


def wide_ranges(_: Plan, cores: tuple[BoundedCore, ...]) -> Iterator[Finding]:
    """One warning for each sum or average of such a number."""
    for core in cores:
        computed = {
            source.relation
            for source in core.core.sources
            if source.groups is not None
            and isinstance(contribution_bound(source.groups.sources), AutomaticContribution)
        }
        for aggregate in core.core.aggregates:
            column = aggregate.argument
            if isinstance(column, ColumnRef) and column.relation in computed:
                yield from _of_column(aggregate, column)


def _of_column(aggregate: Aggregate, column: ColumnRef) -> Iterator[Finding]:
    declared = column.declared
    if declared is None or declared.lower is None or declared.upper is None:
        return
    if aggregate.function.statistic not in _SUMMED or declared.lower < 0 or declared.upper < _WIDE:
        return
    name, most = aggregate.text.partition("(")[0], _rounded(float(declared.upper) / _NARROWER)
    distinct = "DISTINCT " if aggregate.distinct else ""
    yield Finding(
        code="range_not_narrowed",
        what=f"the noise of {aggregate.text} is that of values up to {number_text(declared.upper)}",
        why=f'"{describe(column)}" is computed within each unit, from as many rows as are stored, and nobody declared '
        "how large it gets. The noise follows from the range, not from the values.",
        instead=(
            f"{name}({distinct}LEAST({written_argument(aggregate)}, {most})) where hardly any unit has more",
            "ask an administrator to declare how many rows of one unit count",
        ),
        position=aggregate.position,
    )


def _rounded(number: float) -> str:
    """The next number of one digit that is not less."""
    step = 10.0 ** math.floor(math.log10(number))
    return f"{math.ceil(number / step) * step:.0f}"
