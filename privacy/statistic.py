"""Statistics: exact integer sums with a proved sensitivity, and the estimates that are computed from them.

A core (one private aggregation) is a grid of cells, one per group, and for each cell a few integer sums. One
`Statistic` is a family of sums that share one argument and one noise; an `Estimate` is a column of the answer
that is a function of one statistic's noisy sums.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, assert_never

from privacy.aggregate import AggregateFunction
from privacy.by_slots import by_slots
from privacy.norms import Norm
from privacy.policy import ColumnType, KeyValue
from privacy.rank_tree import Drawn, RankTree, coordinates_on
from privacy.statistic_kind import Encoded, RowAdds, StatisticKind, coordinates_of, units_of_row
from privacy.unit import Neighbouring

__all__ = [
    "SELECTING",
    "Choice",
    "CoreStatistics",
    "Encoding",
    "Estimate",
    "KeyColumn",
    "Keys",
    "RunningSums",
    "Sensitivity",
    "Statistic",
    "StatisticKind",
]


SELECTING = frozenset({StatisticKind.UNITS, StatisticKind.WEIGHTS, StatisticKind.MOMENTS, StatisticKind.PRODUCTS})
"""The kinds of sums by which groups are selected: of moments and products their number of rows."""


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """Greatest change of a statistic's whole integer matrix (cells x coordinates) between neighbours.

    `l0` counts entries that may change, `l1` and `l2_squared` are norms over the whole matrix, `linf` is for one
    entry. All in integer units of the statistic's encoding.
    """

    relation: Neighbouring
    l0: int
    l1: Fraction
    l2_squared: Fraction
    linf: Fraction

    def __post_init__(self) -> None:
        assert self.l0 >= 1
        assert 0 < self.linf <= self.l1
        assert self.linf**2 <= self.l2_squared <= self.l1**2


@by_slots
@dataclass(frozen=True, slots=True)
class Encoding:
    """How a value x becomes an integer T: T = clip(round((x - offset) / step), 0 or lowest, highest).

    For moments `lowest` is 0 and `highest` is the width W; for plain sums `offset` is 0 and T may be negative; a count
    of scaled rows has `highest` steps to the row. Back: x = offset + step * T.
    """

    offset: Fraction
    step: Fraction
    lowest: int
    highest: int

    def __post_init__(self) -> None:
        assert self.step > 0
        assert self.lowest <= self.highest

    @property
    def largest(self) -> int:
        """The greatest |T|, at least 1: what one row is worth in a plain sum."""
        return max(abs(self.lowest), abs(self.highest), 1)


@by_slots
@dataclass(frozen=True, slots=True)
class Statistic:
    """A family of integer sums per cell that share one argument, one sensitivity and one noise."""

    name: str
    kind: StatisticKind
    sensitivity: Sensitivity
    coordinates: int = 1
    encoding: Encoding | None = None
    degree: int = 0
    counts_nulls: bool = False
    raised: bool = False
    lowered: bool = False
    fractional: bool = False
    """Whether units are scaled to a part of a row, so that true counts and sums of whole numbers are not whole."""
    argument: str = ""
    """The argument as text for people: the clip bounds and expression that the answer reports."""
    tree: RankTree | None = None
    """Of ranks, the tree on whose nodes rows are counted: its coordinates, level by level."""
    norm: str | None = None
    """The norm of its core to which a unit's whole vector is scaled; None where bounds hold it."""
    distinct: bool = False
    """Whether a row of it is a different value of a cell, which any of the units that have it brings in."""
    second: Encoding | None = None
    """Of products, how the second value becomes an integer; `encoding` is that of the first."""
    second_degree: int = 0
    """Of products, the degree of the second value; `degree` is that of the first."""
    drawn: Drawn | None = None
    """Of ranks, the quantiles that are drawn: after the nodes one coordinate for each is the place that it is in."""
    parts: int = 1
    """How many equal parts of its question's price it gets: as many as the statistics in whose place it stands."""

    GONE: ClassVar[Mapping[str, int]] = {"weight": 1}
    """Fields that are gone, with the one value that each of them ever had: stored sums and the identities of releases
    were made with them."""

    def __post_init__(self) -> None:
        described = self.kind.described
        assert (self.tree is not None) == (described.row is RowAdds.NODES)
        assert (self.second is not None) == described.pairs
        assert self.drawn is None or self.tree is not None
        assert self.parts >= 1
        match described.encoded:
            case Encoded.NEVER:
                assert self.encoding is None
            case Encoded.SCALED:
                assert (self.encoding is not None) == self.fractional
            case Encoded.ALWAYS:
                assert self.encoding is not None
            case _:
                assert_never(described.encoded)
        for encoding, degree in ((self.encoding, self.degree), (self.second, self.second_degree)):
            if encoding is None or not described.degrees:
                assert not degree
            else:
                assert encoding.lowest == 0
                assert encoding.highest > 0
                assert degree in described.degrees
        if self.tree is not None:
            assert self.encoding is not None
            assert self.encoding.lowest == 0
            assert self.encoding.highest < self.tree.places
        assert not self.counts_nulls or described.degrees
        # The two ways to bound a sum are those of one value of degree 1.
        assert not (self.raised or self.lowered) or (self.degree == 1 and not described.pairs)
        assert self.coordinates == coordinates_of(
            self.kind,
            degree=self.degree,
            second_degree=self.second_degree,
            others=self.raised + self.lowered + self.counts_nulls,
            nodes=coordinates_on(self.tree, self.drawn),
        )

    @property
    def row_units(self) -> int:
        """Integer units that one row is worth in L1, of ranks in each level. Requires: moments, products or ranks."""
        assert self.encoding is not None
        if self.tree is not None:
            return self.tree.worth
        assert self.degree
        return units_of_row(
            self.kind,
            highest=self.encoding.highest,
            degree=self.degree,
            second_highest=1 if self.second is None else self.second.highest,
            second_degree=self.second_degree,
        )

    @property
    def place_units(self) -> int:
        """Of ranks, what the engine counts a whole row as: one, or its integer units where rows are scaled."""
        assert self.tree is not None
        return self.tree.worth if self.fractional else 1

    @property
    def places(self) -> int:
        """Of ranks, how many places the engine counts rows by: those of the tree, or the finer ones of its draws."""
        assert self.tree is not None
        return self.tree.places * (1 if self.drawn is None else self.drawn.finer)

    @property
    def block_names(self) -> tuple[str, ...]:
        """Of a sample-and-aggregate, the names of what blocks answer by place: one list for each quantile."""
        return () if self.drawn is None else tuple([f"{self.name}b{i}" for i in range(self.drawn.block_lists)])

    @property
    def summed(self) -> int:
        """How many true sums of a cell are read: its coordinates, or nodes, finer places and answers of blocks."""
        if self.drawn is None:
            return self.coordinates
        assert self.tree is not None
        return self.tree.nodes + self.places * (1 + self.drawn.block_lists)

    @property
    def of_one_row(self) -> tuple[int, int]:
        """The least and the most that one row adds to a coordinate; the most also to all coordinates together."""
        match self.kind.described.row:
            case RowAdds.ONE:
                return 0, 1 if self.encoding is None else self.encoding.highest
            case RowAdds.STEPS:
                assert self.encoding is not None
                return min(self.encoding.lowest, 0), max(self.encoding.highest, 0)
            case RowAdds.WORTH:
                return 0, self.row_units
            case RowAdds.NODES:
                assert self.tree is not None
                return 0, self.tree.worth * self.tree.levels
            case _:
                assert_never(self.kind.described.row)


