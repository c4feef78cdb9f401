"""k-ary randomised response: the value itself, or any other, uniformly. Proof: local_encoders.md, section 1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from mechanisms.local.draws import Places, happen, uniform_below
from mechanisms.local.encoder import Report, SupportEncoder
from mechanisms.local.ratio import ratio_below
from mechanisms.randomness import BitSource

__all__ = ["RandomisedResponse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomisedResponse(SupportEncoder):
    """Of two values the randomised response of Warner 1965; of k values k-RR (Kairouz, Bonawitz and Ramage 2016)."""

    name: ClassVar[str] = "randomised_response"
    use: ClassVar[str] = "two values, few values, or a large epsilon; a report is one number"

    @property
    def worst_ratio(self) -> Fraction:
        """The weight of the value over that of another."""
        return ratio_below(self.epsilon)

    @property
    def own(self) -> Fraction:
        """r / (r + k - 1)."""
        ratio = self.worst_ratio
        return ratio / (ratio + self.size - 1)

    @property
    def other(self) -> Fraction:
        """1 / (r + k - 1)."""
        return 1 / (self.worst_ratio + self.size - 1)

    @property
    def report_bits(self) -> int:
        """One value."""
        return (self.size - 1).bit_length()

    def reports(self) -> Iterator[Report]:
        """Every value."""
        return iter(range(self.size))

    def probability(self, report: Report, value: int) -> Fraction:
        """Own or other."""
        return self.own if report == value else self.other

    def is_report(self, numbers: tuple[int, ...]) -> bool:
        """One number of a value."""
        return len(numbers) == 1 and 0 <= numbers[0] < self.size

    def encode(self, values: Places, bits: BitSource) -> list[Report]:
        """One number for each value."""
        return list(self._drawn(values, bits).tolist())

    def simulate(self, values: Places, bits: BitSource) -> Places:
        """The tally of fresh reports."""
        return np.bincount(self._drawn(values, bits), minlength=self.size)

    def _drawn(self, values: Places, bits: BitSource) -> Places:
        """The value, or one of the others."""
        kept = happen(self.own, values.size, bits)
        other = uniform_below(self.size - 1, values.size, bits)
        return np.where(kept, values, other + (other >= values))
