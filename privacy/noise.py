"""Families of noise by name, and the amounts in which they are priced."""

from __future__ import annotations

import enum
from typing import assert_never

__all__ = ["Currency", "NoiseFamily"]


class NoiseFamily(enum.StrEnum):
    """The families of noise that can answer a query. The values stand in requests, answers and stored releases."""

    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"


class Currency(enum.Enum):
    """What an amount of a family's price is, and from which sum of an account it is paid."""

    PURE = "pure"
    """Pure epsilon: inverse to the scale of the noise."""

    MU_SQUARED = "mu_squared"
    """Mu squared of Gaussian DP: inverse to the square of the scale."""

    @property
    def power(self) -> int:
        """The power of one over the scale of the noise that an amount grows with."""
        match self:
            case Currency.PURE:
                return 1
            case Currency.MU_SQUARED:
                return 2
            case _:
                assert_never(self)
