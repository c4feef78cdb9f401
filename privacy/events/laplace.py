"""The event of adding Laplace noise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Self

from privacy.events.event import (
    EPSILON_MAX,
    EPSILON_MIN,
    fraction_to_text,
    read_fractions,
    require_delta,
    require_positive,
    require_ratio,
)
from privacy.loss import Loss
from privacy.special import erfc_inverse, precise, rounded_up, to_decimal
from privacy.values import Json

__all__ = ["EVENTS", "LaplaceEvent", "LaplaceThresholdEvent"]

SMALL = Fraction(1, 10**12)
"""Below this epsilon the measures are replaced by their leading terms, which bound them from above."""

HALF_PI_UP = Fraction(15707963267948966193, 10**19)
"""Not below pi/2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceEvent:
    """Laplace noise of one scale was added to a vector of integers or reals, each entry independently.

    Requires: both positive; `l1_sensitivity` is the greatest L1 change of the whole vector between neighbours.
    Ensures: `loss().pure` is `l1_sensitivity / scale`, exact; other measures are rounded up.
    Shape: the vector may have any length. Rounding the noisy value to a grid is post-processing and changes nothing;
    the discrete Laplace distribution is another mechanism (a worse one) and is not this event.
    Units: both in the unit of the vector.
    Errors: ValueError when a parameter is not positive or epsilon is above 10^6 or below 10^-30.

    Why every measure holds for vectors: with entry i changed by d_i, sum |d_i| <= D, the entries are independent, so
    each measure is the sum of f(|d_i| / scale) with f the measure of a single entry. If f(x) / x never falls, then
    sum f(x_i) <= f(sum x_i), and moving the whole change into one entry is the worst case. It never falls for
    x (pure), for convex functions with f(0) = 0 (rho: x + e^-x - 1) and for mu squared: with h(t) = -ln(2 Q(t)), Q the
    Gaussian tail, mu(x) = 2t where h(t) = x/2, and h(t)/t^2 falls because 2h - t h' is zero at t = 0 and has the
    derivative h' - t h'', which falls (the hazard rate h' is convex) to the limit zero at infinity and so is positive.

    Why it is mu-GDP with mu = 2 Phi^-1(1 - e^(-eps/2) / 2): the trade-off function of one entry is
    e^-eps / (4 a) for errors a between e^-eps / 2 and 1/2, and straight from there to (0, 1) and (1, 0). Phi is
    log-concave, so a G_mu(a) = Phi(-s) Phi(s - mu) is greatest at s = mu/2, where it is e^-eps / 4: the middle piece
    lies above G_mu. Convexity of G_mu puts it below the two straight pieces.

    Source: Dwork and Roth 2014, Theorem 3.6 (pure); Harrison and Manurangsi 2025 (rho, tight); Dong, Roth and
    Su 2022, section 2 (trade-off functions).
    """

    kind: ClassVar[str] = "laplace/1"

    l1_sensitivity: Fraction
    scale: Fraction

    def __post_init__(self) -> None:
        require_positive(self.l1_sensitivity, name="l1_sensitivity")
        require_positive(self.scale, name="scale")
        require_ratio(
            self.l1_sensitivity / self.scale, name="l1_sensitivity / scale", lowest=EPSILON_MIN, highest=EPSILON_MAX
        )

    def loss(self) -> Loss:
        """Loss of the whole vector under the relation of its sensitivity."""
        return _loss(self.l1_sensitivity / self.scale)

    def parameters(self) -> dict[str, str]:
        """Sensitivity and scale, exact."""
        return {"l1_sensitivity": fraction_to_text(self.l1_sensitivity), "scale": fraction_to_text(self.scale)}

    @classmethod
    def from_parameters(cls, parameters: Json) -> Self:
        """Reads `parameters()` back. Raises ValueError for anything else."""
        l1_sensitivity, scale = read_fractions(parameters, ("l1_sensitivity", "scale"))
        return cls(l1_sensitivity=l1_sensitivity, scale=scale)


@lru_cache(maxsize=4096)
def _loss(epsilon: Fraction) -> Loss:
    if epsilon < SMALL:
        # The leading terms: rho < eps^2/2 and mu^2 < pi/2 eps^2.
        rho = epsilon**2 / 2
        mu_squared = HALF_PI_UP * epsilon**2
    else:
        with precise():
            exact = to_decimal(epsilon)
            rho = min(rounded_up(exact + (-exact).exp() - 1), epsilon**2 / 2)
            mu_squared = rounded_up(8 * erfc_inverse(exact / 2) ** 2)
    return Loss(pure=epsilon, delta=Fraction(0), rho=rho, mu_squared=mu_squared)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceThresholdEvent:
    """Sums of the partitions that occur got Laplace noise, and those above a threshold were released.

    Requires: `l1_sensitivity` and `scale` as for `LaplaceEvent`, for the sums of all partitions; `delta` inside (0, 1)
    is at least the probability that any of the partitions in which a privacy unit is alone passes the threshold; the
    noise of different partitions is independent.
    Ensures: the loss of the Laplace noise plus `delta`. The noisy sums above the threshold are covered too.
    Errors: ValueError for other parameters.

    Why: as `GaussianThresholdEvent`. That a partition with this unit alone passes depends only on noise that the other
    database does not draw. Given that none does, the output is that of Laplace noise on the shared partitions and the
    threshold; so both outputs are within total variation delta, with the same weight, of a pair on its curves.
    """

    kind: ClassVar[str] = "laplace_threshold/1"

    l1_sensitivity: Fraction
    scale: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        require_positive(self.l1_sensitivity, name="l1_sensitivity")
        require_positive(self.scale, name="scale")
        ratio = self.l1_sensitivity / self.scale
        require_ratio(ratio, name="l1_sensitivity / scale", lowest=EPSILON_MIN, highest=EPSILON_MAX)
        require_delta(self.delta)

    def loss(self) -> Loss:
        """Loss of the selection and its noisy sums."""
        return replace(_loss(self.l1_sensitivity / self.scale), delta=self.delta)

    def parameters(self) -> dict[str, str]:
        """Sensitivity, scale and delta, exact."""
        return {
            "l1_sensitivity": fraction_to_text(self.l1_sensitivity),
            "scale": fraction_to_text(self.scale),
            "delta": fraction_to_text(self.delta),
        }

    @classmethod
    def from_parameters(cls, parameters: Json) -> Self:
        """Reads `parameters()` back. Raises ValueError for anything else."""
        l1_sensitivity, scale, delta = read_fractions(parameters, ("l1_sensitivity", "scale", "delta"))
        return cls(l1_sensitivity=l1_sensitivity, scale=scale, delta=delta)


EVENTS = (LaplaceEvent, LaplaceThresholdEvent)
