"""Public groups of which nobody may be a member, left out by their noisy count: `nonempty` of a request.

Claim: it costs nothing beside the count. A group is shown when the interval of its noisy count does not reach zero, a
function of released numbers alone (post-processing: Dwork and Roth 2014, Proposition 2.1). Where the question has no
count of all rows, one is measured with it, and its price is part of the question's.

A group is shown because its noise was high enough, so the count of a shown group leans upwards. With h the half of the
interval's width at confidence 1 - alpha, a group is shown when its noisy count is above h; below 3 h the interval is
taken to begin at zero.

Claim: the interval of a shown group misses its true count n with probability at most alpha, given that it is shown.
Proof, for symmetric log-concave noise (Laplace, Gaussian), up to its grid. Let p = P(noise <= h - n), that it is not
shown. For n >= 2h the interval misses when the noise is beyond h or -h, alpha together; p is the part of that which is
not shown, and (alpha - p) / (1 - p) <= alpha. For n < 2h it misses only when the noise is above 3h - n. The quotient
P(noise > 3h - n) / P(noise > h - n) grows with n, as tails of log-concave laws are log-concave, and at n = 2h it is
(alpha / 2) / (1 - alpha / 2) <= alpha. `tests/journey/test_groups.py` measures it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from mechanisms.released_table import ReleasedTable
from privacy.release import ReleasedColumn

__all__ = ["without_empty"]

T = TypeVar("T")


def without_empty(table: ReleasedTable, count: str) -> ReleasedTable:
    """The table without groups whose noisy count, the column `count`, may be that of nobody."""
    column = next(column for column in table.columns if column.name == count)
    kept = [row for row, low in enumerate(column.lows) if low is None or low > 0]
    columns = tuple(_cut(_leaning(one) if one is column else one, kept) for one in table.columns)
    sums = None if table.sums is None else tuple(replace(one, values=one.values[kept]) for one in table.sums)
    return replace(table, rows=len(kept), columns=columns, sums=sums, cells=table.rows)


def _leaning(column: ReleasedColumn) -> ReleasedColumn:
    """The count with intervals that begin at zero where the noise may have shown the group."""
    lows: list[float | int | None] = []
    for value, low, high in zip(column.numbers, column.lows, column.highs, strict=True):
        near = value is not None and low is not None and high is not None and value < 3 * (high - value)
        lows.append(0 if near else low)
    return replace(column, lows=tuple(lows), linear=False)


def _cut(column: ReleasedColumn, kept: Sequence[int]) -> ReleasedColumn:
    def rows(values: tuple[T, ...]) -> tuple[T, ...]:
        return tuple(values[row] for row in kept) if values else values

    return replace(
        column,
        values=rows(column.values),
        standard_errors=rows(column.standard_errors),
        lows=rows(column.lows),
        highs=rows(column.highs),
    )
