"""The floor under the price of a fresh run: how little of the dataset's root an answer may take that touches rows.

**Claim.** Let the floor be the share s of the root's limit (`epsilon_min` of its epsilon). Each run takes at least the
share s, rounded down to the ledger's units, of *every* budget of the root (pure, mu squared and rho, as in
accountant/filter.md); an infinite amount is more than any. Every sum of the root counts all runs, so after more than
1/s of them (but for that rounding) each sum is beyond its budget and nothing is admitted. The floor is measured in the
root's own currency for both families: Gaussian noise by its share of the Gaussian branch, Laplace noise by the least of
its three shares, which for small prices is that of mu squared and not that of epsilon.

It limits how often one looks. It is no protection against what a single look shows: a few hundred observations that are
each a little better than a coin's toss are nearly certain together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from accountant.account import Account
from accountant.filter import Sums
from mechanisms.calibrate import GaussianPrice, LaplacePrice
from privacy.loss import Loss
from privacy.numbers import PICO
from privacy.policy import Dataset
from privacy.statistic import CoreStatistics
from server.calibrations import Calibrations

__all__ = ["ROOT_COUNTED", "RUNS", "Floor", "epsilon_min"]

RUNS = 100_000
"""Fresh runs that a root affords where the policy names no floor."""

ROOT_COUNTED = Fraction(100)
"""Greatest epsilon of a root that the default counts: beyond it the root promises nothing that a floor could follow."""


def epsilon_min(dataset: Dataset, root: Account) -> Fraction:
    """The floor in nominal epsilon of the root: the policy's, or the share that affords `RUNS` fresh runs."""
    declared = dataset.limits.epsilon_min
    return min(root.limit.epsilon, ROOT_COUNTED) / RUNS if declared is None else declared


@dataclass(frozen=True, slots=True)
class Floor:
    """The least that one run takes of each budget of the root, in whole picos; 0 for a branch it does not have."""

    epsilon: Fraction
    pure: int
    mu_squared: int
    rho: int

    @classmethod
    def of(cls, dataset: Dataset, root: Account) -> Floor:
        """The floor of a dataset under this root. Depends on limits only, never on what was spent."""
        epsilon = epsilon_min(dataset, root)
        share = min(epsilon / root.limit.epsilon, Fraction(1))
        branches = root.branches
        return cls(
            epsilon,
            pure=math.floor(branches.pure * share),
            mu_squared=math.floor((branches.mu_squared or 0) * share),
            rho=math.floor((branches.rho or 0) * share),
        )

    def covered(self, losses: Sequence[Loss]) -> bool:
        """Whether each of these runs (one per core) takes as much as it must."""
        return all(self._missing(Sums.of(loss)) <= 1 for loss in losses)

    def _missing(self, sums: Sums) -> float:
        """By which factor the price must grow in the worst of the branches, at most 1 when it is enough."""
        ratios = [
            least / amount
            for least, amount in (
                (self.pure, sums.pure),
                (self.mu_squared, sums.mu_squared),
                (self.rho, sums.rho),
            )
            if amount is not None and least > amount
        ]
        return max(ratios, default=1.0)

    def raised(
        self, cores: Sequence[CoreStatistics], price: LaplacePrice | GaussianPrice, known: Calibrations
    ) -> LaplacePrice | GaussianPrice:
        """The price, or the least one of its family (to about a part in a million) that covers the floor.

        Errors: ValueError as `calibrate`.
        """
        for _ in range(64):
            losses = known.get(cores, price).by_core
            factor = max(self._missing(Sums.of(loss)) for loss in losses)
            if factor <= 1:
                return price
            # Sums of Laplace noise grow with the square of a small price, so the root is the cautious step.
            price = _times(price, factor if isinstance(price, GaussianPrice) else math.sqrt(factor))
        raise ValueError("no price of this kind of noise covers the dataset's floor")


def _times(price: LaplacePrice | GaussianPrice, factor: float) -> LaplacePrice | GaussianPrice:
    """The price grown by a factor, and by a hair, to whole picos."""
    grown = Fraction(factor * (1 + 1e-7))
    if isinstance(price, LaplacePrice):
        return LaplacePrice(math.ceil(price.epsilon * grown / PICO) * PICO, price.delta)
    return GaussianPrice(math.ceil(price.mu_squared * grown / PICO) * PICO, price.delta)
