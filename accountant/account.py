"""Accounts: a limit, what has been spent of it, and what may still be asked."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from accountant.filter import (
    DEFAULT_SHARES,
    NOTHING,
    Branch,
    Branches,
    DeltaShares,
    FilterKind,
    Limit,
    Sums,
    alive_branches,
    charges_left,
    fits,
    least_share,
    split_limit,
)
from privacy.loss import Loss
from privacy.numbers import ATTO, PICO

__all__ = ["Account", "DeltaShares", "FilterKind", "Limit", "Shortage", "common_accounts"]


@dataclass(frozen=True, slots=True)
class Shortage:
    """One amount that a refused charge would exceed.

    `measure` is "pure", "mu_squared", "rho", "delta", or one of the sums of the mixed branch, "mixed_pure" and
    "mixed_mu_squared", in either of which a charge may be counted there. `asked` is None when the charge has no finite
    amount of it; `remaining` is None when earlier charges had none, so that nothing can be asked in this measure any
    more.
    """

    measure: str
    asked: Fraction | None
    remaining: Fraction | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One account of a dataset, as the ledger holds it at one moment.

    `spent` is everything admitted and not voided, reservations included; `reserved` is the part of it whose queries
    have not ended yet. `shares` says how the delta of every limit of it is divided. `greatest` holds the greatest
    epsilon and the greatest delta that its limit ever had (None: the limit of now), `revision` counts its limits, and
    a `frozen` account pays for nothing more, nor does one that `expires` from that moment on. `space` is the unit
    space: whom the account's whole tree protects, in whichever of its datasets. `branches` was fixed by the limit when
    it was set (`accountant.filter.split_limit`).
    """

    id: str
    dataset: str
    parent: str | None
    principal: str | None
    name: str
    limit: Limit
    filter: FilterKind
    shares: DeltaShares
    branches: Branches
    created: datetime.datetime
    greatest: Limit | None = None
    frozen: bool = False
    revision: int = 1
    spent: Sums = NOTHING
    reserved: Sums = NOTHING
    space: str = ""
    expires: datetime.datetime | None = None

    def __post_init__(self) -> None:
        # In whole numbers: every question makes several accounts, and fractions are slow.
        epsilon, delta = self.limit.epsilon, self.limit.delta
        assert self.branches.pure * epsilon.denominator == epsilon.numerator * PICO.denominator, (
            "branches belong to another limit"
        )
        branches = self.branches
        taken = branches.delta + branches.gaussian_delta + branches.concentrated_delta + branches.mixed_delta
        assert taken * delta.denominator <= delta.numerator * ATTO.denominator, (
            "branches take more than the limit's delta"
        )

    @classmethod
    def opened(
        cls,
        *,
        id: str,
        dataset: str,
        parent: str | None,
        principal: str | None,
        name: str,
        limit: Limit,
        filter: FilterKind,
        shares: DeltaShares = DEFAULT_SHARES,
        created: datetime.datetime,
    ) -> Account:
        """A new account that has spent nothing. Raises ValueError when the limit does not suit the filter."""
        return cls(
            id=id,
            dataset=dataset,
            parent=parent,
            principal=principal,
            name=name,
            limit=limit,
            filter=filter,
            shares=shares,
            branches=split_limit(limit, filter, shares),
            created=created,
        )

    @property
    def guarantee(self) -> Limit:
        """What everything charged here together is: the greatest limit that the account ever had (filter.md)."""
        return self.limit if self.greatest is None else self.greatest

    def admits(self, loss: Loss) -> bool:
        """Whether the charge may be spent now."""
        return fits(self.spent.add(loss, self.branches), self.branches)

    def alive_branches(self) -> tuple[Branch, ...]:
        """The branches that still count: a charge is admitted through one of them or not at all."""
        return alive_branches(self.spent, self.branches)

    def used_share(self) -> Fraction:
        """How much is used, from 0 to 1: the least used share over the branches that are alive, 1 when none is.

        A charge need not be possible in that branch: Gaussian noise never fits the pure one.
        """
        return Fraction(*least_share(self.spent, self.branches))

    def remaining_epsilon(self) -> Fraction:
        """Nominal epsilon that is left: the unused share of the limit's epsilon. Exact for a pure account."""
        return self.limit.epsilon * (1 - self.used_share())

    def cost(self, loss: Loss) -> Fraction:
        """Nominal epsilon that the charge takes from what remains: what the ledger would say it cost, now."""
        before, before_of = least_share(self.spent, self.branches)
        after, after_of = least_share(self.spent.add(loss, self.branches), self.branches)
        return self.limit.epsilon * Fraction(after * before_of - before * after_of, before_of * after_of)

    def remaining_delta(self) -> Fraction:
        """Delta that is left for charges that have one (selection of partitions)."""
        return max(self.branches.delta - self.spent.delta, 0) * ATTO

    def charges_left(self, loss: Loss) -> int:
        """How many charges of this loss would be admitted one after another from now on."""
        return charges_left(Sums.of(loss), self.spent, self.branches)

    def after(self, loss: Loss) -> Account:
        """The account as it would be with the charge, whether it is admitted or not."""
        return replace(self, spent=self.spent.add(loss, self.branches))

    def explain_refusal(self, loss: Loss) -> tuple[Shortage, ...]:
        """The amounts that are short; empty exactly when the charge is admitted.

        A delta alone refuses a charge. The other measures refuse it only together, so all branches of the account are
        listed then: giving way in any one of them would be enough.
        """
        after = self.spent.add(loss, self.branches)
        asked = Sums.of(loss)
        short = []
        if after.delta > self.branches.delta:
            short.append(Shortage(measure="delta", asked=asked.delta * ATTO, remaining=self.remaining_delta()))
        if not alive_branches(after, self.branches):
            for measure, amount, spent, budget in (
                ("pure", asked.pure, self.spent.pure, self.branches.pure),
                ("mu_squared", asked.mu_squared, self.spent.mu_squared, self.branches.mu_squared),
                ("rho", asked.rho, self.spent.rho, self.branches.rho),
                ("mixed_pure", asked.pure, self.spent.mixed_pure, self.branches.mixed_pure),
                ("mixed_mu_squared", asked.mu_squared, self.spent.mixed_mu_squared, self.branches.mixed_mu_squared),
            ):
                if budget is not None:
                    short.append(
                        Shortage(
                            measure=measure,
                            asked=None if amount is None else amount * PICO,
                            remaining=None if spent is None else max(budget - spent, 0) * PICO,
                        )
                    )
        return tuple(short)


def common_accounts(accounts: Iterable[Account], dataset: str) -> list[Account]:
    """Accounts from which an administrator pays for everybody who asks a dataset: its root, and groups.

    Among all `accounts` of its unit space, roots first: those of the dataset that are nobody's own, nor below one that
    is, and that do not end.
    """
    known: Mapping[str, Account] = {account.id: account for account in accounts}

    def common(account: Account | None) -> bool:
        if account is None or account.principal is not None or account.frozen or account.expires is not None:
            return False
        return account.parent is None or common(known.get(account.parent))

    return [account for account in known.values() if account.dataset == dataset and common(account)]
