"""What a core's sums determine beside the question that they were measured for: the store of statistics.

A core is a *frame* (which rows, in which groups, how a unit is held) and sums of it. What an aggregate means does not
depend on its company (mechanisms/bounding.md, "Estimands"): what a unit adds to it in a group is a function of the
frame, and of the aggregate's own argument and filter. So an *estimand* is a frame and

    rows(filter)                 the rows that are allotted
    units(filter)                units; where a unit counts at most once in a group, the same as its rows
    values(filter, x)            the allotted rows in which x is not NULL
    sum(filter, x)               the clipped sum of each unit
    moments(filter, x)           the power sums of x of scaled rows
    first(filter, x)             the mean of x, as that of the first value of a pair; second(filter, x) likewise
    same(statistic)              the sums of one statistic to the letter: of quantiles, different values and pairs

**Claim.** A release whose statistic *gives* an estimand holds sums from which the same estimator computes the same
aggregate of the same rows, each held to the same bounds. **Proof.** The frame's identity is that of a release
(plan_key.py) with everything but the aggregates, so rows, groups, contribution bounds, unit, declarations and data are
equal. bounding.md then says what a unit adds to each coordinate: of moments m = floor(w k') to the values,
floor(w a_g) - m to the rows without one, f scaled and s clipped to the sum. So they give values(filter, x);
rows(filter) where rows without a value are counted or there are none; moments where rows are scaled beside nothing or
beside a clipped sum; sum where it is clipped, or where a unit has one row and nothing is. The degree of moments only
adds coordinates: those of degree d are the terms of ((W - T) + T)^d, from which all lower power sums follow
(moments.md). Means of pairs are asked for where no row lacks either value (sql_rewrite/together.py): then the sums of a
pair over the other value are the moments of each, by products.md, "Averages of two columns", and its rows are all. QED.

What computes an answer from such sums reads released numbers alone (post-processing: Dwork and Roth 2014, Proposition
2.1). How fine the steps of values are may differ with the degree: who matches compares encodings as well.

Not of units that are scaled to a norm that a question chooses: there the estimand has that norm (`frame_of` is None).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from privacy.aggregate import AggregateFunction
from privacy.policy import Dataset
from privacy.statistic import Estimate, StatisticKind
from privacy.statistic_kind import Gives
from sql_rewrite.bounded import BoundedCore, BoundedStatistic
from sql_rewrite.contribution import Bounding, Contribution
from sql_rewrite.expressions import Expression
from sql_rewrite.functions import clip_columns
from sql_rewrite.plan import Aggregate
from sql_rewrite.plan_key import identity_key
from sql_rewrite.together import MEANS

__all__ = ["Frame", "frame_of", "given", "wanted"]

_SHORT = 32
"""Hexadecimal digits of an estimand: 128 bits, of a few in each frame."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A core without its aggregates. `key` is its identity, as SHA-256 in hex."""

    key: str


def frame_of(bounded: BoundedCore, dataset: Dataset) -> Frame | None:
    """The frame of a core; None where another question of the same rows may mean another number.

    That is where units are scaled to norms that a question chooses, and where keys are released in place of numbers.
    """
    contribution = bounded.contribution
    if not isinstance(contribution, Contribution) or bounded.norms or bounded.core.choice is not None:
        return None
    keys = bounded.described.keys
    what = ("frame", replace(bounded.core, aggregates=()), contribution, keys)
    # Which combinations of these values are cells follows from the conditions and the keys.
    cells = bounded.domains, None if keys.domain is None else len(keys.domain)
    return Frame(identity_key(what, dataset, cells=cells))


def wanted(bounded: BoundedCore, dataset: Dataset) -> tuple[str, ...]:
    """The estimand of each aggregate of a core, in their order."""
    items = {item.statistic.name: item for item in bounded.statistics}
    pairs = zip(bounded.core.aggregates, bounded.described.estimates, strict=True)
    return tuple([_wanted(aggregate, items[estimate.statistic], dataset) for aggregate, estimate in pairs])


