"""What every local encoder is: an exact law from values to reports, its price, and how reports are read together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from mechanisms.local.draws import Places
from mechanisms.local.ratio import EPSILON_MAX, EPSILON_MIN, RATIO_BITS, ratio_below
from mechanisms.randomness import BitSource
from privacy.events.approximate import LocalReportEvent

__all__ = ["SIZE_MAX", "Floats", "LocalEncoder", "Report", "Shares", "SupportEncoder"]

Floats = npt.NDArray[np.float64]

Report = int | tuple[int, ...]
"""One report as it travels: a number, or numbers in ascending order."""

SIZE_MAX = 2**20
"""Most values of a domain."""


@dataclass(frozen=True, slots=True)
class Shares:
    """Unbiased estimates of the share of each value among the reports; they may be negative.

    `level` and `slope` are the line of n times the variance: at the share f of value x it is level[x] + slope[x] f.
    """

    values: Floats
    level: Floats
    slope: Floats
    reports: int

    def variances(self) -> Floats:
        """Estimated variance of each, the shares held to [0, 1]."""
        return (self.level + self.slope * np.clip(self.values, 0, 1)) / max(self.reports, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalEncoder(ABC):
    """A randomiser of one value 0..size-1. Proof: local_encoders.md; of Hadamard Response: hadamard_response.md.

    Requires: 2 <= size <= 2^20 and epsilon within the limits of ratio.py; ValueError otherwise.
    Ensures: the probabilities of a report under two values differ by `worst_ratio` at most, which some report
    attains and which is at most e^epsilon.
    """

    name: ClassVar[str]
    use: ClassVar[str]
    size: int
    epsilon: Fraction

    def __post_init__(self) -> None:
        if not 2 <= self.size <= SIZE_MAX:
            raise ValueError("the domain of a local encoder has at least 2 and at most 1048576 values")
        if not EPSILON_MIN <= self.epsilon <= EPSILON_MAX:
            raise ValueError("the epsilon of a local encoder is at least 0.01 and at most 16")

    def event(self) -> LocalReportEvent:
        """What one report costs its owner."""
        return LocalReportEvent(epsilon=self.epsilon)

    def law(self) -> dict[str, str | int]:
        """What a client needs to know: it computes the same probabilities from this alone."""
        return {"encoding": self.name, "size": self.size, "ratio": str(int(self.weight_ratio * (1 << RATIO_BITS)))}

    @property
    def weight_ratio(self) -> Fraction:
        """The rational from which all weights follow, a multiple of 2^-32."""
        return ratio_below(self.epsilon)

    @property
    @abstractmethod
    def worst_ratio(self) -> Fraction:
        """The greatest ratio of the probabilities of one report under two values, exact."""

    @property
    @abstractmethod
    def report_bits(self) -> int:
        """Bits of one report, as it could be packed."""

    @property
    @abstractmethod
    def tally_size(self) -> int:
        """How many counts the reports of many people are added up in."""

    @property
    @abstractmethod
    def report_max(self) -> int:
        """The greatest number in a report."""

    @abstractmethod
    def reports(self) -> Iterator[Report]:
        """Every report that can be made. For small domains."""

    @abstractmethod
    def probability(self, report: Report, value: int) -> Fraction:
        """The exact probability of a report of that value."""

    @abstractmethod
    def is_report(self, numbers: tuple[int, ...]) -> bool:
        """Whether these numbers, in this order, are a report that the encoder can make."""

    @abstractmethod
    def encode(self, values: Places, bits: BitSource) -> list[Report]:
        """A report of each value, independent. Requires: values in 0..size-1."""

    @abstractmethod
    def simulate(self, values: Places, bits: BitSource) -> Places:
        """The tally of `encode(values)`, without a list of reports."""

    def tally(self, reports: list[Report]) -> Places:
        """How often each number is in the reports: all that is kept of them. Tallies of disjoint reports add up."""
        flat = [number for report in reports for number in ((report,) if isinstance(report, int) else report)]
        return np.bincount(np.array(flat, dtype=np.int64), minlength=self.tally_size)

    @abstractmethod
    def shares(self, tally: Places, reports: int) -> Shares:
        """Unbiased estimates from a tally of so many reports, at least one."""

    @abstractmethod
    def mean_variance(self) -> float:
        """The variance of one report's estimate of a share, averaged over the values of a uniform population."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportEncoder(LocalEncoder, ABC):
    """An encoder whose tally counts, for each value, the reports that support it.

    A report of x supports x with probability p and each other value with probability q < p, so that the share of x is
    estimated by (count / n - q) / (p - q).
    """

    @property
    @abstractmethod
    def own(self) -> Fraction:
        """p: the probability that a report supports the value it was made of."""

    @property
    @abstractmethod
    def other(self) -> Fraction:
        """q: the probability that it supports any other."""

    @property
    def tally_size(self) -> int:
        """One count for each value."""
        return self.size

    @property
    def report_max(self) -> int:
        """Reports name values."""
        return self.size - 1

    def _line(self) -> tuple[float, float]:
        """n times the variance at the share 0, and its growth to the share 1."""
        p, q = self.own, self.other
        lowest = q * (1 - q) / (p - q) ** 2
        return float(lowest), float((1 - p - q) / (p - q))

    def shares(self, tally: Places, reports: int) -> Shares:
        """Unbiased estimates; the covariance between values plays no part."""
        p, q = float(self.own), float(self.other)
        level, slope = self._line()
        values = (tally / reports - q) / (p - q)
        return Shares(values, np.full(self.size, level), np.full(self.size, slope), reports)

    def mean_variance(self) -> float:
        """Of a uniform population: every share is 1 / size."""
        level, slope = self._line()
        return level + slope / self.size
