"""What one unit adds to one group: its rows allotted, its sums held to the worth of the allotted rows.

Four layers, each over the one before. The second exists only where the bound over all groups may bind; the third and
fourth name what the integers of a vector are made of:

    1  per unit and group: n rows under each filter, and per statistic its rows n, sums x of T and y of T^2, or of the
       tails of its vectors (lower_vector.py)
    2  per unit: m, the rows of all its groups, each clipped to r; NULL where they are not too many
    3  v, what the unit's rows are worth; k and l (k0, k1, ...), running sums of the scaled vector; a, what all rows
       are worth (NULLs too); s, the clipped sum; of ranks w, what each of the rows weighs (lower_ranks.py)
    4  per group: the sums over units

The layers are here; what each kind of statistic puts into them is in statistics/, in the order of the layers. Names are
those of the statistics (s0n, s0x, ...) and of the filters (n0, m0, ...). Every quotient is of non-negative
integers and rounds down. mechanisms/bounding.md says why the bounds hold, and that nothing leaves 128 bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from privacy.statistic import StatisticKind
from sql_rewrite.bounded import BoundedCore, BoundedStatistic
from sql_rewrite.contribution import Contribution
from sql_rewrite.expressions import Canonical, form_of
from sql_rewrite.layer_values import Count, Sum
from sql_rewrite.relations import Output, Relation, WithTotals
from sql_rewrite.scalars import Cast, Named, Scalar
from sql_rewrite.statistics.registry import sums_of
from sql_rewrite.unit_worth import INTEGER, ONE, UnitWorth, at_most, count_under

__all__ = ["UnitSums"]


class UnitSums(UnitWorth):
    """The layers of one core."""

    def __init__(self, bounded: BoundedCore, contribution: Contribution) -> None:
        self.statistics = bounded.statistics
        numbers: dict[Canonical | None, int] = {}
        filters = {
            item.statistic.name: numbers.setdefault(form_of(item.filter), len(numbers))
            for item in bounded.statistics
            if _needs_rows(item)
        }
        super().__init__(contribution, filters)

    def partial(self) -> tuple[Output, ...]:
        """Layer 1: columns beside the unit and the keys."""
        counted: dict[int, Output] = {}
        for item in self.statistics:
            if _needs_rows(item):
                i = self.filter_of(item)
                counted.setdefault(i, Output(count_under(item, ONE), f"n{i}"))
        columns = list(counted.values())
        for item in self.statistics:
            columns += sums_of(item.statistic.kind).partial(item)
        return tuple(columns)

    def totals(self) -> dict[str, Scalar]:
        """The unit's rows over all its groups, by name, for each filter under which they may be too many."""
        numbers = sorted({self.filter_of(item) for item in self.statistics if item.scaled})
        rows = self.contribution.rows
        return {f"m{i}": Cast(Sum(at_most(Named(f"n{i}"), rows)), INTEGER) for i in numbers}

    def with_totals(self, partial: Relation) -> Relation:
        """Layer 2 over layer 1: `partial` with the totals of units that are beyond the bound, NULL for all others."""
        totals = tuple([Output(value, name) for name, value in self.totals().items()])
        return WithTotals(partial, totals, self.contribution.total) if totals else partial

    def masses(self) -> tuple[tuple[Output, ...], tuple[Output, ...]]:
        """Layer 3, in two steps: what values and rows are worth and the scaled vector; then the clipped sum."""
        first: list[Output] = []
        second: list[Output] = []
        for item in self.statistics:
            before, after = sums_of(item.statistic.kind).masses(self, item)
            first += before
            second += after
        return tuple(first), tuple(second)

    def sums(self) -> tuple[Output, ...]:
        """Layer 4: every coordinate of every statistic."""
        columns = []
        for item in self.statistics:
            name = item.statistic.name
            if item.statistic.kind is StatisticKind.UNITS:
                columns.append(Output(Count(), f"{name}_0"))
                continue
            bound = int(item.statistic.sensitivity.linf)
            for i, value in enumerate(self._coordinates(item)):
                columns.append(Output(Sum(_narrow(value, bound)), f"{name}_{i}"))
        return tuple(columns)

    def _coordinates(self, item: BoundedStatistic) -> Sequence[Scalar]:
        return sums_of(item.statistic.kind).held(self, item)


def _needs_rows(item: BoundedStatistic) -> bool:
    """Whether the number of rows under the filter decides what the statistic gets."""
    return sums_of(item.statistic.kind).needs_rows(item)


def _narrow(value: Scalar, bound: int) -> Scalar:
    """Casts a bounded partial sum to 64 bits where it fits: the outer sum is then much faster."""
    return Cast(value, INTEGER) if bound < 2**63 else value
