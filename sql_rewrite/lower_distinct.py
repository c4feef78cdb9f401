"""Sums over the different values of a group, of which each unit brings in some: mechanisms/distinct.md.

    one row per unit    rows -> different values of each group -> group by key
    otherwise           rows -> different values of each unit and group -> (keep C groups of each unit) -> keep r values
                        of each unit and group, R of each unit -> different values of each group -> group by key

Which values of a unit are kept follows from the unit's own rows and its secret draw: they are ranked by a hash of draw,
keys and value, with the value itself as tie-break. The values of the others do not matter, nor the order of rows.
Then nothing distinguishes a value that one unit brought in from one that many did, so each is summed once. What is
summed is computed from the value that is left, never read from a row: it cannot depend on whose row that was.

A value is as hidden as a key, and found by a hash too: it has a salt of its own (lower.py says why).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import assert_never

from privacy.policy import ColumnType
from privacy.statistic import StatisticKind
from sql_rewrite.bounded import BoundedStatistic
from sql_rewrite.contribution import Contribution
from sql_rewrite.expressions import ColumnRef, Expression, needs_wide
from sql_rewrite.functions import clip_columns
from sql_rewrite.layer_values import Count, OnlyOne, Sum
from sql_rewrite.relations import (
    ChosenGroups,
    ChosenValues,
    Extended,
    Grouped,
    HiddenKey,
    Merged,
    Output,
    Relation,
    Salted,
)
from sql_rewrite.scalars import Arithmetic, Cast, EngineType, Named, Scalar, Whole

__all__ = ["VALUE_SALT", "merged", "told_apart", "values_summed"]

VALUE_SALT = "z"
"""The column that follows from hidden keys, a value, and a number that is drawn for each run."""

_LAYER = "p"


def told_apart(value: Scalar, expression: Expression) -> Scalar:
    """A value as it is compared: whole numbers in 64 bits or NULL, and one zero."""
    match expression.type:
        case ColumnType.INTEGER:
            return Cast(value, EngineType.INTEGER, safe=needs_wide(expression))
        case ColumnType.NUMBER:
            # -0.0 equals 0.0 where values are grouped, and one of them would be kept, whichever came first.
            return Arithmetic("+", value, Cast(Whole(0), EngineType.NUMBER), EngineType.NUMBER)
        case ColumnType.TEXT | ColumnType.BOOLEAN | ColumnType.DATE | ColumnType.TIMESTAMP:
            return Cast(value, EngineType(expression.type.value))
        case _:
            assert_never(expression.type)


def values_summed(
    rows: Relation,
    item: BoundedStatistic,
    contribution: Contribution,
    *,
    keys: tuple[str, ...],
    hidden: tuple[HiddenKey, ...],
    vector: Callable[[BoundedStatistic], list[Scalar]],
    encoded: Callable[[BoundedStatistic], Scalar],
) -> Relation:
    """The coordinates of one statistic of different values, by group.

    `rows` have the unit `u` and its draw `d` (neither where units have one row), the keys, and the value as `{name}v`,
    NULL where the filter does not hold. `vector` and `encoded` are how a row's integers follow from its value.
    """
    assert item.distinct is not None
    name = item.statistic.name
    value, names, salts = f"{name}v", keys, tuple[str, ...]()
    if not contribution.one_row:
        if hidden:
            rows, names = Salted(rows, hidden), ("s", *keys)
        told = HiddenKey(value, item.distinct.type is ColumnType.TEXT)
        rows, salts = Salted(rows, (*hidden, told), VALUE_SALT), (VALUE_SALT,)
        own = ("u", "d", *names, *salts, value)
        rows = Grouped(rows, "r", own, own, ())
        if contribution.choose_groups:
            rows = ChosenGroups(rows, keys, contribution.groups)
        total = contribution.total if contribution.scaled else None
        rows = ChosenValues(rows, keys, value, item.rows, total)
    found = (*names, *salts, value)
    layer: Relation = Grouped(rows, "c", found, found, ())
    if item.statistic.kind is StatisticKind.COUNT:
        return Grouped(layer, _LAYER, keys, names, (Output(Count(Named(value)), f"{name}_0"),))
    # The value that is left, as a column of this layer: the encoding reads that, and no row.
    held = replace(item, argument=_of_layer(item, value), filter=None)
    layer = Extended(layer, _LAYER, (Output(encoded(held), f"{name}t"),))
    sums = [Output(Sum(part), f"{name}_{i}") for i, part in enumerate(vector(held))]
    return Grouped(layer, _LAYER, keys, names, tuple(sums))


def _of_layer(item: BoundedStatistic, value: str) -> Expression:
    """What is summed, from the value: clipped where that is a column, whose values are compared as they are stored."""
    told, argument = item.distinct, item.argument
    assert told is not None
    assert argument is not None
    if isinstance(told, ColumnRef):
        return clip_columns(replace(told, relation=_LAYER, name=value, is_unit=False))
    return ColumnRef(_LAYER, value, told.type)


def merged(
    parts: tuple[tuple[Relation, tuple[str, ...]], ...],
    keys: tuple[str, ...],
    hidden: tuple[HiddenKey, ...],
    placed: tuple[str, ...] = (),
) -> Relation:
    """One row for each group from several relations of groups, each with sums of its own names; others are NULL.

    The names in `placed` are numbers by place, each of one relation.
    """
    if len(parts) == 1:
        return parts[0][0]
    names = tuple([name for _, own in parts for name in own])
    rows: Relation = Merged(parts, keys, names, placed)
    by = keys
    if hidden:
        rows, by = Salted(rows, hidden), ("s", *keys)
    values = [OnlyOne(Named(name)) if name in placed else Sum(Named(name)) for name in names]
    return Grouped(rows, "p", keys, by, tuple([Output(one, name) for one, name in zip(values, names, strict=True)]))
