"""Subset selection: d values of which one is likely to be the true one. Proof: local_encoders.md, section 3."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise
from typing import ClassVar

import numpy as np

from mechanisms.local.draws import Flags, Places, happen, uniform_below
from mechanisms.local.encoder import Report, SupportEncoder
from mechanisms.local.ratio import ratio_below
from mechanisms.randomness import BitSource

__all__ = ["SubsetSelection"]

_AT_ONCE = 2**22


@dataclass(frozen=True, slots=True, kw_only=True)
class SubsetSelection(SupportEncoder):
    """Every set of d values may be reported; a set with the value in it is r times as likely as one without.

    Source: Ye and Barg 2018; d = ceil(k / (r + 1)) is within one of the best.
    """

    name: ClassVar[str] = "subset_selection"
    use: ClassVar[str] = "small domains at a small epsilon; a report names several values"

    @property
    def worst_ratio(self) -> Fraction:
        """The weight of a set with the value over that of a set without."""
        return ratio_below(self.epsilon)

    @property
    def chosen(self) -> int:
        """d, the values of one report."""
        return math.ceil(self.size / (self.worst_ratio + 1))

    @property
    def own(self) -> Fraction:
        """d r / (d r + k - d)."""
        weight = self.chosen * self.worst_ratio
        return weight / (weight + self.size - self.chosen)

    @property
    def other(self) -> Fraction:
        """One other value is in a set with the value, or in a set without."""
        d, k, p = self.chosen, self.size, self.own
        return (p * (d - 1) + (1 - p) * d) / (k - 1)

    @property
    def report_bits(self) -> int:
        """d values."""
        return self.chosen * (self.size - 1).bit_length()

    def reports(self) -> Iterator[Report]:
        """Every set of d values."""
        return combinations(range(self.size), self.chosen)

    def probability(self, report: Report, value: int) -> Fraction:
        """Uniform among the sets with the value, and among those without."""
        assert not isinstance(report, int)
        d, k = self.chosen, self.size
        if value in report:
            return self.own / math.comb(k - 1, d - 1)
        return (1 - self.own) / math.comb(k - 1, d)

    def is_report(self, numbers: tuple[int, ...]) -> bool:
        """Exactly d values, ascending."""
        ends = (-1, *numbers, self.size)
        ascending = all(left < right for left, right in pairwise(ends))
        return len(numbers) == self.chosen and ascending

    def encode(self, values: Places, bits: BitSource) -> list[Report]:
        """The values of each set."""
        return [tuple(np.flatnonzero(row).tolist()) for part in self._drawn(values, bits) for row in part]

    def simulate(self, values: Places, bits: BitSource) -> Places:
        """The tally of fresh reports."""
        result = np.zeros(self.size, dtype=np.int64)
        for part in self._drawn(values, bits):
            result += part.sum(axis=0)
        return result

    def _drawn(self, values: Places, bits: BitSource) -> Iterator[Flags]:
        """Matrices of flags, a row for each value: its own column by its probability, then the others one by one.

        The j-th of m others is in a uniform set that still needs c of them with probability c / (m - j).
        """
        rows = max(1, _AT_ONCE // self.size)
        for start in range(0, values.size, rows):
            part = values[start : start + rows]
            inside = happen(self.own, part.size, bits)
            needed = self.chosen - inside.astype(np.int64)
            others = np.zeros((self.size - 1, part.size), dtype=np.bool_)
            for column in range(self.size - 1):
                taken = uniform_below(self.size - 1 - column, part.size, bits) < needed
                others[column] = taken
                needed -= taken
            matrix = np.zeros((part.size, self.size), dtype=np.bool_)
            places = np.arange(self.size - 1)[None, :]
            places = places + (places >= part[:, None])
            np.put_along_axis(matrix, places, others.T, axis=1)
            matrix[np.arange(part.size), part] = inside
            yield matrix