@by_slots
@dataclass(frozen=True, slots=True)
class Estimate:
    """One aggregate column of a core's release.

    `kind` is what it says of its statistic's sums: mostly the aggregate that was asked for, and ROWS for other counts
    that have a statistic of their own. `integer` asks for whole numbers; otherwise the column is DOUBLE.
    """

    name: str
    kind: AggregateFunction
    statistic: str
    integer: bool = False
    fraction: Fraction | None = None
    """Of a quantile, the part of the rows that lie below it."""


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """One grouping column of a core's release."""

    name: str
    type: ColumnType


@dataclass(frozen=True, slots=True)
class Keys:
    """The cells of a core.

    `domain` lists every cell in order when the keys are public (also the empty tuple as the only cell of a core
    without groups); None means that cells are released only through partition selection, and the core then
    contains a statistic of a kind of `SELECTING`, named `selection`.
    """

    columns: tuple[KeyColumn, ...]
    domain: tuple[tuple[KeyValue, ...], ...] | None
    groups_per_unit: int
    selection: str | None = None

    def __post_init__(self) -> None:
        assert (self.domain is None) == (self.selection is not None)
        assert self.columns or self.domain == ((),)


@dataclass(frozen=True, slots=True)
class Choice:
    """That the cells with the best sums of a core's only statistic are released, in order, and no sum of any cell.

    `count` of them are chosen in each part of the cells, or all where it has fewer: cells that agree in the key columns
    `within` are a part. `least` asks for the lowest sums.
    """

    count: int
    within: tuple[str, ...]
    least: bool
    parts_per_unit: int
    """The most parts in which one unit changes a sum."""
    one_way: bool
    """Whether adding a unit moves no two sums of a part in opposite directions: of no use where units are replaced."""

    def __post_init__(self) -> None:
        assert self.count >= 1
        assert self.parts_per_unit >= 1

    @property
    def draws_per_unit(self) -> int:
        """The most draws whose chances one unit changes."""
        return self.count * self.parts_per_unit

    def parts(self, keys: Keys) -> list[list[int]]:
        """The places of the cells of each part, in their order."""
        assert keys.domain is not None
        if not self.within:
            return [list(range(len(keys.domain)))] if keys.domain else []
        named = [place for place, column in enumerate(keys.columns) if column.name in self.within]
        found: dict[tuple[KeyValue, ...], list[int]] = {}
        for place, cell in enumerate(keys.domain):
            found.setdefault(tuple(cell[one] for one in named), []).append(place)
        return list(found.values())


