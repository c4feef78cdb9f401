"""Currencies: what an amount of a price is, which sum of an account pays it, and how it is expressed in epsilon.

An account counts several measures of loss (accountant/filter.md); a currency is one of them as a price. Everything that
pricing, floors, qualities of releases and answers ask of a currency is here, so a new one is an entry of this module.

| | pure epsilon | mu squared |
|---|---|---|
| grows with | 1 / scale of the noise | its square |
| nominal epsilon E of an account | E | the same share of the Gaussian branch as E of the limit |
| epsilon of the answer itself | that epsilon | the mu squared with that epsilon at the account's delta |
| quality of a release | the amount | mu |
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from privacy.conversions import gaussian_epsilon, gaussian_mu_squared_near
from privacy.loss import Loss
from privacy.numbers import PICO

__all__ = ["MU_SQUARED", "PURE", "Currency", "Payer"]


class _Limit(Protocol):
    @property
    def epsilon(self) -> Fraction: ...
    @property
    def delta(self) -> Fraction: ...


class _Budgets(Protocol):
    @property
    def mu_squared(self) -> int | None: ...
    @property
    def rho(self) -> int | None: ...
    @property
    def pure(self) -> int: ...
    @property
    def mixed_pure(self) -> int | None: ...
    @property
    def mixed_mu_squared(self) -> int | None: ...


class _Spent(Protocol):
    @property
    def mixed_pure(self) -> int | None: ...


class Payer(Protocol):
    """An account, as far as currencies look at it: its limit, the budgets of its branches in whole picos, and what it
    has spent of them."""

    @property
    def limit(self) -> _Limit:
        """The most that its charges may add up to."""
        ...

    @property
    def branches(self) -> _Budgets:
        """Its budgets; None for a branch that it does not have."""
        ...

    @property
    def spent(self) -> _Spent:
        """Its sums; None for one without a bound."""
        ...


@dataclass(frozen=True, slots=True)
class Currency(ABC):
    """What an amount of a family's price is.

    `power`: the power of one over the scale of the noise that an amount grows with. `unpaid`: why an account cannot pay
    in it, None where every account can.
    """

    power: int
    unpaid: str | None

    @abstractmethod
    def pays(self, account: Payer) -> bool:
        """Whether the account has a budget in this currency."""

    @abstractmethod
    def nominal_amount(self, epsilon: Fraction, account: Payer) -> Fraction:
        """The amount that a part of the account's epsilon buys: that part of the budget in this currency.

        Errors: ValueError for an account that cannot pay, or when epsilon buys less than one pico.
        """

    @abstractmethod
    def serving_amount(self, epsilon: Fraction, account: Payer) -> Fraction:
        """The least amount of a stored release that serves a spend: that part of the tightest budget that counts it.

        A spend may buy less than its nominal amount (server/spends.py), and what it bought goes on serving it: so it
        follows from limits, and from whether anything was ever put into the pure sum of the mixed branch, which before
        that is never the tightest. Errors: as `nominal_amount`.
        """

    @abstractmethod
    def nominal_epsilon(self, amount: Fraction, account: Payer) -> Fraction:
        """The amount as a part of the account's epsilon, rounded up to whole picos. Errors: as `nominal_amount`."""

    @abstractmethod
    def own_amount(self, epsilon: Fraction, *, delta: Fraction) -> Fraction:
        """The amount with which an answer is (epsilon, delta)-DP by itself. Errors: ValueError when there is none."""

    @abstractmethod
    def own_epsilon(self, amount: Fraction, *, delta: Fraction) -> Fraction:
        """An epsilon for which an answer of this amount is (epsilon, delta)-DP. Errors: ValueError out of range."""

    @abstractmethod
    def amount_of(self, loss: Loss) -> Fraction:
        """The amount that a loss is. Errors: ValueError for one without a bound in this currency."""

    @abstractmethod
    def quality(self, amount: Fraction) -> Fraction:
        """How good a release of this amount is: a number inverse to the scale of its noise, rounded down to picos."""

    @abstractmethod
    def paid_by(self, *, pure: int, mu_squared: int, rho: int) -> int:
        """About the least amount, in whole picos, of noise that costs as much in each measure."""


