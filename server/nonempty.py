"""Public groups of which nobody may be a member, left out by their noisy count: `nonempty` of a request.

Claim: it costs nothing beside the count. A group is shown when the interval of its noisy count does not reach zero, a
function of released numbers alone (post-processing: Dwork and Roth 2014, Proposition 2.1). Where the question has no
count of all rows, one is measured with it, and its price is part of the question's.

A group is shown because its noise was high enough, so the count of a shown group leans upwards. With h the half of the
interval's width, a group is shown when its noisy count is above h. Below 3 h the interval is taken to begin at zero. A
count above 3 h has a true count n below its interval, given that it is shown, with probability
P(noise > max(h, 3h - n)) / P(noise > h - n): for Laplace and Gaussian noise that is at most the half of alpha which the
interval leaves on each side (n = 0 gives alpha^2 / 2 for Laplace noise) as long as n < 2h, and beyond that this half
divided by the probability of being shown, which is near one. `tests/journey/test_groups.py` measures it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from privacy.release import ReleasedColumn, ReleasedTable

__all__ = ["without_empty"]


def without_empty(table: ReleasedTable, count: str) -> ReleasedTable:
    """The table without groups whose noisy count, the column `count`, may be that of nobody."""
    column = next(column for column in table.columns if column.name == count)
    kept = [row for row, low in enumerate(column.lows) if low is None or low > 0]
    columns = tuple(_cut(_leaning(one) if one is column else one, kept) for one in table.columns)
    sums = None if table.sums is None else tuple(replace(one, values=one.values[kept]) for one in table.sums)
    return replace(table, rows=len(kept), columns=columns, sums=sums, chosen=True)


def _leaning(column: ReleasedColumn) -> ReleasedColumn:
    """The count with intervals that begin at zero where the noise may have shown the group."""
    lows: list[Any] = []
    for value, low, high in zip(column.values, column.lows, column.highs, strict=True):
        near = low is not None and high is not None and value < 3 * (high - value)
        lows.append(0 if near else low)
    return replace(column, lows=tuple(lows), linear=False)


def _cut(column: ReleasedColumn, kept: Sequence[int]) -> ReleasedColumn:
    def rows(values: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(values[row] for row in kept) if values else values

    return replace(
        column,
        values=rows(column.values),
        standard_errors=rows(column.standard_errors),
        lows=rows(column.lows),
        highs=rows(column.highs),
    )
