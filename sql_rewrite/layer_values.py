"""The values that only layers of a statement have (sql_rewrite/relations.py): rows as integers, sums, counts.

They are nodes as the values of scalars.py are, and say as little of an engine.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Literal

from sql_rewrite.scalars import EngineType, ExtremeName, Named, Scalar, node

__all__ = [
    "SMALL_PLACES",
    "AllTrue",
    "AnyTrue",
    "Beside",
    "Count",
    "DifferentValues",
    "Distinct",
    "EndOf",
    "Factor",
    "FineSteps",
    "Half",
    "HeldSteps",
    "KeyText",
    "KeyedOrder",
    "LeastPlace",
    "ListedPlaces",
    "MostOften",
    "NearestSteps",
    "NormBin",
    "NumberOf",
    "OfPair",
    "OneZero",
    "OnlyOne",
    "PlaceCounts",
    "PlaceSums",
    "Ranked",
    "SmallPlace",
    "Steps",
    "Sum",
]


SMALL_PLACES = 2**16
"""How many places fit the smallest type that holds those of one group: an array has an entry for each."""


@node
class Steps(Scalar):
    """The nearest whole number of steps from the offset to a number, held to [lowest, highest]; NULL for NULL.

    The number may be an integer. Total, and within its ends, whatever the value is. Offset and step are doubles.
    """

    value: Scalar
    offset: Fraction
    step: Fraction
    lowest: int
    highest: int


@node
class NearestSteps(Scalar):
    """The whole number of steps nearest to the way from the offset to a number, as any double; NULL for NULL.

    The number may be an integer. Offset and step are doubles.
    """

    value: Scalar
    offset: Fraction
    step: Fraction


@node
class HeldSteps(Scalar):
    """A whole double as an INTEGER, moved to the nearest of [lowest, highest] when it lies outside; NULL for NULL.

    Total, and within its ends, whatever the double is: what is not a number becomes the highest. The ends are doubles.
    With `centred` it is the same number by the distance from the middle of the ends (lower_steps.py).
    """

    steps: Named
    lowest: int
    highest: int
    centred: bool = False


@node
class FineSteps(Scalar):
    """The nearest whole number of steps to a number that is finite or NULL, held to +-`limit`; WIDE. NULL for NULL."""

    value: Scalar
    step: Fraction
    limit: int


@node
class NumberOf(Scalar):
    """The number that is so many steps, of a WIDE integer with a sign, rounded to a double nearby; NULL for NULL."""

    steps: Scalar
    step: Fraction


@node
class OneZero(Scalar):
    """The number, with the zero that has no sign for both zeros: which of two equal ones comes first is no matter."""

    value: Scalar


@node
class KeyText(Scalar):
    """The first characters of a text. `cheap` says that the text may be written several times, as a column may."""

    value: Scalar
    characters: int
    cheap: bool


@node
class Sum(Scalar):
    """The exact sum of integers over a group, in 128 bits; NULL are left out, and a sum of nothing is NULL."""

    value: Scalar


@node
class Count(Scalar):
    """The number of rows of a group, or of those in which the value is not NULL."""

    value: Scalar | None = None


@node
class SmallPlace(Scalar):
    """A place from 0 to `SMALL_PLACES` - 1 in a type that has no other values and NULL; NULL for NULL."""

    value: Scalar


@node
class PlaceCounts(Scalar):
    """How often each place, an integer, occurs in a group; places that are NULL are left out. A value of a kind of its
    own, of which `ListedPlaces` reads one part or the other, in one order."""

    place: Scalar


@node
class PlaceSums(Scalar):
    """The places of a group, each of which it has once, with an integer for each: a value as of `PlaceCounts`."""

    place: Scalar
    sum: Scalar


@node
class OnlyOne(Scalar):
    """The only value of a group that is not NULL; NULL where there is none. Requires: there is no second."""

    value: Scalar


@node
class ListedPlaces(Scalar):
    """The places of `PlaceCounts`, or their numbers, as a list of 64-bit integers; empty where there is none."""

    part: Literal["places", "rows"]
    counts: Scalar


@node
class EndOf(Scalar):
    """The least or the greatest value of a group, of numbers, dates or timestamps that are not NULL."""

    which: ExtremeName
    value: Scalar


@node
class Ranked(Scalar):
    """The value of a group at a part of its values in their order, NULL apart; NULL for a group of nothing else.

    `continuous`: a double between two of them, as the part lies between their places. `discrete`: the first whose place
    is not before it. `deviation`: the median of the distances, as doubles, from the median; infinite beyond doubles.
    """

    which: Literal["continuous", "discrete", "deviation"]
    value: Scalar
    part: Decimal


@node
class MostOften(Scalar):
    """The value that is there most often in a group, the least of several, NULL apart; NULL where all are NULL."""

    value: Scalar


@node
class Beside(Scalar):
    """Two values of one row, compared by the first and then by the second; NULL where either of them is."""

    by: Scalar
    value: Scalar


@node
class OfPair(Scalar):
    """The second of two values beside each other."""

    pair: Scalar


@node
class AnyTrue(Scalar):
    """Whether a condition is true of some row of a group, NULL apart; NULL for a group of nothing else."""

    value: Scalar


@node
class AllTrue(Scalar):
    """Whether a condition is true of all rows of a group, NULL apart; NULL for a group of nothing else."""

    value: Scalar


@node
class DifferentValues(Scalar):
    """How many different values a group has, NULL apart."""

    value: Scalar
    type: EngineType


@node
class KeyedOrder(Scalar):
    """A number that follows from the unit's draw and the places of one of its rows: equal where these are equal."""

    places: tuple[Scalar, ...]


@node
class LeastPlace(Scalar):
    """The place (0 to 4095, never NULL) of a group's row that comes first; of rows of one order the least place.

    Of the order the first 52 bits count. It is a function of the set of pairs, whatever the order of rows.
    """

    order: Scalar
    place: Scalar


@node
class Distinct(Scalar):
    """How many different places, each from 0 to below `count`, a group has; NULL are left out."""

    place: Scalar
    count: int


@node
class Half(Scalar):
    """A WIDE integer divided by 2^62 towards zero, or what remains (with its sign): how a sum leaves the engine."""

    part: Literal["high", "low"]
    value: Scalar


@node
class Factor(Scalar):
    """floor(2^parts min(1, norm / N)) or a little less, exactly 2^parts where N <= norm: a unit's factor.

    `value` is an integer, N or with `squared` its square, not negative and never NULL; with `wide` it may be of 128
    bits. With N > norm the factor times N is at most 2^parts norm, in exact arithmetic, however the engine rounds.
    """

    value: Scalar
    squared: bool
    wide: bool
    norm: Fraction
    parts: int


@node
class NormBin(Scalar):
    """The bin of a norm N in a histogram: the first whose edge 2^(bin / 4) is not below N, or the last; NULL for zero.

    `value` is as that of a factor. On an edge the engine may round to either side.
    """

    value: Scalar
    squared: bool