def _wanted(aggregate: Aggregate, item: BoundedStatistic, dataset: Dataset) -> str:
    if _alone(item) and (item.second is None or aggregate.function.statistic is StatisticKind.PRODUCTS):
        return _same(item, dataset)
    rows, column = _digest(dataset, aggregate.filter), aggregate.argument
    match aggregate.function.statistic.described.gives:
        case Gives.UNITS:
            return f"units:{rows}"
        case Gives.ROWS:
            return f"rows:{rows}" if column is None else f"values:{_digest(dataset, aggregate.filter, column)}"
        case Gives.SUM:
            return f"sum:{_digest(dataset, aggregate.filter, column)}"
        case Gives.MOMENTS:
            return f"moments:{_digest(dataset, aggregate.filter, column)}"
        case Gives.ITSELF | Gives.NOTHING:
            raise AssertionError("pairs and quantiles have sums of their own; nothing is computed from weights")
        case _:
            assert_never(aggregate.function.statistic.described.gives)


def given(bounded: BoundedCore, dataset: Dataset) -> Mapping[str, tuple[str, ...]]:
    """The estimands that each statistic of a core gives, by its name. Requires: the core has a frame."""
    contribution = bounded.contribution
    assert isinstance(contribution, Contribution)
    pairs = list(zip(bounded.core.aggregates, bounded.described.estimates, strict=True))
    of = {
        item.statistic.name: [pair for pair in pairs if pair[1].statistic == item.statistic.name]
        for item in bounded.statistics
    }
    return {
        item.statistic.name: _given(item, of[item.statistic.name], contribution, dataset) for item in bounded.statistics
    }


def _given(
    item: BoundedStatistic, asked: list[tuple[Aggregate, Estimate]], contribution: Contribution, dataset: Dataset
) -> tuple[str, ...]:
    """What one statistic gives, of which these aggregates are computed."""
    once = contribution.rows == 1 and not contribution.scaled
    rows = _digest(dataset, item.filter)
    if _alone(item):
        return (_same(item, dataset), *_of_means(asked, rows, dataset, once=once))
    values = [_digest(dataset, one.filter, one.argument) for one, _ in asked if one.argument is not None]
    names: list[str] = []
    match item.statistic.kind.described.gives:
        case Gives.UNITS | Gives.ROWS:
            # Rows are counted one by one, or in parts where units are scaled; units always one by one.
            of_units = item.rows == 1 and not item.scaled
            if item.present is None:
                names = [f"units:{rows}"] * of_units + [f"rows:{rows}"] * (once or not of_units)
            names += [f"values:{one}" for one in values]
        case Gives.SUM:
            names = [f"sum:{one}" for one in values]
        case Gives.MOMENTS:
            assert item.argument is not None
            names = [f"values:{one}" for one in values]
            if item.statistic.counts_nulls or not item.argument.nullable:
                names += [f"rows:{rows}"] + [f"units:{rows}"] * once
            if contribution.one_row or item.bounding is not Bounding.SCALED:
                names += [f"sum:{one}" for one in values]
            if contribution.one_row or item.bounding is not Bounding.CLIPPED:
                names += [f"moments:{one}" for one in values]
        case Gives.NOTHING:
            pass  # groups are selected by them, and nothing else is computed from them
        case Gives.ITSELF:
            raise AssertionError("pairs and quantiles have sums of their own")
        case _:
            assert_never(item.statistic.kind.described.gives)
    return tuple(dict.fromkeys(names))


def _of_means(asked: list[tuple[Aggregate, Estimate]], rows: str, dataset: Dataset, *, once: bool) -> list[str]:
    """What a statistic of pairs gives of which averages are computed: no row lacks a value then."""
    names: list[str] = []
    for aggregate, estimate in asked:
        if aggregate.function is AggregateFunction.AVERAGE and estimate.kind in MEANS:
            value = _digest(dataset, aggregate.filter, aggregate.argument)
            place = ("first", "second")[MEANS.index(estimate.kind)]
            names += [f"{place}:{value}", f"values:{value}", f"rows:{rows}"] + [f"units:{rows}"] * once
    return list(dict.fromkeys(names))


def _alone(item: BoundedStatistic) -> bool:
    """Whether nothing but the same statistic gives what it gives."""
    itself = item.statistic.kind.described.gives is Gives.ITSELF
    return itself or item.distinct is not None or item.second is not None or item.statistic.tree is not None


def _same(item: BoundedStatistic, dataset: Dataset) -> str:
    unnamed = replace(item, statistic=replace(item.statistic, name=""))
    return f"same:{identity_key(unnamed, dataset)[:_SHORT]}"


def _digest(dataset: Dataset, condition: Expression | None, argument: Expression | None = None) -> str:
    """A condition and an argument in canonical form, the latter as written and as its columns are clipped."""
    clipped = None if argument is None else clip_columns(argument)
    return identity_key((condition, argument, clipped), dataset)[:_SHORT]
