"""The sums of each kind of statistic."""

from __future__ import annotations

from typing import assert_never

from privacy.aggregate import AggregateFunction
from privacy.statistic import StatisticKind
from sql_rewrite.statistics.counts import Rows, Units, Weights
from sql_rewrite.statistics.kind_sums import KindSums
from sql_rewrite.statistics.moments import Moments
from sql_rewrite.statistics.products import Products
from sql_rewrite.statistics.ranks import Ranks
from sql_rewrite.statistics.totals import Totals

__all__ = ["holder_of", "sums_of"]

_UNITS, _WEIGHTS, _ROWS, _TOTALS, _MOMENTS, _PRODUCTS, _RANKS = (
    Units(), Weights(), Rows(), Totals(), Moments(), Products(), Ranks(),
)  # fmt: skip


def sums_of(kind: StatisticKind) -> KindSums:
    """What a kind sums."""
    match kind:
        case StatisticKind.UNITS:
            return _UNITS
        case StatisticKind.WEIGHTS:
            return _WEIGHTS
        case StatisticKind.COUNT:
            return _ROWS
        case StatisticKind.SUM:
            return _TOTALS
        case StatisticKind.MOMENTS:
            return _MOMENTS
        case StatisticKind.PRODUCTS:
            return _PRODUCTS
        case StatisticKind.RANKS:
            return _RANKS
        case _:
            assert_never(kind)


def holder_of(function: AggregateFunction, sum_alone: str | None, shared: str | None) -> str:
    """Which of a family's statistics holds an aggregate: the sum by itself where there is one, or the moments."""
    holds = sums_of(function.statistic).holder(sum_alone, shared)
    assert holds is not None
    return holds