@by_slots
@dataclass(frozen=True, slots=True)
class RunningSums:
    """That sums over neighbouring values of one key are read, within each combination of the other keys.

    `ends` are the place of the first value of each sum, and the one behind its last. `cells`: whether single cells are
    read too.
    """

    key: int
    ends: tuple[tuple[int, int], ...]
    cells: bool

    def __post_init__(self) -> None:
        assert self.ends
        assert all(0 <= low < high for low, high in self.ends)


@dataclass(frozen=True, slots=True)
class CoreStatistics:
    """Everything the mechanisms need to know about one core, and nothing about its rows."""

    name: str
    keys: Keys
    statistics: tuple[Statistic, ...]
    estimates: tuple[Estimate, ...]
    norms: tuple[Norm, ...] = ()
    """The norms to which units are scaled, in canonical order; none where bounds hold them."""
    choice: Choice | None = None
    """Which keys are released, in place of every number; None where numbers are."""
    levels: tuple[tuple[int, ...], ...] = ()
    """The levels of groups whose numbers are read, each as the places of the keys that it groups by, in ascending
    order; none where only the finest one is. All numbers are sums over the finest one's cells."""
    running: RunningSums | None = None
    """Sums over neighbouring cells that are read; None where none are, or levels are."""

    def __post_init__(self) -> None:
        names = [statistic.name for statistic in self.statistics]
        assert len(set(names)) == len(names)
        norms = [norm.name for norm in self.norms]
        assert len(set(norms)) == len(norms)
        assert {statistic.norm for statistic in self.statistics} - {None} == set(norms)
        assert all(estimate.statistic in names for estimate in self.estimates)
        assert self.keys.selection is None or self.keys.selection in names
        if self.choice is not None:
            assert self.keys.domain is not None
            assert not self.estimates
            assert not self.norms
            assert [statistic.coordinates for statistic in self.statistics] == [1]
