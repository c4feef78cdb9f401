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
        found: list[Report] = []
        for part in self._drawn(values, bits):
            found += map(tuple, np.nonzero(part.T)[1].reshape(-1, self.chosen).tolist())
        return found

    def simulate(self, values: Places, bits: BitSource) -> Places:
        """The tally of fresh reports."""
        result = np.zeros(self.size, dtype=np.int64)
        for part in self._drawn(values, bits):
            result += np.count_nonzero(part, axis=1)
        return result

    def _drawn(self, values: Places, bits: BitSource) -> Iterator[Flags]:
        """Matrices of flags, a column for each report: its own value by its probability, then the others.

        A uniform set of c of m others is drawn in c steps (Floyd; local_encoders.md, section 3): step j, from m - c to
        m - 1, adds a uniform one of 0..j, or j where that is in the set. Sets without the value have a step more.
        """
        others, at_once = self.size - 1, max(1, _AT_ONCE // self.size)
        for start in range(0, values.size, at_once):
            part = values[start : start + at_once]
            inside, reports = happen(self.own, part.size, bits), np.arange(part.size)
            flags = np.zeros((self.size, part.size), dtype=np.bool_)
            first = others - self.chosen
            flags[uniform_below(first + 1, part.size, bits), reports] = ~inside
            for last in range(first + 1, others):
                place = uniform_below(last + 1, part.size, bits)
                flags[np.where(flags[place, reports], last, place), reports] = True
            # The others are all values but the own one, in whose place is the last.
            flags[others] = flags[part, reports]
            flags[part, reports] = inside
            yield flags
