"""What the rows of one unit are worth where it is scaled to norms: what all kinds of statistics share.

lower_normed.py has the shapes and the names; mechanisms/norms.md the widths of all products, and the proofs.
"""

from __future__ import annotations

from collections.abc import Mapping

from privacy.norms import NormOf
from sql_rewrite.bounded import BoundedNorm, BoundedStatistic
from sql_rewrite.layer_values import Sum
from sql_rewrite.lower_vector import by_tails, tail_names
from sql_rewrite.scalars import Arithmetic, Cast, EngineType, Named, Scalar
from sql_rewrite.unit_worth import INTEGER, WIDE

__all__ = ["WEIGHT", "NormWorth", "nullable", "parts_of", "size_of"]

_NARROW = 2**62

WEIGHT = "uw"
"""The weight of a unit in each of its groups."""


class NormWorth:
    """What a unit adds, from the columns of its cells and its factors."""

    def __init__(self, norms: tuple[BoundedNorm, ...], filters: Mapping[str, int]) -> None:
        self.norms = norms
        self.filters = filters
        """For each statistic the number of its filter."""

    def counted(self, item: BoundedStatistic) -> str:
        """The column that counts the rows of a unit under the statistic's filter."""
        return f"c{self.filters[item.statistic.name]}"

    def norm_of(self, item: BoundedStatistic) -> NormOf:
        """Of what the norm is to which the statistic is scaled."""
        return next(norm.norm.of for norm in self.norms if norm.norm.name == item.statistic.norm)

    def times(self, item: BoundedStatistic, value: Scalar) -> Scalar:
        """The sum over units of a value times the unit's factor."""
        return Sum(self.scaled(item, value))

    def scaled(self, item: BoundedStatistic, value: Scalar) -> Scalar:
        """A value times the unit's factor; what one unit adds fits the type."""
        factor = Named(f"{item.statistic.norm}f")
        if self._narrow(item):
            return Arithmetic("*", value, factor, INTEGER)
        return Arithmetic("*", Cast(value, WIDE), Cast(factor, WIDE), WIDE)

    @staticmethod
    def _narrow(item: BoundedStatistic) -> bool:
        encoding, degree = item.row_encoding, item.statistic.degree
        assert encoding is not None
        before = item.rows * item.row_units if degree else 0
        return item.statistic.sensitivity.linf <= _NARROW and before < _NARROW


def nullable(item: BoundedStatistic) -> bool:
    """Whether a row may lack a value of the statistic."""
    return any(argument.nullable for argument in item.arguments)


def size_of(item: BoundedStatistic) -> tuple[int, EngineType]:
    """What a row of moments is worth before its unit is scaled, and the type that holds so many of a unit's rows."""
    assert item.row_encoding is not None
    size = item.row_units
    return size, INTEGER if item.rows * size < _NARROW else WIDE


def parts_of(item: BoundedStatistic) -> list[str]:
    """The columns of the sums of moments or products."""
    return (
        tail_names(item)
        if by_tails(item)
        else [f"{item.statistic.name}{part}" for part in "xy"[: item.statistic.degree]]
    )
