"""Amplification by sampling: what a mechanism on a secret sample of units costs. subsampling.md."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from fractions import Fraction

from privacy.unit import Neighbouring

__all__ = ["PoissonSample"]

_BITS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class PoissonSample:
    """Every unit, with all its rows, is in the sample with a chance of `rate`, by itself, and nobody learns which are.

    `secret` says that neither the sample nor its size nor its key is shown or used twice, `whole_units` that a unit is
    in it as a whole or not at all. Errors: ValueError where there is no amplification: for a rate that is not inside
    (0, 1), a sample that is not both, and neighbours that replace a unit.
    """

    rate: Fraction
    secret: bool
    whole_units: bool
    relation: Neighbouring

    def __post_init__(self) -> None:
        if not 0 < self.rate < 1:
            raise ValueError("a sample has a rate between zero and one")
        if not self.secret:
            raise ValueError("a sample that is known amplifies nothing: its units have the whole loss")
        if not self.whole_units:
            raise ValueError("rows that are sampled one by one leave a unit with many rows in nearly every sample")
        if self.relation is not Neighbouring.ADD_REMOVE:
            raise ValueError("amplification is proved for units that are added or removed")

    def amplified(self, epsilon: Fraction, delta: Fraction = Fraction(0)) -> tuple[Fraction, Fraction]:
        """The (epsilon, delta) of a mechanism on the whole table that is (epsilon, delta)-DP on the sample, rounded up.

        ln(1 + q (e^epsilon - 1)), and q delta.
        """
        if epsilon <= 0 or delta < 0:
            raise ValueError("a loss is positive")
        if epsilon > 700:
            return epsilon, self.rate * delta
        exact = math.log1p(float(self.rate) * math.expm1(float(epsilon)))
        return min(epsilon, Fraction(exact) * (1 + Fraction(1, 2**40))), self.rate * delta

    def holds(self, draw: int, key: bytes) -> bool:
        """Whether a unit with this secret draw is in the sample of this key: a function of the unit alone."""
        digest = hashlib.sha256(key + draw.to_bytes(8, "big")).digest()
        # Rounded down: never in more samples than the rate says.
        edge = int(self.rate * 2**_BITS)
        return int.from_bytes(digest[: _BITS // 8], "big") < edge
