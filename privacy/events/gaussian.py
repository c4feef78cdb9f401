"""The event of adding Gaussian noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from privacy.events.event import fraction_to_text
from privacy.events.parameters import EPSILON_MAX, EPSILON_MIN, read_fractions, require_positive, require_ratio
from privacy.loss import Loss

__all__ = ["GaussianEvent", "gaussian_loss", "require_gaussian"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianEvent:
    """Gaussian noise of one variance was added to a vector, each entry independently.

    Requires: both positive; `l2_squared` is the square of the greatest L2 change of the whole vector between
    neighbours. Squares are kept because they are exact where their roots are not.
    Ensures: `loss().mu_squared` is `l2_squared / variance` and rho half of it, both exact.
    Pure is None: no Gaussian has a pure bound.
    Shape: the vector may have any length. Rounding the noisy value to a grid is post-processing.
    Units: both in the squared unit of the vector.
    Errors: ValueError when a parameter is not positive or the ratio is above 10^12 or below 10^-60.
    Source: Dong, Roth and Su 2022, Theorem 2.7; Bun and Steinke 2016, Proposition 1.6.
    """

    kind: ClassVar[str] = "gaussian/1"

    l2_squared: Fraction
    variance: Fraction

    def __post_init__(self) -> None:
        require_gaussian(l2_squared=self.l2_squared, variance=self.variance)

    def loss(self) -> Loss:
        """Loss of the whole vector under the relation of its sensitivity."""
        return gaussian_loss(mu_squared=self.l2_squared / self.variance, delta=Fraction(0))

    def parameters(self) -> dict[str, str]:
        """Squared sensitivity and variance, exact."""
        return {"l2_squared": fraction_to_text(self.l2_squared), "variance": fraction_to_text(self.variance)}

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, str]) -> GaussianEvent:
        """Reads `parameters()` back. Raises ValueError for anything else."""
        l2_squared, variance = read_fractions(parameters, ("l2_squared", "variance"))
        return cls(l2_squared=l2_squared, variance=variance)


def require_gaussian(*, l2_squared: Fraction, variance: Fraction) -> None:
    """Refuses parameters that no Gaussian measurement may have. Raises TypeError or ValueError."""
    require_positive(l2_squared, name="l2_squared")
    require_positive(variance, name="variance")
    require_ratio(l2_squared / variance, name="l2_squared / variance", lowest=EPSILON_MIN**2, highest=EPSILON_MAX**2)


def gaussian_loss(*, mu_squared: Fraction, delta: Fraction) -> Loss:
    """The loss of a Gaussian with that mu squared, except with probability delta."""
    return Loss(pure=None, delta=delta, rho=mu_squared / 2, mu_squared=mu_squared)
