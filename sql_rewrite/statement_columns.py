"""The columns of a statement that stand for statistics: sums, numbers by place, and the halves of a wide integer."""

from __future__ import annotations

from collections.abc import Sequence

from privacy.statement import StatementPlaces
from privacy.statistic import Statistic
from sql_rewrite.bounded import BoundedStatistic
from sql_rewrite.layer_values import Half
from sql_rewrite.relations import Output
from sql_rewrite.scalars import Cast, Coalesce, Column, EngineType, Scalar, Whole

__all__ = ["UNITS_MAX", "coordinates_of", "halves_of", "lists_of"]

UNITS_MAX = 2**40
"""Most units (and rows) of a snapshot: a public constant that keeps every sum below 2^127."""


def coordinates_of(statistics: Sequence[BoundedStatistic]) -> tuple[str, ...]:
    """The names of the sums of statistics."""
    return tuple([f"{b.statistic.name}_{i}" for b in statistics for i in range(b.statistic.coordinates)])


def lists_of(statistic: Statistic) -> list[StatementPlaces]:
    """The lists of numbers by place of a statistic on a tree: of its rows, and of what blocks answer."""
    rows = StatementPlaces(statistic.name, statistic.places, UNITS_MAX * statistic.place_units)
    blocks = 0 if statistic.drawn is None else statistic.drawn.blocks
    return [rows, *[StatementPlaces(name, statistic.places, blocks) for name in statistic.block_names]]


def halves_of(name: str, *, count: bool) -> tuple[Output, Output]:
    """A sum as two integers of 64 bits; a plain count is never NULL and far below 2^62."""
    high: Scalar
    low: Scalar
    if count:
        high, low = Cast(Whole(0), EngineType.INTEGER), Column("g", name)
    else:
        value = Cast(Coalesce((Column("g", name), Whole(0))), EngineType.WIDE)
        high, low = Half("high", value), Half("low", value)
    return Output(high, f"{name}_high"), Output(low, f"{name}_low")
