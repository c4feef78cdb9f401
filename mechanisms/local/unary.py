"""Unary encodings: one bit for each value, each kept or flipped by itself. Proof: local_encoders.md, section 2."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise
from typing import ClassVar

import numpy as np

from mechanisms.local.draws import Flags, Places, happen
from mechanisms.local.encoder import Report, SupportEncoder
from mechanisms.local.ratio import ratio_below
from mechanisms.randomness import BitSource

__all__ = ["OptimisedUnary", "Rappor", "UnaryEncoder"]

_AT_ONCE = 2**22


@dataclass(frozen=True, slots=True, kw_only=True)
class UnaryEncoder(SupportEncoder, ABC):
    """The bit of the value is one with probability `own`, every other bit with `other`; a report names the ones."""

    @property
    def worst_ratio(self) -> Fraction:
        """Two values differ in two bits: one for the value and none for the other, against the reverse."""
        p, q = self.own, self.other
        return p * (1 - q) / ((1 - p) * q)

    @property
    def report_bits(self) -> int:
        """A bit for each value."""
        return self.size

    def reports(self) -> Iterator[Report]:
        """Every set of values."""
        return (one for count in range(self.size + 1) for one in combinations(range(self.size), count))

    def probability(self, report: Report, value: int) -> Fraction:
        """The product over bits."""
        assert not isinstance(report, int)
        p, q = self.own, self.other
        others = len(report) - (value in report)
        chance = p if value in report else 1 - p
        return chance * q**others * (1 - q) ** (self.size - 1 - others)

    def is_report(self, numbers: tuple[int, ...]) -> bool:
        """Any values, ascending."""
        ends = (-1, *numbers, self.size)
        return all(left < right for left, right in pairwise(ends))

    def encode(self, values: Places, bits: BitSource) -> list[Report]:
        """The places of the ones of each report."""
        found: list[Report] = []
        for part in self._drawn(values, bits):
            rows, ones = np.nonzero(part)
            # All ones one after another; each report is a piece of them.
            every = tuple(ones.tolist())
            ends = np.searchsorted(rows, np.arange(len(part) + 1)).tolist()
            found += [every[start:end] for start, end in pairwise(ends)]
        return found

    def simulate(self, values: Places, bits: BitSource) -> Places:
        """The tally of fresh reports."""
        result = np.zeros(self.size, dtype=np.int64)
        for part in self._drawn(values, bits):
            # Sums of 255 rows fit the bytes in which bits are kept, and are several times as fast as whole numbers.
            for start in range(0, len(part), 255):
                result += np.add.reduce(part[start : start + 255].view(np.uint8), axis=0, dtype=np.uint8)
        return result

    def _drawn(self, values: Places, bits: BitSource) -> Iterator[Flags]:
        """Matrices of bits, a row for each value."""
        rows = max(1, _AT_ONCE // self.size)
        for start in range(0, values.size, rows):
            part = values[start : start + rows]
            matrix = happen(self.other, part.size * self.size, bits).reshape(part.size, self.size)
            matrix[np.arange(part.size), part] = happen(self.own, part.size, bits)
            yield matrix


@dataclass(frozen=True, slots=True, kw_only=True)
class Rappor(UnaryEncoder):
    """Both kinds of bits are flipped equally often: the one-time part of RAPPOR, one bit for each value.

    Source: Erlingsson, Pihur and Korolova 2014; Wang, Blocki, Li and Jha 2017 call it symmetric unary encoding.
    """

    name: ClassVar[str] = "rappor"
    use: ClassVar[str] = "a bit for each value, both kinds flipped equally often"

    @property
    def weight_ratio(self) -> Fraction:
        """h: at most e^(epsilon / 2), as two bits distinguish two values."""
        return ratio_below(self.epsilon / 2)

    @property
    def own(self) -> Fraction:
        """h / (h + 1)."""
        half = self.weight_ratio
        return half / (half + 1)

    @property
    def other(self) -> Fraction:
        """1 / (h + 1)."""
        return 1 - self.own


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimisedUnary(UnaryEncoder):
    """The bit of the value is a fair coin, so that the many others are flipped as rarely as epsilon allows.

    Source: Wang, Blocki, Li and Jha 2017, section 4.3.
    """

    name: ClassVar[str] = "optimised_unary"
    use: ClassVar[str] = "a bit for each value, that of the answer a fair coin"

    @property
    def own(self) -> Fraction:
        """A half."""
        return Fraction(1, 2)

    @property
    def other(self) -> Fraction:
        """1 / (r + 1)."""
        return 1 / (ratio_below(self.epsilon) + 1)
