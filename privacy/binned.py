"""Columns as places: how the values of a column are counted in the marginals of a synthetic table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from privacy.histogram import Histogram, HistogramOf

__all__ = ["BinnedColumn", "Marginal", "cells_of"]

Marginal = tuple[int, ...]
"""Numbers of the columns of a marginal. Its cells are in row-major order of their places."""


@dataclass(frozen=True, slots=True)
class BinnedColumn:
    """One column: the histogram that its values have places in, of which those from `first` to `last` are kept.

    Values below the first kept place count in it, values above the last one in that; NULL has a place of its own, the
    last. With `chosen` which places are kept is chosen from noisy counts, because the column declares no bounds.
    """

    name: str
    histogram: Histogram
    first: int
    last: int
    chosen: bool = False

    def __post_init__(self) -> None:
        assert self.histogram.of in (HistogramOf.KEYS, HistogramOf.VALUES)
        assert 0 <= self.first <= self.last < self.histogram.bins - self.histogram.null

    @staticmethod
    def of(name: str, histogram: Histogram, *, chosen: bool) -> BinnedColumn:
        """The column with all places of its histogram."""
        return BinnedColumn(name, histogram, 0, histogram.bins - histogram.null - 1, chosen)

    @property
    def null(self) -> bool:
        """Whether NULL has a place."""
        return self.histogram.null

    @property
    def size(self) -> int:
        """How many places there are, that of NULL included."""
        return self.last - self.first + 1 + self.null

    def narrowed(self, first: int, last: int) -> BinnedColumn:
        """The column with fewer places, counted from those that it has."""
        return replace(self, first=self.first + first, last=self.first + last)


def cells_of(columns: Sequence[BinnedColumn], marginal: Marginal) -> int:
    """How many cells a marginal has."""
    return math.prod(columns[one].size for one in marginal)