@dataclass(frozen=True, slots=True)
class _Pure(Currency):
    """Pure epsilon. What it costs in the other measures depends on the noise; in epsilon it is exact."""

    def pays(self, account: Payer) -> bool:
        return True

    def nominal_amount(self, epsilon: Fraction, account: Payer) -> Fraction:
        return epsilon

    def serving_amount(self, epsilon: Fraction, account: Payer) -> Fraction:
        return epsilon

    def nominal_epsilon(self, amount: Fraction, account: Payer) -> Fraction:
        return amount

    def own_amount(self, epsilon: Fraction, *, delta: Fraction) -> Fraction:
        return epsilon

    def own_epsilon(self, amount: Fraction, *, delta: Fraction) -> Fraction:
        return amount

    def amount_of(self, loss: Loss) -> Fraction:
        return _bounded(loss.pure)

    def quality(self, amount: Fraction) -> Fraction:
        return amount

    def paid_by(self, *, pure: int, mu_squared: int, rho: int) -> int:
        return max(pure, 1)


@dataclass(frozen=True, slots=True)
class _MuSquared(Currency):
    """Mu squared of Gaussian DP, which is twice rho."""

    def pays(self, account: Payer) -> bool:
        return account.branches.mu_squared is not None

    def nominal_amount(self, epsilon: Fraction, account: Payer) -> Fraction:
        """Rounded down to whole picos, so that n queries of a share 1/n always fit."""
        if account.branches.mu_squared is None:
            raise ValueError(self.unpaid)
        units = int(account.branches.mu_squared * epsilon / account.limit.epsilon) if epsilon > 0 else 0
        if units == 0:
            raise ValueError("epsilon is too small for this account")
        return units * PICO

    def serving_amount(self, epsilon: Fraction, account: Payer) -> Fraction:
        """Gaussian noise takes half as much rho as mu squared, of a budget that may be less than half of this one."""
        nominal = self.nominal_amount(epsilon, account)
        branches, share = account.branches, epsilon / account.limit.epsilon
        # A unit for the charge, which is rounded up, and the distance of the amounts that are searched over.
        tightest = Fraction(nominal / PICO)
        if branches.rho is not None:
            tightest = min(tightest, 2 * (branches.rho * share - 1) * _NEAR)
        noise, whole = branches.mixed_mu_squared, branches.mixed_pure
        if noise is not None and whole is not None and account.spent.mixed_pure != 0:
            # The rest of epsilon stands for this budget, so a spend buys more than its share of it.
            spend = min(share * branches.pure / (branches.pure - whole), Fraction(1))
            tightest = min(tightest, (noise * spend - 1) * _NEAR)
        return min(nominal, max(int(tightest), 1) * PICO)

    def nominal_epsilon(self, amount: Fraction, account: Payer) -> Fraction:
        whole = self.nominal_amount(account.limit.epsilon, account)
        return Fraction(math.ceil(account.limit.epsilon * amount / whole / PICO)) * PICO

    def own_amount(self, epsilon: Fraction, *, delta: Fraction) -> Fraction:
        if delta <= 0:
            raise ValueError("the delta of selecting groups takes all of the account's")
        return gaussian_mu_squared_near(epsilon=epsilon, delta=delta)

    def own_epsilon(self, amount: Fraction, *, delta: Fraction) -> Fraction:
        return gaussian_epsilon(mu_squared=amount, delta=delta)

    def amount_of(self, loss: Loss) -> Fraction:
        return _bounded(loss.mu_squared)

    def quality(self, amount: Fraction) -> Fraction:
        return Fraction(max(math.isqrt(math.floor(amount * 10**24)), 1), 10**12)

    def paid_by(self, *, pure: int, mu_squared: int, rho: int) -> int:
        return max(mu_squared, 2 * rho, 1)


_NEAR = Fraction(99_999, 100_000)


def _bounded(amount: Fraction | None) -> Fraction:
    if amount is None:
        raise ValueError("this loss has no bound in the currency")
    return amount


PURE: Currency = _Pure(power=1, unpaid=None)
"""Pure epsilon: inverse to the scale of the noise."""

MU_SQUARED: Currency = _MuSquared(power=2, unpaid="this account has no budget for Gaussian noise")
"""Mu squared of Gaussian DP: inverse to the square of the scale."""
