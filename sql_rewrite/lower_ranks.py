"""Counts by place where a unit may have several rows: each row weighs what its unit is scaled to.

    counts    rows -> group by unit and key, weight of a row (lower_units.py) -> joined back to the rows by unit and key
    norms     rows -> norm of the unit, its factor (lower_normed.py) -> joined back to the rows by unit

Then both: rows with a value -> group by key and place, sum of weights -> group by key, one list of places. A weight is
an integer from 0 to 2^20, and all rows of a unit have the same (in a group, where counts bound them), so that the order
of rows does not matter and no row is chosen. mechanisms/quantiles.md has the proof.

The rows are written out twice. Hidden groups have their salt in both, and in the join (lower.py says why).
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import assert_never

from sql_rewrite.bounded import BoundedCore, BoundedStatistic
from sql_rewrite.contribution import Contribution, NormedContribution
from sql_rewrite.layer_values import Count, PlaceCounts, PlaceSums, Ranked, Sum
from sql_rewrite.lower_normed import NormSums
from sql_rewrite.lower_units import UnitSums
from sql_rewrite.relations import (
    Blocked,
    ChosenGroups,
    Extended,
    Grouped,
    HiddenKey,
    Kept,
    Output,
    Relation,
    Salted,
    UnitFactors,
)
from sql_rewrite.scalars import Cast, EngineType, IsNull, Named
from sql_rewrite.unit_worth import under

__all__ = ["blocks_answered", "places_counted", "places_summed"]


def places_summed(
    rows: Relation, bounded: BoundedCore, *, keys: tuple[str, ...], hidden: tuple[HiddenKey, ...]
) -> Relation:
    """One row for each group with the weights of its rows by place, as `{name}_p`: the core's one statistic.

    `rows` have the unit `u` (and its draw `d` where groups are chosen), the keys, and the place and the filter of the
    statistic.
    """
    (item,) = bounded.statistics
    name = item.statistic.name
    place, weight = f"{name}t", f"{name}w"
    names = ("s", *keys) if hidden else keys
    match bounded.contribution:
        case NormedContribution():
            units = NormSums(bounded, keys, hidden).weights(rows, weight)
            joined = UnitFactors(rows, units, (weight,))
            weighed: Relation = Salted(joined, hidden) if hidden else joined
        case Contribution() as counted:
            if counted.choose_groups:
                rows = ChosenGroups(rows, keys, counted.groups)
            if hidden:
                rows = Salted(rows, hidden)
            weighed = UnitFactors(rows, _cells(rows, bounded, counted, names, weight), (weight,), names)
        case _:
            assert_never(bounded.contribution)
    value = under(item, Named(place))
    read = tuple([Output(Named(column), column) for column in (*names, weight)])
    valued = Kept(Extended(weighed, "v", (Output(value, "place"),)), "w", IsNull(Named("place"), negated=True),
                  (*read, Output(Named("place"), "place")))  # fmt: skip
    by_place = (*names, "place")
    placed = Grouped(valued, "x", by_place, by_place, (Output(Sum(Named(weight)), weight),))
    counts = PlaceSums(Named("place"), Cast(Named(weight), EngineType.INTEGER))
    return Grouped(placed, "y", keys, names, (Output(counts, f"{name}_p"),))


def places_counted(rows: Relation, item: BoundedStatistic, *, keys: tuple[str, ...]) -> Relation:
    """The same as plain counts, where each unit has one row and groups are public.

    Rows are grouped by place before they become a list: of very many places a histogram takes twice as long.
    """
    name = item.statistic.name
    by_place = (*keys, "place")
    value = under(item, Named(f"{name}t"))
    read = tuple([Output(Named(column), column) for column in by_place])
    valued = Kept(Extended(rows, "v", (Output(value, "place"),)), "w", IsNull(Named("place"), negated=True), read)
    placed = Grouped(valued, "x", by_place, by_place, (Output(Count(), f"{name}w"),))
    counts = PlaceSums(Named("place"), Named(f"{name}w"))
    return Grouped(placed, "y", keys, keys, (Output(counts, f"{name}_p"),))


def blocks_answered(
    rows: Relation, item: BoundedStatistic, fraction: Fraction, name: str, *, keys: tuple[str, ...]
) -> Relation:
    """How often each place is the quantile of a block, by group: sample_and_aggregate.md. Groups are public.

    `rows` have the draw `d` of their unit, the keys, and the place and the filter of the statistic. A unit's rows are
    all in the block that its draw gives, whatever others there are; blocks without a row with a value are left out.
    """
    assert item.statistic.drawn is not None
    blocks = item.statistic.drawn.blocks
    value = under(item, Named(f"{item.statistic.name}t"))
    by = (*keys, "block")
    read = tuple([Output(Named(column), column) for column in (*by, "place")])
    valued = Kept(
        Extended(Blocked(rows, blocks, "block"), "v", (Output(value, "place"),)),
        "w",
        IsNull(Named("place"), negated=True),
        read,
    )
    part = Decimal(fraction.numerator) / Decimal(fraction.denominator)
    answered = Grouped(valued, "x", by, by, (Output(Ranked("discrete", Named("place"), part), "place"),))
    return Grouped(answered, "y", keys, keys, (Output(PlaceCounts(Named("place")), name),))


def _cells(
    rows: Relation, bounded: BoundedCore, contribution: Contribution, names: tuple[str, ...], weight: str
) -> Relation:
    """One row for each unit and group with the weight of its rows there."""
    sums = UnitSums(bounded, contribution)
    by = ("u", *names)
    layer = sums.with_totals(Grouped(rows, "r", by, by, sums.partial()))
    first, second = sums.masses()
    layer = Extended(Extended(layer, "p0", first), "p1", second)
    (made,) = second
    return Kept(layer, "q", None, (*[Output(Named(name), name) for name in by], Output(Named(made.name), weight)))
