"""What a kind of statistic sums, from one row to the coordinates of a group, and how long that takes.

The layers, their names and their order are those of lower_units.py and lower_normed.py. A kind fills them here: each
method keeps what its docstring claims, and mechanisms/bounding.md and mechanisms/norms.md prove that together they hold
a unit. None of them has a default: a kind that leaves one out cannot be made (docs/recipes/statistic.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from sql_rewrite.bounded import BoundedStatistic
from sql_rewrite.dialects.costs import EngineCosts
from sql_rewrite.norm_worth import NormWorth
from sql_rewrite.relations import Output
from sql_rewrite.scalars import Scalar
from sql_rewrite.unit_worth import UnitWorth

__all__ = ["KindSums"]


class KindSums(ABC):
    """The sums of one kind."""

    @abstractmethod
    def holder(self, alone: str | None, shared: str | None) -> str | None:
        """Which of a family's statistics holds an aggregate of this kind: the sum by itself, or what is shared.

        None where the aggregate is of no such family.
        """

    # Each unit has one row

    @abstractmethod
    def row(self, item: BoundedStatistic) -> Sequence[Scalar]:
        """The integers that one row under the filter adds to each coordinate (NULL: nothing)."""

    @abstractmethod
    def plain_count(self, item: BoundedStatistic, *, one_row: bool) -> bool:
        """Whether the only coordinate is a plain count of rows: of 64 bits, never NULL and far below 2^62."""

    # Counts bound a unit

    @abstractmethod
    def needs_rows(self, item: BoundedStatistic) -> bool:
        """Whether the number of rows under the filter decides what the statistic gets."""

    @abstractmethod
    def partial(self, item: BoundedStatistic) -> Sequence[Output]:
        """Layer 1: what is summed of a unit's rows in a group, beside their number under the filter."""

    @abstractmethod
    def masses(self, unit: UnitWorth, item: BoundedStatistic) -> tuple[Sequence[Output], Sequence[Output]]:
        """Layer 3, in two steps: what the sums are worth, scaled; then what is clipped to that."""

    @abstractmethod
    def held(self, unit: UnitWorth, item: BoundedStatistic) -> Sequence[Scalar]:
        """Layer 4: each coordinate of the unit, none beyond what its allotted rows are worth."""

    # Units are scaled to norms

    @abstractmethod
    def of_cell(self, unit: NormWorth, item: BoundedStatistic) -> Sequence[Output]:
        """What is summed of a unit's rows in a cell, beside their number under the filter."""

    @abstractmethod
    def cell(self, unit: NormWorth, item: BoundedStatistic) -> Sequence[Output]:
        """What is read of a cell later, in 64 bits where it fits, beside the numbers of the norms."""

    @abstractmethod
    def scaled(self, unit: NormWorth, item: BoundedStatistic) -> Sequence[Scalar]:
        """Each coordinate of a group: what its units add, times their factors, summed."""

    # Time

    @abstractmethod
    def numbers(self, item: BoundedStatistic) -> int:
        """How many numbers of 64 bits a cell keeps; one of 128 bits takes as long as three, squares ten."""

    @abstractmethod
    def held_nanoseconds(self, item: BoundedStatistic, costs: EngineCosts) -> float:
        """Time of the expressions that hold what a unit adds to a group, where only units beyond bounds need them."""
