"""Counts by place where a unit may have several rows: each row weighs what its unit is scaled to.

    counts    rows -> group by unit and key, weight of a row (lower_units.py) -> joined back to the rows by unit and key
    norms     rows -> norm of the unit, its factor (lower_normed.py) -> joined back to the rows by unit

Where the snapshot keeps what a weight follows from, beside each row, no row is grouped by its unit: `weighed_by_norm`,
and by counts `weighed_alike` for units within the bounds, or without keys for all rows beside what others weigh less,
which `weighed_by_number` finds without grouping them where their number is kept (light_units.py).

Then all: rows with a value -> group by key and place, sum of weights -> group by key, one list of places. A weight is
an integer from 0 to 2^20, and all rows of a unit have the same (in a group, where counts bound them), so that the order
of rows does not matter and no row is chosen. mechanisms/quantiles.md has the proof.

Rows that are grouped by unit are computed once and read twice. Hidden groups have their salt in
both, and in the join (lower.py says why).
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import assert_never

from sql_rewrite.bounded import BoundedCore, BoundedStatistic
from sql_rewrite.contribution import Contribution, NormedContribution
from sql_rewrite.layer_values import SMALL_PLACES, Count, PlaceCounts, PlaceSums, Ranked, SmallPlace, Sum
from sql_rewrite.lower_normed import NormSums
from sql_rewrite.lower_units import UnitSums
from sql_rewrite.relations import (
    Appended,
    Blocked,
    CalledRows,
    ChosenGroups,
    ComputedOnce,
    Extended,
    Grouped,
    HiddenKey,
    Kept,
    Output,
    Projected,
    Relation,
    Salted,
    UnitFactors,
)
from sql_rewrite.scalars import Arithmetic, Case, Cast, Comparison, EngineType, IsNull, Named, Scalar, Whole
from sql_rewrite.unit_worth import under

__all__ = [
    "blocks_answered",
    "places_counted",
    "places_summed",
    "weighed_alike",
    "weighed_by_norm",
    "weighed_by_number",
    "weighed_by_unit",
]


def weighed_by_unit(
    rows: Relation,
    bounded: BoundedCore,
    *,
    keys: tuple[str, ...],
    hidden: tuple[HiddenKey, ...],
    counted: bool = False,
) -> Relation:
    """Rows with a value as keys, weight and place: the weight is found by grouping the rows by unit.

    With `counted` the rows are counted as whole ones elsewhere, and the weight is what it is beyond that: at most 0.
    `rows` have the unit `u` (and its draw `d` where groups are chosen), the keys, and the place and the filter of the
    core's one statistic.
    """
    (item,) = bounded.statistics
    weight = f"{item.statistic.name}w"
    names = _names(keys, hidden)
    match bounded.contribution:
        case NormedContribution():
            units = NormSums(bounded, keys, hidden).weights(rows, weight)
            joined = UnitFactors(rows, units, (weight,))
            weighed: Relation = Salted(joined, hidden) if hidden else joined
        case Contribution() as contribution:
            if contribution.choose_groups:
                rows = ChosenGroups(rows, keys, contribution.groups)
            if hidden:
                rows = Salted(rows, hidden)
            read = CalledRows("uw")
            made = UnitFactors(read, _cells(read, bounded, contribution, names, weight), (weight,), names)
            weighed = ComputedOnce(rows, read.name, made)
        case _:
            assert_never(bounded.contribution)
    if not counted:
        return _valued(weighed, item, (*names, weight))
    beyond = Arithmetic("-", Named(weight), Whole(item.statistic.place_units), EngineType.INTEGER)
    outputs = (*[Output(Named(name), name) for name in names], Output(beyond, weight), Output(Named("place"), "place"))
    return Projected(_valued(weighed, item, (*names, weight)), "q", outputs)


def weighed_by_number(rows: Relation, bounded: BoundedCore) -> Relation:
    """What rows weigh beyond a whole one, at most 0, of a core without keys.

    Rows have a column `{name}n`: how many of their unit have a value.
    """
    (item,) = bounded.statistics
    assert isinstance(bounded.contribution, Contribution)
    assert not bounded.contribution.scaled
    name, worth = item.statistic.name, item.statistic.place_units
    number = Named(f"{name}n")
    part = Cast(Arithmetic("//", Whole(item.rows * worth), number, EngineType.INTEGER), EngineType.INTEGER)
    weight = Case(((Comparison(">", number, Whole(item.rows), closed=False), part),), Whole(worth))
    beyond = Arithmetic("-", Cast(weight, EngineType.INTEGER), Whole(worth), EngineType.INTEGER)
    return _valued(Extended(rows, "q", (Output(beyond, f"{name}w"),)), item, (f"{name}w",))


def weighed_by_norm(rows: Relation, bounded: BoundedCore, *, keys: tuple[str, ...]) -> Relation:
    """The same where rows have the norm of their unit, in a column of `lower_normed.py`. Groups are public."""
    (item,) = bounded.statistics
    weight = f"{item.statistic.name}w"
    weighed = NormSums(bounded, keys, ()).weighed(rows, weight)
    return _valued(weighed, item, (*keys, weight))


def weighed_alike(
    rows: Relation, bounded: BoundedCore, *, keys: tuple[str, ...], hidden: tuple[HiddenKey, ...]
) -> Relation:
    """The same of rows that weigh one row each. Without keys they are counted by place, and a place has all at once."""
    (item,) = bounded.statistics
    name, names = item.statistic.name, _names(keys, hidden)
    if not names:
        counted = _by_place(_valued(rows, item, ()), (), Output(Count(), "n"))
        weight = Arithmetic("*", Named("n"), Whole(item.statistic.place_units), EngineType.INTEGER)
        read = (Output(Cast(weight, EngineType.INTEGER), f"{name}w"), Output(Named("place"), "place"))
        return Projected(counted, "q", read)
    rows = Salted(rows, hidden) if hidden else rows
    weighed = Extended(rows, "q", (Output(Cast(Whole(item.statistic.place_units), EngineType.INTEGER), f"{name}w"),))
    return _valued(weighed, item, (*names, f"{name}w"))


def places_summed(
    parts: tuple[Relation, ...], item: BoundedStatistic, *, keys: tuple[str, ...], hidden: tuple[HiddenKey, ...]
) -> Relation:
    """One row for each group with the weights of the parts' rows by place, as `{name}_p`."""
    weight, names = f"{item.statistic.name}w", _names(keys, hidden)
    rows = parts[0] if len(parts) == 1 else Appended(parts)
    placed = _by_place(rows, names, Output(Sum(Named(weight)), weight))
    counts = PlaceSums(Named("place"), Cast(Named(weight), EngineType.INTEGER))
    return Grouped(placed, "y", keys, names, (Output(counts, f"{item.statistic.name}_p"),))


