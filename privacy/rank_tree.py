"""Trees of intervals over the range of a column: on which counts quantiles are computed (mechanisms/quantiles.md).

A tree has `levels` levels of intervals. The first has `branching` of them, and each interval is divided into as many on
the next level. The intervals of the last level are its places. A row belongs to one interval of each level.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

__all__ = ["NODES_MAX", "PLACES", "RankTree", "shape_of"]

PLACES = (4096, 1024, 256, 64)
"""How many places are made of a column that has more values than that: the most of them that all groups together may
have."""

NODES_MAX = 2**16
"""Most counts of one statistic over all groups: they are stored, and their noise is simulated."""

_LEVELS_MAX = 4


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
