"""Sums of products of the Bernstein vectors of two values."""

from __future__ import annotations

from collections.abc import Sequence

from sql_rewrite.bounded import BoundedStatistic
from sql_rewrite.lower_vector import entries
from sql_rewrite.scalars import Case, Cast, IsNull, Junction, Named, Scalar, Whole
from sql_rewrite.statistics.vectors import Vectors
from sql_rewrite.unit_worth import INTEGER

__all__ = ["Products"]


class Products(Vectors):
    """Always summed as tails."""

    def holder(self, alone: str | None, shared: str | None) -> str | None:
        """Pairs are families of their own."""
        return None

    def row(self, item: BoundedStatistic) -> Sequence[Scalar]:
        """The products of a row's two vectors, and the coordinate of its NULL."""
        parts = entries(item)
        if item.statistic.counts_nulls:
            name = item.statistic.name
            either = Junction("OR", (IsNull(Named(f"{name}t")), IsNull(Named(f"{name}u"))), closed=False)
            parts.append(Case(((either, Cast(Whole(item.row_units), INTEGER)),), closed=False))
        return parts

    def numbers(self, item: BoundedStatistic) -> int:
        """Sums of 128 bits."""
        return 3 * item.statistic.coordinates
