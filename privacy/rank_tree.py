"""Trees of intervals over the range of a column: on which counts quantiles are computed (mechanisms/quantiles.md).

A tree has `levels` levels of intervals. The first has `branching` of them, and each interval is divided into as many on
the next level. The intervals of the last level are its places. A row belongs to one interval of each level.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from fractions import Fraction

__all__ = [
    "BLOCKS",
    "NODES_MAX",
    "PLACES",
    "Drawn",
    "QuantileMechanism",
    "RankTree",
    "coordinates_on",
    "shape_of",
]

PLACES = (4096, 1024, 256, 64)
"""How many places are made of a column that has more values than that: the most of them that all groups together may
have."""

NODES_MAX = 2**16
"""Most counts of one statistic over all groups: they are stored, and their noise is simulated."""

_LEVELS_MAX = 4


BLOCKS = 256
"""Blocks of units of a sample-and-aggregate: public, and the same for every question."""


class QuantileMechanism(enum.StrEnum):
    """How quantiles are drawn beside a tree, by the names of requests, answers and stored releases."""

    EXPONENTIAL = "exponential"
    """By how far the ranks of a place are from the one that is asked for: mechanisms/quantiles.md."""

    SMOOTH = "smooth"
    """The quantile with noise that follows from its smooth sensitivity: mechanisms/smooth_sensitivity.md."""

    SAMPLE_AND_AGGREGATE = "sample_and_aggregate"
    """A private median of the quantiles of blocks of units: mechanisms/sample_and_aggregate.md."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """Quantiles of a tree that are drawn one by one, beside noise on its counts: mechanisms/quantiles.md.

    `between` are the fractions of those that may lie between two rows, `rows` of those that are a row; both rise. Each
    place of the tree is divided into `finer` ones, among which they are drawn.
    """

    between: tuple[Fraction, ...]
    rows: tuple[Fraction, ...]
    finer: int
    method: QuantileMechanism = QuantileMechanism.EXPONENTIAL
    blocks: int = 0
    """Of a sample-and-aggregate, into how many blocks units are hashed."""

    def __post_init__(self) -> None:
        assert self.count
        assert (self.blocks > 0) == (self.method is QuantileMechanism.SAMPLE_AND_AGGREGATE)
        for fractions in (self.between, self.rows):
            assert all(0 < fraction < 1 for fraction in fractions)
            assert list(fractions) == sorted(set(fractions))
        assert self.finer >= 1

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.between) + len(self.rows)

    @property
    def fractions(self) -> tuple[Fraction, ...]:
        """The fraction of each, in the order of the coordinates."""
        return self.between + self.rows

    @property
    def block_lists(self) -> int:
        """How many lists of block answers by place are read beside the rows by place."""
        return self.count if self.blocks else 0

    def place(self, fraction: Fraction, *, discrete: bool) -> int | None:
        """The place of a quantile among them; None where it is not drawn."""
        if discrete:
            return len(self.between) + self.rows.index(fraction) if fraction in self.rows else None
        return self.between.index(fraction) if fraction in self.between else None


@dataclass(frozen=True, slots=True)
class RankTree:
    """The tree of one statistic, and which values its places hold.

    `lower` and `upper` are the value bounds. With `whole` values are whole numbers, and each place holds one of them or
    more; otherwise place i holds the values from one multiple of the encoding's step above `lower` to the next. `worth`
    is how many integer units one row adds.
    """

    branching: int
    levels: int
    lower: Fraction
    upper: Fraction
    whole: bool
    worth: int = 1

    def __post_init__(self) -> None:
        assert self.branching >= 2
        assert 1 <= self.levels <= _LEVELS_MAX
        assert self.lower <= self.upper
        assert self.worth >= 1

    @property
    def places(self) -> int:
        """The intervals of the last level. Those beyond the upper bound hold nothing."""
        return int(self.branching**self.levels)

    @property
    def halves(self) -> bool:
        """Whether there is a coarser tree."""
        return self.branching > 2 and self.branching % 2 == 0

    def coarser(self) -> RankTree:
        """The tree of as many levels with half the branching: each of its places holds 2^levels of these.

        Requires: `halves`.
        """
        assert self.halves
        return replace(self, branching=self.branching // 2)

    @property
    def nodes(self) -> int:
        """The intervals of all levels."""
        return sum(int(self.branching**level) for level in range(1, self.levels + 1))


def coordinates_on(tree: RankTree | None, drawn: Drawn | None) -> int:
    """How many numbers of a group are released of a tree and what is drawn beside it; one where there is no tree."""
    return (1 if tree is None else tree.nodes) + (0 if drawn is None else drawn.count)


def shape_of(places: int) -> tuple[int, int]:
    """Branching and levels of the tree with at least so many places whose quantiles have the least error.

    With Gaussian noise the variance of a rank grows about as levels squared times branching. A pure function of the
    number alone, for releases are stored with it.
    """
    shapes = []
    for levels in range(1, _LEVELS_MAX + 1):
        branching = max(2, round(places ** (1 / levels)) - 1)
        while branching**levels < places:
            branching += 1
        shapes.append((levels**2 * branching, levels, branching))
    _, levels, branching = min(shapes)
    return branching, levels
