"""The kinds of integer sums that noise is added to, each described once.

Code that tells them apart beyond what is described here names every kind and ends in `assert_never`, so that mypy
finds each place that a new kind needs (docs/recipes/statistic.md).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Self

__all__ = ["MOMENT_DEGREES", "PRODUCT_DEGREES", "DescribedKind", "StatisticKind"]

MOMENT_DEGREES = (1, 2, 3, 4)
"""Degrees of moments whose sums, sensitivities and errors are proved: mechanisms/moments.md."""

PRODUCT_DEGREES = (1, 2)
"""Degrees of either value of a pair whose sums, sensitivities and errors are proved: mechanisms/products.md."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedKind:
    """What is known of a kind of sums without its SQL, its noise and its sensitivity."""

    stored: str
    """Its identity in stored releases and keys: never changed, and never given to another kind."""

    of_values: bool
    """Whether it adds up values of an argument: then it is called as NAME(x) of numbers, and a group may have none."""

    beyond: str
    """What docs/sql.md says an aggregate of it does with a unit of more rows than are allotted to it in a group."""


@enum.unique
class StatisticKind(enum.Enum):
    """What the integer sums of a statistic are."""

    UNITS = DescribedKind(
        stored="units",
        of_values=False,
        beyond="counts once in each of its groups",
    )
    """One coordinate: privacy units present in the cell."""

    WEIGHTS = DescribedKind(
        stored="weights",
        of_values=False,
        beyond="counts in each of its groups by one over the root of their number",
    )
    """One coordinate: a unit adds floor(highest / sqrt(k)) to each of its k groups, by which they are selected."""

    COUNT = DescribedKind(
        stored="count",
        of_values=False,
        beyond="counts the allotted rows",
    )
    """One coordinate: rows, bounded per unit."""

    SUM = DescribedKind(
        stored="sum",
        of_values=True,
        beyond="its whole sum, clipped to what the allotted rows could be worth at the bounds of x",
    )
    """One coordinate: sum of T, bounded per unit."""

    MOMENTS = DescribedKind(
        stored="moments",
        of_values=True,
        beyond="its own mean and spread, weighted by the allotted rows: units weigh by rows, never by values",
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
    )
    """Sums of tensor products of the Bernstein vectors of two values, S in [0, V] of degree d and T in [0, W] of degree
    e: each row with both adds (d+1)(e+1) non-negative integers whose sum is exactly V^d W^e, those of the second value
    side by side; with `counts_nulls` one more coordinate V^d W^e for each row that lacks one of the two."""

    RANKS = DescribedKind(
        stored="ranks",
        of_values=True,
        beyond="is the quantile of its rows, each weighted by the allotted part of them",
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