def _names(keys: tuple[str, ...], hidden: tuple[HiddenKey, ...]) -> tuple[str, ...]:
    """The keys by which rows are grouped, and the salt of hidden ones."""
    return ("s", *keys) if hidden else keys


def _valued(rows: Relation, item: BoundedStatistic, names: tuple[str, ...]) -> Relation:
    """The rows with a value, as these columns and their place."""
    read = tuple([Output(Named(column), column) for column in (*names, "place")])
    placed = Extended(rows, "v", (Output(_place(item), "place"),))
    return Kept(placed, "w", IsNull(Named("place"), negated=True), read)


def places_counted(rows: Relation, item: BoundedStatistic, *, keys: tuple[str, ...]) -> Relation:
    """The same as plain counts, where each unit has one row and groups are public.

    Rows are grouped by place before they become a list: of very many places a histogram takes twice as long.
    """
    name = item.statistic.name
    placed = _by_place(_valued(rows, item, keys), keys, Output(Count(), f"{name}w"))
    counts = PlaceSums(Named("place"), Named(f"{name}w"))
    return Grouped(placed, "y", keys, keys, (Output(counts, f"{name}_p"),))


def _place(item: BoundedStatistic) -> Scalar:
    """The place of a row; NULL where it has no value."""
    assert item.statistic.places <= SMALL_PLACES
    return SmallPlace(under(item, Named(f"{item.statistic.name}t")))


def _by_place(rows: Relation, names: tuple[str, ...], number: Output) -> Relation:
    """One row for each group and place: in an array of places where there is one group alone."""
    by = (*names, "place")
    return Grouped(rows, "x", by, by, (number,), small=not names)


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
