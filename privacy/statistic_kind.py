"""The kinds of integer sums that noise is added to, each described once.

Code that tells them apart beyond what is described here names every kind and ends in `assert_never`, so that mypy
finds each place that a new kind needs (docs/recipes/statistic.md).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Self, assert_never

__all__ = [
    "MOMENT_DEGREES",
    "PRODUCT_DEGREES",
    "Counts",
    "DescribedKind",
    "Encoded",
    "Estimated",
    "Gives",
    "RowAdds",
    "StatisticKind",
    "coordinates_of",
    "units_of_row",
]

MOMENT_DEGREES = (1, 2, 3, 4)
"""Degrees of moments whose sums, sensitivities and errors are proved: mechanisms/moments.md."""

PRODUCT_DEGREES = (1, 2)
"""Degrees of either value of a pair whose sums, sensitivities and errors are proved: mechanisms/products.md."""


class RowAdds(enum.Enum):
    """What one row adds to the coordinates of a statistic."""

    ONE = "one"
    """At most one to the only coordinate, or the steps of a whole row where units are scaled."""

    STEPS = "steps"
    """The steps of its value, of either sign, to the only coordinate."""

    WORTH = "worth"
    """Parts of its worth, none negative, to coordinates that together add up to it."""

    NODES = "nodes"
    """Its worth to one node of each level of a tree: each node is a coordinate."""


class Counts(enum.Enum):
    """What an aggregate without an argument counts."""

    UNITS = "units"
    ROWS = "rows"


class Encoded(enum.Enum):
    """Whether the sums of a statistic are in steps of an encoding."""

    NEVER = "never"
    SCALED = "scaled"
    """Where units are scaled to a part of a row."""
    ALWAYS = "always"


class Gives(enum.Enum):
    """What sums of a kind give to other questions of the same rows and groups (sql_rewrite/frames.py)."""

    UNITS = "units"
    ROWS = "rows"
    SUM = "sum"
    MOMENTS = "moments"
    NOTHING = "nothing"
    ITSELF = "itself"
    """They answer the question to the letter alone, which is true of every kind."""


@dataclass(frozen=True, slots=True)
class Estimated:
    """What an aggregate of a kind estimates, in words of its answers."""

    of: str
    held: str
    """How counts hold a unit: of `bound` rows in each `place`, and `total` over all of them."""
    in_group: bool = False
    """Whether it is said that each group has its own."""


_WEIGHING = ", each unit weighing as its rows, at most {bound} per unit{place}{total}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedKind:
    """What is known of a kind of sums without its SQL, its noise and its sensitivity."""

    stored: str
    """Its identity in stored releases and keys: never changed, and never given to another kind."""

    of_values: bool
    """Whether it adds up values of an argument: then it is called as NAME(x) of numbers, and a group may have none."""

    beyond: str
    """What docs/sql.md says an aggregate of it does with a unit of more rows than are allotted to it in a group."""

    counts: Counts | None
    """What an aggregate of it without an argument counts; None where there is no such aggregate."""

    row: RowAdds

    encoded: Encoded

    gives: Gives

    degrees: tuple[int, ...] = ()
    """Degrees of its values that are proved; none where values have no degree."""

    pairs: bool = False
    """Whether its rows have two values."""

    estimated: Estimated | None
    """None where no aggregate is computed from it."""


@enum.unique
class StatisticKind(enum.Enum):
    """What the integer sums of a statistic are."""

    UNITS = DescribedKind(
        stored="units",
        of_values=False,
        beyond="counts once in each of its groups",
        counts=Counts.UNITS,
        row=RowAdds.ONE,
        encoded=Encoded.NEVER,
        gives=Gives.UNITS,
        estimated=Estimated("units", ""),
    )
    """One coordinate: privacy units present in the cell."""

    WEIGHTS = DescribedKind(
        stored="weights",
        of_values=False,
        beyond="counts in each of its groups by one over the root of their number",
        counts=None,
        row=RowAdds.ONE,
        encoded=Encoded.ALWAYS,
        gives=Gives.NOTHING,
        estimated=None,
    )
    """One coordinate: a unit adds floor(highest / sqrt(k)) to each of its k groups, by which they are selected."""

    COUNT = DescribedKind(
        stored="count",
        of_values=False,
        beyond="counts the allotted rows",
        counts=Counts.ROWS,
        row=RowAdds.ONE,
        encoded=Encoded.SCALED,
        gives=Gives.ROWS,
        estimated=Estimated("rows", ", at most {bound} per unit{place}{total}"),
    )
    """One coordinate: rows, bounded per unit."""

    SUM = DescribedKind(
        stored="sum",
        of_values=True,
        beyond="its whole sum, clipped to what the allotted rows could be worth at the bounds of x",
        counts=None,
        row=RowAdds.STEPS,
        encoded=Encoded.ALWAYS,
        gives=Gives.SUM,
        estimated=Estimated("each unit's sum", ", clipped to what {bound} can be worth{total}", in_group=True),
    )
    """One coordinate: sum of T, bounded per unit."""

    MOMENTS = DescribedKind(
        stored="moments",
        of_values=True,
        beyond="its own mean and spread, weighted by the allotted rows: units weigh by rows, never by values",
        counts=None,
        row=RowAdds.WORTH,
        encoded=Encoded.ALWAYS,
        gives=Gives.MOMENTS,
        degrees=MOMENT_DEGREES,
        estimated=Estimated("over rows", _WEIGHING),
    )
    """Bernstein sums of T in [0, W]: degree 1 has (W-T, T), degree 2 has ((W-T)^2, 2T(W-T), T^2), degrees 3 and 4 the
    terms of ((W-T) + T)^3 and ((W-T) + T)^4; with
    `counts_nulls` one more coordinate W^degree for each row whose argument is NULL. Each row adds a vector of
    non-negative integers whose sum is exactly W^degree. With `raised` or `lowered` the sum and the average of T are
    bounded in two ways: those coordinates say how far the clipped sum lies above or below the scaled one."""

    PRODUCTS = DescribedKind(
        stored="products",
        of_values=True,
        beyond="its own means and spreads of both, weighted by the allotted rows with both values",
        counts=None,
        row=RowAdds.WORTH,
        encoded=Encoded.ALWAYS,
        gives=Gives.ITSELF,
        degrees=PRODUCT_DEGREES,
        pairs=True,
        estimated=Estimated("over rows with both values", _WEIGHING),
    )
    """Sums of tensor products of the Bernstein vectors of two values, S in [0, V] of degree d and T in [0, W] of degree
    e: each row with both adds (d+1)(e+1) non-negative integers whose sum is exactly V^d W^e, those of the second value
    side by side; with `counts_nulls` one more coordinate V^d W^e for each row that lacks one of the two."""

    RANKS = DescribedKind(
        stored="ranks",
        of_values=True,
        beyond="is the quantile of its rows, each weighted by the allotted part of them",
        counts=None,
        row=RowAdds.NODES,
        encoded=Encoded.ALWAYS,
        gives=Gives.ITSELF,
        estimated=Estimated("over rows", _WEIGHING),
    )
    """Counts of rows by their value, on the nodes of a tree of intervals (privacy/rank_tree.py): each row that has a
    value adds its worth, or its weight, to one node of each level."""

    described: DescribedKind

    def __new__(cls, described: DescribedKind) -> Self:
        """A member whose value is what releases and keys store, and which carries its description."""
        member = object.__new__(cls)
        member._value_ = described.stored
        member.described = described
        return member


def coordinates_of(
    kind: StatisticKind, *, degree: int = 0, second_degree: int = 0, others: int = 0, nodes: int = 1
) -> int:
    """How many integers a statistic has in a cell; `others` beside those of its values: NULL, raised, lowered."""
    match kind.described.row:
        case RowAdds.ONE | RowAdds.STEPS:
            return 1
        case RowAdds.WORTH:
            return (degree + 1) * (second_degree + 1) + others
        case RowAdds.NODES:
            return nodes
        case _:
            assert_never(kind.described.row)


def units_of_row(
    kind: StatisticKind, *, highest: int, degree: int, second_highest: int = 1, second_degree: int = 0
) -> int:
    """Integer units that one row is worth (of a sum: one step of it) before its privacy unit is scaled to a norm."""
    match kind.described.row:
        case RowAdds.ONE | RowAdds.STEPS | RowAdds.NODES:
            return 1
        case RowAdds.WORTH:
            return int(highest**degree * second_highest**second_degree)
        case _:
            assert_never(kind.described.row)
