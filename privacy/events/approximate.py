"""Events of which only an (epsilon, delta) is known: their loss is that of randomised response."""

from __future__ import annotations

from dataclasses import dataclass
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
from privacy.events.laplace import HALF_PI_UP, SMALL
from privacy.loss import Loss
from privacy.special import erfc_inverse, precise, rounded_up, to_decimal
from privacy.values import Json

__all__ = [
    "EVENTS",
    "ApproximateEvent",
    "DiscreteLaplaceEvent",
    "LocalReportEvent",
    "TruncatedGeometricEvent",
    "approximate_loss",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplaceEvent:
    """Two-sided geometric noise, P(k) ~ e^(-|k| / scale), was added to a vector of integers, each entry independently.

    Requires: both positive; `l1_sensitivity` is the greatest L1 change of the whole vector between neighbours.
    Ensures: `loss().pure` is `l1_sensitivity / scale`, exact; the other measures are those of randomised response,
    rounded up, which it is where one entry changes by one: those of continuous Laplace noise would be too little.
    Units: both in the unit of the vector.
    Errors: ValueError when a parameter is not positive or epsilon is above 10^6 or below 10^-30.
    Source: Ghosh, Roughgarden and Sundararajan 2009, Theorem 2.1.
    """

    kind: ClassVar[str] = "discrete_laplace/1"

    l1_sensitivity: Fraction
    scale: Fraction

    def __post_init__(self) -> None:
        require_positive(self.l1_sensitivity, name="l1_sensitivity")
        require_positive(self.scale, name="scale")
        ratio = self.l1_sensitivity / self.scale
        require_ratio(ratio, name="l1_sensitivity / scale", lowest=EPSILON_MIN, highest=EPSILON_MAX)

    def loss(self) -> Loss:
        """Loss of the whole vector under the relation of its sensitivity."""
        return approximate_loss(self.l1_sensitivity / self.scale, Fraction(0))

    def parameters(self) -> dict[str, str]:
        """Sensitivity and scale, exact."""
        return {"l1_sensitivity": fraction_to_text(self.l1_sensitivity), "scale": fraction_to_text(self.scale)}

    @classmethod
    def from_parameters(cls, parameters: Json) -> Self:
        """Reads `parameters()` back. Raises ValueError for anything else."""
        l1_sensitivity, scale = read_fractions(parameters, ("l1_sensitivity", "scale"))
        return cls(l1_sensitivity=l1_sensitivity, scale=scale)


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncatedGeometricEvent:
    """Partitions were selected so that the whole selection is (epsilon, delta)-DP, and nothing more is known of it.

    Requires: epsilon positive, delta inside (0, 1), both for all partitions of one privacy unit together.
    Ensures: `loss().pure` is epsilon and `loss().delta` delta, exact; other measures are rounded up.
    Errors: ValueError for other parameters, and for an epsilon above 10^6 or below 10^-30.
    """

    kind: ClassVar[str] = "truncated_geometric/1"

    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        require_positive(self.epsilon, name="epsilon")
        require_ratio(self.epsilon, name="epsilon", lowest=EPSILON_MIN, highest=EPSILON_MAX)
        require_delta(self.delta)

    def loss(self) -> Loss:
        """Loss of the whole selection."""
        return approximate_loss(self.epsilon, self.delta)

    def parameters(self) -> dict[str, str]:
        """Epsilon and delta, exact."""
        return {"epsilon": fraction_to_text(self.epsilon), "delta": fraction_to_text(self.delta)}

    @classmethod
    def from_parameters(cls, parameters: Json) -> Self:
        """Reads `parameters()` back. Raises ValueError for anything else."""
        epsilon, delta = read_fractions(parameters, ("epsilon", "delta"))
        return cls(epsilon=epsilon, delta=delta)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalReportEvent:
    """A person's one value was randomised at the person's, and the report published.

    Requires: epsilon positive; the probabilities of every report under two values differ by e^epsilon at most.
    Ensures: `loss().pure` is epsilon, exact; other measures are those of randomised response, rounded up. The relation
    is the replacement of the value: that a person took part is public.
    Errors: ValueError for an epsilon that is not positive, above 10^6 or below 10^-30.
    """

    kind: ClassVar[str] = "local_report/1"

    epsilon: Fraction

    def __post_init__(self) -> None:
        require_positive(self.epsilon, name="epsilon")
        require_ratio(self.epsilon, name="epsilon", lowest=EPSILON_MIN, highest=EPSILON_MAX)

    def loss(self) -> Loss:
        """Loss of one report."""
        return approximate_loss(self.epsilon, Fraction(0))

    def parameters(self) -> dict[str, str]:
        """Epsilon, exact."""
        return {"epsilon": fraction_to_text(self.epsilon)}

    @classmethod
    def from_parameters(cls, parameters: Json) -> Self:
        """Reads `parameters()` back. Raises ValueError for anything else."""
        (epsilon,) = read_fractions(parameters, ("epsilon",))
        return cls(epsilon=epsilon)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproximateEvent:
    """A mechanism ran that is (epsilon, delta)-DP, and nothing more is known of it: its test, its noise, its refusal.

    Requires: epsilon positive, delta inside (0, 1); everything that the mechanism shows is covered, refusals as well.
    Ensures: `loss().pure` is epsilon and `loss().delta` delta, exact; other measures are rounded up.
    Errors: ValueError for other parameters, and for an epsilon above 10^6 or below 10^-30.
    """

    kind: ClassVar[str] = "approximate/1"

    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        require_positive(self.epsilon, name="epsilon")
        require_ratio(self.epsilon, name="epsilon", lowest=EPSILON_MIN, highest=EPSILON_MAX)
        require_delta(self.delta)

    def loss(self) -> Loss:
        """Loss of the whole mechanism."""
        return approximate_loss(self.epsilon, self.delta)

    def parameters(self) -> dict[str, str]:
        """Epsilon and delta, exact."""
        return {"epsilon": fraction_to_text(self.epsilon), "delta": fraction_to_text(self.delta)}

    @classmethod
    def from_parameters(cls, parameters: Json) -> Self:
        """Reads `parameters()` back. Raises ValueError for anything else."""
        epsilon, delta = read_fractions(parameters, ("epsilon", "delta"))
        return cls(epsilon=epsilon, delta=delta)


@lru_cache(maxsize=4096)
def approximate_loss(epsilon: Fraction, delta: Fraction) -> Loss:
    """The loss of every (epsilon, delta)-DP mechanism that does not interact: no other property of its noise is used.

    Why: between two neighbours, an (epsilon, delta)-DP mechanism is a post-processing of "with probability delta
    reveal which of the two it is, otherwise answer by randomised response, truly with probability e^eps / (1 + e^eps)"
    (Kairouz, Oh and Viswanath 2015, Theorem 3.4 and its proof). The first case is `delta`; the second has

    - rho = eps tanh(eps/2). The loss of randomised response is a two-point variable with the mean
      m = eps tanh(eps/2), and by the inequality of Kearns and Saul (Berend and Kontorovich 2013, Theorem 4) it is
      subgaussian with the variance 2m, so (a-1) D_a <= (a-1) m + (a-1)^2 m for every order a. Tight at order 1.
    - mu = 2 Phi^-1(e^eps / (1 + e^eps)): the trade-off function is two straight lines that meet where both errors are
      1 / (1 + e^eps). G_mu is convex, passes that point and the two ends, and so lies below both lines: by Dong,
      Roth and Su 2022, Theorem 2.10, randomised response is a post-processing of that Gaussian.
    """
    if epsilon < SMALL:
        # The leading terms bound the measures from above here as well.
        rho = epsilon**2 / 2
        mu_squared = HALF_PI_UP * epsilon**2
    else:
        with precise():
            exact = to_decimal(epsilon)
            small = (-exact).exp()
            rho = min(rounded_up(exact * (1 - small) / (1 + small)), epsilon**2 / 2)
            # Q(mu/2) = 1 / (1 + e^eps), so erfc(z) = e^-exponent with z = mu / sqrt(8) and this exponent:
            exponent = exact + ((1 + small) / 2).ln()
            mu_squared = rounded_up(8 * erfc_inverse(exponent) ** 2)
    return Loss(pure=epsilon, delta=delta, rho=rho, mu_squared=mu_squared)


EVENTS = (TruncatedGeometricEvent, LocalReportEvent, ApproximateEvent, DiscreteLaplaceEvent)
