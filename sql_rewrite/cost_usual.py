"""What a statement usually takes, as a part of its worst case: a prediction of whole tables, and in no bound.

    SELECT MEDIAN(cost) FROM visits          worst: 267 ns for each row in a table of places, read twice
                                             usual: 15 ns, and 4 ms for an array of places, where the snapshot keeps
                                             how many values each person has

The first visible moment of an answer follows from it (server/journey/moments.py), which hides one unit whatever it is:
a prediction that is wrong makes answers later, and reveals no more. So each shape has the part that was measured,
where the worst case counts what only the rows of one unit can do: places that nobody else is in, cells and factors of
their own. What is predicted for the rows, as a ratio to the processor time of all statements of the question, 3 million
rows, ten of a unit:

    shape                                              a third of the worst case    its own part
    a median of all rows, counts, kept                 18                           1.5
    the same under a condition                         11                           1.2
    L1 norms beside rows, 50 and 1,000 groups          3.0 to 3.3                   1.3
    a norm without groups, nothing kept                1.9 to 2.3                   1.1 to 1.5
    a sum or mean without groups, counts               2.3 to 2.6                   1.3 to 1.5
    as they were: kept norms; L2 norms; hidden groups  1.0 to 1.9; 1.3 to 2.1; 0.6
"""

from __future__ import annotations

from typing import assert_never

from sql_rewrite.bounded import BoundedCore
from sql_rewrite.contribution import Contribution, NormedContribution
from sql_rewrite.light_units import keeps_rows, number_kept
from sql_rewrite.norm_shapes import Shape, finds_squares, shape_of
from sql_rewrite.stored_norms import known_norms

__all__ = ["USUAL_SHARE", "array_nanoseconds", "usual_share"]

USUAL_SHARE = 1 / 3
"""The share of its worst case that a row usually costs: simple queries took about a quarter when this was measured."""

_ARRAY = 4_000_000
"""Nanoseconds of an array of places: made for each thread, read, and listed."""


def usual_share(bounded: BoundedCore) -> float:
    """The part of the worst case of its rows that a core's statement usually takes."""
    return USUAL_SHARE * (_ranked(bounded) if _has_places(bounded) else _summed(bounded))


def array_nanoseconds(bounded: BoundedCore) -> float:
    """What the places of quantiles without groups take whatever number of rows there is."""
    listed = sum(item.statistic.tree is not None for item in bounded.statistics)
    return 0.0 if bounded.core.keys else float(_ARRAY * listed)


def _has_places(bounded: BoundedCore) -> bool:
    return any(item.statistic.tree is not None for item in bounded.statistics)


def _ranked(bounded: BoundedCore) -> float:
    """Of counts by place: without groups they are in an array, and with them in a table of as many groups as places."""
    normed = isinstance(bounded.contribution, NormedContribution)
    if bounded.core.keys:
        if bounded.one_row or not normed:
            return 4 / 5
        return 1 / 3 if known_norms(bounded) is not None else 1 / 5
    if bounded.one_row:
        return 1 / 6
    if normed:
        return 1 / 6 if known_norms(bounded) is not None else 1 / 7
    if not keeps_rows(bounded):
        return 1 / 6
    ranked = [item for item in bounded.statistics if item.statistic.tree is not None]
    return 1 / 13 if all(number_kept(bounded, item) is not None for item in ranked) else 1 / 11


def _summed(bounded: BoundedCore) -> float:
    match bounded.contribution:
        case Contribution():
            # What is grouped by unit alone has the unit's rows side by side, and needs no second key.
            return 1.0 if bounded.one_row or bounded.core.keys else 1 / 2
        case NormedContribution():
            return _normed(bounded)
        case _:
            assert_never(bounded.contribution)


def _normed(bounded: BoundedCore) -> float:
    match shape_of(bounded):
        case Shape.STORED:
            return 1 / 2  # nothing is grouped by unit
        case Shape.ALONE:
            return 3 / 5
        case Shape.ROWS:
            # Rows are read once more for those that share a cell: they are few, and in the worst case all.
            return 2 / 3 if finds_squares(bounded) else 2 / 5
        case Shape.CELLS:
            return 1.0
        case other:
            assert_never(other)
