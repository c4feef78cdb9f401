"""What one answer promises by itself: the (epsilon, delta) of its own events, apart from all other answers.

**Claim.** Let events have the losses of `compose`, with the deltas d_i, and let D > d = sum d_i. Then releasing all of
them is (epsilon, D)-DP for the least of

1. the sum of the pure epsilons, where every event has one (basic composition: Dwork and others 2006, and the good cases
   of accountant/filter.md, step 3, for the deltas);
2. the epsilon of Gaussian DP for the sum of mu squared at D - d (Dong, Roth and Su 2022, Corollaries 2.13 and 3.3);
3. the epsilon of zero-concentrated DP for the sum of rho at D - d (Bun and Steinke 2016, Lemma 1.7; Canonne, Kamath and
   Steinke 2020, Corollary 13);
4. the pure epsilons of the events that have one, plus the epsilon of 2 for the others alone.

Why D - d: as in step 3 of accountant/filter.md the hockey-stick divergence is at most d above that of the events' good
cases, which have no deltas. Why 4: (a, 0)-DP and (b, D - d)-DP together are (a + b, D - d)-DP.

A figure of one answer restates delta. Two figures (e1, D) and (e2, D) do not add up to (e1 + e2, D): together they are
(e1 + e2, 2D)-DP by these figures, and better by the events. The account adds up events (accountant/filter.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from privacy.conversions import concentrated_epsilon, gaussian_epsilon
from privacy.events import Event
from privacy.loss import ZERO_LOSS, Loss

__all__ = ["Own", "own_figure"]


@dataclass(frozen=True, slots=True)
class Own:
    """An answer's own figure: releasing it, and nothing else, is (epsilon, delta)-DP."""

    epsilon: Fraction
    delta: Fraction


def own_figure(events: Sequence[Event], *, delta: Fraction, otherwise: Fraction) -> Own:
    """The own figure of events at `delta`, that of the paying account.

    Where the account's delta cannot cover the events (a pure account that gets a stored release with Gaussian noise, or
    releases whose own deltas reach it), the figure has the least delta that they allow: the sum of their deltas
    and `delta`, or `otherwise` when `delta` is zero and some event has no pure epsilon.
    Requires: `delta` from 0 to below 1, `otherwise` within (0, 1).
    Ensures: epsilon is rounded up; for pure events on a pure account it is their exact sum.
    """
    pure, other = ZERO_LOSS, ZERO_LOSS
    for event in events:
        loss = event.loss()
        if loss.pure is None:
            other = other + loss
        else:
            pure = pure + loss
    own = pure.delta + other.delta
    if other is not ZERO_LOSS and delta == 0:
        delta = otherwise
    if delta < own or (delta == own and other is not ZERO_LOSS):
        delta += own
    return Own(_epsilon(_Sums.of(pure), None if other is ZERO_LOSS else _Sums.of(other), delta - own), delta)


@dataclass(frozen=True, slots=True)
class _Sums:
    """The measures of a loss that are converted."""

    pure: Fraction | None
    mu_squared: Fraction | None
    rho: Fraction | None

    @classmethod
    def of(cls, loss: Loss) -> _Sums:
        return cls(loss.pure, loss.mu_squared, loss.rho)


@lru_cache(maxsize=4096)
def _epsilon(pure: _Sums, other: _Sums | None, delta: Fraction) -> Fraction:
    """The claim's epsilon, with the deltas already taken off `delta`."""
    assert pure.pure is not None
    if other is None:
        best = pure.pure
        if delta <= 0 or best == 0:
            return best
    else:
        assert other.mu_squared is not None
        best = pure.pure + gaussian_epsilon(mu_squared=other.mu_squared, delta=delta)
        if pure.pure == 0:
            # For Gaussian noise alone nothing is below its own curve.
            return best
    rest_mu, rest_rho = (Fraction(0), Fraction(0)) if other is None else (other.mu_squared, other.rho)
    # Rough lower bounds decide what is worth converting; a conversion that is left out makes the figure no less true.
    slack = 2 * math.log(1 / float(delta)) if delta > Fraction(1, 10**300) else math.inf
    if pure.mu_squared is not None and rest_mu is not None:
        together = pure.mu_squared + rest_mu
        if math.sqrt(float(together) * slack) * 0.7 < float(best):
            best = min(best, gaussian_epsilon(mu_squared=together, delta=delta))
    if pure.rho is not None and rest_rho is not None:
        together = pure.rho + rest_rho
        if float(together) + math.sqrt(2 * float(together) * slack) * 0.8 < float(best):
            best = min(best, concentrated_epsilon(rho=together, delta=delta))
    return best
