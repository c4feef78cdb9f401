"""The floor under the price of a fresh run: how little of the dataset's root an answer may take that touches rows.

**Claim.** Let the floor be the share s of the root's limit (`epsilon_min` of its epsilon). Each run takes at least the
share s, rounded down to the ledger's units, of *every* budget of the root (pure, mu squared and rho, as in
accountant/filter.md); an infinite amount is more than any. Every sum of the root counts all runs, so after more than
1/s of them (but for that rounding) each sum is beyond its budget and nothing is admitted. In the mixed branch a run is
in one of two sums: at most the part a/E of 1/s runs in the pure one, at most the rest in the other, since the floor of
mu squared is the share s of E/(E - a) times that branch's budget, where this is more. The floor is measured in the
root's own currency for every family: Gaussian noise by its share of the Gaussian branch, Laplace noise by the least of
its three shares, which for small prices is that of mu squared and not that of epsilon.

It limits how often one looks. It does not protect against what a single look shows: a few hundred observations that are
each a little better than a coin's toss are nearly certain together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from accountant.account import Account
from accountant.filter import Branches, Sums
from mechanisms.amounts import least_amount
from mechanisms.calibrate import is_histogram, losses, part_of
from mechanisms.families import FAMILIES, NoiseFamily, Price
from privacy.loss import Loss
from privacy.numbers import PICO
from privacy.policy import Dataset
from privacy.statistic import CoreStatistics
from server.calibrations import Calibrations

__all__ = ["ROOT_COUNTED", "RUNS", "Floor", "epsilon_min", "least_of_root"]

RUNS = 100_000
"""Fresh runs that a root affords where the policy names no floor."""

ROOT_COUNTED = Fraction(100)
"""Greatest epsilon of a root that the default counts: beyond it the root promises nothing that a floor could follow."""


def epsilon_min(dataset: Dataset, root: Account) -> Fraction:
    """The floor in nominal epsilon of the root: the policy's, or the share that affords `RUNS` fresh runs."""
    return least_of_root(dataset.limits.epsilon_min, root)


def least_of_root(declared: Fraction | None, root: Account) -> Fraction:
    """The same of what a policy declares, None for nothing."""
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
        return cls.of_root(epsilon_min(dataset, root), root)

    @classmethod
    def of_root(cls, epsilon: Fraction, root: Account) -> Floor:
        """The floor that is this epsilon of the root."""
        share = min(epsilon / root.limit.epsilon, Fraction(1))
        branches = root.branches
        return cls(
            epsilon,
            pure=math.floor(branches.pure * share),
            mu_squared=math.floor(max(Fraction(branches.mu_squared or 0), _mixed_noise(branches)) * share),
            rho=math.floor((branches.rho or 0) * share),
        )

    def covered(self, cores: Sequence[CoreStatistics], by_core: Sequence[Loss]) -> bool:
        """Whether each of these runs takes as much as it must."""
        return all(self._missing(Sums.of(loss)) <= 1 for loss in _of_runs(cores, by_core))

    def missing(self, loss: Loss, *, runs: int = 1) -> float:
        """By which factor a price of so many runs must grow in the worst of the branches, at most 1 when it is enough.

        Of a session every evaluation is a run: the session takes as much as all of them must.
        """
        many = Floor(self.epsilon, pure=self.pure * runs, mu_squared=self.mu_squared * runs, rho=self.rho * runs)
        return many._missing(Sums.of(loss))

    def looks(self, loss: Loss) -> int | None:
        """The most runs that a price pays for; None where it pays for any number of them."""
        sums = Sums.of(loss)
        found = [
            amount // least
            for least, amount in ((self.pure, sums.pure), (self.mu_squared, sums.mu_squared), (self.rho, sums.rho))
            if least and amount is not None
        ]
        return min(found, default=None)

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

    def least(
        self,
        cores: Sequence[CoreStatistics],
        family: NoiseFamily,
        delta: Fraction,
        known: Calibrations,
    ) -> Price:
        """The least price of six digits at which every run covers the floor and its noise can be drawn.

        One definite number for a plan: what is raised to it costs the same whatever was asked for.
        Errors: ValueError when there is none.
        """

        def price(amount: Fraction) -> Price:
            return Price(family, amount, delta)

        def covers(amount: Fraction) -> bool:
            return _works(lambda: self.covered(cores, losses(cores, price(amount))))

        def drawn(amount: Fraction) -> bool:
            return _works(lambda: bool(known.get(cores, price(amount))))

        def search() -> Price:
            guess = self._guess(cores, family, price)
            greatest = max(guess, PICO)
            while not covers(greatest):
                greatest *= 16
                if greatest > AMOUNT_MOST:
                    raise ValueError("no price of this kind of noise covers the dataset's floor")
            least = least_amount(covers, guess=guess, greatest=greatest)
            if not drawn(least):
                # Tables of selection have a longest length: noise for less can be priced and not drawn.
                greatest = least
                while not drawn(greatest):
                    greatest *= 2
                    if greatest > AMOUNT_MOST:
                        known.get(cores, price(greatest))
                        raise ValueError("no noise can be drawn at a price that covers the dataset's floor")
                least = least_amount(drawn, guess=greatest, greatest=greatest)
            return price(least)

        return known.once((self, family, delta), search)

    def _guess(
        self,
        cores: Sequence[CoreStatistics],
        family: NoiseFamily,
        price: Callable[[Fraction], Price],
    ) -> Fraction:
        """Near the least amount: the noise of one family takes what its core's part is; small Laplace its square."""
        part = min(part_of(core, cores) for core in cores if not is_histogram(core, cores))
        currency = FAMILIES[family].currency
        amount = currency.paid_by(pure=self.pure, mu_squared=self.mu_squared, rho=self.rho) * PICO / part
        for _ in range(3):
            try:
                factor = max(self._missing(Sums.of(loss)) for loss in _of_runs(cores, losses(cores, price(amount))))
            except ValueError:
                factor = 4.0
            if factor <= 1:
                break
            amount = math.ceil(amount * Fraction(math.sqrt(factor)) / PICO) * PICO
        return amount


def _mixed_noise(branches: Branches) -> Fraction:
    """What mu squared the mixed branch would hold if all of epsilon were for it, in picos; 0 without the branch."""
    whole, noise = branches.mixed_pure, branches.mixed_mu_squared
    return Fraction(0) if whole is None or noise is None else Fraction(noise * branches.pure, branches.pure - whole)


def _of_runs(cores: Sequence[CoreStatistics], by_core: Sequence[Loss]) -> list[Loss]:
    """The losses that count as runs.

    A histogram is released in the run of the sums for which it chooses. The sums take as much as they must without it,
    because a stored histogram may serve the next run; and where histograms are a charge of their own
    (journey/two_charges.py), that charge takes as much as it must by itself.
    """
    return [loss for core, loss in zip(cores, by_core, strict=True) if not is_histogram(core, cores)]


AMOUNT_MOST = Fraction(10**10)
"""Where a search for a price gives up."""


def _works(test: Callable[[], bool]) -> bool:
    """Whether a test of an amount passes; an amount for which there is no noise does not."""
    try:
        return test()
    except ValueError:
        return False
