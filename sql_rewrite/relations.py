"""The shapes of a statement: layers of named columns, each over the one before, which a dialect writes as text.

A layer is a node as a value is one (sql_rewrite/scalars.py): it says which rows and columns it has, not how an
engine computes them. The values that only layers have are here too: rows as integers, sums, counts. Names of columns
are ours: `u` is a unit's dense number, `d` its secret draw, `s` the salt of hidden keys; `k0`, `k1` are keys.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from sql_rewrite.scalars import Column, EngineType, ExtremeName, Node, Scalar, node
from sql_rewrite.window_nodes import OrderedBy, Placed, PlacedName, RowFrame, WithinUnit

__all__ = [
    "AllTrue",
    "AnyTrue",
    "Appended",
    "Beside",
    "Binned",
    "ChosenGroups",
    "ChosenValues",
    "ConstantRows",
    "Count",
    "DifferentValues",
    "Distinct",
    "EndOf",
    "Extended",
    "Factor",
    "FineSteps",
    "Grouped",
    "Half",
    "HiddenKey",
    "JoinOn",
    "Kept",
    "KeyText",
    "KeyedOrder",
    "LeastPlace",
    "Listed",
    "ListedPlaces",
    "Merged",
    "NormBin",
    "NumberOf",
    "OfPair",
    "OneZero",
    "OnlyOne",
    "OrderedBy",
    "Output",
    "PlaceCounts",
    "PlaceSums",
    "Placed",
    "PlacedName",
    "Projected",
    "Relation",
    "RowFrame",
    "RowsSource",
    "Salted",
    "SharedRows",
    "Steps",
    "Sum",
    "TableRows",
    "TableSource",
    "Unfolded",
    "UnitFactors",
    "UnitTotals",
    "WithTotals",
    "WithinUnit",
]


# --- rows to integers, and integers to sums ------------------------------------------------------------------------


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


# --- layers --------------------------------------------------------------------------------------------------------


class Relation(Node):
    """A layer of a statement."""

    __slots__ = ()


@node
class Output:
    """A column that a layer makes."""

    value: Scalar
    name: str


@node
class JoinOn:
    """A join of equal columns, those of `also` included. `outer` keeps rows without a partner."""

    child: Column
    parent: Column
    outer: bool
    also: tuple[tuple[Column, Column], ...] = ()


@node
class TableSource:
    """A stored table under the name that columns refer to it by. The first source of a statement has no join; another
    one without a join meets every row of those before it."""

    table: str
    relation: str
    join: JoinOn | None


@node
class RowsSource:
    """Rows that the statement computes, under the name that columns refer to them by."""

    rows: Relation
    relation: str
    join: JoinOn | None


@node
class TableRows(Relation):
    """One row for each row of the joined sources that meets the condition."""

    outputs: tuple[Output, ...]
    sources: tuple[TableSource | RowsSource, ...]
    where: Scalar | None


@node
class ConstantRows(Relation):
    """Rows of constants, with these names of their columns."""

    names: tuple[str, ...]
    rows: tuple[tuple[Scalar, ...], ...]


@node
class Appended(Relation):
    """The rows of all parts, each as often as the parts have it. The parts have the same columns, of the same types."""

    parts: tuple[Relation, ...]


@node
class SharedRows(Relation):
    """The rows of a table that statements share (privacy/statement.py), with its columns."""

    table: str


@node
class ChosenGroups(Relation):
    """The rows of at most `groups` groups of each unit, chosen by a hash that is keyed with the unit's draw.

    The choice is a function of the unit's own rows and its draw alone: groups are ranked by the hash of draw and keys,
    with the keys themselves as tie-break, because two keys with one hash must not share a rank.
    """

    rows: Relation
    keys: tuple[str, ...]
    groups: int


@node
class ChosenValues(Relation):
    """The rows of at most `values` values of each unit and group, and of `total` of each unit (None: of all).

    The rows are one for each unit, group and value; those whose value is NULL are left out. Values are ranked by a hash
    that is keyed with the unit's draw, with the values themselves as tie-break, so that the choice is a function of the
    unit's own values and its draw alone. However ranks come about, no more rows of a unit are left.
    """

    rows: Relation
    keys: tuple[str, ...]
    value: str
    values: int
    total: int | None


@node
class Merged(Relation):
    """The rows of several relations, each with the keys and with columns of its own, NULL in rows of the others."""

    parts: tuple[tuple[Relation, tuple[str, ...]], ...]
    keys: tuple[str, ...]
    names: tuple[str, ...]
    placed: tuple[str, ...] = ()
    """Those of the names that are numbers by place (`PlaceCounts`); all others are sums."""


@node
class HiddenKey:
    """A key whose values are not public: a unit may have chosen all of its own."""

    name: str
    text: bool


@node
class Salted(Relation):
    """The rows with a column that follows from their hidden keys and a number that is drawn for each run.

    With it as one more key, the place of a group cannot be computed in advance (sql_rewrite/lower.py says why).
    """

    rows: Relation
    keys: tuple[HiddenKey, ...]
    name: str = "s"


@node
class Grouped(Relation):
    """One row for each group: the columns `shown` of the keys `by`, and aggregates. Without keys one row in all."""

    rows: Relation
    alias: str
    shown: tuple[str, ...]
    by: tuple[str, ...]
    outputs: tuple[Output, ...]


@node
class Listed(Relation):
    """One row for each row and each of the columns: the number of the column as `k0`, and its value as `k1`."""

    rows: Relation
    alias: str
    columns: tuple[str, ...]


@node
class WithTotals(Relation):
    """The rows, one for each unit and group, with totals of the unit over all its groups.

    The totals are NULL for units that are not beyond the limit. They are aggregates of 64 bits.
    """

    rows: Relation
    totals: tuple[Output, ...]
    limit: int


@node
class Extended(Relation):
    """The rows with more columns."""

    rows: Relation
    alias: str
    outputs: tuple[Output, ...]


@node
class Unfolded(Relation):
    """Of each row as many as there are values, each with one of them, which all have one type."""

    rows: Relation
    alias: str
    values: tuple[Scalar, ...]
    name: str


@node
class Projected(Relation):
    """The rows with these columns alone."""

    rows: Relation
    alias: str
    outputs: tuple[Output, ...]


@node
class Kept(Relation):
    """The rows that meet a condition (all of them without one), with these columns alone."""

    rows: Relation
    alias: str
    where: Scalar | None
    outputs: tuple[Output, ...]


@node
class UnitTotals(Relation):
    """The rows, one for each unit and group, with sums over all groups of the unit."""

    rows: Relation
    alias: str
    outputs: tuple[Output, ...]


@node
class UnitFactors(Relation):
    """The rows with these columns of their units: `units` has one row for each unit that has rows.

    With `by` one row for each unit and group, by the columns of these names, which may be NULL.
    """

    rows: Relation
    units: Relation
    names: tuple[str, ...]
    by: tuple[str, ...] = ()


@node
class Binned(Relation):
    """One row for each bin that occurs, with the number of units in it, for each of several columns of bins.

    `columns` are pairs: a column of bins, NULL for units that are in none, and the name of the numbers of units.
    """

    units: Relation
    bin: str
    columns: tuple[tuple[str, str], ...]
