"""Norms of what one privacy unit adds to all cells of a core: a unit is scaled to one, and counted by it.

A unit's vector is multiplied by min(1, C / |vector|). C is a number of rows, of cells or of steps of a sum; a question
chooses it from a histogram of the units' norms (mechanisms/norm_choice.md), unless the request names it.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar, assert_never

__all__ = ["BINS", "BINS_PER_OCTAVE", "NORM_GRAIN", "NORM_MAX", "Norm", "NormOf", "NormPower", "norms_name"]

Value = TypeVar("Value")

BINS_PER_OCTAVE = 4

BINS = 40 * BINS_PER_OCTAVE + 1
"""Bins of the histogram: norms up to 1, then a factor of 2^(1/4) each, up to 2^40."""

NORM_MAX = 2**40
"""The greatest norm: the last edge of the histogram."""

NORM_GRAIN = Fraction(1, 2**12)
"""Norms are whole multiples of this."""


class NormPower(enum.Enum):
    """Which norm: the one to which the noise is calibrated."""

    L1 = "l1"
    """The sum over all cells. Laplace noise."""

    L2 = "l2"
    """The root of the sum of squares. Gaussian noise."""

    def choose(self, *, l1: Value, l2: Value) -> Value:
        """The one of these that belongs to this power. A further power is one more argument: mypy finds each call."""
        match self:
            case NormPower.L1:
                return l1
            case NormPower.L2:
                return l2
            case _:
                assert_never(self)


class NormOf(enum.Enum):
    """Of which vector the norm is, one number for each cell."""

    ROWS = "rows"
    """The unit's rows under a filter."""

    UNITS = "units"
    """One in each cell in which the unit has a row under a filter."""

    SUM = "sum"
    """The unit's sum of an argument under a filter, in steps."""


@dataclass(frozen=True, slots=True)
class Norm:
    """One norm of a core: n0, n1, ... A unit of the norm is a row, a privacy unit, or `step` of a sum."""

    name: str
    power: NormPower
    of: NormOf
    step: Fraction = Fraction(1)
    text: str = ""
    """What it is of, for people: the argument and the filter."""

    def __post_init__(self) -> None:
        assert self.step > 0
        assert self.of is NormOf.SUM or self.step == 1


def norms_name(core: str) -> str:
    """The name of the core that is the histogram of another core's norms."""
    return f"{core}.norms"
